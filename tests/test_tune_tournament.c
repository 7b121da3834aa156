/* Statistics of samples, and the rounds that find a winner, on a clock of our own. */
#include "autotune/search/tournament.h"
#include "gen/error.h"
#include "verify/operands/random.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

Test(tune_tournament, median_and_spread)
{
    fa_samples t = { 0 };
    cr_assert_eq(fa_samples_median(&t), 0);
    const double s[] = { 5, 1, 4, 2, 100 };
    for (int i = 0; i < 5; i++)
        fa_samples_add(&t, s[i]);
    cr_assert_eq(fa_samples_median(&t), 4);
    cr_assert_float_eq(fa_samples_spread(&t), 2.0 / 4, 1e-12);
    fa_samples_add(&t, 4);
    cr_assert_eq(fa_samples_median(&t), 4);
    for (int i = 0; i < 3 * FA_SAMPLES_MAX; i++)
        fa_samples_add(&t, 7);
    cr_assert_eq(t.n, FA_SAMPLES_MAX);
    cr_assert_eq(fa_samples_median(&t), 7);
}

Test(tune_tournament, the_interval_of_the_median_covers_it_19_times_in_20)
{
    int covered[3] = { 0 };
    const int n[3] = { 6, 15, 40 };
    double low, high;
    for (int k = 0; k < 3; k++)
        for (int trial = 0; trial < 2000; trial++) {
            fa_samples t = { 0 };
            fa_random r = { fa_random_mix((uint64_t)trial) };
            for (int i = 0; i < n[k]; i++)
                fa_samples_add(&t, exp(fa_random_normal(&r))); /* whose median is 1, and which is not symmetric */
            fa_samples_interval(&t, &low, &high);
            cr_assert(low > 0 && low <= fa_samples_median(&t) && high >= fa_samples_median(&t));
            covered[k] += low <= 1 && high >= 1;
        }
    for (int k = 0; k < 3; k++)
        cr_assert(covered[k] > 1870, "%d samples: %d of 2000", n[k], covered[k]);
    fa_samples few = { .n = 5, .s = { 1, 2, 3, 4, 5 } };
    fa_samples_interval(&few, &low, &high);
    cr_assert(low == 0 && high == 0);
}

Test(tune_tournament, the_interval_covers_the_true_ratio_19_times_in_20)
{
    int covered = 0;
    for (int trial = 0; trial < 2000; trial++) {
        double a[10], b[10];
        fa_random r = { fa_random_mix((uint64_t)trial) };
        for (int i = 0; i < 10; i++) {
            double drift = exp(0.05 * fa_random_normal(&r)); /* shared by the pair, as clocks are */
            a[i] = 1.02 * drift * exp(0.01 * fa_random_normal(&r));
            b[i] = drift * exp(0.01 * fa_random_normal(&r));
        }
        fa_ratio q = fa_samples_ratio(a, b, 10);
        covered += fabs(log(q.mean) - log(1.02)) <= q.half;
    }
    cr_assert(covered > 1860 && covered < 1940, "%d of 2000", covered);
    cr_assert(isinf(fa_samples_ratio((double[]){ 1 }, (double[]){ 2 }, 1).half));
}

typedef struct world {
    fa_random r;
    double noise, fall; /* of a sample; of the clock, from each sample to the next */
    long samples;
    long stop_at;
    int32_t clock[64]; /* of each look, 0 = the one before */
    int looks;
    const fa_candidate *broken;
} world;

/* The true time of a candidate is its model's. */
static fa_status sample(fa_measure_backend *backend, fa_candidate *k, bool warm)
{
    world *w = backend->user;
    if (warm) {
        fa_samples_add(&k->warm_samples, k->cost.seconds / 2);
        return FA_OK;
    }
    if (k == w->broken)
        return fa_fail(FA_DEVICE, "broken");
    w->samples++;
    fa_samples_add(&k->samples, k->cost.seconds * exp(w->noise * fa_random_normal(&w->r)) * (1 + w->fall * (double)w->samples));
    return FA_OK;
}

static fa_telemetry look(fa_measure_backend *backend)
{
    world *w = backend->user;
    int i = w->looks++ < 64 ? w->looks - 1 : 63;
    while (i > 0 && !w->clock[i])
        i--;
    return (fa_telemetry){ .clock_mhz = w->clock[i], .temperature = 50 };
}

static bool stop(fa_tournament *c)
{
    const world *w = c->user;
    return w->stop_at && w->samples >= w->stop_at;
}

