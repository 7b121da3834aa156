/* wgmma used wrongly: each way is reported, in both timings and all orders of the warps, and its corrected twin is not. */
#include "test_sim_wgmma.h"

TestSuite(sim_wgmma_checks, .init = open90a);

typedef enum part {
    FULL,
    NO_FENCE,
    READ_EARLY,
    READ_EARLY_UNCOMMITTED,
    READ_EARLY_LATER_GROUP,
    WRITE_EARLY,
    WRITE_A,
    TOUCHED,
    READ_SINCE,
    OUTSTANDING,
    MISSING_WARP,
    MISSING_FIRST_WARP,
    MISSING_LANE,
    OTHER_DESCRIPTOR,
    LANES_DIFFER,
    OTHER_PC,
    OVERLAP,
    A_IN_FLIGHT,
    OWN_STORE,
    NO_BARRIER_AFTER,
    WITH_BARRIER_AFTER,
    COPY_IN_FLIGHT
} part;

/* One product as a kernel, with one defect. */
static const char *defective(part d, shape s, const char *fence)
{
    begin(&s, fence);
    if (d == MISSING_WARP || d == MISSING_FIRST_WARP)
        add("shr.u32 %%r20, %%r0, 5;\nsetp.eq.u32 %%p2, %%r20, %d;\n@%%p2 bra OVER;\n", d == MISSING_WARP ? 3 : 0);
    if (d == MISSING_LANE)
        add("setp.eq.u32 %%p2, %%r0, 37;\n@%%p2 bra OVER;\n");
    if (d == OTHER_DESCRIPTOR)
        add("cvt.u64.u32 %%rd12, %%r0;\nshr.u64 %%rd12, %%rd12, 6;\nshl.b64 %%rd12, %%rd12, 6;\nadd.s64 %%rd11, %%rd11, %%rd12;\n");
    if (d == LANES_DIFFER)
        add("cvt.u64.u32 %%rd12, %%r0;\nadd.s64 %%rd11, %%rd11, %%rd12;\n");
    if (d == COPY_IN_FLIGHT)
        add("mov.u32 %%r21, sm;\ncp.async.ca.shared.global [%%r21+16384], [%%rd1], 4;\n");
    if (d == OTHER_PC) {
        add("wgmma.fence.sync.aligned;\nsetp.lt.u32 %%p2, %%r0, 64;\n@%%p2 bra LEFT;\n");
        product(&s, "1");
        add("bra.uni BOTH;\nLEFT:\n");
        product(&s, "1");
        add("BOTH:\n");
    } else if (d != NO_FENCE)
        add("wgmma.fence.sync.aligned;\n");
    if (d == TOUCHED)
        add("add.f32 %%c3, %%c3, %%c3;\n");
    if (d != OTHER_PC)
        product(&s, "1");
    if (d == WRITE_A)
        add("add.u32 %%a1, %%r0, 1;\n");
    if (d == WRITE_EARLY)
        add("mov.f32 %%f1, 0f3F800000;\nadd.f32 %%c2, %%f1, %%f1;\n");
    if (d == OVERLAP)
        add("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%%c0,%%c1,%%c2,%%c3}, %%rd10, %%rd11, 1, 1, 1, 0, 0;\n");
    if (d == A_IN_FLIGHT)
        add("mov.b32 %%a5, %%c1;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%%c10,%%c11,%%c12,%%c13}, {%%a0,%%a5,%%a2,%%a3}, "
            "%%rd11, 0, 1, 1, 0;\n");
    if (d != READ_EARLY_UNCOMMITTED)
        add("wgmma.commit_group.sync.aligned;\n");
    if (d == READ_EARLY)
        add("mov.f32 %%f1, %%c1;\nadd.f32 %%f2, %%f1, %%f1;\n"); /* of a copy */
    if (d == READ_EARLY_UNCOMMITTED)
        add("wgmma.wait_group.sync.aligned 0;\nadd.f32 %%f2, %%c1, %%c1;\n");
    if (d == READ_EARLY_LATER_GROUP)
        add("wgmma.wait_group.sync.aligned 1;\nadd.f32 %%f2, %%c1, %%c1;\n");
    if (d == OWN_STORE)
        add("shl.b32 %%r21, %%r0, 2;\nmov.u32 %%r22, sm;\nadd.u32 %%r21, %%r21, %%r22;\nst.shared.u32 [%%r21+16384], %%r0;\n");
    if (d != OUTSTANDING)
        add("wgmma.wait_group.sync.aligned 0;\n");
    if (d == NO_BARRIER_AFTER || d == WITH_BARRIER_AFTER)
        add("%sshl.b32 %%r21, %%r0, 2;\nmov.u32 %%r22, sm;\nadd.u32 %%r21, %%r21, %%r22;\nst.shared.u32 [%%r21+16384], %%r0;\n",
            d == WITH_BARRIER_AFTER ? "bar.sync 0;\n" : "");
    if (d == READ_SINCE) {
        add("add.f32 %%f2, %%c1, %%c1;\n");
        product(&s, "1");
        add("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
    }
    if (d == MISSING_WARP || d == MISSING_FIRST_WARP || d == MISSING_LANE)
        add("OVER:\n");
    if (d == OUTSTANDING)
        return add("ret;\n}\n"), text;
    return end(&s);
}

static shape plain(int a_shared)
{
    return (shape){ .n = 16, .a_shared = a_shared, .scale = 1, .a = tile_of(64, 0, 64, 0), .b = tile_of(64, 0, 16, 16384) };
}

/* In both timings and all orders of the warps: reported with these words, or with NULL fine. */
static void reported(part d, shape s, const char *fence, unsigned threads, CUresult code, const char *words)
{
    static memory m;
    static numbers x;
    randomize(&s, &x, 0);
    fill(&m, &s, &x);
    CUfunction f = load(defective(d, s, fence));
    for (int async = SIM_EAGER; async <= SIM_LAZY; async++)
        for (int order = SIM_IN_ORDER; order <= SIM_RANDOM; order++) {
            CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, 128 * 1024);
            sim_set_options(&(sim_options){ .async = (sim_async)async, .schedule = (sim_schedule)order, .seed = 3 });
            CUresult r = launch(f, 1, threads, SHARED, a, b);
            if (!words)
                cr_assert_eq(r, CUDA_SUCCESS, "defect %d, timing %d: %s", d, async, sim_report());
            else
                cr_assert(r == code && strstr(sim_report(), words), "defect %d, timing %d, order %d: %d, not \"%s\":\n%s", d, async, order,
                          r, words, sim_report());
            cu->cuMemFree(a), cu->cuMemFree(b);
        }
}
#define REPORTED(d, words) reported(d, plain(1), FENCE, 128, CUDA_ERROR_LAUNCH_FAILED, words)

