/* What `fagen explore` writes: the figures of `fagen space`, a reason for every missing tile, measured times where they are on record and
 * no others, what the simulator counts, and a page that holds nothing of the network. */
#include "cache/record.h"
#include "gen/problem.h"
#include "test_cli_run.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void init(void)
{
    cli_scratch_make();
    setenv("FAGEN_CACHE_DIR", "cache", 1);
}

TestSuite(cli_explore, .init = init, .fini = cli_scratch_remove, .timeout = 600);

#define PROBLEM "-d 64 --causal -n 1024 --heads 4 --arch sm_80"
#define ONE " --family flash_fwd_mma" /* half of the space, where the other families say nothing more */

static size_t column(const json_t *doc, const char *part, const char *name)
{
    const json_t *list = json_object_get(json_object_get(doc, "columns"), part);
    size_t i = 0;
    while (i < json_array_size(list) && strcmp(json_string_value(json_object_get(json_array_get(list, i), "name")), name))
        i++;
    cr_assert_lt(i, json_array_size(list), "no column %s", name);
    return i;
}

/* A cell of row `row` of the configs; they begin with two cells that are no columns, those of the other parts with one. */
static const json_t *cell(const json_t *doc, const char *part, size_t row, const char *name)
{
    return json_array_get(json_array_get(json_object_get(doc, part), row), column(doc, part, name) + (strcmp(part, "configs") ? 1 : 2));
}

/* named: as commands say it; else with numbers for all values, as records have it. */
static char *config_in(const json_t *doc, size_t row, bool named, char *out, size_t n)
{
    const json_t *r = json_array_get(json_object_get(doc, "configs"), row);
    const json_t *f = json_array_get(json_object_get(doc, "families"), (size_t)json_integer_value(json_array_get(r, 0)));
    const json_t *tunables = json_object_get(f, "tunables");
    size_t at = (size_t)snprintf(out, n, "%s", json_string_value(json_object_get(f, "name")));
    for (size_t i = 0; i < json_array_size(tunables); i++) {
        const json_t *t = json_array_get(tunables, i), *values = json_object_get(t, "values");
        long long value = json_integer_value(json_array_get(json_array_get(r, 1), i));
        const char *name = NULL;
        for (size_t k = 0; named && k < json_array_size(values); k++)
            if (json_integer_value(json_array_get(values, k)) == value)
                name = json_string_value(json_array_get(json_object_get(t, "names"), k));
        at += (size_t)snprintf(out + at, n - at, "%s%s=", i ? "," : ":", json_string_value(json_object_get(t, "name")));
        at += (size_t)(name ? snprintf(out + at, n - at, "%s", name) : snprintf(out + at, n - at, "%lld", value));
    }
    return out;
}

static char *config_text(const json_t *doc, size_t row, char *out, size_t n)
{
    return config_in(doc, row, true, out, n);
}

/* The configs, their order and their figures are those of `fagen space`. */
Test(cli_explore, as_the_space_says)
{
    json_t *doc = cli_json("explore " PROBLEM " --simulate 0 --json", 0), *space = cli_json("space " PROBLEM " --limit 100000 --json", 0);
    const json_t *list = json_object_get(space, "configs");
    size_t n = json_array_size(list);
    cr_assert_gt(n, 100);
    cr_assert_eq(json_array_size(json_object_get(doc, "configs")), n);
    cr_expect_eq(json_integer_value(json_object_get(doc, "total")), json_integer_value(json_object_get(space, "total")));
    cr_expect_eq(json_integer_value(json_object_get(doc, "fitting")), (json_int_t)n);
    for (size_t i = 0; i < n; i++) {
        char text[512];
        const json_t *s = json_array_get(list, i);
        cr_assert_str_eq(config_text(doc, i, text, sizeof text), json_string_value(json_object_get(s, "config")), "row %zu", i);
        cr_expect_float_eq(json_number_value(cell(doc, "configs", i, "model_us")), 1e6 * json_number_value(json_object_get(s, "seconds")),
                           1e-3, "%s", text);
        cr_expect_float_eq(json_number_value(cell(doc, "configs", i, "occupancy")), json_number_value(json_object_get(s, "occupancy")),
                           1e-4);
        static const char *const same[] = { "smem", "regs", "threads", "blocks_sm", "bytes" };
        for (size_t k = 0; k < sizeof same / sizeof *same; k++)
            if (json_object_get(s, same[k]))
                cr_expect_eq(json_integer_value(cell(doc, "configs", i, same[k])), json_integer_value(json_object_get(s, same[k])), "%s %s",
                             text, same[k]);
        cr_expect_str_eq(json_string_value(cell(doc, "configs", i, "bound")), json_string_value(json_object_get(s, "bound")));
    }
    json_decref(doc);
    json_decref(space);
}

