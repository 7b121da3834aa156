/* cluster_barrier: where the blocks of a cluster meet: barrier.cluster, and addresses of each other's shared memory. */
#include "exec.h"
#include "holds.h"
#include "run.h"
#include <stdio.h>
#include <string.h>

void sim_cluster_barrier_settle(sim_cluster *c)
{
    bool any = false;
    for (uint32_t k = 0; k < c->warps; k++) {
        const sim_warp *w = &c->block[k / c->block[0]->warps]->warp[k % c->block[0]->warps];
        if ((w->met | w->left) != w->lanes)
            return;
        any |= w->met != 0;
    }
    if (!any)
        return;
    c->phase++, c->progress++;
    memcpy(c->clock, c->open, c->most_actors * sizeof *c->clock);
    memset(c->open, 0, c->most_actors * sizeof *c->open);
    for (uint32_t k = 0; k < c->warps; k++) {
        sim_warp *w = &c->block[k / c->block[0]->warps]->warp[k % c->block[0]->warps];
        w->met = 0;
        if (w->state != W_BARRIER || w->barrier >= 0)
            continue;
        sim_clock_acquire(w, c->clock);
        w->state = W_READY, w->joined = 0;
    }
}

static bool whole(sim_warp *w, const sim_insn *i, uint32_t m)
{
    uint32_t here = w->lanes & ~w->left;
    if (m == here)
        return true;
    sim_fault(w, i, -1, SIM_CHECK_DIVERGENCE, "divergence at the cluster's barrier: only lanes 0x%08x of 0x%08x came", m, here);
    return false;
}

sim_step sim_run_cluster_arrive(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_cluster *c = w->block->cluster;
    if (!whole(w, i, m))
        return STEP_FAULT;
    if (w->joined)
        return sim_fault(w, i, -1, SIM_CHECK_CLUSTER_BARRIER, "warp %u comes to the cluster's barrier again without having waited",
                         w->index);
    w->met = m, w->joined = c->phase + 1;
    if (i->sub == ARRIVE_RELEASE)
        sim_clock_release(w, c->open);
    else
        for (uint32_t x = 0; x < c->actors; x++)
            if (w->fenced[x] > c->open[x])
                c->open[x] = w->fenced[x];
    w->block->counts.c.barriers++;
    c->progress++;
    sim_cluster_barrier_settle(c);
    return STEP_NEXT;
}

sim_step sim_run_cluster_wait(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_cluster *c = w->block->cluster;
    if (!whole(w, i, m))
        return STEP_FAULT;
    if (!w->joined)
        return sim_fault(w, i, -1, SIM_CHECK_CLUSTER_BARRIER, "warp %u waits at the cluster's barrier without having arrived", w->index);
    if (c->phase < w->joined) {
        w->barrier = -1, w->waiting_at = w->pc;
        return STEP_WAIT;
    }
    sim_clock_acquire(w, c->clock); /* no later phase can have completed without this warp */
    w->joined = 0;
    return STEP_NEXT;
}

/* Arguments: result, address, rank. */
sim_step sim_run_map_address(sim_warp *w, const sim_insn *i, uint32_t m)
{
    const sim_cluster *c = w->block->cluster;
    const sim_vec *a = sim_arg(w, i, 1), *r = sim_arg(w, i, 2);
    sim_vec *d = sim_arg(w, i, 0);
    FOR_LANES(l, m)
    {
        uint64_t at = i->wide ? a->q[l] : a->u[l], in = at;
        uint32_t rank = r->u[l];
        if (rank >= c->blocks)
            return sim_fault(w, i, (int)l, SIM_CHECK_OPERAND, "mapa: there is no block of rank %u in a cluster of %u", rank, c->blocks);
        sim_space s = i->space == SP_CLUSTER ? SP_CLUSTER : sim_space_of(SP_GENERIC, &in);
        if (s != SP_SHARED && s != SP_CLUSTER)
            return sim_fault(w, i, (int)l, SIM_CHECK_BOUNDS, "mapa: the address is outside of shared memory");
        at = (at & ~((uint64_t)SIM_RANK_BITS << SIM_RANK_SHIFT)) | (uint64_t)(rank + 1) << SIM_RANK_SHIFT;
        if (i->wide)
            d->q[l] = at;
        else
            d->u[l] = (uint32_t)at;
    }
    return STEP_NEXT;
}

sim_step sim_run_rank_of(sim_warp *w, const sim_insn *i, uint32_t m)
{
    const sim_vec *a = sim_arg(w, i, 1);
    sim_vec *d = sim_arg(w, i, 0);
    FOR_LANES(l, m)
    {
        uint64_t at = i->wide ? a->q[l] : a->u[l];
        uint32_t rank = (uint32_t)(at >> SIM_RANK_SHIFT) & SIM_RANK_BITS;
        d->u[l] = rank ? rank - 1 : w->block->rank;
    }
    return STEP_NEXT;
}

bool sim_cluster_barrier_end(sim_block *b)
{
    const sim_cluster *c = b->cluster;
    sim_holds(b->warps > 0);
    for (uint32_t x = 0; b->visit && x < c->warps; x++) {
        uint32_t known = 0;
        for (uint32_t k = 0; k < b->warps; k++)
            if (b->warp[k].clock[x] > known)
                known = b->warp[k].clock[x];
        if (b->visit[x].time <= known)
            continue;
        sim_warp *w = &c->block[x / b->warps]->warp[x % b->warps];
        if (sim_fault(w, b->visit[x].insn, -1, SIM_CHECK_CLUSTER_EXIT,
                      "block (%u,%u,%u) ends, but no barrier orders this access to its shared memory before that", b->id[0], b->id[1],
                      b->id[2]) == STEP_FAULT)
            return false;
    }
    return true;
}
