/* build: the only way a kernel comes to be: cache, else compiler and cache; then the driver. */
#ifndef FA_RUNTIME_BUILD_BUILD_H
#define FA_RUNTIME_BUILD_BUILD_H
#include "cache/metadata.h"
#include "compiler.h"
#include "gen/config.h"
#include "kernel.h"

/* What the description inside a cache entry tells; any may be NULL. */
typedef struct fa_subject {
    const fa_problem *problem;
    const fa_config *config;
} fa_subject;

/* What an entry for s would say of itself; nothing is compiled. kind: of FA_IMAGE_*. FA_NO_NVRTC. */
fa_status fa_build_metadata(fa_metadata *out, fa_compiler *c, const fa_source *s, const char *arch, int kind, fa_subject about);

/* kind: of FA_IMAGE_*. cache get -> lock -> get again -> NVRTC -> put. Needs no device: this is all of `fagen tune --arch`. fresh: skip the
 * look in the cache (its image was refused). *cached (may be NULL) tells whether it came from the cache. Thread-safe. */
fa_status fa_build_image(fa_store *store, fa_compiler *c, const fa_source *s, const char *arch, int kind, fa_subject about, bool fresh,
                         fa_entry *out, bool *cached);

/* As above, for the context's device, and loaded. The kernel belongs to the context, which keeps one per key and
 * steps. An image out
 * of the cache that the driver refuses is compiled once more; while one is loaded for the first time here a load marker is set, see
 * cache/load_marker.h. Thread-safe. */
fa_status fa_build(fa_context *ctx, const fa_source *s, fa_subject about, const fa_kernel **out);
#endif
