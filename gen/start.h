/* start: configs that a family declares to be good for a problem, by a closed form: its start(p, a). */
#ifndef FA_GEN_START_H
#define FA_GEN_START_H
#include "model.h"
#include "space.h"

#define FA_STARTS_MAX 64 /* that one family may name, of which those that fit count */

/* One of them and what it costs. */
typedef struct fa_start {
    fa_config config;
    fa_cost cost;
    fa_status priced; /* FA_OK: cost is what the model says */
    bool spills;      /* its family expects that registers are spilled */
} fa_start;

/* Appends to out, from *n on and no more than `most` in all, the starts of every family that is listed for p (normalized, with its shape),
 * each asked once for what it takes and costs. A family without start() has one: each tunable at its first value. Those that do not run
 * under the budget are left out. */
fa_status fa_gen_starts(fa_gen *g, const fa_problem *p, const fa_arch *a, int32_t budget, fa_start *out, size_t most, size_t *n);
#endif
