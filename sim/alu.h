/* alu: instructions that compute one register from others, lane by lane. Tables of rows; decode.c looks them up. */
#ifndef SIM_ALU_H
#define SIM_ALU_H
#include "program.h"

#define TB(t) (1u << T_##t)
enum { A_SAT = 1, A_ROUND = 2, A_SPECIAL = 4 }; /* may have .sat; may have .rn/.rz/.rm/.rp; is counted as special */
/* A_BITS(n): each bit of the result depends on a bit of each of the first n operands, which bit on the other operands. */
enum { A_BITS_SHIFT = 3 };
#define A_BITS(n) ((n) << A_BITS_SHIFT)

/* op: the name with the modifiers that tell rows apart. operands: destination first, w = 16 or 32 bits, q = 64 bits.
 * ftz: the same with .ftz, or NULL where .ftz is not allowed. */
typedef struct sim_alu_row {
    const char *op;
    uint32_t types;
    const char *operands;
    sim_alu *fn, *ftz;
    uint32_t flags;
} sim_alu_row;
extern const sim_alu_row sim_alu_integer[], sim_alu_float[], sim_alu_half[]; /* ended by a row without op */

sim_compare *sim_compare_find(const char *op, sim_type t, bool ftz); /* "ltu": NULL if there is none */

enum { ROUND_NEAREST, ROUND_ZERO, ROUND_DOWN, ROUND_UP, ROUND_AWAY }; /* AWAY: to nearest, ties away from zero */

/* convert.c, rounding.c */
float sim_half_float(uint16_t h);
uint16_t sim_float_half(float f); /* to nearest even; NaN = 0x7FFF */
static inline float sim_bf16_float(uint16_t h)
{
    return sim_f32((uint32_t)h << 16);
}
uint16_t sim_float_bf16(float f);
/* x rounded to a format of `mantissa` stored bits and `exponent` bits, as its bits. Overflow goes where the mode says. */
uint32_t sim_round_to(double x, int mantissa, int exponent, int mode);
/* cvt of the usual pairs, 32 lanes at once; NULL: the general way. */
sim_alu *sim_convert_find(sim_type to, sim_type from, int round, bool sat, bool ftz);
bool sim_convert_ok(sim_type to, sim_type from);
sim_step sim_run_convert(sim_warp *w, const sim_insn *i, uint32_t m);
sim_step sim_run_convert_pair(sim_warp *w, const sim_insn *i, uint32_t m);
sim_step sim_run_widen_pair(sim_warp *w, const sim_insn *i, uint32_t m);
sim_step sim_run_narrow_pair(sim_warp *w, const sim_insn *i, uint32_t m);
#endif
