/* The probes: their kernels compute what they should, on the simulator; what they measure is kept, and changes the model's chip. */
#include "autotune/device/probe.h"
#include "cache/rates.h"
#include "cache/record.h"
#include "gen/templates.h"
#include "sim/sim.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <math.h>

TestSuite(tune_probe, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

static fa_status probe(const char *device, const char *templates, fa_rates *r)
{
    fa_options o = FA_OPTIONS_INIT;
    fa_context *ctx;
    o.device = device;
    o.cache_dir = below("cache");
    o.template_dir = templates;
    cr_assert_eq(fa_create(&ctx, &o), FA_OK, "%s", fa_last_error());
    fa_status st = fa_probe(ctx, r);
    fa_destroy(ctx);
    return st;
}

static void nothing_measured(const fa_rates *r)
{
    cr_assert(r->mma16 == 0 && r->wgmma16 == 0 && r->exps == 0 && r->l2_bytes == 0 && r->hbm_bytes == 0 && r->launch == 0 && r->clock == 0);
}

Test(tune_probe, the_kernels_are_right_on_an_older_chip)
{
    fa_rates r = { .mma16 = 1 };
    cr_assert_eq(probe("sim:sm_80", NULL, &r), FA_OK, "%s", fa_last_error());
    nothing_measured(&r);
}

Test(tune_probe, the_kernels_are_right_with_wgmma)
{
    fa_rates r = { .mma16 = 1 };
    cr_assert_eq(probe("sim:sm_90a", NULL, &r), FA_OK, "%s", fa_last_error());
    nothing_measured(&r);
}

/* A template of ours with one line changed. */
static void with(const char *name, const char *find, const char *put)
{
    const fa_template_file *f = fa_template_files;
    while (f->name && strcmp(f->name, name))
        f++;
    const char *at = f->name ? strstr(f->bytes, find) : NULL;
    cr_assert_not_null(at, "%s has no %s", name, find);
    FILE *out = fopen(below("%s", name), "w");
    fprintf(out, "%.*s%s%s", (int)(at - f->bytes), f->bytes, put, at + strlen(find));
    fclose(out);
}

Test(tune_probe, a_kernel_that_does_less_is_noticed)
{
    static const struct {
        const char *name, *find, *put, *says;
    } faults[] = {
        { "probe.cu", "i < 8; i++)\n      asm volatile(\"mma", "i < 7; i++)\n      asm volatile(\"mma", "probe_mma" },
        { "probe.cu", "float minus = -x[i];", "float minus = x[i];", "probe_exp" },
        { "probe.cu", "i < n; i += step", "i + 1 < n; i += step", "probe_read" },
        { "probe.cu", "if (plain) out", "if (!plain) out", "probe_launch" },
    };
    fa_rates r;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        with(faults[i].name, faults[i].find, faults[i].put);
        cr_assert_eq(probe("sim:sm_80", scratch, &r), FA_WRONG, "%s: %s", faults[i].find, fa_last_error());
        cr_assert(strstr(fa_last_error(), faults[i].says), "%s", fa_last_error());
    }
}

Test(tune_probe, a_wgmma_that_does_less_is_noticed)
{
    fa_rates r;
    with("probe_wgmma.cu", "k < 4; k++) product", "k < 3; k++) product");
    cr_assert_eq(probe("sim:sm_90a", scratch, &r), FA_WRONG);
    cr_assert(strstr(fa_last_error(), "probe_wgmma"), "%s", fa_last_error());
}

Test(tune_probe, rates_are_kept_and_damage_is_no_rate)
{
    fa_store *s = fa_store_open(scratch, NULL, NULL);
    fa_rates r = { 600e12, 798e12, 4e12, 5e12, 4.5e12, 1.9e-6, 1.7e9 }, back;
    cr_assert(!fa_rates_load(s, "NVIDIA H200", &back));
    cr_assert_eq(back.mma16, 0);
    cr_assert(fa_rates_save(s, "NVIDIA H200", "2026-11-21T11:00:00Z", &r));
    cr_assert(fa_rates_load(s, "NVIDIA H200", &back));
    cr_assert_eq(memcmp(&r, &back, sizeof r), 0);
    cr_assert(!fa_rates_load(s, "NVIDIA A100", &back));
    r.mma16 = NAN;
    r.exps = -1;
    cr_assert(fa_rates_save(s, "NVIDIA H200", "2026-11-21T11:00:00Z", &r), "the newer replaces the older");
    cr_assert(fa_rates_load(s, "NVIDIA H200", &back));
    cr_assert(back.mma16 == 0 && back.exps == 0 && back.wgmma16 == 798e12);
    fa_records rs = fa_records_load(s, NULL, NULL);
    cr_assert_eq(rs.n, 0, "it is no record");
    FILE *f = fopen(below("v1/records/NVIDIA_H200/rates.json"), "w");
    fputs("{\"mma16\": 1e12, ", f);
    fclose(f);
    cr_assert(!fa_rates_load(s, "NVIDIA H200", &back));
    fa_store_close(s);
}

