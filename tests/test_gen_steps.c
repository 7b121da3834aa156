/* What a family's steps() may say, on toys: maps, grids, clusters, counters, and every way to say it wrongly. */
#include "test_gen_toy.h"
#include <math.h>

/* Renders toy:br=16,bc=8 whose one step has more fields, on arch. */
static fa_status render(const char *more, const char *problem, const char *arch, fa_source *out)
{
    char dir[64], lua[4096];
    static const char step[] = "grid = ('sq/%d hq b'):format(c.br)";
    const char *at = strstr(toy_lua, step);
    fa_gen *g;
    fa_problem p;
    fa_config c;
    toy_dir(dir, "extern \"C\" __global__ void toy() {}\n");
    const char *fields = strstr(toy_lua, "return {") + strlen("return {");
    snprintf(lua, sizeof lua, "%.*s formats = \"q8_0\",%.*s%s, %s%s", (int)(fields - toy_lua), toy_lua, (int)(at - fields), fields, step,
             more, at + strlen(step));
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
    cr_expect(s.step[0].per_sm == 0 && s.step[0].cluster == 1 && s.step[0].counter == 0 && s.step[0].pdl == 0 && s.step[0].n_maps == 0);
    cr_expect(s.step[0].keys_most == 0);
    fa_source_free(&s);
}

Test(steps, all_fields)
{
    fa_source s;
    cr_assert_eq(
        render("per_sm = 2, cluster = 4, counter = true, pdl = true, keys_most = 7, maps = { { tensor = \"q\", cols = 64, rows = 256, "
               "swizzle = 128 },"
               " { tensor = \"k\", cols = 256, rows = 1, boxes = 0 }, { tensor = \"v\", cols = 16, rows = 24, swizzle = 32, boxes = 4 },"
               " { tensor = \"o\", cols = 32, rows = 3, swizzle = 64 } }",
               "bf16,d=64", "sm_90a", &s),
        FA_OK, "%s", fa_last_error());
    const fa_step *t = &s.step[0];
    cr_expect(t->per_sm == 2 && t->cluster == 4 && t->counter == 1 && t->pdl == 1 && t->keys_most == 7 && t->n_maps == 4);
    const fa_map expect[] = {
        { 0, 64, 256, 128, 0, 0, 0, 0, 0, 0 },
        { 1, 256, 1, 0, 0, 0, 0, 0, 0, 0 },
        { 2, 16, 24, 32, 4, 0, 0, 0, 0, 0 },
        { 3, 32, 3, 64, 0, 0, 0, 0, 0, 0 },
    };
    for (int i = 0; i < 4; i++)
        cr_expect(!memcmp(&t->map[i], &expect[i], sizeof expect[i]), "map %d: %d, %d x %d, %d, %d", i, t->map[i].operand, t->map[i].cols,
                  t->map[i].rows, t->map[i].swizzle, t->map[i].boxes);
    fa_source_free(&s);
}

#define MAP(x) "maps = { { " x " } }"

