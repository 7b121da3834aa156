/* append: what an append leaves, bit for bit, on the CPU: row after row, in the order of docs/serving.md, each operation rounded by itself.
 */
#ifndef FA_VERIFY_TRUTH_APPEND_H
#define FA_VERIFY_TRUTH_APPEND_H
#include "gen/operation.h"

/* One call. The tensors are reached by rows, and rows of k, v and q_out are written. */
typedef struct fa_append_call {
    const fa_args
        *args; /* checked; lists, cos_sin among them, in host memory; addresses of tensors are not looked at, but whether q has one */
    fa_problem problem;                                                                          /* its class */
    uint8_t *(*row)(void *user, fa_operand_id tensor, int64_t batch, int64_t row, int32_t head); /* of k and v: page, token with pages */
    void *user;
} fa_append_call;

/* Adds the tokens that were skipped to *skipped. */
void fa_append_truth(const fa_append_call *c, uint64_t *skipped);
#endif
