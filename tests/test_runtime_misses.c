/* What a launch does that finds no kernel of its bucket. */
#include "gen/bucket.h"
#include "runtime/choose/jit.h"
#include "test_hit_counts.h"
#include "test_misses.h"
#include <sys/wait.h>

TestSuite(runtime_misses, .init = open_nearest, .fini = close_nearest, .timeout = 200);

Test(runtime_misses, the_option_is_checked)
{
    fa_context *none;
    for (int v = -1; v <= 3; v += 4) {
        fa_options o = FA_OPTIONS_INIT;
        char says[64];
        o.on_miss = v;
        cr_expect_eq(fa_create_on(&none, &o, fa_context_driver(ctx), 0), FA_INVALID);
        snprintf(says, sizeof says, "on_miss is %d; accepted: FA_MISS_COMPILE (0)", v);
        cr_expect(strstr(fa_last_error(), says), "%s", fa_last_error());
    }
    fa_options o = FA_OPTIONS_INIT;
    o.check_device_data = 2;
    cr_expect_eq(fa_create_on(&none, &o, fa_context_driver(ctx), 0), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "check_device_data is 2"), "%s", fa_last_error());
    o.size = offsetof(fa_options, on_miss); /* of an older header */
    OK(fa_create_on(&none, &o, fa_context_driver(ctx), 0));
    fa_destroy(none);
}

Test(runtime_misses, the_nearest_kernel_runs_while_the_better_one_is_compiled)
{
    char config[512];
    OK(prepared(512));
    CUfunction first = launched(512);
    shut_gate();
    cr_expect(tells(1024, "table      nearest: the kernel above, prepared for bf16,d=64") && tells(1024, "sq=512,sk=512, runs until") &&
                  tells(1024, ": the next launch asks for it\n"),
              "%s", explained(1024));
    cr_assert_eq(launched(1024), first);
    int gate = meet(); /* the launch is back, and the compile is not */
    cr_expect_eq(compiles(), 2);
    fa_jit_config(ctx, &other, config, sizeof config);
    cr_expect(tells(1024, "sq=512,sk=512, runs until") && tells(1024, config) && tells(1024, ": is being compiled\n"), "%s",
              explained(1024));
    for (int i = 0; i < 10; i++)
        cr_expect_eq(launched(1024), first);
    fa_args a = call(1100, 900);
    a.lse = AT(5); /* the bucket is asked for once, whatever lies in it */
    OK(fa_launch(ctx, &a, NULL));
    cr_expect_eq(fake_last().f, first);
    cr_expect(fake_last().grid > 0 && fake_last().block > 0);
    let(gate, '.');
    await(1024, FA_JOB_DONE);
    CUfunction better = launched(1024);
    cr_expect_neq(better, first);
    cr_expect_eq(launched(1100), better);
    cr_expect_eq(launched(512), first);
    cr_expect(tells(1024, "table      hit: prepared in the background") && tells(1024, config) && !tells(1024, "better "), "%s",
              explained(1024));
    cr_expect(tells(512, "table      hit: prepared\n"), "%s", explained(512));
    OK(prepared(1024));
    cr_expect_eq(compiles(), 2);
    cr_expect_eq(errors, 0);
}

/* A launch that runs the nearest kernel is a hit after the first, and so is one that runs the better. */
Test(runtime_misses, a_hit_is_a_hit)
{
    OK(prepared(512));
    shut_gate();
    launched(1024);
    int gate = meet();
    for (int round = 0; round < 2; round++) {
        fa_args a = call(1024, 1024);
        OK(fa_launch(ctx, &a, NULL));
        long before = fake_calls(NULL), launches = fake_calls("cuLaunchKernel");
        allocations = locks = lookups = 0;
        for (int i = 0; i < 1000; i++)
            if (fa_launch(ctx, &a, NULL) != FA_OK)
                abort();
        long a0 = allocations, l0 = locks, e0 = lookups;
        cr_expect(a0 == 0 && l0 == 0 && e0 == 0, "%ld allocations, %ld locks, %ld look-ups", a0, l0, e0);
        cr_expect_eq(fake_calls("cuLaunchKernel") - launches, 1000);
        cr_expect_leq(fake_calls(NULL) - before, 5000, "current, device, push, launch, pop");
        if (!round) {
            let(gate, '.');
            await(1024, FA_JOB_DONE);
        }
    }
}

