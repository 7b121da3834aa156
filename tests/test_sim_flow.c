/* Control flow: lanes that part and meet, loops, exits, schedules, several blocks and host threads. */
#include "test_sim_machine.h"

TestSuite(sim_flow, .init = open80);
#define PLACES                                                                                                                          \
    "mov.u32 %r10, %ctaid.x; mov.u32 %r11, %ntid.x; mad.lo.u32 %r12, %r10, %r11, %r0; mul.wide.u32 %rd3, %r12, 4; add.s64 %rd4, %rd2, " \
    "%rd3;\n"

static void expect(const char *ptx, unsigned blocks, unsigned threads, uint32_t (*want)(uint32_t))
{
    static uint32_t got[4096];
    CUdeviceptr in = buffer("01234567", 8), out = buffer(NULL, 4 * blocks * threads);
    for (int schedule = 0; schedule < 3; schedule++) {
        sim_set_options(&(sim_options){ .schedule = (sim_schedule)schedule, .seed = 11, .threads = schedule });
        cu->cuMemsetD8Async(out, 0xEE, 4 * blocks * threads, NULL);
        run(ptx, blocks, threads, 0, in, out);
        fetch(got, out, 4 * blocks * threads);
        for (uint32_t k = 0; k < blocks * threads; k++)
            cr_assert_eq(got[k], want(k), "schedule %d thread %u: %u instead of %u", schedule, k, got[k], want(k));
    }
}

static uint32_t nested(uint32_t t)
{
    return (t & 1 ? t & 2 ? 3 : 1 : t & 4 ? 40 : 0) + 100;
}
Test(sim_flow, nested_branches_meet_again)
{
    /* after the branches a shuffle of all lanes proves that they have met */
    expect(HEAD80 KERNEL(PLACES "mov.u32 %r5, 0; and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra EVEN;\nand.b32 %r2, %r0, 2; "
                                "setp.eq.u32 %p2, %r2, 0; @%p2 bra ONE; mov.u32 %r5, 3; bra JOIN;\nONE: mov.u32 %r5, 1; bra JOIN;\n"
                                "EVEN: and.b32 %r2, %r0, 4; setp.eq.u32 %p2, %r2, 0; @%p2 bra JOIN; mov.u32 %r5, 40;\nJOIN: "
                                "vote.sync.all.pred %p3, %p1, -1; @!%p3 add.u32 %r5, %r5, 100; st.global.u32 [%rd4], %r5;"),
           2, 64, nested);
}
static uint32_t triangle(uint32_t t)
{
    uint32_t n = t % 32;
    return n * (n + 1) / 2 + 1000;
}
Test(sim_flow, loops_of_different_length)
{
    expect(HEAD80 KERNEL(PLACES "mov.u32 %r1, 0; and.b32 %r2, %r0, 31;\nL: setp.eq.u32 %p1, %r2, 0; @%p1 bra OUT; add.u32 %r1, %r1, %r2; "
                                "sub.u32 %r2, %r2, 1; bra L;\nOUT: redux.sync.max.u32 %r3, %r1, -1; setp.eq.u32 %p2, %r3, 496;\n"
                                "@%p2 add.u32 %r1, %r1, 1000; st.global.u32 [%rd4], %r1;"),
           1, 96, triangle);
}
static uint32_t gone(uint32_t t)
{
    return t % 64 < 40 ? t % 32 < 3 ? 7 : 9 : 0xEEEEEEEEu;
}
Test(sim_flow, lanes_that_leave_early)
{
    expect(HEAD80 KERNEL(PLACES "setp.ge.u32 %p1, %r0, 40; @%p1 exit; and.b32 %r1, %r0, 31; setp.lt.u32 %p2, %r1, 3; @!%p2 bra NINE; "
                                "st.global.u32 [%rd4], 7; ret;\nNINE: st.global.u32 [%rd4], 9;"),
           3, 64, gone);
}
static uint32_t table(uint32_t t)
{
    static const uint32_t v[] = { 10, 20, 30, 10 };
    return v[t & 3] + 5;
}
Test(sim_flow, branch_tables)
{
    expect(HEAD80 KERNEL(
               PLACES "and.b32 %r1, %r0, 3;\nTARGETS: .branchtargets A, B, C, A;\nbrx.idx %r1, TARGETS;\nA: mov.u32 %r2, 10; bra J;\nB: "
                      "mov.u32 %r2, 20; bra J;\nC: mov.u32 %r2, 30;\nJ: bar.warp.sync -1; add.u32 %r2, %r2, 5; st.global.u32 [%rd4], %r2;"),
           1, 32, table);
}
static uint32_t swapped(uint32_t t)
{
    return (t / 128) * 128 + 127 - t % 128;
}
Test(sim_flow, barriers_in_every_schedule)
{
    expect(HEAD80 ".shared .align 4 .b8 buf[512];\n" KERNEL(
               PLACES "mov.u32 %r1, buf; shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], %r12; bar.sync 0; sub.u32 %r4, "
                      "508, %r2; add.u32 %r4, %r4, %r1; ld.shared.u32 %r5, [%r4]; st.global.u32 [%rd4], %r5;"),
           8, 128, swapped);
}
static uint32_t reduced(uint32_t t)
{
    (void)t;
    return 40;
}
Test(sim_flow, reducing_barriers)
{
    expect(HEAD80 KERNEL(PLACES "setp.lt.u32 %p1, %r0, 40; barrier.cta.red.popc.aligned.u32 %r1, 0, %p1; bar.red.or.pred %p2, 1, %p1; "
                                "bar.red.and.pred %p3, 1, %p1; @!%p2 mov.u32 %r1, 0; @%p3 mov.u32 %r1, 0; st.global.u32 [%rd4], %r1;"),
           1, 64, reduced);
}
static uint32_t odd_threads(uint32_t t)
{
    return t * 3;
}
Test(sim_flow, blocks_that_are_no_multiple_of_a_warp)
{
    expect(HEAD80 KERNEL(PLACES "bar.sync 0; mul.lo.u32 %r1, %r12, 3; st.global.u32 [%rd4], %r1;"), 3, 45, odd_threads);
}
static uint32_t handed(uint32_t t)
{
    return (t ^ 32) + 1000;
}
Test(sim_flow, mbarrier_phases)
{
    expect(HEAD80 ".shared .align 8 .b8 bar[8];\n.shared .align 4 .b8 buf[256];\n" KERNEL(
               PLACES "mov.u32 %r1, bar; mov.u32 %r2, buf; setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared::cta.b64 [%r1], 64; bar.sync "
                      "0; shl.b32 %r3, %r0, 2; add.u32 %r4, %r2, %r3; xor.b32 %r5, %r3, 128; add.u32 %r5, %r5, %r2;\n"
                      "st.shared.u32 [%r4], %r0; mbarrier.arrive.shared::cta.b64 %rd5, [%r1];\nW0: mbarrier.try_wait.shared::cta.b64 %p2, "
                      "[%r1], %rd5; @!%p2 bra W0;\nld.shared.u32 %r6, [%r5]; mbarrier.arrive.shared::cta.b64 _, [%r1];\n"
                      "W1: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 1; @!%p2 bra W1;\nst.shared.u32 [%r4], 5; add.u32 %r6, "
                      "%r6, 1000; st.global.u32 [%rd4], %r6; bar.sync 0; @%p1 mbarrier.inval.shared::cta.b64 [%r1];"),
           1, 64, handed);
}
Test(sim_flow, flags_in_shared_memory_order_what_they_guard)
{
    CUdeviceptr in = buffer("01234567", 8), out = buffer("01234567", 8);
    run(HEAD80 ".shared .align 4 .b8 buf[8];\n" KERNEL(
            "setp.ne.u32 %p3, %r0, 0; @%p3 bra SYNC; st.volatile.shared.u32 [buf], 0;\nSYNC: bar.sync 0; setp.eq.u32 %p1, %r0, 0; "
            "setp.eq.u32 %p2, %r0, 32; @!%p1 bra B; st.shared.u32 [buf+4], 77; membar.cta; st.volatile.shared.u32 [buf], 1;\n"
            "B: @!%p2 bra DONE;\nSPIN: ld.volatile.shared.u32 %r1, [buf]; setp.eq.u32 %p3, %r1, 0; @%p3 bra SPIN; membar.cta; "
            "ld.shared.u32 %r2, [buf+4]; st.global.u32 [%rd2], %r2;\nDONE: mov.u32 %r3, 0;"),
        1, 64, 0, in, out);
    uint32_t got;
    fetch(&got, out, 4);
    cr_expect_eq(got, 77);
}

