/* kernel: what kernels know of a program before a line of it is printed.
 *
 * The score of a pair is `unit` times what is printed, where the factor of its normal form is the same for the whole launch: then kernels
 * fold it into the exponent. Else the unit is 1. What is linear in the product, scale * x, becomes one multiplication or multiply-add of x.
 * What is linear in the key becomes one multiply-add of the key's distance from one that a thread's keys of a block are counted from: of
 * integers none is converted for each pair. */
#ifndef FA_GEN_SCORE_KERNEL_H
#define FA_GEN_SCORE_KERNEL_H
#include "far.h"
#include "ir.h"

#define FA_SCORE_AHEAD_MAX 2

typedef struct fa_score_kernel {
    fa_score_ir ir;     /* of the program, and what its normal form has made */
    int pair;           /* what is printed of a pair; -1: scores are the scaled products */
    int unit;           /* of it, above 0; -1: 1 */
    int tanh_of;        /* what the scaled product is multiplied by in the tanh that `pair` is, of launches alone; -1: it is otherwise */
    int sink;           /* -1: there is none */
    int adds;           /* the score is the scaled product and this number, `ahead` or of_distance; -1: it is otherwise */
    bool slopes;        /* the score is a row's multiple of the product and what is linear in the key: so is the exponent */
    bool fades;         /* where it slopes: the product as such and a multiple of the key */
    bool along;         /* where it slopes: the slope depends on key - query alone */
    bool by_key;        /* a lookup of a pair depends on the key: it must not be past the last */
    bool by_key_beside; /* one that is not of those below does */
    int ahead[FA_SCORE_AHEAD_MAX], aheads; /* lookups of numbers whose last index goes up by one with the key, and no other does, which may
                                              be read before the product is there: nodes, and how many */
    bool diagonal[FA_SCORE_AHEAD_MAX];     /* the pair of the next query and the next key reads the same element */
    bool by_row[FA_SCORE_AHEAD_MAX];       /* the pair of another query and the same key reads another */
    int row_index[FA_SCORE_AHEAD_MAX];     /* which index goes up by one with the query, where no other depends on it; -1: none */
    int of_distance;                       /* a number of key - query alone that is dear to compute; -1: there is none */
    fa_score_far far;                      /* where it no longer changes */
    bool of_off;                           /* pair or sink reads the diagonal's offset */
    double issue;                          /* instructions of a pair, about, beside those of a score without a program */
    double issue_ahead;                    /* the same of kernels that read arrays ahead, and compute of_distance once for each distance */
    double issue_staged;          /* of kernels that have the values of `ahead` and of_distance in shared memory, but for reading these */
    double exps, exps_staged;     /* of them on the special-function unit */
    int regs;                     /* registers of a thread, about: members of a tile, addresses of lookups */
    int regs_ahead, regs_staged;  /* the same of kernels that read ahead, or from shared memory */
    bool differentiable;          /* there is room for the derivative by the product */
    bool bends;                   /* which is not 1 everywhere: the backward pass multiplies by it */
    bool bends_below_one;         /* it is 1 less something, which is printed in its place */
    bool bend_is_finite;          /* wherever it is a number */
    double issue_back, exps_back; /* of a pair of the backward pass, beside those of one without a program */
    int regs_back;
} fa_score_kernel;

/* False: there is no more room for nodes. */
bool fa_score_kernel_of(fa_score_kernel *out, const fa_score_ir *ir);
#endif
