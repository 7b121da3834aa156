/* Workspaces that a context lends, on a driver that only remembers: who shares one, what it costs, and when it goes. */
#include "runtime/launch/lease.h"
#include "test_hit_counts.h"
#include "test_misses.h"

static void open_context(void)
{
    open_nearest();
    fa_destroy(ctx);
    open_with(FA_MISS_COMPILE);
}

static void close_context(void)
{
    close_nearest();
    cr_assert_eq(fake_live_memory(), 0);
}

TestSuite(runtime_lease, .init = open_context, .fini = close_context, .timeout = 100);

#define STREAM(n) ((fa_stream)(uintptr_t)(0x9000 + 16 * (n)))
enum { HEADS = 8, UNIT = FA_WORKSPACE_COUNTERS };

/* The naive algorithm is the best from n = 1792 to 2048, two buckets: its scores lie in the workspace, so that any length needs another
 * size. */
static void prefer_scores_under(fa_mask mask)
{
    fa_config naive;
    OK(fa_config_parse(&naive, "naive:tile=64"));
    for (int n = 1792; n <= 2048; n += 256) {
        fa_problem p = problem(n, n);
        p.mask = mask;
        fa_record r = {
            .problem = p, .config = naive, .how = FA_MEASURED, .seconds = 1e-9, .verified = true, .version = FA_VERSION_STRING
        };
        snprintf(r.chip, sizeof r.chip, "%s", fa_context_arch(ctx)->chip);
        snprintf(r.arch, sizeof r.arch, "%s", fa_context_arch(ctx)->name);
        cr_assert(fa_record_append(fa_context_store(ctx), &r));
    }
}

static void prefer_scores(void)
{
    prefer_scores_under(FA_MASK_NONE);
}

static size_t need_of(int n)
{
    return UNIT + (size_t)4 * HEADS * (size_t)n * (size_t)n;
}

static size_t rounded(size_t bytes)
{
    return (bytes + UNIT - 1) / UNIT * UNIT;
}

static size_t held(void)
{
    size_t bytes = 1;
    OK(fa_workspace_held(ctx, &bytes));
    return bytes;
}

/* The address that this thread's last launch was given of what the fake driver allocated; 0 = none. */
static uint64_t lent(void)
{
    fake_launch l = fake_last();
    for (size_t i = 0; i + 8 <= sizeof l.bytes; i += 8) {
        uint64_t word;
        memcpy(&word, l.bytes + i, 8);
        if (word >= 0x7000000000 && word < 0x8000000000)
            return word;
    }
    return 0;
}

/* A launch of n queries and keys without a workspace, and which it got. */
static uint64_t on(fa_stream stream, int n)
{
    fa_args a = call(n, n);
    OK(fa_launch(ctx, &a, stream));
    cr_assert_neq(lent(), 0);
    return lent();
}

static long made(void)
{
    return fake_calls("cuMemAlloc") + fake_calls("cuMemAllocAsync");
}

Test(runtime_lease, the_kernel_is_that_of_a_call_with_a_workspace)
{
    fa_args with = call(1, 4096), none = with;
    char text[8192];
    OK(fa_workspace_size(ctx, &with, &with.workspace_size));
    cr_assert_gt(with.workspace_size, 0, "keys of one query are split");
    with.workspace = AT(6);
    OK(fa_launch(ctx, &none, STREAM(1)));
    CUfunction f = fake_last().f;
    unsigned grid = fake_last().grid;
    cr_expect_neq(lent(), 0);
    OK(fa_launch(ctx, &with, STREAM(1)));
    cr_expect(fake_last().f == f && fake_last().grid == grid);
    cr_expect_eq(lent(), 0, "the caller's is taken");
    cr_expect_eq(plans(), 1, "one class");
    cr_expect_eq(held(), rounded(with.workspace_size));
    OK(fa_explain(ctx, NULL, &none, text, sizeof text));
    cr_expect(strstr(text, "which the context lends to launches that bring none\n") && strstr(text, "table      hit: prepared\n"), "%s",
              text);
    cr_expect_eq(lacks, 0);
}

