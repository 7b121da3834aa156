/* workers: the processes of a fleet: how they start, what they say, how they end. */
#include "fleet.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIES 2        /* of a problem, by processes that die of it */
#define DEATHS_MOST 2  /* of processes of a worker in a row, before it is given up */
#define WORDS_MOST 256 /* of the command line */
#define LOCK_FD 3      /* a process's own name of the lock of its device */

/* ---- from birth to death ---- */

fa_status fleet_spawn(fleet *f, worker *h)
{
    extern char **environ;
    int pair[2], n = 0;
    char *words[WORDS_MOST], threads[12], lock[24], **argv = f->r->c->argv;
    long cores = sysconf(_SC_NPROCESSORS_ONLN) / (long)f->devices; /* those of one device compile by turns, as they come */
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none;
    sigemptyset(&none);
    snprintf(threads, sizeof threads, "%ld", cores < 1 ? 1 : cores > 64 ? 64 : cores);
    snprintf(lock, sizeof lock, "%d:%d", LOCK_FD, h->member);
    char *first[] = {
        argv[0], argv[1], "--process-on", (char *)f->device[h->device], "--device-lock", lock, "--threads", threads
    }; /* what was given comes after these, and counts */
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        words[n++] = first[i];
    for (int i = 2; argv[i] && n < WORDS_MOST - 1; i++)
        words[n++] = argv[i];
    words[n] = NULL;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return fa_fail(FA_IO, "no process for %s: socketpair: %s", f->device[h->device], strerror(errno));
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, pair[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, pair[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, f->device_lock[h->device], LOCK_FD);
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
    return fa_fail(FA_IO, "no process for %s: %s", f->device[h->device], strerror(error));
}

void fleet_give_up(fleet *f, worker *h, fa_status st, const char *why)
{
    h->given_up = true;
    f->status = st;
    snprintf(f->why, sizeof f->why, "%s", why);
    size_t left = 0;
    for (size_t i = 0; i < f->n; i++)
        left += f->worker[i].device == h->device && !f->worker[i].given_up;
    cli_progress_end(&f->bar);
    if (left)
        cli_note(f->r->c, "fewer processes share %s, %zu: %s", f->device[h->device], left, why);
    else
        cli_note(f->r->c, "%s is given up: %s", f->device[h->device], why);
}

/* A result for a problem that processes die of. */
static void fail_task(fleet *f, size_t i, const char *why)
{
    fa_tuning t = { .how = f->r->timed ? FA_MEASURED : FA_MODELLED };
    cli_progress_end(&f->bar);
    tune_run_keep(f->r, i, tune_result(&t, &f->r->list.row[i].problem, NULL, FA_DEVICE, why));
}

/* The process ended or its line broke. */
void fleet_reap(fleet *f, worker *h)
{
    char how[64], why[256];
    int status = 0;
    close(h->fd);
    h->fd = -1;
    fa_device_lock_report(h->device_lock, 0);
    fa_text_free(&h->heard);
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
        snprintf(why, sizeof why, "the process on %s %s at %s", f->device[h->device], how, brief);
        t->taken = false;
        t->not_on = h - f->worker;
        cli_progress_end(&f->bar);
        if (++t->tries < TRIES)
            cli_note(f->r->c, "%s; it is tried once more", why);
        else
            fail_task(f, (size_t)h->at, why);
        h->at = -1;
    } else {
        snprintf(why, sizeof why, "the process on %s %s", f->device[h->device], how);
    }
    h->restarts++;
    if (++h->deaths >= DEATHS_MOST)
        fleet_give_up(f, h, FA_DEVICE, why);
    else if (fleet_spawn(f, h) != FA_OK)
        fleet_give_up(f, h, FA_IO, fa_last_error());
}

/* ---- what travels ---- */

static void hear_ready(fleet *f, worker *h, const json_t *j)
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

static void hear_result(fleet *f, worker *h, json_t *result, bool last)
{
    const char *status = json_string_value(json_object_get(result, "status")), *why = json_string_value(json_object_get(result, "message"));
    size_t at = (size_t)h->at;
    h->ready = !last; /* it ends: the next job is for the process after it */
    h->deaths = 0;
    cli_progress_end(&f->bar);
    if (status && !strcmp(status, fa_status_name(FA_NO_NVRTC))) {
        f->hopeless = true;
        f->status = FA_NO_NVRTC;
        snprintf(f->why, sizeof f->why, "%s", why ? why : "");
        h->at = -1;
    } else if (fleet_lacks_memory(f, h, status)) {
        char brief[96];
        fleet_put_back_alone(f, h);
        tune_problem_brief(brief, sizeof brief, &f->r->list.row[at].problem);
        cli_note(f->r->c, "%s does not fit on %s beside another problem: it is tried again alone, later", brief, f->device[h->device]);
    } else {
        json_object_set_new(result, "device", json_string(f->device[h->device]));
        tune_run_keep(f->r, at, json_incref(result));
        h->at = -1;
        h->done++;
    }
}

static void hear_line(fleet *f, worker *h, const char *line)
{
    json_t *j = json_loads(line, 0, NULL), *result = json_object_get(j, "result"), *view = json_object_get(j, "view");
    const char *lost = json_string_value(json_object_get(j, "lost"));
    if (json_object_get(j, "ready")) {
        hear_ready(f, h, j);
    } else if (lost) {
        fleet_give_up(f, h, (fa_status)json_integer_value(json_object_get(j, "status")), lost);
    } else if (view) {
        h->view = tune_view_read(view);
    } else if (result && h->at >= 0 && json_integer_value(json_object_get(j, "at")) == h->at) {
        hear_result(f, h, result, json_is_true(json_object_get(j, "last")));
    }
    json_decref(j);
}

/* What has come. False: the process is gone. */
bool fleet_hear(fleet *f, worker *h)
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
    }
    return !h->heard.oom;
}
