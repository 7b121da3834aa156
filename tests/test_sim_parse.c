/* What the parser refuses, and how it says so; what it must take. */
#include "test_sim_machine.h"

TestSuite(sim_parse, .init = open80);

static void refused(const char *ptx, const char *words)
{
    CUlibrary l;
    CUresult r = cu->cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0);
    cr_expect_eq(r, CUDA_ERROR_INVALID_PTX, "code %d for: %s", r, words);
    cr_expect(strstr(cu->detail(), words) != NULL, "\"%s\" is not in: %s", words, cu->detail());
}

Test(sim_parse, errors_name_the_line_and_the_text)
{
    refused(HEAD80 KERNEL("bra NOWHERE;"), "the label is not defined");
    refused(HEAD80 KERNEL("@%r1 mov.u32 %r2, 1;"), "the guard is no predicate");
    refused(HEAD80 KERNEL("@%q mov.u32 %r2, 1;"), "register %q is not declared");
    refused(HEAD80 KERNEL("add.u32 %r1, %r2, %r2"), "expected ',' or ';'");
    refused(HEAD80 KERNEL("mov.u32 %r1, 12x4;"), "is no number");
    refused(HEAD80 KERNEL("ld.global.u32 %r1, [[[[[[[[[[%rd1]]]]]]]]]];"), "operands are nested too deeply");
    refused(HEAD80 KERNEL("mov.u32 %r1, !!!!!!!!!!!!!!!!%r2;"), "operands are nested too deeply");
    refused(HEAD80 KERNEL("ld.global.u32 %r1, [%rd1"), "expected ']'");
    refused(HEAD80 ".visible .entry k()\n{\nret;\n", "is not closed");
    refused(HEAD80 "/* open", "a comment is not closed");
    refused(HEAD80 ".surprise 3\n", "PTX line 4: unknown directive .surprise");
    refused(".target sm_80\n", "does not start with .version");
    refused(".version 8.0\n.target sm_80\n.address_size 32\n", "only 64-bit addresses");
    refused(HEAD80 ".visible .entry k()\n{\n.reg .q32 %r<3>;\nret;\n}\n", "unknown type .q32");
    refused(HEAD80 ".global .align 3 .b32 x;\n", "is no power of two");
    refused(HEAD80 ".global .b32 x[2] = {1, 2, 3};\n", "too many initialisers");
}

