/* batch: threads that take the next job until there is none. */
#include "batch.h"
#include "gen/error.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS_MOST = 64, THREADS_USUAL = 8 };

fa_status emit_batch_add(emit_batch *b, const emit_job *job)
{
    emit_job *more = realloc(b->job, (b->n + 1) * sizeof *more);
    if (!more)
        return fa_fail(FA_NOMEM, "no memory for kernel %zu", b->n);
    b->job = more;
    b->job[b->n++] = *job;
    return FA_OK;
}

void emit_batch_free(emit_batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        fa_source_free(&b->job[i].source);
        fa_entry_free(&b->job[i].entry);
    }
    free(b->job);
    *b = (emit_batch){ .n = 0 };
}

typedef struct crew {
    emit_batch *batch;
    fa_store *store;
    fa_compiler *compiler;
    atomic_size_t next;
    atomic_bool failed;
} crew;

static void *work(void *user)
{
    crew *w = user;
    for (size_t i; !atomic_load(&w->failed) && (i = atomic_fetch_add(&w->next, 1)) < w->batch->n;) {
        emit_job *j = &w->batch->job[i];
        j->status =
            fa_build_image(w->store, w->compiler, &j->source, j->arch->name, FA_IMAGE_LEAN | (j->ptx ? FA_IMAGE_PTX : FA_IMAGE_CUBIN),
                           (fa_subject){ &j->problem, &j->selection.config }, false, &j->entry, NULL);
        if (j->status != FA_OK) {
            snprintf(j->message, sizeof j->message, "%s", fa_last_error());
            atomic_store(&w->failed, true);
        }
    }
    return NULL;
}

fa_status emit_batch_run(emit_batch *b, fa_store *store, fa_compiler *compiler, int32_t threads)
{
    crew w = { .batch = b, .store = store, .compiler = compiler };
    pthread_t thread[THREADS_MOST];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int32_t want = threads ? threads : cores < THREADS_USUAL ? (int32_t)cores : THREADS_USUAL, n = 0;
    while (n + 1 < want && n < THREADS_MOST && (size_t)n + 1 < b->n && pthread_create(&thread[n], NULL, work, &w) == 0)
        n++;
    work(&w); /* also where no thread could be made */
    while (n > 0)
        pthread_join(thread[--n], NULL);
    for (size_t i = 0; i < b->n; i++)
        if (b->job[i].status != FA_OK)
            return fa_fail(b->job[i].status, "%s", b->job[i].message);
    return FA_OK;
}
