/* Tensor maps and bulk copies: where every byte of a box goes, in both timings, and a report for each thing that may not be done. */
#include "test_sim_tma.h"

TestSuite(sim_tma, .init = open90);

#define BOX ".shared .align 1024 .b8 buf[32768];\n.shared .align 8 .b8 bar[32];\n"
#define INIT(count)                                    \
    "@%p0 mbarrier.init.shared::cta.b64 [bar], " count \
    "; @%p0 mbarrier.init.shared::cta.b64 [bar+8], 1;\n@%p0 fence.mbarrier_init.release.cluster;\nbar.sync 0;\n"
/* The coordinates are at a[0..4]; buf goes to b, `$3` words of it per thread. */
#define COORDINATES                                                                                                                     \
    "ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1+4]; ld.global.u32 %r3, [%rd1+8]; ld.global.u32 %r4, [%rd1+12]; ld.global.u32 " \
    "%r5, [%rd1+16];\n"
#define OUT                                                                                                                            \
    "mov.u32 %r10, 0; mov.u32 %r11, buf; shl.b32 %r12, %r0, 2; add.u32 %r11, %r11, %r12; cvt.u64.u32 %rd5, %r12; add.s64 %rd6, %rd2, " \
    "%rd5;\n"                                                                                                                          \
    "LOOP: setp.ge.u32 %p1, %r10, $3; @%p1 bra END; ld.shared.u32 %r13, [%r11]; st.global.u32 [%rd6], %r13; add.u32 %r11, %r11, 256; " \
    "add.s64 %rd6, %rd6, 256; add.u32 %r10, %r10, 1; bra LOOP; END:\n"
#define LOAD_KERNEL                                                                                                                     \
    TMA_KERNEL(BOX, COORDINATES INIT("1") "@%p0 prefetch.tensormap [%rd3];\n"                                                           \
                                          "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 %rd9, [bar], $2;\n"                           \
                                          "@%p0 cp.async.bulk.tensor.$1.mbarrier::complete_tx::bytes [buf], [%rd3, $L], [bar];\n" WAIT( \
                                              "1", "bar", "0") OUT)

static const char *const lists[] = { "{%r1}", "{%r1, %r2}", "{%r1, %r2, %r3}", "{%r1, %r2, %r3, %r4}", "{%r1, %r2, %r3, %r4, %r5}" };

static const char *load_kernel(uint32_t rank, uint32_t bytes, const char *to)
{
    static char text[16384];
    char form[64], n[16], words[16];
    snprintf(form, sizeof form, "%ud.%s.global", rank, to), snprintf(n, sizeof n, "%u", bytes),
        snprintf(words, sizeof words, "%u", (bytes + 255) / 256);
    const char *s = with(LOAD_KERNEL, form, n, words), *at = strstr(s, "$L");
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - s), s, lists[rank - 1], at + 2);
    return text;
}

/* Byte k of element e of the box, as the definitions say: e counts the box dense, innermost first. */
static uint8_t expected(const tensor *t, const uint8_t *data, const int32_t *at, uint64_t e, uint32_t k)
{
    uint64_t place = 0;
    for (uint32_t x = 0; x < t->rank; x++) {
        uint32_t n = x ? (t->box[x] + t->step[x] - 1) / t->step[x] : t->box[x];
        int64_t c = at[x] + (int64_t)(e % n) * (x ? t->step[x] : 1);
        e /= n;
        if (c < 0 || c >= (int64_t)t->dim[x])
            return 0;
        place += (uint64_t)c * (x ? t->stride[x - 1] : t->element);
    }
    return data[place + k];
}
static uint32_t swizzled(uint32_t at, CUtensorMapSwizzle s)
{
    if (s == CU_TENSOR_MAP_SWIZZLE_128B)
        return at ^ (at >> 7 & 7) << 4;
    if (s == CU_TENSOR_MAP_SWIZZLE_64B)
        return at ^ (at >> 7 & 3) << 4;
    if (s == CU_TENSOR_MAP_SWIZZLE_32B)
        return at ^ (at >> 7 & 1) << 4;
    return at;
}
static uint32_t box_elements(const tensor *t)
{
    uint32_t n = t->box[0];
    for (uint32_t x = 1; x < t->rank; x++)
        n *= (t->box[x] + t->step[x] - 1) / t->step[x];
    return n;
}
static uint8_t *noise(size_t n)
{
    uint8_t *p = malloc(n);
    for (size_t k = 0; k < n; k++)
        p[k] = (uint8_t)((k * 2654435761u >> 13) | 1); /* never 0, which is what lies outside */
    return p;
}

