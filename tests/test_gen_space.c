/* The space: laws that hold for every family, chip and budget. */
#include "gen/family.h"
#include "gen/model.h"
#include "gen/score/known.h"
#include "gen/score/shipped.h"
#include "gen/start.h"
#include "test_full.h"
#include "test_gen_toy.h"

static const char *const problems[] = {
    "bf16,d=128,mask=causal", "fp16,d=64", "tf32,d=64", "fp32,d=32", "bf16,d=40,dv=72,o=fp32,mask=window", "fp16,d=7", "bf16,d=256", NULL,
};

static fa_gen *open_gen(const char *dir)
{
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    return g;
}

static fa_problem parse(const char *s)
{
    fa_problem p;
    cr_assert_eq(fa_problem_parse(&p, s), FA_OK, "%s: %s", s, fa_last_error());
    return p;
}

static void check_points(const fa_space *s, const fa_arch *a, int32_t budget)
{
    size_t fitting = 0;
    int32_t smallest = 0;
    for (size_t i = 0; i < s->n; i++) {
        const fa_point *pt = &s->points[i];
        fitting += pt->fits;
        cr_expect_eq(pt->fits, !pt->constraint[0], "a point fits, or says why not");
        cr_expect_eq(pt->fits, !pt->why[0], "%s has its numbers", pt->constraint);
        if (pt->fits) {
            cr_expect(pt->smem <= budget && pt->threads >= 1 && pt->threads <= 1024 && pt->regs <= a->regs_thread);
            cr_expect(pt->regs * pt->threads <= a->regs_sm);
        }
        if (!strcmp(pt->constraint, "smem")) {
            char why[104];
            snprintf(why, sizeof why, "%d > %d bytes", pt->smem, budget);
            cr_expect_str_eq(pt->why, why);
            if (pt->regs * pt->threads <= a->regs_sm && pt->threads <= 1024 && pt->regs <= a->regs_thread &&
                fa_config_get(&pt->config, "ctas", 1) == 1)
                cr_expect(s->smallest && s->smallest <= pt->smem);
            smallest = smallest && smallest < pt->smem ? smallest : pt->smem;
        }
    }
    cr_expect_eq(fitting, s->fitting);
    cr_expect(s->smallest == 0 || s->smallest >= smallest);
}

/* Every family of the library, every problem, two chips and three budgets; FAGEN_TEST_FULL=1: three chips. */
Test(space, laws, .timeout = 300)
{
    static const char *const chips[] = { "sm_80", "sm_90a", "sm_86" };
    static const int32_t budgets[] = { 8192, 65536, 0 };
    fa_gen *g = open_gen(NULL);
    for (size_t f = 0; f < fa_gen_families(g); f++)
        for (size_t k = 0; problems[k]; k++)
            for (size_t c = 0; c < 3; c++) {
                if (!full() && c != (f + k) % 2) /* by turns sm_80 and sm_90a */
                    continue;
                fa_problem p = parse(problems[k]);
                const fa_arch *a = fa_arch_find(chips[c]);
                fa_space s[3];
                fa_status st = FA_OK;
                for (int b = 0; b < 3; b++) {
                    st = fa_space_list(g, &p, a, budgets[b], fa_gen_family(g, f), &s[b]);
                    cr_expect(st == FA_OK || st == FA_UNSUPPORTED, "%s: %s", problems[k], fa_last_error());
                    if (st != FA_OK)
                        break;
                    check_points(&s[b], a, budgets[b] ? budgets[b] : a->smem_block);
                }
                if (st != FA_OK)
                    continue;
                cr_assert(s[0].n == s[1].n && s[1].n == s[2].n, "the budget changes no config");
                for (size_t i = 0; i < s[0].n; i++) {
                    cr_expect(fa_config_equal(&s[0].points[i].config, &s[2].points[i].config));
                    cr_expect(!(s[0].points[i].fits && !s[1].points[i].fits) && !(s[1].points[i].fits && !s[2].points[i].fits),
                              "a larger budget removes a point");
                }
                for (int b = 0; b < 3; b++)
                    fa_space_free(&s[b]);
            }
    fa_gen_close(g);
}

