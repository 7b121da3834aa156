/* shapes: random problems off every grid, by kind, which one seed decides. */
#ifndef FA_BENCH_SHAPES_H
#define FA_BENCH_SHAPES_H
#include "verify/operands/random.h"
#include <fagen.h>
#include <stdbool.h>

const char *fa_shapes_kinds(void); /* "forward, gqa, ...", for messages */
/* The next random problem of the kind, normalized. False: there is no such kind. */
bool fa_shapes_draw(fa_problem *out, const char *kind, fa_random *r);
#endif
