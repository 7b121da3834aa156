/* search: space -> model -> compile -> verify -> time -> record -> winner. */
#include "search.h"
#include "autotune/device/clock.h"
#include "baseline.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "run.h"
#include "runs.h"
#include "runtime/choose/pins.h"
#include "seeds.h"
#include "verify/operands/work.h"
#include <stdio.h>
#include <stdlib.h>

/* Of a time budget on a device: until when configs of the list are tried, and until when neighbours. */
#define SHARE_LISTED 0.6
#define SHARE_NEIGHBOURS 0.85

/* A phase may use the budget up to `share`, and is `span` of the whole from `base` on. */
static void begin(fa_search_run *s, double share, double base, double span)
{
    s->share = s->site->timed ? share : 1;
    s->base = s->site->timed ? base : 0;
    s->span = s->site->timed ? span : 1;
    s->late = false;
}

static bool tournament_over(fa_tournament *c)
{
    fa_search_run *s = c->user;
    fa_search_run_tell(s, s->share < 1 ? "meet" : "final", NULL, s->share < 1 ? 1 : 0.5);
    return fa_search_run_over(s);
}

/* ---- candidates ---- */

static fa_status open_pool(fa_search_run *s)
{
    fa_tuning *t = s->t;
    const fa_strategy *strategy = fa_strategy_find(s->opt.strategy);
    if (!strategy)
        return fa_fail(FA_INVALID, "search: strategy is \"%.40s\"; accepted: %s", s->opt.strategy, fa_strategy_names());
    fa_space space = { .n = 0 };
    fa_status st = fa_gen_open(&s->g, s->site->template_dir);
    if (st == FA_OK)
        st = fa_pool_list(&s->pool, s->g, &t->problem, s->site->arch, s->site->budget, s->opt.family, &space);
    t->counts.space = space.n;
    t->counts.sound = space.n - space.rejected[FA_LIMIT_RULE];
    t->counts.fits_shared = t->counts.sound - space.rejected[FA_LIMIT_SHARED];
    t->counts.fits = space.fitting;
    t->n_rejected = fa_space_rejections(&space, t->rejected, FA_REJECTIONS);
    fa_space_free(&space);
    if (st != FA_OK)
        return st;
    s->neighbours_site = (fa_neighbours_site){ s->g, &t->problem, s->site->arch, s->site->budget };
    s->neighbours = fa_neighbours_of_families(&s->neighbours_site);
    t->strategy = strategy->name;
    fa_baseline baseline;
    st = fa_baseline_find(&baseline, &s->pool, &s->neighbours, s->g, s->site, &t->problem, s->opt.family);
    if (st != FA_OK)
        return st;
    snprintf(t->baseline_from, sizeof t->baseline_from, "%s", baseline.from);
    if (s->site->timed && !s->opt.unseeded && !s->opt.family)
        fa_seeds_add(&s->pool, &s->neighbours, s->site, &t->problem);
    /* by the model alone, the baseline is one of the limit's */
    int32_t limit = s->opt.limit == 0 && !strategy->whole ? FA_STRATEGY_LIMIT : s->opt.limit;
    fa_search_state_open(&s->state, &s->pool, s->site->timed ? &s->neighbours : NULL, strategy, limit, s->opt.seed);
    s->state.baseline = baseline.at;
    s->state.limit -= !s->site->timed && limit > 0;
    size_t most = s->state.limit < s->pool.listed ? s->state.limit : s->pool.listed;
    s->cap = 1 + most + FA_SEEDS_MOST + (s->site->timed && strategy->refines ? s->state.neighbours_most + s->state.steps_most : 0);
    t->candidate = calloc(s->cap, sizeof *t->candidate);
    return t->candidate ? FA_OK : fa_fail(FA_NOMEM, "no memory for %zu candidates", s->cap);
}

