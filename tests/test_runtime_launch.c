/* fa_launch on a driver that only remembers: what reaches it, and what a hit costs. */
#include "cache/record.h"
#include "gen/model.h"
#include "gen/problem.h"
#include "test_fake_context.h"
#include "test_good_args.h"
#include "test_hit_counts.h"
#include <limits.h>
#include <pthread.h>

TestSuite(runtime_launch, .init = open_context, .fini = close_context, .timeout = 300);

/* A parameter of the kernel that good() runs, by the names that its family lists. */
static int64_t param(const fake_launch *l, const char *wanted)
{
    fa_args a = good();
    fa_problem p;
    fa_selection selection;
    fa_source s;
    fa_value v;
    char name[sizeof v.name];
    size_t at = 0;
    int64_t found = INT64_MIN;
    OK(fa_problem_of(&a, &p));
    OK(fa_select(ctx, &p, &selection, &s));
    for (const char *names = s.params; fa_values_next(&names, name); at += v.bytes) {
        cr_assert(fa_value_find(&v, fa_operation_find(FA_FORWARD), &s.workspace, name), "%s", name);
        at = (at + v.bytes - 1) / v.bytes * v.bytes;
        if (!strcmp(name, wanted))
            found = v.bytes == 4 ? *(const int32_t *)(const void *)(l->bytes + at) : *(const int64_t *)(const void *)(l->bytes + at);
    }
    fa_source_free(&s);
    cr_assert_neq(found, INT64_MIN, "%s is no parameter", wanted);
    return found;
}

