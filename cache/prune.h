/* prune: removing compiled kernels from the root that takes new files. Always safe: what is missing is compiled again. */
#ifndef FA_CACHE_PRUNE_H
#define FA_CACHE_PRUNE_H
#include "scan.h"

typedef struct fa_prune {
    int64_t before;           /* > 0: last used before this time, ns since 1970 */
    int64_t to;               /* >= 0: then, of the rest, what was used longest ago, until no more than so many bytes are left */
    const char *const *archs; /* only kernels of these; NULL-terminated, NULL = of any */
    bool dry_run;             /* nothing is removed */
} fa_prune;

typedef struct fa_pruned {
    size_t n, left; /* files removed (or that would be), and left */
    int64_t bytes, left_bytes;
} fa_pruned;

/* Temporary files, records and locks are not touched. With neither before nor to, all that archs names. A damaged file has no arch.
 * tell (may be NULL) hears of each file that goes. False when memory ran out: nothing was removed. */
bool fa_prune_run(fa_store *s, const fa_prune *p, void (*tell)(void *user, const char *path, int64_t size), void *user, fa_pruned *out);
#endif
