/* tensors: a case's operands in device memory, with canaries, and with NaN or worse in all that no sequence sees: what verification
 * launches on. */
#ifndef FA_VERIFY_CASES_TENSORS_H
#define FA_VERIFY_CASES_TENSORS_H
#include "case.h"
#include "runtime/runtime.h"
#include "verify/operands/buffer.h"
#include "verify/operands/score_operands.h"
#include "verify/operands/sequences.h"

#define FA_POISON 0xff /* of outputs: a NaN of every type */

typedef struct fa_case_tensors {
    fa_context *ctx;
    fa_case c;
    const fa_operation *op;
    fa_args args;           /* ready for fa_launch but for the workspace */
    fa_ragged ragged;       /* the integers that the device has */
    fa_sequences sequences; /* what they mean */
    uint8_t *use_q, *use_k; /* which rows of the tensors of queries, of keys, a sequence has or sees */
    uint8_t *use_table;     /* which entries of the page table name pages of keys that are seen, or lie between such */
    fa_buffer tensor[FA_OPERANDS_MAX];
    float *dense[FA_OPERANDS_MAX]; /* of inputs: the values, in packed order */
    float *taken[FA_OPERANDS_MAX]; /* of formats with blocks: the same, rounded to fp16, as products take them; else NULL */
    fa_score_operands score;       /* of problems with a score program */
} fa_case_tensors;

/* A context of the device is current, here and below. On failure it is to be closed, too. */
fa_status fa_case_tensors_open(fa_case_tensors *t, fa_context *ctx, const fa_case *c);
void fa_case_tensors_close(fa_case_tensors *t); /* zeros are fine */

/* Whether lengths, and not the problem's shape alone, say which rows count. */
bool fa_case_tensors_ragged(const fa_case_tensors *t);

/* NaN in all rows of Q, K and V but those that the sequence has or sees; -1: all as they were. Of cases that are ragged. */
fa_status fa_case_tensors_alone(fa_case_tensors *t, int32_t sequence);
#endif