Test(runtime_launch, what_reaches_the_driver)
{
    fa_args a = good();
    CUstream stream = (CUstream)(uintptr_t)0x77;
    OK(fa_launch(ctx, &a, (fa_stream)stream));
    fake_launch l = fake_last();
    cr_assert_eq(l.stream, stream);
    cr_assert_eq(l.context, fake_context(0));
    static const struct {
        const char *name;
        int64_t value;
    } rows[] = {
        { "q", 0x100000000 }, { "lse", 0x500000000 }, { "b", 2 },      { "hq", 8 },         { "hkv", 4 },       { "group", 2 },
        { "sq", 128 },        { "sk", 256 },          { "q_ss", 512 }, { "diag_lo", -128 }, { "diag_hi", 256 }, { "section", 16 }
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(param(&l, rows[i].name), rows[i].value, "%s is %lld", rows[i].name, (long long)param(&l, rows[i].name));
    cr_assert(param(&l, "tiles") > 0);
    cr_assert_eq(l.grid % param(&l, "tiles"), 0);
    cr_assert(l.block > 0 && l.smem > 0);
    a.sk = 0;
    OK(fa_launch(ctx, &a, NULL));
    l = fake_last();
    cr_assert_eq(param(&l, "sk"), 0, "rows that see no key are still written");
}

Test(runtime_launch, a_hit_costs_one_driver_launch)
{
    fa_args a = good();
    OK(fa_launch(ctx, &a, NULL));
    for (int current = 0; current < 2; current++) {
        fa_context_driver(ctx)->cuCtxSetCurrent(current ? fake_context(0) : NULL);
        long before = fake_calls(NULL), launches = fake_calls("cuLaunchKernel");
        allocations = locks = lookups = 0;
        struct timespec t0, t1;
        clock_gettime(CLOCK_MONOTONIC, &t0);
        for (int i = 0; i < 10000; i++)
            if (fa_launch(ctx, &a, NULL) != FA_OK)
                abort();
        clock_gettime(CLOCK_MONOTONIC, &t1);
        long a0 = allocations, l0 = locks, e0 = lookups;
        cr_assert_eq(fake_calls("cuLaunchKernel") - launches, 10000);
        cr_assert_leq(fake_calls(NULL) - before, 50000, "current, device, push, launch, pop");
        cr_assert(a0 == 0 && l0 == 0 && e0 == 0, "%ld allocations, %ld locks, %ld look-ups", a0, l0, e0);
        double ns = ((double)(t1.tv_sec - t0.tv_sec) * 1e9 + (double)(t1.tv_nsec - t0.tv_nsec)) / 10000;
        cr_log_info("a hit takes %.0f ns on the host", ns);
#ifdef COUNTED /* no sanitizer */
        cr_assert_lt(ns, 20000);
#endif
    }
    fa_context_driver(ctx)->cuCtxSetCurrent(NULL);
#ifdef COUNTED
    void *volatile counted = malloc(1);
    free(counted);
    cr_assert_eq(allocations, 1, "the counter counts");
#endif
}

Test(runtime_launch, one_kernel_serves_all_run_time_values)
{
    fa_args a = good();
    a.mask = FA_MASK_WINDOW;
    a.window_left = 20; /* the keys of all windows below: their number is of the bucket */
    OK(fa_launch(ctx, &a, NULL));
    long loads = fake_calls("cuLibraryLoadData");
    for (int i = 1; i < 20; i++) {
        a.b = 1 + i % 2;
        a.sq = 128 + i;
        a.sk = 256 + 3 * i;
        a.window_left = i;
        a.window_right = 20 - i;
        a.scale = 0.1f * (float)i;
        a.diagonal = i % 3;
        a.offset = -i;
        OK(fa_launch(ctx, &a, NULL));
    }
    cr_assert_leq(fake_calls("cuLibraryLoadData"), loads + 1, "at most one more tile for a neighbouring bucket");
}

Test(runtime_launch, capture)
{
    fa_args a = good(), b = good();
    fa_problem p = FA_PROBLEM_INIT;
    b.mask = FA_MASK_CAUSAL;
    OK(fa_launch(ctx, &a, NULL));
    fake_capturing(true);
    long loads = fake_calls("cuLibraryLoadData"), launches = fake_calls("cuLaunchKernel");
    OK(fa_launch(ctx, &a, NULL));
    cr_assert_eq(fa_launch(ctx, &b, NULL), FA_CAPTURE);
    cr_assert(strstr(fa_last_error(), "fa_prepare"), "%s", fa_last_error());
    cr_assert_eq(fake_calls("cuLibraryLoadData"), loads);
    cr_assert_eq(fake_calls("cuLaunchKernel"), launches + 1);
    fake_capturing(false);
    p.dtype = b.dtype;
    p.d = b.d;
    p.mask = b.mask;
    p.b = b.b, p.hq = b.hq, p.hkv = b.hkv, p.sq = b.sq, p.sk = b.sk;
    OK(fa_prepare(ctx, &p));
    OK(fa_prepare(ctx, &p));
    fake_capturing(true);
    OK(fa_launch(ctx, &b, NULL));
    fake_fail("cuStreamIsCapturing", 1, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    a.d = 32;
    cr_assert_eq(fa_launch(ctx, &a, NULL), FA_CAPTURE, "the legacy stream while another is captured");
}

Test(runtime_launch, contexts_are_the_callers)
{
    const cu_driver *d = fa_context_driver(ctx);
    fa_args a = good();
    CUcontext now;
    OK(fa_launch(ctx, &a, NULL));
    d->cuCtxGetCurrent(&now);
    cr_assert_null(now, "what was current is current again");
    d->cuCtxSetCurrent(fake_context(1)); /* another device: ours is pushed for the call */
    OK(fa_launch(ctx, &a, NULL));
    cr_assert_eq(fake_last().context, fake_context(0));
    d->cuCtxGetCurrent(&now);
    cr_assert_eq(now, fake_context(1));
    d->cuCtxSetCurrent(fake_context(0));
    long pushes = fake_calls("cuCtxPushCurrent");
    OK(fa_launch(ctx, &a, NULL));
    cr_assert_eq(fake_calls("cuCtxPushCurrent"), pushes);
    d->cuCtxSetCurrent(NULL);
    cr_assert_eq(fake_calls("cuDevicePrimaryCtxRetain"), 1);
}

Test(runtime_launch, a_current_context_is_not_retained_again)
{
    fa_context *second;
    fa_options o = FA_OPTIONS_INIT;
    o.cache_dir = "";
    fa_context_driver(ctx)->cuCtxSetCurrent(fake_context(1));
    OK(fa_create_on(&second, &o, fa_context_driver(ctx), -1));
    cr_assert_str_eq(fa_context_arch(second)->chip, "Fake 1");
    cr_assert_eq(fake_retained(1), 0);
    fa_destroy(second);
    fa_context_driver(ctx)->cuCtxSetCurrent(NULL);
}

Test(runtime_launch, driver_errors_are_told_and_leave_no_trace)
{
    static const char *const points[] = { "cuCtxPushCurrent",     "cuStreamIsCapturing", "cuLibraryLoadData", "cuLibraryGetKernel",
                                          "cuKernelSetAttribute", "cuKernelGetFunction", "cuLaunchKernel" };
    fa_args a = good();
    CUcontext now;
    fa_context *suite = ctx;
    fa_options o = FA_OPTIONS_INIT;
    o.cache_dir = ""; /* with one, an image that is refused is compiled once more */
    OK(fa_create_on(&ctx, &o, fa_context_driver(suite), 0));
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        fake_fail(points[i], 1, CUDA_ERROR_UNKNOWN);
        cr_expect_eq(fa_launch(ctx, &a, NULL), FA_DEVICE, "%s", points[i]);
        cr_expect(strstr(fa_last_error(), points[i]), "%s: %s", points[i], fa_last_error());
        fa_context_driver(ctx)->cuCtxGetCurrent(&now);
        cr_expect_null(now, "%s", points[i]);
    }
    fake_fail("cuLaunchKernel", 1, CUDA_ERROR_OUT_OF_MEMORY);
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_NOMEM);
    OK(fa_launch(ctx, &a, NULL));
    fa_destroy(ctx);
    ctx = suite;
}