Test(sim_wgmma_checks, registers_in_flight)
{
    REPORTED(FULL, NULL);
    REPORTED(READ_EARLY, "register %f1 is read, but it is an accumulator of the wgmma");
    REPORTED(READ_EARLY_UNCOMMITTED, "register %c1 is read");
    REPORTED(READ_EARLY_LATER_GROUP, "register %c1 is read");
    REPORTED(WRITE_EARLY, "register %c2 is written");
    REPORTED(OVERLAP, "the accumulator overlaps");
    REPORTED(OUTSTANDING, "the warp exits while this wgmma is in flight");
    reported(WRITE_A, plain(0), FENCE, 128, CUDA_ERROR_LAUNCH_FAILED, "register %a1 is written, but a wgmma in flight reads it as its A");
    reported(A_IN_FLIGHT, plain(0), FENCE, 128, CUDA_ERROR_LAUNCH_FAILED, "register %a5 is read as A");
}

Test(sim_wgmma_checks, fences_between_registers_and_products)
{
    REPORTED(NO_FENCE, "the first wgmma has no wgmma.fence before it");
    REPORTED(TOUCHED, "register %c3 was written after the last wgmma.fence");
    REPORTED(READ_SINCE, "register %c1 was read after the last wgmma.fence");
}

Test(sim_wgmma_checks, four_warps_execute_the_same)
{
    REPORTED(MISSING_WARP, "without this instruction");
    REPORTED(MISSING_FIRST_WARP, "without this instruction");
    REPORTED(OTHER_DESCRIPTOR, "different descriptors");
    REPORTED(LANES_DIFFER, "differs between the lanes");
    REPORTED(OTHER_PC, "execute different instructions");
    reported(FULL, plain(1), FENCE, 64, CUDA_ERROR_LAUNCH_FAILED, "needs a warp group of four whole warps");
    reported(FULL, plain(1), FENCE, 96, CUDA_ERROR_LAUNCH_FAILED, "needs a warp group of four whole warps");
    REPORTED(MISSING_LANE, "needs all 32 lanes of each warp");
}

