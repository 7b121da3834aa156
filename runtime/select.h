/* select: which config runs a problem, and why. */
#ifndef FA_RUNTIME_SELECT_H
#define FA_RUNTIME_SELECT_H
#include "gen/arch.h"
#include "gen/config.h"
#include "gen/source.h"

typedef struct fa_selection {
    fa_config config;
    char where[24];                             /* "bundle", "measured record", "default table", "modelled record", "model" */
    char why[256];                              /* a sentence for people */
    double seconds;                             /* of the record or the model; 0 = not known */
    const struct fa_bundle_set_row *bundle_row; /* a kernel of a bundle; NULL: one to be made */
} fa_selection;

/* What fa_launch() runs: a bundle's kernel for this very arch and class, else what fa_select_jit() gives; where compiling is ruled out
 * or impossible, any bundle's kernel that runs here, or FA_NO_KERNEL. With the selection comes its source in *source (may be NULL;
 * fa_source_free it): a bundle's has no text. p is normalized. Thread-safe. */
fa_status fa_select(fa_context *ctx, const fa_problem *p, fa_selection *out, fa_source *source);

/* The best known config that renders within the context's budget: what is nearest in shape (fa_records_distance) of the measured records
 * of this chip and of what ships for its arch, the record where they are as near; else the other of the two; else what ships for the
 * nearest arch; else the best guess on record for the arch, without spills (`fagen tune` without a device leaves them); else the model's
 * best of the whole space. FA_NO_FIT names the smallest tile. */
fa_status fa_select_jit(fa_context *ctx, const fa_problem *p, fa_selection *out, fa_source *source);

/* The shipped default of a problem class: of the exact chip, else of the arch, else of the nearest arch, as far as allowed; of rows
 * with the same problem the first that `takes` (NULL: any) lets pass, and then the nearest problem's. False if none. Distances: 0 = the
 * chip, 1 = the arch, then 1 + the distance of compute capabilities. */
enum { FA_SAME_ARCH = 1, FA_ANY_ARCH = 1 << 20 };
typedef bool fa_takes(void *user, const fa_config *c);
bool fa_default_config(const fa_arch *a, const fa_problem *p, int farthest, fa_takes *takes, void *user, fa_config *out, char *where,
                       size_t n);

/* fa_records_distance from the problem to the nearest row of the exact chip or its arch; INFINITY where none ships for the class. */
double fa_default_distance(const fa_arch *a, const fa_problem *p);

/* The first config of an operation's reference family: fa_gen_reference_config with the context's generator. Thread-safe. */
fa_status fa_choose_reference(fa_context *ctx, int32_t op, fa_config *out);

/* fa_render with the context's generator. Thread-safe. */
fa_status fa_render_in(fa_context *ctx, const fa_problem *p, const fa_config *c, fa_source *out);
#endif
