/* tensors: a case's operands in device memory. */
#include "tensors.h"
#include "gen/error.h"
#include "gen/pairs.h"
#include "gen/problem.h"
#include "verify/operands/number.h"
#include "verify/operands/random.h"
#include "verify/operands/slots.h"
#include "verify/truth/expected.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool fa_case_tensors_ragged(const fa_case_tensors *t)
{
    return t->c.ragged.forms != 0;
}

/* Rows of an input or output that count, by batch and row; NULL = all. */
static const uint8_t *use_of(const fa_case_tensors *t, int i)
{
    const fa_operand *o = &t->op->operand[i];
    if (!fa_case_tensors_ragged(t))
        return NULL;
    if (o->class_at && t->c.problem.features & FA_FEATURE_SLOTS) /* which name any row */
        return NULL;
    if (o->class_at) /* of tokens, one for each row */
        return o->extent[1] == FA_EXTENT_Q_SCALE_ROWS && t->c.problem.q_scale_by == FA_SCALE_TOKEN   ? t->use_q
               : o->extent[1] == FA_EXTENT_K_SCALE_ROWS && t->c.problem.k_scale_by == FA_SCALE_TOKEN ? t->use_k
               : o->extent[1] == FA_EXTENT_V_SCALE_ROWS && t->c.problem.v_scale_by == FA_SCALE_TOKEN ? t->use_k
                                                                                                     : NULL;
    return o->strided ? fa_operand_has_keys(o) ? t->use_k : t->use_q : o->feature == FA_FEATURE_PAGES ? t->use_table : NULL;
}

static void mark_table(fa_case_tensors *t)
{
    int64_t first, last, stride = t->sequences.sizes.of[FA_EXTENT_TABLE], size = t->args.page_size;
    for (int32_t i = 0; i < t->sequences.b; i++) {
        fa_sequences_seen(&t->sequences, i, &first, &last);
        for (int64_t k = first / size; first <= last && k <= last / size; k++)
            t->use_table[i * stride + k] = 1;
    }
}

static fa_status find_sequences(fa_case_tensors *t)
{
    fa_status st = fa_case_ragged(&t->c, &t->ragged);
    if (st == FA_OK)
        st = fa_sequences_open(&t->sequences, &t->c.problem, &t->ragged.args);
    if (st != FA_OK)
        return st;
    fa_ragged_apply(&t->ragged, &t->args);
    t->use_q = calloc((size_t)fa_sequences_rows_q(&t->sequences) + 1, 1);
    t->use_k = calloc((size_t)fa_sequences_rows_k(&t->sequences) + 1, 1);
    t->use_table = calloc((size_t)t->sequences.b * (size_t)t->sequences.sizes.of[FA_EXTENT_TABLE] + 1, 1);
    if (!t->use_q || !t->use_k || !t->use_table)
        return fa_fail(FA_NOMEM, "no memory for which rows count");
    for (int32_t k = 0; k < t->sequences.b; k++)
        fa_sequences_mark(&t->sequences, k, t->use_q, t->use_k);
    if (t->ragged.args.page_table)
        mark_table(t);
    return FA_OK;
}

