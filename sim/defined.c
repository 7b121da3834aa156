/* defined: how undefined registers move through instructions that compute registers from registers, and what may not be undefined. */
#include "defined.h"
#include "holds.h"
#include "run.h"
#include <string.h>

/* ---- the rules: operands of the lanes `any` have undefined bits, which became so at `from` ---- */

typedef struct step {
    sim_warp *w;
    const sim_insn *i;
    uint32_t m, any;
    const sim_origin *from;
} step;

static void propagate(const step *s)
{
    for (int a = 0; a < s->i->defs; a++)
        sim_undefined_fill(s->w, s->i, a, s->any, s->m, s->from);
}

static void select_one(const step *s)
{
    sim_warp *w = s->w;
    const sim_insn *i = s->i;
    const sim_vec *a = sim_arg(w, i, 1), *b = sim_arg(w, i, 2);
    uint32_t p = sim_pred(w, i, 3), open = sim_undefined(w, i, 3);
    uint64_t bits[SIM_LANES];
    if (i->arg[0] == SIM_NO_ARG)
        return;
    FOR_LANES(l, s->any)
    {
        uint64_t x = sim_undefined_in(w, i, 1, l), y = sim_undefined_in(w, i, 2, l);
        if (open >> l & 1)
            bits[l] = x | y | (i->wide ? a->q[l] ^ b->q[l] : a->u[l] ^ b->u[l]); /* either side: equal ones are defined */
        else
            bits[l] = p >> l & 1 ? x : y;
    }
    sim_undefined_put(w, i, 0, bits, s->any, s->m, s->from);
}

/* Each bit of the result is a function of a bit of each of the first `sub` operands: it is undefined if turning over undefined bits, of
 * some of the operands, changes it. */
static void bit_by_bit(const step *s)
{
    sim_warp *w = s->w;
    const sim_insn *i = s->i;
    int n = i->args - 1, open[4], opens = 0;
    sim_vec in[4], base, r;
    const sim_vec *x[4];
    uint64_t bits[SIM_LANES] = { 0 };
    uint32_t deciding = 0;
    bool wide[4] = { false };
    if (i->arg[0] == SIM_NO_ARG)
        return;
    for (int k = 0; k < n && k < 4; k++) {
        wide[k] = i->slot[k + 1].at & SLOT_WIDE;
        x[k] = sim_arg(w, i, k + 1);
        uint32_t u = sim_undefined(w, i, k + 1) & s->m;
        if (k >= i->sub)
            deciding |= u;
        else if (u)
            open[opens++] = k;
    }
    sim_holds(n > 0); /* an operand beside the result */
    for (int k = n; k < 4; k++)
        x[k] = x[0];
    i->fn.alu(&base, x[0], x[1], x[2], x[3]);
    for (int turn = 1; turn < 1 << opens; turn++) {
        const sim_vec *y[4] = { x[0], x[1], x[2], x[3] };
        for (int o = 0; o < opens; o++) {
            if (!(turn >> o & 1))
                continue;
            int k = open[o];
            const sim_vec *v = sim_undefined_bits(w, i, k + 1);
            memcpy(&in[k], x[k], wide[k] ? 256 : 128);
            FOR_LANES(l, sim_undefined(w, i, k + 1))
            {
                if (wide[k])
                    in[k].q[l] ^= v->q[l];
                else
                    in[k].u[l] ^= v->u[l];
            }
            y[k] = &in[k];
        }
        for (int k = n; k < 4; k++)
            y[k] = y[0];
        i->fn.alu(&r, y[0], y[1], y[2], y[3]);
        FOR_LANES(l, s->any) bits[l] |= i->wide ? r.q[l] ^ base.q[l] : r.u[l] ^ base.u[l];
    }
    FOR_LANES(l, deciding) bits[l] = UINT64_MAX;
    sim_undefined_put(w, i, 0, bits, s->any, s->m, s->from);
}

static uint64_t half_mask(uint64_t bits)
{
    return (bits & 0xFFFF ? 0xFFFFu : 0) | (bits >> 16 & 0xFFFF ? 0xFFFF0000u : 0);
}

static void halves(const step *s)
{
    uint64_t bits[SIM_LANES] = { 0 };
    FOR_LANES(l, s->any)
    for (int a = 1; a < s->i->args; a++)
        bits[l] |= half_mask(sim_undefined_in(s->w, s->i, a, l));
    sim_undefined_put(s->w, s->i, 0, bits, s->any, s->m, s->from);
}

static void pair(const step *s) /* two numbers become the halves of one register, the first the upper */
{
    uint64_t bits[SIM_LANES] = { 0 };
    FOR_LANES(l, s->any)
    bits[l] = (sim_undefined(s->w, s->i, 1) >> l & 1 ? 0xFFFF0000u : 0) | (sim_undefined(s->w, s->i, 2) >> l & 1 ? 0xFFFFu : 0);
    sim_undefined_put(s->w, s->i, 0, bits, s->any, s->m, s->from);
}