/* Nothing is loaded by the call, and what the thread loads spoils nobody's capture. */
Test(runtime_misses, under_capture)
{
    fa_args a = call(512, 512);
    fake_capturing(true);
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_CAPTURE, "nothing is prepared that could run");
    fake_capturing(false);
    CUfunction first = launched(512);
    shut_gate();
    fake_capturing(true);
    long loads = fake_calls("cuLibraryLoadData"), asked = fake_calls("cuStreamIsCapturing");
    cr_expect_eq(launched(1024), first);
    int gate = meet();
    cr_expect_eq(fake_calls("cuLibraryLoadData"), loads);
    cr_expect_eq(fake_calls("cuStreamIsCapturing"), asked);
    cr_expect_eq(fake_capture_mode(), CU_STREAM_CAPTURE_MODE_RELAXED);
    cr_expect_eq(launched(1024), first);
    a.mask = FA_MASK_CAUSAL;
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_CAPTURE, "another class");
    let(gate, '.');
    await(1024, FA_JOB_DONE);
    cr_expect_neq(launched(1024), first);
}

Test(runtime_misses, where_nothing_is_prepared_it_is_compiled_in_the_call)
{
    launched(512);
    cr_expect_eq(compiles(), 1);
    cr_expect_not(ctx->background->running);
    fa_args a = call(1024, 1024);
    a.mask = FA_MASK_CAUSAL;
    OK(fa_launch(ctx, &a, NULL));
    cr_expect_eq(compiles(), 2);
    cr_expect_not(ctx->background->running);
}

Test(runtime_misses, fail)
{
    char says[256];
    fa_destroy(ctx);
    open_with(FA_MISS_FAIL);
    fa_args a = call(512, 512);
    fa_problem p = problem(512, 512);
    size_t bytes = 1;
    for (int capturing = 0; capturing < 2; capturing++) {
        fake_capturing(capturing);
        cr_expect_eq(fa_launch(ctx, &a, NULL), FA_NO_KERNEL);
        fa_problem_print(says, sizeof says, &p);
        cr_expect(strstr(fa_last_error(), says) && strstr(fa_last_error(), "fa_prepare()"), "%s", fa_last_error());
    }
    fake_capturing(false);
    cr_expect(tells(512, "table      miss: FA_NO_KERNEL"), "%s", explained(512));
    OK(fa_workspace_size(ctx, &a, &bytes));
    OK(fa_supported(ctx, &p));
    cr_expect(compiles() == 0 && fake_calls("cuLibraryLoadData") == 0);
    OK(prepared(512));
    OK(fa_launch(ctx, &a, NULL));
    cr_expect(tells(512, "table      hit: prepared\n"), "%s", explained(512));
    a = call(1024, 1024);
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_NO_KERNEL, "a kernel that could run it is prepared, and is not what was asked for");
    cr_expect_eq(compiles(), 1);
}

Test(runtime_misses, compile_is_as_ever)
{
    fa_destroy(ctx);
    open_with(FA_MISS_COMPILE);
    CUfunction first = launched(512);
    cr_expect(tells(1024, "table      miss: the first launch prepares this kernel"), "%s", explained(1024));
    cr_expect_neq(launched(1024), first);
    cr_expect_eq(compiles(), 2);
    cr_expect_not(ctx->background->running);
}

