/* Tensors that TMA cannot address: another family runs, and fa_explain() says why. */
#include "cache/record.h"
#include "test_maps_toy.h"

/* The toy is the fastest that was ever measured here, for rows at multiples of 16 bytes. */
static void open_with_winner(void)
{
    fa_record r = { .outcome = FA_RAN, .how = FA_MEASURED, .verified = true, .seconds = 1e-9, .count = 1 };
    fa_args a = toy_args();
    fa_problem raw = FA_PROBLEM_INIT;
    open_context();
    for (a.o_dtype = 0; a.o_dtype <= FA_F32; a.o_dtype += FA_F32) {
        raw.dtype = a.dtype, raw.d = a.d, raw.dv = a.dv, raw.o_dtype = a.o_dtype;
        raw.b = a.b, raw.hq = a.hq, raw.hkv = a.hkv, raw.sq = a.sq, raw.sk = a.sk;
        OK(fa_problem_normalize(&r.problem, &raw));
        OK(fa_config_parse(&r.config, a.o_dtype ? "toy:kind=4" : "toy:kind=0"));
        strcpy(r.chip, "Fake 0");
        strcpy(r.arch, "sm_90a");
        strcpy(r.version, FA_VERSION_STRING);
        strcpy(r.date, "2026-11-21T00:00:00Z");
        cr_assert(fa_record_append(fa_context_store(ctx), &r));
    }
}
TestSuite(runtime_tma, .init = open_with_winner, .fini = close_context, .timeout = 300);

static const char *explain(const fa_args *a)
{
    static char text[4096];
    OK(fa_explain(ctx, NULL, a, text, sizeof text));
    return text;
}

static const struct {
    const char *name;
    struct {
        int tensor; /* of q, k, v, o */
        int64_t ptr, sb, ss, sh;
    } t;
    const char *says;
} faults[] = {
    { "broadcast heads", { 1, 0, 256 * 64, 64, 0 }, "k.sh is 0 elements, 0 bytes; TMA takes" },
    { "broadcast batch", { 2, 0, 0, 4 * 32, 32 }, "v.sb is 0 elements, 0 bytes" },
    { "broadcast rows", { 0, 0, 8 * 64, 0, 64 }, "q.ss is 0 elements, 0 bytes" },
    { "backwards", { 1, 0, 256 * 256, -256, 64 }, "k.ss is -256 elements, -512 bytes" },
    { "backwards output", { 3, 0, 128 * 256, -256, 32 }, "o.ss is -256 elements, -512 bytes" },
    { "far", { 2, (int64_t)1 << 45, (int64_t)1 << 39, 4 * 32, 32 }, "v.sb is 549755813888 elements, 1099511627776 bytes" },
    { "8-byte strides", { 1, 0, 256 * 260, 260, 64 }, "k.ss is 260 elements, 520 bytes" },
    { "8-byte base", { 0, 8, 0, 0, 0 }, "q.ptr is 0x100000008; TMA takes multiples of 16" },
    { "2-byte strides", { 2, 0, 256 * 131, 131, 32 }, "v.ss is 131 elements, 262 bytes" },
};

static fa_args with(size_t i)
{
    fa_args a = toy_args();
    fa_tensor *t[] = { &a.q, &a.k, &a.v, &a.o };
    t[faults[i].t.tensor]->ptr = (char *)t[faults[i].t.tensor]->ptr + faults[i].t.ptr;
    t[faults[i].t.tensor]->sb = faults[i].t.sb;
    t[faults[i].t.tensor]->ss = faults[i].t.ss;
    t[faults[i].t.tensor]->sh = faults[i].t.sh;
    a.flags = strstr(faults[i].name, "broadcast") ? FA_BROADCAST : 0;
    return a;
}