/* Every tile without a config says why; what is said is what `fagen space --why` says of the config it names. */
Test(cli_explore, every_missing_tile_has_a_reason)
{
    static const char *const problems[] = { "-d 256 --arch sm_86", "-d 128 --causal -b 3 --arch h200", "-d 96 --dtype fp32 --arch sm_80" };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++) {
        char words[1024];
        size_t missing = 0, fits = 0;
        snprintf(words, sizeof words, "explore %s --simulate 0 --json", problems[k]);
        json_t *doc = cli_json(words, 0), *t;
        size_t i;
        json_array_foreach(json_object_get(doc, "tiles"), i, t)
        {
            const json_t *r = json_array_get(json_object_get(t, "reasons"), 0);
            fits += (size_t)json_integer_value(json_object_get(t, "fits"));
            if (json_integer_value(json_object_get(t, "fits")))
                continue;
            missing++;
            cr_assert(r && json_string_length(json_object_get(r, "constraint")) && json_string_length(json_object_get(r, "why")),
                      "%s: tile %zu", words, i);
            if (missing > 2)
                continue;
            const char *config = json_string_value(json_object_get(r, "config"));
            snprintf(words, sizeof words, "space %s --json --why %s", problems[k], config);
            json_t *why = cli_json(words, 0);
            cr_expect_str_eq(json_string_value(json_object_get(why, "why")), json_string_value(json_object_get(r, "why")), "%s", config);
            json_decref(why);
        }
        cr_expect(missing > 0, "%s", problems[k]);
        cr_expect_eq(fits, json_array_size(json_object_get(doc, "configs")), "%s", problems[k]);
        json_decref(doc);
    }
}

static const char toy_lua[] =
    "return { doc = 'x', default = false, tunables = { { 'br', { 16, 32 }, 'r' }, { 'bc', { 8, 24 }, 'c' } },\n"
    "  supports = function() return true end,\n"
    "  constraints = { { 'square', function(p, c) if c.br == 16 then return true end return false, '32 \\x80 24 \\xff' end } },\n"
    "  layout = function() return { bytes = 64, threads = 32, regs = 40 } end,\n"
    "  steps = function(p, c) return { { entry = 'toy', grid = ('sq/%d hq b'):format(c.br) } } end,\n"
    "  work = function(p, c) return { rows = c.br, cols = c.bc } end }\n";

/* A constraint says what its template's author wrote: bytes that are not UTF-8, of which 0x80 is the first, become question marks. */
Test(cli_explore, a_reason_that_is_not_utf_8)
{
    size_t i, found = 0;
    json_t *t;
    cr_assert_eq(mkdir("toys", 0700), 0);
    cli_scratch_write("toys/toy.lua", toy_lua, strlen(toy_lua));
    cli_scratch_write("toys/toy.cu", "", 0);
    json_t *doc = cli_json("FAGEN_TEMPLATE_DIR=toys explore " PROBLEM " --family toy --simulate 0 --json", 0);
    json_array_foreach(json_object_get(doc, "tiles"), i, t)
    {
        const json_t *r = json_array_get(json_object_get(t, "reasons"), 0);
        if (json_integer_value(json_object_get(t, "fits")))
            continue;
        const char *why = json_string_value(json_object_get(r, "why"));
        cr_expect(why && !strcmp(why, "32 ? 24 ?"), "tile %zu: %s", i, why ? why : "no reason");
        found++;
    }
    cr_expect_eq(found, 2);
    json_decref(doc);
}

#define SHAPE "bf16,d=64,mask=causal,b=1,hq=4,hkv=4,sq=1024,sk=1024"

