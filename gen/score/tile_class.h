/* tile_class: the class of a tile on the host, and its bounds: what models, tests and the command count with. */
#ifndef FA_GEN_SCORE_TILE_CLASS_H
#define FA_GEN_SCORE_TILE_CLASS_H
#include "bounds.h"
#include "eval.h"
#include "gen/pairs.h"
#include "range.h"
#include <fagen.h>

typedef enum fa_score_class { FA_SCORE_EMPTY, FA_SCORE_PARTIAL, FA_SCORE_FULL } fa_score_class; /* as kernels return them */

/* Both ends included. Heads: of one group. */
typedef struct fa_score_tile {
    int64_t b, h0, h1, i0, i1, j0, j1;
} fa_score_tile;

/* A solution's: none of the tile's pairs is seen outside lo to hi, all are inside full_lo to full_hi. Empty where lo > hi. */
typedef struct fa_score_ends {
    int64_t lo, hi, full_lo, full_hi;
} fa_score_ends;

/* The tables of one sequence, as a kernel makes them. data: of the sequence; stays the caller's. data->read NULL: elements may be
 * anything, and no table is made. */
typedef struct fa_score_tables fa_score_tables;
fa_status fa_score_tables_make(fa_score_tables **out, const fa_score_tiles *t, const fa_score_data *data, int64_t b, int64_t heads);
void fa_score_tables_free(fa_score_tables *tables); /* NULL is fine */

fa_score_class fa_score_class_of(const fa_score_tables *tables, const fa_score_tile *tile);

/* Of the solved one; the tile's own are not looked at. */
fa_score_ends fa_score_ends_of(const fa_score_tables *tables, const fa_score_bounds *bounds, const fa_score_tile *tile);

/* Whether classes depend on what is asked for, FA_SCORE_OF_B or FA_SCORE_OF_H. */
bool fa_score_tables_by(const fa_score_tables *tables, unsigned what);

/* How kernels cut a sequence: rows of `heads` query heads, the heads of a query side by side, and columns of keys. band: of the launch's
 * mask, which the program's comes beside. */
typedef struct fa_score_tiling {
    int64_t rows, heads, columns;
    fa_band band;
} fa_score_tiling;

/* Tiles of a sequence by what both masks are on them, of the heads of a tile from h on. One that the sequence's last key ends in is
 * partial. bounds: of keys; outside of them tiles are empty, and where they are not exact each of those between is asked for its class. Of
 * these at most so many are asked, and the others taken for partial. */
typedef struct fa_score_tile_counts {
    int64_t empty, partial, full;
    int64_t asked;
} fa_score_tile_counts;
fa_score_tile_counts fa_score_count_tiles(const fa_score_tables *tables, const fa_score_bounds *bounds, const fa_score_tiling *tiling,
                                          int64_t h, int64_t most);
#endif
