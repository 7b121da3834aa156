/* mbarrier: barriers in shared memory that count arrivals and bytes. The 8 bytes in memory only mark the place; the state is
 * kept beside it. Phase p completes when nothing is pending and no byte is awaited; a wait for parity P ends once the phase
 * under way has the other parity. */
#include "async.h"
#include "bulk.h"
#include "run.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 20 }; /* above what the counts hold */

/* The block whose shared memory holds the 8 bytes, and their offset there. NULL: reported. */
static sim_block *place(sim_warp *w, const sim_insn *i, int lane, int arg, uint32_t *at)
{
    uint64_t a = sim_address(w, i, arg, i->flags & F_WIDE, (uint32_t)lane);
    sim_block *o = w->block;
    sim_space s = sim_space_of((sim_space)i->space, &a);
    if (s != SP_SHARED && s != SP_CLUSTER) {
        sim_fault(w, i, lane, SIM_CHECK_BOUNDS, "an mbarrier outside of shared memory");
        return NULL;
    }
    if (s == SP_CLUSTER && !(o = sim_shared_owner(w, i, lane, &a)))
        return NULL;
    uint8_t *p = sim_shared_of(o, w, i, lane, a, 8);
    if (!p)
        return NULL;
    *at = (uint32_t)(p - o->shared);
    return o;
}

static sim_mbarrier *find(sim_warp *w, const sim_insn *i, int lane, sim_block *b, uint32_t at)
{
    for (uint32_t k = 0; k < b->mbarriers; k++) {
        if (b->mbarrier[k].address != at || !b->mbarrier[k].live)
            continue;
        if (b->checked && !sim_shared_read_of(b, w, i, lane, at, 8))
            return NULL; /* against an init without a barrier after it */
        return &b->mbarrier[k];
    }
    sim_fault(w, i, lane, SIM_CHECK_MBARRIER, "no mbarrier was initialised at shared offset %u of block (%u,%u,%u)", at, b->id[0], b->id[1],
              b->id[2]);
    return NULL;
}

sim_mbarrier *sim_mbarrier_at(sim_warp *w, const sim_insn *i, int lane, int arg)
{
    uint32_t at;
    sim_block *o = place(w, i, lane, arg, &at);
    if (o && o != w->block)
        return sim_fault(w, i, lane, SIM_CHECK_BOUNDS,
                         "this can be done to an mbarrier of the own block only, not to one of another block of the cluster"),
               NULL;
    return o ? find(w, i, lane, o, at) : NULL;
}

/* For those that another block may name: an arrival, an announcement. */
static sim_mbarrier *anywhere(sim_warp *w, const sim_insn *i, int lane, int arg, sim_block **o)
{
    uint32_t at;
    return (*o = place(w, i, lane, arg, &at)) ? find(w, i, lane, *o, at) : NULL;
}

void sim_mbarrier_fence(sim_warp *w, uint32_t lanes)
{
    sim_block *b = w->block;
    for (uint32_t k = 0; k < b->mbarriers; k++) {
        sim_mbarrier *m = &b->mbarrier[k];
        if (m->maker == w->index && lanes >> m->maker_lane & 1)
            m->fenced = true;
    }
}

sim_mbarrier *sim_mbarrier_in(sim_warp *w, const sim_insn *i, int lane, sim_block *k, uint64_t address)
{
    sim_mbarrier *m = find(w, i, lane, k, (uint32_t)(address - SIM_SHARED_BASE));
    if (!m || m->fenced || !k->checked)
        return m;
    return sim_fault(w, i, lane, SIM_CHECK_MBARRIER_FENCE,
                     "a bulk copy to the mbarrier at offset %u, which was initialised without a fence: fence.mbarrier_init is missing "
                     "between its initialisation and the barrier after that",
                     m->address) == STEP_FAULT
               ? NULL
               : m;
}

/* ends the phase if nothing is missing any more */
static void end_phase(sim_block *k, sim_mbarrier *b)
{
    if (b->pending || b->tx)
        return;
    b->phase++;
    b->pending = b->expected;
    b->open[b->actor] = b->time++;
    memcpy(b->clock, b->open, k->cluster->most_actors * sizeof *b->clock);
    memset(b->open, 0, k->cluster->most_actors * sizeof *b->open);
    k->cluster->progress++;
}

bool sim_mbarrier_arrive(sim_warp *w, const sim_insn *i, int lane, sim_block *k, sim_mbarrier *b, uint32_t count)
{
    if (count > b->pending) {
        sim_fault(w, i, lane, SIM_CHECK_MBARRIER,
                  "too many arrivals at the mbarrier at shared offset %u: phase %llu expects %u, %u were left, %u more came", b->address,
                  (unsigned long long)b->phase, b->expected, b->pending, count);
        return false;
    }
    sim_clock_release(w, b->open);
    b->pending -= count;
    k->cluster->progress++;
    end_phase(k, b);
    return true;
}

