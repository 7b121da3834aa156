/* `fagen show`: of a problem, of a key; the margin of what is on record; the machine code. */
#include "cache/record.h"
#include "gen/problem.h"
#include "test_cli_run.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(cli_show, .init = cli_scratch_make, .fini = cli_scratch_remove, .timeout = 600);

Test(cli_show, show_key)
{
    char words[200], key[33];
    json_t *j = cli_json("show 'bf16,d=64,n=128' --json", 1); /* no such field: a word that is no key is a problem */
    json_decref(j);
    j = cli_json("show bf16,d=64 --json", 0);
    snprintf(key, sizeof key, "%s", json_string_value(cli_at(j, "anatomy.key.key")));
    cr_expect(json_is_true(cli_at(j, "anatomy.cached")) || json_is_false(cli_at(j, "anatomy.cached")));
    json_decref(j);
    snprintf(words, sizeof words, "show %.12s --json", key);
    j = cli_json(words, 0);
    cr_expect_str_eq(json_string_value(cli_at(j, "key")), key);
    cr_expect_str_eq(json_string_value(cli_at(j, "about.problem")), "bf16,d=64,dv=64,mask=none,o=bf16,align=16");
    cr_expect(json_is_true(cli_at(j, "same_today")) && json_integer_value(cli_at(j, "kernels.0.registers")) > 0);
    json_decref(j);
    snprintf(words, sizeof words, "show %s --source", key);
    cli_result r = cli_run(words), again = cli_run("show bf16,d=64 --source");
    cr_expect(r.code == 0 && again.code == 0 && !strcmp(r.out, again.out), "%s%s", r.err, again.err);
    cli_result_free(&r);
    cli_result_free(&again);
    cli_scratch_write("mask.cu", "// another\n", 11);
    snprintf(words, sizeof words, "FAGEN_TEMPLATE_DIR=. show %s --json", key);
    j = cli_json(words, 0);
    cr_expect(json_is_false(cli_at(j, "same_today")), "another text has another key");
    json_decref(j);
}

static void on_record(fa_store *store, const char *config, double seconds, const char *date, bool verified)
{
    fa_record r = { .outcome = FA_RAN,
                    .how = FA_MEASURED,
                    .seconds = seconds,
                    .low = 0.99 * seconds,
                    .high = 1.01 * seconds,
                    .count = 9,
                    .verified = verified,
                    .regs = 111 };
    cr_assert_eq(fa_problem_parse(&r.problem, "bf16,d=64,b=1,hq=16,hkv=16,sq=1024,sk=1024"), FA_OK);
    cli_config(&r.config, config);
    snprintf(r.chip, sizeof r.chip, "Simulated sm_80");
    snprintf(r.arch, sizeof r.arch, "sm_80");
    snprintf(r.version, sizeof r.version, "%s", FA_VERSION_STRING);
    snprintf(r.date, sizeof r.date, "%s", date);
    cr_assert(fa_record_append(store, &r));
}

Test(cli_show, show_margin)
{
    static const char a[] = "flash_fwd_mma:br=64,bc=64,warps=4,stages_k=2,stages_v=2,order=v_first,q_regs=1,pack=0,lag=8,ctas=1";
    static const char b[] = "flash_fwd_mma:br=64,bc=64,warps=4,stages_k=1,stages_v=1,order=v_first,q_regs=1,pack=0,lag=8,ctas=1";
    static const char wrong[] = "flash_fwd_mma:br=64,bc=48,warps=4,stages_k=1,stages_v=1,order=v_first,q_regs=1,pack=0,lag=8,ctas=1";
    fa_store *store = fa_store_open("cache", NULL, NULL);
    on_record(store, a, 8e-6, "2026-01-01T00:00:00Z", true); /* overtaken by the newer one */
    on_record(store, a, 10e-6, "2026-01-02T00:00:00Z", true);
    on_record(store, b, 12e-6, "2026-01-03T00:00:00Z", true);
    on_record(store, wrong, 5e-6, "2026-01-04T00:00:00Z", false);
    fa_store_close(store);
    json_t *j = cli_json("FAGEN_CACHE_DIR=cache show -d 64 -n 1024 --device sim:sm_80 --json", 0);
    cr_expect_str_eq(json_string_value(cli_at(j, "where")), "measured record");
    cr_expect_str_eq(json_string_value(cli_at(j, "config")), a);
    cr_expect_eq(json_array_size(cli_at(j, "on_record")), 2, "the newest of each, verified ones alone");
    cr_expect_str_eq(json_string_value(cli_at(j, "on_record.1.config")), b);
    cr_expect_float_eq(json_number_value(cli_at(j, "on_record.1.behind")), 0.2, 1e-9);
    cr_expect_float_eq(json_number_value(cli_at(j, "margin.measured")), 10e-6, 1e-12);
    cr_expect_float_eq(json_number_value(cli_at(j, "margin.next_measured")), 12e-6, 1e-12);
    json_decref(j);
    cli_result r = cli_run("FAGEN_CACHE_DIR=cache show -d 64 -n 1024 --device sim:sm_80");
    cr_expect(strstr(r.out, "margin     20.0 % faster than the next of 2 on record (12.00 us, measured)"), "%s", r.out);
    cr_expect(strstr(r.out, "On record for this chip") && strstr(r.out, "12.00 us  +-1.0 %  20.0 %"), "%s", r.out);
    cli_result_free(&r);
}

