/* The whole search on a driver that only pretends, with a backend whose times and faults are known: nothing is timed that was not verified,
 * failures are on record and cost nothing else, neighbours are found, a second run resumes. */
#include "autotune/candidate/process.h"
#include "autotune/search/journal.h"
#include "autotune/search/search.h"
#include "autotune/search/seeds.h"
#include "fake_driver.h"
#include "test_cache_scratch.h"
#include "test_gen_toy.h"
#include "verify/operands/random.h"
#include <math.h>

static const char lua[] =
    "return { doc = 'x', default = false,\n"
    "  tunables = { { 'br', { 16, 32, 64 }, 'r' }, { 'bc', { 8, 16, 24, 32 }, 'c' }, { 'kind', { 0, 1, 2 }, 'k' } },\n"
    "  supports = function() return true end,\n"
    "  constraints = { { 'usual', function(p, c) if c.kind == 0 then return true end return false, 'seldom pays' end, search = true } },\n"
    "  layout = function(p, c) return { bytes = c.br * c.bc, threads = 64, regs = 32 } end,\n"
    "  steps = function(p, c) return { { entry = 'toy', grid = ('sq/%d hq b'):format(c.br) } } end,\n"
    "  work = function(p, c) return { rows = c.br, cols = c.bc } end }\n";
static const char cu[] = "extern \"C\" __global__ void toy(int *o) { o[threadIdx.x] = $(c.br) + $(c.bc) * $(c.kind); }\n";

/* A family with many configs that are nearly as fast as the best. */
static const char wide_lua[] =
    "return { doc = 'x', default = false,\n"
    "  tunables = { { 'br', { 16, 32, 48, 64, 80, 96, 112, 128 }, 'r' }, { 'bc', { 8, 16, 24, 32, 40, 48, 56, 64 }, 'c' },\n"
    "               { 'kind', { 0, 1, 2, 3, 4, 5, 6, 7 }, 'k' } },\n"
    "  supports = function() return true end,\n"
    "  constraints = {},\n"
    "  layout = function(p, c) return { bytes = c.br * c.bc, threads = 64, regs = 32 } end,\n"
    "  steps = function(p, c) return { { entry = 'wide', grid = ('sq/%d hq b'):format(c.br) } } end,\n"
    "  work = function(p, c) return { rows = 16, cols = c.bc } end }\n";
static const char wide_cu[] = "extern \"C\" __global__ void wide(int *o) { o[threadIdx.x] = $(c.br) + $(c.bc) * $(c.kind); }\n";

typedef struct world {
    fa_measure_backend backend, *child;
    char right[256][64]; /* configs that passed */
    int n_right;
    int judged, samples, warm;
    const char *fault; /* the config whose samples fail, from the sample after `faults_after` */
    int faults_after, its_samples;
    const char *wrong, *dies;
    bool dead;
    fa_random random;
    double noise, drift; /* of a sample; of the clock, over all samples */
    const fa_candidate *judged_last;
    bool cool;
    double swing, slower;   /* rounds are up to so much slower than a first pass; by how much this one is */
    int rounds, its_rounds; /* those with the baseline in them, the first that was judged */
    bool its_turn;
} world;

static const char *name_of(const fa_candidate *c)
{
    static char text[64];
    fa_config_print(text, sizeof text, &c->config);
    return text;
}

/* The best is 32 x 24 of kind 1, which is not listed. */
static double truth(const fa_candidate *c)
{
    int br = fa_config_get(&c->config, "br", 0), bc = fa_config_get(&c->config, "bc", 0), kind = fa_config_get(&c->config, "kind", 0);
    if (!strcmp(c->config.family, "wide"))
        return 1e-4 * (1 + 0.015 * abs(br - 48) / 16) * (1 + 0.015 * abs(bc - 16) / 8) * (1 + 0.015 * abs(kind - 5));
    return 1e-4 * (1 + 0.10 * (br != 32)) * (1 + 0.04 * abs(bc - 24) / 8) * (1 + 0.03 * abs(kind - 1));
}

