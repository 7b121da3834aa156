/* literature: the algorithms that papers count, as rows for each operation: what `fagen model` lists and `fagen explore` compares with. */
#ifndef FA_GEN_LITERATURE_H
#define FA_GEN_LITERATURE_H
#include "model.h"

typedef struct fa_literature {
    int32_t op;        /* fa_op */
    const char *key;   /* "naive": the first row of an operation */
    const char *title; /* for people */
    fa_traffic (*traffic)(const fa_problem *p, int br, int bc, fa_band band);
} fa_literature;

/* Row i of the operation; NULL past the last. An operation that no paper counts, such as merging parts, has none. */
const fa_literature *fa_literature_row(int32_t op, size_t i);

/* Naive attention of the problem's operation, over all pairs, hidden ones too. Forward: S = Q K^T; P = softmax(S); O = P V. Backward, with
 * P kept from the forward: dV = P^T dO; dP = dO V^T; dS = P (dP - rowsum(P dP)); dQ = dS K; dK = dS^T Q. P, dP and dS lie in memory in the
 * type of Q. K and V, dK and dV are as many as there are query heads. All zeros where the operation has no such algorithm. */
fa_traffic fa_literature_naive(const fa_problem *p);

/* Its passes, a kernel each: FLOP of the product, bytes through memory. Returns how many there are. */
typedef struct fa_literature_pass {
    double flops, bytes;
} fa_literature_pass;
#define FA_LITERATURE_PASSES 5
int fa_literature_naive_passes(const fa_problem *p, fa_literature_pass out[FA_LITERATURE_PASSES]);
#endif
