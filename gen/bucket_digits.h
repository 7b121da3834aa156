/* bucket_digits: the steps that make a bucket's number. */
#ifndef FA_GEN_BUCKET_DIGITS_H
#define FA_GEN_BUCKET_DIGITS_H
#include "problem_fields.h"

/* Rows of the tiles of few rows: those up to each are a step. */
#define FA_BUCKET_TILES 6
extern const int32_t fa_bucket_tiles[FA_BUCKET_TILES];
/* Over K of integers of few bits there are tiles of so many, too: a step of its own, whose digit no other one has. */
#define FA_BUCKET_ROWS_OF_INTEGERS 4
#define FA_BUCKET_INTEGERS 127u

/* From the lowest bit on. */
typedef struct fa_bucket_digits {
    uint32_t rows;   /* 7 bits: of tiles, then FA_BUCKET_TILES + the step of sq */
    uint32_t keys;   /* 6: the step above that of FA_KEYS_LEAST, FA_KEYS_STEPS at most; of gradients in few tiles their rounds */
    uint32_t heads;  /* 6: the step of b * hkv */
    uint32_t group;  /* 6: of the query heads of a KV head */
    uint32_t window; /* 5: octave */
    uint32_t kind;   /* 2: of the batch; of a dense one FA_BATCH_CHUNKS where it has more keys than its many rows, FA_BATCH_PROMPTS where
                        it has as many, in few rounds of tiles, and of gradients in few tiles */
    uint32_t slices; /* 2, those of kind, which few rows have not: which slices of KV heads are whole */
} fa_bucket_digits;

/* Of p, filled. */
fa_bucket_digits fa_bucket_digits_of(const fa_problem *p);
bool fa_bucket_is_few(const fa_bucket_digits *d);
#endif
