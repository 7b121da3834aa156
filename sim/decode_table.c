/* decode_table: the functions that understand one first word of an opcode each, and their table. */
#include "alu.h"
#include "decode.h"
#include "run.h"
#include <stdlib.h>
#include <string.h>

static const char *const scopes[] = {"cta", "cluster", "gpu", "sys", NULL};

static char cls_of(sim_type t) { return t == T_PRED ? 'p' : sim_type_bytes(t) == 8 ? 'q' : 'w'; }

static sim_space space(dec *d)
{
    if (dec_mod(d, "global")) return SP_GLOBAL;
    if (dec_mod(d, "shared") || dec_mod(d, "shared::cta") || dec_mod(d, "shared::cluster")) return SP_SHARED;
    if (dec_mod(d, "local")) return SP_LOCAL;
    if (dec_mod(d, "param") || dec_mod(d, "param::entry")) return SP_PARAM;
    if (dec_mod(d, "const")) return SP_CONST;
    return SP_GENERIC;
}

/* ---- moves, predicates, comparisons ---- */

static bool mov(dec *d)
{
    dec_ops(d, 2, 2);
    const ptx_operand *to = &d->i->op[0], *from = &d->i->op[1];
    sim_insn *o = d->o;
    uint32_t before = d->i->used;
    sim_type t = dec_type(d);
    o->unknown = U_PROPAGATE;
    if (t == T_PRED) {
        o->run = sim_run_pred_move;
        dec_def(d, to, 'p');
        dec_in(d, from, 'p', t);
        return true;
    }
    if (to->kind == O_VECTOR || from->kind == O_VECTOR) { /* of 16, 32 or 64 bits as a whole */
        bool pack = from->kind == O_VECTOR;
        const ptx_operand *v = pack ? from : to;
        int bytes = sim_type_bytes(t);
        if (bytes % v->n || bytes / v->n > 4 || v->n > 4) dec_fail(d, "wrong number of elements");
        if (pack) dec_def(d, to, cls_of(t));
        for (int k = 0; k < v->n; k++) {
            if (pack) dec_in(d, &v->elem[k], 'w', bytes / v->n == 2 ? T_B16 : T_B32);
            else dec_def(d, &v->elem[k], 'w');
        }
        if (!pack) dec_in(d, from, cls_of(t), t);
        o->run = pack ? sim_run_pack : sim_run_unpack;
        o->count = (uint8_t)v->n, o->sub = (uint8_t)(8 * bytes / v->n), o->wide = bytes == 8;
        return true;
    }
    if (from->kind == O_SPECIAL && (!strncmp(from->name, "%clock", 6) || !strncmp(from->name, "%globaltimer", 12))) {
        if (strcmp(from->name, "%clock") && strcmp(from->name, "%clock_hi") && strcmp(from->name, "%clock64") && strcmp(from->name, "%globaltimer") &&
            strcmp(from->name, "%globaltimer_lo"))
            return d->i->used = before, false;
        o->run = sim_run_clock, o->wide = cls_of(t) == 'q', o->sub = from->name[1] == 'g' ? 1 : !strcmp(from->name, "%clock_hi") ? 2 : 0;
        dec_def(d, to, cls_of(t));
        return true;
    }
    return d->i->used = before, false; /* the common case: a row of alu_integer.c */
}

static bool logic(dec *d)
{
    uint32_t before = d->i->used;
    if (dec_type(d) != T_PRED) return d->i->used = before, false;
    const char *w = d->i->word[0];
    d->o->sub = *w == 'a' ? LOGIC_AND : *w == 'o' ? LOGIC_OR : *w == 'x' ? LOGIC_XOR : LOGIC_NOT;
    d->o->run = sim_run_pred_logic, d->o->unknown = U_PROPAGATE;
    int n = *w == 'n' ? 2 : 3;
    dec_ops(d, n, n);
    dec_def(d, &d->i->op[0], 'p');
    for (int k = 1; k < n; k++) dec_in(d, &d->i->op[k], 'p', T_PRED);
    return true;
}

