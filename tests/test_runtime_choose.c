/* choose: the law of what runs: a pure function of the point, the chip, the budget and what is known. And its table of winners that ships:
 * every row fits and renders on its chip, and is what its own shape gets. */
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/gen.h"
#include "gen/problem.h"
#include "gen/score/known.h"
#include "runtime/choose/choose.h"
#include "runtime/choose/shipped.h"

#include "test_full.h"
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static fa_problem problem(const char *text)
{
    fa_problem p;
    cr_assert_eq(fa_problem_parse(&p, text), FA_OK, "%s: %s", text, fa_last_error());
    return p;
}

static fa_arch h200(void)
{
    fa_arch a = *fa_arch_find("h200");
    strcpy(a.chip, "NVIDIA H200");
    return a;
}

static uint64_t state = 33;

static uint64_t draw(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

static int32_t length(int bits)
{
    return (int32_t)(1 + draw((uint64_t)1 << draw((uint64_t)bits + 1)));
}

/* Of any class that some family computes. */
static fa_problem random_problem(void)
{
    static const char *const classes[] = {
        "bf16,d=64",
        "fp16,d=128,mask=causal",
        "bf16,d=136",
        "tf32,d=96,mask=causal",
        "fp32,d=72",
        "bf16,d=80,mask=window",
        "bf16,d=128,mask=causal,features=lengths",
        "bf16,d=120,mask=causal,features=lengths+pages,page=16",
        "bf16,d=128,features=batch-invariant",
        "fp16,d=64,features=lse-strides",
        "bf16,d=111,mask=causal",
        "bf16,d=64,op=backward,mask=causal",
        "bf16,d=104,op=backward,features=deterministic",
        "bf16,d=64,op=merge",
    };
    fa_problem p = problem(classes[draw(sizeof classes / sizeof *classes)]);
    p.b = length(5);
    p.hkv = length(4);
    p.hq = p.hkv * length(4);
    p.sq = length(14);
    p.sk = draw(3) ? length(16) : p.sq;
    p.window = p.mask == FA_MASK_WINDOW ? length(12) : 0;
    return p;
}

static fa_gen *shared;

static void open_shared(void)
{
    cr_assert_eq(fa_gen_open_lazy(&shared), FA_OK);
    fa_gen_count(shared);
}

static void close_shared(void)
{
    fa_gen_close(shared);
}

TestSuite(runtime_choose, .init = open_shared, .fini = close_shared, .timeout = 300);

/* The config that a shape's point gets, as text; its choice is left in *out. */
static void chosen(fa_gen *g, const fa_problem *p, const fa_arch *a, fa_choice *out, fa_facts *facts, char text[400])
{
    const fa_problem point = fa_problem_point(p);
    char line[256];
    fa_problem_print(line, sizeof line, &point);
    cr_assert_eq(fa_facts_of(facts, NULL, &point, a, 0), FA_OK);
    cr_assert_eq(fa_choose(g, &point, a, 0, facts, false, out), FA_OK, "%s: %s", line, fa_last_error());
    fa_config_print(text, 400, &out->row[0].config);
}

static void config_of(fa_gen *g, const fa_problem *p, const fa_arch *a, char text[400])
{
    static fa_choice out;
    fa_facts facts;
    chosen(g, p, a, &out, &facts, text);
    fa_facts_free(&facts);
}

/* Fisher and Yates. */
static void shuffle(int *order, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int k = (int)draw((uint64_t)i + 1), x = order[i];
        order[i] = order[k];
        order[k] = x;
    }
}

#define CALLS 200

/* Chooses all in the order, with a generator of its own; the table by problem. */
static void table_of(const fa_problem p[CALLS], const int order[CALLS], char (*text)[400])
{
    fa_gen *g;
    fa_arch a = h200();
    cr_assert_eq(fa_gen_open_lazy(&g), FA_OK);
    for (int i = 0; i < CALLS; i++)
        config_of(g, &p[order[i]], &a, text[order[i]]);
    fa_gen_close(g);
}

