/* templates/pairs/sequence.cu is all that a kernel knows of its sequence: another one, in which each sequence of the batch has its own
 * number of keys and its own diagonal, gives for each the very bits of a launch with that sequence alone. No other template reads what
 * may differ. */
#include "gen/templates.h"
#include "runtime/plan/plan.h"
#include "test_cache_scratch.h"
#include "test_verify_device.h"

TestSuite(verify_sequences, .init = scratch_make, .fini = scratch_remove, .timeout = 900);

#define FEWER 29 /* keys: a sequence has so many fewer than the one before */
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

enum { B = 3, HQ = 4, HKV = 2, SQ = 150, SK = 170 };

#define MMA "flash_fwd_mma:lag=8,ctas=1,"
#define WGMMA "flash_fwd_wgmma:ctas=1,feeder=40,sections=1,cluster=1,exp=0,stages_k=2,stages_v=2,box=64,bc=48,"
static const struct {
    const char *class, *config;
    int hopper;
} kernels[] = {
    { "bf16,d=64,mask=none", MMA "br=32,bc=32,warps=2,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0", 0 },
    { "bf16,d=64,mask=causal", MMA "br=64,bc=48,warps=2,stages_k=2,stages_v=2,order=2,q_regs=1,pack=1", 0 },
    { "bf16,d=40,mask=window", MMA "br=32,bc=16,warps=2,stages_k=1,stages_v=2,order=1,q_regs=0,pack=0", 0 },
    { "bf16,d=33,align=2,mask=causal", MMA "br=32,bc=32,warps=2,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0", 0 },
    { "fp32,d=40,mask=causal", "flash_fwd_ffma:br=32,bc=32,warps=2,pack=0", 0 },
    { "fp32,d=40,mask=window", "flash_fwd_ffma:br=32,bc=32,warps=2,pack=1", 0 },
    { "bf16,d=64,mask=causal", "naive:tile=64", 0 },
    { "bf16,d=64,mask=none", WGMMA "br=64,schedule=0,q_bufs=1,ahead=0,rescale=2,convert=0,o_path=0,grid=0", 1 },
    { "bf16,d=64,mask=causal", WGMMA "br=128,schedule=1,q_bufs=2,ahead=1,rescale=3,convert=1,o_path=1,grid=2", 1 },
    { "bf16,d=64,mask=window", WGMMA "br=128,schedule=2,q_bufs=1,ahead=0,rescale=2,convert=1,o_path=2,grid=1", 1 },
};

/* A folder with the other sequence.cu. */
static void write_sequences(const char *dir)
{
    static const struct {
        const char *find, *more;
    } each[] = {
        { "return p.sk;", "return p.sk - " TEXT(FEWER) " * (int)batch;" },
        { "return p.diag_hi;", "return p.diag_hi$(p.mask == \"causal\" and \" - " TEXT(FEWER) " * (int)batch\" or \"\");" },
    };
    const fa_template_file *f = fa_template_files;
    char path[320];
    while (f->name && strcmp(f->name, "sequence.cu"))
        f++;
    cr_assert(f->name);
    cr_assert_eq(mkdir(dir, 0700), 0);
    snprintf(path, sizeof path, "%s/sequence.cu", dir);
    FILE *out = fopen(path, "w");
    cr_assert_not_null(out);
    const char *at = f->bytes;
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        const char *found = strstr(at, each[i].find);
        cr_assert_not_null(found, "%s", each[i].find);
        fwrite(at, 1, (size_t)(found - at), out);
        fputs(each[i].more, out);
        at = found + strlen(each[i].find);
    }
    fputs(at, out);
    cr_assert_eq(fclose(out), 0);
}

typedef struct tensors {
    void *q, *k, *v, *o, *lse, *workspace;
} tensors;