/* setp.CMP[.BOOL][.ftz].type p[|q], a, b[, c];  set.CMP...dtype.stype d, a, b */
static bool setp(dec *d)
{
    static const char *const bools[] = {"and", "or", "xor", NULL};
    static const char *const compares[] = {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan", "lo", "ls", "hi", "hs", NULL};
    bool set = !strcmp(d->i->word[0], "set");
    sim_insn *o = d->o;
    sim_type t = dec_type(d);
    if (set) o->type = (uint8_t)dec_type(d);
    int b = dec_one_of(d, bools, -1), c = dec_one_of(d, compares, -1);
    bool ftz = dec_mod(d, "ftz");
    if (c < 0) dec_fail(d, "the comparison is missing");
    if (!(o->fn.cmp = sim_compare_find(compares[c], t, ftz))) dec_fail(d, "this comparison of this type is unknown");
    dec_ops(d, b < 0 ? 3 : 4, b < 0 ? 3 : 4);
    o->run = set ? sim_run_set : sim_run_setp, o->unknown = U_PROPAGATE;
    o->sub = (uint8_t)(b < 0 ? LOGIC_NONE : b);
    dec_def(d, &d->i->op[0], set ? 'w' : 'p');
    if (!set) dec_pair(d, &d->i->op[0]);
    dec_in(d, &d->i->op[1], cls_of(t), t);
    dec_in(d, &d->i->op[2], cls_of(t), t);
    if (b >= 0) dec_in(d, &d->i->op[3], 'p', T_PRED);
    return true;
}

static bool selp(dec *d)
{
    sim_type t = dec_type(d);
    dec_ops(d, 4, 4);
    d->o->run = sim_run_selp, d->o->unknown = U_SELECT, d->o->wide = cls_of(t) == 'q';
    dec_def(d, &d->i->op[0], cls_of(t));
    dec_in(d, &d->i->op[1], cls_of(t), t);
    dec_in(d, &d->i->op[2], cls_of(t), t);
    dec_in(d, &d->i->op[3], 'p', T_PRED);
    return true;
}

static bool testp(dec *d)
{
    static const char *const kinds[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal", NULL};
    sim_type t = dec_type(d);
    int k = dec_one_of(d, kinds, -1);
    dec_ops(d, 2, 2);
    if (k < 0) dec_fail(d, "the test is missing");
    d->o->run = sim_run_testp, d->o->sub = (uint8_t)k, d->o->wide = t == T_F64, d->o->unknown = U_PROPAGATE;
    dec_def(d, &d->i->op[0], 'p');
    dec_in(d, &d->i->op[1], cls_of(t), t);
    return true;
}

static bool carry(dec *d) /* add.cc, addc[.cc], sub.cc, subc[.cc] */
{
    const char *w = d->i->word[0];
    bool out = dec_mod(d, "cc"), in = w[3] == 'c';
    if (!out && !in) return false;
    sim_type t = dec_type(d);
    dec_ops(d, 3, 3);
    d->o->run = sim_run_carry, d->o->wide = cls_of(t) == 'q', d->o->unknown = U_PROPAGATE;
    d->o->sub = (uint8_t)((*w == 'a' ? CARRY_ADD : CARRY_SUB) | (in ? CARRY_IN : 0) | (out ? CARRY_OUT : 0));
    dec_def(d, &d->i->op[0], cls_of(t));
    for (int k = 1; k < 3; k++) dec_in(d, &d->i->op[k], cls_of(t), t);
    return true;
}

static bool neg_not(dec *d) { return !strcmp(d->i->word[0], "not") && logic(d); }

static bool slct(dec *d) /* slct.dtype.ctype: a row per width of dtype */
{
    if (d->i->words < 3) dec_fail(d, "the instruction has no type");
    sim_type t = sim_type_of(d->i->word[1]);
    if (t == T_NONE || sim_type_bytes(t) < 4) dec_fail(d, "this selection is not simulated");
    d->i->word[1] = cls_of(t) == 'q' ? "wide" : "";
    if (cls_of(t) != 'q') d->i->used |= 2;
    return false;
}

static bool lop3(dec *d)
{
    if (dec_mod(d, "or") || dec_mod(d, "and")) dec_fail(d, "lop3 with a predicate is not simulated");
    return false;
}

static bool cvt(dec *d)
{
    static const char *const modes[] = {"rn", "rz", "rm", "rp", "rna", NULL}, *const whole[] = {"rni", "rzi", "rmi", "rpi", NULL};
    sim_insn *o = d->o;
    sim_type from = dec_type(d), to = dec_type(d);
    int r = dec_one_of(d, modes, -1), ri = dec_one_of(d, whole, -1);
    bool sat = dec_mod(d, "sat"), ftz = dec_mod(d, "ftz"), relu = dec_mod(d, "relu");
    o->unknown = U_PROPAGATE;
    o->type = (uint8_t)to, o->type2 = (uint8_t)from, o->round = (uint8_t)(r >= 0 ? r : ri >= 0 ? ri : 0);
    if (to == T_F16X2 || to == T_BF16X2) {
        dec_ops(d, 3, 3);
        if (from != T_F32 || sat || ftz || (r != ROUND_NEAREST && r != ROUND_ZERO)) dec_fail(d, "this conversion is not simulated");
        o->run = sim_run_convert_pair, o->sub = relu;
        dec_def(d, &d->i->op[0], 'w');
        for (int k = 1; k < 3; k++) dec_in(d, &d->i->op[k], 'w', T_F32);
        return true;
    }
    dec_ops(d, 2, 2);
    if (relu || !sim_convert_ok(to, from)) dec_fail(d, "this conversion is not simulated");
    char dc = dec_class(d, &d->i->op[0]), ac = d->i->op[1].kind == O_REG ? dec_class(d, &d->i->op[1]) : cls_of(from);
    if (d->i->op[0].kind != O_REG || dc == 'p' || ac == 'p' || (cls_of(to) == 'q' && dc != 'q') || (cls_of(from) == 'q' && ac != 'q')) dec_fail(d, "an operand has the wrong size");
    dec_def(d, &d->i->op[0], dc);
    dec_in(d, &d->i->op[1], ac, from);
    o->wide = dc == 'q';
    int bytes = sim_type_bytes(d->f->reg[d->i->op[0].reg].type);
    if (dc == cls_of(to) && ac == cls_of(from) && bytes == (sim_type_bytes(to) < 2 ? bytes : sim_type_bytes(to)) && ri < 0 &&
        (o->fn.alu = sim_convert_find(to, from, o->round, sat, ftz))) {
        o->kind = K_ALU;
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
    bool to = dec_mod(d, "to");
    sim_space s = space(d);
    sim_type t = dec_type(d);
    dec_ops(d, 2, 2);
    uint64_t window = s == SP_SHARED ? SIM_WINDOW_SHARED : s == SP_LOCAL ? SIM_WINDOW_LOCAL : s == SP_PARAM ? SIM_WINDOW_PARAM : 0;
    static const char *const add = "add", *const sub = "sub";
    char c = cls_of(t);
    if (c != 'q') dec_fail(d, "generic addresses are 64 bits wide");
    d->o->kind = K_ALU, d->o->wide = true, d->o->unknown = U_PROPAGATE;
    for (const sim_alu_row *r = sim_alu_integer; r->op; r++)
        if (!strcmp(r->op, to ? sub : add) && r->types & TB(U64)) d->o->fn.alu = r->fn;
    dec_def(d, &d->i->op[0], c);
    dec_in(d, &d->i->op[1], c, t);
    dec_push(d, dec_constant(d, window, true), false);
    return true;
}

static bool isspacep(dec *d)
{
    d->o->type = (uint8_t)space(d);
    dec_ops(d, 2, 2);
    d->o->run = sim_run_isspace, d->o->unknown = U_PROPAGATE;
    dec_def(d, &d->i->op[0], 'p');
    dec_in(d, &d->i->op[1], 'q', T_U64);
    return true;
}

/* ---- control ---- */

static uint32_t label(dec *d, const char *name)
{
    int k = sim_ptx_label(d->f, name, (uint32_t)(d->i - d->f->insn));
    if (k < 0) dec_fail(d, "the label is not defined");
    return d->f->label[k].at;
}

static bool bra(dec *d)
{
    dec_mod(d, "uni");
    dec_ops(d, 1, 1);
    if (d->i->op[0].kind != O_SYMBOL) dec_fail(d, "expected a label");
    d->o->run = sim_run_branch, d->o->cls = C_CONTROL;
    d->o->target = label(d, d->i->op[0].name);
    return true;
}

static bool brx(dec *d)
{
    dec_mod(d, "uni");
    if (!dec_mod(d, "idx")) dec_fail(d, "only brx.idx is known");
    dec_ops(d, 2, 2);
    int k = d->i->op[1].kind == O_SYMBOL ? sim_ptx_label(d->f, d->i->op[1].name, (uint32_t)(d->i - d->f->insn)) : -1;
    if (k < 0 || !d->f->label[k].targets) dec_fail(d, "the list of targets is not defined");
    uint32_t n = 1;
    for (const char *s = d->f->label[k].targets; *s; s++) n += *s == ',';
    sim_targets *t = sim_ptx_keep(d->p, sizeof *t + n * sizeof *t->at);
    char *copy = sim_ptx_copy(d->p, d->f->label[k].targets, strlen(d->f->label[k].targets)), *rest = NULL;
    for (char *s = strtok_r(copy, ", \t\r\n", &rest); s && t->n < n; s = strtok_r(NULL, ", \t\r\n", &rest)) t->at[t->n++] = label(d, s);
    d->o->run = sim_run_branch_index, d->o->cls = C_CONTROL, d->o->fn.data = t;
    dec_in(d, &d->i->op[0], 'w', T_U32);
    return true;
}

static bool leave(dec *d)
{
    dec_mod(d, "uni");
    dec_ops(d, 0, 0);
    d->o->run = sim_run_exit, d->o->cls = C_CONTROL;
    return true;
}
static bool trap(dec *d)
{
    d->o->run = sim_run_trap, d->o->cls = C_CONTROL;
    return true;
}
static bool call(dec *d) { dec_fail(d, "calls are not simulated; mark the function __forceinline__"); }

/* Hints without effect here: every modifier is accepted, operands are not evaluated. */
static bool nothing(dec *d)
{
    d->i->used = SIM_ALL;
    d->o->run = sim_run_nothing, d->o->cls = C_CONTROL;
    return true;
}

static bool createpolicy(dec *d)
{
    d->i->used = SIM_ALL;
    d->o->run = sim_run_clock, d->o->wide = true, d->o->sub = 3, d->o->unknown = U_PROPAGATE;
    if (!d->i->ops) dec_fail(d, "wrong number of operands");
    dec_def(d, &d->i->op[0], 'q');
    return true;
}

/* ---- memory ---- */

static bool hints(dec *d) /* true: there is a cache-policy operand */
{
    static const char *const words[] = {"nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first",
                                        "L1::evict_last", "L1::no_allocate", "L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::64B",
                                        "L2::128B", "L2::256B", "weak", NULL};
    while (dec_one_of(d, words, -1) >= 0) {}
    return dec_mod(d, "L2::cache_hint");
}
static bool ordered(dec *d)
{
    static const char *const words[] = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", NULL};
    bool r = dec_one_of(d, words, -1) >= 0;
    dec_one_of(d, scopes, 0);
    return r;
}

static bool load_store(dec *d)
{
    bool store = !strcmp(d->i->word[0], "st");
    sim_insn *o = d->o;
    sim_space s = space(d);
    if (ordered(d)) o->flags |= F_VOLATILE;
    bool policy = hints(d);
    int n = dec_mod(d, "v2") ? 2 : dec_mod(d, "v4") ? 4 : dec_mod(d, "v8") ? 8 : 1;
    sim_type t = dec_type(d);
    if (t == T_PRED || t == T_B128 || n * sim_type_bytes(t) > 32) dec_fail(d, "this type cannot be moved");
    dec_ops(d, policy ? 3 : 2, policy ? 3 : 2);
    if (policy) dec_policy(d, 2);
    const ptx_operand *v = &d->i->op[store ? 1 : 0], *list = v->kind == O_VECTOR ? v->elem : v;
    if ((v->kind == O_VECTOR ? v->n : 1) != n) dec_fail(d, "wrong number of elements");
    if (store && (s == SP_PARAM || s == SP_CONST)) dec_fail(d, "this space cannot be written");
    char c = 0;
    for (int k = 0; k < n; k++) {
        char x = list[k].kind == O_REG ? dec_class(d, &list[k]) : cls_of(t);
        if (x == 'p' || (c && x != c && list[k].kind == O_REG) || (cls_of(t) == 'q' && x != 'q')) dec_fail(d, "an operand has the wrong size");
        if (list[k].kind == O_REG || !c) c = x;
    }
    if (!store) for (int k = 0; k < n; k++) dec_def(d, &list[k], c);
    dec_address(d, &d->i->op[store ? 0 : 1], s);
    if (store) for (int k = 0; k < n; k++) dec_in(d, &list[k], c, t);
    o->run = store ? sim_run_store : sim_run_load;
    o->cls = C_MEMORY, o->space = (uint8_t)s, o->type = (uint8_t)t, o->count = (uint8_t)n, o->wide = c == 'q', o->sub = (uint8_t)sim_type_bytes(t);
    if (store && s == SP_LOCAL) o->unknown = U_PROPAGATE; /* spilling an undefined register decides nothing */
    return true;
}

static bool prefetch(dec *d)
{
    sim_space s = space(d);
    static const char *const words[] = {"L1", "L2", "L2::evict_last", "L2::evict_normal", NULL};
    dec_one_of(d, words, 0);
    dec_ops(d, 1, 1);
    dec_address(d, &d->i->op[0], s);
    d->o->run = sim_run_prefetch, d->o->cls = C_MEMORY, d->o->space = (uint8_t)s;
    return true;
}

static bool atom(dec *d)
{
    static const char *const ops[] = {"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec", NULL};
    bool red = !strcmp(d->i->word[0], "red");
    sim_insn *o = d->o;
    sim_space s = space(d);
    ordered(d);
    bool policy = hints(d);
    dec_mod(d, "noftz");
    int op = dec_one_of(d, ops, -1);
    sim_type t = dec_type(d);
    if (op < 0) dec_fail(d, "this atomic operation is not simulated");
    bool floating = sim_type_float(t);
    if (sim_type_bytes(t) < 4 || (floating && (op != ATOM_ADD || t == T_TF32)) || t == T_B128) dec_fail(d, "this atomic operation of this type is not simulated");
    int n = (red ? 0 : 1) + 2 + (op == ATOM_CAS) + policy;
    dec_ops(d, n, n);
    const ptx_operand *at = &d->i->op[red ? 0 : 1];
    if (red) dec_push(d, SIM_NO_ARG, false), o->defs = 1;
    else dec_def(d, &d->i->op[0], cls_of(t));
    dec_address(d, at, s);
    dec_in(d, at + 1, cls_of(t), t);
    if (op == ATOM_CAS) dec_in(d, at + 2, cls_of(t), t);
    o->run = sim_run_atom, o->cls = C_MEMORY, o->space = (uint8_t)s, o->type = (uint8_t)t, o->sub = (uint8_t)op, o->wide = cls_of(t) == 'q';
    return true;
}

/* ---- between lanes ---- */

static bool shfl(dec *d)
{
    static const char *const modes[] = {"up", "down", "bfly", "idx", NULL};
    bool sync = dec_mod(d, "sync");
    int mode = dec_one_of(d, modes, -1);
    if (!sync || mode < 0 || dec_type(d) != T_B32) dec_fail(d, "this shuffle is unknown");
    dec_ops(d, 5, 5);
    d->o->run = sim_run_shuffle, d->o->cls = C_SHUFFLE, d->o->sub = (uint8_t)mode, d->o->unknown = U_PROPAGATE;
    dec_def(d, &d->i->op[0], 'w');
    dec_pair(d, &d->i->op[0]);
    for (int k = 1; k < 5; k++) dec_in(d, &d->i->op[k], 'w', T_B32);
    return true;
}

static bool vote(dec *d)
{
    static const char *const modes[] = {"all", "any", "uni", "ballot", NULL};
    bool sync = dec_mod(d, "sync");
    int mode = dec_one_of(d, modes, -1);
    sim_type t = dec_type(d);
    if (!sync || mode < 0 || t != (mode == VOTE_BALLOT ? T_B32 : T_PRED)) dec_fail(d, "this vote is unknown");
    dec_ops(d, 3, 3);
    d->o->run = sim_run_vote, d->o->cls = C_SHUFFLE, d->o->sub = (uint8_t)mode;
    dec_def(d, &d->i->op[0], cls_of(t));
    dec_in(d, &d->i->op[1], 'p', T_PRED);
    dec_in(d, &d->i->op[2], 'w', T_B32);
    return true;
}

static bool match(dec *d)
{
    bool any = dec_mod(d, "any"), all = !any && dec_mod(d, "all"), sync = dec_mod(d, "sync");
    sim_type t = dec_type(d);
    if (!sync || (!any && !all)) dec_fail(d, "this match is unknown");
    dec_ops(d, 3, 3);
    d->o->run = sim_run_match, d->o->cls = C_SHUFFLE, d->o->sub = all, d->o->wide = cls_of(t) == 'q';
    dec_def(d, &d->i->op[0], 'w');
    dec_pair(d, &d->i->op[0]);
    dec_in(d, &d->i->op[1], cls_of(t), t);
    dec_in(d, &d->i->op[2], 'w', T_B32);
    return true;
}

static bool activemask(dec *d)
{
    dec_type(d);
    dec_ops(d, 1, 1);
    d->o->run = sim_run_active, d->o->cls = C_SHUFFLE;
    dec_def(d, &d->i->op[0], 'w');
    return true;
}

static bool redux(dec *d)
{
    static const char *const ops[] = {"add", "min", "max", "and", "or", "xor", NULL};
    bool sync = dec_mod(d, "sync");
    int op = dec_one_of(d, ops, -1);
    sim_type t = dec_type(d);
    if (!sync || op < 0 || sim_type_float(t) || sim_type_bytes(t) != 4) dec_fail(d, "this reduction is not simulated");
    dec_ops(d, 3, 3);
    d->o->run = sim_run_redux, d->o->cls = C_SHUFFLE, d->o->sub = (uint8_t)op, d->o->type = (uint8_t)t;
    dec_def(d, &d->i->op[0], 'w');
    for (int k = 1; k < 3; k++) dec_in(d, &d->i->op[k], 'w', t);
    return true;
}

static bool elect(dec *d)
{
    if (!dec_mod(d, "sync")) dec_fail(d, "only elect.sync is known");
    dec_ops(d, 2, 2);
    d->o->run = sim_run_elect, d->o->cls = C_SHUFFLE;
    dec_def(d, &d->i->op[0], 'w');
    dec_pair(d, &d->i->op[0]);
    dec_in(d, &d->i->op[1], 'w', T_B32);
    return true;
}

/* ---- barriers ---- */

static bool bar(dec *d)
{
    sim_insn *o = d->o;
    if (!strcmp(d->i->word[0], "barrier")) {
        if (dec_mod(d, "cluster")) { /* a cluster of one block: the threads of the block meet */
            static const char *const order[] = {"relaxed", "acquire", "release", NULL};
            dec_mod(d, "aligned");
            bool arrive = dec_mod(d, "arrive"), wait = dec_mod(d, "wait");
            dec_one_of(d, order, 0);
            dec_ops(d, 0, 0);
            if (arrive == wait) dec_fail(d, "this barrier is unknown");
            o->cls = C_CONTROL;
            o->run = arrive ? sim_run_nothing : sim_run_barrier;
            if (wait) dec_push(d, dec_constant(d, 0, false), false), dec_push(d, SIM_NO_ARG, false), dec_push(d, SIM_NO_ARG, false), dec_push(d, SIM_NO_ARG, false);
            return true;
        }
    }
    dec_mod(d, "cta");
    if (dec_mod(d, "warp")) {
        if (!dec_mod(d, "sync")) dec_fail(d, "this barrier is unknown");
        dec_ops(d, 1, 1);
        o->run = sim_run_warp_barrier, o->cls = C_CONTROL;
        dec_in(d, &d->i->op[0], 'w', T_B32);
        return true;
    }
    if (dec_mod(d, "aligned") || !strcmp(d->i->word[0], "bar")) o->flags |= F_ALIGNED;
    bool sync = dec_mod(d, "sync"), arrive = dec_mod(d, "arrive"), red = dec_mod(d, "red");
    int sub = sync ? BAR_SYNC : BAR_ARRIVE, ops = d->i->ops, last = ops;
    sim_type t = T_NONE;
    if (red) {
        sub = dec_mod(d, "and") ? BAR_AND : dec_mod(d, "or") ? BAR_OR : dec_mod(d, "popc") ? BAR_POPC : -1;
        t = dec_type(d);
        if (sub < 0 || t != (sub == BAR_POPC ? T_U32 : T_PRED)) dec_fail(d, "this reduction is unknown");
        dec_ops(d, 3, 4);
        last = ops - 1;
    } else if (sync == arrive) dec_fail(d, "this barrier is unknown");
    else dec_ops(d, arrive ? 2 : 1, 2);
    o->run = sim_run_barrier, o->cls = C_CONTROL, o->sub = (uint8_t)sub;
    if (red) dec_def(d, &d->i->op[0], cls_of(t));
    int first = red ? 1 : 0;
    dec_in(d, &d->i->op[first], 'w', T_U32);
    if (last - first > 1) dec_in(d, &d->i->op[first + 1], 'w', T_U32);
    else dec_push(d, SIM_NO_ARG, false);
    if (red) dec_in(d, &d->i->op[ops - 1], 'p', T_PRED);
    return true;
}

static bool fence(dec *d)
{
    static const char *const words[] = {"sc", "acq_rel", "acquire", "release", "proxy", "alias", "async", "async.global", "global", "shared::cta", "shared::cluster", "tensormap::generic",
                                        "mbarrier_init", "sync_restrict::shared::cta", "sync_restrict::shared::cluster", "gl", "cta", "cluster", "gpu", "sys", "async::generic", NULL};
    while (dec_one_of(d, words, -1) >= 0) {}
    d->o->run = sim_run_fence, d->o->cls = C_CONTROL;
    return true;
}

/* ---- matrices ---- */

static void registers(dec *d, const ptx_operand *v, int n, bool def)
{
    const ptx_operand *list = v->kind == O_VECTOR ? v->elem : v;
    if ((v->kind == O_VECTOR ? v->n : 1) != n) dec_fail(d, "wrong number of registers");
    for (int k = 0; k < n; k++) {
        if (def) dec_def(d, &list[k], 'w');
        else dec_in(d, &list[k], 'w', T_B32);
    }
}

static bool ldmatrix(dec *d)
{
    bool store = *d->i->word[0] == 's', sync = dec_mod(d, "sync") && dec_mod(d, "aligned") && dec_mod(d, "m8n8");
    int n = dec_mod(d, "x1") ? 1 : dec_mod(d, "x2") ? 2 : dec_mod(d, "x4") ? 4 : 0;
    if (dec_mod(d, "trans")) d->o->flags |= F_TRANS;
    sim_space s = space(d);
    if (!sync || !n || dec_type(d) != T_B16 || (s != SP_SHARED && s != SP_GENERIC)) dec_fail(d, "this matrix move is not simulated");
    dec_ops(d, 2, 2);
    d->o->run = store ? sim_run_stmatrix : sim_run_ldmatrix, d->o->cls = C_MEMORY, d->o->space = (uint8_t)s, d->o->count = (uint8_t)n;
    if (!store) registers(d, &d->i->op[0], n, true);
    dec_address(d, &d->i->op[store ? 0 : 1], s);
    if (store) registers(d, &d->i->op[1], n, false);
    return true;
}

static bool mma(dec *d)
{
    static const struct { const char *shape; sim_type t; int k, a, b; } shapes[] = {
        {"m16n8k16", T_F16, 16, 4, 2}, {"m16n8k16", T_BF16, 16, 4, 2}, {"m16n8k8", T_F16, 8, 2, 1}, {"m16n8k8", T_BF16, 8, 2, 1},
        {"m16n8k8", T_TF32, 8, 4, 2}, {"m16n8k4", T_TF32, 4, 2, 1},
    };
    bool ok = dec_mod(d, "sync") && dec_mod(d, "aligned") && dec_mod(d, "row") && dec_mod(d, "col");
    if (!ok) dec_fail(d, "this mma is not simulated");
    sim_type c = dec_type(d), b = dec_type(d), a = dec_type(d), r = dec_type(d);
    if (a != b || c != T_F32 || r != T_F32) dec_fail(d, "this mma is not simulated");
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        if (shapes[k].t != a || !dec_mod(d, shapes[k].shape)) continue;
        dec_ops(d, 4, 4);
        d->o->run = sim_run_mma, d->o->cls = C_MATRIX, d->o->type = (uint8_t)a, d->o->count = (uint8_t)shapes[k].k;
        registers(d, &d->i->op[0], 4, true);
        registers(d, &d->i->op[1], shapes[k].a, false);
        registers(d, &d->i->op[2], shapes[k].b, false);
        registers(d, &d->i->op[3], 4, false);
        return true;
    }
    dec_fail(d, "this mma is not simulated");
}

/* ---- asynchronous copies, mbarriers ---- */

static bool cp(dec *d)
{
    sim_insn *o = d->o;
    if (!dec_mod(d, "async")) dec_fail(d, "this copy is not simulated");
    o->cls = C_MEMORY;
    if (dec_mod(d, "commit_group")) return dec_ops(d, 0, 0), o->run = sim_run_commit, o->cls = C_CONTROL, true;
    if (dec_mod(d, "wait_all")) return dec_ops(d, 0, 0), o->run = sim_run_wait, o->sub = WAIT_ALL, o->cls = C_CONTROL, true;
    if (dec_mod(d, "wait_group")) {
        dec_ops(d, 1, 1);
        if (d->i->op[0].kind != O_IMM) dec_fail(d, "the number of groups must be a constant");
        o->run = sim_run_wait, o->sub = WAIT_GROUP, o->imm = (int64_t)d->i->op[0].imm, o->cls = C_CONTROL;
        return true;
    }
    if (dec_mod(d, "mbarrier")) {
        if (!dec_mod(d, "arrive")) dec_fail(d, "this copy is not simulated");
        if (dec_mod(d, "noinc")) o->flags |= F_NOINC;
        sim_space s = space(d);
        dec_type(d);
        dec_ops(d, 1, 1);
        dec_address(d, &d->i->op[0], s);
        o->run = sim_run_copy_arrive, o->space = (uint8_t)s;
        return true;
    }
    bool cg = dec_mod(d, "cg"), ca = !cg && dec_mod(d, "ca"), to = dec_mod(d, "shared") || dec_mod(d, "shared::cta"), from = dec_mod(d, "global"), policy = hints(d);
    if (!(cg || ca) || !to || !from) { /* bulk and tensor copies: another family */
        d->i->used = 1;
        dec_fail(d, "this copy is not simulated");
    }
    dec_ops(d, policy ? 4 : 3, policy ? 5 : 4);
    int extra = d->i->ops - 3 - policy;
    if (policy) dec_policy(d, d->i->ops - 1);
    if (d->i->op[2].kind != O_IMM) dec_fail(d, "the size of a copy must be a constant");
    uint64_t n = d->i->op[2].imm;
    if (n != 16 && (cg || (n != 4 && n != 8))) dec_fail(d, "the size of a copy must be 4, 8 or 16, with .cg 16");
    dec_address(d, &d->i->op[0], SP_SHARED);
    o->target = (uint32_t)o->imm; /* offset of the destination */
    uint16_t wide_to = o->flags & F_WIDE;
    o->flags = (uint16_t)(o->flags & ~F_WIDE);
    dec_address(d, &d->i->op[1], SP_GLOBAL);
    o->wide = wide_to != 0;
    if (extra) {
        bool ignore = d->i->op[3].kind == O_REG && dec_class(d, &d->i->op[3]) == 'p';
        o->flags |= ignore ? F_IGNORE : F_SIZE;
        dec_in(d, &d->i->op[3], ignore ? 'p' : 'w', T_U32);
    }
    o->run = sim_run_copy, o->count = (uint8_t)n;
    return true;
}

static bool mbarrier(dec *d)
{
    sim_insn *o = d->o;
    static const char *const order[] = {"acquire", "release", "relaxed", NULL};
    bool init = dec_mod(d, "init"), inval = dec_mod(d, "inval"), arrive = dec_mod(d, "arrive"), drop = dec_mod(d, "arrive_drop"), test = dec_mod(d, "test_wait"),
         wait = dec_mod(d, "try_wait");
    bool expect = dec_mod(d, "expect_tx"), parity = dec_mod(d, "parity");
    if (dec_mod(d, "noComplete")) dec_fail(d, ".noComplete is not simulated");
    dec_one_of(d, order, 0);
    dec_one_of(d, scopes, 0);
    sim_space s = space(d);
    dec_type(d);
    o->cls = C_MEMORY, o->space = (uint8_t)s;
    if (drop || init + inval + arrive + test + wait != 1 || (expect && !arrive)) dec_fail(d, "this mbarrier operation is not simulated");
    if (init || inval) {
        dec_ops(d, init ? 2 : 1, init ? 2 : 1);
        dec_address(d, &d->i->op[0], s);
        if (init) dec_in(d, &d->i->op[1], 'w', T_U32);
        o->run = init ? sim_run_mbarrier_init : sim_run_mbarrier_inval;
    } else if (arrive) { /* state, [a] {, count or tx} */
        dec_ops(d, 1, 3);
        bool state = d->i->op[0].kind != O_MEMORY;
        if (state) dec_def(d, &d->i->op[0], 'q');
        else dec_push(d, SIM_NO_ARG, false), o->defs = 1;
        dec_address(d, &d->i->op[state], s);
        if (d->i->ops > state + 1) dec_in(d, &d->i->op[state + 1], 'w', T_U32);
        else dec_push(d, SIM_NO_ARG, false);
        if (expect) o->flags |= F_EXPECT;
        o->run = sim_run_mbarrier_arrive;
    } else {
        dec_ops(d, 3, 4); /* p, [a], state or parity {, time} */
        dec_def(d, &d->i->op[0], 'p');
        dec_address(d, &d->i->op[1], s);
        dec_in(d, &d->i->op[2], parity ? 'w' : 'q', parity ? T_U32 : T_U64);
        if (parity) o->flags |= F_PARITY;
        o->run = sim_run_mbarrier_test, o->sub = wait;
    }
    return true;
}

const dec_row sim_decoders[] = {
    {"mov", mov}, {"and", logic}, {"or", logic}, {"xor", logic}, {"not", neg_not}, {"setp", setp}, {"set", setp}, {"selp", selp}, {"testp", testp},
    {"add", carry}, {"addc", carry}, {"sub", carry}, {"subc", carry}, {"lop3", lop3}, {"slct", slct}, {"cvt", cvt}, {"cvta", cvta}, {"isspacep", isspacep},
    {"bra", bra}, {"brx", brx}, {"ret", leave}, {"exit", leave}, {"trap", trap}, {"brkpt", trap}, {"call", call},
    {"nanosleep", nothing}, {"griddepcontrol", nothing}, {"setmaxnreg", nothing}, {"pmevent", nothing}, {"discard", nothing}, {"applypriority", nothing},
    {"createpolicy", createpolicy}, {"ld", load_store}, {"ldu", load_store}, {"st", load_store}, {"prefetch", prefetch}, {"prefetchu", prefetch},
    {"atom", atom}, {"red", atom}, {"shfl", shfl}, {"vote", vote}, {"match", match}, {"activemask", activemask}, {"redux", redux}, {"elect", elect},
    {"bar", bar}, {"barrier", bar}, {"membar", fence}, {"fence", fence}, {"ldmatrix", ldmatrix}, {"stmatrix", ldmatrix}, {"mma", mma}, {"cp", cp},
    {"mbarrier", mbarrier}, {NULL, NULL},
};