Test(runtime_misses, a_compile_that_fails_is_told_and_not_repeated)
{
    char before[2048];
    CUfunction first = launched(512);
    shut_gate();
    snprintf(before, sizeof before, "%s", fa_last_error());
    cr_expect_eq(launched(1024), first);
    let(meet(), 'f');
    await(1024, FA_JOB_FAILED);
    open_gate();
    cr_expect(tells(1024, "better "), "%s", explained(1024));
    cr_expect_str_eq(fa_last_error(), before, "this thread's calls have all succeeded");
    cr_expect(tells(1024, "sq=512,sk=512, runs until") && tells(1024, ": failed, and only fa_prepare() tries again: flash_fwd_mma"), "%s",
              explained(1024));
    for (int i = 0; i < 100; i++)
        cr_expect_eq(launched(1024), first);
    launched(2048); /* `own`, which is loaded: when this job is done, another for 1024 would have been before it */
    await(2048, FA_JOB_DONE);
    cr_expect(compiles() == 2 && errors == 1 && refusals == 1, "%d compiles, %d errors, %d told", compiles(), errors, refusals);
    OK(prepared(1024));
    cr_expect_eq(compiles(), 3);
    cr_expect_neq(launched(1024), first);
    cr_expect(tells(1024, "table      hit: prepared\n"), "%s", explained(1024));
}

/* The driver fails under the thread, at each of its calls. */
Test(runtime_misses, a_driver_that_fails_under_the_thread)
{
    static const char *const points[] = { "cuCtxPushCurrent", "cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelSetAttribute",
                                          "cuKernelGetFunction" };
    CUfunction first = launched(512);
    fa_context_driver(ctx)->cuCtxSetCurrent(fake_context(0)); /* the launches below push nothing themselves */
    for (int i = 0; i < 5; i++) {
        fa_problem p = problem(2048 << i, 512);
        fa_args a = call(2048 << i, 512);
        fa_job job = { .state = FA_JOB_WAITING };
        fa_config c = variant(16 * (i + 1));
        record(&p, &c);
        shut_gate();
        if (i == 0) /* comes before the compile, and no call of this thread takes it */
            fake_fail(points[i], 1, CUDA_ERROR_UNKNOWN);
        OK(fa_launch(ctx, &a, NULL));
        cr_expect_eq(fake_last().f, first);
        if (i > 0) {
            int gate = meet();
            fake_fail(points[i], 1, CUDA_ERROR_UNKNOWN);
            let(gate, '.');
        }
        while (!job_of(&p, &job) || job.state < FA_JOB_DONE)
            sched_yield();
        cr_expect(job.state == FA_JOB_FAILED && strstr(job.error, points[i]), "%s: %d: %s", points[i], job.state, job.error);
        OK(fa_launch(ctx, &a, NULL));
        cr_expect_eq(fake_last().f, first);
        open_gate();
    }
    fa_context_driver(ctx)->cuCtxSetCurrent(NULL);
}

static void *launch_lengths(void *user)
{
    const CUfunction *first = user;
    for (int i = 0; i < 60; i++) {
        fa_args a = call(1024 << i % 3, 1024 << i % 3);
        if (fa_launch(ctx, &a, NULL) != FA_OK || (i % 3 != 1 && fake_last().f != *first))
            abort();
    }
    return NULL;
}

/* 1024 and 4096 want `other`, 2048 wants `own`, which is loaded. The gate is shut until all have launched. */
Test(runtime_misses, eight_threads_ask_once)
{
    pthread_t t[8];
    CUfunction first = launched(512);
    shut_gate();
    for (int i = 0; i < 8; i++)
        pthread_create(&t[i], NULL, launch_lengths, &first);
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    let(meet(), '.');
    for (int n = 1024; n <= 4096; n *= 2)
        await(n, FA_JOB_DONE);
    int jobs = 0;
    for (const fa_job *j = ctx->background->first; j; j = j->next)
        jobs++;
    cr_expect_eq(jobs, 3);
    cr_expect_eq(compiles(), 2);
    cr_expect_neq(launched(1024), first);
    cr_expect_eq(launched(4096), launched(1024));
    cr_expect_eq(launched(2048), first);
}

