/* ragged: lengths and tables drawn by a seed. */
#include "ragged.h"
#include "gen/batch_kind.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) ((int32_t)(sizeof(a) / sizeof *(a)))

/* clang-format off */
static const struct { int32_t form; size_t at; const char *name; } forms[] = {
    { FA_FORM_CU_Q, offsetof(fa_args, cu_seqlens_q), "cu_q" },
    { FA_FORM_CU_K, offsetof(fa_args, cu_seqlens_k), "cu_k" },
    { FA_FORM_SEQLENS_Q, offsetof(fa_args, seqlens_q), "seqlens_q" },
    { FA_FORM_SEQLENS_K, offsetof(fa_args, seqlens_k), "seqlens_k" },
    { FA_FORM_PAGES, offsetof(fa_args, page_table), "pages" },
};
/* clang-format on */

const char *fa_spread_name(int spread)
{
    static const char *const names[FA_SPREAD_KINDS] = { "full", "uniform", "log", "zipf", "equal", "edges" };
    return spread >= 0 && spread < FA_SPREAD_KINDS ? names[spread] : "?";
}

bool fa_ragged_has(const fa_ragged_how *how, const fa_operand *o)
{
    for (int i = 0; i < COUNT(forms); i++)
        if (forms[i].at == o->at)
            return how->forms & forms[i].form;
    return false;
}

fa_ragged_how fa_ragged_typical(const fa_problem *p, uint64_t seed)
{
    fa_ragged_how how = { .seed = seed };
    bool pages = p->features & FA_FEATURE_PAGES;
    if (p->features & FA_FEATURE_LENGTHS) {
        how.batch = fa_problem_batch_kind(p);
        how.forms = how.batch == FA_BATCH_PROMPTS && !pages ? FA_FORM_CU_K : FA_FORM_SEQLENS_K;
        how.forms |= how.batch ? FA_FORM_CU_Q : 0;
        how.k = FA_SPREAD_UNIFORM;
        how.quantiles = 1;
    }
    if (pages) {
        how.forms |= FA_FORM_PAGES;
        how.page_size = p->page;
    }
    return how;
}

int fa_ragged_print(char *buf, size_t n, const fa_ragged_how *how)
{
    static const char *const batches[FA_BATCH_KINDS] = { "", " prompts", " chunks", " mixed" };
    char names[80] = "", pages[120] = "";
    for (int i = 0, at = 0; i < COUNT(forms); i++)
        if (how->forms & forms[i].form)
            at += snprintf(names + at, sizeof names - (size_t)at, "%s%s", at ? "+" : "", forms[i].name);
    if (how->forms & FA_FORM_PAGES)
        snprintf(pages, sizeof pages, " page_size=%d spare=%d wide=%d shared=%d%s", how->page_size, how->spare, how->wide, how->shared,
                 how->foreign ? " foreign" : "");
    return snprintf(buf, n, " lengths=%s%s q:%s k:%s%s idle=%d gap=%d%s%s", *names ? names : "none", batches[how->batch],
                    fa_spread_name(how->q), fa_spread_name(how->k), how->quantiles ? " quantiles" : "", how->idle, how->gap,
                    how->wild ? " wild" : "", pages);
}

/* ---- lengths ---- */

/* The length that a share u in (0, 1] of all does not exceed. */
static int32_t quantile(int32_t spread, double u, int32_t b, int32_t n)
{
    double x = spread == FA_SPREAD_LOG ? pow(n, u) : spread == FA_SPREAD_ZIPF ? n / (1 + floor(b * (1 - u) + 1e-9)) : spread ? n * u : n;
    int32_t length = (int32_t)ceil(x - 1e-9);
    return length < 1 ? 1 : length < n ? length : n;
}

static int32_t pick_edge(fa_random *r, int32_t n, int32_t page)
{
    static const int32_t tiles[] = { 8, 16, 32, 64, 128, 256 };
    int32_t kind = fa_random_below(r, 8), length;
    if (kind < 3)
        length = kind < 2 ? kind : n;
    else if (kind < 6 && page)
        length = page * fa_random_within(r, 1, n / page + 1) + fa_random_within(r, -1, 1);
    else
        length = tiles[fa_random_below(r, COUNT(tiles))] * fa_random_within(r, 1, 2) + fa_random_within(r, -1, 1);
    return length < n ? length : n;
}

