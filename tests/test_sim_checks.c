/* Every check: a kernel with exactly that defect is reported, its corrected twin is not. */
#include "test_sim_machine.h"

static CUdeviceptr in, out;
static void open_checks(void)
{
    static uint32_t data[1024];
    open80();
    for (uint32_t k = 0; k < 1024; k++)
        data[k] = k;
    in = buffer(data, sizeof data), out = buffer(NULL, 4096);
}
TestSuite(sim_checks, .init = open_checks);

/* The kernel with `bad` in place of $1 fails so, with `good` it runs. */
static void bad_and_good(const char *text, unsigned threads, const char *bad, const char *good, CUresult code, const char *words)
{
    for (int schedule = SIM_IN_ORDER; schedule <= SIM_RANDOM; schedule++)
        for (int async = SIM_EAGER; async <= SIM_LAZY; async++) {
            sim_set_options(&(sim_options){ .schedule = (sim_schedule)schedule,
                                            .async = (sim_async)async,
                                            .seed = 3,
                                            .max_steps = 100000,
                                            .checks = { [SIM_CHECK_COLLISION] = SIM_ERROR } });
            run(with(text, good, "", ""), 1, threads, 0, in, out);
            fails(with(text, bad, "", ""), threads, 0, in, out, code, words);
        }
}
#define SHARED HEAD80 ".shared .align 16 .b8 buf[1024];\n"
/* %rd3 = in + 4 tid, %rd4 = out + 4 tid, %r9 = buf + 4 tid */
#define PLACES                                                                                                                            \
    "mul.wide.u32 %rd3, %r0, 4; add.s64 %rd4, %rd2, %rd3; add.s64 %rd3, %rd1, %rd3; shl.b32 %r8, %r0, 2; mov.u32 %r9, buf; add.u32 %r9, " \
    "%r9, %r8;\n"

