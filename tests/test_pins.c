/* Candidates as rows, and a config that the program names: its rank, when it begins to run, what is refused, threads. */
#include "bundle_maker.h"
#include "gen/gen.h"
#include "runtime/choose/pins.h"
#include "test_misses.h"
#include <pthread.h>

static void open_pins(void)
{
    scratch_make();
    spill(below("image"), "// PTX", 6);
    setenv("FAKE_NVRTC_PTX", below("image"), 1);
    setenv("FAKE_NVRTC_LOG", below("compiles"), 1);
    open_with(FA_MISS_COMPILE);
}

TestSuite(pins, .init = open_pins, .fini = close_nearest, .timeout = 100);

#define ROWS 128

typedef struct row {
    char config[512], why[512], chip[64], problem[256];
    int32_t from, runs;
    double price, model, measured, distance;
} row;

typedef struct rows {
    row r[ROWS];
    int n, most;
} rows;

static int keep(void *user, const fa_candidate_info *c)
{
    rows *all = user;
    row *r = &all->r[all->n++];
    cr_assert(all->n <= ROWS && c->size == sizeof *c && !c->reserved);
    snprintf(r->config, sizeof r->config, "%s", c->config);
    snprintf(r->why, sizeof r->why, "%s", c->why);
    snprintf(r->chip, sizeof r->chip, "%s", c->chip);
    snprintf(r->problem, sizeof r->problem, "%s", c->problem);
    cr_assert_not_null(c->date);
    r->from = c->source, r->runs = c->runs;
    r->price = c->price, r->model = c->model, r->measured = c->measured, r->distance = c->distance;
    return all->most && all->n == all->most;
}

static rows *told(const fa_problem *p)
{
    static rows all;
    all = (rows){ .n = 0 };
    OK(fa_candidates(ctx, p, keep, &all));
    return &all;
}

static fa_selection selected(const fa_problem *p)
{
    fa_selection s;
    OK(fa_select(ctx, p, &s, NULL));
    return s;
}

/* The text of a candidate that does not run. */
static const char *another(const fa_problem *p)
{
    static char text[512];
    const rows *all = told(p);
    int i = 0;
    while (i < all->n && (all->r[i].runs || all->r[i].why[0]))
        i++;
    cr_assert_lt(i, all->n);
    return strcpy(text, all->r[i].config);
}

static fa_config parsed(const char *text)
{
    fa_config c;
    fa_gen *g;
    OK(fa_gen_open(&g, NULL));
    OK(fa_gen_config_parse(g, &c, text));
    fa_gen_close(g);
    return c;
}

Test(pins, candidates_are_the_rows_of_the_choice)
{
    fa_problem p = problem(512, 512);
    fa_selection s = selected(&p);
    fa_config mine = s.config, slow = s.config, bad = s.config;
    cr_assert(fa_config_set(&mine, "lag", fa_config_get(&mine, "lag", 0) ? 0 : 8));
    fa_record r = { .problem = p, .config = mine, .how = FA_MEASURED, .seconds = 3e-6, .verified = true, .version = FA_VERSION_STRING };
    snprintf(r.chip, sizeof r.chip, "%s", fa_context_arch(ctx)->chip);
    snprintf(r.arch, sizeof r.arch, "%s", fa_context_arch(ctx)->name);
    snprintf(r.date, sizeof r.date, "2026-11-25T00:00:00Z");
    cr_assert(fa_record_append(fa_context_store(ctx), &r));
    cr_assert(fa_config_set(&bad, "bc", 16));
    r.config = bad, r.outcome = FA_BAD_RESULT;
    snprintf(r.why, sizeof r.why, "O[0] is 1; expected 2");
    cr_assert(fa_record_append(fa_context_store(ctx), &r));
    cr_assert(fa_config_set(&slow, "br", 16384)); /* of a record, and does not fit */
    r.config = slow, r.outcome = FA_RAN, r.seconds = 1e-6, r.problem = problem(1024, 1024);
    cr_assert(fa_record_append(fa_context_store(ctx), &r));

    rows *all = told(&p);
    int runs = 0, refused = 0, failed = 0;
    for (int i = 0; i < all->n; i++) {
        row *c = &all->r[i];
        fa_config x = parsed(c->config);
        runs += c->runs;
        failed += fa_config_equal(&x, &bad) && !strcmp(c->why, "wrong: O[0] is 1; expected 2");
        refused += fa_config_equal(&x, &slow) && c->why[0];
        if (!c->why[0])
            cr_expect(c->price > 0 && c->model > 0 && !refused && !failed, "%s", c->config);
        else
            cr_expect(c->price == 0 && !c->runs, "%s", c->config);
        if (i > 1 && !c->why[0])
            cr_expect(c->price >= all->r[i - 1].price, "%s", c->config);
    }
    fa_config first = parsed(all->r[0].config);
    cr_expect(runs == 1 && refused == 1 && failed == 1 && all->n > 5, "%d run, %d refused, %d failed of %d", runs, refused, failed, all->n);
    cr_expect(all->r[0].runs && fa_config_equal(&first, &mine) && all->r[0].from == FA_FROM_RECORD && all->r[0].measured == 3e-6 &&
              all->r[0].price == 3e-6 && !strcmp(all->r[0].chip, fa_context_arch(ctx)->chip) && strstr(all->r[0].problem, "sq=512"));
    rows some = { .most = 2 };
    OK(fa_candidates(ctx, &p, keep, &some));
    cr_expect_eq(some.n, 2, "told on after it was ended");
    cr_expect_eq(compiles(), 0);
    cr_expect_eq(fa_candidates(ctx, &p, NULL, NULL), FA_INVALID);
    cr_expect_eq(fa_candidates(NULL, &p, keep, &some), FA_INVALID);
    cr_expect_eq(fa_candidates(ctx, NULL, keep, &some), FA_INVALID);
}

