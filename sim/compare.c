/* compare: setp's comparisons, 32 lanes to one mask. */
#include "alu.h"
#include <string.h>

#define CMP(name, load, expr)                                \
    static uint32_t name(const sim_vec *a, const sim_vec *b) \
    {                                                        \
        uint32_t r = 0;                                      \
        for (uint32_t l = 0; l < SIM_LANES; l++) {           \
            __typeof__(load(a)) x = load(a), y = load(b);    \
            r |= (uint32_t)(expr) << l;                      \
        }                                                    \
        return r;                                            \
    }
#define U32(v) (v)->u[l]
#define S32(v) (v)->s[l]
#define U64(v) (v)->q[l]
#define S64(v) (v)->sq[l]
#define U16(v) (uint16_t)(v)->u[l]
#define S16(v) (int16_t)(v)->u[l]
#define F32(v) (v)->f[l]
#define F32Z(v) sim_ftz((v)->f[l])
#define F64(v) (v)->d[l]
#define F16(v) sim_half_float((uint16_t)(v)->u[l])
#define BF16(v) sim_bf16_float((uint16_t)(v)->u[l])
#define SIX(T) \
    CMP(eq_##T, T, x == y) CMP(ne_##T, T, x != y) CMP(lt_##T, T, x < y) CMP(le_##T, T, x <= y) CMP(gt_##T, T, x > y) CMP(ge_##T, T, x >= y)
#define UN (x != x || y != y)
/* clang-format off */
#define ALL(T)                                                                                                            \
    CMP(eq_##T, T, x == y) CMP(ne_##T, T, !UN && x != y) CMP(lt_##T, T, x < y) CMP(le_##T, T, x <= y) CMP(gt_##T, T, x > y) \
    CMP(ge_##T, T, x >= y) CMP(equ_##T, T, UN || x == y) CMP(neu_##T, T, x != y) CMP(ltu_##T, T, !(x >= y)) CMP(leu_##T, T, !(x > y)) \
    CMP(gtu_##T, T, !(x <= y)) CMP(geu_##T, T, !(x < y)) CMP(num_##T, T, !UN) CMP(nan_##T, T, UN)
/* clang-format on */
#define F16Z(v) sim_half_float((uint16_t)flush16((v)->u[l], 0x7C00))
#define BF16Z(v) sim_bf16_float((uint16_t)flush16((v)->u[l], 0x7F80))
static inline uint32_t flush16(uint32_t h, uint32_t exponent)
{
    return h & exponent ? h : h & 0x8000;
}
/* clang-format off */
SIX(U32) SIX(S32) SIX(U64) SIX(S64) SIX(U16) SIX(S16)
ALL(F32) ALL(F32Z) ALL(F64) ALL(F16) ALL(BF16) ALL(F16Z) ALL(BF16Z)
/* clang-format on */

#define ROW6(T)                                        \
    {                                                  \
        eq_##T, ne_##T, lt_##T, le_##T, gt_##T, ge_##T \
    }
#define ROW14(T)                                                                                                               \
    {                                                                                                                          \
        eq_##T, ne_##T, lt_##T, le_##T, gt_##T, ge_##T, equ_##T, neu_##T, ltu_##T, leu_##T, gtu_##T, geu_##T, num_##T, nan_##T \
    }

    static const char *const names[14] = { "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan" };
static const struct {
    uint32_t types;
    sim_compare *fn[14];
} rows[] = {
    { TB(U32) | TB(B32), ROW6(U32) }, { TB(S32), ROW6(S32) },    { TB(U64) | TB(B64), ROW6(U64) }, { TB(S64), ROW6(S64) },
    { TB(U16) | TB(B16), ROW6(U16) }, { TB(S16), ROW6(S16) },    { TB(F32), ROW14(F32) },          { TB(F64), ROW14(F64) },
    { TB(F16), ROW14(F16) },          { TB(BF16), ROW14(BF16) },
};
static sim_compare *const flushed[3][14] = { ROW14(F32Z), ROW14(F16Z), ROW14(BF16Z) };
static const struct {
    const char *alias, *name;
} unsigned_names[] = { { "lo", "lt" }, { "ls", "le" }, { "hi", "gt" }, { "hs", "ge" } };

sim_compare *sim_compare_find(const char *op, sim_type t, bool ftz)
{
    for (size_t k = 0; k < 4; k++)
        if (!strcmp(op, unsigned_names[k].alias))
            op = unsigned_names[k].name;
    for (int k = 0; k < 14; k++) {
        if (strcmp(op, names[k]))
            continue;
        if (ftz && (t == T_F32 || t == T_F16 || t == T_BF16))
            return flushed[t == T_F32 ? 0 : t == T_F16 ? 1 : 2][k];
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            if (rows[r].types >> t & 1)
                return rows[r].fn[k];
    }
    return NULL;
}
