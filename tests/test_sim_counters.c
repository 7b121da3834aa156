/* The counters, exact on kernels small enough to count by hand. */
#include "test_sim_machine.h"

TestSuite(sim_counters, .init = open80);
#define SHARED HEAD80 ".shared .align 16 .b8 buf[8192];\n"
static CUdeviceptr in, out;
static sim_counters counted(const char *ptx, unsigned blocks, unsigned threads)
{
    static uint8_t zero[8192];
    sim_counters c;
    if (!in)
        in = buffer(zero, sizeof zero), out = buffer(zero, sizeof zero);
    sim_counters_reset();
    run(ptx, blocks, threads, 0, in, out);
    sim_counters_get(&c);
    return c;
}

Test(sim_counters, instructions_and_bytes)
{
    /* 3 instructions of KERNEL before the body, ret after it */
    sim_counters c =
        counted(HEAD80 KERNEL("mul.wide.u32 %rd3, %r0, 8; add.s64 %rd4, %rd2, %rd3; add.s64 %rd3, %rd1, %rd3; setp.lt.u32 %p1, %r0, 10; "
                              "@%p1 ld.global.v2.u32 {%r1,%r2}, [%rd3]; ld.global.u32 %r3, [%rd1]; st.global.u16 [%rd4], %r3;\n"
                              "mov.b32 %f1, %r3; ex2.approx.f32 %f2, %f1; shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1; bar.sync 0;"),
                3, 64);
    cr_expect(c.launches == 1 && c.blocks == 3 && c.warps == 6);
    cr_expect_eq(c.instructions, 6 * 15);
    cr_expect_eq(c.memory, 6 * (2 + 3));
    cr_expect_eq(c.special, 6);
    cr_expect_eq(c.shuffle, 6);
    cr_expect_eq(c.control, 6 * 2);
    cr_expect_eq(c.other, 6 * 6);
    cr_expect_eq(c.barriers, 6);
    cr_expect_eq(c.global_read, 3 * (10 * 8 + 64 * 4));
    cr_expect_eq(c.global_write, 3 * 64 * 2);
    cr_expect_eq(c.tensors, 2);
    cr_expect(c.tensor[0].base == in && c.tensor[0].size == 8192 && c.tensor[0].read == c.global_read && c.tensor[0].write == 0);
    cr_expect(c.tensor[1].base == out && c.tensor[1].write == c.global_write && c.tensor[1].read == 0);
}

static void banks(const char *address_and_access, uint64_t wavefronts, uint64_t ideal)
{
    char text[4096];
    snprintf(text, sizeof text, "%s%s", SHARED, KERNEL("mov.u32 %r9, buf; shl.b32 %r8, %r0, 2; mov.u32 %r1, 0; $1"));
    sim_counters c = counted(with(text, address_and_access, "", ""), 1, 32);
    cr_expect(c.shared_wavefronts == wavefronts && c.shared_ideal == ideal, "%s: %llu of %llu", address_and_access,
              (unsigned long long)c.shared_wavefronts, (unsigned long long)c.shared_ideal);
}
Test(sim_counters, bank_conflicts)
{
    banks("add.u32 %r9, %r9, %r8; st.shared.u32 [%r9], %r1;", 1, 1);
    banks("st.shared.u32 [%r9], %r1;", 1, 1);                                                               /* one word for all */
    banks("shl.b32 %r8, %r8, 1; add.u32 %r9, %r9, %r8; st.shared.u32 [%r9], %r1;", 2, 1);                   /* every second bank */
    banks("shl.b32 %r8, %r8, 5; add.u32 %r9, %r9, %r8; st.shared.u32 [%r9], %r1;", 32, 1);                  /* one bank */
    banks("shr.u32 %r8, %r8, 1; add.u32 %r9, %r9, %r8; st.shared.u16 [%r9], %r1;", 1, 1);                   /* two lanes a word */
    banks("shl.b32 %r8, %r8, 1; add.u32 %r9, %r9, %r8; st.shared.v2.u32 [%r9], {%r1,%r1};", 2, 2);          /* 8 bytes: halves */
    banks("shl.b32 %r8, %r8, 2; add.u32 %r9, %r9, %r8; st.shared.v4.u32 [%r9], {%r1,%r1,%r1,%r1};", 4, 4);  /* 16 bytes: quarters */
    banks("shl.b32 %r8, %r8, 5; add.u32 %r9, %r9, %r8; st.shared.v4.u32 [%r9], {%r1,%r1,%r1,%r1};", 32, 4); /* rows of 128 bytes */
    banks("setp.lt.u32 %p1, %r0, 8; shl.b32 %r8, %r8, 2; add.u32 %r9, %r9, %r8; @%p1 st.shared.v4.u32 [%r9], {%r1,%r1,%r1,%r1};", 1, 1);
    banks("shl.b32 %r8, %r8, 2; add.u32 %r9, %r9, %r8; cp.async.cg.shared.global [%r9], [%rd1], 16; cp.async.wait_all;", 4, 4);
}
Test(sim_counters, ldmatrix_banks)
{
#define FILL                                                                                                                              \
    "shl.b32 %r7, %r0, 7; add.u32 %r6, %r9, %r7; st.shared.v4.u32 [%r6], {%r1,%r1,%r1,%r1}; shl.b32 %r7, %r0, 4; add.u32 %r6, %r9, %r7; " \
    "st.shared.v4.u32 [%r6], {%r1,%r1,%r1,%r1}; bar.warp.sync -1;" /* 32 + 4 */
    banks(FILL "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1,%r2,%r3,%r4}, [%r6];", 36 + 4, 8 + 4);
    banks(FILL "shl.b32 %r7, %r0, 7; add.u32 %r6, %r9, %r7; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1,%r2,%r3,%r4}, [%r6];", 36 + 32,
          8 + 4);
    banks(FILL "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r1}, [%r6];", 36 + 1, 8 + 1);
}
Test(sim_counters, shared_bytes_and_peak)
{
    sim_counters c = counted(
        SHARED KERNEL(
            "mov.u32 %r9, buf; shl.b32 %r8, %r0, 2; add.u32 %r9, %r9, %r8; st.shared.u32 [%r9+100], %r0; ld.shared.u32 %r1, [%r9+100];"),
        2, 32);
    cr_expect(c.shared_read == 256 && c.shared_write == 256 && c.shared_peak == 228, "%llu %llu %llu", (unsigned long long)c.shared_read,
              (unsigned long long)c.shared_write, (unsigned long long)c.shared_peak);
}
Test(sim_counters, more_allocations_than_rows)
{
    uint64_t total = 0;
    CUfunction f = load(HEAD80 KERNEL("st.global.u32 [%rd1], %r0;"));
    sim_counters c;
    sim_counters_reset();
    for (int k = 0; k < SIM_TENSORS + 4; k++)
        cr_assert_eq(launch(f, 1, 1, 0, buffer(NULL, 64), 0), CUDA_SUCCESS);
    sim_counters_get(&c);
    for (int k = 0; k < c.tensors; k++)
        total += c.tensor[k].write;
    cr_expect(c.tensors == SIM_TENSORS && total == 4 * (SIM_TENSORS + 4) && c.tensor[SIM_TENSORS - 1].base == 0);
}
