/* access: loads, stores and atomics of a warp. */
#include "alu.h"
#include "defined.h"
#include "grid_order.h"
#include "run.h"
#include <string.h>

/* Loads of a known size: byte by byte the value would wait for each byte to reach memory. */
static uint64_t extend(const uint8_t *p, uint32_t size, bool sign)
{
    uint16_t h;
    uint32_t w;
    uint64_t q;
    switch (size) {
    case 1:
        return sign ? (uint64_t)(int64_t)(int8_t)*p : *p;
    case 2:
        memcpy(&h, p, 2);
        return sign ? (uint64_t)(int64_t)(int16_t)h : h;
    case 4:
        memcpy(&w, p, 4);
        return sign ? (uint64_t)(int64_t)(int32_t)w : w;
    default:
        memcpy(&q, p, 8);
        return q;
    }
}

/* Is it in the block's own shared memory? Then the address becomes that there. */
static bool own(const sim_warp *w, const sim_insn *i, uint64_t *a)
{
    sim_space s = sim_space_of((sim_space)i->space, a);
    uint32_t rank = s == SP_CLUSTER ? (uint32_t)(*a >> SIM_RANK_SHIFT) & SIM_RANK_BITS : 0;
    *a &= ~((uint64_t)(rank == w->block->rank + 1 ? rank : 0) << SIM_RANK_SHIFT);
    return s == SP_SHARED || (s == SP_CLUSTER && (!rank || rank == w->block->rank + 1));
}

static void banks(sim_warp *w, const sim_insn *i, const uint64_t *address, uint32_t m, uint32_t size)
{
    uint32_t at[SIM_LANES], in = 0;
    FOR_LANES(l, m)
    {
        uint64_t a = address[l];
        if (own(w, i, &a))
            at[l] = (uint32_t)a, in |= 1u << l;
    }
    if (in)
        sim_count_banks(w->block, at, in, size);
}

sim_step sim_run_load(sim_warp *w, const sim_insn *i, uint32_t m)
{
    uint32_t n = i->count, element = i->sub, size = n * element;
    uint8_t data[SIM_LANES][32];
    uint64_t address[SIM_LANES];
    uint32_t hints = 0; /* lanes whose value is some value, whatever lies there */
    bool same = i->arg[n] == SIM_NO_ARG && i->space == SP_PARAM;
    if (i->flags & F_VOLATILE)
        sim_shared_sync(w, false, true);
    w->shadow.met = false;
    for (uint32_t l = 0; l < SIM_LANES; l++) /* those of lanes that do not load are of no use, and cost less than to skip them */
        address[l] = sim_address(w, i, (int)n, i->flags & F_WIDE, l);
    bool done = !same && (i->space == SP_GLOBAL || i->space == SP_GENERIC) && sim_load_global(w, i, m, address, data, size);
    FOR_LANES(l, done ? 0 : m)
    {
        if (!sim_load(w, i, (int)l, (sim_space)i->space, address[l], data[l], size))
            return STEP_FAULT;
        if (i->flags & F_HINT && sim_grid_hint(w, i, l)) {
            sim_grid_disturb(w->block, address[l], data[l]);
            hints |= 1u << l;
        }
        if (!same)
            continue;
        FOR_LANES(k, m) memcpy(data[k], data[l], size);
        break;
    }
    if (i->space == SP_SHARED || i->space == SP_GENERIC || i->space == SP_CLUSTER)
        banks(w, i, address, m, size);
    for (uint32_t k = 0; k < n; k++) {
        if (i->arg[k] == SIM_NO_ARG)
            continue;
        sim_vec *d = sim_arg(w, i, (int)k);
        bool sign = sim_type_signed((sim_type)i->type);
        if (element == 4 && !i->wide) {
            FOR_LANES(l, m) memcpy(&d->u[l], data[l] + k * 4, 4);
        } else if (element == 8) {
            FOR_LANES(l, m) memcpy(&d->q[l], data[l] + k * 8, 8);
        } else if (i->wide) {
            FOR_LANES(l, m) d->q[l] = extend(data[l] + k * element, element, sign);
        } else {
            FOR_LANES(l, m) d->u[l] = (uint32_t)extend(data[l] + k * element, element, sign);
        }
    }
    if (w->shadow.met && m & ~hints)
        sim_defined_load(w, i, m & ~hints, address);
    return STEP_NEXT;
}

