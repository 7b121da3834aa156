/* Undefined values: how they move, and where they are a defect. Every defect has a twin next to it that is none. */
#include "test_sim_machine.h"
#include <stdarg.h>

static CUdeviceptr in, out, holes; /* holes: 4096 bytes, of which the first 64 are written */
static void open_defined(void)
{
    static uint32_t data[1024];
    open_machine("sm_90");
    for (uint32_t k = 0; k < 1024; k++)
        data[k] = k;
    in = buffer(data, sizeof data), out = buffer(NULL, 65536), holes = buffer(NULL, 4096);
    cr_assert_eq(cu->cuMemcpyHtoD(holes, data, 64), CUDA_SUCCESS);
}
TestSuite(sim_defined, .init = open_defined);

/* %r7 and %rd7 are undefined in the lanes from 16 on, elsewhere the lane; %r8: nowhere defined; %h7 is undefined; %r9 = buf + 4 lane;
 * RESULT stores %r1. */
#define SOME                                                                                                                              \
    HEAD90 ".shared .align 128 .b8 buf[8192];\n" KERNEL("setp.lt.u32 %p1, %r0, 16; @%p1 mov.u32 %r7, %r0; @%p1 mov.u64 %rd7, 5; shl.b32 " \
                                                        "%r10, %r0, 2; mov.u32 %r9, buf; add.u32 %r9, %r9, %r10;\n$1")
#define RESULT " mul.wide.u32 %rd3, %r0, 4; add.s64 %rd3, %rd3, %rd2; st.global.u32 [%rd3], %r1;"

static char text[16384];
static size_t written;
__attribute__((format(printf, 1, 2))) static void add(const char *format, ...)
{
    va_list v;
    va_start(v, format);
    written += (size_t)vsnprintf(text + written, sizeof text - written, format, v);
    va_end(v);
    cr_assert(written < sizeof text);
}
static const char *whole(const char *body)
{
    written = 0;
    const char *at = strstr(SOME, "$1");
    add("%.*s%s%s", (int)(at - SOME), SOME, body, at + 2);
    return text;
}

static void clean_from(CUdeviceptr from, const char *body)
{
    for (int way = 0; way < 6; way++) {
        sim_set_options(&(sim_options){ .async = (sim_async)(way & 1), .schedule = (sim_schedule)(way / 2), .seed = 3 });
        CUresult r = launch(load(whole(body)), 1, 32, 0, from, out);
        cr_expect_eq(r, CUDA_SUCCESS, "%s\n%s", body, sim_report());
    }
}
static void dirty_from(CUdeviceptr from, const char *body, const char *words)
{
    for (int way = 0; way < 6; way++) {
        sim_set_options(&(sim_options){ .async = (sim_async)(way & 1), .schedule = (sim_schedule)(way / 2), .seed = 3 });
        CUresult r = launch(load(whole(body)), 1, 32, 0, from, out);
        cr_expect_eq(r, CUDA_ERROR_LAUNCH_FAILED, "%d: no report of\n%s", r, body);
        cr_expect(strstr(sim_report(), words) != NULL, "\"%s\" is not in:\n%s", words, sim_report());
    }
}
static void clean(const char *body)
{
    clean_from(in, body);
}
static void dirty(const char *body, const char *words)
{
    dirty_from(in, body, words);
}
#define STORED "is stored to global memory"

