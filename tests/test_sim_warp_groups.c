/* Warp groups without products: registers that they give back and take, and barriers of some of the warps. */
#include "test_sim_text.h"

TestSuite(sim_warp_groups, .init = open90a);

static const char *registers(const char *bounds, const char *text_of_groups)
{
    written = 0;
    add(HEAD90A ".visible .entry k(.param .u64 pa, .param .u64 pb)\n%s\n{\n.reg .pred %%p<9>;\n.reg .b32 %%r<9>;\nmov.u32 %%r0, "
                "%%tid.x;\nshr.u32 %%r1, %%r0, 7;\nsetp.eq.u32 %%p1, %%r1, 1;\nsetp.eq.u32 %%p2, %%r1, 2;\n",
        bounds);
    add("%s\nret;\n}\n", text_of_groups);
    return text;
}

Test(sim_warp_groups, registers_move_between_warp_groups)
{
#define INC "setmaxnreg.inc.sync.aligned.u32 "
#define DEC "setmaxnreg.dec.sync.aligned.u32 "
#define MEET "add.u32 %r2, %r1, 1;\nbar.sync %r2, 128;\n"             /* of the warp group */
    static const char wide[] = ".maxntid 384, 1, 1\n.minnctapersm 1"; /* 168 each: 504 for three groups */
    /* clang-format off */
    static const struct { const char *bounds, *body; CUresult code; const char *words; } rows[] = {
        {wide, "@%p1 bra TAKE;\n@%p2 bra TAKE;\n" DEC "24;\nret;\nTAKE:\n" INC "240;", CUDA_SUCCESS, ""},
        {wide, "@%p1 bra TAKE;\n@%p2 bra TAKE;\n" DEC "24;\nret;\nTAKE:\n" INC "240;\n" MEET DEC "64;\n" MEET INC "240;", CUDA_SUCCESS, ""},
        {wide, "@%p1 bra TAKE;\n@%p2 bra TAKE;\n" DEC "32;\nret;\nTAKE:\n" INC "240;", CUDA_ERROR_LAUNCH_TIMEOUT, "waits for 72 more registers per thread, but its block has given back"},
        {wide, INC "176;", CUDA_ERROR_LAUNCH_TIMEOUT, "deadlock"},
        {wide, INC "160;\n" MEET DEC "160;", CUDA_SUCCESS, ""}, /* ptxas gives no more at the launch than the largest .inc */
        {wide, DEC "176;", CUDA_ERROR_LAUNCH_FAILED, "setmaxnreg.dec to 176 registers, but a thread of this warp has 168"},
        {wide, DEC "96;\n" MEET DEC "88;\n" MEET INC "96;\n" MEET INC "64;", CUDA_ERROR_LAUNCH_FAILED, "setmaxnreg.inc to 64 registers, but a thread of this warp has 96"},
        {wide, DEC "96;\n" DEC "88;", CUDA_ERROR_LAUNCH_FAILED, "have not met since the one before"},
        {".maxnreg 128", DEC "136;", CUDA_ERROR_LAUNCH_FAILED, "a thread of this warp has 128"},
        {".maxntid 384, 1, 1\n.minnctapersm 2", DEC "88;", CUDA_ERROR_LAUNCH_FAILED, "a thread of this warp has 80"},
        {".maxntid 384, 1, 1", DEC "24;", CUDA_ERROR_LAUNCH_FAILED, "setmaxnreg needs a kernel with"},
        {"", DEC "24;", CUDA_ERROR_LAUNCH_FAILED, "setmaxnreg needs a kernel with"},
        {wide, "setp.lt.u32 %p3, %r0, 32;\n@%p3 bra OVER;\n" DEC "24;\nOVER:\n", CUDA_ERROR_LAUNCH_FAILED, "without this instruction"},
        {wide, "setp.lt.u32 %p3, %r0, 5;\n@%p3 bra OVER;\n" DEC "24;\nOVER:\n", CUDA_ERROR_LAUNCH_FAILED, "needs all 32 lanes"},
    };
    /* clang-format on */
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        CUfunction f = load(registers(rows[r].bounds, rows[r].body));
        for (int order = SIM_IN_ORDER; order <= SIM_RANDOM; order++) {
            sim_set_options(&(sim_options){ .schedule = (sim_schedule)order, .seed = 5 });
            checks("setmaxnreg-order=error");
            CUresult got = launch(f, 1, 384, 0, 0, 0);
            cr_assert(got == rows[r].code && strstr(sim_report(), rows[r].words), "row %zu, order %d: %d\n%s", r, order, got, sim_report());
        }
    }
    static const char *const refused[][2] = { { DEC "20;", "multiple of 8 from 24 to 256" },
                                              { DEC "264;", "multiple of 8 from 24 to 256" },
                                              { "setmaxnreg.sync.aligned.u32 32;", ".inc or .dec" } };
    for (size_t r = 0; r < sizeof refused / sizeof *refused; r++) {
        cr_assert_eq(launch(load(registers(wide, refused[r][0])), 1, 384, 0, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
        cr_assert(strstr(sim_report(), refused[r][1]), "%s", sim_report());
    }
}

/* Barriers of a part of the block: one group fills, arrives and goes on; another waits and reads. Two pairs at once. */
Test(sim_warp_groups, named_barriers_of_some_warps)
{
    uint32_t got[128];
    for (int order = SIM_IN_ORDER; order <= SIM_RANDOM; order++) {
        CUdeviceptr a = buffer(NULL, 4), b = buffer(NULL, sizeof got);
        sim_set_options(&(sim_options){ .schedule = (sim_schedule)order, .seed = 11 });
        /* warps 0 and 1 produce, 2 and 3 consume; barrier 1 + pair tells full, 3 + pair empty; 64 threads each; 5 rounds */
        run(HEAD90 ".shared .align 16 .b8 buf[256];\n" KERNEL(
                "shr.u32 %r1, %r0, 5; and.b32 %r2, %r1, 1; and.b32 %r3, %r0, 63; add.u32 %r4, %r2, 1; add.u32 %r5, %r2, 3; shl.b32 %r6, "
                "%r3, 2; mov.u32 %r7, buf; add.u32 %r6, %r6, %r7;\n"
                "mov.u32 %r8, 0; mov.u32 %r9, 0; setp.ge.u32 %p1, %r0, 64; mov.u32 %r12, 64; mul.wide.u32 %rd3, %r0, 4; add.s64 %rd3, "
                "%rd2, %rd3;\n@%p1 bra CONSUME;\n"
                "PRODUCE:\nbar.sync %r5, %r12;\nmad.lo.u32 %r10, %r8, 1000, %r3; st.shared.u32 [%r6], %r10;\nbar.arrive %r4, "
                "%r12;\nadd.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 5;\n@%p2 bra PRODUCE;\nst.global.u32 [%rd3], %r8;\nret;\n"
                "CONSUME:\nbar.arrive %r5, %r12;\nbar.sync %r4, %r12;\nld.shared.u32 %r10, [%r6]; add.u32 %r9, %r9, %r10;\nadd.u32 %r8, "
                "%r8, 1; setp.lt.u32 %p2, %r8, 5;\n@%p2 bra CONSUME;\nst.global.u32 [%rd3], %r9;"),
            1, 128, 0, a, b);
        fetch(got, b, sizeof got);
        for (uint32_t t = 64; t < 128; t++)
            cr_assert_eq(got[t], 10000 + 5 * (t - 64), "order %d thread %u: %u", order, t, got[t]);
    }
}
