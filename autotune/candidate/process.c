/* process: a process that verifies and first times candidates: the parent's side. */
#include "process.h"
#include "autotune/device/clock.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "gen/score/known.h"
#include "gen/text.h"
#include "runtime/context/log.h"
#include "sim/sim.h"
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINE 8192
#define ASK_MS 100 /* between two looks at whether the search was interrupted */

typedef struct process_backend {
    fa_measure_backend backend, *here; /* here: this process's own, opened when first needed */
    const fa_site *site;
    fa_problem problem;
    char *const *argv;
    double hang;
    size_t *lost;
    int in_a_row;
    pid_t pid; /* 0 = there is none */
    int fd;
    bool fresh;        /* it was told the problem, and has not yet said that it is ready */
    bool never;        /* none was ever ready: candidates are tried in this process */
    bool once;         /* one was ready */
    char line[LINE];   /* what was read: the answer, ended by a 0 where its newline was, and what came after it */
    size_t have, used; /* bytes; of them the answer's */
    fa_telemetry seen; /* by the child */
} process_backend;

/* Ends it, whatever it is at. how gets a word about its end. A process stuck in the driver may not even die: it is left running. */
static void reap(process_backend *l, char *how, size_t n)
{
    int status = 0;
    pid_t gone = 0;
    if (!l->pid)
        return;
    for (int i = 0; i < 100 && gone == 0; i++) { /* it may be about to end by itself, and tell why */
        gone = waitpid(l->pid, &status, WNOHANG);
        if (gone == 0 && i == 10)
            kill(l->pid, SIGKILL);
        if (gone == 0)
            nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    }
    if (how && gone == l->pid && WIFSIGNALED(status))
        snprintf(how, n, "died of signal %d", WTERMSIG(status));
    else if (how && gone == l->pid)
        snprintf(how, n, "ended with %d", WEXITSTATUS(status));
    else if (how)
        snprintf(how, n, "does not even die");
    close(l->fd);
    l->pid = 0;
}

static fa_status lose(process_backend *l, fa_status st, const char *what)
{
    char how[64] = "";
    if (st == FA_INTERRUPTED)
        kill(l->pid, SIGKILL);
    reap(l, how, sizeof how);
    ++*l->lost;
    l->in_a_row++;
    return st == FA_INTERRUPTED ? fa_fail(st, "%s; the process that tried it was killed", what)
                                : fa_fail(st, "%s: the process that tried it %s", what, how);
}

