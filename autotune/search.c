/* search: space -> model -> compile -> verify -> time -> record -> winner. */
#include "search.h"
#include "baseline.h"
#include "contest.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "gen/space.h"
#include "referee.h"
#include "workers.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIMIT 48
#define FIRST_SAMPLES 3
#define SAME 1e-3       /* modelled times this close are the same */
#define ECHO 0.02
#define MEET_AGAIN 1.1 /* candidates known from records are timed again when they are within this of the best */

typedef struct search {
    const fa_site *site;
    fa_search_options opt;
    fa_tuning *t;
    fa_journal journal;
    fa_workers *workers;
    fa_referee referee;
    fa_contest contest;
    double start, flops;
    bool interrupted;
} search;

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

void fa_tuning_free(fa_tuning *t)
{
    free(t->candidate);
    *t = (fa_tuning){ .n = 0 };
}

fa_site fa_site_of(fa_context *ctx)
{
    return (fa_site){ ctx, fa_context_arch(ctx), fa_context_budget(ctx), fa_context_template_dir(ctx), fa_context_store(ctx),
                      fa_context_compiler(ctx), !fa_context_driver(ctx)->takes_ptx };
}

/* ---- candidates ---- */

static int cheaper(const void *a, const void *b)
{
    const fa_candidate *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* The model gives many variations of one tile the same time. Each further one counts as ECHO slower than the one before, so that a
 * limit leaves more than one tile. */
static void rank_candidates(fa_tuning *t)
{
    for (size_t i = 0; i < t->n; i++)
        t->candidate[i].rank = t->candidate[i].cost.seconds;
    qsort(t->candidate, t->n, sizeof *t->candidate, cheaper);
    for (size_t i = 0; i < t->n; i++) {
        fa_candidate *c = &t->candidate[i];
        int echoes = 0;
        for (size_t j = i; j-- > 0 && t->candidate[j].cost.seconds >= c->cost.seconds * (1 - SAME);)
            echoes += !strcmp(t->candidate[j].config.family, c->config.family) && t->candidate[j].threads == c->threads &&
                      fa_config_get(&t->candidate[j].config, "br", 0) == fa_config_get(&c->config, "br", 0) &&
                      fa_config_get(&t->candidate[j].config, "bc", 0) == fa_config_get(&c->config, "bc", 0);
        c->rank *= 1 + ECHO * echoes;
    }
    qsort(t->candidate, t->n, sizeof *t->candidate, cheaper);
}

typedef struct listing {
    fa_tuning *t;
    const fa_space *space;
} listing;

static void list_one(void *user, size_t point, const fa_cost *cost)
{
    const listing *l = user;
    const fa_point *pt = &l->space->points[point];
    /* without groups, packing them is the same kernel by another name */
    if (fa_config_get(&pt->config, "pack", 0) && l->t->problem.hq == l->t->problem.hkv)
        return;
    l->t->candidate[l->t->n++] = (fa_candidate){ .config = pt->config, .cost = *cost, .smem = pt->smem, .regs = pt->regs,
                                                 .threads = pt->threads, .how = l->t->how };
}

static fa_status list_candidates(search *s)
{
    fa_tuning *t = s->t;
    fa_gen *g;
    fa_space space;
    fa_status st = fa_gen_open(&g, s->site->template_dir);
    if (st != FA_OK)
        return st;
    st = fa_space_list(g, &t->problem, s->site->arch, s->site->budget, s->opt.family, &space);
    if (st == FA_OK) {
        t->counts.space = space.n;
        t->counts.sound = space.n - space.rejected[FA_LIMIT_RULE];
        t->counts.fits_shared = t->counts.sound - space.rejected[FA_LIMIT_SHARED];
        t->counts.fits = space.fitting;
        t->n_rejected = fa_space_rejections(&space, t->rejected, FA_REJECTIONS);
        st = fa_space_check(&space, &t->problem, s->site->arch, s->site->budget);
        t->candidate = st == FA_OK ? calloc(space.fitting + 1, sizeof *t->candidate) : NULL;
        if (st == FA_OK && !t->candidate)
            st = fa_fail(FA_NOMEM, "no memory for %zu candidates", space.fitting);
        if (st == FA_OK)
            st = fa_model_space(g, &t->problem, &space, s->site->arch, list_one, &(listing){ t, &space });
        fa_space_free(&space);
    }
    if (st == FA_OK && !t->n)
        st = fa_wrap(FA_UNSUPPORTED, "no config has a model");
    if (st == FA_OK) {
        rank_candidates(t);
        fa_baseline_place(t, g, s->site, s->opt.family); /* first: the list may be cut below, and time may be short */
    }
    fa_gen_close(g);
    if (st != FA_OK)
        return st;
    size_t limit = s->opt.limit == 0 ? LIMIT : (size_t)s->opt.limit;
    t->n = s->opt.limit < 0 || t->n < limit ? t->n : limit;
    t->counts.kept = t->n;
    return FA_OK;
}

/* ---- the clock and the caller ---- */

static double time_left(const search *s)
{
    return s->opt.seconds > 0 ? fmax(0, s->opt.seconds - (now() - s->start)) : -1;
}

static bool over(search *s)
{
    if (s->opt.seconds > 0 && now() - s->start >= s->opt.seconds)
        s->t->out_of_time = true;
    return s->t->out_of_time || s->interrupted;
}

static void tell(search *s, const char *stage, const fa_candidate *latest, double done)
{
    s->t->elapsed = now() - s->start;
    if (s->opt.progress && s->opt.progress(s->opt.user, s->t, stage, latest, done))
        s->interrupted = true;
}

static void note(search *s, fa_candidate *c)
{
    fa_tuning *t = s->t;
    if (c->outcome == FA_RAN) {
        c->tflops = c->seconds > 0 ? s->flops / c->seconds * 1e-12 : 0;
        if (!t->winner || c->seconds < t->winner->seconds)
            t->winner = c;
    }
    if (!c->resumed)
        fa_journal_note(&s->journal, c);
}

static void decide(fa_candidate *c, fa_outcome o, const char *why)
{
    c->decided = true;
    c->outcome = o;
    snprintf(c->why, sizeof c->why, "%.*s", (int)sizeof c->why - 1, why);
}

/* ---- one candidate ---- */

/* After a failed launch: does the device still answer? A fault of a kernel leaves the whole CUDA context unusable. */
static bool alive(search *s)
{
    fa_entered in;
    if (fa_context_enter(s->site->ctx, &in) != FA_OK)
        return false;
    bool ok = fa_context_driver(s->site->ctx)->cuCtxSynchronize() == CUDA_SUCCESS;
    fa_context_leave(s->site->ctx, &in);
    return ok;
}

/* The device's answer to a candidate. FA_OK when the search can go on. */
static fa_status failed(search *s, fa_candidate *c, fa_status st)
{
    char why[512];
    if (st == FA_NOMEM)
        return st;
    snprintf(why, sizeof why, "%.*s", (int)sizeof why - 1, fa_last_error());
    decide(c, st == FA_WRONG ? FA_BAD_RESULT : FA_BAD_LAUNCH, why);
    note(s, c);
    if (st == FA_DEVICE && !alive(s))
        return fa_fail(FA_DEVICE, "a candidate left the device's context unusable; it is on record and will be passed over: %s", why);
    return FA_OK;
}

static fa_status open_device(search *s)
{
    fa_status st = FA_OK;
    if (!s->site->timed || s->contest.bench)
        return FA_OK;
    st = fa_referee_open(&s->referee, s->site->ctx, &s->t->problem, true);
    return st == FA_OK ? fa_bench_open(&s->contest.bench, s->site->ctx, &s->t->problem) : st;
}

static fa_status verify_and_time(search *s, fa_candidate *c, double done)
{
    fa_status st = open_device(s);
    if (st != FA_OK)
        return st;
    tell(s, "verify", c, done);
    st = fa_referee_judge(&s->referee, c->plan);
    if (st != FA_OK)
        return failed(s, c, st);
    c->verified = true;
    s->t->counts.verified++;
    tell(s, "time", c, done);
    st = fa_contest_time(&s->contest, c, FIRST_SAMPLES);
    if (st != FA_OK)
        return failed(s, c, st);
    s->t->counts.timed++;
    decide(c, FA_RAN, "");
    note(s, c);
    return FA_OK;
}

static fa_status handle(search *s, fa_candidate *c, double done)
{
    fa_tuning *t = s->t;
    if (c->resumed)
        t->counts.resumed++;
    else if (!c->decided || c->outcome == FA_BAD_CONSTRAINT)
        t->counts.compiled++;
    if (!c->decided && s->site->timed) {
        fa_status st = verify_and_time(s, c, done);
        if (st != FA_OK)
            return st;
    } else if (!c->decided) {
        c->seconds = c->cost.seconds;
        decide(c, FA_RAN, "");
        note(s, c);
    } else {
        note(s, c);
    }
    t->counts.failed += c->decided && c->outcome != FA_RAN;
    return FA_OK;
}

static fa_status first_pass(search *s)
{
    fa_tuning *t = s->t;
    fa_status st = fa_workers_start(&s->workers, s->site, &s->journal, t->candidate, t->n, s->opt.threads, s->opt.again);
    for (size_t i = 0; i < t->n && st == FA_OK && !over(s); i++) {
        double done = (double)i / (double)t->n;
        tell(s, "compile", &t->candidate[i], done);
        if (s->interrupted)
            break;
        bool there = fa_workers_wait(s->workers, i, time_left(s), &st);
        if (there && st == FA_OK)
            st = handle(s, &t->candidate[i], done);
    }
    over(s);
    fa_workers_stop(s->workers);
    s->workers = NULL;
    return st;
}

/* ---- the rounds ---- */

static bool contest_over(fa_contest *c)
{
    search *s = c->user;
    tell(s, "final", NULL, 1);
    return over(s);
}

/* A candidate known from a record is loaded, so that it can be timed beside the new ones. */
static bool load(search *s, fa_candidate *c)
{
    return c->plan || fa_plan_make(s->site->ctx, &s->t->problem, &c->config, "tuned", &c->plan) == FA_OK;
}

static fa_status rounds(search *s)
{
    fa_tuning *t = s->t;
    size_t n = 0, fresh = 0;
    fa_status st = FA_OK;
    fa_candidate **e = calloc(t->n + 1, sizeof *e), *winner = NULL;
    if (!e)
        return fa_fail(FA_NOMEM, "no memory for %zu candidates", t->n);
    for (size_t i = 0; i < t->n; i++) {
        fa_candidate *c = &t->candidate[i];
        if (!c->decided || c->outcome != FA_RAN || (c->resumed && (c->seconds > MEET_AGAIN * t->winner->seconds || !load(s, c))))
            continue;
        fresh += !c->resumed;
        e[n++] = c;
    }
    if (fresh && n > 1 && !over(s)) {
        st = fa_contest_run(&s->contest, e, n, &winner);
        /* the winner first: of equal times the earlier record wins */
        for (int pass = 0; pass < 2; pass++)
            for (size_t i = 0; i < n; i++)
                if ((e[i] == winner) == (pass == 0)) {
                    e[i]->resumed = false;
                    note(s, e[i]);
                }
        t->winner = winner ? winner : t->winner;
    }
    free(e);
    return st;
}

/* ---- the whole ---- */

static fa_status use_winner(search *s)
{
    fa_tuning *t = s->t;
    if (!s->site->ctx || !t->winner)
        return FA_OK;
    fa_status st = t->winner->plan ? FA_OK : fa_plan_make(s->site->ctx, &t->problem, &t->winner->config, "tuned", &t->winner->plan);
    if (st == FA_OK && !fa_plan_use(s->site->ctx, t->winner->plan))
        st = fa_fail(FA_NOMEM, "no memory for the table of kernels");
    return st;
}

/* Without times of its own, the model's choice is at least held against the oracle on the simulator before it is used. */
static fa_status verify_modelled(search *s)
{
    fa_tuning *t = s->t;
    if (!s->site->ctx || s->site->timed)
        return FA_OK;
    while (t->winner && !over(s)) {
        fa_candidate *c = t->winner;
        tell(s, "verify", c, 1);
        fa_status st = c->plan ? FA_OK : fa_plan_make(s->site->ctx, &t->problem, &c->config, "tuned", &c->plan);
        if (st == FA_OK && !s->referee.small)
            st = fa_referee_open(&s->referee, s->site->ctx, &t->problem, false);
        if (st != FA_OK)
            return st;
        st = fa_referee_judge(&s->referee, c->plan);
        if (st == FA_OK) {
            c->verified = true;
            t->counts.verified++;
            return FA_OK;
        }
        c->resumed = false;
        t->counts.failed++;
        t->winner = NULL;
        st = failed(s, c, st);
        if (st != FA_OK)
            return st;
        for (size_t i = 0; i < t->n; i++)
            if (t->candidate[i].decided && t->candidate[i].outcome == FA_RAN &&
                (!t->winner || t->candidate[i].seconds < t->winner->seconds))
                t->winner = &t->candidate[i];
    }
    return FA_OK;
}

static fa_status conclude(const search *s)
{
    const fa_tuning *t = s->t;
    if (s->interrupted)
        return fa_fail(FA_INTERRUPTED, "the search was stopped; %zu of %zu candidates are on record", t->counts.timed + t->counts.resumed, t->n);
    if (t->winner)
        return FA_OK;
    if (t->out_of_time)
        return fa_fail(FA_INTERRUPTED, "%.1f seconds were up before any candidate had run", s->opt.seconds);
    for (size_t i = 0; i < t->n; i++)
        if (t->candidate[i].outcome == FA_BAD_RESULT)
            return fa_fail(FA_WRONG, "none of %zu candidates passed; the best by the model: %s", t->n, t->candidate[i].why);
    return fa_fail(FA_NO_KERNEL, "none of %zu candidates ran; the first: %s", t->n, t->n ? t->candidate[0].why : "there is none");
}

fa_status fa_search(const fa_site *site, const fa_problem *p, const fa_search_options *opt, fa_tuning *out)
{
    search s = { .site = site, .t = out, .start = now() };
    if (opt)
        s.opt = *opt;
    *out = (fa_tuning){ .how = site->timed ? FA_MEASURED : FA_MODELLED };
    if (s.opt.limit < -1 || !(s.opt.seconds >= 0) || s.opt.threads < 0)
        return fa_fail(FA_INVALID, "search: limit %d, seconds %g, threads %d; accepted: -1 or more, 0 or more, 0 or more", s.opt.limit,
                       s.opt.seconds, s.opt.threads);
    fa_status st = fa_problem_normalize(&out->problem, p);
    if (st != FA_OK)
        return st;
    fa_problem_fill_shape(&out->problem);
    s.flops = fa_model_matrix_flops(&out->problem, fa_band_of(&out->problem, FA_BOTTOM_RIGHT, 0, FA_MODEL_WINDOW, 0));
    s.contest = (fa_contest){ .sample = fa_contest_sample, .stop = contest_over, .user = &s };
    st = list_candidates(&s);
    if (st == FA_OK)
        st = fa_journal_open(&s.journal, site, &out->problem, out->how);
    if (st == FA_OK) {
        st = first_pass(&s);
        if (st == FA_OK && site->timed && out->winner)
            st = rounds(&s);
        if (st == FA_OK && !s.interrupted)
            st = verify_modelled(&s);
        if (st == FA_OK)
            st = use_winner(&s);
        fa_journal_close(&s.journal);
    }
    fa_referee_close(&s.referee);
    fa_bench_close(s.contest.bench);
    out->elapsed = now() - s.start;
    return st == FA_OK ? conclude(&s) : st;
}
