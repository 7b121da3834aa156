/* measure: how long a launch takes on the device. */
#include "measure.h"
#include "gen/error.h"
#include "gen/model.h"
#include "gen/problem.h"
#include "number.h"
#include "random.h"
#include <math.h>
#include <stdlib.h>

#define SETS_MOST 16
#define SAMPLE_SECONDS 500e-6
#define WARM_BATCH 5e-3    /* seconds of one batch of the warm-up */
#define WARM_MOST 0.5      /* seconds after which the clock is taken as it is */
#define WARM_STEADY 0.01   /* relative change of three batches in a row */
#define LONG_SECONDS 2e-3   /* of a launch: two of them cost more than they tell */
#define LAUNCHES_MOST 4096
#define PATTERN 4194301    /* elements of random data, a prime, laid end to end through the tensors */

struct fa_bench {
    fa_context *ctx;
    fa_args args;
    int sets, next;
    CUdeviceptr set[SETS_MOST], workspace;
    size_t offset[4];      /* of Q, K, V, O in a set */
    size_t workspace_size;
    CUevent start, stop;
    bool ready;            /* the clock is steady */
    bool one_set;          /* the L2 stays warm */
};

static fa_status check(const fa_bench *b, CUresult r, const char *call)
{
    return fa_driver_check(fa_context_driver(b->ctx), r, call);
}

static size_t round_up(size_t v)
{
    return (v + 255) / 256 * 256;
}

/* The first set gets the pattern from the host, in doubling copies; the others copy it from there, shifted. */
static fa_status fill(fa_bench *b, size_t n, int dtype)
{
    const cu_driver *d = fa_context_driver(b->ctx);
    size_t bytes = (size_t)fa_dtype_bytes(dtype), pattern = PATTERN * bytes < n ? PATTERN * bytes : n;
    uint8_t *host = malloc(pattern);
    fa_random r = { 1 };
    if (!host)
        return fa_fail(FA_NOMEM, "no memory for %zu bytes of random data", pattern);
    for (size_t i = 0; i + bytes <= pattern; i += bytes)
        fa_number_store(host + i, fa_random_normal(&r), dtype);
    fa_status st = check(b, d->cuMemcpyHtoD(b->set[0], host, pattern), "cuMemcpyHtoD");
    free(host);
    for (size_t at = pattern; at < n && st == FA_OK; at *= 2)
        st = check(b, d->cuMemcpyDtoDAsync(b->set[0] + at, b->set[0], at < n - at ? at : n - at, NULL), "cuMemcpyDtoDAsync");
    for (int i = 1; i < b->sets && st == FA_OK; i++) {
        size_t shift = round_up(n / (size_t)b->sets * (size_t)i);
        shift = shift < n ? shift : 0;
        st = check(b, d->cuMemcpyDtoDAsync(b->set[i], b->set[0] + shift, n - shift, NULL), "cuMemcpyDtoDAsync");
        if (st == FA_OK && shift)
            st = check(b, d->cuMemcpyDtoDAsync(b->set[i] + n - shift, b->set[0], shift, NULL), "cuMemcpyDtoDAsync");
    }
    return st;
}

/* As many sets as make the L2 forget the one used before: twice its size, within a quarter of what is free. */
static fa_status make_sets(fa_bench *b, const fa_problem *p)
{
    const cu_driver *d = fa_context_driver(b->ctx);
    size_t rows[4] = { (size_t)p->sq * (size_t)p->hq, (size_t)p->sk * (size_t)p->hkv, (size_t)p->sk * (size_t)p->hkv, (size_t)p->sq * (size_t)p->hq };
    int32_t width[4] = { p->d, p->d, p->dv, p->dv }, type[4] = { p->dtype, p->dtype, p->dtype, p->o_dtype };
    size_t inputs = 0, all = 0, available = 0, total = 0;
    for (int i = 0; i < 4; i++) {
        inputs = i == 3 ? all : 0;
        b->offset[i] = all;
        all += round_up(rows[i] * (size_t)p->b * (size_t)width[i] * (size_t)fa_dtype_bytes(type[i]));
    }
    fa_status st = check(b, d->cuMemGetInfo(&available, &total), "cuMemGetInfo");
    if (st != FA_OK)
        return st;
    double want = 1 + ceil(2.0 * (double)fa_context_arch(b->ctx)->l2_bytes / (double)all), fit = floor((double)available / 4 / (double)all);
    want = fmax(1, fmin(fmin(want, SETS_MOST), fit));
    for (b->sets = 0; b->sets < (int)want; b->sets++) {
        CUresult r = d->cuMemAlloc(&b->set[b->sets], all);
        if (r != CUDA_SUCCESS)
            return fa_wrap(check(b, r, "cuMemAlloc"), "tensors of %zu bytes to measure on", all);
    }
    return fill(b, inputs, p->dtype);
}

