/* Every field of the public structs, wrong in every way: the status and the field's name in the message. */
#include "gen/problem.h"
#include "runtime/args/check.h"
#include "test_fake_context.h"
#include "test_good_args.h"
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

TestSuite(runtime_check, .init = open_bare_context, .fini = close_bare_context, .timeout = 120);

typedef struct row {
    fa_args args;
    fa_status status;
    const char *field, *text;
} row;

/* One good call with one thing changed. */
#define ROW(change, st, name)                      \
    do {                                           \
        fa_args a = good();                        \
        change;                                    \
        rows[n++] = (row){ a, st, name, #change }; \
    } while (0)

#define ONE a.flags = FA_BROADCAST /* one stride is set, the others are 0 */

static int bad_args(row *rows)
{
    int n = 0;
    ROW(a.size = 0, FA_INVALID, "size");
    ROW(a.size = 4, FA_INVALID, "size");
    ROW(a.size = 100, FA_INVALID, "size");
    ROW(a.size = 4097, FA_INVALID, "size is 4097; accepted: sizeof(fa_args) = ");
    ROW(a.size = sizeof a + 4096, FA_INVALID, "of another version's header");
    ROW(a.size = 0x01000000, FA_INVALID, "size is 16777216");
    ROW(a.size = UINT32_MAX, FA_INVALID, "size is 4294967295");
    ROW(a.dtype = 0, FA_INVALID, "dtype");
    ROW(a.dtype = FA_E4M3, FA_UNSUPPORTED, "e4m3");
    ROW(a.dtype = FA_Q8_0, FA_INVALID, "dtype");
    ROW(a.dtype = -1, FA_INVALID, "dtype");
    ROW(a.dtype = INT_MAX, FA_INVALID, "dtype");
    ROW(a.dtype = INT_MIN, FA_INVALID, "dtype");
    ROW(a.o_dtype = FA_Q8_0, FA_INVALID, "o_dtype");
    ROW(a.o_dtype = -1, FA_INVALID, "o_dtype");
    ROW(a.o_dtype = FA_F16, FA_UNSUPPORTED, "o_dtype");
    ROW(a.o_dtype = FA_TF32, FA_UNSUPPORTED, "o_dtype");
    ROW((a.dtype = FA_F16, a.o_dtype = FA_BF16), FA_UNSUPPORTED, "o_dtype");
    ROW((a.dtype = FA_F32, a.o_dtype = FA_F16), FA_UNSUPPORTED, "o_dtype");
    ROW(a.d = 0, FA_INVALID, "d is");
    ROW(a.d = -8, FA_INVALID, "d is");
    ROW(a.d = INT_MIN, FA_INVALID, "d is");
    ROW(a.d = 577, FA_UNSUPPORTED, "d is");
    ROW(a.d = INT_MAX, FA_UNSUPPORTED, "d is");
    ROW(a.dv = -1, FA_INVALID, "dv");
    ROW(a.dv = 577, FA_UNSUPPORTED, "dv");
    ROW(a.dv = INT_MIN, FA_INVALID, "dv");
    ROW(a.layout_flags = 4, FA_INVALID, "layout_flags is 0x4; accepted: FA_V_COLUMNS (0x1), FA_V_IN_K (0x2), or 0");
    ROW(a.layout_flags = FA_V_COLUMNS, FA_UNSUPPORTED, "features has v-columns; accepted with");
    ROW(a.layout_flags = FA_V_COLUMNS | FA_V_IN_K, FA_INVALID, "layout_flags is 0x3");
    ROW(a.layout_flags = FA_V_IN_K, FA_INVALID, "v.ptr is");
    ROW((a.layout_flags = FA_V_IN_K, a.v = a.k, a.v.ss += 8), FA_INVALID, "v.ss is");
    ROW((a.layout_flags = FA_V_IN_K, a.v.ptr = NULL, a.v.sh = 8), FA_INVALID,
        "v.sh is 8; accepted with layout_flags=FA_V_IN_K: that of k, ");
    ROW((a.layout_flags = FA_V_IN_K, a.v = a.k, a.dv = a.d + 8), FA_INVALID, "dv is");
    ROW((a.layout_flags = FA_V_IN_K, a.v = a.k, a.op = FA_BACKWARD), FA_INVALID, "layout_flags");
    ROW(a.b = -1, FA_INVALID, "b is");
    ROW(a.b = INT_MIN, FA_INVALID, "b is");
    ROW(a.hq = 0, FA_INVALID, "hq");
    ROW(a.hq = -8, FA_INVALID, "hq");
    ROW(a.hq = 65537, FA_INVALID, "hq");
    ROW(a.hkv = 0, FA_INVALID, "hkv");
    ROW(a.hkv = -4, FA_INVALID, "hkv");
    ROW(a.hkv = 3, FA_INVALID, "hq");
    ROW(a.hkv = 16, FA_INVALID, "hq");
    ROW(a.hkv = INT_MAX, FA_INVALID, "hkv");
    ROW(a.sq = -1, FA_INVALID, "sq");
    ROW(a.sq = INT_MIN, FA_INVALID, "sq");
    ROW(a.sq = FA_MAX_LENGTH + 1, FA_INVALID, "sq");
    ROW(a.sq = INT_MAX, FA_INVALID, "sq");
    ROW(a.sk = -1, FA_INVALID, "sk");
    ROW(a.sk = FA_MAX_LENGTH + 1, FA_INVALID, "sk");
    ROW(a.sk = INT_MAX, FA_INVALID, "sk");
    ROW(a.mask = -1, FA_INVALID, "mask");
    ROW(a.mask = 3, FA_INVALID, "mask");
    ROW(a.mask = INT_MAX, FA_INVALID, "mask");
    ROW((a.mask = FA_MASK_WINDOW, a.window_left = -2), FA_INVALID, "window_left");
    ROW((a.mask = FA_MASK_WINDOW, a.window_left = INT_MIN), FA_INVALID, "window_left");
    ROW((a.mask = FA_MASK_WINDOW, a.window_right = -2), FA_INVALID, "window_right");
    ROW((a.mask = FA_MASK_WINDOW, a.window_right = INT_MIN), FA_INVALID, "window_right");
    ROW(a.diagonal = -1, FA_INVALID, "diagonal");
    ROW(a.diagonal = 3, FA_INVALID, "diagonal");
    ROW(a.diagonal = INT_MAX, FA_INVALID, "diagonal");
    ROW(a.scale = -1, FA_INVALID, "scale");
    ROW(a.scale = NAN, FA_INVALID, "scale");
    ROW(a.scale = INFINITY, FA_INVALID, "scale");
    ROW(a.scale = -INFINITY, FA_INVALID, "scale");
    ROW(a.scale = -1e-30f, FA_INVALID, "negate Q or K");
    ROW(a.scale = 2.36e38f, FA_INVALID, "2.358e38");
    ROW(a.scale = FLT_MAX, FA_INVALID, "scale");
    ROW(a.q.ptr = NULL, FA_INVALID, "q.ptr");
    ROW(a.k.ptr = NULL, FA_INVALID, "k.ptr");
    ROW(a.v.ptr = NULL, FA_INVALID, "v.ptr");
    ROW(a.o.ptr = NULL, FA_INVALID, "o.ptr");
    ROW(a.q.ptr = (char *)AT(1) + 1, FA_INVALID, "q.ptr");
    ROW(a.k.ptr = (char *)AT(2) + 1, FA_INVALID, "k.ptr");
    ROW(a.v.ptr = (char *)AT(3) + 3, FA_INVALID, "v.ptr");
    ROW(a.o.ptr = (char *)AT(4) + 1, FA_INVALID, "o.ptr");
    ROW((a.dtype = FA_F32, a.q.ptr = (char *)AT(1) + 2), FA_INVALID, "q.ptr");
    ROW((a.dtype = FA_TF32, a.k.ptr = (char *)AT(2) + 2), FA_INVALID, "k.ptr");
    ROW((a.o_dtype = FA_F32, a.o.ptr = (char *)AT(4) + 2), FA_INVALID, "o.ptr");
    ROW(a.lse = (float *)((char *)AT(5) + 2), FA_INVALID, "lse");
    ROW(a.lse = (float *)((char *)AT(5) + 1), FA_INVALID, "lse");
    ROW(a.lse = (float *)(UINTPTR_MAX - 3), FA_INVALID, "lse");
    ROW((ONE, a.q.sb = INT64_MAX), FA_INVALID, "q.sb");
    ROW((ONE, a.q.sb = INT64_MIN), FA_INVALID, "q.sb");
    ROW((ONE, a.q.ss = INT64_MAX), FA_INVALID, "q.ss");
    ROW((ONE, a.q.ss = INT64_MIN / 2), FA_INVALID, "q.ss");
    ROW((ONE, a.q.sh = INT64_MAX / 2), FA_INVALID, "q.sh");
    ROW((ONE, a.k.sb = INT64_MAX), FA_INVALID, "k.sb");
    ROW((ONE, a.k.ss = INT64_MAX / 2), FA_INVALID, "k.ss");
    ROW((ONE, a.k.sh = INT64_MIN), FA_INVALID, "k.sh");
    ROW((ONE, a.v.sb = INT64_MIN), FA_INVALID, "v.sb");
    ROW((ONE, a.v.ss = INT64_MAX / 2), FA_INVALID, "v.ss");
    ROW((ONE, a.v.sh = INT64_MAX), FA_INVALID, "v.sh");
    ROW((a.o.sb = INT64_MAX, a.o.ss = 512, a.o.sh = 64), FA_INVALID, "o.sb");
    ROW((ONE, a.q.sb = -((int64_t)1 << 40)), FA_INVALID, "q:");
    ROW((ONE, a.k.ss = -((int64_t)1 << 40)), FA_INVALID, "k:");
    ROW((ONE, a.v.sh = (int64_t)1 << 60, a.v.ptr = (void *)(UINTPTR_MAX & ~(uintptr_t)0xfff)), FA_INVALID, "v:");
    ROW(a.q.ptr = (void *)(UINTPTR_MAX & ~(uintptr_t)0xff), FA_INVALID, "q:");
    ROW((a.o.sb = 0, a.o.ss = 512, a.o.sh = 64), FA_INVALID, "o.sb");
    ROW((a.o.sb = 65536, a.o.ss = 0, a.o.sh = 64), FA_INVALID, "o.ss");
    ROW((a.o.sb = 65536, a.o.ss = 512, a.o.sh = 0), FA_INVALID, "o.sh");
    ROW((a.o.sb = 65536, a.o.ss = 512, a.o.sh = 63), FA_INVALID, "o.sh");
    ROW((a.o.sb = 65536, a.o.ss = 511, a.o.sh = 64), FA_INVALID, "o.ss");
    ROW((a.o.sb = 65535, a.o.ss = 512, a.o.sh = 64), FA_INVALID, "o.sb");
    ROW((a.o.sb = 65536, a.o.ss = -64, a.o.sh = 64), FA_INVALID, "o.s");
    ROW(a.o.ptr = a.q.ptr, FA_INVALID, "o overlaps q");
    ROW(a.o.ptr = a.k.ptr, FA_INVALID, "o overlaps k");
    ROW(a.o.ptr = a.v.ptr, FA_INVALID, "o overlaps v");
    ROW(a.o.ptr = (char *)a.q.ptr + 2 * 128 * 8 * 64 * 2 - 2, FA_INVALID, "o overlaps q");
    ROW(a.o.ptr = (char *)a.k.ptr - 2, FA_INVALID, "o overlaps k");
    ROW(a.lse = a.o.ptr, FA_INVALID, "lse");
    ROW(a.lse = a.q.ptr, FA_INVALID, "lse overlaps q");
    ROW(a.lse = (float *)((char *)a.v.ptr + 4), FA_INVALID, "lse overlaps v");
    ROW(a.lse = (float *)((char *)a.o.ptr - 4), FA_INVALID, "lse");
    ROW((a.flags = FA_BROADCAST, a.q.sb = 0, a.q.ss = -512, a.q.sh = 64, a.o.ptr = (char *)a.q.ptr - 4096), FA_INVALID, "o overlaps q");
    ROW(a.op = 1, FA_INVALID, "grad_o.ptr is NULL");
    ROW((a.op = FA_MERGE, a.parts = 1), FA_INVALID, "part.ptr is NULL");
    ROW(a.op = 3, FA_INVALID, "q_out.ptr is NULL and q.ptr is set");
    ROW(a.op = 4, FA_INVALID, "op is 4; accepted: FA_FORWARD (0), FA_BACKWARD (1), FA_MERGE (2), FA_APPEND (3)");
    ROW(a.op = -1, FA_INVALID, "op is -1");
    ROW(a.op = INT_MAX, FA_INVALID, "op is");
    ROW((a.op = 1, a.sq = 0), FA_INVALID, "grad_k.ptr is NULL");
    ROW(a.flags = 4, FA_UNSUPPORTED,
        "flags is 0x4; accepted by this version with op=forward: FA_BROADCAST (0x1), FA_BATCH_INVARIANT (0x2)");
    ROW(a.flags = 8 | FA_BROADCAST, FA_UNSUPPORTED, "flags is 0x9");
    ROW(a.flags = 16, FA_INVALID, "flags is 0x10");
    ROW(a.flags = FA_BROADCAST | 1u << 31, FA_INVALID, "flags is");
    /* what a stride that was left out would do */
    ROW(a.q.sb = 65536, FA_INVALID, "q.ss is 0 and the dimension is 128 long");
    ROW(a.k.sb = 65536, FA_INVALID, "k.ss is 0");
    ROW(a.v.sb = 65536, FA_INVALID, "v.ss is 0");
    ROW((a.q.sb = 65536, a.q.ss = 512), FA_INVALID, "q.sh is 0 and the dimension is 8 long");
    ROW((a.k.ss = 256, a.k.sh = 64), FA_INVALID, "k.sb is 0 and the dimension is 2 long");
    ROW((a.v.sb = 65536, a.v.sh = 64), FA_INVALID, "v.ss is 0");
    ROW(a.o.sb = 65536, FA_INVALID, "o.s");
    ROW((a.flags = FA_BROADCAST, a.o.sb = 65536, a.o.ss = 512), FA_INVALID, "o.sh is 0");
    ROW((a.flags = FA_BROADCAST, a.o.ss = 512, a.o.sh = 64), FA_INVALID, "o.sb is 0");
    ROW((a.flags = FA_BROADCAST, a.o.sb = 65536, a.o.sh = 64), FA_INVALID, "o.ss is 0");
    ROW((a.sq = FA_MAX_LENGTH, a.b = INT_MAX, a.hq = 65536, a.hkv = 65536), FA_INVALID, "q");
    ROW((a.sq = 1, a.b = INT_MAX, a.hq = 65536, a.hkv = 1, a.sk = 1), FA_INVALID, "q");
    return n;
}

Test(runtime_check, bad_args_name_their_field)
{
    static row rows[170];
    int n = bad_args(rows);
    cr_assert_geq(n, 100, "%d rows", n);
    for (int i = 0; i < n; i++) {
        fa_status st = fa_launch(ctx, &rows[i].args, NULL);
        cr_expect_eq(st, rows[i].status, "%s: %s: %s", rows[i].text, fa_status_name(st), fa_last_error());
        cr_expect(strstr(fa_last_error(), rows[i].field), "%s: \"%s\" does not name %s", rows[i].text, fa_last_error(), rows[i].field);
    }
    cr_assert_eq(fake_calls("cuLaunchKernel"), 0);
    cr_assert_eq(fake_calls("cuLibraryLoadData"), 0);
}

/* Each has a product with log2(e) that is a number of fp32. 0 of either sign is 1/sqrt(d). */
Test(runtime_check, scales_that_are_taken)
{
    static const float scales[] = { 0, -0.f, 1e-45f, 1e-40f, FLT_MIN, 1, 1e30f, 2.358e38f };
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        fa_args a = good();
        fa_call call;
        a.scale = scales[i];
        cr_assert_eq(fa_check_args(&call, &a, true), FA_OK, "%g: %s", (double)scales[i], fa_last_error());
        cr_assert_eq(call.values.scale, scales[i] > 0 ? scales[i] : 0.125f);
        cr_assert(isfinite(call.values.scale_log2), "%g", (double)scales[i]);
    }
}

