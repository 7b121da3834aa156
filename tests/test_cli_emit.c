/* `fagen emit`: the text of what runs, the same each time, with its launcher where that is asked for. */
#include "cache/record.h"
#include "gen/problem.h"
#include "test_cli_run.h"
#include "test_full.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(cli_emit, .init = cli_scratch_make, .fini = cli_scratch_remove, .timeout = 600);

/* A kernel's text with its launcher: what is launched, and a file that nvcc builds alone, where there is an nvcc. */
Test(cli_emit, emit_with_its_host)
{
    static const struct {
        const char *words, *holds[4];
    } rows[] = {
        { "-d 64 --arch sm_80 --causal -n 256 -b 2 --heads 4 --kv-heads 2",
          { "enum { BATCH = 2, HEADS = 4, KV_HEADS = 2, ROWS = 256, KEYS = 256, LEFT = -1, RIGHT = 0, IN = 2, OUT = 2, HALF = 0 };",
            "p.q_ss = 256;", "cudaFuncAttributeMaxDynamicSharedMemorySize", "const void *kernel = (const void *)fa_fwd;" } },
        { "-d 128 --arch h100 -n 512 --window 64,3", { "LEFT = 64, RIGHT = 3,", "cuTensorMapEncodeTiled", "&map_2", "sm_90a -o kernel" } },
        { "-d 64 --arch h200 --sq 200 --sk 16k --heads 2",
          { "ROWS = 200, KEYS = 16384", "p.diag_hi", "workspace + ", "(const void *)fa_fwd_merge" } },
    };
    const char *nvcc = access("/usr/local/cuda/bin/nvcc", X_OK) == 0 ? "/usr/local/cuda/bin/nvcc" : NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[600];
        snprintf(words, sizeof words, "emit %s", rows[i].words);
        cli_result alone = cli_run(words);
        snprintf(words, sizeof words, "emit %s --host", rows[i].words);
        cli_result r = cli_run(words);
        cr_assert_eq(r.code, 0, "%s: %s", words, r.err);
        cr_expect(!strncmp(r.out, alone.out, alone.out_size), "the kernel's text is not what it is alone");
        for (size_t k = 0; k < 4; k++)
            cr_expect(strstr(r.out, rows[i].holds[k]), "%s: no %s", words, rows[i].holds[k]);
        cli_scratch_write("host.cu", r.out, r.out_size);
        const char *target = strstr(r.out, "arch=compute_");
        cr_assert(target);
        snprintf(words, sizeof words, "%s -std=c++17 -gencode %.*s -o host host.cu >log 2>&1", nvcc ? nvcc : "true",
                 (int)strcspn(target, " "), target);
        if (i == 1 || full()) /* the others are of the same lines, or of fewer */
            cr_expect_eq(system(words), 0, "%s", words);
        cli_result_free(&alone);
        cli_result_free(&r);
    }
    cli_result r = cli_run("emit -d 64 --op backward --arch sm_80 --host");
    cr_expect(r.code == 1 && strstr(r.err, "--host is for dense problems of the forward"), "%d %s", r.code, r.err);
    cli_result_free(&r);
}

/* What `cache why` names for a chip is what `emit` makes for it, and what runs there. */
Test(cli_emit, why_names_what_runs)
{
    static const char *const asked[] = { "-d 128 --causal -n 4096 -b 4 --heads 16 --arch h200", "-d 64 -n 512 --arch sm_80",
                                         "-d 128 --sq 1 -n 8k --arch h100" };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        char words[200];
        snprintf(words, sizeof words, "cache why %s --json", asked[i]);
        json_t *why = cli_json(words, 0);
        snprintf(words, sizeof words, "emit %s -o k.cu --json", asked[i]);
        json_t *emit = cli_json(words, 0);
        snprintf(words, sizeof words, "show %s --json", asked[i]);
        json_t *show = cli_json(words, 0);
        cr_expect_str_eq(json_string_value(cli_at(why, "config")), json_string_value(cli_at(emit, "config")), "%s", asked[i]);
        cr_expect_str_eq(json_string_value(cli_at(why, "config")), json_string_value(cli_at(show, "config")), "%s", asked[i]);
        cr_expect_str_eq(json_string_value(cli_at(why, "key")), json_string_value(cli_at(show, "anatomy.key.key")), "%s", asked[i]);
        json_decref(why);
        json_decref(emit);
        json_decref(show);
    }
}

static const char *config_of(json_t *doc)
{
    return json_string_value(json_object_get(doc, "config"));
}

