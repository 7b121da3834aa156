/* make_none: in place of make.c, in the library that only launches: plans are of kernels that bundles hold. */
#include "gen/error.h"
#include "gen/problem.h"
#include "plan.h"

fa_status fa_plan_of_source(fa_context *ctx, const fa_problem *p, const fa_config *c, const char *why, const fa_source *s,
                            const fa_plan **out)
{
    (void)ctx, (void)c, (void)why, (void)s;
    char line[160];
    *out = NULL;
    fa_problem_print_key(line, sizeof line, p);
    return fa_fail(FA_NO_KERNEL, "%s: this library launches kernels of bundles and makes none", line);
}