static void swap(int32_t *a, int32_t *b)
{
    int32_t x = *a;
    *a = *b;
    *b = x;
}

/* beside: follows in the same order, or NULL. */
static void shuffle(int32_t *x, int32_t *beside, int32_t n, fa_random *r)
{
    for (int32_t i = n - 1; i > 0; i--) {
        int32_t k = fa_random_below(r, i + 1);
        swap(&x[i], &x[k]);
        if (beside)
            swap(&beside[i], &beside[k]);
    }
}

static void draw_lengths(int32_t *length, int32_t b, int32_t n, int32_t spread, const fa_ragged_how *how, fa_random *r)
{
    double same = fa_random_unit(r);
    bool quantiles = how->quantiles && spread != FA_SPREAD_EDGES;
    for (int32_t i = 0; i < b; i++) {
        double u = quantiles ? (i + 1.0) / b : spread == FA_SPREAD_EQUAL ? same : fa_random_unit(r);
        length[i] = n < 1 ? 0 : spread == FA_SPREAD_EDGES ? pick_edge(r, n, how->page_size) : quantile(spread, u, b, n);
    }
    if (quantiles)
        shuffle(length, NULL, b, r);
}

/* Of chunks and of mixed batches: all rows for each that takes a chunk. */
static void deal_queries(int32_t *q, int32_t b, int32_t longest, int32_t batch)
{
    int32_t chunks = b > FA_BATCH_TOKENS ? b / FA_BATCH_TOKENS : 1;
    for (int32_t i = 0; i < b; i++)
        q[i] = batch == FA_BATCH_CHUNKS ? longest : longest > 0;
    for (int32_t i = 0; i < chunks && batch == FA_BATCH_MIXED; i++) {
        int64_t middle = (int64_t)b * (2 * i + 1) / (2 * chunks); /* of the i-th of so many equal parts */
        q[middle > 0 ? middle - 1 : 0] = longest;
    }
}

/* Queries and keys that belong together. With quantiles sequence i has the share (i + 1) / b, until they are shuffled. */
static void draw_batch(int32_t *q, int32_t *k, const fa_args *a, const fa_ragged_how *how, fa_random *r)
{
    int32_t b = a->b, longest = a->sq < a->sk ? a->sq : a->sk;
    double same = fa_random_unit(r);
    deal_queries(q, b, longest, how->batch);
    for (int32_t i = 0; i < b; i++) {
        double u = how->quantiles ? (i + 1.0) / b : how->k == FA_SPREAD_EQUAL ? same : fa_random_unit(r);
        int32_t own = how->batch == FA_BATCH_PROMPTS ? 0 : q[i], most = (how->batch == FA_BATCH_PROMPTS ? longest : a->sk) - own;
        k[i] = own + (most > 0 ? quantile(how->k, u, b, most) : 0);
        q[i] = how->batch == FA_BATCH_PROMPTS ? k[i] : own;
    }
    shuffle(k, q, b, r);
}

/* Where each begins, one entry more than sequences; returns the rows to allocate. */
static int32_t lay_end_to_end(int32_t *cu, const int32_t *length, int32_t b, int32_t before, int32_t after, fa_random *r)
{
    int32_t at = 0;
    for (int32_t i = 0; i < b; i++) {
        at += fa_random_below(r, before + 1);
        cu[i] = at;
        at += length[i];
    }
    cu[b] = at;
    at += fa_random_below(r, after + 1);
    return at ? at : 1;
}

/* ---- tables ---- */

static int32_t no_page(fa_random *r, int32_t pages)
{
    const int32_t ids[] = { -1, pages, INT32_MAX, INT32_MIN, pages + 3, 1 << 24, -pages };
    return ids[fa_random_below(r, COUNT(ids))];
}

int32_t fa_ragged_unused(fa_random *r, int32_t pages)
{
    return fa_random_below(r, 3) ? no_page(r, pages) : fa_random_below(r, pages);
}

static int32_t entries_of(int32_t length, int32_t page_size)
{
    return length / page_size + (length % page_size != 0);
}

