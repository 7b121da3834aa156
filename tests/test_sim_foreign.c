/* PTX that other compilers and people write: instructions that are not simulated beside kernels that are, calls of functions,
 * variables by name, and what such kernels use besides. */
#include "test_sim_machine.h"

static void open90_a(void)
{
    open_machine("sm_90a");
}
TestSuite(sim_foreign, .init = open90_a);

static CUlibrary library(const char *ptx)
{
    CUlibrary l;
    CUresult r = cu->cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0);
    cr_assert_eq(r, CUDA_SUCCESS, "load: %d %s", r, cu->detail());
    return l;
}
static CUfunction kernel_of(CUlibrary l, const char *name)
{
    CUkernel k;
    CUfunction f;
    cr_assert_eq(cu->cuLibraryGetKernel(&k, l, name), CUDA_SUCCESS, "%s", name);
    cr_assert_eq(cu->cuKernelGetFunction(&f, k), CUDA_SUCCESS);
    return f;
}

/* A text of one kernel with this body, and what stands before and after it; valid until the next call. */
static const char *around(const char *before, const char *body, const char *after)
{
    static const char kernel[] = KERNEL("$");
    static char text[32768];
    const char *at = strchr(kernel, '$');
    int n = snprintf(text, sizeof text, "%s%.*s%s%s%s", before, (int)(at - kernel), kernel, body, at + 1, after);
    cr_assert(n > 0 && (size_t)n < sizeof text);
    return text;
}

/* ---- an instruction that is not simulated ---- */

#define ENTRY(name, body)                                                                                                                \
    ".visible .entry " name                                                                                                              \
    "(.param .u64 a, .param .u64 b)\n{\n.reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<20>;\n.reg .f32 %f<20>;\n" \
    "ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nmov.u32 %r0, %tid.x;\n" body "\nret;\n}\n"

Test(sim_foreign, an_unknown_instruction_stops_only_lanes_that_execute_it)
{
    CUdeviceptr a = buffer(NULL, 4), b = buffer(NULL, 4);
    uint32_t got;
    CUlibrary l = library(HEAD80 ENTRY("good", "st.global.u32 [%rd2], 41;")
                              ENTRY("bad", "st.global.u32 [%rd2], 42;\nfrob.u32 %r1, %r0;\nst.global.u32 [%rd2], %r1;")
                                  ENTRY("guarded", "setp.gt.u32 %p1, %r0, 31;\n@%p1 frob.u32 %r1, %r0;\nst.global.u32 [%rd2], 43;")
                                      ENTRY("around", "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra OVER;\ntex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, "
                                                      "[nowhere, {%f1,%f2}];\nOVER: st.global.u32 [%rd2], 44;"));
    cr_assert_eq(launch(kernel_of(l, "good"), 1, 32, 0, a, b), CUDA_SUCCESS, "%s", sim_report());
    fetch(&got, b, 4);
    cr_expect_eq(got, 41);
    cr_expect_eq(launch(kernel_of(l, "bad"), 1, 32, 0, a, b), CUDA_ERROR_NOT_SUPPORTED);
    cr_expect(strstr(sim_report(), "unknown instruction\n  in kernel bad, PTX line 28: frob.u32 %r1, %r0"), "%s", sim_report());
    fetch(&got, b, 4);
    cr_expect_eq(got, 42, "what came before it has happened: %u", got);
    cr_expect_eq(launch(kernel_of(l, "guarded"), 1, 32, 0, a, b), CUDA_SUCCESS, "%s", sim_report());
    fetch(&got, b, 4);
    cr_expect_eq(got, 43);
    cr_expect_eq(launch(kernel_of(l, "guarded"), 1, 64, 0, a, b), CUDA_ERROR_NOT_SUPPORTED);
    cr_expect(strstr(sim_report(), "warp 1, lane 0: thread (32,0,0)"), "%s", sim_report());
    cr_expect_eq(launch(kernel_of(l, "around"), 1, 32, 0, a, b), CUDA_SUCCESS, "%s", sim_report());
    fetch(&got, b, 4);
    cr_expect_eq(got, 44);
}