Test(runtime_choose, two_hundred_calls_in_any_order_and_process)
{
    static fa_problem p[CALLS];
    static char first[CALLS][400], second[CALLS][400];
    int order[CALLS], ends[2];
    for (int i = 0; i < CALLS; i++) {
        p[i] = random_problem();
        order[i] = i;
    }
    table_of(p, order, first);
    shuffle(order, CALLS);
    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        table_of(p, order, second);
        for (size_t sent = 0; sent < sizeof second;) {
            ssize_t n = write(ends[1], (char *)second + sent, sizeof second - sent);
            if (n <= 0)
                _exit(1);
            sent += (size_t)n;
        }
        _exit(0);
    }
    close(ends[1]);
    for (size_t got = 0; got < sizeof second;) {
        ssize_t n = read(ends[0], (char *)second + got, sizeof second - got);
        cr_assert_gt(n, 0);
        got += (size_t)n;
    }
    int status;
    waitpid(child, &status, 0);
    for (int i = 0; i < CALLS; i++)
        cr_expect_str_eq(first[i], second[i], "another process, another order: %d", i);
    shuffle(order, CALLS);
    table_of(p, order, second);
    for (int i = 0; i < CALLS; i++)
        cr_expect_str_eq(first[i], second[i], "another order: %d", i);
}

/* Shapes of one bucket, drawn near a first one. */
Test(runtime_choose, every_shape_of_a_bucket_gets_one_config)
{
    fa_arch a = h200();
    int met = 0;
    for (int i = 0; i < 500; i++) {
        fa_problem p = random_problem();
        char own[400], other[400], line[256];
        config_of(shared, &p, &a, own);
        int asked = 0;
        for (int k = 0; k < 12; k++) {
            fa_problem q = p;
            q.sq = (int32_t)fmax(1, p.sq * (0.7 + (double)draw(600) / 1000));
            q.sk = p.sk == p.sq ? q.sq : (int32_t)fmax(1, p.sk * (0.7 + (double)draw(600) / 1000));
            q.b = (int32_t)fmax(1, p.b * (0.7 + (double)draw(600) / 1000));
            if (fa_problem_bucket(&q) != fa_problem_bucket(&p))
                continue;
            const fa_problem x = fa_problem_point(&p), y = fa_problem_point(&q);
            met++;
            fa_problem_print(line, sizeof line, &q);
            cr_expect(fa_problem_same_shape(&x, &y) && fa_problem_same_class(&x, &y), "%s", line);
            if (asked++ > 0) /* a choice knows no more than the point */
                continue;
            config_of(shared, &q, &a, other);
            cr_expect_str_eq(own, other, "%s", line);
        }
    }
    cr_expect_gt(met, 1000, "%d shapes", met);
}

/* Lengths from 1 to 131072. */
Test(runtime_choose, lengths_take_24_kernels_at_most)
{
    static const char *const classes[] = { "bf16,d=128,mask=causal,b=1,hq=32,hkv=8", "bf16,d=64,b=4,hq=16,hkv=16",
                                           "bf16,d=72,mask=causal,b=1,hq=8,hkv=8", "fp32,d=64,b=1,hq=4,hkv=4",
                                           "bf16,d=128,mask=causal,features=lengths,b=8,hq=32,hkv=8" };
    fa_arch a = h200();
    for (size_t c = 0; c < sizeof classes / sizeof *classes; c++)
        for (int decoding = 0; decoding < 2; decoding++) {
            static char text[48][400];
            int n = 0;
            uint32_t last = 0;
            fa_problem p = problem(classes[c]);
            for (int32_t s = 1; s <= 131072; s++) {
                char own[400];
                p.sk = s;
                p.sq = decoding ? 1 : s;
                uint32_t bucket = fa_problem_bucket(&p);
                if (s > 1 && bucket == last)
                    continue;
                last = bucket;
                config_of(shared, &p, &a, own);
                int i = 0;
                while (i < n && strcmp(text[i], own))
                    i++;
                if (i == n)
                    strcpy(text[n++], own);
            }
            cr_expect_leq(n, 24, "%s: %d", classes[c], n);
        }
}

