/* barrier: bar.sync, bar.arrive, bar.red and fences. A warp counts for 32 threads, and comes as a whole. */
#include "async.h"
#include "defined.h"
#include "grid_order.h"
#include "proxy.h"
#include "run.h"
#include <string.h>

static void reduce(sim_warp *w, const sim_barrier *b)
{
    const sim_insn *i = &w->block->program->code[w->waiting_at];
    if (i->sub < BAR_AND || i->arg[0] == SIM_NO_ARG)
        return;
    uint32_t m = w->lanes & ~w->left;
    bool vague = b->vague && (i->sub == BAR_POPC || (i->sub == BAR_AND ? b->all : !b->any));
    if (vague || w->shadow.slots)
        sim_undefined_fill(w, i, 0, vague ? m : 0, m, &b->from);
    if (i->sub == BAR_POPC) {
        sim_vec *d = sim_arg(w, i, 0);
        FOR_LANES(l, m) d->u[l] = b->sum;
    } else {
        sim_set_pred(w, i, 0, (i->sub == BAR_AND ? b->all : b->any) ? SIM_ALL : 0, m);
    }
}

sim_step sim_run_barrier(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_block *k = w->block;
    int base = i->sub >= BAR_AND ? 1 : 0;
    uint32_t first = (uint32_t)__builtin_ctz(m), id = sim_arg(w, i, base)->u[first], count = k->warps * 32, here = w->lanes & ~w->left;
    if (m != here)
        return sim_fault(w, i, -1, SIM_CHECK_DIVERGENCE, "divergence at a barrier: only lanes 0x%08x of 0x%08x came", m, here);
    if (i->arg[base + 1] != SIM_NO_ARG)
        count = sim_arg(w, i, base + 1)->u[first];
    FOR_LANES(l, m)
    if (sim_arg(w, i, base)->u[l] != id)
        return sim_fault(w, i, (int)l, SIM_CHECK_BARRIER, "lanes of one warp name different barriers: %u and %u", id,
                         sim_arg(w, i, base)->u[l]);
    if (id >= SIM_BARRIERS)
        return sim_fault(w, i, -1, SIM_CHECK_BARRIER, "there is no barrier %u", id);
    if (!count || count & 31 || count > k->warps * 32)
        return sim_fault(w, i, -1, SIM_CHECK_BARRIER, "barrier %u waits for %u threads: not a multiple of 32, or more than the block's %u",
                         id, count, k->warps * 32);
    sim_barrier *b = &k->barrier[id];
    uint32_t bit = 1u << w->index;
    if (!b->seen) {
        memset(b->clock, 0, k->cluster->actors * sizeof *b->clock);
        b->count = count, b->arrived = 0, b->sleepers = 0, b->line = i->line, b->all = 1, b->any = b->sum = 0, b->vague = false;
    }
    if (b->count != count)
        return sim_fault(w, i, -1, SIM_CHECK_BARRIER, "barrier %u is asked to wait for %u threads, but for %u at PTX line %u", id, count,
                         b->count, b->line);
    if (b->seen & bit)
        return sim_fault(w, i, -1, SIM_CHECK_BARRIER, "warp %u comes to barrier %u twice before it completes", w->index, id);
    k->counts.c.barriers++;
    if (base) {
        uint32_t open = w->shadow.slots ? sim_undefined(w, i, 3) & m : 0, p = sim_pred(w, i, 3) & m & ~open;
        if (open && !b->vague)
            b->vague = true, b->from = *sim_undefined_origin(w, i, 3);
        b->all &= (p | open) == m, b->any |= p != 0, b->sum += (uint32_t)__builtin_popcount(p);
    }
    b->seen |= bit;
    b->arrived += 32;
    sim_clock_release(w, b->clock);
    w->waiting_at = w->pc;
    if (i->sub != BAR_ARRIVE)
        b->sleepers |= bit, w->barrier = (int)id;
    k->cluster->progress++;
    if (b->arrived < count)
        return i->sub == BAR_ARRIVE ? STEP_NEXT : STEP_WAIT;
    FOR_LANES(x, b->sleepers)
    {
        sim_warp *s = &k->warp[x];
        sim_clock_acquire(s, b->clock);
        reduce(s, b);
        if (s != w)
            s->state = W_READY;
    }
    b->seen = b->sleepers = 0;
    return STEP_NEXT;
}

/* Memory here is always in order; remembered are the fence between the proxies, and what a relaxed arrival hands on. */
sim_step sim_run_fence(sim_warp *w, const sim_insn *i, uint32_t m)
{
    if (i->sub == FENCE_ASYNC)
        sim_proxy_fence(w, m);
    if (i->sub == FENCE_ASYNC || i->sub == FENCE_INIT)
        sim_mbarrier_fence(w, m);
    if ((i->sub == FENCE_MEMORY || i->sub == FENCE_INIT) && w->block->cluster->blocks > 1)
        sim_clock_release(w, w->fenced);
    if (sim_order_strong(w, i))
        sim_order_fence(w, i);
    return STEP_NEXT;
}
