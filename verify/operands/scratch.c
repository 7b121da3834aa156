/* scratch: device memory that grows. */
#include "scratch.h"
#include "gen/error.h"

void fa_scratch_free(fa_scratch *s, fa_context *ctx)
{
    if (s->at)
        fa_context_driver(ctx)->cuMemFree(s->at);
    *s = (fa_scratch){ 0, 0 };
}

fa_status fa_scratch_provide(fa_scratch *s, fa_context *ctx, const fa_plan *plan, fa_args *args)
{
    const cu_driver *d = fa_context_driver(ctx);
    size_t need;
    fa_status st = plan ? fa_plan_workspace(ctx, plan, args, &need) : fa_workspace_size(ctx, args, &need);
    if (st != FA_OK)
        return st;
    if (need > s->size) {
        fa_scratch_free(s, ctx);
        CUresult r = d->cuMemAlloc(&s->at, need);
        if (r != CUDA_SUCCESS)
            return fa_wrap(fa_driver_check(d, r, "cuMemAlloc"), "%zu bytes of workspace", need);
        s->size = need;
        st = plan && !plan->kernel->workspace.counters ? FA_OK : fa_workspace_init(ctx, (void *)(uintptr_t)s->at, need, NULL);
        if (st != FA_OK)
            return st;
    }
    args->workspace = (void *)(uintptr_t)s->at;
    args->workspace_size = s->size;
    return FA_OK;
}

fa_status fa_scratch_launch(fa_scratch *s, fa_context *ctx, const fa_plan *plan, fa_args *args)
{
    const cu_driver *d = fa_context_driver(ctx);
    fa_status st = fa_scratch_provide(s, ctx, plan, args);
    if (st == FA_OK)
        st = plan ? fa_plan_launch(ctx, plan, args, NULL) : fa_launch(ctx, args, NULL);
    return st == FA_OK ? fa_driver_check(d, d->cuCtxSynchronize(), "waiting for the kernel") : st;
}