/* Of 24 configs half a percent apart, five samples each, while the clock falls by a tenth: who is where by level, and by the median of its
 * samples. */
Test(tune_tournament, a_clock_that_falls_during_a_round_does_not_change_the_order)
{
    static fa_candidate k[FA_TOURNAMENT_FIELD];
    fa_candidate *e[FA_TOURNAMENT_FIELD];
    int by_level = 0, by_median = 0;
    for (int trial = 0; trial < 40; trial++) {
        world w = { .r = { fa_random_mix((uint64_t)trial) }, .noise = 0.001, .fall = 0.1 / (5 * FA_TOURNAMENT_FIELD) };
        fa_measure_backend backend = { .sample = sample, .user = &w };
        fa_tournament c = { .backend = &backend, .user = &w, .order = { (uint64_t)trial } };
        size_t left, median = 0;
        for (int i = 0; i < FA_TOURNAMENT_FIELD; i++) {
            k[i] = (fa_candidate){ .cost.seconds = 1e-4 * (1 + 0.005 * i), .verified = true, .level = 1e-4 };
            e[i] = &k[i];
        }
        cr_assert_eq(fa_tournament_round(&c, e, FA_TOURNAMENT_FIELD, 2, 5, &left), FA_OK);
        cr_assert_eq(left, FA_TOURNAMENT_FIELD);
        for (size_t i = 1; i < FA_TOURNAMENT_FIELD; i++)
            median = k[i].seconds < k[median].seconds ? i : median;
        by_level += e[0] == k;
        by_median += median == 0;
    }
    printf("the best is the first in %d of 40 rounds by level, in %d by median\n", by_level, by_median);
    cr_assert_geq(by_level, 38);
    cr_assert_gt(by_level, by_median);
}

enum { MANY = 30 };
/* As a search holds one: a first round, then the finals. */
static fa_status tournament(fa_tournament *c, fa_candidate **e, size_t n, fa_candidate **winner)
{
    size_t left = 0;
    fa_status st = fa_tournament_round(c, e, n, FA_TOURNAMENT_FIRST, 5, &left);
    *winner = e[0];
    return st == FA_OK ? fa_tournament_final(c, e, left, &left, winner) : st;
}

static fa_status race(world *w, fa_candidate k[MANY], const double *times, fa_candidate **winner)
{
    fa_measure_backend backend = { .sample = sample, .telemetry = look, .user = w };
    fa_tournament c = { .backend = &backend, .stop = stop, .user = w };
    fa_candidate *e[MANY];
    for (int i = 0; i < MANY; i++) {
        k[i] = (fa_candidate){ .cost.seconds = times[i], .smem = 1000 + i, .regs = 100, .verified = true };
        e[i] = &k[i];
        cr_assert_eq(fa_measure_backend_first(&backend, &k[i], 3, 0), FA_OK);
        cr_assert_eq(k[i].count, 3);
    }
    return tournament(&c, e, MANY, winner);
}

Test(tune_tournament, the_fastest_wins_through_noise)
{
    static fa_candidate k[MANY];
    double times[MANY];
    int right = 0;
    for (int trial = 0; trial < 50; trial++) {
        world w = { .r = { (uint64_t)trial }, .noise = 0.01 };
        fa_candidate *winner;
        for (int i = 0; i < MANY; i++)
            times[i] = 1e-3 * (1 + 0.03 * ((i + trial) % MANY)); /* the best is ahead by 3 % */
        cr_assert_eq(race(&w, k, times, &winner), FA_OK);
        right += winner->cost.seconds == 1e-3;
        for (int i = 0; i < MANY; i++)
            cr_assert_geq(k[i].seconds, winner->seconds * 0.97);
    }
    cr_assert_geq(right, 48, "%d of 50", right);
}

Test(tune_tournament, a_tie_goes_to_the_smaller_footprint_and_is_recorded_as_a_tie)
{
    static fa_candidate k[MANY];
    double times[MANY];
    for (int i = 0; i < MANY; i++)
        times[i] = i == 4 || i == 9 ? 1e-3 : 2e-3;
    for (int trial = 0; trial < 20; trial++) {
        world w = { .r = { (uint64_t)trial }, .noise = 0.002 };
        fa_candidate *winner;
        cr_assert_eq(race(&w, k, times, &winner), FA_OK);
        if (k[4].seconds == k[9].seconds)
            cr_assert_eq(winner, &k[4]);
        cr_assert(winner->seconds <= k[4].seconds && winner->seconds <= k[9].seconds);
    }
}