Test(sim_defined, where_it_decides)
{
    dirty("mov.u32 %r1, %r7;" RESULT,
          "register %r1 is stored to global memory, but its value is undefined: it comes from register %r7, which was never written");
    dirty("setp.eq.u32 %p2, %r8, 0; @%p2 bra NEXT; NEXT: mov.u32 %r1, 0;", "predicate %p2 decides a branch");
    dirty("setp.eq.u32 %p2, %r8, 0; @%p2 st.shared.u32 [%r9], 0;", "predicate %p2 decides whether this is executed");
    dirty("and.b32 %r1, %r8, 12; add.u32 %r9, %r9, %r1; ld.shared.u32 %r1, [%r9];", "register %r9 is used as an address");
    dirty("ld.shared.u32 %r1, [%r9]; cvt.u64.u32 %rd3, %r1; add.s64 %rd3, %rd3, %rd2; st.global.u32 [%rd3], 0;",
          "register %rd3 is used as an address, but its value is undefined: at PTX line");
    dirty("bar.sync %r8;", "register %r8 is used, but it was never written");
    dirty("cp.async.ca.shared.global [%r9], [%rd1], 4, %r8; cp.async.wait_all;", "register %r8 is used");
    dirty("atom.global.add.u32 %r1, [%rd2], %r8;", STORED);
    dirty("mov.f32 %f1, 0f00000000; st.global.v2.f32 [%rd2], {%f1, %f1}; red.global.add.v2.f32 [%rd2], {%f1, %f2};",
          "register %f2 is stored to global memory");
    dirty("mov.f32 %f1, 0f00000000; st.global.f32 [%rd2+8192], %f1; red.global.add.v2.f32 [%rd2+8192], {%f1, %f1};",
          "global memory is read that was never written"); /* of the second element */
    clean("mov.f32 %f1, 0f00000000; st.global.v2.f32 [%rd2], {%f1, %f1}; bar.sync 0; red.global.add.v2.f32 [%rd2], {%f1, %f1};");
    dirty("red.global.add.u32 [%rd2+4096], 1;", "global memory is read that was never written"); /* it stays there, with one more */
    clean("add.u32 %r1, %r8, 1; mul.lo.u32 %r1, %r1, %r7; st.shared.u32 [%r9], %r1; ld.shared.u32 %r2, [%r9];");
    clean("@%p1 mov.u32 %r1, %r7; @%p1 bra STORE; bra.uni END; STORE:" RESULT "END: mov.u32 %r1, 0;");
}
Test(sim_defined, selected_away)
{
    clean("selp.b32 %r1, %r7, 1, %p1;" RESULT);
    dirty("selp.b32 %r1, 1, %r7, %p1;" RESULT, STORED);
    dirty("setp.eq.u32 %p2, %r8, 0; selp.b32 %r1, 1, 2, %p2;" RESULT, STORED);
    clean("setp.eq.u32 %p2, %r8, 0; selp.b32 %r1, 2, 2, %p2;" RESULT);
    clean("setp.eq.u32 %p2, %r8, 0; selp.b32 %r1, 3, 2, %p2; and.b32 %r1, %r1, 2;" RESULT);
    /* a guard selects between the old value and the new one */
    dirty("setp.eq.u32 %p2, %r8, 0; mov.u32 %r1, 0; @%p2 mov.u32 %r1, 1;" RESULT, STORED);
    clean("setp.eq.u32 %p2, %r8, 0; mov.u32 %r1, 0; @%p2 mov.u32 %r1, 1; mov.u32 %r1, 2;" RESULT);
    clean("setp.eq.u32 %p2, %r8, 0; and.pred %p2, %p2, %p1; @!%p1 bra END; bra.uni END; END: and.pred %p2, %p1, 0; @%p2 bra END;");
    clean("setp.lt.and.u32 %p2, %r8, 3, 0; @%p2 bra END; END: setp.lt.or.u32 %p2|%p3, %r7, 3, !%p1; @%p2 bra NEXT; NEXT: @%p3 bra LAST; "
          "LAST: mov.u32 %r1, 0;");
    dirty("setp.lt.and.u32 %p2, %r7, 3, !%p1; @%p2 bra END; END: mov.u32 %r1, 0;", "decides a branch");
    dirty("mul.lo.u32 %r1, %r8, 0;" RESULT, STORED);
    dirty("min.u32 %r1, %r8, 0;" RESULT, STORED);
}
Test(sim_defined, bit_by_bit)
{
    /* clang-format off */
    static const struct { const char *body; int clean; } rows[] = {
        {"and.b32 %r1, %r8, 0;", 1}, {"and.b32 %r1, %r8, 1;", 0}, {"or.b32 %r1, %r8, -1;", 1}, {"or.b32 %r1, %r8, -2;", 0}, {"xor.b32 %r1, %r8, -1;", 0}, {"not.b32 %r1, %r8;", 0},
        {"xor.b32 %r1, %r7, %r8;", 0}, {"shl.b32 %r1, %r8, 32;", 1}, {"shl.b32 %r1, %r8, 31;", 0}, {"shl.b32 %r1, 0, %r8;", 0}, {"shr.u32 %r1, %r8, 32;", 1}, {"shr.s32 %r1, %r8, 32;", 0},
        {"lop3.b32 %r1, %r8, 0, 1, 0x80;", 1}, {"lop3.b32 %r1, %r8, 3, 1, 0x80;", 0}, {"bfe.u32 %r1, %r8, 8, 0;", 1},
        /* the upper half is undefined, the lower is 1 */
        {"mov.b32 %r2, {1, %h7}; and.b32 %r1, %r2, 0xffff;", 1}, {"mov.b32 %r2, {1, %h7}; and.b32 %r1, %r2, 0x1ffff;", 0}, {"mov.b32 %r2, {1, %h7}; shl.b32 %r1, %r2, 16;", 1},
        {"mov.b32 %r2, {1, %h7}; shr.u32 %r1, %r2, 15;", 0}, {"mov.b32 %r2, {1, %h7}; prmt.b32 %r1, %r2, 0, 0x1010;", 1}, {"mov.b32 %r2, {1, %h7}; prmt.b32 %r1, %r2, 0, 0x2010;", 0},
        {"mov.b32 %r2, {1, %h7}; prmt.b32 %r1, 0, %r2, 0x5454;", 1}, {"mov.b32 %r2, {1, %h7}; prmt.b32 %r1, 0, %r2, 0x6454;", 0},
        {"mov.b32 %r2, {1, %h7}; bfe.u32 %r1, %r2, 4, 12;", 1}, {"mov.b32 %r2, {1, %h7}; bfe.u32 %r1, %r2, 4, 13;", 0}, {"mov.b32 %r2, {1, %h7}; bfe.s32 %r1, %r2, 4, 13;", 0},
        {"mov.b32 %r2, {1, %h7}; bfi.b32 %r1, 0, %r2, 16, 16;", 1}, {"mov.b32 %r2, {1, %h7}; bfi.b32 %r1, 0, %r2, 16, 15;", 0}, {"mov.b32 %r2, {1, %h7}; bfi.b32 %r1, %r2, 0, 0, 16;", 1},
        {"mov.b32 %r2, {1, %h7}; bfi.b32 %r1, %r2, 0, 0, 17;", 0}, {"mov.b32 %r2, {1, %h7}; shf.l.wrap.b32 %r1, 0, %r2, 16;", 1}, {"mov.b32 %r2, {1, %h7}; shf.r.wrap.b32 %r1, %r2, 0, 16;", 0},
        {"mov.b32 %r2, {1, %h7}; mov.b32 {%h1, %h2}, %r2; cvt.u32.u16 %r1, %h1;", 1}, {"mov.b32 %r2, {1, %h7}; mov.b32 {%h1, %h2}, %r2; cvt.u32.u16 %r1, %h2;", 0},
        {"mov.b32 %r2, {1, %h7}; cvt.u32.u8 %r1, %r2;", 1}, {"mov.b32 %r2, {1, %h7}; cvt.u16.u32 %h1, %r2; cvt.u32.u16 %r1, %h1;", 1}, {"mov.b32 %r2, {%h7, 1}; cvt.s64.s32 %rd9, %r2; shr.u64 %rd9, %rd9, 32; cvt.u32.u64 %r1, %rd9;", 1},
        {"mov.b32 %r2, {1, %h7}; cvt.s64.s32 %rd9, %r2; shr.u64 %rd9, %rd9, 32; cvt.u32.u64 %r1, %rd9;", 0}, {"cvt.u32.u16 %r1, %h7; and.b32 %r1, %r1, 0xffff0000;", 1}, {"cvt.s32.s16 %r1, %h7; and.b32 %r1, %r1, 0xffff0000;", 0},
        /* pairs of halves */
        {"mov.b32 %r2, {1, %h7}; add.f16x2 %r1, %r2, %r2; and.b32 %r1, %r1, 0xffff;", 1}, {"mov.b32 %r2, {1, %h7}; add.f16x2 %r1, %r2, %r2; shr.u32 %r1, %r1, 16;", 0},
        {"mov.b32 %f1, %r8; cvt.rn.bf16x2.f32 %r1, 0f3F800000, %f1; and.b32 %r1, %r1, 0xffff0000;", 1}, {"mov.b32 %f1, %r8; cvt.rn.bf16x2.f32 %r1, 0f3F800000, %f1;", 0},
        {"mov.b32 %f1, %r8; cvt.rn.bf16x2.f32 %r1, %f1, 0f3F800000; and.b32 %r1, %r1, 0xffff;", 1},
        /* 64 bits, and a carry */
        {"mov.b64 %rd9, {%r0, %r8}; cvt.u32.u64 %r1, %rd9;", 1}, {"mov.b64 %rd9, {%r0, %r8}; mov.b64 {%r2, %r1}, %rd9;", 0}, {"mov.b64 %rd9, {%r0, %r8}; add.s64 %rd9, %rd9, 1; cvt.u32.u64 %r1, %rd9;", 0},
        {"add.cc.u32 %r2, %r8, 1; addc.u32 %r1, %r0, 0;", 0}, {"add.cc.u32 %r2, %r8, 1; add.cc.u32 %r2, %r0, 1; addc.u32 %r1, %r0, 0;", 1},
        {"slct.u32.s32 %r1, 1, %r8, %r0;", 1}, {"slct.u32.s32 %r1, %r8, 1, %r0;", 0},
    };
    /* clang-format on */
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char body[512];
        snprintf(body, sizeof body, "%s%s", rows[k].body, RESULT);
        if (rows[k].clean)
            clean(body);
        else
            dirty(body, STORED);
    }
}
/* A shuffle gives what its source has: %r7 is defined in the lower half. */
Test(sim_defined, between_lanes)
{
    clean("shfl.sync.bfly.b32 %r1, %r7, 16, 31, -1; @%p1 mov.u32 %r1, 0;" RESULT);
    dirty("shfl.sync.bfly.b32 %r1, %r7, 16, 31, -1; @!%p1 mov.u32 %r1, 0;" RESULT, "lane 0: thread (0,0,0)");
    clean("shfl.sync.idx.b32 %r1, %r7, 3, 31, -1;" RESULT);
    dirty("shfl.sync.idx.b32 %r1, %r7, 20, 31, -1;" RESULT, "it comes from register %r7, which was never written");
    dirty("shfl.sync.idx.b32 %r1, %r0, %r8, 31, -1;", "register %r8 is used");
    clean("shfl.sync.idx.b32 %r7, %r7, 3, 31, -1; mov.u32 %r1, %r7;" RESULT);
    clean("shfl.sync.idx.b32 %r2|%p2, %r7, 20, 31, -1; selp.b32 %r1, 1, 0, %p2;" RESULT);
    /* a vote that others have settled */
    clean("setp.lt.u32 %p2, %r7, 99; vote.sync.any.pred %p3, %p2, -1; selp.b32 %r1, 1, 0, %p3;" RESULT);
    dirty("setp.lt.u32 %p2, %r7, 99; vote.sync.all.pred %p3, %p2, -1; selp.b32 %r1, 1, 0, %p3;" RESULT, STORED);
    clean("setp.gt.u32 %p2, %r7, 99; vote.sync.all.pred %p3, %p2, -1; selp.b32 %r1, 1, 0, %p3;" RESULT);
    clean("setp.lt.u32 %p2, %r7, 3; vote.sync.uni.pred %p3, %p2, -1; selp.b32 %r1, 1, 0, %p3;" RESULT);
    dirty("setp.lt.u32 %p2, %r7, 99; vote.sync.uni.pred %p3, %p2, -1; selp.b32 %r1, 1, 0, %p3;" RESULT, STORED);
    clean("setp.lt.u32 %p2, %r7, 99; vote.sync.ballot.b32 %r1, %p2, -1; and.b32 %r1, %r1, 0xffff;" RESULT);
    dirty("setp.lt.u32 %p2, %r7, 99; vote.sync.ballot.b32 %r1, %p2, -1; and.b32 %r1, %r1, 0x1ffff;" RESULT, STORED);
    clean("match.any.sync.b32 %r1, %r7, -1; and.b32 %r1, %r1, 0xffff; selp.b32 %r1, %r1, 0, %p1;" RESULT);
    dirty("match.any.sync.b32 %r1, %r7, -1; selp.b32 %r1, %r1, 0, %p1;" RESULT, STORED);
    clean("match.all.sync.b32 %r1|%p2, %r7, -1;" RESULT);
    dirty("and.b32 %r2, %r7, -16; match.all.sync.b32 %r1|%p2, %r2, -1;" RESULT, STORED);
    dirty("redux.sync.add.u32 %r1, %r7, -1;" RESULT, STORED);
    clean("redux.sync.and.b32 %r1, %r7, -1;" RESULT); /* lane 0 has no bit */
    dirty("redux.sync.or.b32 %r1, %r7, -1;" RESULT, STORED);
    clean("redux.sync.or.b32 %r1, %r7, -1; and.b32 %r1, %r1, 15;" RESULT);
    clean("selp.b32 %r2, 0x0000ffff, 0xffff0000, %p1; redux.sync.add.u32 %r1, %r7, %r2; selp.b32 %r1, %r1, 0, %p1;" RESULT);
    /* through a barrier */
    dirty("setp.lt.u32 %p2, %r7, 99; barrier.cta.red.and.aligned.pred %p3, 0, %p2; selp.b32 %r1, 1, 0, %p3;" RESULT, STORED);
    clean("setp.gt.u32 %p2, %r7, 99; barrier.cta.red.and.aligned.pred %p3, 0, %p2; selp.b32 %r1, 1, 0, %p3;" RESULT);
    clean("setp.lt.u32 %p2, %r7, 99; barrier.cta.red.or.aligned.pred %p3, 0, %p2; selp.b32 %r1, 1, 0, %p3;" RESULT);
    dirty("setp.lt.u32 %p2, %r7, 99; barrier.cta.red.popc.aligned.u32 %r1, 0, %p2;" RESULT, STORED);
}
Test(sim_defined, through_shared_memory)
{
    dirty("ld.shared.u32 %r1, [%r9];" RESULT, "shared memory is read that was never written: offset 0");
    clean("st.shared.u32 [%r9], 1; ld.shared.u32 %r1, [%r9];" RESULT);
    dirty("st.shared.u32 [%r9], 1; st.shared.u32 [%r9], %r7; ld.shared.u32 %r1, [%r9];" RESULT,
          "it comes from register %r7, which was never written");
    clean("st.shared.u32 [%r9], %r7; st.shared.u32 [%r9], 1; ld.shared.u32 %r1, [%r9];" RESULT);
    clean("st.shared.u32 [%r9], 1; st.shared.u16 [%r9+2], %h7; ld.shared.u16 %h1, [%r9]; cvt.u32.u16 %r1, %h1;" RESULT);
    dirty("st.shared.u32 [%r9], 1; st.shared.u16 [%r9+2], %h7; ld.shared.u8 %r1, [%r9+2];" RESULT, STORED);
    clean("st.shared.u32 [%r9], 1; st.shared.u16 [%r9+2], %h7; ld.shared.u32 %r1, [%r9]; and.b32 %r1, %r1, 0xffff;" RESULT);
    clean(
        "st.shared.v4.u32 [buf], {0, %r8, 0, 0}; ld.shared.v2.u32 {%r2, %r3}, [buf+8]; ld.shared.v4.u32 {_, %r2, %r3, %r1}, [buf];" RESULT);
    dirty("st.shared.v4.u32 [buf], {0, %r8, 0, 0}; ld.shared.v4.u32 {%r3, %r1, %r2, _}, [buf];" RESULT, STORED);
    dirty("st.volatile.shared.u32 [%r9], %r7; ld.volatile.shared.u32 %r1, [%r9];" RESULT, STORED);
    dirty("ld.volatile.shared.u32 %r1, [%r9]; setp.eq.u32 %p2, %r1, 0; @%p2 bra END; END: mov.u32 %r1, 0;", "decides a branch");
    dirty("cvta.to.shared.u64 %rd9, 0; cvt.u64.u32 %rd9, %r9; cvta.shared.u64 %rd9, %rd9; st.u32 [%rd9], %r7; ld.u32 %r1, [%rd9];" RESULT,
          STORED);
    /* atomics */
    dirty("red.shared.add.u32 [%r9], 1; ld.shared.u32 %r1, [%r9];" RESULT, "never written");
    clean("atom.shared.exch.b32 %r2, [%r9], 1; ld.shared.u32 %r1, [%r9];" RESULT);
    dirty("atom.shared.exch.b32 %r1, [%r9], 1;" RESULT, "never written");
    dirty("st.shared.u32 [%r9], 1; atom.shared.add.u32 %r1, [%r9], %r7; ld.shared.u32 %r1, [%r9];" RESULT, STORED);
    clean("st.shared.u32 [%r9], 1; atom.shared.add.u32 %r1, [%r9], %r7;" RESULT);
    dirty("st.shared.u32 [%r9], 1; atom.shared.cas.b32 %r1, [%r9], %r7, 1; ld.shared.u32 %r1, [%r9];" RESULT, STORED);
}
Test(sim_defined, through_local_memory)
{
#define DEPOT ".local .align 8 .b8 depot[48]; "
    dirty(DEPOT "ld.local.u32 %r1, [depot+40];" RESULT, "local memory is read that was never written: offset 40");
    clean(DEPOT "st.local.u32 [depot+40], 1; ld.local.u32 %r1, [depot+40];" RESULT);
    dirty(DEPOT "st.local.u32 [depot+4], %r7; ld.local.u32 %r1, [depot+4];" RESULT, STORED);
    clean(DEPOT "st.local.u32 [depot+4], %r7; ld.local.u32 %r1, [depot+4]; selp.b32 %r1, %r1, 0, %p1;" RESULT);
    clean(DEPOT "st.local.u64 [depot+32], 1; st.local.u16 [depot+34], %h7; ld.local.u16 %h1, [depot+32]; cvt.u32.u16 %r1, %h1;" RESULT);
}
Test(sim_defined, from_global_memory)
{
    clean_from(holes, "ld.global.u32 %r2, [%rd1+128]; st.shared.u32 [%r9], %r2;");
    dirty_from(holes, "ld.global.u32 %r1, [%rd1+128];" RESULT, "global memory is read that was never written: address");
    clean_from(holes, "mul.wide.u32 %rd5, %r0, 4; add.s64 %rd5, %rd5, %rd1; ld.global.u32 %r1, [%rd5]; selp.b32 %r1, %r1, 0, %p1;" RESULT);
    dirty_from(holes, "mul.wide.u32 %rd5, %r0, 4; add.s64 %rd5, %rd5, %rd1; ld.global.u32 %r1, [%rd5+4]; selp.b32 %r1, %r1, 0, %p1;" RESULT,
               "byte 64 of the allocation");
    /* copies bring what is there; what they fill with zeros is defined */
    dirty_from(holes,
               "mul.wide.u32 %rd5, %r0, 16; add.s64 %rd5, %rd5, %rd1; shl.b32 %r2, %r0, 4; mov.u32 %r9, buf; add.u32 %r9, %r9, %r2; "
               "cp.async.ca.shared.global [%r9], [%rd5], 16; cp.async.wait_all; ld.shared.u32 %r1, [%r9];" RESULT,
               "byte 64 of the allocation");
    clean_from(holes, "mul.wide.u32 %rd5, %r0, 16; add.s64 %rd5, %rd5, %rd1; shl.b32 %r2, %r0, 4; mov.u32 %r9, buf; add.u32 %r9, %r9, %r2; "
                      "cp.async.ca.shared.global [%r9], [%rd5], 16; cp.async.wait_all; ld.shared.u32 %r1, [%r9];\n"
                      "setp.lt.u32 %p2, %r0, 4; selp.b32 %r1, %r1, 0, %p2;" RESULT);
    clean_from(holes, "mul.wide.u32 %rd5, %r0, 16; add.s64 %rd5, %rd5, %rd1; shl.b32 %r2, %r0, 4; mov.u32 %r9, buf; add.u32 %r9, %r9, %r2; "
                      "setp.lt.u32 %p2, %r0, 4; selp.b32 %r3, 16, 0, %p2;\n"
                      "cp.async.ca.shared.global [%r9], [%rd5], 16, %r3; cp.async.wait_all; ld.shared.u32 %r1, [%r9+12];" RESULT);
    fails(whole("atom.global.exch.b32 %r1, [%rd1+2048], 1;" RESULT), 32, 0, holes, out, CUDA_ERROR_LAUNCH_FAILED, "never written");
    clean_from(holes, "atom.global.exch.b32 %r1, [%rd1+2052], 1; ld.global.u32 %r1, [%rd1+2052];" RESULT);
}