Test(runtime_tma, what_it_takes_runs_by_it)
{
    fa_args a = toy_args();
    cr_expect(strstr(explain(&a), "(sm_90a through fake)"), "compute capability 9.0 compiles for the features of its own");
    cr_expect(strstr(explain(&a), "config     toy:kind=0") && strstr(explain(&a), "loads      by TMA\n"), "%s", explain(&a));
    OK(fa_launch(ctx, &a, NULL));
    cr_expect_eq(fake_last().maps, 4);
    cr_expect(strstr(explain(&a), "kernel     loaded") && strstr(explain(&a), "loads      by TMA\n"), "%s", explain(&a));
    a.b = a.hkv = 1; /* strides of lengths of 1 mean nothing */
    a.k = (fa_tensor){ AT(2), -3, 64, 0 };
    OK(fa_launch(ctx, &a, NULL));
    cr_expect_eq(fake_last().maps, 4);
    a = toy_args(), a.sk = 0, a.k = a.v = (fa_tensor){ NULL, 0, -8, 0 };
    OK(fa_launch(ctx, &a, NULL));
    cr_expect(fake_last().params.sk == 0 && fake_last().maps == 4, "nor do those of what is empty");
}

Test(runtime_tma, what_it_does_not_take_runs_otherwise)
{
    fa_args a = toy_args();
    const fa_plan *toy = plan_of(&a, 0);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        size_t bytes = 1;
        a = with(i);
        const char *text = explain(&a);
        cr_expect(strstr(text, "loads      plain, not by TMA: ") && strstr(text, faults[i].says) && !strstr(text, "toy"), "%s:\n%s",
                  faults[i].name, text);
        OK(fa_workspace_size(ctx, &a, &bytes));
        cr_expect_eq(bytes, 0);
        OK(fa_launch(ctx, &a, NULL));
        cr_expect_eq(fake_last().maps, 0, "%s", faults[i].name);
        text = explain(&a);
        cr_expect(strstr(text, "kernel     loaded") && strstr(text, faults[i].says), "%s:\n%s", faults[i].name, text);
        cr_expect_eq(fa_plan_launch(ctx, toy, &a, NULL), FA_INVALID, "%s", faults[i].name);
        cr_expect(strstr(fa_last_error(), faults[i].says) || strstr(fa_last_error(), "args: align is"), "%s: %s", faults[i].name,
                  fa_last_error());
    }
    a = toy_args();
    OK(fa_launch(ctx, &a, NULL));
    cr_expect_eq(fake_last().maps, 4, "the class still has its kernel");
}

Test(runtime_tma, hits_stay_hits)
{
    fa_args a = toy_args();
    OK(fa_launch(ctx, &a, NULL));
    a = with(0);
    OK(fa_launch(ctx, &a, NULL));
    fake_capturing(true);
    long loads = fake_calls("cuLibraryLoadData"), asked = fake_calls("cuStreamIsCapturing");
    OK(fa_launch(ctx, &a, NULL));
    cr_expect(fake_last().maps == 0 && fake_calls("cuLibraryLoadData") == loads && fake_calls("cuStreamIsCapturing") == asked);
    a = toy_args();
    OK(fa_launch(ctx, &a, NULL));
    a.dtype = FA_F16, a.k.sh = 0, a.k.ss = 64, a.k.sb = 64 * 256, a.flags = FA_BROADCAST;
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_CAPTURE);
}

Test(runtime_tma, an_output_of_another_type_does_not_matter)
{
    fa_args a = toy_args();
    a.o_dtype = FA_F32;
    a.o = (fa_tensor){ AT(4), 128 * 256, -256, 32 };
    OK(fa_launch(ctx, &a, NULL));
    cr_expect_eq(fake_last().maps, 1);
}