Test(runtime_lease, a_hit_is_a_hit)
{
    fa_args a = call(1, 4096);
    for (int captured = 0; captured < 2; captured++) {
        fake_capturing(captured);
        OK(fa_launch(ctx, &a, STREAM(1)));
        uint64_t at = lent();
        long before = fake_calls(NULL), memory = made(), fills = fake_calls("cuMemsetD32Async");
        allocations = locks = lookups = 0;
        for (int i = 0; i < 1000; i++)
            if (fa_launch(ctx, &a, STREAM(1)) != FA_OK || lent() != at)
                abort();
        long a0 = allocations, l0 = locks, e0 = lookups;
        cr_expect(a0 == 0 && l0 == 0 && e0 == 0, "%ld allocations, %ld locks, %ld look-ups", a0, l0, e0);
        cr_expect(made() == memory && fake_calls("cuMemsetD32Async") == fills);
        cr_expect_leq(fake_calls(NULL) - before, 7000, "current, device, push, stream, capture, launch, pop");
    }
    fake_capturing(false);
}

/* Nothing is asked and nothing lent where the call brings a workspace, or the kernel needs none. */
Test(runtime_lease, a_hit_that_needs_nothing)
{
    fa_args lent_one = call(1, 4096), brings = lent_one, needs_none = call(512, 512);
    const fa_args *const calls[] = { &needs_none, &brings, &lent_one };
    long cost[3];
    OK(fa_workspace_size(ctx, &needs_none, &needs_none.workspace_size));
    cr_assert_eq(needs_none.workspace_size, 0);
    OK(fa_workspace_size(ctx, &brings, &brings.workspace_size));
    brings.workspace = AT(6);
    for (int i = 0; i < 3; i++) {
        OK(fa_launch(ctx, calls[i], STREAM(1)));
        cr_expect_eq(held() != 0, i == 2);
        long before = fake_calls(NULL), ids = fake_calls("cuStreamGetId");
        allocations = locks = lookups = 0;
        for (int n = 0; n < 100; n++)
            OK(fa_launch(ctx, calls[i], STREAM(1)));
        long a0 = allocations, l0 = locks, e0 = lookups;
        cr_expect(a0 == 0 && l0 == 0 && e0 == 0, "%ld allocations, %ld locks, %ld look-ups", a0, l0, e0);
        cost[i] = fake_calls(NULL) - before;
        cr_expect_eq(fake_calls("cuStreamGetId") - ids, i == 2 ? 100 : 0);
    }
    cr_expect_leq(cost[0], 100 * 5, "%ld: current, device, push, launch, pop", cost[0]);
    cr_expect_eq(cost[1] % 100, 0, "%ld", cost[1]);
    cr_expect_eq(cost[2] - cost[1], 2 * 100, "%ld, %ld: stream, capture", cost[1], cost[2]);
}

Test(runtime_lease, counters_are_zeroed_once)
{
    fa_args a = call(1, 4096);
    OK(fa_launch(ctx, &a, STREAM(1)));
    fake_fill f = fake_filled();
    cr_expect(f.at == lent() && f.value == 0 && f.words == UNIT / 4 && f.stream == (CUstream)STREAM(1));
    cr_expect_eq(fake_calls("cuMemsetD32Async"), 1);
    fake_fail("cuLaunchKernel", 1, CUDA_ERROR_UNKNOWN);
    cr_expect_eq(fa_launch(ctx, &a, STREAM(1)), FA_DEVICE);
    OK(fa_launch(ctx, &a, STREAM(1)));
    cr_expect_eq(fake_calls("cuMemsetD32Async"), 2, "what a launch left that failed");
    OK(fa_launch(ctx, &a, STREAM(1)));
    cr_expect_eq(fake_calls("cuMemsetD32Async"), 2);
    cr_expect_eq(made(), 1);
    fake_capturing(true);
    OK(fa_launch(ctx, &a, STREAM(1)));
    cr_expect(fake_filled().at == lent() && fake_filled().stream != (CUstream)STREAM(1), "no node of the graph");
    cr_expect_eq(fake_calls("cuStreamSynchronize"), 1, "and before any replay");
    fake_capturing(false);
}

