/* How long a launch takes, on a driver whose launches take a known time: what a sample is, when the clock counts as steady, and what a
 * failing device leaves. */
#include "autotune/device/measure.h"
#include "fake_driver.h"
#include "gen/problem.h"
#include "test_cache_scratch.h"
#include "verify/operands/ragged.h"
#include <criterion/criterion.h>
#include <math.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())
#define KEPT 4096

static cu_driver table, plain;
static fa_context *ctx;
static struct {
    double now, at[2]; /* seconds; of the two events */
    double cold, warm; /* of a launch whose tensors are others than those of the launch before, or the same */
    double slower;     /* what the first launch takes beyond that, relative; by each launch it falls to `falls` of it */
    double falls;
    double swing; /* every second batch takes so much longer, relative */
    long records;
    uint64_t last_q, q[KEPT];
    int launches, events;
    size_t available;
} device;

static void tick(void)
{
    uint64_t q = fake_last().params.q;
    device.now += (q == device.last_q ? device.warm : device.cold) * (1 + device.slower) * (device.records / 2 % 2 ? 1 + device.swing : 1);
    device.slower *= device.falls;
    device.last_q = q;
    device.q[device.launches++ % KEPT] = q;
}

static CUresult d_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned smem,
                         CUstream s, void **params, void **extra)
{
    CUresult r = plain.cuLaunchKernel(f, gx, gy, gz, bx, by, bz, smem, s, params, extra);
    if (r == CUDA_SUCCESS)
        tick();
    return r;
}

static CUresult d_launch_ex(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
    CUresult r = plain.cuLaunchKernelEx(c, f, params, extra);
    if (r == CUDA_SUCCESS)
        tick();
    return r;
}

static int fails_at, calls; /* the call of those below that fails; 0 = none */

static CUresult called(void)
{
    return ++calls == fails_at ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult d_event_create(CUevent *e, unsigned flags)
{
    (void)flags;
    *e = (CUevent)&device.at[device.events++ % 2];
    return called();
}

static CUresult d_event_destroy(CUevent e)
{
    (void)e;
    device.events--;
    return CUDA_SUCCESS;
}

static CUresult d_event_record(CUevent e, CUstream s)
{
    (void)s;
    device.records++;
    *(double *)e = device.now;
    return called();
}

static CUresult d_event_synchronize(CUevent e)
{
    (void)e;
    return called();
}

static CUresult d_elapsed(float *ms, CUevent a, CUevent b)
{
    *ms = (float)((*(double *)b - *(double *)a) * 1e3);
    return called();
}

static CUresult d_info(size_t *available, size_t *total)
{
    *available = *total = device.available;
    return called();
}

static CUresult d_from_host(CUdeviceptr to, const void *from, size_t n)
{
    (void)to, (void)from, (void)n;
    return called();
}

static CUresult d_copy(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s)
{
    (void)to, (void)from, (void)n, (void)s;
    return called();
}

static void open_device(void)
{
    fa_options o = FA_OPTIONS_INIT;
    scratch_make();
    plain = table = *fake_driver();
    table.cuLaunchKernel = d_launch;
    table.cuLaunchKernelEx = d_launch_ex;
    table.cuEventCreate = d_event_create;
    table.cuEventDestroy = d_event_destroy;
    table.cuEventRecord = d_event_record;
    table.cuEventSynchronize = d_event_synchronize;
    table.cuEventElapsedTime = d_elapsed;
    table.cuMemGetInfo = d_info;
    table.cuMemcpyHtoD = d_from_host;
    table.cuMemcpyDtoDAsync = d_copy;
    device.cold = 100e-6;
    device.warm = 80e-6;
    device.available = (size_t)64 << 30;
    o.cache_dir = scratch;
    OK(fa_create_on(&ctx, &o, &table, 0));
}

static void close_device(void)
{
    fa_destroy(ctx);
    scratch_remove();
}
TestSuite(tune_measure, .init = open_device, .fini = close_device, .timeout = 120);

static fa_problem problem(const char *text)
{
    fa_problem p;
    cr_assert_eq(fa_problem_parse(&p, text), FA_OK, "%s", fa_last_error());
    fa_problem_fill_shape(&p);
    return p;
}

/* Distinct first operands of the last n launches. */
static int sets_of(int n)
{
    int distinct = 0;
    for (int i = 0; i < n; i++) {
        int k = 0;
        while (k < i && device.q[(device.launches - 1 - k) % KEPT] != device.q[(device.launches - 1 - i) % KEPT])
            k++;
        distinct += k == i;
    }
    return distinct;
}

Test(tune_measure, a_sample_is_the_time_of_one_launch)
{
    fa_problem p = problem("bf16,d=64,b=1,hq=8,sq=4096,sk=4096");
    fa_bench *b;
    fa_samples t = { 0 }, w = { 0 };
    int launches = 0;
    OK(fa_bench_open(&b, ctx, &p, 0));
    OK(fa_bench_sample(b, NULL, &launches, &t));
    cr_assert(t.n == 1 && fabs(t.s[0] - device.cold) < 1e-3 * device.cold, "%g", t.s[0]);
    cr_assert_eq(launches, 6, "550 us of them");
    cr_assert_gt(device.launches, 50 * 3, "before it, three batches of 5 ms found the clock steady");
    cr_assert_lt(device.launches, 50 * 6);
    for (int i = 0; i < 20; i++) {
        int before = device.launches;
        OK(fa_bench_sample(b, NULL, &launches, &t));
        cr_assert_eq(device.launches - before, 6, "nothing is warmed up or gauged again");
        cr_assert(fabs(t.s[t.n - 1] - device.cold) < 1e-3 * device.cold);
    }
    /* 16 MiB of a set: as many as make an L2 of 40 MB forget the first */
    cr_assert_eq(sets_of(60), 1 + (int)ceil(2.0 * fa_context_arch(ctx)->l2_bytes / (16 << 20)), "%d", sets_of(60));
    int before = device.launches;
    OK(fa_bench_sample_warm(b, NULL, &launches, &w));
    cr_assert_eq(device.launches - before, 7, "the first of them fills the L2");
    cr_assert(w.n == 1 && fabs(w.s[0] - device.warm) < 1e-3 * device.warm, "%g", w.s[0]);
    cr_assert_eq(sets_of(7), 1);
    OK(fa_bench_sample(b, NULL, &launches, &t));
    cr_assert_eq(sets_of(6), 6, "and then they take turns again");
    fa_bench_close(b);
    cr_assert_eq(fake_live_memory(), 0);
    cr_assert_eq(device.events, 0);
}

Test(tune_measure, short_and_long_launches)
{
    static const struct {
        double seconds;
        int launches;
    } rows[] = { { 1e-6, 550 }, { 50e-9, 4096 }, { 400e-6, 2 }, { 551e-6, 1 }, { 20e-3, 1 } };
    fa_problem p = problem("bf16,d=64,b=1,hq=8,sq=512,sk=512");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_bench *b;
        fa_samples t = { 0 };
        int launches = 0;
        device.cold = device.warm = rows[i].seconds;
        OK(fa_bench_open(&b, ctx, &p, 0));
        OK(fa_bench_sample(b, NULL, &launches, &t));
        cr_expect(abs(launches - rows[i].launches) <= 1, "%g s: %d", rows[i].seconds, launches);
        cr_expect(fabs(t.s[0] / rows[i].seconds - 1) < 0.01, "%g s: %g", rows[i].seconds, t.s[0]);
        fa_bench_close(b);
    }
}

