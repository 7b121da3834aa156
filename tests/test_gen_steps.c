/* What a family's steps() may say, on toys: maps, grids, clusters, counters, and every way to say it wrongly. */
#include "test_gen_toy.h"

/* Renders toy:br=16,bc=8 whose one step has more fields, on arch. */
static fa_status render(const char *more, const char *problem, const char *arch, fa_source *out)
{
    char dir[64], lua[4096];
    const char *at = strstr(toy_lua, "br = c.br } }");
    fa_gen *g;
    fa_problem p;
    fa_config c;
    toy_dir(dir, "extern \"C\" __global__ void toy() {}\n");
    snprintf(lua, sizeof lua, "%.*sbr = c.br, %s%s", (int)(at - toy_lua), toy_lua, more, at + strlen("br = c.br"));
    toy_write(dir, "toy.lua", lua);
    *out = (fa_source){ 0 };
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_problem_parse(&p, problem), FA_OK);
    cr_assert_eq(fa_config_parse(&c, "toy:br=16,bc=8"), FA_OK);
    fa_status st = fa_render(g, &p, &c, fa_arch_find(arch), 0, out);
    fa_gen_close(g);
    toy_remove(dir, NULL);
    return st;
}

Test(steps, defaults)
{
    fa_source s;
    cr_assert_eq(render("", "bf16,d=64", "sm_80", &s), FA_OK, "%s", fa_last_error());
    cr_expect(s.step[0].per_sm == 0 && s.step[0].cluster == 1 && s.step[0].counter == 0 && s.step[0].early == 0 && s.step[0].n_maps == 0);
    fa_source_free(&s);
}

Test(steps, all_fields)
{
    fa_source s;
    cr_assert_eq(render("per_sm = 2, cluster = 4, counter = true, early = true, maps = { { tensor = \"q\", cols = 64, rows = 256, swizzle = 128 },"
                        " { tensor = \"k\", cols = 256, rows = 1 }, { tensor = \"v\", cols = 8, rows = 2, swizzle = 32 },"
                        " { tensor = \"o\", cols = 32, rows = 3, swizzle = 64 } }",
                        "bf16,d=64", "sm_90a", &s),
                 FA_OK, "%s", fa_last_error());
    const fa_step *t = &s.step[0];
    cr_expect(t->per_sm == 2 && t->cluster == 4 && t->counter == 1 && t->early == 1 && t->n_maps == 4);
    const fa_map expect[] = { { FA_MAP_Q, 64, 256, 128 }, { FA_MAP_K, 256, 1, 0 }, { FA_MAP_V, 8, 2, 32 }, { FA_MAP_O, 32, 3, 64 } };
    for (int i = 0; i < 4; i++)
        cr_expect(!memcmp(&t->map[i], &expect[i], sizeof expect[i]), "map %d: %d, %d x %d, %d", i, t->map[i].tensor, t->map[i].cols,
                  t->map[i].rows, t->map[i].swizzle);
    fa_source_free(&s);
}

#define MAP(x) "maps = { { " x " } }"

