/* decode_move: instructions of one lane that have more forms than the tables of alu.h hold: moves, logic, comparisons, conversions. */
#include "alu.h"
#include "decode.h"
#include "run.h"
#include <string.h>

bool sim_decode_mov(dec *d)
{
    sim_dec_ops(d, 2, 2);
    const ptx_operand *to = &d->i->op[0], *from = &d->i->op[1];
    sim_insn *o = d->o;
    uint32_t before = d->i->used;
    sim_type t = sim_dec_type(d);
    o->unknown = U_PROPAGATE;
    if (t == T_PRED) {
        o->run = sim_run_pred_move;
        sim_dec_def(d, to, 'p');
        sim_dec_in(d, from, 'p', t);
        return true;
    }
    if (to->kind == O_VECTOR || from->kind == O_VECTOR) { /* of 16, 32 or 64 bits as a whole */
        bool pack = from->kind == O_VECTOR;
        const ptx_operand *v = pack ? from : to;
        int bytes = sim_type_bytes(t);
        if (bytes % v->n || bytes / v->n > 4 || v->n > 4)
            sim_dec_fail(d, "wrong number of elements");
        if (pack)
            sim_dec_def(d, to, sim_type_class(t));
        for (int k = 0; k < v->n; k++) {
            if (pack)
                sim_dec_in(d, &v->elem[k], 'w', bytes / v->n == 2 ? T_B16 : T_B32);
            else
                sim_dec_def(d, &v->elem[k], 'w');
        }
        if (!pack)
            sim_dec_in(d, from, sim_type_class(t), t);
        o->run = pack ? sim_run_pack : sim_run_unpack, o->unknown = pack ? U_PACK : U_UNPACK;
        o->count = (uint8_t)v->n, o->sub = (uint8_t)(8 * bytes / v->n), o->wide = bytes == 8;
        return true;
    }
    if (from->kind == O_SPECIAL && (!strncmp(from->name, "%clock", 6) || !strncmp(from->name, "%globaltimer", 12))) {
        if (strcmp(from->name, "%clock") && strcmp(from->name, "%clock_hi") && strcmp(from->name, "%clock64") &&
            strcmp(from->name, "%globaltimer") && strcmp(from->name, "%globaltimer_lo"))
            return d->i->used = before, false;
        o->run = sim_run_clock, o->wide = sim_type_class(t) == 'q',
        o->sub = from->name[1] == 'g'               ? 1
                 : !strcmp(from->name, "%clock_hi") ? 2
                                                    : 0;
        sim_dec_def(d, to, sim_type_class(t));
        return true;
    }
    return d->i->used = before, false; /* the common case: a row of alu_integer.c */
}

bool sim_decode_logic(dec *d)
{
    uint32_t before = d->i->used;
    if (sim_dec_type(d) != T_PRED)
        return d->i->used = before, false;
    const char *w = d->i->word[0];
    d->o->sub = *w == 'a' ? LOGIC_AND : *w == 'o' ? LOGIC_OR : *w == 'x' ? LOGIC_XOR : LOGIC_NOT;
    d->o->run = sim_run_pred_logic, d->o->unknown = U_LOGIC;
    int n = *w == 'n' ? 2 : 3;
    sim_dec_ops(d, n, n);
    sim_dec_def(d, &d->i->op[0], 'p');
    for (int k = 1; k < n; k++)
        sim_dec_in(d, &d->i->op[k], 'p', T_PRED);
    return true;
}

/* setp.CMP[.BOOL][.ftz].type p[|q], a, b[, c];  set.CMP...dtype.stype d, a, b */
bool sim_decode_setp(dec *d)
{
    static const char *const bools[] = { "and", "or", "xor", NULL };
    static const char *const compares[] = { "eq",  "ne",  "lt",  "le",  "gt", "ge", "equ", "neu", "ltu", "leu",
                                            "gtu", "geu", "num", "nan", "lo", "ls", "hi",  "hs",  NULL };
    bool set = !strcmp(d->i->word[0], "set");
    sim_insn *o = d->o;
    sim_type t = sim_dec_type(d);
    if (set)
        o->type = (uint8_t)sim_dec_type(d);
    int b = sim_dec_one_of(d, bools, -1), c = sim_dec_one_of(d, compares, -1);
    bool ftz = sim_dec_mod(d, "ftz");
    if (c < 0)
        sim_dec_fail(d, "the comparison is missing");
    sim_type one = t == T_F16X2 ? T_F16 : t == T_BF16X2 ? T_BF16 : t; /* pairs: one comparison per half */
    o->count = one == t ? 1 : 2;
    if (set && (one != t) != (o->type == T_F16X2 || o->type == T_BF16X2))
        sim_dec_fail(d, "this comparison of pairs is not simulated");
    if (!(o->fn.cmp = sim_compare_find(compares[c], one, ftz)))
        sim_dec_fail(d, "this comparison of this type is unknown");
    sim_dec_ops(d, b < 0 ? 3 : 4, b < 0 ? 3 : 4);
    o->run = set ? sim_run_set : sim_run_setp, o->unknown = b < 0 ? U_PROPAGATE : U_COMPARE;
    o->sub = (uint8_t)(b < 0 ? LOGIC_NONE : b);
    sim_dec_def(d, &d->i->op[0], set ? 'w' : 'p');
    if (!set)
        sim_dec_pair(d, &d->i->op[0]);
    sim_dec_in(d, &d->i->op[1], sim_type_class(t), t);
    sim_dec_in(d, &d->i->op[2], sim_type_class(t), t);
    if (b >= 0)
        sim_dec_in(d, &d->i->op[3], 'p', T_PRED);
    return true;
}

