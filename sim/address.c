/* address: one lane's read or write anywhere: bounds, alignment, what is defined, what is counted. */
#include "defined.h"
#include "grid_order.h"
#include <stdio.h>
#include <string.h>

static int row_of(sim_block *b, const sim_alloc *a)
{
    sim_counts *t = &b->counts;
    for (int k = 0; k < t->c.tensors; k++)
        if (t->row[k] == a)
            return k;
    if (t->c.tensors == SIM_TENSORS) {
        t->row[SIM_TENSORS - 1] = NULL; /* the rest */
        t->c.tensor[SIM_TENSORS - 1].base = t->c.tensor[SIM_TENSORS - 1].size = 0;
        return SIM_TENSORS - 1;
    }
    int k = t->c.tensors++;
    t->row[k] = a;
    t->c.tensor[k].base = a->base, t->c.tensor[k].size = a->size;
    return k;
}

void sim_count_global(sim_block *b, const sim_alloc *a, uint64_t read, uint64_t write)
{
    if (a != b->cached || b->cached_row < 0) {
        b->cached = (sim_alloc *)(uintptr_t)a;
        b->cached_row = row_of(b, a);
    }
    b->counts.c.global_read += read, b->counts.c.global_write += write;
    b->counts.c.tensor[b->cached_row].read += read, b->counts.c.tensor[b->cached_row].write += write;
}

uint8_t *sim_global(sim_warp *w, const sim_insn *i, int lane, uint64_t address, uint32_t size, sim_alloc **which)
{
    sim_block *b = w->block;
    sim_alloc *a = b->cached;
    if (!a || address - a->base >= a->size) {
        a = sim_memory_find(b->launch->memory, address);
        if (!a)
            a = sim_memory_find(b->launch->variables, address);
        if (a)
            b->cached = a, b->cached_row = -1;
    }
    if (!a || size > a->size - (address - a->base)) {
        char where[256];
        sim_report_address(b, address, where, sizeof where);
        sim_fault(w, i, lane, SIM_CHECK_BOUNDS, "global memory accessed out of bounds: %u bytes at %s", size, where);
        return NULL;
    }
    if (size > 1 && address & (size - 1)) {
        char where[256];
        sim_report_address(b, address, where, sizeof where);
        sim_fault(w, i, lane, SIM_CHECK_ALIGNMENT, "misaligned access to global memory: %u bytes at %s", size, where);
        return NULL;
    }
    if (!(i->flags & F_BULK) && !sim_grid_waited(w, i, lane)) /* a bulk copy was asked when it was issued */
        return NULL;
    *which = a;
    return a->data + (address - a->base);
}

static uint8_t *local(sim_warp *w, const sim_insn *i, int lane, uint64_t address, uint32_t size)
{
    uint32_t bytes = w->block->program->local_bytes;
    uint64_t at = address - SIM_LOCAL_BASE;
    if (at >= bytes || size > bytes - at) {
        sim_fault(w, i, lane, SIM_CHECK_BOUNDS, "local memory accessed out of bounds: %u bytes at offset %lld of %u", size, (long long)at,
                  bytes);
        return NULL;
    }
    if (at & (size - 1)) {
        sim_fault(w, i, lane, SIM_CHECK_ALIGNMENT, "misaligned access to local memory: %u bytes at offset %llu", size,
                  (unsigned long long)at);
        return NULL;
    }
    return w->local + (size_t)lane * bytes + at;
}

/* memcpy of the sizes that occur, inlined. */
static inline void move(void *to, const void *from, uint32_t size)
{
    switch (size) {
    case 2:
        memcpy(to, from, 2);
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    case 8:
        memcpy(to, from, 8);
        break;
    case 16:
        memcpy(to, from, 16);
        break;
    default:
        memcpy(to, from, size);
    }
}

static inline bool written(const sim_alloc *a, uint64_t at, uint32_t size) /* size: 1, 2, 4, 8 or 16, `at` a multiple of it */
{
    uint16_t marks;
    memcpy(&marks, a->written + (at >> 4) * 2, 2);
    return ((uint32_t)marks >> (at & 15) | ~0u << size) == ~0u;
}

bool sim_load_global(sim_warp *w, const sim_insn *i, uint32_t m, const uint64_t *address, uint8_t (*to)[32], uint32_t size)
{
    sim_block *b = w->block;
    const sim_launch *launch = b->launch;
    uint64_t first = address[__builtin_ctz(m)];
    if ((launch->pdl && m & ~w->after) || i->flags & (F_VOLATILE | F_HINT) || i->order & ORDER_GRID || size > 16 || size & (size - 1))
        return false;
    sim_alloc *a = b->cached;
    if (!a || first - a->base >= a->size) {
        if (!(a = sim_memory_find(launch->memory, first)))
            return false;
        b->cached = a, b->cached_row = -1;
    }
    if (a->size < size)
        return false;
    uint64_t last = a->size - size;
    FOR_LANES(l, m)
    {
        uint64_t at = address[l] - a->base;
        if (at > last || (at | address[l]) & (size - 1) || (b->checked && !written(a, at, size)))
            return false;
    }
    if (launch->order && !sim_order_read_lanes(w, i, m, a, address, size))
        return false;
    FOR_LANES(l, m) move(to[l], a->data + (address[l] - a->base), size);
    sim_count_global(b, a, (uint64_t)size * (uint32_t)__builtin_popcount(m), 0);
    return true;
}