fa_status fa_bench_open(fa_bench **out, fa_context *ctx, const fa_problem *p)
{
    const cu_driver *d = fa_context_driver(ctx);
    fa_entered in;
    fa_bench *b = *out = calloc(1, sizeof *b);
    if (!b)
        return fa_fail(FA_NOMEM, "no memory for a bench");
    b->ctx = ctx;
    b->args = (fa_args)FA_ARGS_INIT;
    b->args.dtype = p->dtype;
    b->args.o_dtype = p->o_dtype == p->dtype ? 0 : p->o_dtype;
    b->args.d = p->d;
    b->args.dv = p->dv;
    b->args.b = p->b;
    b->args.hq = p->hq;
    b->args.hkv = p->hkv;
    b->args.sq = p->sq;
    b->args.sk = p->sk;
    b->args.mask = p->mask;
    b->args.window_left = FA_MODEL_WINDOW;
    fa_status st = fa_context_enter(ctx, &in);
    if (st == FA_OK) {
        st = check(b, d->cuEventCreate(&b->start, 0), "cuEventCreate");
        if (st == FA_OK)
            st = check(b, d->cuEventCreate(&b->stop, 0), "cuEventCreate");
        if (st == FA_OK)
            st = make_sets(b, p);
        fa_context_leave(ctx, &in);
    }
    if (st != FA_OK) {
        fa_bench_close(b);
        *out = NULL;
    }
    return st;
}

void fa_bench_close(fa_bench *b)
{
    fa_entered in;
    if (!b)
        return;
    const cu_driver *d = fa_context_driver(b->ctx);
    if (fa_context_enter(b->ctx, &in) == FA_OK) {
        for (int i = 0; i < SETS_MOST; i++)
            if (b->set[i])
                d->cuMemFree(b->set[i]);
        if (b->workspace)
            d->cuMemFree(b->workspace);
        if (b->start)
            d->cuEventDestroy(b->start);
        if (b->stop)
            d->cuEventDestroy(b->stop);
        fa_context_leave(b->ctx, &in);
    }
    free(b);
}

static fa_status provide_workspace(fa_bench *b, const fa_plan *plan)
{
    const cu_driver *d = fa_context_driver(b->ctx);
    size_t need;
    fa_status st = plan ? fa_plan_workspace(b->ctx, plan, &b->args, &need) : fa_workspace_size(b->ctx, &b->args, &need);
    if (st != FA_OK || need <= b->workspace_size)
        return st;
    if (b->workspace)
        d->cuMemFree(b->workspace);
    b->workspace = 0;
    b->workspace_size = 0;
    st = check(b, d->cuMemAlloc(&b->workspace, need), "cuMemAlloc");
    b->workspace_size = st == FA_OK ? need : 0;
    return st;
}

