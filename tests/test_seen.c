/* What a query sees is not lost: a key with NaN, or with a score of +inf, makes O and LSE of each query that sees it NaN, and a score of
 * -inf is no weight. Whatever place of a block the key has: some places' exponentials are polynomials, some maxima are taken as integers.
 */
#include "forward.h"
#include "test_full.h"
#include "test_verify_device.h"
#include "verify/operands/number.h"
#include <criterion/parameterized.h>
#include <math.h>

#define OK(x) cr_assert_eq((x), FA_OK, "%s", fa_last_error())
#define COUNT(a) (sizeof(a) / sizeof *(a))
#define SK 160
#define D 64
enum { LSE = FA_TENSORS };

#define WGMMA \
    "flash_fwd_wgmma:br=64,bc=64,box=64,feeder=40,ctas=1,sections=1,cluster=1,stages_k=2,stages_v=2,q_bufs=1,grid=2,ahead=0,o_path=0,"
static const struct {
    const char *types, *config;
    int sq;
    bool hopper;
} kernels[] = {
    { "bf16", WGMMA "schedule=0,convert=1,rescale=3,exp=16", 64, true },
    { "fp16", WGMMA "schedule=0,convert=1,rescale=3,exp=8", 64, true },
    { "bf16", WGMMA "schedule=0,convert=1,rescale=2,exp=8", 64, true },
    { "bf16", WGMMA "schedule=0,convert=0,rescale=0,exp=16", 64, true },
    { "bf16", WGMMA "schedule=0,convert=1,rescale=3,exp=0", 64, true },
    { "bf16", "flash_fwd_mma:br=64,bc=32,warps=4,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=8,ctas=1", 64, false },
    { "tf32", "flash_fwd_mma:br=64,bc=32,warps=4,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1", 64, false },
    { "fp32", "naive:tile=64", 64, false },
    { "bf16", "decode_mma:br=16,bk=32,row_warps=1,key_warps=2,stages=2,ctas=1,kv_lanes=1,combine=0,sm_shares=1,min_turns=1", 3, true },
    { "fp16", "decode_ffma:br=1,bk=16,row_warps=1,key_warps=2,dot_lanes=4,stages=2,ctas=1,kv_lanes=1,combine=1,sm_shares=1,min_turns=1", 2,
      true },
    { "bf16", "decode_wgmma:br=64,bk=64,row_warps=4,key_warps=1,stages=2,ctas=1,kv_lanes=1,combine=0,sm_shares=1,min_turns=1", 16, true },
};

/* Q and K are ones but for one key, V counts keys; so each score is the same. */
typedef struct odd_key {
    int number;
    float first, others; /* its elements */
} odd_key;

static float value(void *user, int operand, size_t i)
{
    const odd_key *k = user;
    if (operand == FA_V)
        return (float)(i / D % 8);
    if (operand != FA_K || i / D != (size_t)k->number)
        return 1;
    return i % D ? k->others : k->first;
}

static void launch(int kernel, const odd_key *key, float **o, float **lse)
{
    char text[160];
    fa_context *ctx = kernels[kernel].hopper ? test_hopper_context(NULL, NULL, 2) : test_context(NULL, NULL);
    fa_problem p;
    fa_config c = test_config(kernels[kernel].config);
    const fa_plan *plan = NULL;
    fa_tensors t;
    fa_entered in;
    snprintf(text, sizeof text, "%s,d=%d,mask=causal,b=1,hq=1,hkv=1,sq=%d,sk=%d", kernels[kernel].types, D, kernels[kernel].sq, SK);
    OK(fa_problem_parse(&p, text));
    OK(fa_context_enter(ctx, &in));
    OK(fa_tensors_open(&t, ctx, &p));
    OK(fa_tensors_fill(&t, value, (void *)key));
    OK(fa_plan_make(ctx, &p, &c, NULL, &plan));
    OK(fa_tensors_launch(&t, plan));
    OK(fa_tensors_get(&t, FA_O, o));
    OK(fa_tensors_get(&t, LSE, lse));
    fa_tensors_close(&t);
    fa_context_leave(ctx, &in);
    fa_destroy(ctx);
}

/* Query i sees keys up to i + SK - sq. */
static bool sees(int sq, int query, int key)
{
    return key <= query + SK - sq;
}

static void expect(int kernel, const odd_key *key, bool nan)
{
    float *o, *lse;
    int wrong = 0, at = -1, sq = kernels[kernel].sq;
    launch(kernel, key, &o, &lse);
    for (int i = 0; i < sq; i++) {
        double sum = 0, n = 0;
        for (int j = 0; j < SK; j++)
            if (sees(sq, i, j) && j != key->number)
                sum += j % 8, n++;
        for (int j = -1; j < D; j++) {
            float x = j < 0 ? lse[i] : o[i * D + j];
            double want = j < 0 ? log(n) + sqrt(D) : sum / n;
            bool right = nan && sees(sq, i, key->number) ? isnan(x) : fabs(x - want) < 0.02 * want;
            if (!right)
                wrong++, at = i;
        }
    }
    cr_expect_eq(wrong, 0, "%s, key %d of %g and %g: %d of O and LSE, the last of query %d", kernels[kernel].config, key->number,
                 key->first, key->others, wrong, at);
    free(o);
    free(lse);
}

ParameterizedTestParameters(seen, nan_and_infinity)
{
    static int numbers[COUNT(kernels)];
    for (size_t i = 0; i < COUNT(kernels); i++)
        numbers[i] = (int)i;
    return cr_make_param_array(int, numbers, COUNT(kernels));
}

ParameterizedTest(int *kernel, seen, nan_and_infinity, .timeout = 600)
{
    test_mode(SIM_EAGER, SIM_IN_ORDER, 0);
    /* Blocks go from right to left: keys of the last block, of one before, and of one that only later queries see. */
    for (int block = 0; block < 3; block++)
        for (int i = 0; i < 16; i += full() ? 1 : 7) {
            int number = (const int[]){ 64, 0, kernels[*kernel].sq > 16 ? 128 : SK - 17 }[block] + i + block;
            expect(*kernel, &(odd_key){ number, NAN, NAN }, true);
            expect(*kernel, &(odd_key){ number, INFINITY, 1 }, true);
            if (block < 2)
                expect(*kernel, &(odd_key){ number, -INFINITY, 1 }, false);
        }
}