Test(runtime_choose, every_row_renders_and_is_what_its_own_shape_gets)
{
    static fa_choice out;
    cr_assert_geq(fa_shipped_count, 60);
    for (size_t i = 0; i < fa_shipped_count; i++) {
        const fa_shipped *row = &fa_shipped_rows[i];
        fa_arch a = *fa_arch_find(row->chip + strlen("NVIDIA "));
        char own[400], got[400], line[256];
        fa_facts facts;
        fa_source s;
        fa_config_print(own, sizeof own, &row->config);
        fa_problem_print(line, sizeof line, &row->problem);
        cr_assert_eq(fa_render(shared, &row->problem, &row->config, &a, 0, &s), FA_OK, "row %zu: %s", i, fa_last_error());
        fa_source_free(&s);
        chosen(shared, &row->problem, &a, &out, &facts, got);
        size_t first = 0; /* of several for one shape */
        while (strcmp(fa_shipped_rows[first].chip, row->chip) != 0 ||
               !fa_problem_same_class(&fa_shipped_rows[first].problem, &row->problem) ||
               fa_problem_bucket(&fa_shipped_rows[first].problem) != fa_problem_bucket(&row->problem))
            first++;
        cr_expect(fa_problem_same_shape(&fa_shipped_rows[first].problem, &row->problem), "row %zu, %s: two shapes of a bucket", i, line);
        fa_config_print(own, sizeof own, &fa_shipped_rows[first].config);
        cr_expect_str_eq(own, got, "row %zu, %s", i, line);
        cr_expect(out.decided && out.row[0].kind == FA_FACT_SHIPPED && !strcmp(out.row[0].fact->chip, row->chip), "%s", line);
        fa_facts_free(&facts);
    }
}

/* fp16 has no rows that keep their maximum, whatever a row of bf16 has: it runs the family of that row all the same, not the one that ships
 * for chips without wgmma. */
Test(runtime_choose, fp16_runs_the_family_of_a_row_of_bf16)
{
    int rows = 0;
    for (size_t i = 0; i < fa_shipped_count; i++) {
        const fa_shipped *row = &fa_shipped_rows[i];
        fa_arch a = *fa_arch_find(row->chip + strlen("NVIDIA "));
        char line[256], got[400];
        fa_problem p;
        fa_problem_print(line, sizeof line, &row->problem);
        if (strcmp(row->config.family, "flash_fwd_wgmma") != 0 || strncmp(line, "bf16,", 5) != 0)
            continue;
        for (char *at = line; (at = strstr(at, "bf16")) != NULL;)
            *at = 'f', at[1] = 'p';
        cr_assert_eq(fa_problem_parse(&p, line), FA_OK, "%s: %s", line, fa_last_error());
        strcpy(a.chip, row->chip);
        config_of(shared, &p, &a, got);
        cr_expect_eq(strncmp(got, "flash_fwd_wgmma:", 16), 0, "%s on %s: %s", line, row->chip, got);
        rows++;
    }
    cr_assert_geq(rows, 60);
}

/* A winner of another chip, or of a shape far away, is a candidate with a price, and gives way to a start that the model thinks much
 * cheaper: of 5 queries of 16 heads over 31k keys the nearest winner is a prompt's. */
Test(runtime_choose, fame_ends)
{
    static fa_choice out;
    fa_arch a = h200(), other = *fa_arch_find("sm_80");
    char text[400];
    fa_facts facts;
    fa_problem own = problem("bf16,d=64,mask=causal,b=1,hq=32,hkv=32,sq=16384,sk=16384");
    fa_problem far = problem("bf16,d=80,b=13,hq=128,hkv=8,sq=5,sk=31000"), half = own;
    half.dtype = half.o_dtype = FA_F16;
    chosen(shared, &own, &a, &out, &facts, text);
    cr_expect(out.decided && out.row[0].fact->far == 0);
    fa_facts_free(&facts);
    chosen(shared, &half, &a, &out, &facts, text);
    cr_expect(out.decided, "a row of bf16 serves fp16");
    fa_facts_free(&facts);
    chosen(shared, &own, &other, &out, &facts, text);
    cr_expect(!out.decided && out.refused, "wgmma is not there");
    fa_facts_free(&facts);
    chosen(shared, &far, &a, &out, &facts, text);
    cr_expect_not(out.decided);
    cr_expect_eq(out.row[0].kind, FA_FACT_NONE, "%s", text);
    cr_expect_lt(out.row[0].price, 1e-3, "%.3g us", out.row[0].price * 1e6);
    fa_facts_free(&facts);
}

