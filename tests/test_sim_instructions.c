/* Each instruction against values worked out by hand. A row runs in every lane of one warp. */
#include "test_sim_machine.h"

typedef struct row {
    const char *text;
    uint32_t a, b, c, want;
} row;

static const char *const body32 =
    HEAD80 ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .pred %%p<9>;\n.reg .b16 %%h<9>;\n.reg .b32 %%r<40>;\n.reg .b64 "
           "%%rd<20>;\n.reg .f32 %%f<9>;\n"
           "ld.param.u64 %%rd1, [a];\nld.param.u64 %%rd2, [b];\nmov.u32 %%r0, %%tid.x;\nld.global.u32 %%r1, [%%rd1];\nld.global.u32 %%r2, "
           "[%%rd1+4];\nld.global.u32 %%r3, [%%rd1+8];\n"
           "%s\nmul.wide.u32 %%rd9, %%r0, 4;\nadd.s64 %%rd2, %%rd2, %%rd9;\nst.global.u32 [%%rd2], %%r4;\nret;\n}\n";

static void rows32_for(const char *target, const row *r, size_t n)
{
    CUdeviceptr in = buffer(NULL, 12), out = buffer(NULL, 128);
    for (size_t k = 0; k < n; k++) {
        char ptx[4096];
        uint32_t got[32], abc[3] = { r[k].a, r[k].b, r[k].c };
        snprintf(ptx, sizeof ptx, body32, r[k].text);
        memcpy(strstr(ptx, "sm_80"), target, 5);
        cu->cuMemcpyHtoD(in, abc, 12);
        run(ptx, 1, 32, 0, in, out);
        fetch(got, out, 128);
        for (int l = 0; l < 32; l++)
            cr_expect_eq(got[l], r[k].want, "%s: lane %d: %08x instead of %08x", r[k].text, l, got[l], r[k].want);
        if (got[0] != r[k].want)
            break;
    }
}
static void rows32(const row *r, size_t n)
{
    rows32_for("sm_80", r, n);
}
#define ROWS(...)                              \
    static const row rows[] = { __VA_ARGS__ }; \
    rows32(rows, sizeof rows / sizeof *rows)

TestSuite(sim_instructions, .init = open80);

Test(sim_instructions, whole_numbers)
{
    ROWS({ "add.s32 %r4, %r1, %r2;", 5, 0xFFFFFFFE, 0, 3 }, { "sub.s32 %r4, %r1, 7;", 5, 0, 0, 0xFFFFFFFE },
         { "mul.lo.s32 %r4, %r1, %r2;", 0x10001, 0x10001, 0, 0x20001 }, { "mul.hi.u32 %r4, %r1, %r2;", 0x80000000, 6, 0, 3 },
         { "mul.hi.s32 %r4, %r1, %r2;", 0x80000000, 6, 0, 0xFFFFFFFD },
         { "mul.wide.s32 %rd5, %r1, %r2; cvt.u32.u64 %r4, %rd5;", 7, 0xFFFFFFFF, 0, 0xFFFFFFF9 },
         { "mad.lo.s32 %r4, %r1, %r2, %r3;", 3, 4, 5, 17 }, { "mad.hi.u32 %r4, %r1, %r2, %r3;", 0x80000000, 4, 5, 7 },
         { "div.s32 %r4, %r1, %r2;", 0xFFFFFFF9, 2, 0, 0xFFFFFFFD }, { "div.u32 %r4, %r1, %r2;", 0xFFFFFFF9, 2, 0, 0x7FFFFFFC },
         { "rem.s32 %r4, %r1, %r2;", 0xFFFFFFF9, 2, 0, 0xFFFFFFFF }, { "rem.u32 %r4, %r1, %r2;", 17, 5, 0, 2 },
         { "div.s32 %r4, %r1, %r2;", 0x80000000, 0xFFFFFFFF, 0, 0x80000000 }, { "min.s32 %r4, %r1, %r2;", 0xFFFFFFFF, 2, 0, 0xFFFFFFFF },
         { "min.u32 %r4, %r1, %r2;", 0xFFFFFFFF, 2, 0, 2 }, { "max.s32 %r4, %r1, %r2;", 0xFFFFFFFF, 2, 0, 2 },
         { "neg.s32 %r4, %r1;", 5, 0, 0, 0xFFFFFFFB }, { "abs.s32 %r4, %r1;", 0xFFFFFFFB, 0, 0, 5 },
         { "sad.u32 %r4, %r1, %r2, %r3;", 3, 10, 1, 8 }, { "add.cc.u32 %r5, %r1, %r2; addc.u32 %r4, %r3, 0;", 0xFFFFFFFF, 1, 41, 42 },
         { "sub.cc.u32 %r5, %r1, %r2; subc.u32 %r4, %r3, 0;", 0, 1, 43, 42 },
         { "cvt.u16.u32 %h1, %r1; cvt.u16.u32 %h2, %r2; mul.lo.s16 %h3, %h1, %h2; cvt.s32.s16 %r4, %h3;", 0xFFFF, 3, 0, 0xFFFFFFFD },
         { "cvt.u16.u32 %h1, %r1; cvt.u16.u32 %h2, %r2; mul.wide.u16 %r4, %h1, %h2;", 0xFFFF, 0xFFFF, 0, 0xFFFE0001 });
}