/* Each loads, and says why it stops when it is executed. */
Test(sim_foreign, every_reason_is_told_at_the_instruction)
{
    /* clang-format off */
    static const char *const rows[][2] = {
        {"frob.u32 %r1, %r2;", "unknown instruction"}, {"add.wild.u32 %r1, %r2, %r2;", "unknown modifier .wild"}, {"add.u32 %r1, %r2;", "unknown instruction"}, {"add.u32 %r1, %rd2, %r2;", "an operand has the wrong size"},
        {"add.u32 %r1, %q2, %r2;", "unknown special register"}, {"add.u32 %r1, nowhere, %r2;", "undeclared name"}, {"add.u32 7, %r1, %r2;", "the destination is no register"},
        {"ld.global.u32 %r1, %rd1;", "expected an address in brackets"}, {"ld.global.v2.u32 {%r1}, [%rd1];", "wrong number of elements"}, {"st.param.u32 [a], %r1;", "this space cannot be written"},
        {"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f1};", "this mma is not simulated"}, {"cp.async.cg.shared.global [%r1], [%rd1], 8;", "with .cg 16"},
        {"cp.async.bulk.shared::cluster.global.bulk_group [%r1], [%rd1], 16, [%r2];", "this bulk copy is not simulated"},
        {"cp.async.bulk.tensor.2d.global.shared::cta.im2col.bulk_group [%rd1, {%r1, %r2}], [%r3];", "unknown modifier .im2col"}, {"setp.between.s32 %p1, %r1, %r2;", "the comparison is missing"},
        {"red.global.add.v4.f32 [%rd1], {%f1, %f1};", "wrong number of registers"}, {"red.global.add.v2.f32 [%rd1], {%f1, %f1, %f1, %f1};", "wrong number of registers"},
        {"red.global.add.v4.f32 [%rd1], %f1;", "wrong number of registers"}, {"red.global.add.f32 [%rd1], {%f1, %f1};", "wrong number of registers"},
        {"red.global.add.v2.u32 [%rd1], {%r1, %r1};", "only red.global.add of f32 is simulated"}, {"red.shared.add.v2.f32 [%r1], {%f1, %f1};", "only red.global.add of f32 is simulated"},
        {"mapa.u32 %r1, %r2, 0;", "this form is unknown"}, {"call.uni (%r1), vprintf, (%rd1, %rd2);", "calls of a function without a body are not simulated: vprintf"},
        {"call (%r1), %rd1, (%r2), P;\nP: .callprototype (.param .b32 _) _ (.param .b32 _);", "calls through a register are not simulated: %rd1"},
    };
    /* clang-format on */
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char body[512];
        snprintf(body, sizeof body, "mov.u32 %%r1, 0; mov.u32 %%r2, 0; mov.u32 %%r3, 0;\n%s", rows[k][0]);
        CUresult r = launch(load(around(HEAD90, body, "")), 1, 32, 0, buffer(NULL, 4), buffer(NULL, 4));
        cr_expect(r == CUDA_ERROR_NOT_SUPPORTED && strstr(sim_report(), rows[k][1]) && strstr(sim_report(), "PTX line 16: "), "%s: %d\n%s",
                  rows[k][0], r, sim_report());
    }
}

Test(sim_foreign, bulk_copies_of_a_text_for_an_older_chip)
{
    const char *body = "mov.u32 %r1, 1024; mov.u32 %r2, 1024;\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], "
                       "[%rd1], 16, [%r2];";
    cr_expect_eq(launch(load(around(HEAD80, body, "")), 1, 32, 0, buffer(NULL, 16), 0), CUDA_ERROR_NOT_SUPPORTED);
    cr_expect(strstr(sim_report(), "bulk copies need a target of sm_90") != NULL, "%s", sim_report());
}

/* ---- calls ---- */

#define INTO "mul.wide.u32 %rd9, %r0, 4; add.s64 %rd9, %rd2, %rd9; st.global.u32 [%rd9], "

