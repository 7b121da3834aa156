/* make: the plans of kernels that are rendered and built here. */
#include "plan.h"
#include "runtime/build/build.h"
#include "runtime/bundle/precompiled.h"

fa_status fa_plan_of_source(fa_context *ctx, const fa_problem *p, const fa_config *c, const char *why, const fa_source *s,
                            const fa_plan **out)
{
    const fa_kernel *k = fa_precompiled_kernel(ctx, s);
    *out = NULL;
    fa_status st = k ? FA_OK : fa_build(ctx, s, (fa_subject){ p, c }, &k);
    return st == FA_OK ? fa_plan_of_kernel(ctx, p, c, why, k, out) : st;
}

fa_status fa_plan_make(fa_context *ctx, const fa_problem *p, const fa_config *c, const char *why, const fa_plan **out)
{
    fa_source s = { 0 };
    *out = NULL;
    fa_status st = fa_render_in(ctx, p, c, &s);
    if (st == FA_OK)
        st = fa_plan_of_source(ctx, p, c, why, &s, out);
    fa_source_free(&s);
    return st;
}