/* Entries that are not in use, those before a window too, hold numbers of any pages, and numbers that are none. */
static fa_status fill_integers(fa_case_tensors *t, int i)
{
    const fa_buffer *b = &t->tensor[i];
    const uint8_t *use = use_of(t, i);
    const fa_operand *o = &t->op->operand[i];
    const fa_dropout dropout = fa_case_dropout(&t->c);
    const uint64_t rng[2] = { dropout.seed, dropout.offset };
    if (o->drawn == FA_DRAWN_STATE) {
        memcpy(b->image + b->origin, rng, sizeof rng);
        return FA_OK;
    }
    if (o->drawn == FA_DRAWN_SLOTS) {
        fa_slots_draw((int64_t *)(void *)(b->image + b->origin), b->layout.last + 1, (int64_t)t->args.pages * t->args.page_size, t->c.seed);
        return FA_OK;
    }
    if (o->drawn == FA_DRAWN_POSITIONS) {
        fa_positions_draw(b->image + b->origin, b->layout.last + 1, b->bytes, t->args.rotary_positions, true, t->c.seed);
        return FA_OK;
    }
    const int32_t *from = o->drawn == FA_DRAWN_SEQUENCES ? fa_operand_address(o, &t->ragged.args) : NULL;
    fa_random r = { fa_random_mix(t->c.seed ^ 0x7461626c65) };
    if (!from)
        return fa_fail(FA_UNSUPPORTED, "%s holds integers, which no case draws", o->name);
    for (int64_t k = 0; k <= b->layout.last; k++) {
        int32_t x = use && !use[k] ? fa_ragged_unused(&r, t->args.pages) : from[k];
        memcpy(b->image + b->origin + k * b->bytes, &x, sizeof x);
    }
    return FA_OK;
}

static void store_row(const fa_buffer *b, int32_t batch, int32_t s, int32_t h, const float *row, int dtype)
{
    fa_number_store_row(fa_buffer_row(b, b->image, batch, s, h), row, (int64_t)b->layout.width * fa_number_block(dtype), dtype);
}

/* V by columns: rows of keys as they are drawn, each of which is a column of the buffer. */
static fa_status fill_columns(fa_case_tensors *t, int i)
{
    const fa_buffer *b = &t->tensor[i];
    const fa_layout *l = &b->layout; /* rows are columns of V, their elements keys */
    int dtype = fa_case_dtype(&t->c, i);
    float *row = t->dense[i] = malloc(((size_t)l->b * (size_t)l->s * (size_t)l->h * (size_t)l->width + 1) * sizeof *row);
    if (!row)
        return fa_fail(FA_NOMEM, "no memory for the values of a tensor");
    for (int32_t batch = 0; batch < l->b; batch++)
        for (int32_t key = 0; key < l->width; key++)
            for (int32_t h = 0; h < l->h; h++, row += l->s) {
                fa_case_row(&t->c, i, batch, key, h, row);
                for (int32_t x = 0; x < l->s; x++)
                    fa_number_store(fa_buffer_row(b, b->image, batch, x, h) + (int64_t)key * b->bytes, row[x], dtype);
            }
    return FA_OK;
}

static fa_status fill_input(fa_case_tensors *t, int i)
{
    if (t->sequences.sizes.v_columns && t->op->operand[i].id == FA_ID_v)
        return fill_columns(t, i);
    const fa_buffer *b = &t->tensor[i];
    const fa_layout *l = &b->layout;
    int dtype = fa_case_dtype(&t->c, i);
    int64_t width = (int64_t)l->width * fa_number_block(dtype);
    size_t n = (size_t)l->b * (size_t)l->s * (size_t)l->h * (size_t)width;
    const uint8_t *use = use_of(t, i);
    if (!dtype)
        return fill_integers(t, i);
    bool given = t->dense[i] != NULL; /* by another operation */
    float *row = t->dense[i] = given ? t->dense[i] : malloc((n + 1) * sizeof *row);
    if (!row)
        return fa_fail(FA_NOMEM, "no memory for %zu values of a tensor", n);
    for (int32_t batch = 0; batch < l->b; batch++)
        for (int32_t s = 0; s < l->s; s++)
            for (int32_t h = 0; h < l->h; h++, row += width) {
                if (!given)
                    fa_case_row(&t->c, i, batch, s, h, row);
                if (use && !use[(int64_t)batch * l->s + s])
                    fa_case_hide_row(&t->c, row, width);
                store_row(b, batch, s, h, row, dtype);
            }
    if (fa_number_block(dtype) == 1)
        return FA_OK;
    t->taken[i] = malloc((n + 1) * sizeof *row);
    if (!t->taken[i])
        return fa_fail(FA_NOMEM, "no memory for %zu values of a tensor", n);
    for (size_t k = 0; k < n; k++)
        t->taken[i][k] = fa_number_round(t->dense[i][k], FA_F16);
    return FA_OK;
}