static void keep_of(const char *problem, const char *chip, const char *config, bool verified, fa_how how, fa_outcome outcome,
                    double seconds, const char *date)
{
    fa_store *s = fa_store_open("cache", NULL, NULL);
    fa_record r = { .how = how,
                    .outcome = outcome,
                    .seconds = seconds,
                    .spread = 0.004,
                    .count = 31,
                    .verified = verified,
                    .warm = seconds / 2,
                    .clock_mhz = 1410,
                    .regs = 168,
                    .version = "test" };
    cr_assert_eq(fa_problem_parse(&r.problem, problem), FA_OK);
    cr_assert_eq(fa_config_parse(&r.config, config), FA_OK);
    strcpy(r.chip, chip);
    strcpy(r.arch, "sm_80");
    strcpy(r.date, date);
    strcpy(r.why, outcome == FA_RAN ? "" : "</script><b>\"quoted, with a comma\"");
    cr_assert(fa_record_append(s, &r));
    fa_store_close(s);
}

static void keep(const char *chip, const char *config, bool verified, fa_how how, fa_outcome outcome, double seconds, const char *date)
{
    keep_of(SHAPE, chip, config, verified, how, outcome, seconds, date);
}

#define FAMILY "flash_fwd_mma:br="
#define REST ",stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1"

/* Times are of one chip; the newest counts; another shape's and the model's are no measured times. */
Test(cli_explore, records)
{
    keep("Chip A", FAMILY "64,bc=64,warps=4" REST, true, FA_MEASURED, FA_RAN, 50e-6, "2026-01-01T00:00:00Z");
    keep("Chip A", FAMILY "64,bc=32,warps=4" REST, true, FA_MEASURED, FA_RAN, 40e-6, "2026-01-01T00:00:01Z");
    keep("Chip A", FAMILY "64,bc=64,warps=4" REST, true, FA_MEASURED, FA_RAN, 30e-6, "2026-01-01T00:00:02Z");
    keep("Chip A", FAMILY "128,bc=64,warps=4" REST, true, FA_MEASURED, FA_BAD_RESULT, 0, "2026-01-01T00:00:03Z");
    keep("Chip B", FAMILY "64,bc=48,warps=4" REST, true, FA_MEASURED, FA_RAN, 1e-6, "2026-01-01T00:00:04Z");
    keep("sm_80", FAMILY "64,bc=96,warps=4" REST, true, FA_MODELLED, FA_RAN, 2e-6, "2026-01-01T00:00:05Z");
    keep("Chip A", FAMILY "64,bc=80,warps=4" REST, false, FA_MEASURED, FA_RAN, 3e-6, "2026-01-01T00:00:06Z");
    json_t *doc = cli_json("explore " PROBLEM ONE " --simulate 0 --json", 0);
    const json_t *sources = json_object_get(doc, "sources");
    cr_expect_str_eq(json_string_value(json_object_get(sources, "chip")), "Chip A");
    cr_expect_eq(json_integer_value(json_object_get(sources, "measured")), 2);
    cr_expect_eq(json_integer_value(json_object_get(sources, "modelled")), 1);
    cr_expect_eq(json_array_size(json_object_get(doc, "records")), 5);
    cr_expect_eq(json_array_size(json_object_get(doc, "history")), 3);
    double sum = 0;
    for (size_t i = 0; i < 5; i++) {
        cr_expect_eq(json_is_number(cell(doc, "records", i, "warm_us")), json_is_number(cell(doc, "records", i, "measured_us")));
        cr_expect_str_eq(json_string_value(cell(doc, "records", i, "kernel")), "older"); /* they are of no text at all */
        const json_t *us = cell(doc, "records", i, "measured_us"), *verified = cell(doc, "records", i, "verified");
        bool is_verified = json_is_string(verified) && !strcmp(json_string_value(verified), "yes"); /* null of what the model said */
        bool is_time = is_verified && !strcmp(json_string_value(cell(doc, "records", i, "outcome")), "ok");
        cr_expect_eq(json_is_number(us), is_time);
        sum += json_number_value(us);
    }
    cr_expect_float_eq(sum, 70, 1e-6);
    json_decref(doc);
    doc = cli_json("explore " PROBLEM ONE " --simulate 0 --json --chip 'Chip B'", 0);
    cr_expect_eq(json_integer_value(json_object_get(json_object_get(doc, "sources"), "measured")), 1);
    json_decref(doc);
    doc = cli_json("explore -d 64 --causal -n 2048 --heads 4 --arch sm_80" ONE " --simulate 0 --json", 0);
    cr_expect(json_is_null(json_object_get(json_object_get(doc, "sources"), "chip")));
    json_decref(doc);

    /* What a record says ends neither the script of the page nor a cell of the CSV text. */
    cli_result page = cli_run("explore " PROBLEM ONE " --simulate 0 -o -"), csv = cli_run("explore " PROBLEM ONE " --simulate 0 --csv -");
    cr_assert_eq(page.code, 0, "%s", page.err);
    cr_assert_eq(csv.code, 0, "%s", csv.err);
    cr_expect(strstr(page.out, "\\u003c/script>\\u003cb>"));
    cr_expect(!strstr(page.out, "</script><b>"));
    cr_expect(strstr(csv.out, "\"</script><b>\"\"quoted, with a comma\"\"\""));
    cli_result_free(&page);
    cli_result_free(&csv);
}

