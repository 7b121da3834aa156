/* oracle: attention on the CPU: in fp64, and as the naive algorithm computes it in the type of the inputs. */
#ifndef FA_AUTOTUNE_ORACLE_H
#define FA_AUTOTUNE_ORACLE_H
#include "gen/dropout.h"
#include "sequences.h"

/* Dense rows: Q [b, sq, hq, d], K [b, sk, hkv, d], V [b, sk, hkv, dv]. Key j is visible to query i when i + lo <= j <= i + hi;
 * what is not visible is not read. With sequences, rows lie where those say, each sequence has its own lo and hi, and b, sq and sk are
 * theirs. */
typedef struct fa_attention {
    int32_t b, hq, hkv, sq, sk, d, dv;
    int64_t lo, hi;
    float scale;
    const float *q, *k, *v;
    const fa_sequences *sequences; /* NULL = dense */
    const fa_dropout *dropout;     /* NULL = none; O is that of (kept P scaled) V, LSE that of all scores */
} fa_attention;

/* o [b, sq, hq, dv], lse [b, hq, sq], fp64 throughout. A row that sees no key: 0 and -inf. With sequences, o and lse have the rows of
 * their tensors, and those of no sequence are left alone. Rows are shared among at most eight threads. */
fa_status fa_oracle_exact(const fa_attention *a, double *o, double *lse);

/* What a probability is multiplied by: 0 where it is dropped. head: b hq + h. */
double fa_oracle_kept(const fa_attention *a, int64_t head, int64_t query, int64_t key);

/* The three-pass algorithm with inputs of dtype, to compare rounding with: S = scale Q K^T accumulated in fp32 and rounded to the type
 * (beyond its largest value it stays there), P = exp(S - max) / sum in fp32, rounded to the type, then dropped or scaled, O accumulated in
 * fp32 and rounded to o_dtype. FA_TF32: inputs and P rounded to TF32, S kept. FA_F32: nothing rounded beyond fp32. *rounding_factor (may
 * be NULL), at least 1: by how much rounding P would have cost more on average. Another algorithm divides by another number, and where a
 * row's P are nearly equal they lie together in one place of their binade, where rounding costs up to 1.47 times as much, relative to P,
 * as here. */
fa_status fa_oracle_naive(const fa_attention *a, int dtype, int o_dtype, float *o, double *rounding_factor);
#endif
