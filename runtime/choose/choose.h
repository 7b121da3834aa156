/* choose: which config runs a problem: a pure function of the point, the chip, the budget and the facts. No clock, no disk, no history. */
#ifndef FA_RUNTIME_CHOOSE_CHOOSE_H
#define FA_RUNTIME_CHOOSE_CHOOSE_H
#include "facts.h"
#include "gen/gen.h"

#define FA_CANDIDATES_MAX 64

/* One config that was considered. */
typedef struct fa_choosable {
    fa_config config;
    fa_fact_kind kind;
    const fa_fact *fact; /* what is known of it; NULL: nothing, it is a start of its family */
    double model;        /* seconds by the model */
    double price;        /* seconds by the model, corrected by what was measured; of a near winner less what the model may err by */
    const char *bound;   /* what bounds it, by the model */
    bool spills;         /* its family expects that registers are spilled on this arch, where it neither was measured nor compiled so far */
} fa_choosable;

typedef struct fa_choice {
    fa_choosable row[FA_CANDIDATES_MAX]; /* the one that runs first, then the cheapest */
    size_t n;
    size_t refused; /* winners that do not run here */
    bool decided;   /* the first is a winner of the very bucket on this chip: no price is asked */
} fa_choice;

/* Chooses for point, which is fa_problem_point() of every problem that the config then serves. Winners near in shape, of relatives and of
 * neighbouring head_dims, and the starts of all families are candidates. A winner of the point's own bucket, class and chip decides; else
 * the lowest price among those that are not expected to spill, of deterministic and batch-invariant classes whatever the number of SMs.
 * whole: candidates that cannot win any more are priced too; the first row is the same. The rows point into facts. FA_NO_FIT: none fits;
 * fa_space_list() tells of all there is. */
fa_status fa_choose(fa_gen *g, const fa_problem *point, const fa_arch *a, int32_t budget, const fa_facts *facts, bool whole,
                    fa_choice *out);
#endif
