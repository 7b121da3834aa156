/* bulk_bytes: the bytes of a bulk copy, between global memory and the arena, row by row of a box or as one run. */
#include "bulk.h"
#include "defined.h"
#include "grid_order.h"
#include "proxy.h"
#include <stdlib.h>
#include <string.h>

enum { UNIT = SIM_BULK_UNIT };
_Static_assert(SIM_SHARED_BASE % 1024 == 0, "a swizzle permutes offsets as it does addresses");

typedef struct passage {
    sim_bulk *c;
    uint8_t *raw;
    uint32_t first;
} passage; /* raw: shared memory, or a piece of it from offset `first` on */

/* reduces: what is there is read, and decides. */
static uint8_t *reach(sim_bulk *c, uint64_t address, uint32_t n, bool writes, bool reduces, sim_alloc **a)
{
    sim_block *b = c->warp->block;
    uint8_t *p = sim_global(c->warp, c->insn, c->lane, address, 1, a);
    char where[256];
    if (!p)
        return NULL;
    uint64_t at = address - (*a)->base;
    if (n > (*a)->size - at) {
        sim_report_address(b, (*a)->base + (*a)->size, where, sizeof where);
        sim_fault(c->warp, c->insn, c->lane, SIM_CHECK_BOUNDS, "global memory accessed out of bounds: %u bytes from byte %llu on, %s", n,
                  (unsigned long long)at, where);
        return NULL;
    }
    if (b->launch->order && !writes && !reduces && !sim_order_fetch(c->warp, c->insn, c->lane, *a, address, n))
        return NULL;
    int64_t hole = b->checked && !writes ? sim_memory_unwritten(*a, at, n) : -1;
    if (hole < 0)
        return p;
    if (!reduces)
        return c->holes = true, p;
    sim_report_address(b, (*a)->base + (uint64_t)hole, where, sizeof where);
    return sim_fault(c->warp, c->insn, c->lane, SIM_CHECK_UNWRITTEN, "global memory is read that was never written: %s", where) ==
                   STEP_FAULT
               ? NULL
               : p;
}

static bool fetch_row(void *arg, const sim_box_row *r)
{
    const passage *x = arg;
    uint32_t row = x->c->map.box[0] * (uint32_t)x->c->map.element, base = x->c->shared;
    uint8_t line[256 * 8] = { 0 };
    sim_alloc *a;
    for (uint32_t k = 0; x->c->map.fill && r->size < row && k < row; k += 2)
        memcpy(line + k, &(uint16_t){ 0x7FF7 }, 2); /* OOB-NaN, per 16 bits */
    if (r->size) {
        const uint8_t *p = reach(x->c, r->global, r->size, false, false, &a);
        if (!p)
            return false;
        if (x->c->count)
            sim_count_global(x->c->warp->block, a, r->size, 0);
        memcpy(line + r->skip, p, r->size);
    }
    for (uint32_t k = 0; k < row; k += UNIT)
        memcpy(x->raw + (sim_swizzle(base + r->at + k, x->c->map.swizzle) - x->first), line + k, UNIT);
    return true;
}

