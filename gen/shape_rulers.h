/* shape_rulers: which ruler a problem's lengths and heads are measured by, finer where a step more is a wave of tiles more. Problems are
 * filled. */
#ifndef FA_GEN_SHAPE_RULERS_H
#define FA_GEN_SHAPE_RULERS_H
#include "problem_fields.h"
#include "ruler.h"

#define FA_WAVE_SMS 132 /* whose waves of tiles steps end with: an H100's */

extern const fa_ruler fa_ruler_octaves, fa_ruler_halves;
/* Of many rows: quarters where chips have from one wave of tiles to some ten. */
extern const fa_ruler fa_ruler_rows;
/* Of gradients that may have few tiles, whose rounds are steps of their own: beyond 32768 octaves. */
extern const fa_ruler fa_ruler_rows_of_few_tiles;
/* Of many rows before more keys: finer than tiles are high, to 2048 as high as one, and each up to its value, as tiles are. */
extern const fa_ruler fa_ruler_rows_before_keys;
/* Of as many keys, where tiles fill a round or two: eighths from 256 to 8192, each up to its value. */
extern const fa_ruler fa_ruler_rows_of_rounds;

/* Gradients without a mask: their blocks of keys take equal time. */
bool fa_problem_may_have_few_tiles(const fa_problem *p);

/* Whether its rows are many, in a dense batch, before more keys. */
bool fa_problem_before_keys(const fa_problem *p);

/* Of lengths; few: of few rows; before: of rows before more keys. */
fa_ruler fa_lengths_ruler(const fa_problem *p, bool few, bool before);

/* The step above that of the fewest keys that fill a tile. */
#define FA_KEYS_LEAST 16 /* fewer keys fill no tile: they are one step */
#define FA_KEYS_STEPS 63
uint32_t fa_keys_step(int64_t sk, fa_ruler r);

/* The value of a step of lengths, the nearest that a field holds. */
int32_t fa_ruler_length(fa_ruler r, uint32_t step);

/* Of the KV heads of all sequences. */
fa_ruler fa_heads_ruler(const fa_problem *p);
uint32_t fa_heads_step(int64_t n, fa_ruler r);
/* How many stand for all of p's step. */
int64_t fa_heads_stand(const fa_problem *p);

/* The query heads of a KV head. */
uint32_t fa_group_step(int32_t group);
int32_t fa_group_of(uint32_t step);
#endif