Test(runtime_launch, the_nth_call_fails_for_every_n)
{
    fa_args a = good();
    const fa_status fine[] = { FA_OK, FA_DEVICE, FA_NOMEM, FA_NO_DRIVER };
    for (int n = 1; n < 60; n++) {
        fa_options o = FA_OPTIONS_INIT;
        fa_context *c;
        const cu_driver *d = fa_context_driver(ctx);
        o.cache_dir = scratch;
        fake_fail(NULL, n, CUDA_ERROR_UNKNOWN);
        fa_status st = fa_create_on(&c, &o, d, 0);
        if (st == FA_OK)
            st = fa_launch(c, &a, NULL);
        bool known = false;
        for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
            known = known || st == fine[i];
        cr_expect(known, "call %d: %s %s", n, fa_status_name(st), fa_last_error());
        fake_fail(NULL, 0, CUDA_SUCCESS);
        fa_destroy(c);
    }
    cr_assert_eq(fake_live_libraries(), 0);
    cr_assert_eq(fake_retained(0), 1, "that of the suite's own context");
}

Test(runtime_launch, grids_too_large_are_refused)
{
    fa_args a = good();
    a.hq = a.hkv = 65536;
    a.sq = 1 << 26;
    a.sk = 1;
    a.b = 1;
    a.d = 8;
    a.q.sh = a.q.ss = 0, a.q.sb = 1, a.flags = FA_BROADCAST;
    a.o.ptr = (void *)(uintptr_t)0x1000000000000;
    a.lse = NULL;
    cr_assert_neq(fa_launch(ctx, &a, NULL), FA_OK);
    cr_assert(strstr(fa_last_error(), "blocks"), "%s", fa_last_error());
    cr_assert_eq(fake_calls("cuLaunchKernel"), 0);
}

Test(runtime_launch, named_configs_and_winners)
{
    fa_args a = good();
    fa_problem p;
    fa_problem raw = FA_PROBLEM_INIT;
    raw.dtype = a.dtype, raw.d = a.d, raw.b = a.b, raw.hq = a.hq, raw.hkv = a.hkv, raw.sq = a.sq, raw.sk = a.sk;
    OK(fa_problem_normalize(&p, &raw));
    fa_selection first;
    OK(fa_select(ctx, &p, &first, NULL));
    fa_config other = first.config;
    cr_assert(fa_config_set(&other, "lag", fa_config_get(&other, "lag", 0) ? 0 : 8));
    const fa_plan *plan;
    OK(fa_plan_make(ctx, &p, &other, NULL, &plan));
    OK(fa_plan_launch(ctx, plan, &a, NULL));
    CUfunction f = fake_last().f;
    OK(fa_launch(ctx, &a, NULL));
    cr_assert_neq(fake_last().f, f, "a plan is not used before it is told");
    cr_assert(fa_plan_use(ctx, plan));
    OK(fa_launch(ctx, &a, NULL));
    cr_assert_eq(fake_last().f, f);
    a.d = 32;
    cr_assert_eq(fa_plan_launch(ctx, plan, &a, NULL), FA_INVALID);
    a.d = 64;
    a.q.ptr = (char *)a.q.ptr + 2;
    cr_assert_eq(fa_plan_launch(ctx, plan, &a, NULL), FA_INVALID);
    cr_assert(strstr(fa_last_error(), "align is 2; accepted by this plan: 16"), "%s", fa_last_error());
}