/* n launches between two events; *seconds: of one. */
static fa_status batch(fa_bench *b, const fa_plan *plan, int n, double *seconds)
{
    const cu_driver *d = fa_context_driver(b->ctx);
    float ms = 0;
    fa_status st = check(b, d->cuEventRecord(b->start, NULL), "cuEventRecord");
    for (int i = 0; i < n && st == FA_OK; i++, b->next++) {
        CUdeviceptr set = b->set[b->one_set ? 0 : b->next % b->sets];
        b->args.q.ptr = (void *)(uintptr_t)(set + b->offset[0]);
        b->args.k.ptr = (void *)(uintptr_t)(set + b->offset[1]);
        b->args.v.ptr = (void *)(uintptr_t)(set + b->offset[2]);
        b->args.o.ptr = (void *)(uintptr_t)(set + b->offset[3]);
        b->args.workspace = (void *)(uintptr_t)b->workspace;
        b->args.workspace_size = b->workspace_size;
        st = plan ? fa_plan_launch(b->ctx, plan, &b->args, NULL) : fa_launch(b->ctx, &b->args, NULL);
    }
    if (st == FA_OK)
        st = check(b, d->cuEventRecord(b->stop, NULL), "cuEventRecord");
    if (st == FA_OK)
        st = check(b, d->cuEventSynchronize(b->stop), "waiting for the kernel");
    if (st == FA_OK)
        st = check(b, d->cuEventElapsedTime(&ms, b->start, b->stop), "cuEventElapsedTime");
    *seconds = ms * 1e-3 / n;
    return st;
}

static int launches_for(double seconds, double one)
{
    double n = one > 0 ? ceil(seconds / one) : LAUNCHES_MOST;
    return (int)fmin(fmax(n, 1), LAUNCHES_MOST);
}

static fa_status warm_up(fa_bench *b, const fa_plan *plan, double one)
{
    double spent = 0, before = one;
    for (int steady = 0; steady < 3 && spent < WARM_MOST;) {
        int n = launches_for(WARM_BATCH, before);
        double now;
        fa_status st = batch(b, plan, n, &now);
        if (st != FA_OK)
            return st;
        spent += now * n;
        steady = fabs(now - before) <= WARM_STEADY * before ? steady + 1 : 0;
        before = now;
    }
    b->ready = true;
    return FA_OK;
}

/* How many launches a sample of the plan takes. */
static fa_status calibrate(fa_bench *b, const fa_plan *plan, int *launches)
{
    double one;
    fa_status st = batch(b, plan, 1, &one); /* the first launch loads the code */
    if (st == FA_OK)
        st = batch(b, plan, one < LONG_SECONDS ? 2 : 1, &one);
    if (st == FA_OK && !b->ready)
        st = warm_up(b, plan, one);
    if (st == FA_OK && one < SAMPLE_SECONDS)
        st = batch(b, plan, launches_for(SAMPLE_SECONDS, one), &one);
    *launches = launches_for(SAMPLE_SECONDS * 1.1, one);
    return st;
}

static fa_status sample(fa_bench *b, const fa_plan *plan, bool one_set, int *launches, fa_samples *t)
{
    fa_entered in;
    double one;
    fa_status st = fa_context_enter(b->ctx, &in);
    if (st != FA_OK)
        return st;
    st = provide_workspace(b, plan);
    if (st == FA_OK && !*launches)
        st = calibrate(b, plan, launches);
    b->one_set = one_set;
    if (st == FA_OK && one_set)
        st = batch(b, plan, 1, &one);
    if (st == FA_OK)
        st = batch(b, plan, *launches, &one);
    b->one_set = false;
    fa_context_leave(b->ctx, &in);
    if (st == FA_OK)
        fa_samples_add(t, one);
    return st;
}

fa_status fa_bench_sample(fa_bench *b, const fa_plan *plan, int *launches, fa_samples *t)
{
    return sample(b, plan, false, launches, t);
}

fa_status fa_bench_sample_warm(fa_bench *b, const fa_plan *plan, int *launches, fa_samples *t)
{
    return sample(b, plan, true, launches, t);
}

fa_status fa_measure(fa_context *ctx, const fa_problem *p, const fa_plan *plan, int n, fa_samples *t)
{
    fa_problem shaped;
    fa_bench *b;
    int launches = 0;
    fa_status st = fa_problem_normalize(&shaped, p);
    if (st != FA_OK)
        return st;
    fa_problem_fill_shape(&shaped);
    st = fa_bench_open(&b, ctx, &shaped);
    for (int i = 0; i < n && st == FA_OK; i++)
        st = fa_bench_sample(b, plan, &launches, t);
    fa_bench_close(b);
    return st;
}
