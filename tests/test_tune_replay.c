/* Strategies on recordings: on a world whose best is known, and through the command on files whose right answers are known. */
#include "bench/dev/replay.h"
#include "cache/record.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "test_cli_run.h"
#include "tune_world.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static fa_recording record_world(const world *w)
{
    fa_recording r = { .n = 0 };
    fa_pool pool = { .n = 0 };
    world_list(w, &pool);
    for (size_t i = 0; i < pool.n; i++) {
        const fa_pool_entry *x = &pool.p[i];
        fa_take t = { x->config, world_time(w, &x->config), x->cost.seconds, 128, { x->tile[0], x->tile[1] } };
        cr_assert(fa_recording_add(&r, &t));
    }
    fa_pool_free(&pool);
    return r;
}

Test(tune_replay, a_replay_is_the_search_and_never_leaves_the_recording)
{
    world w = world_make(5);
    fa_recording r = record_world(&w);
    fa_replay a, b;
    cr_assert_eq(fa_replay_run(&r, fa_strategy_find("exhaustive"), -1, 0, &a), FA_OK);
    cr_assert_eq(a.tried, r.n);
    cr_assert_eq(a.end, 0);
    cr_assert(a.until > 0 && a.until <= r.n);
    for (int i = 1; i < FA_REPLAY_MARKS; i++)
        cr_assert_leq(a.regret[i], a.regret[i - 1]);
    cr_assert_eq(fa_replay_run(&r, fa_strategy_find("halving"), 16, 0, &a), FA_OK);
    cr_assert(a.tried > 16 && a.tried <= 16 + 48, "%zu", a.tried);
    cr_assert_eq(a.regret[4], a.end, "it was done before the last mark");
    cr_assert_eq(fa_replay_run(&r, fa_strategy_find("random"), 16, 1, &a), FA_OK);
    cr_assert_eq(fa_replay_run(&r, fa_strategy_find("random"), 16, 1, &b), FA_OK);
    cr_assert_eq(memcmp(&a, &b, sizeof a), 0);
    cr_assert_eq(a.tried, 16);

    fa_take t = r.take[3];
    t.seconds = 1e-9; /* measured again: the newer counts */
    cr_assert(fa_recording_add(&r, &t));
    cr_assert_eq(fa_recording_best(&r), 1e-9);
    for (size_t i = 0; i < r.n; i++)
        r.take[i].seconds = 0;
    cr_assert_eq(fa_replay_run(&r, fa_strategy_find("halving"), 16, 1, &a), FA_INVALID);
    fa_recording_free(&r);
}

/* Twelve configs of a family that no template has; the model's order is a = 1, 2, ..., the truth's best is a = 5, 10 % ahead of a = 1, and
 * a = 2 does not run. */
static void write_tuning(const char *path)
{
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fprintf(f, "{\"arch\": \"sm_80\", \"problems\": [{\"problem\": \"bf16,d=64,b=1,hq=1,hkv=1,sq=64,sk=64\", \"candidates\": [");
    for (int a = 1; a <= 12; a++)
        fprintf(f,
                "%s{\"config\": \"made_up:a=%d,b=%d\", \"outcome\": \"%s\", \"source\": \"measured\", \"seconds\": %g, \"modelled\": %g}",
                a > 1 ? ", " : "", a, a % 2, a == 2 ? "wrong" : "ok",
                a == 5   ? 1e-4
                : a == 1 ? 1.1e-4
                         : 2e-4,
                1e-4 * (1 + 0.1 * a));
    fprintf(f, "]}]}\n");
    fclose(f);
}

static json_t *strategy_of(const json_t *doc, const char *name)
{
    size_t i;
    json_t *s;
    json_array_foreach(json_object_get(doc, "strategies"), i,
                       s) if (!strcmp(json_string_value(json_object_get(s, "strategy")), name)) return s;
    cr_assert_fail("no strategy %s", name);
    return NULL;
}

static double of(const json_t *s, const char *name)
{
    return json_number_value(json_object_get(s, name));
}