Test(sim_instructions, bits)
{
    ROWS({ "and.b32 %r4, %r1, %r2;", 0xF0F0, 0xFF00, 0, 0xF000 }, { "or.b32 %r4, %r1, %r2;", 0xF0F0, 0xFF00, 0, 0xFFF0 },
         { "xor.b32 %r4, %r1, %r2;", 0xF0F0, 0xFF00, 0, 0x0FF0 }, { "not.b32 %r4, %r1;", 0xF0F0, 0, 0, 0xFFFF0F0F },
         { "shl.b32 %r4, %r1, %r2;", 1, 31, 0, 0x80000000 }, { "shl.b32 %r4, %r1, %r2;", 1, 32, 0, 0 },
         { "shr.s32 %r4, %r1, %r2;", 0x80000000, 40, 0, 0xFFFFFFFF }, { "shr.u32 %r4, %r1, 4;", 0x80000000, 0, 0, 0x08000000 },
         { "shf.l.wrap.b32 %r4, %r1, %r2, %r3;", 0x80000001, 0x2, 1, 5 },
         { "shf.r.wrap.b32 %r4, %r1, %r2, %r3;", 0x80000001, 3, 33, 0xC0000000 }, { "shf.r.clamp.b32 %r4, %r1, %r2, %r3;", 1, 3, 33, 3 },
         { "bfe.u32 %r4, %r1, 8, 8;", 0x12345678, 0, 0, 0x56 }, { "bfe.s32 %r4, %r1, 0, 4;", 0x12345678, 0, 0, 0xFFFFFFF8 },
         { "bfi.b32 %r4, %r1, %r2, 8, 8;", 0xAB, 0x11111111, 0, 0x1111AB11 },
         { "prmt.b32 %r4, %r1, %r2, 0x5410;", 0x33221100, 0x77665544, 0, 0x55441100 },
         { "prmt.b32 %r4, %r1, 0, 0xBBB3;", 0x83221100, 0, 0, 0xFFFFFF83 },
         { "lop3.b32 %r4, %r1, %r2, %r3, 0x96;", 0xF0, 0xCC, 0xAA, 0x96 }, { "lop3.b32 %r4, %r1, %r2, %r3, 0xE8;", 0xF0, 0xCC, 0xAA, 0xE8 },
         { "popc.b32 %r4, %r1;", 0xF0F1, 0, 0, 9 }, { "clz.b32 %r4, %r1;", 0x00010000, 0, 0, 15 }, { "clz.b32 %r4, %r1;", 0, 0, 0, 32 },
         { "brev.b32 %r4, %r1;", 1, 0, 0, 0x80000000 }, { "bfind.u32 %r4, %r1;", 0x00010000, 0, 0, 16 },
         { "bfind.s32 %r4, %r1;", 0xFFFFFFFE, 0, 0, 0 },
         { "mov.b32 {%h1, %h2}, %r1; mov.b32 %r4, {%h2, %h1};", 0x12345678, 0, 0, 0x56781234 },
         { "mov.b64 %rd5, {%r1, %r2}; shr.u64 %rd5, %rd5, 16; cvt.u32.u64 %r4, %rd5;", 0x12345678, 0x9ABCDEF0, 0, 0xDEF01234 },
         { "mov.b64 %rd5, {%r1, %r2}; mov.b64 {_, %r4}, %rd5;", 1, 2, 0, 2 },
         { "{ .reg .b32 %r1; mov.u32 %r1, 9; mov.u32 %r4, %r1; }", 1, 0, 0, 9 },
         { "{ .reg .b32 t; mov.u32 t, %r1; add.u32 %r4, t, 1; } { .reg .pred t; setp.eq.u32 t, %r1, 4; @t add.u32 %r4, %r4, 100; }", 4, 0,
           0, 105 });
}

