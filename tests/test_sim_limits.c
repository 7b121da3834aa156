/* What no GPU loads or launches does not load or launch here; and every load and launch ends. */
#include "test_sim_machine.h"

static void open_limits(void)
{
    open_machine("sm_90a");
}
TestSuite(sim_limits, .init = open_limits);

static CUresult loads(const char *ptx)
{
    CUlibrary l;
    CUresult r = cu->cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0);
    if (!r)
        cu->cuLibraryUnload(l);
    return r;
}
static void refused(const char *ptx, const char *words)
{
    CUresult r = loads(ptx);
    cr_expect_eq(r, CUDA_ERROR_INVALID_PTX, "code %d for: %s", r, words);
    cr_expect(strstr(cu->detail(), words) != NULL, "\"%s\" is not in: %s", words, cu->detail());
}
static void taken(const char *ptx)
{
    cr_expect_eq(loads(ptx), CUDA_SUCCESS, "%s", cu->detail());
}

#define ENTRY(declarations, body) HEAD90 ".visible .entry k()\n{\n.reg .b32 %r<9>;\n" declarations body "ret;\n}\n"
#define TOUCH(name) "mov.u32 %r1, " name ";\nst.shared.u32 [%r1], %r1;\n"

/* Each pair: the most that ptxas 13 takes, and one more. */
Test(sim_limits, those_of_ptxas)
{
    taken(ENTRY(".shared .b8 s[49152];\n", TOUCH("s")));
    refused(ENTRY(".shared .b8 s[49153];\n", TOUCH("s")), "kernel k uses too much static shared memory: 49153 bytes with s, at most 49152");
    refused(ENTRY(".shared .b8 s[900000];\n", ""), "900000 bytes");
    refused(ENTRY(".shared .b8 s[40000];\n.shared .align 16384 .b8 t[1];\n", TOUCH("s")), "49153 bytes");
    refused(ENTRY(".shared .b8 s[4];\n.shared .align 2147483648 .b8 t[4];\n", TOUCH("s")), "2147483652 bytes with t");
    taken(HEAD90 ".extern .shared .align 16 .b8 d[];\n.shared .b8 s[49152];\n.visible .entry k()\n{\n.reg .b32 %r<9>;\n" TOUCH("s")
              TOUCH("d") "ret;\n}\n");
    /* a kernel has what it names */
    taken(HEAD90 ".shared .b8 s[40000];\n.shared .b8 t[40000];\n.visible .entry k()\n{\n.reg .b32 %r<9>;\n" TOUCH(
        "s") "ret;\n}\n.visible .entry j()\n{\n.reg .b32 %r<9>;\n" TOUCH("t") "ret;\n}\n");
    refused(HEAD90 ".shared .b8 s[40000];\n.shared .b8 t[40000];\n.visible .entry k()\n{\n.reg .b32 %r<9>;\n" TOUCH("s")
                TOUCH("t") "ret;\n}\n",
            "80000 bytes with t");
    taken(HEAD90 ".visible .entry k(.param .b8 p[32764])\n{\nret;\n}\n");
    refused(HEAD90 ".visible .entry k(.param .b8 p[32765])\n{\nret;\n}\n",
            "kernel k uses too much parameter space: 32765 bytes with p, at most 32764");
    refused(HEAD90 ".visible .entry k(.param .b8 p[32761], .param .u64 q)\n{\nret;\n}\n", "32776 bytes with q");
    taken(HEAD90 ".const .b8 c[65536];\n");
    refused(HEAD90 ".const .b8 c[65537];\n", "too much constant data: 65537 bytes with c, at most 65536");
    refused(HEAD90 ".const .b8 c[65533];\n.const .b32 d;\n", "65540 bytes with d");
    refused(HEAD90 ".visible .entry k()\n.maxntid 0, 1, 1\n{\nret;\n}\n", ".maxntid needs numbers above 0");
    refused(HEAD90 ".visible .entry k()\n.maxnreg 0\n{\nret;\n}\n", ".maxnreg needs numbers above 0");
    refused(HEAD80 ".visible .entry k()\n.reqnctapercluster 2, 1, 1\n{\nret;\n}\n", "needs a target of sm_90");
    refused(ENTRY(".reg .b32 %r<5>;\n", ""), "register %r is declared twice");
    taken(ENTRY("{ .reg .b32 %r<5>; mov.u32 %r4, 1; }\n", ""));
    refused(ENTRY("L: L:\n", ""), "label L is defined twice");
    taken(ENTRY("L: { L: bra L; } { L: bra L; }\n", ""));
    refused(HEAD90 ".visible .entry k()\n{\nret;\n}\n.visible .entry k()\n{\nret;\n}\n", "kernel k is defined twice");
    refused(ENTRY(".local .b8 l[16777217];\n", ""), "more than 16777216 bytes of local memory");
    refused(ENTRY(".local .b8 l[1073741824];\n.local .b8 m[1073741824];\n.local .b8 n[1073741824];\n.local .b8 o[1073741824];\n", ""),
            "of local memory");
}

