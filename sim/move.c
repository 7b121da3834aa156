/* move: packing, selecting, comparing, predicates: instructions that touch predicates or several registers. */
#include "exec.h"
#include "run.h"
#include <math.h>
#include <string.h>
#include <time.h>

sim_step sim_run_nothing(sim_warp *w, const sim_insn *i, uint32_t m)
{
    (void)w, (void)i, (void)m;
    return STEP_NEXT;
}

sim_step sim_run_pack(sim_warp *w, const sim_insn *i, uint32_t m)
{
    uint64_t v[SIM_LANES] = { 0 };
    uint64_t mask = i->sub >= 32 ? SIM_ALL : (1u << i->sub) - 1;
    for (int k = 0; k < i->count; k++) {
        const sim_vec *a = sim_arg(w, i, 1 + k);
        FOR_LANES(l, m) v[l] |= (a->u[l] & mask) << i->sub * k;
    }
    if (i->arg[0] == SIM_NO_ARG)
        return STEP_NEXT;
    sim_vec *d = sim_arg(w, i, 0);
    FOR_LANES(l, m)
    {
        if (i->wide)
            d->q[l] = v[l];
        else
            d->u[l] = (uint32_t)v[l];
    }
    return STEP_NEXT;
}

sim_step sim_run_unpack(sim_warp *w, const sim_insn *i, uint32_t m)
{
    const sim_vec *a = sim_arg(w, i, i->count);
    uint64_t v[SIM_LANES], mask = i->sub >= 32 ? SIM_ALL : (1u << i->sub) - 1;
    FOR_LANES(l, m) v[l] = i->wide ? a->q[l] : a->u[l];
    for (int k = 0; k < i->count; k++) {
        if (i->arg[k] == SIM_NO_ARG)
            continue;
        sim_vec *d = sim_arg(w, i, k);
        FOR_LANES(l, m) d->u[l] = (uint32_t)(v[l] >> i->sub * k & mask);
    }
    return STEP_NEXT;
}

static uint32_t logic(int op, uint32_t a, uint32_t b)
{
    return op == LOGIC_AND ? a & b : op == LOGIC_OR ? a | b : op == LOGIC_XOR ? a ^ b : op == LOGIC_NOT ? ~a : a;
}

/* The comparison of the upper halves of two pairs. */
static uint32_t compare_upper(const sim_insn *i, const sim_vec *a, const sim_vec *b)
{
    sim_vec x, y;
    for (int l = 0; l < SIM_LANES; l++)
        x.u[l] = a->u[l] >> 16, y.u[l] = b->u[l] >> 16;
    return i->fn.cmp(&x, &y);
}

sim_step sim_run_setp(sim_warp *w, const sim_insn *i, uint32_t m)
{
    uint32_t r = i->fn.cmp(sim_arg(w, i, 2), sim_arg(w, i, 3)), c = i->sub == LOGIC_NONE ? 0 : sim_pred(w, i, 4);
    sim_set_pred(w, i, 0, logic(i->sub, r, c), m);
    r = i->count == 2 ? compare_upper(i, sim_arg(w, i, 2), sim_arg(w, i, 3)) : ~r; /* the second predicate */
    sim_set_pred(w, i, 1, logic(i->sub, r, c), m);
    return STEP_NEXT;
}

static uint32_t truth(sim_type t)
{
    return t == T_F32                     ? 0x3F800000u
           : t == T_F16 || t == T_F16X2   ? 0x3C00u
           : t == T_BF16 || t == T_BF16X2 ? 0x3F80u
           : sim_type_bytes(t) == 2       ? 0xFFFFu
                                          : SIM_ALL;
}

sim_step sim_run_set(sim_warp *w, const sim_insn *i, uint32_t m)
{
    uint32_t r = i->fn.cmp(sim_arg(w, i, 1), sim_arg(w, i, 2)), c = i->sub == LOGIC_NONE ? 0 : sim_pred(w, i, 3);
    uint32_t upper = i->count == 2 ? logic(i->sub, compare_upper(i, sim_arg(w, i, 1), sim_arg(w, i, 2)), c) : 0,
             yes = truth((sim_type)i->type);
    r = logic(i->sub, r, c);
    if (i->arg[0] == SIM_NO_ARG)
        return STEP_NEXT;
    sim_vec *d = sim_arg(w, i, 0);
    FOR_LANES(l, m) d->u[l] = (r >> l & 1 ? yes : 0) | (upper >> l & 1 ? yes << 16 : 0);
    return STEP_NEXT;
}

