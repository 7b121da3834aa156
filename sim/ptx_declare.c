/* ptx_declare: types and variables as PTX declares them. */
#include "ptx_text.h"
#include <ctype.h>
#include <string.h>

sim_type sim_ptx_type(ptx_parser *p)
{
    sim_text_need(p, '.');
    char *s = sim_text_name(p, false);
    sim_type t = sim_type_of(s);
    if (t == T_NONE)
        sim_ptx_fail(p, p->line, "unknown type .%s", s);
    return t;
}

enum { DIMENSIONS = 64 }; /* how deep initialisers nest */

static void initial(ptx_parser *p, sim_variable *v, uint32_t element, uint32_t *at, int depth)
{
    if (sim_text_take(p, '{')) {
        if (depth == DIMENSIONS)
            sim_ptx_fail(p, p->line, "initialiser of %.200s: '{' is nested more than %d deep", v->name, DIMENSIONS);
        if (sim_text_take(p, '}'))
            return;
        do
            initial(p, v, element, at, depth + 1);
        while (sim_text_take(p, ','));
        sim_text_need(p, '}');
        return;
    }
    ptx_operand o = { 0 };
    char c = sim_text_peek(p);
    if (!isdigit((unsigned char)c) && c != '-')
        sim_ptx_fail(p, p->line, "initialiser of %s: addresses are not simulated", v->name);
    sim_text_number(p, &o);
    if (o.kind == O_FLOAT && !o.single && element == 4) {
        union {
            uint64_t q;
            double d;
        } x = { .q = o.imm };
        o.imm = sim_bits((float)x.d);
    }
    if (*at + element > v->size)
        sim_ptx_fail(p, p->line, "too many initialisers for %s", v->name);
    memcpy(v->initial + *at, &o.imm, element);
    *at += element;
}

/* After the space: [.align n] [.v2] .type name[n][m] [= ...]. */
sim_variable sim_ptx_declaration(ptx_parser *p, sim_space space)
{
    sim_variable v = { .space = space };
    uint32_t vector = 1;
    sim_type t = T_NONE;
    while (sim_text_peek(p) == '.') {
        p->at++;
        char *s = sim_text_name(p, false);
        ptx_operand o = { 0 };
        if (!strcmp(s, "align"))
            sim_text_number(p, &o), v.align = (uint32_t)o.imm;
        else if (!strcmp(s, "ptr") || !strcmp(s, "global") || !strcmp(s, "shared") || !strcmp(s, "const") || !strcmp(s, "managed"))
            continue;
        else if (!strcmp(s, "v2"))
            vector = 2;
        else if (!strcmp(s, "v4"))
            vector = 4;
        else if ((t = sim_type_of(s)) == T_NONE)
            sim_ptx_fail(p, p->line, "unknown attribute .%s of a variable", s);
    }
    if (t == T_NONE)
        sim_ptx_fail(p, p->line, "a variable has no type");
    uint32_t element = (uint32_t)sim_type_bytes(t);
    uint64_t size = (uint64_t)element * vector;
    v.name = sim_text_name(p, false);
    while (sim_text_take(p, '[')) {
        ptx_operand o = { 0 };
        if (sim_text_peek(p) != ']')
            sim_text_number(p, &o);
        else
            v.dynamic = space == SP_SHARED;
        sim_text_need(p, ']');
        if (o.imm > 1u << 30 || (size *= o.imm) > 1u << 30)
            sim_ptx_fail(p, p->line, "%s is too large", v.name);
    }
    v.size = (uint32_t)size;
    if (!v.align)
        v.align = element * vector;
    if (v.align & (v.align - 1))
        sim_ptx_fail(p, p->line, "alignment %u of %s is no power of two", v.align, v.name);
    if (sim_text_take(p, '=')) {
        uint32_t at = 0;
        v.initial = sim_ptx_keep(p, v.size + 8);
        initial(p, &v, element, &at, 0);
    }
    return v;
}

uint32_t sim_ptx_local(ptx_parser *p, ptx_function *f, sim_variable v)
{
    f->local = sim_ptx_grow(p, f->local, &f->local_cap, f->locals, sizeof *f->local);
    f->local[f->locals++] = v;
    sim_ptx_name_local(p, f, (uint32_t)f->locals - 1);
    return (uint32_t)f->locals;
}