Test(tune_replay, the_command_knows_the_right_answers, .init = cli_scratch_make, .fini = cli_scratch_remove)
{
    char args[512];
    const char *path = "tuning.json";
    write_tuning(path);
    snprintf(args, sizeof args, "replay --json --limit 6 --seeds 40 %s", path);
    cli_result r = cli_run(args);
    cr_assert_eq(r.code, 0, "%s", r.err);
    json_t *doc = json_loads(r.out, 0, NULL);
    cr_assert_not_null(doc);
    cr_assert_eq(of(doc, "problems"), 1);
    cr_assert_eq(of(doc, "configs"), 12);
    cr_assert_eq(of(doc, "unknown"), 0);
    const json_t *halving = strategy_of(doc, "halving"), *exhaustive = strategy_of(doc, "exhaustive"), *drawn = strategy_of(doc, "random");
    cr_assert_eq(of(halving, "until"), 5);
    cr_assert_eq(of(halving, "end"), 0);
    cr_assert_float_eq(of(json_object_get(halving, "regret"), "8"), 0, 1e-12);
    cr_assert_eq(of(exhaustive, "until"), 5);
    cr_assert_eq(of(exhaustive, "tried"), 6);
    cr_assert_eq(of(drawn, "runs"), 40);
    cr_assert_eq(of(drawn, "tried"), 6);
    cr_assert(of(drawn, "reached") > 8 && of(drawn, "reached") < 32, "half of the draws have it: %g", of(drawn, "reached"));
    cr_assert_float_eq(of(drawn, "worst"), 1, 1e-9);
    json_decref(doc);
    cli_result_free(&r);

    snprintf(args, sizeof args, "replay --limit 4 %s", path);
    r = cli_run(args);
    cr_assert_eq(r.code, 0, "%s", r.err);
    cr_assert(strstr(r.out, "1 problems, 12 measured configs") && strstr(r.out, "halving"), "%s", r.out);
    cli_result_free(&r);
}

Test(tune_replay, the_three_kinds_of_files, .init = cli_scratch_make, .fini = cli_scratch_remove)
{
    char args[1024], path[3][256];
    snprintf(path[0], sizeof path[0], "%s", "variants.json");
    snprintf(path[1], sizeof path[1], "%s", "records.jsonl");
    snprintf(path[2], sizeof path[2], "%s", "nothing.json");
    FILE *f = fopen(path[0], "w"), *g = fopen(path[1], "w"), *h = fopen(path[2], "w");
    fprintf(h, "[]");
    fprintf(f, "[{\"problem\": \"bf16,d=64,dv=64,mask=none,o=bf16,align=16,b=1,hq=2,hkv=2,sq=512,sk=512\", \"variants\": [{\"config\": "
               "\"cudnn\", \"peer\": true, "
               "\"seconds\": [1e-9]}");
    for (int i = 0; i < 5; i++)
        fprintf(f,
                ", {\"config\": \"flash_fwd_mma:br=%d,bc=%d,warps=4,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1\", "
                "\"seconds\": [3e-4, %g, 1e-5]}",
                i % 2 ? 64 : 128, 32 + 16 * i, 1e-4 * (i + 1));
    fprintf(f, ", {\"config\": \"no_such:x=1\", \"seconds\": [1e-7]}]}]");
    for (int i = 0; i < 4; i++) {
        fa_record r = { .outcome = FA_RAN, .how = FA_MEASURED, .seconds = 5e-5, .verified = true };
        fa_text line = { 0 };
        char config[128];
        cr_assert_eq(fa_problem_parse(&r.problem, "bf16,d=64,dv=64,mask=none,o=bf16,align=16,b=1,hq=2,hkv=2,sq=512,sk=512"), FA_OK);
        snprintf(config, sizeof config, "flash_fwd_mma:br=64,bc=%d,warps=4,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=%d,ctas=1",
                 32 + 32 * (i % 2), 8 * (i / 2));
        cr_assert_eq(fa_config_parse(&r.config, config), FA_OK);
        strcpy(r.chip, "A100");
        strcpy(r.arch, "sm_80");
        cr_assert(fa_record_to_json(&r, &line));
        fprintf(g, "%s\ntorn {\n", line.s);
        fa_text_free(&line);
    }
    fclose(f);
    fclose(g);
    fclose(h);
    snprintf(args, sizeof args, "replay --json --arch sm_80 %s %s", path[0], path[1]);
    cli_result r = cli_run(args);
    json_t *doc = json_loads(r.out, 0, NULL);
    cr_assert_eq(r.code, 0, "%s", r.err);
    cr_assert_eq(of(doc, "problems"), 1, "%s", r.out);
    cr_assert_eq(of(doc, "unknown"), 1);
    cr_assert_eq(of(doc, "configs"), 9);
    json_decref(doc);
    cli_result_free(&r);

    const char *bad[][2] = { { "replay", "wants files" },
                             { "replay /nonexistent.json", "/nonexistent.json" },
                             { "replay --arch sm_1 x", "--arch" } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        r = cli_run(bad[i][0]);
        cr_assert_neq(r.code, 0);
        cr_assert(strstr(r.err, bad[i][1]), "%s: %s", bad[i][0], r.err);
        cli_result_free(&r);
    }
    snprintf(args, sizeof args, "replay %s", path[2]);
    r = cli_run(args);
    cr_assert(r.code != 0 && strstr(r.err, "holds no measurements"), "%s", r.err);
    cli_result_free(&r);
}