Test(runtime_check, null_pointers_are_told)
{
    fa_args a = good();
    fa_problem p = FA_PROBLEM_INIT;
    size_t bytes;
    char buf[8];
    const struct {
        fa_status status;
        const char *name;
    } rows[] = {
        { fa_launch(NULL, &a, NULL), "ctx" },
        { fa_launch(ctx, NULL, NULL), "args" },
        { fa_prepare(NULL, &p), "ctx" },
        { fa_prepare(ctx, NULL), "problem" },
        { fa_supported(NULL, &p), "ctx" },
        { fa_supported(ctx, NULL), "problem" },
        { fa_workspace_size(NULL, &a, &bytes), "ctx" },
        { fa_workspace_size(ctx, &a, NULL), "bytes" },
        { fa_workspace_size(ctx, NULL, &bytes), "args" },
        { fa_explain(ctx, NULL, NULL, buf, 8), "problem" },
        { fa_explain(NULL, &p, NULL, buf, 8), "ctx" },
        { fa_explain(ctx, &p, NULL, NULL, 8), "buf" },
        { fa_explain(ctx, &p, NULL, buf, 0), "buf" },
        { fa_create(NULL, NULL), "out" },
        { fa_explain_size(NULL, &p, NULL, &bytes), "ctx" },
        { fa_explain_size(ctx, &p, NULL, NULL), "bytes" },
        { fa_explain_size(ctx, NULL, NULL, &bytes), "problem" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(rows[i].status, FA_INVALID, "%zu: %s", i, rows[i].name);
    fa_destroy(NULL);
}

Test(runtime_check, bad_memory_calls_name_their_field)
{
    char host[4];
    void *p = host;
    const struct {
        const char *field;
        fa_context *ctx;
        void **out;
        size_t bytes;
    } allocs[] = { { "ctx", NULL, &p, 1 }, { "out", ctx, NULL, 1 }, { "bytes", ctx, &p, 0 } };
    for (size_t i = 0; i < sizeof allocs / sizeof *allocs; i++) {
        cr_expect_eq(fa_alloc(allocs[i].ctx, allocs[i].out, allocs[i].bytes), FA_INVALID);
        cr_expect(!strncmp(fa_last_error(), allocs[i].field, strlen(allocs[i].field)), "%zu: %s", i, fa_last_error());
    }
    cr_expect_null(p);
    const struct {
        const char *field;
        fa_context *ctx;
        void *to;
        const void *from;
        int kind;
    } copies[] = { { "ctx", NULL, host, host, FA_TO_DEVICE },
                   { "to", ctx, NULL, host, FA_TO_DEVICE },
                   { "from", ctx, host, NULL, FA_FROM_DEVICE },
                   { "kind", ctx, host, host, 2 },
                   { "kind", ctx, host, host, INT_MAX } };
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        cr_expect_eq(fa_copy(copies[i].ctx, copies[i].to, copies[i].from, 4, (fa_copy_kind)copies[i].kind), FA_INVALID);
        cr_expect(!strncmp(fa_last_error(), copies[i].field, strlen(copies[i].field)), "%zu: %s", i, fa_last_error());
    }
    cr_expect_eq(fa_copy(ctx, NULL, NULL, 0, FA_TO_DEVICE), FA_OK);
    cr_expect_eq(fa_free(ctx, NULL), FA_OK);
    cr_expect_eq(fa_free(NULL, NULL), FA_INVALID);
    cr_expect(!strncmp(fa_last_error(), "ctx", 3), "%s", fa_last_error());
    cr_assert_eq(fake_calls("cuMemAlloc") + fake_calls("cuMemFree") + fake_calls("cuMemcpyHtoD") + fake_calls("cuMemcpyDtoH"), 0);
}

Test(runtime_check, bad_problems)
{
    const struct {
        fa_problem p;
        fa_status status;
        const char *field;
    } rows[] = {
        { { .size = 0 }, FA_INVALID, "size" },
        { { .size = sizeof(fa_problem) }, FA_INVALID, "dtype" },
        { { .size = sizeof(fa_problem), .dtype = FA_F16 }, FA_INVALID, "d is" },
        { { .size = sizeof(fa_problem), .dtype = FA_F16, .d = 600 }, FA_UNSUPPORTED, "d is" },
        { { .size = sizeof(fa_problem), .dtype = FA_F16, .d = 64, .dv = -2 }, FA_INVALID, "dv" },
        { { .size = sizeof(fa_problem), .dtype = FA_F16, .d = 64, .mask = 9 }, FA_INVALID, "mask" },
        { { .size = sizeof(fa_problem), .dtype = FA_F16, .d = 64, .o_dtype = FA_BF16 }, FA_UNSUPPORTED, "o_dtype" },
        { { .size = sizeof(fa_problem), .dtype = FA_F16, .d = 64, .align = 3 }, FA_INVALID, "align" },
        { { .size = sizeof(fa_problem), .dtype = FA_F16, .d = 64, .align = 32 }, FA_INVALID, "align" },
        { { .size = sizeof(fa_problem), .dtype = FA_F16, .d = 64, .b = -1 }, FA_INVALID, "b is" },
        { { .size = sizeof(fa_problem), .dtype = FA_F16, .d = 64, .hq = 8, .hkv = 3 }, FA_INVALID, "hq" },
        { { .size = sizeof(fa_problem), .dtype = FA_F16, .d = 64, .sk = -5 }, FA_INVALID, "sk" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_eq(fa_prepare(ctx, &rows[i].p), rows[i].status, "%zu: %s", i, fa_last_error());
        cr_expect(strstr(fa_last_error(), rows[i].field), "%zu: %s", i, fa_last_error());
        cr_expect_eq(fa_supported(ctx, &rows[i].p), rows[i].status);
    }
}

Test(runtime_check, structs_of_newer_headers)
{
    struct {
        fa_args a;
        char more[16];
    } wide = { .a = good() };
    fa_call call;
    wide.a.size = sizeof wide;
    cr_assert_eq(fa_check_args(&call, &wide.a, true), FA_OK, "%s", fa_last_error());
    wide.more[7] = 1;
    cr_assert_eq(fa_check_args(&call, &wide.a, true), FA_INVALID);
    cr_assert(strstr(fa_last_error(), "size"));
    struct {
        fa_problem p;
        char more[8];
    } p = { .p = { .size = sizeof p, .dtype = FA_F16, .d = 64 }, .more = { 1 } };
    cr_assert_eq(fa_prepare(ctx, &p.p), FA_INVALID);
    fa_args old = good(); /* a header that ended before the workspace */
    old.size = offsetof(fa_args, workspace);
    old.workspace = AT(9);
    cr_assert_eq(fa_check_args(&call, &old, true), FA_OK);
    cr_assert_eq(call.values.workspace, 0);
    old.size = offsetof(fa_args, op); /* one that ended before op and flags: what lies after is not read */
    old.workspace = NULL;
    old.op = 77, old.flags = ~0u;
    cr_assert_eq(fa_check_args(&call, &old, true), FA_OK, "%s", fa_last_error());
    old.q.sb = 65536; /* and has no flag to say that zeros are meant */
    old.size = offsetof(fa_args, flags), old.op = FA_FORWARD, old.flags = FA_BROADCAST;
    cr_assert_eq(fa_check_args(&call, &old, true), FA_INVALID);
    cr_assert(strstr(fa_last_error(), "q.ss is 0"), "%s", fa_last_error());
}

/* The last bytes of a page after which nothing is mapped. */
static void *at_the_end(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(p != MAP_FAILED && mprotect(p + page, page, PROT_NONE) == 0);
    return p + page - bytes;
}

Test(runtime_check, nothing_past_a_struct_s_size_is_read)
{
    const struct {
        size_t size;
        fa_status status;
    } rows[] = { { sizeof(uint32_t), FA_INVALID }, { offsetof(fa_args, q), FA_INVALID }, { offsetof(fa_args, workspace), FA_OK },
                 { offsetof(fa_args, op), FA_OK }, { offsetof(fa_args, flags), FA_OK },  { sizeof(fa_args), FA_OK } };
    fa_args whole = good();
    fa_call call;
    size_t bytes;
    char text[4096];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_args *a = at_the_end((rows[i].size + 7) / 8 * 8);
        whole.size = (uint32_t)rows[i].size;
        memcpy(a, &whole, rows[i].size);
        cr_expect_eq(fa_check_args(&call, a, true), rows[i].status, "%zu: %s", i, fa_last_error());
        cr_expect_eq(fa_workspace_size(ctx, a, &bytes), rows[i].status, "%zu: %s", i, fa_last_error());
        cr_expect_eq(fa_explain(ctx, NULL, a, text, sizeof text), rows[i].status, "%zu: %s", i, fa_last_error());
        cr_expect_eq(fa_explain_size(ctx, NULL, a, &bytes), rows[i].status, "%zu: %s", i, fa_last_error());
    }
    cr_assert_eq(fa_launch(ctx, at_the_end(8), NULL), FA_INVALID);
}

/* A size that no struct of any header has, as where it was never set, is not read by: of each struct. */
Test(runtime_check, a_size_beyond_any_struct_is_told)
{
    static const uint32_t sizes[] = { 4097, 8192, 0x01000000, 0x7fffffff, UINT32_MAX };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fa_args *a = at_the_end(sizeof *a);
        fa_problem *p = at_the_end(sizeof *p), out;
        fa_options *o = at_the_end(sizeof *o);
        fa_tune_options *t = at_the_end(sizeof *t);
        fa_context *none;
        char text[64];
        snprintf(text, sizeof text, "size is %u; accepted: sizeof(fa_", sizes[i]);
        *a = good(), *p = (fa_problem)FA_PROBLEM_INIT, *o = (fa_options)FA_OPTIONS_INIT, *t = (fa_tune_options)FA_TUNE_OPTIONS_INIT;
        p->dtype = FA_BF16, p->d = 64;
        fa_problem right = *p;
        a->size = p->size = o->size = t->size = sizes[i];
        for (int k = 0; k < 5; k++) {
            fa_status st = k == 0   ? fa_launch(ctx, a, NULL)
                           : k == 1 ? fa_problem_of(a, &out)
                           : k == 2 ? fa_prepare(ctx, p)
                           : k == 3 ? fa_create(&none, o)
                                    : fa_tune(ctx, &right, t);
            cr_expect(st == FA_INVALID && strstr(fa_last_error(), text), "%d: %s: %s", k, fa_status_name(st), fa_last_error());
        }
        munmap((char *)a + sizeof *a - sysconf(_SC_PAGESIZE), 2 * (size_t)sysconf(_SC_PAGESIZE));
    }
}

