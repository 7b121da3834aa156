/* choosing: a point on a context's chip, what is known of it, and what was chosen: held while the choice is looked at. */
#ifndef FA_RUNTIME_CHOOSE_CHOOSING_H
#define FA_RUNTIME_CHOOSE_CHOOSING_H
#include "choose.h"

typedef struct fa_choosing {
    fa_context *ctx;
    const fa_problem *point; /* borrowed */
    fa_gen *g;
    fa_facts facts;
    fa_choice *choice;
    uint64_t pin; /* number of the pin among the facts; 0 = none */
} fa_choosing;

/* fa_choose() with the context's facts and pin of the point; whole: as there. To be closed whatever it returns. */
fa_status fa_choosing_open(fa_choosing *c, fa_context *ctx, const fa_problem *point, bool whole);
void fa_choosing_close(fa_choosing *c);
#endif
