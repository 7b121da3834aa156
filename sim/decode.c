/* decode: raw PTX instructions to sim_insn. A table maps the first word of an opcode to the function that understands its
 * modifiers and operands; what is not there is looked up in the tables of alu.h. A word nobody understood is an error. */
#include "alu.h"
#include "decode.h"
#include "run.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct { const char *name; sim_type type; int bytes; } types[] = {
    {"pred", T_PRED, 1}, {"b8", T_B8, 1}, {"b16", T_B16, 2}, {"b32", T_B32, 4}, {"b64", T_B64, 8}, {"b128", T_B128, 16}, {"u8", T_U8, 1},
    {"u16", T_U16, 2}, {"u32", T_U32, 4}, {"u64", T_U64, 8}, {"s8", T_S8, 1}, {"s16", T_S16, 2}, {"s32", T_S32, 4}, {"s64", T_S64, 8},
    {"f16", T_F16, 2}, {"f16x2", T_F16X2, 4}, {"bf16", T_BF16, 2}, {"bf16x2", T_BF16X2, 4}, {"tf32", T_TF32, 4}, {"f32", T_F32, 4},
    {"f64", T_F64, 8}, {"u16x2", T_U16X2, 4}, {"s16x2", T_S16X2, 4},
};
enum { TYPES = sizeof types / sizeof *types };
sim_type sim_type_of(const char *word)
{
    for (int k = 0; k < TYPES; k++) if (!strcmp(types[k].name, word)) return types[k].type;
    return T_NONE;
}
int sim_type_bytes(sim_type t)
{
    for (int k = 0; k < TYPES; k++) if (types[k].type == t) return types[k].bytes;
    return 4;
}
const char *sim_type_name(sim_type t)
{
    for (int k = 0; k < TYPES; k++) if (types[k].type == t) return types[k].name;
    return "?";
}

static const struct { const char *name; int special; } specials[] = {
    {"%tid.x", SR_TID_X}, {"%tid.y", SR_TID_Y}, {"%tid.z", SR_TID_Z}, {"%ntid.x", SR_NTID_X}, {"%ntid.y", SR_NTID_Y}, {"%ntid.z", SR_NTID_Z},
    {"%ctaid.x", SR_CTAID_X}, {"%ctaid.y", SR_CTAID_Y}, {"%ctaid.z", SR_CTAID_Z}, {"%nctaid.x", SR_NCTAID_X}, {"%nctaid.y", SR_NCTAID_Y},
    {"%nctaid.z", SR_NCTAID_Z}, {"%laneid", SR_LANEID}, {"%warpid", SR_WARPID}, {"%nwarpid", SR_NWARPID}, {"%smid", SR_SMID}, {"%nsmid", SR_NSMID},
    {"%lanemask_eq", SR_LANEMASK_EQ}, {"%lanemask_le", SR_LANEMASK_LE}, {"%lanemask_lt", SR_LANEMASK_LT}, {"%lanemask_ge", SR_LANEMASK_GE},
    {"%lanemask_gt", SR_LANEMASK_GT}, {"%dynamic_smem_size", SR_DYNAMIC_SMEM}, {"%total_smem_size", SR_TOTAL_SMEM}, {"%clock", SR_CLOCK},
    {"%clock_hi", SR_CLOCK_HI}, {"%clock64", SR_CLOCK64}, {"%globaltimer", SR_GLOBALTIMER}, {"%globaltimer_lo", SR_GLOBALTIMER},
    {"%clusterid.x", SR_CLUSTERID_X}, {"%clusterid.y", SR_CLUSTERID_Y}, {"%clusterid.z", SR_CLUSTERID_Z}, {"%nclusterid.x", SR_NCLUSTERID_X},
    {"%nclusterid.y", SR_NCLUSTERID_Y}, {"%nclusterid.z", SR_NCLUSTERID_Z}, {"%cluster_ctaid.x", SR_CLUSTER_CTAID_X}, {"%cluster_ctaid.y", SR_CLUSTER_CTAID_Y},
    {"%cluster_ctaid.z", SR_CLUSTER_CTAID_Z}, {"%cluster_nctaid.x", SR_CLUSTER_NCTAID_X}, {"%cluster_nctaid.y", SR_CLUSTER_NCTAID_Y},
    {"%cluster_nctaid.z", SR_CLUSTER_NCTAID_Z}, {"%cluster_ctarank", SR_CLUSTER_CTARANK}, {"%cluster_nctarank", SR_CLUSTER_NCTARANK},
    {"%is_explicit_cluster", SR_CLUSTER_EXPLICIT},
};

