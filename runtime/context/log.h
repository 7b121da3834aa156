/* log: what a context tells beside its statuses. */
#ifndef FA_RUNTIME_CONTEXT_LOG_H
#define FA_RUNTIME_CONTEXT_LOG_H
#include <fagen.h>
#include <stdbool.h>

typedef struct fa_log {
    fa_log_fn f; /* NULL = silent */
    void *user;
    int level; /* most verbose level handed to f */
} fa_log;

/* f, else standard error where env (FAGEN_LOG: error, warn, info, debug or 0 to 3) names a level, else silence. False when
 * env names none of them. */
bool fa_log_open(fa_log *out, fa_log_fn f, void *user, int level, const char *env);
void fa_log_say(const fa_log *l, int level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
#endif
