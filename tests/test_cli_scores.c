/* Score programs by the command: the list, one of them, what is refused; run, verify and a bundle, which another process opens. */
#include "cli/files/npy.h"
#include "runtime/runtime.h"
#include "sim/sim.h"
#include "test_cli_run.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(cli_scores, .init = cli_scratch_make, .fini = cli_scratch_remove, .timeout = 300);

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

static void says(const char *words, int code, const char *text)
{
    cli_result r = cli_run(words);
    cr_expect_eq(r.code, code, "%s: %d %s", words, r.code, r.err);
    cr_expect(strstr(code ? r.err : r.out, text), "%s: %s%s", words, r.out, r.err);
    cli_result_free(&r);
}

Test(cli_scores, programs_are_listed_and_told)
{
    json_t *list = cli_json("scores --json", 0), *one = cli_json("scores --score softcap:30 --json", 0), *row;
    size_t i, found = 0;
    json_array_foreach(json_object_get(list, "programs"), i, row) found +=
        !strcmp(json_string_value(json_object_get(row, "name")), "softcap");
    cr_expect_eq(found, 1);
    cr_expect(strstr(json_string_value(json_object_get(json_array_get(json_object_get(one, "operands"), 0), "is")), "number 30"));
    json_decref(list);
    json_decref(one);
    says("scores", 0, "ALiBi");
    says("scores --score relative", 0, "f32 \"hq sq+sk-1\"");
}

static json_int_t number(const json_t *of, const char *name)
{
    return json_integer_value(json_object_get(of, name));
}

static const char *word(const json_t *of, const char *name)
{
    const char *s = json_string_value(json_object_get(of, name));
    return s ? s : "-";
}

