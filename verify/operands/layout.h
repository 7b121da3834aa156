/* layout: how a tensor [b, s, h, width] lies in memory, in all the ways that fa_tensor allows. Elements. */
#ifndef FA_VERIFY_OPERANDS_LAYOUT_H
#define FA_VERIFY_OPERANDS_LAYOUT_H
#include <stdbool.h>
#include <stdint.h>

typedef enum fa_layout_kind {
    FA_LAYOUT_PACKED = 0, /* [b, s, h, width] */
    FA_LAYOUT_PADDED,     /* the same with a gap after every row, every token and every batch */
    FA_LAYOUT_HEADS,      /* [b, h, s, width] */
    FA_LAYOUT_REVERSED,   /* the sequence runs backwards: a negative stride */
    FA_LAYOUT_FAR,        /* the last element is more than 2^32 elements from the first */
    FA_LAYOUT_SAME_BATCH, /* stride 0: every batch is the same; not for outputs */
    FA_LAYOUT_SAME_HEAD,  /* stride 0: every head is the same; not for outputs */
    FA_LAYOUT_SAME,       /* both */
    FA_LAYOUT_TURNED,     /* [h, s, b, width] */
    FA_LAYOUT_KINDS
} fa_layout_kind;
const char *fa_layout_name(int kind);
bool fa_layout_broadcasts(int kind); /* strides of 0 are meant */

typedef struct fa_layout {
    int32_t b, s, h, width;
    int64_t sb, ss, sh;  /* as handed to fa_launch: of a dimension of length 1 they may be anything */
    int64_t first, last; /* lowest and highest offset of an element; first > last where there is none */
} fa_layout;

/* unit: every row starts at a multiple of it. odd: dimensions of length 1 get strides that must be ignored. */
fa_layout fa_layout_make(int kind, int32_t b, int32_t s, int32_t h, int32_t width, int32_t unit, bool odd);
/* Offset of the row's first element from the tensor's address. */
int64_t fa_layout_row(const fa_layout *l, int32_t b, int32_t s, int32_t h);
#endif
