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

Test(cli_scores, what_is_wrong_is_refused)
{
    const char *text = "cap = scalar(5)\nfunction score(s, b, h, i, j)\n  return cap * s + x\nend\n";
    cli_scratch_write("wrong.lua", text, strlen(text));
    says("run --score sofcap -d 64", 1, "--score is \"sofcap\"; accepted: alibi, bias,");
    says("run --score softcap:0 -d 64", 1, "--score softcap:0: cap is \"0\"; accepted: a number from 1e-06 to 1e+30");
    says("run --score softcap:x -d 64", 1, "cap is \"x\"; accepted: a number");
    says("run --score softcap:1,2 -d 64", 1, "more numbers than the program has scalars; \"2\" is left");
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

Test(cli_scores, run_checks_the_program_of_a_file)
{
    const char *text = "c = scalar(2)\nfunction score(s, b, h, i, j) return c * tanh_exact(s / c) - 0.25 * abs(i - j) end\n";
    cli_scratch_write("mine.lua", text, strlen(text));
    says("run --score-file mine.lua -d 32 -n 48 --dtype fp16 --device sim:sm_80 --check", 0, "check      ok");
    says("verify --score softcap:3 -d 32 -n 48 --dtype fp16 --device sim:sm_80", 0, "1 of 1 cases are right");
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
    fa_score *score;
    fa_problem p = FA_PROBLEM_INIT;
    uint64_t id[2];
    char text[8192];
    o.cache_dir = "";
    o.bundles = bundles;
    o.bundle_only = 1;
    OK(fa_create_on(&ctx, &o, sim_open("sm_80"), 0));
    OK(fa_score_create(ctx, "cap = scalar(3, 'float', 1e-6, 1e30)\nfunction score(s, b, h, i, j) return cap * tanh(s / cap) end", &score));
    OK(fa_score_id(ctx, score, id));
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