/* An address in shared memory is the kernel's own, whatever the other kernels of the module name. */
Test(sim_limits, kernels_place_what_they_name)
{
    uint32_t got[2];
    CUdeviceptr out = buffer(NULL, 8);
    run(HEAD90 ".shared .align 4 .b8 s[40000];\n.shared .align 4 .b8 t[40000];\n.visible .entry j()\n{\n.reg .b32 %r<9>;\n" TOUCH(
            "s") "ret;\n}\n" KERNEL("mov.u32 %r1, t;\nst.shared.u32 [%r1+39996], %r0;\nst.global.u32 [%rd2], %r1;\nmov.u32 %r2, "
                                    "%total_smem_size;\nst.global.u32 [%rd2+4], %r2;"),
        1, 1, 0, out, out);
    fetch(got, out, 8);
    cr_assert(got[0] == 1024 && got[1] == 40000, "%u %u", got[0], got[1]);
}

static CUresult shaped(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz)
{
    return cu->cuLaunchKernel(f, gx, gy, gz, bx, by, bz, 0, NULL, NULL, NULL);
}

Test(sim_limits, those_of_a_launch)
{
    CUfunction f = load(HEAD90 ".visible .entry k()\n{\nret;\n}\n");
    /* clang-format off */
    static const struct { unsigned g[3], b[3]; CUresult code; } rows[] = {
        {{1, 1, 1}, {1024, 1, 1}, CUDA_SUCCESS}, {{1, 1, 1}, {1025, 1, 1}, CUDA_ERROR_INVALID_VALUE}, {{1, 1, 1}, {32, 32, 1}, CUDA_SUCCESS}, {{1, 1, 1}, {32, 33, 1}, CUDA_ERROR_INVALID_VALUE},
        {{1, 1, 1}, {1, 1, 64}, CUDA_SUCCESS}, {{1, 1, 1}, {1, 1, 65}, CUDA_ERROR_INVALID_VALUE}, {{0, 1, 1}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE}, {{1, 1, 1}, {1, 0, 1}, CUDA_ERROR_INVALID_VALUE},
        {{1, 65536, 1}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE}, {{1, 1, 65536}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE}, {{2147483648u, 1, 1}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE},
    };
    /* clang-format on */
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        cr_expect_eq(shaped(f, rows[r].g[0], rows[r].g[1], rows[r].g[2], rows[r].b[0], rows[r].b[1], rows[r].b[2]), rows[r].code,
                     "row %zu: %s", r, cu->detail());
    cr_expect_eq(cu->cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 49152, NULL, NULL, NULL), CUDA_SUCCESS);
    cr_expect_eq(cu->cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 49153, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    f = load(HEAD90 ".visible .entry k()\n{\n.local .b8 l[524289];\nret;\n}\n");
    cr_expect_eq(shaped(f, 1, 1, 1, 1, 1, 1), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "%s", cu->detail());
    /* registers: what setmaxnreg's kernels start with is known */
    f = load(".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n.maxnreg 128\n{\nsetmaxnreg.dec.sync.aligned.u32 "
             "96;\nret;\n}\n");
    cr_expect_eq(shaped(f, 1, 1, 1, 512, 1, 1), CUDA_SUCCESS, "%s", cu->detail());
    cr_expect_eq(shaped(f, 1, 1, 1, 640, 1, 1), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    cr_expect(strstr(cu->detail(), "640 threads of 128 registers, more than the 65536"), "%s", cu->detail());
}

/* ---- texts ---- */

static char *big;
static size_t used, room;
static void put(const char *format, int k)
{
    if (room - used < 256 && !(big = realloc(big, room = room * 2 + 4096)))
        abort();
    used += (size_t)snprintf(big + used, 256, format, k, k, k);
}
static void repeat(const char *format, int n)
{
    for (int k = 0; k < n; k++)
        put(format, k);
}

Test(sim_limits, nothing_nests_without_an_end, .timeout = 60)
{
    enum { DEEP = 100000 };
    /* clang-format off */
    static const struct { const char *before, *open, *middle, *close, *after; } rows[] = {
        {HEAD90 ".global .b32 x = ", "{", "1", "}", ";\n"}, {HEAD90 ".global .b32 x = ", "{{},", "1", "}", ";\n"}, {ENTRY("mov.u32 %r1, ", ""), "", "", "", ""},
        {HEAD90 ".visible .entry k()\n{\n.reg .b32 %r<9>;\nld.global.u32 %r1, ", "[", "%r1", "]", ";\nret;\n}\n"},
        {HEAD90 ".visible .entry k()\n{\n.reg .b32 %r<9>;\nmov.u32 %r1, ", "{", "%r1", "}", ";\nret;\n}\n"},
        {HEAD90 ".visible .entry k()\n{\n.reg .pred %p;\nmov.pred %p, ", "!", "%p", "", ";\nret;\n}\n"},
        {HEAD90 ".visible .entry k()\n{\n", "{", "", "}", "ret;\n}\n"},
        {HEAD90 ".section .x\n", "{", "", "}", "\n"}, {HEAD90 ".global .b32 x", "[1]", "", "", ";\n"},
        {HEAD90 ".func f()\n{\n", "{", "", "}", "ret;\n}\n.visible .entry k()\n{\ncall f;\nret;\n}\n"},
        {HEAD90 ".global .b32 x = ", "-", "1", "", ";\n"},
    };
    /* clang-format on */
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int whole = 0; whole < 2; whole++) {
            used = 0;
            put(rows[r].before, 0);
            for (int k = 0; k < DEEP; k++)
                put(rows[r].open, 0);
            if (whole) {
                put(rows[r].middle, 0);
                for (int k = 0; k < DEEP; k++)
                    put(rows[r].close, 0);
                put(rows[r].after, 0);
            }
            CUresult got = loads(big);
            cr_expect(got == CUDA_SUCCESS || (got == CUDA_ERROR_INVALID_PTX && cu->detail()[0]), "row %zu: %d", r, got);
        }
    refused(HEAD90 ".global .b32 x = {{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{1}}",
            "initialiser of x: '{' is nested more than 64 deep");
    taken(HEAD90 ".global .b32 x[2][2][2] = {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}};\n");
    free(big);
}

