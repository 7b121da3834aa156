/* contest: verified candidates against each other until one is left. */
#include "contest.h"
#include <math.h>
#include <stdlib.h>

#define SECOND_SAMPLES 5
#define THIRD_SAMPLES 8
#define PAIRS_LEAST 8
#define PAIRS_MOST 48
#define HALF_ENOUGH 0.005

fa_status fa_contest_sample(fa_contest *c, fa_candidate *k)
{
    return fa_bench_sample(c->bench, k->plan, &k->launches, &k->samples);
}

static void sum_up(fa_candidate *k)
{
    k->seconds = fa_samples_median(&k->samples);
    k->spread = fa_samples_spread(&k->samples);
    k->count = k->samples.n;
}

fa_status fa_contest_time(fa_contest *c, fa_candidate *k, int n)
{
    fa_status st = FA_OK;
    for (int i = 0; i < n && st == FA_OK; i++)
        st = c->sample(c, k);
    if (st == FA_OK)
        sum_up(k);
    return st;
}

static bool stopped(fa_contest *c)
{
    return c->stop && c->stop(c);
}

static int faster(const void *a, const void *b)
{
    const fa_candidate *x = *(fa_candidate *const *)a, *y = *(fa_candidate *const *)b;
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* Sorts, and keeps those within `times` the best. */
static size_t keep(fa_candidate **e, size_t n, double times)
{
    qsort(e, n, sizeof *e, faster);
    size_t left = 0;
    while (left < n && e[left]->seconds <= times * e[0]->seconds)
        left++;
    return left;
}

/* New samples of all, in turns; the old ones, taken at another time, are dropped. */
static fa_status round_of(fa_contest *c, fa_candidate **e, size_t n, int samples)
{
    fa_status st = FA_OK;
    for (size_t i = 0; i < n; i++)
        e[i]->samples.n = 0;
    for (int s = 0; s < samples && st == FA_OK && !stopped(c); s++)
        for (size_t i = 0; i < n && st == FA_OK; i++)
            st = c->sample(c, e[i]);
    for (size_t i = 0; i < n; i++)
        if (e[i]->samples.n)
            sum_up(e[i]);
    return st;
}

static bool smaller(const fa_candidate *a, const fa_candidate *b)
{
    return a->smem != b->smem ? a->smem < b->smem : a->regs < b->regs;
}

/* In pairs, each going first every other time. *winner gets a or b. Their times stay those of the last round, where all entrants met
 * under the same clock, but for what the pairs say: the winner has the smaller of the two, the other that times the ratio of the pairs. */
static fa_status duel(fa_contest *c, fa_candidate *a, fa_candidate *b, fa_candidate **winner)
{
    double x[PAIRS_MOST], y[PAIRS_MOST];
    fa_ratio r = { 1, INFINITY };
    fa_status st = FA_OK;
    int n = 0;
    a->samples.n = b->samples.n = 0;
    while (n < PAIRS_MOST && st == FA_OK && !stopped(c)) {
        st = c->sample(c, n % 2 ? b : a);
        if (st == FA_OK)
            st = c->sample(c, n % 2 ? a : b);
        if (st != FA_OK)
            break;
        x[n] = a->samples.s[a->samples.n - 1];
        y[n++] = b->samples.s[b->samples.n - 1];
        r = fa_samples_ratio(x, y, n);
        if (n >= PAIRS_LEAST && (r.half < HALF_ENOUGH || fabs(log(r.mean)) > r.half))
            break;
    }
    if (n == 0) {
        *winner = a->seconds <= b->seconds ? a : b;
        return st;
    }
    bool tie = fabs(log(r.mean)) <= r.half || fabs(log(r.mean)) < HALF_ENOUGH;
    double least = fmin(a->seconds, b->seconds);
    *winner = tie ? (smaller(b, a) ? b : a) : r.mean < 1 ? a : b;
    a->spread = fa_samples_spread(&a->samples);
    b->spread = fa_samples_spread(&b->samples);
    a->count = b->count = n;
    a->seconds = b->seconds = least;
    if (!tie)
        (*winner == a ? b : a)->seconds = least * fmax(r.mean, 1 / r.mean);
    return st;
}

fa_status fa_contest_run(fa_contest *c, fa_candidate **e, size_t n, fa_candidate **winner)
{
    fa_status st = FA_OK;
    *winner = NULL;
    if (n == 0)
        return FA_OK;
    size_t left = keep(e, n, FA_CONTEST_FIRST);
    if (left > 1)
        st = round_of(c, e, left, SECOND_SAMPLES);
    left = keep(e, left, FA_CONTEST_SECOND);
    if (left > FA_CONTEST_FINALISTS && st == FA_OK)
        st = round_of(c, e, left, THIRD_SAMPLES);
    left = keep(e, left, FA_CONTEST_SECOND);
    left = left < FA_CONTEST_FINALISTS ? left : FA_CONTEST_FINALISTS;
    fa_candidate *best = e[0];
    for (size_t i = 1; i < left && st == FA_OK; i++)
        st = duel(c, best, e[i], &best);
    *winner = best;
    return st;
}
