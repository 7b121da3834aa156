/* What orders the blocks of a launch: partial results of all are handed to the block that comes last, or from each to the next. Right as
 * they stand; with any one fence, flag or barrier left out, reported, in every timing and order, on one host thread and on two. */
#include "test_sim_tma.h"

static CUdeviceptr flags, work;
static void open_order(void)
{
    static uint32_t zero[16384];
    open90();
    flags = buffer(zero, sizeof zero), work = buffer(zero, sizeof zero);
}
TestSuite(sim_grid_order, .init = open_order);

enum { BLOCKS = 6, THREADS = 64 };

/* Kernels that race do so in the simulator's memory, too, which the thread sanitizer is right to say. */
#ifdef __SANITIZE_THREAD__
enum { RACING_THREADS = 1 };
#else
enum { RACING_THREADS = 2 };
#endif

static void each_way(const char *text, CUresult code, const char *words)
{
    CUfunction f = load(text);
    for (int way = 0; way < 12; way++) {
        static const uint32_t zero[16384];
        static uint32_t other[16384]; /* than any block stores: a value that is there already may be stored by any of them */
        memset(other, 0x63, sizeof other);
        sim_set_options(&(sim_options){ .async = (sim_async)(way & 1),
                                        .schedule = (sim_schedule)(way / 2 % 3),
                                        .threads = 1 + (code ? RACING_THREADS - 1 : 1) * (way / 6),
                                        .seed = (uint64_t)way });
        for (int again = 0; again < 2; again++) { /* a launch after it knows nothing of this one's accesses, and needs not */
            cr_assert_eq(cu->cuMemcpyHtoD(work, other, sizeof other), CUDA_SUCCESS);
            cr_assert_eq(cu->cuMemcpyHtoD(flags, zero, sizeof zero), CUDA_SUCCESS);
            CUresult r = launch(f, BLOCKS, THREADS, 0, flags, work);
            cr_expect_eq(r, code, "way %d: %d instead of %d\n%s\n%s", way, r, code, text, sim_report());
            cr_expect(strstr(sim_report(), words) != NULL, "way %d: \"%s\" is not in:\n%s\n%s", way, words, sim_report(), text);
        }
    }
}
static void right(const char *text)
{
    each_way(text, CUDA_SUCCESS, "");
}
static void wrong(const char *text, const char *words)
{
    each_way(text, CUDA_ERROR_LAUNCH_FAILED, words);
}
#define RACE "check: race-global"
#define UNFENCED "a fence of gpu scope after it is missing"

/* Every block of 64 threads stores 64 words, meets at $1, takes a ticket by $2, and the last one adds up what all have stored. %r5: the
 * block; %rd5: the thread's word of the block; %r1: the ticket; $3 after it. */
#define LAST                                                                                                                               \
    HEAD90 ".shared .align 4 .b8 ticket[4];\n" KERNEL(                                                                                     \
        "mov.u32 %r5, %ctaid.x; mov.u32 %r6, %nctaid.x; sub.u32 %r7, %r6, 1; mul.wide.u32 %rd3, %r0, 4; add.s64 %rd4, %rd2, %rd3; "        \
        "mul.wide.u32 %rd5, %r5, 256; add.s64 %rd5, %rd5, %rd4;\nsetp.eq.u32 %p0, %r0, 0; mov.u32 %r9, ticket;\n"                          \
        "st.global.u32 [%rd5+1024], %r5;\n$1\n@!%p0 bra MEET;\n$2\n$3\nst.shared.u32 [%r9], %r1;\nMEET: bar.sync 0;\n"                     \
        "ld.shared.u32 %r1, [%r9]; setp.ne.u32 %p1, %r1, %r7; @%p1 bra END;\n"                                                             \
        "mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u64 %rd6, %rd4;\nNEXT: ld.global.u32 %r4, [%rd6+1024]; add.u32 %r3, %r3, %r4; add.s64 %rd6, " \
        "%rd6, 256; add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r6; @%p2 bra NEXT;\nst.global.u32 [%rd4], %r3;\nEND: ")
#define MEET "bar.sync 0;"
#define FENCE "fence.acq_rel.gpu;"
#define TICKET "atom.global.inc.u32 %r1, [%rd1], %r7;"