Test(sim_wgmma_checks, descriptors)
{
    shape s = plain(1);
    static memory m;
    static numbers x;
    randomize(&s, &x, 0);
    /* clang-format off */
    static const struct { uint64_t plus; CUresult code; const char *words; } rows[] = {
        {IMAGE >> 4, CUDA_ERROR_LAUNCH_FAILED, "is read that was never written"},
        {SHARED >> 4, CUDA_ERROR_ILLEGAL_ADDRESS, "out of bounds"},
        {8, CUDA_ERROR_MISALIGNED_ADDRESS, "starts at shared offset 128, inside of the swizzle pattern of 512 bytes"},
        {1u << 14, CUDA_ERROR_LAUNCH_FAILED, "has bits outside of its fields: 0x4000"},
        {1ull << 49, CUDA_ERROR_NOT_SUPPORTED, "base offset 1, which is not simulated"},
    };
    /* clang-format on */
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        s = plain(1), s.b.at = 0;
        memset(&m, 0, sizeof m);
        begin(&s, FENCE);
        add("add.s64 %%rd11, %%rd11, %llu;\n", (unsigned long long)rows[r].plus);
        ISSUE(&s, "1");
        WAIT;
        CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, 128 * 1024);
        fails(end(&s), 128, SHARED, a, b, rows[r].code, rows[r].words);
    }
}

Test(sim_wgmma_checks, shared_memory_that_is_in_use)
{
    REPORTED(OWN_STORE, "which an asynchronous operation still reads");
    REPORTED(NO_BARRIER_AFTER, NULL); /* the wait of one warp is one for the product of all four */
    REPORTED(WITH_BARRIER_AFTER, NULL);
    REPORTED(COPY_IN_FLIGHT, "in flight");
}

Test(sim_wgmma_checks, stores_need_a_proxy_fence)
{
    /* clang-format off */
    static const struct { const char *fence, *words; } rows[] = {
        {"fence.proxy.async;", NULL}, {"fence.proxy.async.shared::cta;", NULL}, {"fence.proxy.async.shared::cluster;", NULL},
        {"", "stored to without a fence"}, {"fence.proxy.async.global;", "stored to without a fence"}, {"fence.acq_rel.cta;", "stored to without a fence"},
        {"bar.sync 0;\nfence.proxy.async;", NULL}, /* the second barrier orders it */
        {"and.b32 %r30, %r0, 31;\nsetp.eq.u32 %p3, %r30, 0;\n@%p3 fence.proxy.async;", "stored to without a fence"}, /* one lane's is not the others' */
        {"setp.lt.u32 %p3, %r0, 32;\n@%p3 fence.proxy.async;", "stored to without a fence"},
        {"bar.sync 0;\nsetp.lt.u32 %p3, %r0, 32;\n@%p3 fence.proxy.async;", NULL}, /* one warp's, for stores that it knows of */
    };
    /* clang-format on */
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        reported(FULL, plain(1), rows[r].fence, 128, CUDA_ERROR_LAUNCH_FAILED, rows[r].words);
    /* the same for copies that have arrived and for matrices: %rd1's first bytes again, where B lies */
    /* clang-format off */
    static const struct { const char *store, *fence, *words; } others[] = {
        {"cp.async.ca.shared.global [%r21], [%rd1], 4;\ncp.async.wait_all;", "", "stored to without a fence"},
        {"cp.async.ca.shared.global [%r21], [%rd1], 4;\ncp.async.wait_all;", "fence.proxy.async;", NULL},
        {"cp.async.ca.shared.global [%r21], [%rd1], 4;\nfence.proxy.async;\ncp.async.wait_all;", "", "stored to without a fence"}, /* it arrives with the wait */
        {"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r22], {%r0};", "", "stored to without a fence"},
        {"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r22], {%r0};", "fence.proxy.async.shared::cta;", NULL},
    };
    /* clang-format on */
    for (size_t r = 0; r < sizeof others / sizeof *others; r++) {
        char store[512];
        snprintf(store, sizeof store,
                 "fence.proxy.async;\nbar.sync 0;\nshl.b32 %%r21, %%r10, 2;\nmov.u32 %%r22, sm;\nadd.u32 %%r22, %%r22, 16384;\nadd.u32 "
                 "%%r21, %%r21, %%r22;\nadd.u32 %%r22, %%r22, %%r3;\n%s\n%s",
                 others[r].store, others[r].fence);
        reported(FULL, plain(1), store, 128, CUDA_ERROR_LAUNCH_FAILED, others[r].words);
    }
    for (int late = 0; late < 2;
         late++) { /* after the barrier, it is the reader's own: the memory model accepts it, one class of its own does not */
        static memory m;
        shape s = plain(1);
        begin(&s, "");
        add(late ? "fence.proxy.async;\n" : "fence.proxy.async;\nbar.sync 0;\n");
        ISSUE(&s, "1");
        WAIT;
        CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, 128 * 1024);
        sim_set_options(NULL);
        CUfunction f = load(end(&s));
        cr_assert_eq(launch(f, 1, 128, SHARED, a, b), CUDA_SUCCESS, "%s", sim_report());
        checks("proxy-fence-late=error");
        cr_assert_eq(launch(f, 1, 128, SHARED, a, b), late ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS, "%s", sim_report());
    }
}

