/* replay: a strategy on a recording: what it would have tried of what was measured once, and how soon it would have found the best. No
 * device, no compiler: the way to compare strategies. */
#ifndef FA_BENCH_REPLAY_H
#define FA_BENCH_REPLAY_H
#include "autotune/strategy/strategy.h"

typedef struct fa_take {
    fa_config config;
    double seconds;  /* measured; 0 = it did not run */
    double modelled; /* seconds by the model */
    int32_t threads; /* 0 = not known */
    int32_t tile[2]; /* fa_gen_tile; zeros = not known */
} fa_take;

/* What was measured of one problem; each config once. */
typedef struct fa_recording {
    fa_problem problem;
    fa_take *take;
    size_t n, cap;
} fa_recording;

/* Adds, or replaces what is there of the config. False when memory ran out. */
bool fa_recording_add(fa_recording *r, const fa_take *t);
double fa_recording_best(const fa_recording *r); /* seconds; 0 = none ran */
void fa_recording_free(fa_recording *r);

#define FA_REPLAY_MARKS 5
extern const size_t fa_replay_marks[FA_REPLAY_MARKS]; /* 8, 16, 32, 48, 96 */

typedef struct fa_replay {
    size_t tried;                   /* configs */
    size_t until;                   /* tries until within FA_REPLAY_NEAR of the recording's best; 0 = never */
    double regret[FA_REPLAY_MARKS]; /* time of the best after so many tries over the recording's best, less 1; INFINITY before one ran */
    double end;                     /* the same when the strategy was done */
} fa_replay;
#define FA_REPLAY_NEAR 0.01

/* limit and seed as fa_search_state_open takes them. FA_INVALID of a recording in which nothing ran. */
fa_status fa_replay_run(const fa_recording *r, const fa_strategy *s, int32_t limit, uint64_t seed, fa_replay *out);
#endif
