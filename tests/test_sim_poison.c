/* "One request never sees another" as a proof: what belongs to others counts as never written, and a kernel in which a byte of it reaches
 * the output is reported, whatever the numbers. A tile of V of 16 keys by 8 elements, of which the first 10 belong to the request, comes
 * in four ways; the probabilities after them are 0. */
#include "test_sim_tma.h"

enum { KEYS = 10, ROWS = 64, SUM = 0x41200000 }; /* SUM: 10.0f */
static CUdeviceptr cache, out;
static CUtensorMap map;
static void open_poison(void)
{
    static uint16_t ones[ROWS * 8];
    const uint64_t dim[2] = { 8, ROWS };
    const uint32_t box[2] = { 8, 16 };
    open90();
    for (int k = 0; k < ROWS * 8; k++)
        ones[k] = 0x3F80;
    cache = buffer(ones, sizeof ones), out = buffer(NULL, 8192);
    tensor t = tensor_of(2, 2, dim, box, CU_TENSOR_MAP_SWIZZLE_NONE);
    map = map_of(&t, cache);
}
TestSuite(sim_poison, .init = open_poison);

/* $1: how the tile comes; $2: what is done to its tail in shared memory; $3: what is done to the results %f1 to %f4. */
#define KERNEL_OF_TILE                                                                                                                     \
    TMA_KERNEL(                                                                                                                            \
        ".shared .align 128 .b8 buf[256];\n.shared .align 8 .b8 bar[8];\n",                                                                \
        "mov.u32 %r9, buf; and.b32 %r2, %r0, 15; shl.b32 %r2, %r2, 4; add.u32 %r10, %r9, %r2; cvt.u64.u32 %rd5, %r2; add.s64 %rd5, %rd5, " \
        "%rd1; setp.lt.u32 %p1, %r0, 16; setp.lt.u32 %p2, %r0, 10; setp.ge.and.u32 %p3, %r0, 10, %p1;\n$1\n$2\nbar.sync 0;\n"              \
        "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r11, %r12}, [%r10];\n"                                                           \
        "and.b32 %r2, %r0, 3; setp.eq.u32 %p4, %r2, 0; mov.u32 %r13, 0x3F803F80; selp.b32 %r14, %r13, 0, %p4;\n"                           \
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4}, {%r13,%r13,%r14,%r14}, {%r11,%r12}, "                      \
        "{0f00000000,0f00000000,0f00000000,0f00000000};\n$3\n"                                                                             \
        "mov.u32 %r15, %ctaid.x; mad.lo.u32 %r15, %r15, 32, %r0; mul.wide.u32 %rd6, %r15, 16; add.s64 %rd6, %rd6, %rd2; st.global.v4.f32 " \
        "[%rd6], {%f1,%f2,%f3,%f4};\n")
#define BARRIER                                                                                                \
    "@%p0 mbarrier.init.shared::cta.b64 [bar], 1; @%p0 fence.mbarrier_init.release.cluster; bar.sync 0; @%p0 " \
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;\n"
static const char *const ways[] = {
    BARRIER "@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [buf], [%rd3, {0, 0}], [bar];\n" WAIT(
        "T", "bar", "0"),
    BARRIER "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [%rd1], 256, [bar];\n" WAIT("T", "bar", "0"),
    "@%p1 cp.async.cg.shared.global.L2::128B [%r10], [%rd5], 16; cp.async.wait_all; bar.sync 0;",
    "@%p1 ld.global.nc.v4.u32 {%r20,%r21,%r22,%r23}, [%rd5]; @%p1 st.shared.v4.u32 [%r10], {%r20,%r21,%r22,%r23};",
};
enum { WAYS = sizeof ways / sizeof *ways };
#define ZERO "@%p3 st.shared.v4.u32 [%r10], {0,0,0,0};"