static fa_status judge(fa_measure_backend *backend, fa_candidate *c)
{
    world *w = backend->user;
    w->judged++;
    cr_assert_not_null(c->plan);
    if (w->wrong && !strcmp(name_of(c), w->wrong))
        return fa_fail(FA_WRONG, "O[0] is 1, should be 2");
    if (w->dies && !strcmp(name_of(c), w->dies)) {
        w->dead = true;
        return fa_fail(FA_DEVICE, "CUDA_ERROR_ILLEGAL_ADDRESS");
    }
    cr_assert_lt(w->n_right, 256);
    strcpy(w->right[w->n_right++], name_of(c));
    w->judged_last = c;
    w->cool = true;
    return FA_OK;
}

/* What the clock makes of a time: nothing in a first pass, which comes right after the verification; in a round something of its own. */
static double clock_of(world *w, const fa_candidate *c)
{
    if (c == w->judged_last)
        return 1;
    w->judged_last = NULL;
    if (w->cool) {
        w->slower = 1 + w->swing * fa_random_unit(&w->random);
        w->rounds++;
        w->its_turn = true;
    }
    w->cool = false;
    if (w->its_turn && !strcmp(name_of(c), w->right[0])) {
        w->its_rounds++;
        w->its_turn = false;
    }
    return w->slower > 0 ? w->slower : 1;
}

static fa_status sample(fa_measure_backend *backend, fa_candidate *c, bool warm)
{
    world *w = backend->user;
    bool passed = false;
    for (int i = 0; i < w->n_right; i++)
        passed |= !strcmp(w->right[i], name_of(c));
    cr_assert(passed || c->resumed, "%s is timed and was never verified", name_of(c));
    if (w->fault && !strcmp(name_of(c), w->fault) && w->its_samples++ >= w->faults_after)
        return fa_fail(FA_DEVICE, "CUDA_ERROR_LAUNCH_TIMEOUT");
    *(warm ? &w->warm : &w->samples) += 1;
    fa_samples_add(warm ? &c->warm_samples : &c->samples, truth(c) * (1 + 1e-4 * (w->samples % 7)) *
                                                              exp(w->noise * fa_random_normal(&w->random)) *
                                                              (1 + w->drift * fmin(1, w->samples / 300.0)) * clock_of(w, c));
    return FA_OK;
}

static bool alive(fa_measure_backend *backend)
{
    return !((world *)backend->user)->dead;
}

typedef struct scene {
    char dir[64];
    fa_context *ctx;
    fa_site site;
    fa_problem p;
    world w;
} scene;

static void open_scene(scene *s)
{
    memset(s, 0, sizeof *s);
    scratch_make();
    toy_dir(s->dir, cu);
    toy_write(s->dir, "toy.lua", lua);
    fa_options o = FA_OPTIONS_INIT;
    o.cache_dir = scratch;
    o.template_dir = s->dir;
    const cu_driver *driver = fake_driver();
    fake_ptx(false);
    cr_assert_eq(fa_create_on(&s->ctx, &o, driver, 0), FA_OK, "%s", fa_last_error());
    s->site = fa_site_of(s->ctx);
    cr_assert(s->site.timed);
    cr_assert_eq(fa_problem_parse(&s->p, "bf16,d=64,b=1,hq=2,hkv=2,sq=256,sk=256"), FA_OK);
    s->w.backend = (fa_measure_backend){ .judge = judge, .sample = sample, .alive = alive, .user = &s->w };
}

static void close_scene(scene *s)
{
    fa_destroy(s->ctx);
    fake_ptx(true);
    toy_remove(s->dir, NULL);
    scratch_remove();
}

static fa_search_options options(scene *s, int limit)
{
    return (fa_search_options){ .limit = limit, .family = "toy", .threads = 2, .backend = &s->w.backend };
}

static fa_records records(const scene *s)
{
    return fa_records_load(s->site.store, s->site.arch->chip, NULL);
}

/* The newest record of a config. */
static const fa_record *of(const fa_records *rs, const char *config)
{
    fa_config c;
    cr_assert_eq(fa_config_parse(&c, config), FA_OK);
    for (size_t i = rs->n; i-- > 0;)
        if (fa_config_equal(&rs->r[i].config, &c))
            return &rs->r[i];
    cr_assert_fail("%s is not on record", config);
    return NULL;
}

