/* verifier: verifies the candidates of one problem before they are timed: one case of medium length held against the naive family
 * on the device, one small and nasty one against the CPU. */
#ifndef FA_AUTOTUNE_CANDIDATE_VERIFIER_H
#define FA_AUTOTUNE_CANDIDATE_VERIFIER_H
#include "verify/cases/trial.h"

typedef struct fa_verifier {
    fa_trial *medium, *small; /* medium NULL: the small case alone, as on the simulator */
} fa_verifier;

/* p: normalized, its shape filled; lengths, heads and batches are cut down, the class stays. */
fa_status fa_verifier_open(fa_verifier *r, fa_context *ctx, const fa_problem *p, bool medium);
void fa_verifier_close(fa_verifier *r); /* zeros are fine */
/* FA_WRONG, or what kept the plan from running. */
fa_status fa_verifier_judge(fa_verifier *r, const fa_plan *plan);
#endif