/* As fa_tune() does with its winner, while the thread compiles what was best before. */
Test(runtime_misses, a_winner_that_came_meanwhile_stays)
{
    const fa_plan *named;
    fa_problem p = problem(1024, 1024);
    fa_config c = variant(48);
    CUfunction first = launched(512);
    shut_gate();
    launched(1024);
    int gate = meet();
    open_gate();
    OK(fa_plan_make(ctx, &p, &c, "a test says so", &named));
    cr_assert(fa_plan_use(ctx, named));
    CUfunction winner = launched(1024);
    cr_expect_neq(winner, first);
    let(gate, '.');
    await(1024, FA_JOB_DONE);
    cr_expect_eq(launched(1024), winner);
    cr_expect_eq(compiles(), 3);
}

/* One is at the gate and FA_BACKGROUND_MOST wait; launches of further buckets run all the same. */
Test(runtime_misses, the_queue_is_bounded)
{
    CUfunction first = launched(512);
    int n = 0;
    shut_gate();
    launched(1024);
    int gate = meet();
    for (int q = 0; q < 9 && n < FA_BACKGROUND_MOST + 5; q++)
        for (int k = 11; k < 20 && n < FA_BACKGROUND_MOST + 5; k++, n++) {
            fa_args a = call(128 << q, 1 << k); /* more rows than decoding has */
            OK(fa_launch(ctx, &a, NULL));
            cr_assert_eq(fake_last().f, first);
        }
    cr_assert_eq(n, FA_BACKGROUND_MOST + 5);
    cr_expect_eq(ctx->background->waiting, FA_BACKGROUND_MOST);
    fa_args last = call(1 << 22, 128);
    static char text[8192];
    OK(fa_launch(ctx, &last, NULL));
    cr_assert_eq(fake_last().f, first);
    OK(fa_explain(ctx, NULL, &last, text, sizeof text));
    cr_expect(strstr(text, "the next launch asks for it"), "%s", text);
    open_gate();
    let(gate, '.');
    await(1024, FA_JOB_DONE);
    fa_problem p;
    fa_job job;
    OK(fa_problem_of(&last, &p));
    do /* asks again until there is room */
        OK(fa_launch(ctx, &last, NULL));
    while (!job_of(&p, &job));
}

static atomic_bool destroyed;

static void *destroy(void *user)
{
    fa_destroy(user);
    atomic_store(&destroyed, true);
    return NULL;
}

Test(runtime_misses, destroyed_while_it_compiles)
{
    pthread_t t;
    launched(512);
    shut_gate();
    launched(1024);
    int gate = meet();
    launched(4096);
    launched(2048); /* these are never begun */
    pthread_create(&t, NULL, destroy, ctx);
    for (bool stops = false; !stops; sched_yield()) {
        pthread_mutex_lock(&ctx->background->mutex);
        stops = ctx->background->stop;
        pthread_mutex_unlock(&ctx->background->mutex);
    }
    usleep(20000); /* room for a destroy that does not wait */
    cr_expect_not(atomic_load(&destroyed));
    let(gate, '.');
    pthread_join(t, NULL);
    cr_expect_eq(compiles(), 2);
    cr_expect_eq(fake_live_libraries(), 0);
    ctx = NULL;
}

/* The parent's thread is not in the child: its context is refused there, and let go of without a wait. */
Test(runtime_misses, forked_while_it_compiles)
{
    int status;
    CUfunction first = launched(512);
    shut_gate();
    launched(1024);
    int gate = meet();
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        fa_args a = call(1024, 1024);
        bool refused = fa_launch(ctx, &a, NULL) == FA_INVALID && fa_prepare_range(ctx, NULL, NULL, NULL) == FA_INVALID &&
                       strstr(fa_last_error(), "fork()");
        fa_destroy(ctx);
        _exit(refused ? 0 : 1);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%#x", (unsigned)status);
    let(gate, '.');
    await(1024, FA_JOB_DONE);
    cr_expect_neq(launched(1024), first);
}

