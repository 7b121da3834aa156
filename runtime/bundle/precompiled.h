/* precompiled: the bundle that is installed beside the library, with the winners that ship in compiled form. No row of it is chosen: where
 * the text and the arch of a kernel that was chosen are those of an image, this is where it comes from, in place of disk cache and NVRTC.
 */
#ifndef FA_RUNTIME_BUNDLE_PRECOMPILED_H
#define FA_RUNTIME_BUNDLE_PRECOMPILED_H
#include "blob.h"
#include "runtime/build/kernel.h"
#include "runtime/context/environment.h"
#include <pthread.h>

#define FA_PRECOMPILED_FILE "fagen-kernels.bundle" /* in the folder of the library */

typedef struct fa_precompiled {
    pthread_mutex_t mutex; /* of opening */
    char *path;            /* NULL: there is none */
    bool tried;
    fa_blob blob; /* no images: it could not be used */
    void *bytes;  /* mapped */
    size_t size;
} fa_precompiled;

/* path: of the option; NULL = beside the library, "" = none. Opens nothing yet. Nothing is used where the environment adds flags to
 * NVRTC's. FA_NOMEM. */
fa_status fa_precompiled_open(fa_precompiled *p, const char *path, const fa_environment *env);
void fa_precompiled_close(fa_precompiled *p);

/* The kernel of s from there, loaded, or NULL: then it is to be built. A file that cannot be used is told once, in the log. */
const fa_kernel *fa_precompiled_kernel(fa_context *ctx, const fa_source *s);

/* Whether it has the text for the context's device. */
bool fa_precompiled_has(fa_context *ctx, const fa_source *s);
#endif