bool sim_decode_selp(dec *d)
{
    sim_type t = sim_dec_type(d);
    sim_dec_ops(d, 4, 4);
    d->o->run = sim_run_selp, d->o->unknown = U_SELECT, d->o->wide = sim_type_class(t) == 'q';
    sim_dec_def(d, &d->i->op[0], sim_type_class(t));
    sim_dec_in(d, &d->i->op[1], sim_type_class(t), t);
    sim_dec_in(d, &d->i->op[2], sim_type_class(t), t);
    sim_dec_in(d, &d->i->op[3], 'p', T_PRED);
    return true;
}

bool sim_decode_testp(dec *d)
{
    static const char *const kinds[] = { "finite", "infinite", "number", "notanumber", "normal", "subnormal", NULL };
    sim_type t = sim_dec_type(d);
    int k = sim_dec_one_of(d, kinds, -1);
    sim_dec_ops(d, 2, 2);
    if (k < 0)
        sim_dec_fail(d, "the test is missing");
    d->o->run = sim_run_testp, d->o->sub = (uint8_t)k, d->o->wide = t == T_F64, d->o->unknown = U_PROPAGATE;
    sim_dec_def(d, &d->i->op[0], 'p');
    sim_dec_in(d, &d->i->op[1], sim_type_class(t), t);
    return true;
}

bool sim_decode_carry(dec *d) /* add.cc, addc[.cc], sub.cc, subc[.cc] */
{
    const char *w = d->i->word[0];
    bool out = sim_dec_mod(d, "cc"), in = w[3] == 'c';
    if (!out && !in)
        return false;
    sim_type t = sim_dec_type(d);
    sim_dec_ops(d, 3, 3);
    d->o->run = sim_run_carry, d->o->wide = sim_type_class(t) == 'q', d->o->unknown = U_CARRY;
    d->o->sub = (uint8_t)((*w == 'a' ? CARRY_ADD : CARRY_SUB) | (in ? CARRY_IN : 0) | (out ? CARRY_OUT : 0));
    sim_dec_def(d, &d->i->op[0], sim_type_class(t));
    for (int k = 1; k < 3; k++)
        sim_dec_in(d, &d->i->op[k], sim_type_class(t), t);
    return true;
}

bool sim_decode_not(dec *d)
{
    return !strcmp(d->i->word[0], "not") && sim_decode_logic(d);
}

bool sim_decode_slct(dec *d) /* slct.dtype.ctype: a row per width of dtype */
{
    if (d->i->words < 3)
        sim_dec_fail(d, "the instruction has no type");
    sim_type t = sim_type_of(d->i->word[1]);
    if (t == T_NONE || sim_type_bytes(t) < 4)
        sim_dec_fail(d, "this selection is not simulated");
    d->i->word[1] = sim_type_class(t) == 'q' ? "wide" : "";
    if (sim_type_class(t) != 'q')
        d->i->used |= 2;
    return false;
}

bool sim_decode_lop3(dec *d)
{
    if (sim_dec_mod(d, "or") || sim_dec_mod(d, "and"))
        sim_dec_fail(d, "lop3 with a predicate is not simulated");
    return false;
}

/* cvt.rn.f16x2.e4m3x2 d, a; cvt.rn.satfinite.e4m3x2.f32 d, a, b; cvt.rn.satfinite.e4m3x2.f16x2 d, a: of pairs of bytes, from sm_89 on. */
static bool decode_bytes(dec *d, sim_type to, sim_type from, int round, bool relu)
{
    sim_insn *o = d->o;
    bool narrow = to == T_E4M3X2 || to == T_E5M2X2, sat = sim_dec_mod(d, "satfinite");
    int n = narrow && from == T_F32 ? 3 : 2;
    sim_dec_ops(d, n, n);
    if (d->p->module->target < 89)
        sim_dec_fail(d, "conversions of e4m3x2 and e5m2x2 need a target of sm_89 or newer");
    if (round != ROUND_NEAREST || sat != narrow || relu || (narrow ? from != T_F32 && from != T_F16X2 : to != T_F16X2))
        sim_dec_fail(d, "this conversion is not simulated");
    o->run = narrow ? sim_run_narrow_pair : sim_run_widen_pair, o->unknown = U_PROPAGATE;
    sim_dec_def(d, &d->i->op[0], 'w');
    for (int k = 1; k < n; k++)
        sim_dec_in(d, &d->i->op[k], 'w', from);
    return true;
}

