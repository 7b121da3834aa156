/* error: one message per thread, formatted once, in memory that a thread gets with its first. */
#include "error.h"
#include "text.h"
#include "thread.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#undef fa_fail /* of the analyzer */
#undef fa_wrap

#define BYTES sizeof(((fa_message *)0)->text)
static _Thread_local char *message; /* BYTES; NULL: nothing has failed, or there was no memory for what did */
static _Thread_local fa_status untold;

/* What is left to say where a thread has no memory for its first message. */
#define LOST(x)                                                    \
    {                                                              \
        x, #x, #x "; host memory ran out, and the message with it" \
    }
static const struct {
    fa_status status;
    const char *name, *lost;
} statuses[] = {
    LOST(FA_OK),      LOST(FA_INVALID),  LOST(FA_UNSUPPORTED), LOST(FA_NO_DRIVER),   LOST(FA_NO_NVRTC), LOST(FA_COMPILE),
    LOST(FA_DEVICE),  LOST(FA_NO_FIT),   LOST(FA_NO_KERNEL),   LOST(FA_IO),          LOST(FA_NOMEM),    LOST(FA_INTERNAL),
    LOST(FA_CAPTURE), LOST(FA_TEMPLATE), LOST(FA_WRONG),       LOST(FA_INTERRUPTED),
};

/* The arguments may point into the message itself, so a line is finished elsewhere before it is kept. What it quotes, names of files and
 * their bytes, may come from anywhere, and messages are shown on terminals. */
static void keep(fa_status st, const char *s)
{
    char *to = message ? message : fa_thread_keep(&message, BYTES);
    untold = to ? FA_OK : st;
    if (to)
        fa_text_plain(to, BYTES, s);
}

fa_status fa_fail(fa_status st, const char *fmt, ...)
{
    char line[BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    keep(st, line);
    return st;
}

fa_status fa_wrap(fa_status st, const char *fmt, ...)
{
    char line[BYTES];
    va_list ap;
    if (st == FA_OK)
        return st;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    size_t at = n < 0 ? 0 : (size_t)n < sizeof line - 3 ? (size_t)n : sizeof line - 3;
    const char *last = fa_last_error();
    size_t rest = strnlen(last, sizeof line - 3 - at);
    memcpy(line + at, ": ", 2);
    memcpy(line + at + 2, last, rest);
    line[at + 2 + rest] = 0;
    keep(st, line);
    return st;
}

void fa_message_keep(fa_message *m)
{
    m->untold = untold;
    m->text[0] = 0;
    if (message)
        memcpy(m->text, message, strlen(message) + 1);
}

fa_status fa_message_settle(const fa_message *m, fa_status st)
{
    if (st != FA_OK)
        return st;
    if (message)
        keep(st, m->text);
    untold = m->untold;
    return st;
}

const char *fa_last_error(void)
{
    for (size_t i = 1; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == untold)
            return statuses[i].lost;
    return message ? message : "";
}

const char *fa_status_name(fa_status s)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == s)
            return statuses[i].name;
    return "FA_UNKNOWN";
}