Test(runtime_check, explain_looks_at_addresses_where_q_has_one)
{
    fa_args a = good();
    char text[4096];
    a.k.ptr = NULL;
    cr_expect_eq(fa_explain(ctx, NULL, &a, text, sizeof text), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "k.ptr"), "%s", fa_last_error());
    a.q.ptr = NULL;
    cr_expect_eq(fa_explain(ctx, NULL, &a, text, sizeof text), FA_OK, "%s", fa_last_error());
}

/* ---- fields that the forward operation does not read ---- */

Test(runtime_check, each_field_that_is_not_read_is_refused_by_name)
{
    static const struct {
        const char *name, *what;
        size_t at, bytes;
        bool read; /* by the forward operation */
        fa_status refusal;
    } fields[] = {
#define FIELD(field, what, reader, ...) \
    { #field,                           \
      what,                             \
      offsetof(fa_args, field),         \
      sizeof((fa_args *)0)->field,      \
      !strncmp(#reader, "FORWARD", 7),  \
      strcmp(#reader, "NONE") ? FA_INVALID : FA_UNSUPPORTED },
#define VALUE FIELD
#define OPERAND(field, forward, backward, merge, append, what, ...) \
    { #field, what, offsetof(fa_args, field), sizeof((fa_args *)0)->field, strcmp(#forward, "NO") != 0, FA_INVALID },
#include "gen/operands.def"
    };
    unsigned char listed[sizeof(fa_args)] = { 0 };
    int n = 0, unread = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        for (size_t byte = fields[i].at; byte < fields[i].at + fields[i].bytes; byte++)
            cr_expect_eq(listed[byte]++, 0, "byte %zu, of %s, is listed twice", byte, fields[i].name);
        unread += fields[i].read ? 0 : (int)fields[i].bytes;
        for (size_t byte = 0; byte < fields[i].bytes && !fields[i].read;
             byte++) { /* any of its bytes: a tensor's address, and each stride */
            fa_args a = good();
            fa_problem p;
            size_t workspace;
            char text[64], buf[4096];
            ((unsigned char *)&a)[fields[i].at + byte] = 1;
            snprintf(text, sizeof text, "args: %s is set: ", fields[i].name);
            const fa_status st[] = { fa_launch(ctx, &a, NULL), fa_problem_of(&a, &p), fa_workspace_size(ctx, &a, &workspace),
                                     fa_explain(ctx, NULL, &a, buf, sizeof buf) };
            bool object = fields[i].at == offsetof(fa_args, score); /* which a context knows, or not */
            for (size_t k = 0; k < sizeof st / sizeof *st; k++)
                cr_expect_eq(st[k], object && k != 1 ? FA_INVALID : fields[i].refusal, "%s, byte %zu: %s of function %zu", fields[i].name,
                             byte, fa_status_name(st[k]), k);
            if (object)
                cr_expect_eq(fa_problem_of(&a, &p), FA_UNSUPPORTED);
            cr_expect(!strncmp(fa_last_error(), text, strlen(text)) && strstr(fa_last_error(), fields[i].what), "%s", fa_last_error());
            n++;
        }
    }
    for (size_t byte = offsetof(fa_args, cu_seqlens_q); byte < sizeof(fa_args); byte++)
        cr_expect_eq(listed[byte], 1, "every field after `flags` is a row of gen/operands.def; byte %zu is not", byte);
    cr_assert_eq(n, unread);
    cr_assert_eq(fake_calls("cuLaunchKernel") + fake_calls("cuLibraryLoadData"), 0);
}