/* With more reports than one, what was reported counts as defined; the classes tell registers from memory. */
Test(sim_defined, going_on)
{
    CUfunction f = load(whole("setp.eq.u32 %p2, %r8, 0; @%p2 bra NEXT; NEXT: mov.u32 %r1, 0; @%p2 bra END; END: ld.shared.u32 %r2, [%r9]; "
                              "st.global.u32 [%rd2], %r2;"));
    sim_set_options(&(sim_options){ .reports = 9 });
    cr_assert_eq(launch(f, 1, 32, 0, in, out), CUDA_ERROR_LAUNCH_FAILED);
    const char *first = strstr(sim_report(), "decides a branch"), *undefined = strstr(sim_report(), "check: undefined"),
               *unwritten = strstr(sim_report(), "check: unwritten");
    cr_assert(first && undefined && unwritten, "%s", sim_report());
    cr_expect(!strstr(first + 1, "decides a branch") && !strstr(undefined + 1, "check: undefined"), "%s", sim_report());
    sim_options o = { 0 };
    o.checks[SIM_CHECK_UNDEFINED] = SIM_OFF, o.checks[SIM_CHECK_UNWRITTEN] = SIM_WARNING;
    sim_set_options(&o);
    cr_expect_eq(launch(f, 1, 32, 0, in, out), CUDA_SUCCESS, "%s", sim_report());
}

