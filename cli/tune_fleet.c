/* tune_fleet: several devices share the problems, a process each. Who is free gets the next problem; a process that dies costs only
 * the problem it was at, which another tries once more. */
#include "gen/error.h"
#include "gen/problem.h"
#include "gen/text.h"
#include "progress.h"
#include "tune.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIES 2        /* of a problem, by processes that die of it */
#define DEATHS_MOST 2  /* of a device's processes in a row, before it is given up */
#define WORDS_MOST 256 /* of the command line */
#define POLL_MS 500

typedef struct hand {
    const char *device;
    pid_t pid;
    int fd;             /* both ways; -1: no process */
    fa_text heard;      /* of a line that is not complete */
    bool ready, given_up;
    ptrdiff_t at;       /* its problem; -1 = none */
    tune_view view;
    int deaths, restarts;
    json_int_t done;
} hand;

typedef struct fleet {
    tune_run *r;
    hand *hand;
    size_t n;
    struct task {
        int tries;
        bool taken;
        ptrdiff_t not_on; /* the hand whose process died of it; -1 = none */
    } *task;
    cli_progress bar;
    bool stopping;
    fa_status status;   /* why a device was given up */
    char why[512];
} fleet;

/* ---- processes ---- */

static fa_status spawn(fleet *f, hand *h)
{
    extern char **environ;
    int pair[2], n = 0;
    char *words[WORDS_MOST], threads[12], **argv = f->r->c->argv;
    long cores = sysconf(_SC_NPROCESSORS_ONLN) / (long)f->n;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none;
    sigemptyset(&none);
    snprintf(threads, sizeof threads, "%ld", cores < 1 ? 1 : cores > 64 ? 64 : cores);
    char *first[] = { argv[0], argv[1], "--worker-on", (char *)h->device, "--threads", threads }; /* what was given comes behind, and counts */
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        words[n++] = first[i];
    for (int i = 2; argv[i] && n < WORDS_MOST - 1; i++)
        words[n++] = argv[i];
    words[n] = NULL;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return fa_fail(FA_IO, "no process for %s: socketpair: %s", h->device, strerror(errno));
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, pair[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, pair[1], STDOUT_FILENO);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK); /* the terminal's Ctrl-C comes to us alone */
    posix_spawnattr_setsigmask(&attr, &none);
    int error = posix_spawn(&h->pid, "/proc/self/exe", &files, &attr, words, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    close(pair[1]);
    h->fd = pair[0];
    h->at = -1;
    h->ready = false;
    if (!error)
        return FA_OK;
    close(h->fd);
    h->fd = -1;
    return fa_fail(FA_IO, "no process for %s: %s", h->device, strerror(error));
}

static size_t hands_up(const fleet *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += f->hand[i].fd >= 0;
    return n;
}

static void give_up(fleet *f, hand *h, fa_status st, const char *why)
{
    h->given_up = true;
    f->status = st;
    snprintf(f->why, sizeof f->why, "%s", why);
    cli_progress_end(&f->bar);
    cli_note(f->r->c, "%s is given up: %s", h->device, why);
}

/* A result for a problem that processes die of. */
static void fail_task(fleet *f, size_t i, const char *why)
{
    fa_tuning t = { .how = f->r->timed ? FA_MEASURED : FA_MODELLED };
    cli_progress_end(&f->bar);
    tune_run_keep(f->r, i, tune_result(&t, &f->r->list.row[i].problem, NULL, FA_DEVICE, why));
}

