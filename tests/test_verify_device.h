/* A context on the simulator, and cases run on it. */
#ifndef TEST_VERIFY_DEVICE_H
#define TEST_VERIFY_DEVICE_H
#include "gen/problem.h"
#include "sim/sim.h"
#include "verify/cases/trial.h"
#include "verify/operands/tensors.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEST_CHIPS "sm_80,sm_90a" /* one simulator per process: devices 0 and 1 */

static inline void test_mode(sim_async async, sim_schedule schedule, uint64_t seed)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    sim_options o = { .async = async, .schedule = schedule, .seed = seed, .threads = cores > 1 ? 2 : 1 };
    char error[512];
    cr_assert(sim_checks_parse("all=error", o.checks, error), "%s", error); /* fagen's own kernels give no warning either */
    sim_set_options(&o);
}

static inline fa_context *test_context(const char *template_dir, const char *cache_dir)
{
    fa_options o = FA_OPTIONS_INIT;
    fa_context *ctx;
    o.template_dir = template_dir;
    o.cache_dir = cache_dir;
    cr_assert_eq(fa_create_on(&ctx, &o, sim_open(TEST_CHIPS), 0), FA_OK, "%s", fa_last_error());
    return ctx;
}

/* A simulated H200 with few SMs, so that a persistent block gets several tiles of a small problem. One number per process. */
static int test_sm_count;
static CUresult test_attribute(int *out, CUdevice_attribute a, CUdevice device)
{
    CUresult r = sim_open(TEST_CHIPS)->cuDeviceGetAttribute(out, a, device);
    if (a == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        *out = test_sm_count;
    return r;
}
static inline fa_context *test_hopper_context(const char *template_dir, const char *cache_dir, int sm_count)
{
    static cu_driver driver;
    fa_options o = FA_OPTIONS_INIT;
    fa_context *ctx;
    driver = *sim_open(TEST_CHIPS);
    driver.cuDeviceGetAttribute = test_attribute;
    test_sm_count = sm_count;
    o.template_dir = template_dir;
    o.cache_dir = cache_dir;
    cr_assert_eq(fa_create_on(&ctx, &o, &driver, 1), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_context_arch(ctx)->sm_count, sm_count);
    return ctx;
}

/* What the last launch left in its word to count with; kernels must leave 0, for the word comes round again. */
static inline uint32_t test_counter(fa_context *ctx)
{
    const fa_counters *c = atomic_load(&ctx->counters);
    const cu_driver *d = fa_context_driver(ctx);
    uint32_t value = 0;
    if (!c || !atomic_load(&c->next))
        return 0;
    CUdeviceptr word = c->words + (atomic_load(&c->next) - 1) % FA_COUNTER_WORDS * sizeof value;
    cr_assert_eq(d->cuCtxPushCurrent(c->context), CUDA_SUCCESS);
    cr_assert_eq(d->cuMemcpyDtoH(&value, word, sizeof value), CUDA_SUCCESS);
    cr_assert_eq(d->cuCtxPopCurrent(NULL), CUDA_SUCCESS);
    return value;
}

static inline fa_config test_config(const char *text)
{
    fa_config c;
    cr_assert_eq(fa_config_parse(&c, text), FA_OK, "%s", fa_last_error());
    return c;
}

/* Of the problem's text, with LSE and seed 7. A shape field of 0 is meant so. */
static inline fa_case test_case(const char *problem, int sq, int sk)
{
    fa_problem p;
    fa_case c;
    cr_assert_eq(fa_problem_parse(&p, problem), FA_OK, "%s: %s", problem, fa_last_error());
    p.sq = sq;
    p.sk = sk;
    cr_assert_eq(fa_case_of(&c, &p, 7), FA_OK, "%s", fa_last_error());
    return c;
}

typedef struct test_output {
    uint8_t *o;
    size_t bytes;
    float *lse; /* NULL where not asked for */
    size_t rows;
    fa_verdict verdict;
} test_output;

/* Runs, demands that the rule is kept, and returns what came out. */
static inline test_output test_run(fa_context *ctx, const fa_case *c, const char *config)
{
    test_output r = { 0 };
    fa_trial *t;
    const fa_plan *plan = NULL;
    fa_config k;
    char line[700];
    fa_case_print(line, sizeof line, c);
    if (config) {
        k = test_config(config);
        cr_assert_eq(fa_plan_make(ctx, &c->problem, &k, NULL, &plan), FA_OK, "%s", fa_last_error());
    }
    cr_assert_eq(fa_trial_open(&t, ctx, c, FA_REFERENCE_ORACLE), FA_OK, "%s: %s", line, fa_last_error());
    cr_assert_eq(fa_trial_run(t, plan, &r.verdict), FA_OK, "%s\n%s\n%s", line, config ? config : "", fa_last_error());
    const void *o = fa_trial_output(t, "o", &r.bytes);
    r.o = malloc(r.bytes + 1);
    if (r.bytes)
        memcpy(r.o, o, r.bytes);
    r.rows = (size_t)c->problem.b * (size_t)c->problem.hq * (size_t)c->problem.sq;
    r.lse = malloc(r.rows * sizeof *r.lse + 1);
    size_t bytes;
    const void *lse = fa_trial_output(t, "lse", &bytes);
    if (lse)
        memcpy(r.lse, lse, bytes);
    fa_trial_close(t);
    return r;
}

/* What one launch on random tensors moved. The tensors and the context stay open for the caller. */
static inline sim_counters test_traced(fa_context *ctx, const fa_problem *p, const fa_plan *plan, fa_entered *in, fa_tensors *t)
{
    sim_counters counted;
    cr_assert_eq(fa_context_enter(ctx, in), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_tensors_open(t, ctx, p), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_tensors_random(t, 1), FA_OK, "%s", fa_last_error());
    sim_counters_reset();
    cr_assert_eq(fa_tensors_launch(t, plan), FA_OK, "%s", fa_last_error());
    sim_counters_get(&counted);
    return counted;
}

static inline void test_drop(test_output *r)
{
    free(r->o);
    free(r->lse);
}
#endif