Test(tune_probe, a_chip_is_what_was_measured_of_it)
{
    const fa_arch *h200 = fa_arch_find("h200"), *a100 = fa_arch_find("a100");
    fa_arch a = *h200;
    fa_rates same = h200->fitted, none = { 0 }, slow, odd;
    fa_arch_calibrate(&a, &same);
    cr_assert_eq(memcmp(&a, h200, sizeof a), 0, "where the model was fitted, its own chip changes nothing");
    fa_arch_calibrate(&a, &none);
    cr_assert_eq(memcmp(&a, h200, sizeof a), 0);
    slow = same;
    slow.wgmma16 *= 0.8;
    slow.hbm_bytes *= 0.7;
    fa_arch_calibrate(&a, &slow);
    cr_assert_float_eq(a.wgmma16_flop, 0.8 * h200->wgmma16_flop, 1e-9 * h200->wgmma16_flop);
    cr_assert_float_eq(a.hbm_gbs, 0.7 * h200->hbm_gbs, 1e-6);
    cr_assert_eq(a.mma16_flop, h200->mma16_flop);
    odd = same;
    odd.hbm_bytes *= 100;
    a = *h200;
    fa_arch_calibrate(&a, &odd);
    cr_assert_eq(a.hbm_gbs, h200->hbm_gbs, "what cannot be is not believed");

    a = *h200; /* fitted, but not by this rate: a measurement of it has nothing to be held against */
    a.fitted.hbm_bytes = 0;
    fa_arch_calibrate(&a, &slow);
    cr_assert_eq(a.hbm_gbs, h200->hbm_gbs);
    for (int over = 0; over < 2; over++) { /* up to four times as fast or slow is believed */
        fa_rates edge = same;
        edge.hbm_bytes *= over ? 3.9 : 0.26;
        a = *h200;
        fa_arch_calibrate(&a, &edge);
        cr_assert_float_eq(a.hbm_gbs, (over ? 3.9 : 0.26) * h200->hbm_gbs, 1e-6 * h200->hbm_gbs);
        edge.hbm_bytes = same.hbm_bytes * (over ? 4.1 : 0.24);
        a = *h200;
        fa_arch_calibrate(&a, &edge);
        cr_assert_eq(a.hbm_gbs, h200->hbm_gbs);
    }

    a = *a100; /* never fitted: what was measured takes the sheet's place */
    fa_rates m = { .mma16 = 250e12, .hbm_bytes = 1700e9, .l2_bytes = 4e12, .exps = 2e12 };
    fa_arch_calibrate(&a, &m);
    cr_assert_float_eq(a.mma16_flop * a.sm_count * a.clock_ghz * 1e9, 250e12, 1e6);
    cr_assert_float_eq(a.mma_tf32_flop * 2, a.mma16_flop, 1e-9);
    cr_assert_float_eq(a.hbm_gbs, 1700, 1e-6);
    cr_assert_float_eq(a.l2_gbs, 4000, 1e-6);
    cr_assert_float_eq(a.exp_rate * a.sm_count * a.clock_ghz * 1e9, 2e12, 1e4);
}

Test(tune_probe, a_context_takes_the_rates_of_its_chip)
{
    fa_options o = FA_OPTIONS_INIT;
    fa_context *ctx;
    fa_store *s = fa_store_open(below("cache"), NULL, NULL);
    o.device = "sim:sm_80";
    o.cache_dir = below("cache");
    cr_assert_eq(fa_create(&ctx, &o), FA_OK);
    fa_arch before = *fa_context_arch(ctx);
    fa_destroy(ctx);
    cr_assert(fa_rates_save(s, before.chip, "2026-11-21T11:00:00Z", &(fa_rates){ .hbm_bytes = before.hbm_gbs * 0.5e9 }));
    fa_store_close(s);
    cr_assert_eq(fa_create(&ctx, &o), FA_OK);
    cr_assert_float_eq(fa_context_arch(ctx)->hbm_gbs, before.hbm_gbs / 2, 1e-6);
    fa_destroy(ctx);
}

/* A device that computes as the simulator does, and whose launches between two events take a known time and do nothing. For its first
 * quarter of a second each kernel takes twice as long. */
static cu_driver timed, computes;
static struct {
    double now, at[2], since; /* seconds; of the events; of this kernel */
    int events, launches;
    bool counts; /* between the events */
    CUfunction last;
    double nothing, exps, read, again, mma, wgmma; /* seconds of a launch */
} clocked;

