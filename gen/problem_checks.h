/* problem_checks: the parts of fa_problem_normalize() that have a file of their own. Each may set what follows from the other fields, and
 * fails with a message that names the field, its value and what is accepted. */
#ifndef FA_GEN_PROBLEM_CHECKS_H
#define FA_GEN_PROBLEM_CHECKS_H
#include "problem.h"

/* With op=append: types and o_dtype; a type that is another one's becomes 0. */
fa_status fa_problem_settle_append(fa_problem *p);
/* Sets the feature that rotary_dim brings. */
fa_status fa_problem_check_rotary(fa_problem *p);
fa_status fa_problem_check_hadamard(const fa_problem *p);

/* With every other op: kv_dtype, v_dtype, q_dtype; a type that is another one's becomes 0. */
fa_status fa_problem_settle_low_bits(fa_problem *p);
fa_status fa_problem_check_scales(const fa_problem *p);

/* The program is one that this process has read; score_grads asks for sums that have an order. */
fa_status fa_problem_check_score(const fa_problem *p);
#endif