/* What a record rejects leads nothing: neither what is told, nor the best of the length. */
Test(cli_explore, what_a_record_rejects)
{
    char text[512], again[512], words[700], numbers[512];
    json_t *doc = cli_json("explore " PROBLEM ONE " --simulate 0 --json", 0);
    config_text(doc, 0, text, sizeof text);
    config_in(doc, 0, false, numbers, sizeof numbers);
    json_decref(doc);
    cli_result r = cli_run("explore " PROBLEM ONE " --simulate 0 -o x.html");
    const char *line = strstr(r.out, "model      ");
    cr_assert(line);
    snprintf(words, sizeof words, "%.*s", (int)strcspn(line, "\n"), line);
    cli_result_free(&r);
    keep("Chip A", numbers, true, FA_MEASURED, FA_BAD_RESULT, 0, "2026-01-01T00:00:00Z");
    r = cli_run("explore " PROBLEM ONE " --simulate 0 -o x.html");
    cr_expect(!strstr(r.out, words) && strstr(r.out, "model      "), "%s", r.out);
    cli_result_free(&r);
    doc = cli_json("explore " PROBLEM ONE " --simulate 0 --json --chip 'Chip A'", 0);
    cr_expect_str_eq(config_text(doc, 0, again, sizeof again), text); /* it keeps its place in the list */
    cr_assert_eq(json_array_size(json_object_get(doc, "records")), 1);
    cr_expect_str_eq(json_string_value(cell(doc, "records", 0, "rejected")), "yes");
    size_t i;
    json_t *l;
    json_array_foreach(json_object_get(doc, "lengths"), i, l)
    {
        bool own = json_integer_value(json_object_get(l, "sk")) == 1024;
        cr_expect(!own || strcmp(json_string_value(json_object_get(l, "config")), text), "%s leads", text);
    }
    json_decref(doc);
}

/* Gradients: naive attention, bytes and products are those of the backward pass; what the kernels hold is their workspace. */
Test(cli_explore, gradients)
{
    json_t *doc = cli_json("explore --op backward -d 64 -n 1024 -b 1 --heads 4 --arch sm_80 --simulate 0 --json", 0), *l;
    json_t *model = cli_json("model --op backward -d 64 -n 1024 -b 1 --heads 4 --arch sm_80 --json", 0);
    const json_t *naive = json_object_get(doc, "naive"), *paper = json_object_get(json_object_get(model, "traffic"), "naive");
    cr_expect_str_eq(json_string_value(json_object_get(doc, "tensors")), "Q, K, V, O, dO, dQ, dK and dV");
    cr_expect_eq(json_number_value(json_object_get(doc, "tensor_bytes")), 8.0 * 4 * 1024 * 64 * 2);
    cr_expect_eq(json_integer_value(json_object_get(doc, "products")), 5);
    cr_expect_eq(json_number_value(json_object_get(naive, "bytes")), json_number_value(json_object_get(paper, "total")));
    cr_expect_eq(json_number_value(json_object_get(naive, "held")), json_number_value(json_object_get(paper, "held")));
    /* no pass is faster than its bytes through HBM */
    cr_expect_gt(json_number_value(json_object_get(naive, "model_us")), 1e6 * json_number_value(json_object_get(paper, "total")) / 2039e9);
    size_t i;
    json_array_foreach(json_object_get(doc, "lengths"), i, l)
    {
        double sk = json_number_value(json_object_get(l, "sk"));
        cr_expect_geq(json_number_value(json_object_get(l, "held")), 4 * 4 * sk, "D of each row"); /* 4 heads, fp32 */
        cr_expect_eq(json_number_value(json_object_get(l, "tensors")), 8 * 4 * sk * 64 * 2);
    }
    json_decref(doc);
    json_decref(model);
}