/* A family without work() runs and has no time by the model: all others stand beside a dash, each figure under its title. */
Test(cli_show, show_beside_what_has_no_model)
{
    static const char toy[] =
        "return { doc = 'x', default = false, tunables = { { 'br', { 16, 32 }, 'r' } }, constraints = {},\n"
        "  supports = function() return true end, layout = function() return { bytes = 64, threads = 32, regs = 40 } end,\n"
        "  steps = function(p, c) return { { entry = 'toy', grid = ('sq/%d hq b'):format(c.br) } } end }\n",
                      text[] = "extern \"C\" __global__ void toy(int *o) { o[threadIdx.x] = $(c.br); }\n";
    fa_store *store = fa_store_open("cache", NULL, NULL);
    on_record(store, "toy:br=16", 1e-6, "2026-01-01T00:00:00Z", true);
    fa_store_close(store);
    cr_assert_eq(mkdir("toys", 0700), 0);
    cli_scratch_write("toys/toy.lua", toy, strlen(toy));
    cli_scratch_write("toys/toy.cu", text, strlen(text));
    cli_result r = cli_run("FAGEN_TEMPLATE_DIR=toys FAGEN_CACHE_DIR=cache show -d 64 -n 1024 --device sim:sm_80");
    cr_assert_eq(r.code, 0, "%s", r.err);
    cr_expect(strstr(r.out, "toy:br=16"), "%s", r.out);
    const char *table = strstr(r.out, "The model's best"), *line = table ? strchr(table, '\n') : NULL;
    cr_assert_not_null(line, "%s", r.out);
    int rows = 0;
    for (char time[32], unit[32], behind[32], bound[32], config[256]; (line = strchr(line + 1, '\n')) != NULL;) {
        int smem, regs;
        if (sscanf(line + 1, "%31s %31s %31s %31s %d %d %255s", time, unit, behind, bound, &smem, &regs, config) != 7)
            break;
        rows++;
        cr_expect_str_eq(behind, "-", "%s", line);
        cr_expect(!strncmp(config, "flash_fwd_", 10) || !strncmp(config, "split_", 6), "%s", line);
    }
    cr_expect_gt(rows, 0, "%s", r.out);
    cli_result_free(&r);
}

/* The disassembler gets a cubin's path; where it fails the message has its command. */
Test(cli_show, show_sass)
{
    static const char tool[] = "#!/bin/sh\n/usr/bin/od -An -N4 -c \"$2\"; echo $1\n", broken[] = "#!/bin/sh\nexit 3\n";
    char words[200], here[100];
    cr_assert(getcwd(here, sizeof here) != NULL);
    cli_scratch_write("nvdisasm", tool, sizeof tool - 1);
    cr_assert(chmod("nvdisasm", 0755) == 0);
    snprintf(words, sizeof words, "PATH=%s show bf16,d=64 --sass -q", here);
    cli_result r = cli_run(words);
    cr_expect(r.code == 0 && strstr(r.out, "177   E   L   F") && strstr(r.out, "-c\n"), "%s%s", r.out, r.err);
    cli_result_free(&r);
    cli_scratch_write("nvdisasm", broken, sizeof broken - 1);
    r = cli_run(words);
    cr_expect(r.code == 7 && strstr(r.err, "nvdisasm -c: it failed"), "%d %s", r.code, r.err);
    cli_result_free(&r);
}
