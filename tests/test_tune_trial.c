/* Trials on a driver whose kernels write what the test says: what is told of values that were not written or differ between devices. */
#include "bench/dev/compare_devices.h"
#include "fake_driver.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include "test_gen_toy.h"
#include "verify/cases/trial.h"

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())
#define COPIES 128
#define VALUES 1024 /* of O: 1 x 8 x 2 x 64 */
#define ONE 0x3f80  /* of bf16 */

static const char lua[] =
    "return { doc = 'x', default = false, tunables = { { 'br', { 16 }, 'r' } }, constraints = {}, supports = function() return true end,\n"
    "  layout = function() return { bytes = 64, threads = 32, regs = 32 } end,\n"
    "  steps = function(p, c) return { { entry = 'toy', grid = ('sq/%d hq b'):format(c.br) } } end, work = function(p, c) return { rows = "
    "c.br, cols = 8 } end }\n";

static cu_driver table[2];
static fa_context *ctx[2];
static char dir[64];
static struct {
    CUdeviceptr at;
    void *bytes;
    size_t n;
} copy[COPIES];
static int copies;
static uint16_t output[2][VALUES]; /* what the devices' kernels leave in O */
static size_t written;             /* so many values of it */

static CUresult up(CUdeviceptr to, const void *from, size_t n)
{
    int i = 0;
    while (i < copies && copy[i].at != to)
        i++;
    cr_assert_lt(i, COPIES);
    copies += i == copies;
    free(copy[i].bytes);
    copy[i].at = to;
    copy[i].n = n;
    copy[i].bytes = malloc(n);
    cr_assert_not_null(copy[i].bytes);
    memcpy(copy[i].bytes, from, n);
    return CUDA_SUCCESS;
}

/* What was copied there, and over it what a kernel wrote. */
static CUresult down(void *to, CUdeviceptr from, size_t n, int device)
{
    all_params p = fake_last().params;
    static const float lse[16] = { 0 };
    for (int i = 0; i < copies; i++)
        if (copy[i].at == from && copy[i].n == n)
            memcpy(to, copy[i].bytes, n);
    if (p.o >= from && p.o < from + n)
        memcpy((char *)to + (p.o - from), output[device], written * sizeof output[0][0]);
    if (p.lse && p.lse >= from && p.lse < from + n)
        memcpy((char *)to + (p.lse - from), lse, sizeof lse);
    return CUDA_SUCCESS;
}

static CUresult down_first(void *to, CUdeviceptr from, size_t n)
{
    return down(to, from, n, 0);
}

static CUresult down_second(void *to, CUdeviceptr from, size_t n)
{
    return down(to, from, n, 1);
}

static CUresult synchronize(void)
{
    return CUDA_SUCCESS;
}

static void open_devices(void)
{
    const cu_driver *fake = fake_driver();
    fa_options o = FA_OPTIONS_INIT;
    scratch_make();
    toy_dir(dir, "extern \"C\" __global__ void toy(int *o) { o[threadIdx.x] = $(c.br); }\n");
    toy_write(dir, "toy.lua", lua);
    o.cache_dir = scratch;
    o.template_dir = dir;
    written = VALUES;
    for (int k = 0; k < 2; k++) {
        table[k] = *fake;
        table[k].cuCtxSynchronize = synchronize;
        table[k].cuMemcpyHtoD = up;
        table[k].cuMemcpyDtoH = k ? down_second : down_first;
        OK(fa_create_on(&ctx[k], &o, &table[k], k));
        for (int i = 0; i < VALUES; i++)
            output[k][i] = ONE;
    }
}

static void close_devices(void)
{
    for (int i = 0; i < 2; i++)
        fa_destroy(ctx[i]);
    for (int i = 0; i < copies; i++)
        free(copy[i].bytes);
    cr_assert_eq(fake_live_memory(), 0);
    toy_remove(dir, NULL);
    scratch_remove();
}
TestSuite(tune_trial, .init = open_devices, .fini = close_devices, .timeout = 120);

static fa_config config(void)
{
    fa_config c;
    OK(fa_config_parse(&c, "toy:br=16"));
    return c;
}

static fa_case make_case(void)
{
    fa_problem p;
    fa_case c;
    OK(fa_problem_parse(&p, "bf16,d=64,b=1,hq=2,hkv=2,sq=8,sk=8"));
    OK(fa_case_of(&c, &p, 1));
    c.lse = 1;
    return c;
}

static CUcontext current(void)
{
    CUcontext c = NULL;
    cr_assert_eq(table[0].cuCtxGetCurrent(&c), CUDA_SUCCESS);
    return c;
}

Test(tune_trial, the_callers_context_stays_current)
{
    fa_case c = make_case();
    fa_trial *t;
    fa_verdict v;
    for (int own = 0; own < 2; own++) {
        CUcontext mine = own ? fake_context(1) : NULL;
        cr_assert_eq(table[0].cuCtxSetCurrent(mine), CUDA_SUCCESS);
        OK(fa_trial_open(&t, ctx[0], &c, FA_REFERENCE_ORACLE));
        cr_expect_eq(current(), mine, "opened");
        fa_trial_run(t, NULL, &v);
        cr_expect_eq(current(), mine, "run");
        fa_trial_close(t);
        cr_expect_eq(current(), mine, "closed");
    }
    cr_assert_eq(table[0].cuCtxSetCurrent(NULL), CUDA_SUCCESS);
}

Test(tune_trial, the_first_that_was_not_written_is_told_with_its_place)
{
    fa_case c = make_case();
    fa_config k = config();
    fa_verdict v;
    written = (5 * 2 + 1) * 64 + 7; /* up to query 5, head 1, column 7 */
    cr_expect_eq(fa_verify_case(ctx[0], &c, &k, &v), FA_WRONG);
    cr_expect_str_eq(v.text, "O[711] was not written (batch 0, query 5, head 1, column 7)");
    written = 0;
    cr_expect_eq(fa_verify_case(ctx[0], &c, &k, &v), FA_WRONG);
    cr_expect_str_eq(v.text, "O[0] was not written (batch 0, query 0, head 0, column 0)");
}

/* Every value of O is compared as a whole, the first and the last too. */
Test(tune_trial, twins_that_differ_in_one_value)
{
    static const struct {
        size_t at;
        int ulps;
    } rows[] = { { 0, 0 }, { 0, 1 }, { 1, 2 }, { 500, 3 }, { VALUES - 1, 1 } };
    fa_case c = make_case();
    fa_config k = config();
    fa_compare_devices_bend(&c, FA_COMPARE_WHOLE);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_compare_devices t;
        output[1][rows[i].at] = (uint16_t)(ONE + rows[i].ulps);
        OK(fa_compare_devices_run(ctx[0], ctx[1], &c, &k, FA_COMPARE_WHOLE, &t));
        cr_expect(t.o == VALUES && t.lse == 16 && t.differ_lse == 0, "%zu: %lld and %lld values", i, (long long)t.o, (long long)t.lse);
        cr_expect_eq(t.differ_o, rows[i].ulps != 0, "%zu: %lld differ", i, (long long)t.differ_o);
        cr_expect_float_eq(t.ulps_o, rows[i].ulps, 1e-9, "%zu: by %g ulp", i, t.ulps_o);
        output[1][rows[i].at] = ONE;
    }
}