Test(tune_search, a_neighbour_that_is_not_listed_wins_and_everything_was_verified)
{
    scene s;
    fa_tuning t;
    open_scene(&s);
    fa_search_options o = options(&s, 6);
    s.w.wrong = "toy:br=32,bc=16,kind=0";
    cr_assert_eq(fa_search(&s.site, &s.p, &o, &t), FA_OK, "%s", fa_last_error());
    cr_assert_str_eq(name_of(t.winner), "toy:br=32,bc=24,kind=1");
    cr_assert_eq(t.winner->origin, FA_NEIGHBOUR);
    cr_assert_str_eq(t.strategy, "halving");
    cr_assert_eq(t.baseline, t.candidate);
    cr_assert_gt(t.counts.neighbours, 0);
    cr_assert_eq((int)t.counts.verified, s.w.n_right);
    cr_assert_eq(t.counts.timed, t.counts.verified);
    cr_assert_eq((int)(t.counts.verified + t.counts.failed), s.w.judged);
    cr_assert(t.winner->warm > 0 && t.winner->low > 0 && t.winner->verified && t.winner->quality == FA_QUALITY_STEADY);

    fa_records rs = records(&s);
    int ran = 0;
    for (size_t i = 0; i < rs.n; i++) {
        cr_assert_eq(rs.r[i].how, FA_MEASURED);
        cr_assert_eq(rs.r[i].outcome == FA_RAN, rs.r[i].verified);
        cr_assert_eq(rs.r[i].outcome == FA_RAN, rs.r[i].seconds > 0);
        cr_assert(rs.r[i].outcome != FA_RAN || rs.r[i].quality != FA_QUALITY_UNTOLD);
        ran += rs.r[i].outcome == FA_RAN;
    }
    cr_assert_gt(ran, (int)t.counts.timed, "the last common times are on record too");
    const fa_record *best = fa_records_best(&rs, &t.problem);
    cr_assert(fa_config_equal(&best->config, &t.winner->config));
    size_t times = 0, of_winner = 0;
    for (size_t i = 0; i < rs.n; i++) {
        of_winner += fa_config_equal(&rs.r[i].config, &t.winner->config);
        int year, month, day, hour, minute, second;
        cr_assert_eq(sscanf(rs.r[i].date, "%4d-%2d-%2dT%2d:%2d:%2dZ", &year, &month, &day, &hour, &minute, &second), 6, "\"%s\"",
                     rs.r[i].date);
        cr_assert(year >= 2024 && month >= 1 && month <= 12 && day >= 1 && strlen(rs.r[i].date) == 20, "%s", rs.r[i].date);
    }
    for (size_t k = 0; k < t.n; k++, times = 0) { /* of each as many lines as of the winner, or fewer */
        for (size_t i = 0; i < rs.n; i++)
            times += fa_config_equal(&rs.r[i].config, &t.candidate[k].config);
        cr_assert(times >= 1 && times <= of_winner, "%s: %zu lines, the winner has %zu", name_of(&t.candidate[k]), times, of_winner);
    }
    for (size_t i = 0; i < t.n; i++) { /* what a record is of: the text that is rendered for its config */
        fa_source text;
        const fa_candidate *c = &t.candidate[i];
        cr_assert_eq(fa_render_in(s.ctx, &t.problem, &c->config, &text), FA_OK, "%s", fa_last_error());
        cr_assert(c->source[0] == text.hash[0] && c->source[1] == text.hash[1], "%s", name_of(c));
        fa_source_free(&text);
    }
    cr_assert(best->source[0] == t.winner->source[0] && best->source[1] == t.winner->source[1]);
    cr_assert(best->warm > 0 && best->low > 0 && best->low <= best->seconds && best->high >= best->seconds);
    if (t.counts.failed)
        cr_assert_eq(of(&rs, s.w.wrong)->outcome, FA_BAD_RESULT);
    fa_records_free(&rs);
    size_t tried = t.n;
    fa_tuning_free(&t);

    int samples = s.w.samples, judged = s.w.judged;
    cr_assert_eq(fa_search(&s.site, &s.p, &o, &t), FA_OK, "%s", fa_last_error());
    cr_assert_eq(t.counts.resumed, t.n);
    cr_assert_leq(t.n, tried);
    cr_assert_str_eq(name_of(t.winner), "toy:br=32,bc=24,kind=1");
    cr_assert(s.w.samples == samples && s.w.judged == judged, "a second run measures nothing");
    fa_tuning_free(&t);

    o.again = true;
    cr_assert_eq(fa_search(&s.site, &s.p, &o, &t), FA_OK);
    cr_assert_eq(t.counts.resumed, 0);
    cr_assert_gt(s.w.samples, samples);
    fa_tuning_free(&t);
    close_scene(&s);
}

