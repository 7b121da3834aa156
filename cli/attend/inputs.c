/* inputs: the files of tensors, and the problem that follows from them. */
#include "attend.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <string.h>

static bool has_keys(int row)
{
    return row == ATTEND_K || row == ATTEND_V;
}

/* Dimensions as the operation has them: those of packed rows have 1 in front. */
static void dims_of(int64_t out[4], const attend_inputs *in, const attend_args *a, int row)
{
    const cli_npy *t = &in->t[row];
    int skip = attend_packed(a, has_keys(row));
    out[0] = 1;
    for (int i = 0; i < t->n && i + skip < 4; i++)
        out[i + skip] = t->dim[i];
}

/* Rank, lengths and type of each. */
static fa_status check_files(const attend_inputs *in, const attend_args *a)
{
    for (int i = ATTEND_Q; i <= ATTEND_V; i++) {
        const cli_npy *t = &in->t[i];
        bool packed = attend_packed(a, has_keys(i)), pages = has_keys(i) && a->file[ATTEND_TABLE];
        int rank = packed ? 3 : 4;
        if (t->n != rank)
            return fa_fail(FA_INVALID, "%s: %d dimensions; accepted%s: %d, %s", a->file[i], t->n,
                           packed  ? has_keys(i) ? " with --cu-seqlens-k" : " with --cu-seqlens-q"
                           : pages ? " with --page-table"
                                   : "",
                           rank,
                           packed  ? "[rows, h, d]"
                           : pages ? "[pages, tokens of a page, h, d]"
                                   : "[b, s, h, d]");
        for (int j = 0; j < t->n; j++)
            if (t->dim[j] < 1 || t->dim[j] > FA_MAX_LENGTH)
                return fa_fail(FA_INVALID, "%s: dimension %d is %lld; accepted: 1 to %d", a->file[i], j, (long long)t->dim[j],
                               FA_MAX_LENGTH);
        if (cli_npy_has_integers(t))
            return fa_fail(FA_INVALID, "%s: elements are %s; accepted: fp16, fp32", a->file[i], cli_npy_type(t));
        if (t->dtype != in->t[ATTEND_Q].dtype)
            return fa_fail(FA_INVALID, "%s and %s differ in type; accepted: all fp16 or all fp32", a->file[ATTEND_Q], a->file[i]);
    }
    return FA_OK;
}

/* The sizes that the files agree on. */
static fa_status sizes_of(fa_sizes *out, const attend_inputs *in, const attend_args *a, const fa_operation *op)
{
    static const char *const words[FA_EXTENT_COUNT] = {
        [FA_EXTENT_BATCH_Q] = "batch",     [FA_EXTENT_ROWS_Q] = "query length", [FA_EXTENT_BATCH_K] = "batch or pages",
        [FA_EXTENT_ROWS_K] = "key length", [FA_EXTENT_HQ] = "query heads",      [FA_EXTENT_HKV] = "key/value heads",
        [FA_EXTENT_D] = "head_dim",        [FA_EXTENT_DV] = "head_dim of V"
    };
    const char *from[FA_EXTENT_COUNT] = { NULL };
    bool dense = true; /* the batch follows from the tensors alone */
    for (int i = ATTEND_CU_Q; i < ATTEND_ROWS; i++)
        dense = dense && !a->file[i];
    for (int i = ATTEND_Q; i <= ATTEND_V; i++) {
        int64_t dim[4];
        dims_of(dim, in, a, i);
        for (int j = 0; j < 4; j++) {
            int extent = op->operand[i].extent[j];
            extent = dense && extent == FA_EXTENT_BATCH_K ? FA_EXTENT_BATCH_Q : extent;
            if (from[extent] && out->of[extent] != dim[j])
                return fa_fail(FA_INVALID, "%s: %s is %lld; accepted with %s: %lld", a->file[i], words[extent], (long long)dim[j],
                               from[extent], (long long)out->of[extent]);
            from[extent] = a->file[i];
            out->of[extent] = dim[j];
        }
    }
    if (dense)
        out->of[FA_EXTENT_BATCH_K] = out->of[FA_EXTENT_BATCH_Q];
    return FA_OK;
}