static void logic(const step *s)
{
    const sim_insn *i = s->i;
    uint32_t any = s->any;
    if (i->sub <= LOGIC_OR) { /* a false operand of an and, a true one of an or decides it */
        uint32_t flip = i->sub == LOGIC_AND ? SIM_ALL : 0, x = sim_pred(s->w, i, 1) ^ flip, y = sim_pred(s->w, i, 2) ^ flip;
        any &= ~((x & ~sim_undefined(s->w, i, 1)) | (y & ~sim_undefined(s->w, i, 2)));
    }
    sim_undefined_set(s->w, i, 0, any, s->m, s->from);
}

static void compare(const step *s) /* and the last operand, a predicate, which may decide it as above */
{
    const sim_insn *i = s->i;
    int last = i->args - 1;
    uint32_t c = sim_pred(s->w, i, last), decided = ~sim_undefined(s->w, i, last) & (i->sub == LOGIC_AND ? ~c : i->sub == LOGIC_OR ? c : 0);
    step open = *s;
    open.any &= ~decided;
    propagate(&open);
}

static void pack(const step *s)
{
    uint64_t bits[SIM_LANES] = { 0 }, mask = s->i->sub >= 32 ? SIM_ALL : (1u << s->i->sub) - 1;
    FOR_LANES(l, s->any)
    for (int k = 0; k < s->i->count; k++)
        bits[l] |= (sim_undefined_in(s->w, s->i, 1 + k, l) & mask) << s->i->sub * k;
    sim_undefined_put(s->w, s->i, 0, bits, s->any, s->m, s->from);
}

static void unpack(const step *s)
{
    const sim_insn *i = s->i;
    uint64_t from[SIM_LANES] = { 0 }, bits[SIM_LANES] = { 0 }, mask = i->sub >= 32 ? SIM_ALL : (1u << i->sub) - 1;
    sim_origin origin = *s->from;
    FOR_LANES(l, s->any) from[l] = sim_undefined_in(s->w, i, i->count, l);
    for (int k = 0; k < i->count; k++) {
        FOR_LANES(l, s->any) bits[l] = from[l] >> i->sub * k & mask;
        sim_undefined_put(s->w, i, k, bits, s->any, s->m, &origin);
    }
}

/* A whole number to a whole number: extended, then cut. Every other conversion depends on every bit. */
static void convert(const step *s)
{
    const sim_insn *i = s->i;
    int bits = 8 * sim_type_bytes((sim_type)i->type2), to = 8 * sim_type_bytes((sim_type)i->type);
    uint64_t v[SIM_LANES] = { 0 };
    if (sim_type_float((sim_type)i->type) || sim_type_float((sim_type)i->type2) || i->flags & F_SAT) {
        propagate(s);
        return;
    }
    FOR_LANES(l, s->any)
    {
        uint64_t x = sim_undefined_in(s->w, i, 1, l);
        if (bits < 64)
            x &= (1ull << bits) - 1;
        if (bits < 64 && sim_type_signed((sim_type)i->type2) && x >> (bits - 1) & 1)
            x |= UINT64_MAX << bits;
        if (to < 64)
            x &= (1ull << to) - 1;
        if (to < 64 && sim_type_signed((sim_type)i->type) && x >> (to - 1) & 1)
            x |= UINT64_MAX << to;
        v[l] = i->count == 2 ? x & 0xFFFF : x;
    }
    sim_undefined_put(s->w, i, 0, v, s->any, s->m, s->from);
}

static void carry(const step *s)
{
    sim_shadow *h = &s->w->shadow;
    uint32_t slot = s->w->block->program->slots - 1, any = s->any;
    sim_origin origin = *s->from;
    if (s->i->sub & CARRY_IN && h->lanes[slot] & s->m) {
        if (!any)
            origin = h->origin[slot];
        any |= h->lanes[slot] & s->m;
    }
    sim_undefined_fill(s->w, s->i, 0, any, s->m, &origin);
    if (s->i->sub & CARRY_OUT)
        sim_undefined_slot(h, slot, any, s->m, &origin);
}

static void matrix(const step *s)
{
    sim_defined_mma(s->w, s->i);
}

static void (*const rules[])(const step *) = {
    [U_PROPAGATE] = propagate, [U_SELECT] = select_one, [U_BITS] = bit_by_bit, [U_HALVES] = halves,
    [U_PAIR] = pair,           [U_LOGIC] = logic,       [U_COMPARE] = compare, [U_PACK] = pack,
    [U_UNPACK] = unpack,       [U_CONVERT] = convert,   [U_CARRY] = carry,     [U_MATRIX] = matrix,
};
static bool computes(const sim_insn *i)
{
    return i->unknown != U_DECIDE && i->unknown != U_RUN && i->unknown != U_MATRIX;
}