Test(tune_search, noise_and_a_falling_clock_do_not_change_the_pick)
{
    scene s;
    fa_tuning t;
    open_scene(&s);
    for (int run = 0; run < 6; run++) {
        fa_search_options o = options(&s, 8);
        o.again = true;
        o.strategy = run % 2 ? "model" : "halving";
        s.w =
            (world){ .backend = s.w.backend, .random = { fa_random_mix((uint64_t)run) }, .noise = 0.004, .drift = run < 4 ? 0.05 : -0.05 };
        s.w.backend.user = &s.w;
        cr_assert_eq(fa_search(&s.site, &s.p, &o, &t), FA_OK, "%s", fa_last_error());
        cr_assert_leq(truth(t.winner), 1.01e-4, "run %d picks %s", run, name_of(t.winner));
        fa_records rs = records(&s);
        const fa_record *best = fa_records_best(&rs, &t.problem);
        cr_assert(fa_config_equal(&best->config, &t.winner->config), "run %d: what follows from the records is what was picked", run);
        fa_records_free(&rs);
        fa_tuning_free(&t);
    }
    close_scene(&s);
}

/* A chip that idles while kernels are compiled and verified is fast for a moment, then as slow as it is hot: each round has a clock of its
 * own. */
Test(tune_search, a_round_at_a_slow_clock_is_not_held_against_those_that_met_in_it)
{
    scene s;
    fa_tuning t;
    open_scene(&s);
    toy_write(s.dir, "wide.lua", wide_lua);
    toy_write(s.dir, "wide.cu", wide_cu);
    for (int run = 0; run < 12; run++) {
        fa_search_options o = options(&s, 24);
        o.family = "wide";
        o.again = true;
        o.strategy = run % 2 ? "model" : "halving";
        s.w = (world){ .backend = s.w.backend, .random = { fa_random_mix((uint64_t)run) }, .swing = 0.25, .noise = 0.001 };
        s.w.backend.user = &s.w;
        cr_assert_eq(fa_search(&s.site, &s.p, &o, &t), FA_OK, "%s", fa_last_error());
        cr_expect_leq(truth(t.winner), 1.01e-4, "run %d picks %s", run, name_of(t.winner));
        cr_expect_gt(s.w.rounds, 1);
        cr_expect_eq(s.w.its_rounds, s.w.rounds, "run %d: the baseline met in %d of %d rounds", run, s.w.its_rounds, s.w.rounds);
        fa_tuning_free(&t);
    }
    close_scene(&s);
}

static int stop_in_finals(void *user, const fa_tuning *t, const char *stage, const fa_candidate *latest, double done)
{
    world *w = user;
    (void)latest, (void)done;
    return t->n > 4 && !strcmp(stage, "final") && ++w->its_samples > 4; /* some passes of it are over */
}

/* What a report shows of a search that was stopped is on record: the last common times of those that met, too. */
Test(tune_search, stopped_in_its_finals_all_times_are_on_record)
{
    scene s;
    fa_tuning t;
    open_scene(&s);
    fa_search_options o = options(&s, 6);
    o.progress = stop_in_finals;
    o.user = &s.w;
    s.w.noise = 0.01;
    cr_assert_eq(fa_search(&s.site, &s.p, &o, &t), FA_INTERRUPTED, "%s", fa_last_error());
    fa_records rs = records(&s);
    size_t met = 0;
    for (size_t i = 0; i < t.n; i++) {
        const fa_candidate *c = &t.candidate[i];
        met += c->met;
        if (!c->decided || c->outcome != FA_RAN)
            continue;
        cr_expect_float_eq(of(&rs, name_of(c))->seconds, c->seconds, 1e-12, "%s: %g on record, %g shown", name_of(c),
                           of(&rs, name_of(c))->seconds, c->seconds);
    }
    cr_assert_gt(met, 1);
    fa_records_free(&rs);
    fa_tuning_free(&t);
    close_scene(&s);
}