#define BODY HEAD90 ".visible .entry k()\n{\n.reg .pred %%p<9>;\n.reg .b32 %%r<9>;\nmov.u32 %%r1, %%tid.x;\nsetp.eq.u32 %%p1, %%r1, 7;\n"

/* Each of these took minutes where a name was looked for in a list. */
Test(sim_limits, loading_is_linear, .timeout = 75)
{
    enum { N = 60000 };
    /* clang-format off */
    static const struct { const char *head, *line, *tail; int n; } rows[] = {
        {BODY, "L%d: add.u32 %%r1, %%r1, %d;\n@%%p1 bra L%d;\n", "ret;\n}\n", N},
        {BODY, "R%d: @%%p1 bra END;\n", "END: ret;\n}\n", N},
        {BODY, "{ .reg .b32 %%n; LOOP: mov.u32 %%n, %d; @%%p1 bra LOOP; }\n", "ret;\n}\n", 15000},
        {BODY, ".reg .b32 %%q%dx;\nmov.u32 %%q%dx, %d;\n", "ret;\n}\n", N},
        {HEAD90, ".shared .b32 s%d;\n.visible .entry k%d()\n{\n.reg .b32 %%r<3>;\nmov.u32 %%r1, s%d;\nret;\n}\n", "", 20000},
        {HEAD90, ".func f%d()\n{\nret;\n}\n", ".visible .entry k()\n{\ncall f7;\nret;\n}\n", N},
    };
    /* clang-format on */
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        used = 0;
        put(rows[r].head, 0);
        repeat(rows[r].line, rows[r].n);
        put(rows[r].tail, 0);
        cr_expect_eq(loads(big), CUDA_SUCCESS, "row %zu: %s", r, cu->detail());
    }
    used = 0; /* calls that multiply, and leave nothing */
    put(HEAD90 ".func f0()\n{\n}\n", 0);
    for (int k = 1; k < 16; k++) {
        put(".func f%d()\n{\n", k);
        for (int c = 0; c < 10; c++)
            put("call f%d;\n", k - 1);
        put("}\n", 0);
    }
    put(".visible .entry k()\n{\ncall f15;\nret;\n}\n", 0);
    cr_expect_eq(loads(big), CUDA_SUCCESS, "%s", cu->detail());
    free(big);
}