/* Before a record of the very bucket; for the class and bucket alone; and with a snapshot of facts of its own. */
Test(pins, a_pin_decides)
{
    fa_problem p = problem(512, 512), same = problem(520, 512), far = problem(2048, 2048), causal = p;
    causal.mask = FA_MASK_CAUSAL;
    fa_config best = selected(&p).config;
    record(&p, &best);
    fa_selection before = selected(&p), far_before = selected(&far);
    char name[512];
    snprintf(name, sizeof name, "%s", another(&p));
    fa_config mine = parsed(name);
    OK(fa_pin(ctx, &p, name));
    fa_selection s = selected(&p);
    cr_expect(fa_config_equal(&s.config, &mine) && s.pin && s.facts != before.facts && !strcmp(s.where, "pin"), "%s", s.why);
    s = selected(&same);
    cr_expect(fa_config_equal(&s.config, &mine), "a shape of the bucket");
    s = selected(&far);
    cr_expect(fa_config_equal(&s.config, &far_before.config) && !s.pin, "another bucket");
    cr_expect(!selected(&causal).pin, "another class");
    const rows *all = told(&p);
    cr_expect(all->r[0].runs && all->r[0].from == FA_FROM_PIN && !strcmp(all->r[0].config, name));
    cr_expect(tells(512, "named by fa_pin()") && tells(512, ", pin, decides: ") && tells(512, name));
    uint64_t number = selected(&p).pin;
    OK(fa_pin(ctx, &same, name));
    cr_expect_eq(selected(&p).pin, number, "the same pin once more is no other");
    OK(fa_unpin(ctx, &same));
    s = selected(&p);
    cr_expect(fa_config_equal(&s.config, &before.config) && !s.pin && s.facts == before.facts, "%s", s.why);
    OK(fa_unpin(ctx, &p));
    OK(fa_pin(ctx, &p, name));
    OK(fa_pin(ctx, &far, name));
    OK(fa_unpin(ctx, NULL));
    cr_expect(!selected(&p).pin && !selected(&far).pin);
}