/* The strategy's next configs become candidates; the number of them. */
static size_t draw(fa_search_run *s, fa_status *st)
{
    fa_tuning *t = s->t;
    size_t room = s->cap - t->n, *at = calloc(room + 1, sizeof *at), n = 0;
    if (!at) {
        *st = fa_fail(FA_NOMEM, "no memory for %zu candidates", room);
        return 0;
    }
    n = fa_search_state_next(&s->state, at, room);
    for (size_t i = 0; i < n; i++) {
        const fa_pool_entry *x = &s->pool.p[at[i]];
        t->candidate[t->n + i] = (fa_candidate){ .config = x->config,
                                                 .cost = x->cost,
                                                 .smem = x->smem,
                                                 .regs = x->regs,
                                                 .threads = x->threads,
                                                 .tile = { x->tile[0], x->tile[1] },
                                                 .how = t->how,
                                                 .origin = x->origin,
                                                 .at = at[i] };
        t->counts.seeds += x->origin == FA_SEED;
        t->counts.neighbours += s->state.phase != FA_PHASE_OWN;
    }
    t->n += n;
    t->counts.kept = t->n;
    s->tournament.guest = t->baseline = t->n ? t->candidate : NULL;
    free(at);
    return n;
}

/* What the strategy wants, then the neighbours of the fastest, as long as they get faster. */
static fa_status try_all(fa_search_run *s)
{
    fa_tuning *t = s->t;
    fa_status st = FA_OK;
    bool refining = false, met = false;
    begin(s, SHARE_LISTED, 0, 0.7);
    if (s->site->timed && s->opt.candidate_process && !s->opt.backend &&
        !fa_journal_knows(&s->journal)) /* it gets ready while the first are compiled */
        st = fa_search_run_backend(s);
    while (st == FA_OK && !s->interrupted) {
        size_t from = t->n, n = fa_search_run_over(s) ? 0 : draw(s, &st);
        if (st != FA_OK || (n == 0 && (refining || !s->late)))
            break;
        if (!refining && (n == 0 || s->state.phase != FA_PHASE_OWN)) {
            refining = true;
            begin(s, SHARE_NEIGHBOURS, 0.7, 0.2);
            if (n == 0) { /* the time for the list is up: on with neighbours, if something ran */
                s->state.phase = FA_PHASE_REFINE;
                continue;
            }
        }
        st = fa_attempt_all(s, from, n);
        if (st == FA_OK && s->site->timed && !s->interrupted)
            st = fa_rounds_meet(s, met ? from : 0);
        fa_device_lock_release(s->site->device_lock); /* what follows is not compiled yet */
        met = true;
        if (refining && fa_search_run_over(s))
            break;
    }
    return st;
}

/* ---- the whole ---- */

static fa_status use_winner(fa_search_run *s)
{
    fa_tuning *t = s->t;
    if (!s->site->ctx || !t->winner)
        return FA_OK;
    if (!s->site->timed && !(t->runs.known && fa_config_equal(&t->runs.config, &t->winner->config))) /* another process chooses as well */
        return FA_OK;
    const fa_problem point = fa_problem_point(&t->problem);
    if (fa_pins_find(s->site->ctx->pins, &point, NULL))
        return FA_OK;
    fa_status st = t->winner->plan ? FA_OK : fa_plan_make(s->site->ctx, &t->problem, &t->winner->config, "tuned", &t->winner->plan);
    if (st == FA_OK && !fa_plan_use(s->site->ctx, t->winner->plan))
        st = fa_fail(FA_NOMEM, "no memory for the table of kernels");
    return st;
}

static fa_candidate *fastest(fa_tuning *t)
{
    fa_candidate *best = NULL;
    for (size_t i = 0; i < t->n; i++)
        if (t->candidate[i].decided && t->candidate[i].outcome == FA_RAN && (!best || t->candidate[i].level < best->level))
            best = &t->candidate[i];
    return best;
}

/* Without times of its own, the model's choice is at least held against the oracle on the simulator before it is used. */
static fa_status verify_modelled(fa_search_run *s)
{
    fa_tuning *t = s->t;
    while (t->winner && !fa_search_run_over(s)) {
        fa_candidate *c = t->winner;
        fa_search_run_tell(s, "verify", c, 1);
        fa_status st = c->plan ? FA_OK : fa_plan_make(s->site->ctx, &t->problem, &c->config, "tuned", &c->plan);
        if (st == FA_OK)
            st = fa_search_run_backend(s);
        if (st != FA_OK)
            return st;
        st = fa_measure_backend_judge(s->backend, c);
        if (st == FA_OK) {
            t->counts.verified++;
            return FA_OK;
        }
        t->counts.failed++;
        t->winner = NULL;
        st = fa_attempt_failed(s, c, st);
        if (st != FA_OK)
            return st;
        t->winner = fastest(t);
    }
    return FA_OK;
}

