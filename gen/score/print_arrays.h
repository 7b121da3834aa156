/* print_arrays: what a mask reads of an array by several ints of a pair, as functions of CUDA C++ that the bodies of print_tiles.h call. */
#ifndef FA_GEN_SCORE_PRINT_ARRAYS_H
#define FA_GEN_SCORE_PRINT_ARRAYS_H
#include "tiles.h"

/* For each such operand "score_pairsN(p, x0, ...)": an interval that holds its elements from x0.lo to x0.hi and so on. */
void fa_score_tiles_print_helpers(fa_text *out, const fa_score_tiles *t, const char *params_type);
#endif
