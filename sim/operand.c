/* operand: the modifiers and operands of an instruction, as the functions that decode one take them. */
#include "alu.h"
#include "decode.h"
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct { const char *name; int special; } specials[] = {
    {"%tid.x", SR_TID_X}, {"%tid.y", SR_TID_Y}, {"%tid.z", SR_TID_Z}, {"%ntid.x", SR_NTID_X}, {"%ntid.y", SR_NTID_Y},
    {"%ntid.z", SR_NTID_Z},
    {"%ctaid.x", SR_CTAID_X}, {"%ctaid.y", SR_CTAID_Y}, {"%ctaid.z", SR_CTAID_Z}, {"%nctaid.x", SR_NCTAID_X}, {"%nctaid.y", SR_NCTAID_Y},
    {"%nctaid.z", SR_NCTAID_Z}, {"%laneid", SR_LANEID}, {"%warpid", SR_WARPID}, {"%nwarpid", SR_NWARPID}, {"%smid", SR_SMID},
    {"%nsmid", SR_NSMID},
    {"%lanemask_eq", SR_LANEMASK_EQ}, {"%lanemask_le", SR_LANEMASK_LE}, {"%lanemask_lt", SR_LANEMASK_LT}, {"%lanemask_ge", SR_LANEMASK_GE},
    {"%lanemask_gt", SR_LANEMASK_GT}, {"%dynamic_smem_size", SR_DYNAMIC_SMEM}, {"%total_smem_size", SR_TOTAL_SMEM}, {"%clock", SR_CLOCK},
    {"%clock_hi", SR_CLOCK_HI}, {"%clock64", SR_CLOCK64}, {"%globaltimer", SR_GLOBALTIMER}, {"%globaltimer_lo", SR_GLOBALTIMER},
    {"%clusterid.x", SR_CLUSTERID_X}, {"%clusterid.y", SR_CLUSTERID_Y}, {"%clusterid.z", SR_CLUSTERID_Z},
    {"%nclusterid.x", SR_NCLUSTERID_X},
    {"%nclusterid.y", SR_NCLUSTERID_Y}, {"%nclusterid.z", SR_NCLUSTERID_Z}, {"%cluster_ctaid.x", SR_CLUSTER_CTAID_X},
    {"%cluster_ctaid.y", SR_CLUSTER_CTAID_Y},
    {"%cluster_ctaid.z", SR_CLUSTER_CTAID_Z}, {"%cluster_nctaid.x", SR_CLUSTER_NCTAID_X}, {"%cluster_nctaid.y", SR_CLUSTER_NCTAID_Y},
    {"%cluster_nctaid.z", SR_CLUSTER_NCTAID_Z}, {"%cluster_ctarank", SR_CLUSTER_CTARANK}, {"%cluster_nctarank", SR_CLUSTER_NCTARANK},
    {"%is_explicit_cluster", SR_CLUSTER_EXPLICIT},
};
/* clang-format on */

_Noreturn void sim_dec_fail(dec *d, const char *why)
{
    snprintf(d->why, sizeof d->why, "%s", why);
    longjmp(d->unknown, 1);
}
_Noreturn void sim_dec_refuse(dec *d, const char *why)
{
    sim_ptx_fail(d->p, d->i->line, "%s: %s", why, d->i->text);
}

bool sim_dec_mod(dec *d, const char *word)
{
    for (int k = 1; k < d->i->words; k++) {
        if (d->i->used >> k & 1 || strcmp(d->i->word[k], word))
            continue;
        d->i->used |= 1u << k;
        return true;
    }
    return false;
}
int sim_dec_one_of(dec *d, const char *const *words, int none)
{
    for (int k = 0; words[k]; k++)
        if (sim_dec_mod(d, words[k]))
            return k;
    return none;
}
sim_type sim_dec_type(dec *d) /* the last type not yet used */
{
    for (int k = d->i->words - 1; k > 0; k--) {
        sim_type t = d->i->used >> k & 1 ? T_NONE : sim_type_of(d->i->word[k]);
        if (t == T_NONE)
            continue;
        d->i->used |= 1u << k;
        return t;
    }
    sim_dec_fail(d, "the instruction has no type");
}
void sim_dec_ops(dec *d, int least, int most)
{
    if (d->i->ops < least || d->i->ops > most)
        sim_dec_fail(d, "wrong number of operands");
}
int sim_dec_round(dec *d)
{
    static const char *const modes[] = { "rn", "rz", "rm", "rp", "rna", NULL };
    return sim_dec_one_of(d, modes, -1);
}