bool sim_load(sim_warp *w, const sim_insn *i, int lane, sim_space space, uint64_t address, void *to, uint32_t size)
{
    sim_block *b = w->block;
    sim_alloc *a;
    const uint8_t *p;
    sim_block *o = b;
    switch (sim_space_of(space, &address)) {
    case SP_CLUSTER:
        if (!(o = sim_shared_owner(w, i, lane, &address)))
            return false;
        __attribute__((fallthrough));
    case SP_SHARED:
        if (!(p = sim_shared_of(o, w, i, lane, address, size)))
            return false;
        if (b->checked && i->flags & F_VOLATILE)
            w->shadow.met |= sim_shared_holes(o, (uint32_t)(p - o->shared), size) != 0;
        else if (b->checked && !sim_shared_read_of(o, w, i, lane, (uint32_t)(p - o->shared), size))
            return false;
        b->counts.c.shared_read += size;
        break;
    case SP_LOCAL:
        if (!(p = local(w, i, lane, address, size)))
            return false;
        if (b->checked && !sim_local_defined(w, (uint32_t)lane, (uint32_t)(address - SIM_LOCAL_BASE), size))
            w->shadow.met = true;
        break;
    case SP_PARAM:
        if (address >= b->program->param_bytes || size > b->program->param_bytes - address) {
            sim_fault(w, i, lane, SIM_CHECK_BOUNDS, "parameters accessed out of bounds: %u bytes at offset %llu of %u", size,
                      (unsigned long long)address, b->program->param_bytes);
            return false;
        }
        p = b->launch->params + address;
        break;
    default:
        if (!(p = sim_global(w, i, lane, address, size, &a)))
            return false;
        if (b->checked && sim_memory_unwritten(a, address - a->base, size) >= 0)
            w->shadow.met = true;
        sim_count_global(b, a, size, 0);
        if (!b->launch->order)
            break;
        if (!(i->flags & F_VOLATILE) && !sim_order_read(w, i, lane, a, address, size))
            return false;
        if (i->order & ORDER_GRID) {
            sim_order_lock(w);
            move(to, p, size);
            bool ok = sim_order_acquire(w, i, address);
            sim_order_unlock(w);
            return ok;
        }
    }
    move(to, p, size);
    return true;
}

bool sim_store(sim_warp *w, const sim_insn *i, int lane, sim_space space, uint64_t address, const void *from, uint32_t size)
{
    sim_block *b = w->block;
    sim_alloc *a;
    uint8_t *p;
    sim_block *o = b;
    switch (sim_space_of(space, &address)) {
    case SP_CLUSTER:
        if (!(o = sim_shared_owner(w, i, lane, &address)))
            return false;
        __attribute__((fallthrough));
    case SP_SHARED:
        if (!(p = sim_shared_of(o, w, i, lane, address, size)))
            return false;
        if (b->checked) {
            if (i->flags & F_VOLATILE)
                for (uint32_t k = 0; k < size; k++)
                    o->state[(p - o->shared + k) >> 2] |= (uint8_t)(1u << ((p - o->shared + k) & 3));
            else if (!sim_shared_write_of(o, w, i, lane, (uint32_t)(p - o->shared), size, from))
                return false;
        }
        b->counts.c.shared_write += size;
        break;
    case SP_LOCAL:
        if (!(p = local(w, i, lane, address, size)))
            return false;
        if (b->checked)
            sim_local_define(w, (uint32_t)lane, (uint32_t)(address - SIM_LOCAL_BASE), size);
        break;
    case SP_PARAM:
    case SP_CONST:
        sim_fault(w, i, lane, SIM_CHECK_BOUNDS, "a parameter or constant is written");
        return false;
    default:
        if (!(p = sim_global(w, i, lane, address, size, &a)))
            return false;
        sim_memory_mark(a, address - a->base, size);
        sim_count_global(b, a, 0, size);
        if (!b->launch->order)
            break;
        sim_order_lock(w);
        bool ok = !(i->flags & F_VOLATILE)   ? sim_order_write(w, i, lane, a, address, size, from)
                  : !(i->order & ORDER_GRID) ? true
                                             : sim_order_mark(w, i, a, address, size) && sim_order_release(w, i, address, false);
        if (ok)
            move(p, from, size);
        sim_order_unlock(w);
        return ok;
    }
    move(p, from, size);
    return true;
}
