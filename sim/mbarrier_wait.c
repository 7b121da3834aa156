/* mbarrier_wait: a warp tests whether the phase that it waits for is complete; copies that are late may come then. */
#include "async.h"
#include "bulk.h"
#include "run.h"

enum { PATIENCE = 64 }; /* tests in vain */

/* Whether the phase that the lane waits for is complete. */
static bool complete(const sim_warp *w, const sim_insn *i, uint32_t l, const sim_mbarrier *b)
{
    const sim_vec *v = sim_arg(w, i, 2);
    return i->flags & F_PARITY ? (b->phase & 1) != (v->u[l] & 1) : b->phase != v->q[l];
}

/* A wait by parity ends on the phase that it means only where the warp knew of the one before. */
static bool passes_over(sim_warp *w, const sim_insn *i, uint32_t l, const sim_mbarrier *b)
{
    uint32_t known = w->clock[b->actor] < b->begun ? b->begun : w->clock[b->actor] + 1; /* the first phase that it knows no end of */
    if (!(i->flags & F_PARITY) || b->time < known + 2)
        return false;
    return sim_fault(
               w, i, (int)l, SIM_CHECK_MBARRIER_PARITY,
               "a wait for parity %u of the mbarrier at shared offset %u tells of %u phases at once: had the first of them not ended, "
               "it would have been over too early",
               sim_arg(w, i, 2)->u[l] & 1, b->address, b->time - known) == STEP_FAULT;
}

/* Arguments: predicate, address, state or parity. */
sim_step sim_run_mbarrier_test(sim_warp *w, const sim_insn *i, uint32_t m)
{
    uint32_t done = 0;
    const sim_mbarrier *waits = NULL;
    FOR_LANES(l, m)
    {
        sim_mbarrier *b = sim_mbarrier_at(w, i, (int)l, 1);
        if (!b || !sim_async_arrive(w->block, b))
            return STEP_FAULT;
        bool ok = complete(w, i, l, b);
        /* bulk copies that are late come when no warp can go on, or when this warp alone has asked often enough */
        if (!ok && (w->block->cluster->stuck || (w->vain > PATIENCE && !b->pending))) {
            if (!sim_bulk_land(w->block, b))
                return STEP_FAULT;
            ok = complete(w, i, l, b);
        }
        done |= (uint32_t)ok << l;
        if (!ok)
            waits = b;
        else if (w->block->checked && passes_over(w, i, l, b))
            return STEP_FAULT;
        else
            sim_clock_acquire(w, b->clock), b->waited = b->phase;
    }
    w->vain = waits ? w->vain + 1 : 0, w->waits = waits;
    sim_set_pred(w, i, 0, done, m);
    return done == m ? STEP_NEXT : STEP_YIELD;
}