static void *filled(fa_context *ctx, size_t count, int bytes, uint64_t seed)
{
    void *at, *host = malloc(count * (size_t)bytes);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        float x = (float)(int32_t)(seed >> 32) * 0x1p-30f;
        uint32_t u;
        memcpy(&u, &x, 4);
        if (bytes == 2)
            ((uint16_t *)host)[i] = (uint16_t)(u >> 16);
        else
            ((float *)host)[i] = x;
    }
    cr_assert_eq(fa_alloc(ctx, &at, count * (size_t)bytes), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_copy(ctx, at, host, count * (size_t)bytes, FA_TO_DEVICE), FA_OK, "%s", fa_last_error());
    free(host);
    return at;
}

/* O and LSE of `b` sequences from `first` on, with sk keys. */
static void launch(fa_context *ctx, const char *class, const char *config, int first, int b, int sk, uint8_t *o, float *lse)
{
    fa_problem p;
    fa_config c = test_config(config);
    const fa_plan *plan;
    fa_args a = FA_ARGS_INIT;
    cr_assert_eq(fa_problem_parse(&p, class), FA_OK, "%s", fa_last_error());
    p.b = b, p.hq = HQ, p.hkv = HKV, p.sq = SQ, p.sk = sk;
    cr_assert_eq(fa_plan_make(ctx, &p, &c, NULL, &plan), FA_OK, "%s: %s", config, fa_last_error());
    int bytes = p.dtype == FA_F32 ? 4 : 2;
    size_t rows = (size_t)SQ * HQ * (size_t)p.d, keys = (size_t)SK * HKV * (size_t)p.d;
    tensors t = { .q = filled(ctx, B * rows, bytes, 1),
                  .k = filled(ctx, B * keys, bytes, 2),
                  .v = filled(ctx, B * keys, bytes, 3),
                  .o = filled(ctx, B * rows, bytes, 4),
                  .lse = filled(ctx, (size_t)B * HQ * SQ, 4, 5) };
    size_t q_at = (size_t)first * rows * (size_t)bytes, k_at = (size_t)first * keys * (size_t)bytes;
    a.dtype = p.dtype, a.d = p.d, a.b = b, a.hq = HQ, a.hkv = HKV, a.sq = SQ, a.sk = sk, a.mask = p.mask;
    a.window_left = 20, a.window_right = 5;
    a.diagonal = p.mask == FA_MASK_WINDOW ? FA_TOP_LEFT : FA_BOTTOM_RIGHT;
    a.q = (fa_tensor){ (char *)t.q + q_at, (int64_t)rows, (int64_t)HQ * p.d, p.d };
    a.k = (fa_tensor){ (char *)t.k + k_at, (int64_t)keys, (int64_t)HKV * p.d, p.d };
    a.v = (fa_tensor){ (char *)t.v + k_at, (int64_t)keys, (int64_t)HKV * p.d, p.d };
    a.o = (fa_tensor){ (char *)t.o + q_at, (int64_t)rows, (int64_t)HQ * p.d, p.d };
    a.lse = (float *)t.lse + (size_t)first * HQ * SQ;
    cr_assert_eq(fa_plan_workspace(ctx, plan, &a, &a.workspace_size), FA_OK, "%s", fa_last_error());
    if (a.workspace_size)
        a.workspace = t.workspace = filled(ctx, a.workspace_size / 4, 4, 6);
    cr_assert_eq(fa_plan_launch(ctx, plan, &a, NULL), FA_OK, "%s: %s", config, fa_last_error());
    cr_assert_eq(fa_copy(ctx, o, a.o.ptr, (size_t)b * rows * (size_t)bytes, FA_FROM_DEVICE), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_copy(ctx, lse, a.lse, (size_t)b * HQ * SQ * 4, FA_FROM_DEVICE), FA_OK, "%s", fa_last_error());
    void *all[] = { t.q, t.k, t.v, t.o, t.lse, t.workspace };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        cr_assert_eq(fa_free(ctx, all[i]), FA_OK, "%s", fa_last_error());
}