static void others_are_poison(void)
{
    cr_assert_eq(sim_forget(cache + KEYS * 16, (ROWS - KEYS) * 16), CUDA_SUCCESS);
}
/* clean, and right; or reported, in every timing and order, on one thread and on two */
static void each_way(const char *ptx, bool clean)
{
    CUfunction f = load(ptx);
    for (int way = 0; way < 12; way++) {
        uint32_t got[256];
        sim_set_options(
            &(sim_options){ .async = (sim_async)(way & 1), .schedule = (sim_schedule)(way / 2 % 3), .threads = 1 + way / 6, .seed = 3 });
        CUresult r = launch_maps(f, 2, 32, 0, cache, out, &map, NULL);
        cr_expect_eq(r, clean ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED, "way %d: %d\n%s\n%s", way, r, ptx, sim_report());
        if (!clean) {
            cr_expect(strstr(sim_report(), "check: unwritten") && strstr(sim_report(), "byte 160 of the allocation"), "%s", sim_report());
            continue;
        }
        fetch(got, out, sizeof got);
        for (int k = 0; k < 256; k++)
            cr_expect_eq(got[k], SUM, "%d: %08x", k, got[k]);
    }
}

Test(sim_poison, a_factor_of_zero_hides_nothing)
{
    for (int k = 0; k < WAYS; k++)
        each_way(with(KERNEL_OF_TILE, ways[k], "", ""), true); /* all of it was written: the numbers are right */
    others_are_poison();
    for (int k = 0; k < WAYS; k++)
        each_way(with(KERNEL_OF_TILE, ways[k], "", ""), false);
}
Test(sim_poison, a_tail_of_zeros_is_clean)
{
    others_are_poison();
    for (int k = 0; k < WAYS; k++)
        each_way(with(KERNEL_OF_TILE, ways[k], ZERO, ""), true);
    /* copies that read nothing there */
    each_way(with(KERNEL_OF_TILE, "selp.b32 %r3, 16, 0, %p2; @%p1 cp.async.cg.shared.global [%r10], [%rd5], 16, %r3; cp.async.wait_all;",
                  "", ""),
             true);
    each_way(with(KERNEL_OF_TILE,
                  "@%p2 ld.global.v4.u32 {%r20,%r21,%r22,%r23}, [%rd5]; @%p2 st.shared.v4.u32 [%r10], {%r20,%r21,%r22,%r23};", ZERO, ""),
             true);
}
Test(sim_poison, one_row_too_few_is_reported)
{
    cr_assert_eq(sim_forget(cache + KEYS * 16, 16), CUDA_SUCCESS);
    for (int k = 0; k < WAYS; k++)
        each_way(with(KERNEL_OF_TILE, ways[k], "setp.gt.and.u32 %p3, %r0, 10, %p1; " ZERO, ""), false);
}
/* Nor does what comes after the product: a product with 0, a difference from itself, a minimum. */
Test(sim_poison, no_arithmetic_hides_it)
{
    static const char *const rows[] = {
        "mul.f32 %f1, %f1, 0f00000000;",
        "sub.f32 %f1, %f1, %f1;",
        "max.f32 %f1, %f1, 0fFF800000;",
        "min.f32 %f1, %f1, 0fFF800000;",
        "fma.rn.f32 %f1, %f1, 0f00000000, 0f3F800000;",
    };
    others_are_poison();
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char all[1024];
        snprintf(all, sizeof all, "%s mov.f32 %%f2, %%f1; mov.f32 %%f3, %%f1; mov.f32 %%f4, %%f1;", rows[k]);
        each_way(with(KERNEL_OF_TILE, ways[0], "", all), false);
    }
}
/* Scores of 8 keys, of which 5 belong to the request: $1 masks those of lane l, keys 2 (l % 4) and the next. */
#define SCORES                                                                                                                          \
    TMA_KERNEL(                                                                                                                         \
        ".shared .align 128 .b8 buf[256];\n.shared .align 8 .b8 bar[8];\n", BARRIER                                                     \
        "@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [buf], [%rd3, {0, 0}], [bar];\n" WAIT(   \
            "T", "bar", "0") "and.b32 %r2, %r0, 7; shl.b32 %r2, %r2, 4; mov.u32 %r9, buf; add.u32 %r9, %r9, %r2;\n"                     \
                             "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r11}, [%r9]; mov.u32 %r13, 0x3F803F80;\n"                      \
                             "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4}, {%r13,%r13}, {%r11}, "              \
                             "{0f00000000,0f00000000,0f00000000,0f00000000};\n"                                                         \
                             "and.b32 %r2, %r0, 3; shl.b32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 5; setp.lt.u32 %p3, %r2, 4;\n$1\n"        \
                             "max.f32 %f5, %f1, %f2; mov.b32 %r12, %f5; shfl.sync.bfly.b32 %r14, %r12, 1, 31, -1; mov.b32 %f6, %r14; "  \
                             "max.f32 %f5, %f5, %f6;\n"                                                                                 \
                             "mov.b32 %r12, %f5; shfl.sync.bfly.b32 %r14, %r12, 2, 31, -1; mov.b32 %f6, %r14; max.f32 %f5, %f5, %f6;\n" \
                             "sub.f32 %f1, %f1, %f5; ex2.approx.f32 %f1, %f1; mul.wide.u32 %rd6, %r0, 4; add.s64 %rd6, %rd6, %rd2; "    \
                             "st.global.f32 [%rd6], "                                                                                   \
                             "%f1;\n")