static void check_load(const tensor *t, const int32_t *at, const char *to)
{
    uint32_t n = box_elements(t), bytes = n * t->element;
    size_t size = tensor_bytes(t);
    uint8_t *data = noise(size), *got = malloc(32768);
    CUfunction f = load(load_kernel(t->rank, bytes, to));
    CUdeviceptr from = buffer(data, size), where = buffer(at, 20);
    CUtensorMap m = map_of(t, from);
    EACH_WAY(way)
    {
        CUdeviceptr out = buffer(NULL, 32768);
        sim_options o;
        sim_get_options(&o);
        o.unchecked = 1; /* the last words may be beyond the box */
        sim_set_options(&o);
        run_maps(f, 2, 64, 0, where, out, &m, NULL);
        fetch(got, out, (bytes + 255) / 256 * 256);
        for (uint32_t e = 0; e < n; e++)
            for (uint32_t k = 0; k < t->element; k++)
                cr_assert_eq(got[swizzled(e * t->element + k, t->swizzle)], expected(t, data, at, e, k),
                             "way %d rank %u swizzle %d element %u byte %u", way, t->rank, (int)t->swizzle, e, k);
    }
    free(data), free(got);
}

Test(sim_tma, every_rank_and_side)
{
    const uint64_t dim[5] = { 20, 9, 5, 4, 3 };
    const uint32_t box[5] = { 8, 4, 3, 2, 2 };
    static const int32_t at[][5] = { { 0, 0, 0, 0, 0 },  { 4, 3, 1, 1, 1 },         { -3, 0, 0, 0, 0 }, { 17, 7, 3, 3, 2 },
                                     { 0, -2, 0, 0, 0 }, { 0, 0, -1, -1, -1 },      { 20, 0, 0, 0, 0 }, { -8, 0, 0, 0, 0 },
                                     { 0, 0, 0, 0, 3 },  { 0, 0x7FFFFFFF, 0, 0, 0 } };
    for (uint32_t rank = 1; rank <= 5; rank++)
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
            tensor t = tensor_of(rank, 2, dim, box, CU_TENSOR_MAP_SWIZZLE_NONE);
            check_load(&t, at[k], "shared::cluster");
        }
}

Test(sim_tma, every_swizzle_and_element)
{
    const uint64_t dim[4] = { 200, 40, 3, 2 };
    static const int32_t at[][5] = { { 0, 0, 0, 0 }, { 32, 24, 1, 1 }, { 190, 30, 2, 1 }, { -5, -3, 0, 0 } };
    for (uint32_t element = 1; element <= 8; element *= 2)
        for (int s = 0; s <= 3; s++)
            for (size_t k = 0; k < 4; k++) {
                uint32_t span = s ? 16u << s : 128, box[4] = { span / element, 20, 1, 1 };
                tensor t = tensor_of(4, element, dim, box, (CUtensorMapSwizzle)s);
                check_load(&t, at[k], k & 1 ? "shared::cta" : "shared::cluster");
            }
}