/* What won on one chip alone decides there, and is no fact of another chip of the arch. */
Test(runtime_choose, a_row_that_says_nothing_of_other_chips)
{
    static fa_choice out;
    fa_arch own = h200(), other = *fa_arch_find("h100");
    fa_facts facts;
    char text[400];
    int rows = 0;
    for (size_t i = 0; i < fa_shipped_count; i++) {
        const fa_shipped *row = &fa_shipped_rows[i];
        if (!row->alone)
            continue;
        cr_assert_str_eq(row->chip, own.chip);
        chosen(shared, &row->problem, &own, &out, &facts, text);
        cr_expect(out.decided && fa_config_equal(&out.row[0].config, &row->config), "%s", text);
        fa_facts_free(&facts);
        chosen(shared, &row->problem, &other, &out, &facts, text);
        for (size_t k = 0; k < facts.n; k++) /* the other chip may have a row of its own of the problem */
            cr_expect(strcmp(facts.fact[k].chip, row->chip) || memcmp(&facts.fact[k].problem, &row->problem, sizeof row->problem), "%s",
                      text);
        fa_facts_free(&facts);
        rows++;
    }
    cr_assert_geq(rows, 1);
}

/* A sink adds a term to a row's sum: its tiles are those without a program, whose winner decides. Of a slope for each head it does not. */
Test(runtime_choose, a_sink_takes_the_winner_of_no_program)
{
    static const char *const texts[] = { "sink_of = f32 \"hq\" function sink(b, h, i) return sink_of[h] end",
                                         "slope = f32 \"hq\" function score(s, b, h, i, j) return s + slope[h] * (j - i) end" };
    static fa_choice out;
    fa_arch a = h200();
    char plain[400], scored[400];
    fa_facts facts;
    fa_problem p = problem("bf16,d=128,mask=causal,b=1,hq=16,hkv=16,sq=16384,sk=16384");
    config_of(shared, &p, &a, plain);
    for (int i = 0; i < 2; i++) {
        const fa_program *program;
        cr_assert_eq(fa_score_known_read(&program, "score", texts[i], strlen(texts[i])), FA_OK, "%s", fa_last_error());
        fa_score_known_name(&p, program);
        chosen(shared, &p, &a, &out, &facts, scored);
        cr_expect_eq(out.decided, i == 0, "%s", texts[i]);
        cr_expect(i || !strcmp(plain, scored), "%s, %s", plain, scored);
        fa_facts_free(&facts);
    }
}

/* The lowest price is first, but for what is expected to spill, a price is at most the model's, and no more than 64 are there. */
Test(runtime_choose, candidates_are_in_the_order_of_their_prices)
{
    static fa_choice out, first;
    fa_arch a = h200();
    for (int i = 0; i < 100; i++) {
        fa_problem p = random_problem(), point = fa_problem_point(&p);
        fa_facts facts;
        cr_assert_eq(fa_facts_of(&facts, NULL, &point, &a, 0), FA_OK);
        cr_assert_eq(fa_choose(shared, &point, &a, 0, &facts, true, &out), FA_OK);
        cr_assert(out.n >= 1 && out.n <= FA_CANDIDATES_MAX);
        for (size_t k = out.decided; k + 1 < out.n; k++)
            cr_expect(out.row[k].spills < out.row[k + 1].spills ||
                      (out.row[k].spills == out.row[k + 1].spills && out.row[k].price <= out.row[k + 1].price));
        for (size_t k = 0; k < out.n; k++)
            cr_expect_leq(out.row[k].price, out.row[k].model * 1.0000001);
        cr_assert_eq(fa_choose(shared, &point, &a, 0, &facts, false, &first), FA_OK);
        cr_expect(fa_config_equal(&first.row[0].config, &out.row[0].config), "what cannot win changes nothing");
        fa_facts_free(&facts);
    }
}

/* The lowest price among candidates of families whose name begins so; 0: there is none. */
static double price_of(const fa_choice *out, const char *begins)
{
    for (size_t k = 0; k < out->n; k++)
        if (strncmp(out->row[k].config.family, begins, strlen(begins)) == 0)
            return out->row[k].price;
    return 0;
}

/* 9 to 64 rows of a KV group may be cut into parts as more are, with groups of heads and without. Then that is cheaper than whole tiles,
 * and never faster than K and V come from memory. Fewer rows, tiles of single heads that fill the chip, and calls without a workspace are
 * not cut. */
