/* decode_table: the functions that understand one first word of an opcode each, and their table. */
#include "alu.h"
#include "decode.h"
#include "run.h"
#include <stdlib.h>
#include <string.h>

/* ---- moves, predicates, comparisons ---- */

static bool mov(dec *d)
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

static bool logic(dec *d)
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
static bool setp(dec *d)
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

static bool selp(dec *d)
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

static bool testp(dec *d)
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

static bool carry(dec *d) /* add.cc, addc[.cc], sub.cc, subc[.cc] */
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

static bool neg_not(dec *d)
{
    return !strcmp(d->i->word[0], "not") && logic(d);
}

static bool slct(dec *d) /* slct.dtype.ctype: a row per width of dtype */
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

static bool lop3(dec *d)
{
    if (sim_dec_mod(d, "or") || sim_dec_mod(d, "and"))
        sim_dec_fail(d, "lop3 with a predicate is not simulated");
    return false;
}

static bool cvt(dec *d)
{
    static const char *const modes[] = { "rn", "rz", "rm", "rp", "rna", NULL }, *const whole[] = { "rni", "rzi", "rmi", "rpi", NULL };
    sim_insn *o = d->o;
    sim_type from = sim_dec_type(d), to = sim_dec_type(d);
    int r = sim_dec_one_of(d, modes, -1), ri = sim_dec_one_of(d, whole, -1);
    bool sat = sim_dec_mod(d, "sat"), ftz = sim_dec_mod(d, "ftz"), relu = sim_dec_mod(d, "relu");
    o->unknown = U_CONVERT;
    o->type = (uint8_t)to, o->type2 = (uint8_t)from, o->round = (uint8_t)(r >= 0 ? r : ri >= 0 ? ri : 0);
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

static bool cvta(dec *d)
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

static bool isspacep(dec *d)
{
    d->o->type = (uint8_t)sim_dec_space(d);
    sim_dec_ops(d, 2, 2);
    d->o->run = sim_run_isspace, d->o->unknown = U_PROPAGATE;
    sim_dec_def(d, &d->i->op[0], 'p');
    sim_dec_in(d, &d->i->op[1], 'q', T_U64);
    return true;
}

/* ---- control ---- */

static uint32_t label(dec *d, const char *name)
{
    int k = sim_ptx_label(d->f, name, (uint32_t)(d->i - d->f->insn));
    if (k < 0)
        sim_dec_refuse(d, "the label is not defined");
    return d->f->label[k].at;
}

static bool bra(dec *d)
{
    sim_dec_mod(d, "uni");
    sim_dec_ops(d, 1, 1);
    if (d->i->op[0].kind != O_SYMBOL)
        sim_dec_fail(d, "expected a label");
    d->o->run = sim_run_branch, d->o->cls = C_CONTROL;
    d->o->target = label(d, d->i->op[0].name);
    return true;
}

static bool brx(dec *d)
{
    sim_dec_mod(d, "uni");
    if (!sim_dec_mod(d, "idx"))
        sim_dec_fail(d, "only brx.idx is known");
    sim_dec_ops(d, 2, 2);
    int k = d->i->op[1].kind == O_SYMBOL ? sim_ptx_label(d->f, d->i->op[1].name, (uint32_t)(d->i - d->f->insn)) : -1;
    if (k < 0 || !d->f->label[k].targets)
        sim_dec_refuse(d, "the list of targets is not defined");
    uint32_t n = 1;
    for (const char *s = d->f->label[k].targets; *s; s++)
        n += *s == ',';
    sim_targets *t = sim_ptx_keep(d->p, sizeof *t + n * sizeof *t->at);
    char *copy = sim_ptx_copy(d->p, d->f->label[k].targets, strlen(d->f->label[k].targets)), *rest = NULL;
    for (char *s = strtok_r(copy, ", \t\r\n", &rest); s && t->n < n; s = strtok_r(NULL, ", \t\r\n", &rest))
        t->at[t->n++] = label(d, s);
    d->o->run = sim_run_branch_index, d->o->cls = C_CONTROL, d->o->fn.data = t;
    sim_dec_in(d, &d->i->op[0], 'w', T_U32);
    return true;
}

static bool leave(dec *d)
{
    sim_dec_mod(d, "uni");
    sim_dec_ops(d, 0, 0);
    d->o->run = sim_run_exit, d->o->cls = C_CONTROL;
    return true;
}
static bool trap(dec *d)
{
    d->o->run = sim_run_trap, d->o->cls = C_CONTROL;
    return true;
}

/* Hints without effect here: every modifier is accepted, operands are not evaluated. */
static bool nothing(dec *d)
{
    d->i->used = SIM_ALL;
    d->o->run = sim_run_nothing, d->o->cls = C_CONTROL;
    return true;
}

/* Dependents begin when they are launched, which is after this launch: the permission to begin sooner changes nothing. */
static bool griddepcontrol(dec *d)
{
    bool wait = sim_dec_mod(d, "wait");
    if (!wait && !sim_dec_mod(d, "launch_dependents"))
        sim_dec_fail(d, "this griddepcontrol is unknown");
    sim_dec_ops(d, 0, 0);
    d->o->run = wait ? sim_run_grid_wait : sim_run_nothing, d->o->cls = C_CONTROL;
    return true;
}

static bool createpolicy(dec *d)
{
    d->i->used = SIM_ALL;
    d->o->run = sim_run_clock, d->o->wide = true, d->o->sub = 3, d->o->unknown = U_PROPAGATE;
    if (!d->i->ops)
        sim_dec_fail(d, "wrong number of operands");
    sim_dec_def(d, &d->i->op[0], 'q');
    return true;
}

/* ---- between lanes ---- */

static bool shfl(dec *d)
{
    static const char *const modes[] = { "up", "down", "bfly", "idx", NULL };
    bool sync = sim_dec_mod(d, "sync");
    int mode = sim_dec_one_of(d, modes, -1);
    if (!sync || mode < 0 || sim_dec_type(d) != T_B32)
        sim_dec_fail(d, "this shuffle is unknown");
    sim_dec_ops(d, 5, 5);
    d->o->run = sim_run_shuffle, d->o->cls = C_SHUFFLE, d->o->sub = (uint8_t)mode, d->o->unknown = U_RUN;
    sim_dec_def(d, &d->i->op[0], 'w');
    sim_dec_pair(d, &d->i->op[0]);
    for (int k = 1; k < 5; k++)
        sim_dec_in(d, &d->i->op[k], 'w', T_B32);
    return true;
}

static bool vote(dec *d)
{
    static const char *const modes[] = { "all", "any", "uni", "ballot", NULL };
    bool sync = sim_dec_mod(d, "sync");
    int mode = sim_dec_one_of(d, modes, -1);
    sim_type t = sim_dec_type(d);
    if (!sync || mode < 0 || t != (mode == VOTE_BALLOT ? T_B32 : T_PRED))
        sim_dec_fail(d, "this vote is unknown");
    sim_dec_ops(d, 3, 3);
    d->o->run = sim_run_vote, d->o->cls = C_SHUFFLE, d->o->unknown = U_RUN, d->o->sub = (uint8_t)mode;
    sim_dec_def(d, &d->i->op[0], sim_type_class(t));
    sim_dec_in(d, &d->i->op[1], 'p', T_PRED);
    sim_dec_in(d, &d->i->op[2], 'w', T_B32);
    return true;
}

static bool match(dec *d)
{
    bool any = sim_dec_mod(d, "any"), all = !any && sim_dec_mod(d, "all"), sync = sim_dec_mod(d, "sync");
    sim_type t = sim_dec_type(d);
    if (!sync || (!any && !all))
        sim_dec_fail(d, "this match is unknown");
    sim_dec_ops(d, 3, 3);
    d->o->run = sim_run_match, d->o->cls = C_SHUFFLE, d->o->unknown = U_RUN, d->o->sub = all, d->o->wide = sim_type_class(t) == 'q';
    sim_dec_def(d, &d->i->op[0], 'w');
    sim_dec_pair(d, &d->i->op[0]);
    sim_dec_in(d, &d->i->op[1], sim_type_class(t), t);
    sim_dec_in(d, &d->i->op[2], 'w', T_B32);
    return true;
}

static bool activemask(dec *d)
{
    sim_dec_type(d);
    sim_dec_ops(d, 1, 1);
    d->o->run = sim_run_active, d->o->cls = C_SHUFFLE;
    sim_dec_def(d, &d->i->op[0], 'w');
    return true;
}

static bool redux(dec *d)
{
    static const char *const ops[] = { "add", "min", "max", "and", "or", "xor", NULL };
    bool sync = sim_dec_mod(d, "sync");
    int op = sim_dec_one_of(d, ops, -1);
    sim_type t = sim_dec_type(d);
    if (!sync || op < 0 || sim_type_float(t) || sim_type_bytes(t) != 4)
        sim_dec_fail(d, "this reduction is not simulated");
    sim_dec_ops(d, 3, 3);
    d->o->run = sim_run_redux, d->o->cls = C_SHUFFLE, d->o->unknown = U_RUN, d->o->sub = (uint8_t)op, d->o->type = (uint8_t)t;
    sim_dec_def(d, &d->i->op[0], 'w');
    for (int k = 1; k < 3; k++)
        sim_dec_in(d, &d->i->op[k], 'w', t);
    return true;
}

static bool elect(dec *d)
{
    if (!sim_dec_mod(d, "sync"))
        sim_dec_fail(d, "only elect.sync is known");
    sim_dec_ops(d, 2, 2);
    d->o->run = sim_run_elect, d->o->cls = C_SHUFFLE;
    sim_dec_def(d, &d->i->op[0], 'w');
    sim_dec_pair(d, &d->i->op[0]);
    sim_dec_in(d, &d->i->op[1], 'w', T_B32);
    return true;
}

/* ---- barriers ---- */

static bool bar(dec *d)
{
    sim_insn *o = d->o;
    if (!strcmp(d->i->word[0], "barrier")) {
        if (sim_dec_mod(d, "cluster")) {
            sim_dec_mod(d, "aligned"); /* as for bar: a warp comes as a whole either way */
            bool arrive = sim_dec_mod(d, "arrive"), wait = sim_dec_mod(d, "wait");
            if (arrive && sim_dec_mod(d, "relaxed"))
                o->sub = ARRIVE_RELAXED;
            sim_dec_mod(d, arrive ? "release" : "acquire");
            sim_dec_ops(d, 0, 0);
            if (arrive == wait)
                sim_dec_fail(d, "this barrier is unknown");
            o->cls = C_CONTROL, o->run = arrive ? sim_run_cluster_arrive : sim_run_cluster_wait;
            return true;
        }
    }
    sim_dec_mod(d, "cta");
    if (sim_dec_mod(d, "warp")) {
        if (!sim_dec_mod(d, "sync"))
            sim_dec_fail(d, "this barrier is unknown");
        sim_dec_ops(d, 1, 1);
        o->run = sim_run_warp_barrier, o->cls = C_CONTROL;
        sim_dec_in(d, &d->i->op[0], 'w', T_B32);
        return true;
    }
    sim_dec_mod(d, "aligned");
    bool sync = sim_dec_mod(d, "sync"), arrive = sim_dec_mod(d, "arrive"), red = sim_dec_mod(d, "red");
    int sub = sync ? BAR_SYNC : BAR_ARRIVE, ops = d->i->ops, last = ops;
    sim_type t = T_NONE;
    if (red) {
        sub = sim_dec_mod(d, "and") ? BAR_AND : sim_dec_mod(d, "or") ? BAR_OR : sim_dec_mod(d, "popc") ? BAR_POPC : -1;
        t = sim_dec_type(d);
        if (sub < 0 || t != (sub == BAR_POPC ? T_U32 : T_PRED))
            sim_dec_fail(d, "this reduction is unknown");
        sim_dec_ops(d, 3, 4);
        last = ops - 1;
    } else if (sync == arrive)
        sim_dec_fail(d, "this barrier is unknown");
    else
        sim_dec_ops(d, arrive ? 2 : 1, 2);
    o->run = sim_run_barrier, o->cls = C_CONTROL, o->sub = (uint8_t)sub, o->unknown = U_RUN;
    if (red)
        sim_dec_def(d, &d->i->op[0], sim_type_class(t));
    int first = red ? 1 : 0;
    sim_dec_in(d, &d->i->op[first], 'w', T_U32);
    if (last - first > 1)
        sim_dec_in(d, &d->i->op[first + 1], 'w', T_U32);
    else
        sim_dec_push(d, SIM_NO_ARG, false);
    if (red)
        sim_dec_in(d, &d->i->op[ops - 1], 'p', T_PRED);
    return true;
}

static bool fence(dec *d)
{
    static const char *const words[] = { "sc",
                                         "acq_rel",
                                         "proxy",
                                         "alias",
                                         "async",
                                         "async.global",
                                         "global",
                                         "shared::cta",
                                         "shared::cluster",
                                         "tensormap::generic",
                                         "mbarrier_init",
                                         "sync_restrict::shared::cta",
                                         "sync_restrict::shared::cluster",
                                         "gl",
                                         "cta",
                                         "gpu",
                                         "sys",
                                         "async::generic",
                                         NULL };
    bool proxy = sim_dec_mod(d, "proxy"), async = sim_dec_mod(d, "async"), global = sim_dec_mod(d, "global"), cta = sim_dec_mod(d, "cta"),
         init = sim_dec_mod(d, "mbarrier_init"), acquire = sim_dec_mod(d, "acquire"), release = sim_dec_mod(d, "release"),
         cluster = sim_dec_mod(d, "cluster");
    if (!proxy && !init && !cta && !cluster)
        d->o->order = (uint8_t)(ORDER_GRID | (acquire ? 0 : ORDER_RELEASE) | (release ? 0 : ORDER_ACQUIRE));
    while (sim_dec_one_of(d, words, -1) >= 0) {
    }
    d->o->run = sim_run_fence, d->o->cls = C_CONTROL,
    d->o->sub = proxy && async && !global ? FENCE_ASYNC
                : init                    ? FENCE_INIT
                : proxy || cta            ? FENCE_BLOCK
                                          : FENCE_MEMORY;
    return true;
}

/* ---- clusters ---- */

/* mapa[.shared::cluster].u32|u64 d, a, rank;  getctarank[.shared::cluster].u32|u64 d, a */
static bool mapa(dec *d)
{
    bool map = *d->i->word[0] == 'm';
    sim_space s = sim_dec_space(d);
    sim_type t = sim_dec_type(d);
    if ((s != SP_GENERIC && s != SP_CLUSTER) || (t != T_U32 && t != T_U64) || (s == SP_GENERIC && t == T_U32))
        sim_dec_fail(d, "this form is unknown");
    sim_dec_ops(d, map ? 3 : 2, map ? 3 : 2);
    char c = sim_type_class(t);
    sim_dec_def(d, &d->i->op[0], map ? c : 'w');
    sim_dec_in(d, &d->i->op[1], c, t);
    if (map)
        sim_dec_in(d, &d->i->op[2], 'w', T_U32);
    d->o->run = map ? sim_run_map_address : sim_run_rank_of, d->o->space = (uint8_t)s, d->o->wide = c == 'q';
    return true;
}

/* clang-format off */
const dec_row sim_decoders[] = {
    {"mov", mov}, {"and", logic}, {"or", logic}, {"xor", logic}, {"not", neg_not}, {"setp", setp}, {"set", setp}, {"selp", selp}, {"testp", testp},
    {"add", carry}, {"addc", carry}, {"sub", carry}, {"subc", carry}, {"lop3", lop3}, {"slct", slct}, {"cvt", cvt}, {"cvta", cvta}, {"isspacep", isspacep},
    {"bra", bra}, {"brx", brx}, {"ret", leave}, {"exit", leave}, {"trap", trap}, {"brkpt", trap},
    {"nanosleep", nothing}, {"griddepcontrol", griddepcontrol}, {"setmaxnreg", sim_decode_registers}, {"pmevent", nothing}, {"discard", nothing}, {"applypriority", nothing},
    {"createpolicy", createpolicy}, {"ld", sim_decode_load_store}, {"ldu", sim_decode_load_store}, {"st", sim_decode_load_store}, {"prefetch", sim_decode_prefetch}, {"prefetchu", sim_decode_prefetch},
    {"atom", sim_decode_atom}, {"red", sim_decode_atom}, {"shfl", shfl}, {"vote", vote}, {"match", match}, {"activemask", activemask}, {"redux", redux}, {"elect", elect},
    {"bar", bar}, {"barrier", bar}, {"membar", fence}, {"fence", fence}, {"ldmatrix", sim_decode_ldmatrix}, {"stmatrix", sim_decode_ldmatrix}, {"movmatrix", sim_decode_movmatrix}, {"mma", sim_decode_mma}, {"cp", sim_decode_cp},
    {"mbarrier", sim_decode_mbarrier}, {"mapa", mapa}, {"getctarank", mapa}, {"wgmma", sim_decode_wgmma}, {NULL, NULL},
};
/* clang-format on */