Test(runtime_tma, explain_tells_the_grid)
{
    fa_args a = toy_args();
    fa_problem p, raw = FA_PROBLEM_INIT;
    char text[4096];
    raw.dtype = a.dtype, raw.d = a.d, raw.dv = a.dv, raw.b = 100, raw.hq = 8, raw.hkv = 4, raw.sq = 128, raw.sk = 256;
    OK(fa_problem_normalize(&p, &raw));
    static const struct {
        int kind;
        const char *says;
    } rows[] = { { 1, "launch     toy: 200 blocks of 128 threads, 1024 bytes of shared memory\n"
                      "scheduler  toy: persistent, at most 2 per SM for 1600 tiles\n" },
                 { 2, "launch     toy: 4800 blocks of 128 threads, 1024 bytes of shared memory\n"
                      "scheduler  toy: one cluster per tile, clusters of 3\n" },
                 { 3, "scheduler  toy: persistent, at most 1 per SM for 1600 tiles, taken from a counter, clusters of 2\n" },
                 { 6, "launch     toy: 1600 blocks of 128 threads, 1024 bytes of shared memory, may begin early\n" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_config c;
        const fa_plan *plan;
        snprintf(text, sizeof text, "toy:kind=%d", rows[i].kind);
        OK(fa_config_parse(&c, text));
        OK(fa_plan_make(ctx, &p, &c, NULL, &plan));
        cr_assert(fa_plan_use(ctx, plan));
        OK(fa_explain(ctx, &p, NULL, text, sizeof text));
        cr_expect(strstr(text, rows[i].says) && !strstr(text, "loads"), "%s", text);
    }
}

/* A family with maps that also takes rows at multiples of 8 bytes, the winner of that class too: there is no kernel left to go to. */
Test(runtime_tma, what_no_class_takes_is_refused)
{
    fa_record r = { .outcome = FA_RAN, .how = FA_MEASURED, .verified = true, .seconds = 1e-9, .count = 1 };
    fa_options o = FA_OPTIONS_INIT;
    fa_problem raw = FA_PROBLEM_INIT;
    fa_args a = toy_args();
    char text[sizeof lua], *at;
    strcpy(text, lua);
    cr_assert_not_null(at = strstr(text, "p.align < 16"));
    memcpy(at, "p.align < 8 ", 12);
    toy_write(dir, "toy.lua", text);
    o.cache_dir = scratch;
    o.template_dir = dir;
    const cu_driver *d = fa_context_driver(ctx);
    fa_destroy(ctx);
    OK(fa_create_on(&ctx, &o, d, 0));
    raw.dtype = a.dtype, raw.d = a.d, raw.dv = a.dv, raw.align = 8;
    raw.b = a.b, raw.hq = a.hq, raw.hkv = a.hkv, raw.sq = a.sq, raw.sk = a.sk;
    OK(fa_problem_normalize(&r.problem, &raw));
    OK(fa_config_parse(&r.config, "toy:kind=0"));
    strcpy(r.chip, "Fake 0");
    strcpy(r.arch, "sm_90a");
    strcpy(r.version, FA_VERSION_STRING);
    strcpy(r.date, "2026-11-21T00:00:00Z");
    cr_assert(fa_record_append(fa_context_store(ctx), &r));
    long launches = fake_calls("cuLaunchKernel") + fake_calls("cuLaunchKernelEx");
    a = with(0);
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_UNSUPPORTED, "%s", fa_last_error());
    cr_expect(strstr(fa_last_error(), faults[0].says) && strstr(fa_last_error(), "accepted by the family toy, whatever the alignment"),
              "%s", fa_last_error());
    cr_expect_eq(fake_calls("cuLaunchKernel") + fake_calls("cuLaunchKernelEx"), launches, "nothing was launched");
    a = toy_args();
    OK(fa_launch(ctx, &a, NULL));
}

