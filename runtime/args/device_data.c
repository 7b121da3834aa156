/* device_data: lists fetched, then the rules between them. */
#include "device_data.h"
#include "gen/error.h"
#include "gen/pairs.h"
#include "runtime/context/driver_cuda.h"
#include <stdlib.h>
#include <string.h>

/* Host copies of a call's lists, by operand; NULL = it has none there. */
typedef struct lists {
    const fa_call *call;
    int32_t *of[FA_OPERANDS_MAX];
} lists;

static const int32_t *list(const lists *l, const char *name)
{
    int i = fa_operand_index(l->call->op, name);
    return i >= 0 ? l->of[i] : NULL;
}

/* From the first element to the last; too many for any memory where they are more than 64 bits count. */
static size_t bytes_of(const fa_call *call, const fa_operand *o)
{
    size_t n = 1, row = o->row ? (size_t)call->sizes.of[o->row] : 0;
    fa_dims dims;
    fa_operand_dims(&dims, o, &call->sizes);
    if (o->row && dims.of[0] && row)
        dims.of[0]--; /* the last row has no gap after it */
    for (int k = 0; k < 4; k++)
        if (__builtin_mul_overflow(n, (size_t)dims.of[k], &n))
            return SIZE_MAX / 2;
    return n + row < SIZE_MAX / 8 ? (n + row) * sizeof(int32_t) : SIZE_MAX / 2;
}

static fa_status fetch(const cu_driver *d, lists *l, int i, CUstream stream)
{
    const fa_operand *o = &l->call->op->operand[i];
    uint64_t address = l->call->values.operand[i].address;
    if (o->type != FA_TYPE_I32 || !address)
        return FA_OK;
    size_t bytes = bytes_of(l->call, o);
    if (!bytes)
        return FA_OK;
    l->of[i] = malloc(bytes);
    if (!l->of[i])
        return fa_fail(FA_NOMEM, "args: %s: %zu bytes of host memory to look at it", o->name, bytes);
    return fa_wrap(fa_driver_check(d, d->cuMemcpyDtoHAsync(l->of[i], address, bytes, stream), "cuMemcpyDtoHAsync"), "args: %s", o->name);
}

/* Of queries or keys. */
typedef struct side {
    const char *name;                  /* "q" */
    const int32_t *bounds, *lengths;   /* NULL = not given */
    int32_t sequences, longest, total; /* as the host says */
} side;

static int32_t length(const side *s, int32_t i)
{
    return s->lengths ? s->lengths[i] : s->bounds ? s->bounds[i + 1] - s->bounds[i] : s->longest;
}

static fa_status check_bounds(const side *s)
{
    const int32_t *at = s->bounds;
    for (int32_t i = 0; at && i <= s->sequences; i++) {
        if (at[i] < 0 || at[i] > s->total)
            return fa_fail(FA_INVALID, "args: cu_seqlens_%s[%d] is %d; accepted with total_%s=%d: 0 to %d", s->name, i, at[i], s->name,
                           s->total, s->total);
        if (i && at[i] < at[i - 1])
            return fa_fail(FA_INVALID, "args: cu_seqlens_%s[%d] is %d; accepted after cu_seqlens_%s[%d]=%d: as much or more", s->name, i,
                           at[i], s->name, i - 1, at[i - 1]);
        if (i && !s->lengths && at[i] - at[i - 1] > s->longest)
            return fa_fail(FA_INVALID, "args: cu_seqlens_%s[%d] is %d; accepted after cu_seqlens_%s[%d]=%d with s%s=%d: at most %lld",
                           s->name, i, at[i], s->name, i - 1, at[i - 1], s->name, s->longest, (long long)at[i - 1] + s->longest);
    }
    return FA_OK;
}

static fa_status check_lengths(const side *s)
{
    for (int32_t i = 0; s->lengths && i < s->sequences; i++) {
        int32_t n = s->lengths[i];
        if (n < 0 || n > s->longest)
            return fa_fail(FA_INVALID, "args: seqlens_%s[%d] is %d; accepted with s%s=%d: 0 to %d", s->name, i, n, s->name, s->longest,
                           s->longest);
        if (s->bounds && n > s->bounds[i + 1] - s->bounds[i])
            return fa_fail(FA_INVALID, "args: seqlens_%s[%d] is %d; accepted between cu_seqlens_%s[%d]=%d and the next, %d: 0 to %d",
                           s->name, i, n, s->name, i, s->bounds[i], s->bounds[i + 1], s->bounds[i + 1] - s->bounds[i]);
    }
    return FA_OK;
}

/* New keys of a sequence that are stored: [first, end). */
static fa_range appended(const side *q, const side *k, int32_t i)
{
    int64_t end = length(k, i), first = end - length(q, i);
    return (fa_range){ first > 0 ? first : 0, end - 1 };
}

/* Which of two rows of one place would stay depends on the order in which blocks run: no two sequences append to one. */
static fa_status check_append(const int32_t *table, const fa_values *v, const side *q, const side *k)
{
    size_t rows = (size_t)v->pages * (size_t)(v->page_size > 0 ? v->page_size : 0);
    uint8_t *taken = table ? calloc(rows / 8 + 1, 1) : NULL;
    fa_status st = table && !taken ? fa_fail(FA_NOMEM, "args: page_table: %zu bytes of host memory to look at it", rows / 8 + 1) : FA_OK;
    for (int32_t i = 0; st == FA_OK && table && i < v->b; i++) {
        fa_range new = appended(q, k, i);
        for (int64_t j = new.first; j <= new.last &&st == FA_OK; j++) {
            int32_t page = table[(int64_t)i * v->page_table_stride + j / v->page_size];
            if (page < 0 || page >= v->pages)
                continue;
            size_t row = (size_t)page * (size_t)v->page_size + (size_t)(j % v->page_size);
            if (taken[row / 8] >> row % 8 & 1)
                st = fa_fail(FA_INVALID,
                             "args: page_table[%d][%lld] is %d, and another new key has token %lld of that page; accepted: pages of which "
                             "no two new keys have one token",
                             i, (long long)(j / v->page_size), page, (long long)(j % v->page_size));
            taken[row / 8] |= (uint8_t)(1 << row % 8);
        }
    }
    free(taken);
    return st;
}