Test(sim_instructions, predicates)
{
    ROWS({ "setp.lt.s32 %p1, %r1, %r2; selp.b32 %r4, 1, 2, %p1;", 0xFFFFFFFF, 0, 0, 1 },
         { "setp.lt.u32 %p1, %r1, %r2; selp.b32 %r4, 1, 2, %p1;", 0xFFFFFFFF, 0, 0, 2 },
         { "setp.lo.u32 %p1, %r1, %r2; selp.b32 %r4, 1, 2, %p1;", 1, 2, 0, 1 },
         { "setp.ge.s32 %p1|%p2, %r1, %r2; selp.b32 %r5, 1, 2, %p1; selp.b32 %r6, 10, 20, %p2; add.u32 %r4, %r5, %r6;", 3, 3, 0, 21 },
         { "setp.eq.s32 %p1, %r1, 1; setp.eq.and.s32 %p2, %r2, 2, %p1; selp.b32 %r4, 1, 0, %p2;", 1, 2, 0, 1 },
         { "setp.eq.s32 %p1, %r1, 1; setp.eq.or.s32 %p2, %r2, 3, !%p1; selp.b32 %r4, 1, 0, %p2;", 1, 2, 0, 0 },
         { "setp.ne.u32 %p1, %r1, 0; not.pred %p2, %p1; xor.pred %p3, %p1, %p2; selp.b32 %r4, 7, 8, %p3;", 1, 0, 0, 7 },
         { "mov.u32 %r4, 1; setp.ne.u32 %p1, %r1, 0; @!%p1 mov.u32 %r4, 2;", 0, 0, 0, 2 },
         { "mov.b32 %f1, %r1; setp.ltu.f32 %p1, %f1, 0f3F800000; selp.b32 %r4, 1, 0, %p1;", 0x7FC00000, 0, 0, 1 },
         { "mov.b32 %f1, %r1; setp.lt.f32 %p1, %f1, 0f3F800000; selp.b32 %r4, 1, 0, %p1;", 0x7FC00000, 0, 0, 0 },
         { "mov.b32 %f1, %r1; setp.nan.f32 %p1, %f1, %f1; selp.b32 %r4, 1, 0, %p1;", 0x7FC00000, 0, 0, 1 },
         { "mov.b32 %f1, %r1; setp.eq.ftz.f32 %p1, %f1, 0f00000000; selp.b32 %r4, 1, 0, %p1;", 1, 0, 0, 1 },
         { "mov.b32 %f1, %r1; setp.neu.f32 %p1, %f1, %f1; selp.b32 %r4, 1, 0, %p1;", 0x3F800000, 0, 0, 0 },
         { "set.lt.u32.s32 %r4, %r1, %r2;", 1, 2, 0, 0xFFFFFFFF }, { "slct.s32.s32 %r4, %r1, %r2, %r3;", 1, 2, 0x80000000, 2 },
         { "mov.b32 %f1, %r1; testp.infinite.f32 %p1, %f1; selp.b32 %r4, 1, 0, %p1;", 0xFF800000, 0, 0, 1 });
}

#define F2 "mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.b32 %f3, %r3; "
#define OUT " mov.b32 %r4, %f4;"
Test(sim_instructions, floats)
{
    ROWS({ F2 "add.f32 %f4, %f1, %f2;" OUT, 0x3F800000, 0x40000000, 0, 0x40400000 },
         { F2 "sub.ftz.f32 %f4, %f1, %f2;" OUT, 0x00800001, 0x00800000, 0, 0 },
         { F2 "sub.f32 %f4, %f1, %f2;" OUT, 0x00800001, 0x00800000, 0, 1 },
         { F2 "mul.f32 %f4, %f1, 0f40000000;" OUT, 0x3FC00000, 0, 0, 0x40400000 },
         { F2 "fma.rn.f32 %f4, %f1, %f2, %f3;" OUT, 0x3F800001, 0x3F800001, 0xBF800002, 0x28800000 },
         { F2 "add.rz.f32 %f4, %f1, %f2;" OUT, 0x3F800000, 0x33FFFFFF, 0, 0x3F800000 },
         { F2 "add.rp.f32 %f4, %f1, %f2;" OUT, 0x3F800000, 0x00000001, 0, 0x3F800001 },
         { F2 "add.rn.sat.f32 %f4, %f1, %f2;" OUT, 0x3F800000, 0x40000000, 0, 0x3F800000 },
         { F2 "add.sat.f32 %f4, %f1, %f2;" OUT, 0x7FC00000, 0x40000000, 0, 0 },
         { F2 "max.f32 %f4, %f1, %f2;" OUT, 0x7FC00000, 0x40000000, 0, 0x40000000 },
         { F2 "max.NaN.f32 %f4, %f1, %f2;" OUT, 0x7FC00000, 0x40000000, 0, 0x7FFFFFFF },
         { F2 "min.ftz.f32 %f4, %f1, %f2;" OUT, 0x80000000, 0, 0, 0x80000000 },
         { F2 "div.rn.f32 %f4, %f1, %f2;" OUT, 0x3F800000, 0x40400000, 0, 0x3EAAAAAB },
         { F2 "div.approx.ftz.f32 %f4, %f1, %f2;" OUT, 0x3F800000, 0x40000000, 0, 0x3F000000 },
         { F2 "div.full.f32 %f4, %f1, %f2;" OUT, 0x40800000, 0x40000000, 0, 0x40000000 },
         { F2 "rcp.approx.ftz.f32 %f4, %f1;" OUT, 0x40000000, 0, 0, 0x3F000000 },
         { F2 "rcp.approx.ftz.f32 %f4, %f1;" OUT, 0x00000001, 0, 0, 0x7F800000 },
         { F2 "sqrt.rn.f32 %f4, %f1;" OUT, 0x40800000, 0, 0, 0x40000000 },
         { F2 "rsqrt.approx.f32 %f4, %f1;" OUT, 0x40800000, 0, 0, 0x3F000000 },
         { F2 "ex2.approx.ftz.f32 %f4, %f1;" OUT, 0x40400000, 0, 0, 0x41000000 },
         { F2 "ex2.approx.ftz.f32 %f4, %f1;" OUT, 0xFF800000, 0, 0, 0 }, { F2 "ex2.approx.ftz.f32 %f4, %f1;" OUT, 0xC3000000, 0, 0, 0 },
         { F2 "lg2.approx.f32 %f4, %f1;" OUT, 0x41000000, 0, 0, 0x40400000 }, { F2 "sin.approx.f32 %f4, %f1;" OUT, 0, 0, 0, 0 },
         { F2 "cos.approx.f32 %f4, %f1;" OUT, 0, 0, 0, 0x3F800000 }, { F2 "tanh.approx.f32 %f4, %f1;" OUT, 0x7F800000, 0, 0, 0x3F800000 },
         { F2 "neg.f32 %f4, %f1;" OUT, 0x3F800000, 0, 0, 0xBF800000 }, { F2 "abs.ftz.f32 %f4, %f1;" OUT, 0x80000001, 0, 0, 0 },
         { F2 "copysign.f32 %f4, %f1, %f2;" OUT, 0x80000000, 0x40000000, 0, 0xC0000000 });
}

