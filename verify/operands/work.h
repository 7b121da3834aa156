/* work: what one launch does, counted over the lengths of its sequences. */
#ifndef FA_VERIFY_OPERANDS_WORK_H
#define FA_VERIFY_OPERANDS_WORK_H
#include "sequences.h"

typedef struct fa_work {
    double flops;         /* of the products over visible pairs */
    double kv_bytes;      /* of K and V that some query sees, each once */
    double queries, keys; /* rows in use, of all sequences together */
} fa_work;

fa_work fa_work_of(const fa_problem *p, const fa_sequences *s);

/* Of what is measured: lengths as fa_ragged_of has them. p: normalized, its shape filled. */
fa_status fa_work_drawn(fa_work *out, const fa_problem *p, int32_t lengths);
#endif
