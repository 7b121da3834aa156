/* Clusters: who is who, shared memory of other blocks, remote arrivals, multicast, and a report for each thing that may not be done. */
#include "test_sim_tma.h"

TestSuite(sim_cluster, .init = open90);

static CUresult launch_cluster(CUfunction f, const unsigned grid[3], const unsigned cluster[3], unsigned threads, CUdeviceptr a,
                               CUdeviceptr b, const CUtensorMap *m)
{
    static const CUtensorMap none;
    void *params[] = { &a, &b, (void *)(uintptr_t)(m ? m : &none), (void *)(uintptr_t)(m ? m : &none) };
    CUlaunchAttribute at = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION };
    at.value.clusterDim.x = cluster[0], at.value.clusterDim.y = cluster[1], at.value.clusterDim.z = cluster[2];
    CUlaunchConfig config = { .gridDimX = grid[0],
                              .gridDimY = grid[1],
                              .gridDimZ = grid[2],
                              .blockDimX = threads,
                              .blockDimY = 1,
                              .blockDimZ = 1,
                              .attrs = &at,
                              .numAttrs = 1 };
    return cu->cuLaunchKernelEx(&config, f, params, NULL);
}
static const unsigned two[3] = { 2, 1, 1 }, four[3] = { 4, 1, 1 };

static void good(const char *ptx, const unsigned grid[3], const unsigned cluster[3], unsigned threads, CUdeviceptr a, CUdeviceptr b,
                 const CUtensorMap *m)
{
    CUresult r = launch_cluster(load(ptx), grid, cluster, threads, a, b, m);
    cr_assert_eq(r, CUDA_SUCCESS, "launch: %d\n%s", r, sim_report());
}
/* Every timing and schedule must end with this code, and with one of the two texts in the report. */
static void bad(const char *ptx, unsigned threads, CUdeviceptr a, CUdeviceptr b, const CUtensorMap *m, CUresult code, const char *words,
                const char *or_words)
{
    CUfunction f = load(ptx);
    EACH_WAY(way)
    {
        CUresult r = launch_cluster(f, two, two, threads, a, b, m);
        cr_expect_eq(r, code, "way %d: code %d instead of %d\n%s", way, r, code, sim_report());
        cr_expect(strstr(sim_report(), words) || (or_words && strstr(sim_report(), or_words)), "way %d: \"%s\" is not in:\n%s", way, words,
                  sim_report());
    }
    sim_set_options(NULL);
}

#define MEET "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
/* %r1 this block's rank, %r2 the other's; %r3 the address of this thread's word of buf, %r4 the same in the other block. */
#define PEER                                                                                                             \
    "mov.u32 %r1, %cluster_ctarank; xor.b32 %r2, %r1, 1; mov.u32 %r3, buf; shl.b32 %r5, %r0, 2; add.u32 %r3, %r3, %r5; " \
    "mapa.shared::cluster.u32 %r4, %r3, %r2;\n"
#define BUF ".shared .align 1024 .b8 buf[8192];\n.shared .align 8 .b8 bar[32];\n"
/* %rd5: this thread's word of b. */
#define WORD                                                                                                                            \
    "mov.u32 %r20, %ctaid.x; mov.u32 %r21, %ntid.x; mad.lo.u32 %r20, %r20, %r21, %r0; mul.wide.u32 %rd5, %r20, 4; add.s64 %rd5, %rd2, " \
    "%rd5;\n"