Test(sim_tma, element_strides)
{
    const uint64_t dim[3] = { 64, 30, 7 };
    const uint32_t box[3] = { 32, 9, 5 };
    tensor t = tensor_of(3, 2, dim, box, CU_TENSOR_MAP_SWIZZLE_64B);
    t.step[0] = 2, t.step[1] = 2, t.step[2] = 3; /* the innermost one has no effect */
    check_load(&t, (const int32_t[5]){ 3, 1, 1 }, "shared::cluster");
    check_load(&t, (const int32_t[5]){ -3, -3, -1 }, "shared::cluster");
}

/* Threads fill buf, one stores it. */
#define STORE_KERNEL                                                                                                                      \
    TMA_KERNEL(BOX, COORDINATES "mov.u32 %r10, 0; mov.u32 %r11, buf; shl.b32 %r12, %r0, 2; add.u32 %r11, %r11, %r12; cvt.u64.u32 %rd5, "  \
                                "%r12; add.s64 %rd6, %rd2, %rd5;\n"                                                                       \
                                "LOOP: setp.ge.u32 %p1, %r10, $3; @%p1 bra END; ld.global.u32 %r13, [%rd6]; st.shared.u32 [%r11], %r13; " \
                                "add.u32 %r11, %r11, 256; add.s64 %rd6, %rd6, 256; add.u32 %r10, %r10, 1; bra LOOP; END:\n"               \
                                "fence.proxy.async.shared::cta; bar.sync 0; @!%p0 bra OFF;\n"                                             \
                                "$1.tensor.$2 [%rd3, $L], [buf];\ncp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;\nOFF:\n")

static const char *store_kernel(const char *op, uint32_t rank, const char *tail, uint32_t bytes)
{
    static char text[16384];
    char form[64], words[16];
    snprintf(form, sizeof form, "%ud.global.shared::cta%s.bulk_group", rank, tail),
        snprintf(words, sizeof words, "%u", (bytes + 255) / 256);
    const char *s = with(STORE_KERNEL, op, form, words), *at = strstr(s, "$L");
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - s), s, lists[rank - 1], at + 2);
    return text;
}

static void check_store(const tensor *t, const int32_t *at)
{
    uint32_t n = box_elements(t), bytes = n * t->element;
    size_t size = tensor_bytes(t);
    uint8_t *data = noise(32768), *want = malloc(size), *got = malloc(size);
    CUfunction f = load(store_kernel("cp.async.bulk", t->rank, ".tile", bytes));
    CUdeviceptr from = buffer(data, 32768), where = buffer(at, 20);
    memset(want, 0, size);
    for (uint32_t e = 0; e < n; e++) {
        uint64_t place = 0, rest = e;
        bool inside = true;
        for (uint32_t x = 0; x < t->rank; x++) {
            int64_t c = at[x] + (int64_t)(rest % t->box[x]);
            rest /= t->box[x];
            inside &= c >= 0 && c < (int64_t)t->dim[x];
            place += (uint64_t)c * (x ? t->stride[x - 1] : t->element);
        }
        for (uint32_t k = 0; inside && k < t->element; k++)
            want[place + k] = data[swizzled(e * t->element + k, t->swizzle)];
    }
    EACH_WAY(way)
    {
        memset(got, 0, size);
        CUdeviceptr to = buffer(got, size);
        CUtensorMap m = map_of(t, to);
        run_maps(f, 1, 64, 0, where, from, &m, NULL);
        fetch(got, to, size);
        for (size_t k = 0; k < size; k++)
            cr_assert_eq(got[k], want[k], "way %d rank %u swizzle %d byte %zu: %u instead of %u", way, t->rank, (int)t->swizzle, k, got[k],
                         want[k]);
    }
    free(data), free(want), free(got);
}

