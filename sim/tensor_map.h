/* tensor_map: what the simulator puts into the 128 opaque bytes of a CUtensorMap, and the box that a copy moves through it. */
#ifndef SIM_TENSOR_MAP_H
#define SIM_TENSOR_MAP_H
#include "exec.h"

enum { SIM_RANK = 5 };
typedef struct sim_tensor_map {
    uint32_t magic, checksum;      /* the checksum of what follows: a map of another driver, or a stale one, is told from ours */
    uint64_t base;                 /* of element (0, ..., 0) */
    uint64_t stride[SIM_RANK - 1]; /* bytes; of dimension k + 1 */
    uint32_t last[SIM_RANK];       /* elements - 1 of each dimension, innermost first */
    uint16_t box[SIM_RANK];        /* elements a copy spans */
    uint8_t step[SIM_RANK];        /* ... of which it takes every step-th; [0] is 1 */
    uint8_t rank, type, element;   /* CUtensorMapDataType; bytes of one element */
    uint8_t fill;                  /* 1: elements outside of the tensor are read as NaN */
    uint8_t swizzle;               /* bytes of the span within which 16-byte chunks are permuted; 0 = none */
} sim_tensor_map;

/* Reads and validates the map at a generic address. false: reported. */
bool sim_tensor_map_read(sim_warp *w, const sim_insn *i, int lane, uint64_t address, sim_tensor_map *to);
uint64_t sim_tensor_map_bytes(const sim_tensor_map *m); /* of a box in shared memory */
static inline uint32_t sim_tensor_map_count(const sim_tensor_map *m, int k)
{
    return (m->box[k] + m->step[k] - 1u) / m->step[k];
}

/* One row of a box: its place in global memory and its bytes there; where it stands in shared memory. */
typedef struct sim_box_row {
    uint64_t global;     /* of the first byte inside the tensor */
    uint32_t at;         /* byte of the box where the row begins, before the swizzle */
    uint32_t skip, size; /* bytes outside of the tensor before it; bytes inside, 0 = all are outside */
} sim_box_row;
/* Calls visit for every row of the box at these signed coordinates, innermost first. Stops at false. */
bool sim_tensor_map_walk(const sim_tensor_map *m, const int32_t *at, bool (*visit)(void *, const sim_box_row *), void *arg);

/* Where byte `at` of a box ends up: an address in shared memory, permuted by its own bits. */
static inline uint32_t sim_swizzle(uint32_t at, uint32_t span)
{
    return span ? at ^ ((at >> 7 & (span / 16 - 1)) << 4) : at;
}
#endif