/* Sixteen lanes go round once more before they set the flag that the others wait for. No block comes after all paths, so the lanes
 * meet nowhere: not at the first instruction either, which is the head of the loop. */
Test(sim_flow, lanes_that_meet_nowhere_do_not_wait_at_the_first_instruction)
{
    static const uint32_t zero[65];
    CUdeviceptr in = buffer(zero, 128), out = buffer(zero, sizeof zero);
    uint32_t got[65];
    run(HEAD80 ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n"
               "L: mov.u32 %r0, %tid.x; ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; mul.wide.u32 %rd3, %r0, 4; add.s64 %rd4, %rd1, "
               "%rd3; add.s64 %rd5, %rd2, %rd3;\n"
               "ld.global.u32 %r1, [%rd4]; add.u32 %r2, %r1, 1; st.global.u32 [%rd4], %r2; mov.u32 %r4, 0; setp.lt.u32 %p1, %r0, 16; @%p1 "
               "bra GO;\n"
               "SPIN: add.u32 %r4, %r4, 1; ld.volatile.global.u32 %r3, [%rd2]; setp.eq.u32 %p2, %r3, 0; setp.lt.and.u32 %p2, %r4, 1000, "
               "%p2; @%p2 bra SPIN; add.u32 %r3, %r3, 6; st.global.u32 [%rd5+4], %r3; ret;\n"
               "GO: setp.eq.u32 %p3, %r1, 0; @%p3 bra L; st.volatile.global.u32 [%rd2], 1; st.global.u32 [%rd5+4], %r2; ret;\n}\n",
        1, 32, 0, in, out);
    fetch(got, out, sizeof got);
    for (uint32_t k = 0; k < 32; k++)
        cr_expect_eq(got[k + 1], k < 16 ? 2u : 7u, "thread %u: %u", k, got[k + 1]);
}
