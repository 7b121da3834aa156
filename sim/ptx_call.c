/* ptx_call: direct calls of device functions. A call becomes the body of the function, read once more for every call: its
 * parameters are variables of the caller, and `ret` a branch to its end. What cannot be called this way (through a register, a
 * function without a body, itself) is an instruction that cannot be executed. */
#include "ptx_text.h"
#include <stdio.h>
#include <string.h>

enum {
    MOST_CALLS = 1024,
    ALL_CALLS = 1 << 16,
    MOST_FORMALS = 64
}; /* of a kernel, those inside of functions with them; of a module; parameters of one function */

typedef struct formal {
    const char *name;
    int reg;
    sim_variable v;
    uint32_t local;
} formal; /* reg -1: a .param; local: 1 + where it lives */

/* Notes where the functions begin that have a body: they may stand after the kernels that call them. */
void sim_call_scan(ptx_parser *p)
{
    const char *at = p->at;
    uint32_t line = p->line;
    char c;
    while ((c = sim_text_peek(p))) {
        if (c == '"')
            sim_text_string(p);
        else if (c == '{')
            sim_text_braces(p);
        else if (c != '.')
            p->at++;
        else if (p->at++, sim_text_word(p, "func")) {
            ptx_device d = { NULL, p->at, p->line };
            while ((c = sim_text_peek(p)) && c != '{' && c != ';') {
                if (c == '"')
                    sim_text_string(p);
                else if (c == '(')
                    while ((c = sim_text_peek(p)) && c != ')')
                        p->at++;
                else if (!d.name && sim_text_in_name(c))
                    d.name = sim_text_name(p, false);
                else
                    p->at++;
            }
            if (c != '{' || !d.name)
                continue;
            p->device = sim_ptx_grow(p, p->device, &p->device_cap, p->devices, sizeof d);
            sim_names_add(p, &p->device_names, d.name, strlen(d.name), 0, (uint32_t)p->devices);
            p->device[p->devices++] = d;
        }
    }
    p->at = at, p->line = line;
}

static const ptx_device *device(const ptx_parser *p, const char *name)
{
    const ptx_name *e = sim_names_find(&p->device_names, name, strlen(name), 0);
    return e ? &p->device[e->value] : NULL;
}

static ptx_insn *emit(ptx_parser *p, ptx_function *f, const ptx_insn *call, const char *op, const char *word, const char *type)
{
    f->insn = sim_ptx_grow(p, f->insn, &f->insn_cap, f->insns, sizeof *f->insn);
    ptx_insn *i = &f->insn[f->insns++];
    *i = (ptx_insn){ .guard = -1, .line = call->line, .loc = call->loc, .text = call->text, .scope = f->scope, .used = 1 };
    const char *words[] = { op, word, type };
    for (int k = 0; k < 3; k++)
        if (words[k])
            i->word[i->words++] = words[k];
    return i;
}
static void put_label(ptx_parser *p, ptx_function *f, const char *name)
{
    f->label = sim_ptx_grow(p, f->label, &f->label_cap, f->labels, sizeof *f->label);
    sim_ptx_name_label(p, f, name, 0, (uint32_t)f->labels);
    f->label[f->labels++] = (ptx_label){ .name = name, .at = (uint32_t)f->insns };
}
static ptx_operand name_of(const char *name)
{
    return (ptx_operand){ .kind = O_SYMBOL, .reg = -1, .pair = -1, .name = name };
}

static void refuse(ptx_parser *p, ptx_function *f, const ptx_insn *call, const char *why, const char *name)
{
    size_t n = strlen(why) + strlen(name) + 1;
    char *text = sim_ptx_keep(p, n);
    snprintf(text, n, why, name);
    ptx_insn *i = emit(p, f, call, "call", NULL, NULL);
    i->guard = call->guard, i->guard_negated = call->guard_negated, i->unknown = text;
}

/* ---- operands and parameters ---- */

static int actuals(ptx_parser *p, ptx_function *f, ptx_operand *to)
{
    int n = 0;
    if (!sim_text_take(p, '(') || sim_text_take(p, ')'))
        return 0;
    do {
        if (n == MOST_FORMALS)
            sim_ptx_fail(p, p->line, "more than %d arguments of a call", MOST_FORMALS);
        sim_text_operand(p, f, &to[n++]);
    } while (sim_text_take(p, ','));
    sim_text_need(p, ')');
    return n;
}