Test(sim_parse, images_that_are_no_ptx)
{
    CUlibrary l;
    cr_expect_eq(cu->cuLibraryLoadData(&l, "\177ELF\2\1\1", NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_INVALID_IMAGE);
    cr_expect_eq(cu->cuLibraryLoadData(&l, "", NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_INVALID_IMAGE);
    cr_expect_eq(cu->cuLibraryLoadData(&l, "// only\n", NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_INVALID_IMAGE);
    cr_expect_eq(cu->cuLibraryLoadData(&l, HEAD90 KERNEL(""), NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_NO_BINARY_FOR_GPU);
    cr_expect_eq(cu->cuLibraryLoadData(&l, ".version 7.0\n.target sm_75\n.address_size 64\n", NULL, NULL, 0, NULL, NULL, 0), CUDA_SUCCESS);
}

/* Every cut of a text ends in an answer, never in a crash. */
Test(sim_parse, truncated_texts)
{
    const char *ptx = HEAD80 ".file 1 \"x.cu\"\n.global .align 4 .b8 t[4] = {1, 0x2, 3, 4};\n.visible .entry k(.param .align 8 .b8 "
                             "s[24])\n.maxntid 128, 1, 1\n{\n.reg .pred %p<3>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n"
                             ".loc 1 3 4, function_name $L+5, inlined_at 1 9 2\nld.param.u64 %rd1, [s+8];\nmov.b64 {%r1, %r2}, %rd1;\n{ "
                             ".reg .pred q; setp.ne.s32 q|%p1, %r1, -7; @!q bra $L1; }\n"
                             "brx.idx %r1, T;\nT: .branchtargets $L1, $L1;\n$L1:\nmov.f32 %r3, 0f3F800000;\nld.global.v4.u32 "
                             "{%r1,_,%r3,%r4}, [%rd1+-16];\nret;\n}\n.section .debug_str { L: .b8 1 }\n";
    size_t n = strlen(ptx);
    char *cut = malloc(n + 1);
    CUlibrary l;
    cr_expect_eq(cu->cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0), CUDA_SUCCESS, "%s", cu->detail());
    for (size_t k = 0; k < n; k++) {
        memcpy(cut, ptx, k), cut[k] = 0;
        if (!cu->cuLibraryLoadData(&l, cut, NULL, NULL, 0, NULL, NULL, 0))
            cu->cuLibraryUnload(l);
    }
    for (size_t k = 0; k < n; k++) { /* one character lost, one replaced */
        memcpy(cut, ptx, k), strcpy(cut + k, ptx + k + 1);
        if (!cu->cuLibraryLoadData(&l, cut, NULL, NULL, 0, NULL, NULL, 0))
            cu->cuLibraryUnload(l);
        strcpy(cut, ptx), cut[k] = "{}[]().,;:@%x0-\"/"[k % 17];
        if (!cu->cuLibraryLoadData(&l, cut, NULL, NULL, 0, NULL, NULL, 0))
            cu->cuLibraryUnload(l);
    }
    free(cut);
}

Test(sim_parse, forms_that_compilers_and_people_write)
{
    uint32_t got[4];
    CUdeviceptr in = buffer("0123456789abcdef", 16), out = buffer(NULL, 16);
    /* labels and registers of inline assembly, twice the same; comments; literals */
    run(HEAD80 KERNEL("mov.u32 %r1, 0; // add\n{\n.reg .pred p;\n.reg .b32 %n;\nmov.u32 %n, 3;\nLOOP:\nadd.u32 %r1, %r1, 1;\nsub.u32 %n, "
                      "%n, 1;\nsetp.ne.u32 p, %n, 0;\n@p bra LOOP;\n}\n"
                      "{\n.reg .pred p;\n.reg .b32 %n;\nmov.u32 %n, 0x4;\nLOOP: add.u32 %r1, %r1, 0b10;\nsub.u32 %n, %n, 1U;\nsetp.ne.u32 "
                      "p, %n, 0;\n@p bra.uni LOOP;\n}\n"
                      "/* and\nmore */ st.global.u32 [%rd2], %r1; mov.f32 %f1, 1.5; st.global.f32 [%rd2+4], %f1; mov.f64 %d1, "
                      "0d3FF0000000000000; cvt.rn.f32.f64 %f2, %d1; st.global.f32 [%rd2+8], %f2; st.global.u32 [%rd2+12], 017;"),
        1, 1, 0, in, out);
    fetch(got, out, 16);
    cr_expect(got[0] == 11 && got[1] == 0x3FC00000 && got[2] == 0x3F800000 && got[3] == 15, "%u %x %x %u", got[0], got[1], got[2], got[3]);
}

/* What OpenCL-like compilers say of a pointer is taken and means nothing here; the variable after it is where it would be without. */
Test(sim_parse, attributes_of_parameters_and_variables)
{
    static const char *const of_b[] = { ".u64",
                                        ".u64 .ptr",
                                        ".u64 .ptr .global",
                                        ".u64 .ptr .global .align 16",
                                        ".u64 .ptr .shared .align 4",
                                        ".u64 .ptr .const .align 8",
                                        ".u64 .ptr .align 1",
                                        ".align 8 .u64" };
    char ptx[1024];
    for (size_t i = 0; i < sizeof of_b / sizeof *of_b; i++) {
        uint32_t got = 0, want = 77 + (uint32_t)i;
        CUdeviceptr in = buffer(&want, 4), out = buffer(NULL, 4);
        snprintf(
            ptx, sizeof ptx,
            HEAD80
            ".visible .entry k(.param .u64 .ptr .global .align 4 a, .param %s b)\n{\n.reg .b32 %%r<2>;\n.reg .b64 %%rd<3>;\n"
            "ld.param.u64 %%rd1, [a];\nld.param.u64 %%rd2, [b];\nld.global.u32 %%r1, [%%rd1];\nst.global.u32 [%%rd2], %%r1;\nret;\n}\n",
            of_b[i]);
        run(ptx, 1, 1, 0, in, out);
        fetch(&got, out, 4);
        cr_expect_eq(got, want, "%s: %u", of_b[i], got);
    }
    uint64_t got[2] = { 0 };
    CUdeviceptr out = buffer(NULL, 16);
    run(HEAD80
        ".visible .global .managed .align 4 .u32 m = 5;\n.const .align 8 .v2 .u32 c[2] = {1, 2, 3, 4};\n.global .v4 .b8 w = {9, 8, 7, "
        "6};\n" KERNEL("mov.u64 %rd3, m; ld.global.u32 %r1, [%rd3]; mov.u64 %rd3, c; ld.const.u32 %r2, [%rd3+12]; mov.u64 %rd3, w; "
                       "ld.global.u8 %r3, [%rd3+3];"
                       "mad.lo.u32 %r1, %r1, 100, %r2; mad.lo.u32 %r1, %r1, 100, %r3; cvt.u64.u32 %rd4, %r1; st.global.u64 [%rd2], %rd4;"),
        1, 1, 0, out, out);
    fetch(got, out, 8);
    cr_expect_eq(got[0], 5 * 10000 + 4 * 100 + 6, "%d", (int)got[0]);
    refused(HEAD80 ".visible .entry k(.param .u64 .pointer a)\n{\nret;\n}\n", "unknown attribute .pointer of a variable");
    refused(HEAD80 ".global .align 4 m;\n", "a variable has no type");
}

/* A name stands for a place in one space; generic addresses are made by cvta. */
Test(sim_parse, names_belong_to_their_space)
{
    static const char *const spaces[] = { "global", "const", "shared", "local" };
    char ptx[1024];
    for (int at = 0; at < 4; at++)
        for (int by = 0; by < 4; by++) {
            CUlibrary l;
            bool legal = at == by || (at == 1 && by == 0); /* constant memory is part of global memory here */
            snprintf(ptx, sizeof ptx,
                     HEAD80 "%s.%s .align 4 .b32 v;\n.visible .entry k()\n{\n.reg .b32 %%r<2>;\n%s\nld.%s.u32 %%r1, [v];\nret;\n}\n",
                     at == 3 ? "//" : "", spaces[at], at == 3 ? ".local .align 4 .b32 v;" : "", spaces[by]);
            CUresult r = cu->cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0);
            if (!legal && r == CUDA_SUCCESS)
                r = launch(load(ptx), 1, 1, 0, 0, 0); /* told when it is loaded, or when it would be executed */
            cr_expect_eq(r == CUDA_SUCCESS, legal, "ld.%s of a variable in %s: %d %s", spaces[by], spaces[at], r, cu->detail());
            cr_expect(legal || strstr(cu->detail(), "the variable lives in another space"), "%s", cu->detail());
        }
}