char sim_dec_class(dec *d, const ptx_operand *o)
{
    return o->kind == O_REG ? sim_type_class(d->f->reg[o->reg].type) : 0;
}

int32_t sim_dec_constant(dec *d, uint64_t v, bool wide)
{
    ptx_function *f = d->f;
    if (!wide)
        v &= 0xFFFFFFFF;
    const ptx_name *known = sim_names_find(&f->constant_values, &v, sizeof v, wide);
    if (known)
        return ~(int32_t)known->value;
    uint64_t *key = sim_ptx_alloc(d->p, sizeof *key);
    *key = v;
    sim_names_add(d->p, &f->constant_values, key, sizeof *key, wide, (uint32_t)f->constants);
    f->constant = sim_ptx_grow(d->p, f->constant, &f->constant_cap, f->constants, sizeof *f->constant);
    f->constant[f->constants].value = v, f->constant[f->constants].wide = wide;
    return ~(int32_t)f->constants++;
}

static uint64_t symbol(dec *d, const ptx_operand *o, sim_space *space)
{
    const sim_variable *v = o->local ? &d->f->local[o->local - 1] : sim_ptx_variable(d->p, o->name);
    int param = o->local ? -1 : sim_ptx_param(d->f, o->name);
    if (param >= 0)
        return *space = SP_PARAM, d->f->program->params[param].offset;
    if (!v)
        sim_dec_fail(d,
                     sim_ptx_label(d->f, o->name, (uint32_t)(d->i - d->f->insn)) >= 0 ? "a label is no operand here" : "undeclared name");
    *space = v->space;
    return v->address + (v->space == SP_SHARED ? SIM_SHARED_BASE : v->space == SP_LOCAL ? SIM_LOCAL_BASE : 0);
}

static int special(dec *d, const char *s, bool dynamic)
{
    for (size_t k = 0; k < sizeof specials / sizeof *specials; k++)
        if (!strcmp(specials[k].name, s) && (dynamic || specials[k].special < SR_STATIC_COUNT))
            return specials[k].special;
    sim_dec_fail(d, "unknown special register");
}

/* An operand to be read, of class 'w', 'q' or 'p'; t says how a float literal is stored. */
int32_t sim_dec_use(dec *d, const ptx_operand *o, char cls, sim_type t)
{
    ptx_function *f = d->f;
    if (o->negated && cls != 'p')
        sim_dec_fail(d, "'!' before something that is no predicate");
    if (o->kind == O_REG) {
        if (sim_type_class(f->reg[o->reg].type) != cls)
            sim_dec_fail(d, "an operand has the wrong size");
        return o->reg;
    }
    if (o->kind == O_IMM)
        return sim_dec_constant(d,
                                cls == 'p'                                            ? (uint64_t)(o->imm != 0)
                                : sim_type_bytes(t) == 2 && cls == 'w' && t != T_NONE ? o->imm & 0xFFFF
                                                                                      : o->imm,
                                cls == 'q');
    if (o->kind == O_FLOAT) {
        union {
            uint64_t q;
            double v;
        } x = { .q = o->imm };
        if (o->single)
            x.v = sim_f32((uint32_t)o->imm);
        if (t == T_F64 || cls == 'q')
            return sim_dec_constant(d, x.q, true);
        if (t == T_F16)
            return sim_dec_constant(d, sim_round_to(x.v, 10, 5, ROUND_NEAREST), false);
        return sim_dec_constant(d, o->single ? o->imm : sim_bits((float)x.v), false);
    }
    if (o->kind == O_SPECIAL && cls != 'p') {
        int s = special(d, o->name, false);
        if (!f->special[s]) {
            f->reg = sim_ptx_grow(d->p, f->reg, &f->reg_cap, f->regs, sizeof *f->reg);
            f->reg[f->regs] = (ptx_register){ o->name, T_B32, -1 };
            f->special[s] = (int)f->regs++;
        }
        if (cls != 'w')
            sim_dec_fail(d, "a special register is 32 bits wide");
        return f->special[s];
    }
    if (o->kind == O_SYMBOL && cls != 'p') {
        sim_space space;
        uint64_t a = symbol(d, o, &space) + o->imm;
        return sim_dec_constant(d, a, cls == 'q');
    }
    sim_dec_fail(d, "an operand is of the wrong kind");
}

