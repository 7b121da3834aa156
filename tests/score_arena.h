/* score_arena: score programs with their operands in one piece of memory, which a kernel of a test reads, and the text that tells it where.
 */
#ifndef FA_TESTS_SCORE_ARENA_H
#define FA_TESTS_SCORE_ARENA_H
#include "gen/text.h"
#include "score_world.h"
#include "verify/operands/number.h"
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { ARENA = 1 << 24 }; /* bytes of all arrays */

typedef struct score_stored {
    fa_program *program;
    score_world world;
    int64_t offset[FA_SCORE_OPERANDS_MAX], stride[FA_SCORE_OPERANDS_MAX][FA_SCORE_RANK_MAX];
} score_stored;

static unsigned char arena[ARENA];
static size_t used;

static inline int element_bytes(fa_score_element e)
{
    return e == FA_SCORE_ELEMENT_U8 ? 1 : e == FA_SCORE_ELEMENT_BF16 || e == FA_SCORE_ELEMENT_F16 ? 2 : e == FA_SCORE_ELEMENT_I64 ? 8 : 4;
}

/* Of an element, in elements; of bits in words. */
static inline unsigned char *place(const score_stored *p, int operand, const int64_t *index)
{
    const fa_score_operand *o = &p->program->ir.operand[operand];
    int64_t at = 0;
    for (int k = 0; k < o->rank; k++)
        at += (o->element == FA_SCORE_ELEMENT_BITS && k == o->rank - 1 ? index[k] / 32 : index[k]) * p->stride[operand][k];
    return arena + p->offset[operand] + at * element_bytes(o->element);
}

static inline double read_arena(void *user, int operand, const int64_t *index)
{
    const score_stored *p = user;
    const fa_score_operand *o = &p->program->ir.operand[operand];
    const unsigned char *at = place(p, operand, index);
    uint16_t half;
    int64_t wide;
    int32_t word;
    float f;
    memcpy(&half, at, sizeof half);
    memcpy(&word, at, sizeof word);
    memcpy(&f, at, sizeof f);
    switch (o->element) {
    case FA_SCORE_ELEMENT_BF16:
        return fa_number_from_bf16(half);
    case FA_SCORE_ELEMENT_F16:
        return fa_number_from_f16(half);
    case FA_SCORE_ELEMENT_I32:
        return word;
    case FA_SCORE_ELEMENT_I64:
        memcpy(&wide, at, sizeof wide);
        return (double)wide;
    case FA_SCORE_ELEMENT_U8:
        return *at;
    case FA_SCORE_ELEMENT_BITS:
        return (uint32_t)word >> index[o->rank - 1] % 32 & 1;
    default:
        return f;
    }
}

static inline void write_arena(const score_stored *p, int operand, const int64_t *index, double v)
{
    const fa_score_operand *o = &p->program->ir.operand[operand];
    unsigned char *at = place(p, operand, index);
    uint16_t half = o->element == FA_SCORE_ELEMENT_BF16 ? fa_number_to_bf16((float)v) : fa_number_to_f16((float)v);
    int64_t wide = (int64_t)v;
    int32_t word = o->type == FA_SCORE_I32 ? (int32_t)fmin(v, INT32_MAX) : 0;
    uint32_t bits;
    float f = (float)v;
    switch (o->element) {
    case FA_SCORE_ELEMENT_BF16:
    case FA_SCORE_ELEMENT_F16:
        memcpy(at, &half, sizeof half);
        break;
    case FA_SCORE_ELEMENT_I32:
        memcpy(at, &word, sizeof word);
        break;
    case FA_SCORE_ELEMENT_I64:
        memcpy(at, &wide, sizeof wide);
        break;
    case FA_SCORE_ELEMENT_U8:
        *at = (unsigned char)v;
        break;
    case FA_SCORE_ELEMENT_BITS:
        memcpy(&bits, at, sizeof bits);
        bits |= (uint32_t)(v != 0) << index[o->rank - 1] % 32;
        memcpy(at, &bits, sizeof bits);
        break;
    default:
        memcpy(at, &f, sizeof f);
    }
}

static inline void fill(score_stored *p, int operand, double (*element)(void *, int, const int64_t *))
{
    const fa_score_operand *o = &p->program->ir.operand[operand];
    const int64_t *extent = p->world.data.extent[operand];
    int64_t index[FA_SCORE_RANK_MAX] = { 0 }, n = 1, elements = 1;
    for (int k = o->rank - 1; k >= 0; k--) {
        p->stride[operand][k] = n;
        n *= o->element == FA_SCORE_ELEMENT_BITS && k == o->rank - 1 ? (extent[k] + 31) / 32 : extent[k];
        elements *= extent[k];
    }
    p->offset[operand] = (int64_t)(used + 15) / 16 * 16;
    used = (size_t)(p->offset[operand] + n * element_bytes(o->element) + 8);
    cr_assert_lt(used, ARENA);
    for (; elements > 0; elements--) {
        write_arena(p, operand, index, element(&p->world, operand, index));
        for (int k = o->rank - 1; k >= 0 && ++index[k] == extent[k]; k--)
            index[k] = 0;
    }
}

/* A struct Operands, and one of the launch. */
static inline void print_operands(fa_text *t, const score_stored *p, const char *more)
{
    const fa_score_ir *ir = &p->program->ir;
    fa_text_fmt(t, "struct Operands {\n%s", more);
    for (int k = 0; k < ir->operands; k++)
        if (ir->operand[k].scalar)
            fa_text_fmt(t, "  %s score%d;\n", ir->operand[k].type == FA_SCORE_I32 ? "int" : "float", k);
        else
            fa_text_fmt(t, "  const void *score%d;\n  int score%d_extent[4];\n  long long score%d_stride[4];\n", k, k, k);
    fa_text_str(t, "};\n");
}

static inline void print_launch(fa_text *t, const score_stored *p, const char *more)
{
    const fa_score_ir *ir = &p->program->ir;
    fa_text_fmt(t, "{%s", more);
    for (int k = 0; k < ir->operands; k++)
        if (ir->operand[k].scalar)
            fa_text_fmt(t, ir->operand[k].type == FA_SCORE_I32 ? "%.0f, " : "(float)%.17g, ", p->world.data.scalar[k]);
        else {
            fa_text_fmt(t, "arena + %d, {", (int)p->offset[k]);
            for (int r = 0; r < ir->operand[k].rank; r++)
                fa_text_fmt(t, "%d, ", (int)p->world.data.extent[k][r]);
            fa_text_str(t, "}, {");
            for (int r = 0; r < ir->operand[k].rank; r++)
                fa_text_fmt(t, "%d, ", (int)p->stride[k][r]);
            fa_text_str(t, "}, ");
        }
    fa_text_str(t, "}");
}
#endif
