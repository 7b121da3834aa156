/* process: a process of a fleet. CUDA does not survive a fork, so it is the command once more, with its options, --process-on and
 * --device-lock. A line of JSON each way: {"problem", "at", "seconds", "score"} comes in, {"ready"}, {"view"}, {"at", "result", "last"},
 * {"lost"} go out. It ends with its input, and with its parent. */
#include "cli/text/progress.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "tune.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define VIEW_SECONDS 0.1

static void say(json_t *j)
{
    char *text = j ? json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
    if (text) {
        puts(text);
        fflush(stdout);
    }
    free(text);
    json_decref(j);
}

static int show(void *user, const fa_tuning *t, const char *stage, const fa_candidate *latest, double done)
{
    double *told = user, now = cli_clock();
    if (now - *told > VIEW_SECONDS) {
        tune_view v = tune_view_of(t, stage, latest, done);
        say(json_pack("{s:o}", "view", tune_view_json(&v)));
        *told = now;
    }
    return cli_interrupted();
}

/* "3:0": the file descriptor and the member. */
static fa_status join(fa_device_lock **out, const char *text)
{
    int fd, member;
    char more;
    *out = NULL;
    if (!text)
        return FA_OK;
    if (sscanf(text, "%d:%d%c", &fd, &member, &more) != 2)
        return fa_fail(FA_INVALID, "--device-lock is \"%.40s\"; accepted: FD:MEMBER", text);
    fa_status st = fa_device_lock_join(out, fd, member);
    if (st == FA_OK)
        close(fd);
    return st;
}

/* Whether the context still serves after a search that ended so. */
static bool serves(fa_status st)
{
    return tune_goes_on(st) || (st == FA_INTERRUPTED && !cli_interrupted());
}

/* One line of input. False: not a job. */
static bool work(const tune_args *a, const fa_site *site, const char *line, fa_status *st)
{
    fa_problem p;
    json_t *result, *job = json_loads(line, 0, NULL);
    const char *text = json_string_value(json_object_get(job, "problem")), *score = json_string_value(json_object_get(job, "score"));
    double told = 0;
    bool ok = text && fa_problem_parse_scored(&p, text, score, score ? strlen(score) : 0) == FA_OK;
    if (ok) {
        *st = tune_problem(a, site, &p, json_number_value(json_object_get(job, "seconds")), show, &told, &result);
        say(json_pack("{s:O,s:o,s:b}", "at", json_object_get(job, "at"), "result", result, "last", !serves(*st)));
    }
    json_decref(job);
    return ok;
}

int tune_process(cli *c, const tune_args *a)
{
    tune_site site;
    char *line = NULL;
    size_t cap = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    cli_interrupt_watch();
    cli_interrupt_at_end_of(STDIN_FILENO); /* a signal would do, did NVRTC not lose some */
    c->quiet = true;
    fa_device_lock *lock = NULL;
    fa_status st = tune_site_open(&site, c, a, a->on);
    if (st == FA_OK)
        st = join(&lock, a->device_lock);
    if (st == FA_OK) {
        site.site.device_lock = lock;
        fa_device_lock_report(lock, 1);
        say(json_pack("{s:s,s:s,s:s,s:b}", "ready", a->on, "arch", site.site.arch->name, "chip", site.site.arch->chip, "timed",
                      site.site.timed));
    } else {
        say(json_pack("{s:s,s:i}", "lost", fa_last_error(), "status", st));
    }
    while (st == FA_OK && !cli_interrupted() && getline(&line, &cap, stdin) > 0) {
        if (!work(a, &site.site, line, &st))
            break;
        if (serves(st))
            st = FA_OK;
    }
    free(line);
    tune_site_close(&site);
    fa_device_lock_leave(lock);
    return cli_exit_of(st);
}