/* Hits go on as they are; fa_prepare() looks at the pins, and makes no kernel twice. */
Test(pins, what_is_prepared_stays_until_it_is_prepared_again)
{
    fa_problem p = problem(512, 512);
    CUfunction first = launched(512);
    const fa_plan *plan = plan_of(&p);
    OK(fa_pin(ctx, &p, another(&p)));
    fa_config mine = selected(&p).config;
    cr_expect(launched(512) == first && plan_of(&p) == plan, "a hit looks at no pin");
    OK(fa_prepare(ctx, &p));
    const fa_plan *pinned = plan_of(&p);
    cr_expect(pinned != plan && fa_config_equal(&pinned->config, &mine) && pinned->pin);
    cr_expect_neq(launched(512), first);
    int made = compiles();
    OK(fa_prepare(ctx, &p));
    OK(fa_prepare_range(ctx, &p, &p, NULL));
    cr_expect(plan_of(&p) == pinned && compiles() == made, "prepared twice");
    fa_problem far = problem(4096, 4096);
    OK(fa_pin(ctx, &far, another(&far)));
    OK(fa_prepare(ctx, &p));
    cr_expect_eq(plan_of(&p), pinned, "a pin of another bucket");
    OK(fa_unpin(ctx, &p));
    cr_expect_eq(plan_of(&p), pinned);
    OK(fa_prepare_range(ctx, &p, &p, NULL));
    cr_expect(fa_config_equal(&plan_of(&p)->config, &plan->config) && launched(512) == first);
}

/* A class without a workspace is one of its own: where it has a pin, that is what runs. */
Test(pins, of_calls_without_a_workspace)
{
    fa_problem p = problem(1, 4096), bare = p;
    bare.features |= FA_FEATURE_NO_WORKSPACE;
    fa_config own_choice = selected(&bare).config;
    OK(fa_pin(ctx, &bare, another(&bare)));
    fa_selection s = selected(&bare);
    cr_expect(s.pin && !fa_config_equal(&s.config, &own_choice) && !selected(&p).pin, "%s", s.why);
    OK(fa_unpin(ctx, &bare));
    fa_selection again = selected(&bare);
    cr_expect(fa_config_equal(&again.config, &own_choice));
}

Test(pins, what_does_not_run_is_refused)
{
    fa_problem p = problem(512, 512);
    fa_config best = selected(&p).config, failing = best;
    char name[512], whole[512], large[512], odd[600], wrong[512], family[600];
    fa_gen *g;
    OK(fa_gen_open(&g, NULL));
    fa_gen_config_print(g, whole, sizeof whole, &best);
    fa_config c = best;
    cr_assert(fa_config_set(&c, "br", 4096));
    fa_config_print(large, sizeof large, &c);
    snprintf(odd, sizeof odd, "%s,nothing=3", whole);
    cr_assert(fa_config_set(&failing, "lag", fa_config_get(&failing, "lag", 0) ? 0 : 8));
    fa_config_print(wrong, sizeof wrong, &failing);
    fa_gen_close(g);
    snprintf(name, sizeof name, "%.*s", (int)(strrchr(whole, ',') - whole), whole);
    snprintf(family, sizeof family, "flash_fwd_mna%s", strchr(whole, ':'));
    fa_record r = {
        .problem = p, .config = failing, .how = FA_MEASURED, .outcome = FA_BAD_RESULT, .why = "O[7]", .version = FA_VERSION_STRING
    };
    snprintf(r.chip, sizeof r.chip, "%s", fa_context_arch(ctx)->chip);
    snprintf(r.arch, sizeof r.arch, "%s", fa_context_arch(ctx)->name);
    cr_assert(fa_record_append(fa_context_store(ctx), &r));
    const struct {
        const fa_problem *p;
        const char *config;
        fa_status status;
        const char *says;
    } refused[] = {
        { &p, NULL, FA_INVALID, "config: NULL" },
        { &p, "", FA_INVALID, "pin: " },
        { &p, "nonsense", FA_INVALID, "nonsense" },
        { &p, family, FA_INVALID, "flash_fwd_mna" },
        { &p, name, FA_INVALID, "accepted: a config with each tunable" },
        { &p, odd, FA_INVALID, "nothing" },
        { &p, large, FA_INVALID, "br" },
        { &p, "flash_fwd_mma:br=256,bc=128,warps=8,stages_k=2,stages_v=2,order=0,q_regs=0,pack=0,lag=0,ctas=2", FA_NO_FIT, "pin: " },
        { &p, wrong, FA_WRONG, "fails here: wrong: O[7]" },
        { &p, "merge:warps=4,team=1,ahead=4", FA_UNSUPPORTED, "pin: " },
        { NULL, whole, FA_INVALID, "" },
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        fa_status st = fa_pin(ctx, refused[i].p, refused[i].config);
        cr_expect_eq(st, refused[i].status, "%s: %s: %s", refused[i].config, fa_status_name(st), fa_last_error());
        cr_expect(strstr(fa_last_error(), refused[i].says), "%s: %s", refused[i].config, fa_last_error());
    }
    cr_expect_eq(atomic_load(&ctx->pins->changes), 0, "nothing changed");
    cr_expect_eq(fa_pin(NULL, &p, whole), FA_INVALID);
    cr_expect_eq(fa_unpin(NULL, &p), FA_INVALID);
    OK(fa_pin(ctx, &p, whole)); /* values by name and by number are one config */
    uint64_t number = selected(&p).pin;
    fa_config_print(name, sizeof name, &best);
    OK(fa_pin(ctx, &p, name));
    cr_expect_eq(selected(&p).pin, number);
    /* a record that comes later does not take a pin away */
    r.config = best;
    cr_assert(fa_record_append(fa_context_store(ctx), &r));
    fa_selection s = selected(&p);
    cr_expect(s.pin && fa_config_equal(&s.config, &best));
}

