/* bulk: cp.async.bulk and cp.reduce.async.bulk. Every copy is a record of the block whose shared memory it touches,
 * until nothing can depend on it any more. */
#include "bulk.h"
#include "async.h"
#include "proxy.h"
#include "run.h"
#include <stdlib.h>
#include <string.h>

enum { UNIT = SIM_BULK_UNIT, BOX_ALIGN = 128 }; /* bytes: of addresses and sizes; of a box in shared memory */

/* ---- records ---- */

static sim_bulk *add(sim_block *b, const sim_bulk *c)
{
    if (b->bulks == b->bulk_cap) {
        uint32_t cap = b->bulk_cap ? b->bulk_cap * 2 : 16;
        sim_bulk *grown = realloc(b->bulk, cap * sizeof *grown);
        if (!grown)
            return sim_fault(c->warp, c->insn, -1, SIM_CHECK_HOST_MEMORY, "out of host memory"), NULL;
        b->bulk = grown, b->bulk_cap = cap;
    }
    b->bulk[b->bulks] = *c;
    return &b->bulk[b->bulks++];
}
static void drop(sim_block *b, uint32_t k)
{
    free(b->bulk[k].taken);
    memmove(b->bulk + k, b->bulk + k + 1, (--b->bulks - k) * sizeof *b->bulk); /* in order: two stores to one place */
}
void sim_bulk_drop(sim_block *b)
{
    while (b->bulks)
        drop(b, b->bulks - 1);
}

static bool arrive(sim_block *b, sim_bulk *c)
{
    sim_mbarrier *m = c->mbarrier;
    if (!sim_bulk_fetch(b, c))
        return false;
    if (m->phase != c->phase &&
        sim_fault(c->warp, c->insn, c->lane, SIM_CHECK_ANNOUNCED,
                  "the mbarrier at offset %u completed phase %llu before all bytes of the copies to it had arrived: too few were announced",
                  m->address, (unsigned long long)c->phase) == STEP_FAULT)
        return false;
    if (b->checked)
        sim_shared_arrive(b, m, c->shared, c->bytes);
    if (b->checked && (c->holes || c->insn->sub == BULK_SHARED))
        sim_bulk_undefine(b, c);
    m->landed = m->phase + 1, m->last = c->insn, m->last_warp = c->warp;
    return sim_mbarrier_tx(c->warp, c->insn, c->lane, b, m, -(int64_t)c->bytes);
}

bool sim_bulk_land(sim_block *b, const sim_mbarrier *m)
{
    for (uint32_t k = 0; k < b->bulks;) {
        sim_bulk c = b->bulk[k];
        if (c.mbarrier != m) {
            k++;
            continue;
        }
        drop(b, k);
        if (!arrive(b, &c))
            return false;
    }
    return true;
}

/* ---- instructions ---- */

static uint64_t address_of(const sim_warp *w, const sim_insn *i, const sim_bulk_operand *p, uint32_t l)
{
    if (i->arg[p->arg] == SIM_NO_ARG)
        return (uint64_t)p->offset;
    const sim_vec *v = sim_arg(w, i, p->arg);
    return p->wide ? v->q[l] + (uint64_t)p->offset : (uint32_t)(v->u[l] + (uint32_t)p->offset);
}

/* Where the block's bytes are that the copy moves: inside, and aligned. */
static bool span(sim_block *b, sim_bulk *c, uint64_t address, uint64_t bytes, uint32_t align)
{
    uint64_t at = address - SIM_SHARED_BASE;
    if (at >= b->shared_size || bytes > b->shared_size - at) {
        sim_fault(c->warp, c->insn, c->lane, SIM_CHECK_BOUNDS,
                  "shared memory accessed out of bounds: %llu bytes at offset %lld; the block has %u", (unsigned long long)bytes,
                  (long long)at, b->shared_size);
        return false;
    }
    if (at & (align - 1)) {
        sim_fault(c->warp, c->insn, c->lane, SIM_CHECK_ALIGNMENT, "misaligned bulk copy: offset %llu of shared memory is no multiple of %u",
                  (unsigned long long)at, align);
        return false;
    }
    if (at + bytes > b->counts.c.shared_peak)
        b->counts.c.shared_peak = at + bytes;
    c->shared = (uint32_t)at, c->bytes = (uint32_t)bytes;
    return true;
}

static void count(sim_block *b, uint32_t read, uint32_t write)
{
    uint32_t passes = (read + write + 127) / 128;
    b->counts.c.shared_read += read, b->counts.c.shared_write += write;
    b->counts.c.shared_wavefronts += passes, b->counts.c.shared_ideal += passes;
}

