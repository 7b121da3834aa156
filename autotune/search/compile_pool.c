/* compile_pool: threads that render and compile candidates. */
#include "compile_pool.h"
#include "autotune/device/clock.h"
#include "gen/error.h"
#include "runtime/args/map.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS_MOST 16
#define WHY 512

/* What threads use beyond the mutex is their own or the pool's: it outlives the search that does not wait for them. */
struct fa_compile_pool {
    fa_site site;
    fa_problem problem;
    fa_how how;
    const fa_journal *journal; /* the search's, as are the candidates: used under the mutex, before `stop` */
    fa_candidate *candidate;
    bool *done;
    size_t n, next;
    bool again, stop;
    atomic_bool given_up; /* what NVRTC asks for, once `stop` is set */
    fa_status fatal;
    char why[WHY];
    pthread_mutex_t mutex;
    pthread_cond_t progress;
    pthread_t thread[THREADS_MOST];
    int threads, running;
};

static atomic_int left_behind;

void fa_candidate_decide(fa_candidate *c, fa_outcome o, const char *why)
{
    c->decided = true;
    c->outcome = o;
    snprintf(c->why, sizeof c->why, "%.*s", (int)sizeof c->why - 1, why);
}

/* Where a step takes maps, warps are specialised, and registers handed from one to the other; there a spill is in the inner loop, but for
 * lengths and gradients. Where nothing is timed, none is accepted: the model does not price them. */
static void use_resources(fa_candidate *c, const fa_resources *r, const fa_step *step, int steps, const fa_compile_pool *w)
{
    const char *note = "";
    char why[64] = "";
    c->regs = c->spills = 0;
    for (int i = 0; i < steps; i++) {
        int32_t spills = r[i].spill_stores > r[i].spill_loads ? r[i].spill_stores : r[i].spill_loads;
        bool outside = w->problem.features & FA_FEATURE_LENGTHS || w->problem.op == FA_BACKWARD;
        int32_t with_maps = outside ? FA_SPILLS_OUTSIDE_LOOP : 0;
        int32_t measured = step[i].n_maps ? with_maps : FA_SPILLS_ACCEPTED;
        int32_t accepted = w->how == FA_MODELLED ? 0 : measured;
        c->regs = r[i].registers > c->regs ? r[i].registers : c->regs;
        c->spills = spills > c->spills ? spills : c->spills;
        note = note[0] ? note : r[i].note;
        if (spills > accepted && !why[0])
            snprintf(why, sizeof why, "spills: %d > %d bytes", spills, accepted);
    }
    if (why[0])
        fa_candidate_decide(c, FA_BAD_CONSTRAINT, why);
    else if (note[0])
        fa_candidate_decide(c, FA_BAD_CONSTRAINT, note);
}

/* Not the candidate's fault: there is no use in trying the others. */
static bool is_fatal(fa_status st)
{
    return st == FA_NOMEM || st == FA_NO_NVRTC || st == FA_NO_DRIVER || st == FA_INTERRUPTED;
}

static fa_status build(const fa_compile_pool *w, fa_candidate *c, const fa_source *s)
{
    const fa_problem *p = &w->problem;
    fa_subject about = { p, &c->config };
    fa_resources r[FA_SOURCE_STEPS];
    fa_entry e;
    if (w->site.timed) {
        fa_status st = fa_plan_make(w->site.ctx, p, &c->config, "tuned", &c->plan);
        if (st == FA_OK)
            use_resources(c, c->plan->kernel->resources, c->plan->kernel->step, c->plan->kernel->steps, w);
        return st;
    }
    fa_status st = fa_build_image(w->site.store, w->site.compiler, s, w->site.arch->name, FA_IMAGE_STEPS, about, false, &e, NULL);
    if (st != FA_OK)
        return st;
    for (int i = 0; i < s->steps; i++)
        r[i] = fa_resources_parse(e.log, s->step[i].entry);
    use_resources(c, r, s->step, s->steps, w);
    fa_entry_free(&e);
    return FA_OK;
}

static bool recall(fa_compile_pool *w, fa_candidate *c)
{
    pthread_mutex_lock(&w->mutex);
    bool known = !w->stop && !w->again && fa_journal_recall(w->journal, c);
    pthread_mutex_unlock(&w->mutex);
    return known;
}

static fa_status handle(fa_compile_pool *w, fa_gen *g, fa_candidate *c)
{
    fa_source s;
    fa_status st = fa_render(g, &w->problem, &c->config, w->site.arch, w->site.budget, &s);
    if (st == FA_OK) {
        c->source[0] = s.hash[0];
        c->source[1] = s.hash[1];
        c->smem = s.step[0].smem;
        c->threads = s.step[0].threads;
        if (!recall(w, c))
            st = build(w, c, &s);
        fa_source_free(&s);
    }
    if (st == FA_OK && !c->decided && c->regs > 0)
        fa_model_cost(g, &w->problem, &c->config, w->site.arch, c->regs, &c->cost);
    if (st != FA_OK && !is_fatal(st))
        fa_candidate_decide(c, st == FA_DEVICE ? FA_BAD_LAUNCH : FA_BAD_COMPILE, fa_last_error());
    return is_fatal(st) ? st : FA_OK;
}

