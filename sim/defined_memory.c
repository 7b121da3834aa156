/* defined_memory: undefined bytes of memory, and their way between memory and registers. */
#include "defined.h"
#include "run.h"
#include <string.h>

/* ---- shared memory ---- */

uint32_t sim_shared_holes(const sim_block *b, uint32_t at, uint32_t size)
{
    uint32_t holes = 0;
    if (!((at | size) & 3)) {
        for (uint32_t k = 0; k < size / 4; k++)
            holes |= (~b->state[at / 4 + k] & 15u) << 4 * k;
        return holes;
    }
    for (uint32_t n = 0; n < size; n++)
        holes |= (uint32_t) !(b->state[(at + n) >> 2] >> ((at + n) & 3) & 1) << n;
    return holes;
}

void sim_shared_undefine(sim_block *b, uint32_t at, uint32_t bytes, const sim_origin *from)
{
    for (uint32_t n = 0; n < 32; n++)
        if (bytes >> n & 1)
            b->state[(at + n) >> 2] &= (uint8_t) ~(1u << ((at + n) & 3));
    if (from && bytes)
        b->tale[b->tales++ % SIM_TALES] = (sim_tale){ at, bytes, *from };
}

/* What was stored there last, if it is remembered; else that something was, or that it was never written. */
sim_origin sim_shared_origin(const sim_block *b, const sim_insn *i, uint32_t at)
{
    for (uint32_t k = 1; k <= SIM_TALES && k <= b->tales; k++) {
        const sim_tale *t = &b->tale[(b->tales - k) % SIM_TALES];
        if (at - t->at < 32 && t->bytes >> (at - t->at) & 1)
            return t->origin;
    }
    uint64_t wrote = b->wrote[at >> 2];
    bool stored = wrote >> 32 > b->cluster->epoch && wrote >> 16 & 1u << (at & 3);
    return (sim_origin){ i, at, stored ? ORIGIN_STORED : ORIGIN_SHARED };
}

/* ---- local memory: a lane's marks start at a multiple of 32 bits ---- */

static uint32_t *marks(const sim_warp *w, uint32_t lane, uint32_t at)
{
    uint32_t words = (w->block->program->local_bytes + 31) / 32;
    return (uint32_t *)(void *)w->shadow.local + (size_t)lane * words + at / 32;
}
static uint32_t mark_of(uint32_t at, uint32_t size)
{
    return (size >= 32 ? SIM_ALL : (1u << size) - 1) << (at & 31);
}

bool sim_local_defined(const sim_warp *w, uint32_t lane, uint32_t at, uint32_t size)
{
    uint32_t mark = mark_of(at, size);
    return (*marks(w, lane, at) & mark) == mark;
}
void sim_local_define(sim_warp *w, uint32_t lane, uint32_t at, uint32_t size)
{
    *marks(w, lane, at) |= mark_of(at, size);
}

/* ---- any ---- */

/* The block and the offset of an address in shared memory that was checked before. */
static sim_block *place(sim_warp *w, sim_space s, uint64_t address, uint32_t *at)
{
    uint32_t rank = s == SP_CLUSTER ? (uint32_t)(address >> SIM_RANK_SHIFT) & SIM_RANK_BITS : 0;
    *at = (uint32_t)(s == SP_CLUSTER ? address & ((1u << SIM_RANK_SHIFT) - 1) : address) - SIM_SHARED_BASE;
    return rank ? w->block->cluster->block[rank - 1] : w->block;
}

static sim_alloc *allocation(const sim_warp *w, uint64_t address)
{
    sim_alloc *a = sim_memory_find(w->block->launch->memory, address);
    return a ? a : sim_memory_find(w->block->launch->variables, address);
}