Test(steps, faults_are_named)
{
    static const struct {
        const char *step, *problem, *arch, *says;
    } rows[] = {
        { "grid = 1", "bf16,d=64", "sm_90a", "grid of toy is a number; accepted: a product of extents" },
        { "grid = 'sq/0 hq b'", "bf16,d=64", "sm_90a", "\"sq/0\" of \"sq/0 hq b\" is no extent; accepted: b, sq, sk" },
        { "grid = 'sq/64 heads b'", "bf16,d=64", "sm_90a", "\"heads\" of \"sq/64 heads b\" is no extent" },
        { "grid = 'b b b b b b b'", "bf16,d=64", "sm_90a", "too many factors; accepted: at most 6" },
        { "grid = '12x'", "bf16,d=64", "sm_90a", "\"12x\" of" },
        { "grid = '2147483648'", "bf16,d=64", "sm_90a", "\"2147483648\" of" },
        { "per_sm = 33", "bf16,d=64", "sm_90a", "per_sm of step toy is 33; accepted: 0" },
        { "per_sm = -1", "bf16,d=64", "sm_90a", "per_sm of a step is not an integer" },
        { "pdl = 2", "bf16,d=64", "sm_90a", "pdl of step toy is 2; accepted on sm_90a: 0, 1" },
        { "pdl = 1", "bf16,d=64", "sm_80", "pdl of step toy is 1; accepted on sm_80: 0" },
        { "cluster = 0", "bf16,d=64", "sm_90a", "cluster of step toy is 0; accepted: 1 (none) to 8" },
        { "cluster = 9", "bf16,d=64", "sm_90a", "cluster of step toy is 9" },
        { "cluster = 2", "bf16,d=64", "sm_89", "cluster of step toy is 2; accepted on sm_89" },
        { "counter = 2", "bf16,d=64", "sm_90a", "counter of step toy is 2; accepted: 0, 1" },
        { "maps = 1", "bf16,d=64", "sm_90a", "maps of step toy is not an array of at most 12" },
        { "maps = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 }", "bf16,d=64", "sm_90a", "maps of step toy is not an array of at most 12" },
        { "maps = { 7 }", "bf16,d=64", "sm_90a", "map 1 of step toy is a number; accepted: { tensor" },
        { MAP("tensor = 'q', cols = 64, rows = 64"), "bf16,d=64", "sm_80", "step toy has maps; accepted on sm_80, which has no TMA" },
        { MAP("tensor = 'qq', cols = 64, rows = 64"), "bf16,d=64", "sm_90a",
          "tensor of map 1 of step toy is \"qq\"; accepted: q, k, v, o" },
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
        { MAP("tensor = 'q', cols = 64, rows = 64, swizzle = 16"), "bf16,d=64", "sm_90a",
          "swizzle of map 1 of step toy is 16; accepted: 0, 32, 64, 128" },
        { MAP("tensor = 'q', cols = 64, rows = 64, swizzle = 64"), "bf16,d=64", "sm_90a",
          "cols of map 1 of step toy is 64, 128 bytes; accepted with a swizzle of 64" },
        { MAP("tensor = 'k', cols = 64, rows = 16, boxes = 1"), "bf16,d=64", "sm_90a",
          "boxes of map 1 of step toy is 1, with cols of 64; accepted: 0, or from 2 on as many as make a row of 64" },
        { MAP("tensor = 'v', cols = 64, rows = 16, boxes = 2"), "bf16,d=128,dv=96", "sm_90a", "boxes of map 1 of step toy is 2" },
        { MAP("tensor = 'k', cols = 64, rows = 12, boxes = 2"), "bf16,d=128,dv=96", "sm_90a",
          "rows of map 1 of step toy is 12; accepted with boxes: a multiple of 8" },
        { MAP("tensor = 'k', cols = 138, rows = 32, together = 2"), "bf16,d=128", "sm_90a", "map 1 of step toy is of k" },
        { MAP("tensor = 'q', cols = 138, rows = 32, together = 2"), "bf16,d=128,kv=q8_0", "sm_90a", "map 1 of step toy is of q" },
        { MAP("tensor = 'k', cols = 138, rows = 32, together = 9"), "bf16,d=128,kv=q8_0", "sm_90a",
          "together of map 1 of step toy is 9, with cols of 138 pieces of 8 bytes; accepted: 0, or from 2 on as many rows of 136 bytes" },
        { MAP("tensor = 'k', cols = 138, rows = 32, together = 1"), "bf16,d=128,kv=q8_0", "sm_90a", "together of map 1 of step toy is 1" },
        { MAP("tensor = 'v', cols = 138, rows = 32, together = 3"), "bf16,d=128,kv=q8_0", "sm_90a", "together of map 1 of step toy is 3" },
        { MAP("tensor = 'v', cols = 138, rows = 32, together = 2, boxes = 2"), "bf16,d=128,kv=q8_0", "sm_90a", "boxes of map 1" },
        { MAP("array = 0, row_index = 0, cols = 64, rows = 64"), "bf16,d=64", "sm_90a", "map 1 of step toy is of an array; accepted" },
        { MAP("tensor = 'q', cols = 64, rows = 64 }, { array = 0, row_index = 0, cols = 64, rows = 64"), "bf16,d=64", "sm_90a",
          "array of map 2 of step toy is 0; accepted: the number of an array of 16-bit elements of the score program" },
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
    cr_expect_eq(s.step[0].map[0].operand, 3);
    fa_source_free(&s);
    cr_expect_eq(render(MAP("tensor = 'k', cols = 36, rows = 64, swizzle = 128"), "fp32,d=64", "sm_90a", &s), FA_TEMPLATE);
    cr_expect(strstr(fa_last_error(), "36, 144 bytes"), "%s", fa_last_error());
}

/* A family's field, a text or a function of problem, config, arch and layout. */
static fa_status render_field(const char *field, const char *said, fa_source *out)
{
    char dir[64], lua[4096];
    const char *at = strstr(toy_lua, "tunables");
    toy_dir(dir, "extern \"C\" __global__ void toy() {}\n");
    snprintf(lua, sizeof lua, "%.*s%s = %s, %s", (int)(at - toy_lua), toy_lua, field, said, at);
    toy_write(dir, "toy.lua", lua);
    fa_status st = toy_render(dir, out);
    toy_remove(dir, NULL);
    return st;
}

Test(steps, workspace)
{
    static const struct {
        const char *said, *prints; /* NULL: refused */
        int64_t bytes;
    } rows[] = {
        { "''", "", 0 },
        { "'scores fp32 b hq sq sk'", "scores fp32 b hq sq sk", 65536 + 2 * 8 * 100 * 200 * 4 },
        { "'counters'", "counters", 65536 },
        { "'counters, m fp32 b hq sq, n int32 3'", "counters, m fp32 b hq sq, n int32 3", 65536 + 6400 + 256 },
        { "' m  fp16   sq/64  hq , '", "m fp16 sq/64 hq", 65536 + 256 },
        { "function(p, c, a, l) return ('m fp32 %d rows hkv'):format(c.br) end", "m fp32 16 rows hkv", 65536 + 16 * 200 * 4 * 4 },
        { "'ds bf16 units group sq/64 sk/64 4096'", "ds bf16 units group sq/64 sk/64 4096", 65536 + 8 * 2 * 2 * 4 * 4096 * 2 },
        { "'m fp32 total_q total_k sms'", "m fp32 total_q total_k sms", 65536 + 200ll * 400 * 132 * 4 },
        { "'m'", NULL, 0 },
        { "'m fp32'", NULL, 0 },
        { "'m fp64 b'", NULL, 0 },
        { "'m fp32 b/'", NULL, 0 },
        { "'m fp32 unit'", NULL, 0 },
        { "'a_name_of_17_lett fp32 b'", NULL, 0 },
        { "'a fp32 b,b fp32 b,c fp32 b,d fp32 b,e fp32 b,f fp32 b,g fp32 b,h fp32 b,i fp32 b,j fp32 b,k fp32 b,l fp32 b,m fp32 b,"
          "n fp32 b,o fp32 b,p fp32 b,q fp32 b'",
          NULL, 0 },
        { "7", NULL, 0 },
        { "function() end", NULL, 0 },
    };
    fa_problem p = shaped_problem("bf16,d=64,b=2,hq=8,hkv=4,sq=100,sk=200");
    fa_sizes sizes = fa_sizes_of(&p, 132);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_source s;
        char text[256];
        int64_t offset[FA_BUFFERS_MAX];
        cr_expect_eq(render_field("workspace", rows[i].said, &s), rows[i].prints ? FA_OK : FA_TEMPLATE, "%s: %s", rows[i].said,
                     fa_last_error());
        if (rows[i].prints) {
            fa_workspace_print(text, sizeof text, &s.workspace);
            cr_expect_str_eq(text, rows[i].prints);
            cr_expect_eq(fa_workspace_bytes(&s.workspace, &sizes, offset), rows[i].bytes, "%s", rows[i].said);
            for (int32_t k = 0; k < s.workspace.n; k++) /* a kernel with counters may share the workspace */
                cr_expect_geq(offset[k], FA_WORKSPACE_COUNTERS, "%s", rows[i].said);
        } else
            cr_expect(strstr(fa_last_error(), "templates/toy.lua: workspace"), "%s: %s", rows[i].said, fa_last_error());
        fa_source_free(&s);
    }
}

