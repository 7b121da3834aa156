/* exchange: lanes of a warp that look at each other. Every .sync instruction names its lanes: all of them must be here. */
#include "exec.h"
#include "run.h"
#include <stdio.h>

/* The common member mask of the active lanes; 0: reported. */
static uint32_t members(sim_warp *w, const sim_insn *i, int n, uint32_t m)
{
    const sim_vec *v = sim_arg(w, i, n);
    FOR_LANES(l, m) {
        uint32_t mask = v->u[l];
        if (!(mask >> l & 1)) {
            sim_fault(w, i, (int)l, SIM_CHECK_DIVERGENCE, "a lane runs a .sync instruction whose member mask 0x%08x leaves it out", mask);
            return 0;
        }
        uint32_t missing = mask & w->lanes & ~w->left & ~m;
        if (missing) {
            sim_fault(w, i, (int)l, SIM_CHECK_DIVERGENCE,
                      "divergence at a .sync instruction: the member mask is 0x%08x, but only lanes 0x%08x are here; lane %d is missing", mask, m, __builtin_ctz(missing));
            return 0;
        }
    }
    return m;
}

sim_step sim_run_shuffle(sim_warp *w, const sim_insn *i, uint32_t m)
{
    const sim_vec *a = sim_arg(w, i, 2), *b = sim_arg(w, i, 3), *c = sim_arg(w, i, 4);
    uint32_t ok = 0, r[SIM_LANES];
    if (!members(w, i, 5, m)) return STEP_FAULT;
    FOR_LANES(l, m) {
        uint32_t bits = b->u[l] & 31, clamp = c->u[l] & 31, seg = c->u[l] >> 8 & 31, top = (l & seg) | (clamp & ~seg), from = l;
        bool p = false;
        switch (i->sub) {
        case SHFL_UP: p = (int)(l - bits) >= (int)top, from = l - bits; break; /* clamp is the first lane of the segment here */
        case SHFL_DOWN: p = l + bits <= top, from = l + bits; break;
        case SHFL_BFLY: p = (l ^ bits) <= top, from = l ^ bits; break;
        default: from = (l & seg) | (bits & ~seg), p = from <= top;
        }
        if (!p) from = l;
        if (!(m >> from & 1))
            return sim_fault(w, i, (int)l, SIM_CHECK_DIVERGENCE, "a shuffle reads lane %u, which does not take part (lanes 0x%08x do)", from, m);
        ok |= (uint32_t)p << l;
        r[l] = a->u[from];
    }
    if (i->arg[0] != SIM_NO_ARG) {
        sim_vec *d = sim_arg(w, i, 0);
        FOR_LANES(l, m) d->u[l] = r[l];
    }
    sim_set_pred(w, i, 1, ok, m);
    return STEP_NEXT;
}

static void spread(sim_warp *w, const sim_insn *i, uint32_t v, uint32_t m)
{
    if (i->arg[0] == SIM_NO_ARG) return;
    sim_vec *d = sim_arg(w, i, 0);
    FOR_LANES(l, m) d->u[l] = v;
}

sim_step sim_run_vote(sim_warp *w, const sim_insn *i, uint32_t m)
{
    uint32_t p = sim_pred(w, i, 1) & m;
    if (!members(w, i, 2, m)) return STEP_FAULT;
    if (i->sub == VOTE_BALLOT) spread(w, i, p, m);
    else sim_set_pred(w, i, 0, (i->sub == VOTE_ALL ? p == m : i->sub == VOTE_ANY ? p != 0 : p == m || !p) ? SIM_ALL : 0, m);
    return STEP_NEXT;
}

sim_step sim_run_match(sim_warp *w, const sim_insn *i, uint32_t m)
{
    const sim_vec *a = sim_arg(w, i, 2);
    uint32_t r[SIM_LANES], same = m;
    if (!members(w, i, 3, m)) return STEP_FAULT;
    FOR_LANES(l, m) {
        r[l] = 0;
        FOR_LANES(k, m) r[l] |= (uint32_t)(i->wide ? a->q[k] == a->q[l] : a->u[k] == a->u[l]) << k;
        same &= r[l];
    }
    if (i->arg[0] != SIM_NO_ARG) {
        sim_vec *d = sim_arg(w, i, 0);
        FOR_LANES(l, m) d->u[l] = i->sub ? same == m ? m : 0 : r[l];
    }
    sim_set_pred(w, i, 1, same == m ? SIM_ALL : 0, m);
    return STEP_NEXT;
}

sim_step sim_run_active(sim_warp *w, const sim_insn *i, uint32_t m)
{
    spread(w, i, m, m);
    return STEP_NEXT;
}

sim_step sim_run_redux(sim_warp *w, const sim_insn *i, uint32_t m)
{
    const sim_vec *a = sim_arg(w, i, 1);
    if (!members(w, i, 2, m)) return STEP_FAULT;
    uint32_t r = a->u[__builtin_ctz(m)];
    bool sign = i->type == T_S32;
    FOR_LANES(l, m & (m - 1)) {
        uint32_t v = a->u[l];
        bool less = sign ? (int32_t)v < (int32_t)r : v < r;
        switch (i->sub) {
        case ATOM_ADD: r += v; break;
        case ATOM_MIN: r = less ? v : r; break;
        case ATOM_MAX: r = less ? r : v; break;
        case ATOM_AND: r &= v; break;
        case ATOM_OR: r |= v; break;
        default: r ^= v;
        }
    }
    spread(w, i, r, m);
    return STEP_NEXT;
}

sim_step sim_run_elect(sim_warp *w, const sim_insn *i, uint32_t m)
{
    if (!members(w, i, 2, m)) return STEP_FAULT;
    uint32_t leader = (uint32_t)__builtin_ctz(m);
    spread(w, i, leader, m);
    sim_set_pred(w, i, 1, 1u << leader, m);
    return STEP_NEXT;
}

sim_step sim_run_warp_barrier(sim_warp *w, const sim_insn *i, uint32_t m)
{
    return members(w, i, 0, m) ? STEP_NEXT : STEP_FAULT;
}
