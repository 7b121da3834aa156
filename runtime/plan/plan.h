/* plan: everything a launch of one problem class needs, decided beforehand; read by launches without a lock. */
#ifndef FA_RUNTIME_PLAN_PLAN_H
#define FA_RUNTIME_PLAN_PLAN_H
#include "gen/problem_fields.h"
#include "runtime/build/kernel.h"
#include "runtime/choose/select.h"
#include <string.h>

/* What selects a plan: every field of a problem that is compiled in, and the bucket of the shape that chooses. */
typedef struct fa_plan_key {
#define CLASS(member) int32_t member;
#define SHAPE(member)
#define X(member, word, part, kind, serves, shown) part(member)
    FA_PROBLEM_FIELDS(X)
#undef X
#undef SHAPE
#undef CLASS
    uint32_t bucket;
} fa_plan_key;
_Static_assert(sizeof(fa_plan_key) % 8 == 0, "keys are compared and hashed by 8 bytes");
fa_plan_key fa_plan_key_of(const fa_problem *p); /* p is normalized */

static inline bool fa_plan_key_equal(const fa_plan_key *a, const fa_plan_key *b)
{
    return !memcmp(a, b, sizeof *a);
}

typedef struct fa_plan {
    fa_plan_key key;
    fa_problem problem;
    fa_config config;
    const fa_kernel *kernel;
    char why[352];                        /* where the config comes from, a sentence */
    struct fa_lack *lack;                 /* of calls without a workspace: with one another kernel would run; NULL: none */
    uint64_t pin;                         /* fa_selection.pin of its choice */
    uint64_t pins;                        /* fa_pins.changes before it */
    uint64_t facts;                       /* fa_facts.hash of its choice; 0: named by the caller, or of a bundle */
    const struct fa_plan *fallback;       /* whose config and kernel this plan has until its own kernel is compiled; NULL: its own */
    double seconds;                       /* of a launch at the point, measured or modelled; 0 = not known */
    double seconds_with;                  /* of that other kernel */
    struct fa_launch_count *launch_count; /* its launches; NULL: they are not counted */
    struct fa_plan *next;                 /* of the list of its context */
} fa_plan;

/* Renders and builds the config for the problem. The plan belongs to the context and lives until fa_destroy(). It is not in
 * the table: fa_plan_use puts it there. Thread-safe. */
fa_status fa_plan_make(fa_context *ctx, const fa_problem *p, const fa_config *c, const char *why, const fa_plan **out);

/* The same for text that was rendered already. */
fa_status fa_plan_of_source(fa_context *ctx, const fa_problem *p, const fa_config *c, const char *why, const fa_source *s,
                            const fa_plan **out);

/* The same for a kernel that is loaded, and for what fa_select() said with the source that came with it. */
fa_status fa_plan_of_kernel(fa_context *ctx, const fa_problem *p, const fa_config *c, const char *why, const fa_kernel *k,
                            const fa_plan **out);
fa_status fa_plan_of_selection(fa_context *ctx, const fa_problem *p, const fa_selection *c, const fa_source *s, const fa_plan **out);

/* A plan for p with the kernel of another, its fallback. NULL when memory ran out. Not in the table either. */
const fa_plan *fa_plan_of_fallback(fa_context *ctx, const fa_problem *p, const fa_plan *fallback);

/* From now on launches of the plan's class run it. False when memory ran out. */
bool fa_plan_use(fa_context *ctx, const fa_plan *plan);

static inline bool fa_plan_needs_workspace(const fa_plan *plan)
{
    return fa_workspace_any(&plan->kernel->workspace);
}
#endif