Test(tune_search, exhaustive_gives_all_the_same_and_tries_no_neighbour)
{
    scene s;
    fa_tuning t;
    open_scene(&s);
    fa_search_options o = options(&s, 0);
    o.strategy = "exhaustive";
    cr_assert_eq(fa_search(&s.site, &s.p, &o, &t), FA_OK, "%s", fa_last_error());
    cr_assert_eq(t.n, 12);
    cr_assert_eq(t.counts.timed, 12);
    cr_assert_eq(t.counts.neighbours, 0);
    cr_assert_str_eq(name_of(t.winner), "toy:br=32,bc=24,kind=0");
    fa_tuning_free(&t);
    o.strategy = "annealing";
    cr_assert_eq(fa_search(&s.site, &s.p, &o, &t), FA_INVALID);
    cr_assert(strstr(fa_last_error(), "halving, exhaustive, model, random"), "%s", fa_last_error());
    fa_tuning_free(&t);
    close_scene(&s);
}

/* It survives its first pass, and faults in a round, or when all others have lost to it. */
Test(tune_search, the_fastest_faults_at_any_time)
{
    for (int after = 14; after < 45; after += 20) {
        scene s;
        fa_tuning t;
        open_scene(&s);
        fa_search_options o = options(&s, 12);
        s.w.fault = "toy:br=32,bc=24,kind=1";
        s.w.faults_after = after;
        cr_assert_eq(fa_search(&s.site, &s.p, &o, &t), FA_OK, "%s", fa_last_error());
        bool faulted = s.w.its_samples > after;
        cr_expect_eq(strcmp(name_of(t.winner), s.w.fault) == 0, !faulted, "after %d samples the winner is %s", after, name_of(t.winner));
        cr_expect_eq(t.winner->outcome, FA_RAN);
        cr_expect(!faulted || truth(t.winner) < 1.05e-4, "%d: %s", after, name_of(t.winner));
        fa_tuning_free(&t);
        close_scene(&s);
        if (!faulted)
            break;
    }
}

/* Without a compiler no candidate can be tried: that is said once, and is no outcome of theirs. */
Test(tune_search, no_compiler_ends_it)
{
    scene s;
    fa_tuning t;
    open_scene(&s);
    fa_destroy(s.ctx);
    fa_options co = FA_OPTIONS_INIT;
    co.cache_dir = scratch;
    co.template_dir = s.dir;
    co.nvrtc = "/nowhere/libnvrtc.so";
    const cu_driver *driver = fake_driver();
    fake_ptx(false);
    cr_assert_eq(fa_create_on(&s.ctx, &co, driver, 0), FA_OK, "%s", fa_last_error());
    s.site = fa_site_of(s.ctx);
    fa_search_options o = options(&s, 6);
    cr_expect_eq(fa_search(&s.site, &s.p, &o, &t), FA_NO_NVRTC, "%s", fa_last_error());
    cr_expect(strstr(fa_last_error(), "/nowhere/libnvrtc.so"), "%s", fa_last_error());
    fa_records rs = records(&s);
    cr_expect_eq(rs.n, 0, "nothing of it is on record");
    fa_records_free(&rs);
    fa_tuning_free(&t);
    close_scene(&s);
}

Test(tune_search, one_that_faults_among_the_fastest_is_on_record_and_the_others_go_on)
{
    scene s;
    fa_tuning t;
    open_scene(&s);
    fa_search_options o = options(&s, 12);
    s.w.fault = "toy:br=32,bc=24,kind=1"; /* the best */
    s.w.faults_after = 4;                 /* it survives its first pass, and faults in a round */
    cr_assert_eq(fa_search(&s.site, &s.p, &o, &t), FA_OK, "%s", fa_last_error());
    cr_assert_str_neq(name_of(t.winner), s.w.fault);
    fa_records rs = records(&s);
    const fa_record *r = of(&rs, s.w.fault);
    cr_assert_eq(r->outcome, FA_BAD_LAUNCH);
    cr_assert(strstr(r->why, "CUDA_ERROR_LAUNCH_TIMEOUT"), "%s", r->why);
    const fa_record *best = fa_records_best(&rs, &t.problem);
    cr_assert(fa_config_equal(&best->config, &t.winner->config));
    fa_records_free(&rs);
    fa_tuning_free(&t);
    close_scene(&s);
}