Test(sim_tma, stores_drop_what_is_outside)
{
    const uint64_t dim[5] = { 20, 9, 5, 4, 3 };
    const uint32_t box[5] = { 8, 4, 3, 2, 2 };
    static const int32_t at[][5] = { { 0, 0, 0, 0, 0 }, { 4, 3, 1, 1, 1 }, { -3, -1, 0, 0, -1 }, { 17, 7, 3, 3, 2 }, { 20, 0, 0, 0, 0 } };
    for (uint32_t rank = 1; rank <= 5; rank++)
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
            tensor t = tensor_of(rank, 2, dim, box, CU_TENSOR_MAP_SWIZZLE_NONE);
            check_store(&t, at[k]);
        }
    for (int s = 1; s <= 3; s++) {
        const uint64_t wide[4] = { 100, 50, 2, 2 };
        const uint32_t rows[4] = { 8u << s, 40, 1, 1 };
        tensor t = tensor_of(4, 2, wide, rows, (CUtensorMapSwizzle)s);
        check_store(&t, (const int32_t[5]){ 16, 3, 1, 1 });
        check_store(&t, (const int32_t[5]){ -7, 20, 0, 1 });
    }
}

/* ---- what the driver refuses ---- */

static void refused(tensor t, CUdeviceptr at, CUresult code, const char *words)
{
    CUtensorMap m;
    CUresult r = encode(&m, &t, at);
    cr_expect_eq(r, code, "%d instead of %d: %s", r, code, cu->detail());
    cr_expect(strstr(cu->detail(), words) != NULL, "\"%s\" is not in: %s", words, cu->detail());
}