/* Runs 32 threads; every one stores a number, which want() knows. */
static void computes(const char *functions, const char *body, uint32_t (*want)(uint32_t))
{
    char before[4096];
    uint32_t got[32];
    CUdeviceptr a = buffer(NULL, 4), b = buffer(NULL, 128);
    snprintf(before, sizeof before, "%s%s", HEAD80, functions);
    for (int after = 0; after < 2; after++) { /* the functions stand before the kernel, then after it */
        run(after ? around(HEAD80, body, functions) : around(before, body, ""), 1, 32, 0, a, b);
        fetch(got, b, 128);
        for (uint32_t l = 0; l < 32; l++)
            cr_assert_eq(got[l], want(l), "%s, thread %u: %u instead of %u", body, l, got[l], want(l));
    }
}

static uint32_t twice_and_one(uint32_t l)
{
    return 2 * l + 1;
}
static uint32_t both(uint32_t l)
{
    return (2 * l + 1) * 3 + 2 * 7 + 1;
}
static uint32_t early(uint32_t l)
{
    return (l % 3 == 0 ? 100 + l : l % 3 == 1 ? 200 : 5 * l) + 1;
}
static uint32_t summed(uint32_t l)
{
    return l * (l + 1) / 2;
}
static uint32_t odd_only(uint32_t l)
{
    return l & 1 ? 2 * l + 1 : 7;
}
static uint32_t swapped(uint32_t l)
{
    return l * 1000 + 5;
}
static uint32_t absolute(uint32_t l)
{
    return l < 16 ? 16 - l : l - 16;
}

#define TWICE                                                                                                                          \
    ".func (.param .b32 out) twice(.param .b32 in)\n{\n.reg .b32 %r<4>;\nld.param.b32 %r1, [in];\nshl.b32 %r2, %r1, 1;\nadd.s32 %r3, " \
    "%r2, 1;\nst.param.b32 [out+0], %r3;\nret;\n}\n"
#define CALL(in, out)                                                                                                                    \
    "{ .param .b32 param0; st.param.b32 [param0+0], " in "; .param .b32 retval0; call.uni (retval0), twice, (param0); ld.param.b32 " out \
    ", [retval0+0]; }\n"

