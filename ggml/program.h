/* program: the score program of a node: cap, mask, slopes, sinks, as far as it has them. */
#ifndef FA_GGML_PROGRAM_H
#define FA_GGML_PROGRAM_H
#include <fagen.h>

/* Parts of a program, or-ed together, in the order in which their operands stand in it. */
typedef enum fa_ggml_part {
    FA_GGML_CAP = 1,    /* a number: the cap */
    FA_GGML_MASK = 2,   /* fp16, [b, hq, sq, sk] by strides */
    FA_GGML_MODULO = 4, /* with FA_GGML_MASK: [b, n, sq, sk], and the number n; head h reads h % n */
    FA_GGML_SLOPES = 8, /* with FA_GGML_MASK: fp32 [hq] */
    FA_GGML_TILES = 16, /* with FA_GGML_MASK: bytes [b, hq or n, sq/64, sk/64], 0 where the mask hides all of a tile */
    FA_GGML_SINKS = 32, /* fp32 [hq] */
    FA_GGML_PARTS = 64
} fa_ggml_part;

/* Writes the text; returns its length, of which n - 1 bytes were written at most. */
size_t fa_ggml_program_text(int parts, char *buf, size_t n);
#endif