/* ---- matrices, element by element ---- */

/* Lane l of destination k is stored where bit l of word k of the first buffer is set. */
static void only(CUfunction f, const uint32_t *what, int n, const uint32_t *more, int words, bool expected, const char *name)
{
    uint32_t data[64] = { 0 };
    memcpy(data, what, (size_t)n * 4);
    if (words)
        memcpy(data + 16, more, (size_t)words * 4);
    cr_assert_eq(cu->cuMemcpyHtoD(in, data, sizeof data), CUDA_SUCCESS);
    CUresult r = launch(f, 1, 32, 0, in, out);
    cr_expect_eq(r, expected ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED, "%s, %08x %08x %08x %08x: code %d\n%s", name, what[0], what[1],
                 what[2], what[3], r, sim_report());
}
/* The lanes `open` of the four destinations are undefined, and no other. */
static void exactly(CUfunction f, const uint32_t open[4], int n, const uint32_t *more, int words, const char *name)
{
    uint32_t all[4];
    for (int k = 0; k < 4; k++)
        all[k] = ~open[k];
    only(f, all, n, more, words, true, name);
    for (int k = 0; k < n; k++)
        for (int l = 0; l < 32; l++) {
            uint32_t one[4] = { 0 };
            one[k] = 1u << l;
            if (open[k] >> l & 1)
                only(f, one, n, more, words, false, name);
        }
}
/* %r11: the lane's bit; %rd5: its place in the second buffer. */
static void begin(void)
{
    written = 0;
    add(HEAD90 ".shared .align 128 .b8 buf[1024];\n.visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .pred %%p<9>;\n.reg .b16 "
               "%%h<9>;\n.reg .b32 %%r<40>, %%x<10>;\n.reg .b64 %%rd<20>;\n"
               "ld.param.u64 %%rd1, [a];\nld.param.u64 %%rd2, [b];\nmov.u32 %%r0, %%tid.x;\nmov.u32 %%r10, 1; shl.b32 %%r11, %%r10, %%r0; "
               "mul.wide.u32 %%rd5, %%r0, 4; add.s64 %%rd5, %%rd5, %%rd2;\n");
}
/* Register x[k] as result k. */
static CUfunction end(const int *x, int n)
{
    for (int k = 0; k < n; k++)
        add("ld.global.u32 %%r20, [%%rd1+%d]; and.b32 %%r20, %%r20, %%r11; setp.ne.u32 %%p2, %%r20, 0; @%%p2 st.global.b32 [%%rd5+%d], "
            "%%x%d;\n",
            4 * k, 128 * k, x[k]);
    add("ret;\n}\n");
    return load(text);
}