static void *work(void *user)
{
    fa_compile_pool *w = user;
    fa_gen *g = NULL;
    fa_compiler_heed(&w->given_up);
    fa_status st = fa_gen_open(&g, w->site.template_dir);
    pthread_mutex_lock(&w->mutex);
    while (st == FA_OK && !w->stop && w->next < w->n) {
        size_t i = w->next++;
        fa_candidate c = w->candidate[i];
        pthread_mutex_unlock(&w->mutex);
        st = handle(w, g, &c);
        pthread_mutex_lock(&w->mutex);
        if (w->stop || st != FA_OK)
            break;
        w->candidate[i] = c;
        w->done[i] = true;
        pthread_cond_broadcast(&w->progress);
    }
    if (st != FA_OK && !w->stop && w->fatal == FA_OK) {
        w->fatal = st;
        snprintf(w->why, sizeof w->why, "%.*s", (int)sizeof w->why - 1, fa_last_error());
        w->stop = true;
    }
    pthread_mutex_unlock(&w->mutex);
    fa_gen_close(g);
    fa_compiler_heed(NULL);
    pthread_mutex_lock(&w->mutex);
    w->running--;
    pthread_cond_broadcast(&w->progress);
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

fa_status fa_compile_pool_start(fa_compile_pool **out, const fa_site *site, const fa_journal *j, fa_candidate *candidates, size_t n,
                                int threads, bool again)
{
    pthread_condattr_t attr;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int want = threads > 0 ? threads : (int)(cores > 0 ? cores : 1);
    fa_compile_pool *w = *out = calloc(1, sizeof *w);
    bool *done = calloc(n + 1, sizeof *done);
    if (!w || !done) {
        free(w);
        free(done);
        *out = NULL;
        return fa_fail(FA_NOMEM, "no memory for compile threads");
    }
    *w = (fa_compile_pool){
        .site = *site, .problem = j->problem, .how = j->how, .journal = j, .candidate = candidates, .done = done, .n = n, .again = again
    };
    pthread_mutex_init(&w->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->progress, &attr);
    pthread_condattr_destroy(&attr);
    want = want < THREADS_MOST ? want : THREADS_MOST;
    pthread_mutex_lock(&w->mutex);
    while (w->threads < want && pthread_create(&w->thread[w->threads], NULL, work, w) == 0)
        w->running = ++w->threads;
    pthread_mutex_unlock(&w->mutex);
    if (w->threads)
        return FA_OK;
    fa_compile_pool_stop(w, 0);
    *out = NULL;
    return fa_fail(FA_NOMEM, "no compile thread could be started");
}

bool fa_compile_pool_wait(fa_compile_pool *w, size_t i, double seconds, fa_status *fatal)
{
    struct timespec until = fa_clock_in(CLOCK_MONOTONIC, seconds);
    int late = 0;
    pthread_mutex_lock(&w->mutex);
    while (!w->done[i] && w->fatal == FA_OK && !late)
        late = seconds < 0 ? pthread_cond_wait(&w->progress, &w->mutex) : pthread_cond_timedwait(&w->progress, &w->mutex, &until);
    *fatal = w->done[i] || w->fatal == FA_OK ? FA_OK : fa_fail(w->fatal, "%s", w->why);
    bool done = w->done[i];
    pthread_mutex_unlock(&w->mutex);
    return done;
}

void fa_compile_pool_stop(fa_compile_pool *w, double patience)
{
    if (!w)
        return;
    struct timespec until = fa_clock_in(CLOCK_MONOTONIC, patience);
    int late = 0;
    atomic_store(&w->given_up, true);
    pthread_mutex_lock(&w->mutex);
    w->stop = true;
    while (w->running && !late)
        late = patience > 0 ? pthread_cond_timedwait(&w->progress, &w->mutex, &until) : pthread_cond_wait(&w->progress, &w->mutex);
    atomic_fetch_add(&left_behind, w->running);
    bool all = w->running == 0;
    pthread_mutex_unlock(&w->mutex);
    for (int i = 0; i < w->threads; i++)
        all ? pthread_join(w->thread[i], NULL) : pthread_detach(w->thread[i]);
    if (!all)
        return;
    pthread_cond_destroy(&w->progress);
    pthread_mutex_destroy(&w->mutex);
    free(w->done);
    free(w);
}

int fa_compile_pool_left(void)
{
    return atomic_load(&left_behind);
}