Test(sim_instructions, sixteen_bits)
{
    /* f16: 1.0 3C00, 2.0 4000, 3.0 4200, max 7BFF; bf16: 1.0 3F80, 2.0 4000, 3.0 4040 */
    ROWS({ "add.f16x2 %r4, %r1, %r2;", 0x3C004000, 0x40003C00, 0, 0x42004200 },
         { "mul.rn.f16x2 %r4, %r1, %r2;", 0x7BFF3C01, 0x40003C01, 0, 0x7C003C02 },
         { "fma.rn.f16x2 %r4, %r1, %r2, %r3;", 0x3C013C00, 0x3C013C00, 0xBC023C00, 0x00104000 },
         { "sub.f16x2 %r4, %r1, %r2;", 0x3C003C00, 0x3C004000, 0, 0x0000BC00 },
         { "max.f16x2 %r4, %r1, %r2;", 0x7E003C00, 0x40004000, 0, 0x40004000 },
         { "min.NaN.f16x2 %r4, %r1, %r2;", 0x7E003C00, 0x40004000, 0, 0x7FFF3C00 }, { "neg.f16x2 %r4, %r1;", 0x3C00BC00, 0, 0, 0xBC003C00 },
         { "abs.bf16x2 %r4, %r1;", 0xBF803F80, 0, 0, 0x3F803F80 },
         { "fma.rn.bf16x2 %r4, %r1, %r2, %r3;", 0x3F804000, 0x40003F80, 0x3F803F80, 0x40404040 },
         { "ex2.approx.f16x2 %r4, %r1;", 0x40003C00, 0, 0, 0x44004000 },
         { "ex2.approx.ftz.bf16x2 %r4, %r1;", 0x40003F80, 0, 0, 0x40804000 },
         { "tanh.approx.f16x2 %r4, %r1;", 0x7C000000, 0, 0, 0x3C000000 },
         { "mov.b32 {%h1, %h2}, %r1; setp.lt.f16 %p1, %h1, %h2; selp.b32 %r4, 1, 0, %p1;", 0x40003C00, 0, 0, 1 },
         { "mov.b32 {%h1, %h2}, %r1; add.f16 %h3, %h1, %h2; cvt.u32.u16 %r4, %h3;", 0x40003C00, 0, 0, 0x4200 });
}