static fa_status open_tensor(fa_case_tensors *t, int i)
{
    const fa_operand *o = &t->op->operand[i];
    const fa_problem *p = &t->c.problem;
    fa_layout l = fa_case_layout(&t->c, &t->sequences.sizes, i);
    const uint8_t *use = use_of(t, i);
    int32_t bytes = fa_operand_bytes(o, p), align = fa_case_align(&t->c, i), skew = o->strided && align < 16 && align >= bytes ? align : 0;
    fa_status st = fa_buffer_open(&t->tensor[i], fa_context_driver(t->ctx), &l, bytes, skew, o->output ? FA_POISON : t->c.gap);
    if (st == FA_OK && !o->output)
        st = fill_input(t, i);
    if (st == FA_OK)
        st = t->c.unwritten && fa_case_tensors_ragged(t) && !o->output ? fa_buffer_upload_rows(&t->tensor[i], use)
                                                                       : fa_buffer_upload(&t->tensor[i]);
    if (st != FA_OK)
        return st;
    if (o->class_at || (o->strides_at && p->features & FA_FEATURE_LSE_STRIDES)) {
        int64_t ss = o->class_at && l.s == 1 ? 0 : l.ss; /* of scales that tokens share */
        memcpy((char *)&t->args + o->strides_at, (const int64_t[3]){ l.sb, ss, l.sh }, 3 * sizeof l.sb);
    }
    fa_operand_set(o, &t->args, (void *)(uintptr_t)fa_buffer_address(&t->tensor[i]), l.sb, l.ss, l.sh);
    if (o->strided && fa_layout_broadcasts(t->c.layout[i]))
        t->args.flags |= FA_BROADCAST; /* with which a table's stride of 0 is another thing */
    if (t->args.flags & FA_BROADCAST && t->ragged.args.page_table)
        t->args.page_table_stride = t->sequences.sizes.of[FA_EXTENT_TABLE];
    return FA_OK;
}

/* The row of the operation in front whose output is this input; -1 = it is drawn. */
static int output_of(const fa_operation *op, int i)
{
    const fa_operation *after = op->follows ? fa_operation_find(op->after) : NULL;
    int at = after && !op->operand[i].output ? fa_operand_index(after, op->operand[i].name) : -1;
    return at >= 0 && after->operand[at].output ? at : -1;
}

/* Inputs that another operation computes: exactly, of the others as they are, rounded to their types. */
static fa_status follow(fa_case_tensors *t)
{
    const fa_operation *after = fa_operation_find(t->op->after);
    fa_reference_call call = { .op = after, .problem = t->c.problem, .band = fa_case_band(&t->c), .scale = fa_case_scale(&t->c) };
    call.dropout = fa_case_dropout(&t->c);
    fa_expected e = { .row = NULL };
    call.problem.op = after->op;
    call.sequences = fa_case_tensors_ragged(t) ? &t->sequences : NULL;
    call.score = &t->score;
    call.relative = t->c.diagonal == FA_BOTTOM_RIGHT;
    call.off = fa_offset_of(t->c.diagonal, t->c.offset);
    for (int i = 0; i < after->n; i++) {
        int own = fa_operand_index(t->op, after->operand[i].name);
        call.in[i] = own >= 0 && !after->operand[i].output ? t->dense[own] : NULL;
    }
    fa_status st = fa_expected_open(&e, &call);
    if (st == FA_OK)
        st = fa_expected_exact(&e);
    for (int i = 0; i < t->op->n && st == FA_OK; i++) {
        int from = output_of(t->op, i);
        if (from < 0)
            continue;
        t->dense[i] = malloc(((size_t)e.n[from] + 1) * sizeof *t->dense[i]);
        if (!t->dense[i])
            st = fa_fail(FA_NOMEM, "no memory for %lld values of %s", (long long)e.n[from], t->op->operand[i].name);
        for (int64_t k = 0; st == FA_OK && k < e.n[from]; k++)
            t->dense[i][k] = fa_number_round((float)e.out[from][k], fa_case_dtype(&t->c, i));
    }
    fa_expected_close(&e);
    return st;
}

