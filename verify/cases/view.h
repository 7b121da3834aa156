/* view: what the rows of a case see, and how its scales lie. */
#ifndef FA_VERIFY_CASES_VIEW_H
#define FA_VERIFY_CASES_VIEW_H
#include "case.h"
#include "verify/operands/random.h"

/* Draws window, diagonal and scale of a case whose shape stands; bottom_right: the tenths of cases whose diagonal ends in that corner. */
void fa_case_make_view(fa_case *c, fa_random *r, int32_t bottom_right);
/* How scales lie, as the seed says: they may be one of all batches, or heads. */
int32_t fa_case_scale_layout(const fa_case *c, int operand);
#endif