/* Whether a point failed a constraint that only keeps configs out of the listing. */
static bool only_unlisted(const fa_gen *g, const fa_point *pt)
{
    const fa_family *f = fa_family_find(g, pt->config.family);
    for (int i = 0; i < f->n_constraints; i++)
        if (!strcmp(f->constraint[i].name, pt->constraint))
            return f->constraint[i].search;
    return false;
}

/* A spread of fitting points of every family renders, twice to the same bytes, and whatever the shape. The others are refused with the
 * reason that the listing tells, or where they are only not listed, render or fail another constraint. */
Test(space, fitting_points_render, .timeout = 300)
{
    fa_gen *g = open_gen(NULL), *h = open_gen(NULL);
    const fa_arch *a = fa_arch_find("sm_80");
    int unlisted_run = 0;
    for (size_t f = 0; f < fa_gen_families(g); f++)
        for (size_t k = 0; problems[k]; k++) {
            fa_problem p = parse(problems[k]), q = p;
            fa_space s;
            q.b = 3, q.hq = 8, q.hkv = 2, q.sq = 100, q.sk = 1000;
            if (fa_space_list(g, &p, a, 0, fa_gen_family(g, f), &s) != FA_OK)
                continue;
            size_t step = s.n / 40 + 1;
            for (size_t i = 0; i < s.n; i += step) {
                fa_source x, y;
                fa_status st = fa_render(g, &p, &s.points[i].config, a, 0, &x);
                bool unlisted = !s.points[i].fits && only_unlisted(g, &s.points[i]);
                unlisted_run += unlisted && st == FA_OK;
                if (unlisted && st != FA_OK) {
                    cr_expect(st == FA_NO_FIT || st == FA_UNSUPPORTED);
                    cr_expect_not(strstr(fa_last_error(), s.points[i].why), "%s", fa_last_error());
                    continue;
                }
                if (!s.points[i].fits && !unlisted) {
                    cr_expect(st == FA_NO_FIT || st == FA_UNSUPPORTED);
                    cr_expect(strstr(fa_last_error(), s.points[i].constraint) && strstr(fa_last_error(), s.points[i].why));
                    continue;
                }
                cr_assert_eq(st, FA_OK, "%s", fa_last_error());
                cr_assert_eq(fa_render(h, &q, &s.points[i].config, a, 0, &y), FA_OK, "%s", fa_last_error());
                cr_expect_str_eq(x.text, y.text);
                cr_expect_str_eq(x.lined, y.lined);
                cr_expect(x.hash[0] == y.hash[0] && x.hash[1] == y.hash[1] && x.steps == y.steps);
                cr_expect(x.steps >= 1 && (unlisted || x.step[0].smem <= s.points[i].smem) && x.step[0].threads <= 1024);
                for (int e = 0; e < x.steps; e++)
                    cr_expect(strstr(x.text, x.step[e].entry), "the text defines %s", x.step[e].entry);
                cr_expect_not(strstr(x.text, "//|"));
                cr_expect_not(strstr(x.text, "$("));
                fa_source_free(&x);
                fa_source_free(&y);
            }
            fa_space_free(&s);
        }
    cr_expect_gt(unlisted_run, 0);
    fa_gen_close(g);
    fa_gen_close(h);
}

Test(space, families_of_the_library)
{
    fa_gen *g = open_gen(NULL);
    cr_assert(fa_gen_families(g) >= 1);
    cr_expect_str_eq(fa_gen_family(g, 0), "decode_ffma");
    cr_expect_null(fa_gen_family(g, fa_gen_families(g)));
    for (size_t f = 0; f < fa_gen_families(g); f++) {
        fa_tunable t;
        size_t i = 0;
        for (; fa_gen_tunable(g, fa_gen_family(g, f), i, &t); i++)
            cr_expect(t.n >= 1 && t.name[0] && t.doc[0]);
        cr_expect_leq(i, FA_CONFIG_MAX);
    }
    fa_gen_close(g);
}

