/* problem_fields: every field of fa_problem, told once. Printer, parser, checks, key, records, the table that Lua sees, the plans' key, the
 * bundles' match and the launch's class check read this list, so that none of them can forget a field. */
#ifndef FA_GEN_PROBLEM_FIELDS_H
#define FA_GEN_PROBLEM_FIELDS_H
#include <fagen.h>
#include <stdbool.h>

/* X(member, word, part, kind, serves, shown), in the order in which they are printed.
 *   word    in the printed text, in messages and in Lua's table
 *   part    CLASS: compiled in, one kernel text per combination; SHAPE: only chooses which tuned config runs
 *   kind    how the value is written: DTYPE, MASK, OP and FEATURES as names, the rest as decimal integers
 *   serves  which kernels serve a call: SAME value, or one of as much or LESS (a kernel for rows of 8 bytes serves rows of 16)
 *   shown   ALWAYS printed, or only where SET (not 0): a field that came later leaves older texts as they were */
#define FA_PROBLEM_FIELDS(X)                                   \
    X(dtype, "dtype", CLASS, DTYPE, SAME, ALWAYS)              \
    X(d, "d", CLASS, NUMBER, SAME, ALWAYS)                     \
    X(dv, "dv", CLASS, NUMBER, SAME, ALWAYS)                   \
    X(mask, "mask", CLASS, MASK, SAME, ALWAYS)                 \
    X(o_dtype, "o", CLASS, DTYPE, SAME, ALWAYS)                \
    X(align, "align", CLASS, NUMBER, LESS, ALWAYS)             \
    X(op, "op", CLASS, OP, SAME, SET)                          \
    X(features, "features", CLASS, FEATURES, SAME, SET)        \
    X(page, "page", CLASS, NUMBER, LESS, SET)                  \
    X(b, "b", SHAPE, NUMBER, SAME, SET)                        \
    X(hq, "hq", SHAPE, NUMBER, SAME, SET)                      \
    X(hkv, "hkv", SHAPE, NUMBER, SAME, SET)                    \
    X(sq, "sq", SHAPE, NUMBER, SAME, SET)                      \
    X(sk, "sk", SHAPE, NUMBER, SAME, SET)                      \
    X(window, "window", SHAPE, NUMBER, SAME, SET)              \
    X(grad_dtype, "grad", CLASS, DTYPE, SAME, SET)             \
    X(kv_dtype, "kv", CLASS, DTYPE, SAME, SET)                 \
    X(q_dtype, "q", CLASS, DTYPE, SAME, SET)                   \
    X(v_dtype, "v", CLASS, DTYPE, SAME, SET)                   \
    X(q_scale_by, "q_scale", CLASS, NUMBER, SAME, SET)         \
    X(k_scale_by, "k_scale", CLASS, NUMBER, SAME, SET)         \
    X(v_scale_by, "v_scale", CLASS, NUMBER, SAME, SET)         \
    X(o_scale_by, "o_scale", CLASS, NUMBER, SAME, SET)         \
    X(score_id0, "score0", CLASS, NUMBER, SAME, SET)           \
    X(score_id1, "score1", CLASS, NUMBER, SAME, SET)           \
    X(score_id2, "score2", CLASS, NUMBER, SAME, SET)           \
    X(score_id3, "score3", CLASS, NUMBER, SAME, SET)           \
    X(score_grads, "score_grads", CLASS, NUMBER, SAME, SET)    \
    X(rotary_dim, "rotary", CLASS, NUMBER, SAME, SET)          \
    X(cos_sin_dtype, "cos", CLASS, DTYPE, SAME, SET)           \
    X(k_scale_out_by, "k_scale_out", CLASS, NUMBER, SAME, SET) \
    X(v_scale_out_by, "v_scale_out", CLASS, NUMBER, SAME, SET) \
    X(kv_align, "kv_align", CLASS, NUMBER, LESS, SET)

typedef enum fa_field_part { FA_FIELD_CLASS, FA_FIELD_SHAPE } fa_field_part;
typedef enum fa_field_kind { FA_FIELD_NUMBER, FA_FIELD_DTYPE, FA_FIELD_MASK, FA_FIELD_OP, FA_FIELD_FEATURES } fa_field_kind;

typedef struct fa_problem_field {
    const char *member, *word; /* of the struct; of the text */
    fa_field_part part;
    fa_field_kind kind;
    bool less_serves; /* a kernel of as much or less serves the call; else only one of the same */
    bool always;      /* printed even where it is 0 */
    size_t at;        /* offset in fa_problem */
} fa_problem_field;

enum {
#define X(member, word, part, kind, serves, shown) FA_FIELD_##member,
    FA_PROBLEM_FIELDS(X)
#undef X
        FA_PROBLEM_FIELD_COUNT
};
extern const fa_problem_field fa_problem_fields[FA_PROBLEM_FIELD_COUNT];

int32_t fa_problem_get(const fa_problem *p, const fa_problem_field *f);
void fa_problem_set(fa_problem *p, const fa_problem_field *f, int32_t value);

/* The value as it is printed: a name, or digits in buf. */
const char *fa_problem_field_text(char *buf, size_t n, const fa_problem_field *f, int32_t value);
#endif
