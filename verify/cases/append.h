/* append: what a case of FA_APPEND should leave in the cache, in q_out and in the counter, and whether it did, bit for bit. */
#ifndef FA_VERIFY_CASES_APPEND_H
#define FA_VERIFY_CASES_APPEND_H
#include "tensors.h"
#include "verify/truth/rule.h"

/* Images of outputs, by row of the operation, as they should be after a launch. To be freed, after a failure too. */
fa_status fa_append_expect(uint8_t *image[FA_OPERANDS_MAX], const fa_case_tensors *t);
/* Of what was read back, which is changed. A NaN may be any but the poison of outputs. */
bool fa_append_judge(const fa_case_tensors *t, uint8_t *const image[FA_OPERANDS_MAX], fa_verdict *v);
#endif