_Noreturn void sim_dec_fail(dec *d, const char *why)
{
    snprintf(d->why, sizeof d->why, "%s", why);
    longjmp(d->unknown, 1);
}
_Noreturn void sim_dec_refuse(dec *d, const char *why) { sim_ptx_fail(d->p, d->i->line, "%s: %s", why, d->i->text); }

bool sim_dec_mod(dec *d, const char *word)
{
    for (int k = 1; k < d->i->words; k++) {
        if (d->i->used >> k & 1 || strcmp(d->i->word[k], word)) continue;
        d->i->used |= 1u << k;
        return true;
    }
    return false;
}
int sim_dec_one_of(dec *d, const char *const *words, int none)
{
    for (int k = 0; words[k]; k++) if (sim_dec_mod(d, words[k])) return k;
    return none;
}
sim_type sim_dec_type(dec *d) /* the last type not yet used */
{
    for (int k = d->i->words - 1; k > 0; k--) {
        sim_type t = d->i->used >> k & 1 ? T_NONE : sim_type_of(d->i->word[k]);
        if (t == T_NONE) continue;
        d->i->used |= 1u << k;
        return t;
    }
    sim_dec_fail(d, "the instruction has no type");
}
void sim_dec_ops(dec *d, int least, int most)
{
    if (d->i->ops < least || d->i->ops > most) sim_dec_fail(d, "wrong number of operands");
}
int sim_dec_round(dec *d)
{
    static const char *const modes[] = {"rn", "rz", "rm", "rp", "rna", NULL};
    return sim_dec_one_of(d, modes, -1);
}

char sim_dec_class(dec *d, const ptx_operand *o)
{
    return o->kind == O_REG ? sim_type_class(d->f->reg[o->reg].type) : 0;
}

int32_t sim_dec_constant(dec *d, uint64_t v, bool wide)
{
    ptx_function *f = d->f;
    if (!wide) v &= 0xFFFFFFFF;
    const ptx_name *known = sim_names_find(&f->constant_values, &v, sizeof v, wide);
    if (known) return ~(int32_t)known->value;
    uint64_t *key = sim_ptx_alloc(d->p, sizeof *key);
    *key = v;
    sim_names_add(d->p, &f->constant_values, key, sizeof *key, wide, (uint32_t)f->constants);
    f->constant = sim_ptx_grow(d->p, f->constant, &f->constant_cap, f->constants, sizeof *f->constant);
    f->constant[f->constants].value = v, f->constant[f->constants].wide = wide;
    return ~(int32_t)f->constants++;
}

uint64_t sim_dec_symbol(dec *d, const ptx_operand *o, sim_space *space)
{
    const sim_variable *v = o->local ? &d->f->local[o->local - 1] : sim_ptx_variable(d->p, o->name);
    int param = o->local ? -1 : sim_ptx_param(d->f, o->name);
    if (param >= 0) return *space = SP_PARAM, d->f->program->params[param].offset;
    if (!v) sim_dec_fail(d, sim_ptx_label(d->f, o->name, (uint32_t)(d->i - d->f->insn)) >= 0 ? "a label is no operand here" : "undeclared name");
    *space = v->space;
    return v->address + (v->space == SP_SHARED ? SIM_SHARED_BASE : v->space == SP_LOCAL ? SIM_LOCAL_BASE : 0);
}