Test(sim_cluster, special_registers)
{
    static const unsigned dims[][2][3] = {
        { { 4, 1, 1 }, { 2, 1, 1 } }, { { 2, 4, 2 }, { 1, 2, 2 } }, { { 4, 2, 3 }, { 4, 2, 1 } }, { { 3, 2, 1 }, { 1, 1, 1 } }
    };
    CUfunction f = load(TMA_KERNEL(
        "", "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z; mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y; "
            "mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r6, %r6, %r4, %r1;\n"
            "mul.wide.u32 %rd5, %r6, 64; add.s64 %rd5, %rd2, %rd5;\n"
            "mov.u32 %r7, %clusterid.x; st.global.u32 [%rd5], %r7; mov.u32 %r7, %clusterid.y; st.global.u32 [%rd5+4], %r7; mov.u32 %r7, "
            "%clusterid.z; st.global.u32 [%rd5+8], %r7;\n"
            "mov.u32 %r7, %cluster_ctaid.x; st.global.u32 [%rd5+12], %r7; mov.u32 %r7, %cluster_ctaid.y; st.global.u32 [%rd5+16], %r7; "
            "mov.u32 %r7, %cluster_ctaid.z; st.global.u32 [%rd5+20], %r7;\n"
            "mov.u32 %r7, %cluster_nctaid.x; st.global.u32 [%rd5+24], %r7; mov.u32 %r7, %nclusterid.y; st.global.u32 [%rd5+28], %r7;\n"
            "mov.u32 %r7, %cluster_ctarank; st.global.u32 [%rd5+32], %r7; mov.u32 %r7, %cluster_nctarank; st.global.u32 [%rd5+36], %r7; "
            "mov.u32 %r7, %nclusterid.x; st.global.u32 [%rd5+40], %r7;\n"));
    for (size_t k = 0; k < 4; k++) {
        const unsigned *g = dims[k][0], *c = dims[k][1];
        CUdeviceptr out = buffer(NULL, 24 * 64);
        uint32_t got[24][16];
        cr_assert_eq(launch_cluster(f, g, c, 1, out, out, NULL), CUDA_SUCCESS, "%s", sim_report());
        fetch(got, out, sizeof **got * 16 * g[0] * g[1] * g[2] > sizeof got ? sizeof got : 64 * g[0] * g[1] * g[2]);
        for (unsigned z = 0; z < g[2]; z++)
            for (unsigned y = 0; y < g[1]; y++)
                for (unsigned x = 0; x < g[0]; x++) {
                    const uint32_t *v = got[x + g[0] * (y + g[1] * z)];
                    uint32_t want[11] = { x / c[0],
                                          y / c[1],
                                          z / c[2],
                                          x % c[0],
                                          y % c[1],
                                          z % c[2],
                                          c[0],
                                          g[1] / c[1],
                                          x % c[0] + c[0] * (y % c[1] + c[1] * (z % c[2])),
                                          c[0] * c[1] * c[2],
                                          g[0] / c[0] };
                    for (int i = 0; i < 11; i++)
                        cr_assert_eq(v[i], want[i], "grid %zu block (%u,%u,%u) value %d: %u instead of %u", k, x, y, z, i, v[i], want[i]);
                }
    }
}

/* Each block reads what the other wrote, in three ways; adds to it; writes to it. */
Test(sim_cluster, each_others_memory)
{
    const char *ptx =
        TMA_KERNEL(BUF, PEER WORD "mad.lo.u32 %r6, %r1, 1000, %r0; st.shared.u32 [%r3], %r6;\n" MEET "ld.shared::cluster.u32 %r7, [%r4];\n"
                                  "cvt.u64.u32 %rd6, %r3; cvta.shared.u64 %rd6, %rd6; mapa.u64 %rd7, %rd6, %r2; ld.u32 %r8, [%rd7]; "
                                  "getctarank.u64 %r9, %rd7; getctarank.shared::cluster.u32 %r10, %r3;\n"
                                  "sub.u32 %r8, %r8, %r7; add.u32 %r7, %r7, %r8; sub.u32 %r9, %r9, %r2; add.u32 %r7, %r7, %r9; sub.u32 "
                                  "%r10, %r10, %r1; add.u32 %r7, %r7, %r10;\n" MEET "atom.shared::cluster.add.u32 %r8, [%r4], 5;\n" MEET
                                  "ld.shared.u32 %r8, [%r3]; add.u32 %r8, %r8, %r7;\n" MEET "st.shared::cluster.u32 [%r4], %r8;\n" MEET
                                  "ld.shared.u32 %r8, [%r3]; st.global.u32 [%rd5], %r8;\n");
    for (int threads = 1; threads <= 3; threads += 2)
        EACH_WAY(way)
        {
            uint32_t got[6 * 64];
            CUdeviceptr out = buffer(NULL, sizeof got);
            sim_options o;
            sim_get_options(&o), o.threads = threads, sim_set_options(&o);
            good(ptx, (unsigned[3]){ 6, 1, 1 }, two, 64, out, out, NULL);
            fetch(got, out, sizeof got);
            /* every block: its own value and 5, and the other's */
            for (uint32_t k = 0; k < 6 * 64; k++)
                cr_assert_eq(got[k], 1000 + 2 * (k % 64) + 5, "way %d word %u: %u", way, k, got[k]);
        }
}

