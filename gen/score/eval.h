/* eval: the value of a program's nodes at one pair, in fp64: what oracles, tests and the simulator's checks compare kernels with. */
#ifndef FA_GEN_SCORE_EVAL_H
#define FA_GEN_SCORE_EVAL_H
#include "ir.h"

/* What a launch gives. */
typedef struct fa_score_data {
    int64_t off, sq, sk, group; /* of the sequence */
    double scalar[FA_SCORE_OPERANDS_MAX];
    double tanh_off;       /* what `tanh`, which is no exact one on the chip, is multiplied by, beside 1 */
    double tanh_exact_off; /* what is added to `tanh_exact`, whose error is absolute */
    int64_t extent[FA_SCORE_OPERANDS_MAX][FA_SCORE_RANK_MAX]; /* of an array, from 1 */
    /* The element of an array. Indices are inside its extents: those that were not are clamped. */
    double (*read)(void *user, int operand, const int64_t *index);
    void *user;
} fa_score_data;

/* One pair. */
typedef struct fa_score_pair {
    int64_t b, h, i, j;
    double s; /* the scaled product */
} fa_score_pair;

/* Values of nodes 0 to `last`, into value. Truths are 0 and 1. Returns the last. */
double fa_score_eval(const fa_score_ir *ir, int last, const fa_score_data *data, const fa_score_pair *pair, double *value);

/* The first lookup among the nodes that `last` is made of whose index is outside its operand's extents at the values that fa_score_eval()
 * left; -1: none. A select counts the side alone that it takes. *which: the index. */
int fa_score_eval_outside(const fa_score_ir *ir, int last, const fa_score_data *data, const double *value, int *which);
#endif