Test(runtime_choose, few_rows_are_cut_too)
{
    static fa_choice out;
    static const struct {
        const char *arch, *problem;
        bool hopper, mma;
    } rows[] = {
        { "h100", "bf16,d=128,mask=causal,b=1,hq=32,hkv=8,sq=8,sk=16384", true, true },
        { "h100", "bf16,d=240,mask=causal,b=1,hq=12,hkv=4,sq=18,sk=10000", true, true },
        { "h100", "fp16,d=80,b=2,hq=40,hkv=8,sq=5,sk=30000", true, true },
        { "h100", "bf16,d=128,b=1,hq=8,hkv=8,sq=40,sk=16384", true, true },
        { "h100", "bf16,d=64,mask=window,window=9000,b=1,hq=4,hkv=4,sq=64,sk=16384", true, true },
        { "h200", "bf16,d=256,b=1,hq=16,hkv=8,sq=32,sk=16384", true, true },
        { "a100", "bf16,d=128,b=1,hq=8,hkv=8,sq=40,sk=16384", false, true },
        { "a100", "fp16,d=96,mask=causal,b=1,hq=32,hkv=8,sq=8,sk=16384", false, true },
        { "h100", "bf16,d=128,b=1,hq=32,hkv=8,sq=4,sk=16384", true, true },
        { "a100", "bf16,d=128,b=1,hq=32,hkv=8,sq=4,sk=16384", false, true },
        { "h100", "bf16,d=128,b=1,hq=32,hkv=8,sq=2,sk=16384", false, false },
        { "h100", "bf16,d=128,b=40,hq=8,hkv=8,sq=40,sk=16384", false, false },
        { "h100", "bf16,d=128,features=no-workspace,b=1,hq=8,hkv=8,sq=40,sk=16384", false, false },
        { "h100", "bf16,d=128,features=lse-strides,b=1,hq=8,hkv=8,sq=40,sk=16384", true, true },
        { "h100", "bf16,d=128,mask=causal,features=lengths+pages,page=16,b=16,hq=32,hkv=8,sq=32,sk=8192", true, false },
        { "h100", "bf16,d=128,features=lengths,b=1,hq=4,hkv=4,sq=200,sk=16384", true, false },
        { "h100", "bf16,d=128,mask=causal,features=lengths+pages,page=8,b=16,hq=32,hkv=8,sq=32,sk=8192", false, false },
        { "a100", "bf16,d=128,mask=causal,features=lengths,b=16,hq=32,hkv=8,sq=32,sk=8192", false, false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const fa_arch *a = fa_arch_find(rows[i].arch);
        const fa_problem p = problem(rows[i].problem), point = fa_problem_point(&p);
        fa_facts facts;
        cr_assert_eq(fa_facts_of(&facts, NULL, &point, a, 0), FA_OK);
        cr_assert_eq(fa_choose(shared, &point, a, 0, &facts, true, &out), FA_OK, "%s", fa_last_error());
        fa_facts_free(&facts);
        double hopper = price_of(&out, "split_wgmma"), mma = price_of(&out, "split_mma"), whole = price_of(&out, "flash_fwd");
        double split = hopper > 0 ? hopper : mma, bytes = 2.0 * point.b * point.hkv * point.sk * (point.d + point.dv);
        cr_expect_eq(hopper > 0, rows[i].hopper, "%s", rows[i].problem);
        cr_expect_eq(mma > 0, rows[i].mma, "%s", rows[i].problem);
        if (split <= 0)
            continue;
        double seen = point.mask == FA_MASK_WINDOW ? (double)point.window / point.sk : 1;
        cr_expect(whole <= 0 || split < whole, "%s: %.3g us, whole tiles %.3g us", rows[i].problem, split * 1e6, whole * 1e6);
        cr_expect_gt(split, seen * bytes / (a->hbm_gbs * 1e9), "%s: %.3g us", rows[i].problem, split * 1e6);
        cr_expect_lt(split, 6 * bytes / (a->hbm_gbs * 1e9) + 15e-6, "%s: %.3g us", rows[i].problem, split * 1e6);
    }
}

/* What a choice takes, counted: some milliseconds are 1,500,000 steps and 200 prices. */
Test(runtime_choose, a_choice_is_cheap)
{
    fa_arch a = h200();
    int64_t most = 0, priced = 0;
    char text[400];
    for (int i = 0; i < 200; i++) {
        fa_problem p = random_problem();
        config_of(shared, &p, &a, text); /* its families are loaded then */
        fa_gen_work before = fa_gen_worked(shared);
        config_of(shared, &p, &a, text);
        fa_gen_work after = fa_gen_worked(shared);
        most = after.steps - before.steps > most ? after.steps - before.steps : most;
        priced = after.priced - before.priced > priced ? after.priced - before.priced : priced;
    }
    cr_expect_lt(most, 260000, "%lld steps", (long long)most);
    cr_expect_leq(priced, 160, "%lld prices", (long long)priced);
}

/* Dense batches off every grid: rows that fill no box, tiles that want any number of parts, all lengths. No family has more starts than it
 * may name, and none of these choices takes more than the others. */
Test(runtime_choose, a_choice_off_the_grid_is_cheap, .timeout = 3600)
{
    static const char *const archs[] = { "h100", "h200" };
    int64_t most = 0, priced = 0;
    char text[FA_PROBLEM_TEXT], dearest[2][FA_PROBLEM_TEXT] = { "", "" };
    for (int i = 0; i < (full() ? 6000 : 150); i++) {
        const fa_arch *a = fa_arch_find(archs[draw(2)]);
        fa_problem p = problem(draw(2) ? "bf16,d=64,mask=causal" : "bf16,d=64"), point;
        p.d = p.dv = 32 + 8 * (int32_t)draw(29);
        p.b = length(6);
        p.hkv = 1 + (int32_t)draw(16);
        p.hq = p.hkv * (1 + (int32_t)draw(16));
        p.sq = draw(2) ? 1 + (int32_t)draw(64) : length(12);
        p.sk = draw(4) ? length(17) : p.sq;
        if (p.sk < p.sq)
            p.sk = p.sq;
        point = fa_problem_point(&p);
        fa_problem_print(text, sizeof text, &p);
        fa_facts facts;
        cr_assert_eq(fa_facts_of(&facts, NULL, &point, a, 0), FA_OK);
        static fa_choice out;
        fa_gen_work before = fa_gen_worked(shared);
        cr_expect_eq(fa_choose(shared, &point, a, 0, &facts, false, &out), FA_OK, "%s: %s", text, fa_last_error());
        fa_gen_work after = fa_gen_worked(shared);
        fa_facts_free(&facts);
        if (i && after.steps - before.steps > most) { /* its families are loaded */
            most = after.steps - before.steps;
            snprintf(dearest[0], sizeof dearest[0], "%s", text);
        }
        if (after.priced - before.priced > priced) {
            priced = after.priced - before.priced;
            snprintf(dearest[1], sizeof dearest[1], "%s", text);
        }
    }
    cr_expect_lt(most, 260000, "%lld steps: %s", (long long)most, dearest[0]);
    cr_expect_leq(priced, 160, "%lld prices: %s", (long long)priced, dearest[1]);
}

Test(runtime_choose, the_first_choice_loads_what_it_needs)
{
    fa_gen *g;
    fa_arch a = h200();
    char text[400];
    fa_problem p = problem("bf16,d=64,mask=causal,b=1,hq=32,hkv=32,sq=16384,sk=16384");
    cr_assert_eq(fa_gen_open_lazy(&g), FA_OK);
    cr_expect_lt(fa_gen_worked(g).steps, 1000000, "%lld steps", (long long)fa_gen_worked(g).steps);
    fa_gen_count(g);
    config_of(g, &p, &a, text);
    cr_expect_eq(fa_gen_families(g), 1 + 25, "names are known");
    cr_expect_lt(fa_gen_worked(g).steps, 150000, "%lld steps", (long long)fa_gen_worked(g).steps); /* of text four for a byte */
    cr_expect_leq(fa_gen_worked(g).priced, 2);
    fa_gen_close(g);
}

/* Short prompts of wide heads on an H200, as raced: tiles of 64 rows where those of 128 are half a round, and no second kernel where
 * nothing is cut. */
Test(runtime_choose, short_wide_prompts)
{
    static const char *const rows[][3] = {
        { "bf16,d=320,b=3,hq=4,hkv=4,sq=570,sk=570", "flash_fwd_wgmma:br=64,", "" },
        { "bf16,d=320,b=1,hq=8,hkv=8,sq=8192,sk=8192", "flash_fwd_wgmma:br=128,", "" },
        { "bf16,d=384,mask=causal,b=3,hq=4,hkv=4,sq=415,sk=415", "wide_wgmma:", "combine=0" },
        { "bf16,d=512,b=4,hq=8,hkv=8,sq=2048,sk=2048", "wide_wgmma:", "combine=1" },
    };
    fa_gen *g;
    fa_arch a = h200();
    char text[400];
    cr_assert_eq(fa_gen_open_lazy(&g), FA_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_problem p = problem(rows[i][0]);
        config_of(g, &p, &a, text);
        cr_expect(!strncmp(text, rows[i][1], strlen(rows[i][1])) && strstr(text, rows[i][2]), "%s: %s", rows[i][0], text);
    }
    fa_gen_close(g);
}

/* MLA's tiles are cut by their own lengths where a launch is long and has a tile to three SMs and more: then what unlike lengths spare is
 * more than the search costs where they are alike. */
Test(runtime_choose, tiles_of_unlike_lengths)
{
    static const char *const rows[][2] = {
        { "b=16,hq=128,hkv=1,sq=1,sk=4096", "parts=0,combine=1" }, { "b=75,hq=128,hkv=1,sq=1,sk=6000", "parts=7,combine=1" },
        { "b=14,hq=64,hkv=1,sq=1,sk=14808", "parts=0,combine=1" }, { "b=84,hq=32,hkv=1,sq=1,sk=9344", "parts=7,combine=1" },
        { "b=128,hq=16,hkv=1,sq=1,sk=64", "parts=0,combine=0" },
    };
    fa_gen *g;
    fa_arch a = h200();
    char text[400], of[160];
    cr_assert_eq(fa_gen_open_lazy(&g), FA_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(of, sizeof of, "bf16,d=576,dv=512,mask=none,features=lengths+pages+v-in-k,page=64,%s", rows[i][0]);
        fa_problem p = problem(of);
        config_of(g, &p, &a, text);
        cr_expect(strstr(text, rows[i][1]), "%s: %s", of, text);
    }
    fa_gen_close(g);
}

/* A family whose operation another text says is found, too. */
Test(runtime_choose, gradients_of_wide_heads_have_families)
{
    fa_gen *g;
    fa_arch a = h200();
    char text[400];
    fa_problem p = problem("bf16,d=320,mask=causal,op=backward,b=1,hq=8,hkv=8,sq=2048,sk=2048");
    cr_assert_eq(fa_gen_open_lazy(&g), FA_OK);
    config_of(g, &p, &a, text);
    cr_expect(!strncmp(text, "wide_bwd_mma:", 13), "%s", text);
    p = problem("fp32,d=320,mask=causal,op=backward,b=1,hq=8,hkv=8,sq=512,sk=512");
    config_of(g, &p, &a, text);
    cr_expect(!strncmp(text, "wide_bwd:", 9), "%s", text);
    fa_gen_close(g);
}

/* The same facts have the same hash; one config less, another. */
Test(runtime_choose, facts_are_told_apart_by_their_hash)
{
    fa_arch a = h200(), other = *fa_arch_find("sm_80");
    fa_problem p = problem("bf16,d=64,mask=causal,b=1,hq=32,hkv=32,sq=16384,sk=16384"), point = fa_problem_point(&p);
    fa_facts x, y, z;
    cr_assert_eq(fa_facts_of(&x, NULL, &point, &a, 0), FA_OK);
    cr_assert_eq(fa_facts_of(&y, NULL, &point, &a, 0), FA_OK);
    cr_assert_eq(fa_facts_of(&z, NULL, &point, &other, 0), FA_OK);
    cr_expect(x.n && x.hash == y.hash && x.hash != z.hash);
    for (size_t i = 0; i + 1 < x.n; i++)
        cr_expect(x.fact[i].own >= x.fact[i + 1].own && (x.fact[i].own || x.fact[i].far <= x.fact[i + 1].far));
    fa_facts_free(&x);
    fa_facts_free(&y);
    fa_facts_free(&z);
}