/* No class has more starts than are taken, of a family or of all together: the choice would fail, or leave some out. Each has a price, also
 * where rows are shorter than any that the model was fitted to. */
Test(space, every_class_has_starts)
{
    enum { MOST = 192 };
    static const char *const features[] = { "", ",features=lengths", ",features=batch-invariant", ",features=lengths+pages,page=16",
                                            ",features=lengths+batch-invariant" };
    fa_gen *g = open_gen(NULL);
    const fa_arch *a = fa_arch_find("h100");
    fa_start *start = malloc(MOST * sizeof *start);
    cr_assert_not_null(start);
    for (int d = 8; d <= 256; d += 8)
        for (size_t i = 0; i < sizeof features / sizeof *features; i++)
            for (int few = 0; few < 2; few++) {
                char line[200];
                size_t n = 0;
                snprintf(line, sizeof line, "bf16,d=%d%s,%s,sk=16384", d, features[i],
                         few ? "b=2,hq=8,hkv=1,sq=16" : "b=1,hq=2,hkv=1,sq=100");
                fa_problem p = parse(line);
                cr_expect_eq(fa_gen_starts(g, &p, a, a->smem_block, start, MOST, &n), FA_OK, "%s: %s", line, fa_last_error());
                cr_expect(n > 0 && n < MOST, "%s: %zu starts", line, n);
                for (size_t k = 0; k < n && d <= 40; k++) {
                    fa_cost cost;
                    cr_expect_eq(fa_model_cost(g, &p, &start[k].config, a, 0, &cost), FA_OK, "%s: %s", line, fa_last_error());
                    cr_expect(cost.seconds > 0, "%s: %s takes %g s", line, start[k].config.family, cost.seconds);
                    cr_expect(start[k].priced == FA_OK && start[k].cost.seconds == cost.seconds,
                              "%s: %s asked with the others takes %g s, alone %g", line, start[k].config.family, start[k].cost.seconds,
                              cost.seconds);
                }
            }
    free(start);
    fa_gen_close(g);
}

/* The same of products of 8 bits, of few queries, of one tile and of many. Where boxes of 32 columns hold the least some start fits, so
 * that no space is searched for one. */
Test(space, every_head_of_8_bits_has_starts)
{
    enum { MOST = 192 };
    static const char *const shapes[] = { "sq=16", "sq=64", "sq=100", "sq=1000", "features=lengths,sq=64", "features=v-columns,sq=1000" };
    fa_gen *g = open_gen(NULL);
    const fa_arch *a = fa_arch_find("h200");
    fa_start *start = malloc(MOST * sizeof *start);
    cr_assert_not_null(start);
    for (int d = 16; d <= 256; d += 16)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            char line[200];
            size_t n = 0;
            snprintf(line, sizeof line, "e4m3,d=%d,o=bf16,b=2,hq=4,hkv=2,sk=1000,%s", d, shapes[i]);
            fa_problem p = parse(line);
            cr_expect_eq(fa_gen_starts(g, &p, a, a->smem_block, start, MOST, &n), FA_OK, "%s: %s", line, fa_last_error());
            cr_expect((n > 0 || d == 208 || (d % 64 > 32)) && n < MOST, "%s: %zu starts", line, n);
        }
    free(start);
    fa_gen_close(g);
}

