/* log: a callback, or standard error when FAGEN_LOG asks for it. */
#include "log.h"
#include "gen/size_limit.h"
#include "gen/text.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = { "error", "warn", "info", "debug" };

static void to_stderr(void *user, int level, const char *message)
{
    char line[1100];
    (void)user;
    int n = snprintf(line, sizeof line, "fagen: %s: %s\n", names[level], message);
    if (fa_write_limited(STDERR_FILENO, line, (size_t)n) < 0) /* one call: lines of several threads stay whole */
        return;                                               /* there is no other place to tell */
}

bool fa_log_open(fa_log *out, fa_log_fn f, void *user, int level, const char *env)
{
    *out = (fa_log){ f, user, level };
    if (f || !env || !env[0])
        return true;
    for (int i = 0; i < 4; i++)
        if (strcmp(env, names[i]) == 0 || (env[0] == '0' + i && !env[1])) {
            *out = (fa_log){ to_stderr, NULL, i };
            return true;
        }
    return false;
}

void fa_log_say(const fa_log *l, int level, const char *fmt, ...)
{
    if (!l->f || level > l->level)
        return;
    char message[1024], plain[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    fa_text_plain(plain, sizeof plain, message);
    l->f(l->user, level, plain);
}
