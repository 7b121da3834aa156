/* reads: where a program reads operands whose gradients are asked for, and how the sums over pairs of such a gradient come about. */
#ifndef FA_GEN_SCORE_READS_H
#define FA_GEN_SCORE_READS_H
#include "gen/text.h"
#include "ir.h"

/* What an element that is read depends on, beside sequence and head, and so over what there is a sum first. */
typedef enum fa_score_read_by {
    FA_SCORE_BY_ROW,   /* nothing, or the query: a sum over the keys of each query */
    FA_SCORE_BY_KEY,   /* the key: over the queries of each key */
    FA_SCORE_BY_BAND,  /* key - query: over the pairs of each distance */
    FA_SCORE_BY_PAIR,  /* query and key as they are, one element for each pair: nothing to add up but over sequences and heads */
    FA_SCORE_BY_OTHER, /* anything else: sums would have no order */
    FA_SCORE_READ_BYS
} fa_score_read_by;

#define FA_SCORE_READS_MAX 12

/* A node that reads an operand, a number with a fraction, in the score or in the sink. */
typedef struct fa_score_read {
    int16_t node, operand;
    fa_score_root root;
    fa_score_read_by by;
    int plane; /* its number among those of the score with the same `by` */
} fa_score_read;

typedef struct fa_score_read_list {
    int32_t n;
    uint32_t operands; /* a bit for each that is asked for */
    int32_t planes[FA_SCORE_READ_BYS];
    bool room; /* false: there are more reads than FA_SCORE_READS_MAX */
    fa_score_read read[FA_SCORE_READS_MAX];
} fa_score_read_list;

/* Of the operands of the bits. Nodes may join ir. */
void fa_score_reads_of(fa_score_read_list *out, fa_score_ir *ir, uint32_t operands);

/* The part of the index that makes a read one of FA_SCORE_BY_OTHER, as in "idx[b][i][j]". */
void fa_score_read_print_index(char *buf, size_t n, const fa_score_ir *ir, const fa_score_read *r);

/* ---- what kernels print of them ---- */

/* A loop over what a sum has besides an element, which may say it by itself. */
typedef enum fa_score_loop { FA_SCORE_OVER_B, FA_SCORE_OVER_H, FA_SCORE_OVER_X } fa_score_loop;

/* The sequence, the head, or the query, key or distance of the reads of an element, in names of p, its indices x0 to x3, and of b, h, off,
 * sq and sk where it is the last: an expression; nothing where the element does not say it. */
void fa_score_read_fixed(fa_text *out, fa_score_ir *ir, const fa_score_read *r, fa_score_loop over);

/* Lines of a function with p, b, h, x, off, sq, sk and x0 to x3 that returns whether the read of these is of the element. */
void fa_score_read_match(fa_text *out, const fa_score_ir *ir, const fa_score_read *r);

/* The same of the sink, with p, b, h, row, off, sq, sk: its derivative by what is read. */
void fa_score_read_sink(fa_text *out, const fa_score_ir *ir, const fa_score_read *r);

/* Of a read FA_SCORE_BY_PAIR the index that is b, h, i or j: 0 to 3; -1: none is. */
int fa_score_read_dimension(const fa_score_ir *ir, const fa_score_read *r, fa_score_op leaf);
#endif