Test(sim_foreign, calls_of_functions)
{
    computes(TWICE, CALL("%r0", "%r1") INTO "%r1;", twice_and_one);
    /* twice, whose registers have the names of the kernel's; the first result survives the second call */
    computes(TWICE,
             "mov.u32 %r2, 7; mov.u32 %r3, 3;\n" CALL("%r0", "%r4") CALL("%r2", "%r5") "mad.lo.u32 %r6, %r4, %r3, %r5;\n" INTO "%r6;",
             both);
    /* lanes return from different places, and go on together: the ballot needs them all */
    computes(".func (.reg .u32 out) early(.reg .u32 in)\n{\n.reg .pred p, q;\n.reg .u32 m;\nrem.u32 m, in, 3;\nsetp.eq.u32 p, m, "
             "0;\nsetp.eq.u32 q, m, 1;\n@p add.u32 out, in, 100;\n@p ret;\n"
             "@!q bra REST;\nmov.u32 out, 200;\nret;\nREST:\nmul.lo.u32 out, in, 5;\nret.uni;\n}\n",
             "call (%r1), early, (%r0);\nsetp.ge.u32 %p1, %r0, 0;\nvote.sync.ballot.b32 %r2, %p1, -1;\npopc.b32 %r2, %r2;\nshr.u32 %r2, "
             "%r2, 5;\nadd.u32 %r1, %r1, %r2;\n" INTO "%r1;",
             early);
    /* a loop around a call, labels of the same name in both */
    computes(".func (.reg .u32 out) add_to(.reg .u32 x, .reg .u32 y)\n{\n.reg .pred p;\nsetp.eq.u32 p, y, 0;\n@p bra END;\nLOOP:\nadd.u32 "
             "x, x, 1;\nsub.u32 y, y, 1;\nsetp.ne.u32 p, y, 0;\n@p bra LOOP;\nEND:\nmov.u32 out, x;\nret;\n}\n",
             "mov.u32 %r1, 0;\nmov.u32 %r2, 0;\nLOOP:\nsetp.gt.u32 %p1, %r2, %r0;\n@%p1 bra END;\ncall (%r1), add_to, (%r1, %r2);\nadd.u32 "
             "%r2, %r2, 1;\nbra LOOP;\nEND:\n" INTO "%r1;",
             summed);
    /* only some lanes call */
    computes(".func (.reg .u32 out) twice1(.reg .u32 in)\n{\nmad.lo.u32 out, in, 2, 1;\nret;\n}\n",
             "and.b32 %r2, %r0, 1;\nsetp.ne.u32 %p1, %r2, 0;\nmov.u32 %r1, 7;\n@%p1 call (%r1), twice1, (%r0);\n" INTO "%r1;", odd_only);
    /* a function that calls, a structure that is passed and one that is returned, and constants as arguments */
    computes(
        ".func (.reg .u32 out) nine(.reg .u32 x, .reg .f32 y)\n{\n.reg .u32 z;\ncvt.rni.u32.f32 z, y;\nmul.lo.u32 out, x, z;\nret;\n}\n"
        ".func (.param .align 8 .b8 out[16]) swap(.param .align 8 .b8 in[16])\n{\n.reg .b32 %r<5>;\n.reg .b64 %rd<3>;\nld.param.v2.b32 "
        "{%r1, %r2}, [in];\nld.param.b64 %rd1, [in+8];\n"
        "call (%r3), nine, (%r1, 0f447A0000);\nst.param.b64 [out+0], %rd1;\nst.param.v2.b32 [out+8], {%r2, %r3};\nret;\n}\n",
        "mov.u64 %rd5, 5;\n{ .param .align 8 .b8 param0[16]; st.param.v2.b32 [param0], {%r0, %r0}; st.param.b64 [param0+8], %rd5;\n.param "
        ".align 8 .b8 retval0[16];\n"
        "call.uni (retval0), swap, (param0);\nld.param.b64 %rd6, [retval0+0]; ld.param.b32 %r4, [retval0+12]; }\ncvt.u32.u64 %r5, "
        "%rd6;\nadd.u32 %r4, %r4, %r5;\n" INTO "%r4;",
        swapped);
    /* predicates, and a result that is not wanted */
    computes(".func (.reg .u32 out, .reg .pred less) apart(.reg .u32 x, .reg .u32 y)\n{\nsetp.lt.u32 less, x, y;\n@less sub.u32 out, y, "
             "x;\n@!less sub.u32 out, x, y;\nret;\n}\n",
             "call (%r1, _), apart, (%r0, 16);\n" INTO "%r1;", absolute);
}

Test(sim_foreign, calls_that_are_not_simulated)
{
    /* clang-format off */
    static const char *const rows[][3] = {
        {".func self(.reg .u32 x)\n{\ncall self, (x);\nret;\n}\n", "call self, (%r0);", "recursive calls are not simulated: self"},
        {".func ping(.reg .u32 x);\n.func pong(.reg .u32 x)\n{\ncall ping, (x);\nret;\n}\n.func ping(.reg .u32 x)\n{\ncall pong, (x);\nret;\n}\n", "call ping, (%r0);", "recursive calls are not simulated: ping"},
        {".func one(.reg .u32 x)\n{\nret;\n}\n", "call one, (%r0, %r0);", "the arguments of this call of one do not fit"},
        {".func one(.param .b8 x[12])\n{\nret;\n}\n", "call one, (%r0);", "the arguments of this call of one do not fit"},
        {".func kept()\n{\n.shared .b32 s;\nret;\n}\n", "call kept;", "a function that declares shared memory is not called in the simulator: kept"},
    };
    /* clang-format on */
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        cr_expect_eq(launch(load(around(HEAD80, rows[k][1], rows[k][0])), 1, 32, 0, buffer(NULL, 4), buffer(NULL, 4)),
                     CUDA_ERROR_NOT_SUPPORTED);
        cr_expect(strstr(sim_report(), rows[k][2]) != NULL, "\"%s\" is not in:\n%s", rows[k][2], sim_report());
    }
}

