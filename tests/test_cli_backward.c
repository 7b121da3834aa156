/* Gradients on the command line: files of attend, problems with op=backward in every command that takes problems. */
#include "cli/files/npy.h"
#include "gen/problem.h"
#include "gen/templates.h"
#include "test_cli_run.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void init(void)
{
    cli_scratch_make();
    setenv("FAGEN_CACHE_DIR", "cache", 1);
}

TestSuite(cli_backward, .init = init, .fini = cli_scratch_remove, .timeout = 600);

#define SIM "--device sim:sm_80 "
#define ATTEND "attend --backward --q q.npy --k k.npy --v v.npy -q " SIM
#define WRITES "--grad-q dq.npy --grad-k dk.npy --grad-v dv.npy "

static void done(const char *words, const char *tells)
{
    cli_result r = cli_run(words);
    cr_expect_eq(r.code, 0, "%s: %d, %s", words, r.code, r.err);
    cr_expect(strstr(r.out, tells), "%s: \"%s\" is not in: %s", words, tells, r.out);
    cli_result_free(&r);
}

static void refused(const char *words, const char *tells)
{
    cli_result r = cli_run(words);
    cr_expect_eq(r.code, 1, "%s: %d", words, r.code);
    cr_expect(strstr(r.err, tells), "%s: \"%s\" is not in: %s", words, tells, r.err);
    cli_result_free(&r);
}