/* From the issuer's own shared memory: c->global is an address there, and becomes an offset. */
static bool source(sim_bulk *c)
{
    sim_bulk from = *c;
    sim_warp *w = c->warp;
    sim_block *b = w->block;
    if (sim_shared_owner(w, c->insn, c->lane, &from.global) != b)
        return sim_fault(w, c->insn, c->lane, SIM_CHECK_BOUNDS, "the source of a bulk copy is not in the block's own shared memory"), false;
    if (!span(b, &from, from.global, c->bytes, UNIT) || !sim_proxy_read(w, c->insn, c->lane, from.shared, c->bytes))
        return false;
    sim_proxy_hold(b, from.shared, c->bytes);
    count(b, c->bytes, 0);
    c->global = from.shared;
    return true;
}

static bool load_to(sim_block *b, sim_bulk *c, uint64_t address, uint64_t bytes, uint64_t mbarrier)
{
    sim_warp *w = c->warp;
    const sim_bulk_form *f = c->insn->fn.data;
    if (!span(b, c, address, bytes, f->rank ? BOX_ALIGN : UNIT))
        return false;
    if (!(c->mbarrier = sim_mbarrier_in(w, c->insn, c->lane, b, mbarrier)))
        return false;
    c->phase = c->mbarrier->phase;
    if (b->checked &&
        (!sim_proxy_write(b, w, c->insn, c->lane, c->shared, c->bytes) || !sim_shared_fly(b, w, c->insn, c->lane, c->shared, c->bytes)))
        return false;
    if (c->insn->sub == BULK_SHARED && !source(c))
        return false;
    count(b, 0, c->bytes);
    if (!b->lazy)
        return arrive(b, c);
    memset(b->shared + c->shared, 0xFF, c->bytes);
    return add(b, c) != NULL;
}

/* With a mask, to the same offsets of every block of the cluster whose bit is set. */
static bool load(sim_bulk *c, uint64_t address, uint64_t bytes, uint64_t mbarrier, uint32_t mask)
{
    sim_warp *w = c->warp;
    const sim_cluster *k = w->block->cluster;
    const sim_bulk_form *f = c->insn->fn.data;
    sim_block *o = sim_shared_owner(w, c->insn, c->lane, &address), *p = o ? sim_shared_owner(w, c->insn, c->lane, &mbarrier) : NULL;
    if (!p)
        return false;
    if (o != p)
        return sim_fault(w, c->insn, c->lane, SIM_CHECK_BOUNDS, "a bulk copy to block (%u,%u,%u) with an mbarrier of another block",
                         o->id[0], o->id[1], o->id[2]),
               false;
    if (f->mask < 0)
        return load_to(o, c, address, bytes, mbarrier);
    if (!mask || mask >> k->blocks)
        return sim_fault(w, c->insn, c->lane, SIM_CHECK_OPERAND, "a multicast to blocks 0x%x of a cluster of %u", mask, k->blocks), false;
    FOR_LANES(r, mask)
    {
        uint64_t at = address;
        if (r != w->block->rank)
            at |= (uint64_t)(r + 1) << SIM_RANK_SHIFT; /* for the checks of an access from another block */
        if (!(o = sim_shared_owner(w, c->insn, c->lane, &at)) || !load_to(o, c, at, bytes, mbarrier))
            return false;
        c->count = false;
    }
    return true;
}

static bool read_row(void *arg, const sim_box_row *r)
{
    const sim_bulk *c = arg;
    for (uint32_t k = r->skip & ~(UNIT - 1u), end = r->skip + r->size; k < end; k += UNIT) {
        uint32_t from = k < r->skip ? r->skip : k, to = k + UNIT < end ? k + UNIT : end;
        if (!sim_proxy_read(c->warp, c->insn, c->lane, sim_swizzle(c->shared + r->at + k, c->map.swizzle) + from % UNIT, to - from))
            return false;
    }
    return true;
}
/* May the bytes be read that the copy moves? Elements of a box that lie outside the tensor are not written, and need hold nothing. */
static bool may_store(sim_block *b, sim_bulk *c)
{
    const sim_bulk_form *f = c->insn->fn.data;
    bool whole = !f->rank || (c->at[0] >= 0 && (int64_t)c->at[0] + c->map.box[0] <= (int64_t)c->map.last[0] + 1);
    c->warp->shadow.met = false;
    if (!b->checked)
        return true;
    if (!(whole ? sim_proxy_read(c->warp, c->insn, c->lane, c->shared, c->bytes) : sim_tensor_map_walk(&c->map, c->at, read_row, c)))
        return false;
    return !c->warp->shadow.met || b->launch->options.open_stores || sim_bulk_defined(b, c);
}