/* Every entry of the table, of pages in shuffled order. */
static void draw_table(fa_args *a, int32_t *table, int32_t *order, int64_t stride, const int32_t *length, const fa_ragged_how *how,
                       fa_random *r)
{
    int32_t next = 0, common = a->b > 1 && how->shared && a->op != FA_APPEND ? fa_random_within(r, 1, how->shared) : 0;
    for (int32_t i = 0; i < a->pages; i++)
        order[i] = i;
    shuffle(order, NULL, a->pages, r);
    for (int32_t i = 0; i < a->b; i++) {
        int32_t *row = table + i * stride, used = entries_of(length[i], a->page_size);
        for (int32_t k = 0; k < stride; k++) {
            if (k < used && i && k < common && k < entries_of(length[0], a->page_size))
                row[k] = table[k];
            else if (k < used)
                row[k] = how->foreign && fa_random_below(r, 5) == 0 ? no_page(r, a->pages) : order[next++];
            else
                row[k] = fa_ragged_unused(r, a->pages);
        }
    }
}

static fa_status make_table(fa_args *a, const int32_t *length, const fa_ragged_how *how, fa_random *r)
{
    int64_t least, pages = how->spare;
    a->page_size = how->page_size;
    least = entries_of(a->sk, a->page_size);
    for (int32_t i = 0; i < a->b; i++)
        pages += entries_of(length[i], a->page_size);
    a->pages = (int32_t)(pages ? pages : 1);
    a->page_table_stride = how->wide ? least + how->wide : 0;
    int64_t stride = least + how->wide;
    int32_t *table = malloc(((size_t)a->b * (size_t)stride + 1) * sizeof *table), *order = malloc((size_t)a->pages * sizeof *order);
    a->page_table = table;
    if (table && order)
        draw_table(a, table, order, stride, length, how, r);
    free(order);
    return table && order ? FA_OK : fa_fail(FA_NOMEM, "no memory for a page table of %d x %lld entries", a->b, (long long)stride);
}

/* ---- all of it ---- */

/* Values out of range in place of one in four. */
static void make_wild(int32_t *x, int32_t n, int32_t most, fa_random *r)
{
    const int32_t values[] = { -1, INT32_MIN, INT32_MAX, most + 1, most + 17, -most };
    for (int32_t i = 0; i < n; i++)
        if (fa_random_below(r, 4) == 0)
            x[i] = values[fa_random_below(r, COUNT(values))];
}

static int32_t *room(int32_t n)
{
    return calloc((size_t)n + 1, sizeof(int32_t));
}

/* One side: its lengths, and where they begin. */
static fa_status draw_side(const int32_t *length, const int32_t **cu, const int32_t **lengths, int32_t *total, int32_t b, bool has_cu,
                           bool has_lengths, const fa_ragged_how *how, fa_random *r)
{
    if (has_cu) {
        int32_t *first = room(b);
        *cu = first;
        if (!first)
            return fa_fail(FA_NOMEM, "no memory for the first rows of %d sequences", b);
        *total = lay_end_to_end(first, length, b, has_lengths ? how->gap : 0, how->gap, r);
    }
    if (has_lengths) {
        int32_t *copy = room(b);
        *lengths = copy;
        if (!copy)
            return fa_fail(FA_NOMEM, "no memory for the lengths of %d sequences", b);
        memcpy(copy, length, (size_t)b * sizeof *copy);
    }
    return FA_OK;
}

/* First rows stay where an output has them: sequences that share some would write them both. Those of keys have gradients, or are appended.
 */
static void make_wild_fields(fa_args *a, fa_random *r)
{
    if (a->seqlens_q)
        make_wild((int32_t *)a->seqlens_q, a->b, a->sq, r);
    if (a->seqlens_k && !(a->op == FA_APPEND && a->page_table)) /* two might name one page */
        make_wild((int32_t *)a->seqlens_k, a->b, a->sk, r);
    if (a->cu_seqlens_k && a->op != FA_BACKWARD && a->op != FA_APPEND)
        make_wild((int32_t *)a->cu_seqlens_k, a->b + 1, a->total_k, r);
}

