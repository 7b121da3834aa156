/* tournament: verified candidates against each other until one is left. */
#include "tournament.h"
#include "sim/sim.h"
#include <math.h>
#include <stdlib.h>

#define LAST_SAMPLES 12
#define SAMPLES_MOST 16 /* of a round, that its levels look at */
#define ROUNDS_MOST 2   /* as often is a round taken whose clock moves */
#define PAIRS_LEAST 12
#define PAIRS_MOST 96
#define WARM_SAMPLES 5

static bool stopped(fa_tournament *c)
{
    return c->stop && c->stop(c);
}

static int faster(const void *a, const void *b)
{
    const fa_candidate *x = *(fa_candidate *const *)a, *y = *(fa_candidate *const *)b;
    return (x->level > y->level) - (x->level < y->level);
}

/* Sorts, and keeps those within `times` the best. */
static size_t keep(fa_candidate **e, size_t n, double times)
{
    size_t left = 0;
    if (n > 1)
        qsort(e, n, sizeof *e, faster);
    while (left < n && e[left]->level <= times * e[0]->level)
        left++;
    return left;
}

/* The guest stays among the first `left` of n, of which at most `most` may be; it takes the last place where there is no other. */
static size_t invite(const fa_tournament *c, fa_candidate **e, size_t n, size_t left, size_t most)
{
    left = left < most ? left : most;
    for (size_t i = left; i < n && left > 0; i++)
        if (e[i] == c->guest) {
            size_t place = left < most ? left : left - 1;
            fa_candidate *other = e[place];
            e[place] = e[i];
            e[i] = other;
            return place + 1;
        }
    return left;
}

