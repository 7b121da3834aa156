/* rounds: the candidates of a search among each other. */
#include "gen/error.h"
#include "run.h"
#include <math.h>
#include <stdlib.h>

#define MEET_AGAIN 1.1 /* candidates known from records are timed again when they are within this of the best */
#define MEET_SAMPLES 5
#define OLD_FEW 8 /* of those that met before, the fastest that meet the newest */

/* A candidate known from a record is loaded, so that it can be timed beside the new ones. */
static bool load(const fa_search_run *s, fa_candidate *c)
{
    return c->plan || s->opt.backend || fa_plan_make(s->site->ctx, &s->t->problem, &c->config, "tuned", &c->plan) == FA_OK;
}

static int faster(const void *a, const void *b)
{
    const fa_candidate *x = *(fa_candidate *const *)a, *y = *(fa_candidate *const *)b;
    return (x->level > y->level) - (x->level < y->level);
}

/* Those that ran, may be loaded and lie between two candidates of the search, within `times` the best of them; sorted. *fresh: how many of
 * them this search timed. */
static size_t entrants(fa_search_run *s, size_t from, size_t to, double times, fa_candidate **e, size_t *fresh)
{
    fa_tuning *t = s->t;
    size_t n = 0;
    double best = INFINITY;
    for (size_t i = from; i < to; i++) {
        const fa_candidate *c = &t->candidate[i];
        if (c->decided && c->outcome == FA_RAN && c->verified)
            best = fmin(best, c->level);
    }
    for (size_t i = from; i < to; i++) {
        fa_candidate *c = &t->candidate[i];
        if (!c->decided || c->outcome != FA_RAN || !c->verified || (c != s->tournament.guest && c->level > times * best) ||
            (c->resumed && ((c != s->tournament.guest && c->level > MEET_AGAIN * best) || !load(s, c))))
            continue;
        *fresh += !c->resumed;
        e[n++] = c;
    }
    if (n > 1)
        qsort(e, n, sizeof *e, faster);
    return n;
}

/* Of those that just met and whose levels were placed before, or were not: by how much they are slower now, the median; `none` where there
 * are none. */
static double drift(fa_candidate **e, const double *before, size_t n, bool placed, double none)
{
    fa_samples ratio = { 0 };
    for (size_t i = 0; i < n; i++)
        if (e[i]->placed == placed && before[i] > 0 && e[i]->level > 0)
            fa_samples_add(&ratio, e[i]->level / before[i]);
    return ratio.n ? fa_samples_median(&ratio) : none;
}

static bool among(const fa_candidate *c, fa_candidate **e, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (e[i] == c)
            return true;
    return false;
}

/* Those that just met have their times; all others what they would be now, as far as those that met tell; the strategy hears it. The best
 * so far is the best that met. */
static void hear(fa_search_run *s, fa_candidate **e, size_t n)
{
    fa_tuning *t = s->t;
    double before[FA_TOURNAMENT_FIELD] = { 0 };
    for (size_t i = 0; i < n && i < FA_TOURNAMENT_FIELD; i++)
        before[i] = fa_search_state_heard(&s->state, e[i]->at);
    double since = drift(e, before, n, true, 1), since_first = drift(e, before, n, false, since);
    s->slower *= since_first;
    for (size_t i = 0; i < t->n; i++) {
        fa_candidate *c = &t->candidate[i];
        if (!c->decided || c->outcome != FA_RAN)
            continue;
        if (!among(c, e, n))
            c->level *= c->placed ? since : since_first;
        c->placed = true;
        fa_search_state_tell(&s->state, c->at, c->level);
    }
    for (size_t i = 0; i < n; i++) {
        e[i]->tflops = e[i]->seconds > 0 ? s->flops / e[i]->seconds * 1e-12 : 0;
        if (e[i]->outcome == FA_RAN && e[i]->met && (i == 0 || e[i]->level < t->winner->level))
            t->winner = e[i];
    }
}

/* A failure among the fastest is on record too, or a second run would meet it again. */
static fa_status ended(fa_search_run *s, fa_status st)
{
    fa_candidate *c = s->tournament.culprit;
    if (st == FA_OK || !c)
        return st;
    s->tournament.culprit = NULL;
    if (s->t->winner == c)
        s->t->winner = NULL;
    st = fa_attempt_failed(s, c, st);
    s->t->counts.failed++;
    for (size_t i = 0; i < s->t->n; i++) {
        fa_candidate *k = &s->t->candidate[i];
        if (k->decided && k->outcome == FA_RAN && (!s->t->winner || k->level < s->t->winner->level))
            s->t->winner = k;
    }
    return st;
}

fa_status fa_rounds_meet(fa_search_run *s, size_t from)
{
    fa_tuning *t = s->t;
    size_t fresh = 0, old = 0, n, left = 0;
    fa_candidate **e = calloc(t->n + 1, sizeof *e);
    fa_status st = FA_OK;
    if (!e)
        return fa_fail(FA_NOMEM, "no memory for %zu candidates", t->n);
    n = t->winner ? entrants(s, 0, from, FA_TOURNAMENT_SECOND, e, &old) : 0;
    for (size_t i = OLD_FEW; i < n; i++)
        if (e[i] == s->tournament.guest) /* it is in every pair */
            e[OLD_FEW - 1] = e[i];
    n = n < OLD_FEW ? n : OLD_FEW;
    n += t->winner ? entrants(s, from, t->n, from ? FA_TOURNAMENT_SECOND : FA_TOURNAMENT_FIRST, e + n, &fresh) : 0;
    if (fresh && n > 1 && !fa_search_run_over(s) && (st = fa_search_run_backend(s)) == FA_OK && fa_search_run_device(s)) {
        st = fa_tournament_round(&s->tournament, e, n, FA_TOURNAMENT_FIRST, MEET_SAMPLES, &left);
        hear(s, e, left);
        st = ended(s, st);
    }
    free(e);
    return st;
}

fa_status fa_rounds_final(fa_search_run *s)
{
    fa_tuning *t = s->t;
    size_t fresh, n, met;
    fa_status st = FA_OK;
    fa_candidate **e = calloc(t->n + 1, sizeof *e), *winner = NULL;
    if (!e)
        return fa_fail(FA_NOMEM, "no memory for %zu candidates", t->n);
    for (bool again = true; again && st == FA_OK && t->winner && !fa_search_run_over(s);) { /* without the one that failed, where one did */
        fresh = 0;
        n = entrants(s, 0, t->n, FA_TOURNAMENT_FIRST, e, &fresh);
        if (!fresh || n < 2 || (st = fa_search_run_backend(s)) != FA_OK || !fa_search_run_device(s))
            break;
        st = fa_tournament_final(&s->tournament, e, n, &met, &winner);
        hear(s, e, met);
        t->winner = winner ? winner : t->winner;
        again = s->tournament.culprit != NULL;
        st = ended(s, st);
    }
    free(e);
    return st;
}

void fa_rounds_note(fa_search_run *s)
{
    fa_tuning *t = s->t;
    /* the winner first: of equal times the earlier record wins */
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < t->n; i++) {
            fa_candidate *c = &t->candidate[i];
            if (c->met && c->outcome == FA_RAN && (c == t->winner) == (pass == 0)) {
                c->resumed = false;
                fa_journal_note(&s->journal, c);
            }
        }
}
