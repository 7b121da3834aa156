/* ragged: the integer operands of a launch, drawn by a seed: lengths of sequences, first rows of packed ones, page tables. */
#ifndef FA_VERIFY_OPERANDS_RAGGED_H
#define FA_VERIFY_OPERANDS_RAGGED_H
#include "gen/operation.h"
#include "random.h"

typedef enum fa_form { /* which operands a launch has */
                       FA_FORM_CU_Q = 1,
                       FA_FORM_CU_K = 2,
                       FA_FORM_SEQLENS_Q = 4,
                       FA_FORM_SEQLENS_K = 8,
                       FA_FORM_PAGES = 16
} fa_form;

typedef enum fa_spread {                     /* of lengths from 1 to the longest, n */
                         FA_SPREAD_FULL = 0, /* all n */
                         FA_SPREAD_UNIFORM,
                         FA_SPREAD_LOG,   /* uniform in their logarithm */
                         FA_SPREAD_ZIPF,  /* n / rank */
                         FA_SPREAD_EQUAL, /* all the same, drawn */
                         FA_SPREAD_EDGES, /* 0, 1, n, and borders of tiles and pages with their neighbours */
                         FA_SPREAD_KINDS
} fa_spread;
const char *fa_spread_name(int spread);

/* How lengths of queries and of keys belong together: of FA_BATCH_ANY each is drawn by its own spread; prompts have as many queries as
 * keys; chunks have all sq queries and, beside these, a cache of up to sk - sq keys; of a mixed batch so does one sequence in
 * FA_BATCH_TOKENS, at least one, and the others have one query. */
#define FA_BATCH_TOKENS 16 /* sequences of a mixed batch to each that takes a chunk; these lie evenly spaced among the lengths */

/* How they are drawn. All zero: no operand. */
typedef struct fa_ragged_how {
    uint64_t seed;
    int32_t forms;     /* fa_form, or-ed */
    int32_t batch;     /* fa_batch_kind; others than FA_BATCH_ANY have forms of both lengths */
    int32_t q, k;      /* fa_spread of lengths; without a form that has them, all are the longest */
    int32_t quantiles; /* 1: lengths are the spread's quantiles in shuffled order, so that the longest is n; 0: each is drawn */
    int32_t idle;      /* the last so many sequences are padding of a graph: no key, and no query where that can be told */
    int32_t gap;       /* up to so many rows before each packed sequence that has seqlens beside it, and after the last of all */
    int32_t wild;      /* 1: some lengths and first keys are out of range, and are cut to it */
    int32_t page_size; /* tokens */
    int32_t spare;     /* pages that no table names */
    int32_t wide;      /* entries of a table's row after those that the longest sequence needs */
    int32_t shared;    /* up to so many pages are the same in all sequences, the first of each; none of an append */
    int32_t foreign;   /* 1: some entries in use name pages that are not allocated, and read as zeros */
} fa_ragged_how;

int fa_ragged_print(char *buf, size_t n, const fa_ragged_how *how); /* " lengths=cu_q+seqlens_k:uniform,zipf ..."; as snprintf */

/* As arguments whose integer operands are in host memory. */
typedef struct fa_ragged {
    fa_args args;
} fa_ragged;

/* shape: with b, sq, sk and the mask; its integer operands and what belongs to them are filled in. Table entries after the last page of a
 * sequence are fa_ragged_unused(). */
fa_status fa_ragged_draw(fa_ragged *out, const fa_args *shape, const fa_ragged_how *how);
fa_status fa_ragged_copy(fa_ragged *out, const fa_ragged *from);
void fa_ragged_close(fa_ragged *r); /* zeros are fine */

/* As an engine has them, with pages in shuffled order. p: normalized, with its shape; of one without features nothing.
 *   few query rows, more queries than keys    all sq queries, padded; lengths of keys
 *   sq = sk                                   prompts: packed, keys too unless they are in pages
 *   sq < sk, fewer than FA_BATCH_LEAST        chunks of prompts after cached prefixes: packed queries, lengths of keys
 *   sq < sk, more sequences                   a mixed batch: likewise
 * Lengths are uniform quantiles: requests are met at any point of their growth, each as likely as any other, the longest has the problem's
 * sk, and a batch of one has it alone. */
fa_ragged_how fa_ragged_typical(const fa_problem *p, uint64_t seed);
/* Those of a problem with its shape. lengths: fa_spread + 1 of its keys, 0 = as is typical. Of one without features nothing. */
fa_status fa_ragged_of(fa_ragged *out, const fa_problem *p, uint64_t seed, int32_t lengths);

/* What a table entry holds that names no page in use: the number of any page, or none. */
int32_t fa_ragged_unused(fa_random *r, int32_t pages);

/* Whether a launch drawn so has the integer operand. */
bool fa_ragged_has(const fa_ragged_how *how, const fa_operand *o);
/* The arguments of a launch with those integers but for the addresses. */
void fa_ragged_apply(const fa_ragged *r, fa_args *a);
#endif
