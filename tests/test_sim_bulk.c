/* Bulk copies: a report for each thing that a kernel may not do, in both timings, which bytes are undefined, and runs of bytes. */
#include "test_sim_tma.h"

TestSuite(sim_bulk, .init = open90);

/* ---- what a kernel may not do ---- */

/* A box of 32 rows of 128 bytes from a tensor of 64 x 64 fp16, whole, or with its second half not written or not there. */
static CUtensorMap square(CUdeviceptr *at, size_t there, size_t written)
{
    const uint64_t dim[2] = { 64, 64 };
    const uint32_t box[2] = { 64, 32 };
    tensor t = tensor_of(2, 2, dim, box, CU_TENSOR_MAP_SWIZZLE_128B);
    uint8_t *data = noise(8192);
    *at = buffer(NULL, there);
    cr_assert_eq(cu->cuMemcpyHtoD(*at, data, written), CUDA_SUCCESS);
    free(data);
    return map_of(&t, *at);
}
#define EXPECT(bytes) "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 %rd9, [bar], " bytes ";\n"
#define LOAD2(to, x, y) \
    "@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [" to "], [%rd3, {" x ", " y "}], [bar];\n"
#define USE                                                                                                                                \
    "shl.b32 %r9, %r0, 2; mov.u32 %r8, buf; add.u32 %r9, %r9, %r8; ld.shared.u32 %r9, [%r9]; shl.b32 %r8, %r0, 2; cvt.u64.u32 %rd8, %r8; " \
    "add.s64 %rd8, %rd8, %rd2; st.global.u32 [%rd8], %r9;\n"

static void wrong(const char *body, CUresult code, const char *words)
{
    CUdeviceptr at, out = buffer(NULL, 4096);
    CUtensorMap m = square(&at, 8192, 8192);
    fails_maps(body, 64, 0, at, out, &m, code, words);
}