static void each_alone(bool hopper)
{
    char dir[300];
    snprintf(dir, sizeof dir, "%s/templates", scratch);
    write_sequences(dir);
    fa_context *together = hopper ? test_hopper_context(dir, "", 2) : test_context(dir, ""),
               *alone = hopper ? test_hopper_context(NULL, "", 2) : test_context(NULL, "");
    test_mode(SIM_EAGER, SIM_IN_ORDER, 0);
    enum { MOST = SQ * HQ * 64 * 4, ROWS = SQ * HQ };
    uint8_t *o = malloc(B * MOST), *o1 = malloc(MOST);
    float *lse = malloc(B * ROWS * sizeof *lse), *lse1 = malloc(ROWS * sizeof *lse1);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        fa_problem p;
        if (kernels[i].hopper != hopper)
            continue;
        cr_assert_eq(fa_problem_parse(&p, kernels[i].class), FA_OK, "%s", fa_last_error());
        size_t size = (size_t)ROWS * (size_t)p.d * (p.dtype == FA_F32 ? 4 : 2);
        launch(together, kernels[i].class, kernels[i].config, 0, B, SK, o, lse);
        for (int b = 0; b < B; b++) {
            launch(alone, kernels[i].class, kernels[i].config, b, 1, SK - FEWER * b, o1, lse1);
            cr_expect(!memcmp(o + (size_t)b * size, o1, size), "O of sequence %d: %s %s", b, kernels[i].class, kernels[i].config);
            cr_expect(!memcmp(lse + b * ROWS, lse1, ROWS * sizeof *lse1), "LSE of sequence %d: %s %s", b, kernels[i].class,
                      kernels[i].config);
        }
    }
    free(o), free(o1), free(lse), free(lse1);
    fa_destroy(together);
    fa_destroy(alone);
}

Test(verify_sequences, have_their_own_keys)
{
    each_alone(false);
}

Test(verify_sequences, have_their_own_keys_on_hopper)
{
    each_alone(true);
}

/* Families with buffers, tables of masks and of tiles of keys lay them out for the longest sequence, a row of a page table is looked at
 * in advance as far as it goes, and rows are cut evenly where all sequences have as many. A merge has rows of parts, and no sequences; an
 * append has places of rows; arrays of a program come through shared memory where no sequence has a length of its own. */
Test(verify_sequences, are_described_in_one_file)
{
    static const struct {
        const char *word, *but;
    } words[] = {
        { "p.diag_lo", "" },
        { "p.diag_hi", "" },
        { "p.key_base", "" },
        { "p.q_sb", "append.cu" },
        { "p.k_sb", "exact_keys.cu append.cu" },
        { "p.v_sb", "exact_keys.cu append.cu" },
        { "p.o_sb", "merge.cu" },
        { "p.sq",
          "naive.cu naive_bwd.cu tiled.cu flash1_fwd.cu merge.cu split_merge.cu split_merge_tiles.cu spaced_rows.cu delta_block.cu "
          "grad_hopper_add.cu grad_hopper_common.cu "
          "grad_hopper_convert.cu grad_hopper_kv.cu grad_spill.cu grad_operands.cu hopper_staged.cu append.cu places.cu claims.cu marks.cu "
          "tile_order.cu mask_lines.cu mask_kernel.cu mask_values.cu mask_runs.cu mask_run_lines.cu" },
        { "p.sk", "naive.cu naive_bwd.cu tiled.cu grad_hopper_common.cu grad_hopper_parts.cu grad_q_spill.cu grad_spill.cu "
                  "grad_operands.cu hopper_staged.cu append.cu places.cu marks.cu grad_hopper_single.cu program_staged.cu widen.cu "
                  "mask_lines.cu mask_kernel.cu mask_run_lines.cu key_tiles.cu hopper_scheduler.cu" }
    };
    size_t files = 0;
    for (const fa_template_file *f = fa_template_files; f->name; f++) {
        size_t n = strlen(f->name);
        if (n < 3 || strcmp(f->name + n - 3, ".cu") || !strcmp(f->name, "sequence.cu"))
            continue;
        files++;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            cr_expect(!strstr(f->bytes, words[i].word) || strstr(words[i].but, f->name), "%s reads %s; accepted: in sequence.cu", f->name,
                      words[i].word);
    }
    cr_expect_geq(files, 15);
}
