/* inputs: the files of tensors, and the problem that follows from them. */
#include "attend.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <string.h>

/* Whether it is a tensor of numbers that a file of its own gives. */
static bool is_given(const attend_args *a, const fa_operand *o)
{
    return !o->output && o->drawn != FA_DRAWN_SEQUENCES && a->file[o->id];
}

static bool is_packed(const attend_args *a, const fa_operand *o)
{
    return o->strided && attend_packed(a, fa_operand_has_keys(o));
}

/* Dimensions as the operation has them: those of packed rows have 1 in front. */
static void dims_of(int64_t out[4], const attend_inputs *in, const attend_args *a, const fa_operand *o)
{
    const cli_npy *t = &in->t[o->id];
    int skip = is_packed(a, o);
    out[0] = 1;
    for (int i = 0; i < t->n && i + skip < 4; i++)
        out[i + skip] = t->dim[i];
}

/* "[b, s, h, d]", or what takes its place. */
static const char *layout_of(char buf[64], const attend_args *a, const fa_operand *o)
{
    if (!o->strided) {
        fa_operand_print(buf, 64, o);
        return buf;
    }
    return is_packed(a, o)                                       ? "[rows, h, d]"
           : fa_operand_has_keys(o) && a->file[FA_ID_page_table] ? "[pages, tokens of a page, h, d]"
                                                                 : "[b, s, h, d]";
}

