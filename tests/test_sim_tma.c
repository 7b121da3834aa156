/* Tensor maps: where every byte of a box goes, in both timings, and what the driver refuses. */
#include "test_sim_tma.h"

TestSuite(sim_tma, .init = open90);

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
    static const int32_t at[][5] = { { 0, 0, 0, 0, 0 },  { 8, 3, 1, 1, 1 },         { -8, 0, 0, 0, 0 }, { 16, 7, 3, 3, 2 },
                                     { 0, -2, 0, 0, 0 }, { 0, 0, -1, -1, -1 },      { 24, 0, 0, 0, 0 }, { -16, 0, 0, 0, 0 },
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
    static const int32_t at[][5] = { { 0, 0, 0, 0 }, { 32, 24, 1, 1 }, { 192, 30, 2, 1 }, { -16, -3, 0, 0 } };
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
    check_load(&t, (const int32_t[5]){ 8, 1, 1 }, "shared::cluster");
    check_load(&t, (const int32_t[5]){ -8, -3, -1 }, "shared::cluster");
}

/* As an H200 has it, whatever the swizzle; its report is of an illegal instruction. */
Test(sim_tma, boxes_begin_at_multiples_of_16_bytes)
{
    const uint64_t dim[2] = { 64, 30 };
    const uint32_t box[2] = { 32, 8 };
    for (int32_t x = -9; x < 10; x++) {
        tensor t = tensor_of(2, 2, dim, box, CU_TENSOR_MAP_SWIZZLE_64B);
        const int32_t at[5] = { x, 1 };
        uint8_t *data = noise(tensor_bytes(&t));
        CUtensorMap m = map_of(&t, buffer(data, tensor_bytes(&t)));
        CUfunction f = load(load_kernel(2, 32 * 8 * 2, "shared::cluster"));
        CUresult r = launch_maps(f, 1, 64, 0, buffer(at, 20), buffer(NULL, 1024), &m, NULL);
        cr_expect_eq(r, x % 8 ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS, "column %d: %d %s", x, r, sim_report());
        free(data);
    }
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
 * (0, 1). */
Test(sim_tma, not_a_number_outside)
{
    const uint64_t dim[2] = { 7, 8 };
    const uint32_t box[2] = { 8, 16 };
    for (uint32_t element = 2; element <= 8; element *= 2) {
        tensor t = tensor_of(2, element, dim, box, CU_TENSOR_MAP_SWIZZLE_NONE);
        uint8_t *data = noise(tensor_bytes(&t)), got[256 * 8];
        const int32_t at[5] = { 0, 1 };
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
            bool outside = x > 6 || y > 6;
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

static CUresult launch_early(CUfunction f, CUdeviceptr a, const CUtensorMap *m)
{
    void *params[] = { &a, &a, (void *)(uintptr_t)m, (void *)(uintptr_t)m };
    CUlaunchAttribute at = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                             .value.programmaticStreamSerializationAllowed = 1 };
    CUlaunchConfig config = {
        .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1, .attrs = &at, .numAttrs = 1
    };
    return cu->cuLaunchKernelEx(&config, f, params, NULL);
}

/* A launch that begins early may load boxes of what the launch before does not write, where that one lets it begin after its own wait. */
Test(sim_tma, boxes_before_the_wait)
{
    static const struct {
        const char *front; /* what the launch before does */
        bool writes, right;
    } rows[] = {
        { "griddepcontrol.wait; griddepcontrol.launch_dependents;", false, true },
        { "griddepcontrol.wait;", false, true },
        { "griddepcontrol.wait; griddepcontrol.launch_dependents;", true, false },
        { "griddepcontrol.launch_dependents; griddepcontrol.wait;", false, false },
    };
    const uint64_t dim[2] = { 64, 64 };
    const uint32_t box[2] = { 32, 8 };
    tensor t = tensor_of(2, 2, dim, box, CU_TENSOR_MAP_SWIZZLE_NONE);
    CUfunction loads = load(TMA_KERNEL(BOX, INIT("1") "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 %rd9, [bar], 512;\nmov.u32 %r1, 0;\n"
                                                      "@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                                                      "[buf], [%rd3, {%r1, %r1}], [bar];\n" WAIT("1", "bar", "0") "griddepcontrol.wait;"));
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        EACH_WAY(way)
        {
            uint8_t *data = noise(tensor_bytes(&t));
            CUdeviceptr tensor_at = buffer(data, tensor_bytes(&t)), other = buffer(NULL, 64);
            free(data);
            CUtensorMap m = map_of(&t, tensor_at);
            CUfunction front = load(with(TMA_KERNEL(BOX, "$1 st.global.u32 [%rd1], 1;"), rows[k].front, "", ""));
            cr_assert_eq(launch_early(front, rows[k].writes ? tensor_at : other, &m), CUDA_SUCCESS, "%s", sim_report());
            cr_expect_eq(launch_early(loads, other, &m), rows[k].right ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED, "row %zu: %s", k,
                         sim_report());
            cr_expect(rows[k].right || strstr(sim_report(), "griddepcontrol.wait"), "%s", sim_report());
        }
}
