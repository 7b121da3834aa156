/* scales: what a launch says of the scales of K and V, looked at. */
#ifndef FA_RUNTIME_ARGS_SCALES_H
#define FA_RUNTIME_ARGS_SCALES_H
#include <fagen.h>

/* All but addresses and strides, which are looked at as operands. FA_INVALID, FA_UNSUPPORTED: the field, its value and what is accepted. */
fa_status fa_scales_check(const fa_args *args);
#endif