/* A stream's workspace grows in its order; a device without memory pools waits for the stream. */
Test(runtime_lease, growth)
{
    for (int pools = 0; pools < 2; pools++) {
        fa_destroy(ctx);
        open_with(FA_MISS_COMPILE);
        fake_pools(pools);
        prefer_scores();
        uint64_t small = on(STREAM(1), 1800);
        cr_expect_eq(held(), rounded(need_of(1800)));
        cr_expect_eq(on(STREAM(1), 1795), small, "a smaller call");
        uint64_t large = on(STREAM(1), 2000);
        cr_expect_neq(large, small);
        cr_expect_eq(held(), rounded(need_of(1800)) + (64 << 20), "and room for more");
        cr_expect_eq(on(STREAM(1), 2048), large);
        cr_expect_eq(on(STREAM(1), 1800), large);
        cr_expect_eq(fake_live_bytes(), held(), "the old one is gone");
        cr_expect_eq(fake_calls("cuMemAllocAsync"), 2 * pools);
        cr_expect_eq(fake_calls("cuMemFreeAsync"), pools);
        cr_expect_eq(fake_calls("cuStreamSynchronize"), !pools);
        cr_expect_eq(made(), 2);
        OK(fa_workspace_release(ctx, NULL));
        cr_expect(held() == 0 && fake_live_bytes() == 0);
        on(STREAM(1), 1800);
    }
}

Test(runtime_lease, each_stream_thread_and_cuda_context_has_its_own)
{
    const cu_driver *d = fa_context_driver(ctx);
    prefer_scores();
    uint64_t at[8] = { on(NULL, 2048), on(STREAM(1), 2048), on(STREAM(2), 2048), on((fa_stream)CU_STREAM_PER_THREAD, 2048) };
    d->cuCtxSetCurrent(fake_second_context(0));
    at[4] = on(STREAM(1), 2048);
    d->cuCtxSetCurrent(NULL);
    fake_capturing(true);
    at[5] = on(STREAM(1), 2048), at[6] = on(STREAM(2), 2048);
    fake_capturing(true);
    at[7] = on(STREAM(1), 2048);
    fake_capturing(false);
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < i; k++)
            cr_expect_neq(at[i], at[k], "%d and %d", i, k);
    cr_expect_eq(on(NULL, 2048), at[0]);
    cr_expect_eq(on((fa_stream)CU_STREAM_PER_THREAD, 2048), at[3]);
    cr_expect_eq(held(), 8 * rounded(need_of(2048)));
}

static void *of_thread(void *user)
{
    *(uint64_t *)user = on((fa_stream)CU_STREAM_PER_THREAD, 2048);
    return NULL;
}

Test(runtime_lease, the_default_stream_of_each_thread)
{
    pthread_t t;
    uint64_t theirs = 0;
    prefer_scores();
    uint64_t mine = on((fa_stream)CU_STREAM_PER_THREAD, 2048);
    pthread_create(&t, NULL, of_thread, &theirs);
    pthread_join(t, NULL);
    cr_expect(theirs && theirs != mine);
    fa_stream s = (fa_stream)CU_STREAM_PER_THREAD;
    OK(fa_workspace_release(ctx, &s));
    cr_expect_eq(held(), rounded(need_of(2048)), "that of the other thread stays");
    OK(fa_workspace_release(ctx, NULL));
    cr_expect_eq(held(), 0, "also of threads that ended");
}

/* Two sizes, two streams: at most two workspaces for each stream of a capture, however many launches. */
Test(runtime_lease, a_capture_of_3000_launches)
{
    prefer_scores();
    on(STREAM(1), 1800);
    on(STREAM(1), 2048); /* what is not prepared cannot be captured */
    OK(fa_workspace_release(ctx, NULL));
    fake_pools(true);
    long memory = made(), freed = fake_calls("cuMemFree") + fake_calls("cuMemFreeAsync");
    fake_capturing(true);
    CUgraph first = fake_graph();
    for (int i = 0; i < 3000; i++)
        on(STREAM(1), i < 1000 ? 1800 : 1800 + i % 249);
    cr_expect_eq(made() - memory, 2);
    cr_expect_eq(fake_calls("cuMemAllocAsync"), 0, "no node of memory");
    cr_expect_eq(fake_calls("cuMemFree") + fake_calls("cuMemFreeAsync"), freed, "what launches before have is not freed");
    size_t one = held();
    cr_expect_eq(one, 2 * rounded(need_of(1800)) + (64 << 20));
    cr_expect_eq(one, fake_live_bytes());
    fake_capturing(true);
    CUgraph second = fake_graph();
    uint64_t its = on(STREAM(1), 2048);
    cr_expect_eq(made() - memory, 3, "a live graph keeps its own");
    fake_capturing(false);
    OK(fa_workspace_release(ctx, NULL));
    cr_expect_eq(held(), one + rounded(need_of(2048)));
    fake_graph_gone(second);
    fake_capturing(true);
    CUgraph third = fake_graph();
    cr_expect_eq(on(STREAM(5), 1900), its, "that of a graph which is gone");
    cr_expect_eq(made() - memory, 3);
    fake_capturing(false);
    fake_graph_gone(first);
    OK(fa_workspace_release(ctx, NULL));
    cr_expect_eq(held(), rounded(need_of(2048)));
    fake_graph_gone(third);
    OK(fa_workspace_release(ctx, NULL));
    cr_expect(held() == 0 && fake_live_bytes() == 0);
}

