/* workload: the lines, and the one write() that adds them. */
#include "workload.h"
#include "gen/bucket.h"
#include "gen/problem.h"
#include "gen/score/known.h"
#include "gen/text.h"
#include "launch_count.h"
#include "plans.h"
#include "runtime/context/context.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool fa_workload_open(fa_context *ctx, const fa_options *o, const fa_environment *env)
{
    const char *file = o->workload ? o->workload : env->workload;
    bool wanted = file && file[0];
    ctx->workload = wanted ? strdup(file) : NULL;
    return !wanted || ctx->workload;
}

/* The program that the problem names, for who tunes it. */
static void add_score(fa_text *t, const char *source)
{
    fa_text_str(t, ",\"score\":\"");
    for (const char *s = source; *s; s++)
        if (*s == '"' || *s == '\\')
            fa_text_fmt(t, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            fa_text_fmt(t, "\\u%04x", (unsigned char)*s);
        else
            fa_text_add(t, s, 1);
    fa_text_str(t, "\"");
}

/* Digits of its own: a program's locale may have another decimal point. */
static void add_line(fa_text *t, const fa_plan *plan, uint64_t launches)
{
    char text[512];
    const fa_problem point = fa_problem_point(&plan->problem);
    double each = plan->seconds > 0 ? plan->seconds : 0, all = each * (double)launches;
    uint64_t whole = all < 1e15 ? (uint64_t)all : (uint64_t)1e15, rest = all < 1e15 ? (uint64_t)((all - (double)whole) * 1e9) : 0;
    fa_problem_print(text, sizeof text, &point);
    fa_text_fmt(t, "{\"problem\":\"%s\",\"launches\":%" PRIu64 ",\"seconds\":%" PRIu64 ".%09" PRIu64, text, launches, whole, rest);
    if (fa_score_known(&point))
        add_score(t, fa_score_known(&point)->source);
    fa_text_str(t, "}\n");
}

/* Whether the file ends in a line that a killed writer or a full disk has cut. */
static bool torn(int fd)
{
    struct stat s;
    char last = '\n';
    return fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_size > 0 && pread(fd, &last, 1, s.st_size - 1) == 1 && last != '\n';
}

/* 0, or an errno. Opened for reading too: a FIFO without a reader keeps nobody waiting. */
static int append(const char *file, const fa_text *lines)
{
    int fd = open(file, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
    if (fd < 0)
        return errno;
    size_t skip = torn(fd) ? 0 : 1; /* lines begin with a newline */
    ssize_t wrote = write(fd, lines->s + skip, lines->n - skip);
    int trouble = wrote < 0 ? errno : (size_t)wrote < lines->n - skip ? ENOSPC : 0;
    return close(fd) < 0 && !trouble ? errno : trouble;
}

void fa_workload_write(fa_context *ctx)
{
    fa_text lines = { .n = 0 };
    int trouble = 0;
    fa_text_str(&lines, "\n");
    for (const fa_plan *p = ctx->workload ? ctx->plans->first : NULL; p; p = p->next) {
        uint64_t launches = p->launch_count ? fa_launch_count_sum(p->launch_count) : 0;
        if (launches)
            add_line(&lines, p, launches);
    }
    if (lines.oom)
        trouble = ENOMEM;
    else if (lines.n > 1)
        trouble = append(ctx->workload, &lines);
    if (trouble)
        fa_log_say(&ctx->log, FA_LOG_WARN, "workload %s: %s; what this context launched is not written there", ctx->workload,
                   strerror(trouble));
    fa_text_free(&lines);
}

void fa_workload_close(fa_context *ctx)
{
    free(ctx->workload);
}