/* Times that ship with the command: where nothing was tuned, for the chip that they were taken on, at a shape that was measured, and
 * nowhere else; a time of one's own takes their place. */
#define HOPPER " --family flash_fwd_wgmma"
Test(cli_explore, reference_times)
{
    static const struct {
        const char *words;
        bool measured;
    } rows[] = {
        { "-d 128 --causal --arch h200" HOPPER, true }, /* the grid's batch and heads */
        { "-d 128 --causal -n 4096 -b 4 --heads 16 --arch h200" HOPPER, true },
        { "-d 128 --causal -n 4096 -b 1 --heads 16 --arch h200" ONE, false }, /* another shape */
        { "-d 128 --causal --arch sm_80" ONE, false },                        /* another chip */
        { "-d 128 --causal --arch h200 --chip 'Some other chip' -q" ONE, false },
        { "-d 128 -t bfloat16 -n 4k --causal --device sim:h200 --chip h200" HOPPER, true }, /* a part of its name */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[256];
        snprintf(words, sizeof words, "explore %s --simulate 0 --json", rows[i].words);
        json_t *doc = cli_json(words, 0), *sources = json_object_get(doc, "sources");
        cr_expect_eq(json_is_true(json_object_get(sources, "reference")), rows[i].measured, "%s", words);
        cr_expect_eq(json_integer_value(json_object_get(sources, "measured")) > 50, rows[i].measured, "%s", words);
        for (size_t k = 0; k < json_array_size(json_object_get(doc, "records")); k++) {
            cr_expect_gt(json_integer_value(cell(doc, "records", k, "compiled_regs")), 0);
            cr_expect_gt(json_number_value(cell(doc, "records", k, "measured_us")), 0);
        }
        for (size_t k = 0; k < json_array_size(json_object_get(doc, "configs")); k++)
            cr_expect_gt(json_number_value(cell(doc, "configs", k, "smem")), 0, "%s, row %zu", words, k);
        json_decref(doc);
    }
    fa_store *s = fa_store_open("cache", NULL, NULL);
    fa_record r = {
        .how = FA_MEASURED, .outcome = FA_RAN, .seconds = 1e-3, .count = 31, .verified = true, .chip = "NVIDIA H200", .arch = "sm_90a"
    };
    cr_assert_eq(fa_problem_parse(&r.problem, "bf16,d=128,mask=causal,b=4,hq=16,hkv=16,sq=4096,sk=4096"), FA_OK);
    cr_assert_eq(fa_config_parse(&r.config, "flash_fwd_mma:br=128,bc=64,warps=4" REST), FA_OK);
    cr_assert(fa_record_append(s, &r));
    fa_store_close(s);
    json_t *doc = cli_json("explore -d 128 --causal --arch h200" ONE " --simulate 0 --json", 0), *sources = json_object_get(doc, "sources");
    cr_expect_eq(json_integer_value(json_object_get(sources, "measured")), 1);
    cr_expect(json_is_false(json_object_get(sources, "reference")));
    json_decref(doc);
}

/* What `fagen tune` leaves without a GPU: compiled registers, of the very text that is rendered today, and no time. */
Test(cli_explore, modelled_records)
{
    json_decref(cli_json("tune -d 128 --causal -n 1024 --heads 4 --arch sm_80" ONE " --limit 1 -q --json", 0));
    json_t *doc = cli_json("explore -d 128 --causal -n 1024 --heads 4 --arch sm_80" ONE " --simulate 0 --json", 0);
    cr_assert_eq(json_array_size(json_object_get(doc, "records")), 1);
    cr_expect_str_eq(json_string_value(cell(doc, "records", 0, "source")), "model");
    cr_expect_str_eq(json_string_value(cell(doc, "records", 0, "kernel")), "same");
    cr_expect(json_is_null(cell(doc, "records", 0, "measured_us")));
    cr_expect_gt(json_integer_value(cell(doc, "records", 0, "compiled_regs")), 0);
    json_decref(doc);
}

