/* lines: what kernels print of a program, in the order in which they come to it: what pairs of a tile share, the score of a pair out of
 * the product of its query and key, the sink of a row. */
#ifndef FA_GEN_SCORE_LINES_H
#define FA_GEN_SCORE_LINES_H
#include "kernel.h"
#include "print_cuda.h"
#include "reads.h"

typedef enum fa_score_lines_of {
    FA_SCORE_LINES_PAIR,
    FA_SCORE_LINES_AHEAD,
    FA_SCORE_LINES_BEND,
    FA_SCORE_LINES_EXPONENT,
    FA_SCORE_LINES_READS
} fa_score_lines_of;

/* The unit in names of `Params p`; unsaid: nothing. */
void fa_score_kernel_unit(fa_text *out, const fa_score_kernel *k);

/* What the product is multiplied by in the tanh that the pair is, in the same names; unsaid: nothing. */
void fa_score_kernel_tanh_of(fa_text *out, const fa_score_kernel *k);

/* What all pairs of a tile share and is worth a variable: lookups. Lines "float v12" for a struct; lines "t.v12 = ...;" that fill it.
 * packed: rows of a tile are of several heads; of: the lines that read them. In names of p and of t.b, t.h, t.off, t.sq, t.sk. */
void fa_score_kernel_members(fa_text *out, const fa_score_kernel *k, bool packed, fa_score_lines_of of);
void fa_score_kernel_fill(fa_text *out, const fa_score_kernel *k, bool packed, fa_score_lines_of of);

/* Lines that end in "return ...;", of a function with p, t, head where packed, row, key, column, x, and CUT: key + column may be after the
 * last key. row may be after the last query. */
void fa_score_kernel_pair(fa_text *out, const fa_score_kernel *k, bool packed);

/* The same of a function that has a `float &bend` as well, which becomes the derivative of the score by x * p.scale; where
 * k->bends_below_one, that less 1. */
void fa_score_kernel_bend(fa_text *out, const fa_score_kernel *k, bool packed);

/* The same of a function that has `float (&by)[]` as well: the derivatives of the score by what the reads of one kind read, by plane. It
 * reads no member of the tile. */
void fa_score_kernel_reads(fa_text *out, const fa_score_kernel *k, const fa_score_read_list *reads, fa_score_read_by by);

/* Lines of a function with p, t and distance, key - query, that returns k->of_distance. Rows are of one head. */
void fa_score_kernel_distance(fa_text *out, const fa_score_kernel *k);
/* Lines of a function with p and t that returns the distance up to which, or from which on, that is one number. Where k->far.has[side]. */
void fa_score_kernel_far(fa_text *out, const fa_score_kernel *k, fa_score_side side);

/* The same of a function that has the values of the lookups k->ahead as well, a7 of node 7; where rows are of one head, k->of_distance,
 * too.
 */
void fa_score_kernel_pair_ahead(fa_text *out, const fa_score_kernel *k, bool packed);
/* Lines of a function with p, t, head where packed, and row, that returns where key 0 of a row lies in the array of k->ahead[n]. */
void fa_score_kernel_ahead_row(fa_text *out, const fa_score_kernel *k, bool packed, int n);
/* The same of one that writes the indices of that element to `at`: of one that all elements share 0. Rows are of one head. */
void fa_score_kernel_ahead_at(fa_text *out, const fa_score_kernel *k, int n);

/* The same of a function that has `shift` as well: the exponent of 2 of the score, less that. Where k->slopes. */
void fa_score_kernel_exponent(fa_text *out, const fa_score_kernel *k, bool packed);

/* The same of the sink, with p, b, h, row, off, sq, sk. */
void fa_score_kernel_sink(fa_text *out, const fa_score_kernel *k);

/* What the lines cost. False: there is no memory. */
typedef struct fa_score_lines_costs {
    double issue, exps;     /* of a pair */
    double rows, exps_rows; /* of a row's own values */
    int regs, regs_staged;  /* the latter without what is read ahead */
    bool slopes;            /* the score is a row's multiple of the product and what is linear in the key */
    bool fades;             /* where it slopes: the product as such and a multiple of the key */
    bool along;             /* both depend on query and key by key - query alone */
    bool differentiable, bends, bends_below_one, bend_is_finite; /* as in kernel.h, of FA_SCORE_LINES_BEND */
} fa_score_lines_costs;
bool fa_score_lines_cost(fa_score_lines_costs *out, const fa_score_kernel *k, fa_score_lines_of of);
#endif