/* Page numbers of keys that some row sees: the others are not read. */
static fa_status check_table(const int32_t *table, const fa_values *v, const side *q, const side *k)
{
    for (int32_t i = 0; table && i < v->b; i++) {
        fa_pairs pairs = fa_pairs_of((fa_shift){ v->relative, v->shift_lo, v->shift_hi }, length(q, i), length(k, i));
        fa_range seen = fa_pairs_all_keys(&pairs);
        for (int64_t n = seen.first / v->page_size; seen.first <= seen.last && n <= seen.last / v->page_size; n++) {
            int32_t page = table[(int64_t)i * v->page_table_stride + n];
            if (page < 0 || page >= v->pages)
                return fa_fail(FA_INVALID,
                               "args: page_table[%d][%lld] is %d, and rows see keys of that page; accepted with pages=%d: 0 to %d", i,
                               (long long)n, page, v->pages, v->pages - 1);
        }
    }
    return FA_OK;
}

static fa_status check_lists(const lists *l)
{
    const fa_values *v = &l->call->values;
    const side sides[2] = {
        { "q", list(l, "cu_seqlens_q"), list(l, "seqlens_q"), v->b, v->sq, v->total_q },
        { "k", list(l, "cu_seqlens_k"), list(l, "seqlens_k"), v->b, v->sk, v->total_k },
    };
    fa_status st = FA_OK;
    for (int i = 0; i < 2 && st == FA_OK; i++) {
        st = check_bounds(&sides[i]);
        if (st == FA_OK)
            st = check_lengths(&sides[i]);
    }
    if (st != FA_OK)
        return st;
    return (l->call->op->op == FA_APPEND ? check_append : check_table)(list(l, "page_table"), v, &sides[0], &sides[1]);
}

/* Whether device memory can be looked at: not under capture. FA_CAPTURE where the option insists. */
static fa_status can_look(const fa_context *ctx, fa_stream stream, bool *can)
{
    bool captured;
    fa_status st = fa_context_captured(ctx, (CUstream)stream, &captured);
    *can = st == FA_OK && !captured;
    if (st == FA_OK && captured && ctx->check_device_data == 1)
        st = fa_fail(FA_CAPTURE, "options: check_device_data is 1, and device memory cannot be looked at while the stream is captured; "
                                 "accepted under capture: 0, -1");
    return st;
}

fa_status fa_device_data_check(const fa_context *ctx, const fa_call *call, fa_stream stream)
{
    const cu_driver *d = ctx->device.driver;
    lists l = { .call = call };
    bool can;
    fa_status st = can_look(ctx, stream, &can);
    if (!can)
        return st;
    CUstreamCaptureMode mode;
    if ((st = fa_driver_relax(d, &mode)) != FA_OK)
        return st;
    uint64_t has = call->has;
    for (int i; st == FA_OK && (i = fa_operands_next(&has)) >= 0;)
        st = fetch(d, &l, i, (CUstream)stream);
    CUresult waited = d->cuStreamSynchronize((CUstream)stream); /* after a failure, too: copies may be under way into what is freed below */
    fa_driver_restore(d, mode);
    if (st == FA_OK)
        st = fa_driver_check(d, waited, "cuStreamSynchronize");
    if (st == FA_OK)
        st = check_lists(&l);
    for (int i = 0; i < FA_OPERANDS_MAX; i++)
        free(l.of[i]);
    return st;
}

fa_status fa_device_data_counters(const fa_context *ctx, uint64_t at, size_t bytes, fa_status wrong, fa_stream stream)
{
    const cu_driver *d = ctx->device.driver;
    size_t n = bytes / sizeof(uint32_t), i = 0;
    bool can;
    fa_status st = can_look(ctx, stream, &can);
    if (!can)
        return st;
    uint32_t *word = malloc(bytes);
    if (!word)
        return fa_fail(FA_NOMEM, "counters: %zu bytes of host memory to look at them", bytes);
    CUstreamCaptureMode mode;
    if ((st = fa_driver_relax(d, &mode)) != FA_OK) {
        free(word);
        return st;
    }
    st = fa_driver_check(d, d->cuMemcpyDtoHAsync(word, at, bytes, (CUstream)stream), "cuMemcpyDtoHAsync");
    CUresult waited = d->cuStreamSynchronize((CUstream)stream);
    fa_driver_restore(d, mode);
    if (st == FA_OK)
        st = fa_driver_check(d, waited, "cuStreamSynchronize");
    st = fa_wrap(st, "counters");
    while (st == FA_OK && i < n && !word[i])
        i++;
    if (st == FA_OK && i < n)
        st = wrong == FA_INVALID
                 ? fa_fail(wrong,
                           "args: workspace: counter %zu of the one at %#llx is %#x; accepted: 0 in its first %zu bytes, as "
                           "fa_workspace_init() makes them and each launch that succeeds leaves them",
                           i, (unsigned long long)at, word[i], bytes)
                 : fa_fail(wrong,
                           "counter %zu at %#llx is %#x; expected: 0 before a launch and after it. A kernel left it so, or two "
                           "streams have one workspace",
                           i, (unsigned long long)at, word[i]);
    free(word);
    return st;
}