/* ---- launches that would not end ---- */

Test(sim_limits, every_launch_ends, .timeout = 120)
{
    CUdeviceptr a = buffer("0123456789abcdef", 16), b = buffer(NULL, 16);
    CUfunction memory = load(HEAD90 KERNEL(".local .align 4 .b8 own[4];\nL: ld.global.u32 %r1, [%rd1];\nst.local.u32 [own], %r1;\nbra L;")),
               nothing = load(HEAD90 KERNEL(""));
    static const struct {
        bool loop;
        int64_t steps;
        double seconds;
        const char *words;
    } rows[] = {
        { true, 100000, 0, "hang: the launch has run 100001 warp instructions; the limit is 100000 (max_steps)" },
        { true, 0, 0.2, "hang: the launch has run for 0.2 seconds, its limit (max_seconds)" },
        { false, 100000, 0, "(max_steps)" },
        { false, 0, 0.2, "hang: the launch has run for 0.2 seconds" },
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int threads = 1; threads < 3; threads++) {
            sim_set_options(&(sim_options){ .max_steps = rows[r].steps, .max_seconds = rows[r].seconds, .threads = threads });
            void *params[] = { &a, &b };
            CUresult got = cu->cuLaunchKernel(rows[r].loop ? memory : nothing, 2147483647, rows[r].loop ? 1 : 65535, 1, 1, 1, 1, 0, NULL,
                                              params, NULL);
            cr_expect_eq(got, CUDA_ERROR_LAUNCH_TIMEOUT, "row %zu: %d", r, got);
            cr_expect(threads > 1 || strstr(sim_report(), rows[r].words), "row %zu: %s", r, sim_report());
            cr_expect(strstr(sim_report(), "check: hang"), "row %zu: %s", r, sim_report());
        }
    sim_set_options(NULL);
    cr_expect_eq(launch(nothing, 1000, 1, 0, a, b), CUDA_SUCCESS);
}
