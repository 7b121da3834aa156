/* oracle_backward: the gradients of attention on the CPU: in fp64, and as the naive algorithm computes them in the type of the inputs. */
#ifndef FA_VERIFY_TRUTH_ORACLE_BACKWARD_H
#define FA_VERIFY_TRUTH_ORACLE_BACKWARD_H
#include "oracle.h"

/* of: Q, K, V and the mask. Dense rows: dO [b, sq, hq, dv] and O alike, LSE and dLSE [b, hq, sq]; with sequences in the rows of their
 * tensors. */
typedef struct fa_backward {
    fa_attention of;
    const float *grad_o, *grad_lse; /* grad_lse NULL = zeros */
    const float *o, *lse;           /* of the forward pass; the exact gradients do not read them */
} fa_backward;

/* dQ [b, sq, hq, d], dK [b, sk, hkv, d], dV [b, sk, hkv, dv], fp64 throughout, O and LSE of its own. Queries that see no key, and keys that
 * no query sees, have 0. With sequences, rows of none are left alone. Key/value heads are shared among at most eight threads. */
fa_status fa_backward_exact(const fa_backward *a, double *dq, double *dk, double *dv);

/* The same with the absolute value of every term of every sum: rounding errors of fp32 sums are relative to these. */
fa_status fa_backward_terms(const fa_backward *a, double *dq, double *dk, double *dv);

/* How far from the exact gradients the fp32 arithmetic of any kernel may be, as fa_oracle_bounds: P is off by the errors of scores and by
 * exp(|LSE| 2^-23), but at most 1; P and dS are rounded to dtype, gradients to grad_dtype. O and LSE are those given. NaN or Inf in any
 * input of a sequence's key/value head may reach all gradients of it, but what lies in V and dLSE not dV. */
fa_status fa_backward_bounds(const fa_backward *a, int dtype, int o_dtype, int grad_dtype, double *dq, double *dk, double *dv);

/* Through memory in the type: S = scale Q K^T, P = min(1, exp(S - LSE)), dP = dO V^T and dS = P (dP - D) are rounded to dtype (beyond its
 * largest value they stay there), sums and D = rowsum(dO O) - dLSE are fp32, and the gradients are rounded to grad_dtype. FA_F32: nothing
 * is rounded beyond fp32. */
fa_status fa_backward_naive(const fa_backward *a, int dtype, int grad_dtype, float *dq, float *dk, float *dv);
#endif