static bool store_from(sim_block *b, sim_bulk *c, uint64_t address, uint64_t bytes)
{
    sim_warp *w = c->warp;
    const sim_bulk_form *f = c->insn->fn.data;
    if (sim_shared_owner(w, c->insn, c->lane, &address) != b)
        return sim_fault(w, c->insn, c->lane, SIM_CHECK_BOUNDS, "the source of a bulk copy is not in the block's own shared memory"), false;
    if (!span(b, c, address, bytes, f->rank ? BOX_ALIGN : UNIT) || !may_store(b, c))
        return false;
    sim_proxy_hold(b, c->shared, c->bytes);
    c->group = w->bulk_group[c->lane];
    if (c->count)
        count(b, c->bytes, 0);
    if (!b->lazy && (!sim_bulk_take(b, c) || !sim_bulk_give(c)))
        return false;
    return add(b, c) != NULL;
}

/* Boxes may come before the wait of a launch that begins early, of what the one in front leaves alone. */
static bool row_settled(void *bulk, const sim_box_row *row)
{
    const sim_bulk *c = bulk;
    return sim_grid_settled(c->warp, c->lane, row->global, row->size);
}

/* Lanes that store the same bytes to the same place store them once. */
static bool same_store(const sim_bulk *x, const sim_bulk *y)
{
    return x->global == y->global && x->shared == y->shared && x->bytes == y->bytes && !memcmp(x->at, y->at, sizeof x->at);
}

sim_step sim_run_bulk(sim_warp *w, const sim_insn *i, uint32_t m)
{
    const sim_bulk_form *f = i->fn.data;
    sim_block *b = w->block;
    sim_bulk store[SIM_LANES]; /* of the lanes so far, those that are counted; shared: the address */
    uint32_t stores = 0;
    FOR_LANES(l, m)
    {
        sim_bulk c = { .insn = i, .warp = w, .lane = (uint8_t)l, .count = true, .global = address_of(w, i, &f->global, l) };
        uint64_t bytes = f->rank ? 0 : sim_arg(w, i, f->size)->u[l], shared = i->sub == BULK_PREFETCH ? 0 : address_of(w, i, &f->shared, l);
        if (f->rank) {
            if (!sim_tensor_map_read(w, i, (int)l, c.global, &c.map))
                return STEP_FAULT;
            if (c.map.rank != f->rank)
                return sim_fault(w, i, (int)l, SIM_CHECK_TENSOR_MAP, "the tensor map has %u dimensions, the instruction %u", c.map.rank,
                                 f->rank);
            for (int k = 0; k < f->rank; k++)
                c.at[k] = (int32_t)sim_arg(w, i, f->coordinate + k)->u[l];
            if (i->sub == BULK_LOAD && (int64_t)c.at[0] * c.map.element % UNIT) /* CUDA_ERROR_ILLEGAL_INSTRUCTION on an H200 */
                return sim_fault(w, i, (int)l, SIM_CHECK_OPERAND, "a box begins at element %d of %u bytes: not at a multiple of %d bytes",
                                 c.at[0], c.map.element, UNIT);
            bytes = sim_tensor_map_bytes(&c.map);
        } else if (bytes & (UNIT - 1) || !bytes) {
            return sim_fault(w, i, (int)l, SIM_CHECK_OPERAND, "a bulk copy of %llu bytes: not a multiple of %d, or none",
                             (unsigned long long)bytes, UNIT);
        } else if (c.global & (UNIT - 1)) {
            return sim_fault(w, i, (int)l, SIM_CHECK_ALIGNMENT, "misaligned bulk copy: global address 0x%llx is no multiple of %d",
                             (unsigned long long)c.global, UNIT);
        }
        bool ok = i->sub == BULK_SHARED || i->sub == BULK_PREFETCH ||
                  (i->sub == BULK_LOAD && f->rank && sim_tensor_map_walk(&c.map, c.at, row_settled, &c)) || sim_grid_waited(w, i, (int)l);
        if (!ok)
            return STEP_FAULT;
        if (i->sub == BULK_LOAD || i->sub == BULK_SHARED)
            ok = load(&c, shared, bytes, address_of(w, i, &f->mbarrier, l), f->mask < 0 ? 0 : sim_arg(w, i, f->mask)->u[l] & 0xFFFF);
        else if (i->sub != BULK_PREFETCH) {
            sim_bulk key = c;
            key.shared = (uint32_t)shared, key.bytes = (uint32_t)bytes;
            for (uint32_t k = 0; k < stores && i->sub == BULK_STORE; k++)
                c.count &= !same_store(&store[k], &key);
            if (c.count)
                store[stores++] = key;
            ok = store_from(b, &c, shared, bytes);
        }
        if (!ok)
            return STEP_FAULT;
    }
    return STEP_NEXT;
}

