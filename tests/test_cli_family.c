/* A family of two files whose tunables have names of their own, through the command: space, explore, tune, show, emit. And values by name,
 * typed and shown, of the families that ship. */
#include "cache/record.h"
#include "gen/gen.h"
#include "gen/problem.h"
#include "rowwise.h"
#include "test_cli_run.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ON "FAGEN_TEMPLATE_DIR=toys FAGEN_CACHE_DIR=cache FAGEN_DEVICE=sim:sm_80 "
#define PROBLEM "-d 16 -t fp32 --causal -n 64 --heads 2 "
#define BACKWARD "rowwise:span=32,chunk=8,walk=backward,guests=1"

static void init(void)
{
    cli_scratch_make();
    cr_assert_eq(mkdir("toys", 0700), 0);
    cli_scratch_write("toys/rowwise.lua", rowwise_lua, strlen(rowwise_lua));
    cli_scratch_write("toys/rowwise.cu", rowwise_cu, strlen(rowwise_cu));
}

TestSuite(cli_family, .init = init, .fini = cli_scratch_remove, .timeout = 300);

static const char *string(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));
    return s ? s : "(none)";
}

Test(cli_family, space)
{
    cli_result r = cli_run(ON "space " PROBLEM "--family rowwise --limit 100");
    cr_assert_eq(r.code, 0, "%s", r.err);
    cr_expect(strstr(r.out, BACKWARD "\n") && strstr(r.out, "slab") && strstr(r.out, "direction"), "%s", r.out);
    cli_result_free(&r);
    static const char *const spelling[] = { "walk=backward,span=32,chunk=8", "walk=1,span=32,chunk=8" };
    for (int i = 0; i < 2; i++) {
        char words[300];
        snprintf(words, sizeof words, ON "space " PROBLEM "--json --why rowwise:%s", spelling[i]);
        json_t *doc = cli_json(words, 0);
        cr_expect_str_eq(string(doc, "config"), BACKWARD);
        cr_expect(json_is_true(json_object_get(doc, "fits")));
        json_decref(doc);
    }
    r = cli_run(ON "space " PROBLEM "--why rowwise:walk=sideways");
    cr_expect(r.code != 0 && strstr(r.err, "config: walk of rowwise is \"sideways\"; accepted: forward (0), backward (1)"), "%s", r.err);
    cli_result_free(&r);
}

Test(cli_family, explore)
{
    json_t *doc = cli_json(ON "explore " PROBLEM "--family rowwise --simulate 1 --json", 0), *t;
    const json_t *family = json_array_get(json_object_get(doc, "families"), 0), *axes = json_object_get(family, "axes");
    const json_t *walk = json_array_get(json_object_get(family, "tunables"), 2), *names = json_object_get(walk, "names");
    size_t i, shared = 0;
    cr_expect_str_eq(string(family, "name"), "rowwise");
    cr_expect_eq(json_array_size(axes), 2);
    cr_expect(json_integer_value(json_array_get(axes, 0)) == 0 && json_integer_value(json_array_get(axes, 1)) == 1);
    cr_expect(json_array_size(names) == 2 && !strcmp(json_string_value(json_array_get(names, 1)), "backward"));
    cr_expect_eq(json_array_size(json_object_get(doc, "tiles")), 25, "five spans, five chunks");
    json_array_foreach(json_object_get(doc, "tiles"), i, t) shared += json_integer_value(json_object_get(t, "fits")) == 0;
    cr_expect_eq(shared, 4, "96 rows and more of 16 keys, 256 of 8");
    cr_expect_gt(json_array_size(json_object_get(doc, "counters")), 0, "one was simulated");
    json_decref(doc);
}

/* Document, report and table name the same text; the kernels are right. */
Test(cli_family, tune_and_show)
{
    json_t *doc = cli_json(ON "tune " PROBLEM "--device sim:sm_80 --family rowwise --limit 3 --json", 0);
    const json_t *one = json_array_get(json_object_get(doc, "problems"), 0), *guess = json_object_get(one, "guess");
    char named[256];
    snprintf(named, sizeof named, "%s", string(guess, "config"));
    cr_assert(!strncmp(named, "rowwise:span=", 13) && strstr(named, ",walk=forward,"), "%s", named);
    cr_expect(strstr(string(guess, "recorded"), ",walk=0,"), "as records have it: %s", string(guess, "recorded"));
    json_decref(doc);
    cli_result r = cli_run(ON "tune " PROBLEM "--device sim:sm_80 --family rowwise --limit 3");
    cr_assert_eq(r.code, 0, "%s", r.err);
    cr_expect(strstr(r.out, named), "no %s in %s", named, r.out);
    cli_result_free(&r);
    r = cli_run(ON "verify --family rowwise --count 40");
    cr_expect_eq(r.code, 0, "%s%s", r.out, r.err);
    cli_result_free(&r);
}