/* Units that are done at a time, out of what one takes. */
Test(steps, units_at_a_time)
{
    static const struct {
        const char *workspace;
        int64_t units, at_a_time, bytes; /* bytes: of the buffers at a time, without what is before them; -1: too many */
    } rows[] = {
        { "", 7, 7, 0 },
        { "m fp32 b sq", 7, 7, 512 }, /* nothing is over units */
        { "s fp16 units 1024", 7, 7, 7 * 2048 },
        { "s fp16 units 536870912", 1, 1, 1 << 30 }, /* one takes all that is there */
        { "s fp32 units 134217728", 2, 2, 1 << 30 }, /* two do */
        { "s fp32 units 134217728", 3, 2, 1 << 30 }, /* two and one */
        { "s fp32 units 134217728", 4, 2, 1 << 30 },
        { "s fp32 units 53687091", 11, 4, 4 * 53687091ll * 4 }, /* five fit, but 4, 4, 3 keep more of the chip busy than 5, 5, 1 */
        { "s fp32 units 53687091", 12, 4, 4 * 53687091ll * 4 },
        { "s fp32 units 53687091", 10, 5, 5 * 53687091ll * 4 },
        { "s fp32 units 53687091", 5, 5, 5 * 53687091ll * 4 },
        { "s fp32 units 268435457", 5, 1, 268435457ll * 4 }, /* one is larger than the bound */
        { "s fp32 units 536870912 16", 3, 1, 1ll << 35 },
        { "s fp32 units 100000000, t fp16 units 68435457", 4, 1, 400000000 + 136870914 }, /* both together count */
        { "s fp32 units 100000000, t fp16 units 68435456", 4, 2, 800000000 + 273741824 },
        { "s fp32 units 100000000, m fp32 2000000000", 4, 2, 800000000 + 8000000000 }, /* what is not over units does not */
        { "s fp32 units 100000000", 0, 0, 0 },
        { "s fp32 units 2147483647 2147483647 2147483647", 3, 1, -1 }, /* a unit of more than 2^63 - 1 bytes */
        { "s fp32 units 2147483647 1073741824, t fp32 units 2147483647", 3, 1, -1 },
        { "s fp32 units 2147483647 1073741823, t fp32 units 2147483647 1073741823", 3, 1, -1 }, /* their sum is */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_workspace w;
        fa_sizes s = { .of = { [FA_EXTENT_B] = 2, [FA_EXTENT_SQ] = 64, [FA_EXTENT_UNITS] = rows[i].units } };
        cr_assert_eq(fa_workspace_parse(&w, rows[i].workspace), FA_OK, "%s", fa_last_error());
        int64_t n = fa_workspace_portion(&w, &s).units, bytes = fa_workspace_bytes(&w, &s, NULL), first = w.n ? FA_WORKSPACE_COUNTERS : 0,
                sum = 0;
        cr_expect_eq(n, rows[i].at_a_time, "%s of %lld: %lld", rows[i].workspace, (long long)rows[i].units, (long long)n);
        for (int32_t k = 0; k < w.n; k++)
            sum += FA_WORKSPACE_ALIGN - 1; /* each may be rounded up */
        if (rows[i].bytes < 0)
            cr_expect_eq(bytes, -1, "%s: %lld", rows[i].workspace, (long long)bytes);
        else
            cr_expect(bytes >= first + rows[i].bytes && bytes <= first + rows[i].bytes + sum, "%s of %lld: %lld bytes", rows[i].workspace,
                      (long long)rows[i].units, (long long)bytes);
    }
}