/* Times of other shapes that ship with the command are left out beside a record of one's own that has no time; the record stays. */
Test(cli_explore, modelled_records_beside_reference_times)
{
    fa_store *s = fa_store_open("cache", NULL, NULL);
    fa_record r = { .how = FA_MODELLED, .outcome = FA_RAN, .seconds = 1e-3, .arch = "sm_90a" };
    cr_assert_eq(fa_problem_parse(&r.problem, "bf16,d=128,mask=causal,b=1,hq=4,hkv=4,sq=4100,sk=4100"), FA_OK);
    cr_assert_eq(fa_config_parse(&r.config, "flash_fwd_mma:br=128,bc=64,warps=4" REST), FA_OK);
    cr_assert(fa_record_append(s, &r));
    fa_store_close(s);
    json_t *doc = cli_json("explore -d 128 --causal -n 4100 -b 1 --heads 4 --arch sm_90a" ONE " --simulate 0 --json", 0);
    const json_t *sources = json_object_get(doc, "sources");
    cr_expect(json_is_false(json_object_get(sources, "reference")));
    cr_expect_eq(json_integer_value(json_object_get(sources, "measured")), 0);
    cr_expect_eq(json_integer_value(json_object_get(sources, "modelled")), 1);
    json_decref(doc);
}

/* What the simulator counts of an mma.sync kernel is what the model says, and there are no bank conflicts. */
Test(cli_explore, counters)
{
    json_t *doc = cli_json("explore " PROBLEM ONE " --simulate 2 --json -q", 0);
    cr_assert_eq(json_array_size(json_object_get(doc, "counters")), 2, "%s",
                 json_string_value(json_object_get(json_object_get(doc, "simulated"), "why")));
    for (size_t i = 0; i < 2; i++) {
        double counted =
            json_number_value(cell(doc, "counters", i, "sim_read")) + json_number_value(cell(doc, "counters", i, "sim_written"));
        cr_expect_eq(counted, json_number_value(cell(doc, "counters", i, "sim_modelled")));
        cr_expect_gt(counted, 4.0 * 512 * 64 * 2);
        cr_expect_eq(json_number_value(cell(doc, "counters", i, "conflicts")), 0);
        cr_expect_gt(json_number_value(cell(doc, "counters", i, "wavefronts")), 0);
    }
    json_decref(doc);
    doc = cli_json("FAGEN_NVRTC=/nonexistent explore " PROBLEM ONE " --simulate 2 --json -q", 0); /* no compiler: no counters, and why */
    cr_expect_eq(json_array_size(json_object_get(doc, "counters")), 0);
    cr_expect(strstr(json_string_value(json_object_get(json_object_get(doc, "simulated"), "why")), "libnvrtc"));
    json_decref(doc);
}

Test(cli_explore, page_and_files)
{
    cli_result r = cli_run("explore " PROBLEM ONE " --simulate 0 -o page.html --csv space.csv"), again, csv;
    cr_assert_eq(r.code, 0, "%s", r.err);
    cr_expect(strstr(r.out, "page.html") && strstr(r.out, "space.csv") && strstr(r.out, "TFLOP/s"), "%s", r.out);
    cli_result_free(&r);
    r = cli_run("explore " PROBLEM ONE " --simulate 0 -o -");
    again = cli_run("explore " PROBLEM ONE " --simulate 0 -o -");
    cr_assert_eq(r.code, 0, "%s", r.err);
    cr_expect_str_eq(r.out, again.out);
    cr_expect(!strncmp(r.out, "<!doctype html>", 15) && strstr(r.out, "</html>"));
    static const char *const foreign[] = { "http://www", "https://", "src=", "@import", "url(http", "$(" };
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        const char *at = strstr(r.out, foreign[i]);
        while (at && !strncmp(at, "http://www.w3.org/2000/svg", 26)) /* a name, which nothing fetches */
            at = strstr(at + 1, foreign[i]);
        cr_expect(!at, "the page holds %.60s", at);
    }
    csv = cli_run("explore " PROBLEM ONE " --simulate 0 --csv -");
    cr_expect(!strncmp(csv.out, "config,model_us,", 16));
    size_t lines = 0, commas = 0;
    for (const char *s = csv.out; *s; s++) {
        lines += *s == '\n';
        commas += lines == 0 && *s == ',';
    }
    cr_expect_gt(lines, 100);
    cr_expect_gt(commas, 30);
    cli_result_free(&r);
    cli_result_free(&again);
    cli_result_free(&csv);
}

