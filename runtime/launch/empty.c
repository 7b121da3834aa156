/* empty: what lies in a row is cleared at once. */
#include "empty.h"
#include "runtime/context/context.h"
#include "runtime/context/driver_cuda.h"

/* Runs of elements side by side, each after the other. */
static fa_status clear(const cu_driver *d, const fa_score_given *of, CUstream stream)
{
    int64_t size[4], n = 1, run = 1;
    int k = 3;
    for (int i = 0; i < 4; i++) {
        size[i] = of->extent[i] > 0 ? of->extent[i] : 1;
        n *= size[i];
    }
    for (; k >= 0 && (size[k] == 1 || of->grad_stride[k] == run); k--)
        run *= size[k];
    for (int64_t at = 0; at < n; at += run) {
        uint64_t to = of->grad;
        int64_t rest = at / run;
        for (int i = k; i >= 0; rest /= size[i], i--)
            to += (uint64_t)(rest % size[i] * of->grad_stride[i] * 4);
        fa_status st = fa_driver_check(d, d->cuMemsetD32Async((CUdeviceptr)to, 0, (size_t)run, stream), "cuMemsetD32Async");
        if (st != FA_OK)
            return st;
    }
    return FA_OK;
}

fa_status fa_empty_launch(fa_context *ctx, const fa_call *call, fa_stream stream)
{
    fa_entered in;
    bool any = false;
    for (int i = 0; i < FA_SCORE_OPERANDS_MAX; i++)
        any = any || call->values.score[i].grad;
    fa_status st = any ? fa_context_enter(ctx, &in) : FA_OK;
    if (!any || st != FA_OK)
        return st;
    for (int i = 0; st == FA_OK && i < FA_SCORE_OPERANDS_MAX; i++)
        if (call->values.score[i].grad)
            st = clear(ctx->device.driver, &call->values.score[i], (CUstream)stream);
    fa_context_leave(ctx, &in);
    return st;
}