/* As many each time as may be, the last at most one unit short of the others where there are enough. */
Test(steps, units_are_shared_out_evenly)
{
    fa_workspace w;
    cr_assert_eq(fa_workspace_parse(&w, "s fp32 units 20000000"), FA_OK, "%s", fa_last_error()); /* 13 of them are there at a time */
    for (int64_t units = 1; units <= 300; units++) {
        fa_sizes s = { .of = { [FA_EXTENT_UNITS] = units } };
        int64_t n = fa_workspace_portion(&w, &s).units, times = (units + n - 1) / n;
        cr_expect(n >= 1 && n <= 13 && times == (units + 12) / 13, "%lld of %lld: %lld times", (long long)n, (long long)units,
                  (long long)times);
        cr_expect(times * (n - 1) < units, "%lld of %lld: fewer would do as often", (long long)n, (long long)units);
    }
}

/* 12 units of a problem; a buffer over them of so many MiB of each. */
Test(steps, units_of_a_workspace)
{
    static const struct {
        const char *said;
        int64_t units, mebibytes; /* at a time, and of buffers */
    } rows[] = {
        { "m fp32 b hq sq", 12, 0 }, /* none over units: all */
        { "m fp32 units 262144", 12, 12 },
        { "m fp32 units 22282240", 12, 12 * 85 },
        { "m fp32 units 22544384", 6, 6 * 86 }, /* 12 are more than 1 GiB: as many each time */
        { "m fp32 units 67108864", 4, 4 * 256 },
        { "m fp32 units 67371008", 3, 3 * 257 },
        { "m fp16 units 262144 256, n fp32 units 33554432", 4, 4 * 256 }, /* together */
        { "m fp32 units 33554432, n fp32 33554432", 6, 6 * 128 + 128 },   /* the other does not count */
        { "m fp32 units 134217728", 2, 2 * 512 },
        { "m fp32 units 134479872", 1, 513 },
        { "m fp32 units 268435456", 1, 1024 },
        { "m fp32 units 1048576 1024", 1, 4096 }, /* one at least */
    };
    fa_problem p = shaped_problem("bf16,d=64,b=3,hq=8,hkv=4,sq=1,sk=1");
    fa_sizes sizes = fa_sizes_of(&p, 132);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_workspace w;
        cr_assert_eq(fa_workspace_parse(&w, rows[i].said), FA_OK, "%s", fa_last_error());
        fa_portion portion = fa_workspace_portion(&w, &sizes);
        cr_expect(portion.units == rows[i].units && portion.members == 2, "%s: %lld", rows[i].said, (long long)portion.units);
        cr_expect_eq(fa_workspace_bytes(&w, &sizes, NULL) >> 20, rows[i].mebibytes, "%s: %lld", rows[i].said,
                     (long long)fa_workspace_bytes(&w, &sizes, NULL));
    }
    fa_workspace w;
    cr_assert_eq(fa_workspace_parse(&w, "m fp32 units 1048576 1048576 1048576 1048576"), FA_OK);
    cr_expect_eq(fa_workspace_portion(&w, &sizes).units, 1);
    cr_expect_eq(fa_workspace_bytes(&w, &sizes, NULL), -1, "more than 2^63 - 1");
}

