/* tensor_map: cuTensorMapEncodeTiled with the rules of the driver, and the walk through a box. */
#include "tensor_map.h"
#include "run.h"
#include "state.h"
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(sim_tensor_map) <= sizeof(CUtensorMap), "our map fits into the opaque bytes");
static const uint32_t magic = 0x50414D54; /* "TMAP" */

static uint32_t checksum(const sim_tensor_map *m) /* FNV-1a */
{
    const uint8_t *p = (const uint8_t *)m;
    uint32_t h = 2166136261u;
    for (size_t k = offsetof(sim_tensor_map, base); k < sizeof *m; k++)
        h = (h ^ p[k]) * 16777619u;
    return h;
}

/* clang-format off */
static const struct { CUtensorMapDataType type; uint8_t bytes; const char *name; } types[] = { /* 0 bytes: known, but not simulated */
    {CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, "UINT8"}, {CU_TENSOR_MAP_DATA_TYPE_UINT16, 2, "UINT16"}, {CU_TENSOR_MAP_DATA_TYPE_UINT32, 4, "UINT32"},
    {CU_TENSOR_MAP_DATA_TYPE_INT32, 4, "INT32"}, {CU_TENSOR_MAP_DATA_TYPE_UINT64, 8, "UINT64"}, {CU_TENSOR_MAP_DATA_TYPE_INT64, 8, "INT64"},
    {CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, "FLOAT16"}, {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, "FLOAT32"}, {CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 8, "FLOAT64"},
    {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, "BFLOAT16"}, {CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, 0, "FLOAT32_FTZ"},
    {CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, 0, "TFLOAT32"}, {CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ, 0, "TFLOAT32_FTZ"},
};
/* clang-format on */

#define BAD(...) return sim_tell(CUDA_ERROR_INVALID_VALUE, "cuTensorMapEncodeTiled: " __VA_ARGS__)
#define LACK(...) return sim_tell(CUDA_ERROR_NOT_SUPPORTED, "cuTensorMapEncodeTiled: " __VA_ARGS__)

