/* runner: each test in a process of its own, one after the other; the sanitizer's report is that process's exit status. */
#include "criterion/criterion.h"
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PASSED = 0, FAILED = 1, SKIPPED = 77 };

static plain_test *first, **end = &first;
static bool failed;

void plain_register(plain_test *t)
{
    *end = t;
    end = &t->next;
}

static void say(const char *before, const char *format, va_list ap)
{
    fputs(before, stdout);
    vprintf(format, ap);
    fputc('\n', stdout);
    fflush(stdout);
}

void plain_failed(bool fatal, const char *file, int line, const char *what, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    printf("%s:%d: does not hold: %.200s\n", file, line, what);
    say(" ", format, ap);
    va_end(ap);
    failed = true;
    if (fatal)
        exit(FAILED);
}

_Noreturn void plain_skip(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say("  skipped: ", format, ap);
    va_end(ap);
    exit(SKIPPED);
}

void plain_log(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say("  ", format, ap);
    va_end(ap);
}

static const plain_extra *suite_of(const plain_test *t)
{
    for (const plain_test *s = first; s; s = s->next)
        if (!s->name && !strcmp(s->suite, t->suite))
            return &s->extra;
    return NULL;
}

/* In the child. */
_Noreturn static void perform(const plain_test *t, void *param)
{
    const plain_extra *of_all = suite_of(t);
    void (*init)(void) = t->extra.init ? t->extra.init : of_all ? of_all->init : NULL;
    void (*fini)(void) = t->extra.fini ? t->extra.fini : of_all ? of_all->fini : NULL;
    if (init)
        init();
    t->body ? t->body() : t->body_of(param);
    if (fini)
        fini();
    exit(failed ? FAILED : PASSED);
}

static int run(const plain_test *t, void *param)
{
    int status;
    printf("%s::%s\n", t->suite, t->name);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        perform(t, param);
    if (child < 0 || waitpid(child, &status, 0) != child)
        return FAILED;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code != PASSED)
        printf("%s::%s %s (%d)\n", t->suite, t->name, code == SKIPPED ? "was skipped" : "FAILED", code);
    return code;
}

int main(int argc, char **argv)
{
    int tests = 0, bad = 0, skips = 0;
    const char *only = argc > 2 && !strcmp(argv[argc - 2], "--filter") ? argv[argc - 1] : ""; /* a part of suite/name */
    for (const plain_test *t = first; t; t = t->next) {
        char full[256];
        snprintf(full, sizeof full, "%s/%s", t->suite, t->name ? t->name : "");
        if (!t->name || !strstr(full, only))
            continue;
        struct criterion_test_params p = t->params ? t->params() : (struct criterion_test_params){ 0, NULL, 1 };
        for (size_t i = 0; i < p.length; i++) {
            int code = run(t, p.params ? (char *)p.params + i * p.size : NULL);
            tests++;
            skips += code == SKIPPED;
            bad += code != PASSED && code != SKIPPED;
        }
    }
    printf("%d tests, %d failed, %d skipped\n", tests, bad, skips);
    return bad || !tests;
}