/* Captures, one after the other, as of an engine that updates its graph: the memory of one. */
Test(runtime_lease, captures_that_end_leave_nothing)
{
    fa_args a = call(1, 4096);
    OK(fa_launch(ctx, &a, STREAM(1)));
    for (int i = 0; i < 2000; i++) {
        fake_capturing(true);
        OK(fa_launch(ctx, &a, STREAM(1)));
        fake_capturing(false);
        fake_graph_gone(fake_graph());
    }
    cr_expect_eq(made(), 2);
    cr_expect_eq(held(), fake_live_bytes());
}

/* What a graph left serves a capture of the same CUDA context that needs no more. */
Test(runtime_lease, what_a_graph_leaves)
{
    const cu_driver *d = fa_context_driver(ctx);
    prefer_scores();
    on(STREAM(1), 1800);
    on(STREAM(1), 2048);
    fake_capturing(true);
    uint64_t at = on(STREAM(1), 1800);
    fake_graph_gone(fake_graph());
    fake_capturing(true);
    cr_expect_neq(on(STREAM(1), 2048), at, "too small");
    d->cuCtxSetCurrent(fake_second_context(0));
    fake_capturing(true);
    cr_expect_neq(on(STREAM(1), 1800), at, "of another CUDA context");
    d->cuCtxSetCurrent(NULL);
    fake_capturing(true);
    cr_expect_eq(on(STREAM(1), 1800), at);
    fake_capturing(false);
}

/* A graph that takes no user object: its memory stays until the context goes. */
Test(runtime_lease, a_graph_that_cannot_tell)
{
    static const char *const points[] = { "cuUserObjectCreate", "cuGraphRetainUserObject" };
    fa_args a = call(1, 4096);
    OK(fa_launch(ctx, &a, STREAM(1)));
    OK(fa_workspace_release(ctx, NULL));
    for (int i = 0; i < 2; i++) {
        fake_capturing(true);
        fake_fail(points[i], 1, CUDA_ERROR_NOT_SUPPORTED);
        OK(fa_launch(ctx, &a, STREAM(1)));
        size_t bytes = held();
        OK(fa_launch(ctx, &a, STREAM(1)));
        fake_capturing(false);
        fake_graph_gone(fake_graph());
        OK(fa_workspace_release(ctx, NULL));
        cr_expect_eq(held(), bytes, "%s", points[i]);
    }
    cr_expect_eq(made(), 3);
}

Test(runtime_lease, what_is_in_use_goes_with_the_context)
{
    prefer_scores();
    on(STREAM(1), 2048);
    fake_capturing(true);
    CUgraph graph = fake_graph();
    on(STREAM(1), 2048);
    fake_capturing(false);
    cr_expect_eq(fake_live_bytes(), 2 * rounded(need_of(2048)));
    fa_destroy(ctx);
    cr_expect_eq(fake_live_bytes(), 0);
    fake_graph_gone(graph); /* touches nothing of the context */
    open_with(FA_MISS_COMPILE);
}