Test(sim_defined, mma)
{
    /* registers 0-3 are A, 4-5 B, 6-9 C, defined in the lanes of words 16 to 25 of the first buffer; the result goes to others, to C, to C
     * in another order */
    static const int to[3][4] = { { 0, 1, 2, 3 }, { 6, 7, 8, 9 }, { 9, 6, 8, 7 } };
    for (int form = 0; form < 3; form++) {
        begin();
        for (int k = 0; k < 10; k++)
            add("ld.global.u32 %%r20, [%%rd1+%d]; and.b32 %%r20, %%r20, %%r11; setp.ne.u32 %%p2, %%r20, 0; @%%p2 mov.b32 %%x%d, 0;\n",
                64 + 4 * k, k);
        add("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%%x%d,%%x%d,%%x%d,%%x%d}, {%%x0,%%x1,%%x2,%%x3}, {%%x4,%%x5}, "
            "{%%x6,%%x7,%%x8,%%x9};\n",
            to[form][0], to[form][1], to[form][2], to[form][3]);
        CUfunction f = end(to[form], 4);
        for (int hole = -1; hole < 10; hole++) { /* each register in turn has an undefined lane; at first one each of A, B and C */
            uint32_t defined[10], open[4] = { 0 };
            bool row[16] = { 0 }, column[8] = { 0 }, added[16][8] = { { 0 } };
            memset(defined, 0xFF, sizeof defined);
            for (int k = 0; k < 10; k++) {
                int l = (7 * k + 3) % 32;
                if (hole >= 0 ? k != hole : k != 1 && k != 5 && k != 8)
                    continue;
                defined[k] &= ~(1u << l);
                if (k < 4)
                    row[l / 4 + 8 * (k & 1)] = true;
                else if (k < 6)
                    column[l / 4] = true;
                else
                    added[l / 4 + 8 * ((k - 6) >> 1)][2 * (l % 4) + ((k - 6) & 1)] = true;
            }
            for (int k = 0; k < 4; k++)
                for (int l = 0; l < 32; l++) {
                    int r = l / 4 + 8 * (k >> 1), c = 2 * (l % 4) + (k & 1);
                    if (row[r] || column[c] || added[r][c])
                        open[k] |= 1u << l;
                }
            exactly(f, open, 4, defined, 10, "mma");
        }
    }
}
/* Two elements of a row in a register: each half by itself. x4 is the lower half of register 0, x5 the upper. */
Test(sim_defined, mma_with_f16_accumulators)
{
    static const int to[2] = { 8, 9 }, halves[2] = { 4, 5 };
    for (int hole = 0; hole < 8; hole++) { /* of the registers 0-3 of A, 4-5 of B, 6-7 of C */
        int l = (7 * hole + 3) % 32, row = l / 4 + 8 * (hole & 1);
        uint32_t defined[8], open[4] = { 0 }, lower[4] = { 0 };
        memset(defined, 0xFF, sizeof defined);
        defined[hole] &= ~(1u << l);
        for (int form = 0; form < 2; form++) {
            begin();
            for (int k = 0; k < 8; k++)
                add("ld.global.u32 %%r20, [%%rd1+%d]; and.b32 %%r20, %%r20, %%r11; setp.ne.u32 %%p2, %%r20, 0; @%%p2 mov.b32 %%x%d, 0;\n",
                    64 + 4 * k, k);
            add("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%%x8,%%x9}, {%%x0,%%x1,%%x2,%%x3}, {%%x4,%%x5}, {%%x6,%%x7};\nand.b32 "
                "%%x4, %%x8, 0xffff; and.b32 %%x5, %%x8, 0xffff0000;\n");
            CUfunction f = end(form ? halves : to, 2);
            for (int k = 0; k < 2; k++)
                for (int x = 0; x < 32; x++) {
                    bool of_row = hole < 4 && x / 4 + 8 * k == row, of_sum = hole >= 6 && k == hole - 6 && x == l,
                         of_column = hole >= 4 && hole < 6 && x % 4 == l / 4 / 2;
                    if (of_row || of_sum || of_column)
                        open[k] |= 1u << x;
                    if (!k && (of_row || of_sum || (of_column && l / 4 % 2 == 0)))
                        lower[0] |= 1u << x;
                    if (!k && (of_row || of_sum || (of_column && l / 4 % 2 == 1)))
                        lower[1] |= 1u << x;
                }
            exactly(f, form ? lower : open, 2, defined, 8, "mma of f16");
        }
    }
}
/* Of two matrices of 8 rows of 16 bytes, byte 37 and the two from 218 on: of the first element 2 of row 2, of the second element 5 of
 * row 5. */