Test(sim_instructions, conversions)
{
    ROWS({ F2 "cvt.rn.f16x2.f32 %r4, %f1, %f2;", 0x3F800000, 0x40000000, 0, 0x3C004000 },
         { F2 "cvt.rn.bf16x2.f32 %r4, %f1, %f2;", 0x3F808000, 0x3F818000, 0, 0x3F803F82 },
         { F2 "cvt.rz.f16x2.f32 %r4, %f1, %f2;", 0x477FFFFF, 0x33800001, 0, 0x7BFF0001 },
         { F2 "cvt.rn.f16x2.f32 %r4, %f1, %f2;", 0x477FF000, 0x33000001, 0, 0x7C000001 },
         { F2 "cvt.rn.f16x2.f32 %r4, %f1, %f2;", 0x387FC000, 0x33000000, 0, 0x03FF0000 },
         { F2 "cvt.rn.f16.f32 %h1, %f1; cvt.u32.u16 %r4, %h1;", 0x7FC00001, 0, 0, 0x7FFF },
         { "mov.b32 {%h1, %h2}, %r1; cvt.f32.f16 %f4, %h1;" OUT, 0x0001, 0, 0, 0x33800000 },
         { "mov.b32 {%h1, %h2}, %r1; cvt.f32.bf16 %f4, %h1;" OUT, 0x3F81, 0, 0, 0x3F810000 },
         { "cvt.rn.f32.s32 %f4, %r1;" OUT, 0xFFFFFFFF, 0, 0, 0xBF800000 }, { "cvt.rn.f32.u32 %f4, %r1;" OUT, 0xFFFFFFFF, 0, 0, 0x4F800000 },
         { "cvt.rz.f32.u32 %f4, %r1;" OUT, 0xFFFFFFFF, 0, 0, 0x4F7FFFFF }, { F2 "cvt.rzi.s32.f32 %r4, %f1;", 0xBFC00000, 0, 0, 0xFFFFFFFF },
         { F2 "cvt.rni.s32.f32 %r4, %f1;", 0x40200000, 0, 0, 2 }, { F2 "cvt.rmi.s32.f32 %r4, %f1;", 0xBFC00000, 0, 0, 0xFFFFFFFE },
         { F2 "cvt.rpi.s32.f32 %r4, %f1;", 0x3F800001, 0, 0, 2 }, { F2 "cvt.rzi.u32.f32 %r4, %f1;", 0xBFC00000, 0, 0, 0 },
         { F2 "cvt.rzi.s32.f32 %r4, %f1;", 0x7F800000, 0, 0, 0x7FFFFFFF }, { F2 "cvt.rzi.s32.f32 %r4, %f1;", 0x7FC00000, 0, 0, 0 },
         { F2 "cvt.rni.f32.f32 %f4, %f1;" OUT, 0x40600000, 0, 0, 0x40800000 }, { F2 "cvt.sat.f32.f32 %f4, %f1;" OUT, 0xC0000000, 0, 0, 0 },
         { F2 "cvt.rna.tf32.f32 %r4, %f1;", 0x3F801000, 0, 0, 0x3F802000 }, { "cvt.s32.s8 %r4, %r1;", 0x80, 0, 0, 0xFFFFFF80 },
         { F2 "cvt.rna.tf32.f32 %r4, %f1;", 0x7F7FFFFF, 0, 0, 0x7F800000 },
         { F2 "cvt.rna.tf32.f32 %r4, %f1;", 0xFFC00001, 0, 0, 0x7FFFFFFF },
         { F2 "cvt.rna.tf32.f32 %r4, %f1;", 0x80001000, 0, 0, 0x80002000 },
         { F2 "cvt.rna.tf32.f32 %r4, %f1;", 0xFF800000, 0, 0, 0xFF800000 }, { "cvt.u32.u8 %r4, %r1;", 0x180, 0, 0, 0x80 },
         { "cvt.sat.s8.s32 %r4, %r1;", 300, 0, 0, 127 }, { "cvt.sat.u8.s32 %r4, %r1;", 0xFFFFFFFB, 0, 0, 0 },
         { "cvt.s64.s32 %rd5, %r1; shr.u64 %rd5, %rd5, 32; cvt.u32.u64 %r4, %rd5;", 0x80000000, 0, 0, 0xFFFFFFFF },
         { "cvt.rn.f64.s32 %rd5, %r1; cvt.rn.f32.f64 %f4, %rd5;" OUT, 3, 0, 0, 0x40400000 },
         /* a 16-bit result in a wider register is extended as its type says */
         { "cvt.s16.s32 %r4, %r1;", 0x12348001, 0, 0, 0xFFFF8001 }, { "cvt.u16.s32 %r4, %r1;", 0x12348001, 0, 0, 0x8001 },
         { "cvt.s16.u32 %r4, %r1;", 0x12348001, 0, 0, 0xFFFF8001 }, { "cvt.u16.u32 %r4, %r1;", 0xFFFFFFFF, 0, 0, 0xFFFF });
}