static fa_status conclude(const fa_search_run *s)
{
    const fa_tuning *t = s->t;
    if (s->waited > 0)
        return fa_fail(FA_INTERRUPTED,
                       "another process holds the device for more than %g s (is it stopped?); %zu of %zu candidates are on record",
                       s->waited, t->counts.timed + t->counts.resumed, t->n);
    if (s->interrupted)
        return fa_fail(FA_INTERRUPTED, "the search was stopped; %zu of %zu candidates are on record", t->counts.timed + t->counts.resumed,
                       t->n);
    if (t->winner)
        return FA_OK;
    if (t->out_of_time)
        return fa_fail(FA_INTERRUPTED, "%.1f seconds were up before any candidate had run", s->opt.seconds);
    for (size_t i = 0; i < t->n; i++)
        if (t->candidate[i].outcome == FA_BAD_RESULT)
            return fa_fail(FA_WRONG, "none of %zu candidates passed; the best by the model: %s", t->n, t->candidate[i].why);
    if (t->how == FA_MODELLED)
        return fa_fail(FA_NO_KERNEL, "none of %zu candidates is a guess; the first: %s; a larger limit tries more", t->n,
                       t->n ? t->candidate[0].why : "there is none");
    return fa_fail(FA_NO_KERNEL, "none of %zu candidates ran; the first: %s", t->n, t->n ? t->candidate[0].why : "there is none");
}

static fa_status search_all(fa_search_run *s)
{
    fa_status st = try_all(s);
    begin(s, 1, 0.9, 0.1);
    if (st == FA_OK && s->site->timed && !s->interrupted)
        st = fa_rounds_final(s);
    fa_rounds_note(s);
    if (st == FA_OK && s->site->ctx && !s->site->timed)
        st = verify_modelled(s);
    if (st == FA_OK && s->t->how == FA_MODELLED && s->t->winner)
        st = fa_runs_find(s->t, s->g, s->site);
    if (st == FA_OK && !s->interrupted)
        st = use_winner(s);
    return st;
}

static fa_status check_options(const fa_search_options *o)
{
    const struct {
        const char *name;
        double value, least;
    } rows[] = { { "limit", o->limit, -1 }, { "seconds", o->seconds, 0 },         { "threads", o->threads, 0 },
                 { "hang", o->hang, 0 },    { "device_wait", o->device_wait, 0 }, { "patience", o->patience, 0 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!(rows[i].value >= rows[i].least))
            return fa_fail(FA_INVALID, "search: %s is %g; accepted: %g or more", rows[i].name, rows[i].value, rows[i].least);
    return FA_OK;
}

fa_status fa_search(const fa_site *site, const fa_problem *p, const fa_search_options *opt, fa_tuning *out)
{
    fa_work work;
    fa_search_run s = { .site = site, .t = out, .start = fa_clock(), .slower = 1, .share = 1, .span = 1 };
    if (opt)
        s.opt = *opt;
    *out = (fa_tuning){ .how = site->timed ? FA_MEASURED : FA_MODELLED };
    fa_status st = check_options(&s.opt);
    if (st == FA_OK)
        st = fa_problem_normalize(&out->problem, p);
    if (st != FA_OK)
        return st;
    fa_problem_fill_shape(&out->problem);
    s.flops = fa_model_matrix_flops(&out->problem, fa_band_of_problem(&out->problem)); /* the model has all sequences at the longest */
    if (site->timed && (st = fa_work_drawn(&work, &out->problem, site->lengths)) == FA_OK)
        s.flops = work.flops;
    if (st != FA_OK)
        return st;
    s.tournament = (fa_tournament){ .stop = tournament_over, .user = &s };
    st = open_pool(&s);
    if (st == FA_OK) {
        st = fa_journal_open(&s.journal, site, &out->problem, out->how);
        if (st == FA_OK) {
            st = search_all(&s);
            fa_journal_close(&s.journal);
        }
    }
    fa_device_lock_release(site->device_lock);
    if (s.backend != s.opt.backend)
        fa_measure_backend_close(s.backend);
    fa_search_state_close(&s.state);
    fa_pool_free(&s.pool);
    fa_gen_close(s.g);
    out->elapsed = fa_clock() - s.start;
    return st == FA_OK || (st == FA_INTERRUPTED && s.interrupted) ? conclude(&s) : st;
}