Test(sim_defined, ldmatrix)
{
    for (int trans = 0; trans < 2; trans++) {
        const int x[2] = { 0, 1 };
        begin();
        add("mov.u32 %%r9, buf; shl.b32 %%r12, %%r0, 4; add.u32 %%r13, %%r9, %%r12; shl.b32 %%r12, %%r0, 3; add.u32 %%r9, %%r9, %%r12; "
            "st.shared.v2.u32 [%%r9], {0, 0};\n"
            "cvt.u16.u32 %%h1, %%r22; st.shared.u8 [buf+37], %%h1; st.shared.u16 [buf+218], %%h1; bar.warp.sync -1; "
            "ldmatrix.sync.aligned.m8n8.x2%s.shared.b16 {%%x0, %%x1}, [%%r13];\n",
            trans ? ".trans" : "");
        /* lane l holds of row l / 4 elements 2 (l % 4) and the next; transposed, of column l / 4 */
        const uint32_t open[4] = { 1u << (4 * 2 + 2 / 2), 1u << (4 * 5 + 5 / 2) };
        exactly(end(x, 2), open, 2, open, 0, "ldmatrix");
    }
    begin(); /* row 1, element 6 */
    add("mov.u32 %%r9, buf; shl.b32 %%r12, %%r0, 4; add.u32 %%r13, %%r9, %%r12; shl.b32 %%r12, %%r0, 2; add.u32 %%r9, %%r9, %%r12; "
        "st.shared.u32 [%%r9], 0;\n"
        "cvt.u16.u32 %%h1, %%r22; st.shared.u16 [buf+28], %%h1; mov.u32 %%r13, buf; and.b32 %%r12, %%r0, 7; shl.b32 %%r12, %%r12, 4; "
        "add.u32 %%r13, %%r13, %%r12; bar.warp.sync -1;\n"
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%%x0}, [%%r13]; ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%%x1}, [%%r13];\n");
    exactly(end((const int[]){ 0, 1 }, 2), (const uint32_t[4]){ 1u << (4 * 1 + 6 / 2), 1u << (4 * 6 + 1 / 2) }, 2, NULL, 0,
            "ldmatrix of one");
}
Test(sim_defined, movmatrix)
{
    begin(); /* the upper half of lane 7: row 1, column 7 */
    add("mov.b32 %%x2, 0; setp.eq.u32 %%p2, %%r0, 7; @%%p2 mov.b32 %%x2, {0, %%h7};\n"
        "movmatrix.sync.aligned.m8n8.trans.b16 %%x0, %%x2; and.b32 %%x1, %%x0, 0xffff0000;\n");
    exactly(end((const int[]){ 0, 1 }, 2), (const uint32_t[4]){ 1u << (7 * 8 + 1) / 2, 1u << (7 * 8 + 1) / 2 }, 2, NULL, 0, "movmatrix");
}
Test(sim_defined, stmatrix)
{
    for (int trans = 0; trans < 2; trans++) {
        begin(); /* the upper half of lane 7: row 1, column 7 */
        add("mov.u32 %%r9, buf; and.b32 %%r12, %%r0, 7; shl.b32 %%r12, %%r12, 4; add.u32 %%r13, %%r9, %%r12; mov.b32 %%x2, 0; setp.eq.u32 "
            "%%p2, %%r0, 7; @%%p2 mov.b32 %%x2, {0, %%h7};\n"
            "stmatrix.sync.aligned.m8n8.x1%s.shared.b16 [%%r13], {%%x2}; bar.warp.sync -1; shl.b32 %%r12, %%r0, 2; add.u32 %%r9, %%r9, "
            "%%r12; ld.shared.u32 "
            "%%x0, [%%r9]; and.b32 %%x1, %%x0, %s;\n",
            trans ? ".trans" : "", trans ? "0xffff0000" : "0xffff");
        int word = trans ? (7 * 8 + 1) / 2 : (1 * 8 + 7) / 2;
        exactly(end((const int[]){ 0, 1 }, 2), (const uint32_t[4]){ 1u << word, trans ? 1u << word : 0 }, 2, NULL, 0, "stmatrix");
    }
}