bool sim_mbarrier_tx(sim_warp *w, const sim_insn *i, int lane, sim_block *k, sim_mbarrier *b, int64_t bytes)
{
    b->tx += bytes;
    if (b->tx >= MOST || b->tx <= -MOST) {
        sim_fault(w, i, lane, SIM_CHECK_MBARRIER,
                  "the mbarrier at offset %u would wait for %lld bytes: its count goes to 2^20 - 1 either way", b->address,
                  (long long)b->tx);
        return false;
    }
    k->cluster->progress++;
    end_phase(k, b);
    return true;
}

sim_step sim_run_mbarrier_init(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_block *b = w->block;
    sim_cluster *c = b->cluster;
    FOR_LANES(l, m)
    {
        uint32_t at, count = sim_arg(w, i, 1)->u[l];
        sim_block *o = place(w, i, (int)l, 0, &at);
        if (!o)
            return STEP_FAULT;
        if (o != b)
            return sim_fault(w, i, (int)l, SIM_CHECK_BOUNDS, "an mbarrier of another block of the cluster cannot be initialised");
        if (!count || count >= MOST)
            return sim_fault(w, i, (int)l, SIM_CHECK_MBARRIER, "an mbarrier cannot expect %u arrivals", count);
        if (b->checked && !sim_shared_write(w, i, (int)l, at, 8, NULL))
            return STEP_FAULT;
        if (!b->mbarrier && !(b->mbarrier = calloc(SIM_MBARRIERS, sizeof *b->mbarrier)))
            return sim_fault(w, i, (int)l, SIM_CHECK_HOST_MEMORY, "out of host memory");
        uint32_t k = 0;
        while (k < b->mbarriers && b->mbarrier[k].address != at)
            k++;
        if (k == SIM_MBARRIERS)
            return sim_fault(w, i, (int)l, SIM_CHECK_UNSUPPORTED, "more than %d mbarriers in a block are not simulated", SIM_MBARRIERS);
        sim_mbarrier *x = &b->mbarrier[k];
        if (k < b->mbarriers && x->live)
            return sim_fault(w, i, (int)l, SIM_CHECK_MBARRIER, "the mbarrier at offset %u is initialised already: no mbarrier.inval", at);
        if (k == b->mbarriers) {
            b->mbarriers++;
            x->time = c->epoch, x->actor = c->warps + c->groups + c->planes + k * c->blocks + b->rank;
            if (x->actor >= c->actors)
                c->actors = x->actor + 1;
        }
        *x = (sim_mbarrier){ .address = at,
                             .actor = x->actor,
                             .time = x->time + 1,
                             .begun = x->time + 1,
                             .live = true,
                             .maker = (uint8_t)w->index,
                             .maker_lane = (uint8_t)l,
                             .expected = count,
                             .pending = count };
        memset(b->shared + at, 0xA5, 8);
    }
    return STEP_NEXT;
}

sim_step sim_run_mbarrier_inval(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_block *b = w->block;
    FOR_LANES(l, m)
    {
        sim_mbarrier *x = sim_mbarrier_at(w, i, (int)l, 0);
        if (!x || (b->checked && !sim_shared_write(w, i, (int)l, x->address, 8, NULL)))
            return STEP_FAULT;
        x->live = false;
    }
    return STEP_NEXT;
}

/* Arguments: state, address, count or bytes. */
sim_step sim_run_mbarrier_arrive(sim_warp *w, const sim_insn *i, uint32_t m)
{
    FOR_LANES(l, m)
    {
        sim_block *o;
        sim_mbarrier *b = anywhere(w, i, (int)l, 1, &o);
        if (!b)
            return STEP_FAULT;
        if (o != w->block && i->arg[0] != SIM_NO_ARG)
            return sim_fault(w, i, (int)l, SIM_CHECK_BOUNDS, "an arrival at an mbarrier of another block has no state to return");
        uint32_t n = i->arg[2] == SIM_NO_ARG ? 1 : sim_arg(w, i, 2)->u[l];
        if (i->arg[0] != SIM_NO_ARG)
            sim_arg(w, i, 0)->q[l] = b->phase;
        if (i->flags & F_EXPECT) {
            if (!sim_mbarrier_tx(w, i, (int)l, o, b, n))
                return STEP_FAULT;
            n = 1;
        }
        if (i->sub && n < b->expected)
            b->expected -= n; /* arrive_drop: in later phases too */
        else if (i->sub)
            return sim_fault(w, i, (int)l, SIM_CHECK_MBARRIER, "the mbarrier at offset %u would be left with no arrivals to expect",
                             b->address);
        if (!sim_mbarrier_arrive(w, i, (int)l, o, b, n))
            return STEP_FAULT;
    }
    return STEP_NEXT;
}

/* Arguments: address, bytes. sub: they have arrived. */
sim_step sim_run_mbarrier_tx(sim_warp *w, const sim_insn *i, uint32_t m)
{
    FOR_LANES(l, m)
    {
        sim_block *o;
        sim_mbarrier *b = anywhere(w, i, (int)l, 0, &o);
        uint32_t n = sim_arg(w, i, 1)->u[l];
        if (!b || !sim_mbarrier_tx(w, i, (int)l, o, b, i->sub ? -(int64_t)n : n))
            return STEP_FAULT;
    }
    return STEP_NEXT;
}
