/* extent: the sizes that shapes, grids and workspace buffers are made of, and products of them as words: "b sq hq d", "rows/64 hkv b". */
#ifndef FA_GEN_EXTENT_H
#define FA_GEN_EXTENT_H
#include <fagen.h>
#include <stdbool.h>

/* X(name, word, word in the shape of a tensor, what it is). Tensors of queries and of keys are [batch, sequence, head, width] whether
 * sequences are dense, packed or in pages: only what their first two dimensions count differs. */
#define FA_EXTENTS(X)                                                                                                    \
    X(B, "b", "b", "batch")                                                                                              \
    X(SQ, "sq", "sq", "query length, or the longest")                                                                    \
    X(SK, "sk", "sk", "key length, or the longest")                                                                      \
    X(HQ, "hq", "hq", "query heads")                                                                                     \
    X(HKV, "hkv", "hkv", "key/value heads")                                                                              \
    X(D, "d", "d", "head_dim of Q and K")                                                                                \
    X(DV, "dv", "dv", "head_dim of V and O")                                                                             \
    X(ROWS, "rows", "rows", "query rows of a group of heads: sq * hq / hkv")                                             \
    X(TOTAL_Q, "total_q", "total_q", "query rows of all sequences: b * sq where not packed")                             \
    X(TOTAL_K, "total_k", "total_k", "keys of all sequences: b * sk where not packed")                                   \
    X(SPACED_Q, "spaced_q", "spaced_q", "total_q and 127 for each sequence: room for whole tiles of up to 128 rows")     \
    X(SPACED_K, "spaced_k", "spaced_k", "the same of keys; 0 where there are none")                                      \
    X(SMS, "sms", "sms", "SMs of the chip")                                                                              \
    X(BATCH_Q, "batch_q", "b", "first dimension of tensors of queries: b, or 1 where packed")                            \
    X(ROWS_Q, "rows_q", "sq", "their second: sq, or total_q where packed")                                               \
    X(BATCH_K, "batch_k", "b", "first dimension of tensors of keys: b, 1 where packed, or the pages")                    \
    X(ROWS_K, "rows_k", "sk", "their second: sk, total_k where packed, or the tokens of a page")                         \
    X(BOUNDS, "bounds", "b + 1", "firsts of packed sequences, and the end of the last")                                  \
    X(TABLE, "table", "page_table_stride", "elements from one sequence's row of the page table to the next")             \
    X(KEYS, "keys", "keys", "sk, or 1 where that is 0: a grid over it is not empty")                                     \
    X(PROMPTS, "prompts", "prompts", "1 where sequences may have more than FA_FEW_ROWS query rows of a group, else 0")   \
    X(LONG, "long", "long", "1 where sequences may have more than FA_SHORT_ROWS queries or keys, else 0")                \
    X(ENTRIES, "entries", "entries", "entries of a sequence's row of the page table: pages of the longest")              \
    X(PARTS, "parts", "parts", "partial results that a merge is given")                                                  \
    X(GROUP, "group", "group", "query heads of a KV head: hq / hkv")                                                     \
    X(UNITS, "units", "units", "pairs of a sequence and a KV head: all of them, or as many as are done at a time")       \
    X(MEMBERS, "members", "members", "query heads of a group: all of them, or as many as are done at a time")            \
    X(SLICED, "sliced", "sliced", "1 where a group is done in several slices of its members, else 0")                    \
    X(BATCH_PARTS, "batch_parts", "parts * b", "first dimension of partial results: one part's batch after the other's") \
    X(RNG, "rng", "2", "words of the state of random numbers: 2 with dropout, else 0")                                   \
    X(ANGLES, "angles", "rotary_positions", "positions that there are cosines and sines of")                             \
    X(ROTARY, "rotary", "rotary_dim", "elements of a row that are rotated")                                              \
    X(COUNTER, "one", "1", "1")                                                                                          \
    X(K_ROW, "k_row", "d", "elements of a row of K, or blocks of a format that has blocks")                              \
    X(V_ROW, "v_row", "dv", "the same of V")                                                                             \
    X(K_SCALE_BATCH, "k_scale_batch", "b", "first dimension of scales of K: b, or of tokens' scales that of K")          \
    X(K_SCALE_ROWS, "k_scale_rows", "1 or sk or d", "their second: 1, of tokens' scales that of K, of columns' d")       \
    X(Q_SCALE_BATCH, "q_scale_batch", "b", "first dimension of scales of Q: b, or of rows' scales that of Q")            \
    X(Q_SCALE_ROWS, "q_scale_rows", "1 or sq", "their second: 1, of rows' scales that of Q")                             \
    X(V_SCALE_BATCH, "v_scale_batch", "b", "the same of V")                                                              \
    X(V_SCALE_ROWS, "v_scale_rows", "1 or sk or dv", "the same of V")

typedef enum fa_extent {
#define X(name, word, shape, text) FA_EXTENT_##name,
    FA_EXTENTS(X)
#undef X
        FA_EXTENT_COUNT,
    FA_EXTENT_ONE = FA_EXTENT_COUNT /* a plain number: 1 times its factor */
} fa_extent;
extern const char *const fa_extent_shapes[FA_EXTENT_COUNT]; /* as the shape of a tensor shows it */

/* Parts that a merge is taken to have where only a problem is known, which does not say: in models, tuning and verification. */
#define FA_PARTS_TYPICAL 8

/* Queries, or keys, of a sequence that one thread block looks through by itself. */
#define FA_SHORT_ROWS 8192

/* The sizes of one call. */
typedef struct fa_sizes {
    int64_t of[FA_EXTENT_COUNT];
    bool k_tokens, v_tokens, k_channels, v_channels; /* scales of K, of V are of tokens; of columns */
    bool q_tokens;                                   /* scales of Q are of its rows */
    bool v_columns;                                  /* rows of V are its columns */
    bool alike;                                      /* units have one query head, whose queries all see all keys */
} fa_sizes;
/* Those of a problem with its shape: dense, or in as many pages as its longest sequences fill. sms: 0 where no chip is meant. */
fa_sizes fa_sizes_of(const fa_problem *p, int32_t sms);
/* Again what follows from the rows of all sequences, and from the dimensions of K, where these are others than the problem says. */
void fa_sizes_scale(fa_sizes *s);

/* A product of factors, each an extent, an extent divided by a tile and rounded up, or a number. Compared by value. */
#define FA_FACTORS_MAX 6
typedef struct fa_factor {
    int32_t extent; /* fa_extent */
    int32_t by;     /* of an extent: the divisor, at least 1; of FA_EXTENT_ONE: the number */
} fa_factor;
typedef struct fa_product {
    int32_t n;
    fa_factor factor[FA_FACTORS_MAX];
} fa_product;

/* FA_INVALID names the word at fault and what is accepted. "" is the product of nothing, 1. */
fa_status fa_product_parse(fa_product *out, const char *text);
int fa_product_print(char *buf, size_t n, const fa_product *p); /* as snprintf */

/* One factor's value. */
static inline int64_t fa_factor_value(const fa_factor *f, const fa_sizes *s)
{
    return f->extent == FA_EXTENT_ONE ? f->by : s->of[f->extent] / f->by + (s->of[f->extent] % f->by != 0);
}

/* The whole product; -1 where it exceeds 2^63 - 1. */
int64_t fa_product_value(const fa_product *p, const fa_sizes *s);
bool fa_product_has(const fa_product *p, fa_extent extent);
#endif
