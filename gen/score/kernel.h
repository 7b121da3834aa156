/* kernel: what kernels print of a program, in the order in which they come to it: what pairs of a tile share, the score of a pair out of
 * the product of its query and key, the sink of a row.
 *
 * The score of a pair is `unit` times what is printed, where the factor of its normal form is the same for the whole launch: then kernels
 * fold it into the exponent. Else the unit is 1. What is linear in the product, scale * x, becomes one multiplication or multiply-add of x.
 * What is linear in the key becomes one multiply-add of the key's distance from one that a thread's keys of a block are counted from: of
 * integers none is converted for each pair. */
#ifndef FA_GEN_SCORE_KERNEL_H
#define FA_GEN_SCORE_KERNEL_H
#include "print_cuda.h"

#define FA_SCORE_AHEAD_MAX 2

typedef struct fa_score_kernel {
    fa_score_ir ir;     /* of the program, and what its normal form has made */
    int pair;           /* what is printed of a pair; -1: scores are the scaled products */
    int unit;           /* of it, above 0; -1: 1 */
    int sink;           /* -1: there is none */
    bool slopes;        /* the score is a row's multiple of the product and what is linear in the key: so is the exponent */
    bool by_key;        /* a lookup of a pair depends on the key: it must not be past the last */
    bool by_key_beside; /* one that is not of those below does */
    int ahead[FA_SCORE_AHEAD_MAX], aheads; /* lookups of numbers whose last index goes up by one with the key, and no other does, which may
                                              be read before the product is there: nodes, and how many */
    bool diagonal[FA_SCORE_AHEAD_MAX];     /* the pair of the next query and the next key reads the same element */
    int of_distance;                       /* a number of key - query alone that is dear to compute; -1: there is none */
    bool of_off;                           /* pair or sink reads the diagonal's offset */
    double issue;                          /* instructions of a pair, about, beside those of a score without a program */
    double issue_ahead;                    /* the same of kernels that read arrays ahead, and compute of_distance once for each distance */
    double exps;                           /* of them on the special-function unit */
    int regs;                              /* registers of a thread, about: members of a tile, addresses of lookups */
    int regs_ahead;                        /* the same of kernels that read ahead */
} fa_score_kernel;

/* False: there is no more room for nodes. */
bool fa_score_kernel_of(fa_score_kernel *out, const fa_score_ir *ir);

/* The unit in names of `Params p`; unsaid: nothing. */
void fa_score_kernel_unit(fa_text *out, const fa_score_kernel *k);

/* What all pairs of a tile share and is worth a variable: lookups. Lines "float v12" for a struct; lines "t.v12 = ...;" that fill it.
 * packed: rows of a tile are of several heads. In names of p and of t.b, t.h, t.off, t.sq, t.sk. */
void fa_score_kernel_members(fa_text *out, const fa_score_kernel *k, bool packed);
void fa_score_kernel_fill(fa_text *out, const fa_score_kernel *k, bool packed);

/* Lines that end in "return ...;", of a function with p, t, head where packed, row, key, column, x, and CUT: key + column may be after the
 * last key. row may be after the last query. */
void fa_score_kernel_pair(fa_text *out, const fa_score_kernel *k, bool packed);

/* Lines of a function with p, t and distance, key - query, that returns k->of_distance. Rows are of one head. */
void fa_score_kernel_distance(fa_text *out, const fa_score_kernel *k);

/* The same of a function that has the values of the lookups k->ahead as well, a7 of node 7; where rows are of one head, k->of_distance,
 * too.
 */
void fa_score_kernel_pair_ahead(fa_text *out, const fa_score_kernel *k, bool packed);
/* Lines of a function with p, t, head where packed, and row, that returns where key 0 of a row lies in the array of k->ahead[n]. */
void fa_score_kernel_ahead_row(fa_text *out, const fa_score_kernel *k, bool packed, int n);

/* The same of a function that has `shift` as well: the exponent of 2 of the score, less that. Where k->slopes. */
void fa_score_kernel_exponent(fa_text *out, const fa_score_kernel *k, bool packed);

/* The same of the sink, with p, b, h, row, off, sq, sk. */
void fa_score_kernel_sink(fa_text *out, const fa_score_kernel *k);
#endif
