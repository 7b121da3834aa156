/* Asynchronous copies: what they move, and that both timings agree unless a wait is missing. */
#include "test_sim_machine.h"

TestSuite(sim_async, .init = open80);
#define SHARED HEAD80 ".shared .align 16 .b8 buf[1024];\n"
#define PLACES                                                                                                                             \
    "mul.wide.u32 %rd3, %r0, 16; add.s64 %rd4, %rd2, %rd3; add.s64 %rd3, %rd1, %rd3; shl.b32 %r8, %r0, 4; mov.u32 %r9, buf; add.u32 %r9, " \
    "%r9, %r8;\n"
#define READ "ld.shared.v4.u32 {%r1,%r2,%r3,%r4}, [%r9]; st.global.v4.u32 [%rd4], {%r1,%r2,%r3,%r4};\n"

static void both(const char *ptx, const uint8_t *data, const uint8_t *want)
{
    uint8_t got[512];
    for (int async = SIM_EAGER; async <= SIM_LAZY; async++) {
        CUdeviceptr in = buffer(data, 512), out = buffer(NULL, 512);
        sim_set_options(&(sim_options){ .async = (sim_async)async });
        run(ptx, 1, 32, 0, in, out);
        fetch(got, out, 512);
        for (int k = 0; k < 512; k++)
            cr_assert_eq(got[k], want[k], "timing %d byte %d: %u instead of %u", async, k, got[k], want[k]);
    }
}

Test(sim_async, sizes_and_fill)
{
    uint8_t data[512], want[512];
    for (int k = 0; k < 512; k++)
        data[k] = want[k] = (uint8_t)(k * 7 + 1);
    both(SHARED KERNEL(PLACES "cp.async.cg.shared.global.L2::128B [%r9], [%rd3], 16; cp.async.commit_group; cp.async.wait_group 0;" READ),
         data, want);
    both(SHARED KERNEL(PLACES "cp.async.ca.shared::cta.global [%r9], [%rd3], 4; cp.async.ca.shared.global [%r9+4], [%rd3+4], 4; "
                              "cp.async.ca.shared.global [%r9+8], [%rd3+8], 8; cp.async.wait_all;" READ),
         data, want);
    both(SHARED KERNEL("createpolicy.fractional.L2::evict_last.b64 %rd9, 1.0;" PLACES
                       "cp.async.cg.shared.global.L2::cache_hint [%r9], [%rd3], 16, %rd9; cp.async.wait_all;" READ),
         data, want);
    for (int k = 0; k < 512; k++)
        if (k % 16 >= k / 16 % 17)
            want[k] = 0; /* lane l copies l bytes, at most 16 */
    for (int k = 256; k < 512; k++)
        want[k] = data[k];
    both(SHARED KERNEL(PLACES "min.u32 %r5, %r0, 16; cp.async.cg.shared.global [%r9], [%rd3], 16, %r5; cp.async.wait_all;" READ), data,
         want);
    for (int k = 0; k < 512; k++)
        want[k] = k < 160 ? 0 : data[k];
    both(SHARED KERNEL(PLACES "setp.lt.u32 %p1, %r0, 10; cp.async.cg.shared.global [%r9], [%rd3], 16, %p1; cp.async.wait_all;" READ), data,
         want);
}

/* A source of no bytes may be anywhere: that is how kernels pad. */
Test(sim_async, nothing_is_read_for_a_size_of_zero)
{
    uint8_t data[512] = { 0 }, want[512] = { 0 };
    both(SHARED KERNEL(PLACES "mov.u32 %r5, 0; mov.u64 %rd5, 8; cp.async.cg.shared.global [%r9], [%rd5], 16, %r5; cp.async.wait_all;" READ),
         data, want);
}

Test(sim_async, groups_are_per_thread_and_in_order)
{
    uint8_t data[512], want[512];
    for (int k = 0; k < 512; k++)
        data[k] = want[k] = (uint8_t)(k * 7 + 1);
    /* odd lanes commit one group more; waiting for all but one ends the first in every lane */
    both(SHARED KERNEL(PLACES
                       "and.b32 %r5, %r0, 1; setp.eq.u32 %p1, %r5, 1; cp.async.cg.shared.global [%r9], [%rd3], 16; cp.async.commit_group; "
                       "cp.async.cg.shared.global [%r9+512], [%rd3], 16; cp.async.commit_group; @%p1 cp.async.commit_group;\n"
                       "cp.async.wait_group 1;" READ "cp.async.wait_group 0;"),
         data, want);
}

Test(sim_async, a_missing_wait_shows_as_a_difference)
{
    uint8_t data[512], got[2][512];
    for (int k = 0; k < 512; k++)
        data[k] = (uint8_t)k;
    for (int async = 0; async < 2; async++) {
        CUdeviceptr in = buffer(data, 512), out = buffer(NULL, 512);
        sim_set_options(&(sim_options){ .async = (sim_async)async, .unchecked = 1 });
        run(SHARED KERNEL(PLACES "cp.async.cg.shared.global [%r9], [%rd3], 16; cp.async.commit_group; cp.async.wait_group 1;" READ), 1, 32,
            0, in, out);
        fetch(got[async], out, 512);
    }
    cr_expect(!memcmp(got[0], data, 512), "eager copies have arrived");
    for (int k = 0; k < 512; k++)
        cr_assert_eq(got[1][k], 0xFF, "lazy ones are poison: NaN in every format");
}