/* A kernel for long sequences alone has no blocks where none is. */
Test(steps, extents_tell_long_sequences)
{
    fa_product grid;
    fa_problem p = shaped_problem("bf16,d=64,b=2,hq=8,hkv=4,sq=100,sk=200");
    cr_assert_eq(fa_product_parse(&grid, "sms 4 long"), FA_OK, "%s", fa_last_error());
    for (int i = 0; i < 4; i++) {
        p.sq = i & 1 ? FA_SHORT_ROWS + 1 : FA_SHORT_ROWS, p.sk = i & 2 ? FA_SHORT_ROWS + 1 : 1;
        fa_sizes sizes = fa_sizes_of(&p, 132);
        cr_expect_eq(fa_product_value(&grid, &sizes), i ? 528 : 0, "of %d queries and %d keys", p.sq, p.sk);
    }
}

/* dS of a query head of 8192 x 8192 is 128 MiB, of 16384 x 16384 512 MiB. */
#define DS "s bf16 units members sq/64 sk/64 4096, sums fp32 sliced units sk/128 32768"
Test(steps, groups_are_sliced_where_that_occupies_more_of_a_chip)
{
    static const struct {
        int b, hq, hkv, n;
        int64_t units, members, launches; /* of a portion, and how many of those */
    } rows[] = {
        { 2, 64, 8, 2048, 16, 8, 1 },  /* all at once */
        { 3, 4, 2, 8192, 6, 1, 2 },    /* 12 heads: 24576 keys of 3 whole units do not occupy a chip, nor do 49152 of all */
        { 1, 8, 8, 16384, 2, 1, 4 },   /* nothing to slice */
        { 2, 64, 8, 8192, 8, 1, 16 },  /* a whole group fills the chunk: one head of 8 units at a time */
        { 1, 64, 8, 16384, 2, 1, 32 }, /* two heads at a time */
        { 1, 64, 8, 32768, 1, 1, 64 }, /* one head is more than the chunk */
        { 1, 32, 1, 8192, 1, 8, 4 },   /* one unit: as many members as there is room for */
        { 1, 20, 1, 8192, 1, 7, 3 },   /* 7, 7, 6 */
        { 1, 20, 2, 8192, 2, 4, 3 },   /* 4, 4, 2 of two */
        { 2, 6, 2, 16384, 2, 1, 6 },
        { 64, 32, 4, 2048, 32, 4, 16 },  /* 128 heads: of 16 whole units 32768 keys, of 32 halves enough, and no more */
        { 256, 32, 4, 1024, 64, 8, 16 }, /* 512 heads: 64 whole units have enough keys */
        { 256, 28, 4, 1024, 69, 7, 15 }, /* 73 have room; as many each time */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_workspace w;
        int64_t offset[FA_BUFFERS_MAX];
        fa_problem p = shaped_problem("bf16,d=128,op=backward,b=1,hq=1,hkv=1,sq=1,sk=1");
        p.b = rows[i].b, p.hq = rows[i].hq, p.hkv = rows[i].hkv, p.sq = p.sk = rows[i].n;
        fa_sizes sizes = fa_sizes_of(&p, 132);
        cr_assert_eq(fa_workspace_parse(&w, DS), FA_OK, "%s", fa_last_error());
        fa_portion at = fa_workspace_portion(&w, &sizes);
        int64_t bytes = fa_workspace_bytes(&w, &sizes, offset), n = rows[i].n, group = rows[i].hq / rows[i].hkv;
        cr_expect(at.units == rows[i].units && at.members == rows[i].members, "%zu: %lld units, %lld members", i, (long long)at.units,
                  (long long)at.members);
        cr_expect_eq(fa_portion_launches(&at, &sizes), rows[i].launches, "%zu: %lld", i, (long long)fa_portion_launches(&at, &sizes));
        cr_expect_eq(offset[1] - offset[0], at.units * at.members * n * n * 2, "%zu", i);
        cr_expect_eq(bytes - offset[1], at.members < group ? at.units * n * 1024 : 0, "%zu: %lld bytes of sums", i,
                     (long long)(bytes - offset[1]));
    }
}