/* Of two the faster one faults at any time, also when only the other is left: what failed is never the winner. */
Test(tune_search, of_two_the_one_that_faults_does_not_win)
{
    char faster[64] = "";
    bool faulted = true;
    for (int after = 0; faulted && after < 100; after += after < 8 ? 8 : 4) {
        scene s;
        fa_tuning t;
        open_scene(&s);
        fa_search_options o = options(&s, 1); /* and the baseline */
        o.strategy = "exhaustive";
        s.w.fault = faster[0] ? faster : NULL;
        s.w.faults_after = after;
        cr_assert_eq(fa_search(&s.site, &s.p, &o, &t), FA_OK, "%s", fa_last_error());
        cr_assert_eq(t.n, 2);
        faulted = !faster[0] || s.w.its_samples > after;
        cr_assert_not_null(t.winner);
        cr_expect_eq(t.winner->outcome, FA_RAN, "after %d samples: %s", after, t.winner->why);
        if (faster[0])
            cr_expect_eq(strcmp(name_of(t.winner), faster) == 0, !faulted, "after %d samples the winner is %s", after, name_of(t.winner));
        else
            strcpy(faster, name_of(t.winner));
        fa_tuning_free(&t);
        close_scene(&s);
    }
    cr_expect_not(faulted, "it has fewer than 100 samples");
}

static int driver_version;

static CUresult told_version(int *v)
{
    *v = driver_version;
    return CUDA_SUCCESS;
}

Test(tune_search, the_driver_is_named_by_both_its_numbers)
{
    static const struct {
        int version;
        const char *name;
    } rows[] = { { 13000, "cuda 13.0" }, { 12090, "cuda 12.9" }, { 11080, "cuda 11.8" } };
    scene s;
    open_scene(&s);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_journal j;
        driver_version = rows[i].version;
        cu_driver d = *fake_driver();
        d.cuDriverGetVersion = told_version;
        fa_options o = FA_OPTIONS_INIT;
        fa_destroy(s.ctx);
        o.cache_dir = scratch;
        o.template_dir = s.dir;
        fake_ptx(false);
        d.takes_ptx = false;
        cr_assert_eq(fa_create_on(&s.ctx, &o, &d, 0), FA_OK, "%s", fa_last_error());
        s.site = fa_site_of(s.ctx);
        cr_assert_eq(fa_journal_open(&j, &s.site, &s.p, FA_MEASURED), FA_OK, "%s", fa_last_error());
        cr_expect_str_eq(j.driver, rows[i].name);
        fa_journal_close(&j);
        fa_destroy(s.ctx);
        s.ctx = NULL;
    }
    close_scene(&s);
}

Test(tune_search, a_context_that_is_gone_ends_it_and_the_next_run_passes_over)
{
    scene s;
    fa_tuning t;
    open_scene(&s);
    fa_search_options o = options(&s, 12);
    s.w.dies = "toy:br=32,bc=24,kind=0";
    cr_assert_eq(fa_search(&s.site, &s.p, &o, &t), FA_DEVICE);
    cr_assert(strstr(fa_last_error(), "on record"), "%s", fa_last_error());
    fa_tuning_free(&t);
    s.w.dead = false;
    cr_assert_eq(fa_search(&s.site, &s.p, &o, &t), FA_OK, "%s", fa_last_error());
    for (size_t i = 0; i < t.n; i++)
        if (!strcmp(name_of(&t.candidate[i]), s.w.dies))
            cr_assert(t.candidate[i].resumed && t.candidate[i].outcome == FA_BAD_LAUNCH);
    cr_assert_not_null(t.winner);
    fa_tuning_free(&t);
    close_scene(&s);
}