Test(runtime_lease, release)
{
    fa_stream one = STREAM(1), two = STREAM(2);
    size_t bytes;
    prefer_scores();
    fake_pools(true);
    on(one, 2048);
    fake_pools(false);
    on(two, 2048);
    fake_pools(true);
    bytes = rounded(need_of(2048));
    long waits = fake_calls("cuCtxSynchronize") + fake_calls("cuStreamSynchronize");
    OK(fa_workspace_release(ctx, &one));
    cr_expect_eq(fake_calls("cuCtxSynchronize") + fake_calls("cuStreamSynchronize"), waits, "after the work of the stream");
    cr_expect(held() == bytes && fake_calls("cuMemFreeAsync") == 1);
    OK(fa_workspace_release(ctx, &one));
    OK(fa_workspace_release(ctx, &two));
    cr_expect(held() == 0 && fake_live_bytes() == 0);
    on(one, 2048);
    fake_capturing(true);
    cr_expect_eq(fa_workspace_release(ctx, &one), FA_CAPTURE);
    cr_expect_eq(fa_workspace_release(ctx, NULL), FA_DEVICE, "the fake refuses to wait while a stream is captured");
    fake_capturing(false);
    cr_expect_eq(held(), bytes, "nothing is half done");
    OK(fa_workspace_release(ctx, NULL));
    cr_expect_eq(held(), 0);
    cr_expect_eq(fa_workspace_release(NULL, NULL), FA_INVALID);
    cr_expect_eq(fa_workspace_held(NULL, &bytes), FA_INVALID);
    cr_expect_eq(fa_workspace_held(ctx, NULL), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "bytes: NULL"), "%s", fa_last_error());
}

/* Each call of the driver fails once: an error, nothing launched, and the next launch is as ever. */
Test(runtime_lease, a_driver_that_fails)
{
    static const struct {
        const char *point;
        bool pools, captured;
    } rows[] = {
        { "cuStreamGetCaptureInfo_v3", false, false },
        { "cuStreamGetId", false, false },
        { "cuMemAlloc", false, false },
        { "cuMemAllocAsync", true, false },
        { "cuMemsetD32Async", true, false },
        { "cuDeviceGetAttribute", false, false },
        { "cuMemAlloc", false, true },
        { "cuThreadExchangeStreamCaptureMode", false, true },
        { "cuStreamCreate", false, true },
        { "cuMemsetD32Async", false, true },
        { "cuStreamSynchronize", false, true },
    };
    char bytes[32];
    prefer_scores();
    fa_args a = call(2048, 2048);
    on(STREAM(99), 2048);
    OK(fa_workspace_release(ctx, NULL));
    snprintf(bytes, sizeof bytes, "%zu bytes", rounded(need_of(2048)));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fake_pools(rows[i].pools);
        fake_capturing(rows[i].captured);
        long launches = fake_calls("cuLaunchKernel");
        fake_fail(rows[i].point, 1, CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(fa_launch(ctx, &a, STREAM(i)), FA_NOMEM, "%s", rows[i].point);
        bool memory = !strncmp(rows[i].point, "cuMemAlloc", 10);
        cr_expect(strstr(fa_last_error(), "workspace") && (!memory || strstr(fa_last_error(), bytes)), "%s: %s", rows[i].point,
                  fa_last_error());
        cr_expect_eq(fake_calls("cuLaunchKernel"), launches, "%s", rows[i].point);
        long fills = fake_calls("cuMemsetD32Async");
        OK(fa_launch(ctx, &a, STREAM(i)));
        cr_expect_eq(fake_calls("cuMemsetD32Async"), fills + 1, "%s: its counters are zeroed", rows[i].point);
        cr_expect_eq(fake_filled().at + UNIT, lent(), "%s: the buffer after them", rows[i].point);
        cr_expect_eq(held(), fake_live_bytes(), "%s", rows[i].point);
        cr_expect_eq(fake_capture_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL, "%s: the mode is given back", rows[i].point);
    }
    fake_capturing(false);
}

