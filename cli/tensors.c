/* tensors: device memory through the context's driver, whichever it is. */
#include "tensors.h"
#include "autotune/number.h"
#include "autotune/random.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "progress.h"
#include <stdlib.h>
#include <string.h>

static const char *const names[CLI_TENSORS] = { "Q", "K", "V", "O", "LSE", "workspace" };

static fa_status check(const cli_tensors *t, CUresult r, const char *call)
{
    return fa_driver_check(fa_context_driver(t->ctx), r, call);
}

int cli_tensors_dtype(const cli_tensors *t, int tensor)
{
    int o = t->args.o_dtype ? t->args.o_dtype : t->args.dtype;
    return tensor == CLI_LSE ? FA_F32 : tensor == CLI_O ? o : t->args.dtype;
}

static fa_status reserve(cli_tensors *t, int i, size_t count, size_t bytes)
{
    t->count[i] = count;
    if (!count)
        return FA_OK;
    if (__builtin_mul_overflow(count, bytes, &bytes))
        return fa_fail(FA_NOMEM, "%s: more bytes than the address space has", names[i]);
    return fa_wrap(check(t, fa_context_driver(t->ctx)->cuMemAlloc(&t->at[i], bytes), "cuMemAlloc"), "%s: %zu bytes of device memory", names[i],
                   bytes);
}

fa_status cli_tensors_open(cli_tensors *out, fa_context *ctx, const fa_problem *p)
{
    fa_args *a = &out->args;
    *out = (cli_tensors){ .ctx = ctx, .args = FA_ARGS_INIT };
    a->dtype = p->dtype;
    a->o_dtype = p->o_dtype == p->dtype || p->dtype == FA_TF32 ? 0 : p->o_dtype;
    a->d = p->d;
    a->dv = p->dv;
    a->b = p->b;
    a->hq = p->hq;
    a->hkv = p->hkv;
    a->sq = p->sq;
    a->sk = p->sk;
    a->mask = p->mask;
    a->window_left = a->window_right = -1;
    size_t bq = (size_t)p->b * (size_t)p->hq * (size_t)p->sq, bk = (size_t)p->b * (size_t)p->hkv * (size_t)p->sk;
    size_t in = (size_t)fa_dtype_bytes(p->dtype), o = (size_t)fa_dtype_bytes(cli_tensors_dtype(out, CLI_O));
    const struct {
        size_t count, bytes;
    } sizes[] = { { bq * (size_t)p->d, in }, { bk * (size_t)p->d, in }, { bk * (size_t)p->dv, in }, { bq * (size_t)p->dv, o }, { bq, 4 } };
    fa_status st = FA_OK;
    for (int i = 0; i <= CLI_LSE && st == FA_OK; i++)
        st = reserve(out, i, sizes[i].count, sizes[i].bytes);
    if (st != FA_OK) {
        cli_tensors_close(out);
        return st;
    }
    a->q.ptr = (void *)(uintptr_t)out->at[CLI_Q];
    a->k.ptr = (void *)(uintptr_t)out->at[CLI_K];
    a->v.ptr = (void *)(uintptr_t)out->at[CLI_V];
    a->o.ptr = (void *)(uintptr_t)out->at[CLI_O];
    a->lse = (float *)(uintptr_t)out->at[CLI_LSE];
    return FA_OK;
}

void cli_tensors_close(cli_tensors *t)
{
    for (int i = 0; i < CLI_TENSORS; i++)
        if (t->at[i])
            fa_context_driver(t->ctx)->cuMemFree(t->at[i]);
    memset(t->at, 0, sizeof t->at);
}

fa_status cli_tensors_fill(cli_tensors *t, cli_value value, void *user)
{
    fa_status st = FA_OK;
    int dtype = t->args.dtype;
    size_t bytes = (size_t)fa_dtype_bytes(dtype);
    for (int i = CLI_Q; i <= CLI_V && st == FA_OK; i++) {
        uint8_t *host = malloc(t->count[i] ? t->count[i] * bytes : 1);
        if (!host)
            return fa_fail(FA_NOMEM, "%s: %zu bytes of host memory", names[i], t->count[i] * bytes);
        for (size_t k = 0; k < t->count[i] && !cli_interrupted(); k++)
            fa_number_store(host + k * bytes, value(user, i, k), dtype);
        if (cli_interrupted())
            st = fa_fail(FA_INTERRUPTED, "interrupted");
        else if (t->count[i])
            st = check(t, fa_context_driver(t->ctx)->cuMemcpyHtoD(t->at[i], host, t->count[i] * bytes), "cuMemcpyHtoD");
        free(host);
    }
    return st;
}

static float normal(void *user, int tensor, size_t i)
{
    (void)tensor, (void)i;
    return fa_random_normal(user);
}

fa_status cli_tensors_random(cli_tensors *t, uint64_t seed)
{
    fa_random r = { fa_random_mix(seed) };
    return cli_tensors_fill(t, normal, &r);
}

fa_status cli_tensors_launch(cli_tensors *t, const fa_plan *plan)
{
    const cu_driver *d = fa_context_driver(t->ctx);
    size_t need = 0;
    fa_status st = plan ? fa_plan_workspace(t->ctx, plan, &t->args, &need) : fa_workspace_size(t->ctx, &t->args, &need);
    if (st == FA_OK && need > t->count[CLI_WORKSPACE]) {
        if (t->at[CLI_WORKSPACE])
            d->cuMemFree(t->at[CLI_WORKSPACE]);
        t->at[CLI_WORKSPACE] = 0;
        st = reserve(t, CLI_WORKSPACE, need, 1);
    }
    t->args.workspace = (void *)(uintptr_t)t->at[CLI_WORKSPACE];
    t->args.workspace_size = t->count[CLI_WORKSPACE];
    if (st == FA_OK)
        st = plan ? fa_plan_launch(t->ctx, plan, &t->args, NULL) : fa_launch(t->ctx, &t->args, NULL);
    return st == FA_OK ? check(t, d->cuStreamSynchronize(NULL), "cuStreamSynchronize") : st;
}

fa_status cli_tensors_get(const cli_tensors *t, int tensor, float **out)
{
    int dtype = cli_tensors_dtype(t, tensor);
    size_t bytes = (size_t)fa_dtype_bytes(dtype), n = t->count[tensor];
    uint8_t *raw = malloc(n ? n * bytes : 1);
    fa_status st = FA_OK;
    *out = malloc(n ? n * sizeof **out : 1);
    if (!raw || !*out)
        st = fa_fail(FA_NOMEM, "%s: %zu elements of host memory", names[tensor], n);
    else if (n)
        st = check(t, fa_context_driver(t->ctx)->cuMemcpyDtoH(raw, t->at[tensor], n * bytes), "cuMemcpyDtoH");
    for (size_t i = 0; st == FA_OK && i < n; i++)
        (*out)[i] = fa_number_load(raw + i * bytes, dtype);
    free(raw);
    if (st != FA_OK) {
        free(*out);
        *out = NULL;
    }
    return st;
}