Test(sim_cluster, races_between_blocks)
{
    CUdeviceptr out = buffer(NULL, 4096);
    bad(TMA_KERNEL(BUF, PEER WORD "st.shared.u32 [%r3], %r0; ld.shared::cluster.u32 %r7, [%r4]; st.global.u32 [%rd5], %r7;\n" MEET), 64,
        out, out, NULL, CUDA_ERROR_LAUNCH_FAILED, "race in shared memory", "never written");
    bad(TMA_KERNEL(BUF, PEER WORD "st.shared.u32 [%r3], %r0;\n" MEET "ld.shared::cluster.u32 %r7, [%r4]; st.shared.u32 [%r3], %r7;\n" MEET),
        64, out, out, NULL, CUDA_ERROR_LAUNCH_FAILED, "race in shared memory", NULL);
    bad(TMA_KERNEL(BUF, PEER WORD "st.shared::cluster.u32 [%r4], %r0; st.shared.u32 [%r3], %r1;\n" MEET), 64, out, out, NULL,
        CUDA_ERROR_LAUNCH_FAILED, "race in shared memory", NULL);
    /* the own block's barrier does not order the two */
    bad(TMA_KERNEL(BUF,
                   PEER WORD "st.shared.u32 [%r3], %r0; bar.sync 0; ld.shared::cluster.u32 %r7, [%r4]; st.global.u32 [%rd5], %r7;\n" MEET),
        64, out, out, NULL, CUDA_ERROR_LAUNCH_FAILED, "race in shared memory", "never written");
}

Test(sim_cluster, relaxed_arrivals)
{
    CUdeviceptr out = buffer(NULL, 4096);
#define RELAXED(fence)                                                                                                                 \
    TMA_KERNEL(BUF, PEER WORD "st.shared.u32 [%r3], %r0;\n" fence                                                                      \
                              "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;\nld.shared::cluster.u32 " \
                              "%r7, [%r4]; st.global.u32 [%rd5], %r7;\n" MEET)
    bad(RELAXED(""), 64, out, out, NULL, CUDA_ERROR_LAUNCH_FAILED, "race in shared memory", NULL);
    bad(RELAXED("fence.acq_rel.cta;\n"), 64, out, out, NULL, CUDA_ERROR_LAUNCH_FAILED, "race in shared memory", NULL);
    EACH_WAY(way) good(RELAXED("fence.acq_rel.cluster;\n"), two, two, 64, out, out, NULL);
}

Test(sim_cluster, a_block_that_has_ended)
{
    CUdeviceptr out = buffer(NULL, 4096);
    bad(TMA_KERNEL(BUF, PEER WORD "st.shared.u32 [%r3], %r0;\n" MEET "ld.shared::cluster.u32 %r7, [%r4]; st.global.u32 [%rd5], %r7;\n"), 64,
        out, out, NULL, CUDA_ERROR_LAUNCH_FAILED, "ends, but no barrier orders", "which has ended");
    bad(TMA_KERNEL(BUF, PEER WORD MEET "mov.u32 %r9, 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra OUT; L: add.u32 %r9, %r9, 1; nanosleep.u32 100; "
                                       "setp.lt.u32 %p2, %r9, 3000; @%p2 bra L; st.shared::cluster.u32 [%r4], %r0; OUT:\n"),
        32, out, out, NULL, CUDA_ERROR_LAUNCH_FAILED, "which has ended", "ends, but no barrier orders");
}

