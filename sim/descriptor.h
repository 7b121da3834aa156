/* descriptor: what a wgmma matrix descriptor says of a tile of 16-bit elements in shared memory, as chunks of 16 bytes. */
#ifndef SIM_DESCRIPTOR_H
#define SIM_DESCRIPTOR_H
#include "exec.h"

/* Bits 0-13 start, 16-29 leading and 32-45 stride byte offset, each >> 4; 49-51 base offset (only 0 is simulated); 62-63 swizzle. */
typedef struct sim_matrix {
    uint32_t start;        /* shared address, SIM_SHARED_BASE included */
    uint32_t lead, stride; /* bytes */
    uint32_t span;         /* bytes of a row of the swizzle pattern: 16 (none), 32, 64 or 128 */
    bool mn;               /* M or N is contiguous, not K */
} sim_matrix;

/* what: "A" or "B", for the report. */
bool sim_matrix_open(sim_warp *w, const sim_insn *i, const char *what, uint64_t descriptor, bool mn, sim_matrix *m); /* false: reported */

/* The address of a chunk. K contiguous: 8 numbers along k of row x, y = k / 8. MN contiguous: 8 rows (or columns) from 8 * y, at
 * k = x. The swizzle works on the bits of the address, after the offsets are added. */
static inline uint32_t sim_matrix_chunk(const sim_matrix *m, uint32_t x, uint32_t y)
{
    uint32_t a = m->start + x % 8 * m->span, units = m->span / 16;
    if (!m->mn)
        a += x / 8 * m->stride + y * (m->span == 16 ? m->lead : 16);
    else if (m->span == 16)
        a += x / 8 * m->lead + y * m->stride;
    else
        a += x / 8 * m->stride + y / units * m->lead + y % units * 16;
    return (a ^ (a >> 7 & (units - 1)) << 4) & 0x3FFFF;
}
#endif