/* The lengths: the model's best of each, of which every third is asked about, is no slower than any config that `fagen model` is asked for;
 * naive holds S and P. */
Test(cli_explore, lengths)
{
    json_t *doc = cli_json("explore " PROBLEM " --simulate 0 --json", 0), *l;
    size_t i;
    double last = 0;
    cr_assert_geq(json_array_size(json_object_get(doc, "lengths")), 9);
    json_array_foreach(json_object_get(doc, "lengths"), i, l)
    {
        char words[512];
        double n = json_number_value(json_object_get(l, "sk")), us = json_number_value(json_object_get(l, "model_us"));
        cr_expect_gt(n, last);
        last = n;
        cr_expect_eq(json_number_value(json_object_get(l, "naive_held")), 2 * 4 * n * n * 2);
        if (i % 3)
            continue;
        snprintf(words, sizeof words, "model -d 64 --causal --heads 4 --arch sm_80 -n %.0f --json", n);
        json_t *m = cli_json(words, 0);
        cr_expect_float_eq(us, 1e6 * json_number_value(json_object_get(json_object_get(m, "cost"), "seconds")), 1e-3 * us, "%s", words);
        json_decref(m);
    }
    json_decref(doc);
}

/* Beside the lengths: every family that is kept for comparison, at what `fagen model` says of its best config. */
Test(cli_explore, systems)
{
    json_t *doc = cli_json("explore " PROBLEM " --simulate 0 --json", 0), *names = json_object_get(doc, "systems"), *l, *name;
    size_t i, k;
    cr_assert_geq(json_array_size(names), 3);
    cr_expect_str_eq(json_string_value(json_array_get(names, 0)), "naive", "the reference is the first");
    json_array_foreach(json_object_get(doc, "lengths"), i, l)
    {
        cr_assert_eq(json_array_size(json_object_get(l, "systems")), json_array_size(names));
        if (i % 4)
            continue;
        json_array_foreach(names, k, name)
        {
            char words[512];
            json_t *s = json_array_get(json_object_get(l, "systems"), k);
            snprintf(words, sizeof words, "model -d 64 --causal --heads 4 --arch sm_80 -n %.0f --config %s --json",
                     json_number_value(json_object_get(l, "sk")), json_string_value(name));
            json_t *m = cli_json(words, 0), *cost = json_object_get(m, "cost");
            double us = json_number_value(json_object_get(s, "model_us"));
            cr_expect_float_eq(us, 1e6 * json_number_value(json_object_get(cost, "seconds")), 1e-3 * us, "%s", words);
            cr_expect_eq(json_number_value(json_object_get(s, "bytes")), json_number_value(json_object_get(cost, "bytes")), "%s", words);
            json_decref(m);
        }
    }
    json_decref(doc);
}