/* Two that are 0.1 % apart, which is a tie, and one 2 % slower: the time that is written down lies in the interval beside it. */
Test(tune_tournament, the_interval_goes_with_the_time)
{
    static fa_candidate k[MANY];
    double times[MANY];
    for (int i = 0; i < MANY; i++)
        times[i] = i == 4 ? 1e-3 : i == 9 ? 1.001e-3 : i == 12 ? 1.02e-3 : 2e-3;
    for (int trial = 0; trial < 20; trial++) {
        static const int finalists[] = { 4, 9, 12 };
        world w = { .r = { (uint64_t)trial }, .noise = 0.0005 };
        fa_candidate *winner;
        cr_assert_eq(race(&w, k, times, &winner), FA_OK);
        cr_expect_eq(k[4].seconds, k[9].seconds, "a tie");
        cr_expect_float_eq(k[12].seconds / k[4].seconds, 1.02, 0.002);
        for (int i = 0; i < 3; i++) {
            const fa_candidate *e = &k[finalists[i]];
            cr_expect(e->low > 0 && e->low <= e->seconds && e->seconds <= e->high, "trial %d, %d: %g is not in %g to %g", trial,
                      finalists[i], e->seconds, e->low, e->high);
        }
    }
}

Test(tune_tournament, the_guest_meets_in_all_rounds_however_slow)
{
    for (int invited = 0; invited < 2; invited++) {
        static fa_candidate k[MANY];
        fa_candidate *e[MANY], *winner;
        world w = { .r = { 5 }, .noise = 0.002 };
        fa_measure_backend backend = { .sample = sample, .telemetry = look, .user = &w };
        fa_tournament c = { .backend = &backend, .user = &w, .guest = invited ? &k[0] : NULL };
        for (int i = 0; i < MANY; i++) { /* 29 within 3 %, more than may meet, and one far slower */
            k[i] = (fa_candidate){ .cost.seconds = i ? 1e-3 * (1 + 0.001 * i) : 1.8e-3, .smem = 1000, .regs = 100, .verified = true };
            e[i] = &k[i];
            cr_assert_eq(fa_measure_backend_first(&backend, &k[i], 3, 0), FA_OK);
        }
        cr_assert_eq(tournament(&c, e, MANY, &winner), FA_OK);
        cr_assert_neq(winner, &k[0]);
        cr_assert_eq(k[0].met, invited);
        if (invited)
            cr_assert_float_eq(k[0].seconds / winner->seconds, 1.8, 0.02, "%g", k[0].seconds / winner->seconds);
        cr_assert_eq(k[0].warm > 0, invited, "in the finals too");
    }
}

Test(tune_tournament, slow_ones_are_sampled_least)
{
    static fa_candidate k[MANY];
    double times[MANY];
    world w = { .r = { 1 }, .noise = 0.01 };
    fa_candidate *winner;
    for (int i = 0; i < MANY; i++)
        times[i] = i < 3 ? 1e-3 + 1e-5 * i : 2e-3;
    cr_assert_eq(race(&w, k, times, &winner), FA_OK);
    for (int i = 3; i < MANY; i++)
        cr_assert_eq(k[i].count, 3, "%d", k[i].count);
    cr_assert_gt(winner->count, 5);
}

Test(tune_tournament, it_ends_when_told_and_when_the_device_fails)
{
    static fa_candidate k[MANY];
    double times[MANY];
    fa_candidate *winner;
    for (int i = 0; i < MANY; i++)
        times[i] = 1e-3 + 1e-6 * i;
    world w = { .r = { 1 }, .noise = 0.001, .stop_at = 3 * MANY };
    cr_assert_eq(race(&w, k, times, &winner), FA_OK);
    cr_assert_not_null(winner);
    cr_assert_eq(w.samples, 3 * MANY);
    for (int i = 0; i < MANY; i++)
        cr_assert_gt(k[i].seconds, 0);

    fa_measure_backend backend = { .sample = sample, .user = &w };
    fa_tournament c = { .backend = &backend, .user = &w };
    fa_candidate *e[2] = { &k[0], &k[1] };
    w = (world){ .r = { 1 }, .broken = &k[1] };
    cr_assert_eq(tournament(&c, e, 2, &winner), FA_DEVICE);
    size_t met;
    cr_assert_eq(fa_tournament_final(&c, e, 0, &met, &winner), FA_OK);
    cr_assert_null(winner);
}