Test(sim_instructions, special_registers)
{
    static const char *const texts[] = { "%laneid",          "%lanemask_eq",      "%lanemask_lt",      "%lanemask_le", "%lanemask_gt",
                                         "%lanemask_ge",     "%ntid.x",           "%ctaid.x",          "%nctaid.x",    "%warpid",
                                         "%cluster_ctarank", "%cluster_nctarank", "%dynamic_smem_size" };
    CUdeviceptr in = buffer("0123456789ab", 12), out = buffer(NULL, 128);
    for (int k = 0; k < 13; k++) {
        char ptx[4096], text[64];
        uint32_t got[32];
        snprintf(text, sizeof text, "mov.u32 %%r4, %s;", texts[k]);
        snprintf(ptx, sizeof ptx, body32, text);
        run(ptx, 1, 32, 48, in, out);
        fetch(got, out, 128);
        for (uint32_t l = 0; l < 32; l++) {
            uint32_t bit = 1u << l, want[] = { l, bit, bit - 1, bit | (bit - 1), ~(bit | (bit - 1)), ~(bit - 1), 32, 0, 1, 0, 0, 1, 48 };
            cr_expect_eq(got[l], want[k], "%s in lane %u: %x", texts[k], l, got[l]);
        }
    }
}

/* Lanes that differ: in the lane's number l, out f(l). */
static void lanes(const char *text, uint32_t (*want)(uint32_t l))
{
    char ptx[4096];
    uint32_t got[32];
    CUdeviceptr in = buffer("0123456789ab", 12), out = buffer(NULL, 128);
    snprintf(ptx, sizeof ptx, body32, text);
    run(ptx, 1, 32, 0, in, out);
    fetch(got, out, 128);
    for (uint32_t l = 0; l < 32; l++)
        cr_expect_eq(got[l], want(l), "%s: lane %u: %u instead of %u", text, l, got[l], want(l));
}
static uint32_t bfly(uint32_t l)
{
    return l ^ 5;
}
static uint32_t up(uint32_t l)
{
    return l < 3 ? l : l - 3;
}
static uint32_t down(uint32_t l)
{
    return l % 8 + 2 > 7 ? l + 100 : l + 2;
}
static uint32_t idx(uint32_t l)
{
    return (l & ~3u) + 1;
}
static uint32_t ballot(uint32_t l)
{
    return l ? 0x55555555u : 0x55555555u;
}
static uint32_t all(uint32_t l)
{
    (void)l;
    return 6;
}
static uint32_t match(uint32_t l)
{
    return 0x11111111u << l % 4;
}
static uint32_t sum(uint32_t l)
{
    (void)l;
    return 496;
}
static uint32_t least(uint32_t l)
{
    (void)l;
    return (uint32_t)-31;
}
static uint32_t first(uint32_t l)
{
    return l == 0;
}
static uint32_t odd_active(uint32_t l)
{
    return l & 1 ? 0xAAAAAAAAu : 7;
}

Test(sim_instructions, between_lanes)
{
    lanes("shfl.sync.bfly.b32 %r4, %r0, 5, 0x1f, -1;", bfly);
    lanes("shfl.sync.up.b32 %r4, %r0, 3, 0, -1;", up);
    lanes("shfl.sync.down.b32 %r4|%p1, %r0, 2, 0x181f, 0xffffffff; @!%p1 add.u32 %r4, %r4, 100;", down);
    lanes("shfl.sync.idx.b32 %r4, %r0, 1, 0x1c1f, -1;", idx);
    lanes("and.b32 %r5, %r0, 1; setp.eq.u32 %p1, %r5, 0; vote.sync.ballot.b32 %r4, %p1, -1;", ballot);
    lanes("setp.lt.u32 %p1, %r0, 31; vote.sync.all.pred %p2, %p1, -1; vote.sync.any.pred %p3, %p1, -1; setp.lt.u32 %p1, %r0, 32; "
          "vote.sync.uni.pred %p4, %p1, -1;"
          "selp.b32 %r4, 1, 0, %p2; selp.b32 %r5, 2, 0, %p3; add.u32 %r4, %r4, %r5; selp.b32 %r5, 4, 0, %p4; add.u32 %r4, %r4, %r5;",
          all);
    lanes("and.b32 %r5, %r0, 3; match.any.sync.b32 %r4, %r5, -1;", match);
    lanes("redux.sync.add.s32 %r4, %r0, -1;", sum);
    lanes("neg.s32 %r5, %r0; redux.sync.min.s32 %r4, %r5, -1;", least);
    lanes("elect.sync %r5|%p1, -1; selp.b32 %r4, 1, 0, %p1;", first);
    lanes("mov.u32 %r4, 7; and.b32 %r5, %r0, 1; setp.eq.u32 %p1, %r5, 0; @%p1 bra DONE; activemask.b32 %r4; DONE: bar.warp.sync -1;",
          odd_active);
}

