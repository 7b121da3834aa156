/* defined_lanes: undefined values between the lanes of a warp. */
#include "defined.h"
#include "run.h"

void sim_defined_shuffle(sim_warp *w, const sim_insn *i, uint32_t m, const uint32_t *from, uint32_t absent)
{
    uint32_t open = sim_undefined(w, i, 2);
    sim_origin origin = open ? *sim_undefined_origin(w, i, 2) : (sim_origin){ 0 };
    uint64_t bits[SIM_LANES];
    FOR_LANES(l, m) bits[l] = absent >> l & 1 ? UINT64_MAX : sim_undefined_in(w, i, 2, from[l]);
    if (absent)
        origin = (sim_origin){ i, from[__builtin_ctz(absent)], ORIGIN_LANE };
    if (i->arg[0] != SIM_NO_ARG)
        sim_undefined_put(w, i, 0, bits, m, m, &origin);
    sim_undefined_set(w, i, 1, 0, m, NULL);
}

/* A lane that is certain decides an any or an all, two that differ decide a uni. */
void sim_defined_vote(sim_warp *w, const sim_insn *i, uint32_t group)
{
    uint32_t open = sim_undefined(w, i, 1) & group, p = sim_pred(w, i, 1) & group & ~open, not = group & ~p & ~open;
    sim_origin origin = *sim_undefined_origin(w, i, 1);
    uint64_t bits[SIM_LANES];
    if (i->sub == VOTE_BALLOT) {
        FOR_LANES(l, group) bits[l] = open;
        sim_undefined_put(w, i, 0, bits, group, group, &origin);
        return;
    }
    bool decided = i->sub == VOTE_ALL ? not != 0 : i->sub == VOTE_ANY ? p != 0 : p && not ;
    sim_undefined_set(w, i, 0, open && !decided ? group : 0, group, &origin);
}

void sim_defined_match(sim_warp *w, const sim_insn *i, uint32_t group)
{
    const sim_vec *a = sim_arg(w, i, 2);
    uint32_t open = sim_undefined(w, i, 2) & group, sure = group & ~open, first = sure ? (uint32_t)__builtin_ctz(sure) : 0;
    sim_origin origin = *sim_undefined_origin(w, i, 2);
    uint64_t bits[SIM_LANES];
    bool differ = false;
    FOR_LANES(l, sure) differ |= i->wide ? a->q[l] != a->q[first] : a->u[l] != a->u[first];
    uint32_t all = open && !differ ? group : 0;
    FOR_LANES(l, group) bits[l] = i->sub ? all : open >> l & 1 ? group & ~(1u << l) : open; /* a lane matches itself */
    if (i->arg[0] != SIM_NO_ARG)
        sim_undefined_put(w, i, 0, bits, group, group, &origin);
    sim_undefined_set(w, i, 1, all, group, &origin);
}

void sim_defined_redux(sim_warp *w, const sim_insn *i, uint32_t group)
{
    const sim_vec *a = sim_arg(w, i, 1);
    uint32_t open = 0, decided = 0;
    uint64_t bits[SIM_LANES];
    sim_origin origin = *sim_undefined_origin(w, i, 1);
    bool bitwise = i->sub == ATOM_AND || i->sub == ATOM_OR || i->sub == ATOM_XOR;
    FOR_LANES(l, group)
    {
        uint32_t u = (uint32_t)sim_undefined_in(w, i, 1, l);
        open |= u;
        decided |= i->sub == ATOM_AND ? ~a->u[l] & ~u : i->sub == ATOM_OR ? a->u[l] & ~u : 0;
    }
    FOR_LANES(l, group) bits[l] = bitwise ? open & ~decided : open ? SIM_ALL : 0;
    if (i->arg[0] != SIM_NO_ARG)
        sim_undefined_put(w, i, 0, bits, group, group, &origin);
}

void sim_defined_movmatrix(sim_warp *w, const sim_insn *i)
{
    sim_origin origin = *sim_undefined_origin(w, i, 1);
    uint64_t bits[SIM_LANES];
    for (uint32_t l = 0; l < SIM_LANES; l++) {
        uint32_t from = 8 * (l & 3) + (l >> 3), shift = 16 * (l >> 2 & 1);
        bits[l] = (sim_undefined_in(w, i, 1, from) >> shift & 0xFFFF) | (sim_undefined_in(w, i, 1, from + 4) >> shift & 0xFFFF) << 16;
    }
    sim_undefined_put(w, i, 0, bits, SIM_ALL, SIM_ALL, &origin);
}