Test(sim_poison, scores)
{
    static const struct {
        const char *mask;
        bool clean;
    } rows[] = {
        { "selp.f32 %f1, %f1, 0fFF800000, %p2; selp.f32 %f2, %f2, 0fFF800000, %p3;", true },
        { "@!%p2 mov.f32 %f1, 0fFF800000; @!%p3 mov.f32 %f2, 0fFF800000;", true },
        { "", false },
        { "selp.f32 %f1, %f1, 0fFF800000, %p2;", false },
        { "selp.f32 %f7, 0f00000000, 0fFF800000, %p2; selp.f32 %f8, 0f00000000, 0fFF800000, %p3; add.f32 %f1, %f1, %f7; add.f32 "
          "%f2, %f2, "
          "%f8;",
          false },
        { "selp.f32 %f1, %f1, 0fFF800000, %p2; setp.gt.f32 %p4, %f2, 0f00000000; and.pred %p4, %p4, %p3; selp.f32 %f2, %f2, "
          "0fFF800000, "
          "%p4;",
          true },
    };
    cr_assert_eq(sim_forget(cache + 5 * 16, (ROWS - 5) * 16), CUDA_SUCCESS);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int way = 0; way < 6; way++) {
            sim_set_options(&(sim_options){ .async = (sim_async)(way & 1), .schedule = (sim_schedule)(way / 2), .seed = 3 });
            CUresult r = launch_maps(load(with(SCORES, rows[k].mask, "", "")), 1, 32, 0, cache, out, &map, NULL);
            cr_expect_eq(r, rows[k].clean ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED, "%s: %d\n%s", rows[k].mask, r, sim_report());
        }
}
/* Entries of a page table after the length: not followed, unless by a copy that reads nothing. */
Test(sim_poison, page_tables)
{
#define TABLE                                                                                                                             \
    HEAD90 ".shared .align 128 .b8 buf[1024];\n" KERNEL(                                                                                  \
        "mul.wide.u32 %rd5, %r0, 4; add.s64 %rd5, %rd5, %rd1; ld.global.u32 %r5, [%rd5]; mul.wide.u32 "                                   \
        "%rd6, %r5, 16; add.s64 %rd6, %rd6, %rd1; setp.lt.u32 %p1, %r0, 10; selp.b32 %r3, 16, 0, %p1; shl.b32 %r6, %r0, 4; mov.u32 %r9, " \
        "buf; add.u32 %r9, %r9, %r6;\n$1")
    static const struct {
        const char *use;
        bool clean;
    } rows[] = {
        { "@%p1 ld.global.u32 %r7, [%rd6];", true },
        { "ld.global.u32 %r7, [%rd6];", false },
        { "prefetch.global.L2 [%rd6];", true },
        { "cp.async.cg.shared.global [%r9], [%rd6], 16, %r3; cp.async.wait_all;", true },
        { "cp.async.cg.shared.global [%r9], [%rd6], 16; cp.async.wait_all;", false },
        { "setp.ge.u32 %p2, %r0, 10; cp.async.ca.shared.global [%r9], [%rd6], 16, %p2; cp.async.wait_all;", true },
        { "setp.ge.u32 %p2, %r0, 11; cp.async.ca.shared.global [%r9], [%rd6], 16, %p2; cp.async.wait_all;", false },
        { "setp.eq.u32 %p2, %r5, 77; cp.async.ca.shared.global [%r9], [%rd1], 16, %p2; cp.async.wait_all;", false },
    };
    static const uint32_t zero[64];
    CUdeviceptr table = buffer(zero, sizeof zero);
    cr_assert_eq(sim_forget(table + 40, sizeof zero - 40), CUDA_SUCCESS);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int way = 0; way < 2; way++) {
            sim_set_options(&(sim_options){ .async = (sim_async)way });
            CUresult r = launch(load(with(TABLE, rows[k].use, "", "")), 1, 16, 0, table, out);
            cr_expect_eq(r, rows[k].clean ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED, "%s: %d\n%s", rows[k].use, r, sim_report());
        }
}

