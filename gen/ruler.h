/* ruler: values from 1 on in numbered steps, as parts of octaves. */
#ifndef FA_GEN_RULER_H
#define FA_GEN_RULER_H
#include <stddef.h>
#include <stdint.h>

/* A part of a ruler: from 2^octave on each octave has 2^log_parts steps of equal width, the first of them number `first`. */
typedef struct fa_ruler_part {
    uint8_t octave, log_parts, first;
} fa_ruler_part;

/* Parts one after the other, the first from octave 0 on. */
typedef struct fa_ruler {
    const fa_ruler_part *part;
    size_t n;
} fa_ruler;

uint32_t fa_floor_log2(int64_t v);

/* The step whose value is nearest; whole octaves by the logarithm. The usual powers of two lie in the middle of theirs. v: to 2^50. */
uint32_t fa_ruler_nearest(fa_ruler r, int64_t v);

/* The first step whose value is no less. */
uint32_t fa_ruler_upto(fa_ruler r, int64_t v);

int64_t fa_ruler_value(fa_ruler r, uint32_t step);

/* The least value that is nearest to the step. */
int64_t fa_ruler_first(fa_ruler r, uint32_t step);
#endif
