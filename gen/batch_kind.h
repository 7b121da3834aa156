/* batch_kind: query rows of a KV group, few or many, and what sequences with lengths of their own are. */
#ifndef FA_GEN_BATCH_KIND_H
#define FA_GEN_BATCH_KIND_H
#include "problem_fields.h"

/* What a batch of sequences with lengths of their own is, by the most rows and keys: a config that is good for one kind may be several
 * times too slow for another. */
typedef enum fa_batch_kind {
    FA_BATCH_ANY,     /* few query rows, more queries than keys, or no lengths */
    FA_BATCH_PROMPTS, /* sq = sk: whole prompts */
    FA_BATCH_CHUNKS,  /* sq < sk, fewer sequences than FA_BATCH_LEAST: chunks of prompts after cached prefixes */
    FA_BATCH_MIXED,   /* sq < sk, more sequences: chunks beside single tokens of others */
    FA_BATCH_KINDS
} fa_batch_kind;
#define FA_BATCH_LEAST 4
fa_batch_kind fa_problem_batch_kind(const fa_problem *p);

/* Whether a config measured for one problem of a class may serve the other: both have few query rows, or both many, in the same kind of
 * batch. */
bool fa_problem_alike(const fa_problem *a, const fa_problem *b);

/* The query rows of a KV head in a sequence: of all heads of its group. p is filled. */
int64_t fa_problem_group_rows(const fa_problem *p);

/* Whether the query heads of a group have few query rows together: the keys are split then, and times of
 * configs for many rows say nothing of it. */
#define FA_FEW_ROWS 64
bool fa_problem_few_rows(const fa_problem *p);

/* The problem by whose shape the config of p is chosen: p itself. With FA_FEATURE_BATCH_INVARIANT one that is the same for all batches
 * that a sequence may lie in: only the heads are p's, and of a dense batch the lengths. */
#define FA_BATCH_TYPICAL 16 /* sequences with lengths of their own */
fa_problem fa_problem_chosen_by(const fa_problem *p);
#endif
