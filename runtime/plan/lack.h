/* lack: what calls cost that lack something, told to the log once for each class: a workspace, in contexts that lend none, or a layout that
 * the fastest kernels take. */
#ifndef FA_RUNTIME_PLAN_LACK_H
#define FA_RUNTIME_PLAN_LACK_H
#include "plan.h"
#include <pthread.h>
#include <stdatomic.h>

typedef struct fa_lack {
    fa_plan_key key; /* its bucket is 0 */
    atomic_bool told;
    atomic_bool layout_told;
    struct fa_lack *next;
} fa_lack;

/* Those of a context: a list that only grows. */
typedef struct fa_lacks {
    pthread_mutex_t mutex;
    fa_lack *first;
} fa_lacks;

void fa_lacks_open(fa_lacks *ls);
void fa_lacks_close(fa_lacks *ls);

/* That of the key's class, whatever its bucket. NULL: no host memory. */
fa_lack *fa_lack_of(fa_lacks *ls, const fa_plan_key *key);

/* "12 us; with a workspace a kernel of 3 us runs", as far as that is known. Seconds of 0 are not. */
void fa_lack_print(char *buf, size_t n, double seconds, double with);

/* Tells, where nobody did. NULL is fine. No lock where it was told. */
void fa_lack_tell(fa_context *ctx, fa_lack *l, const fa_problem *p, double seconds, double with);

/* Tells, where nobody did, that the layout of p, which has the key, costs more than FA_LAYOUT_TIMES the time. seconds: of what runs. */
#define FA_LAYOUT_TIMES 3.0
void fa_lack_tell_layout(fa_context *ctx, const fa_plan_key *key, const fa_problem *p, double seconds);
#endif
