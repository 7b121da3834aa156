/* lengths: files of lengths, of first rows, of page tables. A kernel clamps what is out of range; a file with one is refused. */
#include "runtime/args/lengths.h"
#include "attend.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <stdlib.h>

/* Its type and its number of dimensions. */
static fa_status check_kind(const attend_inputs *in, const attend_args *a, const fa_operand *o)
{
    const cli_npy *t = &in->t[o->id];
    int rank = o->rank, row = (int)o->id;
    if (!cli_npy_has_integers(t))
        return fa_fail(FA_INVALID, "%s: elements are %s; accepted: int32, int64", a->file[row], cli_npy_type(t));
    if (t->n != rank)
        return fa_fail(FA_INVALID, "%s: %d dimension%s; accepted: %d, [%s]", a->file[row], t->n, t->n == 1 ? "" : "s", rank,
                       row == FA_ID_page_table                                  ? "b, pages of the longest"
                       : row == FA_ID_cu_seqlens_q || row == FA_ID_cu_seqlens_k ? "b + 1"
                                                                                : "b");
    return FA_OK;
}

static bool is_bounds(int row)
{
    return row == FA_ID_cu_seqlens_q || row == FA_ID_cu_seqlens_k;
}

/* The batch, on which all files agree. It is that of Q where Q is not packed, else that of the first file of integers. */
static fa_status find_batch(attend_inputs *in, const attend_args *a, const attend_shape *s)
{
    const fa_operation *op = fa_operation_find(FA_FORWARD);
    const char *from = attend_packed(a, false) ? NULL : a->file[FA_ID_q];
    int64_t b = from ? s->batch_q : 0;
    for (int i = 0; i < op->n; i++) {
        int row = (int)op->operand[i].id;
        if (op->operand[i].drawn != FA_DRAWN_SEQUENCES || !a->file[row])
            continue;
        fa_status st = check_kind(in, a, &op->operand[i]);
        int64_t n = st == FA_OK ? in->t[row].dim[0] - is_bounds(row) : 0;
        if (st != FA_OK)
            return st;
        if (!from && (n < 1 || n > FA_MAX_LENGTH))
            return fa_fail(FA_INVALID, "%s: %lld elements; accepted: %s", a->file[row], (long long)in->t[row].dim[0],
                           is_bounds(row) ? "b + 1, at least 2" : "b, at least 1");
        if (from && n != b)
            return fa_fail(FA_INVALID, "%s: %s%lld; accepted with %s: %lld%s", a->file[row],
                           row == FA_ID_page_table ? "rows of " : "elements, ", (long long)in->t[row].dim[0], from,
                           (long long)b + is_bounds(row), is_bounds(row) ? ", b + 1" : "");
        from = from ? from : a->file[row];
        b = n;
    }
    if (!attend_packed(a, true) && !a->file[FA_ID_page_table] && s->batch_k != b)
        return fa_fail(FA_INVALID, "%s: batch is %lld; accepted with %s: %lld", a->file[FA_ID_k], (long long)s->batch_k, from,
                       (long long)b);
    in->p.b = (int32_t)b;
    return FA_OK;
}

/* The file's values in host memory, where the launch's arguments name them. */
static fa_status take(attend_inputs *in, const attend_args *a, const fa_operand *o)
{
    int row = (int)o->id;
    int32_t *x = malloc((in->t[row].count + 1) * sizeof *x);
    if (!x)
        return fa_fail(FA_NOMEM, "%s: host memory", a->file[row]);
    fa_operand_set(o, &in->ragged.args, x, 0, 0, 0);
    for (size_t i = 0; i < in->t[row].count; i++) {
        int64_t v = cli_npy_integer(&in->t[row], i);
        if (v < INT32_MIN || v > INT32_MAX)
            return fa_fail(FA_INVALID, "%s: element %zu is %lld; accepted: 32 bits", a->file[row], i, (long long)v);
        x[i] = (int32_t)v;
    }
    return FA_OK;
}

/* Where packed sequences begin: not before the one in front ends, and within the rows that are there. */
static fa_status check_bounds(const int32_t *cu, int32_t b, int64_t total, const char *file)
{
    for (int32_t i = 0; i <= b; i++) {
        int32_t least = i ? cu[i - 1] : 0;
        if (cu[i] < least || cu[i] > total)
            return fa_fail(FA_INVALID, "%s: element %d is %d; accepted: %d to %lld%s", file, i, cu[i], least, (long long)total,
                           i ? ", none less than the one in front" : "");
    }
    return FA_OK;
}

