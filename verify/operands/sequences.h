/* sequences: where the rows of each sequence of a launch lie, and how many they are: what lengths in device memory, packed rows and page
 * tables mean. It is told of them by copies on the host. */
#ifndef FA_VERIFY_OPERANDS_SEQUENCES_H
#define FA_VERIFY_OPERANDS_SEQUENCES_H
#include "gen/extent.h"
#include "gen/pairs.h"

/* Rows count through the first two dimensions of a tensor: batch * rows of a batch + row. */
typedef struct fa_sequence {
    int64_t q, k;   /* its first row of the tensors of queries, of keys; k: not of pages */
    int32_t nq, nk; /* its rows */
    fa_band band;   /* query i of the sequence sees its key j when i + lo <= j <= i + hi */
} fa_sequence;

static inline fa_pairs fa_sequence_pairs(const fa_sequence *s)
{
    return (fa_pairs){ s->nq, s->nk, s->band };
}

typedef struct fa_sequences {
    int32_t b, sk;   /* sequences; keys of the longest, at most */
    fa_sizes sizes;  /* of the call */
    fa_sequence *of; /* [b] */
    int64_t *key; /* [b, sk], of pages: the row where each key lies, -1: its page is none that is allocated, it reads as zeros; else NULL */
} fa_sequences;

/* Of arguments whose cu_seqlens, seqlens and page_table are in host memory, read as the kernels read them:
 * - A packed sequence has the rows from cu_seqlens[i] up to cu_seqlens[i + 1], of which those outside of the rows that are allocated are
 * cut off; any other has the maximum.
 * - seqlens[i] is how many of them are in use. A negative one is 0. No sequence has more rows than the maximum.
 * - Table entries after the last page in use are not looked at.
 * p: normalized, with the shape of the arguments. */
fa_status fa_sequences_open(fa_sequences *out, const fa_problem *p, const fa_args *a);
void fa_sequences_close(fa_sequences *s); /* zeros are fine */

/* The row of K and V where key j < nk of sequence i lies; -1: it reads as zeros. */
static inline int64_t fa_sequences_key(const fa_sequences *s, int32_t i, int64_t j)
{
    return s->key ? s->key[(int64_t)i * s->sk + j] : s->of[i].k + j;
}

/* The keys of sequence i that a query of it sees: from *first to *last; none where *last < *first. */
void fa_sequences_seen(const fa_sequences *s, int32_t i, int64_t *first, int64_t *last);

/* Sets the bytes of q and of k at the rows that sequence i has: its queries, and those of its keys that a query of it sees. */
void fa_sequences_mark(const fa_sequences *s, int32_t i, uint8_t *q, uint8_t *k);

/* Rows of the tensors of queries, of keys. */
static inline int64_t fa_sequences_rows_q(const fa_sequences *s)
{
    return s->sizes.of[FA_EXTENT_BATCH_Q] * s->sizes.of[FA_EXTENT_ROWS_Q];
}
static inline int64_t fa_sequences_rows_k(const fa_sequences *s)
{
    return s->sizes.of[FA_EXTENT_BATCH_K] * s->sizes.of[FA_EXTENT_ROWS_K];
}
#endif