/* Room for more is not to be had: what is needed is. */
Test(runtime_lease, memory_that_runs_out_while_it_grows)
{
    for (int times = 1; times <= 2; times++) {
        fa_stream s = STREAM(times);
        fa_args a = call(2000, 2000);
        prefer_scores();
        on(s, 1800);
        fake_fail("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
        OK(fa_launch(ctx, &a, s));
        cr_expect_eq(held(), rounded(need_of(2000)));
        OK(fa_workspace_release(ctx, NULL));
    }
}

Test(runtime_lease, many_streams_are_told)
{
    fa_args a = call(1, 4096);
    OK(fa_launch(ctx, &a, STREAM(1)));
    for (int i = 1; i <= 200; i++) {
        fake_capturing(true);
        OK(fa_launch(ctx, &a, STREAM(1)));
    }
    fake_capturing(false);
    cr_expect_eq(streams_told, 0, "graphs are no streams");
    for (int i = 1; i <= 200; i++)
        OK(fa_launch(ctx, &a, STREAM(i)));
    cr_expect_eq(streams_told, 2, "at 64 and 128: %d", streams_told);
    for (int i = 1; i <= 200; i++) {
        fa_stream s = STREAM(i);
        OK(fa_workspace_release(ctx, &s));
    }
    cr_expect_eq(held(), fake_live_bytes(), "what graphs have stays");
}

static atomic_int failed;

static void *launch_often(void *user)
{
    fa_args a = call(1, 4096);
    for (int i = 0; i < 300; i++) {
        uint64_t at;
        if (fa_launch(ctx, &a, STREAM(1)) != FA_OK || !(at = lent()) || (user && i % 10 == 9 && fa_workspace_release(ctx, NULL) != FA_OK))
            atomic_fetch_add(&failed, 1);
    }
    return NULL;
}

/* Calls that overlap on one stream have one each, and a release takes none away. */
Test(runtime_lease, threads_on_one_stream)
{
    enum { THREADS = 6 };
    pthread_t t[THREADS];
    fa_args a = call(1, 4096);
    OK(fa_launch(ctx, &a, STREAM(1)));
    size_t one = held();
    fa_lease *first, *second, *third;
    OK(fa_lease_take(ctx, fake_context(0), (CUstream)STREAM(1), one, &first));
    cr_expect_eq(held(), one);
    fa_context_driver(ctx)->cuCtxSetCurrent(fake_context(0));
    OK(fa_lease_take(ctx, fake_context(0), (CUstream)STREAM(1), one, &second));
    cr_expect(first != second && first->at != second->at && held() == 2 * one);
    OK(fa_workspace_release(ctx, NULL));
    cr_expect_eq(held(), 2 * one, "both are in use");
    fa_lease_give(first, true);
    OK(fa_lease_take(ctx, fake_context(0), (CUstream)STREAM(1), one, &third));
    cr_expect_eq(third, first);
    fa_lease_give(second, true);
    fa_lease_give(third, true);
    OK(fa_workspace_release(ctx, NULL));
    for (int large = 0; large < 2; large++) { /* which of the two comes first */
        OK(fa_lease_take(ctx, fake_context(0), (CUstream)STREAM(1), large ? 2 * one : one, &first));
        OK(fa_lease_take(ctx, fake_context(0), (CUstream)STREAM(1), large ? one : 2 * one, &second));
        fa_lease_give(first, true);
        fa_lease_give(second, true);
        OK(fa_lease_take(ctx, fake_context(0), (CUstream)STREAM(1), 2 * one, &third));
        cr_expect_eq(third, large ? first : second, "the one that is large enough");
        fa_lease_give(third, true);
        OK(fa_workspace_release(ctx, NULL));
        cr_expect_eq(held(), 0, "nobody keeps the other: %zu bytes", held());
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, launch_often, i % 2 ? &a : NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    cr_expect_eq(failed, 0);
    cr_expect_leq(held(), THREADS * one);
    cr_expect_eq(held(), fake_live_bytes());
    OK(fa_workspace_release(ctx, NULL));
    cr_expect(held() == 0 && fake_live_bytes() == 0);
    fa_context_driver(ctx)->cuCtxSetCurrent(NULL);
}

/* --- the option FA_WORKSPACE_CALLER --- */

static void open_caller(void)
{
    open_context();
    fa_destroy(ctx);
    whose = FA_WORKSPACE_CALLER;
    open_with(FA_MISS_COMPILE);
}

TestSuite(runtime_lease_caller, .init = open_caller, .fini = close_context, .timeout = 100);

Test(runtime_lease_caller, a_launch_without_costs_what_is_told)
{
    fa_args none = call(1, 4096), with = none;
    char text[8192];
    double time[2] = { 0 };
    OK(fa_workspace_size(ctx, &with, &with.workspace_size));
    cr_assert_gt(with.workspace_size, 0);
    with.workspace = AT(6);
    OK(fa_launch(ctx, &with, STREAM(1)));
    CUfunction f = fake_last().f;
    cr_expect_eq(lacks, 0, "a launch with one is told nothing");
    for (int i = 0; i < 3; i++) {
        none.sk = 4096 << i; /* buckets of one class */
        OK(fa_launch(ctx, &none, STREAM(1)));
        cr_expect_neq(fake_last().f, f);
    }
    cr_expect_eq(lacks, 1, "once for a class: %d", lacks);
    none.d = 128;
    OK(fa_launch(ctx, &none, STREAM(1)));
    cr_expect_eq(lacks, 2, "another class: %d", lacks);
    none = call(1, 4096);
    for (int hit = 0; hit < 2; hit++) {
        if (!hit) {
            fa_destroy(ctx);
            open_with(FA_MISS_COMPILE);
        } else {
            OK(fa_launch(ctx, &none, STREAM(1)));
        }
        OK(fa_explain(ctx, NULL, &none, text, sizeof text));
        const char *line = strstr(text, "workspace  args.workspace is NULL, and the option workspace is FA_WORKSPACE_CALLER: ");
        cr_assert(line, "%s", text);
        cr_expect_eq(sscanf(strchr(strchr(line, ':'), ' '), " %lf us; with one of fa_workspace_size() bytes another kernel runs, %lf us",
                            &time[0], &time[1]),
                     2, "%s", text);
        cr_expect(time[0] > time[1] && time[1] > 0, "%g, %g", time[0], time[1]);
    }
    OK(fa_explain(ctx, NULL, &with, text, sizeof text));
    cr_expect(strstr(text, " bytes, of args.workspace\n") && !strstr(text, "is NULL"), "%s", text);
    cr_expect(held() == 0 && made() == 0);
}

Test(runtime_lease_caller, supported_tells)
{
    fa_problem p = problem(1, 4096);
    int before = lacks;
    for (int i = 0; i < 3; i++)
        OK(fa_supported(ctx, &p));
    cr_expect_eq(lacks - before, 1);
    p.d = p.dv = 128;
    p.features = FA_FEATURE_NO_WORKSPACE;
    OK(fa_supported(ctx, &p));
    cr_expect_eq(lacks - before, 2);
    p.features = FA_FEATURE_LSE_STRIDES;
    OK(fa_supported(ctx, &p));
    cr_expect_eq(lacks - before, 3, "in whatever order LSE lies");
    p = problem(4096, 4096);
    OK(fa_supported(ctx, &p));
    cr_expect_eq(lacks - before, 3, "its kernel needs none");
    fa_args a = call(1, 4096);
    OK(fa_launch(ctx, &a, STREAM(1)));
    cr_expect_eq(lacks - before, 3, "the class was told");
}

Test(runtime_lease_caller, other_kernels_are_refused_without)
{
    fa_args a = call(2048, 2048);
    char text[8192];
    a.mask = FA_MASK_CAUSAL; /* of which so many tiles are not split */
    prefer_scores_under(a.mask);
    cr_expect_eq(fa_launch(ctx, &a, STREAM(1)), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "workspace_size is 0; accepted: at least"), "%s", fa_last_error());
    OK(fa_explain(ctx, NULL, &a, text, sizeof text));
    cr_expect(strstr(text, "a launch without is FA_INVALID"), "%s", text);
    cr_expect(held() == 0 && made() == 0);
}

Test(runtime_lease_caller, the_option_is_checked)
{
    fa_context *none;
    fa_options o = FA_OPTIONS_INIT;
    o.workspace = 2;
    cr_expect_eq(fa_create_on(&none, &o, fa_context_driver(ctx), 0), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "workspace is 2; accepted: FA_WORKSPACE_CONTEXT (0), FA_WORKSPACE_CALLER (1)"), "%s",
              fa_last_error());
    o.workspace = 0, o.reserved = 1;
    cr_expect_eq(fa_create_on(&none, &o, fa_context_driver(ctx), 0), FA_INVALID);
    o.workspace = 2, o.reserved = 0, o.size = offsetof(fa_options, workspace); /* of an older header */
    OK(fa_create_on(&none, &o, fa_context_driver(ctx), 0));
    fa_destroy(none);
}