/* The next line of the child, without its newline. */
static fa_status hear(process_backend *l, double seconds)
{
    double until = fa_clock() + seconds;
    l->have -= l->used;
    memmove(l->line, l->line + l->used, l->have);
    l->used = 0;
    for (;;) {
        char *end = memchr(l->line, '\n', l->have);
        if (end) {
            *end = 0;
            l->used = (size_t)(end - l->line) + 1;
            return FA_OK;
        }
        if (l->have == LINE - 1)
            return lose(l, FA_DEVICE, "an answer without an end");
        struct pollfd p = { .fd = l->fd, .events = POLLIN };
        double left = until - fa_clock();
        int r = left > 0 ? poll(&p, 1, (int)fmin(ceil(left * 1e3), ASK_MS)) : 0;
        if (sim_interrupted())
            return lose(l, FA_INTERRUPTED, "interrupted");
        if (r < 0 && errno == EINTR)
            continue;
        if (r == 0 && fa_clock() < until)
            continue;
        if (r <= 0) {
            char what[64];
            snprintf(what, sizeof what, "no answer in %g s", seconds);
            return lose(l, FA_INTERRUPTED, what);
        }
        ssize_t n = recv(l->fd, l->line + l->have, LINE - 1 - l->have, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return lose(l, FA_DEVICE, "no answer");
        l->have += (size_t)n;
    }
}

static fa_status say(process_backend *l, const char *word, const char *text)
{
    char line[1024];
    int n = snprintf(line, sizeof line, "%s %s\n", word, text);
    return send(l->fd, line, (size_t)n, MSG_NOSIGNAL) == n ? FA_OK : lose(l, FA_DEVICE, "the request was not sent");
}

/* The text of the problem's score program, in hex digits: it has newlines. Nothing is answered. */
static fa_status tell_score(process_backend *l)
{
    const fa_program *program = fa_score_known(&l->problem);
    fa_text line = { 0 };
    if (!program)
        return FA_OK;
    fa_text_str(&line, "score ");
    for (const char *s = program->source; *s; s++)
        fa_text_fmt(&line, "%02x", (unsigned char)*s);
    fa_text_str(&line, "\n");
    fa_status st = line.oom ? fa_fail(FA_NOMEM, "no memory for the text of a score program") : FA_OK;
    for (size_t at = 0; st == FA_OK && at < line.n;) {
        ssize_t n = send(l->fd, line.s + at, line.n - at, MSG_NOSIGNAL);
        if (n > 0)
            at += (size_t)n;
        else if (n == 0 || errno != EINTR)
            st = lose(l, FA_DEVICE, "the request was not sent");
    }
    fa_text_free(&line);
    return st;
}

/* Hears an answer: FA_OK for one that begins with `good`; what else it tells is a failure. */
static fa_status answer(process_backend *l, const char *good, double seconds)
{
    char message[512] = "";
    int status = 0;
    fa_status st = hear(l, seconds);
    if (st != FA_OK)
        return st;
    size_t k = strlen(good);
    if (!strncmp(l->line, good, k) && (!l->line[k] || l->line[k] == ' '))
        return FA_OK;
    bool fails = !strncmp(l->line, "fail ", 5), gone = !strncmp(l->line, "lost ", 5);
    if ((fails || gone) && sscanf(l->line + 5, "%d %511[^\n]", &status, message) >= 1 && status < 0) {
        if (gone) {
            reap(l, NULL, 0);
            ++*l->lost;
            l->in_a_row++;
        } else {
            l->in_a_row = 0;
        }
        /* what hangs is seen from here alone */
        return fa_fail(status == FA_INTERRUPTED ? FA_DEVICE : (fa_status)status, "%s", message);
    }
    return lose(l, FA_DEVICE, "an answer that is none");
}

static fa_status ask(process_backend *l, const char *good, const char *word, const char *text)
{
    fa_status st = say(l, word, text);
    return st == FA_OK ? answer(l, good, l->hang) : st;
}

/* Starts it and tells it the problem; what it says to that is heard when it is needed. */
static fa_status spawn(process_backend *l)
{
    char text[FA_PROBLEM_TEXT];
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return fa_fail(FA_IO, "no pipe to a child: %s", strerror(errno));
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_adddup2(&files, pair[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, pair[1], STDOUT_FILENO);
    /* a group of its own: Ctrl-C is for the parent, which ends in order */
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attr, 0);
    int r = posix_spawnp(&l->pid, l->argv[0], &files, &attr, l->argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    close(pair[1]);
    l->fd = pair[0];
    if (r != 0) {
        l->pid = 0;
        close(pair[0]);
        return fa_fail(FA_IO, "%s could not be started: %s", l->argv[0], strerror(r));
    }
    l->fresh = true;
    l->have = l->used = 0;
    fa_problem_print(text, sizeof text, &l->problem);
    fa_status st = tell_score(l);
    return st == FA_OK ? say(l, "problem", text) : st;
}

/* One that is ready; where the first never is, this process takes its place. */
static fa_status start(process_backend *l)
{
    char why[512];
    fa_status st = l->pid ? FA_OK : spawn(l);
    if (st == FA_OK && !l->fresh)
        return st;
    if (st == FA_OK) /* else it ended before it heard the problem */
        st = hear(l, FA_CANDIDATE_PROCESS_START);
    if (st == FA_OK && strcmp(l->line, "ready " FA_VERSION_STRING) != 0)
        st = lose(l, FA_DEVICE, "it is not ready, or of another version");
    if (st == FA_OK)
        st = answer(l, "ok", FA_CANDIDATE_PROCESS_START);
    l->fresh = false;
    l->once |= st == FA_OK;
    if (st == FA_OK || l->once || !l->site->ctx)
        return st;
    snprintf(why, sizeof why, "%.*s", (int)sizeof why - 1, fa_last_error());
    fa_log_say(fa_context_log(l->site->ctx), FA_LOG_WARN, "candidates are tried in this process, not in a child: %s", why);
    reap(l, NULL, 0);
    *l->lost = 0;
    l->never = true;
    return fa_measure_backend_open(&l->here, l->site, &l->problem, true);
}

static fa_status judge(fa_measure_backend *backend, fa_candidate *c)
{
    process_backend *l = (process_backend *)backend;
    char text[512];
    fa_config_print(text, sizeof text, &c->config);
    fa_status st = l->never ? FA_OK : start(l);
    if (st == FA_OK && l->never)
        return fa_measure_backend_judge(l->here, c);
    if (st == FA_OK)
        st = ask(l, "ok", "judge", text);
    if (st == FA_OK)
        l->in_a_row = 0;
    return st;
}

static fa_status first(fa_measure_backend *backend, fa_candidate *c, int n)
{
    process_backend *l = (process_backend *)backend;
    char text[32];
    int count = 0, launches = 0, throttled = 0, used = 0;
    fa_telemetry g = { 0 };
    snprintf(text, sizeof text, "%d", n);
    if (l->never)
        return fa_measure_backend_first(l->here, c, n, 0);
    fa_status st = l->pid ? ask(l, "times", "time", text) : fa_fail(FA_DEVICE, "the process that verified it is gone");
    if (st != FA_OK)
        return st;
    if (sscanf(l->line, "times %d %d %d %d %d %d%n", &count, &launches, &g.clock_mhz, &g.temperature, &g.foreign, &throttled, &used) != 6 ||
        count < 1 || count > FA_SAMPLES_MAX || launches < 1)
        return lose(l, FA_DEVICE, "times that are none");
    g.throttled = throttled;
    l->seen = g;
    char *at = l->line + used;
    c->samples.n = 0;
    for (int i = 0; i < count; i++) {
        char *end;
        double seconds = strtod(at, &end);
        if (end == at || !isfinite(seconds) || seconds <= 0)
            return lose(l, FA_DEVICE, "times that are none");
        fa_samples_add(&c->samples, seconds);
        at = end;
    }
    return FA_OK;
}

static fa_status sample(fa_measure_backend *backend, fa_candidate *c, bool warm)
{
    process_backend *l = (process_backend *)backend;
    fa_status st = FA_OK;
    if (!l->here)
        st = fa_measure_backend_open(&l->here, l->site, &l->problem, false);
    return st == FA_OK ? fa_measure_backend_sample(l->here, c, warm) : st;
}

static fa_telemetry telemetry(fa_measure_backend *backend)
{
    process_backend *l = (process_backend *)backend;
    if (!l->here)
        return l->seen;
    fa_measure_backend_partner(l->here, (int)l->pid); /* 0: there is none */
    return fa_measure_backend_telemetry(l->here);
}

static bool alive(fa_measure_backend *backend)
{
    process_backend *l = (process_backend *)backend;
    return l->in_a_row < FA_CANDIDATE_PROCESS_LOSSES && (!l->here || fa_measure_backend_alive(l->here));
}

static void close_child(fa_measure_backend *backend)
{
    process_backend *l = (process_backend *)backend;
    if (l->pid) {
        shutdown(l->fd, SHUT_WR); /* it reads the end, and ends */
        reap(l, NULL, 0);
    }
    fa_measure_backend_close(l->here);
    free(l);
}

fa_status fa_measure_backend_open_process(fa_measure_backend **out, const fa_site *site, const fa_problem *p, char *const *argv,
                                          double hang, size_t *lost)
{
    process_backend *l = calloc(1, sizeof *l);
    *out = NULL;
    if (!l)
        return fa_fail(FA_NOMEM, "no memory for a child");
    l->backend = (fa_measure_backend){
        .judge = judge, .sample = sample, .first = first, .telemetry = telemetry, .alive = alive, .close = close_child
    };
    l->site = site;
    l->problem = *p;
    l->argv = argv;
    l->hang = hang > 0 ? hang : FA_CANDIDATE_PROCESS_HANG;
    l->lost = lost;
    fa_status st = spawn(l);
    if (st != FA_OK && st != FA_DEVICE) { /* one that ended at once is no reason to stop: see start() */
        close_child(&l->backend);
        return st;
    }
    *out = &l->backend;
    return FA_OK;
}