/* The same under the programs that ship, whose masks and arrays bring tiles of their own. */
Test(space, every_program_has_starts)
{
    enum { MOST = 192 };
    static const int dims[] = { 8, 16, 32, 40, 64, 80, 128, 192, 256 };
    static const char *const masks[] = { "none", "causal" };
    fa_gen *g = open_gen(NULL);
    const fa_arch *a = fa_arch_find("h100");
    fa_start *start = malloc(MOST * sizeof *start);
    cr_assert_not_null(start);
    for (const fa_score_file *file = fa_score_shipped; file->name; file++)
        for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
            for (size_t k = 0; k < 2; k++) {
                char line[200];
                size_t n = 0;
                const fa_program *program;
                snprintf(line, sizeof line, "bf16,d=%d,mask=%s,b=1,hq=4,hkv=4,sq=4096,sk=4096", dims[i], masks[k]);
                fa_problem p = parse(line);
                cr_assert_eq(fa_score_known_read(&program, "score", file->bytes, file->size), FA_OK, "%s", fa_last_error());
                fa_score_known_name(&p, program);
                cr_expect_eq(fa_gen_starts(g, &p, a, a->smem_block, start, MOST, &n), FA_OK, "%s, %s: %s", file->name, line,
                             fa_last_error());
                cr_expect(n > 0 && n < MOST, "%s, %s: %zu starts", file->name, line, n);
            }
    free(start);
    fa_gen_close(g);
}

Test(space, the_toy)
{
    char dir[64];
    toy_dir(dir, "x $(c.br) $(c.bc)\n");
    fa_gen *g = open_gen(dir);
    fa_problem p = parse("bf16,d=64"), wide = parse("bf16,d=256");
    const fa_arch *a = fa_arch_find("sm_80");
    fa_space s;
    cr_assert_eq(fa_space_list(g, &p, a, 0, "toy", &s), FA_OK, "%s", fa_last_error());
    static const int want[6][3] = { { 16, 8, 1 }, { 16, 24, 1 }, { 32, 8, 1 }, { 32, 24, 0 }, { 64, 8, 1 }, { 64, 24, 1 } };
    cr_assert_eq(s.n, 6);
    cr_expect(s.fitting == 5 && s.smallest == 0);
    for (int i = 0; i < 6; i++)
        cr_expect(fa_config_get(&s.points[i].config, "br", 0) == want[i][0] && fa_config_get(&s.points[i].config, "bc", 0) == want[i][1] &&
                  s.points[i].fits == want[i][2]);
    cr_expect_str_eq(s.points[3].constraint, "square");
    cr_expect_str_eq(s.points[3].why, "32 x 24");
    cr_expect_eq(s.points[3].smem, 0);
    cr_expect_eq(s.points[0].smem, (16 + 8) * 128);
    cr_expect_eq(fa_space_check(&s, &p, a, 0), FA_OK);
    fa_space_free(&s);

    cr_assert_eq(fa_space_list(g, &p, a, 1000, "toy", &s), FA_OK);
    cr_expect(s.fitting == 0 && s.smallest == 3072);
    cr_expect_str_eq(s.points[0].why, "3072 > 1000 bytes");
    cr_expect_eq(fa_space_check(&s, &p, a, 1000), FA_NO_FIT);
    cr_expect(strstr(fa_last_error(), "1000 bytes") && strstr(fa_last_error(), "3072 (toy:br=16,bc=8)"), "%s", fa_last_error());
    fa_space_free(&s);

    cr_expect_eq(fa_space_list(g, &wide, a, 0, "toy", &s), FA_UNSUPPORTED);
    cr_expect(strstr(fa_last_error(), "toy: d > 200"), "%s", fa_last_error());
    cr_expect_eq(fa_space_list(g, &p, a, 0, "flash_fwd_abacus", &s), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "flash_fwd_abacus") && strstr(fa_last_error(), "toy"), "%s", fa_last_error());
    cr_expect_eq(fa_space_list(g, &p, a, -1, "toy", &s), FA_INVALID);
    cr_assert_eq(fa_space_list(g, &p, a, 0, NULL, &s), FA_OK, "%s", fa_last_error());
    for (size_t i = 0; i < s.n; i++)
        cr_assert_str_neq(s.points[i].config.family, "toy", "a family that is no default is listed only when named");
    fa_space_free(&s);
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

