/* fleet: processes on one or more devices share the problems. Who is free gets the next problem; a process that dies costs only
 * the problem it was at, which another tries once more. On a GPU there are two: one measures while the other's kernels are compiled, and
 * a device lock (autotune/device/lock.h) keeps them from measuring both at a time. */
#include "fleet.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "gen/score/known.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ABREAST 2 /* on a GPU */
#define POLL_MS 100

/* ---- what is given out ---- */

static void send_job(fleet *f, worker *h)
{
    char text[FA_PROBLEM_TEXT];
    const tune_run *r = f->r;
    ptrdiff_t i = fleet_next(f, h);
    double share = i < 0 ? 0 : tune_share(r->a->budget, cli_clock() - r->start, fleet_open(f), fleet_devices_up(f));
    if (i < 0 || share < 0)
        return;
    fa_problem_print(text, sizeof text, &r->list.row[i].problem);
    const fa_program *program = fa_score_known(&f->r->list.row[i].problem);
    json_t *job =
        json_pack("{s:s,s:I,s:f,s:s*}", "problem", text, "at", (json_int_t)i, "seconds", share, "score", program ? program->source : NULL);
    char *line = job ? json_dumps(job, JSON_COMPACT) : NULL;
    if (line && send(h->fd, line, strlen(line), MSG_NOSIGNAL) > 0 && send(h->fd, "\n", 1, MSG_NOSIGNAL) == 1) {
        h->at = i;
        if (f->devices == 1)
            cli_progress_anew(&f->bar);
        h->view = (tune_view){ .done = 0 };
        f->task[i].taken = true;
    } /* else it is dead, and the next hearing tells */
    free(line);
    json_decref(job);
}

/* ---- the whole ---- */

static void add_workers(const fleet *f, cli_status_line *line)
{
    char text[64];
    for (size_t i = 0; i < f->n; i++) {
        const worker *h = &f->worker[i];
        if (h->at < 0)
            continue;
        tune_problem_brief(text, sizeof text, &f->r->list.row[h->at].problem);
        cli_status_line_add(line, CLI_STATUS_LINE_BAR + 1 + (int)i, "%s: %s %lld/%lld", f->device[h->device], text,
                            (long long)h->view.compiled + h->view.resumed, (long long)h->view.kept);
        cli_status_line_brief(line, "%s %lld/%lld", f->device[h->device], (long long)h->view.compiled + h->view.resumed,
                              (long long)h->view.kept);
    }
}

/* Of those on the only device the one that has come farthest. */
static const worker *foremost(const fleet *f)
{
    const worker *best = NULL;
    for (size_t i = 0; i < f->n && f->devices == 1; i++)
        if (f->worker[i].at >= 0 && (!best || f->worker[i].view.done > best->view.done))
            best = &f->worker[i];
    return best;
}

static void draw(fleet *f)
{
    const tune_run *r = f->r;
    cli_status_line line = { .n = 0 };
    char text[64];
    double done = 0;
    size_t whole = 0;
    for (size_t i = 0; i < r->list.n; i++)
        whole += r->result[i] != NULL;
    for (size_t i = 0; i < f->n; i++)
        done += f->worker[i].at >= 0 ? f->worker[i].view.done : 0;
    line.done = ((double)whole + done) / (double)r->list.n;
    double left = tune_left(cli_clock() - r->start, line.done, r->a->budget);
    const worker *h = foremost(f);
    if (h) {
        if (h->view.kept)
            tune_view_line(&line, &h->view, &r->list.row[h->at].problem, whole + 1, r->list.n, line.done, left);
    } else {
        cli_status_line_add(&line, 0, "%zu/%zu", whole, r->list.n);
        if (left >= 0) {
            tune_show_span(text, sizeof text, left);
            cli_status_line_add(&line, 1, "%s left", text);
        }
        add_workers(f, &line);
    }
    if (line.n > 1)
        cli_progress_draw(&f->bar, h ? h->view.stage : "share", &line);
}

/* Whether any worker is at work, or can still take a problem. */
static bool is_busy(const fleet *f)
{
    bool time = tune_share(f->r->a->budget, cli_clock() - f->r->start, 1, 1) >= 0;
    for (size_t i = 0; i < f->n; i++) {
        const worker *h = &f->worker[i];
        if (h->fd >= 0 && (h->at >= 0 || (!f->stopping && time && fleet_next(f, h) >= 0)))
            return true;
    }
    return false;
}

static void stop(fleet *f)
{
    f->stopping = true;
    for (size_t i = 0; i < f->n; i++)
        if (f->worker[i].fd >= 0)
            shutdown(f->worker[i].fd, SHUT_WR); /* they look for it, end their search, and tell what they have */
}