sim_step sim_run_bulk_commit(sim_warp *w, const sim_insn *i, uint32_t m)
{
    (void)i;
    FOR_LANES(l, m) w->bulk_group[l]++;
    return STEP_NEXT;
}

static void release(sim_block *b, sim_bulk *c) /* the source may be written again by what comes after its thread */
{
    if (b->checked)
        sim_proxy_drop(c->warp, c->shared, c->bytes);
    c->read = true;
}

/* Waits: for the reads of the lanes' groups before the latest `imm`, or for the groups as a whole. */
sim_step sim_run_bulk_wait(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_block *b = w->block;
    for (uint32_t k = 0; k < b->bulks;) {
        sim_bulk *c = &b->bulk[k];
        bool mine = !c->mbarrier && c->warp == w && m >> c->lane & 1 && c->group + (uint64_t)i->imm < w->bulk_group[c->lane];
        if (mine && !c->read) {
            if (b->lazy && !sim_bulk_take(b, c))
                return STEP_FAULT;
            release(b, c);
        }
        if (!mine || i->sub == WAIT_READ) {
            k++;
            continue;
        }
        if (!sim_bulk_give(c))
            return STEP_FAULT;
        drop(b, k);
    }
    return STEP_NEXT;
}

bool sim_bulk_leave(sim_warp *w)
{
    sim_block *b = w->block;
    for (uint32_t k = 0; k < b->bulks;) {
        sim_bulk *c = &b->bulk[k];
        if (c->mbarrier || c->warp != w) {
            k++;
            continue;
        }
        if (b->checked && !c->read &&
            sim_fault(w, c->insn, c->lane, SIM_CHECK_UNAWAITED,
                      "a thread leaves while its bulk copy still reads shared memory: cp.async.bulk.wait_group%s is missing",
                      c->group < w->bulk_group[c->lane] ? "" : " or the commit_group before it") == STEP_FAULT)
            return false;
        if (!c->read) {
            if (b->lazy && !sim_bulk_take(b, c))
                return false;
            release(b, c);
        }
        if (!sim_bulk_give(c))
            return false;
        drop(b, k);
    }
    return true;
}

bool sim_bulk_end(sim_block *b)
{
    for (uint32_t k = 0; k < b->mbarriers && b->checked; k++) {
        const sim_mbarrier *m = &b->mbarrier[k];
        if (!m->last)
            continue; /* no bulk copy has come to it */
        if (m->tx && sim_fault(m->last_warp, m->last, -1, SIM_CHECK_ANNOUNCED,
                               "a block ends with an mbarrier at offset %u to which copies have brought %lld bytes %s than were announced",
                               m->address, (long long)(m->tx < 0 ? -m->tx : m->tx), m->tx < 0 ? "more" : "less") == STEP_FAULT)
            return false;
        if (m->landed > m->waited &&
            sim_fault(m->last_warp, m->last, -1, SIM_CHECK_UNAWAITED,
                      "a block ends without waiting for a bulk copy to its shared memory: no thread has waited for "
                      "phase %llu of the mbarrier at offset %u",
                      (unsigned long long)(m->landed - 1), m->address) == STEP_FAULT)
            return false;
    }
    for (uint32_t r = 0; r < b->cluster->blocks && b->checked; r++) {
        const sim_block *o = b->cluster->block[r];
        for (uint32_t k = 0; k < o->bulks; k++) {
            const sim_bulk *c = &o->bulk[k];
            if (c->insn->sub == BULK_SHARED && c->warp->block == b &&
                sim_fault(c->warp, c->insn, c->lane, SIM_CHECK_UNAWAITED,
                          "a block ends while its bulk copy to another block still reads shared memory") == STEP_FAULT)
                return false;
        }
    }
    for (uint32_t k = 0; k < b->bulks; k++) {
        const sim_bulk *c = &b->bulk[k];
        if (b->checked && c->mbarrier &&
            sim_fault(
                c->warp, c->insn, c->lane, SIM_CHECK_UNAWAITED,
                "a block ends without waiting for a bulk copy to its shared memory: no thread has waited for phase %llu of the mbarrier "
                "at offset %u",
                (unsigned long long)c->phase, c->mbarrier->address) == STEP_FAULT)
            return false;
    }
    sim_bulk_drop(b);
    return true;
}