Test(sim_cluster, barrier_misuse)
{
    CUdeviceptr out = buffer(NULL, 4096);
    bad(TMA_KERNEL(BUF, "barrier.cluster.wait.aligned;\n"), 64, out, out, NULL, CUDA_ERROR_LAUNCH_FAILED, "without having arrived", NULL);
    bad(TMA_KERNEL(BUF, "barrier.cluster.arrive.aligned; barrier.cluster.arrive.aligned;\n"), 64, out, out, NULL, CUDA_ERROR_LAUNCH_FAILED,
        "again without having waited", NULL);
    bad(TMA_KERNEL(BUF, "setp.lt.u32 %p1, %r0, 5; @%p1 bra A; barrier.cluster.arrive.aligned; A: st.shared.u32 [buf], 1;\n"), 64, out, out,
        NULL, CUDA_ERROR_LAUNCH_FAILED, "divergence at the cluster's barrier", NULL);
    bad(TMA_KERNEL(BUF, PEER "setp.eq.u32 %p1, %r1, 0; @%p1 bra A; bar.sync 1, 128; A:\n" MEET), 64, out, out, NULL,
        CUDA_ERROR_LAUNCH_FAILED, "barrier 1 waits for 128 threads", NULL);
    bad(TMA_KERNEL(BUF, PEER "@%p0 mbarrier.init.shared.b64 [bar], 1; bar.sync 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra A;\n" WAIT(
                            "1", "bar", "0") "A:\n" MEET),
        64, out, out, NULL, CUDA_ERROR_LAUNCH_TIMEOUT, "waits at the cluster's barrier, where 2 of 4 warps are", NULL);
    /* a warp that has exited is not waited for */
    EACH_WAY(way) good(TMA_KERNEL(BUF, "setp.lt.u32 %p1, %r0, 32; @%p1 exit;\n" MEET MEET), two, two, 64, out, out, NULL);
}

/* The threads of block 1 arrive at block 0's mbarrier, after each wrote a word into its memory. */
#define REMOTE(init, arrive)                                                                                                           \
    TMA_KERNEL(BUF,                                                                                                                    \
               PEER WORD "mov.u32 %r11, bar; mapa.shared::cluster.u32 %r12, %r11, 0;\n@%p0 mbarrier.init.shared::cta.b64 [bar], " init \
                         "; @%p0 fence.mbarrier_init.release.cluster;\n" MEET                                                          \
                         "setp.eq.u32 %p1, %r1, 0; @%p1 bra ZERO;\nst.shared::cluster.u32 [%r4], %r0;\n" arrive                        \
                         "bra END;\nZERO:\n" WAIT("1", "bar", "0") "ld.shared.u32 %r7, [%r3]; st.global.u32 [%rd5], %r7;\nEND:\n")

Test(sim_cluster, remote_arrivals)
{
    CUdeviceptr out = buffer(NULL, 4096);
    EACH_WAY(way)
    {
        uint32_t got[64];
        good(REMOTE("64", "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12];\n"), two, two, 64, out, out, NULL);
        fetch(got, out, sizeof got);
        for (uint32_t k = 0; k < 64; k++)
            cr_assert_eq(got[k], k, "way %d word %u: %u", way, k, got[k]);
    }
    bad(REMOTE("65", "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12];\n"), 64, out, out, NULL, CUDA_ERROR_LAUNCH_TIMEOUT,
        "waits for 1 more of 65 arrivals", NULL);
    bad(REMOTE("63", "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12];\n"), 64, out, out, NULL, CUDA_ERROR_LAUNCH_FAILED,
        "block (0,0,0) ends, but no barrier orders", "has ended");
    bad(REMOTE("64", "mbarrier.arrive.release.cluster.shared::cluster.b64 %rd9, [%r12];\n"), 64, out, out, NULL, CUDA_ERROR_ILLEGAL_ADDRESS,
        "no state to return", NULL);
    bad(REMOTE("64", "mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r12], 0;\n"), 64, out, out, NULL, CUDA_ERROR_ILLEGAL_ADDRESS,
        "is an address of mapa", NULL);
    bad(REMOTE("64", "mbarrier.init.shared::cta.b64 [%r12], 1;\n"), 64, out, out, NULL, CUDA_ERROR_ILLEGAL_ADDRESS, "is an address of mapa",
        NULL);
}