#define HANGS "toy:br=16,bc=24,kind=0"

/* Judging and first times come from a child that knows the tunable "does"; rounds are taken here. */
static fa_status child_judge(fa_measure_backend *backend, fa_candidate *c)
{
    world *w = backend->user;
    fa_candidate told = *c;
    fa_config_set(&told.config, "does",
                  !strcmp(name_of(c), HANGS)                                                            ? 3
                  : fa_config_get(&c->config, "br", 0) == 16 || fa_config_get(&c->config, "bc", 0) == 8 ? 2
                                                                                                        : 0);
    fa_config_set(&told.config, "us", (int)lround(truth(c) * 1e6));
    fa_status st = fa_measure_backend_judge(w->child, &told);
    if (st == FA_OK)
        strcpy(w->right[w->n_right++], name_of(c));
    return st;
}

static fa_status child_first(fa_measure_backend *backend, fa_candidate *c, int n)
{
    return ((world *)backend->user)->child->first(((world *)backend->user)->child, c, n);
}

Test(tune_search, hangs_and_crashes_in_children_are_outcomes)
{
    scene s;
    fa_tuning t;
    char *argv[] = { getenv("FAGEN_FAKE_CANDIDATE_PROCESS"), NULL };
    size_t lost = 0;
    int outcomes[6] = { 0 };
    open_scene(&s);
    fa_search_options o = options(&s, 12);
    cr_assert_eq(fa_measure_backend_open_process(&s.w.child, &s.site, &s.p, argv, 2, &lost), FA_OK, "%s", fa_last_error());
    s.w.backend.judge = child_judge;
    s.w.backend.first = child_first;
    cr_assert_eq(fa_search(&s.site, &s.p, &o, &t), FA_OK, "%s", fa_last_error());
    cr_assert_str_eq(name_of(t.winner), "toy:br=32,bc=24,kind=1");
    for (size_t i = 0; i < t.n; i++) {
        int br = fa_config_get(&t.candidate[i].config, "br", 0), bc = fa_config_get(&t.candidate[i].config, "bc", 0);
        cr_assert_eq(t.candidate[i].outcome,
                     !strcmp(name_of(&t.candidate[i]), HANGS) ? FA_BAD_TIMEOUT
                     : br == 16 || bc == 8                    ? FA_BAD_LAUNCH
                                                              : FA_RAN,
                     "%s", name_of(&t.candidate[i]));
        outcomes[t.candidate[i].outcome]++;
    }
    cr_assert(outcomes[FA_BAD_TIMEOUT] == 1 && outcomes[FA_BAD_LAUNCH] >= 4);
    cr_assert_eq((int)lost, outcomes[FA_BAD_TIMEOUT] + outcomes[FA_BAD_LAUNCH]);
    fa_records rs = records(&s);
    cr_assert_eq(of(&rs, HANGS)->outcome, FA_BAD_TIMEOUT);
    fa_records_free(&rs);
    fa_tuning_free(&t);
    fa_measure_backend_close(s.w.child);
    close_scene(&s);
}

static int closed;

static void count_closed(fa_measure_backend *backend)
{
    (void)backend;
    closed++;
}

Test(tune_search, what_is_asked_for_in_vain)
{
    scene s;
    fa_tuning t;
    open_scene(&s);
    fa_search_options o = options(&s, 6);
    o.strategy = "exhaustion";
    cr_expect_eq(fa_search(&s.site, &s.p, &o, &t), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "strategy is \"exhaustion\"; accepted: ") && strstr(fa_last_error(), "halving"), "%s",
              fa_last_error());
    o.strategy = NULL;
    o.limit = -2;
    cr_expect_eq(fa_search(&s.site, &s.p, &o, &t), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "search: limit is -2; accepted: -1 or more"), "%s", fa_last_error());
    o.limit = 0;
    o.seconds = (double)NAN;
    cr_expect_eq(fa_search(&s.site, &s.p, &o, &t), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "search: seconds is nan; accepted: 0 or more"), "%s", fa_last_error());
    cr_expect_eq(s.w.samples, 0);
    close_scene(&s);
    fa_measure_backend backend = { .close = count_closed }, none = { .close = NULL };
    fa_measure_backend_close(&backend);
    fa_measure_backend_close(&none);
    fa_measure_backend_close(NULL);
    cr_expect_eq(closed, 1);
}