static int formals(ptx_parser *p, ptx_function *f, formal *to)
{
    int n = 0;
    if (!sim_text_take(p, '(') || sim_text_take(p, ')'))
        return 0;
    do {
        formal *x = &to[n++];
        if (n == MOST_FORMALS)
            sim_ptx_fail(p, p->line, "more than %d parameters of a function", MOST_FORMALS);
        *x = (formal){ .reg = -1 };
        if (sim_text_word(p, ".reg")) {
            f->reg = sim_ptx_grow(p, f->reg, &f->reg_cap, f->regs, sizeof *f->reg);
            sim_type t = sim_ptx_type(p);
            x->name = sim_text_name(p, false), x->reg = (int)f->regs;
            f->reg[f->regs++] = (ptx_register){ x->name, t, -1 };
            sim_ptx_declare(p, f, (uint32_t)f->regs - 1);
        } else {
            if (!sim_text_word(p, ".param"))
                sim_ptx_fail(p, p->line, "expected .param or .reg");
            x->v = sim_ptx_declaration(p, SP_LOCAL), x->name = x->v.name;
        }
    } while (sim_text_take(p, ','));
    sim_text_need(p, ')');
    return n;
}

static const char *bits(uint32_t bytes)
{
    return bytes == 1 ? "b8" : bytes == 2 ? "b16" : bytes == 4 ? "b32" : bytes == 8 ? "b64" : NULL;
}
static bool is_value(const ptx_operand *o)
{
    return o->kind == O_REG || o->kind == O_IMM || o->kind == O_FLOAT || o->kind == O_SPECIAL || o->kind == O_SINK;
}

static void move(ptx_parser *p, ptx_function *f, const ptx_insn *call, const ptx_operand *to, const ptx_operand *from, int reg)
{
    if (to->kind == O_SINK)
        return;
    sim_type t = f->reg[reg].type;
    ptx_insn *i = emit(p, f, call, "mov", NULL, t == T_PRED ? "pred" : bits((uint32_t)sim_type_bytes(t)));
    i->op[0] = *to, i->op[1] = *from, i->ops = 2;
}
static void through_memory(ptx_parser *p, ptx_function *f, const ptx_insn *call, const formal *x, const ptx_operand *o, bool store)
{
    if (o->kind == O_SINK)
        return;
    ptx_operand *symbol = sim_ptx_alloc(p, sizeof *symbol);
    *symbol = name_of(x->name), symbol->local = x->local;
    ptx_insn *i = emit(p, f, call, store ? "st" : "ld", "param", bits(x->v.size));
    i->op[!store] = (ptx_operand){ .kind = O_MEMORY, .reg = -1, .pair = -1, .n = 1, .elem = symbol };
    i->op[store] = *o, i->ops = 2;
}

/* Where a .param of the function lives: in the caller's .param variable, or in one of its own for a value. NULL: it fits. */
static const char *bind(ptx_parser *p, ptx_function *f, formal *x, const ptx_operand *o)
{
    if (x->reg >= 0)
        return is_value(o) ? NULL : "the arguments of this call of %s do not fit";
    if (o->kind == O_SYMBOL && o->local && f->local[o->local - 1].passed) {
        sim_variable v = f->local[o->local - 1];
        if (v.size < x->v.size)
            return "the arguments of this call of %s do not fit";
        v.name = (char *)(uintptr_t)x->name;
        x->local = sim_ptx_local(p, f, v);
        return NULL;
    }
    if (!is_value(o) || !bits(x->v.size))
        return "the arguments of this call of %s do not fit";
    x->v.passed = true;
    x->local = sim_ptx_local(p, f, sim_ptx_room(p, f, x->v));
    return NULL;
}

/* ---- the call ---- */