/* Of launches that are cut by the chunk, those with the fewest rounds of blocks over the SMs, where all blocks take as long. Of 27 heads of
 * 5425 there is room for 18: 43 blocks of 128 keys each. */
Test(steps, launches_fill_rounds)
{
    static const struct {
        const char *rest;
        int hq, hkv, n, sms;
        int64_t units;
    } rows[] = {
        { "", 27, 27, 5425, 132, 18 },                 /* 6 and 3 rounds; 14 and 13 heads: 5 and 5 */
        { "", 64, 64, 5263, 132, 18 },                 /* 6, 6, 6, 3; 16 each time: 6, 6, 6, 6 */
        { "", 36, 36, 10202, 132, 3 },                 /* 12 times 2 rounds; 5 each time: 8 times 4 */
        { "", 16, 16, 16384, 132, 2 },                 /* 2 whole rounds */
        { "", 32, 32, 8192, 132, 8 },                  /* 4 */
        { "", 27, 27, 5425, 0, 14 },                   /* no chip is meant */
        { "", 27, 27, 5425, 108, 17 },                 /* 7 and 4; of 18 and 9 8 and 4 */
        { "", 54, 27, 5425, 132, 14 },                 /* groups have slices */
        { ",mask=causal", 27, 27, 5425, 132, 14 },     /* long and short tiles fill rounds */
        { ",features=lengths", 27, 27, 5425, 132, 14 } /* the host does not know how many blocks a sequence has */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_workspace w;
        char text[128];
        snprintf(text, sizeof text, "bf16,d=128,op=backward,b=1,hq=1,hkv=1,sq=1,sk=1%s", rows[i].rest);
        fa_problem p = shaped_problem(text);
        p.hq = rows[i].hq, p.hkv = rows[i].hkv, p.sq = p.sk = rows[i].n;
        fa_sizes sizes = fa_sizes_of(&p, rows[i].sms);
        cr_assert_eq(fa_workspace_parse(&w, DS), FA_OK, "%s", fa_last_error());
        fa_portion at = fa_workspace_portion(&w, &sizes);
        cr_expect_eq(at.units, rows[i].units, "%zu: %lld units", i, (long long)at.units);
    }
}