static int special(dec *d, const char *s, bool dynamic)
{
    for (size_t k = 0; k < sizeof specials / sizeof *specials; k++)
        if (!strcmp(specials[k].name, s) && (dynamic || specials[k].special < SR_STATIC_COUNT)) return specials[k].special;
    sim_dec_fail(d, "unknown special register");
}

/* An operand to be read, of class 'w', 'q' or 'p'; t says how a float literal is stored. */
int32_t sim_dec_use(dec *d, const ptx_operand *o, char cls, sim_type t)
{
    ptx_function *f = d->f;
    if (o->negated && cls != 'p') sim_dec_fail(d, "'!' before something that is no predicate");
    if (o->kind == O_REG) {
        if (sim_type_class(f->reg[o->reg].type) != cls) sim_dec_fail(d, "an operand has the wrong size");
        return o->reg;
    }
    if (o->kind == O_IMM) return sim_dec_constant(d, cls == 'p' ? (uint64_t)(o->imm != 0) : sim_type_bytes(t) == 2 && cls == 'w' && t != T_NONE ? o->imm & 0xFFFF : o->imm, cls == 'q');
    if (o->kind == O_FLOAT) {
        union { uint64_t q; double v; } x = {.q = o->imm};
        if (o->single) x.v = sim_f32((uint32_t)o->imm);
        if (t == T_F64 || cls == 'q') return sim_dec_constant(d, x.q, true);
        if (t == T_F16) return sim_dec_constant(d, sim_round_to(x.v, 10, 5, ROUND_NEAREST), false);
        return sim_dec_constant(d, o->single ? o->imm : sim_bits((float)x.v), false);
    }
    if (o->kind == O_SPECIAL && cls != 'p') {
        int s = special(d, o->name, false);
        if (!f->special[s]) {
            f->reg = sim_ptx_grow(d->p, f->reg, &f->reg_cap, f->regs, sizeof *f->reg);
            f->reg[f->regs] = (ptx_register){o->name, T_B32, -1};
            f->special[s] = (int)f->regs++;
        }
        if (cls != 'w') sim_dec_fail(d, "a special register is 32 bits wide");
        return f->special[s];
    }
    if (o->kind == O_SYMBOL && cls != 'p') {
        sim_space space;
        uint64_t a = sim_dec_symbol(d, o, &space) + o->imm;
        return sim_dec_constant(d, a, cls == 'q');
    }
    sim_dec_fail(d, "an operand is of the wrong kind");
}

void sim_dec_push(dec *d, int32_t arg, bool negated)
{
    if (d->n == DEC_ARGS) sim_dec_fail(d, "too many operands");
    if (negated && d->n > 15) sim_dec_fail(d, "'!' is not allowed here");
    if (negated) d->o->negated |= (uint16_t)(1u << d->n);
    d->arg[d->n++] = arg;
}
void sim_dec_def(dec *d, const ptx_operand *o, char cls)
{
    if (o->kind == O_SINK) sim_dec_push(d, SIM_NO_ARG, false);
    else if (o->kind == O_REG && !o->negated) sim_dec_push(d, sim_dec_use(d, o, cls, T_NONE), false);
    else sim_dec_fail(d, "the destination is no register");
    d->o->defs = (uint16_t)d->n;
}
void sim_dec_in(dec *d, const ptx_operand *o, char cls, sim_type t) { sim_dec_push(d, sim_dec_use(d, o, cls, t), o->negated); }

/* d|p: the second destination, or none. */
void sim_dec_pair(dec *d, const ptx_operand *o)
{
    if (o->pair >= 0 && sim_type_class(d->f->reg[o->pair].type) != 'p') sim_dec_fail(d, "the operand after '|' is no predicate");
    sim_dec_push(d, o->pair >= 0 ? o->pair : SIM_NO_ARG, false);
    d->o->defs = (uint16_t)d->n;
}