/* Levels that each call the next twice double the code every time: the text loads all the same, and tells where it gave up. */
Test(sim_foreign, calls_that_grow_without_measure)
{
    static char ptx[32768];
    static const char *const words[2] = { "a kernel makes too many calls to be simulated", "calls are nested too deeply to be simulated" };
    for (int twice = 0; twice < 2; twice++) {
        size_t n = (size_t)snprintf(ptx, sizeof ptx, "%s.func f0()\n{\n.reg .u32 x;\nmov.u32 x, 1;\nret;\n}\n", HEAD80);
        for (int k = 1; k < (twice ? 20 : 15); k++)
            n += (size_t)snprintf(ptx + n, sizeof ptx - n, ".func f%d()\n{\ncall f%d;\ncall f%d;\nret;\n}\n", k, k - 1, k - 1);
        CUresult r = launch(load(around(ptx, twice ? "call f19;" : "call f14;", "")), 1, 32, 0, buffer(NULL, 4), buffer(NULL, 4));
        cr_expect_eq(r, CUDA_ERROR_NOT_SUPPORTED);
        cr_expect(strstr(sim_report(), words[twice]) != NULL, "%s", sim_report());
    }
}

/* ---- one text with all of it ---- */

/* Groups of lanes that differ by the parity of their number reduce in a function that is called, on both sides of a branch; a tile of which
 * only a part was filled is masked; a variable is set by name; beside them stands a kernel that is not simulated. */
Test(sim_foreign, idioms_together)
{
    const uint32_t bias = 1000;
    uint32_t got[32];
    CUdeviceptr a = buffer(NULL, 4), b = buffer(NULL, 128), at;
    CUlibrary l =
        library(".version 8.0\n.target sm_90a\n.address_size 64\n.visible .global .u32 bias;\n" ENTRY(
            "textured", "tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [a, {%r0}];")
                    ENTRY("groups", "and.b32 %r1, %r0, 1;\nmatch.any.sync.b32 %r2, %r1, -1;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra ODD;\ncall "
                                    "(%r3), total, (%r0, %r2);\nbra DONE;\n"
                                    "ODD:\ncall (%r3), total, (%r0, %r2);\nDONE:\nvote.sync.ballot.b32 %r4, %p1, %r2;\nsetp.ne.u32 %p2, "
                                    "%r4, 0;\nsetp.eq.u32 %p3, %r4, %r2;\nxor.pred %p4, %p1, %p2;\n"
                                    "@%p4 trap;\nmov.u64 %rd5, bias;\nld.global.u32 %r5, [%rd5];\nadd.u32 %r3, %r3, %r5;\n" INTO "%r3;")
                        ENTRY("masked", ".shared .align 4 .b8 tile[128];\nmov.u32 %r1, tile;\nshl.b32 %r2, %r0, 2;\nadd.u32 %r1, %r1, "
                                        "%r2;\nsetp.lt.u32 %p1, %r0, 20;\n@%p1 st.shared.u32 [%r1], %r0;\n"
                                        "bar.sync 0;\nld.shared.u32 %r3, [%r1];\nmul.lo.u32 %r3, %r3, 3;\nselp.b32 %r4, %r3, 7, %p1;\n" INTO
                                        "%r4;") ".func (.reg .u32 out) total(.reg .u32 x, .reg .u32 members)\n{\nredux.sync.add.u32 out, "
                                                "x, members;\nret;\n}\n");
    cr_assert_eq(cu->cuLibraryGetGlobal(&at, NULL, l, "bias"), CUDA_SUCCESS);
    cu->cuMemcpyHtoD(at, &bias, 4);
    for (int order = SIM_IN_ORDER; order <= SIM_RANDOM; order++) {
        sim_set_options(&(sim_options){ .schedule = (sim_schedule)order, .seed = 3 });
        cr_assert_eq(launch(kernel_of(l, "groups"), 1, 32, 0, a, b), CUDA_SUCCESS, "%s", sim_report());
        fetch(got, b, 128);
        for (uint32_t k = 0; k < 32; k++)
            cr_assert_eq(got[k], (k & 1 ? 256u : 240u) + bias, "lane %u: %u", k, got[k]);
        cr_assert_eq(launch(kernel_of(l, "masked"), 1, 32, 0, a, b), CUDA_SUCCESS, "%s", sim_report());
        fetch(got, b, 128);
        for (uint32_t k = 0; k < 32; k++)
            cr_assert_eq(got[k], k < 20 ? 3 * k : 7, "lane %u: %u", k, got[k]);
        cr_expect_eq(launch(kernel_of(l, "textured"), 1, 32, 0, a, b), CUDA_ERROR_NOT_SUPPORTED);
        cr_expect(strstr(sim_report(), "in kernel textured") != NULL, "%s", sim_report());
    }
}

