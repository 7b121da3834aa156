/* exchange: lanes of a warp that look at each other. Every .sync instruction names its lanes, and works for each group of them by
 * itself: see members.h. */
#include "defined.h"
#include "members.h"
#include "run.h"

/* What a lane reads that its mask does not name, or that is not here, is undefined. */
sim_step sim_run_shuffle(sim_warp *w, const sim_insn *i, uint32_t m)
{
    const sim_vec *a = sim_arg(w, i, 2), *b = sim_arg(w, i, 3), *c = sim_arg(w, i, 4);
    uint32_t ok = 0, absent = 0, r[SIM_LANES], source[SIM_LANES];
    sim_members s;
    if (!sim_members_of(w, i, 5, m, &s))
        return STEP_FAULT;
    FOR_LANES(l, m)
    {
        uint32_t bits = b->u[l] & 31, clamp = c->u[l] & 31, seg = c->u[l] >> 8 & 31, top = (l & seg) | (clamp & ~seg), from;
        bool p = false;
        switch (i->sub) {
        case SHFL_UP:
            p = (int)(l - bits) >= (int)top, from = l - bits;
            break; /* clamp is the first lane of the segment here */
        case SHFL_DOWN:
            p = l + bits <= top, from = l + bits;
            break;
        case SHFL_BFLY:
            p = (l ^ bits) <= top, from = l ^ bits;
            break;
        default:
            from = (l & seg) | (bits & ~seg), p = from <= top;
        }
        if (!p)
            from = l;
        if (!(s.group[s.of[l]] >> from & 1))
            absent |= 1u << l;
        ok |= (uint32_t)p << l;
        r[l] = absent >> l & 1 ? SIM_ALL : a->u[from];
        source[l] = from;
    }
    if (w->block->checked && (absent || w->shadow.slots))
        sim_defined_shuffle(w, i, m, source, absent);
    if (i->arg[0] != SIM_NO_ARG) {
        sim_vec *d = sim_arg(w, i, 0);
        FOR_LANES(l, m) d->u[l] = r[l];
    }
    sim_set_pred(w, i, 1, ok, m);
    return STEP_NEXT;
}

static void spread(sim_warp *w, const sim_insn *i, uint32_t v, uint32_t m)
{
    if (i->arg[0] == SIM_NO_ARG)
        return;
    sim_vec *d = sim_arg(w, i, 0);
    FOR_LANES(l, m) d->u[l] = v;
}

sim_step sim_run_vote(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_members s;
    if (!sim_members_of(w, i, 2, m, &s))
        return STEP_FAULT;
    for (uint32_t k = 0; k < s.n; k++) {
        uint32_t g = s.group[k], p = sim_pred(w, i, 1) & g;
        if (w->shadow.slots)
            sim_defined_vote(w, i, g);
        if (i->sub == VOTE_BALLOT)
            spread(w, i, p, g);
        else
            sim_set_pred(w, i, 0, (i->sub == VOTE_ALL ? p == g : i->sub == VOTE_ANY ? p != 0 : p == g || !p) ? SIM_ALL : 0, g);
    }
    return STEP_NEXT;
}

static void match(sim_warp *w, const sim_insn *i, uint32_t m)
{
    const sim_vec *a = sim_arg(w, i, 2);
    uint32_t r[SIM_LANES], same = m;
    if (w->shadow.slots)
        sim_defined_match(w, i, m);
    FOR_LANES(l, m)
    {
        r[l] = 0;
        FOR_LANES(k, m) r[l] |= (uint32_t)(i->wide ? a->q[k] == a->q[l] : a->u[k] == a->u[l]) << k;
        same &= r[l];
    }
    if (i->arg[0] != SIM_NO_ARG) {
        sim_vec *d = sim_arg(w, i, 0);
        FOR_LANES(l, m) d->u[l] = i->sub ? same == m ? m : 0 : r[l];
    }
    sim_set_pred(w, i, 1, same == m ? SIM_ALL : 0, m);
}

sim_step sim_run_match(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_members s;
    if (!sim_members_of(w, i, 3, m, &s))
        return STEP_FAULT;
    for (uint32_t k = 0; k < s.n; k++)
        match(w, i, s.group[k]);
    return STEP_NEXT;
}

sim_step sim_run_active(sim_warp *w, const sim_insn *i, uint32_t m)
{
    spread(w, i, m, m);
    return STEP_NEXT;
}

static uint32_t reduce(const sim_insn *i, const sim_vec *a, uint32_t m)
{
    uint32_t r = a->u[__builtin_ctz(m)];
    bool sign = i->type == T_S32;
    FOR_LANES(l, m & (m - 1))
    {
        uint32_t v = a->u[l];
        bool less = sign ? (int32_t)v < (int32_t)r : v < r;
        switch (i->sub) {
        case ATOM_ADD:
            r += v;
            break;
        case ATOM_MIN:
            r = less ? v : r;
            break;
        case ATOM_MAX:
            r = less ? r : v;
            break;
        case ATOM_AND:
            r &= v;
            break;
        case ATOM_OR:
            r |= v;
            break;
        default:
            r ^= v;
        }
    }
    return r;
}

sim_step sim_run_redux(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_members s;
    if (!sim_members_of(w, i, 2, m, &s))
        return STEP_FAULT;
    for (uint32_t k = 0; k < s.n; k++) {
        if (w->shadow.slots)
            sim_defined_redux(w, i, s.group[k]);
        spread(w, i, reduce(i, sim_arg(w, i, 1), s.group[k]), s.group[k]);
    }
    return STEP_NEXT;
}

sim_step sim_run_elect(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_members s;
    if (!sim_members_of(w, i, 2, m, &s))
        return STEP_FAULT;
    for (uint32_t k = 0; k < s.n; k++) {
        uint32_t leader = (uint32_t)__builtin_ctz(s.group[k]);
        spread(w, i, leader, s.group[k]);
        sim_set_pred(w, i, 1, 1u << leader, s.group[k]);
    }
    return STEP_NEXT;
}

sim_step sim_run_warp_barrier(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_members s;
    if (!sim_members_of(w, i, 0, m, &s))
        return STEP_FAULT;
    sim_clock_tick(w);
    return STEP_NEXT;
}