void sim_dec_push(dec *d, int32_t arg, bool negated)
{
    if (d->n == DEC_ARGS)
        sim_dec_fail(d, "too many operands");
    if (negated && d->n > 15)
        sim_dec_fail(d, "'!' is not allowed here");
    if (negated)
        d->o->negated |= (uint16_t)(1u << d->n);
    d->arg[d->n++] = arg;
}
void sim_dec_def(dec *d, const ptx_operand *o, char cls)
{
    if (o->kind == O_SINK)
        sim_dec_push(d, SIM_NO_ARG, false);
    else if (o->kind == O_REG && !o->negated)
        sim_dec_push(d, sim_dec_use(d, o, cls, T_NONE), false);
    else
        sim_dec_fail(d, "the destination is no register");
    d->o->defs = (uint16_t)d->n;
}
void sim_dec_in(dec *d, const ptx_operand *o, char cls, sim_type t)
{
    sim_dec_push(d, sim_dec_use(d, o, cls, t), o->negated);
}

/* d|p: the second destination, or none. */
void sim_dec_pair(dec *d, const ptx_operand *o)
{
    if (o->pair >= 0 && sim_type_class(d->f->reg[o->pair].type) != 'p')
        sim_dec_fail(d, "the operand after '|' is no predicate");
    sim_dec_push(d, o->pair >= 0 ? o->pair : SIM_NO_ARG, false);
    d->o->defs = (uint16_t)d->n;
}

/* [base+offset]: one argument and imm; generic symbols get their window. */
void sim_dec_address(dec *d, const ptx_operand *o, sim_space space)
{
    if (o->kind != O_MEMORY || o->n != 1)
        sim_dec_fail(d, "expected an address in brackets");
    const ptx_operand *b = &o->elem[0];
    d->o->imm = (int64_t)o->imm;
    if (b->kind == O_REG) {
        char c = sim_dec_class(d, b);
        if (c == 'p' || sim_type_bytes(d->f->reg[b->reg].type) < 4)
            sim_dec_fail(d, "an address has the wrong size");
        if (c == 'q')
            d->o->flags |= F_WIDE;
        sim_dec_push(d, b->reg, false);
    } else if (b->kind == O_IMM) {
        d->o->imm = (int64_t)b->imm;
        sim_dec_push(d, SIM_NO_ARG, false);
    } else if (b->kind == O_SYMBOL) {
        sim_space at;
        uint64_t a = symbol(d, b, &at) + o->imm;
        if (space == SP_GENERIC)
            a |= at == SP_SHARED ? SIM_WINDOW_SHARED : at == SP_LOCAL ? SIM_WINDOW_LOCAL : at == SP_PARAM ? SIM_WINDOW_PARAM : 0;
        else if (at != space && !(at == SP_CONST && space == SP_GLOBAL) && !(at == SP_SHARED && space == SP_CLUSTER))
            sim_dec_fail(d, "the variable lives in another space");
        d->o->imm = (int64_t)a;
        sim_dec_push(d, SIM_NO_ARG, false);
    } else
        sim_dec_fail(d, "an address is of the wrong kind");
}

/* A 64-bit cache policy after the address: its value is ignored. */
void sim_dec_policy(dec *d, int n)
{
    if (n >= d->i->ops || sim_dec_class(d, &d->i->op[n]) != 'q')
        sim_dec_fail(d, "expected a cache policy");
}

bool sim_dec_hints(dec *d)
{
    static const char *const words[] = { "nc",
                                         "ca",
                                         "cg",
                                         "cs",
                                         "lu",
                                         "cv",
                                         "wb",
                                         "wt",
                                         "L1::evict_normal",
                                         "L1::evict_unchanged",
                                         "L1::evict_first",
                                         "L1::evict_last",
                                         "L1::no_allocate",
                                         "L2::evict_last",
                                         "L2::evict_normal",
                                         "L2::evict_first",
                                         "L2::64B",
                                         "L2::128B",
                                         "L2::256B",
                                         "weak",
                                         NULL };
    while (sim_dec_one_of(d, words, -1) >= 0) {
    }
    return sim_dec_mod(d, "L2::cache_hint");
}
