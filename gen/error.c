/* error: one message per thread, formatted once, never allocated. */
#include "error.h"
#include "text.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#undef fa_fail /* of the analyzer */
#undef fa_wrap

static _Thread_local char message[2048];

/* The arguments may point into the message itself, so a line is finished elsewhere before it is kept. What it quotes, names of files and
 * their bytes, may come from anywhere, and messages are shown on terminals. */
static void keep(const char *s)
{
    fa_text_plain(message, sizeof message, s);
}

fa_status fa_fail(fa_status st, const char *fmt, ...)
{
    char line[sizeof message];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    keep(line);
    return st;
}

fa_status fa_wrap(fa_status st, const char *fmt, ...)
{
    char line[sizeof message];
    va_list ap;
    if (st == FA_OK)
        return st;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    size_t at = n < 0 ? 0 : (size_t)n < sizeof line - 3 ? (size_t)n : sizeof line - 3;
    size_t rest = strnlen(message, sizeof line - 3 - at);
    memcpy(line + at, ": ", 2);
    memcpy(line + at + 2, message, rest);
    line[at + 2 + rest] = 0;
    keep(line);
    return st;
}

void fa_message_keep(fa_message *m)
{
    _Static_assert(sizeof m->text == sizeof message, "all of it");
    memcpy(m->text, message, strlen(message) + 1);
}

fa_status fa_message_settle(const fa_message *m, fa_status st)
{
    if (st == FA_OK)
        keep(m->text);
    return st;
}

const char *fa_last_error(void)
{
    return message;
}

const char *fa_status_name(fa_status s)
{
    static const struct {
        fa_status status;
        const char *name;
    } names[] = {
#define ROW(x) { x, #x }
        ROW(FA_OK),      ROW(FA_INVALID),  ROW(FA_UNSUPPORTED), ROW(FA_NO_DRIVER),   ROW(FA_NO_NVRTC), ROW(FA_COMPILE),
        ROW(FA_DEVICE),  ROW(FA_NO_FIT),   ROW(FA_NO_KERNEL),   ROW(FA_IO),          ROW(FA_NOMEM),    ROW(FA_INTERNAL),
        ROW(FA_CAPTURE), ROW(FA_TEMPLATE), ROW(FA_WRONG),       ROW(FA_INTERRUPTED),
#undef ROW
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].status == s)
            return names[i].name;
    return "FA_UNKNOWN";
}