Test(sim_checks, global_bounds)
{
    bad_and_good(HEAD80 KERNEL("ld.global.u32 %r1, [%rd1+$1];"), 1, "4096", "4092", CUDA_ERROR_ILLEGAL_ADDRESS,
                 "0 bytes past the end of the allocation");
    bad_and_good(HEAD80 KERNEL("ld.global.u32 %r1, [%rd1+$1];"), 1, "-4", "0", CUDA_ERROR_ILLEGAL_ADDRESS, "4 bytes before the allocation");
    bad_and_good(HEAD80 KERNEL("st.global.v4.u32 [%rd2+$1], {%r0,%r0,%r0,%r0};"), 1, "4096", "4080", CUDA_ERROR_ILLEGAL_ADDRESS,
                 "16 bytes at");
    bad_and_good(HEAD80 KERNEL("mov.u64 %rd3, $1; ld.u32 %r1, [%rd3];"), 1, "8", "%rd1", CUDA_ERROR_ILLEGAL_ADDRESS,
                 "global memory accessed out of bounds");
}
Test(sim_checks, use_after_free)
{
    CUdeviceptr p = buffer("1234", 4);
    CUfunction f = load(HEAD80 KERNEL("ld.global.u32 %r1, [%rd1];"));
    cr_expect_eq(launch(f, 1, 1, 0, p, out), CUDA_SUCCESS);
    cu->cuMemFree(p);
    buffer("1234", 4);
    cr_expect_eq(launch(f, 1, 1, 0, p, out), CUDA_ERROR_ILLEGAL_ADDRESS);
}
Test(sim_checks, shared_bounds)
{
    bad_and_good(SHARED KERNEL(PLACES "st.shared.u32 [buf+$1], 1;"), 1, "1024", "1020", CUDA_ERROR_ILLEGAL_ADDRESS,
                 "offset 1024; the block has 1024 (1024 static, 0 dynamic)");
    bad_and_good(SHARED KERNEL(PLACES "mov.u32 %r1, $1; st.shared.u32 [%r1], 1;"), 1, "0", "buf", CUDA_ERROR_ILLEGAL_ADDRESS,
                 "is a base address missing?");
}
Test(sim_checks, local_and_parameter_bounds)
{
    bad_and_good(HEAD80 KERNEL(".local .b8 depot[16]; mov.u64 %rd3, depot; st.local.u32 [%rd3+$1], 1;"), 1, "16", "12",
                 CUDA_ERROR_ILLEGAL_ADDRESS, "local memory accessed out of bounds");
    bad_and_good(HEAD80 KERNEL("ld.param.u64 %rd3, [a+$1];"), 1, "16", "8", CUDA_ERROR_ILLEGAL_ADDRESS,
                 "parameters accessed out of bounds");
}
Test(sim_checks, alignment)
{
    bad_and_good(HEAD80 KERNEL("ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd1+$1];"), 1, "8", "16", CUDA_ERROR_MISALIGNED_ADDRESS,
                 "misaligned access to global memory: 16 bytes");
    bad_and_good(SHARED KERNEL(PLACES "st.shared.u32 [%r9+$1], 1;"), 1, "2", "4", CUDA_ERROR_MISALIGNED_ADDRESS,
                 "misaligned access to shared memory");
    bad_and_good(SHARED KERNEL("mov.u32 %r9, buf; cp.async.ca.shared.global [%r9], [%rd1+$1], 8; cp.async.wait_all;"), 1, "4", "8",
                 CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned source");
}
Test(sim_checks, alignment_of_atomics_on_vectors)
{
    static const struct {
        const char *text, *bad, *good;
    } rows[] = {
        { HEAD80 KERNEL("red.global.add.v4.f32 [%rd2+$1], {0f00000000,0f00000000,0f00000000,0f00000000};"), "8", "16" },
        { HEAD80 KERNEL("red.global.add.v2.f32 [%rd2+$1], {0f00000000,0f00000000};"), "4", "8" },
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        uint32_t zeros[16] = { 0 };
        CUdeviceptr to = buffer(zeros, sizeof zeros);
        run(with(rows[k].text, rows[k].good, "", ""), 1, 32, 0, in, to);
        cr_expect_neq(launch(load(with(rows[k].text, rows[k].bad, "", "")), 1, 32, 0, in, to), CUDA_SUCCESS, "%s", rows[k].text);
        cr_expect(strstr(sim_report(), "a vector that is not aligned to its size"), "%s", sim_report());
    }
}
Test(sim_checks, unwritten_memory)
{
    fails(HEAD80 KERNEL("ld.global.u32 %r1, [%rd2+512]; st.global.u32 [%rd2], %r1;"), 1, 0, in, out, CUDA_ERROR_LAUNCH_FAILED,
          "global memory is read that was never written");
    run(HEAD80 KERNEL("st.global.u32 [%rd2+512], 0; ld.global.u32 %r1, [%rd2+512];"), 1, 1, 0, in, out);
    fails(HEAD80 KERNEL("st.global.u16 [%rd2+768], 0; ld.global.u32 %r1, [%rd2+768]; st.global.u32 [%rd2], %r1;"), 1, 0, in, out,
          CUDA_ERROR_LAUNCH_FAILED, "byte 770 of the allocation");
    fails(SHARED KERNEL(
              "cp.async.ca.shared.global [buf], [%rd2+32], 16; cp.async.wait_all; ld.shared.u32 %r1, [buf+4]; st.global.u32 [%rd2], %r1;"),
          1, 0, in, out, CUDA_ERROR_LAUNCH_FAILED, "global memory is read that was never written");
}
Test(sim_checks, unwritten_shared_memory)
{
    bad_and_good(SHARED KERNEL(PLACES "$1 ld.shared.u32 %r1, [%r9]; st.global.u32 [%rd4], %r1;"), 32, "st.shared.u16 [%r9], 1;",
                 "st.shared.u32 [%r9], 1;", CUDA_ERROR_LAUNCH_FAILED, "shared memory is read that was never written: offset 2");
}
Test(sim_checks, unwritten_registers)
{
    bad_and_good(HEAD80 KERNEL("$1 st.global.u32 [%rd2], %r7;"), 1, "", "mov.u32 %r7, 1;", CUDA_ERROR_LAUNCH_FAILED,
                 "register %r7 is stored to global memory, but it was never written");
    bad_and_good(
        HEAD80 KERNEL("$1 mov.u32 %r6, %r7; add.u32 %r5, %r6, 1; st.global.u32 [%rd2], %r5;"), 1, "", "mov.u32 %r7, 1;",
        CUDA_ERROR_LAUNCH_FAILED,
        "register %r5 is stored to global memory, but its value is undefined: it comes from register %r7, which was never written");
    bad_and_good(HEAD80 KERNEL("setp.eq.u32 %p1, %r0, 0; $1 @%p2 st.global.u32 [%rd2], %r0;"), 1, "", "mov.pred %p2, %p1;",
                 CUDA_ERROR_LAUNCH_FAILED, "predicate %p2 decides");
    /* written under one guard and read under the same or a narrower one; selected away: not undefined */
    bad_and_good(
        HEAD80 KERNEL("setp.lt.u32 %p1, %r0, 16; @%p1 mov.u32 %r7, %r0; setp.lt.u32 %p2, %r0, $1; @%p2 st.global.u32 [%rd2], 5; @%p2 "
                      "add.u32 %r6, %r7, 1; @%p2 st.global.u32 [%rd2], 5; @%p2 st.global.u32 [%rd2+64], %r6;"),
        1, "1; mov.u32 %r7, %r12", "1", CUDA_ERROR_LAUNCH_FAILED, "register %r6");
    run(HEAD80 KERNEL("setp.lt.u32 %p1, %r0, 16; @%p1 mov.u32 %r7, %r0; selp.b32 %r6, %r7, 0, %p1; st.global.u32 [%rd2], 5; mul.wide.u32 "
                      "%rd3, %r0, 4; add.s64 %rd3, %rd3, %rd2; st.global.u32 [%rd3], %r6;"),
        1, 32, 0, in, out);
}
Test(sim_checks, races_between_warps)
{
    /* each warp reads what the other wrote */
    bad_and_good(
        SHARED KERNEL(PLACES "st.shared.u32 [%r9], %r0; $1 xor.b32 %r1, %r8, 128; mov.u32 %r2, buf; add.u32 %r2, %r2, %r1; ld.shared.u32 "
                             "%r3, [%r2]; st.global.u32 [%rd4], %r3;"),
        64, "membar.cta;", "bar.sync 0;", CUDA_ERROR_LAUNCH_FAILED, "hared memory"); /* a race, or a read of what is not yet written */
    /* written again while the other may still read */
    bad_and_good(SHARED KERNEL(PLACES
                               "st.shared.u32 [%r9], %r0; bar.sync 0; xor.b32 %r1, %r8, 128; mov.u32 %r2, buf; add.u32 %r2, %r2, %r1; "
                               "ld.shared.u32 %r3, [%r2]; $1 st.shared.u32 [%r9], %r3;"),
                 64, "", "bar.sync 0;", CUDA_ERROR_LAUNCH_FAILED, "race in shared memory: warp");
    /* both write */
    bad_and_good(SHARED KERNEL(PLACES
                               "shr.u32 %r1, %r0, 5; setp.eq.u32 %p1, %r1, 0; and.b32 %r2, %r8, 127; mov.u32 %r9, buf; add.u32 %r9, %r9, "
                               "%r2; @%p1 st.shared.u32 [%r9], 1; $1 @!%p1 st.shared.u32 [%r9], 2;"),
                 64, "", "bar.sync 0;", CUDA_ERROR_LAUNCH_FAILED, "which warp");
    /* neighbours in one word are no race */
    run(SHARED KERNEL("mov.u32 %r9, buf; and.b32 %r1, %r0, 31; shl.b32 %r1, %r1, 2; shr.u32 %r2, %r0, 5; shl.b32 %r2, %r2, 1; add.u32 %r9, "
                      "%r9, %r1; add.u32 %r9, %r9, %r2; st.shared.u16 [%r9], %r0; ld.shared.u16 %r3, [%r9];"),
        1, 64, 0, in, out);
}
/* $1 stands between what a lane does and what the lane beside it does, whose word is at %r2 */
#define LANES(body) SHARED KERNEL(PLACES "xor.b32 %r1, %r8, 4; mov.u32 %r2, buf; add.u32 %r2, %r2, %r1; " body)
#define OWN_COPY "cp.async.ca.shared.global [%r9], [%rd3], 4; cp.async.wait_all; "
Test(sim_checks, races_between_lanes)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        { LANES("st.shared.u32 [%r9], %r0; $1 ld.shared.u32 %r3, [%r2];"),
          "lane 0 reads offset 4, which lane 1 of its warp has written, with no __syncwarp()" },
        { LANES("st.shared.u32 [%r9], %r0; $1 shfl.sync.bfly.b32 %r4, %r0, 1, 31, -1; ld.shared.u32 %r3, [%r2];"), "has written" },
        { LANES(OWN_COPY "$1 ld.shared.u32 %r3, [%r2];"), "of its warp has written" },
        { LANES(OWN_COPY "bar.warp.sync -1; ld.shared.u32 %r3, [%r2]; $1 st.shared.u32 [%r9], %r3;"), "of its warp has read" },
        { LANES(OWN_COPY "bar.warp.sync -1; ld.shared.u32 %r3, [%r2]; $1 " OWN_COPY), "of its warp has read" },
        { LANES(OWN_COPY "bar.warp.sync -1; ld.shared.u32 %r3, [buf]; $1 setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [%r9], 5;"),
          "which several lanes of its warp have read" },
        { LANES("and.b32 %r3, %r0, 7; shl.b32 %r3, %r3, 4; mov.u32 %r4, buf; add.u32 %r4, %r4, %r3; st.shared.u32 [%r9], %r0; $1 "
                "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r4];"),
          "of its warp has written" },
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        bad_and_good(rows[k].text, 32, "", "bar.warp.sync -1;", CUDA_ERROR_LAUNCH_FAILED, rows[k].words);
    /* lanes with bytes of their own in one word, a value that all have stored, and one that is there again, are no race */
    run(SHARED KERNEL(PLACES "shr.u32 %r8, %r8, 1; mov.u32 %r9, buf; add.u32 %r9, %r9, %r8; st.shared.u16 [%r9], %r0; ld.shared.u16 %r3, "
                             "[%r9]; st.shared.u16 [%r9], %r8; st.shared.u32 [buf+512], 7; ld.shared.u32 %r3, [buf+512]; "
                             "st.shared.u32 [buf+512], 7;"),
        1, 32, 0, in, out);
}
Test(sim_checks, races_with_named_barriers)
{
    /* warp 0 writes and arrives, warp 1 waits and reads; warps 2 and 3 have nothing to do with it */
    bad_and_good(SHARED KERNEL(PLACES
                               "and.b32 %r2, %r8, 127; mov.u32 %r9, buf; add.u32 %r9, %r9, %r2; shr.u32 %r1, %r0, 5; setp.eq.u32 %p1, %r1, "
                               "0; setp.eq.u32 %p2, %r1, 1; setp.eq.u32 %p3, %r1, $1;\n"
                               "@%p1 st.shared.u32 [%r9], 1; @%p1 bar.arrive 3, 64; @%p2 bar.sync 3, 64; @!%p3 bra DONE; bar.sync 4, 32; "
                               "ld.shared.u32 %r3, [%r9]; DONE: "),
                 128, "2", "1", CUDA_ERROR_LAUNCH_FAILED, "shared memory");
}
Test(sim_checks, races_inside_a_store)
{
    bad_and_good(SHARED KERNEL("mov.u32 %r9, buf; st.shared.u32 [%r9], $1;"), 32, "%r0", "7", CUDA_ERROR_LAUNCH_FAILED,
                 "lanes of one store write different values to offset 0");
}
Test(sim_checks, copies_in_flight)
{
    /* read before the wait; wait for too few groups; read by another warp without a barrier after the wait */
    bad_and_good(
        SHARED KERNEL(PLACES
                      "cp.async.ca.shared.global [%r9], [%rd3], 4; cp.async.commit_group; $1 ld.shared.u32 %r1, [%r9]; cp.async.wait_all;"),
        32, "", "cp.async.wait_group 0;", CUDA_ERROR_LAUNCH_FAILED,
        "read while an asynchronous copy to it is in flight: offset 0; a wait is missing");
    bad_and_good(SHARED KERNEL(PLACES
                               "cp.async.ca.shared.global [%r9], [%rd3], 4; cp.async.commit_group; cp.async.ca.shared.global [%r9+128], "
                               "[%rd3], 4; cp.async.commit_group; cp.async.wait_group $1; ld.shared.u32 %r1, [%r9]; "),
                 32, "2", "1", CUDA_ERROR_LAUNCH_FAILED, "in flight");
    bad_and_good(SHARED KERNEL(PLACES
                               "cp.async.ca.shared.global [%r9], [%rd3], 4; $1 xor.b32 %r1, %r8, 128; mov.u32 %r2, buf; add.u32 %r2, %r2, "
                               "%r1; ld.shared.u32 %r3, [%r2];"),
                 64, "cp.async.wait_all;", "cp.async.wait_all; bar.sync 0;", CUDA_ERROR_LAUNCH_FAILED, "hared memory");
    bad_and_good(SHARED KERNEL(PLACES
                               "cp.async.ca.shared.global [%r9], [%rd3], 4; $1 xor.b32 %r1, %r8, 128; mov.u32 %r2, buf; add.u32 %r2, %r2, "
                               "%r1; ld.shared.u32 %r3, [%r2];"),
                 64, "bar.sync 0; cp.async.wait_all;", "cp.async.wait_all; bar.sync 0;", CUDA_ERROR_LAUNCH_FAILED, "hared memory");
    bad_and_good(SHARED KERNEL(PLACES "cp.async.ca.shared.global [%r9], [%rd3], 4; $1 st.shared.u32 [%r9], 1;"), 32, "",
                 "cp.async.wait_all;", CUDA_ERROR_LAUNCH_FAILED, "written while an asynchronous copy");
}
Test(sim_checks, divergence)
{
    bad_and_good(HEAD80 KERNEL("setp.lt.u32 %p1, %r0, $1; @!%p1 bra DONE; shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1; DONE: mov.u32 %r5, 0;"),
                 32, "16", "32", CUDA_ERROR_LAUNCH_FAILED, "divergence at a .sync instruction");
    bad_and_good(HEAD80 KERNEL("setp.lt.u32 %p1, %r0, $1; @!%p1 bra DONE; bar.sync 0; DONE: mov.u32 %r5, 0;"), 32, "16", "32",
                 CUDA_ERROR_LAUNCH_FAILED, "divergence at a barrier");
    bad_and_good(HEAD80 KERNEL("shfl.sync.bfly.b32 %r1, %r0, 1, 31, $1;"), 32, "0xffff", "-1", CUDA_ERROR_LAUNCH_FAILED, "leaves it out");
    bad_and_good(
        HEAD80 KERNEL("setp.lt.u32 %p1, %r0, 16; @!%p1 bra DONE; shfl.sync.idx.b32 %r1, %r0, $1, 31, 0xffff; st.global.u32 [%rd2], %r1; "
                      "DONE: mov.u32 %r5, 0;"),
        32, "20", "3", CUDA_ERROR_LAUNCH_FAILED, "reads lane 20, which does not take part");
    bad_and_good(SHARED KERNEL(PLACES "st.shared.u32 [%r9], 1; bar.warp.sync -1; mov.u32 %r9, buf; setp.lt.u32 %p1, %r0, $1; @%p1 "
                                      "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r9];"),
                 32, "31", "32", CUDA_ERROR_LAUNCH_FAILED, "needs all 32 lanes");
}
Test(sim_checks, barriers)
{
    bad_and_good(HEAD80 KERNEL("setp.lt.u32 %p1, %r0, $1; @%p1 bar.sync 0;"), 64, "32", "64", CUDA_ERROR_LAUNCH_TIMEOUT,
                 "warp 0 waits at barrier 0, where 32 of 64 threads are");
    bad_and_good(HEAD80 KERNEL("setp.ge.u32 %p1, %r0, 32; @%p1 bra OTHER; bar.sync 1; bra DONE; OTHER: bar.sync $1; DONE: "), 64, "2", "1",
                 CUDA_ERROR_LAUNCH_TIMEOUT, "waits at barrier 2");
    bad_and_good(HEAD80 KERNEL("setp.ge.u32 %p1, %r0, 32; @%p1 bra OTHER; bar.sync 1, $1; bra DONE; OTHER: bar.sync 1, 128; DONE: "), 128,
                 "96", "128", CUDA_ERROR_LAUNCH_FAILED, "is asked to wait for");
    bad_and_good(HEAD80 KERNEL("bar.sync $1;"), 32, "16", "15", CUDA_ERROR_LAUNCH_FAILED, "there is no barrier 16");
    bad_and_good(HEAD80 KERNEL("bar.sync 0, $1;"), 64, "48", "64", CUDA_ERROR_LAUNCH_FAILED, "not a multiple of 32");
}
Test(sim_checks, mbarriers)
{
#define INIT "setp.eq.u32 %p1, %r0, 0; mov.u32 %r9, buf; @%p1 mbarrier.init.shared::cta.b64 [%r9], 64; bar.sync 0; "
#define WAIT "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r9], 0; @!%p2 bra W; "
    bad_and_good(SHARED KERNEL(INIT "setp.lt.u32 %p3, %r0, $1; @%p3 mbarrier.arrive.shared::cta.b64 _, [%r9]; " WAIT), 64, "32", "64",
                 CUDA_ERROR_LAUNCH_TIMEOUT, "deadlock");
    bad_and_good(SHARED KERNEL(INIT "mbarrier.arrive.shared::cta.b64 %rd3, [%r9], $1; bar.sync 0;"), 64,
                 "2; mbarrier.arrive.shared::cta.b64 %rd3, [%r9], 65", "1", CUDA_ERROR_LAUNCH_FAILED, "too many arrivals");
    bad_and_good(SHARED KERNEL(INIT "mbarrier.arrive.shared::cta.b64 %rd3, [%r9+$1];"), 64, "8", "0", CUDA_ERROR_LAUNCH_FAILED,
                 "no mbarrier was initialised at shared offset 8");
    /* data handed over through the barrier: no race; without the wait: one */
    bad_and_good(SHARED KERNEL(INIT "shl.b32 %r8, %r0, 2; add.u32 %r7, %r9, 64; add.u32 %r7, %r7, %r8; st.shared.u32 [%r7], %r0; "
                                    "mbarrier.arrive.shared::cta.b64 _, [%r9]; $1 xor.b32 %r8, %r8, 128; add.u32 %r7, %r9, 64; "
                                    "add.u32 %r7, %r7, %r8; ld.shared.u32 %r1, [%r7];"),
                 64, "", WAIT, CUDA_ERROR_LAUNCH_FAILED, "hared memory");
    bad_and_good(SHARED KERNEL("setp.eq.u32 %p1, %r0, 0; mov.u32 %r9, buf; @%p1 mbarrier.init.shared::cta.b64 [%r9], 64; $1 "
                               "mbarrier.arrive.shared::cta.b64 _, [%r9];"),
                 64, "", "bar.sync 0;", CUDA_ERROR_LAUNCH_FAILED, "");
}
Test(sim_checks, an_mbarrier_is_initialised_once)
{
    bad_and_good(SHARED KERNEL("setp.eq.u32 %p1, %r0, 0; mov.u32 %r9, buf; $1 mbarrier.init.shared::cta.b64 [%r9], 64;"), 32, "", "@%p1",
                 CUDA_ERROR_LAUNCH_FAILED, "initialised already");
}
Test(sim_checks, copies_that_arrive)
{
    /* every lane's copy arrives at the barrier; the wait makes all of them visible to all */
    bad_and_good(SHARED KERNEL(INIT
                               "shl.b32 %r8, %r0, 2; add.u32 %r7, %r9, 64; add.u32 %r7, %r7, %r8; mul.wide.u32 %rd3, %r0, 4; add.s64 %rd3, "
                               "%rd3, %rd1; cp.async.ca.shared.global [%r7], [%rd3], 4; "
                               "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r9]; $1 xor.b32 %r8, %r8, 128; add.u32 %r7, %r9, 64; "
                               "add.u32 %r7, %r7, %r8; ld.shared.u32 %r1, [%r7];"),
                 64, "", WAIT, CUDA_ERROR_LAUNCH_FAILED, "hared memory");
}
Test(sim_checks, hang_and_trap)
{
    bad_and_good(HEAD80 KERNEL("mov.u32 %r1, 0; L: add.u32 %r1, %r1, $1; setp.lt.u32 %p1, %r1, 10; @%p1 bra L;"), 1, "0", "1",
                 CUDA_ERROR_LAUNCH_TIMEOUT, "hang: the launch has run");
    bad_and_good(HEAD80 KERNEL("setp.eq.u32 %p1, %r0, $1; @%p1 trap;"), 1, "0", "1", CUDA_ERROR_LAUNCH_FAILED, "the kernel has trapped");
}
Test(sim_checks, reports_say_where)
{
    const char *ptx =
        HEAD80 ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .b64 %rd<4>; .reg .b32 %r<4>;\n.loc 1 17 5\nld.param.u64 %rd1, "
               "[a];\n.loc 1 42 9, function_name $L1, inlined_at 1 50 3\n"
               "ld.global.u32   %r1,\t[%rd1+4096];\nret;\n}\n.file 1 \"templates/x.cu\"\n.section .debug_str { $L1: .b8 1,2 }\n";
    cr_expect_eq(launch(load(ptx), 1, 40, 0, in, out), CUDA_ERROR_ILLEGAL_ADDRESS);
    const char *words[] = { "global memory accessed out of bounds: 4 bytes at address 0x",
                            "in kernel k, PTX line 10: ld.global.u32 %r1, [%rd1+4096]", "from templates/x.cu:42, inlined at line 50",
                            "block (0,0,0), warp 0, lane 0: thread (0,0,0)" };
    for (int k = 0; k < 4; k++)
        cr_expect(strstr(sim_report(), words[k]) != NULL, "\"%s\" is not in:\n%s", words[k], sim_report());
    cr_expect_eq(launch(load(HEAD80 KERNEL("")), 1, 40, 0, in, out), CUDA_SUCCESS, "not sticky");
}
Test(sim_checks, unchecked_still_has_bounds)
{
    sim_set_options(&(sim_options){ .unchecked = 1 });
    run(SHARED KERNEL(PLACES "ld.shared.u32 %r1, [%r9]; ld.global.u32 %r2, [%rd2]; st.shared.u32 [buf], %r0;"), 1, 64, 0, in, out);
    fails(HEAD80 KERNEL("ld.global.u32 %r1, [%rd1+4096];"), 1, 0, in, out, CUDA_ERROR_ILLEGAL_ADDRESS, "out of bounds");
}
