/* grid_order: what orders the accesses of a launch's blocks to global memory. A block publishes what it knows by a release: a fence of gpu
 * scope and a strong write after it, or a write with .release. Another block takes that over by an acquire: a strong read that
 * meets the value, or a later one of atomic operations on it, and a fence after the read, or a read with .acquire. Strong are atomics and
 * volatile, relaxed, acquire and release accesses. Inside a block, and a cluster, barriers hand on what was published and taken over.
 *
 * A launch is followed whose program has strong accesses to global memory. Then every byte of global memory that the launch touches has
 * its last writer and its last reader, and a plain access that nothing orders with them, or a strong write after a plain one, is a defect.
 *
 * The clocks of exec.h hold four numbers more for each warp of the cluster (planes): up to which of its times a fence has published it, and
 * how many acquisitions of it are seen, are fenced, and are fenced and published by a later fence. So whatever hands on clocks hands on
 * these. An acquisition is a vector of times of all warps of the launch. */
#ifndef SIM_GRID_ORDER_H
#define SIM_GRID_ORDER_H
#include "exec.h"

bool sim_order_open(sim_launch *l); /* at the start of a launch: l->order, NULL where nothing is to be followed. false: out of memory */
void sim_order_close(sim_launch *l);
bool sim_order_prepare(sim_cluster *c); /* of a followed launch. false: out of memory */
void sim_order_start(sim_cluster *c);   /* before each cluster's warps start */
void sim_order_free(sim_cluster *c);

/* A plain access to global memory, in bounds. All return false when they have made a report. A write is called, and its effect made,
 * between lock and unlock: two may write the same value. */
bool sim_order_read(sim_warp *w, const sim_insn *i, int lane, sim_alloc *a, uint64_t address, uint32_t size);
bool sim_order_write(sim_warp *w, const sim_insn *i, int lane, sim_alloc *a, uint64_t address, uint32_t size, const void *value);
/* Plain reads of 1, 2, 4, 8 or 16 aligned bytes by the lanes in m, all of one allocation. false: sim_order_read() of each is to say why. */
bool sim_order_read_lanes(sim_warp *w, const sim_insn *i, uint32_t m, const sim_alloc *a, const uint64_t *address, uint32_t size);
/* The same of a read by the async proxy, which leaves no trace: when it ends is known to those alone that wait for it. */
bool sim_order_fetch(sim_warp *w, const sim_insn *i, int lane, sim_alloc *a, uint64_t address, uint32_t size);

/* A strong access that the others of the launch may meet: between lock and unlock, its effect and the calls that it needs. */
void sim_order_lock(sim_warp *w);
void sim_order_unlock(sim_warp *w);
bool sim_order_acquire(sim_warp *w, const sim_insn *i, uint64_t address);
bool sim_order_release(sim_warp *w, const sim_insn *i, uint64_t address, bool atomic);
/* A strong write, which others may meet by a strong access in any order; with a plain write something has to order it. */
bool sim_order_mark(sim_warp *w, const sim_insn *i, sim_alloc *a, uint64_t address, uint32_t size);
void sim_order_fence(sim_warp *w, const sim_insn *i);

static inline bool sim_order_strong(const sim_warp *w, const sim_insn *i)
{
    return w->block->launch->order && i->order & ORDER_GRID;
}
#endif
