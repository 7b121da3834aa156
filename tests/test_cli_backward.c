/* Gradients on the command line: files of attend, problems with op=backward in every command that takes problems. */
#include "cli/npy.h"
#include "gen/problem.h"
#include "test_cli_run.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    refused(ATTEND WRITES "--grad-o o.npy -t tf32", "dtype is tf32; accepted with op=backward: fp16, bf16, fp32");
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
    refused("tune --op sideways", "--op is \"sideways\"; accepted: forward, backward, merge, or a list of them");
    refused("space --op sideways", "--op is \"sideways\"; accepted: forward, backward, merge");
    refused("tune --op backward -t tf32", "dtype is tf32; accepted with op=backward: fp16, bf16, fp32");
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