Test(sim_tma, rules_of_the_encoder)
{
    const uint64_t dim[4] = { 64, 32, 4, 2 };
    const uint32_t box[4] = { 64, 16, 1, 1 };
    tensor good = tensor_of(4, 2, dim, box, CU_TENSOR_MAP_SWIZZLE_128B), t;
    CUdeviceptr p = buffer(NULL, 1 << 16);
    CUtensorMap m[2];
    cr_assert_eq(encode(m, &good, p), CUDA_SUCCESS);
#define WRONG(change, code, words) t = good, change, refused(t, p, code, words)
    WRONG(t.rank = 0, CUDA_ERROR_INVALID_VALUE, "tensorRank is 0");
    WRONG(t.rank = 6, CUDA_ERROR_INVALID_VALUE, "tensorRank is 6");
    WRONG(t.type = (CUtensorMapDataType)99, CUDA_ERROR_INVALID_VALUE, "tensorDataType is 99");
    WRONG(t.type = CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, CUDA_ERROR_NOT_SUPPORTED, "TFLOAT32 is not simulated");
    WRONG(t.dim[1] = 0, CUDA_ERROR_INVALID_VALUE, "globalDim[1] is 0");
    WRONG(t.dim[2] = (1ull << 32) + 1, CUDA_ERROR_INVALID_VALUE, "globalDim[2] is 4294967297");
    WRONG(t.stride[1] = 136, CUDA_ERROR_INVALID_VALUE, "globalStrides[1] is 136");
    WRONG(t.stride[2] = 1ull << 40, CUDA_ERROR_INVALID_VALUE, "globalStrides[2] is 1099511627776");
    WRONG(t.box[1] = 0, CUDA_ERROR_INVALID_VALUE, "boxDim[1] is 0");
    WRONG(t.box[1] = 257, CUDA_ERROR_INVALID_VALUE, "boxDim[1] is 257");
    WRONG(t.box[0] = 12, CUDA_ERROR_INVALID_VALUE, "a row of 24 bytes; accepted: multiples of 16");
    WRONG(t.box[0] = 72, CUDA_ERROR_INVALID_VALUE, "at most 128 bytes");
    WRONG(t.box[0] = 32, CUDA_ERROR_NOT_SUPPORTED, "a row of 64 bytes");
    WRONG(t.step[3] = 9, CUDA_ERROR_INVALID_VALUE, "elementStrides[3] is 9");
    WRONG(t.swizzle = (CUtensorMapSwizzle)7, CUDA_ERROR_INVALID_VALUE, "swizzle is 7");
    WRONG(t.swizzle = CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B, CUDA_ERROR_NOT_SUPPORTED, "swizzle 4");
    refused(good, p + 8, CUDA_ERROR_INVALID_VALUE, "globalAddress is");
    CUresult r = cu->cuTensorMapEncodeTiled((CUtensorMap *)(void *)((char *)m + 32), good.type, 4, (void *)(uintptr_t)p, good.dim,
                                            good.stride, good.box, good.step, CU_TENSOR_MAP_INTERLEAVE_NONE, good.swizzle, 0, 0);
    cr_expect_eq(r, CUDA_ERROR_INVALID_VALUE);
    r = cu->cuTensorMapEncodeTiled(m, good.type, 4, (void *)(uintptr_t)p, good.dim, good.stride, good.box, good.step,
                                   CU_TENSOR_MAP_INTERLEAVE_16B, good.swizzle, 0, 0);
    cr_expect_eq(r, CUDA_ERROR_NOT_SUPPORTED);
    r = cu->cuTensorMapEncodeTiled(m, good.type, 4, (void *)(uintptr_t)p, good.dim, good.stride, good.box, good.step,
                                   CU_TENSOR_MAP_INTERLEAVE_NONE, good.swizzle, 0, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
    cr_expect_eq(r, CUDA_SUCCESS, "%s", cu->detail());
    r = cu->cuTensorMapEncodeTiled(m, CU_TENSOR_MAP_DATA_TYPE_UINT16, 4, (void *)(uintptr_t)p, good.dim, good.stride, good.box, good.step,
                                   CU_TENSOR_MAP_INTERLEAVE_NONE, good.swizzle, 0, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
    cr_expect(r == CUDA_ERROR_INVALID_VALUE && strstr(cu->detail(), "UINT16 has no NaN"), "%d %s", r, cu->detail());
}

/* Elements outside of the tensor are the NaN of that fill, in every 16 bits; those inside are what they are; 7 x 7 of a box of 8 x 16 at
 * (-1, 1). */
Test(sim_tma, not_a_number_outside)
{
    const uint64_t dim[2] = { 7, 8 };
    const uint32_t box[2] = { 8, 16 };
    for (uint32_t element = 2; element <= 8; element *= 2) {
        tensor t = tensor_of(2, element, dim, box, CU_TENSOR_MAP_SWIZZLE_NONE);
        uint8_t *data = noise(tensor_bytes(&t)), got[256 * 8];
        const int32_t at[5] = { -1, 1 };
        CUtensorMap m;
        CUdeviceptr p = buffer(data, tensor_bytes(&t)), b = buffer(NULL, 256 * 8), c = buffer(at, sizeof at);
        cr_assert_eq(cu->cuTensorMapEncodeTiled(&m, t.type, 2, (void *)(uintptr_t)p, t.dim, t.stride, t.box, t.step,
                                                CU_TENSOR_MAP_INTERLEAVE_NONE, t.swizzle, 0,
                                                CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA),
                     CUDA_SUCCESS, "%s", cu->detail());
        CUresult r = launch_maps(load(load_kernel(2, 128 * element, "shared::cluster")), 1, 64, 0, c, b, &m, NULL);
        cr_assert_eq(r, CUDA_SUCCESS, "%s", sim_report());
        fetch(got, b, 128 * element);
        for (uint32_t k = 0; k < 128 * element; k++) {
            uint32_t e = k / element, x = e % 8, y = e / 8;
            bool outside = !x || y > 6;
            uint8_t want = outside ? (k & 1 ? 0x7F : 0xF7) : expected(&t, data, at, e, k % element);
            cr_assert_eq(got[k], want, "element %u of %u bytes, byte %u: %02x instead of %02x", e, element, k % element, got[k], want);
        }
        free(data);
    }
}
TestSuite(sim_tma_old, .init = open80);
Test(sim_tma_old, needs_compute_capability_9)
{
    const uint64_t dim[1] = { 64 };
    const uint32_t box[1] = { 64 };
    refused(tensor_of(1, 2, dim, box, CU_TENSOR_MAP_SWIZZLE_NONE), buffer(NULL, 128), CUDA_ERROR_NOT_SUPPORTED, "sm_80");
}

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

Test(sim_tma, the_right_way)
{
    CUdeviceptr at, out = buffer(NULL, 4096);
    CUtensorMap m = square(&at, 8192, 8192);
    CUfunction f = load(TMA_KERNEL(BOX, INIT("1") EXPECT("4096") LOAD2("buf", "0", "0") WAIT("1", "bar", "0") USE));
    EACH_WAY(way) run_maps(f, 1, 64, 0, at, out, &m, NULL);
}
Test(sim_tma, a_wait_is_missing)
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
Test(sim_tma, byte_counts)
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
Test(sim_tma, nobody_waits)
{
    wrong(TMA_KERNEL(BOX, INIT("1") EXPECT("4096") LOAD2("buf", "0", "0")), CUDA_ERROR_LAUNCH_FAILED, "a block ends without waiting");
}
Test(sim_tma, overwriting_what_is_read)
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
Test(sim_tma, generic_stores_before_a_load_need_a_fence)
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
Test(sim_tma, places)
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
Test(sim_tma, maps)
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

Test(sim_tma, stores_and_their_waits)
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
Test(sim_tma, columns_outside_need_hold_nothing)
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
Test(sim_tma, rows_outside_need_hold_nothing)
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
Test(sim_tma, undefined_bytes_stay_undefined)
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
Test(sim_tma, a_store_of_all_lanes_is_counted_once)
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

Test(sim_tma, reductions)
{
    const uint64_t dim[2] = { 24, 10 };
    const uint32_t box[2] = { 16, 8 };
    static const struct {
        CUtensorMapDataType type;
        uint32_t element;
    } kinds[] = { { CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4 },
                  { CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2 },
                  { CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2 },
                  { CU_TENSOR_MAP_DATA_TYPE_UINT32, 4 } };
    for (size_t k = 0; k < 4; k++) {
        tensor t = tensor_of(2, kinds[k].element, dim, box, CU_TENSOR_MAP_SWIZZLE_NONE);
        t.type = kinds[k].type;
        size_t size = tensor_bytes(&t);
        /* one is added to two, in three blocks */
        uint32_t one = k == 0   ? 0x3F800000
                       : k == 1 ? 0x3C003C00
                       : k == 2 ? 0x3F803F80
                                : 1,
                 two = k == 0   ? 0x40000000
                       : k == 1 ? 0x40004000
                       : k == 2 ? 0x40004000
                                : 2;
        uint32_t five = k == 0 ? 0x40A00000 : k == 1 ? 0x45004500 : k == 2 ? 0x40A040A0 : 5, data[256], got[512];
        for (int x = 0; x < 256; x++)
            data[x] = one;
        CUdeviceptr from = buffer(data, sizeof data), where = buffer((const int32_t[5]){ 12, 4 }, 20);
        CUfunction f = load(store_kernel("cp.reduce.async.bulk", 2, ".add", 16 * 8 * t.element));
        EACH_WAY(way)
        {
            for (int x = 0; x < 512; x++)
                got[x] = two;
            CUdeviceptr to = buffer(got, size);
            CUtensorMap m = map_of(&t, to);
            run_maps(f, 3, 64, 0, where, from, &m, NULL);
            fetch(got, to, size);
            for (uint32_t y = 0; y < 10; y++)
                for (uint32_t x = 0; x < 24 * t.element / 4; x++) {
                    uint32_t v = got[y * t.stride[0] / 4 + x];
                    cr_assert_eq(v, y >= 4 && x >= 12 * t.element / 4 ? five : two, "kind %zu way %d: 0x%x at %u, %u", k, way, v, y, x);
                }
        }
    }
}

/* ---- runs of bytes ---- */

Test(sim_tma, reductions_of_runs)
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

Test(sim_tma, runs_of_bytes)
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
