/* members: groups of lanes by their member masks. */
#include "members.h"
#include <string.h>

static bool agree(sim_warp *w, const sim_insn *i, uint32_t m, const sim_vec *v, uint32_t l)
{
    uint32_t mask = v->u[l], missing = mask & w->lanes & ~w->left & ~m;
    if (!(mask >> l & 1))
        return sim_fault(w, i, (int)l, SIM_CHECK_DIVERGENCE, "a lane runs a .sync instruction whose member mask 0x%08x leaves it out",
                         mask),
               false;
    if (missing)
        return sim_fault(w, i, (int)l, SIM_CHECK_DIVERGENCE,
                         "divergence at a .sync instruction: the member mask is 0x%08x, but only lanes 0x%08x are here; lane %d is missing",
                         mask, m, __builtin_ctz(missing)),
               false;
    FOR_LANES(k, mask & m)
    if (v->u[k] != mask)
        return sim_fault(w, i, (int)l, SIM_CHECK_DIVERGENCE,
                         "lanes of a .sync instruction disagree: the member mask 0x%08x of lane %u names lane %u, whose mask is 0x%08x",
                         mask, l, k, v->u[k]),
               false;
    return true;
}

bool sim_members_of(sim_warp *w, const sim_insn *i, int arg, uint32_t m, sim_members *to)
{
    const sim_vec *v = sim_arg(w, i, arg);
    uint32_t rest = m;
    for (to->n = 0; rest; to->n++) {
        uint32_t first = (uint32_t)__builtin_ctz(rest), group = 0;
        FOR_LANES(l, rest) group |= (uint32_t)(v->u[l] == v->u[first]) << l;
        /* the lanes of a group have one mask: with the first, all agree, if it leaves none of them out */
        uint32_t out = group & ~v->u[first];
        if (!agree(w, i, m, v, out ? (uint32_t)__builtin_ctz(out) : first))
            return false;
        FOR_LANES(l, group) to->of[l] = (uint8_t)to->n;
        to->group[to->n] = group;
        rest &= ~group;
    }
    return true;
}
