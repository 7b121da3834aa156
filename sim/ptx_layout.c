/* ptx_layout: where a kernel's variables lie in shared and local memory, and how much of each kind there may be: what ptxas refuses
 * does not load here. */
#include "ptx.h"
#include <string.h>

enum {
    MOST_SHARED = 0xC000,
    MOST_CONST = 0x10000,
    MOST_LOCAL = 1 << 24
}; /* bytes: static, of a kernel; of a module; of a thread, where numbers end */

/* A kernel has the .shared variables of the module that it, or a function it calls, names. */
void sim_ptx_use(ptx_parser *p, ptx_function *f, const char *name)
{
    const ptx_name *e = sim_names_find(&p->variables, name, strlen(name), 0);
    if (!e)
        return;
    sim_variable *v = &p->module->vars[e->value];
    if (v->space != SP_SHARED || v->user == p->functions)
        return;
    v->user = p->functions;
    f->shared = sim_ptx_grow(p, f->shared, &f->shared_cap, f->shareds, sizeof *f->shared);
    f->shared[f->shareds++] = e->value;
}

static sim_variable *shared(ptx_parser *p, ptx_function *f,
                            size_t k) /* of the module first, then the kernel's own; NULL: none of shared memory */
{
    sim_variable *v = k < f->shareds ? &p->module->vars[f->shared[k]] : &f->local[k - f->shareds];
    return v->space == SP_SHARED ? v : NULL;
}

void sim_ptx_layout(ptx_parser *p, ptx_function *f)
{
    uint64_t at = 0, align = 16;
    size_t all = f->shareds + f->locals;
    bool dynamic = false;
    for (size_t k = 0; k < all; k++) {
        sim_variable *v = shared(p, f, k);
        if (!v)
            continue;
        if (v->dynamic) { /* every extern array starts where the static ones end */
            dynamic = true;
            if (v->align > align)
                align = v->align;
            continue;
        }
        v->address = at = (at + v->align - 1) & ~(uint64_t)(v->align - 1);
        at += v->size;
        if (at > MOST_SHARED)
            sim_ptx_fail(
                p, p->line,
                "kernel %.200s uses too much static shared memory: %llu bytes with %.200s, at most %d; more than that is dynamic (extern)",
                f->program->name, (unsigned long long)at, v->name, MOST_SHARED);
    }
    uint64_t end = (at + align - 1) & ~(align - 1);
    for (size_t k = 0; k < all && dynamic; k++) {
        sim_variable *v = shared(p, f, k);
        if (v && v->dynamic)
            v->address = end;
    }
    f->program->shared_bytes = (uint32_t)(dynamic && at ? end : at);
}

sim_variable sim_ptx_room(ptx_parser *p, ptx_function *f, sim_variable v)
{
    uint64_t at = ((uint64_t)f->program->local_bytes + v.align - 1) & ~(uint64_t)(v.align - 1);
    if (at + v.size > MOST_LOCAL)
        sim_ptx_fail(p, p->line, "kernel %.200s: more than %d bytes of local memory per thread", f->program->name, MOST_LOCAL);
    v.address = at;
    f->program->local_bytes = (uint32_t)at + v.size;
    return v;
}

void sim_ptx_constants(ptx_parser *p, const sim_variable *v)
{
    p->constants = ((p->constants + v->align - 1) & ~(uint64_t)(v->align - 1)) + v->size;
    if (p->constants > MOST_CONST)
        sim_ptx_fail(p, p->line, "too much constant data: %llu bytes with %.200s, at most %d", (unsigned long long)p->constants, v->name,
                     MOST_CONST);
}