/* Without checks, a missing wait shows as a difference, and late reads of shared memory as another. */
Test(sim_wgmma_checks, lazy_products_come_as_late_as_they_may)
{
    static memory m;
    static numbers x;
    static uint32_t got[2][64][256];
    shape s = plain(1);
    randomize(&s, &x, 0);
    fill(&m, &s, &x);
    for (int defect = 0; defect < 2; defect++) {
        CUfunction f;
        if (defect)
            f = load(defective(OWN_STORE, s, FENCE));
        else {
            begin(&s, FENCE);
            ISSUE(&s, "1");
            f = load(end(&s));
        }
        for (int async = SIM_EAGER; async <= SIM_LAZY; async++) {
            CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, 128 * 1024);
            sim_set_options(&(sim_options){ .async = (sim_async)async, .unchecked = 1 });
            cr_assert_eq(launch(f, 1, 128, SHARED, a, b), CUDA_SUCCESS, "%s", sim_report());
            fetch_d(b, &s, got[async]);
        }
        int differ = 0;
        for (int row = 0; row < 64; row++)
            for (int n = 0; n < 16; n++) {
                differ += got[SIM_EAGER][row][n] != got[SIM_LAZY][row][n];
                if (!defect)
                    cr_assert_eq(got[SIM_LAZY][row][n], 0xFFFFFFFF);
            }
        cr_expect(differ >= (defect ? 100 : 1024), "%d of 1024 differ", differ);
    }
}

Test(sim_wgmma_checks, only_where_it_exists)
{
    /* clang-format off */
    static const struct { const char *head, *line, *words; } rows[] = {
        {HEAD90, "wgmma.fence.sync.aligned;", "wgmma exists on sm_90a only"},
        {HEAD80, "wgmma.fence.sync.aligned;", "wgmma exists on sm_90a only"},
        {HEAD90A, "wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 1, 1, 0, 0;", "this shape of wgmma"},
        {HEAD90A, "wgmma.mma_async.sync.aligned.m64n8k4.f32.tf32.tf32 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 1, 1;", "this shape of wgmma"},
        {HEAD90A, "wgmma.mma_async.sync.aligned.m64n8k16.f32.tf32.tf32 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 1, 1;", "of these types"},
        {HEAD90A, "wgmma.mma_async.sync.aligned.m64n8k8.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 1, 1, 0, 0;", "of these types"},
        {HEAD90A, "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 1, 1, 0, 0;", "wrong number of operands"},
        {HEAD90A, "wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16 {%f1,%f2}, %rd1, %rd2, 1, 1, 1, 0, 0;", "of these types"},
        {HEAD90A, "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 1, 1, 0, 0;", "wrong number of accumulator registers"},
        {HEAD90A, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2}, %rd1, %rd2, 1, 1, 1, 0, 0;", "wrong number of accumulator registers"},
        {HEAD90A, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 2, 1, 0, 0;", "must be 1 or -1"},
        {HEAD90A, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 1, 1, 0, 2;", "must be 0 or 1"},
        {HEAD90A, "wgmma.mma_async.sync.aligned.m64n8k16.f32.e4m3.e4m3 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 1, 1;", "of these types"},
        {HEAD90A, "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 1, 1;", "of these types"},
        {HEAD90A, "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 1, 1, 0, 0;", "wrong number of operands"},
    };
    /* clang-format on */
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        char ptx[17000];
        snprintf(ptx, sizeof ptx, "%s%s", rows[r].head, with(KERNEL("$1"), rows[r].line, "", ""));
        cr_assert_eq(launch(load(ptx), 1, 128, 0, 0, 0), CUDA_ERROR_NOT_SUPPORTED, "row %zu: %s", r, sim_report());
        cr_assert(strstr(sim_report(), rows[r].words), "row %zu: %s", r, sim_report());
    }
}