/* origin: that of the first lane with a hole; its insn is NULL as long as there is none. */
static uint32_t holes_of(sim_warp *w, const sim_insn *i, uint32_t lane, uint64_t address, uint32_t size, sim_origin *origin)
{
    uint32_t holes = 0, at;
    sim_space s = sim_space_of((sim_space)i->space, &address);
    if (s == SP_SHARED || s == SP_CLUSTER) {
        sim_block *b = place(w, s, address, &at);
        holes = sim_shared_holes(b, at, size);
        if (holes && !origin->insn)
            *origin = sim_shared_origin(b, i, at + (uint32_t)__builtin_ctz(holes));
    } else if (s == SP_LOCAL) {
        at = (uint32_t)(address - SIM_LOCAL_BASE);
        for (uint32_t n = 0; n < size; n++)
            holes |= (uint32_t)!sim_local_defined(w, lane, at + n, 1) << n;
        if (holes && !origin->insn)
            *origin = (sim_origin){ i, at + (uint32_t)__builtin_ctz(holes), ORIGIN_LOCAL };
    } else if (s != SP_PARAM) {
        const sim_alloc *a = allocation(w, address);
        for (uint32_t n = 0; a && n < size; n++)
            holes |= (uint32_t)(sim_memory_unwritten(a, address - a->base + n, 1) >= 0) << n;
        if (holes && !origin->insn)
            *origin = (sim_origin){ i, address + (uint32_t)__builtin_ctz(holes), ORIGIN_GLOBAL };
    }
    return holes;
}

/* Bits from bytes, and back. */
static uint64_t widen(uint32_t bytes)
{
    uint64_t v = 0;
    for (uint32_t n = 0; n < 8; n++)
        if (bytes >> n & 1)
            v |= 0xFFull << 8 * n;
    return v;
}
static uint32_t narrow(uint64_t bits)
{
    uint32_t v = 0;
    for (uint32_t n = 0; n < 8; n++)
        v |= (uint32_t)((bits >> 8 * n & 0xFF) != 0) << n;
    return v;
}

void sim_defined_load(sim_warp *w, const sim_insn *i, uint32_t m, const uint64_t *address)
{
    uint32_t n = i->count, element = i->sub, holes[SIM_LANES];
    sim_origin origin = { 0 };
    bool sign = sim_type_signed((sim_type)i->type);
    FOR_LANES(l, m) holes[l] = holes_of(w, i, l, address[l], n * element, &origin);
    for (uint32_t k = 0; k < n; k++) {
        uint64_t bits[SIM_LANES];
        if (i->arg[k] == SIM_NO_ARG)
            continue;
        FOR_LANES(l, m)
        {
            bits[l] = widen(holes[l] >> k * element & ((1u << element) - 1));
            if (sign && element < 8 && bits[l] >> (8 * element - 1) & 1)
                bits[l] |= UINT64_MAX << 8 * element;
        }
        sim_undefined_put(w, i, (int)k, bits, m, m, &origin);
    }
}

bool sim_defined_store(sim_warp *w, const sim_insn *i, uint32_t l, uint64_t address)
{
    uint32_t element = i->sub, bytes = 0, at;
    int first = 0;
    for (int k = i->count; k-- > 0;) {
        uint32_t x = narrow(sim_undefined_in(w, i, 1 + k, l)) & ((1u << element) - 1);
        if (x)
            bytes |= x << (uint32_t)k * element, first = 1 + k;
    }
    if (!bytes)
        return true;
    sim_space s = sim_space_of((sim_space)i->space, &address);
    if (s == SP_SHARED || s == SP_CLUSTER) {
        sim_block *b = place(w, s, address, &at);
        sim_shared_undefine(b, at, bytes, sim_undefined_origin(w, i, first));
        return true;
    }
    if (s != SP_LOCAL && w->block->launch->options.open_stores) {
        sim_alloc *a = allocation(w, address);
        for (uint32_t n = 0; a && n < element * i->count; n++)
            if (bytes >> n & 1)
                sim_memory_forget(a, address - a->base + n, 1);
        return true;
    }
    if (s != SP_LOCAL)
        return sim_undefined_report(w, i, first, (int)l, "is stored to global memory");
    at = (uint32_t)(address - SIM_LOCAL_BASE);
    for (uint32_t n = 0; n < element * i->count; n++)
        if (bytes >> n & 1)
            *marks(w, l, at + n) &= ~mark_of(at + n, 1);
    return true;
}