static void expect_file(const char *name, int dtype, const char *want)
{
    char shape[64] = "";
    cli_npy x;
    cr_assert_eq(cli_npy_read(&x, name), FA_OK, "%s", fa_last_error());
    for (int k = 0; k < x.n; k++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%d", k ? " " : "", (int)x.dim[k]);
    cr_expect_str_eq(shape, want, "%s", name);
    cr_expect_eq(x.dtype, dtype, "%s is %s", name, cli_npy_type(&x));
    cli_npy_free(&x);
}

/* dO is what the forward pass wrote as O. */
Test(cli_backward, files_of_attend)
{
    done("sample --sq 20 --batch 2 --sk 30 -d 16 -t fp16 --heads 4 --kv-heads 2", "");
    done("attend --q q.npy --k k.npy --v v.npy -o o.npy --lse lse.npy --causal " SIM, "");
    done(ATTEND WRITES "--grad-o o.npy --grad-lse lse.npy --causal --check -t fp32 -o again.npy", "check      ok");
    expect_file("dq.npy", FA_F32, "2 20 4 16");
    expect_file("dk.npy", FA_F32, "2 30 2 16");
    expect_file("dv.npy", FA_F32, "2 30 2 16");
    expect_file("again.npy", FA_F32, "2 20 4 16");
    refused(ATTEND WRITES, "--grad-o is missing; accepted with --backward: a .npy file");
    refused(ATTEND "--grad-o o.npy --grad-q dq.npy --grad-k dk.npy", "--grad-v is missing");
    refused(ATTEND WRITES "--grad-o k.npy", "k.npy: dimension 1 is 30; accepted: 20");
    refused(ATTEND WRITES "--grad-o lse.npy", "lse.npy: 3 dimensions; accepted: 4");
    refused(ATTEND WRITES "--grad-o o.npy -t tf32", "dtype is 3 (tf32); accepted with op=backward: fp16 (1), bf16 (2), fp32 (4)");
    refused(ATTEND WRITES "--grad-o o.npy --seqlens-k lse.npy", "lse.npy");
}

/* --dropout of both passes; without it --seed says nothing. */
Test(cli_backward, dropout_of_attend)
{
#define FORWARD "attend --q q.npy --k k.npy --v v.npy --causal -q " SIM
    done("sample --sq 40 --sk 50 -d 16 -t fp16 --heads 4 --kv-heads 2", "");
    done(FORWARD "-o o.npy --dropout 0.3 --seed 5 --check", "check      ok");
    done(FORWARD "-o same.npy --dropout 0.3 --seed 5", "");
    done(FORWARD "-o other.npy --dropout 0.3 --seed 6", "");
    cr_expect_eq(system("cmp -s o.npy same.npy"), 0);
    cr_expect_neq(system("cmp -s o.npy other.npy"), 0);
    done(ATTEND WRITES "--grad-o o.npy --causal --dropout 0.3 --seed 5 --check", "check      ok");
    done("run -d 16 -n 40 --heads 2 --op backward --features dropout --check " SIM, "check      ok");
    refused(FORWARD "-o o.npy --dropout 1", "--dropout is 1; accepted: a probability, 0 to below 1");
    refused(FORWARD "-o o.npy --dropout -0.5", "--dropout is \"-0.5\"");
}

Test(cli_backward, problems_of_it)
{
#define PROBLEM "--problem op=backward,fp32,d=16,mask=causal,b=1,hq=2,hkv=1,sq=40,sk=40 "
    done("run " PROBLEM "--check " SIM, "check      ok");
    done("run " PROBLEM "-c naive_bwd:tile=64 --counters " SIM, "GRAD_K");
    done("space " PROBLEM, "flash_bwd_ffma:br=");
    done("show " PROBLEM SIM, "fa_grad_kv");
    done("emit " PROBLEM "-o -", "fa_grad_q");
    done("verify --op backward --count 3 --seed 14 " SIM, "cases are right");
    done("verify --family naive_bwd --count 2 " SIM, "2 of 2 cases are right");
    done("tune " PROBLEM "--arch sm_80 --limit 1", "flash_bwd_ffma");
    done("run --problem op=backward,bf16,d=64,mask=causal,b=1,hq=2,hkv=1,sq=40,sk=40 --check " SIM, "flash_bwd_mma");
}

/* Every command that takes fields of a problem takes its operation; the lists of some take several. */
Test(cli_backward, the_option_op)
{
#define FIELDS "--op backward -d 32 -n 40 --heads 2 --kv-heads 1 "
#define BOTH "--op forward,backward -d 32 -n 40 --heads 2 "
    done("space " FIELDS "--arch sm_80", "op=backward");
    done("model " FIELDS, "op=backward");
    done("show " FIELDS SIM, "fa_grad_kv");
    done("run " FIELDS "--features deterministic --check " SIM, "features=deterministic");
    done("run --problem op=backward,bf16,d=32,sq=40,sk=40 --op forward --check " SIM, "check      ok");
    done("emit " FIELDS, "fa_grad_q");
    done("emit --bundle --name both " BOTH "--arch sm_80 -o -", "2 rows, 2 images");
    done("bench --counts " FIELDS SIM, "op=backward");
    done("verify " BOTH SIM, "2 of 2 cases are right");
    done("verify --op forward,backward --count 4 --seed 14 -v " SIM, "op=backward");
    done("tune " BOTH "--arch sm_80 --limit 1", "none, backward");
    refused("tune --op sideways", "--op is \"sideways\"; accepted: forward, backward, merge, append, or a list of them");
    refused("space --op sideways", "--op is \"sideways\"; accepted: forward, backward, merge, append");
    refused("tune --op backward -t tf32", "dtype is 3 (tf32); accepted with op=backward: fp16 (1), bf16 (2), fp32 (4)");
    refused("space --op forward --features deterministic", "features is deterministic");
    refused("emit --bundle --grid training --op backward -o no.c", "--grid and fields of the problem: accepted: one or the other");
}

typedef struct counts {
    int of[2], masks[2], groups[2]; /* by operation; of masks: causal ones */
} counts;

/* Both passes of the same problems, each length of an octave from 512 to 16k. */
Test(cli_backward, the_grid_of_training)
{
    static const int dims[] = { 64, 96, 128, 192, 256 };
    json_t *doc = cli_json("tune --list-grids --grid training --json", 0), *row;
    counts c[5] = { { .of = { 0 } } };
    unsigned lengths[5] = { 0 };
    size_t i;
    json_array_foreach(json_object_get(doc, "problems"), i, row)
    {
        fa_problem p;
        int d = 0;
        cr_assert_eq(fa_problem_parse(&p, json_string_value(json_object_get(row, "problem"))), FA_OK, "%s", fa_last_error());
        while (d < 5 && dims[d] != p.d)
            d++;
        cr_assert(d < 5 && p.dtype == FA_BF16 && p.sq == p.sk && p.b * p.sq == 16384 && p.op <= FA_BACKWARD, "%d", (int)i);
        lengths[d] |= (unsigned)p.sq;
        c[d].of[p.op]++;
        c[d].masks[p.op] += p.mask == FA_MASK_CAUSAL;
        c[d].groups[p.op] += p.hq > p.hkv;
    }
    cr_expect_eq(i, 118);
    for (int d = 0; d < 5; d++) {
        bool most = dims[d] == 64 || dims[d] == 128;
        cr_expect_eq(lengths[d], most ? 0x7e00u : 0x5600u, "d %d: %x", dims[d], lengths[d]);
        cr_expect(c[d].of[0] == c[d].of[1] && c[d].masks[0] == c[d].masks[1] && c[d].groups[0] == c[d].groups[1]);
        cr_expect(c[d].masks[0] > 0 && c[d].masks[0] < c[d].of[0]);
        cr_expect_eq(c[d].groups[0] > 0, most);
    }
    json_decref(doc);
    done("tune --list-grids --grid training --op backward -d 96 -n 512 --causal", "op=backward,b=32,hq=21");
    refused("tune --list-grids --grid llm-decode --op backward", "--grid llm-decode holds no such problem");
    done("verify --grid training -n 512 -d 96 " SIM, "4 of 4 cases are right");
    done("tune --grid training --op backward -n 512 -d 64 --causal --arch sm_80 --limit 1", "2 of 2 problems have a guess");
}

/* ---- what a wrong result is told to be ---- */

/* The template with one place replaced, in the folder "wrong". */
static void write_wrong(const char *name, const char *find, const char *replace)
{
    char path[100], text[20000];
    const fa_template_file *f = fa_template_files;
    while (f->name && strcmp(f->name, name))
        f++;
    cr_assert_not_null(f->name);
    const char *at = strstr(f->bytes, find);
    cr_assert_not_null(at, "%s has no %s", name, find);
    snprintf(path, sizeof path, "wrong/%s", name);
    int n = snprintf(text, sizeof text, "%.*s%s%s", (int)(at - f->bytes), f->bytes, replace, at + strlen(find));
    cr_assert_lt(n, (int)sizeof text);
    cr_assert(mkdir("wrong", 0700) == 0 || errno == EEXIST);
    cli_scratch_write(path, text, (size_t)n);
}

/* The line of --check, the message on standard error, and the JSON document: its rule, index, "is" and "wanted". */
static void is_wrong(const char *words, const char *line, const char *rule, int64_t index)
{
    char more[600];
    snprintf(more, sizeof more, "FAGEN_TEMPLATE_DIR=wrong %s --check " SIM, words);
    cli_result r = cli_run(more);
    cr_expect_eq(r.code, 4, "%s: %d, %s", words, r.code, r.err);
    cr_expect(strstr(r.out, "check      WRONG: ") && strstr(r.out, line), "%s: \"%s\" is not in: %s", words, line, r.out);
    cr_expect(strstr(r.err, line), "%s: \"%s\" is not in: %s", words, line, r.err);
    cr_expect_null(strstr(r.out, "max error 0 "), "%s", r.out);
    cli_result_free(&r);
    strcat(more, "--json");
    json_t *j = cli_json(more, 4), *check = json_object_get(j, "check");
    cr_expect(json_is_false(json_object_get(check, "ok")));
    cr_expect_str_eq(json_string_value(json_object_get(check, "rule")), rule);
    cr_expect(strstr(json_string_value(json_object_get(check, "message")), line));
    cr_expect_eq(json_integer_value(json_object_get(check, "index")), index);
    cr_expect_str_eq(json_string_value(json_object_get(check, "is")), "nan");
    cr_expect(json_is_real(json_object_get(check, "wanted")));
    json_decref(j);
}

#define NOT_A_NUMBER "__int_as_float(0x7fffffff)"

Test(cli_backward, a_wrong_result_names_its_rule_and_place)
{
    write_wrong("naive.cu", "col, sum[i][j]);", "col, row == 5 && col == 7 && t.head == 1 ? " NOT_A_NUMBER " : sum[i][j]);");
    is_wrong("run -d 16 -n 40 --heads 2 -t fp32 --config naive:tile=64", "places of NaN differ: O[183] is nan, should be ", "places of NaN",
             183);
    is_wrong("run -d 16 -n 40 --heads 2 -t fp32 --config naive:tile=64", "(batch 0, query 5, head 1, column 7)", "places of NaN", 183);
    done("sample -n 20 -d 16 -t fp32 --heads 2", "");
    done("attend --q q.npy --k k.npy --v v.npy -o o.npy -q " SIM, "");
    write_wrong("gradient.cu", "p.accumulate ? *y + x : x;", "at == 40 && to == p.grad_k ? " NOT_A_NUMBER " : x;");
    is_wrong("attend --backward --q q.npy --k k.npy --v v.npy -q " WRITES "--grad-o o.npy",
             "places of NaN differ: GRAD_K[40] is nan, should be ", "places of NaN", 40);
    write_wrong("softmax.cu", "return l == 0.f ? -infinity()", "return l != 0.f ? " NOT_A_NUMBER);
    is_wrong("attend --q q.npy --k k.npy --v v.npy -o o.npy --lse lse.npy", "places of NaN differ: LSE[0] is nan, should be ",
             "places of NaN", 0);
    is_wrong("attend --q q.npy --k k.npy --v v.npy -o o.npy --lse lse.npy", "(batch 0, query 0, head 0)", "places of NaN", 0);
    cli_result r = cli_run("FAGEN_TEMPLATE_DIR=wrong verify -d 16 -n 40 -t fp32 --config naive:tile=64 --json " SIM);
    cr_expect_eq(r.code, 4);
    cr_expect(strstr(r.out, "\"places of NaN\""), "%s", r.out);
    cli_result_free(&r);
}