/* [base+offset]: one argument and imm; generic symbols get their window. */
void sim_dec_address(dec *d, const ptx_operand *o, sim_space space)
{
    if (o->kind != O_MEMORY || o->n != 1) sim_dec_fail(d, "expected an address in brackets");
    const ptx_operand *b = &o->elem[0];
    d->o->imm = (int64_t)o->imm;
    if (b->kind == O_REG) {
        char c = sim_dec_class(d, b);
        if (c == 'p' || sim_type_bytes(d->f->reg[b->reg].type) < 4) sim_dec_fail(d, "an address has the wrong size");
        if (c == 'q') d->o->flags |= F_WIDE;
        sim_dec_push(d, b->reg, false);
    } else if (b->kind == O_IMM) {
        d->o->imm = (int64_t)b->imm;
        sim_dec_push(d, SIM_NO_ARG, false);
    } else if (b->kind == O_SYMBOL) {
        sim_space at;
        uint64_t a = sim_dec_symbol(d, b, &at) + o->imm;
        if (space == SP_GENERIC) a |= at == SP_SHARED ? SIM_WINDOW_SHARED : at == SP_LOCAL ? SIM_WINDOW_LOCAL : at == SP_PARAM ? SIM_WINDOW_PARAM : 0;
        else if (at != space && !(at == SP_CONST && space == SP_GLOBAL) && !(at == SP_SHARED && space == SP_CLUSTER)) sim_dec_fail(d, "the variable lives in another space");
        d->o->imm = (int64_t)a;
        sim_dec_push(d, SIM_NO_ARG, false);
    } else sim_dec_fail(d, "an address is of the wrong kind");
}

/* A 64-bit cache policy after the address: its value is ignored. */
void sim_dec_policy(dec *d, int n)
{
    if (n >= d->i->ops || sim_dec_class(d, &d->i->op[n]) != 'q') sim_dec_fail(d, "expected a cache policy");
}

/* ---- the tables of alu.h ---- */

static bool row_matches(const dec *d, const sim_alu_row *r, sim_type t, uint32_t *used)
{
    char name[64];
    snprintf(name, sizeof name, "%s", r->op);
    char *rest = NULL, *w = strtok_r(name, ".", &rest);
    if (strcmp(w, d->i->word[0]) || !(r->types >> t & 1)) return false;
    *used = 0;
    while ((w = strtok_r(NULL, ".", &rest))) {
        bool found = false;
        for (int k = 1; k < d->i->words && !found; k++) if (!strcmp(d->i->word[k], w)) *used |= 1u << k, found = true;
        if (!found) return false;
    }
    return (int)strlen(r->operands) == d->i->ops;
}

static bool alu(dec *d)
{
    static const sim_alu_row *const tables[] = {sim_alu_integer, sim_alu_float, sim_alu_half};
    uint32_t before = d->i->used, used = 0;
    if (d->i->words < 2) return false;
    sim_type t = sim_dec_type(d);
    const sim_alu_row *r = NULL;
    for (int k = 0; k < 3 && !r; k++)
        for (const sim_alu_row *x = tables[k]; x->op && !r; x++) if (row_matches(d, x, t, &used)) r = x;
    if (!r) return d->i->used = before, false;
    d->i->used |= used;
    d->o->kind = K_ALU;
    d->o->fn.alu = r->fn;
    if (sim_dec_mod(d, "ftz")) {
        if (!r->ftz) sim_dec_fail(d, ".ftz is not allowed here");
        d->o->fn.alu = r->ftz;
    }
    if (r->flags & A_SAT && sim_dec_mod(d, "sat")) d->o->flags |= F_SAT;
    int round = sim_dec_round(d);
    if (round > 0 && !(r->flags & A_ROUND)) sim_dec_fail(d, "the rounding is not simulated here");
    if (round > 0) d->o->flags |= F_ROUND, d->o->round = (uint8_t)round;
    if (r->flags & A_SPECIAL) d->o->cls = C_SPECIAL;
    d->o->wide = r->operands[0] == 'q';
    if (!strcmp(r->op, "mov") && !strcmp(r->operands, "ww")) d->o->flags |= F_MOVE;
    uint32_t bits = r->flags >> A_BITS_SHIFT;
    bool halves = t == T_F16X2 || t == T_BF16X2 || t == T_U16X2 || t == T_S16X2;
    d->o->unknown = bits ? U_BITS : halves ? U_HALVES : U_PROPAGATE, d->o->sub = (uint8_t)bits;
    sim_dec_def(d, &d->i->op[0], r->operands[0]);
    for (int k = 1; k < d->i->ops; k++) sim_dec_in(d, &d->i->op[k], r->operands[k], t);
    return true;
}