static CUresult t_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned smem,
                         CUstream s, void **params, void **extra)
{
    if (!clocked.counts)
        return computes.cuLaunchKernel(f, gx, gy, gz, bx, by, bz, smem, s, params, extra);
    unsigned long long n = *(unsigned long long *)params[3];
    int rounds = *(int *)params[4];
    double t = bx == 32          ? clocked.nothing
               : n               ? (rounds == 1 ? clocked.read : clocked.again)
               : bx == 256       ? clocked.wgmma
               : rounds == 20000 ? clocked.exps
                                 : clocked.mma;
    if (f != clocked.last)
        clocked.since = 0;
    clocked.last = f;
    t *= clocked.since < 0.2 ? 2 : 1;
    clocked.since += t;
    clocked.now += t;
    clocked.launches++;
    return CUDA_SUCCESS;
}

static CUresult t_create(CUevent *e, unsigned flags)
{
    (void)flags;
    *e = (CUevent)&clocked.at[clocked.events++ % 2];
    return CUDA_SUCCESS;
}

static CUresult t_destroy(CUevent e)
{
    (void)e;
    clocked.events--;
    return CUDA_SUCCESS;
}

static CUresult t_record(CUevent e, CUstream s)
{
    (void)s;
    *(double *)e = clocked.now;
    clocked.counts = e == (CUevent)&clocked.at[0];
    return CUDA_SUCCESS;
}

static CUresult t_synchronize(CUevent e)
{
    (void)e;
    return CUDA_SUCCESS;
}

static CUresult t_elapsed(float *ms, CUevent a, CUevent b)
{
    *ms = (float)((*(double *)b - *(double *)a) * 1e3);
    return CUDA_SUCCESS;
}

static CUresult t_info(size_t *available, size_t *total)
{
    *available = *total = (size_t)64 << 20;
    return CUDA_SUCCESS;
}

static CUresult t_attribute(int *v, CUdevice_attribute a, CUdevice d)
{
    CUresult r = computes.cuDeviceGetAttribute(v, a, d);
    if (a == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        *v = 2;
    return r;
}

/* From here on it takes PTX, as the simulator must get; the probe has asked before. */
static CUresult t_current(CUcontext *c)
{
    timed.takes_ptx = 1;
    return computes.cuCtxGetCurrent(c);
}

static fa_status probe_timed(fa_rates *r, const char *arch)
{
    fa_options o = FA_OPTIONS_INIT;
    fa_context *ctx;
    computes = *sim_open(arch);
    timed = computes;
    timed.cuLaunchKernel = t_launch;
    timed.cuEventCreate = t_create;
    timed.cuEventDestroy = t_destroy;
    timed.cuEventRecord = t_record;
    timed.cuEventSynchronize = t_synchronize;
    timed.cuEventElapsedTime = t_elapsed;
    timed.cuMemGetInfo = t_info;
    timed.cuDeviceGetAttribute = t_attribute;
    o.cache_dir = below("cache");
    cr_assert_eq(fa_create_on(&ctx, &o, &timed, 0), FA_OK, "%s", fa_last_error());
    timed.cuCtxGetCurrent = t_current;
    timed.takes_ptx = 0;
    fa_status st = fa_probe(ctx, r);
    timed.cuCtxGetCurrent = computes.cuCtxGetCurrent;
    fa_destroy(ctx);
    return st;
}

static void expect_rate(const char *what, double got, double want)
{
    cr_expect(fabs(got / want - 1) < 1e-5, "%s: %g; it should be %g", what, got, want);
}

Test(tune_probe, rates_are_work_over_time)
{
    fa_rates r;
    int l2;
    clocked.nothing = 2e-6, clocked.exps = 1e-3, clocked.read = 2e-3, clocked.again = 3e-3, clocked.mma = 4e-3, clocked.wgmma = 5e-3;
    cr_assert_eq(probe_timed(&r, "sm_90a"), FA_OK, "%s", fa_last_error());
    expect_rate("launch", r.launch, 2e-6);
    expect_rate("exps", r.exps, 2 * 512.0 * 8 * 20000 / 1e-3);
    expect_rate("hbm", r.hbm_bytes, (double)(16 << 20) / 2e-3); /* a quarter of what is free */
    cr_assert_eq(computes.cuDeviceGetAttribute(&l2, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 0), CUDA_SUCCESS);
    expect_rate("l2", r.l2_bytes, l2 / 4.0 * 100 / 3e-3);
    expect_rate("mma", r.mma16, 2 * 16.0 * 8 * 4096 * 40000 / 4e-3);
    expect_rate("wgmma", r.wgmma16, 2 * 2.0 * 4 * 2 * 64 * 256 * 16 * 6000 / 5e-3);
    cr_expect_gt(r.clock, 0);
    cr_expect_eq(clocked.events, 0);
    clocked.mma = 0; /* such a device is not believed */
    cr_expect_eq(probe_timed(&r, "sm_90a"), FA_DEVICE);
    cr_expect(strstr(fa_last_error(), "probe_mma took no time"), "%s", fa_last_error());
}