/* What only the search passes over is not listed, but renders and has a price. */
Test(space, what_is_not_worth_trying_still_runs)
{
    static const char lua[] = "return { doc = 'x', tunables = { { 'a', { 1, 2, 3 }, 'n' }, { 'b', { 1, 2, 3 }, 'n' } },\n"
                              "  supports = function(p) if p.d > 200 then return false, 'd > 200' end return true end,\n"
                              "  constraints = { { 'even', function(p, c) return c.a ~= 2, 'a is 2' end, upto = 'a', search = true },\n"
                              "    { 'equal', function(p, c) return c.a ~= c.b, 'both are ' .. c.a end },\n"
                              "    { 'last', function(p, c) return c.b ~= 3, 'b is 3' end, search = true } },\n"
                              "  layout = function(p, c) return { bytes = c.a * 4096, threads = 32 } end, steps = function() return { { "
                              "entry = 'x', grid = 'sq/64 hq b' } } end,\n"
                              "  work = function() return { rows = 64, cols = 64 } end }\n";
    static const struct {
        const char *config, *constraint;
        fa_status render;
    } rows[] = {
        { "toy:a=1,b=2", "", FA_OK },
        { "toy:a=2,b=1", "even", FA_OK },
        { "toy:a=2,b=2", "even", FA_UNSUPPORTED },
        { "toy:a=3,b=3", "equal", FA_UNSUPPORTED },
        { "toy:a=1,b=3", "last", FA_OK },
        { "toy:a=3,b=1", "smem", FA_NO_FIT },
    };
    char dir[64];
    toy_dir(dir, "x\n");
    toy_write(dir, "toy.lua", lua);
    fa_gen *g = open_gen(dir);
    fa_problem p = parse("bf16,d=64"), wide = parse("bf16,d=256");
    const fa_arch *a = fa_arch_find("sm_80");
    fa_space s;
    fa_point pt;
    fa_config c;
    cr_assert_eq(fa_space_list(g, &p, a, 10000, "toy", &s), FA_OK, "%s", fa_last_error());
    cr_expect(s.n == 7 && s.fitting == 1 && s.smallest == 12288, "%zu of %zu, %d", s.fitting, s.n, s.smallest);
    fa_space_free(&s);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_source x;
        fa_cost k;
        cr_assert_eq(fa_config_parse(&c, rows[i].config), FA_OK);
        cr_assert_eq(fa_space_judge(g, &p, a, 10000, &c, &pt), FA_OK, "%s", fa_last_error());
        cr_expect(!strcmp(pt.constraint, rows[i].constraint) && pt.fits == !rows[i].constraint[0] && fa_config_equal(&pt.config, &c),
                  "%s: %s: %s", rows[i].config, pt.constraint, pt.why);
        cr_expect_eq(fa_render(g, &p, &c, a, 10000, &x), rows[i].render, "%s: %s", rows[i].config, fa_last_error());
        if (rows[i].render == FA_OK)
            cr_expect_eq(fa_model_cost(g, &p, &c, a, 0, &k), FA_OK, "%s", fa_last_error());
        fa_source_free(&x);
    }
    cr_expect_eq(fa_space_judge(g, &wide, a, 0, &c, &pt), FA_UNSUPPORTED);
    cr_expect(strstr(fa_last_error(), "d > 200"), "%s", fa_last_error());
    cr_assert_eq(fa_config_parse(&c, "toy:a=4,b=1"), FA_OK);
    cr_expect_eq(fa_space_judge(g, &p, a, 0, &c, &pt), FA_INVALID);
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

