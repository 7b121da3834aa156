/* parts: an image of several cubins, one for each step of a source. */
#ifndef FA_RUNTIME_BUILD_PARTS_H
#define FA_RUNTIME_BUILD_PARTS_H
#include "cache/entry.h"

/* The cubins and logs of n entries one after the other into image and log of *out. False: memory ran out. */
bool fa_parts_join(fa_entry *out, const fa_entry *part, int n);

/* Finds the first `most` of them. Returns how many there are: 1 of a plain cubin or PTX, 0 where the sizes cannot be right. */
typedef struct fa_part {
    const char *bytes; /* at a multiple of 16 from the image's first */
    size_t size;
} fa_part;
int fa_parts_of(const char *image, size_t size, fa_part *out, int most);
#endif