/* What was measured goes before what the model says: in the summary, in the tiles that the simulator runs, beside the lengths. */
Test(cli_explore, measured_times_lead)
{
    static const char *const best = FAMILY "64,bc=32,warps=4" REST,
                             *const best_by_name =
                                 FAMILY "64,bc=32,warps=4,stages_k=1,stages_v=1,order=v_first,q_regs=0,pack=0,lag=0,ctas=1";
    char text[512];
    keep("Chip A", FAMILY "64,bc=32,warps=4" REST, true, FA_MEASURED, FA_RAN, 20e-6, "2026-01-01T00:00:00Z"); /* not the newest */
    keep("Chip A", FAMILY "128,bc=64,warps=4" REST, true, FA_MEASURED, FA_RAN, 50e-6, "2026-01-01T00:00:01Z");
    keep("Chip A", FAMILY "64,bc=32,warps=4" REST, true, FA_MEASURED, FA_RAN, 30e-6, "2026-01-01T00:00:02Z");
    keep("Chip A", FAMILY "64,bc=64,warps=4" REST, true, FA_MEASURED, FA_RAN, 40e-6, "2026-01-01T00:00:03Z");
    keep("Chip A", FAMILY "64,bc=80,warps=4" REST, false, FA_MEASURED, FA_RAN, 3e-6, "2026-01-01T00:00:04Z");
    keep("Chip A", "naive:tile=64", true, FA_MEASURED, FA_RAN, 700e-6, "2026-01-01T00:00:05Z");
    keep("Chip A", "naive:tile=32", true, FA_MEASURED, FA_RAN, 600e-6, "2026-01-01T00:00:06Z");
    keep("Chip A", "flash1_fwd:br=64,bc=64", true, FA_MEASURED, FA_RAN, 15e-6, "2026-01-01T00:00:06Z");
    keep_of("bf16,d=64,mask=causal,b=1,hq=4,hkv=2,sq=1024,sk=1024", "Chip A", FAMILY "64,bc=48,warps=4" REST, true, FA_MEASURED, FA_RAN,
            1e-6, "2026-01-01T00:00:07Z"); /* other heads */
    keep_of("bf16,d=64,mask=causal,b=1,hq=4,hkv=4,sq=1024,sk=3000", "Chip A", FAMILY "64,bc=48,warps=4" REST, true, FA_MEASURED, FA_RAN,
            90e-6, "2026-01-01T00:00:08Z"); /* another length */
    keep_of("bf16,d=64,mask=causal,b=1,hq=4,hkv=4,sq=2048,sk=2048", "Chip A", FAMILY "64,bc=48,warps=4" REST, true, FA_MEASURED, FA_RAN,
            80e-6, "2026-01-01T00:00:09Z");
    cli_result r = cli_run("explore " PROBLEM ONE " --simulate 0 -o page.html");
    cr_assert_eq(r.code, 0, "%s", r.err);
    cr_expect(strstr(r.out, "3 measured on Chip A"), "%s", r.out);
    snprintf(text, sizeof text, ": %s\n", best_by_name);
    const char *line = strstr(r.out, "\nmeasured ");
    cr_expect(line && strstr(line, "30.00 us") && strstr(line, text) && strstr(line, text) < strchr(line + 1, '\n'), "%s", r.out);
    cli_result_free(&r);

    json_t *doc = cli_json("explore " PROBLEM " --simulate 3 --json -q", 0), *l;
    size_t i, seen = 0;
    cr_assert_eq(json_array_size(json_object_get(doc, "counters")), 3);
    for (i = 0; i < 3; i++) { /* the tiles with a time: of each the config that has it */
        size_t row = (size_t)json_integer_value(json_array_get(json_array_get(json_object_get(doc, "counters"), i), 0));
        config_in(doc, row, false, text, sizeof text);
        seen |= !strcmp(text, best)                              ? 1
                : !strcmp(text, FAMILY "64,bc=64,warps=4" REST)  ? 2
                : !strcmp(text, FAMILY "128,bc=64,warps=4" REST) ? 4
                                                                 : 8;
    }
    cr_expect_eq(seen, 7, "%zu", seen);
    seen = 0;
    json_array_foreach(json_object_get(doc, "lengths"), i, l)
    {
        json_int_t sq = json_integer_value(json_object_get(l, "sq")), sk = json_integer_value(json_object_get(l, "sk"));
        double us = json_number_value(json_object_get(l, "measured_us")),
               naive = json_number_value(json_object_get(l, "measured_naive_us"));
        double want = sq == 1024 && sk == 1024 ? 30 : sk == 3000 ? 90 : sk == 2048 ? 80 : 0;
        cr_expect_float_eq(us, want, 1e-3, "%d x %d: %g", (int)sq, (int)sk, us);
        cr_expect_float_eq(naive, want == 30 ? 600 : 0, 1e-3, "%d x %d: %g", (int)sq, (int)sk, naive);
        double flash1 = json_number_value(json_object_get(json_array_get(json_object_get(l, "systems"), 1), "measured_us"));
        cr_expect_float_eq(flash1, want == 30 ? 15 : 0, 1e-3, "its time is none of ours: %d x %d: %g", (int)sq, (int)sk, flash1);
        seen += want > 0;
    }
    cr_expect_eq(seen, 3);
    json_decref(doc);
    doc = cli_json("explore " PROBLEM ONE " --simulate 1 --json -q", 0);
    cr_assert_eq(json_array_size(json_object_get(doc, "counters")), 1);
    config_in(doc, (size_t)json_integer_value(json_array_get(json_array_get(json_object_get(doc, "counters"), 0), 0)), false, text,
              sizeof text);
    cr_expect_str_eq(text, best);
    json_decref(doc);
}
