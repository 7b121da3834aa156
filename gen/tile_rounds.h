/* tile_rounds: tiles of equal time, and the rounds of them over the SMs. Problems are filled where nothing else is said. */
#ifndef FA_GEN_TILE_ROUNDS_H
#define FA_GEN_TILE_ROUNDS_H
#include "problem_fields.h"

/* Of a forward problem with as many keys, the step of its rows by fa_ruler_rows_of_rounds, where their tiles make few rounds; 0 where
 * rounds do not decide. */
uint32_t fa_problem_rounds_step(const fa_problem *p);

/* Of gradients of as many keys as queries: the step of the rows by fa_ruler_rows_of_few_tiles, and which rounds of the SMs blocks of 64 and
 * of 128 keys of a query head make. Few: one of 128 at some lengths of the step, and so all lengths of a step are few, or none. */
typedef struct fa_few_tiles {
    bool are;
    uint32_t rows, rounds;
} fa_few_tiles;
fa_few_tiles fa_problem_few_tiles(const fa_problem *p);

/* The length of such a step that is nearest to its value and has these rounds over so many query heads. */
int32_t fa_few_tiles_length(uint32_t rows, uint32_t rounds, int64_t heads);

/* Whether p, filled or not, is of gradients whose blocks of keys of the query heads fill few rounds of so many SMs, as many at all shapes
 * of its bucket. */
bool fa_problem_same_rounds(const fa_problem *p, int32_t sms);
#endif