/* ---- published practice ---- */

/* Scores of a tile of 8 keys of which 5 are there, the others never written: what is masked is no defect. Lane l has of row l / 4 the
 * scores of keys 2 (l % 4) and the next. */
#define TILE                                                                                                                               \
    "shl.b32 %r2, %r0, 4; mov.u32 %r9, buf; add.u32 %r9, %r9, %r2; setp.lt.u32 %p2, %r0, 5; @%p2 st.shared.v4.u32 [%r9], {%r0, %r0, %r0, " \
    "%r0}; bar.sync 0;\n"                                                                                                                  \
    "and.b32 %r2, %r0, 7; shl.b32 %r2, %r2, 4; mov.u32 %r9, buf; add.u32 %r9, %r9, %r2; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r11}, " \
    "[%r9];\n"                                                                                                                             \
    "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4}, {%r0,%r0}, {%r11}, "                                            \
    "{0f00000000,0f00000000,0f00000000,0f00000000};\n"                                                                                     \
    "and.b32 %r2, %r0, 3; shl.b32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, $KEYS; setp.lt.u32 %p3, %r2, $NEXT; selp.f32 %f1, %f1, 0fFF800000, "  \
    "%p2; selp.f32 %f2, %f2, 0fFF800000, %p3;\n"                                                                                           \
    "max.f32 %f5, %f1, %f2; mov.b32 %r12, %f5; shfl.sync.bfly.b32 %r13, %r12, 1, 31, -1; mov.b32 %f6, %r13; max.f32 %f5, %f5, %f6;\n"      \
    "mov.b32 %r12, %f5; shfl.sync.bfly.b32 %r13, %r12, 2, 31, -1; mov.b32 %f6, %r13; max.f32 %f5, %f5, %f6; sub.f32 %f1, %f1, %f5; "       \
    "sub.f32 %f2, %f2, %f5;\n"                                                                                                             \
    "ex2.approx.f32 %f1, %f1; ex2.approx.f32 %f2, %f2; cvt.rn.bf16x2.f32 %r1, %f2, %f1;" RESULT
static const char *tile(int keys)
{
    static char to[4096];
    size_t n = 0;
    for (const char *s = TILE; *s; s++) {
        if (!strncmp(s, "$KEYS", 5))
            n += (size_t)snprintf(to + n, 8, "%d", keys), s += 4;
        else if (!strncmp(s, "$NEXT", 5))
            n += (size_t)snprintf(to + n, 8, "%d", keys - 1), s += 4;
        else
            to[n++] = *s;
    }
    to[n] = 0;
    return to;
}
Test(sim_defined, a_padded_tile_that_is_masked)
{
    for (int keys = 3; keys < 8; keys++) {
        CUresult r = launch(load(whole(tile(keys))), 1, 32, 0, in, out);
        cr_expect_eq(r, keys <= 5 ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED, "%d keys: %d\n%s", keys, r, sim_report());
        if (keys > 5)
            cr_expect(strstr(sim_report(), "shared memory is read that was never written: offset 80") != NULL, "%s", sim_report());
    }
}
