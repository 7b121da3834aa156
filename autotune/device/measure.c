/* measure: how long a launch takes on the device. */
#include "measure.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "verify/operands/tensors.h"
#include <math.h>
#include <stdlib.h>

#define SAMPLE_SECONDS 500e-6
#define WARM_BATCH 5e-3   /* seconds of one batch of the warm-up */
#define WARM_MOST 0.5     /* seconds after which the clock is taken as it is */
#define WARM_STEADY 0.01  /* relative change of three batches in a row */
#define LONG_SECONDS 2e-3 /* of a launch: two of them cost more than they tell */
#define LAUNCHES_MOST 4096

struct fa_bench {
    fa_context *ctx;
    fa_tensors tensors;
    int next;
    CUevent start, stop;
    bool ready;   /* the clock is steady */
    bool one_set; /* the L2 stays warm */
};

static fa_status check(const fa_bench *b, CUresult r, const char *call)
{
    return fa_driver_check(fa_context_driver(b->ctx), r, call);
}

/* As many sets as make the L2 forget the one used before: twice its size, within a quarter of what is free. */
static fa_status make_sets(fa_bench *b, const fa_problem *p, int32_t lengths)
{
    size_t available = 0, total = 0;
    fa_ragged drawn;
    fa_status st = fa_ragged_of(&drawn, p, 1, lengths);
    if (st == FA_OK)
        st = fa_tensors_lay(&b->tensors, b->ctx, p, false, &drawn);
    fa_ragged_close(&drawn);
    if (st == FA_OK)
        st = check(b, fa_context_driver(b->ctx)->cuMemGetInfo(&available, &total), "cuMemGetInfo");
    if (st != FA_OK)
        return st;
    double all = (double)b->tensors.bytes, want = 1 + ceil(2.0 * (double)fa_context_arch(b->ctx)->l2_bytes / all),
           fit = floor((double)available / 4 / all);
    want = fmax(1, fmin(fmin(want, FA_TENSOR_SETS), fit));
    st = fa_tensors_reserve_sets(&b->tensors, (int)want);
    return st == FA_OK ? fa_tensors_pattern(&b->tensors) : st;
}

fa_status fa_bench_sequences(const fa_bench *b, fa_sequences *out)
{
    return fa_tensors_sequences(&b->tensors, out);
}

fa_status fa_bench_open(fa_bench **out, fa_context *ctx, const fa_problem *p, int32_t lengths)
{
    const cu_driver *d = fa_context_driver(ctx);
    fa_entered in;
    fa_bench *b = *out = calloc(1, sizeof *b);
    if (!b)
        return fa_fail(FA_NOMEM, "no memory for a bench");
    b->ctx = ctx;
    fa_status st = fa_context_enter(ctx, &in);
    if (st == FA_OK) {
        st = check(b, d->cuEventCreate(&b->start, 0), "cuEventCreate");
        if (st == FA_OK)
            st = check(b, d->cuEventCreate(&b->stop, 0), "cuEventCreate");
        if (st == FA_OK)
            st = make_sets(b, p, lengths);
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
        fa_tensors_close(&b->tensors);
        if (b->start)
            d->cuEventDestroy(b->start);
        if (b->stop)
            d->cuEventDestroy(b->stop);
        fa_context_leave(b->ctx, &in);
    }
    free(b);
}

/* n launches between two events; *seconds: of one. */
static fa_status batch(fa_bench *b, const fa_plan *plan, int n, double *seconds)
{
    const cu_driver *d = fa_context_driver(b->ctx);
    float ms = 0;
    fa_status st = check(b, d->cuEventRecord(b->start, NULL), "cuEventRecord");
    for (int i = 0; i < n && st == FA_OK; i++, b->next++) {
        fa_args *args = &b->tensors.args;
        fa_tensors_use(&b->tensors, b->one_set ? 0 : b->next % b->tensors.sets);
        st = plan ? fa_plan_launch(b->ctx, plan, args, NULL) : fa_launch(b->ctx, args, NULL);
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
    st = fa_scratch_provide(&b->tensors.scratch, b->ctx, plan, &b->tensors.args);
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
    st = fa_bench_open(&b, ctx, &shaped, 0);
    for (int i = 0; i < n && st == FA_OK; i++)
        st = fa_bench_sample(b, plan, &launches, t);
    fa_bench_close(b);
    return st;
}
