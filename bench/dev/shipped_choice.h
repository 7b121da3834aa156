/* shipped_choice: what fa_choose() says of a problem by what ships alone. */
#ifndef FA_BENCH_SHIPPED_CHOICE_H
#define FA_BENCH_SHIPPED_CHOICE_H
#include "runtime/choose/choose.h"

/* The rows keep no facts, which are gone when it returns. */
fa_status fa_shipped_choice(fa_gen *g, const fa_problem *p, const fa_arch *a, fa_choice *out);
#endif
