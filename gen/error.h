/* error: the one way to fail. A status is returned, its message kept per thread for fa_last_error(). */
#ifndef FA_GEN_ERROR_H
#define FA_GEN_ERROR_H
#include <fagen.h>

/* Sets this thread's message (cut at 2047 bytes; as fa_text_plain() shows it) and returns st, so that `return fa_fail(...)` reads well. The
 * first allocates; where that fails, the message names the status, and says that memory ran out. */
fa_status fa_fail(fa_status st, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts context before the message that is there: "while tuning X: <message>". Returns st; FA_OK changes nothing. */
fa_status fa_wrap(fa_status st, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* This thread's message before a call in which something may fail and be mended: a public function keeps it, and ends with its
 * status. FA_OK brings the message back, any other status leaves the new one. */
typedef struct fa_message {
    char text[2048];
    fa_status untold; /* of a failure whose message found no memory */
} fa_message;
void fa_message_keep(fa_message *m);
fa_status fa_message_settle(const fa_message *m, fa_status st);

/* The analyzer of scripts/tidy looks into one file at a time: that st comes back, the contract above, is told here. */
#ifdef __clang_analyzer__
static inline fa_status fa_comes_back(fa_status returned, fa_status st)
{
    (void)returned;
    return st;
}
static inline fa_status fa_failed(fa_status returned, fa_status st)
{
    if (st == FA_OK)
        __builtin_unreachable();
    return fa_comes_back(returned, st);
}
#define fa_fail(st, ...) fa_failed(fa_fail(st, __VA_ARGS__), st)
#define fa_wrap(st, ...) fa_comes_back(fa_wrap(st, __VA_ARGS__), st)
#define fa_holds(x)                  \
    do {                             \
        if (!(x))                    \
            __builtin_unreachable(); \
    } while (0)
#else
#define fa_holds(x) ((void)0) /* what it cannot see by itself either; no code in a build */
#endif
#endif