Test(sim_grid_order, the_last_block_adds_up)
{
    static const char *const fences[] = { "fence.acq_rel.gpu;", "fence.sc.gpu;", "membar.gl;", "membar.sys;", "fence.acq_rel.sys;" };
    uint32_t got[64];
    for (size_t k = 0; k < sizeof fences / sizeof *fences; k++) {
        char before[128];
        snprintf(before, sizeof before, "%s %s", fences[k], TICKET);
        right(with(LAST, MEET, before, fences[k]));
    }
    fetch(got, work, sizeof got);
    for (int k = 0; k < 64; k++)
        cr_expect_eq(got[k], BLOCKS * (BLOCKS - 1) / 2);
    /* the fence of each thread before the barrier, and the other after it */
    right(with(LAST, FENCE MEET, TICKET, FENCE));
    static const char *const tickets[] = {
        "atom.global.acq_rel.gpu.inc.u32 %r1, [%rd1], %r7;",
        "atom.acq_rel.sys.inc.u32 %r1, [%rd1], %r7;",
        "atom.global.add.acq_rel.gpu.u32 %r1, [%rd1], 1; rem.u32 %r1, %r1, %r6;",
        "fence.acq_rel.gpu; atom.global.acquire.gpu.inc.u32 %r1, [%rd1], %r7;",
        "fence.release.gpu; atom.global.relaxed.gpu.inc.u32 %r1, [%rd1], %r7; fence.acquire.gpu;",
        "atom.global.release.gpu.inc.u32 %r1, [%rd1], %r7; fence.acq_rel.gpu;",
        ("fence.acq_rel.gpu; TRY: ld.relaxed.gpu.global.u32 %r10, [%rd1]; add.u32 %r11, %r10, 1; rem.u32 %r11, %r11, %r6; "
         "atom.global.cas.b32 %r1, [%rd1], %r10, %r11; setp.ne.u32 %p3, %r1, %r10; @%p3 bra TRY; fence.acq_rel.gpu;"),
    };
    for (size_t k = 0; k < sizeof tickets / sizeof *tickets; k++)
        right(with(LAST, MEET, tickets[k], ""));
}
Test(sim_grid_order, a_fence_left_out)
{
    wrong(with(LAST, MEET, TICKET, FENCE), RACE);
    wrong(with(LAST, MEET, FENCE TICKET, ""), RACE);
    wrong(with(LAST, MEET, FENCE TICKET, ""), UNFENCED);
    wrong(with(LAST, MEET, TICKET, ""), RACE);
    wrong(with(LAST, MEET, "atom.global.release.gpu.inc.u32 %r1, [%rd1], %r7;", ""), UNFENCED);
    wrong(with(LAST, MEET, "atom.global.acquire.gpu.inc.u32 %r1, [%rd1], %r7;", ""), RACE);
    wrong(with(LAST, MEET, "fence.acquire.gpu; " TICKET, FENCE), RACE);
    wrong(with(LAST, MEET, FENCE TICKET, "fence.release.gpu;"), RACE);
    /* of too narrow a scope */
    wrong(with(LAST, MEET, "fence.acq_rel.cta; " TICKET, FENCE), RACE);
    wrong(with(LAST, MEET, "membar.cta; " TICKET, FENCE), RACE);
    wrong(with(LAST, MEET, "fence.acq_rel.cluster; " TICKET, FENCE), RACE);
    wrong(with(LAST, MEET, FENCE TICKET, "fence.acq_rel.cta;"), RACE);
    wrong(with(LAST, MEET, "atom.global.acq_rel.cta.inc.u32 %r1, [%rd1], %r7;", ""), RACE);
    /* after the ticket */
    wrong(with(LAST, MEET, TICKET FENCE, FENCE), RACE);
}
Test(sim_grid_order, the_barrier_in_front_left_out)
{
    /* the warp that takes the ticket hands on what it has stored itself */
    wrong(with(LAST, "", FENCE TICKET, FENCE), RACE);
    wrong(with(LAST, FENCE, TICKET, FENCE), RACE);
}
Test(sim_grid_order, a_partial_stored_behind_its_flag)
{
    wrong(with(LAST, MEET, FENCE TICKET, FENCE " st.global.u32 [%rd5+1024], 9;"), RACE);
}
Test(sim_grid_order, a_partial_read_in_front_of_the_ticket)
{
    /* by the one that runs first, of a block that is to come; and by a later one, of a block that has been */
    wrong(with(LAST, MEET, "ld.global.u32 %r10, [%rd2+2304];" FENCE TICKET, FENCE), RACE);
    wrong(with(LAST, MEET, "ld.global.u32 %r10, [%rd2+1024];" FENCE TICKET, FENCE), RACE);
}
Test(sim_grid_order, two_blocks_store_to_one_place)
{
    wrong(with(LAST, MEET, "st.global.u32 [%rd2+768], %r5;" FENCE TICKET, FENCE), RACE);
    right(with(LAST, MEET, "st.global.u32 [%rd2+768], 1;" FENCE TICKET, FENCE)); /* the same value: any of them will do */
    right(with(LAST, MEET, "red.global.add.f32 [%rd2+768], 0f3F800000; red.global.add.u32 [%rd2+772], 1;" FENCE TICKET, FENCE));
    wrong(with(LAST, MEET, "ld.global.u32 %r10, [%rd2+772]; red.global.add.u32 [%rd2+772], 1;" FENCE TICKET, FENCE), RACE);
    right(with(LAST, MEET, "red.global.add.u32 [%rd2+772], 1; ld.volatile.global.u32 %r10, [%rd2+772];" FENCE TICKET, FENCE));
    /* atomic operations on what a block has stored: its own, and the first one's, which nothing orders with them */
    right(with(LAST, MEET, "red.global.add.u32 [%rd5+1024], 1;" FENCE TICKET, FENCE));
    wrong(with(LAST, MEET, "setp.ne.u32 %p4, %r5, 0; @%p4 red.global.add.u32 [%rd2+1024], 1;" FENCE TICKET, FENCE), RACE);
    /* neighbours in one word */
    right(with(LAST, MEET, "cvt.u64.u32 %rd9, %r5; add.s64 %rd9, %rd9, %rd2; st.global.u8 [%rd9+768], %r5;" FENCE TICKET, FENCE));
}
Test(sim_grid_order, warps_of_one_block)
{
    /* each thread reads the word of its neighbour in the other warp */
#define ACROSS                                                                                                                         \
    "xor.b32 %r10, %r0, 32; mul.wide.u32 %rd9, %r10, 4; mul.wide.u32 %rd10, %r5, 256; add.s64 %rd9, %rd9, %rd10; add.s64 %rd9, %rd9, " \
    "%rd2; "
    right(with(LAST, MEET ACROSS "ld.global.u32 %r10, [%rd9+1024]; bar.sync 0;", FENCE TICKET, FENCE));
    wrong(with(LAST, ACROSS "ld.global.u32 %r10, [%rd9+1024]; bar.sync 0;", FENCE TICKET, FENCE), "with no barrier between the two");
}
Test(sim_grid_order, the_read_only_path)
{
    wrong(with(LAST, MEET ACROSS "ld.global.nc.u32 %r10, [%rd9+1024]; bar.sync 0;", FENCE TICKET, FENCE), "check: read-only");
    right(with(LAST, MEET "ld.global.nc.u32 %r10, [%rd2+8192];", FENCE TICKET, FENCE));
}
Test(sim_grid_order, asynchronous_copies_read_too)
{
    static char text[16384];
    static const char *const plain = "ld.global.u32 %r4, [%rd6+1024];";
    static const char *const copies[] = {
        "shl.b32 %r20, %r0, 4; mov.u32 %r21, room; add.u32 %r20, %r20, %r21; cp.async.ca.shared.global [%r20], [%rd6+1024], 4; "
        "cp.async.wait_all; ld.shared.u32 %r4, [%r20];",
        "mov.u32 %r20, room; mul.wide.u32 %rd11, %r2, 256; add.s64 %rd11, %rd11, %rd2; and.b32 %r23, %r2, 1; setp.ne.u32 %p4, %r2, 0; @%p4 "
        "bra L; "
        "@%p0 mbarrier.init.shared::cta.b64 [%r20+1024], 1; @%p0 fence.mbarrier_init.release.cluster; L: bar.sync 0; "
        "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r20+1024], 256; @%p0 "
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r20], [%rd11+1024], 256, [%r20+1024]; "
        "W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r20+1024], %r23; @!%p5 bra W; shl.b32 %r21, %r0, 2; add.u32 %r21, %r21, %r20; "
        "ld.shared.u32 %r4, [%r21];",
    };
    for (int k = 0; k < 2; k++)
        for (int fenced = 0; fenced < 2; fenced++) {
            char whole[16384];
            const char *last = with(LAST, MEET, FENCE TICKET, fenced ? FENCE : ""), *at = strstr(last, plain);
            cr_assert_not_null(at);
            snprintf(whole, sizeof whole, "%.*s%s%s", (int)(at - last), last, copies[k], at + strlen(plain));
            at = strstr(whole, ".shared");
            snprintf(text, sizeof text, "%.*s.shared .align 128 .b8 room[1040];\n%s", (int)(at - whole), whole, at);
            if (fenced)
                right(text);
            else
                wrong(text, RACE);
        }
}
Test(sim_grid_order, stores_in_bulk)
{
    static const char *const text = HEAD90 ".shared .align 128 .b8 room[256];\n.shared .align 4 .b8 ticket[4];\n" KERNEL(
        "mov.u32 %r5, %ctaid.x; mov.u32 %r6, %nctaid.x; sub.u32 %r7, %r6, 1; mul.wide.u32 %rd5, %r5, 256; add.s64 %rd5, %rd5, %rd2; "
        "setp.eq.u32 %p0, %r0, 0; mov.u32 %r9, room; shl.b32 %r10, %r0, 2; add.u32 %r10, %r10, %r9; st.shared.u32 [%r10], %r5; "
        "fence.proxy.async.shared::cta; bar.sync 0; mov.u32 %r11, ticket; @!%p0 bra MEET;\n"
        "cp.async.bulk.global.shared::cta.bulk_group [%rd5+1024], [%r9], 256; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; "
        "$1 atom.global.inc.u32 %r1, [%rd1], %r7; $2 st.shared.u32 [%r11], %r1;\nMEET: bar.sync 0; ld.shared.u32 %r1, [%r11]; "
        "setp.ne.u32 %p1, %r1, %r7; @%p1 bra END; ld.global.u32 %r2, [%rd2+1024]; ld.global.u32 %r3, [%rd2+1280]; END: ");
    right(with(text, FENCE, FENCE, ""));
    wrong(with(text, "", FENCE, ""), RACE);
    wrong(with(text, FENCE, "", ""), RACE);
}