/* The words that kernels count with belong to a CUDA context: the kernel is readied in that of the launch. */
Test(runtime_misses, the_thread_works_in_the_callers_context)
{
    launched(512);
    cr_expect_eq(fake_loaded_in(), fake_context(0));
    fa_context_driver(ctx)->cuCtxSetCurrent(fake_second_context(0));
    launched(1024);
    await(1024, FA_JOB_DONE);
    cr_expect_eq(fake_loaded_in(), fake_second_context(0));
    fa_context_driver(ctx)->cuCtxSetCurrent(NULL);
}

/* Which of the prepared kernels runs a call; index of `has`, -1 = none. */
static const struct {
    const char *what, *has[3], *call;
    int runs;
} nearest[] = {
    { "of several lengths the nearest",
      { "bf16,d=64,sq=512,sk=512", "bf16,d=64,sq=2048,sk=2048", "bf16,d=64,sq=16384,sk=16384" },
      "bf16,d=64,sq=4096,sk=4096",
      1 },
    { "of the same length the nearest batch",
      { "bf16,d=64,b=1,sq=512,sk=512", "bf16,d=64,b=64,sq=512,sk=512" },
      "bf16,d=64,b=16,sq=512,sk=512",
      1 },
    { "the own class before the own length",
      { "bf16,d=64,align=8,sq=512,sk=512", "bf16,d=64,sq=65536,sk=65536" },
      "bf16,d=64,sq=1024,sk=1024",
      1 },
    { "rows at multiples of less",
      { "bf16,d=64,align=4,sq=512,sk=512", "bf16,d=64,align=8,sq=65536,sk=65536" },
      "bf16,d=64,sq=1024,sk=1024",
      1 },
    { "but not of more", { "bf16,d=64,sq=512,sk=512" }, "bf16,d=64,align=8,sq=1024,sk=1024", -1 },
    { "another mask", { "bf16,d=64,mask=causal,sq=512,sk=512" }, "bf16,d=64,sq=1024,sk=1024", -1 },
    { "another type", { "fp16,d=64,sq=512,sk=512" }, "bf16,d=64,sq=1024,sk=1024", -1 },
    { "another head_dim", { "bf16,d=128,sq=512,sk=512", "bf16,d=64,dv=128,sq=512,sk=512" }, "bf16,d=64,sq=1024,sk=1024", -1 },
    { "another type of O", { "bf16,d=64,o=fp32,sq=512,sk=512" }, "bf16,d=64,sq=1024,sk=1024", -1 },
    { "of several windows the nearest",
      { "bf16,d=64,mask=window,window=64", "bf16,d=64,mask=window,window=4096" },
      "bf16,d=64,mask=window,window=1024",
      1 },
};

Test(runtime_misses, which_kernel_is_the_nearest)
{
    for (size_t i = 0; i < sizeof nearest / sizeof *nearest; i++) {
        fa_problem has, p;
        fa_destroy(ctx);
        open_with(FA_MISS_NEAREST);
        for (int k = 0; k < 3 && nearest[i].has[k]; k++) {
            OK(fa_problem_parse(&has, nearest[i].has[k]));
            OK(fa_prepare(ctx, &has));
        }
        OK(fa_problem_parse(&p, nearest[i].call));
        const fa_plan *plan = fa_miss_nearest(ctx, &p);
        cr_expect_eq(plan != NULL, nearest[i].runs >= 0, "%s", nearest[i].what);
        if (plan && nearest[i].runs >= 0) {
            OK(fa_problem_parse(&has, nearest[i].has[nearest[i].runs]));
            has = fa_problem_point(&has);
            cr_expect(fa_problem_same_class(&plan->problem, &has) && fa_problem_same_shape(&plan->problem, &has), "%s", nearest[i].what);
        }
        ctx->on_miss = FA_MISS_COMPILE;
        cr_expect_null(fa_miss_nearest(ctx, &p));
    }
}

