/* run: the clock of a search, its caller, its device and its backend. */
#include "run.h"
#include "autotune/candidate/process.h"
#include "autotune/device/clock.h"
#include <math.h>

#define WAIT_SECONDS 0.1   /* for the device, between two words to the caller */
#define DEVICE_WAIT 1800.0 /* a batch of candidates that all hang takes no longer */

double fa_search_run_left(const fa_search_run *s)
{
    return s->opt.seconds > 0 ? fmax(0, s->share * s->opt.seconds - (fa_clock() - s->start)) : -1;
}

bool fa_search_run_over(fa_search_run *s)
{
    if (fa_search_run_left(s) == 0)
        s->late = s->t->out_of_time = true;
    return s->late || s->interrupted;
}

void fa_search_run_tell(fa_search_run *s, const char *stage, const fa_candidate *latest, double done)
{
    s->t->elapsed = fa_clock() - s->start;
    s->done = done;
    if (s->opt.progress && s->opt.progress(s->opt.user, s->t, stage, latest, s->base + s->span * done))
        s->interrupted = true;
}

bool fa_search_run_device(fa_search_run *s)
{
    double from = fa_clock(), most = s->opt.device_wait > 0 ? s->opt.device_wait : DEVICE_WAIT;
    while (!fa_device_lock_acquire(s->site->device_lock, fmin(WAIT_SECONDS, most)) && !s->interrupted) {
        fa_search_run_tell(s, "wait", NULL, s->done);
        if (fa_clock() - from >= most) {
            s->waited = most;
            s->interrupted = true;
        }
    }
    s->start += fa_clock() - from;
    return !s->interrupted;
}

fa_status fa_search_run_backend(fa_search_run *s)
{
    fa_status st = FA_OK;
    if (s->backend)
        return FA_OK;
    fa_device_lock_report(s->site->device_lock, s->opt.candidate_process
                                                    ? 2
                                                    : 1); /* also between two children: a look at the device may see one that just ended */
    if (s->opt.backend)
        s->backend = s->opt.backend;
    else if (s->opt.candidate_process)
        st = fa_measure_backend_open_process(&s->backend, s->site, &s->t->problem, s->opt.candidate_process, s->opt.hang,
                                             &s->t->counts.lost);
    else
        st = fa_measure_backend_open(&s->backend, s->site, &s->t->problem, true);
    s->tournament.backend = s->backend;
    if (s->backend)
        s->backend->device_lock = s->site->device_lock;
    return st;
}