Test(space, render_names_what_is_wrong_with_a_config)
{
    static const struct {
        const char *config, *part;
        fa_status st;
    } rows[] = {
        { "toy:br=16", "bc of toy is missing; accepted: 8, 24", FA_INVALID },
        { "toy:br=16,bc=9", "bc of toy is 9; accepted: 8, 24", FA_INVALID },
        { "toy:br=16,bc=8,warps=4", "toy has no tunable \"warps\"; accepted: br, bc", FA_INVALID },
        { "toys:br=16", "family is \"toys\"", FA_INVALID },
        { "toy:br=32,bc=24", "toy:br=32,bc=24 on sm_80 for bf16,d=64,dv=64,mask=none,o=bf16,align=16: constraint square: 32 x 24",
          FA_UNSUPPORTED },
        { "toy:br=64,bc=24", "toy:br=64,bc=24 on sm_80 for bf16,d=64,dv=64,mask=none,o=bf16,align=16: constraint smem: 11264 > 9000 bytes",
          FA_NO_FIT },
        { "toy:bc=24,br=16", "", FA_OK },
    };
    char dir[64];
    toy_dir(dir, "x $(config_text)\n");
    fa_gen *g = open_gen(dir);
    fa_problem p = parse("bf16,d=64");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_config c;
        fa_source s;
        cr_assert_eq(fa_config_parse(&c, rows[i].config), FA_OK, "%s", fa_last_error());
        cr_expect_eq(fa_render(g, &p, &c, fa_arch_find("sm_80"), 9000, &s), rows[i].st, "%s: %s", rows[i].config, fa_last_error());
        if (rows[i].st == FA_OK)
            cr_expect_str_eq(s.text, "x toy:br=16,bc=24\n", "in the declared order: %s", s.text);
        else
            cr_expect(strstr(fa_last_error(), rows[i].part), "%s gave \"%s\"", rows[i].config, fa_last_error());
        fa_source_free(&s);
    }
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

/* What the engine checks by itself: threads and registers, after the layout. */
Test(space, common_constraints)
{
    static const char lua[] =
        "return { doc = 'x', default = false, tunables = { { 't', { 32, 1024, 2048 }, 'threads' }, { 'r', { 64, 65, 300 }, 'registers' },\n"
        "  { 'ctas', { 1, 2 }, 'blocks per SM' } },\n"
        "  supports = function() return true end, constraints = {},\n"
        "  layout = function(p, c) return { bytes = 0, threads = c.t, regs = c.r, ctas = c.ctas } end,\n"
        "  steps = function(p, c, a, l) return { { entry = 'x', grid = 'hq b' } } end }\n";
    static const struct {
        int t, r, ctas;
        const char *constraint, *why;
    } rows[] = {
        { 32, 64, 1, "", "" },
        { 32, 300, 1, "registers", "300 > 255 per thread" },
        { 1024, 64, 1, "", "" },
        { 1024, 64, 2, "registers", "131072 > 65536 per SM" },
        { 1024, 65, 1, "registers", "66560 > 65536 per SM" },
        { 2048, 64, 1, "threads", "2048 > 1024 threads" },
    };
    char dir[64];
    toy_dir(dir, "x\n");
    toy_write(dir, "toy.lua", lua);
    fa_gen *g = open_gen(dir);
    fa_problem p = parse("bf16,d=64");
    fa_space s;
    cr_assert_eq(fa_space_list(g, &p, fa_arch_find("sm_80"), 0, "toy", &s), FA_OK, "%s", fa_last_error());
    cr_expect_eq(s.n, 18);
    size_t seen = 0;
    for (size_t i = 0; i < s.n; i++)
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            const fa_config *c = &s.points[i].config;
            if (fa_config_get(c, "t", 0) != rows[k].t || fa_config_get(c, "r", 0) != rows[k].r ||
                fa_config_get(c, "ctas", 0) != rows[k].ctas)
                continue;
            seen++;
            cr_expect_str_eq(s.points[i].constraint, rows[k].constraint);
            cr_expect_str_eq(s.points[i].why, rows[k].why);
        }
    cr_expect_eq(seen, sizeof rows / sizeof *rows);
    fa_space_free(&s);
    fa_gen_close(g);
    toy_remove(dir, NULL);
}

