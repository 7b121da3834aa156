/* Loads, stores, copies and prefetches in the words that serving kernels use: caches, policies, scopes; what touches nothing. */
#include "test_sim_machine.h"

static CUdeviceptr in, out;
static uint32_t data[1024];
static void open_hints(void)
{
    open_machine("sm_90a");
    for (uint32_t k = 0; k < 1024; k++)
        data[k] = 1000 + k;
    in = buffer(data, sizeof data), out = buffer(data, sizeof data);
}
TestSuite(sim_hints, .init = open_hints);

#define HEAD90A ".version 8.0\n.target sm_90a\n.address_size 64\n.shared .align 128 .b8 buf[1024];\n.shared .align 8 .b8 bar[8];\n"
#define POLICY "createpolicy.fractional.L2::evict_first.b64 %rd5, 1.0; "

/* The body leaves a word in %r1. */
static void gives(const char *body, uint32_t word)
{
    CUfunction f = load(with(HEAD90A KERNEL("mov.u32 %r9, buf; $1\nst.global.u32 [%rd2], %r1;"), body, "", ""));
    for (int way = 0; way < 2; way++) {
        uint32_t got = 0;
        sim_set_options(&(sim_options){ .async = (sim_async)way });
        CUresult r = launch(f, 1, 1, 0, in, out);
        cr_expect_eq(r, CUDA_SUCCESS, "%s\n%s", body, sim_report());
        fetch(&got, out, 4);
        cr_expect_eq(got, word, "%s: %u instead of %u", body, got, word);
    }
}

