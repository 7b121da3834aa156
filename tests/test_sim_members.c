/* Member masks: lanes of a warp that work in groups, each by itself; and what may not be named. */
#include "test_sim_machine.h"

static CUdeviceptr in, out;
static void open_members(void)
{
    static uint32_t zero[1024];
    open_machine("sm_90");
    in = buffer(zero, sizeof zero), out = buffer(zero, sizeof zero);
}
TestSuite(sim_members, .init = open_members);

/* %r1 is the mask of the lanes of the same parity, as match.any finds it; %p1: the lane is even; %r9 is the result. */
#define PARITY "and.b32 %r2, %r0, 1; setp.eq.u32 %p1, %r2, 0; match.any.sync.b32 %r1, %r2, -1;\n"
#define RESULT "mul.wide.u32 %rd3, %r0, 4; add.s64 %rd3, %rd3, %rd2; st.global.u32 [%rd3], %r9;\n"
#define EVEN 0x55555555u
#define ODD 0xAAAAAAAAu

static void gives(const char *body, unsigned threads, const uint32_t want[32])
{
    uint32_t got[32];
    run(body, 1, threads, 0, in, out);
    fetch(got, out, sizeof got);
    for (unsigned l = 0; l < threads; l++)
        cr_expect_eq(got[l], want[l], "lane %u: 0x%x instead of 0x%x in\n%s", l, got[l], want[l], body);
}
/* Even lanes get one value, odd lanes another. */
static void parts(const char *body, uint32_t even, uint32_t odd)
{
    uint32_t want[32];
    for (unsigned l = 0; l < 32; l++)
        want[l] = l & 1 ? odd : even;
    gives(body, 32, want);
}
#define PARTS(body, even, odd) parts(HEAD90 KERNEL(PARITY body RESULT), even, odd)