Test(runtime_launch, workspace_of_the_naive_family)
{
    fa_args a = good();
    fa_problem p, raw = FA_PROBLEM_INIT;
    fa_config c;
    const fa_plan *plan;
    size_t bytes = 1;
    raw.dtype = a.dtype, raw.d = a.d;
    OK(fa_problem_normalize(&p, &raw));
    OK(fa_config_parse(&c, "naive:tile=64"));
    OK(fa_plan_make(ctx, &p, &c, NULL, &plan));
    OK(fa_plan_workspace(ctx, plan, &a, &bytes));
    cr_assert_eq(bytes, FA_WORKSPACE_COUNTERS + 4u * 2 * 8 * 128 * 256);
    cr_assert_eq(fa_plan_launch(ctx, plan, &a, NULL), FA_INVALID);
    cr_assert(strstr(fa_last_error(), "workspace_size"));
    a.workspace = AT(6);
    a.workspace_size = bytes;
    long before = fake_calls("cuLaunchKernel");
    OK(fa_plan_launch(ctx, plan, &a, NULL));
    cr_assert_eq(fake_calls("cuLaunchKernel") - before, 3);
    a.sk = 0;
    OK(fa_plan_launch(ctx, plan, &a, NULL));
    cr_assert_eq(fake_calls("cuLaunchKernel") - before, 5, "no scores to compute");
    OK(fa_workspace_size(ctx, &a, &bytes));
    cr_assert_eq(bytes, 0);
}

static void *launch_some(void *arg)
{
    int me = *(int *)arg;
    static const int masks[] = { FA_MASK_NONE, FA_MASK_CAUSAL, FA_MASK_WINDOW };
    for (int i = 0; i < 60; i++) {
        fa_args a = good();
        a.mask = masks[(i + me) % 3];
        if (fa_launch(ctx, &a, NULL) != FA_OK || fake_last().params.q != (uint64_t)(uintptr_t)AT(1))
            abort();
        a.d = -me - 1;
        if (fa_launch(ctx, &a, NULL) != FA_INVALID)
            abort();
        char expect[32];
        snprintf(expect, sizeof expect, "d is %d;", -me - 1);
        if (!strstr(fa_last_error(), expect))
            abort();
    }
    return NULL;
}

Test(runtime_launch, eight_threads_build_each_kernel_once)
{
    pthread_t t[8];
    int id[8];
    for (int i = 0; i < 8; i++) {
        id[i] = i;
        pthread_create(&t[i], NULL, launch_some, &id[i]);
    }
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    cr_assert_eq(atomic_load(&compiled), 3);
    cr_assert_eq(fake_calls("cuLibraryLoadData"), 3);
    cr_assert_eq(fake_calls("cuLaunchKernel"), 8 * 60);
}

