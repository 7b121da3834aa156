/* newest: which record of a list is the newest of its config, in work that grows with the list alone. Records are added from the end of the
 * list, the newest, to its beginning. */
#ifndef FA_CACHE_NEWEST_H
#define FA_CACHE_NEWEST_H
#include "record.h"

/* Zeros are an empty one. */
typedef struct fa_newest {
    struct fa_newest_slot *slot; /* open addressing */
    size_t n, cap;               /* cap is a power of two */
    bool oom;                    /* memory ran out: it is not complete */
} fa_newest;

/* False where there is one of the same config and tag already: this one is older. tag: of what else is told apart, a shape bucket for one.
 * r is borrowed. */
bool fa_newest_add(fa_newest *t, const fa_record *r, uint64_t tag);
const fa_record *fa_newest_find(const fa_newest *t, const fa_config *c, uint64_t tag); /* NULL: none */
void fa_newest_free(fa_newest *t);
#endif
