/* print_tiles: classes and bounds of tiles, and tables of their operands, as CUDA C++. What is printed needs what print_cuda.h needs and
 * templates/pairs/intervals.cu before it.
 *
 * Bodies of functions, a line each, in names of p (const Params &), t (b, h, off, sq, sk), and the ints that each names. Of p they read
 * p.group, p.hq, p.sq and p.sk (of the longest sequence), p.scoreN..., and the buffers of fa_score_tiles_buffers(), const int * or void *.
 * Ends of tiles are included, and inside of the sequence. No lane needs another. Before them those of print_arrays.h. */
#ifndef FA_GEN_SCORE_PRINT_TILES_H
#define FA_GEN_SCORE_PRINT_TILES_H
#include "conditions.h"

/* h0, h1, i0, i1, j0, j1: an int, 0 empty, 1 partial, 2 full. */
void fa_score_tiles_print_class(fa_text *out, const fa_score_tiles *t);

/* The same of conditions, some of which are solved: the class of the rest, and 4 times that of the solved ones; that of these alone. */
void fa_score_tiles_print_classes(fa_text *out, const fa_score_tiles *t, const fa_score_conditions *c);
void fa_score_tiles_print_solved(fa_text *out, const fa_score_tiles *t, const fa_score_conditions *c);

/* h0, h1, i0, i1 where bounds are those of keys, h0, h1, j0, j1 where of queries: "return {lo, hi, full_lo, full_hi};", inside 0 to sk - 1
 * or sq - 1; nothing is seen where lo > hi, and none of the tile is known to be seen by all where full_lo > full_hi. Bounds of a part of
 * the tile lie inside of the tile's; its full ones outside. */
void fa_score_tiles_print_bounds(fa_text *out, const fa_score_bounds *b);

/* head, row (or key, where bounds are those of queries): "return {lo, hi};", so that a pair is seen if and only if it is inside; reads no
 * table. Only where b->exact. */
void fa_score_tiles_print_ends(fa_text *out, const fa_score_bounds *b);

/* head: "return {first, length};", of runs of queries: those whose sum with `first` has the same quotient by `length`, which is above 0.
 * Only where b->run_by >= 0. */
void fa_score_tiles_print_runs(fa_text *out, const fa_score_bounds *b);

/* Of the kernel that fills tables, after score_tile() and templates/pairs/mask_tables.cu: functions, of which the last is
 * "void score_fill_tables(p, warp, warps, lane)": the share of one of so many warps, all of whose lanes call it. It reads p.b, too. */
void fa_score_tiles_print_fill(fa_text *out, const fa_score_tiles *t, const char *params_type);
#endif