Test(runtime_launch, explain)
{
    fa_args a = good();
    char before[8192], after[8192], cut[20];
    OK(fa_explain(ctx, NULL, &a, before, sizeof before));
    cr_assert_eq(fake_calls("cuLibraryLoadData"), 0);
    cr_assert(strstr(before, "the model's best of") && strstr(before, "not compiled yet") && strstr(before, "Fake 0"), "%s", before);
    OK(fa_launch(ctx, &a, NULL));
    OK(fa_explain(ctx, NULL, &a, after, sizeof after));
    cr_assert(strstr(after, "loaded, from the compiler"), "%s", after);
    char *config = strstr(before, "config"), *end = strchr(config, '\n');
    *end = 0;
    cr_assert(strstr(after, config), "%s is not what ran: %s", config, after);
    OK(fa_explain(ctx, NULL, &a, cut, sizeof cut));
    cr_assert_eq(strlen(cut), sizeof cut - 1);
    size_t need = 0, none = 0;
    OK(fa_explain_size(ctx, NULL, &a, &need));
    OK(fa_explain(ctx, NULL, &a, after, sizeof after));
    cr_assert_eq(need, strlen(after) + 1, "the whole text with its NUL");
    memset(before, 'x', sizeof before);
    OK(fa_explain(ctx, NULL, &a, before, need));
    cr_assert(strcmp(before, after) == 0 && before[need] == 'x', "%s", before);
    OK(fa_explain(ctx, NULL, &a, before, need - 1));
    cr_assert_eq(strlen(before), need - 2, "one byte less cuts");
    a.dtype = 99;
    cr_assert_eq(fa_explain_size(ctx, NULL, &a, &none), FA_INVALID);
    a = good();
    a.b = 0;
    OK(fa_explain(ctx, NULL, &a, cut, sizeof cut));
    cr_assert(strstr(cut, "nothing"));
}

/* A record of a config that no template has any more: it is tried first, passed over, and tells nothing of itself. */
static void plant_a_stale_record(fa_store *store)
{
    fa_problem raw = FA_PROBLEM_INIT;
    fa_record r = { .how = FA_MEASURED, .verified = true, .seconds = 1e-9 };
    raw.dtype = FA_BF16, raw.d = 64, raw.b = 2, raw.hq = 8, raw.hkv = 4, raw.sq = 128, raw.sk = 256;
    OK(fa_problem_normalize(&r.problem, &raw));
    OK(fa_config_parse(&r.config, "no_such_family:br=64"));
    snprintf(r.chip, sizeof r.chip, "Fake 0");
    snprintf(r.arch, sizeof r.arch, "sm_80");
    snprintf(r.version, sizeof r.version, "%s", FA_VERSION_STRING);
    snprintf(r.date, sizeof r.date, "2026-11-22T00:00:00Z");
    fa_record_append(store, &r);
}

Test(runtime_launch, the_last_error_is_that_of_a_call_that_failed)
{
    fa_args a = good();
    fa_context *second;
    fa_options o = FA_OPTIONS_INIT;
    fa_problem p = FA_PROBLEM_INIT;
    char text[4096];
    size_t bytes;
    o.cache_dir = scratch;
    p.dtype = a.dtype, p.d = a.d, p.b = a.b, p.hq = a.hq, p.hkv = a.hkv, p.sq = a.sq, p.sk = a.sk;
    plant_a_stale_record(ctx->store);
    cr_assert_str_empty(fa_last_error());
    OK(fa_supported(ctx, &p));
    OK(fa_workspace_size(ctx, &a, &bytes));
    OK(fa_explain(ctx, NULL, &a, text, sizeof text));
    OK(fa_explain_size(ctx, NULL, &a, &bytes));
    cr_assert_str_empty(fa_last_error());
    OK(fa_launch(ctx, &a, NULL)); /* compiled: it lies in the cache from now on */
    cr_assert_str_empty(fa_last_error());
    OK(fa_create_on(&second, &o, fa_context_driver(ctx), 0));
    fake_fail("cuLibraryLoadData", 1, CUDA_ERROR_INVALID_IMAGE); /* the cached kernel is refused, and compiled again */
    OK(fa_prepare(second, &p));
    OK(fa_launch(second, &a, NULL));
    cr_assert_str_empty(fa_last_error(), "%s", fa_last_error());
    a.dtype = 99;
    cr_assert_eq(fa_launch(second, &a, NULL), FA_INVALID);
    snprintf(text, sizeof text, "%s", fa_last_error());
    cr_assert(strstr(text, "dtype is 99"));
    a = good();
    a.d = 72; /* a miss, whose record is passed over too */
    OK(fa_launch(second, &a, NULL));
    fa_destroy(second);
    cr_assert_str_eq(fa_last_error(), text, "calls that succeed leave the message of the one that failed");
}