sim_step sim_run_selp(sim_warp *w, const sim_insn *i, uint32_t m)
{
    if (i->arg[0] == SIM_NO_ARG)
        return STEP_NEXT;
    sim_vec *d = sim_arg(w, i, 0);
    const sim_vec *a = sim_arg(w, i, 1), *b = sim_arg(w, i, 2);
    uint32_t p = sim_pred(w, i, 3);
    if (i->wide) {
        FOR_LANES(l, m) d->q[l] = p >> l & 1 ? a->q[l] : b->q[l];
    } else {
        FOR_LANES(l, m) d->u[l] = p >> l & 1 ? a->u[l] : b->u[l];
    }
    return STEP_NEXT;
}

sim_step sim_run_pred_logic(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_set_pred(w, i, 0, logic(i->sub, sim_pred(w, i, 1), i->args > 2 ? sim_pred(w, i, 2) : 0), m);
    return STEP_NEXT;
}

sim_step sim_run_pred_move(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_set_pred(w, i, 0, sim_pred(w, i, 1), m);
    return STEP_NEXT;
}

sim_step sim_run_testp(sim_warp *w, const sim_insn *i, uint32_t m)
{
    const sim_vec *a = sim_arg(w, i, 1);
    uint32_t r = 0;
    FOR_LANES(l, m)
    {
        int c = i->wide ? fpclassify(a->d[l]) : fpclassify(a->f[l]);
        bool t = false;
        switch (i->sub) {
        case TEST_FINITE:
            t = c != FP_INFINITE && c != FP_NAN;
            break;
        case TEST_INFINITE:
            t = c == FP_INFINITE;
            break;
        case TEST_NUMBER:
            t = c != FP_NAN;
            break;
        case TEST_NAN:
            t = c == FP_NAN;
            break;
        case TEST_NORMAL:
            t = c == FP_NORMAL;
            break;
        default:
            t = c == FP_SUBNORMAL;
        }
        r |= (uint32_t)t << l;
    }
    sim_set_pred(w, i, 0, r, m);
    return STEP_NEXT;
}

sim_step sim_run_carry(sim_warp *w, const sim_insn *i, uint32_t m)
{
    const sim_vec *a = sim_arg(w, i, 1), *b = sim_arg(w, i, 2);
    uint32_t in = i->sub & CARRY_IN ? w->carry : 0, out = 0;
    bool minus = i->sub & CARRY_SUB;
    sim_vec *d = i->arg[0] == SIM_NO_ARG ? NULL : sim_arg(w, i, 0);
    FOR_LANES(l, m)
    {
        uint64_t c = in >> l & 1;
        unsigned __int128 x = i->wide ? a->q[l] : a->u[l], y = i->wide ? b->q[l] : b->u[l], r = minus ? x - y - c : x + y + c;
        out |= (uint32_t)(r >> (i->wide ? 64 : 32) & 1) << l;
        if (d && i->wide)
            d->q[l] = (uint64_t)r;
        else if (d)
            d->u[l] = (uint32_t)r;
    }
    if (i->sub & CARRY_OUT)
        w->carry = (w->carry & ~m) | out;
    return STEP_NEXT;
}

/* %clock counts the block's warp instructions; %globaltimer is the host's, in ns; a cache policy is any number. */
sim_step sim_run_clock(sim_warp *w, const sim_insn *i, uint32_t m)
{
    uint64_t v = (uint64_t)w->block->steps;
    if (i->sub == 1) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        v = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    } else if (i->sub == 2)
        v >>= 32;
    else if (i->sub == 3)
        v = 0;
    w->block->cluster->progress++; /* time passing may end a wait */
    if (i->arg[0] == SIM_NO_ARG)
        return STEP_NEXT;
    sim_vec *d = sim_arg(w, i, 0);
    FOR_LANES(l, m)
    {
        if (i->wide)
            d->q[l] = v;
        else
            d->u[l] = (uint32_t)v;
    }
    return STEP_NEXT;
}

sim_step sim_run_isspace(sim_warp *w, const sim_insn *i, uint32_t m)
{
    const sim_vec *a = sim_arg(w, i, 1);
    uint32_t r = 0;
    FOR_LANES(l, m)
    {
        uint64_t x = a->q[l];
        sim_space s = sim_space_of(SP_GENERIC, &x);
        r |= (uint32_t)(s == (sim_space)i->type || (s == SP_SHARED && i->type == SP_CLUSTER)) << l;
    }
    sim_set_pred(w, i, 0, r, m);
    return STEP_NEXT;
}
