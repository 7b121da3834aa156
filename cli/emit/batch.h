/* batch: kernels to compile for a bundle, on several threads. */
#ifndef FA_CLI_EMIT_BATCH_H
#define FA_CLI_EMIT_BATCH_H
#include "runtime/runtime.h"

typedef struct emit_job {
    fa_problem problem;
    fa_selection selection;
    fa_source source;
    const fa_arch *arch;
    bool ptx;
    fa_entry entry; /* filled by emit_batch_run */
    fa_status status;
    char message[600];
} emit_job;

typedef struct emit_batch {
    emit_job *job;
    size_t n;
} emit_batch;

/* Takes what the job holds. FA_NOMEM. */
fa_status emit_batch_add(emit_batch *b, const emit_job *job);
/* Compiles all, in the order in which they were added, `threads` at a time (0 = one per core, at most 8); stops taking new ones after a
 * failure. The status and message of the first that failed. */
fa_status emit_batch_run(emit_batch *b, fa_store *store, fa_compiler *compiler, int32_t threads);
void emit_batch_free(emit_batch *b);
#endif
