/* ptx_names: chains in a table that grows with its entries. */
#include "ptx_text.h"
#include <string.h>

static uint32_t hash_of(const uint8_t *s, size_t n, uint32_t tag) /* FNV-1a, then mixed: the table takes the low bits */
{
    uint64_t h = 0xCBF29CE484222325ull ^ tag;
    for (size_t k = 0; k < n; k++)
        h = (h ^ s[k]) * 0x100000001B3ull;
    h = (h ^ tag) * 0x9E3779B97F4A7C15ull;
    return (uint32_t)(h >> 32);
}

static void chain(ptx_names *t, uint32_t k)
{
    uint32_t *b = &t->bucket[t->entry[k].hash & (t->buckets - 1)];
    t->entry[k].older = *b, *b = k + 1;
}

void sim_names_add(ptx_parser *p, ptx_names *t, const void *s, size_t n, uint32_t tag, uint32_t value)
{
    t->entry = sim_ptx_grow(p, t->entry, &t->cap, t->entries, sizeof *t->entry);
    t->entry[t->entries++] = (ptx_name){ .s = s, .n = (uint32_t)n, .tag = tag, .value = value, .hash = hash_of(s, n, tag) };
    if (t->entries <= t->buckets) {
        chain(t, (uint32_t)t->entries - 1);
        return;
    }
    t->buckets = t->buckets ? t->buckets * 2 : 64;
    t->bucket = sim_ptx_alloc(p, t->buckets * sizeof *t->bucket);
    for (uint32_t k = 0; k < t->entries; k++)
        chain(t, k);
}

static const ptx_name *along(const ptx_names *t, uint32_t k, uint32_t hash, const void *s, size_t n, uint32_t tag)
{
    for (; k; k = t->entry[k - 1].older) {
        const ptx_name *e = &t->entry[k - 1];
        if (e->hash == hash && e->n == n && e->tag == tag && !memcmp(e->s, s, n))
            return e;
    }
    return NULL;
}

const ptx_name *sim_names_find(const ptx_names *t, const void *s, size_t n, uint32_t tag)
{
    uint32_t hash = hash_of(s, n, tag);
    return t->buckets ? along(t, t->bucket[hash & (t->buckets - 1)], hash, s, n, tag) : NULL;
}
static const ptx_name *older_of(const ptx_names *t, const ptx_name *e)
{
    return along(t, e->older, e->hash, e->s, e->n, e->tag);
}

void sim_names_cut(ptx_names *t, size_t entries)
{
    while (t->entries > entries) {
        const ptx_name *e = &t->entry[--t->entries];
        t->bucket[e->hash & (t->buckets - 1)] = e->older; /* the newest of its bucket */
    }
}

/* ---- the names of a function ---- */

enum { WHOLE, PREFIX, LOCAL }; /* tags: %r, %r<n>, a variable */

void sim_ptx_declare(ptx_parser *p, ptx_function *f, uint32_t register_)
{
    const ptx_register *r = &f->reg[register_];
    uint32_t tag = r->number < 0 ? WHOLE : PREFIX;
    const ptx_name *e = sim_names_find(&f->names, r->name, strlen(r->name), tag);
    if (e && (size_t)(e - f->names.entry) >= f->scope_names)
        sim_ptx_fail(p, p->line, "register %s is declared twice", r->name);
    sim_names_add(p, &f->names, r->name, strlen(r->name), tag, register_);
}

int sim_text_find_register(const ptx_function *f, const char *s)
{
    size_t n = strlen(s), digits = n;
    while (digits && s[digits - 1] >= '0' && s[digits - 1] <= '9')
        digits--;
    uint32_t number = 0;
    const ptx_name *whole = sim_names_find(&f->names, s, n, WHOLE), *part = NULL;
    if (digits < n && n - digits < 9) {
        for (size_t k = digits; k < n; k++)
            number = number * 10 + (uint32_t)(s[k] - '0');
        part = sim_names_find(&f->names, s, digits, PREFIX);
        while (part && number >= (uint32_t)f->reg[part->value].number)
            part = older_of(&f->names, part);
    }
    if (!part)
        return whole ? (int)whole->value : -1;
    return whole && whole > part ? (int)whole->value : (int)(part->value + number); /* the newer one */
}

void sim_ptx_name_local(ptx_parser *p, ptx_function *f, uint32_t local)
{
    const char *s = f->local[local].name;
    const ptx_name *e = sim_names_find(&f->names, s, strlen(s), LOCAL);
    if (e && (size_t)(e - f->names.entry) >= f->scope_names)
        sim_ptx_fail(p, p->line, "%s is declared twice", s);
    sim_names_add(p, &f->names, s, strlen(s), LOCAL, local);
}
uint32_t sim_ptx_find_local(const ptx_function *f, const char *name)
{
    const ptx_name *e = sim_names_find(&f->names, name, strlen(name), LOCAL);
    return e ? e->value + 1 : 0;
}

ptx_scope sim_scope_open(ptx_parser *p, ptx_function *f)
{
    ptx_scope s = { f->scope, f->scope_names };
    f->parent = sim_ptx_grow(p, f->parent, &f->parent_cap, f->scopes, sizeof *f->parent);
    f->parent[f->scopes] = f->scope;
    f->scope = (uint32_t)++f->scopes;
    f->scope_names = f->names.entries;
    return s;
}
void sim_scope_close(ptx_function *f, ptx_scope around)
{
    sim_names_cut(&f->names, f->scope_names);
    f->scope = around.scope, f->scope_names = around.names;
}

void sim_ptx_name_label(ptx_parser *p, ptx_function *f, const char *name, uint32_t scope, uint32_t label)
{
    if (sim_names_find(&f->label_names, name, strlen(name), scope))
        sim_ptx_fail(p, p->line, "label %s is defined twice", name);
    sim_names_add(p, &f->label_names, name, strlen(name), scope, label);
}
int sim_ptx_label(const ptx_function *f, const char *name, uint32_t from)
{
    for (uint32_t scope = f->insn[from].scope;; scope = f->parent[scope - 1]) {
        const ptx_name *e = sim_names_find(&f->label_names, name, strlen(name), scope);
        if (e)
            return (int)e->value;
        if (!scope)
            return -1;
    }
}

int sim_ptx_param(const ptx_function *f, const char *name)
{
    const ptx_name *e = sim_names_find(&f->param_names_by, name, strlen(name), 0);
    return e ? (int)e->value : -1;
}
const sim_variable *sim_ptx_variable(const ptx_parser *p, const char *name)
{
    const ptx_name *e = sim_names_find(&p->variables, name, strlen(name), 0);
    return e ? &p->module->vars[e->value] : NULL;
}
