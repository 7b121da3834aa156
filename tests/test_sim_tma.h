/* Kernels with tensor maps for the tests of bulk copies: two pointers in %rd1 and %rd2, two maps whose generic addresses are in %rd3
 * and %rd4. */
#ifndef TEST_SIM_TMA_H
#define TEST_SIM_TMA_H
#include "test_sim_machine.h"

#define TMA_KERNEL(shared, body)                                                                                  \
    ".version 8.0\n.target sm_90a\n.address_size 64\n"                                                            \
    ".visible .entry k(.param .u64 a, .param .u64 b, .param .align 64 .b8 m[128], .param .align 64 .b8 n[128])\n" \
    "{\n.reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<20>;\n.reg .f32 %f<20>;\n" shared   \
    "ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nmov.u32 %r0, %tid.x;\nsetp.eq.u32 %p0, %r0, 0;\n"          \
    "mov.b64 %rd3, m;\ncvta.param.u64 %rd3, %rd3;\nmov.b64 %rd4, n;\ncvta.param.u64 %rd4, %rd4;\n" body "\nret;\n}\n"

/* label, address, parity: sleeps until the phase of this parity is complete; uses %p8. */
#define WAIT(label, bar, parity) "W" label ": mbarrier.try_wait.parity.shared::cta.b64 %p8, [" bar "], " parity ";\n@!%p8 bra W" label ";\n"

/* Room for boxes, and mbarriers that `count` arrivals, or one, complete. */
#define BOX ".shared .align 1024 .b8 buf[32768];\n.shared .align 8 .b8 bar[32];\n"
#define INIT(count)                                    \
    "@%p0 mbarrier.init.shared::cta.b64 [bar], " count \
    "; @%p0 mbarrier.init.shared::cta.b64 [bar+8], 1;\n@%p0 fence.mbarrier_init.release.cluster;\nbar.sync 0;\n"

__attribute__((unused)) static void open90(void)
{
    open_machine("sm_90a");
}

typedef struct tensor {
    CUtensorMapDataType type;
    uint32_t rank, element;
    uint64_t dim[5], stride[4]; /* stride: bytes */
    uint32_t box[5], step[5];
    CUtensorMapSwizzle swizzle;
} tensor;

/* Packed rows, padded to 16 bytes. */
__attribute__((unused)) static tensor tensor_of(uint32_t rank, uint32_t element, const uint64_t *dim, const uint32_t *box,
                                                CUtensorMapSwizzle swizzle)
{
    tensor t = { .type = element == 1   ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                         : element == 2 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                         : element == 4 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                                        : CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
                 .rank = rank,
                 .element = element,
                 .swizzle = swizzle };
    uint64_t stride = (dim[0] * element + 15) & ~15ull;
    for (uint32_t k = 0; k < 5; k++)
        t.dim[k] = k < rank ? dim[k] : 1, t.box[k] = k < rank ? box[k] : 1, t.step[k] = 1;
    for (uint32_t k = 0; k + 1 < rank; k++)
        t.stride[k] = stride, stride *= dim[k + 1];
    return t;
}
__attribute__((unused)) static size_t tensor_bytes(const tensor *t)
{
    return t->rank == 1 ? (size_t)t->dim[0] * t->element : (size_t)t->stride[t->rank - 2] * t->dim[t->rank - 1];
}

__attribute__((unused)) static uint8_t *noise(size_t n)
{
    uint8_t *p = malloc(n);
    for (size_t k = 0; k < n; k++)
        p[k] = (uint8_t)((k * 2654435761u >> 13) | 1); /* never 0, which is what lies outside */
    return p;
}

__attribute__((unused)) static CUresult encode(CUtensorMap *m, const tensor *t, CUdeviceptr at)
{
    return cu->cuTensorMapEncodeTiled(m, t->type, t->rank, (void *)(uintptr_t)at, t->dim, t->stride, t->box, t->step,
                                      CU_TENSOR_MAP_INTERLEAVE_NONE, t->swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}
__attribute__((unused)) static CUtensorMap map_of(const tensor *t, CUdeviceptr at)
{
    CUtensorMap m;
    CUresult r = encode(&m, t, at);
    cr_assert_eq(r, CUDA_SUCCESS, "encode: %d %s", r, cu->detail());
    return m;
}

__attribute__((unused)) static CUresult launch_maps(CUfunction f, unsigned blocks, unsigned threads, unsigned shared, CUdeviceptr a,
                                                    CUdeviceptr b, const CUtensorMap *m, const CUtensorMap *n)
{
    void *params[] = { &a, &b, (void *)(uintptr_t)m, (void *)(uintptr_t)(n ? n : m) };
    return cu->cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, shared, NULL, params, NULL);
}
__attribute__((unused)) static void run_maps(CUfunction f, unsigned blocks, unsigned threads, unsigned shared, CUdeviceptr a, CUdeviceptr b,
                                             const CUtensorMap *m, const CUtensorMap *n)
{
    CUresult r = launch_maps(f, blocks, threads, shared, a, b, m, n);
    cr_assert_eq(r, CUDA_SUCCESS, "launch: %d\n%s", r, sim_report());
}
/* Must fail with these words in the report, in both timings and every schedule. */
__attribute__((unused)) static void fails_maps(const char *ptx, unsigned threads, unsigned shared, CUdeviceptr a, CUdeviceptr b,
                                               const CUtensorMap *m, CUresult code, const char *words)
{
    CUfunction f = load(ptx);
    for (int way = 0; way < 6; way++) {
        sim_set_options(&(sim_options){ .async = (sim_async)(way & 1), .schedule = (sim_schedule)(way / 2), .seed = 3 });
        CUresult r = launch_maps(f, 1, threads, shared, a, b, m, NULL);
        cr_expect_eq(r, code, "way %d: code %d instead of %d\n%s", way, r, code, sim_report());
        cr_expect(strstr(sim_report(), words) != NULL, "way %d: \"%s\" is not in:\n%s", way, words, sim_report());
    }
    sim_set_options(NULL);
}
/* Both timings, every schedule. */
#define EACH_WAY(way)                                                                                                           \
    for (int way = 0; way < 8; way++)                                                                                           \
        if (sim_set_options(&(sim_options){                                                                                     \
                .async = (sim_async)(way & 1), .schedule = (sim_schedule)(way / 2 > 2 ? 2 : way / 2), .seed = (uint64_t)way }), \
            1)
#endif
