/* What a call means: strides, alignment, diagonals and workspace, as they follow from its arguments. */
#include "runtime/launch/repeat.h"
#include "test_fake_context.h"
#include "test_good_args.h"
#include <limits.h>

TestSuite(runtime_call, .init = open_bare_context, .fini = close_bare_context, .timeout = 120);

Test(runtime_call, nothing_to_do_is_ok_and_touches_nothing)
{
    fa_args a = good();
    a.q.ptr = a.o.ptr = NULL; /* without elements */
    a.lse = NULL;
    a.sq = 0;
    cr_assert_eq(fa_launch(ctx, &a, NULL), FA_OK, "%s", fa_last_error());
    a.sq = 5;
    a.b = 0;
    a.k.ptr = a.v.ptr = NULL;
    cr_assert_eq(fa_launch(ctx, &a, NULL), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fake_calls("cuLaunchKernel"), 0);
}

/* What is wrong is told of a call that computes nothing, too. */
Test(runtime_call, a_call_with_nothing_to_do_is_checked)
{
    static const struct {
        int32_t b, sq;
        const char *field;
    } rows[] = { { -1, 5, "b is -1" },
                 { 2, 0, "k.ptr is NULL" },
                 { 2, 0, "v.ptr is 0x300000001" },
                 { 2, 0, "q.ptr is 0x100000001" },
                 { 0, 5, "o.ptr is 0x400000001" },
                 { 2, 0, "k.ss is 0" },
                 { 2, 0, "workspace overlaps v" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_args a = good();
        a.b = rows[i].b, a.sq = rows[i].sq;
        char *const odd[4] = { [2] = AT(3), [3] = AT(1), [0] = AT(4) };
        a.k.ptr = i == 1 ? NULL : a.k.ptr;
        a.v.ptr = i == 2 ? odd[2] + 1 : a.v.ptr;
        a.q.ptr = i == 3 ? odd[3] + 1 : a.q.ptr;
        a.o.ptr = i == 4 ? odd[0] + 1 : a.o.ptr;
        a.k.sb = i == 5;
        if (i == 6)
            a.workspace = AT(3), a.workspace_size = 256;
        cr_expect_eq(fa_launch(ctx, &a, NULL), FA_INVALID, "row %zu", i);
        cr_expect(strstr(fa_last_error(), rows[i].field), "row %zu: %s", i, fa_last_error());
    }
}

/* Lengths in device memory say which rows are used, the arguments how many there are: 0 of these is a field that was left out. */
Test(runtime_call, an_empty_batch_is_said_by_its_lengths)
{
    static const struct {
        int32_t b, sq, sk, total_q, total_k, pages;
        const char *field; /* NULL: it is right, and empty where sq or b is 0 */
    } rows[] = { { 2, 5, 7, 0, 14, -1, "total_q is 0" },
                 { 2, 5, 7, 10, 0, -1, "total_k is 0" },
                 { 2, 5, 0, 0, 0, -1, "total_q is 0" },
                 { 2, 0, 7, 0, 0, -1, "total_k is 0" },
                 { 2, 5, 7, 0, 0, 3, "total_q is 0" },
                 { 2, 5, 7, 10, 0, 0, "pages is 0" },
                 { 2, 0, 7, 0, 14, -1, NULL },
                 { 2, 5, 0, 10, 0, -1, NULL },
                 { 0, 5, 7, 0, 0, -1, NULL },
                 { 2, 0, 0, 0, 0, -1, NULL },
                 { 2, 0, 7, 0, 0, 3, NULL },
                 { 2, 5, 0, 10, 0, 0, NULL },
                 { 0, 5, 7, 0, 0, 0, NULL },
                 { 2, 5, 7, 10, 14, -1, NULL },
                 { 2, 5, 7, 10, 0, 3, NULL } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_args a = good();
        fa_call c;
        size_t bytes;
        a.b = rows[i].b, a.sq = rows[i].sq, a.sk = rows[i].sk;
        a.cu_seqlens_q = AT(6), a.total_q = rows[i].total_q, a.total_k = rows[i].total_k;
        if (rows[i].pages < 0)
            a.cu_seqlens_k = AT(7);
        else
            a.seqlens_k = AT(7), a.page_table = AT(8), a.page_size = 16, a.pages = rows[i].pages;
        cr_expect_eq(fa_check_args(&c, &a, true), rows[i].field ? FA_INVALID : FA_OK, "row %zu: %s", i, fa_last_error());
        if (!rows[i].field)
            cr_expect_eq(c.empty, !a.sq || !a.b, "row %zu", i);
        else
            cr_expect(strstr(fa_last_error(), rows[i].field) && fa_workspace_size(ctx, &a, &bytes) == FA_INVALID &&
                          fa_launch(ctx, &a, NULL) == FA_INVALID,
                      "row %zu: %s", i, fa_last_error());
    }
}

/* Rows that are allocated, and where each sequence's begin: of queries and of keys, both or neither. */
Test(runtime_call, totals_and_bounds_come_together)
{
    static const struct {
        bool bounds_q, bounds_k;
        int32_t total_q, total_k;
        const char *told; /* NULL: it is right */
    } rows[] = { { true, true, 10, 14, NULL },
                 { true, true, -1, 14, "total_q is -1; accepted: rows" },
                 { true, true, 10, INT_MIN, "total_k is -2147483648; accepted: rows" },
                 { false, false, -10, 0, "total_q is -10; accepted: rows" },
                 { false, true, 10, 14, "total_q is 10 and cu_seqlens_q is NULL" },
                 { true, false, 10, 1, "total_k is 1 and cu_seqlens_k is NULL" },
                 { true, false, 10, 0, NULL },
                 { false, true, 0, 14, NULL } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_args a = good();
        a.sq = 5, a.sk = 7;
        a.cu_seqlens_q = rows[i].bounds_q ? AT(6) : NULL, a.total_q = rows[i].total_q;
        a.cu_seqlens_k = rows[i].bounds_k ? AT(7) : NULL, a.total_k = rows[i].total_k;
        fa_call c;
        cr_expect_eq(fa_check_args(&c, &a, true), rows[i].told ? FA_INVALID : FA_OK, "row %zu: %s", i, fa_last_error());
        cr_expect(!rows[i].told || strstr(fa_last_error(), rows[i].told), "row %zu: %s", i, fa_last_error());
    }
}

Test(runtime_call, strides_and_defaults)
{
    fa_args a = good();
    fa_call c;
    cr_assert_eq(fa_check_args(&c, &a, true), FA_OK);
    cr_assert(c.values.operand[0].stride[2] == 64 && c.values.operand[0].stride[1] == 8 * 64 &&
              c.values.operand[0].stride[0] == 128 * 8 * 64);
    cr_assert(c.values.operand[1].stride[2] == 64 && c.values.operand[1].stride[1] == 4 * 64 &&
              c.values.operand[1].stride[0] == 256 * 4 * 64);
    cr_assert_float_eq(c.values.scale, 0.125f, 0);
    cr_assert_float_eq(c.values.scale_log2, 0.125f * 1.44269504f, 1e-7);
    cr_assert(c.values.group == 2 && c.problem.align == 16 && c.problem.dv == 64 && c.problem.o_dtype == FA_BF16);
    a.b = 1; /* the stride of a dimension of length 1 is ignored, whatever it is */
    a.q.sb = 99990001;
    a.q.ss = 8 * 64;
    a.q.sh = 64;
    cr_assert_eq(fa_check_args(&c, &a, true), FA_OK);
    cr_assert(c.values.operand[0].stride[0] == 0 && c.problem.align == 16);
    a.k.sh = 64, a.k.ss = -256, a.k.sb = 0; /* backwards */
    cr_assert_eq(fa_check_args(&c, &a, true), FA_OK, "%s", fa_last_error());
    a.v.sh = 64; /* one key for all: a broadcast input, where that is said */
    cr_assert_eq(fa_check_args(&c, &a, true), FA_INVALID);
    a.flags = FA_BROADCAST;
    cr_assert_eq(fa_check_args(&c, &a, true), FA_OK, "%s", fa_last_error());
    cr_assert_eq(c.values.operand[2].stride[1], 0);
    cr_assert(c.values.operand[3].stride[2] == 64 && c.values.operand[3].stride[1] == 8 * 64, "three zeros are packed, with the flag too");
}

Test(runtime_call, a_stride_of_zero_is_refused_unless_it_is_meant)
{
    int refused = 0;
    for (int tensor = 0; tensor < 3; tensor++)
        for (int zeros = 0; zeros < 8; zeros++)    /* which of sb, ss, sh are 0 */
            for (int ones = 0; ones < 8; ones++) { /* which of b, s, h are 1 */
                fa_args a = good();
                fa_call c;
                fa_tensor *t[] = { &a.q, &a.k, &a.v };
                a.b = ones & 1 ? 1 : 2, a.sq = a.sk = ones & 2 ? 1 : 128, a.hq = a.hkv = ones & 4 ? 1 : 8;
                t[tensor]->sb = zeros & 1 ? 0 : 65536, t[tensor]->ss = zeros & 2 ? 0 : 512, t[tensor]->sh = zeros & 4 ? 0 : 64;
                bool wrong = zeros != 7 && (zeros & ~ones);
                refused += wrong;
                cr_expect_eq(fa_check_args(&c, &a, true), wrong ? FA_INVALID : FA_OK, "%d %d %d: %s", tensor, zeros, ones, fa_last_error());
                if (wrong)
                    cr_expect(strstr(fa_last_error(), "FA_BROADCAST") && strstr(fa_last_error(), tensor == 0   ? "q.s"
                                                                                                 : tensor == 1 ? "k.s"
                                                                                                               : "v.s"),
                              "%s", fa_last_error());
                a.flags = FA_BROADCAST;
                cr_expect_eq(fa_check_args(&c, &a, true), FA_OK, "%d %d %d: %s", tensor, zeros, ones, fa_last_error());
            }
    cr_assert_gt(refused, 60);
    fa_args none = good(); /* a length of 0 has no stride that could matter */
    fa_call c;
    none.sk = 0, none.k.sh = none.v.sh = 64, none.k.sb = none.v.sb = 65536;
    cr_assert_eq(fa_check_args(&c, &none, true), FA_OK, "%s", fa_last_error());
}

Test(runtime_call, alignment_is_the_least_of_all_rows)
{
    const struct {
        int dtype, d, dv, shift;
        int64_t q_ss;
        int align;
    } rows[] = { { FA_F16, 64, 64, 0, 0, 16 },  { FA_F16, 64, 64, 8, 0, 8 }, { FA_F16, 64, 64, 4, 0, 4 }, { FA_F16, 64, 64, 2, 0, 2 },
                 { FA_F16, 60, 64, 0, 0, 8 },   { FA_F16, 64, 62, 0, 0, 4 }, { FA_F16, 63, 63, 0, 0, 2 }, { FA_F16, 64, 64, 0, 513, 2 },
                 { FA_F16, 64, 64, 0, 516, 8 }, { FA_F32, 64, 64, 4, 0, 4 }, { FA_F32, 63, 64, 0, 0, 4 }, { FA_TF32, 62, 64, 0, 0, 8 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_args a = good();
        fa_call c;
        a.dtype = rows[i].dtype;
        a.d = rows[i].d;
        a.dv = rows[i].dv;
        a.q.ptr = (char *)a.q.ptr + rows[i].shift;
        if (rows[i].q_ss) {
            a.q.ss = rows[i].q_ss;
            a.q.sh = 64;
            a.q.sb = 128 * 1024;
        }
        cr_assert_eq(fa_check_args(&c, &a, true), FA_OK, "%s", fa_last_error());
        cr_expect_eq(c.problem.align, rows[i].align, "row %zu: %d", i, c.problem.align);
    }
}

Test(runtime_call, diagonals)
{
    const struct {
        int mask, left, right, diagonal, offset, lo, hi;
    } rows[] = {
        /* sq = 128, sk = 256 */
        { FA_MASK_NONE, 5, 5, FA_OFFSET, 7, -128, 256 },
        { FA_MASK_CAUSAL, 5, 5, 0, 0, -128, 128 },
        { FA_MASK_CAUSAL, 0, 0, FA_TOP_LEFT, 9, -128, 0 },
        { FA_MASK_CAUSAL, 0, 0, FA_OFFSET, -3, -128, -3 },
        { FA_MASK_CAUSAL, 0, 0, FA_OFFSET, INT_MAX, -128, 256 },
        { FA_MASK_CAUSAL, 0, 0, FA_OFFSET, INT_MIN, -128, -128 },
        { FA_MASK_WINDOW, 10, 20, 0, 0, 118, 148 },
        { FA_MASK_WINDOW, -1, 20, 0, 0, -128, 148 },
        { FA_MASK_WINDOW, 10, -1, 0, 0, 118, 256 },
        { FA_MASK_WINDOW, -1, -1, 0, 0, -128, 256 },
        { FA_MASK_WINDOW, INT_MAX, INT_MAX, 0, 0, -128, 256 },
        { FA_MASK_WINDOW, 0, 0, FA_OFFSET, INT_MAX, 256, 256 },
        { FA_MASK_WINDOW, 0, 0, FA_OFFSET, INT_MIN, -128, -128 },
        { FA_MASK_WINDOW, 3, 4, FA_TOP_LEFT, 0, -3, 4 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_args a = good();
        fa_call c;
        a.mask = rows[i].mask;
        a.window_left = rows[i].left;
        a.window_right = rows[i].right;
        a.diagonal = rows[i].diagonal;
        a.offset = rows[i].offset;
        cr_assert_eq(fa_check_args(&c, &a, true), FA_OK, "%s", fa_last_error());
        cr_expect(c.values.diag_lo == rows[i].lo && c.values.diag_hi == rows[i].hi, "row %zu: %d %d", i, c.values.diag_lo,
                  c.values.diag_hi);
    }
}

Test(runtime_call, workspace)
{
    fa_args a = good();
    fa_call c;
    const struct {
        void *at;
        size_t size;
        const char *field;
    } rows[] = { { NULL, 1000, "workspace is" }, { AT(6), 999, "workspace_size" }, { (char *)AT(6) + 128, 1000, "workspace is" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        a.workspace = rows[i].at;
        a.workspace_size = rows[i].size;
        cr_assert_eq(fa_check_args(&c, &a, true), FA_OK);
        cr_expect_eq(fa_check_workspace(&c, 0), FA_OK);
        cr_expect_eq(fa_check_workspace(&c, 1000), FA_INVALID);
        cr_expect(strstr(fa_last_error(), rows[i].field), "%zu: %s", i, fa_last_error());
    }
    a.workspace = AT(6);
    a.workspace_size = 1000;
    cr_assert_eq(fa_check_args(&c, &a, true), FA_OK);
    cr_assert_eq(fa_check_workspace(&c, 1000), FA_OK);
    for (int huge = 0; huge < 2; huge++) {
        a.workspace = huge ? AT(6) : (void *)(UINTPTR_MAX - 255);
        a.workspace_size = huge ? SIZE_MAX : 1000;
        cr_assert_eq(fa_check_args(&c, &a, true), FA_INVALID);
        cr_expect(strstr(fa_last_error(), "workspace") && strstr(fa_last_error(), "outside the address space"), "%s", fa_last_error());
    }
}

/* All that the arguments say is there, whether or not the kernel takes it, and on a repeat as on the first call. */
Test(runtime_call, a_workspace_lies_beside_the_tensors)
{
    enum { BYTES = 1 << 20 };
    static const struct {
        uintptr_t at;
        const char *told; /* NULL: it is right */
    } rows[] = { { 0x600000000, NULL },
                 { 0x100000000, "workspace overlaps q" },
                 { 0x200000000 - BYTES, NULL }, /* up to k */
                 { 0x200000000 - BYTES + 256, "workspace overlaps k" },
                 { 0x300000000 + 2 * 256 * 4 * 64 * 2, NULL }, /* after v */
                 { 0x300000000 + 2 * 256 * 4 * 64 * 2 - 256, "workspace overlaps v" },
                 { 0x400000000 + 256, "o overlaps workspace" },
                 { 0x500000000 + 2 * 8 * 128 * 4 - 256, "lse overlaps workspace" },
                 { 0x600000000, NULL } };
    for (int again = 0; again < 2; again++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            fa_args a = good();
            fa_repeat *r;
            a.workspace = (void *)rows[i].at, a.workspace_size = BYTES;
            if (again)
                cr_assert_eq(fa_repeat_check(&r, NULL), FA_INVALID);
            cr_expect_eq(fa_repeat_check(&r, &a), rows[i].told ? FA_INVALID : FA_OK, "row %zu: %s", i, fa_last_error());
            if (rows[i].told)
                cr_expect(strstr(fa_last_error(), rows[i].told), "row %zu: %s", i, fa_last_error());
        }
    for (int by = 0; by < 2; by++) { /* its last byte, too */
        fa_args a = good();
        fa_call c;
        a.workspace = (char *)AT(2) - BYTES, a.workspace_size = BYTES + (size_t)by;
        cr_expect_eq(fa_check_args(&c, &a, true), by ? FA_INVALID : FA_OK, "%d: %s", by, fa_last_error());
    }
}

/* The size of a window, as configs are chosen by it. */
Test(runtime_call, the_window_of_a_problem)
{
    static const struct {
        int32_t mask, left, right, sk, window;
    } rows[] = {
        { FA_MASK_NONE, 5, 5, 256, 0 },       { FA_MASK_CAUSAL, 5, 5, 256, 0 },
        { FA_MASK_WINDOW, 128, 0, 256, 128 }, { FA_MASK_WINDOW, 128, 100, 256, 228 },
        { FA_MASK_WINDOW, -1, 0, 256, 256 },  { FA_MASK_WINDOW, 100, -1, 256, 256 },
        { FA_MASK_WINDOW, 0, 0, 256, 1 },     { FA_MASK_WINDOW, 4096, 0, 256, 256 },
        { FA_MASK_WINDOW, 5, 0, 0, 1 },       { FA_MASK_WINDOW, INT_MAX, INT_MAX, 256, 256 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_args a = good();
        fa_problem p;
        a.mask = rows[i].mask, a.window_left = rows[i].left, a.window_right = rows[i].right, a.sk = rows[i].sk;
        cr_assert_eq(fa_problem_of(&a, &p), FA_OK, "%s", fa_last_error());
        cr_expect_eq(p.window, rows[i].window, "row %zu: %d", i, p.window);
    }
    cr_expect_eq(fa_problem_of(NULL, &(fa_problem){ 0 }), FA_INVALID);
    cr_expect_eq(fa_problem_of(&(fa_args)FA_ARGS_INIT, NULL), FA_INVALID);
}

/* Rows of a page table that is a slice of a wider one: from its first entry to the last that a sequence has. */
Test(runtime_call, a_page_table_ends_with_its_last_row)
{
    static const struct {
        int64_t stride;
        uint32_t flags;
        int64_t apart, bytes; /* entries from row to row, and bytes of all */
    } rows[] = { { 0, 0, 4, 3 * 4 * 4 },
                 { 4, 0, 4, 3 * 4 * 4 },
                 { 7, 0, 7, (2 * 7 + 4) * 4 },
                 { 7, FA_BROADCAST, 7, (2 * 7 + 4) * 4 },
                 { 0, FA_BROADCAST, 0, 4 * 4 }, /* one row for all */
                 { INT32_MAX, 0, INT32_MAX, (2ll * INT32_MAX + 4) * 4 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int side = 0; side < 2; side++)
            for (int by = 0; by < 2; by++) {
                fa_args a = good();
                fa_repeat *r;
                a.b = 3, a.sq = 2, a.hq = a.hkv = 1, a.sk = 50, a.lse = NULL, a.flags = rows[i].flags;
                a.seqlens_k = AT(7), a.page_size = 16, a.pages = 9;
                a.page_table_stride = rows[i].stride;
                a.page_table = AT(40);
                for (int again = 0; again < 2; again++)
                    cr_expect_eq(fa_repeat_check(&r, &a), FA_OK, "row %zu: %s", i, fa_last_error());
                cr_expect_eq(r->call.values.page_table_stride, rows[i].apart, "row %zu: %d", i, r->call.values.page_table_stride);
                /* o, of 3 * 2 * 64 elements of 2 bytes, up to it or from its end on; then one element nearer */
                a.o.ptr = side ? (char *)AT(40) + rows[i].bytes - 2 * by : (char *)AT(40) - 3 * 2 * 64 * 2 + 2 * by;
                cr_expect_eq(fa_repeat_check(&r, &a), by ? FA_INVALID : FA_OK, "row %zu, side %d, by %d: %s", i, side, by, fa_last_error());
                cr_expect(!by || strstr(fa_last_error(), "o overlaps page_table"), "%s", fa_last_error());
            }
    fa_args a = good(); /* between its rows */
    fa_call c;
    a.b = 2, a.sq = 1, a.hq = a.hkv = 1, a.sk = 50, a.lse = NULL;
    a.seqlens_k = AT(7), a.page_size = 16, a.pages = 9, a.page_table = AT(40), a.page_table_stride = 4 + 64;
    a.o = (fa_tensor){ (char *)AT(40) + 16, 64, 64, 64 }; /* 256 bytes of 256 */
    cr_expect_eq(fa_check_args(&c, &a, true), FA_OK, "%s", fa_last_error());
    a.o.ptr = (char *)a.o.ptr + 2;
    cr_expect_eq(fa_check_args(&c, &a, true), FA_INVALID);
    a.page_table_stride = -1;
    cr_expect_eq(fa_check_args(&c, &a, true), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "page_table_stride is -1") && strstr(fa_last_error(), "FA_BROADCAST"), "%s", fa_last_error());
    a.page_table_stride = INT32_MAX + 1ll;
    cr_expect_eq(fa_check_args(&c, &a, true), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "page_table_stride is 2147483648; accepted with sk=50 and page_size=16: 4 to 2^31 - 1"), "%s",
              fa_last_error());
    a.b = INT32_MAX, a.page_table_stride = INT32_MAX;
    cr_expect_eq(fa_check_args(&c, &a, true), FA_INVALID, "more bytes than there are addresses");
    a.b = 2, a.o = (fa_tensor){ AT(4), 0, 0, 0 };
    for (int by = -1; by < 2; by++) { /* three whole pages, and a token less or more */
        a.sk = 48 + by, a.page_table_stride = 3;
        cr_expect_eq(fa_check_args(&c, &a, true), by > 0 ? FA_INVALID : FA_OK, "sk=%d: %s", a.sk, fa_last_error());
        a.page_table_stride = 0;
        cr_expect_eq(fa_check_args(&c, &a, true), FA_OK, "%s", fa_last_error());
        cr_expect_eq(c.values.page_table_stride, by > 0 ? 4 : 3, "sk=%d: %d", a.sk, c.values.page_table_stride);
    }
}

Test(runtime_call, a_workspace_is_made_once)
{
    cr_expect_eq(fa_workspace_init(ctx, AT(6), 1 << 20, (fa_stream)AT(9)), FA_OK, "%s", fa_last_error());
    cr_expect(fake_filled().at == (uint64_t)(uintptr_t)AT(6) && fake_filled().words == 16 << 10, "its counters alone: %zu words",
              (size_t)fake_filled().words);
    cr_expect_eq(fa_workspace_init(ctx, AT(7), 64 << 10, (fa_stream)AT(9)), FA_OK, "%s", fa_last_error());
    cr_expect(fake_filled().at == (uint64_t)(uintptr_t)AT(7) && fake_filled().words == 16 << 10);
    for (size_t bytes = 1; bytes < 64 << 10; bytes = bytes < 1024 ? bytes * 4 : bytes + 0xfbff) {
        cr_expect_eq(fa_workspace_init(ctx, AT(8), bytes, (fa_stream)AT(9)), FA_INVALID, "its counters do not fit: %zu", bytes);
        cr_expect(strstr(fa_last_error(), "size: ") && strstr(fa_last_error(), "65536"), "%s", fa_last_error());
    }
    cr_expect_eq(fake_filled().at, (uint64_t)(uintptr_t)AT(7), "nothing was written");
    cr_expect_eq(fa_workspace_init(ctx, NULL, 0, NULL), FA_OK, "nothing is to be made of nothing");
    cr_expect_eq(fa_workspace_init(ctx, NULL, 1 << 20, NULL), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "workspace"), "%s", fa_last_error());
    cr_expect_eq(fa_workspace_init(ctx, (char *)AT(6) + 16, 1 << 20, NULL), FA_INVALID);
    cr_expect_eq(fa_workspace_init(NULL, AT(6), 1 << 20, NULL), FA_INVALID);
}
