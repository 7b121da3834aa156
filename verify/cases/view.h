/* view: what the rows of a case see. */
#ifndef FA_VERIFY_CASES_VIEW_H
#define FA_VERIFY_CASES_VIEW_H
#include "case.h"
#include "verify/operands/random.h"

/* Draws window, diagonal and scale of a case whose shape stands; bottom_right: the tenths of cases whose diagonal ends in that corner. */
void fa_case_make_view(fa_case *c, fa_random *r, int32_t bottom_right);
#endif