/* ---- bulk copies ---- */

static CUtensorMap rows(CUdeviceptr *at) /* 64 rows of 64 words, boxes of 8 rows of 32 words: 1 KiB */
{
    static uint32_t data[64 * 64];
    const uint64_t dim[2] = { 64, 64 };
    const uint32_t box[2] = { 32, 8 };
    tensor t = tensor_of(2, 4, dim, box, CU_TENSOR_MAP_SWIZZLE_NONE);
    for (uint32_t k = 0; k < 64 * 64; k++)
        data[k] = k;
    *at = buffer(data, sizeof data);
    return map_of(&t, *at);
}

/* Each of four blocks loads a quarter for all, and waits for the four quarters. */
#define MULTICAST(mask, bytes, end)                                                                                                        \
    TMA_KERNEL(                                                                                                                            \
        BUF, PEER WORD                                                                                                                     \
        "@%p0 mbarrier.init.shared::cta.b64 [bar], 1; @%p0 fence.mbarrier_init.release.cluster;\n" MEET                                    \
        "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], " bytes                                                                  \
        ";\nshl.b32 %r13, %r1, 3; shl.b32 %r14, %r1, 10; mov.u32 %r15, buf; add.u32 %r14, %r14, %r15; mov.u16 %h1, " mask ";\n"            \
        "@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r14], [%rd3, {0, "     \
        "%r13}], [bar], %h1;\n" WAIT(                                                                                                      \
            "1", "bar", "0") "mov.u32 %r16, 0; mov.u32 %r17, 0; mov.u32 %r18, buf; shl.b32 %r19, %r0, 2; add.u32 %r18, %r18, %r19;\n"      \
                             "L: ld.shared.u32 %r7, [%r18]; mad.lo.u32 %r16, %r16, 31, %r7; add.u32 %r18, %r18, 256; add.u32 %r17, %r17, " \
                             "1; setp.lt.u32 %p2, %r17, 16; @%p2 bra L;\nst.global.u32 [%rd5], %r16;\n" end)

Test(sim_cluster, multicast)
{
    CUdeviceptr in, out = buffer(NULL, 4096);
    CUtensorMap m = rows(&in);
    uint32_t want[64] = { 0 };
    for (uint32_t t = 0; t < 64; t++)
        for (uint32_t k = 0; k < 16; k++) {
            uint32_t at = k * 64 + t; /* word of buf: quarter at / 256, row of 32 words */
            want[t] = want[t] * 31 + (at / 256 * 8 + at % 256 / 32) * 64 + at % 32;
        }
    EACH_WAY(way)
    {
        uint32_t got[256];
        sim_counters c;
        sim_counters_reset();
        good(MULTICAST("15", "4096", MEET), four, four, 64, in, out, &m);
        fetch(got, out, sizeof got);
        for (uint32_t k = 0; k < 256; k++)
            cr_assert_eq(got[k], want[k % 64], "way %d word %u: %u instead of %u", way, k, got[k], want[k % 64]);
        sim_counters_get(&c);
        cr_assert_eq(c.global_read, 4096, "a multicast reads once: %llu", (unsigned long long)c.global_read);
    }
    CUfunction f = load(MULTICAST("15", "4096", ""));
    EACH_WAY(way)
    cr_assert_eq(launch_cluster(f, four, four, 64, in, out, &m), CUDA_SUCCESS, "each block has waited for all that comes to it: %s",
                 sim_report());
    bad(MULTICAST("4", "1024", MEET), 64, in, out, &m, CUDA_ERROR_LAUNCH_FAILED, "a multicast to blocks 0x4 of a cluster of 2", NULL);
    bad(MULTICAST("3", "3072", MEET), 64, in, out, &m, CUDA_ERROR_LAUNCH_TIMEOUT, "waits for 1024 more bytes", NULL);
}

