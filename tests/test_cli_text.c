/* What people read: the text of a command says what its JSON document says. */
#include "cache/record.h"
#include "gen/gen.h"
#include "gen/problem.h"
#include "test_cli_run.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void init(void)
{
    cli_scratch_make();
    setenv("FAGEN_CACHE_DIR", "cache", 1);
}

TestSuite(cli_text, .init = init, .fini = cli_scratch_remove, .timeout = 300);

#define PROBLEM "-d 64 --causal -n 1024 --heads 4"
#define SHAPE "bf16,d=64,mask=causal,b=1,hq=4,hkv=4,sq=1024,sk=1024"
#define CONFIG "flash_fwd_mma:br=64,bc=32,warps=4,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1"

static const char *string(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));
    return s ? s : "(none)";
}

static json_int_t number(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

static void keep(const char *chip, const char *config, fa_outcome outcome, double seconds)
{
    fa_store *s = fa_store_open("cache", NULL, NULL);
    fa_record r = { .how = FA_MEASURED,
                    .outcome = outcome,
                    .seconds = seconds,
                    .count = 31,
                    .verified = outcome == FA_RAN,
                    .version = "test",
                    .date = "2026-01-01T00:00:00Z" };
    cr_assert_eq(fa_problem_parse(&r.problem, SHAPE), FA_OK);
    cr_assert_eq(fa_config_parse(&r.config, config), FA_OK);
    strcpy(r.chip, chip);
    strcpy(r.arch, "sm_80");
    cr_assert(fa_record_append(s, &r));
    fa_store_close(s);
}

Test(cli_text, the_space)
{
    char line[300];
    json_t *doc = cli_json("space " PROBLEM " --arch sm_80 --limit 100 --json", 0);
    cli_result r = cli_run("space " PROBLEM " --arch sm_80 --limit 3");
    cr_assert_eq(r.code, 0, "%s", r.err);
    snprintf(line, sizeof line, "%lld configs, %lld fit", (long long)number(doc, "total"), (long long)number(doc, "fitting"));
    cr_expect(strstr(r.out, line), "no \"%s\" in %s", line, r.out);
    const json_t *rejected = json_array_get(json_object_get(doc, "rejected"), 0);
    snprintf(line, sizeof line, "%lld  ", (long long)number(rejected, "count"));
    const char *at = strstr(r.out, line);
    cr_expect(at && strstr(at, string(rejected, "constraint")) && strchr(at, '\n') > strstr(at, string(rejected, "constraint")), "%s",
              r.out);
    at = strstr(r.out, "The model's best");
    cr_assert(at && strstr(at, "blocks/SM") && strstr(at, "config\n"), "%s", r.out);
    int shown = 0;
    for (size_t i = 0; i < json_array_size(json_object_get(doc, "configs")); i++)
        shown += strstr(at, string(json_array_get(json_object_get(doc, "configs"), i), "config")) != NULL;
    cr_expect_eq(shown, 3, "as many as asked for, of the first hundred: %s", at);
    cr_expect(strstr(at, string(json_array_get(json_object_get(doc, "configs"), 0), "config")), "the best: %s", at);
    cli_result_free(&r);
    json_decref(doc);
}

Test(cli_text, what_runs)
{
    json_t *doc = cli_json("show " PROBLEM " --device sim:sm_80 --json", 0);
    cli_result r = cli_run("show " PROBLEM " --device sim:sm_80");
    cr_assert_eq(r.code, 0, "%s", r.err);
    char line[400];
    snprintf(line, sizeof line, "config     %s\n", string(doc, "config"));
    cr_expect(strstr(r.out, line), "no \"%s\" in %s", line, r.out);
    const char *at = strstr(r.out, "The model's best, against what runs");
    cr_assert_not_null(at, "%s", r.out);
    const json_t *others = json_object_get(doc, "alternatives");
    cr_assert_gt(json_array_size(others), 0);
    const json_t *first = json_array_get(others, 0);
    snprintf(line, sizeof line, "%.1f %%", 100 * json_number_value(json_object_get(first, "behind")));
    cr_expect(strstr(at, string(first, "config")) && strstr(at, line), "%s, %s: %s", string(first, "config"), line, at);
    cli_result_free(&r);
    json_decref(doc);
}

Test(cli_text, the_cache)
{
    char line[200];
    keep("Chip A", CONFIG, FA_RAN, 30e-6);
    keep("Chip A", "naive:tile=64", FA_BAD_LAUNCH, 0);
    json_decref(cli_json("run -d 64 -n 80 --heads 1 --json", 0));
    json_t *list = cli_json("cache ls --json", 0), *stat = cli_json("cache stat --json", 0);
    const json_t *root = json_array_get(json_object_get(stat, "roots"), 0), *records = json_object_get(root, "records");
    const json_t *kernel = json_array_get(json_object_get(list, "kernels"), 0);
    cr_expect_eq(number(records, "lines"), 2 + number(json_object_get(list, "records"), "model"));
    cr_expect(number(records, "files") >= 1 && number(records, "bytes") > 300 && number(records, "unreadable") == 0);
    cr_expect_eq(number(json_object_get(root, "kernels"), "files"), 1);
    cli_result r = cli_run("cache stat"), ls = cli_run("cache ls");
    cr_assert(r.code == 0 && ls.code == 0, "%s%s", r.err, ls.err);
    snprintf(line, sizeof line, "records     %lld in %lld files, ", (long long)number(records, "lines"),
             (long long)number(records, "files"));
    cr_expect(strstr(r.out, line), "no \"%s\" in %s", line, r.out);
    cr_expect(strstr(r.out, "kernels     1, ") && strstr(r.out, "1 were loaded here without harm"), "%s", r.out);
    snprintf(line, sizeof line, "records: 1 measured, %lld by the model, 1 of failures",
             (long long)number(json_object_get(list, "records"), "model"));
    cr_expect(strstr(ls.out, line), "no \"%s\" in %s", line, ls.out);
    char key[13];
    snprintf(key, sizeof key, "%s", string(kernel, "key"));
    cr_expect(strstr(ls.out, key) && strstr(ls.out, "bf16,d=64") && !strstr(ls.out, "mask=none") &&
                  strstr(ls.out, string(kernel, "config")) && strstr(ls.out, "1 kernels, "),
              "%s", ls.out);
    cli_result_free(&r);
    cli_result_free(&ls);
    json_decref(list);
    json_decref(stat);
}

/* Tables keep to the terminal: what is long comes whole, in several lines. */
Test(cli_text, tables_fit_the_terminal)
{
    static const int widths[] = { 80, 100, 140 };
    json_decref(cli_json("run -d 64 -n 80 --heads 1 --json", 0));
    static const char *const words[] = { "cache ls", "space " PROBLEM " --arch h100 --limit 2" };
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
            char line[200], config[600] = "";
            snprintf(line, sizeof line, "COLUMNS=%d %s", widths[i], words[k]);
            cli_result r = cli_run(line);
            cr_assert_eq(r.code, 0, "%s", r.err);
            const char *table = strstr(r.out, k ? "The model's best" : "key "), *last = NULL;
            cr_assert(table, "%s", r.out);
            table += k ? strcspn(table, "\n") + 1 : 0; /* past a heading */
            for (const char *s = table; *s; s += strcspn(s, "\n") + 1) {
                cr_expect_leq((int)strcspn(s, "\n"), widths[i], "%s: %.*s", line, (int)strcspn(s, "\n"), s);
                if (strstr(s, "_fwd") || strstr(s, "decode_") || strstr(s, "split_"))
                    last = last ? last : strchr(s, ':');
                if (s[strcspn(s, "\n")] == 0)
                    break;
            }
            for (size_t n = 0; last && *last && n < sizeof config - 1 && !(last[0] == '\n' && last[1] != ' ');
                 last++) /* of the first, put together */
                if (*last != ' ' && *last != '\n')
                    config[n++] = *last;
            cr_expect(strchr(config, '=') && strrchr(config, ',') > strchr(config, '='), "%s: %s", line, r.out);
            cli_result_free(&r);
        }
}

