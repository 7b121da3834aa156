/* attempt: one candidate of a search: compiled, verified, timed, noted. */
#include "gen/error.h"
#include "run.h"
#include "sim/sim.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define ASK_SECONDS 0.1 /* between two words to the caller, who may stop the search */

/* Outcome, pool, journal and the best so far. */
static void note(fa_search_run *s, fa_candidate *c)
{
    fa_tuning *t = s->t;
    bool ran = c->outcome == FA_RAN;
    if (ran) {
        c->level = c->resumed ? c->seconds : c->seconds * s->slower;
        c->tflops = c->seconds > 0 ? s->flops / c->seconds * 1e-12 : 0;
        if (!t->winner || (!t->winner->placed && c->level < t->winner->level)) /* one without a pair is not held against one with pairs */
            t->winner = c;
    }
    fa_search_state_tell(&s->state, c->at, ran ? c->level : 0);
    if (!c->resumed)
        fa_journal_note(&s->journal, c);
}

fa_status fa_attempt_failed(fa_search_run *s, fa_candidate *c, fa_status st)
{
    char why[512];
    if (st == FA_NOMEM || st == FA_INTERNAL)
        return st;
    if (st == FA_INTERRUPTED && sim_interrupted()) { /* tells nothing of the candidate */
        s->interrupted = true;
        return st;
    }
    snprintf(why, sizeof why, "%.*s", (int)sizeof why - 1, fa_last_error());
    fa_candidate_decide(c, st == FA_WRONG ? FA_BAD_RESULT : st == FA_INTERRUPTED ? FA_BAD_TIMEOUT : FA_BAD_LAUNCH, why);
    c->resumed = false;
    note(s, c);
    if (st == FA_DEVICE && s->backend && !fa_measure_backend_alive(s->backend))
        return fa_fail(FA_DEVICE, "a candidate left the device's context unusable; it is on record and will be passed over: %s", why);
    return FA_OK;
}

static fa_status verify_and_time(fa_search_run *s, fa_candidate *c, double done)
{
    fa_tuning *t = s->t;
    fa_status st = fa_search_run_backend(s);
    if (st != FA_OK || !fa_search_run_device(s))
        return st;
    fa_search_run_tell(s, "verify", c, done);
    st = fa_measure_backend_judge(s->backend, c);
    if (st != FA_OK)
        return fa_attempt_failed(s, c, st);
    t->counts.verified++;
    fa_search_run_tell(s, "time", c, done);
    st = fa_measure_backend_first(s->backend, c, s->state.strategy->samples,
                                  t->winner ? FA_TOURNAMENT_FIRST * t->winner->level / s->slower : 0);
    if (st != FA_OK)
        return fa_attempt_failed(s, c, st);
    t->counts.timed++;
    fa_candidate_decide(c, FA_RAN, "");
    note(s, c);
    return FA_OK;
}

static fa_status attempt(fa_search_run *s, fa_candidate *c, double done)
{
    fa_tuning *t = s->t;
    if (c->resumed)
        t->counts.resumed++;
    else if (!c->decided || c->outcome == FA_BAD_CONSTRAINT)
        t->counts.compiled++;
    if (!c->decided && s->site->timed) {
        fa_status st = verify_and_time(s, c, done);
        if (st != FA_OK)
            return st;
    } else {
        if (!c->decided) {
            c->seconds = c->cost.seconds;
            fa_candidate_decide(c, FA_RAN, "");
        }
        note(s, c);
    }
    t->counts.failed += c->decided && c->outcome != FA_RAN;
    return FA_OK;
}

fa_status fa_attempt_all(fa_search_run *s, size_t from, size_t n)
{
    fa_tuning *t = s->t;
    fa_compile_pool *compile_pool;
    fa_status st = fa_compile_pool_start(&compile_pool, s->site, &s->journal, t->candidate + from, n, s->opt.threads, s->opt.again);
    for (size_t i = 0; i < n && st == FA_OK && !fa_search_run_over(s); i++) {
        fa_candidate *c = &t->candidate[from + i];
        double done = (double)i / (double)n;
        fa_search_run_tell(s, "compile", c, done);
        if (s->interrupted)
            break;
        bool there = fa_compile_pool_wait(compile_pool, i, 0, &st);
        if (!there && st == FA_OK)
            fa_device_lock_release(s->site->device_lock);
        while (!there && st == FA_OK && !fa_search_run_over(s)) {
            double left = fa_search_run_left(s);
            there = fa_compile_pool_wait(compile_pool, i, left < 0 ? ASK_SECONDS : fmin(left, ASK_SECONDS), &st);
            if (!there && st == FA_OK)
                fa_search_run_tell(s, "compile", c, done);
        }
        if (there && st == FA_OK)
            st = attempt(s, c, done);
    }
    if (st == FA_INTERRUPTED && sim_interrupted()) {
        s->interrupted = true;
        st = FA_OK;
    }
    fa_search_run_over(s);
    fa_compile_pool_stop(compile_pool, s->interrupted ? s->opt.patience : 0);
    return st;
}