/* holes: per byte, is it undefined; NULL: none is. */
static bool write_run(sim_bulk *c, uint64_t address, const uint8_t *from, const uint8_t *holes, uint32_t n)
{
    static const sim_type types[] = {
        [CU_TENSOR_MAP_DATA_TYPE_UINT32] = T_U32,  [CU_TENSOR_MAP_DATA_TYPE_INT32] = T_S32,    [CU_TENSOR_MAP_DATA_TYPE_UINT64] = T_U64,
        [CU_TENSOR_MAP_DATA_TYPE_INT64] = T_S64,   [CU_TENSOR_MAP_DATA_TYPE_FLOAT16] = T_F16,  [CU_TENSOR_MAP_DATA_TYPE_FLOAT32] = T_F32,
        [CU_TENSOR_MAP_DATA_TYPE_FLOAT64] = T_F64, [CU_TENSOR_MAP_DATA_TYPE_BFLOAT16] = T_BF16
    };
    const sim_bulk_form *f = c->insn->fn.data;
    bool reduce = c->insn->sub == BULK_REDUCE;
    sim_alloc *a;
    uint8_t *p = reach(c, address, n, !reduce, reduce, &a);
    if (!p)
        return false;
    sim_type t = !f->rank ? f->type : c->map.type < sizeof types / sizeof *types ? types[c->map.type] : T_NONE;
    bool ordered = c->warp->block->launch->order != NULL, ok = true;
    if (ordered && reduce && !sim_order_mark(c->warp, c->insn, a, address, n))
        return false;
    if (ordered && !reduce) {
        sim_order_lock(c->warp);
        if ((ok = sim_order_write(c->warp, c->insn, c->lane, a, address, n, from)))
            memcpy(p, from, n);
        sim_order_unlock(c->warp);
    } else if (!reduce)
        memcpy(p, from, n);
    else if (t == T_NONE)
        return sim_fault(c->warp, c->insn, c->lane, SIM_CHECK_UNSUPPORTED, "a reduction of the map's type is not simulated"), false;
    else
        sim_bulk_reduce(p, from, n, t, f->op);
    if (!ok)
        return false;
    sim_memory_mark(a, address - a->base, n);
    for (uint32_t k = 0; holes && k < n; k++)
        if (holes[k])
            sim_memory_forget(a, address - a->base + k, 1);
    if (c->count)
        sim_count_global(c->warp->block, a, reduce ? n : 0, n);
    return true;
}

static bool store_row(void *arg, const sim_box_row *r)
{
    const passage *x = arg;
    uint32_t row = x->c->map.box[0] * (uint32_t)x->c->map.element, base = x->c->shared;
    uint8_t line[256 * 8], holes[256 * 8];
    bool open = x->c->warp->block->launch->options.open_stores;
    if (!r->size)
        return true;
    for (uint32_t k = 0; k < row; k += UNIT) {
        const uint8_t *from = x->raw + (sim_swizzle(base + r->at + k, x->c->map.swizzle) - x->first);
        memcpy(line + k, from, UNIT);
        if (open)
            memcpy(holes + k, from + x->c->bytes, UNIT);
    }
    return write_run(x->c, r->global, line + r->skip, open ? holes + r->skip : NULL, r->size);
}

bool sim_bulk_fetch(sim_block *b, sim_bulk *c)
{
    const sim_bulk_form *f = c->insn->fn.data;
    passage x = { c, b->shared, 0 };
    sim_alloc *a;
    if (c->insn->sub == BULK_SHARED) {
        memcpy(b->shared + c->shared, c->warp->block->shared + c->global, c->bytes);
        /* not a read at the issuing warp's time: that may be later than the time which the mbarrier hands on */
        sim_proxy_let(c->warp->block, (uint32_t)c->global, c->bytes);
        return true;
    }
    if (f->rank)
        return sim_tensor_map_walk(&c->map, c->at, fetch_row, &x);
    const uint8_t *p = reach(c, c->global, c->bytes, false, false, &a);
    if (!p)
        return false;
    if (c->count)
        sim_count_global(c->warp->block, a, c->bytes, 0);
    memcpy(b->shared + c->shared, p, c->bytes);
    return true;
}

/* ---- the two ends of a store ---- */

bool sim_bulk_take(sim_block *b, sim_bulk *c)
{
    bool open = b->launch->options.open_stores;
    if (!(c->taken = malloc(c->bytes * (open ? 2 : 1))))
        return sim_fault(c->warp, c->insn, c->lane, SIM_CHECK_HOST_MEMORY, "out of host memory"), false;
    memcpy(c->taken, b->shared + c->shared, c->bytes);
    for (uint32_t k = 0; open && k < c->bytes; k++)
        c->taken[c->bytes + k] = b->checked && sim_shared_holes(b, c->shared + k, 1);
    return true;
}
bool sim_bulk_give(sim_bulk *c)
{
    const sim_bulk_form *f = c->insn->fn.data;
    uint8_t *taken = c->taken;
    if (!taken)
        return true;
    passage x = { c, taken, c->shared };
    bool ok = f->rank ? sim_tensor_map_walk(&c->map, c->at, store_row, &x)
                      : write_run(c, c->global, taken, c->warp->block->launch->options.open_stores ? taken + c->bytes : NULL, c->bytes);
    free(taken);
    c->taken = NULL;
    return ok;
}
