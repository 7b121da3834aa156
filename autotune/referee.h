/* referee: verifies the candidates of one problem before they are timed: one case of medium length held against the naive family
 * on the device, one small and nasty one against the CPU. */
#ifndef FA_AUTOTUNE_REFEREE_H
#define FA_AUTOTUNE_REFEREE_H
#include "trial.h"

typedef struct fa_referee {
    fa_trial *medium, *small; /* medium NULL: the small case alone, as on the simulator */
} fa_referee;

/* p: normalized, its shape filled; lengths, heads and batches are cut down, the class stays. */
fa_status fa_referee_open(fa_referee *r, fa_context *ctx, const fa_problem *p, bool medium);
void fa_referee_close(fa_referee *r); /* zeros are fine */
/* FA_WRONG, or what kept the plan from running. */
fa_status fa_referee_judge(fa_referee *r, const fa_plan *plan);
#endif