/* ---- variables by name ---- */

Test(sim_foreign, global_variables_by_name)
{
    const uint32_t factors[4] = { 3, 5, 7, 11 };
    uint32_t got[4], sum;
    size_t bytes;
    CUdeviceptr at, again;
    CUlibrary l = library(
        HEAD80
        ".visible .global .align 4 .b8 factors[16];\n.visible .const .align 4 .u32 offset = 100;\n.global .align 4 .u32 total;\n.shared "
        ".b32 s;\n" ENTRY(
            "k", "mov.u64 %rd3, factors;\nmul.wide.u32 %rd4, %r0, 4;\nadd.s64 %rd3, %rd3, %rd4;\nld.global.u32 %r1, [%rd3];\nld.const.u32 "
                 "%r2, [offset];\n"
                 "mad.lo.u32 %r3, %r1, %r0, %r2;\nst.global.u32 [%rd3], %r3;\nmov.u64 %rd5, total;\nred.global.add.u32 [%rd5], %r3;"));
    cr_assert_eq(cu->cuLibraryGetGlobal(&at, &bytes, l, "factors"), CUDA_SUCCESS, "%s", cu->detail());
    cr_expect_eq(bytes, 16);
    cr_assert_eq(cu->cuMemcpyHtoD(at, factors, 16), CUDA_SUCCESS);
    cr_assert_eq(launch(kernel_of(l, "k"), 1, 4, 0, 0, 0), CUDA_SUCCESS, "%s", sim_report());
    fetch(got, at, 16);
    for (uint32_t k = 0; k < 4; k++)
        cr_expect_eq(got[k], 100 + k * factors[k]);
    cr_assert_eq(cu->cuLibraryGetGlobal(&again, NULL, l, "total"), CUDA_SUCCESS);
    fetch(&sum, again, 4);
    cr_expect_eq(sum, 400 + 5 + 14 + 33);
    cr_expect_eq(cu->cuLibraryGetGlobal(NULL, &bytes, l, "offset"), CUDA_SUCCESS);
    cr_expect_eq(bytes, 4);
    cr_expect_eq(cu->cuLibraryGetGlobal(&at, &bytes, l, "nothing"), CUDA_ERROR_NOT_FOUND);
    cr_expect(strstr(cu->detail(), "no variable nothing") != NULL, "%s", cu->detail());
    cr_expect_eq(cu->cuLibraryGetGlobal(&at, &bytes, l, "s"), CUDA_ERROR_NOT_FOUND, "shared memory has no address of its own");
    cr_expect_eq(cu->cuLibraryGetGlobal(NULL, NULL, l, "total"), CUDA_ERROR_INVALID_VALUE);
    cr_expect_eq(cu->cuLibraryGetGlobal(&at, NULL, NULL, "total"), CUDA_ERROR_INVALID_HANDLE);
    cr_expect_eq(cu->cuLibraryUnload(l), CUDA_SUCCESS);
    cr_expect_eq(cu->cuMemcpyDtoH(got, again, 4), CUDA_ERROR_INVALID_VALUE, "it went with its library");
}

/* ---- small instructions ---- */

