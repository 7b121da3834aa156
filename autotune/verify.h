/* verify: the rule that an output of attention must pass.
 *
 *   largest error  <= 2 x that of the naive algorithm of the same precision + 1 ulp of the output type at the largest |reference|
 *   mean error     <= 1.1 x naive's + a quarter ulp / sqrt(n): two roundings of n values differ by that much by chance
 *   LSE            within 1e-5 * max(1, |LSE|)
 *   infinities and NaN exactly where the reference has them
 */
#ifndef FA_AUTOTUNE_VERIFY_H
#define FA_AUTOTUNE_VERIFY_H
#include <fagen.h>
#include <stdbool.h>

typedef struct fa_errors {
    double most, mean;   /* of |x - reference| over finite references */
    int64_t at;          /* index of the largest, -1 = none */
    double x, reference; /* there */
    int64_t odd;         /* index of the first value that is not finite where the reference is, or the reverse; -1 = none */
    double odd_x, odd_reference;
} fa_errors;

typedef struct fa_verdict {
    bool ok;
    fa_errors o, naive, lse;
    double most, mean;   /* what was allowed of o.most and o.mean */
    uint64_t bits;       /* a hash of O's and LSE's bits: equal for equal outputs */
    char text[512];      /* one line for people */
} fa_verdict;

/* n values against the reference. relative: errors are divided by max(1, |reference|). */
fa_errors fa_verify_errors(const float *x, const double *reference, int64_t n, bool relative);

/* Fills most, mean, ok and text from o, naive, lse (lse_asked) for n elements of O of type o_dtype; largest: of |reference|. */
void fa_verify_judge(fa_verdict *v, int64_t n, int o_dtype, double largest, bool lse_asked);
/* The largest finite |x|. */
double fa_verify_largest(const double *x, int64_t n);
#endif