/* Exchanged, the register's state moves to the memory; what any other operation leaves depends on both. What goes to global memory must be
 * defined. */
int sim_defined_atom(sim_warp *w, const sim_insn *i, uint32_t l, int element, sim_block *shared, uint32_t offset, const sim_alloc *global,
                     uint64_t address, bool operand, sim_origin *from)
{
    uint32_t size = (uint32_t)sim_type_bytes((sim_type)i->type), all = (1u << size) - 1;
    int brings = operand ? sim_undefined(w, i, 2 + element) >> l & 1 ? 2 + element : 3 : -1;
    if (shared) {
        uint32_t holes = sim_shared_holes(shared, offset, size);
        if (holes)
            *from = sim_shared_origin(shared, i, offset + (uint32_t)__builtin_ctz(holes));
        else if (operand)
            *from = *sim_undefined_origin(w, i, brings);
        for (uint32_t k = offset >> 2; k < (offset + size) >> 2; k++)
            shared->state[k] |= 15;
        if (operand || (holes && i->sub != ATOM_EXCH))
            sim_shared_undefine(shared, offset, all, from);
        return holes != 0;
    }
    bool open = w->block->launch->options.open_stores;
    if (operand && open)
        *from = *sim_undefined_origin(w, i, brings);
    else if (operand && !sim_undefined_report(w, i, brings, (int)l, "is stored to global memory"))
        return -1;
    int64_t hole = sim_memory_unwritten(global, address - global->base, size);
    if (hole < 0)
        return 0;
    *from = (sim_origin){ i, global->base + (uint64_t)hole, ORIGIN_GLOBAL };
    if (i->sub == ATOM_EXCH || open)
        return 1;
    char text[256];
    sim_report_address(w->block, from->at, text, sizeof text);
    return sim_fault(w, i, (int)l, SIM_CHECK_UNWRITTEN, "global memory is read that was never written: %s", text) == STEP_FAULT ? -1 : 0;
}

/* ---- matrices: lane l holds of row l / 4 the bytes from 4 (l % 4) on, with .trans the elements l / 4 of rows 2 (l % 4) and the next ----
 */

void sim_defined_ldmatrix(sim_warp *w, const sim_insn *i, const uint32_t *at)
{
    for (int k = 0; k < i->count; k++) {
        uint32_t holes[8], any = 0;
        uint64_t bits[SIM_LANES];
        sim_origin origin = { 0 };
        for (int g = 0; g < 8; g++) {
            any |= holes[g] = sim_shared_holes(w->block, at[8 * k + g], 16);
            if (holes[g] && !origin.insn)
                origin = sim_shared_origin(w->block, i, at[8 * k + g] + (uint32_t)__builtin_ctz(holes[g]));
        }
        if (!any || i->arg[k] == SIM_NO_ARG)
            continue;
        for (uint32_t l = 0; l < SIM_LANES; l++) {
            uint32_t e = 2 * (l >> 2), r = 2 * (l & 3);
            bits[l] =
                i->flags & F_TRANS ? widen((holes[r] >> e & 3) | (holes[r + 1] >> e & 3) << 2) : widen(holes[l >> 2] >> 4 * (l & 3) & 15);
        }
        sim_undefined_put(w, i, k, bits, SIM_ALL, SIM_ALL, &origin);
    }
}

void sim_defined_stmatrix(sim_warp *w, const sim_insn *i, const uint32_t *at)
{
    for (int k = 0; k < i->count; k++)
        FOR_LANES(l, sim_undefined(w, i, 1 + k))
        {
            uint32_t bytes = narrow(sim_undefined_in(w, i, 1 + k, l));
            const sim_origin *from = sim_undefined_origin(w, i, 1 + k);
            for (uint32_t h = 0; h < 2; h++) {
                uint32_t r = i->flags & F_TRANS ? 2 * (l & 3) + h : l >> 2, e = i->flags & F_TRANS ? l >> 2 : 2 * (l & 3) + h;
                sim_shared_undefine(w->block, at[8 * (uint32_t)k + r] + 2 * e, bytes >> 2 * h & 3, from);
            }
        }
}
