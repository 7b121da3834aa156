/* systems: the kernel families that fagen keeps for comparison: those that are no default, beside what fa_launch chooses. */
#ifndef FA_CLI_SESSION_SYSTEMS_H
#define FA_CLI_SESSION_SYSTEMS_H
#include "gen/gen.h"
#include "runtime/runtime.h"

#define CLI_SYSTEMS_MAX 8
typedef struct cli_systems {
    const char *name[CLI_SYSTEMS_MAX]; /* of g, valid as long */
    int n;
} cli_systems;

/* words: NULL or "all" = those that compute the operation, its reference first; "none"; or names of families between commas. FA_INVALID
 * names the word at fault. */
fa_status cli_systems_of(cli_systems *out, const fa_gen *g, int32_t op, const char *words);

/* The model's best config of a family; false when it has none here. */
bool cli_systems_plan(fa_context *ctx, fa_gen *g, const fa_problem *p, const char *family, const fa_plan **plan);
#endif
