/* A pipeline as kernels have it: one thread loads tiles through two stages, two warps add one to every word, one of their threads
 * stores the tiles. Right as it stands; wrong, and reported, with any one of its waits, fences and barriers left out. */
#include "test_sim_tma.h"

TestSuite(sim_pipeline, .init = open90);

enum { TILES = 6, TILE = 4096 };
#define STAGE                                                                                                                             \
    "and.b32 %r11, %r10, 1; shr.u32 %r12, %r10, 1; and.b32 %r12, %r12, 1; mov.u32 %r13, bar; shl.b32 %r14, %r11, 3; add.u32 %r13, %r13, " \
    "%r14; shl.b32 %r14, %r11, 12; mov.u32 %r15, buf; add.u32 %r14, %r14, %r15;\n"
static const char *const whole =
    TMA_KERNEL(".shared .align 1024 .b8 buf[8192];\n.shared .align 1024 .b8 res[4096];\n.shared .align 8 .b8 bar[32];\n",
               "@%p0 mbarrier.init.shared::cta.b64 [bar], 1; @%p0 mbarrier.init.shared::cta.b64 [bar+8], 1; @%p0 "
               "mbarrier.init.shared::cta.b64 [bar+16], 64; @%p0 mbarrier.init.shared::cta.b64 [bar+24], 64;\n"
               "@%p0 fence.mbarrier_init.release.cluster;\n"
               "bar.sync 0;\n"
               "mov.u32 %r10, 0; setp.lt.u32 %p1, %r0, 32; @!%p1 bra CONSUMER;\n"
               "@!%p0 bra END;\n"
               "P:\n" STAGE "xor.b32 %r12, %r12, 1;\n" WAIT(
                   "EMPTY", "%r13+16",
                   "%r12") "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r13], 4096;\n"
                           "shl.b32 %r16, %r10, 5; cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                           "[%r14], [%rd3, {0, %r16}], [%r13];\n"
                           "add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, 6; @%p2 bra P;\nbra END;\n"
                           "CONSUMER: sub.u32 %r1, %r0, 32; setp.eq.u32 %p3, %r1, 0;\n"
                           "C:\n" STAGE WAIT(
                               "FULL", "%r13",
                               "%r12") "@%p3 cp.async.bulk.wait_group.read 0;\n"
                                       "bar.sync 1, 64;\n"
                                       "mov.u32 %r17, 0; shl.b32 %r18, %r1, 2; add.u32 %r14, %r14, %r18; mov.u32 %r19, res; add.u32 %r19, "
                                       "%r19, %r18;\n"
                                       "L: ld.shared.u32 %r20, [%r14]; add.u32 %r20, %r20, 1; st.shared.u32 [%r19], %r20; add.u32 %r14, "
                                       "%r14, 256; add.u32 %r19, %r19, 256; add.u32 %r17, %r17, 1; setp.lt.u32 %p4, %r17, 16; @%p4 bra L;\n"
                                       "mbarrier.arrive.shared::cta.b64 _, [%r13+16];\n"
                                       "fence.proxy.async.shared::cta;\n"
                                       "bar.sync 2, 64;\n"
                                       "shl.b32 %r16, %r10, 5; @%p3 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd4, {0, "
                                       "%r16}], [res]; @%p3 cp.async.bulk.commit_group;\n"
                                       "add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, 6; @%p2 bra C;\n"
                                       "@%p3 cp.async.bulk.wait_group 0;\n"
                                       "END:\n");

static tensor tiles(void)
{
    const uint64_t dim[2] = { 64, TILES * 32 };
    const uint32_t box[2] = { 64, 32 };
    return tensor_of(2, 2, dim, box, CU_TENSOR_MAP_SWIZZLE_128B);
}

Test(sim_pipeline, as_it_should_be)
{
    static uint32_t data[TILES * TILE / 4], got[TILES * TILE / 4];
    for (uint32_t k = 0; k < TILES * TILE / 4; k++)
        data[k] = k * 2654435761u;
    tensor t = tiles();
    CUdeviceptr in = buffer(data, sizeof data);
    CUtensorMap from = map_of(&t, in);
    CUfunction f = load(whole);
    EACH_WAY(way)
    {
        CUdeviceptr out = buffer(NULL, sizeof got);
        CUtensorMap to = map_of(&t, out);
        sim_counters c;
        sim_counters_reset();
        run_maps(f, 1, 96, 0, in, out, &from, &to);
        fetch(got, out, sizeof got);
        for (uint32_t k = 0; k < TILES * TILE / 4; k++)
            cr_assert_eq(got[k], data[k] + 1, "way %d word %u: 0x%x instead of 0x%x", way, k, got[k], data[k] + 1);
        sim_counters_get(&c);
        cr_assert(c.global_read == sizeof data && c.global_write == sizeof data, "each byte moves once: %llu %llu",
                  (unsigned long long)c.global_read, (unsigned long long)c.global_write);
        cr_assert(c.shared_write == 2 * sizeof data && c.shared_read == 2 * sizeof data, "%llu %llu", (unsigned long long)c.shared_write,
                  (unsigned long long)c.shared_read);
    }
}

