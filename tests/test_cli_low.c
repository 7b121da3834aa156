/* Caches of few bits on the command line, on chips that no simulator is of: the text of every format, and what NVRTC makes of it for sm_80
 * and sm_89; options and grids. */
#include "test_cli_run.h"
#include "test_full.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void init(void)
{
    cli_scratch_make();
    setenv("FAGEN_CACHE_DIR", "cache", 1);
}
TestSuite(cli_low, .init = init, .fini = cli_scratch_remove, .timeout = 3600);

static const char *const formats[] = {
#define FORMAT(number, word, ...) word,
#include "gen/formats.def"
};
enum { FORMATS = sizeof formats / sizeof *formats };
static const char *const archs[] = { "sm_80", "sm_89" };

/* What reads such a cache and what writes one. */
static const struct {
    const char *options, *holds; /* a word of the text */
} ways[] = { { "--sq 1 --sk 4096", "decode" },
             { "--sq 2048 --sk 4096 --causal", "fa_widen" },
             { "--op append --sq 64 --sk 4096", "fa_append" } };

static void emitted(const char *format, const char *arch, int way, bool compiled)
{
    char words[512];
    snprintf(words, sizeof words, "emit -t bf16 -d 128 -b 2 -H 8 --kv-heads 2 --kv %s %s --arch %s%s", format, ways[way].options, arch,
             compiled ? " -f cubin -o x.cubin" : "");
    cli_result r = cli_run(words);
    cr_assert_eq(r.code, 0, "%s: %s", words, r.err);
    if (compiled) {
        char magic[4] = "";
        FILE *f = fopen("x.cubin", "rb");
        cr_assert_not_null(f);
        cr_assert_eq(fread(magic, 1, 4, f), 4);
        fclose(f);
        cr_expect_arr_eq(magic, "\177ELF", 4, "%s", words);
    } else {
        cr_expect_not_null(strstr(r.out, ways[way].holds), "%s has no %s", words, ways[way].holds);
        cr_expect_not_null(strstr(r.out, format), "%s", words);
    }
    cli_result_free(&r);
}

Test(cli_low, every_format_compiles_for_sm_80_and_sm_89)
{
    for (int i = 0; i < FORMATS; i++)
        for (int k = 0; k < 2; k++)
            for (int way = 0; way < 3; way++) {
                emitted(formats[i], archs[k], way, false);
                if (full() || (i == 0 && k == 1 && way == 2)) /* conversions of sm_89's own */
                    emitted(formats[i], archs[k], way, true);
            }
}

Test(cli_low, options_of_a_kernel)
{
    cli_result one = cli_run("emit -d 64 --kv s8 --kv-scale token --v-format q4_0 --sq 1 --sk 4096 --arch sm_90a"),
               two = cli_run("emit --problem 'bf16,d=64,kv=s8,v=q4_0,k_scale=2' --sq 1 --sk 4096 --arch sm_90a");
    cr_expect_eq(one.code, 1, "%s", one.err);
    cr_expect_not_null(strstr(one.err, "v_scale_by is 2"), "%s", one.err);
    cr_expect_eq(two.code, 0, "%s", two.err);
    cli_result_free(&one);
    one = cli_run("emit -d 64 --kv s8 --v-format q4_0 --sq 1 --sk 4096 --arch sm_90a");
    cr_expect_eq(one.code, 0, "%s", one.err);
    cr_expect_not_null(strstr(one.out, "unpack_rows_q4_0"));
    cli_result_free(&one);
    one = cli_run("emit -d 64 --kv-scale token --arch sm_90a");
    cr_expect_eq(one.code, 1);
    cr_expect_not_null(strstr(one.err, "--kv-scale is given without --kv"), "%s", one.err);
    cli_result_free(&one), cli_result_free(&two);
    one = cli_run("emit --bundle --grid llm-low-bits --kv e4m3 --arch sm_80 -o x.c");
    cr_expect_eq(one.code, 1);
    cr_expect_not_null(strstr(one.err, "--grid and fields of the problem"), "%s", one.err);
    cli_result_free(&one);
}

Test(cli_low, a_grid)
{
    json_t *doc = cli_json("tune --list-grids --grid llm-low-bits --json", 0), *rows = json_object_get(doc, "problems");
    static const char *const words[] = { "kv=e4m3,k_scale=1", "kv=s8,k_scale=2", "kv=q8_0", "kv=q4_0", "page=16", "sq=2048", "d=64" };
    cr_assert_gt(json_array_size(rows), 30);
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        size_t n = 0, i;
        json_t *row;
        json_array_foreach(rows, i, row) n += strstr(json_string_value(json_object_get(row, "problem")), words[w]) != NULL;
        cr_expect_gt(n, 0, "%s", words[w]);
        cr_expect_lt(n, json_array_size(rows), "%s", words[w]);
    }
    json_decref(doc);
}
