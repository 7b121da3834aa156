/* mask: what kernels print of a program's mask: whether the query of a pair sees its key. What all pairs of a tile share is a member of
 * the tile, as in kernel.h. */
#ifndef FA_GEN_SCORE_MASK_H
#define FA_GEN_SCORE_MASK_H
#include "gen/text.h"
#include "ir.h"

typedef struct fa_score_mask {
    int root;     /* -1: the program has none */
    bool of_off;  /* it reads the diagonal's offset */
    double issue; /* instructions of a pair, about */
    int regs;     /* registers of a thread, about */
} fa_score_mask;

fa_score_mask fa_score_mask_of(const fa_score_ir *ir);

/* Lookups that pairs of a tile share: lines "int m12" for a struct, lines "t.m12 = ...;" that fill it. packed: rows of a tile are of
 * several heads. In names of p and of t.b, t.h, t.off, t.sq, t.sk. */
void fa_score_mask_members(fa_text *out, const fa_score_ir *ir, bool packed);
void fa_score_mask_fill(fa_text *out, const fa_score_ir *ir, bool packed);

/* Lines that end in "return ...;", a bool, of a function with p, t, head where packed, row, key, column, and CUT: key + column may be after
 * the last key. row may be after the last query. */
void fa_score_mask_pair(fa_text *out, const fa_score_ir *ir, bool packed);
#endif