fa_status fa_case_tensors_open(fa_case_tensors *t, fa_context *ctx, const fa_case *c)
{
    *t = (fa_case_tensors){ .ctx = ctx, .c = *c, .op = fa_operation_find(c->problem.op), .args = fa_case_args(c) };
    fa_status st = find_sequences(t);
    if (st == FA_OK)
        st = fa_score_operands_draw(&t->score, &t->c.problem, &t->sequences.sizes, &t->c.scalars, t->c.seed, t->c.strided_score);
    for (int i = 0; i < t->op->n && st == FA_OK; i++)
        if (fa_case_has(&t->c, i) && output_of(t->op, i) < 0)
            st = open_tensor(t, i);
    if (st == FA_OK && t->op->follows)
        st = follow(t);
    for (int i = 0; i < t->op->n && st == FA_OK; i++)
        if (output_of(t->op, i) >= 0)
            st = open_tensor(t, i);
    if (st == FA_OK)
        st = fa_score_operands_upload(&t->score, ctx, fa_context_driver(ctx));
    fa_score_operands_set(&t->score, &t->args);
    return st;
}

void fa_case_tensors_close(fa_case_tensors *t)
{
    for (int i = 0; i < FA_OPERANDS_MAX; i++) {
        fa_buffer_close(&t->tensor[i]);
        free(t->dense[i]);
        free(t->taken[i]);
    }
    fa_score_operands_close(&t->score);
    fa_sequences_close(&t->sequences);
    fa_ragged_close(&t->ragged);
    free(t->use_q);
    free(t->use_k);
    free(t->use_table);
}

/* The rows in use of one input: those of `own` as they were, the others NaN; NULL: all as they were. */
static fa_status rewrite(fa_case_tensors *t, int i, const uint8_t *own)
{
    fa_buffer *b = &t->tensor[i];
    const fa_layout *l = &b->layout;
    const uint8_t *use = use_of(t, i);
    const float *row = t->dense[i];
    float nan[FA_MAX_HEAD_DIM];
    int64_t width = (int64_t)l->width * fa_number_block(fa_case_dtype(&t->c, i));
    for (int64_t x = 0; x < width; x++)
        nan[x] = NAN;
    for (int32_t batch = 0; batch < l->b; batch++)
        for (int32_t s = 0; s < l->s; s++)
            for (int32_t h = 0; h < l->h; h++, row += width) {
                int64_t at = (int64_t)batch * l->s + s;
                if (use[at])
                    store_row(b, batch, s, h, !own || own[at] ? row : nan, fa_case_dtype(&t->c, i));
            }
    return fa_buffer_upload_rows(b, use);
}

fa_status fa_case_tensors_alone(fa_case_tensors *t, int32_t sequence)
{
    uint8_t *q = calloc((size_t)fa_sequences_rows_q(&t->sequences) + 1, 1), *k = calloc((size_t)fa_sequences_rows_k(&t->sequences) + 1, 1);
    fa_status st = q && k ? FA_OK : fa_fail(FA_NOMEM, "no memory for the rows of a sequence");
    if (st == FA_OK && sequence >= 0)
        fa_sequences_mark(&t->sequences, sequence, q, k);
    for (int i = 0; i < t->op->n && st == FA_OK; i++) {
        const fa_operand *o = &t->op->operand[i];
        bool tokens = o->class_at && use_of(t, i), keys = tokens ? use_of(t, i) == t->use_k : fa_operand_has_keys(o);
        if ((o->strided || tokens) && !o->output && fa_case_has(&t->c, i))
            st = rewrite(t, i, sequence < 0 ? NULL : keys ? k : q);
    }
    free(q);
    free(k);
    return st;
}
