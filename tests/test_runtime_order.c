/* The law of the choice as a context keeps it: what came before has no say in what runs, in what is legal, and nothing guessed is kept. */
#include "runtime/choose/generators.h"
#include "test_misses.h"

static void open_order(void)
{
    scratch_make();
    spill(below("image"), "// PTX", 6);
    setenv("FAKE_NVRTC_PTX", below("image"), 1);
    open_with(FA_MISS_COMPILE);
}

static void open_anew(void)
{
    fa_destroy(ctx);
    open_with(FA_MISS_COMPILE);
}

TestSuite(runtime_order, .init = open_order, .fini = close_nearest, .timeout = 200);

static uint64_t state = 33;

static uint64_t draw(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

static const fa_plan *plan_found(const fa_problem *p)
{
    const fa_plan_key key = fa_plan_key_of(p);
    return fa_table_find(ctx->table, &key);
}

#define SHAPES 40

/* Where few rows begin and end, where sq meets sk, and in the middle. */
static fa_problem shape(int i)
{
    static const int32_t sq[] = { 1, 8, 48, 60, 64, 65, 80, 88, 512, 4096 }, sk[] = { 64, 1024, 4096, 4100 };
    return problem(sq[i % 10], sk[i / 10]);
}

Test(runtime_order, shapes_in_any_order_have_the_same_kernels)
{
    fa_config first[SHAPES];
    int order[SHAPES];
    for (int i = 0; i < SHAPES; i++)
        order[i] = i;
    for (int round = 0; round < 4; round++) {
        open_anew();
        for (int i = 0; i < SHAPES; i++) {
            fa_problem p = shape(order[i]);
            OK(fa_prepare(ctx, &p));
        }
        for (int i = 0; i < SHAPES; i++) {
            fa_problem p = shape(i);
            const fa_plan *plan = plan_found(&p);
            cr_assert_not_null(plan);
            if (round)
                cr_expect(fa_config_equal(&first[i], &plan->config), "sq=%d, sk=%d", p.sq, p.sk);
            first[i] = plan->config;
        }
        for (int i = SHAPES - 1; i > 0; i--) {
            int k = (int)draw((uint64_t)i + 1), x = order[i];
            order[i] = order[k];
            order[k] = x;
        }
    }
}

/* A range and a launch agree. */
Test(runtime_order, a_range_prepares_what_launches_would)
{
    fa_problem lo = problem(16, 16), hi = problem(300, 2000);
    fa_config config[60];
    int sq[60], sk[60];
    OK(fa_prepare_range(ctx, &lo, &hi, NULL));
    for (int i = 0; i < 60; i++) {
        sq[i] = 16 + (int)draw(285), sk[i] = 16 + (int)draw(1985);
        fa_problem p = problem(sq[i], sk[i]);
        const fa_plan *plan = plan_found(&p);
        cr_assert_not_null(plan, "sq=%d, sk=%d", sq[i], sk[i]);
        config[i] = plan->config;
    }
    open_anew();
    for (int i = 0; i < 60; i++) {
        fa_args a = call(sq[i], sk[i]);
        fa_problem p = problem(sq[i], sk[i]);
        a.workspace = AT(6), a.workspace_size = 64 << 20;
        OK(fa_launch(ctx, &a, NULL));
        cr_expect(fa_config_equal(&config[i], &plan_found(&p)->config), "sq=%d, sk=%d", sq[i], sk[i]);
    }
}

/* A launch without a workspace is legal whatever ran before it. */
Test(runtime_order, a_missing_workspace_is_no_matter_of_order)
{
    static const int lengths[] = { 48, 88, 64, 65, 1, 7 };
    enum { LENGTHS = sizeof lengths / sizeof *lengths };
    for (int first = 0; first < LENGTHS; first++)
        for (int with = 0; with < 2; with++) {
            open_anew();
            for (int i = 0; i < LENGTHS; i++) {
                fa_args a = call(lengths[(first + i) % LENGTHS], 1024);
                a.dtype = FA_F32;
                a.workspace = with && i == 0 ? AT(6) : NULL;
                a.workspace_size = a.workspace ? 64 << 20 : 0;
                cr_expect_eq(fa_launch(ctx, &a, NULL), FA_OK, "sq=%d after %d%s: %s", a.sq, lengths[first], with ? " with" : "",
                             fa_last_error());
            }
        }
}

Test(runtime_order, a_guess_is_not_written)
{
    for (int i = 0; i < SHAPES; i++) {
        fa_problem p = shape(i);
        OK(fa_prepare(ctx, &p));
    }
    fa_records rs = fa_records_load(fa_context_store(ctx), NULL, NULL);
    cr_expect_eq(rs.n, 0, "%zu records", rs.n);
    fa_records_free(&rs);
}

/* What is measured later is seen by later misses; plans that are prepared stay. */
Test(runtime_order, a_record_makes_a_new_snapshot)
{
    fa_problem p = problem(512, 512);
    OK(fa_prepare(ctx, &p));
    const fa_plan *plan = plan_found(&p);
    fa_config c = plan->config;
    fa_selection s;
    OK(fa_select(ctx, &p, &s, NULL));
    cr_expect(s.facts && s.facts == plan->facts);
    cr_assert(fa_config_set(&c, "lag", fa_config_get(&c, "lag", 0) ? 0 : 8));
    record(&p, &c);
    cr_expect_eq(plan_found(&p), plan);
    OK(fa_prepare(ctx, &p));
    cr_expect_eq(plan_found(&p), plan, "prepared plans stay");
    OK(fa_select(ctx, &p, &s, NULL));
    cr_expect(fa_config_equal(&s.config, &c) && s.facts != plan->facts, "a later choice knows of it");
}

/* No lock is held while a generator works: others are taken beside it. */
Test(runtime_order, every_thread_that_misses_has_a_generator)
{
    fa_gen *one, *two, *again;
    OK(fa_generator_take(ctx, &one));
    OK(fa_generator_take(ctx, &two));
    cr_expect_neq(one, two);
    fa_problem p = problem(512, 512);
    OK(fa_prepare(ctx, &p)); /* by a third */
    fa_generator_give(ctx, one);
    OK(fa_generator_take(ctx, &again));
    cr_expect_eq(again, one, "it was idle");
    fa_generator_give(ctx, again);
    fa_generator_give(ctx, two);
}

/* fa_explain() says the point, the candidates, their prices, where each fact came from and the hash of all. */
Test(runtime_order, an_explanation_says_the_candidates)
{
    static char text[16384];
    fa_problem p = problem(500, 5000);
    OK(fa_explain(ctx, &p, NULL, text, sizeof text));
    cr_expect(strstr(text, "\npoint      bf16,d=64,dv=64,mask=none,o=bf16,align=16,b=1,hq=8,hkv=8,sq=512,sk=5120"), "%s", text);
    cr_expect(strstr(text, "\nfacts      ") && strstr(text, " winners near, ") && strstr(text, "\ncandidate  "), "%s", text);
    cr_expect(strstr(text, " us (model ") && strstr(text, " winners do not run here\n"), "%s", text);
    OK(fa_prepare(ctx, &p));
    OK(fa_explain(ctx, &p, NULL, text, sizeof text));
    cr_expect(strstr(text, "\nchosen     by the facts "), "%s", text);
}