/* Of a round that ended before all had their first sample no level is known: the ones of before stay. */
Test(tune_tournament, a_turn_that_was_not_whole_says_nothing)
{
    static fa_candidate k[2];
    size_t left;
    world w = { .r = { 1 }, .broken = &k[1] };
    fa_measure_backend backend = { .sample = sample, .user = &w };
    fa_tournament c = { .backend = &backend, .user = &w };
    fa_candidate *e[2] = { &k[0], &k[1] };
    k[0] = (fa_candidate){ .cost.seconds = 1e-3, .level = 1e-3, .verified = true };
    k[1] = (fa_candidate){ .cost.seconds = 1e-3, .level = 1.1e-3, .verified = true };
    cr_assert_eq(fa_tournament_round(&c, e, 2, FA_TOURNAMENT_FIRST, 5, &left), FA_DEVICE);
    cr_expect_eq(k[1].level, 1.1e-3, "%g", k[1].level);
    cr_expect_float_eq(k[0].level, 1e-3, 1e-9, "%g", k[0].level);
}

/* Finals that end early decide from two pairs on, here for the smaller of two that tie; before that the last common round does. */
Test(tune_tournament, finals_that_end_early_decide_from_two_pairs_on)
{
    for (int pairs = 1; pairs <= 3; pairs++) {
        static fa_candidate k[2];
        size_t met;
        fa_candidate *e[2] = { &k[0], &k[1] }, *winner = NULL;
        world w = { .r = { 1 }, .stop_at = 2 * (12 + pairs) }; /* the round takes 12 samples of each */
        fa_measure_backend backend = { .sample = sample, .user = &w };
        fa_tournament c = { .backend = &backend, .stop = stop, .user = &w };
        for (int i = 0; i < 2; i++)
            k[i] = (fa_candidate){ .cost.seconds = 1e-3 * (1 + 0.001 * i), .level = 1e-3, .smem = 2000 - 1000 * i, .verified = true };
        cr_assert_eq(fa_tournament_final(&c, e, 2, &met, &winner), FA_OK);
        cr_expect_eq(w.samples, w.stop_at);
        cr_expect_eq(winner, &k[pairs >= 2], "%d pairs", pairs);
    }
}

Test(tune_tournament, a_round_whose_clock_moved_is_taken_again)
{
    fa_candidate k[2];
    fa_candidate *e[2] = { &k[0], &k[1] };
    size_t left;
    for (int bad = 0; bad < 2; bad++) {
        world w = { .r = { 1 }, .noise = 0.001, .clock = { 1755, 1500, 1740 } };
        fa_measure_backend backend = { .sample = sample, .telemetry = look, .user = &w };
        fa_tournament c = { .backend = &backend };
        for (int i = 0; i < 64 && bad; i++)
            w.clock[i] = i % 2 ? 1755 : 1500; /* it never rests */
        for (int i = 0; i < 2; i++)
            k[i] = (fa_candidate){ .cost.seconds = 1e-3 * (1 + i), .seconds = 1e-3 * (1 + i), .verified = true };
        cr_assert_eq(fa_tournament_round(&c, e, 2, 3, 8, &left), FA_OK);
        cr_assert_eq(left, 2);
        cr_assert_eq(w.samples, 32, "two rounds of 2 x 8 samples, not more");
        cr_assert_eq(k[0].count, 8);
        cr_assert_eq(k[0].quality, bad ? FA_QUALITY_MOVED : FA_QUALITY_STEADY);
        cr_assert_eq(k[0].clock_mhz, bad ? (1755 + 1500) / 2 : 1740);
    }
}

Test(tune_tournament, finalists_have_a_warm_time_an_interval_and_a_quality)
{
    static fa_candidate k[MANY];
    double times[MANY];
    world w = { .r = { 1 }, .noise = 0.002, .clock = { 1700 } };
    fa_candidate *winner;
    for (int i = 0; i < MANY; i++)
        times[i] = 1e-3 * (1 + 0.012 * i);
    cr_assert_eq(race(&w, k, times, &winner), FA_OK);
    cr_assert_eq(winner, &k[0]);
    for (int i = 0; i < MANY; i++)
        cr_assert_eq(k[i].warm > 0, i < 3, "%d", i); /* within 3 % of the best */
    cr_assert_float_eq(winner->warm, winner->cost.seconds / 2, 1e-9);
    cr_assert(winner->low < winner->seconds && winner->high > winner->seconds && winner->high < 1.02 * winner->low);
    cr_assert_eq(winner->quality, FA_QUALITY_STEADY);
    cr_assert_eq(winner->clock_mhz, 1700);
    cr_assert_eq(k[MANY - 1].quality, FA_QUALITY_FEW);
}
