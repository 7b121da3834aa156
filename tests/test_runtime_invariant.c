/* FA_BATCH_INVARIANT from outside: which kernel runs, and what is refused. */
#include "test_cache_scratch.h"
#include "test_verify_device.h"

#define OK(x) cr_assert_eq((x), FA_OK, "%s", fa_last_error())

TestSuite(invariant, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

/* Dense arguments without addresses, of few query rows; with lengths: addresses that are not read. */
static fa_args call(bool lengths, int32_t b, int32_t sq, int32_t sk)
{
    fa_args a = FA_ARGS_INIT;
    a.dtype = FA_BF16, a.d = 64, a.mask = FA_MASK_CAUSAL, a.hq = 8, a.hkv = 2;
    a.b = b, a.sq = sq, a.sk = sk;
    a.flags = FA_BATCH_INVARIANT;
    a.seqlens_k = lengths ? (const int32_t *)(uintptr_t)4096 : NULL;
    return a;
}

/* The line of the explanation that begins with the word. */
static const char *line_of(fa_context *ctx, const fa_args *a, const char *word)
{
    static char text[4096], line[512];
    OK(fa_explain(ctx, NULL, a, text, sizeof text));
    const char *at = strstr(text, word);
    cr_assert_not_null(at, "%s", text);
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    return line;
}

Test(invariant, one_kernel_serves_all_batches)
{
    static const int32_t shapes[][3] = { { 1, 1, 1 }, { 1, 1, 131072 }, { 256, 1, 8192 }, { 7, 16, 3000 }, { 2, 2048, 2048 } };
    fa_context *ctx = test_context(NULL, scratch);
    char config[512];
    fa_problem p;
    fa_args a = call(true, 3, 1, 500);
    size_t bytes, first;
    OK(fa_problem_of(&a, &p));
    cr_assert_eq(p.features, FA_FEATURE_LENGTHS | FA_FEATURE_BATCH_INVARIANT);
    OK(fa_prepare(ctx, &p));
    OK(fa_workspace_size(ctx, &a, &first));
    cr_expect_gt(first, 0);
    snprintf(config, sizeof config, "%s", line_of(ctx, &a, "config     "));
    cr_expect_not_null(strstr(line_of(ctx, &a, "invariant "), "b=16,hq=8,hkv=2,sq=512,sk=8192, whatever the batch"));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        a = call(true, shapes[i][0], shapes[i][1], shapes[i][2]);
        cr_expect_str_eq(line_of(ctx, &a, "config     "), config);
        cr_expect_str_eq(line_of(ctx, &a, "table "), "table      hit: prepared");
        OK(fa_workspace_size(ctx, &a, &bytes));
        cr_expect_eq(bytes, first);
    }
    a.hq = 2; /* another model */
    cr_expect_not_null(strstr(line_of(ctx, &a, "table "), "miss"));
    fa_destroy(ctx);
}

Test(invariant, of_a_dense_batch_the_lengths_choose)
{
    fa_context *ctx = test_context(NULL, scratch);
    fa_problem p;
    fa_args a = call(false, 1, 1, 4096);
    OK(fa_problem_of(&a, &p));
    cr_assert_eq(p.features, FA_FEATURE_BATCH_INVARIANT);
    OK(fa_prepare(ctx, &p));
    a.b = 300;
    cr_expect_str_eq(line_of(ctx, &a, "table "), "table      hit: prepared");
    a.sk = 64;
    cr_expect_not_null(strstr(line_of(ctx, &a, "table "), "miss"));
    fa_destroy(ctx);
}

/* Few tiles over many keys: parts in the workspace, of one size for every batch, and one config on chips of any number of SMs. */
Test(invariant, few_tiles_are_cut_in_every_batch)
{
    static const int32_t sms[] = { 132, 7 }, batches[] = { 1, 3, 16, 500 };
    char config[512] = "";
    for (size_t c = 0; c < sizeof sms / sizeof *sms; c++) {
        fa_context *ctx = test_hopper_context(NULL, scratch, sms[c]);
        size_t first = 0, bytes;
        for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
            fa_args a = call(false, batches[i], 40, 8192);
            a.d = 128, a.hq = 4, a.hkv = 1;
            const char *line = line_of(ctx, &a, "config     ");
            cr_expect_not_null(strstr(line, " split_wgmma:"), "%s", line);
            cr_expect(!config[0] || !strcmp(line, config), "%d SMs, b=%d: %s, not %s", sms[c], batches[i], line, config);
            snprintf(config, sizeof config, "%s", line);
            cr_expect_not_null(strstr(line_of(ctx, &a, "invariant "), "own lengths say where its keys are cut"));
            OK(fa_workspace_size(ctx, &a, &bytes));
            cr_expect(bytes > (size_t)sms[c] * 512 * 130 * 4 && (!first || bytes == first), "b=%d: %zu bytes, not %zu", batches[i], bytes,
                      first);
            first = bytes;
        }
        fa_destroy(ctx);
    }
}

/* Without the flag a kernel that needs no workspace would take its place, with other bits. */
Test(invariant, no_other_kernel_runs_without_a_workspace)
{
    fa_options o = FA_OPTIONS_INIT;
    fa_context *ctx;
    o.cache_dir = scratch;
    o.workspace = FA_WORKSPACE_CALLER;
    OK(fa_create_on(&ctx, &o, sim_open(TEST_CHIPS), 0));
    fa_args a = call(false, 2, 1, 300);
    size_t bytes;
    OK(fa_alloc(ctx, &a.q.ptr, 1 << 20));
    OK(fa_alloc(ctx, &a.k.ptr, 1 << 20));
    OK(fa_alloc(ctx, &a.v.ptr, 1 << 20));
    OK(fa_alloc(ctx, &a.o.ptr, 1 << 20));
    fa_config split = test_config("decode_mma:br=16,bk=16,row_warps=1,key_warps=2,stages=3,ctas=1,kv_lanes=1,combine=0,sm_shares=1,"
                                  "min_turns=1");
    const fa_plan *plan;
    fa_problem p;
    OK(fa_problem_of(&a, &p));
    OK(fa_plan_make(ctx, &p, &split, NULL, &plan));
    cr_assert(fa_plan_use(ctx, plan));
    OK(fa_workspace_size(ctx, &a, &bytes));
    cr_assert_gt(bytes, 0);
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_INVALID);
    cr_expect_not_null(strstr(fa_last_error(), "workspace"), "%s", fa_last_error());
    fa_destroy(ctx);
}

Test(invariant, what_is_refused)
{
    fa_args a = FA_ARGS_INIT;
    fa_problem p;
    a.dtype = FA_BF16, a.d = 64, a.b = a.hq = a.hkv = a.sq = 1, a.op = FA_MERGE, a.flags = FA_BATCH_INVARIANT;
    cr_expect_eq(fa_problem_of(&a, &p), FA_UNSUPPORTED);
    cr_expect_not_null(strstr(fa_last_error(), "flags is 0x2; accepted by this version with op=merge: FA_BROADCAST (0x1), or 0"), "%s",
                       fa_last_error());
    cr_expect_eq(fa_problem_parse(&p, "bf16,d=64,features=batch-invariant+dropout"), FA_UNSUPPORTED);
}
