/* lack: what calls without a workspace cost, told to the log once for each class. Of contexts that lend none. */
#ifndef FA_RUNTIME_LACK_H
#define FA_RUNTIME_LACK_H
#include "plan.h"
#include <stdatomic.h>

typedef struct fa_lack {
    fa_plan_key key; /* its bucket is 0 */
    atomic_bool told;
    struct fa_lack *next; /* of the list of its context, which only grows */
} fa_lack;

/* That of p's class; the context's. NULL: no host memory. */
fa_lack *fa_lack_of(fa_context *ctx, const fa_problem *p);

/* "12 us; with a workspace a kernel of 3 us runs", as far as that is known. Seconds of 0 are not. */
void fa_lack_print(char *buf, size_t n, double seconds, double with);

/* Tells, where nobody did. NULL is fine. No lock where it was told. */
void fa_lack_tell(fa_context *ctx, fa_lack *l, const fa_problem *p, double seconds, double with);

void fa_lacks_close(fa_context *ctx);
#endif
