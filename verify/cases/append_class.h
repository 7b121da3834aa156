/* append_class: the compile-time part of cases of FA_APPEND. */
#ifndef FA_VERIFY_CASES_APPEND_CLASS_H
#define FA_VERIFY_CASES_APPEND_CLASS_H
#include "verify/operands/random.h"
#include <fagen.h>

/* Gives a problem, whose type and sizes stand, what an append has beside: where rows go, types of the cache, rotation. */
void fa_append_draw(fa_problem *p, fa_random *r);
#endif