static void turn(fleet *f, struct pollfd *poll_of)
{
    if ((cli_interrupted() || f->hopeless) && !f->stopping)
        stop(f);
    for (size_t i = 0; i < f->n; i++) {
        worker *h = &f->worker[i];
        if (h->fd >= 0 && h->ready && h->at < 0 && !f->stopping)
            send_job(f, h);
        poll_of[i] = (struct pollfd){ .fd = h->fd, .events = POLLIN };
    }
    draw(f);
    if (poll(poll_of, f->n, POLL_MS) <= 0)
        return;
    for (size_t i = 0; i < f->n; i++)
        if (poll_of[i].revents && f->worker[i].fd >= 0 && !fleet_hear(f, &f->worker[i]))
            fleet_reap(f, &f->worker[i]);
}

static void stop_all(fleet *f)
{
    for (size_t i = 0; i < f->n; i++) {
        worker *h = &f->worker[i];
        if (h->fd >= 0)
            shutdown(h->fd, SHUT_WR); /* the end of its input */
    }
    for (size_t i = 0; i < f->n; i++) {
        worker *h = &f->worker[i];
        f->stopping = true;
        if (h->fd >= 0)
            fleet_reap(f, h);
        fa_device_lock_leave(h->device_lock);
    }
    for (size_t d = 0; d < f->devices; d++) {
        json_int_t done = 0, restarts = 0, up = 0, processes = 0;
        for (size_t i = d; i < f->n; i += f->devices, processes++) {
            done += f->worker[i].done;
            restarts += f->worker[i].restarts;
            up += !f->worker[i].given_up;
        }
        json_array_append_new(f->r->devices, json_pack("{s:s,s:I,s:I,s:I,s:b}", "device", f->device[d], "processes", processes, "problems",
                                                       done, "restarts", restarts, "given_up", up == 0));
        if (f->device_lock[d] >= 0)
            close(f->device_lock[d]);
    }
}

/* How many processes share a device. */
static size_t abreast(const tune_args *a, const char *device)
{
    return a->abreast ? (size_t)a->abreast : !strncmp(device, "cuda:", 5) ? ABREAST : 1;
}

/* The device locks and the workers: worker i is on device i % devices. No more of them than problems, but one for each device. */
static fa_status open_workers(fleet *f)
{
    size_t most = f->devices * abreast(f->r->a, f->device[0]);
    f->worker = calloc(most, sizeof *f->worker);
    f->task = calloc(f->r->list.n, sizeof *f->task);
    for (size_t d = 0; d < f->devices; d++)
        f->device_lock[d] = -1;
    if (!f->worker || !f->task)
        return fa_fail(FA_NOMEM, "no memory for %zu devices", f->devices);
    for (size_t d = 0; d < f->devices; d++)
        if ((f->device_lock[d] = fa_device_lock_make()) < 0)
            return fa_fail(FA_IO, "no memory that the processes on %s would share: %s", f->device[d], strerror(errno));
    f->n = most < f->r->list.n ? most : f->devices > f->r->list.n ? f->devices : f->r->list.n;
    for (size_t i = 0; i < f->n; i++) { /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a fleet has a device */
        f->worker[i] = (worker){ .device = i % f->devices, .member = (int)(i / f->devices), .fd = -1, .at = -1 };
    }
    fa_status st = FA_OK;
    for (worker *h = f->worker; h < f->worker + f->n && st == FA_OK; h++)
        st = fa_device_lock_join(&h->device_lock, f->device_lock[h->device], h->member);
    return st;
}

fa_status tune_fleet(tune_run *r, const char *const *device, size_t n)
{
    fleet f = { .r = r, .device = device, .devices = n, .bar = { .c = r->c } };
    r->devices = json_array();
    fa_status st = open_workers(&f);
    struct pollfd *poll_of = calloc(f.n + 1, sizeof *poll_of);
    if (st == FA_OK && (!poll_of || !r->devices))
        st = fa_fail(FA_NOMEM, "no memory for %zu devices", n);
    for (size_t i = 0; i < r->list.n && st == FA_OK; i++)
        f.task[i].not_on = -1;
    if (n > 1 && st == FA_OK)
        cli_note(r->c, "%zu devices share %zu problem%s", n, r->list.n, r->list.n == 1 ? "" : "s");
    for (size_t i = 0; i < f.n && st == FA_OK; i++)
        if (fleet_spawn(&f, &f.worker[i]) != FA_OK)
            fleet_give_up(&f, &f.worker[i], FA_IO, fa_last_error());
    while (st == FA_OK && is_busy(&f))
        turn(&f, poll_of);
    cli_progress_end(&f.bar);
    bool interrupted = f.stopping, up = fleet_workers_up(&f) > 0;
    stop_all(&f);
    free(poll_of);
    free(f.worker);
    free(f.task);
    if (st != FA_OK)
        return st;
    if (f.hopeless)
        return fa_fail(f.status, "%s", f.why);
    if (interrupted)
        return fa_fail(FA_INTERRUPTED, "the search was stopped");
    return up ? FA_OK : fa_fail(f.status, "no device is left: %s", f.why);
}