bool sim_decode_cvt(dec *d)
{
    static const char *const modes[] = { "rn", "rz", "rm", "rp", "rna", NULL }, *const whole[] = { "rni", "rzi", "rmi", "rpi", NULL };
    sim_insn *o = d->o;
    sim_type from = sim_dec_type(d), to = sim_dec_type(d);
    int r = sim_dec_one_of(d, modes, -1), ri = sim_dec_one_of(d, whole, -1);
    bool sat = sim_dec_mod(d, "sat"), ftz = sim_dec_mod(d, "ftz"), relu = sim_dec_mod(d, "relu");
    o->unknown = U_CONVERT;
    o->type = (uint8_t)to, o->type2 = (uint8_t)from, o->round = (uint8_t)(r >= 0 ? r : ri >= 0 ? ri : 0);
    if (from == T_E4M3X2 || from == T_E5M2X2 || to == T_E4M3X2 || to == T_E5M2X2)
        return decode_bytes(d, to, from, r, relu);
    if (to == T_F16X2 || to == T_BF16X2) {
        sim_dec_ops(d, 3, 3);
        if (from != T_F32 || sat || ftz || (r != ROUND_NEAREST && r != ROUND_ZERO))
            sim_dec_fail(d, "this conversion is not simulated");
        o->run = sim_run_convert_pair, o->sub = relu, o->unknown = U_PAIR;
        sim_dec_def(d, &d->i->op[0], 'w');
        for (int k = 1; k < 3; k++)
            sim_dec_in(d, &d->i->op[k], 'w', T_F32);
        return true;
    }
    sim_dec_ops(d, 2, 2);
    if (relu || !sim_convert_ok(to, from))
        sim_dec_fail(d, "this conversion is not simulated");
    char dc = sim_dec_class(d, &d->i->op[0]), ac = d->i->op[1].kind == O_REG ? sim_dec_class(d, &d->i->op[1]) : sim_type_class(from);
    if (d->i->op[0].kind != O_REG || dc == 'p' || ac == 'p' || (sim_type_class(to) == 'q' && dc != 'q') ||
        (sim_type_class(from) == 'q' && ac != 'q'))
        sim_dec_fail(d, "an operand has the wrong size");
    sim_dec_def(d, &d->i->op[0], dc);
    sim_dec_in(d, &d->i->op[1], ac, from);
    o->wide = dc == 'q';
    int bytes = sim_type_bytes(d->f->reg[d->i->op[0].reg].type);
    if (dc == sim_type_class(to) && ac == sim_type_class(from) && bytes == (sim_type_bytes(to) < 2 ? bytes : sim_type_bytes(to)) &&
        ri < 0 && (o->fn.alu = sim_convert_find(to, from, o->round, sat, ftz))) {
        bool moves = (!sim_type_float(to) && !sim_type_float(from)) || (to == T_F32 && from == T_BF16);
        o->kind = K_ALU, o->unknown = moves ? U_BITS : U_PROPAGATE, o->sub = moves;
        return true;
    }
    o->run = sim_run_convert;
    o->count = (uint8_t)bytes;
    o->sub = (uint8_t)((ri >= 0 ? 1 : 0) | (ftz ? 2 : 0));
    o->flags |= (uint16_t)((sat ? F_SAT : 0) | (ac == 'q' ? F_WIDE : 0));
    return true;
}

bool sim_decode_cvta(dec *d)
{
    bool to = sim_dec_mod(d, "to");
    sim_space s = sim_dec_space(d);
    sim_type t = sim_dec_type(d);
    sim_dec_ops(d, 2, 2);
    uint64_t window = s == SP_SHARED || s == SP_CLUSTER ? SIM_WINDOW_SHARED
                      : s == SP_LOCAL                   ? SIM_WINDOW_LOCAL
                      : s == SP_PARAM                   ? SIM_WINDOW_PARAM
                                                        : 0;
    static const char *const add = "add", *const sub = "sub";
    char c = sim_type_class(t);
    if (c != 'q')
        sim_dec_fail(d, "generic addresses are 64 bits wide");
    d->o->kind = K_ALU, d->o->wide = true, d->o->unknown = U_PROPAGATE;
    for (const sim_alu_row *r = sim_alu_integer; r->op; r++)
        if (!strcmp(r->op, to ? sub : add) && r->types & TB(U64))
            d->o->fn.alu = r->fn;
    sim_dec_def(d, &d->i->op[0], c);
    sim_dec_in(d, &d->i->op[1], c, t);
    sim_dec_push(d, sim_dec_constant(d, window, true), false);
    return true;
}

bool sim_decode_isspacep(dec *d)
{
    d->o->type = (uint8_t)sim_dec_space(d);
    sim_dec_ops(d, 2, 2);
    d->o->run = sim_run_isspace, d->o->unknown = U_PROPAGATE;
    sim_dec_def(d, &d->i->op[0], 'p');
    sim_dec_in(d, &d->i->op[1], 'q', T_U64);
    return true;
}
