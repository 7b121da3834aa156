/* append: the arguments of FA_APPEND that no other operation has: slots, positions, cosines and sines, types of the cache. */
#ifndef FA_RUNTIME_ARGS_APPEND_H
#define FA_RUNTIME_ARGS_APPEND_H
#include "gen/values.h"

/* The rules between the fields; FA_INVALID names the one at fault. Lengths and pages were looked at. */
fa_status fa_append_check(const fa_args *a);
/* What of the problem's class follows from them, beside the features that addresses ask for. */
void fa_append_class(fa_problem *out, const fa_args *a);
#endif