/* Candidates of a tuning are plans too, and only the table's have been told to be used. */
Test(runtime_misses, what_is_no_candidate)
{
    fa_problem p = problem(512, 512), far = problem(4096, 4096);
    const fa_plan *plan, *fallback;
    OK(fa_plan_make(ctx, &p, &own, "a candidate", &plan));
    cr_expect_null(fa_miss_nearest(ctx, &far), "a plan that is not in the table");
    cr_assert_not_null(fallback = fa_plan_of_fallback(ctx, &p, plan));
    cr_assert_eq(fa_table_add(ctx->table, fallback), fallback);
    cr_expect_null(fa_miss_nearest(ctx, &far), "nor one with a fallback");
    cr_expect_eq(fa_table_add(ctx->table, fallback), fallback);
    cr_expect_eq(fa_table_add(ctx->table, plan), plan, "which a kernel of its own follows");
    cr_expect_eq(fa_table_add(ctx->table, fallback), plan, "and not the other way round");
    cr_expect_eq(fa_miss_nearest(ctx, &far), plan);
    fa_problem invariant = far, has = p;
    invariant.features = has.features = FA_FEATURE_BATCH_INVARIANT;
    const fa_plan *like;
    OK(fa_plan_of_kernel(ctx, &has, &own, NULL, plan->kernel, &like));
    cr_assert(fa_plan_use(ctx, like));
    cr_expect_null(fa_problem_hindrance(&like->problem, true, &invariant));
    cr_expect_null(fa_miss_nearest(ctx, &invariant), "its bits would depend on what was prepared");
}

/* The naive algorithm, which keeps scores in memory, is the best at 2048. */
static void size_workspace(int near, int n)
{
    fa_config naive;
    fa_problem p = problem(2048, 2048);
    fa_args a = call(n, n), b = a;
    size_t bytes = 0, after = 1, scores = FA_WORKSPACE_COUNTERS + (size_t)4 * 8 * (size_t)n * (size_t)n;
    OK(fa_config_parse(&naive, "naive:tile=64"));
    fa_record r = { .problem = p, .config = naive, .how = FA_MEASURED, .seconds = 1e-9, .verified = true, .version = FA_VERSION_STRING };
    snprintf(r.chip, sizeof r.chip, "%s", fa_context_arch(ctx)->chip);
    snprintf(r.arch, sizeof r.arch, "%s", fa_context_arch(ctx)->name);
    cr_assert(fa_record_append(fa_context_store(ctx), &r));
    OK(prepared(near));
    OK(fa_workspace_size(ctx, &a, &bytes));
    cr_expect_eq(bytes, scores, "%zu, %zu", bytes, scores);
    shut_gate();
    OK(fa_launch(ctx, &a, NULL));
    OK(fa_workspace_held(ctx, &bytes));
    cr_expect_eq(bytes, near == 2048 ? (scores + 65535) / 65536 * 65536 : 0, "the nearest one's need is lent");
    bytes = scores;
    b.workspace = AT(6);
    b.workspace_size = bytes;
    int gate = meet();
    OK(fa_launch(ctx, &b, NULL));
    OK(fa_workspace_size(ctx, &a, &bytes));
    cr_expect_eq(bytes, scores, "while it is compiled: %zu, %zu", bytes, scores);
    let(gate, '.');
    await(n, FA_JOB_DONE);
    OK(fa_launch(ctx, &b, NULL));
    OK(fa_workspace_size(ctx, &a, &after));
    cr_expect_eq(after, n == 2048 ? scores : 0, "%zu", after);
}

Test(runtime_misses, the_workspace_holds_what_the_nearest_kernel_needs)
{
    size_workspace(2048, 128);
}

Test(runtime_misses, the_workspace_holds_what_the_better_kernel_needs)
{
    size_workspace(128, 2048);
}

Test(runtime_misses, a_bundle_alone_has_nothing_to_compile)
{
    fa_options o = FA_OPTIONS_INIT;
    fa_args a = call(512, 512);
    fa_destroy(ctx);
    o.bundle_only = 1;
    o.on_miss = FA_MISS_NEAREST;
    OK(fa_create_on(&ctx, &o, fake_driver(), 0));
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_NO_KERNEL);
    cr_expect(strstr(fa_last_error(), "no bundle has a kernel"), "%s", fa_last_error());
}