/* No memory for two sets: one is used again and again. */
Test(tune_measure, sets_are_as_many_as_fit)
{
    fa_problem p = problem("bf16,d=64,b=1,hq=8,sq=4096,sk=4096");
    static const struct {
        size_t available;
        int sets;
    } rows[] = { { (size_t)32 << 20, 1 }, { (size_t)130 << 20, 2 }, { (size_t)200 << 20, 3 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_samples t = { 0 };
        device.available = rows[i].available;
        OK(fa_measure(ctx, &p, NULL, 5, &t));
        cr_expect_eq(t.n, 5);
        cr_expect_eq(sets_of(30), rows[i].sets, "%zu bytes: %d", rows[i].available, sets_of(30));
        cr_expect_eq(fake_live_memory(), 0);
    }
}

/* Lengths of the sequences that are measured are those that were asked for. */
Test(tune_measure, lengths_of_sequences)
{
    static const struct {
        int32_t lengths;
        int64_t keys; /* of four sequences, the longest of 48 */
    } rows[] = { { 0, 12 + 24 + 36 + 48 }, { FA_SPREAD_FULL + 1, 4 * 48 }, { FA_SPREAD_ZIPF + 1, 48 + 24 + 16 + 12 } };
    fa_problem p = problem("bf16,d=64,features=lengths+pages,page=16,b=4,hq=8,hkv=2,sq=1,sk=48");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_bench *b;
        fa_sequences s;
        int64_t keys = 0;
        OK(fa_bench_open(&b, ctx, &p, rows[i].lengths));
        OK(fa_bench_sequences(b, &s));
        for (int32_t k = 0; k < s.b; k++) {
            cr_expect_eq(s.of[k].nq, 1);
            keys += s.of[k].nk;
        }
        cr_expect_eq(keys, rows[i].keys, "%d: %lld", rows[i].lengths, (long long)keys);
        fa_sequences_close(&s);
        fa_bench_close(b);
    }
}

/* A clock that falls for some batches: what is sampled comes after. One that never rests is taken as it is. */
Test(tune_measure, the_clock_is_steady_before_the_first_sample)
{
    fa_problem p = problem("bf16,d=64,b=1,hq=8,sq=512,sk=512");
    fa_samples t = { 0 };
    device.slower = 1;
    device.falls = 0.998;
    OK(fa_measure(ctx, &p, NULL, 1, &t));
    cr_expect(t.s[0] >= device.cold && t.s[0] < 1.12 * device.cold, "%g", t.s[0]);
    cr_expect_gt(device.launches, 500);
    device.slower = 0;
    device.swing = 0.1;
    device.now = 0;
    OK(fa_measure(ctx, &p, NULL, 1, &t));
    cr_expect(device.now > 0.5 && device.now < 0.6, "%g s", device.now);
}

Test(tune_measure, the_nth_call_fails_for_every_n)
{
    fa_problem p = problem("bf16,d=64,b=1,hq=8,sq=128,sk=128");
    fa_samples t = { 0 };
    OK(fa_measure(ctx, &p, NULL, 2, &t));
    int all = calls;
    cr_assert_gt(all, 30);
    for (int n = 1; n <= all; n++) {
        t = (fa_samples){ 0 };
        calls = 0;
        fails_at = n;
        cr_assert_eq(fa_measure(ctx, &p, NULL, 2, &t), FA_DEVICE, "call %d of %d", n, all);
        cr_expect_eq(calls, n, "nothing is asked of a device that failed: call %d", n);
        cr_expect_lt(t.n, 2);
        for (int i = 0; i < t.n; i++)
            cr_expect(fabs(t.s[i] - device.cold) < 1e-3 * device.cold, "%g", t.s[i]);
        cr_expect_eq(fake_live_memory(), 0);
        device.events = 0;
    }
    fails_at = 0;
    OK(fa_measure(ctx, &p, NULL, 1, &t));
}