/* A fault in a family's function is a fault of the template, with its line. */
/* A listing may allocate as often, and take as many steps, as its configs need: a limit is that of some of them. */
Test(space, a_long_listing_ends)
{
    static const char *const layouts[] = {
        "local s = ('%d %d %d'):format(c.a, c.b, c.c):rep(1000) return { bytes = #s, threads = 32, regs = 40 }",
        "local n = 0 for i = 1, 800 do n = n + i end return { bytes = 64, threads = 32, regs = 40 }"
    };
    char dir[64];
    toy_dir(dir, "x\n");
    fa_problem p = parse("bf16,d=64");
#ifdef __SANITIZE_ADDRESS__ /* whose allocator takes more CPU time than a run of templates may */
    const size_t first = 1;
#else
    const size_t first = 0;
#endif
    for (size_t i = first; i < 2; i++) { /* some 800 MB, and 60 million steps */
        char lua[1024];
        snprintf(lua, sizeof lua,
                 "local t = {} for i = 1, 40 do t[i] = i end\n"
                 "return { doc = 'x', constraints = {}, supports = function() return true end, steps = function() return {} end,\n"
                 "  tunables = { { 'a', t, 'a' }, { 'b', t, 'b' }, { 'c', t, 'c' } }, layout = function(p, c, a) %s end }",
                 layouts[i]);
        toy_write(dir, "toy.lua", lua);
        fa_gen *g = open_gen(dir);
        fa_space s;
        cr_expect_eq(fa_space_list(g, &p, fa_arch_find("sm_80"), 0, "toy", &s), FA_OK, "%s", fa_last_error());
        cr_expect_eq(s.n, 64000, "%zu", s.n);
        fa_space_free(&s);
        fa_gen_close(g);
    }
    toy_remove(dir, NULL);
}

Test(space, faults_of_a_family)
{
    static const struct {
        const char *layout, *part;
    } rows[] = {
        { "return nil", "layout returned a nil" },
        { "return {}", "bytes of layout is not an integer" },
        { "return { bytes = 1.5, threads = 32 }", "bytes of layout is not an integer" },
        { "return { bytes = -1, threads = 32 }", "bytes of layout is not an integer" },
        { "return { bytes = 0, threads = 0 }", "threads of layout is 0" },
        { "return { bytes = p.dd, threads = 32 }", "toy.lua:3: the problem has no field 'dd'" },
        { "return { bytes = c.zz + 1, threads = 32 }", "toy.lua:3: attempt to perform arithmetic on a nil value (field 'zz')" },
        { "while true do end", "toy.lua:3: the step limit is used up" },
    };
    char dir[64];
    toy_dir(dir, "x\n");
    fa_problem p = parse("bf16,d=64");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char lua[1024];
        snprintf(lua, sizeof lua,
                 "return { doc = 'x', tunables = { { 't', { 1 }, 't' } }, constraints = {},\n"
                 "  supports = function() return true end, layout = function(p, c, a)\n%s end,\n"
                 "  steps = function() return {} end }",
                 rows[i].layout);
        toy_write(dir, "toy.lua", lua);
        fa_gen *g = open_gen(dir);
        fa_space s;
        cr_expect_eq(fa_space_list(g, &p, fa_arch_find("sm_80"), 0, "toy", &s), FA_TEMPLATE, "%s", rows[i].layout);
        cr_expect(strstr(fa_last_error(), rows[i].part), "\"%s\" gave \"%s\"", rows[i].layout, fa_last_error());
        cr_expect(!s.points && !s.n);
        fa_gen_close(g);
    }
    toy_remove(dir, NULL);
}
