/* The search without a device: compiled for an arch, gated, ranked by the model, recorded, resumed, interrupted. */
#include "autotune/search/compile_pool.h"
#include "autotune/search/search.h"
#include "gen/problem.h"
#include "search_toy.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <string.h>
#include <time.h>

typedef struct bench {
    fa_store *store;
    fa_compiler *compiler;
    fa_site site;
    fa_problem p;
} bench;

static void open_bench(bench *b, const char *root)
{
    *b = (bench){ .store = fa_store_open(root, NULL, NULL), .compiler = fa_compiler_open(NULL), .p = FA_PROBLEM_INIT };
    cr_assert(b->store && b->compiler);
    b->site = (fa_site){ .arch = fa_arch_find("sm_80"), .store = b->store, .compiler = b->compiler };
    b->p.dtype = FA_BF16;
    b->p.d = 32;
    b->p.mask = FA_MASK_CAUSAL;
    b->p.hq = b->p.hkv = 4;
    b->p.b = 1;
    b->p.sq = b->p.sk = 1024;
}

/* The same with the toy for templates, in the scratch folder. */
static void open_toys(bench *b)
{
    static char toys[sizeof scratch + 8];
    open_bench(b, scratch);
    snprintf(toys, sizeof toys, "%s/toys", scratch);
    cr_assert(search_toy_write(toys));
    b->site.template_dir = toys;
}

static void close_bench(bench *b)
{
    fa_compiler_close(b->compiler);
    fa_store_close(b->store);
}

static size_t on_record(const bench *b)
{
    fa_records rs = fa_records_load(b->store, NULL, NULL);
    size_t n = rs.n;
    for (size_t i = 0; i < rs.n; i++) {
        cr_assert_eq(rs.r[i].how, FA_MODELLED);
        cr_assert_str_eq(rs.r[i].chip, "sm_80");
        cr_assert(!strncmp(rs.r[i].compiler, "nvrtc ", 6));
        cr_assert_str_eq(rs.r[i].driver, "none");
        cr_assert(rs.r[i].source[0] || rs.r[i].source[1]);
    }
    fa_records_free(&rs);
    return n;
}

Test(tune_model, compiles_ranks_records_and_resumes)
{
    bench b;
    fa_tuning t;
    scratch_make();
    open_toys(&b);
    fa_search_options opt = { .family = "toy", .limit = 5 };
    cr_assert_eq(fa_search(&b.site, &b.p, &opt, &t), FA_OK, "%s", fa_last_error());
    cr_assert_eq(t.how, FA_MODELLED);
    cr_assert_eq(t.n, 5);
    cr_assert_gt(t.counts.space, t.counts.fits);
    cr_assert_gt(t.counts.fits, 5);
    cr_assert(t.counts.space > t.counts.sound && t.counts.sound >= t.counts.fits_shared && t.counts.fits_shared > t.counts.fits);
    size_t rejected = 0;
    for (size_t i = 0; i < t.n_rejected; i++) {
        cr_assert(t.rejected[i].n > 0 && t.rejected[i].why[0] && (i == 0 || t.rejected[i].n <= t.rejected[i - 1].n));
        rejected += t.rejected[i].n;
    }
    cr_assert_eq(rejected, t.counts.space - t.counts.fits);
    cr_assert_eq(t.baseline, t.candidate, "what would run is tried first");
    cr_assert_str_eq(t.baseline_from, "the model's best");
    cr_assert_eq(t.counts.compiled, 5);
    cr_assert_eq(t.counts.timed, 0);
    cr_assert_not_null(t.winner);
    size_t spilled = 0;
    for (size_t i = 0; i < t.n; i++) {
        const fa_candidate *c = &t.candidate[i];
        cr_assert(c->decided);
        spilled += c->spills > 0;
        cr_assert(c->regs > 16 && c->regs <= 255, "%d registers", c->regs);
        cr_assert_eq(c->outcome == FA_RAN, c->spills == 0);
        if (c->outcome == FA_RAN)
            cr_assert(c->seconds > 0 && c->seconds >= t.winner->seconds);
        else
            cr_assert(!strncmp(c->why, "spills: ", 8), "%s", c->why);
    }
    cr_assert_eq(spilled, 1);
    fa_config winner = t.winner->config;
    fa_tuning_free(&t);
    cr_assert_eq(on_record(&b), 5);

    cr_assert_eq(fa_search(&b.site, &b.p, &opt, &t), FA_OK);
    cr_assert_eq(t.counts.resumed, 5);
    cr_assert_eq(t.counts.compiled, 0);
    cr_assert(fa_config_equal(&t.winner->config, &winner));
    fa_tuning_free(&t);
    cr_assert_eq(on_record(&b), 5);

    opt.limit = 7; /* the same five and two more */
    cr_assert_eq(fa_search(&b.site, &b.p, &opt, &t), FA_OK);
    cr_assert_eq(t.counts.resumed, 5);
    cr_assert_eq(t.counts.compiled, 2);
    fa_tuning_free(&t);
    cr_assert_eq(on_record(&b), 7);

    opt.again = true;
    cr_assert_eq(fa_search(&b.site, &b.p, &opt, &t), FA_OK);
    cr_assert_eq(t.counts.compiled, 7);
    fa_tuning_free(&t);
    cr_assert_eq(on_record(&b), 14);

    opt.again = false;
    b.p.sq = b.p.sk = 8192; /* another bucket */
    cr_assert_eq(fa_search(&b.site, &b.p, &opt, &t), FA_OK);
    cr_assert_eq(t.counts.resumed, 0);
    fa_tuning_free(&t);
    close_bench(&b);
    scratch_remove();
}