static const char *expand(ptx_parser *p, ptx_function *f, const ptx_insn *call, const ptx_device *d, const ptx_operand *ret, int rets,
                          const ptx_operand *arg, int args)
{
    formal out[MOST_FORMALS], in[MOST_FORMALS];
    size_t insns = f->insns, labels = f->labels, label_names = f->label_names.entries;
    ptx_scope around = sim_scope_open(p, f);
    const char *why = NULL, *leave = p->leave;
    char *end = sim_ptx_alloc(p, 64), *past = sim_ptx_alloc(p, 64);
    snprintf(end, 64, "(return of call %u)", ++f->calls);
    p->calls++;
    snprintf(past, 64, "(past call %u)", f->calls);
    p->at = d->at, p->line = d->line;
    int outs = formals(p, f, out);
    sim_text_name(p, false);
    int ins = formals(p, f, in);
    while (sim_text_peek(p) && sim_text_peek(p) != '{') {
        if (*p->at == '"')
            sim_text_string(p);
        else
            p->at++;
    }
    if (outs != rets || ins != args)
        why = "the arguments of this call of %s do not fit";
    for (int k = 0; k < outs && !why; k++)
        why = bind(p, f, &out[k], &ret[k]);
    for (int k = 0; k < ins && !why; k++)
        why = bind(p, f, &in[k], &arg[k]);
    if (!why) {
        if (call->guard >= 0) {
            ptx_insn *i = emit(p, f, call, "bra", NULL, NULL);
            i->guard = call->guard, i->guard_negated = !call->guard_negated, i->op[0] = name_of(past), i->ops = 1;
        }
        for (int k = 0; k < ins; k++) {
            ptx_operand reg = { .kind = O_REG, .reg = in[k].reg, .pair = -1 };
            if (in[k].reg >= 0)
                move(p, f, call, &reg, &arg[k], in[k].reg);
            else if (is_value(&arg[k]))
                through_memory(p, f, call, &in[k], &arg[k], true);
        }
        p->calling[p->depth++] = d->name, p->leave = end, p->refused = NULL;
        p->body(p, f);
        p->depth--, p->leave = leave;
        why = p->refused;
    }
    sim_scope_close(f, around);
    if (why) {
        sim_names_cut(&f->label_names, label_names);
        return f->insns = insns, f->labels = labels, why;
    }
    put_label(p, f, end);
    for (int k = 0; k < outs; k++) {
        ptx_operand reg = { .kind = O_REG, .reg = out[k].reg, .pair = -1 };
        if (out[k].reg >= 0)
            move(p, f, call, &ret[k], &reg, out[k].reg);
        else if (is_value(&ret[k]))
            through_memory(p, f, call, &out[k], &ret[k], false);
    }
    put_label(p, f, past);
    return NULL;
}

/* After "call[.uni]": [(ret, ...),] name [, (arg, ...) [, prototype or list of targets]]; */
void sim_call(ptx_parser *p, ptx_function *f, ptx_insn call, const char *start)
{
    ptx_operand ret[MOST_FORMALS], arg[MOST_FORMALS];
    bool gives = sim_text_peek(p) == '(';
    int rets = actuals(p, f, ret), args = 0;
    if (gives)
        sim_text_need(p, ',');
    const char *name = sim_text_name(p, false), *why = NULL;
    if (sim_text_take(p, ',') && sim_text_peek(p) == '(') {
        args = actuals(p, f, arg);
        if (sim_text_take(p, ','))
            sim_text_name(p, false);
    }
    call.text = sim_text_squeeze(p, start);
    sim_text_need(p, ';');
    const ptx_device *d = device(p, name);
    if (sim_text_find_register(f, name) >= 0)
        why = "calls through a register are not simulated: %s";
    else if (!d)
        why = "calls of a function without a body are not simulated: %s";
    else if (p->depth == PTX_CALLS)
        why = "calls are nested too deeply to be simulated, at %s";
    else if (f->calls == MOST_CALLS || p->calls == ALL_CALLS)
        why = "a kernel makes too many calls to be simulated, at %s";
    for (int k = 0; k < p->depth && !why; k++)
        if (!strcmp(p->calling[k], name))
            why = "recursive calls are not simulated: %s";
    if (!why) {
        const char *at = p->at;
        uint32_t line = p->line;
        why = expand(p, f, &call, d, ret, rets, arg, args);
        p->at = at, p->line = line;
    }
    if (why)
        refuse(p, f, &call, why, name);
}
