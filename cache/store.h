/* store: where the cache lies on disk. Every I/O trouble is a miss, never the caller's error.
 *
 *   <root>/v1/kernels/<2 hex>/<32 hex>.fak     one compiled kernel, immutable (entry.h)
 *   <root>/v1/records/<chip>/<problem>.jsonl   measured and modelled facts, append-only (record.h)
 *   <root>/v1/locks/<32 hex>                   flock files, never deleted (lock.h); longest: a figure (wait.h)
 *   <root>/v1/loading/<32 hex>                 marks of kernels that are being loaded for the first time (load_marker.h)
 *   <root>/v1/quarantine/<32 hex>.fak          kernels whose loading killed a process; not used
 *   <root>/v1/foreign/<32 hex>.fak             kernels that were imported and not trusted; not used (archive.h)
 *   <root>/v1/import, imported                 journals of an import (import.h)
 *
 * A store is a search path of such roots: the first that can be written takes new files, the others are only read. Opening it
 * removes what killed writers left, and takes back what a killed import had added. */
#ifndef FA_CACHE_STORE_H
#define FA_CACHE_STORE_H
#include "gen/text.h"
#include <fagen.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct fa_store fa_store;

/* Called for each piece of advice ("cache off: ...: group-writable"), at most once per cause and store. */
typedef void (*fa_store_warn)(void *user, const char *message);

/* path: colon-separated roots; NULL = FAGEN_CACHE_DIR, else $XDG_CACHE_HOME/fagen, else ~/.cache/fagen (home from HOME, else
 * the passwd entry of the numeric uid); "" = no cache. A root must be a directory owned by the effective user (or root, then
 * read-only) and not writable by group or others, else it is not used. Missing roots are made 0700. Under AT_SECURE there is
 * no cache. Never fails: a store without a usable root is a store that always misses. NULL only when memory runs out. */
fa_store *fa_store_open(const char *path, fa_store_warn warn, void *user);
void fa_store_close(fa_store *s);
/* What the kernels of the root that takes new files may take together, in bytes; < 0 = any amount. A put that exceeds it removes
 * what was used longest ago (quota.h). Before the store is used by other threads. The default: tuning a chip in one go
 * compiles thousands of candidates of some 0.3 MB, and the winners of its beginning are to survive that. */
#define FA_STORE_LIMIT ((int64_t)4 << 30)
void fa_store_set_limit(fa_store *s, int64_t bytes);
int64_t fa_store_limit(const fa_store *s);

/* The root that takes new files, or NULL; and root i of the path with its state, NULL past the last. */
const char *fa_store_root(const fa_store *s);
const char *fa_store_root_at(const fa_store *s, size_t i, bool *writable, const char **trouble);
#endif