/* One side; *longest: rows of the longest sequence, at least 1. most: rows that each has room for where it is not packed. */
static fa_status check_side(const int32_t *cu, const int32_t *lengths, int32_t b, int64_t total, int64_t most, const char *cu_file,
                            const char *lengths_file, int32_t *longest)
{
    fa_status st = cu ? check_bounds(cu, b, total, cu_file) : FA_OK;
    *longest = 1;
    for (int32_t i = 0; i < b && st == FA_OK; i++) {
        int64_t room = cu ? cu[i + 1] - cu[i] : most, n = lengths ? lengths[i] : room;
        if (n < 0 || n > room)
            return fa_fail(FA_INVALID, "%s: element %d is %lld; accepted: 0 to %lld, the rows that %s has for it", lengths_file, i,
                           (long long)n, (long long)room, cu ? cu_file : "the tensor");
        *longest = n > *longest ? (int32_t)n : *longest;
    }
    return st;
}

/* Entries in use; what is after them is not looked at. */
static fa_status check_table(const attend_inputs *in, const attend_args *a)
{
    const fa_args *r = &in->ragged.args;
    for (int32_t i = 0; i < in->p.b; i++)
        for (int64_t k = 0; k * r->page_size < r->seqlens_k[i]; k++) {
            int32_t page = r->page_table[i * r->page_table_stride + k];
            if (page < 0 || page >= r->pages)
                return fa_fail(FA_INVALID, "%s: element [%d, %lld] is %d; accepted: 0 to %d, as sequence %d has %d keys in pages of %d",
                               a->file[FA_ID_page_table], i, (long long)k, page, r->pages - 1, i, r->seqlens_k[i], r->page_size);
        }
    return FA_OK;
}

fa_status attend_lengths(attend_inputs *in, const attend_args *a, const attend_shape *s)
{
    const fa_operation *op = fa_operation_find(FA_FORWARD);
    fa_args *r = &in->ragged.args;
    fa_status st = find_batch(in, a, s);
    for (int i = 0; i < op->n && st == FA_OK; i++)
        if (op->operand[i].drawn == FA_DRAWN_SEQUENCES && a->file[op->operand[i].id])
            st = take(in, a, &op->operand[i]);
    if (st != FA_OK)
        return st;
    r->size = sizeof *r;
    r->b = in->p.b;
    r->total_q = r->cu_seqlens_q ? (int32_t)s->rows_q : 0;
    r->total_k = r->cu_seqlens_k ? (int32_t)s->rows_k : 0;
    int64_t most_k = s->rows_k;
    if (r->page_table) {
        r->pages = (int32_t)s->batch_k;
        r->page_size = (int32_t)s->rows_k;
        r->page_table_stride = in->t[FA_ID_page_table].dim[1];
        most_k = r->page_table_stride * r->page_size;
        most_k = most_k < FA_MAX_LENGTH ? most_k : FA_MAX_LENGTH;
    }
    st = check_side(r->cu_seqlens_q, r->seqlens_q, r->b, s->rows_q, s->rows_q, a->file[FA_ID_cu_seqlens_q], a->file[FA_ID_seqlens_q],
                    &in->p.sq);
    if (st == FA_OK)
        st = check_side(r->cu_seqlens_k, r->seqlens_k, r->b, s->rows_k, most_k, a->file[FA_ID_cu_seqlens_k], a->file[FA_ID_seqlens_k],
                        &in->p.sk);
    if (st == FA_OK && r->page_table)
        st = check_table(in, a);
    if (!r->cu_seqlens_q) /* padded rows: what is past a length has its place, too */
        in->p.sq = (int32_t)s->rows_q;
    if (!r->cu_seqlens_k && !r->page_table)
        in->p.sk = (int32_t)s->rows_k;
    r->sq = in->p.sq;
    r->sk = in->p.sk;
    in->p.features = fa_operation_features(op, r);
    in->p.page = r->page_table ? fa_lengths_page(r) : 0;
    return st;
}