/* What is drawn is decided by the seed. A recording in which the choice is 25 % slower than a config beside it has that regret. */
Test(tune_replay, the_choice_is_judged, .init = cli_scratch_make, .fini = cli_scratch_remove)
{
    cli_result r = cli_run("judge --json --draw few --shapes 2 --seed 7 --random 3 --arch h200"), again, other;
    cr_assert_eq(r.code, 0, "%s", r.err);
    again = cli_run("judge --json --draw few --shapes 2 --seed 7 --random 3 --arch h200");
    other = cli_run("judge --json --draw few --shapes 2 --seed 8 --random 3 --arch h200");
    cr_expect_str_eq(r.out, again.out);
    cr_expect_str_neq(r.out, other.out);
    json_t *doc = json_loads(r.out, 0, NULL), *shape = json_array_get(json_object_get(doc, "shapes"), 0);
    json_t *candidates = json_object_get(shape, "candidates"), *random = json_object_get(shape, "random");
    cr_assert(json_array_size(candidates) >= 2 && json_array_size(candidates) <= 64 && json_array_size(random) == 3, "%s", r.out);
    FILE *f = fopen("judge.json", "w");
    fprintf(f,
            "[{\"problem\": \"%s\", \"variants\": [{\"config\": \"%s\", \"seconds\": [5e-5]}, {\"config\": \"%s\", \"seconds\": [4e-5]}]}]",
            json_string_value(json_object_get(shape, "problem")), json_string_value(json_array_get(candidates, 0)),
            json_string_value(json_array_get(random, 0)));
    fclose(f);
    json_decref(doc);
    cli_result_free(&again);
    cli_result_free(&other);
    cli_result_free(&r);
    r = cli_run("judge --json --arch h200 judge.json");
    cr_assert_eq(r.code, 0, "%s", r.err);
    doc = json_loads(r.out, 0, NULL);
    cr_expect_eq(of(doc, "problems"), 1);
    cr_expect_float_eq(of(doc, "mean"), 0.25, 1e-6, "%s", r.out);
    cr_expect_float_eq(of(doc, "worst"), 0.25, 1e-6);
    json_decref(doc);
    cli_result_free(&r);
    const char *bad[][2] = { { "judge", "--draw or --problems" },
                             { "judge --draw wings", "accepted: forward, gqa, few, unequal" },
                             { "judge --arch x a", "--arch" } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        r = cli_run(bad[i][0]);
        cr_expect(r.code != 0 && strstr(r.err, bad[i][1]), "%s: %s", bad[i][0], r.err);
        cli_result_free(&r);
    }
}