Test(sim_members, reductions)
{
    PARTS("redux.sync.add.u32 %r9, %r0, %r1;", 240, 256);
    PARTS("redux.sync.min.u32 %r9, %r0, %r1;", 0, 1);
    PARTS("redux.sync.max.s32 %r9, %r0, %r1;", 30, 31);
    PARTS("redux.sync.or.b32 %r9, %r0, %r1;", 30, 31);
    PARTS("redux.sync.and.b32 %r9, %r0, %r1;", 0, 1);
    PARTS("or.b32 %r3, %r0, 8; redux.sync.xor.b32 %r9, %r3, %r1;", 0, 0);
}
Test(sim_members, votes)
{
    PARTS("vote.sync.ballot.b32 %r9, %p1, %r1;", EVEN, 0);
    PARTS("vote.sync.all.pred %p2, %p1, %r1; selp.b32 %r9, 1, 0, %p2;", 1, 0);
    PARTS("vote.sync.any.pred %p2, %p1, %r1; selp.b32 %r9, 1, 0, %p2;", 1, 0);
    PARTS("vote.sync.uni.pred %p2, %p1, %r1; selp.b32 %r9, 1, 0, %p2;", 1, 1);
    PARTS("setp.lt.u32 %p3, %r0, 16; vote.sync.uni.pred %p2, %p3, %r1; selp.b32 %r9, 1, 0, %p2;", 0, 0);
    PARTS("setp.eq.u32 %p3, %r0, 7; vote.sync.any.pred %p2, %p3, %r1; selp.b32 %r9, 1, 0, %p2;", 0, 1);
}
Test(sim_members, matches)
{
    PARTS("match.any.sync.b32 %r9, 5, %r1;", EVEN, ODD);
    PARTS("match.all.sync.b32 %r9|%p2, %r2, %r1;", EVEN, ODD);
    PARTS("match.all.sync.b32 %r9|%p2, %r2, %r1; selp.b32 %r9, 1, 0, %p2;", 1, 1);
    PARTS("setp.eq.u32 %p3, %r0, 3; selp.b32 %r3, 1, 0, %p3; match.all.sync.b32 %r9|%p2, %r3, %r1;", EVEN, 0);
}
Test(sim_members, shuffles)
{
    uint32_t want[32];
    for (unsigned l = 0; l < 32; l++)
        want[l] = l ^ 2;
    gives(HEAD90 KERNEL(PARITY "shfl.sync.bfly.b32 %r9, %r0, 2, 31, %r1;" RESULT), 32, want);
    PARTS("shfl.sync.idx.b32 %r9, %r0, %r2, 31, %r1;", 0, 1);
    /* a lane of the other group does not take part: its value is undefined, which is no defect as long as nothing comes of it */
    run(HEAD90 KERNEL(PARITY "shfl.sync.bfly.b32 %r9, %r0, 1, 31, %r1;"), 1, 32, 0, in, out);
    fails(HEAD90 KERNEL(PARITY "shfl.sync.bfly.b32 %r9, %r0, 1, 31, %r1;" RESULT), 32, 0, in, out, CUDA_ERROR_LAUNCH_FAILED,
          "a shuffle reads lane 1, which does not take part");
}
Test(sim_members, leaders_and_barriers)
{
    PARTS("elect.sync %r9|%p2, %r1;", 0, 1);
    PARTS("elect.sync _|%p2, %r1; vote.sync.ballot.b32 %r9, %p2, %r1;", 1, 2);
    PARTS("bar.warp.sync %r1; mov.u32 %r9, %r1;", EVEN, ODD);
    /* halves that have parted, each with its own mask */
    uint32_t want[32];
    for (unsigned l = 0; l < 32; l++)
        want[l] = l < 16 ? 120 : 376;
    gives(HEAD90 KERNEL("setp.lt.u32 %p1, %r0, 16; @%p1 bra LOW; redux.sync.add.u32 %r9, %r0, 0xffff0000; bra.uni MEET; LOW: "
                        "redux.sync.add.u32 %r9, %r0, 0xffff; MEET: bar.warp.sync -1;" RESULT),
          32, want);
    for (unsigned l = 0; l < 32; l++)
        want[l] = l < 16 ? 0xFFFF : 0xFFFF0000;
    gives(HEAD90 KERNEL("setp.lt.u32 %p1, %r0, 16; mov.u32 %r9, 0; @!%p1 bra MEET; activemask.b32 %r9; MEET: @%p1 bra END; activemask.b32 "
                        "%r9; END:" RESULT),
          32, want);
}
/* Lanes that have exited or never were may be named, and are not waited for. */
Test(sim_members, lanes_that_are_gone)
{
    uint32_t want[32];
    for (unsigned l = 0; l < 32; l++)
        want[l] = 190;
    gives(HEAD90 KERNEL("redux.sync.add.u32 %r9, %r0, -1;" RESULT), 20, want);
    for (unsigned l = 0; l < 32; l++)
        want[l] = l < 20 ? 190 : 0;
    run(HEAD90 KERNEL("mov.u32 %r9, 0;" RESULT), 1, 32, 0, in, out);
    gives(HEAD90 KERNEL("setp.ge.u32 %p1, %r0, 20; @%p1 exit; redux.sync.add.u32 %r9, %r0, -1;" RESULT), 32, want);
    fails(HEAD90 KERNEL("shfl.sync.down.b32 %r9, %r0, 4, 31, -1;" RESULT), 20, 0, in, out, CUDA_ERROR_LAUNCH_FAILED,
          "a shuffle reads lane 20, which does not take part");
}
Test(sim_members, forbidden)
{
    static const char *const forms[] = {
        "redux.sync.add.u32 %r9, %r0, $1;", "vote.sync.ballot.b32 %r9, %p1, $1;",
        "match.any.sync.b32 %r9, %r0, $1;", "shfl.sync.bfly.b32 %r9, %r0, 2, 31, $1;",
        "elect.sync %r9|%p2, $1;",          "bar.warp.sync $1;",
    };
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        char body[64];
        const char *at = strchr(forms[k], '$');
        snprintf(body, sizeof body, "%.*s%%r3;", (int)(at - forms[k]), forms[k]);
        /* lane 0 names all, the others those of their parity */
        fails(with(HEAD90 KERNEL(PARITY "setp.eq.u32 %p3, %r0, 0; selp.b32 %r3, -1, %r1, %p3; $1"), body, "", ""), 32, 0, in, out,
              CUDA_ERROR_LAUNCH_FAILED, "the member mask 0xffffffff of lane 0 names lane 1, whose mask is 0xaaaaaaaa");
        /* the others name lane 0 too, and it does not name them */
        fails(with(HEAD90 KERNEL(PARITY "setp.eq.u32 %p3, %r0, 0; selp.b32 %r3, 1, -1, %p3; $1"), body, "", ""), 32, 0, in, out,
              CUDA_ERROR_LAUNCH_FAILED, "names lane 0, whose mask is 0x00000001");
        /* each names the other parity */
        fails(with(HEAD90 KERNEL(PARITY "not.b32 %r3, %r1; $1"), body, "", ""), 32, 0, in, out, CUDA_ERROR_LAUNCH_FAILED,
              "whose member mask 0xaaaaaaaa leaves it out");
        /* the others are elsewhere */
        fails(with(HEAD90 KERNEL(PARITY "mov.u32 %r3, -1; @%p1 bra OTHER; $1 OTHER: mov.u32 %r4, 0;"), body, "", ""), 32, 0, in, out,
              CUDA_ERROR_LAUNCH_FAILED, "divergence at a .sync instruction");
        run(with(HEAD90 KERNEL(PARITY "mov.u32 %r3, 0xaaaaaaaa; @%p1 bra OTHER; $1 OTHER: mov.u32 %r4, 0;"), body, "", ""), 1, 32, 0, in,
            out);
        /* the mask itself is undefined */
        fails(with(HEAD90 KERNEL(PARITY "$1"), body, "", ""), 32, 0, in, out, CUDA_ERROR_LAUNCH_FAILED,
              "register %r3 is used, but it was never written");
    }
}
