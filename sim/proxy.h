/* proxy: shared memory as the async proxy sees it, the way of wgmma and of bulk copies. Ordinary stores (and cp.async, stmatrix)
 * go through the generic proxy: what the async proxy then touches needs a fence.proxy.async of the thread that stored, between
 * the store and whatever orders it before the access. A fence by the reading side after the barrier is not accepted.
 *
 * Offsets are those of the block's arena, as for sim_shared_read(); lane -1 is the whole warp. All return false when they have
 * made a report. With checks off, everything here is a no-op that succeeds. A program that uses the async proxy says so in
 * sim_program.proxy when it is decoded. */
#ifndef SIM_PROXY_H
#define SIM_PROXY_H
#include "exec.h"

/* A read by the async proxy, at the time of this call: written, arrived, ordered, fenced. Counts as a read by the warp now. */
bool sim_proxy_read(sim_warp *w, const sim_insn *i, int lane, uint32_t at, uint32_t n);
/* Before a write by the async proxy, to any block of the cluster: what lies there must be fenced. Order and flight are
 * sim_shared_fly()'s business. */
bool sim_proxy_write(sim_block *b, sim_warp *w, const sim_insn *i, int lane, uint32_t at, uint32_t n);

/* A read that goes on after its instruction: until the drop, every write to the bytes' words is a defect. The drop counts as a
 * read by the warp at that time. Holds nest. */
void sim_proxy_hold(sim_block *b, uint32_t at, uint32_t n);
void sim_proxy_drop(sim_warp *w, uint32_t at, uint32_t n);
/* The end of a hold that counts as no read: the one at its start is recorded, which precedes all that waits for this end. */
void sim_proxy_let(sim_block *b, uint32_t at, uint32_t n);
/* The drop of a wgmma: a read by the warp group, at the time that group_time[] has. */
void sim_proxy_drop_group(sim_block *b, uint32_t group, uint32_t at, uint32_t n);

/* fence.proxy.async by these lanes. */
void sim_proxy_fence(sim_warp *w, uint32_t lanes);

/* Who stored, as the record of a word's last writer keeps it: 0 the async proxy, 1 + lane a thread through the generic proxy,
 * SIM_ANY_LANE a warp whose lane is not known, then any fence of the warp will do. */
enum { SIM_BY_PROXY = -2, SIM_ANY_LANE = 33 };
static inline uint32_t sim_proxy_author(int lane)
{
    return lane == SIM_BY_PROXY ? 0 : lane < 0 ? SIM_ANY_LANE : (uint32_t)lane + 1;
}
#endif