static void rows64(const char *text, uint64_t a, uint64_t b, uint64_t c, uint64_t want)
{
    uint64_t abc[3] = { a, b, c }, got;
    char ptx[4096];
    CUdeviceptr in = buffer(abc, 24), out = buffer(NULL, 8);
    snprintf(ptx, sizeof ptx,
             HEAD80
             ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .b64 %%rd<20>; .reg .b32 %%r<9>; .reg .pred %%p<9>;\nld.param.u64 "
             "%%rd1, [a];\nld.param.u64 %%rd2, [b];\n"
             "ld.global.v2.u64 {%%rd5, %%rd6}, [%%rd1];\nld.global.u64 %%rd7, [%%rd1+16];\n%s\nst.global.u64 [%%rd2], %%rd8;\nret;\n}\n",
             text);
    run(ptx, 1, 1, 0, in, out);
    fetch(&got, out, 8);
    cr_expect_eq(got, want, "%s: %llx instead of %llx", text, (unsigned long long)got, (unsigned long long)want);
}
Test(sim_instructions, wide)
{
    rows64("add.s64 %rd8, %rd5, %rd6;", 1ull << 40, 5, 0, (1ull << 40) + 5);
    rows64("mul.lo.s64 %rd8, %rd5, %rd6;", 1ull << 33, 5, 0, 5ull << 33);
    rows64("mul.hi.u64 %rd8, %rd5, %rd6;", 1ull << 63, 6, 0, 3);
    rows64("mad.lo.s64 %rd8, %rd5, %rd6, %rd7;", 3, 4, 5, 17);
    rows64("shl.b64 %rd8, %rd5, 40;", 3, 0, 0, 3ull << 40);
    rows64("shr.s64 %rd8, %rd5, 63;", 1ull << 63, 0, 0, UINT64_MAX);
    rows64("div.u64 %rd8, %rd5, %rd6;", 1ull << 40, 1ull << 20, 0, 1ull << 20);
    rows64("rem.s64 %rd8, %rd5, %rd6;", (uint64_t)-7, 3, 0, (uint64_t)-1);
    rows64("popc.b64 %r1, %rd5; cvt.u64.u32 %rd8, %r1;", 0xF00000000000000Full, 0, 0, 8);
    rows64("clz.b64 %r1, %rd5; cvt.u64.u32 %rd8, %r1;", 1, 0, 0, 63);
    rows64("bfe.u64 %rd8, %rd5, 60, 8;", 0xF00000000000000Full, 0, 0, 15);
    rows64("setp.gt.s64 %p1, %rd5, %rd6; selp.b64 %rd8, %rd5, %rd6, %p1;", (uint64_t)-7, 3, 0, 3);
    rows64("add.f64 %rd8, %rd5, %rd6;", 0x3FF0000000000000ull, 0x4000000000000000ull, 0, 0x4008000000000000ull);
    rows64("fma.rn.f64 %rd8, %rd5, %rd6, %rd7;", 0x3FF0000000000000ull, 0x4000000000000000ull, 0x3FF0000000000000ull,
           0x4008000000000000ull);
    rows64("max.f64 %rd8, %rd5, %rd6;", 0x3FF0000000000000ull, 0x4000000000000000ull, 0, 0x4000000000000000ull);
    rows64("isspacep.global %p1, %rd1; selp.b64 %rd8, 1, 0, %p1;", 0, 0, 0, 1);
}

Test(sim_instructions, memory_of_every_space)
{
    uint32_t got[8], in[4] = { 10, 20, 30, 40 };
    CUdeviceptr a = buffer(in, 16), b = buffer(NULL, 32);
    run(HEAD80
        ".const .align 4 .b32 table[4] = {7, 8, 9, 10};\n.global .align 4 .b32 count = 5;\n.visible .entry k(.param .u64 a, .param .u64 "
        "b)\n{\n"
        ".local .align 16 .b8 depot[16];\n.shared .align 16 .b8 buf[64];\n.reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .b16 %h<4>;\n"
        "ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\n"
        "mov.u64 %rd3, depot;\ncvta.local.u64 %rd4, %rd3;\nst.local.u32 [%rd3+8], 123;\nld.u32 %r1, [%rd4+8];\nst.global.u32 [%rd2], %r1;\n"
        "mov.u64 %rd5, buf;\ncvta.shared.u64 %rd6, %rd5;\nst.u32 [%rd6], 77;\nld.shared.u32 %r2, [buf];\ncvt.u32.u64 %r9, "
        "%rd6;\nld.shared.u16 %r10, [%r9];\nadd.u32 %r2, %r2, %r10;\nst.global.u32 [%rd2+4], %r2;\n"
        "ld.const.u32 %r3, [table+8];\nst.global.u32 [%rd2+8], %r3;\n"
        "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd1];\nst.global.v2.u32 [%rd2+16], {%r7, %r5};\n"
        "atom.global.add.u32 %r8, [count], 4;\nld.global.u32 %r11, [count];\nadd.u32 %r8, %r8, %r11;\nst.global.u32 [%rd2+12], %r8;\n"
        "ld.global.nc.L1::no_allocate.L2::128B.u8 %r12, [%rd1];\nst.global.u32 [%rd2+24], %r12;\nld.global.s8 %r13, "
        "[%rd1+3];\nst.global.u32 [%rd2+28], %r13;\nret;\n}\n",
        1, 1, 0, a, b);
    fetch(got, b, 32);
    uint32_t want[8] = { 123, 154, 9, 14, 40, 20, 10, 0 };
    for (int k = 0; k < 8; k++)
        cr_expect_eq(got[k], want[k], "%d: %u instead of %u", k, got[k], want[k]);
}