/* The problem is filled from the files. */
static fa_status shapes(attend_inputs *in, const attend_args *a)
{
    const fa_operation *op = fa_operation_find(FA_FORWARD);
    fa_problem p = FA_PROBLEM_INIT;
    fa_sizes sizes = { { 0 } };
    fa_status st = check_files(in, a);
    if (st == FA_OK)
        st = sizes_of(&sizes, in, a, op);
    if (st != FA_OK)
        return st;
    const attend_shape s = { sizes.of[FA_EXTENT_BATCH_Q], sizes.of[FA_EXTENT_ROWS_Q], sizes.of[FA_EXTENT_BATCH_K],
                             sizes.of[FA_EXTENT_ROWS_K] };
    st = attend_lengths(in, a, &s);
    if (st != FA_OK)
        return st;
    p.dtype = a->dtype ? a->dtype : in->t[ATTEND_Q].dtype;
    p.o_dtype = a->o_dtype;
    p.d = (int32_t)sizes.of[FA_EXTENT_D];
    p.dv = (int32_t)sizes.of[FA_EXTENT_DV];
    p.hq = (int32_t)sizes.of[FA_EXTENT_HQ];
    p.hkv = (int32_t)sizes.of[FA_EXTENT_HKV];
    p.b = in->p.b;
    p.sq = in->p.sq;
    p.sk = in->p.sk;
    p.features = in->p.features | (a->dropout > 0 ? FA_FEATURE_DROPOUT : 0);
    p.page = in->p.page;
    bool window = a->window[0] >= 0 || a->window[1] >= 0;
    if (window && a->causal && a->window[1] > 0)
        return fa_fail(FA_INVALID, "--causal and --window %d,%d contradict each other", a->window[0], a->window[1]);
    p.mask = window ? FA_MASK_WINDOW : a->causal ? FA_MASK_CAUSAL : FA_MASK_NONE;
    return fa_problem_normalize(&in->p, &p);
}

static fa_status check_together(const attend_args *a)
{
    if (!(a->dropout >= 0 && a->dropout < 1))
        return fa_fail(FA_INVALID, "--dropout is %g; accepted: a probability, 0 to below 1", (double)a->dropout);
    if (!a->file[ATTEND_TABLE])
        return FA_OK;
    if (a->file[ATTEND_CU_K])
        return fa_fail(FA_INVALID, "--page-table and --cu-seqlens-k are two ways to lay keys; accepted: one of them");
    if (!a->file[ATTEND_SEQLENS_K])
        return fa_fail(FA_INVALID, "--page-table is given without --seqlens-k; accepted: both");
    return FA_OK;
}

fa_status attend_read(attend_inputs *in, const attend_args *a)
{
    const fa_operation *op = fa_operation_find(FA_FORWARD);
    for (int i = 0; i < fa_operands_of(op, 0); i++)
        if (!a->file[i] && !op->operand[i].optional && !(a->backward && op->operand[i].output))
            return fa_fail(FA_INVALID, "--%s is missing; accepted: a .npy file", i == ATTEND_O ? "output" : op->operand[i].name);
    if (a->file[ATTEND_LSE] && a->file[ATTEND_O] && !strcmp(a->file[ATTEND_LSE], a->file[ATTEND_O]))
        return fa_fail(FA_INVALID, "--output and --lse are both \"%.80s\"; accepted: two files", a->file[ATTEND_O]);
    fa_status st = check_together(a);
    for (int i = 0; i < ATTEND_ROWS && st == FA_OK; i++)
        if (!op->operand[i].output && a->file[i])
            st = cli_npy_read(&in->t[i], a->file[i]);
    return st == FA_OK ? shapes(in, a) : st;
}

void attend_mask(fa_args *to, const attend_args *a, const fa_problem *p)
{
    to->window_left = a->window[0];
    to->window_right = a->causal && a->window[0] >= 0 ? 0 : a->window[1];
    to->diagonal = p->mask == FA_MASK_NONE ? FA_BOTTOM_RIGHT : a->diagonal;
    to->offset = a->offset;
    to->scale = a->scale;
    to->dropout = a->dropout;
}

void attend_free(attend_inputs *in)
{
    for (int i = 0; i < ATTEND_ROWS; i++)
        cli_npy_free(&in->t[i]);
    fa_ragged_close(&in->ragged);
}