CUresult sim_cuTensorMapEncodeTiled(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank, void *base, const cuuint64_t *dim,
                                    const cuuint64_t *stride, const cuuint32_t *box, const cuuint32_t *step,
                                    CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                    CUtensorMapFloatOOBfill fill)
{
    SIM_LOCKED;
    static const uint32_t spans[] = { [CU_TENSOR_MAP_SWIZZLE_NONE] = 0,
                                      [CU_TENSOR_MAP_SWIZZLE_32B] = 32,
                                      [CU_TENSOR_MAP_SWIZZLE_64B] = 64,
                                      [CU_TENSOR_MAP_SWIZZLE_128B] = 128 };
    sim_device *d;
    CUresult r = sim_current(&d);
    if (r)
        return r;
    sim_detail_clear();
    if (d->arch->major < 9)
        LACK("the device is %s; accepted: compute capability 9.0 or newer", d->arch->name);
    if (!to || (uintptr_t)to & 63)
        BAD("tensorMap is %p; accepted: an address that is a multiple of 64", (void *)to);
    size_t t = 0;
    while (t < sizeof types / sizeof *types && types[t].type != type)
        t++;
    if (t == sizeof types / sizeof *types)
        BAD("tensorDataType is %d; accepted: UINT8 to BFLOAT16", (int)type);
    if (!rank || rank > SIM_RANK)
        BAD("tensorRank is %u; accepted: 1 to 5", rank);
    if ((uintptr_t)base & 15 || !base)
        BAD("globalAddress is %p; accepted: a multiple of 16", base);
    if (!dim || !box || !step || (rank > 1 && !stride))
        BAD("globalDim, boxDim, elementStrides or globalStrides is NULL");
    if (interleave < CU_TENSOR_MAP_INTERLEAVE_NONE || interleave > CU_TENSOR_MAP_INTERLEAVE_32B)
        BAD("interleave is %d; accepted: 0 (NONE)", (int)interleave);
    if (swizzle < 0 || swizzle > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B)
        BAD("swizzle is %d; accepted: 0 (NONE), 1 (32B), 2 (64B), 3 (128B)", (int)swizzle);
    if (promotion < CU_TENSOR_MAP_L2_PROMOTION_NONE || promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B)
        BAD("l2Promotion is %d; accepted: 0 to 3", (int)promotion);
    if (fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE && fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA)
        BAD("oobFill is %d; accepted: 0 (NONE), 1 (NAN_REQUEST_ZERO_FMA)", (int)fill);
    if (fill && !strstr(types[t].name, "FLOAT"))
        BAD("oobFill is NAN_REQUEST_ZERO_FMA, but tensorDataType %s has no NaN", types[t].name);
    if (!types[t].bytes)
        LACK("tensorDataType %s is not simulated", types[t].name);
    if (interleave)
        LACK("interleave %d is not simulated; accepted: 0 (NONE)", (int)interleave);
    if (swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
        LACK("swizzle %d is not simulated; accepted: 0 (NONE), 1 (32B), 2 (64B), 3 (128B)", (int)swizzle);
    sim_tensor_map m;
    memset(&m, 0, sizeof m); /* padding too: the checksum reads it */
    m.magic = magic, m.base = (uint64_t)(uintptr_t)base, m.rank = (uint8_t)rank, m.type = (uint8_t)type, m.element = types[t].bytes,
    m.fill = fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, m.swizzle = (uint8_t)spans[swizzle];
    for (uint32_t k = 0; k < SIM_RANK; k++)
        m.box[k] = 1, m.step[k] = 1;
    for (uint32_t k = 0; k < rank; k++) {
        if (!dim[k] || dim[k] > 1ull << 32)
            BAD("globalDim[%u] is %llu; accepted: 1 to 2^32", k, (unsigned long long)dim[k]);
        if (!box[k] || box[k] > 256)
            BAD("boxDim[%u] is %u; accepted: 1 to 256", k, box[k]);
        if (!step[k] || step[k] > 8)
            BAD("elementStrides[%u] is %u; accepted: 1 to 8", k, step[k]);
        if (k && (stride[k - 1] & 15 || stride[k - 1] >= 1ull << 40))
            BAD("globalStrides[%u] is %llu; accepted: multiples of 16 below 2^40", k - 1, (unsigned long long)stride[k - 1]);
        m.last[k] = (uint32_t)(dim[k] - 1), m.box[k] = (uint16_t)box[k],
        m.step[k] = (uint8_t)(k ? step[k] : 1); /* dimension 0 has no step */
        if (k)
            m.stride[k - 1] = stride[k - 1];
    }
    uint32_t row = m.box[0] * m.element;
    if (row & 15)
        BAD("boxDim[0] is %u, a row of %u bytes; accepted: multiples of 16 bytes", m.box[0], row);
    if (m.swizzle && row > m.swizzle)
        BAD("boxDim[0] is %u, a row of %u bytes; accepted with this swizzle: at most %u bytes", m.box[0], row, m.swizzle);
    if (m.swizzle && row < m.swizzle) /* what lies between the rows then is not documented */
        LACK("boxDim[0] is %u, a row of %u bytes; simulated with this swizzle: %u bytes (elements outside of the tensor may fill a row)",
             m.box[0], row, m.swizzle);
    m.checksum = checksum(&m);
    memset(to, 0, sizeof *to);
    memcpy(to, &m, sizeof m);
    return CUDA_SUCCESS;
}

bool sim_tensor_map_read(sim_warp *w, const sim_insn *i, int lane, uint64_t address, sim_tensor_map *to)
{
    uint64_t at = address;
    sim_space s = sim_space_of(SP_GENERIC, &at);
    CUtensorMap raw;
    if (s != SP_PARAM && s != SP_GLOBAL)
        return sim_fault(w, i, lane, SIM_CHECK_BOUNDS, "a tensor map is neither among the parameters nor in global or constant memory"),
               false;
    if (address & 63)
        return sim_fault(w, i, lane, SIM_CHECK_ALIGNMENT, "misaligned tensor map: address 0x%llx is no multiple of 64",
                         (unsigned long long)address),
               false;
    for (uint32_t k = 0; k < sizeof raw; k += 16) {
        if (s == SP_GLOBAL) { /* fetching a descriptor is no traffic of a tensor: it is not counted */
            sim_alloc *a;
            const uint8_t *p = sim_global(w, i, lane, at + k, 16, &a);
            if (!p)
                return false;
            memcpy((char *)&raw + k, p, 16);
        } else if (!sim_load(w, i, lane, SP_PARAM, at + k, (char *)&raw + k, 16))
            return false;
    }
    memcpy(to, &raw, sizeof *to);
    if (to->magic != magic || to->checksum != checksum(to)) {
        sim_fault(w, i, lane, SIM_CHECK_TENSOR_MAP, "no tensor map of this driver is at %s 0x%llx: its 128 bytes are %s",
                  s == SP_PARAM ? "parameter offset" : "address", (unsigned long long)at,
                  to->magic == magic ? "damaged" : "something else");
        return false;
    }
    return true;
}

sim_step sim_run_tensormap(sim_warp *w, const sim_insn *i, uint32_t m) /* a prefetch: nothing, if there is one */
{
    FOR_LANES(l, m)
    {
        sim_tensor_map map;
        uint64_t at = sim_address(w, i, 0, i->flags & F_WIDE, l) | (i->space == SP_PARAM ? SIM_WINDOW_PARAM : 0);
        if (!sim_tensor_map_read(w, i, (int)l, at, &map))
            return STEP_FAULT;
    }
    return STEP_NEXT;
}

uint64_t sim_tensor_map_bytes(const sim_tensor_map *m)
{
    uint64_t n = m->element;
    for (int k = 0; k < SIM_RANK; k++)
        n *= sim_tensor_map_count(m, k);
    return n;
}

bool sim_tensor_map_walk(const sim_tensor_map *m, const int32_t *at, bool (*visit)(void *, const sim_box_row *), void *arg)
{
    int64_t from = at[0] > 0 ? at[0] : 0, to = (int64_t)at[0] + m->box[0], end = (int64_t)m->last[0] + 1;
    uint32_t row = m->box[0] * (uint32_t)m->element, n[SIM_RANK], k[SIM_RANK] = { 0 }, place = 0;
    if (to > end)
        to = end;
    for (int x = 0; x < SIM_RANK; x++)
        n[x] = sim_tensor_map_count(m, x);
    for (;;) {
        bool inside = from < to;
        uint64_t g = m->base + (uint64_t)from * m->element;
        for (int x = 1; x < m->rank; x++) {
            int64_t c = (int64_t)at[x] + (int64_t)k[x] * m->step[x];
            inside &= c >= 0 && c <= (int64_t)m->last[x];
            g += (uint64_t)c * m->stride[x - 1];
        }
        sim_box_row r = { g, place, inside ? (uint32_t)(from - at[0]) * m->element : 0, inside ? (uint32_t)(to - from) * m->element : 0 };
        if (!visit(arg, &r))
            return false;
        place += row;
        int x = 1;
        while (x < SIM_RANK && ++k[x] == n[x])
            k[x++] = 0;
        if (x == SIM_RANK)
            return true;
    }
}
