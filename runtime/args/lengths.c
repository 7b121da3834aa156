/* lengths: rules between the fields, and what follows from them. */
#include "lengths.h"
#include "gen/error.h"
#include "gen/problem.h"

/* Entries of the page table that a sequence of the longest length has. */
static int64_t table_entries(const fa_args *a)
{
    return a->page_size > 0 ? ((int64_t)a->sk + a->page_size - 1) / a->page_size : 0;
}

int32_t fa_lengths_table_stride(const fa_args *a)
{
    return (int32_t)(a->page_table_stride || a->flags & FA_BROADCAST ? a->page_table_stride : table_entries(a));
}

/* longest: the sq or sk beside it. */
static fa_status check_packed(const char *side, const int32_t *cu, int32_t total, int32_t longest, int32_t b)
{
    if (total < 0)
        return fa_fail(FA_INVALID, "args: total_%s is %d; accepted: rows that are allocated, from 0", side, total);
    if (total && !cu)
        return fa_fail(FA_INVALID, "args: total_%s is %d and cu_seqlens_%s is NULL; accepted: both or neither", side, total, side);
    if (cu && !total && longest > 0 && b > 0)
        return fa_fail(FA_INVALID,
                       "args: total_%s is 0 and cu_seqlens_%s is set with s%s=%d and b=%d; accepted: rows that are allocated, from 1; of a "
                       "batch without any s%s is 0, or b",
                       side, side, side, longest, b, side);
    return FA_OK;
}

static fa_status check_no_pages(const fa_args *a)
{
    if (a->op == FA_APPEND && a->slots) /* which number the tokens of all pages */
        return a->page_table_stride ? fa_fail(FA_INVALID, "args: page_table_stride is %lld and page_table is NULL; accepted: 0",
                                              (long long)a->page_table_stride)
                                    : FA_OK;
    const struct {
        const char *name;
        int64_t v;
    } rows[] = { { "page_table_stride", a->page_table_stride }, { "page_size", a->page_size }, { "pages", a->pages } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].v)
            return fa_fail(FA_INVALID, "args: %s is %lld and page_table is NULL; accepted: 0, or a page table", rows[i].name,
                           (long long)rows[i].v);
    return FA_OK;
}

static fa_status check_pages(const fa_args *a)
{
    if (a->cu_seqlens_k)
        return fa_fail(FA_INVALID, "args: page_table and cu_seqlens_k are set; accepted: one of them");
    if (!a->seqlens_k)
        return fa_fail(FA_INVALID, "args: page_table is set and seqlens_k is NULL; accepted with pages: lengths in device memory");
    if (a->page_size < 1)
        return fa_fail(FA_INVALID, "args: page_size is %d; accepted: tokens of a page, from 1", a->page_size);
    if (a->pages < 0 || (!a->pages && a->sk > 0 && a->b > 0))
        return fa_fail(FA_INVALID,
                       "args: pages is %d with sk=%d and b=%d; accepted: pages that are allocated, from 1; of a batch without "
                       "any sk is 0, or b",
                       a->pages, a->sk, a->b);
    if (a->page_table_stride && (a->page_table_stride < table_entries(a) || a->page_table_stride > INT32_MAX))
        return fa_fail(FA_INVALID,
                       "args: page_table_stride is %lld; accepted with sk=%d and page_size=%d: %lld to 2^31 - 1, or 0 for that, with "
                       "FA_BROADCAST in flags for one row that all sequences share",
                       (long long)a->page_table_stride, a->sk, a->page_size, (long long)table_entries(a));
    return FA_OK;
}

fa_status fa_lengths_check(const fa_args *a)
{
    fa_status st = check_packed("q", a->cu_seqlens_q, a->total_q, a->sq, a->b);
    if (st == FA_OK)
        st = check_packed("k", a->cu_seqlens_k, a->total_k, a->sk, a->b);
    if (st == FA_OK)
        st = a->page_table ? check_pages(a) : check_no_pages(a);
    return st;
}

int32_t fa_lengths_page(const fa_args *a)
{
    int32_t most = a->page_size & -a->page_size;
    return most < FA_PAGE_MAX ? most : FA_PAGE_MAX;
}

void fa_lengths_sizes(fa_sizes *out, const fa_args *a)
{
    if (a->cu_seqlens_q) {
        out->of[FA_EXTENT_BATCH_Q] = 1;
        out->of[FA_EXTENT_ROWS_Q] = out->of[FA_EXTENT_TOTAL_Q] = a->total_q;
    }
    if (a->cu_seqlens_k) {
        out->of[FA_EXTENT_BATCH_K] = 1;
        out->of[FA_EXTENT_ROWS_K] = out->of[FA_EXTENT_TOTAL_K] = a->total_k;
    }
    if (a->page_table || (a->op == FA_APPEND && a->slots)) {
        out->of[FA_EXTENT_BATCH_K] = a->pages;
        out->of[FA_EXTENT_ROWS_K] = a->page_size;
    }
    if (a->page_table) {
        out->of[FA_EXTENT_TABLE] = fa_lengths_table_stride(a);
        out->of[FA_EXTENT_ENTRIES] = table_entries(a);
    }
    fa_sizes_scale(out);
}