/* Block 0 copies a KiB of its memory into block 1's. */
#define ACROSS(fence, mbarrier, end)                                                                                                   \
    TMA_KERNEL(                                                                                                                        \
        BUF, PEER WORD                                                                                                                 \
        "@%p0 mbarrier.init.shared::cta.b64 [bar], 1; @%p0 fence.mbarrier_init.release.cluster;\nmad.lo.u32 %r6, %r0, 3, %r1; @%p0 "   \
        "mov.u32 %r6, 77; st.shared.u32 [%r3+1024], %r6;\n" fence MEET                                                                 \
        "mov.u32 %r11, buf; mapa.shared::cluster.u32 %r12, %r11, 1; mov.u32 %r13, bar; mapa.shared::cluster.u32 %r14, %r13, " mbarrier \
        "; setp.eq.u32 %p1, %r1, 1; @%p1 bra ONE;\n"                                                                                   \
        "@%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r12], [buf+1024], 256, [%r14];\nbra END;\n"     \
        "ONE: @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;\n" WAIT(                                                   \
            "1", "bar", "0") "ld.shared.u32 %r7, [%r3]; st.global.u32 [%rd5], %r7;\nEND:\n" end)

Test(sim_cluster, copies_between_blocks)
{
    CUdeviceptr out = buffer(NULL, 4096);
    EACH_WAY(way)
    {
        uint32_t got[64];
        good(ACROSS("fence.proxy.async.shared::cta;\n", "1", MEET), two, two, 64, out, out, NULL);
        fetch(got, out + 256, sizeof got);
        for (uint32_t k = 0; k < 64; k++)
            cr_assert_eq(got[k], k ? k * 3 : 77, "way %d word %u: %u", way, k, got[k]);
    }
    bad(ACROSS("", "1", MEET), 64, out, out, NULL, CUDA_ERROR_LAUNCH_FAILED, "without a fence", NULL);
    bad(ACROSS("fence.proxy.async.shared::cta;\n", "0", MEET), 64, out, out, NULL, CUDA_ERROR_ILLEGAL_ADDRESS,
        "with an mbarrier of another block", NULL);
    /* lazily, the copy is still to come when its block ends */
    sim_set_options(&(sim_options){ .async = SIM_LAZY });
    cr_expect_eq(launch_cluster(load(ACROSS("fence.proxy.async.shared::cta;\n", "1", "")), two, two, 64, out, out, NULL),
                 CUDA_ERROR_LAUNCH_FAILED);
    cr_expect(strstr(sim_report(), "still reads shared memory"), "%s", sim_report());
}

Test(sim_cluster, a_copy_between_blocks_holds_its_source)
{
    CUdeviceptr out = buffer(NULL, 4096);
    /* once the other block has waited for the bytes, the source may be written again */
    EACH_WAY(way)
    {
        uint32_t got[64];
        good(ACROSS("fence.proxy.async.shared::cta;\n", "1", MEET "st.shared.u32 [%r3+1024], %r0;\n"), two, two, 64, out, out, NULL);
        fetch(got, out + 256, sizeof got);
        for (uint32_t k = 0; k < 64; k++)
            cr_assert_eq(got[k], k ? k * 3 : 77, "way %d word %u: %u", way, k, got[k]);
    }
    /* before, the copy may still read it */
    sim_set_options(&(sim_options){ .async = SIM_LAZY });
    cr_expect_eq(
        launch_cluster(load(ACROSS("fence.proxy.async.shared::cta;\n", "1", "@%p1 bra LAST; st.shared.u32 [%r3+1024], %r0;\nLAST:\n" MEET)),
                       two, two, 64, out, out, NULL),
        CUDA_ERROR_LAUNCH_FAILED);
    cr_expect(strstr(sim_report(), "still reads"), "%s", sim_report());
}

/* ---- launches ---- */