/* 0 ... n - 1 in a newly drawn order (Knuth, volume 2, 3.4.2, algorithm P). */
static void shuffle(fa_tournament *c, size_t *order, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t j = (size_t)fa_random_below(&c->order, (int32_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

static fa_status sample(fa_tournament *c, fa_candidate *k, bool warm)
{
    fa_status st = fa_measure_backend_sample(c->backend, k, warm);
    if (st != FA_OK)
        c->culprit = k;
    else
        k->met = true;
    return st;
}

/* When each was sampled in a round: sample s of candidate i was the at[s][i]-th of its pass over all. */
typedef struct passes {
    int n; /* whole ones */
    size_t at[SAMPLES_MOST][FA_TOURNAMENT_FIELD];
} passes;

/* Levels of n that were sampled in passes, without the drift of the clock, which falls while a round goes on: each sample over what all
 * take at its time, a line through the medians of the passes; of those ratios the median, times that of the passes. */
static void level(fa_candidate **e, size_t n, const passes *t)
{
    fa_samples of_passes = { 0 };
    for (int s = 0; s < t->n; s++) {
        fa_samples pass = { 0 };
        for (size_t i = 0; i < n; i++)
            fa_samples_add(&pass, e[i]->samples.s[s]);
        fa_samples_add(&of_passes, fa_samples_median(&pass));
    }
    for (size_t i = 0; i < n; i++) {
        fa_samples ratio = { 0 };
        for (int s = 0; s < t->n; s++) {
            double off = ((double)t->at[s][i] + 0.5) / (double)n - 0.5; /* from the middle of the pass, in passes */
            int from = off < 0 ? s - 1 : s;
            from = from < 0 ? 0 : from > t->n - 2 ? t->n - 2 : from;
            double slope = t->n > 1 ? of_passes.s[from + 1] - of_passes.s[from] : 0;
            double all = fmax(of_passes.s[s] + off * slope, of_passes.s[s] / 2); /* a line through a leap would leave the positive */
            fa_samples_add(&ratio, e[i]->samples.s[s] / all);
        }
        e[i]->level = fa_samples_median(&ratio) * fa_samples_median(&of_passes);
    }
}

/* New samples of all, at most FA_TOURNAMENT_FIELD, in passes over all; the old ones, taken at another time, are dropped. */
static fa_status take_passes(fa_tournament *c, fa_candidate **e, size_t n, int samples, fa_span *span)
{
    fa_status st = FA_OK;
    size_t order[FA_TOURNAMENT_FIELD];
    passes t = { 0 };
    *span = (fa_span){ 0 };
    for (size_t i = 0; i < n; i++)
        e[i]->samples.n = 0;
    for (int s = 0; s < samples && st == FA_OK && !stopped(c); s++) {
        shuffle(c, order, n);
        for (size_t i = 0; i < n && st == FA_OK && !sim_interrupted(); i++) {
            st = sample(c, e[order[i]], false);
            if (s < SAMPLES_MOST)
                t.at[s][order[i]] = i;
        }
        t.n += st == FA_OK && s < SAMPLES_MOST && !sim_interrupted();
        fa_span_add(span, fa_measure_backend_telemetry(c->backend));
    }
    for (size_t i = 0; i < n; i++)
        if (e[i]->samples.n)
            fa_measure_backend_sum_up(e[i], span);
    if (t.n)
        level(e, n, &t);
    return st;
}

fa_status fa_tournament_round(fa_tournament *c, fa_candidate **e, size_t n, double times, int samples, size_t *left)
{
    fa_status st = FA_OK;
    fa_span span;
    *left = invite(c, e, n, keep(e, n, times), FA_TOURNAMENT_FIELD);
    for (int i = 0; i < ROUNDS_MOST && st == FA_OK && *left > 1 && !stopped(c); i++) {
        st = take_passes(c, e, *left, samples, &span);
        if (!fa_span_moved(&span))
            break;
    }
    keep(e, *left, times); /* sorts */
    return st;
}

static bool smaller(const fa_candidate *a, const fa_candidate *b)
{
    return a->smem != b->smem ? a->smem < b->smem : a->regs < b->regs;
}

/* The finalists' samples, by round: what was taken in one round makes a pair. */
typedef struct finals {
    fa_candidate **e;
    size_t n;
    double x[FA_TOURNAMENT_FINALISTS][PAIRS_MOST];
    int rounds[FA_TOURNAMENT_FINALISTS];
    bool out[FA_TOURNAMENT_FINALISTS]; /* it is slower, that is certain */
    size_t leader;
} finals;

static fa_ratio to_leader(const finals *f, size_t k)
{
    int n = f->rounds[k] < f->rounds[f->leader] ? f->rounds[k] : f->rounds[f->leader];
    return fa_samples_ratio(f->x[k], f->x[f->leader], n);
}

/* One round of those that are left. */
static fa_status meet(fa_tournament *c, finals *f, fa_span *span)
{
    fa_status st = FA_OK;
    size_t order[FA_TOURNAMENT_FINALISTS];
    shuffle(c, order, f->n);
    for (size_t i = 0; i < f->n && st == FA_OK && !sim_interrupted(); i++) {
        size_t k = order[i];
        if (f->out[k])
            continue;
        st = sample(c, f->e[k], false);
        if (st == FA_OK)
            f->x[k][f->rounds[k]++] = f->e[k]->samples.s[f->e[k]->samples.n - 1];
    }
    fa_span_add(span, fa_measure_backend_telemetry(c->backend));
    return st;
}

/* Which leads, which are out; true when nothing is open. */
static bool judge(finals *f)
{
    bool decided = true;
    for (size_t k = 0; k < f->n; k++)
        if (!f->out[k] && k != f->leader && to_leader(f, k).mean < 1) {
            f->leader = k;
            k = (size_t)-1; /* once more, against the new one: each change makes the leader faster */
        }
    for (size_t k = 0; k < f->n; k++) {
        if (f->out[k] || k == f->leader)
            continue;
        fa_ratio r = to_leader(f, k);
        f->out[k] = log(r.mean) > r.half;
        decided &= f->out[k] || r.half < FA_TOURNAMENT_TIE;
    }
    return decided;
}

static bool ties(const finals *f, size_t k)
{
    fa_ratio r = to_leader(f, k);
    double slower = log(r.mean);
    return slower < FA_TOURNAMENT_TIE || (slower <= r.half && slower < 2 * FA_TOURNAMENT_TIE);
}

/* Their times stay those of the last common round, but for what the pairs say: the leader has the least, the others that times their
 * ratio. */
static fa_candidate *decide(finals *f, const fa_span *span)
{
    size_t winner = f->leader;
    double least = INFINITY;
    for (size_t k = 0; k < f->n; k++) {
        least = fmin(least, f->e[k]->seconds);
        if (k != f->leader && ties(f, k) && smaller(f->e[k], f->e[winner]))
            winner = k;
    }
    for (size_t k = 0; k < f->n; k++) {
        double factor = k == f->leader || ties(f, k) ? 1 : fmax(1, to_leader(f, k).mean);
        fa_measure_backend_sum_up(f->e[k], span);
        double scale = f->e[k]->seconds > 0 ? least * factor / f->e[k]->seconds : 1;
        f->e[k]->seconds = f->e[k]->level = least * factor; /* to the bit: a tie is on record as one */
        f->e[k]->low *= scale;
        f->e[k]->high *= scale;
    }
    return f->e[winner];
}

static fa_status finals_of(fa_tournament *c, fa_candidate **e, size_t n, fa_candidate **winner)
{
    finals f = { .e = e, .n = n };
    fa_span span = { 0 };
    fa_status st = FA_OK;
    bool decided = n < 2;
    for (int round = 0; round < PAIRS_MOST && !decided && st == FA_OK && !stopped(c); round++) {
        for (size_t i = 0; i < n && round == 0; i++)
            e[i]->samples.n = 0;
        st = meet(c, &f, &span);
        decided = st == FA_OK && round + 1 >= PAIRS_LEAST && judge(&f);
    }
    for (size_t i = 0; i < n; i++)
        if (f.rounds[i] < 2) /* ended before there was a pair: the last common round decides */
            return st;
    *winner = decide(&f, &span);
    return st;
}

static fa_status warm(fa_tournament *c, fa_candidate **e, size_t n)
{
    fa_status st = FA_OK;
    for (size_t i = 0; i < n; i++)
        e[i]->warm_samples.n = 0;
    for (int s = 0; s < WARM_SAMPLES && st == FA_OK && !stopped(c); s++)
        for (size_t i = 0; i < n && st == FA_OK && !sim_interrupted(); i++)
            st = sample(c, e[i], true);
    for (size_t i = 0; i < n; i++)
        if (e[i]->warm_samples.n)
            e[i]->warm = fa_samples_median(&e[i]->warm_samples);
    return st;
}

/* What the n finalists' levels are now over what they were, the median: so much slower the others would be too. */
static void carry(fa_candidate **e, const double *before, size_t n, size_t met)
{
    fa_samples ratio = { 0 };
    for (size_t i = 0; i < n; i++)
        fa_samples_add(&ratio, e[i]->level / before[i]);
    for (size_t i = n; i < met; i++)
        e[i]->level *= fa_samples_median(&ratio);
}

fa_status fa_tournament_final(fa_tournament *c, fa_candidate **e, size_t n, size_t *met, fa_candidate **winner)
{
    size_t left = 0;
    double before[FA_TOURNAMENT_FINALISTS];
    *winner = NULL;
    *met = 0;
    if (n == 0)
        return FA_OK;
    fa_status st = fa_tournament_round(c, e, n, FA_TOURNAMENT_SECOND, LAST_SAMPLES, met);
    left = invite(c, e, *met, keep(e, *met, FA_TOURNAMENT_LAST), FA_TOURNAMENT_FINALISTS);
    *winner = e[0];
    for (size_t i = 0; i < left; i++)
        before[i] = e[i]->level;
    if (st == FA_OK)
        st = finals_of(c, e, left, winner);
    if (left)
        carry(e, before, left, *met);
    return st == FA_OK && !stopped(c) ? warm(c, e, left) : st;
}