/* ---- through global memory ---- */

/* Each of two blocks stores what it read to a workspace; the last one copies all of it to the results. With open stores the way of
 * every byte is followed. */
Test(sim_poison, goes_through_a_workspace)
{
    static const uint32_t data[64] = { 5 };
    static const char *const text = HEAD90 KERNEL(
        "mov.u32 %r5, %ctaid.x; mad.lo.u32 %r6, %r5, 32, %r0; mul.wide.u32 %rd3, %r6, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, "
        "%rd2, %rd3; setp.eq.u32 %p0, %r0, 0; ld.global.u32 %r1, [%rd4]; $1 bar.sync 0; fence.acq_rel.gpu; @%p0 "
        "atom.global.inc.u32 %r2, [%rd2+4], 1; shfl.sync.idx.b32 %r2, %r2, 0, 31, -1; fence.acq_rel.gpu; setp.ne.u32 %p1, %r2, 1; "
        "@%p1 bra END; ld.global.u32 %r3, [%rd2+512]; ld.global.u32 %r4, [%rd2+640]; mul.wide.u32 %rd6, %r0, 8; add.s64 %rd6, "
        "%rd6, %rd2; mul.wide.u32 %rd3, %r0, 4; add.s64 %rd5, %rd2, %rd3; ld.global.u32 %r3, [%rd5+512]; ld.global.u32 %r4, "
        "[%rd5+640]; st.global.v2.u32 [%rd6+1024], {%r3, %r4};\nEND: ");
    CUdeviceptr from = buffer(data, 256), work = buffer(NULL, 4096);
    for (int atomic = 0; atomic < 2; atomic++)
        for (int way = 0; way < 12; way++) {
            CUfunction f = load(with(text, atomic ? "red.global.add.u32 [%rd5+512], %r1;" : "st.global.u32 [%rd5+512], %r1;", "", ""));
            sim_options o = { .async = (sim_async)(way & 1), .schedule = (sim_schedule)(way / 2 % 3), .threads = 1 + way / 6, .seed = 3 };
            static const uint8_t none[4096];
            cr_assert_eq(cu->cuMemcpyHtoD(work, none, sizeof none), CUDA_SUCCESS);
            cr_assert_eq(cu->cuMemcpyHtoD(from, data, 256), CUDA_SUCCESS);
            cr_assert_eq(sim_forget(from + 128 + 12, 4), CUDA_SUCCESS); /* of the second block's */
            sim_set_options(&o);
            cr_expect_eq(launch(f, 2, 32, 0, from, work), CUDA_ERROR_LAUNCH_FAILED);
            cr_expect(strstr(sim_report(), "is stored to global memory"), "%s", sim_report());
            cr_assert_eq(cu->cuMemcpyHtoD(work, none, sizeof none), CUDA_SUCCESS);
            o.open_stores = 1;
            sim_set_options(&o);
            cr_expect_eq(launch(f, 2, 32, 0, from, work), CUDA_SUCCESS, "%s", sim_report());
            cr_expect_eq(sim_unwritten(work + 512, 256), 140, "%d", (int)sim_unwritten(work + 512, 256));
            cr_expect_eq(sim_unwritten(work + 1024, 28), -1);
            cr_expect_eq(sim_unwritten(work + 1024, 256), 28);
            cr_expect_eq(sim_unwritten(work + 1056, 224), -1);
        }
}
/* The same by bulk stores: a run of bytes, and a box of 16 rows of 16 bytes, of which words 3 and 41 are undefined. */
Test(sim_poison, goes_through_bulk_stores)
{
    static const char *const stores[] = {
        "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [buf], 256;",
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd3, {0, 0}], [buf];",
    };
    static const char *const text = TMA_KERNEL(
        ".shared .align 128 .b8 buf[256];\n",
        "shl.b32 %r2, %r0, 2; mov.u32 %r9, buf; add.u32 %r9, %r9, %r2; setp.ne.u32 %p1, %r0, 3; setp.ne.and.u32 %p1, %r0, 41, %p1; "
        "st.shared.u32 [%r9], %r0; @!%p1 st.shared.u32 [%r9], %r30; fence.proxy.async.shared::cta; bar.sync 0;\n"
        "@!%p0 bra END; $1 cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nEND:");
    for (int k = 0; k < 2; k++)
        for (int way = 0; way < 6; way++) {
            CUfunction f = load(with(text, stores[k], "", ""));
            sim_options o = { .async = (sim_async)(way & 1), .schedule = (sim_schedule)(way / 2), .seed = 3 };
            CUdeviceptr to = buffer(NULL, 256);
            const uint64_t dim[2] = { 8, 16 };
            const uint32_t box[2] = { 8, 16 };
            tensor t = tensor_of(2, 2, dim, box, CU_TENSOR_MAP_SWIZZLE_NONE);
            CUtensorMap m = map_of(&t, to);
            sim_set_options(&o);
            cr_expect_eq(launch_maps(f, 1, 64, 0, cache, to, &m, NULL), CUDA_ERROR_LAUNCH_FAILED);
            o.open_stores = 1;
            sim_set_options(&o);
            cr_expect_eq(launch_maps(f, 1, 64, 0, cache, to, &m, NULL), CUDA_SUCCESS, "%s", sim_report());
            for (uint32_t word = 0; word < 64; word++)
                cr_expect_eq(sim_unwritten(to + 4 * word, 4), word == 3 || word == 41 ? 0 : -1, "way %d, word %u", way, word);
        }
}
Test(sim_poison, forgetting)
{
    CUdeviceptr p = buffer("0123456789abcdef0123456789abcdef", 32);
    char got[32];
    cr_expect_eq(sim_unwritten(p, 32), -1);
    for (uint64_t at = 0; at < 32; at++)
        for (uint64_t n = 1; n <= 32 - at; n++) {
            cr_assert_eq(cu->cuMemcpyHtoD(p, "0123456789abcdef0123456789abcdef", 32), CUDA_SUCCESS);
            cr_assert_eq(sim_forget(p + at, n), CUDA_SUCCESS);
            cr_expect_eq(sim_unwritten(p, 32), (int64_t)at);
            cr_expect_eq(sim_unwritten(p + at, 32 - at), 0);
            cr_expect_eq(sim_unwritten(p, at), -1);
            cr_expect_eq(sim_unwritten(p + at + n - 1, 1), 0);
            cr_expect_eq(sim_unwritten(p + at + n, 32 - at - n), -1);
        }
    fetch(got, p, 32);
    cr_expect(!memcmp(got, "0123456789abcdef0123456789abcdef", 32)); /* what it holds stays */
    cr_expect_eq(sim_forget(p, 0), CUDA_SUCCESS);
    cr_expect_eq(sim_forget(p + 1, 32), CUDA_ERROR_INVALID_VALUE);
    cr_expect(strstr(sim_report(), "are not inside one allocation"), "%s", sim_report());
    cr_expect_eq(sim_unwritten(p + 1, 32), -2);
    cr_expect_eq(sim_forget(8, 1), CUDA_ERROR_INVALID_VALUE);
}