Test(sim_cluster, launch_rules)
{
    CUdeviceptr out = buffer(NULL, 4096);
    CUfunction f = load(TMA_KERNEL("", MEET)), fixed = load(".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 "
                                                            "a, .param .u64 b)\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n{\n"
                                                            ".reg .b32 %r<4>; .reg .b64 %rd<4>; ld.param.u64 %rd1, [b]; mov.u32 %r1, "
                                                            "%cluster_nctarank; st.global.u32 [%rd1], %r1; ret;\n}\n");
    /* clang-format off */
    static const struct { unsigned grid[3], cluster[3]; bool fixed; CUresult code; const char *words; } rows[] = {
        {{8, 1, 1}, {8, 1, 1}, false, CUDA_SUCCESS, ""},
        {{16, 1, 1}, {16, 1, 1}, false, CUDA_ERROR_INVALID_CLUSTER_SIZE, "a cluster of 16 blocks; accepted: 1 to 8"},
        {{3, 1, 1}, {2, 1, 1}, false, CUDA_ERROR_INVALID_VALUE, "no multiple of clusters of (2,1,1)"},
        {{2, 1, 1}, {2, 0, 1}, false, CUDA_ERROR_INVALID_VALUE, "accepted: at least 1 each"},
        {{4, 1, 1}, {4, 1, 1}, true, CUDA_ERROR_INVALID_CLUSTER_SIZE, "requires clusters of (2,1,1)"},
        {{4, 1, 1}, {2, 1, 1}, true, CUDA_SUCCESS, ""},
    };
    /* clang-format on */
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        CUresult r = launch_cluster(rows[k].fixed ? fixed : f, rows[k].grid, rows[k].cluster, 32, out, out, NULL);
        cr_expect_eq(r, rows[k].code, "row %zu: %d %s", k, r, cu->detail());
        cr_expect(strstr(cu->detail(), rows[k].words) != NULL, "row %zu: \"%s\" is not in: %s", k, rows[k].words, cu->detail());
    }
    uint32_t n = 0;
    cr_expect_eq(launch(fixed, 4, 32, 0, out, out), CUDA_SUCCESS, "%s", sim_report()); /* a plain launch has the kernel's clusters */
    fetch(&n, out, 4);
    cr_expect_eq(n, 2);
    cr_expect_eq(launch(fixed, 3, 32, 0, out, out), CUDA_ERROR_INVALID_VALUE);
    bad(TMA_KERNEL(BUF, "mov.u32 %r1, buf; mapa.shared::cluster.u32 %r2, %r1, 2;\n"), 32, out, out, NULL, CUDA_ERROR_LAUNCH_FAILED,
        "no block of rank 2 in a cluster of 2", NULL);
    bad(TMA_KERNEL(BUF, PEER "ld.shared.u32 %r7, [%r4];\n"), 32, out, out, NULL, CUDA_ERROR_ILLEGAL_ADDRESS, "is an address of mapa", NULL);
}

/* Persistent clusters: block 0 takes a tile from a counter in global memory, and tells the other. */
Test(sim_cluster, tiles_from_a_counter)
{
    const char *ptx =
        TMA_KERNEL(BUF, PEER "LOOP:\n@%p0 bra LEAD; bra SKIP; LEAD: setp.ne.u32 %p1, %r1, 0; @%p1 bra SKIP; atom.global.add.u32 %r6, "
                             "[%rd1], 1; st.shared.u32 [buf], %r6; st.shared::cluster.u32 [%r4], %r6; SKIP:\n" MEET
                             "ld.shared.u32 %r7, [buf];\n" MEET "setp.ge.u32 %p2, %r7, 40; @%p2 bra END; mul.wide.u32 %rd5, %r7, 4; "
                             "add.s64 %rd5, %rd2, %rd5; red.global.add.u32 [%rd5], 1; bra LOOP; END:\n");
    for (int threads = 1; threads <= 2; threads++)
        EACH_WAY(way)
        {
            uint32_t got[40] = { 0 };
            CUdeviceptr counter = buffer(got, 4), out = buffer(got, sizeof got);
            sim_options o;
            sim_get_options(&o), o.threads = threads, sim_set_options(&o);
            good(ptx, (unsigned[3]){ 6, 1, 1 }, two, 64, counter, out, NULL);
            fetch(got, out, sizeof got);
            for (int k = 0; k < 40; k++)
                cr_assert_eq(got[k], 128, "way %d tile %d: %u", way, k, got[k]);
        }
}
