/* head_slices: neighbouring KV heads whose parts of a token's row one thread block reads, over K and V of few bits. */
#ifndef FA_GEN_HEAD_SLICES_H
#define FA_GEN_HEAD_SLICES_H
#include "problem_fields.h"

/* Over K and V of few bits a block has a slice of a token's row, of two, four or eight neighbouring KV heads. Where these do not divide all
 * heads, the last slice leaves warps idle, and none is copied as one: other configs are faster. One head alone has none. */
typedef enum fa_head_slices {
    FA_SLICES_OF_EIGHT, /* or no slices at all */
    FA_SLICES_OF_FOUR,
    FA_SLICES_OF_TWO, /* and one more head, where they are odd */
    FA_SLICES_NONE
} fa_head_slices;

/* Of p, filled. */
bool fa_problem_has_head_slices(const fa_problem *p);
fa_head_slices fa_head_slices_of(int32_t hkv);

#endif