Test(steps, faults_are_named)
{
    static const struct {
        const char *step, *problem, *arch, *says;
    } rows[] = {
        { "per_sm = 33", "bf16,d=64", "sm_90a", "per_sm of step toy is 33; accepted: 0" },
        { "per_sm = -1", "bf16,d=64", "sm_90a", "per_sm of a step is not an integer" },
        { "early = 2", "bf16,d=64", "sm_90a", "early of step toy is 2; accepted on sm_90a: 0, 1" },
        { "early = 1", "bf16,d=64", "sm_80", "early of step toy is 1; accepted on sm_80: 0" },
        { "cluster = 0", "bf16,d=64", "sm_90a", "cluster of step toy is 0; accepted: 1 (none) to 8" },
        { "cluster = 9", "bf16,d=64", "sm_90a", "cluster of step toy is 9" },
        { "cluster = 2", "bf16,d=64", "sm_89", "cluster of step toy is 2; accepted on sm_89" },
        { "counter = 2", "bf16,d=64", "sm_90a", "counter of step toy is 2; accepted: 0, 1" },
        { "maps = 1", "bf16,d=64", "sm_90a", "maps of step toy is not an array of at most 4" },
        { "maps = { 1, 2, 3, 4, 5 }", "bf16,d=64", "sm_90a", "maps of step toy is not an array of at most 4" },
        { "maps = { 7 }", "bf16,d=64", "sm_90a", "map 1 of step toy is a number; accepted: { tensor" },
        { MAP("tensor = 'q', cols = 64, rows = 64"), "bf16,d=64", "sm_80", "step toy has maps; accepted on sm_80, which has no TMA" },
        { MAP("tensor = 'qq', cols = 64, rows = 64"), "bf16,d=64", "sm_90a", "tensor of map 1 of step toy is \"qq\"; accepted: q, k, v, o" },
        { MAP("cols = 64, rows = 64"), "bf16,d=64", "sm_90a", "tensor of map 1 of step toy is \"nil\"" },
        { MAP("tensor = 'q', rows = 64"), "bf16,d=64", "sm_90a", "cols of map 1 of step toy is not an integer" },
        { MAP("tensor = 'q', cols = 64"), "bf16,d=64", "sm_90a", "rows of map 1 of step toy is not an integer" },
        { MAP("tensor = 'q', cols = 64.5, rows = 64"), "bf16,d=64", "sm_90a", "cols of map 1 of step toy is not an integer" },
        { MAP("tensor = 'q', cols = 0, rows = 64"), "bf16,d=64", "sm_90a", "cols of map 1 of step toy is 0; accepted: a multiple of 8" },
        { MAP("tensor = 'q', cols = 12, rows = 64"), "bf16,d=64", "sm_90a", "cols of map 1 of step toy is 12; accepted: a multiple of 8" },
        { MAP("tensor = 'q', cols = 6, rows = 64"), "tf32,d=64", "sm_90a", "cols of map 1 of step toy is 6; accepted: a multiple of 4" },
        { MAP("tensor = 'q', cols = 264, rows = 64"), "bf16,d=64", "sm_90a", "cols of map 1 of step toy is 264; accepted" },
        { MAP("tensor = 'q', cols = 64, rows = 0"), "bf16,d=64", "sm_90a", "rows of map 1 of step toy is 0; accepted: 1 to 256" },
        { MAP("tensor = 'q', cols = 64, rows = 257"), "bf16,d=64", "sm_90a", "rows of map 1 of step toy is 257" },
        { MAP("tensor = 'q', cols = 64, rows = 64, swizzle = 16"), "bf16,d=64", "sm_90a", "swizzle of map 1 of step toy is 16; accepted: 0, 32, 64, 128" },
        { MAP("tensor = 'q', cols = 64, rows = 64, swizzle = 64"), "bf16,d=64", "sm_90a", "cols of map 1 of step toy is 64, 128 bytes; accepted with a swizzle of 64" },
        { MAP("tensor = 'o', cols = 32, rows = 64"), "bf16,d=64,o=fp32", "sm_90a", "map 1 of step toy is of o, which is fp32 here" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_source s;
        cr_expect_eq(render(rows[i].step, rows[i].problem, rows[i].arch, &s), FA_TEMPLATE, "%s", rows[i].step);
        cr_expect(strstr(fa_last_error(), rows[i].says), "%s: %s", rows[i].step, fa_last_error());
        fa_source_free(&s);
    }
}

Test(steps, maps_of_4_byte_types)
{
    fa_source s;
    cr_assert_eq(render(MAP("tensor = 'o', cols = 32, rows = 64, swizzle = 128"), "tf32,d=64", "sm_90a", &s), FA_OK, "%s", fa_last_error());
    cr_expect_eq(s.step[0].map[0].tensor, FA_MAP_O);
    fa_source_free(&s);
    cr_expect_eq(render(MAP("tensor = 'k', cols = 36, rows = 64, swizzle = 128"), "fp32,d=64", "sm_90a", &s), FA_TEMPLATE);
    cr_expect(strstr(fa_last_error(), "36, 144 bytes"), "%s", fa_last_error());
}

/* score_bytes of a family: a number, or a function of problem, config and arch. */
Test(steps, bytes_of_a_score)
{
    static const struct {
        const char *said;
        int32_t bytes; /* -1: refused */
    } rows[] = { { "function() return 0 end", 0 },   { "function() return 64 end", 64 },  { "function(p, c) return c.br // 4 end", 4 }, { "function() return 65 end", -1 },
                 { "function() return -1 end", -1 }, { "function() return 1.5 end", -1 }, { "function() return 'x' end", -1 },        { "function() return nil end", -1 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char dir[64], lua[4096];
        fa_gen *g;
        fa_problem p;
        fa_config c;
        fa_source s = { 0 };
        const char *at = strstr(toy_lua, "tunables");
        toy_dir(dir, "extern \"C\" __global__ void toy() {}\n");
        snprintf(lua, sizeof lua, "%.*sscore_bytes = %s, %s", (int)(at - toy_lua), toy_lua, rows[i].said, at);
        toy_write(dir, "toy.lua", lua);
        cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
        cr_assert_eq(fa_problem_parse(&p, "bf16,d=64"), FA_OK);
        cr_assert_eq(fa_config_parse(&c, "toy:br=16,bc=8"), FA_OK);
        fa_status st = fa_render(g, &p, &c, fa_arch_find("sm_80"), 0, &s);
        cr_expect_eq(st, rows[i].bytes < 0 ? FA_TEMPLATE : FA_OK, "%s: %s", rows[i].said, fa_last_error());
        if (rows[i].bytes < 0)
            cr_expect(strstr(fa_last_error(), "templates/toy.lua: score_bytes returned no integer from 0 to 64"), "%s", fa_last_error());
        else
            cr_expect_eq(s.score_bytes, rows[i].bytes, "%s: %d", rows[i].said, s.score_bytes);
        fa_source_free(&s);
        fa_gen_close(g);
        toy_remove(dir, NULL);
    }
}