sim_step sim_run_store(sim_warp *w, const sim_insn *i, uint32_t m)
{
    uint32_t n = i->count, element = i->sub, size = n * element;
    uint8_t data[SIM_LANES][32];
    uint64_t address[SIM_LANES];
    sim_block *b = w->block;
    uint32_t undefined = 0;
    for (uint32_t k = 0; k < n && w->shadow.slots; k++)
        undefined |= sim_undefined(w, i, 1 + (int)k);
    for (uint32_t k = 0; k < n; k++) {
        const sim_vec *v = sim_arg(w, i, 1 + (int)k);
        if (element == 4 && !i->wide) {
            FOR_LANES(l, m) memcpy(data[l] + k * 4, &v->u[l], 4);
        } else if (element == 2 && !i->wide) {
            FOR_LANES(l, m) memcpy(data[l] + k * 2, &v->u[l], 2);
        } else if (i->wide) {
            FOR_LANES(l, m) memcpy(data[l] + k * element, &v->q[l], element);
        } else {
            FOR_LANES(l, m) memcpy(data[l] + k * element, &v->u[l], element);
        }
    }
    FOR_LANES(l, m)
    {
        address[l] = sim_address(w, i, 0, i->flags & F_WIDE, l);
        if (!sim_store(w, i, (int)l, (sim_space)i->space, address[l], data[l], size))
            return STEP_FAULT;
        if (undefined >> l & 1 && !sim_defined_store(w, i, l, address[l]))
            return STEP_FAULT;
    }
    if (i->flags & F_VOLATILE)
        sim_shared_sync(w, true, false);
    if (i->space != SP_SHARED && i->space != SP_GENERIC && i->space != SP_CLUSTER)
        return STEP_NEXT;
    banks(w, i, address, m, size);
    if (!b->checked)
        return STEP_NEXT;
    FOR_LANES(l, m)
    { /* a later lane that wrote something else is visible now */
        uint64_t a = address[l];
        if (own(w, i, &a) && memcmp(b->shared + (a - SIM_SHARED_BASE), data[l], size) &&
            sim_fault(w, i, (int)l, SIM_CHECK_COLLISION, "race in shared memory: lanes of one store write different values to offset %llu",
                      (unsigned long long)(a - SIM_SHARED_BASE)) == STEP_FAULT)
            return STEP_FAULT;
    }
    return STEP_NEXT;
}

static uint64_t apply(int op, sim_type t, uint64_t old, uint64_t v, uint64_t other)
{
    bool wide = sim_type_bytes(t) == 8, sign = sim_type_signed(t);
    union {
        uint64_t q;
        double d;
    } x = { .q = old }, y = { .q = v };
    if (!wide)
        old &= SIM_ALL, v &= SIM_ALL, other &= SIM_ALL;
    bool less = sign ? wide ? (int64_t)v < (int64_t)old : (int32_t)v < (int32_t)old : v < old;
    switch (op) {
    case ATOM_ADD:
        if (t == T_F32)
            return sim_bits(sim_f32((uint32_t)old) + sim_f32((uint32_t)v));
        if (t == T_F64)
            return x.d += y.d, x.q;
        if (t == T_F16X2 || t == T_BF16X2) {
            uint64_t r = 0;
            for (int k = 0; k < 32; k += 16) {
                uint16_t p = (uint16_t)(old >> k), q = (uint16_t)(v >> k);
                r |= (uint64_t)(t == T_F16X2 ? sim_float_half(sim_half_float(p) + sim_half_float(q))
                                             : sim_float_bf16(sim_bf16_float(p) + sim_bf16_float(q)))
                     << k;
            }
            return r;
        }
        return old + v;
    case ATOM_MIN:
        return less ? v : old;
    case ATOM_MAX:
        return less ? old : v;
    case ATOM_AND:
        return old & v;
    case ATOM_OR:
        return old | v;
    case ATOM_XOR:
        return old ^ v;
    case ATOM_EXCH:
        return v;
    case ATOM_CAS:
        return old == v ? other : old;
    case ATOM_INC:
        return old >= v ? 0 : old + 1;
    default:
        return !old || old > v ? v : old - 1;
    }
}

