/* rule: the rule that an output of attention must pass: a strided one as O, packed fp32 rows as LSE.
 *
 * - Largest error: at most 2 times that of the naive algorithm of the same precision, + 1 ulp of the output type at the largest
 *   magnitude of the reference, + the score term.
 * - Mean error: at most naive's x (1.1 rounding_factor + 2 / sqrt(rows)) + a quarter ulp / sqrt(n) + the score term of the mean. Few rows,
 *   and few values, differ by that much by chance.
 * - LSE: within 1e-5 * max(1, |LSE|), of Q and K as the matrix units take them (TF32: rounded; of 8 bits LSE of
 *   sums as wgmma has them, or exact ones, which rows have that are computed again).
 * - Infinities and NaN exactly where the reference has them.
 * Inputs far apart in size, or with NaN and infinities that are seen, have a bound of every element instead: fa_rule_bounded().
 * A verdict says which of these was broken, at which element first, what was there and what was wanted.
 *
 * The score term is the larger of |reference| and the sum of its |terms|, * max(1, |LSE|) * 2^-23: fp32 holds a score to 2^-24 of its size,
 * exp2 on the special-function unit is good to 2^-22.5, and O inherits both where naive, by luck, does not: rows of one key have P = 1
 * there. A program whose `tanh` is the chip's, or that has `tanh_exact`, adds twice what that changes a score by, and once that to LSE.
 *
 * Gradients may have 3 times naive's largest error. With heavy-tailed values it is that of the one element with the largest terms, whose
 * two roundings, of P and of dS, are a matter of chance. `fagen verify --op backward` has met 3.0 times, less the ulp (seed 13662 of
 * flash_bwd_wgmma), and 2.8 (seed 21077 of flash_bwd_mma). */
#ifndef FA_VERIFY_TRUTH_RULE_H
#define FA_VERIFY_TRUTH_RULE_H
#include <fagen.h>
#include <stdbool.h>

typedef struct fa_errors {
    double most, mean;   /* of |x - reference| over finite references */
    int64_t at;          /* index of the largest, -1 = none */
    double x, reference; /* there */
    int64_t odd;         /* index of the first value that is not finite where the reference is, or the reverse; -1 = none */
    double odd_x, odd_reference;
} fa_errors;

/* Sums of the absolute values of the terms that outputs are sums of. */
typedef struct fa_terms {
    double most, mean;
} fa_terms;

typedef struct fa_verdict {
    bool ok;
    fa_errors o, naive, lse;
    double most, mean; /* what was allowed of o.most and o.mean */
    const char *rule;  /* what was broken, as "places of NaN"; NULL: nothing, or nothing was judged */
    int64_t at;        /* the first element that broke it, or the one with the largest error; -1: it is no matter of one */
    double x, wanted;  /* there */
    uint64_t bits;     /* a hash of O's and LSE's bits: equal for equal outputs */
    char text[512];    /* one line for people */
    char outside[160]; /* a lookup of the score program outside of its operand, where one was found; no error: kernels read the nearest */
} fa_verdict;

/* n values against the reference. relative: errors are divided by max(1, |reference|). */
fa_errors fa_rule_errors(const float *x, const double *reference, int64_t n, bool relative);

/* Elements of one output that are held against bounds of their own (fa_oracle_bounds) in place of the naive algorithm: numbers within the
 * bound, or infinite where they are too large for the type; not finite where the bound is NaN; anything where it is infinite. lse: -inf is
 * only where the reference has it. Fills ok, o, most, at and text; o and most are of the element that comes nearest to its bound. */
typedef struct fa_bounded {
    const float *x;
    const double *reference, *bound;
    int64_t n;
    int dtype;
    bool lse;
    const char *name;
} fa_bounded;
void fa_rule_bounded(fa_verdict *v, const fa_bounded *b);

/* What the outputs are and the size of what they should be. */
typedef struct fa_magnitudes {
    int64_t n, rows; /* values of O, and rows of dv of them */
    int o_dtype;
    bool lse;                      /* LSE is judged, too */
    double most, mean;             /* of |reference|, finite ones */
    double score;                  /* largest finite |LSE| */
    double approximate;            /* what scores may be off by where the chip's functions are no exact ones */
    fa_terms terms;                /* 0 = as |reference| */
    const char *o_name, *lse_name; /* in texts; NULL = O, LSE */
    double rounding_factor;        /* of the naive algorithm with the rounding of P (fa_oracle_naive); 1 = none */
    double times;                  /* the naive algorithm's largest error that are allowed; 0 = 2 */
} fa_magnitudes;
fa_magnitudes fa_rule_scale(const double *o, int64_t n, const double *lse, int64_t rows, int o_dtype, bool lse_asked);

/* Fills most, mean, ok and text from o, naive and lse. */
void fa_rule_judge(fa_verdict *v, const fa_magnitudes *s);
#endif