fa_status fa_ragged_draw(fa_ragged *out, const fa_args *shape, const fa_ragged_how *how)
{
    fa_random r = { fa_random_mix(how->seed ^ 0x726167676564) };
    fa_args *a = &out->args;
    int32_t has = how->forms, b = shape->b, *q = room(b), *k = room(b);
    bool tells_q = has & (FA_FORM_CU_Q | FA_FORM_SEQLENS_Q), tells_k = has & (FA_FORM_CU_K | FA_FORM_SEQLENS_K);
    fa_status st = q && k ? FA_OK : fa_fail(FA_NOMEM, "no memory for the lengths of %d sequences", b);
    *a = *shape;
    if (st == FA_OK && how->batch)
        draw_batch(q, k, a, how, &r);
    if (st == FA_OK && !how->batch) {
        draw_lengths(q, b, a->sq, tells_q ? how->q : FA_SPREAD_FULL, how, &r);
        draw_lengths(k, b, a->sk, tells_k ? how->k : FA_SPREAD_FULL, how, &r);
    }
    if (st == FA_OK) {
        for (int32_t i = b > how->idle ? b - how->idle : 0; i < b; i++)
            q[i] = k[i] = 0;
        st = draw_side(q, &a->cu_seqlens_q, &a->seqlens_q, &a->total_q, b, has & FA_FORM_CU_Q, has & FA_FORM_SEQLENS_Q, how, &r);
    }
    if (st == FA_OK)
        st = draw_side(k, &a->cu_seqlens_k, &a->seqlens_k, &a->total_k, b, has & FA_FORM_CU_K, has & FA_FORM_SEQLENS_K, how, &r);
    if (st == FA_OK && has & FA_FORM_PAGES)
        st = make_table(a, k, how, &r);
    if (st == FA_OK && how->wild)
        make_wild_fields(a, &r);
    free(q);
    free(k);
    if (st != FA_OK)
        fa_ragged_close(out);
    return st;
}

fa_status fa_ragged_of(fa_ragged *out, const fa_problem *p, uint64_t seed, int32_t lengths)
{
    fa_ragged_how how = fa_ragged_typical(p, seed);
    fa_args shape = fa_operation_args(p);
    *out = (fa_ragged){ .args = { .size = 0 } };
    how.k = lengths ? lengths - 1 : how.k;
    return how.forms ? fa_ragged_draw(out, &shape, &how) : FA_OK;
}

fa_status fa_ragged_copy(fa_ragged *out, const fa_ragged *from)
{
    const fa_args *a = &from->args;
    size_t b = (size_t)a->b;
    size_t table = b * (size_t)(a->page_table_stride || a->page_size < 1 ? a->page_table_stride : entries_of(a->sk, a->page_size));
    out->args = *a;
    for (int i = 0; i < COUNT(forms); i++) {
        const void *x = *(void *const *)((const char *)a + forms[i].at);
        bool bounds = forms[i].form & (FA_FORM_CU_Q | FA_FORM_CU_K);
        size_t n = sizeof(int32_t) * (forms[i].form == FA_FORM_PAGES ? table : bounds ? b + 1 : b);
        void *copy = x ? malloc(n + 1) : NULL;
        if (copy)
            memcpy(copy, x, n);
        *(void **)((char *)&out->args + forms[i].at) = copy;
    }
    for (int i = 0; i < COUNT(forms); i++)
        if (!*(void **)((char *)&out->args + forms[i].at) != !*(void *const *)((const char *)a + forms[i].at)) {
            fa_ragged_close(out);
            return fa_fail(FA_NOMEM, "no memory for lengths and tables of %zu sequences", b);
        }
    return FA_OK;
}

void fa_ragged_close(fa_ragged *r)
{
    for (int i = 0; i < COUNT(forms); i++) {
        void **at = (void **)((char *)&r->args + forms[i].at);
        free(*at);
        *at = NULL;
    }
}

void fa_ragged_apply(const fa_ragged *r, fa_args *a)
{
    a->total_q = r->args.total_q;
    a->total_k = r->args.total_k;
    a->page_size = r->args.page_size;
    a->pages = r->args.pages;
    a->page_table_stride = r->args.page_table_stride;
}
