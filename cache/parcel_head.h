/* parcel_head: the first bytes of a parcel, shared by its reader and its writer. */
#ifndef FA_CACHE_PARCEL_HEAD_H
#define FA_CACHE_PARCEL_HEAD_H
#include "entry.h"

#define PARCEL_VERSION 1

typedef struct parcel_head {
    char magic[8];
    uint32_t version, entries, lines, zero;
    uint64_t size; /* of the whole file */
} parcel_head;
_Static_assert(sizeof(parcel_head) == 32, "no padding");

static const char parcel_magic[8] = {'f', 'a', 'g', 'e', 'n', '.', 'P', '\n'};

/* Why a sound entry does not go into a parcel, a literal; NULL: it does. */
const char *fa_parcel_doubt(const fa_entry *e);
#endif