/* What is written to a file is told beside it; the text is that of standard output. */
Test(cli_text, emit_to_a_file)
{
    struct stat st;
    char line[100];
    cli_result file = cli_run("emit " PROBLEM " --arch sm_80 -o x.cu"), out = cli_run("emit " PROBLEM " --arch sm_80");
    cr_assert(file.code == 0 && out.code == 0, "%s%s", file.err, out.err);
    cr_assert_eq(stat("x.cu", &st), 0);
    cr_expect_eq((size_t)st.st_size, out.out_size);
    snprintf(line, sizeof line, "wrote x.cu: %lld bytes", (long long)st.st_size);
    cr_expect(strstr(file.err, line), "no \"%s\" in %s", line, file.err);
    cr_expect_eq(file.out_size, 0);
    cli_result_free(&file);
    cli_result_free(&out);
}

/* A bundle for a chip is made of what was measured on that chip. */
Test(cli_text, a_bundle_knows_its_chip)
{
    keep("Chip A", CONFIG, FA_RAN, 30e-6);
    json_decref(cli_json("emit --bundle " PROBLEM " --arch sm_80 --chip 'Chip A' --name of_a -o a.c --json", 0));
    json_decref(cli_json("emit --bundle " PROBLEM " --arch sm_80 --chip 'Chip B' --name of_b -o b.c --json", 0));
    for (int k = 0; k < 2; k++) {
        char *text = calloc(1, 1 << 24);
        FILE *f = fopen(k ? "b.c" : "a.c", "r");
        cr_assert_not_null(f);
        size_t n = fread(text, 1, (1 << 24) - 1, f);
        fclose(f);
        cr_assert_gt(n, 1000);
        cr_expect_eq(strstr(text, CONFIG) != NULL, k == 0, "chip %c", 'A' + k);
        cr_expect_eq(strstr(text, "measured 30 us on Chip A") != NULL, k == 0, "chip %c", 'A' + k);
        free(text);
    }
}