/* Each row: a piece of the kernel, what stands there instead, and what a report may say. */
/* clang-format off */
static const struct { const char *piece, *instead, *words, *or_words; } rows[] = {
    {"@%p0 fence.mbarrier_init.release.cluster;\n", "", "initialised without a fence", NULL},
    {"bar.sync 0;\n", "", "shared memory", "no mbarrier was initialised"},
    {WAIT("EMPTY", "%r13+16", "%r12"), "", "shared memory", "too many arrivals"},
    {"xor.b32 %r12, %r12, 1;\n", "", "deadlock", NULL},
    {"[%r13], 4096;", "[%r13], 4112;", "deadlock", NULL},
    {"[%r13], 4096;", "[%r13], 4080;", "deadlock", "too few"},
    {"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r13], 4096;\n", "mbarrier.arrive.shared::cta.b64 _, [%r13];\n", "shared memory", "more bytes than were announced"},
    {"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r13], 4096;\n", "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r13], 4096;\n", "deadlock", NULL},
    {WAIT("FULL", "%r13", "%r12"), "", "shared memory", "no mbarrier"},
    {"@%p3 cp.async.bulk.wait_group.read 0;\n", "", "still reads", NULL},
    {"@%p3 cp.async.bulk.wait_group.read 0;\n", "@%p3 cp.async.bulk.wait_group.read 1;\n", "still reads", NULL},
    {"bar.sync 1, 64;\n", "", "race in shared memory", NULL},
    {"mbarrier.arrive.shared::cta.b64 _, [%r13+16];\n", "", "waits for 64 more of 64 arrivals", NULL},
    {"mbarrier.arrive.shared::cta.b64 _, [%r13+16];\n", "mbarrier.arrive.shared::cta.b64 _, [%r13+16], 2;\n", "arrivals", "shared memory"},
    {"fence.proxy.async.shared::cta;\n", "", "without a fence", NULL},
    {"fence.proxy.async.shared::cta;\nbar.sync 2, 64;\n", "bar.sync 2, 64;\nfence.proxy.async.shared::cta;\n", "without a fence", NULL},
    {"bar.sync 2, 64;\n", "", "race in shared memory", "never written"},
    {"@%p3 cp.async.bulk.wait_group 0;\n", "", "a thread leaves", NULL},
    {"[%r14], [%rd3, {0, %r16}]", "[%r14+16], [%rd3, {0, %r16}]", "misaligned bulk copy", NULL},
};
/* clang-format on */

Test(sim_pipeline, every_piece_is_needed)
{
    static uint32_t data[TILES * TILE / 4];
    static char text[16384];
    tensor t = tiles();
    CUdeviceptr in = buffer(data, sizeof data), out = buffer(NULL, sizeof data);
    CUtensorMap from = map_of(&t, in), to = map_of(&t, out);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const char *at = strstr(whole, rows[k].piece);
        cr_assert_not_null(at, "row %zu: \"%s\" is not in the kernel", k, rows[k].piece);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, rows[k].instead, at + strlen(rows[k].piece));
        CUfunction f = load(text);
        EACH_WAY(way)
        {
            checks("all=error"); /* the fence of the mbarriers is a warning, one after the barrier is none */
            CUresult r = launch_maps(f, 1, 96, 0, in, out, &from, &to);
            cr_expect_neq(r, CUDA_SUCCESS, "row %zu way %d: nothing was found without \"%s\"", k, way, rows[k].piece);
            cr_expect(strstr(sim_report(), rows[k].words) || (rows[k].or_words && strstr(sim_report(), rows[k].or_words)),
                      "row %zu way %d: \"%s\" is not in:\n%s", k, way, rows[k].words, sim_report());
        }
    }
}

/* The fence orders the initialisation by its own thread: another lane's, or another warp's, does not. */
Test(sim_pipeline, the_fence_is_made_by_the_thread_that_initialised)
{
    static const char fence[] = "@%p0 fence.mbarrier_init.release.cluster;\n";
    static const char *const others[] = { "setp.eq.u32 %p7, %r0, 1; @%p7 fence.mbarrier_init.release.cluster;\n",
                                          "setp.eq.u32 %p7, %r0, 32; @%p7 fence.mbarrier_init.release.cluster;\n",
                                          "setp.ge.u32 %p7, %r0, 32; @%p7 fence.mbarrier_init.release.cluster;\n" };
    static uint32_t data[TILES * TILE / 4];
    static char text[16384];
    tensor t = tiles();
    CUdeviceptr in = buffer(data, sizeof data), out = buffer(NULL, sizeof data);
    CUtensorMap from = map_of(&t, in), to = map_of(&t, out);
    const char *at = strstr(whole, fence);
    cr_assert_not_null(at);
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, others[k], at + sizeof fence - 1);
        CUfunction f = load(text);
        EACH_WAY(way)
        {
            checks("all=error");
            CUresult r = launch_maps(f, 1, 96, 0, in, out, &from, &to);
            cr_expect(r != CUDA_SUCCESS && strstr(sim_report(), "initialised without a fence"), "row %zu way %d: %d %s", k, way, r,
                      sim_report());
        }
    }
}

/* Waits that give the time away, or only ask, end likewise. */
Test(sim_pipeline, other_waits)
{
    static uint32_t data[TILES * TILE / 4];
    static char text[16384];
    static const char *const waits[] = {
        "WFULL: mbarrier.test_wait.parity.shared::cta.b64 %p8, [%r13], %r12;\n@%p8 bra GO; nanosleep.u32 20; bra WFULL; GO:\n",
        "WFULL: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p8, [%r13], %r12, 1000;\n@!%p8 bra WFULL;\n"
    };
    tensor t = tiles();
    CUdeviceptr in = buffer(data, sizeof data), out = buffer(NULL, sizeof data);
    CUtensorMap from = map_of(&t, in), to = map_of(&t, out);
    const char *piece = WAIT("FULL", "%r13", "%r12"), *at = strstr(whole, piece);
    for (size_t k = 0; k < 2; k++) {
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, waits[k], at + strlen(piece));
        CUfunction f = load(text);
        EACH_WAY(way) run_maps(f, 1, 96, 0, in, out, &from, &to);
    }
}