/* Each block waits for the flag of the one before it, adds to what that has stored, and sets its own: stream-K. */
#define CHAIN                                                                                                                             \
    HEAD90 KERNEL("mov.u32 %r5, %ctaid.x; mul.wide.u32 %rd5, %r5, 256; mul.wide.u32 %rd6, %r0, 4; add.s64 %rd5, %rd5, %rd2; add.s64 "     \
                  "%rd5, %rd5, %rd6; mul.wide.u32 %rd7, %r5, 4; add.s64 %rd7, %rd7, %rd1; mov.u32 %r4, 0; setp.eq.u32 %p0, %r0, 0; "      \
                  "setp.eq.u32 %p1, %r5, 0; @%p1 bra FIRST; @!%p0 bra MEET;\nSPIN: $1 setp.eq.u32 %p2, %r1, 0; @%p2 bra SPIN; $2\nMEET: " \
                  "bar.sync 0; ld.global.u32 %r4, [%rd5+768];\nFIRST: add.u32 %r4, %r4, 1; st.global.u32 [%rd5+1024], %r4; bar.sync 0; "  \
                  "@!%p0 bra END; $3\nEND: ")
Test(sim_grid_order, from_each_block_to_the_next)
{
    right(with(CHAIN, "ld.relaxed.gpu.global.u32 %r1, [%rd7+-4];", FENCE, FENCE "st.relaxed.gpu.global.u32 [%rd7], 1;"));
    right(with(CHAIN, "ld.volatile.global.u32 %r1, [%rd7+-4];", "membar.gl;", "membar.gl; st.volatile.global.u32 [%rd7], 1;"));
    right(with(CHAIN, "ld.acquire.gpu.global.u32 %r1, [%rd7+-4];", "", "st.release.gpu.global.u32 [%rd7], 1;"));
    right(with(CHAIN, "ld.acquire.sys.u32 %r1, [%rd7+-4];", "", "red.release.gpu.global.add.u32 [%rd7], 1;"));
    right(with(CHAIN, "atom.acquire.gpu.global.add.u32 %r1, [%rd7+-4], 0;", "", "atom.release.gpu.global.exch.b32 %r9, [%rd7], 1;"));
    wrong(with(CHAIN, "ld.relaxed.gpu.global.u32 %r1, [%rd7+-4];", "", FENCE "st.relaxed.gpu.global.u32 [%rd7], 1;"), UNFENCED);
    wrong(with(CHAIN, "ld.relaxed.gpu.global.u32 %r1, [%rd7+-4];", FENCE, "st.relaxed.gpu.global.u32 [%rd7], 1;"), RACE);
    wrong(with(CHAIN, "ld.acquire.gpu.global.u32 %r1, [%rd7+-4];", "", "st.relaxed.gpu.global.u32 [%rd7], 1;"), RACE);
    wrong(with(CHAIN, "ld.acquire.cta.global.u32 %r1, [%rd7+-4];", "", "st.release.gpu.global.u32 [%rd7], 1;"), RACE);
    /* the flag of another, which does not cover what is read */
    wrong(with(CHAIN, "ld.acquire.gpu.global.u32 %r1, [%rd1];", "", "st.release.gpu.global.u32 [%rd7], 1;"), RACE);
}
/* What the first block has stored reaches the last one through all between. */
Test(sim_grid_order, is_handed_on)
{
    static const char *const far = "ld.acquire.gpu.global.u32 %r1, [%rd7+-4];", *const look = "ld.global.u32 %r8, [%rd2+1024];";
    char body[512];
    right(with(CHAIN, far, look, "st.release.gpu.global.u32 [%rd7], 1;"));
    snprintf(body, sizeof body, "%s %s", "fence.acq_rel.gpu;", look);
    right(with(CHAIN, "ld.relaxed.gpu.global.u32 %r1, [%rd7+-4];", body, FENCE "st.relaxed.gpu.global.u32 [%rd7], 1;"));
    /* through one block's relaxed store of what it never fenced: the next does not know the one before that */
    snprintf(body, sizeof body,
             "setp.eq.u32 %%p3, %%r5, 2; @%%p3 st.relaxed.gpu.global.u32 [%%rd7], 1; @!%%p3 st.release.gpu.global.u32 [%%rd7], 1;");
    wrong(with(CHAIN, far, "", body), RACE);
}
Test(sim_grid_order, off_and_warned_of)
{
    const char *text = with(LAST, MEET, TICKET, FENCE);
    CUfunction f = load(text);
    char words[4096];
    sim_set_options(NULL);
    checks("race-global=off");
    cr_expect_eq(launch(f, BLOCKS, THREADS, 0, flags, work), CUDA_SUCCESS, "%s", sim_report());
    checks("race-global=warning");
    sim_warnings(words, sizeof words);
    cr_expect_eq(launch(f, BLOCKS, THREADS, 0, flags, work), CUDA_SUCCESS, "%s", sim_report());
    cr_expect_eq(sim_warnings(words, sizeof words), 1);
    cr_expect(strstr(words, RACE), "%s", words);
    sim_set_options(&(sim_options){ .unchecked = 1 });
    cr_expect_eq(launch(f, BLOCKS, THREADS, 0, flags, work), CUDA_SUCCESS, "%s", sim_report());
}
/* More launches than records tell apart. */
Test(sim_grid_order, old_records_are_none)
{
    CUfunction f = load(HEAD90 KERNEL("mov.u32 %r5, %ctaid.x; setp.eq.u32 %p1, %r5, 1; @%p1 atom.global.add.u32 %r1, [%rd1], 1; "
                                      "@!%p1 st.global.u32 [%rd2], %r0;")),
               g = load(HEAD90 KERNEL("atom.global.add.u32 %r1, [%rd1], 1; ld.global.u32 %r1, [%rd2];"));
    sim_set_options(NULL);
    for (int k = 0; k < 33000; k++)
        cr_assert_eq(launch(k ? g : f, 2, 1, 0, flags, work), CUDA_SUCCESS, "%d: %s", k, sim_report());
}