static const maker_item one_row[] = { { "sm_80", 1, 16, 512, 0 }, { NULL, 0, 0, 0, 0 } };

Test(pins, before_a_bundle)
{
    static maker m;
    fa_options o = FA_OPTIONS_INIT;
    const fa_bundle *const list[] = { maker_make(&m, one_row), NULL };
    fa_problem p = problem(512, 512);
    char name[512];
    snprintf(name, sizeof name, "%s", another(&p));
    fa_destroy(ctx);
    o.cache_dir = scratch;
    o.nvrtc = FAKE_NVRTC;
    o.bundles = list;
    OK(fa_create_on(&ctx, &o, fake_driver(), 0));
    const rows *all = told(&p);
    cr_expect(selected(&p).bundle_row && all->r[0].runs && all->r[0].from == FA_FROM_BUNDLE && !all->r[1].runs);
    OK(fa_pin(ctx, &p, name));
    cr_expect(!selected(&p).bundle_row && told(&p)->r[0].from == FA_FROM_PIN);
    OK(fa_unpin(ctx, &p));
    cr_expect(selected(&p).bundle_row);
    fa_destroy(ctx);
    o.bundle_only = 1;
    OK(fa_create_on(&ctx, &o, fake_driver(), 0));
    cr_expect_eq(fa_pin(ctx, &p, name), FA_NO_KERNEL);
    all = told(&p);
    cr_expect(all->n == 1 && all->r[0].from == FA_FROM_BUNDLE);
}

/* ---- threads ---- */

static struct {
    fa_problem p;
    char name[2][512];
    fa_config config[2];
    atomic_int wrong, rounds;
} many;

static int count_runs(void *user, const fa_candidate_info *c)
{
    *(int *)user += c->runs;
    return 0;
}

static void *work(void *user)
{
    int me = (int)(intptr_t)user;
    for (int i = 0; i < 30; i++) {
        int runs = 0;
        fa_selection s;
        bool ok = me == 0   ? fa_pin(ctx, &many.p, many.name[i % 2]) == FA_OK && (i % 5 || fa_unpin(ctx, &many.p) == FA_OK)
                  : me == 1 ? fa_prepare(ctx, &many.p) == FA_OK
                  : me == 2 ? fa_candidates(ctx, &many.p, count_runs, &runs) == FA_OK && runs == 1
                            : fa_select(ctx, &many.p, &s, NULL) == FA_OK &&
                                  (!s.pin || fa_config_equal(&s.config, &many.config[0]) || fa_config_equal(&s.config, &many.config[1]));
        atomic_fetch_add(&many.wrong, !ok);
        atomic_fetch_add(&many.rounds, 1);
    }
    return NULL;
}

Test(pins, under_threads)
{
    pthread_t thread[4];
    many.p = problem(512, 512);
    const rows *all = told(&many.p);
    for (int i = 0; i < 2; i++) {
        strcpy(many.name[i], all->r[i + 1].config);
        many.config[i] = parsed(many.name[i]);
    }
    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, work, (void *)(intptr_t)i), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    cr_expect(atomic_load(&many.wrong) == 0 && atomic_load(&many.rounds) == 120, "%d of %d were wrong", many.wrong, many.rounds);
    OK(fa_pin(ctx, &many.p, many.name[0]));
    OK(fa_prepare(ctx, &many.p));
    cr_expect(fa_config_equal(&plan_of(&many.p)->config, &many.config[0]));
}