Test(sim_foreign, instructions_of_other_compilers)
{
    /* clang-format off */
    static const struct { const char *text; uint32_t a, b, c, want; } rows[] = {
        {"dp4a.u32.u32 %r4, %r1, %r2, %r3;", 0x01FF0203, 0x04050607, 10, 10 + 4 + 255 * 5 + 12 + 21}, {"dp4a.s32.s32 %r4, %r1, %r2, %r3;", 0x01FF0203, 0x04050607, 10, 10 + 4 - 5 + 12 + 21},
        {"dp4a.s32.u32 %r4, %r1, %r2, %r3;", 0x000000FF, 0x000000FF, 1, 1u - 255}, {"dp4a.u32.s32 %r4, %r1, %r2, %r3;", 0x000000FF, 0x000000FE, 1, 1u - 510},
        {"dp2a.lo.s32.s32 %r4, %r1, %r2, %r3;", 0xFFFF0003, 0x04050607, 10, 10 + 21 - 6}, {"dp2a.hi.u32.u32 %r4, %r1, %r2, %r3;", 0xFFFF0003, 0x04050607, 10, 10 + 15 + 65535 * 4},
        {"dp2a.hi.s32.u32 %r4, %r1, %r2, %r3;", 0xFFFF0003, 0xFF050607, 10, 10 + 15 - 255}, {"dp2a.lo.u32.s32 %r4, %r1, %r2, %r3;", 0xFFFF0003, 0x0405FF07, 10, 10 + 21 - 65535},
        {"bmsk.clamp.b32 %r4, %r1, %r2;", 4, 8, 0, 0xFF0}, {"bmsk.clamp.b32 %r4, %r1, %r2;", 28, 8, 0, 0xF0000000}, {"bmsk.clamp.b32 %r4, %r1, %r2;", 0, 32, 0, 0xFFFFFFFF},
        {"bmsk.clamp.b32 %r4, %r1, %r2;", 32, 4, 0, 0}, {"bmsk.wrap.b32 %r4, %r1, %r2;", 36, 8, 0, 0xFF0}, {"bmsk.wrap.b32 %r4, %r1, %r2;", 4, 32, 0, 0}, {"bmsk.wrap.b32 %r4, %r1, %r2;", 28, 8, 0, 0xF0000000},
        {"set.lt.f16x2.f16x2 %r4, %r1, %r2;", 0x3C004000, 0x40003C00, 0, 0x3C000000}, {"set.le.bf16x2.bf16x2 %r4, %r1, %r2;", 0x3F803F80, 0x3F803F00, 0, 0x3F800000},
        {"set.equ.f16x2.f16x2 %r4, %r1, %r2;", 0x7FFF3C00, 0x00003C00, 0, 0x3C003C00}, {"set.eq.f16x2.f16x2 %r4, %r1, %r2;", 0x7FFF3C00, 0x00003C00, 0, 0x00003C00},
        {"set.ne.ftz.f16x2.f16x2 %r4, %r1, %r2;", 0x00010001, 0x00023C00, 0, 0x00003C00},
        {"setp.gt.f16x2 %p1|%p2, %r1, %r2; selp.u32 %r4, 1, 0, %p1; selp.u32 %r5, 2, 0, %p2; or.b32 %r4, %r4, %r5;", 0x40003C00, 0x3C004000, 0, 2},
        {"setp.gt.bf16x2 %p1|%p2, %r1, %r2; selp.u32 %r4, 1, 0, %p1; selp.u32 %r5, 2, 0, %p2; or.b32 %r4, %r4, %r5;", 0x3F804000, 0x40003F80, 0, 1},
        {"cvt.u16.u32 %h1, %r1; cvt.u16.u32 %h2, %r2; set.lt.u16.f16 %h3, %h1, %h2; cvt.u32.u16 %r4, %h3;", 0x3C00, 0x4000, 0, 0xFFFF},
    };
    /* clang-format on */
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const uint32_t in[3] = { rows[k].a, rows[k].b, rows[k].c };
        uint32_t got[32];
        CUdeviceptr a = buffer(in, 12), b = buffer(NULL, 128);
        char body[1024];
        snprintf(body, sizeof body,
                 "ld.global.u32 %%r1, [%%rd1]; ld.global.u32 %%r2, [%%rd1+4]; ld.global.u32 %%r3, [%%rd1+8];\n%s\n%s%%r4;", rows[k].text,
                 INTO);
        run(around(HEAD80, body, ""), 1, 32, 0, a, b);
        fetch(got, b, 128);
        for (int l = 0; l < 32; l++)
            cr_assert_eq(got[l], rows[k].want, "row %zu: %s: %08x instead of %08x", k, rows[k].text, got[l], rows[k].want);
    }
}