/* How tiles are found is the program's; docs/scores.md shows one. */
Test(cli_scores, a_mask_says_what_it_is_found_by)
{
    static const struct {
        const char *name, *found, *tables;
        size_t decides, reads;
    } rows[] = {
        { "chunked", "bounds", "-", 0, 0 },
        { "padding", "bounds", "-", 2, 0 },
        { "documents", "scan", "mask_queries int32 b sq/64 4, mask_keys int32 b sk/64 4", 1, 1 },
        { "blocks", "scan", "mask_pairs0 int32 b hq sq/8192 sk/8192", 1, 1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[64];
        snprintf(words, sizeof words, "scores --score %s --json", rows[i].name);
        json_t *doc = cli_json(words, 0), *mask = json_object_get(doc, "mask");
        cr_expect_str_eq(word(mask, "found"), rows[i].found, "%s", rows[i].name);
        cr_expect_str_eq(word(mask, "tables"), rows[i].tables, "%s", rows[i].name);
        cr_expect_eq(json_array_size(json_object_get(mask, "decided_by")), rows[i].decides, "%s", rows[i].name);
        cr_expect_eq(json_array_size(json_object_get(mask, "reads")), rows[i].reads, "%s", rows[i].name);
        json_decref(doc);
    }
    json_t *softcap = cli_json("scores --score softcap --json", 0);
    cr_expect(json_is_null(json_object_get(softcap, "mask")));
    json_decref(softcap);
}

/* Lines of docs/scores.md after "$ fagen " and these words are what the command prints, but for "...". */
static void docs_show(const char *words)
{
    char line[512], start[200];
    int shown = 0;
    bool in = false;
    FILE *f = fopen(FAGEN_TESTS "/../docs/scores.md", "r");
    cli_result r = cli_run(words);
    cr_assert(f && r.code == 0, "%s", r.err);
    snprintf(start, sizeof start, "$ fagen %s\n", words);
    while (fgets(line, sizeof line, f)) {
        if (line[0] == '$' || line[0] == '`')
            in = !strcmp(line, start);
        else if (in && strcmp(line, "...\n")) {
            cr_expect(strstr(r.out, line), "docs/scores.md shows, and the command does not print: %s%s", line, r.out);
            shown++;
        }
    }
    cr_expect_geq(shown, 2, "%s", words);
    fclose(f);
    cli_result_free(&r);
}

Test(cli_scores, show_counts_the_tiles_of_a_mask)
{
    docs_show("show -d 64 -n 4096 --score documents --arch sm_80");
}

/* Of gradients all tiles are marked before, whatever the mask; tables of its operands are beside the marks. */
Test(cli_scores, show_counts_the_tiles_of_gradients)
{
    json_t *doc = cli_json("show --op backward -d 64 -b 1 -n 4096 --score causal --arch h100 --json", 0),
           *mask = json_object_get(doc, "mask");
    json_t *counts = json_object_get(mask, "counts");
    cr_expect_str_eq(word(mask, "found"), "marks");
    cr_expect_str_eq(word(mask, "tables"), "marks_keys int32 sk/64 sq/2048 2, marks_queries int32 sq/64 sk/2048 2");
    cr_expect_eq(number(mask, "table_bytes"), 2 * 64 * 2 * 2 * 4);
    cr_expect(json_is_true(json_object_get(mask, "sure")));
    cr_expect_gt(number(counts, "empty"), 0);
    cr_expect_gt(number(counts, "full"), number(counts, "partial"));
    json_decref(doc);
    doc = cli_json("show --op backward -d 64 -n 4096 --score documents --arch h100 --json", 0);
    mask = json_object_get(doc, "mask");
    cr_expect_str_eq(word(mask, "tables"), "mask_queries int32 b sq/64 4, mask_keys int32 b sk/64 4, "
                                           "marks_keys int32 b sk/64 sq/2048 2, marks_queries int32 b sq/64 sk/2048 2");
    json_decref(doc);
}

/* Masks of whole runs have S after P V up to d = 64, others not, and no gradients of theirs take K and V in registers at 4k. */
Test(cli_scores, masks_have_configs_of_their_own)
{
    static const struct {
        const char *words, *part;
        bool there;
    } rows[] = {
        { "-d 64 -b 4 -H 32 -n 4096 --score blocks", "schedule=after", true },
        { "-d 64 -b 1 -H 32 -n 16384 --score blocks", "schedule=after", true },
        { "-d 128 -b 4 -H 16 -n 4096 --score blocks", "schedule=after", false },
        { "-d 64 -b 4 -H 32 -n 4096 --score documents", "schedule=after", false },
        { "-d 64 -b 4 -H 32 -n 4096 -t bf16 --op backward --score documents", "held=1", true },
        { "-d 128 -b 1 -H 16 -n 16384 -t bf16 --op backward --score documents", "dq=add", true },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[200];
        snprintf(words, sizeof words, "emit %s --arch h200 -o -", rows[i].words);
        cli_result r = cli_run(words);
        cr_expect_eq(strstr(r.out, rows[i].part) != NULL, rows[i].there, "%s: %.400s", words, r.out);
        cli_result_free(&r);
    }
}

/* Of the model's best config; nothing is compiled. */
static json_t *explored(const char *words)
{
    char all[200];
    snprintf(all, sizeof all, "explore -d 16 -b 2 -H 4 -n 1024 --dtype fp32 --arch sm_80 --family flash_fwd_ffma --simulate 0 --json %s",
             words);
    return cli_json(all, 0);
}

Test(cli_scores, tiles_of_a_mask_beside_that_of_the_launch)
{
    json_t *doc = explored("--score chunked:256"), *mask = json_object_get(doc, "mask"), *counts = json_object_get(mask, "counts");
    json_int_t rows = number(counts, "rows_of_tile"), keys = number(counts, "keys_of_tile"), empty = number(counts, "empty");
    json_int_t all = 2 * 4 * ((1024 + rows - 1) / rows) * ((1024 + keys - 1) / keys);
    cr_expect_str_eq(word(mask, "found"), "bounds");
    cr_expect(json_is_true(json_object_get(mask, "sure")));
    cr_expect_eq(number(mask, "table_bytes"), 0);
    cr_assert(rows > 0 && keys > 0 && 256 % rows == 0 && 256 % keys == 0, "%d x %d", (int)rows, (int)keys);
    cr_expect_eq(empty + number(counts, "partial") + number(counts, "full"), all);
    cr_expect_geq(empty, all * 3 / 4, "a chunk sees itself alone");
    cr_expect_geq(number(counts, "full"), all / 16);
    json_decref(doc);
    doc = explored("--score documents --causal");
    mask = json_object_get(doc, "mask");
    counts = json_object_get(mask, "counts");
    cr_expect(json_is_false(json_object_get(mask, "sure")));
    cr_expect_eq(number(counts, "full"), 0);
    cr_expect_geq(number(counts, "empty"), all * 2 / 5, "of the triangle at least");
    cr_expect_eq(number(mask, "read_bytes"), 2 * 1024 * 4);
    cr_expect_eq(number(mask, "table_bytes"), 2 * 2 * 16 * 4 * 4);
    json_decref(doc);
    doc = explored("--score softcap");
    cr_expect(json_is_null(json_object_get(doc, "mask")));
    json_decref(doc);
}

Test(cli_scores, what_is_wrong_is_refused)
{
    const char *text = "cap = scalar(5)\nfunction score(s, b, h, i, j)\n  return cap * s + x\nend\n";
    cli_scratch_write("wrong.lua", text, strlen(text));
    says("run --score sofcap -d 64", 1, "--score is \"sofcap\"; accepted: alibi, bias,");
    says("run --score softcap:0 -d 64", 1, "--score softcap:0: cap is \"0\"; accepted: a number from 1e-06 to 1e+30");
    says("run --score softcap:x -d 64", 1, "cap is \"x\"; accepted: a number");
    says("run --score softcap:1,2 -d 64", 1, "more numbers than the program has scalars; \"2\" is left; accepted: cap");
    says("run --score alibi:3 -d 64", 1, "\"3\" is left; accepted: NAME alone: it has no scalars");
    says("run --score temperature_rows:1,2.5 -d 64", 1, "floor_scale is \"2.5\"; accepted: an integer from 1 to 1048576");
    says("run --score softcap --score-file wrong.lua", 1, "accepted: one of them");
    says("scores --score-file wrong.lua", 1, "wrong.lua:3:20: x is not defined");
    says("run --op backward --score softcap -d 64 -n 96 --device sim:sm_80 --check", 0, "check      ok");
    says("run --problem bf16,d=64,features=score,score0=1,score1=2,score2=3,score3=4", 1, "which is no score program of this process");
    says("verify --grid default --score nothing", 1, "--score is \"nothing\"");
    cli_result r = cli_run("run --score-file nowhere.lua");
    cr_expect(r.code != 0 && strstr(r.err, "--score-file nowhere.lua: No such file"), "%d %s", r.code, r.err);
    cli_result_free(&r);
}

/* Each program at 4k and 16k tokens, in both passes. */
Test(cli_scores, the_grid_of_programs)
{
    json_t *doc = cli_json("tune --list-grids --grid scores --json", 0), *row;
    size_t i, backward = 0, long_ones = 0;
    json_array_foreach(json_object_get(doc, "problems"), i, row)
    {
        const char *text = json_string_value(json_object_get(row, "problem"));
        cr_expect(strstr(text, "features=score") && strstr(text, ",score0="), "%s", text);
        backward += strstr(text, "op=backward") != NULL;
        long_ones += strstr(text, "sq=16384,sk=16384") != NULL;
    }
    cr_expect(i == 124 && backward == 62 && long_ones == 62, "%zu %zu %zu", i, backward, long_ones);
    json_decref(doc);
    says("verify --grid scores --op forward -d 256 -n 4096 --device sim:sm_80", 0, "1 of 1 cases are right");
    says("tune --grid scores -d 256 -n 4096 --arch sm_80 --limit 1", 0, "2 of 2 problems have a guess");
}

Test(cli_scores, run_checks_the_program_of_a_file)
{
    const char *text = "c = scalar(2)\nfunction score(s, b, h, i, j) return c * tanh_exact(s / c) - 0.25 * abs(i - j) end\n";
    cli_scratch_write("mine.lua", text, strlen(text));
    says("run --score-file mine.lua -d 32 -n 48 --dtype fp16 --device sim:sm_80 --check", 0, "check      ok");
    says("verify --score softcap:3 -d 32 -n 48 --dtype fp16 --device sim:sm_80", 0, "1 of 1 cases are right");
}

/* Kernels read the nearest element. A side of a condition that is not taken, and a pair that is hidden, read nothing. */
Test(cli_scores, an_index_outside_of_its_operand_is_named)
{
    static const struct {
        const char *score, *mask, *says;
    } rows[] = {
        { "s + t[h][j - i + 20]", "j <= i", "outside    index 2 of t is -1 of 32 at batch 0, head 0, query 21, key 0: the nearest" },
        { "s + (j - i + 20 < 0 and 0 or t[h][j - i + 20])", "j <= i", NULL },
        { "s + t[h][j - i + 20]", "j <= i and i - j <= 20", NULL },
        { "s", "j <= i and t[h][i - j - 4] ~= 9", "outside    index 2 of t is -4 of 32 at batch 0, head 0, query 0, key 0" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "t = f32 'hq 32'\nfunction score(s, b, h, i, j) return %s end\nfunction mask(b, h, i, j) return %s end\n", rows[i].score,
                 rows[i].mask);
        cli_scratch_write("mine.lua", text, strlen(text));
        cli_result r = cli_run("run --score-file mine.lua -d 16 -n 30 --dtype fp32 --device sim:sm_80 --check");
        cr_expect(r.code == 0 && strstr(r.out, "check      ok"), "%s: %s%s", text, r.out, r.err);
        cr_expect(rows[i].says ? strstr(r.out, rows[i].says) != NULL : !strstr(r.out, "outside "), "%s: %s", text, r.out);
        cli_result_free(&r);
    }
}

static void write_npy(const char *name, int n, const int64_t *dim, float first)
{
    static float x[2 * 40 * 4 * 32];
    size_t count = 1;
    for (int i = 0; i < n; i++)
        count *= (size_t)dim[i];
    for (size_t i = 0; i < count; i++)
        x[i] = first + (float)(i * 7919 % 257) / 128;
    OK(cli_npy_write(name, FA_F32, n, dim, x));
}

Test(cli_scores, attend_reads_operands_from_files)
{
    const int64_t q[4] = { 2, 17, 4, 32 }, kv[4] = { 2, 23, 2, 32 }, four = 4, three = 3;
    write_npy("sq.npy", 4, q, -1);
    write_npy("sk.npy", 4, kv, -0.5f);
    write_npy("sv.npy", 4, kv, -1);
    write_npy("four.npy", 1, &four, 0.25f);
    write_npy("three.npy", 1, &three, 0.25f);
#define ATTEND "attend --q sq.npy --k sk.npy --v sv.npy -o so.npy --device sim:sm_80 --check --causal "
#define BACKWARD ATTEND "--backward --grad-o sq.npy --grad-q gq.npy --grad-k gk.npy --grad-v gv.npy "
    says(ATTEND "--score softcap_alibi:0.7 --operand slope=four.npy", 0, "check      ok");
    says(ATTEND "--score alibi", 1, "--operand: the array slope of the score program is not given; accepted: slope=FILE");
    says(ATTEND "--score alibi --operand slope=three.npy", 1,
         "three.npy has 1 dimensions, the first of them 3; accepted: \"hq\", the first 4");
    says(ATTEND "--score alibi --operand tau=four.npy", 1, "--operand has \"tau=four.npy\"; accepted: NAME=FILE");
    says(ATTEND "--operand tau=four.npy", 1, "--operand without a score program");
    says(BACKWARD "--score softcap_alibi:0.7 --operand slope=four.npy", 0, "check      ok");
    says(BACKWARD "--score sink --operand sink_of=three.npy", 1, "accepted: \"hq\", the first 4");
}

/* A process that has never read the program: its bundle brings it, and what is launched of it comes from there. */
Test(cli_scores, a_bundle_carries_its_program)
{
    cli_result r = cli_run("emit --bundle --raw -o caps.fagen --score softcap -d 64 --dtype fp16 -n 64 -H 2 --arch compute_80");
    cr_assert_eq(r.code, 0, "%s", r.err);
    cli_result_free(&r);
    FILE *f = fopen("caps.fagen", "rb");
    cr_assert(f);
    static unsigned char bytes[8 << 20];
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    const fa_bundle *bundles[] = { NULL, NULL };
    OK(fa_bundle_open(&bundles[0], bytes, n));
    fa_options o = FA_OPTIONS_INIT;
    fa_context *ctx;
    fa_score *score, *again;
    fa_problem p = FA_PROBLEM_INIT;
    uint64_t id[2];
    char text[8192];
    o.cache_dir = "";
    o.bundles = bundles;
    o.bundle_only = 1;
    OK(fa_create_on(&ctx, &o, sim_open("sm_80"), 0));
    OK(fa_score_of_bundle(ctx, bundles[0], 0, &score));
    OK(fa_score_id(ctx, score, id));
    const char *own = "cap = scalar(50, 'float', 1e-6, 1e30)\nfunction score(s, b, h, i, j) return cap * tanh(s / cap) end";
    OK(fa_score_create(ctx, own, &again));
    cr_expect_eq(again, score, "what ships as softcap, written otherwise, is the same object");
    static const struct {
        int i;
        bool context, bundle, out;
        const char *says;
    } wrong[] = {
        { 1, true, true, true, "i: 1; accepted: from 0, below 1, the score programs of the bundle caps" },
        { -1, true, true, true, "i: -1; accepted: from 0" },
        { 0, true, false, true, "bundle: NULL; accepted: a fa_bundle" },
        { 0, true, true, false, "out: NULL; accepted" },
        { 0, false, true, true, "context" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        again = score;
        cr_expect_eq(fa_score_of_bundle(wrong[i].context ? ctx : NULL, wrong[i].bundle ? bundles[0] : NULL, wrong[i].i,
                                        wrong[i].out ? &again : NULL),
                     FA_INVALID, "%zu", i);
        cr_expect(strstr(fa_last_error(), wrong[i].says), "%zu: %s", i, fa_last_error());
        cr_expect(!wrong[i].out || !again, "%zu", i);
    }
    p.dtype = FA_F16;
    p.d = 64;
    p.features = FA_FEATURE_SCORE;
    p.b = 1;
    p.hq = p.hkv = 2;
    p.sq = p.sk = 64;
    p.score_id0 = (int32_t)(uint32_t)id[0];
    p.score_id1 = (int32_t)(uint32_t)(id[0] >> 32);
    p.score_id2 = (int32_t)(uint32_t)id[1];
    p.score_id3 = (int32_t)(uint32_t)(id[1] >> 32);
    OK(fa_prepare(ctx, &p));
    OK(fa_explain(ctx, &p, NULL, text, sizeof text));
    cr_expect(strstr(text, "bundle"), "%s", text);
    p.score_id0++;
    cr_expect_eq(fa_prepare(ctx, &p), FA_INVALID);
    fa_destroy(ctx);
}