Test(sim_instructions, atomics)
{
    uint32_t in[4] = { 0, 100, 0x3F800000, 0 }, got[4];
    CUdeviceptr a = buffer(in, 16), b = buffer(NULL, 4);
    run(HEAD80 KERNEL(
            "red.global.add.u32 [%rd1], 1; atom.global.min.s32 %r1, [%rd1+4], %r0; red.relaxed.gpu.global.add.f32 [%rd1+8], 0f3F800000;"
            "setp.eq.u32 %p1, %r0, 9; @%p1 atom.global.cas.b32 %r2, [%rd1+12], 0, 33; @%p1 atom.exch.b32 %r3, [%rd1], 5; @%p1 "
            "st.global.u32 [%rd2], %r3;"),
        1, 32, 0, a, b);
    fetch(got, a, 16);
    cr_expect(got[0] == 5 && got[1] == 0 && got[2] == 0x42040000 && got[3] == 33, "%u %u %x %u", got[0], got[1], got[2], got[3]);
    fetch(got, b, 4);
    cr_expect_eq(got[0], 32);
}

static void open_newer(void)
{
    open_machine("sm_90a");
}
TestSuite(sim_bytes, .init = open_newer);

Test(sim_bytes, conversions)
{
    static const row rows[] = {
        /* 1.0 and -448; NaN, the least; the largest below the normal ones */
        { "mov.b32 {%h1, %h2}, %r1; cvt.rn.f16x2.e4m3x2 %r4, %h1;", 0xFE38, 0, 0, 0xDF003C00 },
        { "mov.b32 {%h1, %h2}, %r1; cvt.rn.f16x2.e4m3x2 %r4, %h1;", 0x01FF, 0, 0, 0x18007FFF },
        { "mov.b32 {%h1, %h2}, %r1; cvt.rn.f16x2.e4m3x2 %r4, %h1;", 0x8007, 0, 0, 0x80002300 },
        { "mov.b32 {%h1, %h2}, %r1; cvt.rn.f16x2.e5m2x2 %r4, %h1;", 0x7D7B, 0, 0, 0x7FFF7B00 },
        /* 464 is the tie above 448; 17 and 19 lie between 16, 18 and 20; -inf; 2^-10 is half the least */
        { F2 "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2; cvt.u32.u16 %r4, %h1;", 0x43E80000, 0x42CA0000, 0, 0x7E6D },
        { F2 "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2; cvt.u32.u16 %r4, %h1;", 0x41880000, 0x41980000, 0, 0x585A },
        { F2 "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2; cvt.u32.u16 %r4, %h1;", 0xFF800000, 0xFFC00000, 0, 0xFE7F },
        { F2 "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2; cvt.u32.u16 %r4, %h1;", 0x3A800000, 0xBA800001, 0, 0x0081 },
        { F2 "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2; cvt.u32.u16 %r4, %h1;", 0x80000000, 0x3C800000, 0, 0x8008 },
        { F2 "cvt.rn.satfinite.e5m2x2.f32 %h1, %f1, %f2; cvt.u32.u16 %r4, %h1;", 0x7F800000, 0x37800000, 0, 0x7B01 },
        { "cvt.rn.satfinite.e4m3x2.f16x2 %h1, %r1; cvt.u32.u16 %r4, %h1;", 0x5F485648, 0, 0, 0x7E6D },
        { "cvt.rn.satfinite.e4m3x2.f16x2 %h1, %r1; cvt.u32.u16 %r4, %h1;", 0xFC007E00, 0, 0, 0xFE7F },
        { "cvt.rn.satfinite.e4m3x2.f16x2 %h1, %r1; cvt.u32.u16 %r4, %h1;", 0x94011400, 0, 0, 0x8100 },
        { "cvt.rn.satfinite.e5m2x2.f16x2 %h1, %r1; cvt.u32.u16 %r4, %h1;", 0x3D803E80, 0, 0, 0x3E3E },
    };
    rows32_for("sm_90", rows, sizeof rows / sizeof *rows);
}

Test(sim_bytes, need_a_newer_target)
{
    char ptx[4096];
    CUdeviceptr in = buffer(NULL, 12), out = buffer(NULL, 128);
    snprintf(ptx, sizeof ptx, body32, "mov.b32 {%h1, %h2}, %r1; cvt.rn.f16x2.e4m3x2 %r4, %h1;");
    fails(ptx, 32, 0, in, out, CUDA_ERROR_NOT_SUPPORTED, "need a target of sm_89");
}