static int stop_at_third(void *user, const fa_tuning *t, const char *stage, const fa_candidate *latest, double done)
{
    int *calls = user;
    (void)stage;
    cr_assert(t->n >= 1 && done >= 0 && done <= 1 && latest);
    ++*calls; /* more than once while a candidate is compiled */
    return t->counts.compiled == 2;
}

Test(tune_model, an_interruption_keeps_what_is_known)
{
    bench b;
    fa_tuning t;
    int calls = 0;
    scratch_make();
    open_toys(&b);
    fa_search_options opt = { .family = "toy", .limit = 6, .threads = 1, .progress = stop_at_third, .user = &calls };
    cr_assert_eq(fa_search(&b.site, &b.p, &opt, &t), FA_INTERRUPTED);
    cr_assert_geq(calls, 3);
    cr_assert_eq(t.counts.compiled, 2);
    cr_assert_not_null(t.winner);
    fa_tuning_free(&t);
    cr_assert_eq(on_record(&b), 2);

    opt.progress = NULL;
    cr_assert_eq(fa_search(&b.site, &b.p, &opt, &t), FA_OK);
    cr_assert_eq(t.counts.resumed, 2);
    cr_assert_eq(t.counts.compiled, 4);
    fa_tuning_free(&t);
    close_bench(&b);
    scratch_remove();
}

#define BUDGET 2 /* seconds */

/* At the third candidate the budget is slept away, so that the search ends there on a machine of any speed, if not before. */
static int sleep_at_third(void *user, const fa_tuning *t, const char *stage, const fa_candidate *latest, double done)
{
    int *calls = user;
    (void)stage, (void)latest, (void)done;
    ++*calls;
    if (t->counts.compiled == 2)
        for (struct timespec left = { .tv_sec = BUDGET }; nanosleep(&left, &left) != 0;)
            ;
    return 0;
}

Test(tune_model, a_time_budget_ends_it)
{
    bench b;
    fa_tuning t;
    int calls = 0;
    scratch_make();
    open_toys(&b);
    fa_search_options opt = { .family = "toy", .limit = -1, .seconds = BUDGET, .progress = sleep_at_third, .user = &calls };
    fa_status st = fa_search(&b.site, &b.p, &opt, &t);
    cr_assert_eq(st, t.winner ? FA_OK : FA_INTERRUPTED, "%s", fa_last_error());
    cr_assert(t.out_of_time);
    cr_assert_gt(t.n, 3);
    cr_assert_eq(t.n, t.counts.kept);
    cr_assert_leq(t.n, t.counts.fits);
    cr_assert_leq(t.counts.compiled, 3); /* what was decided before the time was up is kept */
    cr_assert_geq(calls, 1);
    cr_assert_eq(on_record(&b), t.counts.compiled);
    fa_tuning_free(&t);
    close_bench(&b);
    scratch_remove();
}

Test(tune_model, a_budget_that_is_up_at_once_has_no_winner)
{
    bench b;
    fa_tuning t;
    int calls = 0;
    scratch_make();
    open_toys(&b);
    fa_search_options opt = { .family = "toy", .limit = 3, .seconds = 1e-9, .progress = sleep_at_third, .user = &calls };
    cr_assert_eq(fa_search(&b.site, &b.p, &opt, &t), FA_INTERRUPTED);
    cr_assert(strstr(fa_last_error(), "before any candidate had run"), "%s", fa_last_error());
    cr_assert(t.out_of_time);
    cr_assert_null(t.winner);
    cr_assert_eq(calls, 0);
    cr_assert_eq(on_record(&b), 0);
    fa_tuning_free(&t);
    close_bench(&b);
    scratch_remove();
}

Test(tune_model, what_is_wrong_is_told)
{
    bench b;
    fa_tuning t;
    open_bench(&b, "");
    fa_search_options opt = { .limit = -2 };
    cr_assert_eq(fa_search(&b.site, &b.p, &opt, &t), FA_INVALID);
    fa_tuning_free(&t);
    b.site.budget = 512;
    cr_assert_eq(fa_search(&b.site, &b.p, NULL, &t), FA_NO_FIT, "%s", fa_last_error());
    fa_tuning_free(&t);
    b.site.budget = 0;
    b.p.d = 584;
    cr_assert_neq(fa_search(&b.site, &b.p, NULL, &t), FA_OK);
    fa_tuning_free(&t);
    b.p.d = 64;
    fa_compiler_close(b.compiler);
    b.site.compiler = b.compiler = fa_compiler_open("/nonexistent/libnvrtc.so");
    cr_assert_eq(fa_search(&b.site, &b.p, NULL, &t), FA_NO_NVRTC);
    fa_tuning_free(&t);
    close_bench(&b);
}
