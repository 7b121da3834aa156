/* Gradients on the command line: files of attend, problems with op=backward in every command that takes problems. */
#include "cli/npy.h"
#include "test_cli_run.h"
#include <criterion/criterion.h>
#include <stdio.h>
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