/* What `fagen emit` prints is what fa_launch() runs: what ships, a record where there is one; the model's best where that is asked for. */
Test(cli_emit, emit_prints_what_runs)
{
    static const char *const chips[][2] = { { "sm_80", "sim:sm_80" }, { "sm_90a", "sim:sm_90a" } };
    char words[512];
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        snprintf(words, sizeof words, "emit -d 64 --causal --arch %s", chips[i][0]);
        cli_result text = cli_run(words);
        snprintf(words, sizeof words, "show -d 64 --causal --source --device %s", chips[i][1]);
        cli_result runs = cli_run(words);
        cr_expect(text.code == 0 && runs.code == 0 && strlen(text.out) > 1000 && !strcmp(text.out, runs.out), "%s", chips[i][0]);
        cli_result_free(&text);
        cli_result_free(&runs);
    }
    static const char *const devices[][2] = { { "", "sm_80" },
                                              { "FAGEN_DEVICE=sim:sm_90a ", "sm_90a" } }; /* without --arch: the device's */
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        snprintf(words, sizeof words, "%semit -d 64 --causal --json -q", devices[i][0]);
        json_t *there = cli_json(words, 0);
        cr_expect_str_eq(json_string_value(json_object_get(there, "arch")), devices[i][1], "%s", words);
        json_decref(there);
    }
    cli_result wrong = cli_run("FAGEN_DEVICE=sim:sm_1 emit -d 64 --causal -q");
    cr_expect(wrong.code != 0 && strstr(wrong.err, "sm_1"), "%d: %s", wrong.code, wrong.err);
    cli_result_free(&wrong);
    json_t *ships = cli_json("emit -d 64 --causal --arch sm_80 --json -q", 0),
           *best = cli_json("emit -d 64 --causal --arch sm_80 --model-best --json -q", 0),
           *space = cli_json("space -d 64 --causal --arch sm_80 --limit 1 --json -q", 0);
    cr_expect_str_eq(json_string_value(json_object_get(ships, "where")), "default table");
    cr_expect_str_neq(config_of(ships), config_of(best), "or nothing is shown here");
    cr_expect_str_eq(config_of(best), config_of(json_array_get(json_object_get(space, "configs"), 0)));
    json_decref(space);
    fa_store *store = fa_store_open("cache", NULL, NULL); /* a measured record of the chip goes before both */
    fa_record r = { .outcome = FA_RAN, .how = FA_MEASURED, .verified = true, .seconds = 1e-6, .count = 20 };
    cr_assert_eq(fa_problem_parse(&r.problem, "bf16,d=64,mask=causal,b=1,hq=16,hkv=16,sq=4096,sk=4096"), FA_OK);
    cli_config(&r.config, config_of(best));
    strcpy(r.chip, "NVIDIA A100"), strcpy(r.arch, "sm_80"), strcpy(r.version, FA_VERSION_STRING), strcpy(r.date, "2026-11-22T00:00:00Z");
    cr_assert(fa_record_append(store, &r));
    fa_store_close(store);
    json_t *record =
        cli_json("FAGEN_CACHE_DIR=cache emit -d 64 --causal -b 1 --heads 16 -n 4096 --arch sm_80 --chip 'NVIDIA A100' --json -q", 0);
    cr_expect_str_eq(json_string_value(json_object_get(record, "where")), "measured record", "%s",
                     json_string_value(json_object_get(record, "why")));
    cr_expect_str_eq(config_of(record), config_of(best));
    json_decref(record);
    json_decref(ships);
    json_decref(best);
}

/* Terms that the config makes nothing of are not there to read. */
Test(cli_emit, emitted_code_has_no_empty_terms)
{
    static const char *const emitted[] = { "emit -d 64 --causal --arch sm_80",
                                           "emit -d 128 --arch sm_90a",
                                           "emit -d 64 -t fp32",
                                           "emit -d 64 -t tf32",
                                           "emit -d 64 --config flash_fwd_mma:order=0,stages_k=1,stages_v=1",
                                           "emit -d 64 --config flash_fwd_mma:order=0,stages_k=2,stages_v=2",
                                           "emit -d 64 --config flash_fwd_mma:order=1,stages_k=2,stages_v=1",
                                           "emit -d 64 --config flash_fwd_mma:order=1,stages_k=1,stages_v=2",
                                           "emit -d 64 --config flash_fwd_mma:order=2,stages_k=2,stages_v=2",
                                           "emit -d 64 --config naive:tile=64",
                                           "emit -d 64 -t fp32 --config flash_fwd_ffma:br=16" };
    static const char *const empty[] = { " - 0,", " - 0)", " - 0;", " + 0,", " + 0)", " + 0;", " * 1,",
                                         " * 1)", " * 1;", "(0 + ", " 1 * ", "(0 * ", " / 1)", " / 1;" };
    for (size_t i = 0; i < sizeof emitted / sizeof *emitted; i++) {
        cli_result r = cli_run(emitted[i]);
        cr_expect_eq(r.code, 0, "%s: %s", emitted[i], r.err);
        for (char *s = r.out; (s = strstr(s, "//")) != NULL;) /* comments may */
            memset(s, '/', strcspn(s, "\n")), s += strcspn(s, "\n");
        for (size_t k = 0; k < sizeof empty / sizeof *empty; k++) {
            const char *at = strstr(r.out, empty[k]);
            cr_expect_null(at, "%s: \"%.60s\"", emitted[i], at ? at - (at - r.out > 20 ? 20 : at - r.out) : "");
        }
        cli_result_free(&r);
    }
}

Test(cli_emit, emit_twice)
{
    cli_result a = cli_run("emit -d 128 --causal --arch sm_90a"), b = cli_run("emit -d 128 --causal --arch sm_90a");
    cr_assert_eq(a.code, 0, "%s", a.err);
    cr_assert_eq(a.out_size, b.out_size);
    cr_assert_arr_eq(a.out, b.out, a.out_size);
    char *again = strstr(a.out, "fagen emit "), words[2048];
    cr_assert(again);
    snprintf(words, sizeof words, "%.*s", (int)strcspn(again, "\n") - 6, again + 6);
    cli_result c = cli_run(words); /* the command in the header makes the same text */
    cr_assert_eq(c.code, 0, "%s: %s", words, c.err);
    cr_expect_str_eq(c.out, a.out);
    cli_result_free(&a);
    cli_result_free(&b);
    cli_result_free(&c);
}