Test(sim_bulk, the_right_way)
{
    CUdeviceptr at, out = buffer(NULL, 4096);
    CUtensorMap m = square(&at, 8192, 8192);
    CUfunction f = load(TMA_KERNEL(BOX, INIT("1") EXPECT("4096") LOAD2("buf", "0", "0") WAIT("1", "bar", "0") USE));
    EACH_WAY(way) run_maps(f, 1, 64, 0, at, out, &m, NULL);
}
Test(sim_bulk, a_wait_is_missing)
{
    wrong(TMA_KERNEL(BOX, INIT("1") EXPECT("4096") LOAD2("buf", "0", "0") USE), CUDA_ERROR_LAUNCH_FAILED, "shared memory");
    /* one warp waits, the other does not */
    wrong(TMA_KERNEL(BOX, INIT("1") EXPECT("4096")
                              LOAD2("buf", "0", "0") "setp.lt.u32 %p2, %r0, 32; @!%p2 bra GO;\n" WAIT("1", "bar", "0") "GO:\n" USE),
          CUDA_ERROR_LAUNCH_FAILED, "shared memory");
    /* a barrier after one warp's wait hands it on */
    CUdeviceptr at, out = buffer(NULL, 4096);
    CUtensorMap m = square(&at, 8192, 8192);
    CUfunction f = load(TMA_KERNEL(BOX, INIT("1") EXPECT("4096") LOAD2("buf", "0", "0") "setp.lt.u32 %p2, %r0, 32; @!%p2 bra GO;\n" WAIT(
                                            "1", "bar", "0") "GO: bar.sync 0;\n" USE));
    EACH_WAY(way) run_maps(f, 1, 64, 0, at, out, &m, NULL);
}
Test(sim_bulk, byte_counts)
{
    wrong(TMA_KERNEL(BOX, INIT("1") EXPECT("4160") LOAD2("buf", "0", "0") WAIT("1", "bar", "0") USE), CUDA_ERROR_LAUNCH_TIMEOUT,
          "waits for 64 more bytes");
    wrong(TMA_KERNEL(BOX, INIT("1") EXPECT("4032") LOAD2("buf", "0", "0") WAIT("1", "bar", "0") USE), CUDA_ERROR_LAUNCH_TIMEOUT,
          "64 more bytes than were announced");
    wrong(TMA_KERNEL(BOX, INIT("2") EXPECT("4096") LOAD2("buf", "0", "0") WAIT("1", "bar", "0") USE), CUDA_ERROR_LAUNCH_TIMEOUT,
          "waits for 1 more of 2 arrivals");
    wrong(TMA_KERNEL(BOX, INIT("1") EXPECT("1048576") LOAD2("buf", "0", "0") WAIT("1", "bar", "0") USE), CUDA_ERROR_LAUNCH_FAILED,
          "2^20 - 1");
    /* two copies, one announced: the second comes too late for its phase, or is left over */
    wrong(TMA_KERNEL(BOX, INIT("1") EXPECT("4096") LOAD2("buf", "0", "0") LOAD2("buf+4096", "0", "32") WAIT("1", "bar", "0") USE),
          CUDA_ERROR_LAUNCH_FAILED, "announced");
}
Test(sim_bulk, nobody_waits)
{
    wrong(TMA_KERNEL(BOX, INIT("1") EXPECT("4096") LOAD2("buf", "0", "0")), CUDA_ERROR_LAUNCH_FAILED, "a block ends without waiting");
}
Test(sim_bulk, overwriting_what_is_read)
{
    /* buf is read by everybody, then loaded again without a barrier */
#define AGAIN(barrier)                                                                                                                \
    TMA_KERNEL(BOX, INIT("1") EXPECT("4096") LOAD2("buf", "0", "0") WAIT("1", "bar", "0") USE barrier                                 \
               "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar+8], 4096;\n@%p0 "                                              \
               "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [%rd3, {0, 32}], [bar+8];\n" WAIT( \
                   "2", "bar+8", "0") USE)
    wrong(AGAIN(""), CUDA_ERROR_LAUNCH_FAILED, "race in shared memory");
    CUdeviceptr at, out = buffer(NULL, 4096);
    CUtensorMap m = square(&at, 8192, 8192);
    CUfunction f = load(AGAIN("bar.sync 0;\n"));
    EACH_WAY(way) run_maps(f, 1, 64, 0, at, out, &m, NULL);
}
Test(sim_bulk, generic_stores_before_a_load_need_a_fence)
{
#define OVER(fence)                                                                                                             \
    TMA_KERNEL(BOX, "mov.u32 %r9, buf; shl.b32 %r8, %r0, 2; add.u32 %r9, %r9, %r8; st.shared.u32 [%r9], %r0;\n" fence INIT("1") \
                        EXPECT("4096") LOAD2("buf", "0", "0") WAIT("1", "bar", "0") USE)
    wrong(OVER(""), CUDA_ERROR_LAUNCH_FAILED, "without a fence");
    CUdeviceptr at, out = buffer(NULL, 4096);
    CUtensorMap m = square(&at, 8192, 8192);
    CUfunction f = load(OVER("fence.proxy.async.shared::cta;\n"));
    EACH_WAY(way) run_maps(f, 1, 64, 0, at, out, &m, NULL);
}
Test(sim_bulk, places)
{
    wrong(TMA_KERNEL(BOX, INIT("1") EXPECT("4096") LOAD2("buf+64", "0", "0") WAIT("1", "bar", "0") USE), CUDA_ERROR_MISALIGNED_ADDRESS,
          "no multiple of 128");
    wrong(TMA_KERNEL(BOX, INIT("1") EXPECT("4096") LOAD2("buf+30720", "0", "0") WAIT("1", "bar", "0") USE), CUDA_ERROR_ILLEGAL_ADDRESS,
          "out of bounds: 4096 bytes");
    wrong(TMA_KERNEL(BOX, INIT("1") EXPECT("4096") "@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                                                   "[buf], [%rd3, {0, 0}], [bar+16];\n" WAIT("1", "bar", "0") USE),
          CUDA_ERROR_LAUNCH_FAILED, "no mbarrier was initialised");
    wrong(TMA_KERNEL(BOX, INIT("1") EXPECT("4096") "@%p0 cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                                                   "[buf], [%rd3, {0, 0, 0}], [bar];\n" WAIT("1", "bar", "0") USE),
          CUDA_ERROR_LAUNCH_FAILED, "2 dimensions, the instruction 3");
}
Test(sim_bulk, maps)
{
#define PLAIN TMA_KERNEL(BOX, INIT("1") EXPECT("4096") LOAD2("buf", "0", "0") WAIT("1", "bar", "0") USE)
    CUdeviceptr at, out = buffer(NULL, 4096);
    CUtensorMap m = square(&at, 8192, 8192), bad = m, none;
    bad.opaque[2] ^= 4096;
    memset(&none, 0x5A, sizeof none);
    fails_maps(PLAIN, 64, 0, at, out, &bad, CUDA_ERROR_LAUNCH_FAILED, "damaged");
    fails_maps(PLAIN, 64, 0, at, out, &none, CUDA_ERROR_LAUNCH_FAILED, "no tensor map");
    fails_maps(TMA_KERNEL(BOX, "@%p0 prefetch.tensormap [%rd3];\n"), 64, 0, at, out, &none, CUDA_ERROR_LAUNCH_FAILED, "no tensor map");
    fails_maps(TMA_KERNEL(BOX, "add.s64 %rd3, %rd3, 32; @%p0 prefetch.tensormap [%rd3];\n"), 64, 0, at, out, &m,
               CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned tensor map");
    fails_maps(TMA_KERNEL(BOX, "mov.u32 %r1, buf; cvt.u64.u32 %rd3, %r1; cvta.shared.u64 %rd3, %rd3; @%p0 prefetch.tensormap [%rd3];\n"),
               64, 0, at, out, &m, CUDA_ERROR_ILLEGAL_ADDRESS, "neither");
    m = square(&at, 8192, 2048);
    fails_maps(TMA_KERNEL(BOX, INIT("1") EXPECT("4096") LOAD2("buf", "0", "0") WAIT("1", "bar", "0") USE
                          "ld.shared.u32 %r9, [buf+4092]; st.global.u32 [%rd8], %r9;\n"),
               64, 0, at, out, &m, CUDA_ERROR_LAUNCH_FAILED, "global memory is read that was never written");
    m = square(&at, 2048, 2048);
    fails_maps(PLAIN, 64, 0, at, out, &m, CUDA_ERROR_ILLEGAL_ADDRESS, "global memory accessed out of bounds");
    /* a map in global memory */
    m = square(&at, 8192, 8192);
    CUdeviceptr there = buffer(&m, sizeof m);
    CUfunction f = load(TMA_KERNEL(BOX, "mov.u64 %rd3, %rd1;\n" INIT("1") EXPECT("4096") LOAD2("buf", "0", "0") WAIT("1", "bar", "0") USE));
    EACH_WAY(way) run_maps(f, 1, 64, 0, there, out, &m, NULL);
}

/* ---- stores ---- */

#define FILL                                                                                                                              \
    "{\nmov.u32 %r10, 0; mov.u32 %r11, buf; shl.b32 %r12, %r0, 2; add.u32 %r11, %r11, %r12; F: st.shared.u32 [%r11], %r0; add.u32 %r11, " \
    "%r11, 256; add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 16; @%p1 bra F;\n}\n"
#define STORE2 "@%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd3, {0, 0}], [buf];\n"
#define FENCE "fence.proxy.async.shared::cta;\n"

Test(sim_bulk, stores_and_their_waits)
{
    CUdeviceptr at, out = buffer(NULL, 4096);
    CUtensorMap m = square(&at, 8192, 8192);
    CUfunction f =
        load(TMA_KERNEL(BOX, FILL FENCE "bar.sync 0;\n" STORE2
                                        "@%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group.read 0; bar.sync 0;\n" FILL));
    EACH_WAY(way) run_maps(f, 1, 64, 0, at, out, &m, NULL);
    wrong(TMA_KERNEL(BOX, FILL "bar.sync 0;\n" STORE2 "@%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group.read 0;\n"),
          CUDA_ERROR_LAUNCH_FAILED, "without a fence");
    wrong(TMA_KERNEL(BOX, FILL FENCE STORE2 "@%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group.read 0;\n"),
          CUDA_ERROR_LAUNCH_FAILED, "shared memory");
    wrong(TMA_KERNEL(BOX,
                     FILL FENCE "bar.sync 0;\n" STORE2
                                "@%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group.read 1; bar.sync 0;\nadd.u32 %r0, %r0, 1;\n"
                                "st.shared.u32 [buf], %r0;\n"),
          CUDA_ERROR_LAUNCH_FAILED, "still reads");
    wrong(TMA_KERNEL(BOX, FILL FENCE "bar.sync 0;\n" STORE2 "@%p0 cp.async.bulk.commit_group;\n"), CUDA_ERROR_LAUNCH_FAILED,
          "a thread leaves while its bulk copy still reads");
    wrong(TMA_KERNEL(BOX, FILL FENCE "bar.sync 0;\n" STORE2 "@%p0 cp.async.bulk.wait_group.read 0;\n"), CUDA_ERROR_LAUNCH_FAILED,
          "commit_group before it");
}

/* Each of 64 threads writes the first `words` words of its row of 128 bytes; the map has 32 columns of four bytes, the box starts at column
 * c. */
#define ROWS(words)                                                                                                                       \
    "{\nmov.u32 %r10, 0; mov.u32 %r11, buf; shl.b32 %r12, %r0, 7; add.u32 %r11, %r11, %r12; F: st.shared.u32 [%r11], %r0; add.u32 %r11, " \
    "%r11, 4; add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, " #words "; @%p1 bra F;\n}\n" FENCE "bar.sync 0;\n"
/* The same, all words, without a fence or a barrier. */
#define FILL_ROW                                                                                                                          \
    "{\nmov.u32 %r10, 0; mov.u32 %r11, buf; shl.b32 %r12, %r0, 7; add.u32 %r11, %r11, %r12; F: st.shared.u32 [%r11], %r0; add.u32 %r11, " \
    "%r11, 4; add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 32; @%p1 bra F;\n}\n"
#define FROM(c)                                                              \
    "@%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd3, {" #c \
    ", 0}], [buf]; @%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group.read 0;\n"
Test(sim_bulk, columns_outside_need_hold_nothing)
{
    const uint64_t dim[2] = { 50, 64 };
    const uint32_t box[2] = { 32, 64 };
    tensor t = tensor_of(2, 4, dim, box, CU_TENSOR_MAP_SWIZZLE_NONE);
    CUdeviceptr at = buffer(NULL, 64 * t.stride[0]), out = buffer(NULL, 64);
    CUtensorMap m = map_of(&t, at);
    EACH_WAY(way) run_maps(load(TMA_KERNEL(BOX, ROWS(18) FROM(32))), 1, 64, 0, at, out, &m, NULL);
    fails_maps(TMA_KERNEL(BOX, ROWS(17) FROM(32)), 64, 0, at, out, &m, CUDA_ERROR_LAUNCH_FAILED,
               "shared memory is read that was never written");
    fails_maps(TMA_KERNEL(BOX, ROWS(31) FROM(0)), 64, 0, at, out, &m, CUDA_ERROR_LAUNCH_FAILED,
               "shared memory is read that was never written");
}

/* Rows beyond the tensor are not written either. */
Test(sim_bulk, rows_outside_need_hold_nothing)
{
    const uint64_t dim[2] = { 32, 40 };
    const uint32_t box[2] = { 32, 64 };
    tensor t = tensor_of(2, 4, dim, box, CU_TENSOR_MAP_SWIZZLE_NONE);
    CUdeviceptr at = buffer(NULL, 40 * t.stride[0]), out = buffer(NULL, 64);
    CUtensorMap m = map_of(&t, at);
    EACH_WAY(way)
    run_maps(load(with(TMA_KERNEL(BOX, "setp.ge.u32 %p7, %r0, $1; @%p7 bra LESS;\n" FILL_ROW FENCE "LESS: bar.sync 0;\n" FROM(0)), "40", "",
                       "")),
             1, 64, 0, at, out, &m, NULL);
    fails_maps(
        with(TMA_KERNEL(BOX, "setp.ge.u32 %p7, %r0, $1; @%p7 bra LESS;\n" FILL_ROW FENCE "LESS: bar.sync 0;\n" FROM(0)), "39", "", ""), 64,
        0, at, out, &m, CUDA_ERROR_LAUNCH_FAILED, "never written: offset 4992");
}

/* What a copy brings is as undefined as its source: a hole of 2 bytes in row 1 of the first buffer. */
Test(sim_bulk, undefined_bytes_stay_undefined)
{
    const uint64_t dim[2] = { 64, 32 };
    const uint32_t box[2] = { 64, 32 };
    tensor t = tensor_of(2, 2, dim, box, CU_TENSOR_MAP_SWIZZLE_128B);
    uint8_t *data = noise(4096);
    CUdeviceptr at = buffer(NULL, 4096), out = buffer(NULL, 4096);
    CUtensorMap m = map_of(&t, at);
    cr_assert_eq(cu->cuMemcpyHtoD(at, data, 150), CUDA_SUCCESS);
    cr_assert_eq(cu->cuMemcpyHtoD(at + 152, data + 152, 4096 - 152), CUDA_SUCCESS);
    free(data);
    static const char *const brings[] = {
        EXPECT("4096") LOAD2("buf", "0", "0"),
        EXPECT("4096") "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [%rd1], 4096, [bar];\n",
        EXPECT("4096") LOAD2("buf+8192", "0", "0")
            WAIT("0", "bar",
                 "0") "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 %rd9, [bar+8], 4096;\n@%p0 "
                      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [buf], [buf+8192], 4096, [bar+8];\n" WAIT(
                          "2", "bar+8", "0"),
    };
    for (int k = 0; k < 3; k++) { /* the hole is in bytes 22 and 23 of row 1, whose chunks 0 and 1 change places in a box */
        const char *where = k == 1 ? "buf+148" : "buf+132", *beside = k == 1 ? "buf+132" : "buf+148";
        for (int use = 0; use < 2; use++) {
            char text[8192];
            snprintf(text, sizeof text, "%s",
                     TMA_KERNEL(BOX, INIT("1") "$BRING" WAIT("1", "bar", "0") "ld.shared.u32 %r9, [$WHERE]; st.global.u32 [%rd2], %r9;\n"));
            char ptx[8192];
            size_t n = 0;
            for (const char *s = text; *s; s++) {
                if (!strncmp(s, "$BRING", 6))
                    n += (size_t)snprintf(ptx + n, sizeof ptx - n, "%s", brings[k]), s += 5;
                else if (!strncmp(s, "$WHERE", 6))
                    n += (size_t)snprintf(ptx + n, sizeof ptx - n, "%s", use ? where : beside), s += 5;
                else
                    ptx[n++] = *s;
            }
            ptx[n] = 0;
            if (use)
                fails_maps(ptx, 64, 0, at, out, &m, CUDA_ERROR_LAUNCH_FAILED, "global memory is read that was never written: address");
            else
                EACH_WAY(way) run_maps(load(ptx), 1, 64, 0, at, out, &m, NULL);
        }
    }
}

/* A store that all lanes issue with the same operands moves its bytes once; with different ones, each its own. */
Test(sim_bulk, a_store_of_all_lanes_is_counted_once)
{
    CUdeviceptr at, out = buffer(NULL, 4096);
    CUtensorMap m = square(&at, 8192, 8192);
    sim_counters c;
    /* clang-format off */
    static const struct { const char *store; uint64_t bytes; } rows[] = {
        {"@%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd3, {0, 0}], [buf];", 4096},
        {"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd3, {0, 0}], [buf];", 4096},
        {"@%p2 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd3, {0, %r5}], [buf];", 8192},
        {"cp.async.bulk.global.shared::cta.bulk_group [%rd2], [buf], 1024;", 1024},
        {"@%p2 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [buf], 1024;", 2048}, /* it adds twice */
    };
    /* clang-format on */
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        for (int async = SIM_EAGER; async <= SIM_LAZY; async++) {
            char body[2048];
            snprintf(body, sizeof body, "%s cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n", rows[k].store);
            CUfunction f = load(with(
                TMA_KERNEL(BOX, FILL FENCE
                           "bar.sync 0; setp.ge.u32 %p7, %r0, 32; @%p7 bra OVER; setp.lt.u32 %p2, %r0, 2; shl.b32 %r5, %r0, 5;\n$1 OVER:"),
                body, "", ""));
            sim_set_options(&(sim_options){ .async = (sim_async)async });
            sim_counters_reset();
            run_maps(f, 1, 64, 0, at, out, &m, NULL);
            sim_counters_get(&c);
            cr_expect_eq(c.global_write, rows[k].bytes, "%s: %llu bytes", rows[k].store, (unsigned long long)c.global_write);
            cr_expect_eq(c.shared_read, rows[k].bytes, "%s: %llu bytes of shared memory", rows[k].store, (unsigned long long)c.shared_read);
        }
    }
}

/* ---- runs of bytes ---- */

Test(sim_bulk, reductions_of_runs)
{
    static const struct {
        const char *op;
        uint32_t from, to, want;
    } kinds[] = {
        { "add.f32", 0x3F800000, 0x40000000, 0x40400000 },
        { "add.noftz.f16", 0x3C003C00, 0x40004000, 0x42004200 },
        { "min.bf16", 0x3F803F80, 0x40004000, 0x3F803F80 },
        { "max.s32", 0xFFFFFFFF, 7, 7 },
        { "max.u32", 0xFFFFFFFF, 7, 0xFFFFFFFF },
        { "and.b32", 0xFF, 0xF0F, 0xF },
        { "xor.b32", 0xFF, 0xF0F, 0xFF0 },
        { "inc.u32", 7, 7, 0 },
        { "add.u64", 1, 2, 3 },
        { "add.f64", 0, 0x40000000, 0x40000000 },
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        uint32_t from[64], to[64], got[64];
        CUtensorMap m = { 0 };
        for (int x = 0; x < 64; x++)
            from[x] = kinds[k].from, to[x] = kinds[k].to;
        CUfunction f =
            load(with(TMA_KERNEL(BOX, "mov.u32 %r11, buf; shl.b32 %r12, %r0, 2; add.u32 %r11, %r11, %r12; cvt.u64.u32 %rd5, %r12; add.s64 "
                                      "%rd5, %rd1, %rd5; ld.global.u32 %r13, [%rd5]; st.shared.u32 [%r11], %r13;\n"
                                      "fence.proxy.async; bar.sync 0; @!%p0 bra OFF; cp.reduce.async.bulk.global.shared::cta.bulk_group.$1 "
                                      "[%rd2], [buf], 256; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; OFF:\n"),
                      kinds[k].op, "", ""));
        CUdeviceptr in = buffer(from, sizeof from);
        EACH_WAY(way)
        {
            CUdeviceptr out = buffer(to, sizeof to);
            run_maps(f, 1, 64, 0, in, out, &m, NULL);
            fetch(got, out, sizeof got);
            for (int x = 0; x < 64; x++)
                cr_assert_eq(got[x], kinds[k].want, "%s way %d: 0x%x instead of 0x%x", kinds[k].op, way, got[x], kinds[k].want);
        }
    }
}

Test(sim_bulk, runs_of_bytes)
{
    CUtensorMap m = { 0 };
    uint8_t *data = noise(4096), got[4096];
    CUfunction f = load(TMA_KERNEL(
        BOX, INIT("1") EXPECT(
                 "4096") "createpolicy.fractional.L2::evict_first.b64 %rd9, 1.0;\n@%p0 cp.async.bulk.prefetch.L2.global [%rd1], 4096;\n"
                         "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [buf], [%rd1], 4080, "
                         "[bar], %rd9;\n"
                         "add.s64 %rd5, %rd1, 4000; @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf+4080], "
                         "[%rd5+80], 16, [bar];\n" WAIT(
                             "1", "bar", "0") "@!%p0 bra OFF; cp.async.bulk.global.shared::cta.bulk_group [%rd2], [buf], 2048; "
                                              "cp.async.bulk.commit_group; cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint "
                                              "[%rd2+2048], [buf+2048], 2048, %rd9; cp.async.bulk.commit_group;\n"
                                              "cp.async.bulk.wait_group.read 1; cp.async.bulk.wait_group 0; OFF:\n"));
    CUdeviceptr in = buffer(data, 4096);
    EACH_WAY(way)
    {
        CUdeviceptr out = buffer(NULL, 4096);
        run_maps(f, 1, 64, 0, in, out, &m, NULL);
        fetch(got, out, 4096);
        cr_assert(!memcmp(got, data, 4096), "way %d", way);
    }
    free(data);
#define RUN(to, from, n)                                                                                                               \
    TMA_KERNEL(BOX, INIT("1") EXPECT("4096") "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [" to "], [" from \
                                             "], " n ", [bar];\n" WAIT("1", "bar", "0"))
    wrong(RUN("buf", "%rd1", "4088"), CUDA_ERROR_LAUNCH_FAILED, "not a multiple of 16");
    wrong(RUN("buf", "%rd1", "0"), CUDA_ERROR_LAUNCH_FAILED, "or none");
    wrong(RUN("buf", "%rd1+8", "4096"), CUDA_ERROR_MISALIGNED_ADDRESS, "global address");
    wrong(RUN("buf+8", "%rd1", "4096"), CUDA_ERROR_MISALIGNED_ADDRESS, "no multiple of 16");
    wrong(RUN("buf", "%rd1+8192", "4096"), CUDA_ERROR_ILLEGAL_ADDRESS, "out of bounds");
    wrong(RUN("buf", "%rd1+4112", "4096"), CUDA_ERROR_ILLEGAL_ADDRESS, "out of bounds");
}
