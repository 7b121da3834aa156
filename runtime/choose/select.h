/* select: which config runs a problem, and why. */
#ifndef FA_RUNTIME_CHOOSE_SELECT_H
#define FA_RUNTIME_CHOOSE_SELECT_H
#include "gen/arch.h"
#include "gen/config.h"
#include "gen/source.h"

typedef struct fa_selection {
    fa_config config;
    char where[24];                             /* "bundle", "measured record", "default table", "modelled record", "model" */
    char why[352];                              /* a sentence for people */
    double seconds;                             /* of the record or the model; 0 = not known */
    const struct fa_bundle_set_row *bundle_row; /* a kernel of a bundle; NULL: one to be made */
    uint64_t facts;                             /* fa_facts.hash; 0 of a bundle */
    uint64_t pin;                               /* number of the pin that decided; 0 = none */
    bool lacks;                                 /* of a call without a workspace: with one another kernel would run */
    double seconds_with;                        /* of that one */
} fa_selection;

/* What fa_launch() runs: the config that the program pinned; else a bundle's kernel for this very arch and class, else what fa_select_jit()
 * gives; where compiling is ruled out or impossible, any bundle's kernel that runs here, or FA_NO_KERNEL. It is that of p's point
 * (fa_problem_point): the same for all shapes of the bucket. A class that brings no workspace gets the kernel of the class that does, where
 * that needs none. With the selection comes its source in *source (may be NULL; fa_source_free it): a bundle's has no text. p is
 * normalized. Thread-safe. */
fa_status fa_select(fa_context *ctx, const fa_problem *p, fa_selection *out, fa_source *source);

/* What fa_choose() gives for the point of p and what is known of it now. Where none of its candidates fits, the model's best of the whole
 * space: FA_NO_FIT names the smallest tile. */
fa_status fa_select_jit(fa_context *ctx, const fa_problem *p, fa_selection *out, fa_source *source);

/* The first config of an operation's reference family: fa_gen_reference_config with the context's generator. Thread-safe. */
fa_status fa_choose_reference(fa_context *ctx, int32_t op, fa_config *out);

/* fa_render with the context's generator. Thread-safe. */
fa_status fa_render_in(fa_context *ctx, const fa_problem *p, const fa_config *c, fa_source *out);
#endif