/* What is prepared for the problem that fa_problem_of() tells is what fa_launch() looks for, also while a stream is captured. */
static void prepared_is_found(const fa_args *given, const char *name)
{
    fa_args with_workspace = *given, *a = &with_workspace;
    fa_problem p, again;
    size_t bytes, more;
    OK(fa_problem_of(a, &p));
    OK(fa_prepare(ctx, &p));
    OK(fa_problem_normalize(&again, &p));
    cr_expect(!memcmp(&again, &p, sizeof p), "%s: it is normalized", name);
    long loads = fake_calls("cuLibraryLoadData"), launches = fake_calls("cuLaunchKernel") + fake_calls("cuLaunchKernelEx");
    char text[4096];
    OK(fa_explain(ctx, NULL, a, text, sizeof text));
    cr_expect(strstr(text, "kernel     loaded"), "%s:\n%s", name, text);
    OK(fa_workspace_size(ctx, a, &bytes));
    a->workspace = AT(6), a->workspace_size = bytes;
    fake_capturing(true);
    cr_expect_eq(fa_launch(ctx, a, NULL), FA_OK, "%s: %s", name, fa_last_error());
    fake_capturing(false);
    cr_expect_eq(fake_calls("cuLibraryLoadData"), loads, "%s: nothing is compiled or loaded", name);
    cr_expect_gt(fake_calls("cuLaunchKernel") + fake_calls("cuLaunchKernelEx"), launches, "%s", name);
    OK(fa_workspace_size(ctx, a, &more));
    cr_expect_eq(bytes, more, "%s", name);
}

Test(runtime_tma, the_problem_of_a_call_is_the_one_that_is_launched)
{
    static const struct {
        const char *name;
        int32_t dtype, o_dtype, d, dv, mask, b, hq, hkv, sq, sk;
    } rows[] = {
        { "plain", FA_BF16, 0, 64, 32, FA_MASK_NONE, 2, 8, 4, 128, 256 },
        { "O in fp32", FA_BF16, FA_F32, 64, 32, FA_MASK_NONE, 2, 8, 4, 128, 256 },
        { "fp16 with O as the input", FA_F16, FA_F16, 64, 64, FA_MASK_CAUSAL, 1, 4, 4, 64, 64 },
        { "tf32", FA_TF32, FA_TF32, 64, 64, FA_MASK_NONE, 1, 2, 2, 100, 64 },
        { "a window", FA_BF16, 0, 128, 0, FA_MASK_WINDOW, 1, 8, 1, 1000, 2000 },
        { "one query", FA_BF16, 0, 64, 0, FA_MASK_NONE, 3, 8, 2, 1, 5000 },
        { "no key", FA_F16, 0, 64, 0, FA_MASK_NONE, 1, 2, 2, 16, 0 },
        { "rows of 6 bytes", FA_F16, 0, 3, 0, FA_MASK_NONE, 1, 2, 2, 16, 16 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_args a = toy_args();
        a.dtype = rows[i].dtype, a.o_dtype = rows[i].o_dtype, a.d = rows[i].d, a.dv = rows[i].dv, a.mask = rows[i].mask;
        a.b = rows[i].b, a.hq = rows[i].hq, a.hkv = rows[i].hkv, a.sq = rows[i].sq, a.sk = rows[i].sk;
        a.window_left = 100;
        prepared_is_found(&a, rows[i].name);
    }
}

/* Each in a context where nothing else is prepared: a class whose own kernel takes maps, and tensors that no map can hold. */
Test(runtime_tma, the_problem_of_strides_that_no_map_holds)
{
    const cu_driver *d = fa_context_driver(ctx);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        fa_args a = with(i);
        fa_options o = FA_OPTIONS_INIT;
        fa_destroy(ctx);
        o.cache_dir = scratch;
        o.template_dir = dir;
        OK(fa_create_on(&ctx, &o, d, 0));
        prepared_is_found(&a, faults[i].name);
        cr_expect_eq(fake_last().maps, 0, "%s", faults[i].name);
        a = toy_args(); /* the class above is another */
        prepared_is_found(&a, "packed, after it");
        cr_expect_eq(fake_last().maps, 4);
        a = with(i);
        prepared_is_found(&a, faults[i].name);
    }
}
