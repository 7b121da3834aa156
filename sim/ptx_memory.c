/* ptx_memory: what a module is made of, what is needed while it is read, and how reading ends where it cannot go on. */
#include "ptx.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* zeroed; freed with the module; NULL when out of memory */
static void *alloc(sim_module *m, size_t n)
{
    if ((m->nblocks & (m->nblocks + 1)) == 0) { /* 0, 1, 3, 7, ...: the array is full */
        void **grown = realloc(m->blocks, ((size_t)m->nblocks * 2 + 1) * sizeof *grown);
        if (!grown)
            return NULL;
        m->blocks = grown;
    }
    void *p = aligned_alloc(64, (n + 64) & ~(size_t)63);
    if (!p)
        return NULL;
    memset(p, 0, (n + 64) & ~(size_t)63);
    m->blocks[m->nblocks++] = p;
    return p;
}

void sim_module_free(sim_module *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->nblocks; i++)
        free(m->blocks[i]);
    free(m->blocks);
    free(m);
}

_Noreturn void sim_ptx_fail(ptx_parser *p, uint32_t line, const char *format, ...)
{
    va_list v;
    va_start(v, format);
    int n = snprintf(p->error, 1024, "PTX line %u: ", line);
    vsnprintf(p->error + n, 1024 - (size_t)n, format, v);
    va_end(v);
    longjmp(p->fail, 1);
}

static void *take_from(ptx_parser *p, sim_module *m, size_t n)
{
    void *r = alloc(m, n);
    if (!r)
        longjmp(p->fail, 1); /* with no message */
    return r;
}
void *sim_ptx_alloc(ptx_parser *p, size_t n)
{
    return take_from(p, p->scratch, n);
}
void *sim_ptx_keep(ptx_parser *p, size_t n)
{
    return take_from(p, p->module, n);
}

static void *grow_in(ptx_parser *p, sim_module *m, void *array, size_t *cap, size_t n, size_t size)
{
    if (n < *cap)
        return array;
    size_t room = *cap ? *cap * 2 : 16;
    void *grown = take_from(p, m, room * size);
    if (n)
        memcpy(grown, array, n * size);
    *cap = room;
    return grown;
}
void *sim_ptx_grow(ptx_parser *p, void *array, size_t *cap, size_t n, size_t size)
{
    return grow_in(p, p->scratch, array, cap, n, size);
}
void *sim_ptx_grow_kept(ptx_parser *p, void *array, size_t *cap, size_t n, size_t size)
{
    return grow_in(p, p->module, array, cap, n, size);
}

char *sim_ptx_copy(ptx_parser *p, const char *s, size_t n)
{
    char *r = sim_ptx_keep(p, n + 1);
    memcpy(r, s, n);
    return r;
}