/* Element e of a vector: each is an atomic operation of its own. */
static sim_step atom_element(sim_warp *w, const sim_insn *i, uint32_t m, int e)
{
    sim_block *b = w->block;
    uint32_t operands = !w->shadow.slots ? 0 : sim_undefined(w, i, 2 + e) | (i->sub == ATOM_CAS ? sim_undefined(w, i, 3) : 0), vague = 0;
    sim_origin from = { .insn = i };
    uint32_t size = (uint32_t)sim_type_bytes((sim_type)i->type);
    const sim_vec *v = sim_arg(w, i, 2 + e), *o = i->sub == ATOM_CAS ? sim_arg(w, i, 3) : v;
    uint64_t result[SIM_LANES];
    sim_shared_sync(w, false, true);
    FOR_LANES(l, m)
    {
        uint64_t a = sim_address(w, i, 1, i->flags & F_WIDE, l);
        if (!e && i->count > 1 && a % (size * i->count))
            return sim_fault(w, i, (int)l, SIM_CHECK_ALIGNMENT, "an atomic operation on a vector that is not aligned to its size");
        a += (uint64_t)e * size;
        sim_space s = sim_space_of((sim_space)i->space, &a);
        sim_alloc *where = NULL;
        sim_block *at = b;
        if (s == SP_CLUSTER && !(at = sim_shared_owner(w, i, (int)l, &a)))
            return STEP_FAULT;
        if (s == SP_CLUSTER)
            s = SP_SHARED;
        uint8_t *p = s == SP_SHARED   ? sim_shared_of(at, w, i, (int)l, a, size)
                     : s == SP_GLOBAL ? sim_global(w, i, (int)l, a, size, &where)
                                      : NULL;
        if (!p)
            return s == SP_SHARED || s == SP_GLOBAL
                       ? STEP_FAULT
                       : sim_fault(w, i, (int)l, SIM_CHECK_BOUNDS, "an atomic operation outside of global and shared memory");
        uint64_t x = size == 8 ? v->q[l] : v->u[l], y = size == 8 ? o->q[l] : o->u[l], old, new;
        int old_undefined = b->checked ? sim_defined_atom(w, i, l, e, s == SP_SHARED ? at : NULL, (uint32_t)(p - at->shared), where, a,
                                                          operands >> l & 1, &from)
                                       : 0;
        if (old_undefined < 0)
            return STEP_FAULT;
        vague |= (uint32_t)old_undefined << l;
        if (s == SP_SHARED) {
            b->counts.c.shared_read += size, b->counts.c.shared_write += size;
        } else {
            sim_memory_mark(where, a - where->base, size);
            if (b->launch->options.open_stores && (operands >> l & 1 || (old_undefined && i->sub != ATOM_EXCH)))
                sim_memory_forget(where, a - where->base, size);
            sim_count_global(b, where, size, size);
        }
        bool strong = s == SP_GLOBAL && sim_order_strong(w, i), ok = true;
        bool flag = strong && (!sim_type_float((sim_type)i->type) || i->order & (ORDER_ACQUIRE | ORDER_RELEASE)); /* else data */
        if (strong && !sim_order_mark(w, i, where, a, size))
            return STEP_FAULT;
        if (flag)
            sim_order_lock(w);
        if (size == 8) {
            old = __atomic_load_n((uint64_t *)(void *)p, __ATOMIC_RELAXED);
            do
                new = apply(i->sub, (sim_type)i->type, old, x, y);
            while (!__atomic_compare_exchange_n((uint64_t *)(void *)p, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
        } else {
            uint32_t o32 = __atomic_load_n((uint32_t *)(void *)p, __ATOMIC_RELAXED);
            do
                new = apply(i->sub, (sim_type)i->type, o32, x, y);
            while (!__atomic_compare_exchange_n((uint32_t *)(void *)p, &o32, (uint32_t) new, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
            old = o32;
        }
        if (flag) {
            ok = (i->arg[0] == SIM_NO_ARG || sim_order_acquire(w, i, a)) && sim_order_release(w, i, a, true);
            sim_order_unlock(w);
        }
        if (!ok)
            return STEP_FAULT;
        result[l] = old;
    }
    sim_shared_sync(w, true, false);
    if (i->arg[0] == SIM_NO_ARG)
        return STEP_NEXT;
    if (vague || w->shadow.slots)
        sim_undefined_fill(w, i, 0, vague, m, &from);
    sim_vec *d = sim_arg(w, i, 0);
    FOR_LANES(l, m)
    {
        if (i->wide)
            d->q[l] = result[l];
        else
            d->u[l] = (uint32_t)result[l];
    }
    return STEP_NEXT;
}

sim_step sim_run_atom(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_step step = STEP_NEXT;
    for (int e = 0; e < i->count && step == STEP_NEXT; e++)
        step = atom_element(w, i, m, e);
    return step;
}
