/* oracle: attention on the CPU: in fp64, and as the naive algorithm computes it in the type of the inputs. */
#ifndef FA_VERIFY_TRUTH_ORACLE_H
#define FA_VERIFY_TRUTH_ORACLE_H
#include "gen/pairs.h"
#include "gen/score/eval.h"
#include "verify/operands/sequences.h"

/* Dense rows: Q [b, sq, hq, d], K [b, sk, hkv, d], V [b, sk, hkv, dv]. Key j is visible to query i when i + lo <= j <= i + hi;
 * what is not visible is not read. A sink is one more score of each row, of a key whose V is 0. With sequences, rows lie where those say,
 * each sequence has its own lo and hi, and b, sq and sk are theirs. */
typedef struct fa_attention fa_attention;

/* What operands make of the score of a pair, which is scale q k. head: b hq + h; query and key count from the sequence's first. */
typedef double fa_attention_score(const fa_attention *a, double score, int64_t head, int64_t query, int64_t key);

struct fa_attention {
    int32_t b, hq, hkv, sq, sk, d, dv;
    int64_t lo, hi;
    float scale;
    const float *q, *k, *v;
    const fa_sequences *sequences; /* NULL = dense */
    /* What rows of K and V are multiplied by; NULL = 1. tokens: [rows of K, hkv], one for each row, else [b, hkv]; no bounds with them. */
    const float *k_scale, *v_scale;
    bool k_tokens, v_tokens;      /* k_scale, v_scale: [b, sk, hkv] */
    bool k_channels, v_channels;  /* [b, d, hkv], [b, dv, hkv] */
    bool wide_q, exact_q;         /* Q is in fp32, and products are of fp16; or are of it, times scales of K's columns, as it is */
    int32_t widened;              /* fa_dtype to which these products are rounded before others are made of them; 0: they are not */
    const fa_score_data *program; /* of a score program, `ir`; lengths are those of each sequence. NULL = none; no bounds with one */
    const fa_score_ir *ir;
    bool relative; /* off of a sequence is its sk - sq, else off */
    int32_t off;
    bool approximate;              /* the program's `tanh` is the chip's */
    const fa_dropout *dropout;     /* NULL = none; O is that of (kept P scaled) V, LSE that of all scores */
    fa_attention_score *score;     /* NULL = scores stay; with one there are neither bounds nor gradients: FA_UNSUPPORTED */
    const struct fa_operation *op; /* what `score` reads: the rows, */
    const float *const *in;        /* and their values, dense in packed order */
    const float *q_scale;          /* [b, hq]: what rows of Q are multiplied by; NULL = 1 */
    bool q_tokens;                 /* q_scale: [b, sq, hq] */
    const float *o_scale;          /* [b, hq]: what rows of O are divided by; NULL = 1 */
    /* fa_dtype of 8 bits of products whose sums exact scores are of, as wgmma computes them: O and LSE are then of these scores. 0: exact
     */
    int32_t eight;
    int32_t p_dtype; /* what P of products of 8 bits is rounded to, of 16 bits; 0: e4m3, times 2^8 */
    int32_t v_row;   /* elements of a row of V in memory, where V is the first dv of longer rows; 0 = dv */
};

/* An input by its name, for `score`. NULL: the call does not have it. */
const float *fa_attention_input(const fa_attention *a, const char *name);

/* o [b, sq, hq, dv], lse [b, hq, sq], fp64 throughout. A row that sees no key: 0 and -inf, or its sink. With sequences, o and lse have the
 * rows of their tensors, and those of no sequence are left alone. Rows are shared among at most eight threads. */
fa_status fa_oracle_exact(const fa_attention *a, double *o, double *lse);

/* The most that an approximate `tanh`, or the error of `tanh_exact`, changes a score by, of pairs that are seen; 0 without one. */
fa_status fa_oracle_tanh(const fa_attention *a, double *most);
#define FA_TANH_OFF 0x1p-11
#define FA_TANH_EXACT_OFF 1.2e-7

/* A lookup of the program whose index is outside of its operand: kernels read the nearest element. */
typedef struct fa_outside {
    int32_t operand, which; /* its number, and which of its indices; operand -1: there is none */
    int64_t index, extent;  /* what the index is, of so many */
    int64_t b, h, i, j;     /* where */
} fa_outside;
/* That of the first query and key that see each other. */
fa_status fa_oracle_outside(const fa_attention *a, fa_outside *out);

/* How far from fa_oracle_exact() the fp32 arithmetic of any kernel may be, element by element, a priori: scores are sums of d products in
 * any order, each score and exponent is rounded, P to dtype (FA_TF32: inputs are such numbers already), O to o_dtype. Keys whose scores
 * lie so near each other share a weight as they like; where one key has all the weight nothing is left of that. Beside numbers:
 *   INFINITY   some score that the row sees may pass what fp32 holds: any value
 *   NAN        it must not be finite: a score is NaN or beyond fp32, or V of a key that the row sees is not finite
 * A row that sees a key has no LSE of -inf. */
fa_status fa_oracle_bounds(const fa_attention *a, int dtype, int o_dtype, double *o, double *lse);

/* Of the score of a query and a key: the sum of |q k|, and whether fp32 holds all that is computed of it: 0 yes, INFINITY perhaps not, NAN
 * no sum of its products does, or it is NaN. */
typedef struct fa_dot {
    double value, size; /* scaled */
    double beyond, beyond_scaled;
} fa_dot;
fa_dot fa_oracle_score(const float *q, const float *k, int32_t d, float scale);
#define FA_LEAST_P 0x1p-126 /* below it exponentials are 0 */
/* What a score may be off by: the sum, its scaling, and what is subtracted from it. */
double fa_oracle_score_error(const fa_dot *s, int32_t d, double subtracted);

/* The three-pass algorithm with inputs of dtype, to compare rounding with: S = scale Q K^T accumulated in fp32 and rounded to the type
 * (beyond its largest value it stays there; of 8 bits it is not rounded), P = exp(S - max) / sum in fp32, rounded to the type, of 8 bits
 * 2^8 P to e4m3, then dropped or scaled, O accumulated in fp32 and rounded to o_dtype. FA_TF32: inputs and P rounded to TF32, S kept.
 * FA_F32: nothing rounded beyond fp32. *rounding_factor (may be NULL), at least 1: by how much rounding P would have cost more on average.
 * Another algorithm divides by another number, and where a row's P are nearly equal they lie together in one place of their binade, where
 * rounding costs up to 1.47 times as much, relative to P, as here. */
fa_status fa_oracle_naive(const fa_attention *a, int dtype, int o_dtype, float *o, double *rounding_factor);
#endif