Test(sim_hints, loads)
{
    static const char *const rows[] = {
        "ld.global.nc.L2::128B.v4.u32 {_,_,_,%r1}, [%rd1];",
        "ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {_,_,_,%r1}, [%rd1];",
        POLICY "ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {_,_,_,%r1}, [%rd1], %rd5;",
        POLICY "ld.global.L1::evict_last.L2::cache_hint.u32 %r1, [%rd1+12], %rd5;",
        "ld.global.cv.u32 %r1, [%rd1+12];",
        "ld.weak.global.u32 %r1, [%rd1+12];",
        "ld.volatile.global.u32 %r1, [%rd1+12];",
        "ld.relaxed.cta.global.u32 %r1, [%rd1+12];",
        "ld.relaxed.gpu.global.L1::no_allocate.u32 %r1, [%rd1+12];",
        "ld.acquire.cluster.global.u32 %r1, [%rd1+12];",
        "ld.acquire.gpu.global.v2.u32 {_,%r1}, [%rd1+8];",
        "ld.acquire.sys.u32 %r1, [%rd1+12];",
        "ld.mmio.relaxed.sys.global.u32 %r1, [%rd1+12];",
        "cp.async.cg.shared.global.L2::128B [%r9], [%rd1], 16; cp.async.wait_all; ld.shared.u32 %r1, [%r9+12];",
        POLICY
        "cp.async.cg.shared::cta.global.L2::cache_hint.L2::256B [%r9], [%rd1], 16, %rd5; cp.async.wait_all; ld.shared.u32 %r1, [%r9+12];",
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        gives(rows[k], 1003);
}
Test(sim_hints, stores)
{
    static const char *const rows[] = {
        "st.global.cs.u32 [%rd2+8], 7;",
        "st.global.wt.u32 [%rd2+8], 7;",
        "st.weak.global.u32 [%rd2+8], 7;",
        "st.global.L1::no_allocate.v2.u32 [%rd2+8], {7, 7};",
        "st.relaxed.gpu.global.u32 [%rd2+8], 7;",
        "st.release.gpu.global.u32 [%rd2+8], 7;",
        "st.release.sys.u32 [%rd2+8], 7;",
        "st.volatile.global.u32 [%rd2+8], 7;",
        "st.mmio.relaxed.sys.global.u32 [%rd2+8], 7;",
        POLICY "st.global.L2::cache_hint.u32 [%rd2+8], 7, %rd5;",
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char body[512];
        snprintf(body, sizeof body, "st.global.u32 [%%rd2+8], 1; %s ld.global.u32 %%r1, [%%rd2+8];", rows[k]);
        gives(body, 7);
    }
}
/* old value, order and scope, operation, what is there afterwards; the old value is returned */
Test(sim_hints, atomics)
{
    static const char *const orders[] = {
        "", ".relaxed.gpu", ".acquire.gpu", ".release.gpu", ".acq_rel.gpu", ".acq_rel.sys", ".relaxed.cta", ".acq_rel.cluster"
    };
    static const struct {
        const char *op, *operands;
        uint32_t old, new;
    } rows[] = {
        { "inc.u32", "3", 2, 3 },           { "inc.u32", "3", 3, 0 },           { "inc.u32", "3", 9, 0 },    { "dec.u32", "3", 2, 1 },
        { "dec.u32", "3", 0, 3 },           { "dec.u32", "3", 9, 3 },           { "cas.b32", "5, 8", 5, 8 }, { "cas.b32", "5, 8", 6, 6 },
        { "exch.b32", "8", 5, 8 },          { "min.s32", "-3", 5, 0xFFFFFFFD }, { "min.u32", "-3", 5, 5 },   { "max.s32", "-3", 5, 5 },
        { "max.u32", "-3", 5, 0xFFFFFFFD }, { "and.b32", "6", 5, 4 },           { "or.b32", "6", 5, 7 },     { "xor.b32", "6", 5, 3 },
        { "add.u32", "-1", 0, 0xFFFFFFFF },
    };
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++)
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            char body[512];
            snprintf(body, sizeof body, "st.global.u32 [%%rd2+8], %u; atom%s.global.%s %%r1, [%%rd2+8], %s;", rows[k].old, orders[o],
                     rows[k].op, rows[k].operands);
            gives(body, rows[k].old);
            snprintf(body, sizeof body, "st.global.u32 [%%rd2+8], %u; atom%s.global.%s %%r2, [%%rd2+8], %s; ld.global.u32 %%r1, [%%rd2+8];",
                     rows[k].old, orders[o], rows[k].op, rows[k].operands);
            gives(body, rows[k].new);
        }
}
/* Elements of a vector are added each for itself: here by 32 lanes, of which lane k adds k, 1, -1 and 0.5. */
Test(sim_hints, atomics_on_vectors)
{
    float first[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, got[8];
    CUdeviceptr a = buffer(first, sizeof first), b = buffer(NULL, 4);
    run(HEAD90A KERNEL("cvt.rn.f32.u32 %f1, %r0; red.relaxed.gpu.global.add.v4.f32 [%rd1], {%f1, 0f3F800000, 0fBF800000, 0f3F000000};"
                       "red.global.v2.f32.add [%rd1+24], {0f3F800000, %f1};"),
        1, 32, 0, a, b);
    fetch(got, a, sizeof got);
    static const float want[8] = { 1 + 496, 2 + 32, 3 - 32, 4 + 16, 5, 6, 7 + 32, 8 + 496 };
    for (int k = 0; k < 8; k++)
        cr_expect_eq(got[k], want[k], "%d: %g instead of %g", k, (double)got[k], (double)want[k]);
}

/* A source of no bytes may lie anywhere, and zeros arrive. */
Test(sim_hints, copies_of_nothing)
{
    static const char *const rows[] = {
        "mov.u64 %rd3, 8; cp.async.cg.shared.global.L2::128B [%r9], [%rd3], 16, 0;",
        "mov.u64 %rd3, 8; mov.u32 %r2, 0; cp.async.cg.shared.global [%r9], [%rd3], 16, %r2;",
        "add.s64 %rd3, %rd1, 1000000; cp.async.ca.shared.global [%r9+12], [%rd3], 4, 0;",
        "mov.u64 %rd3, 9; setp.eq.u32 %p1, %r0, 0; cp.async.ca.shared.global [%r9+8], [%rd3], 8, %p1;",
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char body[512];
        snprintf(body, sizeof body, "st.shared.u32 [%%r9+12], 5; %s cp.async.wait_all; ld.shared.u32 %%r1, [%%r9+12];", rows[k]);
        gives(body, 0);
    }
    fails(HEAD90A KERNEL("mov.u32 %r9, buf; mov.u64 %rd3, 16; cp.async.cg.shared.global [%r9], [%rd3], 16, 4;"), 1, 0, in, out,
          CUDA_ERROR_ILLEGAL_ADDRESS, "out of bounds");
}
/* Hints: of memory that is not there, freed or not waited for, too. */
static const char *const hints[] = {
    "prefetch.global.L2 [%rd3];",
    "prefetch.global.L1 [%rd3];",
    "prefetch.L2 [%rd3];",
    "prefetch.global.L2::evict_last [%rd3];",
    "prefetchu.L1 [%rd3];",
    "cp.async.bulk.prefetch.L2.global [%rd3], 1024;",
    POLICY "cp.async.bulk.prefetch.L2.global.L2::cache_hint [%rd3], 1024, %rd5;",
    "nanosleep.u32 100;",
    "griddepcontrol.launch_dependents;",
};
Test(sim_hints, touch_nothing)
{
    static const char *const places[] = { "mov.u64 %rd3, %rd1;", "mov.u64 %rd3, 0;", "add.s64 %rd3, %rd1, 1048576;" };
    for (size_t k = 0; k < sizeof hints / sizeof *hints; k++)
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
            char body[512];
            sim_counters c;
            snprintf(body, sizeof body, "%s %s mov.u32 %%r1, 3;", places[p], hints[k]);
            sim_counters_reset();
            gives(body, 3);
            sim_counters_get(&c);
            cr_expect_eq(c.global_read, 0, "%s", body);
        }
}
Test(sim_hints, touch_nothing_before_the_wait)
{
    CUlaunchAttribute at = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                             .value.programmaticStreamSerializationAllowed = 1 };
    CUlaunchConfig config = {
        .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .attrs = &at, .numAttrs = 1
    };
    void *params[] = { &in, &out };
    sim_set_options(NULL);
    for (size_t k = 0; k < sizeof hints / sizeof *hints; k++) {
        CUfunction f = load(with(HEAD90A KERNEL("mov.u64 %rd3, %rd1; $1\ngriddepcontrol.wait;"), hints[k], "", ""));
        cr_expect_eq(cu->cuLaunchKernelEx(&config, f, params, NULL), CUDA_SUCCESS, "%s\n%s", hints[k], sim_report());
    }
}
