/* bulk_defined: undefined bytes on their way through bulk copies. */
#include "bulk.h"
#include "defined.h"

typedef struct way {
    sim_block *b;
    const sim_bulk *c;
} way;

static const sim_alloc *allocation(const sim_bulk *c, uint64_t address)
{
    const sim_launch *l = c->warp->block->launch;
    const sim_alloc *a = sim_memory_find(l->memory, address);
    return a ? a : sim_memory_find(l->variables, address);
}

/* n bytes of a row that came from this address, to byte `to` of the copy. */
static void bring(const way *x, uint64_t address, uint32_t to, uint32_t n)
{
    const sim_alloc *a = n ? allocation(x->c, address) : NULL;
    if (!a || sim_memory_unwritten(a, address - a->base, n) < 0)
        return;
    for (uint32_t k = 0; k < n;) { /* up to the next multiple of 16 bytes, which stay together */
        uint32_t first = (to + k) % 16, next = 16 - first < n - k ? 16 - first : n - k, bytes = 0;
        for (uint32_t j = 0; j < next; j++)
            bytes |= (uint32_t)(sim_memory_unwritten(a, address - a->base + k + j, 1) >= 0) << j;
        if (bytes)
            sim_shared_undefine(x->b, sim_swizzle(x->c->shared + to + k, x->c->map.swizzle), bytes,
                                &(sim_origin){ x->c->insn, address + k + (uint32_t)__builtin_ctz(bytes), ORIGIN_GLOBAL });
        k += next;
    }
}
static bool bring_row(void *arg, const sim_box_row *r)
{
    bring(arg, r->global, r->at + r->skip, r->size);
    return true;
}

void sim_bulk_undefine(sim_block *b, const sim_bulk *c)
{
    const sim_bulk_form *f = c->insn->fn.data;
    const sim_block *from = c->warp->block;
    way x = { b, c };
    if (c->insn->sub != BULK_SHARED) {
        if (f->rank)
            sim_tensor_map_walk(&c->map, c->at, bring_row, &x);
        else
            bring(&x, c->global, 0, c->bytes);
        return;
    }
    for (uint32_t k = 0; k < c->bytes; k += 16) {
        uint32_t at = (uint32_t)c->global + k, holes = sim_shared_holes(from, at, 16);
        if (!holes)
            continue;
        sim_origin origin = sim_shared_origin(from, c->insn, at + (uint32_t)__builtin_ctz(holes));
        sim_shared_undefine(b, c->shared + k, holes, &origin);
    }
}

/* Of n bytes from byte `at` of the copy on. One report is enough. */
static bool takes(const way *x, uint32_t at, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        uint32_t from = sim_swizzle(x->c->shared + at + k, x->c->map.swizzle);
        if (!sim_shared_holes(x->b, from, 1))
            continue;
        char text[600];
        sim_origin origin = sim_shared_origin(x->b, x->c->insn, from);
        sim_origin_text(x->c->warp, &origin, text, sizeof text);
        return sim_fault(x->c->warp, x->c->insn, x->c->lane, sim_origin_check(&origin),
                         "offset %u of shared memory is stored to global memory, but its value is undefined: %s", from, text) != STEP_FAULT;
    }
    return true;
}
static bool take_row(void *arg, const sim_box_row *r)
{
    return takes(arg, r->at + r->skip, r->size);
}

bool sim_bulk_defined(sim_block *b, const sim_bulk *c)
{
    const sim_bulk_form *f = c->insn->fn.data;
    way x = { b, c };
    return f->rank ? sim_tensor_map_walk(&c->map, c->at, take_row, &x) : takes(&x, 0, c->bytes);
}