/* ---- what may not be undefined ---- */

/* The arguments of U_RUN that are moved and decide nothing: from, and how many; -1: all that follow. */
static void moved(const sim_insn *i, int *from, int *n)
{
    static const struct {
        sim_run *run;
        int from, n;
    } rows[] = {
        { sim_run_shuffle, 2, 1 }, { sim_run_vote, 1, 1 },    { sim_run_match, 2, 1 },
        { sim_run_redux, 1, 1 },   { sim_run_store, 1, -1 },  { sim_run_stmatrix, 1, -1 },
        { sim_run_atom, 2, -1 },   { sim_run_barrier, 3, 1 }, { sim_run_movmatrix, 1, 1 },
    };
    *from = *n = 0;
    if (i->run == sim_run_wgmma)
        *n = i->defs + (i->sub & WGMMA_SHARED_A ? 0 : 4);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (rows[k].run == i->run)
            *from = rows[k].from, *n = rows[k].n < 0 ? i->args - rows[k].from : rows[k].n;
}

static const char *use_of(const sim_insn *i, int a)
{
    bool address = (i->run == sim_run_load && a == i->count) || (i->run == sim_run_store && !a) || (i->run == sim_run_atom && a == 1) ||
                   (i->run == sim_run_ldmatrix && a == i->count) || (i->run == sim_run_stmatrix && !a);
    return i->kind == K_RUN && address ? "is used as an address" : "is used";
}

/* The lanes of a copy whose source has no bytes, so that its address does not count. */
static uint32_t idle(const sim_warp *w, const sim_insn *i, uint32_t m)
{
    uint32_t none = i->flags & F_IGNORE ? sim_pred(w, i, 2) : 0;
    FOR_LANES(l, i->flags & F_SIZE ? m : 0) none |= (uint32_t)!sim_arg(w, i, 2)->u[l] << l;
    return none & ~(i->flags & (F_IGNORE | F_SIZE) ? sim_undefined(w, i, 2) : 0);
}

static bool decided(sim_warp *w, const sim_insn *i, uint32_t m)
{
    int from = 0, n = 0;
    if (i->unknown == U_RUN)
        moved(i, &from, &n);
    for (int a = i->flags & F_TIED ? 0 : i->defs; a < i->args; a++) {
        uint32_t bad = sim_undefined(w, i, a) & m;
        if (bad && a == 1 && i->run == sim_run_copy)
            bad &= ~idle(w, i, m);
        if (bad && (a < from || a >= from + n) && !sim_undefined_report(w, i, a, __builtin_ctz(bad), use_of(i, a)))
            return false;
    }
    return true;
}

bool sim_defined_check(sim_warp *w, const sim_insn *i, uint32_t m)
{
    const uint32_t *lanes = w->shadow.lanes;
    uint32_t guard = lanes[i->slot[i->args].at & SLOT_NUMBER] & w->active, any = 0;
    int first = -1;
    for (int a = i->args; a-- > (i->flags & F_TIED ? 0 : i->defs);) {
        uint32_t u = lanes[i->slot[a].at & SLOT_NUMBER] & m;
        if (u)
            any |= u, first = a;
    }
    if (!(any | guard) && i->unknown != U_CARRY) {
        for (int a = 0; a < i->defs; a++)
            if (lanes[i->slot[a].at & SLOT_NUMBER] & m)
                sim_undefined_set(w, i, a, 0, m, NULL);
        return true;
    }
    if (guard && !computes(i)) {
        if (!sim_undefined_report(w, i, i->args, __builtin_ctz(guard),
                                  i->run == sim_run_branch ? "decides a branch" : "decides whether this is executed"))
            return false;
        guard = 0;
    }
    sim_origin of_guard = guard ? *sim_undefined_origin(w, i, i->args) : (sim_origin){ 0 },
               from = first >= 0 ? *sim_undefined_origin(w, i, first) : of_guard;
    if (i->unknown == U_DECIDE || i->unknown == U_RUN) {
        if (!decided(w, i, m))
            return false;
        if (i->unknown == U_DECIDE)
            for (int a = 0; a < i->defs; a++)
                sim_undefined_set(w, i, a, 0, m, NULL);
        return true;
    }
    rules[i->unknown](&(step){ w, i, m, any, &from });
    /* under an undefined guard a register has its old or its new value */
    for (int a = 0; a < i->defs && guard; a++)
        sim_undefined_fill(w, i, a, guard, guard, &of_guard);
    return true;
}