static void finish(dec *d)
{
    char why[160];
    for (int k = 1; k < d->i->words; k++) {
        if (d->i->used >> k & 1) continue;
        snprintf(why, sizeof why, "unknown modifier .%.100s", d->i->word[k]);
        sim_dec_fail(d, why);
    }
    sim_insn *o = d->o;
    if (!d->f->chunk || d->f->chunk_left < (size_t)d->n) {
        d->f->chunk_left = d->f->insns < 256 ? 16 * d->f->insns + DEC_ARGS : 4096; /* a small kernel keeps little */
        d->f->chunk = sim_ptx_keep(d->p, d->f->chunk_left * sizeof *d->f->chunk);
    }
    if (d->n) memcpy(d->f->chunk, d->arg, (size_t)d->n * sizeof *d->arg);
    o->arg = d->f->chunk;
    d->f->chunk += d->n, d->f->chunk_left -= (size_t)d->n;
    o->args = (uint16_t)d->n;
}

static void start(dec *d)
{
    *d->o = (sim_insn){.guard = d->i->guard, .guard_negated = d->i->guard_negated, .line = d->i->line, .loc = d->i->loc, .text = d->i->text,
                       .target = UINT32_MAX, .join = UINT32_MAX, .unknown = U_DECIDE};
}

static void understand(dec *d)
{
    bool done = false;
    for (const dec_row *r = sim_decoders; r->op && !done; r++) {
        if (strcmp(r->op, d->i->word[0])) continue;
        done = r->decode(d);
    }
    if (!done && !alu(d)) sim_dec_fail(d, "unknown instruction");
    finish(d);
}

/* false: it cannot be executed, for the reason in d->why. */
static bool known(dec *d)
{
    if (setjmp(d->unknown)) return false;
    understand(d);
    return true;
}

void sim_decode(ptx_parser *p, ptx_function *f)
{
    /* one more: running off the end is an exit */
    f->program->code = sim_ptx_keep(p, (f->insns + 1) * sizeof *f->program->code);
    f->program->insns = (uint32_t)f->insns + 1;
    f->program->code[f->insns] = (sim_insn){.run = sim_run_exit, .guard = -1, .cls = C_CONTROL, .unknown = U_DECIDE, .text = "(end of the kernel)",
                                            .line = f->insns ? f->insn[f->insns - 1].line : p->line};
    for (size_t k = 0; k < f->insns; k++) {
        dec d;
        d.p = p, d.f = f, d.i = &f->insn[k], d.o = &f->program->code[k], d.n = 0, d.why[0] = 0;
        start(&d);
        if (d.i->guard >= 0 && sim_type_class(f->reg[d.i->guard].type) != 'p') sim_dec_refuse(&d, "the guard is no predicate");
        if (d.i->unknown) snprintf(d.why, sizeof d.why, "%s", d.i->unknown);
        else if (known(&d)) continue;
        start(&d); /* it has no operands: nothing of it takes part in the flow of values */
        d.o->run = sim_run_unknown, d.o->cls = C_CONTROL;
        d.o->fn.data = sim_ptx_copy(p, d.why, strlen(d.why));
    }
}