/* Rank, lengths and type of each. */
static fa_status check_files(const attend_inputs *in, const attend_args *a, const fa_operation *op)
{
    for (int i = 0; i < op->n; i++) {
        const fa_operand *o = &op->operand[i];
        const cli_npy *t = &in->t[o->id];
        const char *file = a->file[o->id];
        if (!is_given(a, o))
            continue;
        bool packed = is_packed(a, o), keys = fa_operand_has_keys(o);
        char layout[64];
        if (t->n != o->rank - packed)
            return fa_fail(FA_INVALID, "%s: %d dimensions; accepted%s: %d, %s", file, t->n,
                           packed                              ? keys ? " with --cu-seqlens-k" : " with --cu-seqlens-q"
                           : keys && a->file[FA_ID_page_table] ? " with --page-table"
                                                               : "",
                           o->rank - packed, layout_of(layout, a, o));
        for (int j = 0; j < t->n; j++)
            if (t->dim[j] < 1 || t->dim[j] > FA_MAX_LENGTH)
                return fa_fail(FA_INVALID, "%s: dimension %d is %lld; accepted: 1 to %d", file, j, (long long)t->dim[j], FA_MAX_LENGTH);
        if (cli_npy_has_integers(t))
            return fa_fail(FA_INVALID, "%s: elements are %s; accepted: fp16, fp32", file, cli_npy_type(t));
        if (o->strided && t->dtype != in->t[FA_ID_q].dtype)
            return fa_fail(FA_INVALID, "%s and %s differ in type; accepted: all fp16 or all fp32", a->file[FA_ID_q], file);
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
    for (int i = 0; i < op->n; i++)
        dense = dense && !(op->operand[i].drawn == FA_DRAWN_SEQUENCES && a->file[op->operand[i].id]);
    for (int i = 0; i < op->n; i++) {
        const fa_operand *o = &op->operand[i];
        int64_t dim[4];
        if (!is_given(a, o))
            continue;
        dims_of(dim, in, a, o);
        for (int j = 0; j < o->rank; j++) {
            int extent = o->extent[j];
            extent = extent == FA_EXTENT_K_ROW ? FA_EXTENT_D : extent == FA_EXTENT_V_ROW ? FA_EXTENT_DV : extent; /* files have elements */
            extent = dense && extent == FA_EXTENT_BATCH_K ? FA_EXTENT_BATCH_Q : extent;
            if (from[extent] && out->of[extent] != dim[j])
                return fa_fail(FA_INVALID, "%s: %s is %lld; accepted with %s: %lld", a->file[o->id],
                               words[extent] ? words[extent] : fa_extent_shapes[extent], (long long)dim[j], from[extent],
                               (long long)out->of[extent]);
            from[extent] = a->file[o->id];
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
    fa_sizes sizes = { .of = { 0 } };
    fa_status st = check_files(in, a, op);
    if (st == FA_OK)
        st = sizes_of(&sizes, in, a, op);
    if (st != FA_OK)
        return st;
    const attend_shape s = { sizes.of[FA_EXTENT_BATCH_Q], sizes.of[FA_EXTENT_ROWS_Q], sizes.of[FA_EXTENT_BATCH_K],
                             sizes.of[FA_EXTENT_ROWS_K] };
    st = attend_lengths(in, a, &s);
    if (st != FA_OK)
        return st;
    if (a->dv > sizes.of[FA_EXTENT_D])
        return fa_fail(FA_INVALID, "--dv is %d; accepted with %s: 1 to %lld", a->dv, a->file[FA_ID_k], (long long)sizes.of[FA_EXTENT_D]);
    p.dtype = a->dtype ? a->dtype : in->t[FA_ID_q].dtype;
    p.o_dtype = a->o_dtype;
    p.d = (int32_t)sizes.of[FA_EXTENT_D];
    p.dv = a->dv ? a->dv : (int32_t)sizes.of[FA_EXTENT_DV];
    p.hq = (int32_t)sizes.of[FA_EXTENT_HQ];
    p.hkv = (int32_t)sizes.of[FA_EXTENT_HKV];
    p.b = in->p.b;
    p.sq = in->p.sq;
    p.sk = in->p.sk;
    p.features = in->p.features | (a->dropout > 0 ? FA_FEATURE_DROPOUT : 0) | (a->dv ? FA_FEATURE_V_IN_K : 0);
    p.page = in->p.page;
    bool window = a->window[0] >= 0 || a->window[1] >= 0;
    if (window && a->causal && a->window[1] > 0)
        return fa_fail(FA_INVALID, "--causal and --window %d,%d contradict each other", a->window[0], a->window[1]);
    p.mask = window ? FA_MASK_WINDOW : a->causal ? FA_MASK_CAUSAL : FA_MASK_NONE;
    st = cli_low_set(&p, &a->low);
    if (st == FA_OK && a->low.scale == FA_SCALE_FOLDED)
        st = fa_fail(FA_UNSUPPORTED, "--kv-scale is folded; accepted here: token, whose scales are found in the files");
    return st == FA_OK ? fa_problem_normalize(&in->p, &p) : st;
}

static fa_status check_together(const attend_args *a)
{
    if (!(a->dropout >= 0 && a->dropout < 1))
        return fa_fail(FA_INVALID, "--dropout is %g; accepted: a probability, 0 to below 1", (double)a->dropout);
    if (a->dv && a->file[FA_ID_v])
        return fa_fail(FA_INVALID, "--dv is %d beside --v %s; accepted: --dv, where V is the first columns of K, or --v", a->dv,
                       a->file[FA_ID_v]);
    if (a->dv && a->backward)
        return fa_fail(FA_UNSUPPORTED, "--dv is given with --backward; accepted there: --v, a V of its own");
    if (!a->file[FA_ID_page_table])
        return FA_OK;
    if (a->file[FA_ID_cu_seqlens_k])
        return fa_fail(FA_INVALID, "--page-table and --cu-seqlens-k are two ways to lay keys; accepted: one of them");
    if (!a->file[FA_ID_seqlens_k])
        return fa_fail(FA_INVALID, "--page-table is given without --seqlens-k; accepted: both");
    return FA_OK;
}

fa_status attend_read(attend_inputs *in, const attend_args *a)
{
    const fa_operation *op = fa_operation_find(FA_FORWARD);
    uint64_t dense = fa_operands_of(op, &(fa_problem){ .op = op->op, .features = a->dv ? FA_FEATURE_V_IN_K : 0 });
    for (int i; (i = fa_operands_next(&dense)) >= 0;)
        if (!a->file[op->operand[i].id] && !op->operand[i].optional && !(a->backward && op->operand[i].output))
            return fa_fail(FA_INVALID, "--%s is missing; accepted: a .npy file",
                           op->operand[i].word ? op->operand[i].word : op->operand[i].name);
    if (a->file[FA_ID_lse] && a->file[FA_ID_o] && !strcmp(a->file[FA_ID_lse], a->file[FA_ID_o]))
        return fa_fail(FA_INVALID, "--output and --lse are both \"%.80s\"; accepted: two files", a->file[FA_ID_o]);
    fa_status st = check_together(a);
    for (int i = 0; i < op->n && st == FA_OK; i++)
        if (!op->operand[i].output && a->file[op->operand[i].id])
            st = cli_npy_read(&in->t[op->operand[i].id], a->file[op->operand[i].id]);
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
    for (int i = 0; i < FA_ID_COUNT; i++)
        cli_npy_free(&in->t[i]);
    fa_ragged_close(&in->ragged);
}