/* No launches of one size have fewer rounds of blocks of keys, but by as many more launches as cost as much. */
Test(steps, no_other_launches_have_fewer_rounds)
{
    for (int heads = 1; heads <= 60; heads += 7)
        for (int n = 3000; n < 16384; n += 413) {
            fa_workspace w;
            fa_problem p = shaped_problem("bf16,d=128,op=backward,b=1,hq=1,hkv=1,sq=1,sk=1");
            p.hq = p.hkv = heads, p.sq = p.sk = n;
            fa_sizes sizes = fa_sizes_of(&p, 132);
            cr_assert_eq(fa_workspace_parse(&w, DS), FA_OK, "%s", fa_last_error());
            int64_t got = fa_workspace_portion(&w, &sizes).units, head = (int64_t)((n + 63) / 64) * ((n + 63) / 64) * 8192;
            int64_t most = FA_WORKSPACE_CHUNK / head < heads ? FA_WORKSPACE_CHUNK / head : heads;
            double least = INFINITY, mine = 0;
            cr_assert(got >= 1 && got <= most, "%d heads of %d: %lld", heads, n, (long long)got);
            for (int64_t units = most > 16 ? most - 15 : 1; units <= most; units++) {
                double time = 0;
                for (int64_t left = heads; left > 0; left -= units) {
                    double of = (double)(left < units ? left : units);
                    time += 0.1 + ceil(of * ceil(n / 128.0) / 132) + 0.5 * ceil(of * ceil(n / 256.0) / 132);
                }
                least = fmin(least, time);
                if (units == got)
                    mine = time;
            }
            if (most < heads && got > most - 16)
                cr_expect(mine <= least + 1e-6, "%d heads of %d: %lld, %g of %g", heads, n, (long long)got, mine, least);
        }
}