/* The process ended or its line broke. */
static void bury(fleet *f, hand *h)
{
    char how[64], why[256];
    int status = 0;
    close(h->fd);
    h->fd = -1;
    fa_text_free(&h->heard);
    h->heard = (fa_text){ 0 };
    while (waitpid(h->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (f->stopping || h->given_up)
        return;
    if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "was ended by signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof how, "ended with code %d", WEXITSTATUS(status));
    if (h->at >= 0) {
        struct task *t = &f->task[h->at];
        char brief[96];
        tune_problem_brief(brief, sizeof brief, &f->r->list.row[h->at].problem);
        snprintf(why, sizeof why, "the process on %s %s at %s", h->device, how, brief);
        t->taken = false;
        t->not_on = h - f->hand;
        cli_progress_end(&f->bar);
        if (++t->tries < TRIES)
            cli_note(f->r->c, "%s; it is tried once more", why);
        else
            fail_task(f, (size_t)h->at, why);
        h->at = -1;
    } else {
        snprintf(why, sizeof why, "the process on %s %s", h->device, how);
    }
    h->restarts++;
    if (++h->deaths >= DEATHS_MOST)
        give_up(f, h, FA_DEVICE, why);
    else if (spawn(f, h) != FA_OK)
        give_up(f, h, FA_IO, fa_last_error());
}

/* ---- what travels ---- */

static void hear_ready(fleet *f, hand *h, const json_t *j)
{
    const char *arch = json_string_value(json_object_get(j, "arch")), *chip = json_string_value(json_object_get(j, "chip"));
    tune_run *r = f->r;
    bool first = !r->arch[0];
    h->ready = true;
    snprintf(r->arch, sizeof r->arch, "%s", arch ? arch : "?");
    r->timed = json_is_true(json_object_get(j, "timed"));
    if (first)
        tune_site_note(r->c, r->arch, chip ? chip : "?", r->timed);
}

static void hear_line(fleet *f, hand *h, const char *line)
{
    json_t *j = json_loads(line, 0, NULL), *result = json_object_get(j, "result"), *view = json_object_get(j, "view");
    const char *lost = json_string_value(json_object_get(j, "lost"));
    json_int_t at = json_integer_value(json_object_get(j, "at"));
    if (json_object_get(j, "ready")) {
        hear_ready(f, h, j);
    } else if (lost) {
        give_up(f, h, (fa_status)json_integer_value(json_object_get(j, "status")), lost);
    } else if (view) {
        h->view = tune_view_read(view);
    } else if (result && h->at >= 0 && at == h->at) {
        json_object_set_new(result, "device", json_string(h->device));
        cli_progress_end(&f->bar);
        tune_run_keep(f->r, (size_t)at, json_incref(result));
        h->at = -1;
        h->deaths = 0;
        h->done++;
    }
    json_decref(j);
}

/* What has come. False: the process is gone. */
static bool hear(fleet *f, hand *h)
{
    char bytes[65536];
    ssize_t n = recv(h->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0)
        return false;
    for (char *s = bytes, *end; s < bytes + n; s = end + 1) {
        size_t left = (size_t)(bytes + n - s);
        end = memchr(s, '\n', left);
        fa_text_add(&h->heard, s, end ? (size_t)(end - s) : left);
        if (!end || h->heard.oom)
            break;
        hear_line(f, h, fa_text_cstr(&h->heard));
        fa_text_free(&h->heard);
        h->heard = (fa_text){ 0 };
    }
    return !h->heard.oom;
}

/* The next problem for a hand, -1 = none. One that a process died of goes to another, while there is one. */
static ptrdiff_t next_for(const fleet *f, const hand *h)
{
    for (size_t i = 0; i < f->r->list.n; i++)
        if (!f->r->result[i] && !f->task[i].taken && (f->task[i].not_on != h - f->hand || hands_up(f) == 1))
            return (ptrdiff_t)i;
    return -1;
}

static size_t open_tasks(const fleet *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->r->list.n; i++)
        n += !f->r->result[i] && !f->task[i].taken;
    return n;
}

static void feed(fleet *f, hand *h)
{
    char text[256];
    const tune_run *r = f->r;
    ptrdiff_t i = next_for(f, h);
    double share = i < 0 ? 0 : tune_share(r->a->budget, cli_clock() - r->start, open_tasks(f), hands_up(f));
    if (i < 0 || share < 0)
        return;
    fa_problem_print(text, sizeof text, &r->list.row[i].problem);
    json_t *job = json_pack("{s:s,s:I,s:f}", "problem", text, "at", (json_int_t)i, "seconds", share);
    char *line = job ? json_dumps(job, JSON_COMPACT) : NULL;
    if (line && send(h->fd, line, strlen(line), MSG_NOSIGNAL) > 0 && send(h->fd, "\n", 1, MSG_NOSIGNAL) == 1) {
        h->at = i;
        if (f->n == 1)
            cli_progress_anew(&f->bar);
        h->view = (tune_view){ .done = 0 };
        f->task[i].taken = true;
    } /* else it is dead, and the next hearing tells */
    free(line);
    json_decref(job);
}

/* ---- the whole ---- */

static void add_hands(const fleet *f, cli_line *line)
{
    char text[64];
    for (size_t i = 0; i < f->n; i++) {
        const hand *h = &f->hand[i];
        if (h->at < 0)
            continue;
        tune_problem_brief(text, sizeof text, &f->r->list.row[h->at].problem);
        cli_line_add(line, CLI_LINE_BAR + 1 + (int)i, "%s: %s %lld/%lld", h->device, text, (long long)(h->view.compiled + h->view.resumed),
                     (long long)h->view.kept);
        cli_line_brief(line, "%s %lld/%lld", h->device, (long long)(h->view.compiled + h->view.resumed), (long long)h->view.kept);
    }
}

static void draw(fleet *f)
{
    const tune_run *r = f->r;
    cli_line line = { .n = 0 };
    char text[64];
    double done = 0;
    size_t whole = 0;
    for (size_t i = 0; i < r->list.n; i++)
        whole += r->result[i] != NULL;
    for (size_t i = 0; i < f->n; i++)
        done += f->hand[i].at >= 0 ? f->hand[i].view.done : 0;
    line.done = ((double)whole + done) / (double)r->list.n;
    double left = tune_left(cli_clock() - r->start, line.done, r->a->budget);
    if (f->n == 1 && f->hand[0].at >= 0) {
        const hand *h = f->hand;
        if (h->view.kept)
            tune_view_line(&line, &h->view, &r->list.row[h->at].problem, whole + 1, r->list.n, line.done, left);
    } else {
        cli_line_add(&line, 0, "%zu/%zu", whole, r->list.n);
        if (left >= 0) {
            tune_show_span(text, sizeof text, left);
            cli_line_add(&line, 1, "%s left", text);
        }
        add_hands(f, &line);
    }
    if (line.n > 1)
        cli_progress_draw(&f->bar, f->n == 1 ? f->hand[0].view.stage : "share", &line);
}

/* Whether any hand is at work, or can still take a problem. */
static bool is_busy(const fleet *f)
{
    bool time = tune_share(f->r->a->budget, cli_clock() - f->r->start, 1, 1) >= 0;
    for (size_t i = 0; i < f->n; i++) {
        const hand *h = &f->hand[i];
        if (h->fd >= 0 && (h->at >= 0 || (!f->stopping && time && next_for(f, h) >= 0)))
            return true;
    }
    return false;
}

static void stop(fleet *f)
{
    f->stopping = true;
    for (size_t i = 0; i < f->n; i++)
        if (f->hand[i].fd >= 0)
            shutdown(f->hand[i].fd, SHUT_WR); /* they look for it, end their search, and tell what they have */
}

static void turn(fleet *f, struct pollfd *poll_of)
{
    if (cli_interrupted() && !f->stopping)
        stop(f);
    for (size_t i = 0; i < f->n; i++) {
        hand *h = &f->hand[i];
        if (h->fd >= 0 && h->ready && h->at < 0 && !f->stopping)
            feed(f, h);
        poll_of[i] = (struct pollfd){ .fd = h->fd, .events = POLLIN };
    }
    draw(f);
    if (poll(poll_of, f->n, POLL_MS) <= 0)
        return;
    for (size_t i = 0; i < f->n; i++)
        if (poll_of[i].revents && f->hand[i].fd >= 0 && !hear(f, &f->hand[i]))
            bury(f, &f->hand[i]);
}

static void dismiss(fleet *f)
{
    for (size_t i = 0; i < f->n; i++) {
        hand *h = &f->hand[i];
        if (h->fd >= 0)
            shutdown(h->fd, SHUT_WR); /* the end of its input */
    }
    for (size_t i = 0; i < f->n; i++) {
        hand *h = &f->hand[i];
        f->stopping = true;
        if (h->fd >= 0)
            bury(f, h);
        json_array_append_new(f->r->devices, json_pack("{s:s,s:I,s:i,s:b}", "device", h->device, "problems", h->done, "restarts", h->restarts, "given_up",
                                                       h->given_up));
    }
}

fa_status tune_fleet(tune_run *r, const char *const *device, size_t n)
{
    fleet f = { .r = r, .n = n, .bar = { .c = r->c } };
    struct pollfd *poll_of = calloc(n, sizeof *poll_of);
    f.hand = calloc(n, sizeof *f.hand);
    f.task = calloc(r->list.n, sizeof *f.task);
    r->devices = json_array();
    if (!poll_of || !f.hand || !f.task || !r->devices) {
        free(poll_of);
        free(f.hand);
        free(f.task);
        return fa_fail(FA_NOMEM, "no memory for %zu devices", n);
    }
    for (size_t i = 0; i < r->list.n; i++)
        f.task[i].not_on = -1;
    if (n > 1)
        cli_note(r->c, "%zu devices share %zu problem%s, a process each", n, r->list.n, r->list.n == 1 ? "" : "s");
    for (size_t i = 0; i < n; i++) {
        f.hand[i] = (hand){ .device = device[i], .fd = -1, .at = -1 };
        if (spawn(&f, &f.hand[i]) != FA_OK)
            give_up(&f, &f.hand[i], FA_IO, fa_last_error());
    }
    while (is_busy(&f))
        turn(&f, poll_of);
    cli_progress_end(&f.bar);
    bool interrupted = f.stopping, up = hands_up(&f) > 0;
    dismiss(&f);
    free(poll_of);
    free(f.hand);
    free(f.task);
    if (interrupted)
        return fa_fail(FA_INTERRUPTED, "the search was stopped");
    return up ? FA_OK : fa_fail(f.status, "no device is left: %s", f.why);
}
