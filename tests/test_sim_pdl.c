/* Launches that may begin before what precedes them in the stream has ended: whoever touches global memory has waited for that, and
 * no block ends without a wait, or what comes after would not be after what comes before. */
#include "test_sim_machine.h"

static CUdeviceptr in, out;
static void open_pdl(void)
{
    static uint32_t data[1024];
    open_machine("sm_90a");
    in = buffer(data, sizeof data), out = buffer(data, sizeof data);
}
TestSuite(sim_pdl, .init = open_pdl);

#define HEAD90A ".version 8.0\n.target sm_90a\n.address_size 64\n.shared .align 128 .b8 buf[1024];\n.shared .align 8 .b8 bar[8];\n"
#define WAIT "griddepcontrol.wait;\n"

static CUresult launch_pdl(CUfunction f, int allowed, unsigned threads, CUstream s)
{
    void *params[] = { &in, &out };
    CUlaunchAttribute at = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                             .value.programmaticStreamSerializationAllowed = allowed };
    CUlaunchConfig config = { .gridDimX = 2,
                              .gridDimY = 1,
                              .gridDimZ = 1,
                              .blockDimX = threads,
                              .blockDimY = 1,
                              .blockDimZ = 1,
                              .hStream = s,
                              .attrs = &at,
                              .numAttrs = 1 };
    return cu->cuLaunchKernelEx(&config, f, params, NULL);
}

/* With `wait` for $1 the kernel, `then` for $2, is right; without it the launch fails so, in every timing and order, and is right where it
 * may not begin early. */
static void needs(const char *text, const char *wait, const char *then, unsigned threads, const char *words)
{
    for (int schedule = SIM_IN_ORDER; schedule <= SIM_RANDOM; schedule++)
        for (int async = SIM_EAGER; async <= SIM_LAZY; async++) {
            sim_set_options(
                &(sim_options){ .schedule = (sim_schedule)schedule, .async = (sim_async)async, .seed = 3, .max_steps = 100000 });
            CUfunction good = load(with(text, wait, then, "")), bad = load(with(text, "", then, ""));
            CUresult r = launch_pdl(good, 1, threads, NULL);
            cr_expect_eq(r, CUDA_SUCCESS, "%d\n%s", r, sim_report());
            cr_expect_eq(launch_pdl(bad, 0, threads, NULL), CUDA_SUCCESS, "%s", sim_report());
            cr_expect_eq(launch_pdl(bad, 1, threads, NULL), CUDA_ERROR_LAUNCH_FAILED);
            cr_expect(strstr(sim_report(), words), "\"%s\" is not in:\n%s", words, sim_report());
        }
}

Test(sim_pdl, whoever_touches_global_memory_has_waited)
{
    /* clang-format off */
    static const char *const touches[] = {
        "ld.global.u32 %r1, [%rd1];",
        "st.global.u32 [%rd2], %r0;",
        "ld.u32 %r1, [%rd1];",
        "atom.global.add.u32 %r1, [%rd2], 1;",
        "red.global.add.u32 [%rd2], 1;",
        "mov.u32 %r2, buf; cp.async.ca.shared.global [%r2], [%rd1], 4; cp.async.wait_all;",
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof touches / sizeof *touches; i++) {
        needs(HEAD90A KERNEL("$1 $2\n" WAIT), WAIT, touches[i], 1,
              "global memory is touched by a thread without griddepcontrol.wait before it");
    }
}

Test(sim_pdl, a_relaxed_load_before_the_wait_is_a_hint)
{
    static uint32_t word[2];
    for (int async = SIM_EAGER; async <= SIM_LAZY; async++) {
        sim_set_options(&(sim_options){ .schedule = SIM_IN_ORDER, .async = (sim_async)async, .seed = 3, .max_steps = 100000 });
        CUfunction f = load(HEAD90A KERNEL("ld.relaxed.gpu.global.u32 %r1, [%rd1]; " WAIT "ld.global.u32 %r2, [%rd1]; "
                                           "st.global.v2.u32 [%rd2], {%r1, %r2};"));
        cr_assert_eq(launch_pdl(f, 1, 1, NULL), CUDA_SUCCESS, "%s", sim_report());
        cr_assert_eq(cu->cuMemcpyDtoH(word, out, sizeof word), CUDA_SUCCESS);
        cr_expect_eq(word[1], 0u);
        cr_expect_eq(word[0] == 0, async == SIM_EAGER, "%u", word[0]);
    }
}

Test(sim_pdl, whoever_starts_a_bulk_copy_has_waited)
{
    needs(HEAD90A KERNEL("mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; $1\n"
                         "mbarrier.arrive.expect_tx.shared.b64 %rd3, [bar], 256;\n"
                         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [%rd1], 256, [bar];\n"
                         "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra AGAIN;\n" WAIT),
          WAIT, "", 1, "cp.async.bulk");
    needs(HEAD90A KERNEL("mov.u32 %r1, 1; mov.u32 %r2, buf; st.shared.v4.u32 [%r2], {%r1,%r1,%r1,%r1}; fence.proxy.async.shared::cta; $1\n"
                         "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [buf], 16; cp.async.bulk.commit_group; "
                         "cp.async.bulk.wait_group 0;\n" WAIT),
          WAIT, "", 1, "cp.async.bulk");
}

Test(sim_pdl, another_thread_s_wait_is_not_one_s_own)
{
    needs(HEAD90A KERNEL("setp.eq.u32 %p1, %r0, 0; @%p1 griddepcontrol.wait; $1 bar.sync 0; mul.wide.u32 %rd3, %r0, 4; add.s64 %rd3, %rd3, "
                         "%rd2; st.global.u32 [%rd3], %r0;"),
          WAIT, "", 64, "st.global.u32 [%rd3]");
}

Test(sim_pdl, no_block_ends_without_a_wait)
{
    needs(HEAD90A KERNEL("griddepcontrol.launch_dependents; mov.u32 %r2, buf; setp.eq.u32 %p1, %r0, 33; @%p1 st.shared.u32 [%r2], 1; $1 "
                         "mov.u32 %r1, 0;"),
          "@%p1 griddepcontrol.wait;", "", 64, "block (0,0,0) of kernel k ends without griddepcontrol.wait");
}

Test(sim_pdl, a_graph_keeps_it)
{
    CUstream s;
    CUgraph g;
    CUgraphExec x;
    CUfunction f = load(HEAD90A KERNEL("st.global.u32 [%rd2], %r0;"));
    cr_assert_eq(cu->cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    cr_assert_eq(cu->cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
    cr_expect_eq(launch_pdl(f, 1, 1, s), CUDA_SUCCESS);
    cr_assert_eq(cu->cuStreamEndCapture(s, &g), CUDA_SUCCESS);
    cr_assert_eq(cu->cuGraphInstantiate(&x, g, 0), CUDA_SUCCESS);
    cr_expect_eq(cu->cuGraphLaunch(x, s), CUDA_ERROR_LAUNCH_FAILED);
    cr_expect(strstr(sim_report(), "griddepcontrol.wait"), "%s", sim_report());
}