/* Whatever the sizes: the chunk bounds what is there, and everything is done. */
Test(steps, portions_keep_to_the_chunk)
{
    for (int64_t chunk = 8192; chunk <= 40 * 8192; chunk += 4096)
        for (int32_t hkv = 1; hkv <= 5; hkv++)
            for (int32_t group = 1; group <= 7; group++) {
                fa_workspace w;
                fa_problem p = shaped_problem("bf16,d=128,op=backward,b=1,hq=1,hkv=1,sq=64,sk=64");
                p.hkv = hkv, p.hq = hkv * group;
                fa_sizes sizes = fa_sizes_of(&p, 132);
                cr_assert_eq(fa_workspace_parse(&w, DS), FA_OK, "%s", fa_last_error());
                w.chunk = chunk;
                fa_portion at = fa_workspace_portion(&w, &sizes);
                int64_t held = chunk / 8192; /* heads of 64 x 64 */
                cr_assert(at.units >= 1 && at.units <= hkv && at.members >= 1 && at.members <= group);
                cr_assert_leq(at.units * at.members, held, "%lld: %d heads of %d", (long long)chunk, group, hkv);
                cr_assert((at.units == hkv && at.members == group) == (held >= hkv * group), "all at once where there is room");
                cr_assert(at.units == hkv || at.members == 1, "few keys: the most units, then the most members");
            }
}

Test(steps, params)
{
    fa_source all, few;
    cr_assert_eq(render_field("params", "'v_sh k scale scores lse diag_hi q q_sb q_ss q_sh', workspace = 'scores fp32 b'", &few), FA_OK,
                 "%s", fa_last_error());
    static const struct {
        uint16_t from, to, words;
    } expect[] = { { offsetof(fa_values, operand[2].stride[2]) / 4, 0, 2 },
                   { offsetof(fa_values, operand[1].address) / 4, 2, 2 },
                   { offsetof(fa_values, scale) / 4, 4, 1 },
                   { offsetof(fa_values, buffer[0]) / 4, 6, 2 },
                   { offsetof(fa_values, operand[4].address) / 4, 8, 2 },
                   { offsetof(fa_values, diag_hi) / 4, 10, 1 },
                   { offsetof(fa_values, operand[0].address) / 4, 12, 8 } };
    cr_assert_eq(few.packing.runs, (int32_t)(sizeof expect / sizeof *expect));
    for (int32_t i = 0; i < few.packing.runs; i++)
        cr_expect(few.packing.run[i].from == expect[i].from && few.packing.run[i].to == expect[i].to &&
                      few.packing.run[i].words == expect[i].words,
                  "run %d", i);
    cr_expect_eq(few.packing.bytes, 80);
    fa_source_free(&few);
    cr_assert_eq(render_field("params", "nil", &all), FA_OK);
    cr_expect_str_eq(
        all.params,
        "q k v o lse workspace counter q_sb q_ss q_sh k_sb k_ss k_sh v_sb v_ss v_sh o_sb o_ss o_sh scale scale_log2 b hq hkv group sq sk "
        "diag_lo diag_hi tiles total key_base section");
    fa_source_free(&all);
    static const char *const wrong[] = { "'q qq'", "'q scores'", "'lse_sx'", "'a_name_of_more_letters_than_any'", "7" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_expect_eq(render_field("params", wrong[i], &few), FA_TEMPLATE, "%s", wrong[i]);
        cr_expect(strstr(fa_last_error(), "templates/toy.lua: params"), "%s: %s", wrong[i], fa_last_error());
        fa_source_free(&few);
    }
}

Test(steps, operation)
{
    fa_source s;
    cr_expect_eq(render_field("operation", "'forward'", &s), FA_OK, "%s", fa_last_error());
    fa_source_free(&s);
    cr_expect_eq(render_field("operation", "'backwards'", &s), FA_TEMPLATE);
    cr_expect(strstr(fa_last_error(), "operation is \"backwards\""), "%s", fa_last_error());
    cr_expect_eq(render_field("operation", "'merge'", &s), FA_UNSUPPORTED);
    cr_expect(strstr(fa_last_error(), "it computes merge, not forward"), "%s", fa_last_error());
}
