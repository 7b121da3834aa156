/* fa_select: which records of measurements count, and for which problems. */
#include "cache/record.h"
#include "gen/problem.h"
#include "gen/space.h"
#include "test_fake_context.h"

TestSuite(runtime_select, .init = open_context, .fini = close_context, .timeout = 300);

static void measure(const fa_problem *p, const fa_config *c, double seconds)
{
    fa_record r = { .problem = *p, .config = *c, .how = FA_MEASURED, .seconds = seconds, .verified = true, .version = FA_VERSION_STRING };
    snprintf(r.chip, sizeof r.chip, "%s", fa_context_arch(ctx)->chip);
    snprintf(r.arch, sizeof r.arch, "%s", fa_context_arch(ctx)->name);
    cr_assert(fa_record_append(fa_context_store(ctx), &r));
}

/* What was measured here counts for its own shapes and for those that nothing nearer ships for. */
Test(runtime_select, a_measurement_pushes_nothing_nearer_aside)
{
    static const struct {
        const char *problem, *where;
    } asks[] = {
        { "bf16,d=64,mask=causal,b=4,hq=32,hkv=32,sq=4096,sk=4096", "measured record" },
        { "bf16,d=64,mask=causal,b=4,hq=32,hkv=32,sq=5000,sk=5000", "measured record" }, /* the same bucket */
        { "bf16,d=64,mask=causal,b=32,hq=32,hkv=32,sq=512,sk=512", "default table" },
        { "bf16,d=64,mask=causal,b=1,hq=32,hkv=32,sq=32768,sk=32768", "default table" }, /* 16k ships, and is nearer than 4k */
        { "bf16,d=72,mask=causal,b=4,hq=32,hkv=32,sq=6144,sk=6144", "measured record" }, /* nothing ships, and it is near */
    };
    fa_selection c;
    fa_problem at[2];
    fa_destroy(ctx);
    const cu_driver *driver = fake_driver(); /* again */
    fake_devices(1, 9, 0);
    fa_options o = FA_OPTIONS_INIT;
    o.cache_dir = scratch;
    OK(fa_create_on(&ctx, &o, driver, 0));
    OK(fa_problem_parse(&at[0], asks[0].problem));
    OK(fa_problem_parse(&at[1], "bf16,d=72,mask=causal,b=4,hq=32,hkv=32,sq=4096,sk=4096"));
    for (int i = 0; i < 2; i++) {
        OK(fa_select(ctx, &at[i], &c, NULL));
        cr_assert_str_neq(c.where, "measured record");
        measure(&at[i], &c.config, 1e-3);
    }
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        fa_problem p;
        OK(fa_problem_parse(&p, asks[i].problem));
        OK(fa_select(ctx, &p, &c, NULL));
        cr_expect_str_eq(c.where, asks[i].where, "%s: %s: %s", asks[i].problem, c.where, c.why);
    }
}

static bool is_measured(const fa_problem *p)
{
    fa_selection c;
    OK(fa_select(ctx, p, &c, NULL));
    return !strcmp(c.where, "measured record");
}

/* The limit itself is allowed. */
Test(runtime_select, a_record_that_fills_the_budget_counts)
{
    fa_problem p;
    fa_selection c;
    fa_record r = { .how = FA_MEASURED, .seconds = 1e-3, .verified = true, .version = FA_VERSION_STRING };
    OK(fa_problem_parse(&p, "bf16,d=72,b=4,hq=32,hkv=32,sq=4096,sk=4096"));
    OK(fa_select(ctx, &p, &c, NULL));
    snprintf(r.chip, sizeof r.chip, "%s", fa_context_arch(ctx)->chip);
    snprintf(r.arch, sizeof r.arch, "%s", fa_context_arch(ctx)->name);
    r.problem = p;
    r.config = c.config;
    r.smem = fa_context_budget(ctx) + 1;
    cr_assert(fa_record_append(fa_context_store(ctx), &r));
    cr_expect_not(is_measured(&p), "a byte more than there is");
    r.smem--;
    cr_assert(fa_record_append(fa_context_store(ctx), &r));
    cr_expect(is_measured(&p));
}

/* A record may be written by anyone whose archive was imported; what it says is printed. */
Test(runtime_select, what_a_record_tells_is_plain)
{
    fa_problem p;
    fa_selection c;
    char text[4096];
    size_t bytes;
    fa_record r = { .how = FA_MEASURED, .seconds = 1e-3, .verified = true, .version = FA_VERSION_STRING, .date = "\033[2J\033]0;x\a" };
    OK(fa_problem_parse(&p, "bf16,d=88,b=4,hq=32,hkv=32,sq=4096,sk=4096"));
    OK(fa_select(ctx, &p, &c, NULL));
    snprintf(r.chip, sizeof r.chip, "%s", fa_context_arch(ctx)->chip);
    snprintf(r.arch, sizeof r.arch, "%s", fa_context_arch(ctx)->name);
    r.problem = p;
    r.config = c.config;
    cr_assert(fa_record_append(fa_context_store(ctx), &r));
    OK(fa_explain(ctx, &p, NULL, text, sizeof text));
    cr_expect(strstr(text, "\\x1b[2J\\x1b]0;x\\x07") && !strchr(text, '\033') && !strchr(text, '\a'), "%s", text);
    OK(fa_explain_size(ctx, &p, NULL, &bytes));
    cr_expect_eq(bytes, strlen(text) + 1);
}

/* Appends a record of a failed launch for every config that fits; spare: for all but the first. Returns the first. */
static fa_config all_fail(const fa_problem *p, bool spare)
{
    fa_gen *g;
    fa_space space = { 0 };
    fa_config first = { 0 };
    fa_record r = { .problem = *p, .how = FA_MEASURED, .outcome = FA_BAD_LAUNCH, .version = FA_VERSION_STRING };
    snprintf(r.chip, sizeof r.chip, "%s", fa_context_arch(ctx)->chip);
    snprintf(r.arch, sizeof r.arch, "%s", fa_context_arch(ctx)->name);
    OK(fa_gen_open(&g, NULL));
    OK(fa_space_list(g, p, fa_context_arch(ctx), fa_context_budget(ctx), NULL, &space));
    cr_assert(space.fitting > 1 && space.fitting < 2000, "%zu", space.fitting);
    for (size_t i = 0; i < space.n; i++) {
        if (!space.points[i].fits)
            continue;
        r.config = space.points[i].config;
        if (!first.family[0])
            first = r.config;
        if (!spare || !fa_config_equal(&first, &r.config))
            cr_assert(fa_record_append(fa_context_store(ctx), &r));
    }
    fa_space_free(&space);
    fa_gen_close(g);
    return first;
}

Test(runtime_select, configs_that_are_known_to_fail)
{
    fa_problem p;
    fa_selection c;
    OK(fa_problem_parse(&p, "fp32,d=208"));
    fa_problem_fill_shape(&p);
    fa_config left = all_fail(&p, true);
    OK(fa_select(ctx, &p, &c, NULL));
    cr_expect(fa_config_equal(&c.config, &left) && strstr(c.why, "the model's best of 1 "), "%s: %s", c.where, c.why);
    OK(fa_problem_parse(&p, "fp32,d=200"));
    fa_problem_fill_shape(&p);
    all_fail(&p, false);
    cr_expect_eq(fa_select(ctx, &p, &c, NULL), FA_NO_FIT, "%s: %s", c.where, c.why);
    cr_expect(strstr(fa_last_error(), "configs that fit is known to fail"), "%s", fa_last_error());
}
