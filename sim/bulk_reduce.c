/* bulk_reduce: cp.reduce.async.bulk on the elements of a run in global memory, one atomic operation each. */
#include "alu.h"
#include "bulk.h"
#include <string.h>

static uint64_t combine(sim_type t, int op, uint64_t a, uint64_t b)
{
    bool sign = sim_type_signed(t), wide = sim_type_bytes(t) == 8, less;
    union {
        uint64_t q;
        double d;
    } x = { .q = a }, y = { .q = b };
    float p, q;
    if (sim_type_float(t) && t != T_F64) {
        p = t == T_F32 ? sim_f32((uint32_t)a) : t == T_F16 ? sim_half_float((uint16_t)a) : sim_bf16_float((uint16_t)a);
        q = t == T_F32 ? sim_f32((uint32_t)b) : t == T_F16 ? sim_half_float((uint16_t)b) : sim_bf16_float((uint16_t)b);
        p = op == BULK_ADD ? p + q : op == BULK_MIN ? (q < p || p != p ? q : p) : (q > p || p != p ? q : p);
        return t == T_F32 ? sim_bits(p) : t == T_F16 ? sim_float_half(p) : sim_float_bf16(p);
    }
    if (t == T_F64)
        return x.d += y.d, x.q;
    less = sign ? wide ? (int64_t)b < (int64_t)a : (int32_t)b < (int32_t)a : b < a;
    switch (op) {
    case BULK_ADD:
        return a + b;
    case BULK_MIN:
        return less ? b : a;
    case BULK_MAX:
        return less ? a : b;
    case BULK_AND:
        return a & b;
    case BULK_OR:
        return a | b;
    case BULK_XOR:
        return a ^ b;
    case BULK_INC:
        return a >= b ? 0 : a + 1;
    default:
        return !a || a > b ? b : a - 1;
    }
}

#define REDUCE(word)                                                                                     \
    for (uint32_t k = 0; k < bytes; k += sizeof(word)) {                                                 \
        word *at = (word *)(void *)(to + k), old = __atomic_load_n(at, __ATOMIC_RELAXED), v, next;       \
        memcpy(&v, from + k, sizeof v);                                                                  \
        do                                                                                               \
            next = (word)combine(t, op, old, v);                                                         \
        while (!__atomic_compare_exchange_n(at, &old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)); \
    }

void sim_bulk_reduce(uint8_t *to, const uint8_t *from, uint32_t bytes, sim_type t, int op)
{
    switch (sim_type_bytes(t)) {
    case 2:
        REDUCE(uint16_t) break;
    case 4:
        REDUCE(uint32_t) break;
    default:
        REDUCE(uint64_t)
    }
}