/* A record of before the names, and its winner: read, run and shown. */
Test(cli_family, records_hold_numbers)
{
    fa_store *s = fa_store_open("cache", NULL, NULL);
    fa_record r = { .how = FA_MEASURED,
                    .outcome = FA_RAN,
                    .seconds = 1e-6,
                    .count = 31,
                    .verified = true,
                    .version = "test",
                    .date = "2026-01-01T00:00:00Z" };
    cr_assert_eq(fa_problem_parse(&r.problem, "fp32,d=16,mask=causal,b=1,hq=2,hkv=2,sq=64,sk=64"), FA_OK);
    cr_assert_eq(fa_config_parse(&r.config, "rowwise:span=32,chunk=8,walk=1,guests=1"), FA_OK);
    strcpy(r.chip, "Simulated sm_80");
    strcpy(r.arch, "sm_80");
    cr_assert(fa_record_append(s, &r));
    fa_store_close(s);
    json_t *doc = cli_json(ON "show " PROBLEM "--json", 0);
    cr_expect_str_eq(string(doc, "config"), BACKWARD);
    cr_expect_str_eq(string(doc, "where"), "measured record");
    cr_expect(strstr(string(doc, "explain"), "config     " BACKWARD "\n"), "%s", string(doc, "explain"));
    json_decref(doc);
    cli_result text = cli_run(ON "show " PROBLEM);
    const char *standing = strstr(text.out, "On record for this chip");
    cr_expect(standing && strstr(standing, BACKWARD), "%s", text.out);
    cli_result_free(&text);
}

/* What is typed by name is the text of the numbers, whose header has the names: the same bytes, the same key. */
Test(cli_family, emit)
{
    static const char *const spelling[][2] = {
        { "FAGEN_TEMPLATE_DIR=toys emit " PROBLEM "--config rowwise:span=64,chunk=4,walk=backward,guests=1",
          "FAGEN_TEMPLATE_DIR=toys emit " PROBLEM "--config rowwise:span=64,chunk=4,walk=1,guests=1" },
        { "emit -d 64 --arch sm_90a --config flash_fwd_wgmma:schedule=pingpong,grid=persistent,br=128",
          "emit -d 64 --arch sm_90a --config flash_fwd_wgmma:schedule=1,grid=2,br=128" },
    };
    for (int i = 0; i < 2; i++) {
        cli_result a = cli_run(spelling[i][0]), b = cli_run(spelling[i][1]);
        cr_expect(a.code == 0 && b.code == 0 && a.out_size > 1000, "%s%s", a.err, b.err);
        cr_expect_str_eq(a.out, b.out);
        cr_expect(strstr(a.out, i ? "schedule=pingpong," : "walk=backward,"), "the header has the names");
        cli_result_free(&a);
        cli_result_free(&b);
    }
}

/* One text of a config: what any command says, any other takes, and says likewise. Part of one is the same config everywhere. */
Test(cli_family, one_text_everywhere)
{
#define PART "flash_fwd_mma:order=together,bc=32"
#define ASKED "-d 64 --causal -n 256 -b 1 --heads 2 "
    static const struct {
        const char *words, *member; /* of the document */
    } rows[] = {
        { "emit " ASKED "--arch sm_80 -o k.cu --json --config " PART, "config" },
        { "space " ASKED "--arch sm_80 --json --why " PART, "config" },
        { "model " ASKED "--arch sm_80 --json --config " PART, "cost.config" },
        { "cache why " ASKED "--arch sm_80 --json --config " PART, "config" },
        { "cache why " ASKED "--device sim:sm_80 --json --config " PART, "config" },
        { "run " ASKED "--device sim:sm_80 --json --config " PART, "config" },
    };
    char text[512] = "", csv[700];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *doc = cli_json(rows[i].words, 0);
        const json_t *at =
            strchr(rows[i].member, '.') ? json_object_get(json_object_get(doc, "cost"), "config") : json_object_get(doc, "config");
        cr_assert(json_is_string(at), "%s", rows[i].words);
        if (!i)
            snprintf(text, sizeof text, "%s", json_string_value(at));
        cr_expect_str_eq(json_string_value(at), text, "%s", rows[i].words);
        json_decref(doc);
    }
    cr_expect(strstr(text, ",order=together,") && strstr(text, ",bc=32,"), "%s", text);
    cli_result r = cli_run("cache ls"), e = cli_run("explore " ASKED "--arch sm_80 --simulate 0 --csv -");
    snprintf(csv, sizeof csv, "\n\"%s\",", text);
    cr_expect(strstr(e.out, csv), "no %s", csv);
    cr_expect(strstr(r.out, ",order="), "%s", r.out);
    cli_result_free(&r);
    cli_result_free(&e);
}

/* Tables and messages name what the shipped families name. */
Test(cli_family, shipped_names)
{
    cli_result r = cli_run("space -d 128 --arch sm_90a --limit 3");
    cr_expect(r.code == 0 && (strstr(r.out, ",schedule=plain,") || strstr(r.out, ",schedule=pingpong")) &&
                  (strstr(r.out, ",grid=persistent,") || strstr(r.out, ",grid=static,")),
              "%s", r.out);
    cli_result_free(&r);
    r = cli_run("model -d 128 --arch sm_90a --config flash_fwd_wgmma:schedule=pingpong");
    cr_expect(r.code == 0 && strstr(r.out, ",schedule=pingpong,"), "%s%s", r.out, r.err);
    cli_result_free(&r);
    r = cli_run("model -d 128 --arch sm_90a --config flash_fwd_wgmma:schedule=4");
    cr_expect(r.code != 0 && strstr(r.err, "schedule is 4; accepted: plain (0), pingpong (1), pingpong_exp (2), after (3)"), "%s", r.err);
    cli_result_free(&r);
    r = cli_run("run -d 128 -n 16 --heads 1 --device sim:sm_80 "
                "--config flash_fwd_mma:br=128,bc=128,warps=1,stages_k=2,stages_v=2,order=together,q_regs=0,pack=0,lag=0,ctas=1");
    cr_expect(r.code != 0 && strstr(r.err, ",order=together,"), "%s", r.err);
    cli_result_free(&r);
}