static void won(const scene *s, const char *problem, const char *config, fa_how how, bool verified)
{
    fa_record r = { .how = how, .seconds = 1e-3, .count = 30, .verified = verified, .version = "test", .date = "2026-01-01T00:00:00Z" };
    cr_assert_eq(fa_problem_parse(&r.problem, problem), FA_OK, "%s", fa_last_error());
    fa_problem_fill_shape(&r.problem);
    cr_assert_eq(fa_config_parse(&r.config, config), FA_OK);
    strcpy(r.chip, s->site.arch->chip);
    strcpy(r.arch, s->site.arch->name);
    cr_assert(fa_record_append(s->site.store, &r));
}

static bool is_seed(fa_pool *pool, const char *config)
{
    fa_config c;
    cr_assert_eq(fa_config_parse(&c, config), FA_OK);
    size_t at = fa_pool_find(pool, &c);
    return at != FA_NOWHERE && pool->p[at].origin == FA_SEED;
}

/* Configs that the space does not list are among the first where they won for a neighbour: this shape, other lengths, the other type of two
 * bytes. */
Test(tune_search, what_won_elsewhere_is_a_seed)
{
    scene s;
    fa_pool pool = { .n = 0 };
    fa_space space = { .n = 0 };
    fa_gen *g;
    open_scene(&s);
    won(&s, "bf16,d=64,b=1,hq=2,hkv=2,sq=256,sk=256", "toy:br=64,bc=24,kind=2", FA_MODELLED, true); /* nobody measured it */
    won(&s, "bf16,d=64,b=1,hq=2,hkv=2,sq=250,sk=250", "toy:br=16,bc=8,kind=2", FA_MEASURED, true);
    won(&s, "bf16,d=64,b=1,hq=2,hkv=2,sq=1024,sk=1024", "toy:br=16,bc=16,kind=2", FA_MEASURED, true);
    won(&s, "bf16,d=64,b=1,hq=2,hkv=2,sq=4096,sk=4096", "toy:br=16,bc=24,kind=2", FA_MEASURED, true);
    won(&s, "fp16,d=64,b=1,hq=2,hkv=2,sq=256,sk=256", "toy:br=64,bc=8,kind=2", FA_MEASURED, true);
    won(&s, "fp16,d=64,b=1,hq=2,hkv=2,sq=8192,sk=8192", "toy:br=64,bc=16,kind=2", FA_MEASURED, true);
    won(&s, "bf16,d=64,b=1,hq=2,hkv=2,sq=16384,sk=16384", "toy:br=64,bc=32,kind=2", FA_MEASURED, false); /* nobody verified it */
    won(&s, "bf16,d=72,b=1,hq=2,hkv=2,sq=256,sk=256", "toy:br=64,bc=8,kind=1", FA_MEASURED, true);       /* another head_dim */
    cr_assert_eq(fa_gen_open(&g, s.dir), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_pool_list(&pool, g, &s.p, s.site.arch, s.site.budget, "toy", &space), FA_OK, "%s", fa_last_error());
    fa_neighbours_site site = { g, &s.p, s.site.arch, s.site.budget };
    fa_neighbours neighbours = fa_neighbours_of_families(&site);
    fa_seeds_add(&pool, &neighbours, &s.site, &s.p);
    static const char *const yes[] = { "toy:br=16,bc=8,kind=2", "toy:br=16,bc=16,kind=2", "toy:br=16,bc=24,kind=2", "toy:br=64,bc=8,kind=2",
                                       "toy:br=64,bc=16,kind=2" };
    static const char *const no[] = { "toy:br=64,bc=24,kind=2", "toy:br=64,bc=32,kind=2", "toy:br=64,bc=8,kind=1" };
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        cr_expect(is_seed(&pool, yes[i]), "%s", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        cr_expect_not(is_seed(&pool, no[i]), "%s", no[i]);
    fa_pool_free(&pool);
    fa_space_free(&space);
    fa_gen_close(g);
    close_scene(&s);
}
