/* row_tiles: what tiles of query rows see between two diagonals, counted in closed form: no count takes longer for longer sequences. */
#ifndef FA_GEN_ROW_TILES_H
#define FA_GEN_ROW_TILES_H
#include "model.h"

/* The tiles that the rows of one head are cut into: br rows each, the last one the rest. Where rows are packed, `group` query heads share a
 * query, one row after the other. bc: keys of a block. All but sq and sk at least 1; the band as fa_band_of() gives it, lo <= hi. */
typedef struct fa_row_tiles {
    int64_t sq, sk, group, br, bc;
    fa_band band;
} fa_row_tiles;

/* A tile sees the keys from the first to the last that one of its rows sees, and the blocks that hold these. Each number is the exact one,
 * rounded once. */
typedef struct fa_row_tiles_sum {
    double rows;                      /* of tiles that see a key */
    double keys;                      /* once per tile */
    double pairs;                     /* rows times keys of each tile */
    double blocks, longest, shortest; /* of all tiles, of the tile that has the most, and the least: INFINITY where there is no tile */
    double row_blocks;                /* rows times blocks of each tile */
    int64_t first, end;               /* keys that any row sees, end excluded; equal where there are none */
} fa_row_tiles_sum;
fa_row_tiles_sum fa_row_tiles_count(const fa_row_tiles *t);
#endif
