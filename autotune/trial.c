/* trial: a case's tensors on a device with what should come out. */
#include "trial.h"
#include "buffer.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "number.h"
#include "random.h"
#include "reference.h"
#include "scratch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POISON 0xff /* of outputs: a NaN of every type */

struct fa_trial {
    fa_context *ctx;
    fa_case c;
    fa_args args;
    const fa_operation *op;
    fa_ragged ragged;       /* the integers that the device has */
    fa_sequences sequences; /* what they mean */
    uint8_t *use_q, *use_k; /* which rows of the tensors of queries, of keys, a sequence has or sees */
    uint8_t *use_table;     /* which entries of the page table name pages of keys that are seen, or lie between such */
    fa_buffer tensor[FA_OPERANDS_MAX];
    float *dense[FA_OPERANDS_MAX];  /* of inputs */
    uint8_t *bits[FA_OPERANDS_MAX]; /* of outputs, dense: what the last run left */
    float *value[FA_OPERANDS_MAX];  /* the same as numbers */
    fa_expected expected;
    fa_scratch scratch;
};

/* Whether operand i is an output that was asked for. */
static bool is_written(const fa_trial *t, int i)
{
    return t->op->operand[i].output && fa_case_has(&t->c, i);
}

/* ---- tensors ---- */

/* Whether lengths, and not the problem's shape alone, say which rows count. */
static bool is_ragged(const fa_trial *t)
{
    return t->c.ragged.forms != 0;
}

/* Rows of an input or output that count, by batch and row; NULL = all. */
static const uint8_t *use_of(const fa_trial *t, int i)
{
    const fa_operand *o = &t->op->operand[i];
    if (!is_ragged(t))
        return NULL;
    return o->strided ? fa_operand_has_keys(o) ? t->use_k : t->use_q : o->feature == FA_FEATURE_PAGES ? t->use_table : NULL;
}

static void mark_table(fa_trial *t)
{
    int64_t first, last, stride = t->sequences.sizes.of[FA_EXTENT_TABLE], size = t->args.page_size;
    for (int32_t i = 0; i < t->sequences.b; i++) {
        fa_sequences_seen(&t->sequences, i, &first, &last);
        for (int64_t k = first / size; first <= last && k <= last / size; k++)
            t->use_table[i * stride + k] = 1;
    }
}

static fa_status find_sequences(fa_trial *t)
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
    if (t->args.page_size)
        mark_table(t);
    return FA_OK;
}

/* Entries that are not in use, those in front of a window too, hold numbers of any pages, and numbers that are none. */
static fa_status fill_integers(fa_trial *t, int i)
{
    const fa_buffer *b = &t->tensor[i];
    const uint8_t *use = use_of(t, i);
    const int32_t *from = fa_operand_address(&t->op->operand[i], &t->ragged.args);
    fa_random r = { fa_random_mix(t->c.seed ^ 0x7461626c65) };
    if (!from)
        return fa_fail(FA_UNSUPPORTED, "%s holds integers, which no case draws", t->op->operand[i].name);
    for (int64_t k = 0; k <= b->layout.last; k++) {
        int32_t x = use && !use[k] ? fa_ragged_unused(&r, t->args.pages) : from[k];
        memcpy(b->image + b->origin + k * b->bytes, &x, sizeof x);
    }
    return FA_OK;
}

static fa_status fill_input(fa_trial *t, int i)
{
    const fa_buffer *b = &t->tensor[i];
    const fa_layout *l = &b->layout;
    size_t n = (size_t)l->b * (size_t)l->s * (size_t)l->h * (size_t)l->width;
    int dtype = fa_case_dtype(&t->c, i);
    const uint8_t *use = use_of(t, i);
    if (!dtype)
        return fill_integers(t, i);
    float *row = t->dense[i] = malloc((n + 1) * sizeof *row);
    if (!row)
        return fa_fail(FA_NOMEM, "no memory for %zu values of a tensor", n);
    for (int32_t batch = 0; batch < l->b; batch++)
        for (int32_t s = 0; s < l->s; s++)
            for (int32_t h = 0; h < l->h; h++, row += l->width) {
                uint8_t *to = fa_buffer_row(b, b->image, batch, s, h);
                fa_case_row(&t->c, i, batch, s, h, row);
                if (use && !use[(int64_t)batch * l->s + s])
                    fa_case_hide_row(&t->c, row, l->width);
                for (int32_t x = 0; x < l->width; x++)
                    fa_number_store(to + (size_t)x * (size_t)b->bytes, row[x], dtype);
            }
    return FA_OK;
}

static fa_status open_tensor(fa_trial *t, int i)
{
    const fa_operand *o = &t->op->operand[i];
    const fa_problem *p = &t->c.problem;
    fa_layout l = fa_case_layout(&t->c, &t->sequences.sizes, i);
    const uint8_t *use = use_of(t, i);
    int32_t bytes = fa_operand_bytes(o, p), skew = o->strided && p->align < 16 && p->align >= bytes ? p->align : 0;
    fa_status st = fa_buffer_open(&t->tensor[i], fa_context_driver(t->ctx), &l, bytes, skew, o->output ? POISON : t->c.gap);
    if (st == FA_OK && !o->output)
        st = fill_input(t, i);
    if (st == FA_OK)
        st = t->c.unwritten && is_ragged(t) && !o->output ? fa_buffer_upload_rows(&t->tensor[i], use) : fa_buffer_upload(&t->tensor[i]);
    if (st != FA_OK)
        return st;
    if (o->strides_at && p->features & FA_FEATURE_LSE_STRIDES)
        memcpy((char *)&t->args + o->strides_at, (const int64_t[3]){ l.sb, l.ss, l.sh }, 3 * sizeof l.sb);
    fa_operand_set(o, &t->args, (void *)(uintptr_t)fa_buffer_address(&t->tensor[i]), l.sb, l.ss, l.sh);
    if (o->strided && fa_layout_broadcasts(t->c.layout[i]))
        t->args.flags |= FA_BROADCAST;
    return FA_OK;
}

static fa_status open_tensors(fa_trial *t)
{
    fa_status st = FA_OK;
    for (int i = 0; i < t->op->n && st == FA_OK; i++)
        if (fa_case_has(&t->c, i))
            st = open_tensor(t, i);
    return st;
}

/* Launches and waits. */
static fa_status launch(fa_trial *t, const fa_plan *plan, const fa_args *args)
{
    fa_args a = *args;
    return fa_scratch_launch(&t->scratch, t->ctx, plan, &a);
}

/* ---- what should come out ---- */

/* The outputs of the reference family's config on the same inputs, packed, and in fp32 where O may be. */
static fa_status device_reference(fa_trial *t, const fa_config *config)
{
    const cu_driver *d = fa_context_driver(t->ctx);
    fa_case plain = t->c;
    fa_problem *p = &plain.problem;
    const fa_plan *plan;
    fa_buffer out[FA_OPERANDS_MAX] = { 0 };
    p->o_dtype = FA_F32;
    p->align = fa_dtype_bytes(p->dtype);
    plain.odd = 0;
    memset(plain.layout, FA_LAYOUT_PACKED, sizeof plain.layout);
    fa_args args = t->args;
    args.o_dtype = FA_F32;
    fa_status st = fa_plan_make(t->ctx, p, config, "the reference of verification", &plan);
    for (int i = 0; i < t->op->n && st == FA_OK; i++)
        if (t->op->operand[i].output) {
            fa_layout l = fa_case_layout(&plain, &t->sequences.sizes, i);
            st = fa_buffer_open(&out[i], d, &l, fa_operand_bytes(&t->op->operand[i], p), 0, POISON);
            fa_operand_set(&t->op->operand[i], &args, (void *)(uintptr_t)(st == FA_OK ? fa_buffer_address(&out[i]) : 0), 0, 0, 0);
        }
    if (st == FA_OK)
        st = launch(t, plan, &args);
    for (int i = 0; i < t->op->n && st == FA_OK; i++)
        if (t->op->operand[i].output) {
            st = fa_buffer_download(&out[i]);
            for (int64_t k = 0; k < t->expected.n[i] && st == FA_OK; k++)
                t->expected.out[i][k] =
                    fa_number_load(out[i].back + out[i].origin + k * out[i].bytes, fa_operand_dtype(&t->op->operand[i], p));
        }
    for (int i = 0; i < t->op->n; i++)
        fa_buffer_close(&out[i]);
    return fa_wrap(st, "the reference on the device");
}

/* On the device where that is asked for and the operation has a reference family, which knows of no features, else on the CPU. */
static fa_status expect(fa_trial *t, fa_reference how)
{
    fa_message before;
    fa_config config;
    fa_message_keep(&before);
    fa_status st = how == FA_REFERENCE_DEVICE && !t->c.problem.features ? fa_choose_reference(t->ctx, t->op->op, &config) : FA_UNSUPPORTED;
    if (st == FA_OK)
        return device_reference(t, &config);
    fa_message_settle(&before, st == FA_UNSUPPORTED ? FA_OK : st);
    return st == FA_UNSUPPORTED ? fa_expected_exact(&t->expected) : st;
}

static fa_status reference(fa_trial *t, fa_reference how)
{
    fa_reference_call call = { .op = t->op, .problem = t->c.problem, .band = fa_case_band(&t->c), .scale = fa_case_scale(&t->c) };
    memcpy(call.in, t->dense, sizeof call.in);
    call.sequences = is_ragged(t) ? &t->sequences : NULL;
    fa_status st = fa_expected_open(&t->expected, &call);
    for (int i = 0; i < t->op->n && st == FA_OK; i++) {
        if (!t->op->operand[i].output)
            continue;
        t->bits[i] = malloc((size_t)t->expected.n[i] * 4 + 1);
        t->value[i] = malloc(((size_t)t->expected.n[i] + 1) * sizeof *t->value[i]);
        if (!t->bits[i] || !t->value[i])
            st = fa_fail(FA_NOMEM, "no memory for %lld values of an output", (long long)t->expected.n[i]);
    }
    if (st == FA_OK)
        st = expect(t, how);
    return st == FA_OK ? fa_expected_finish(&t->expected) : st;
}

fa_status fa_trial_open(fa_trial **out, fa_context *ctx, const fa_case *c, fa_reference how)
{
    fa_entered in;
    fa_trial *t = *out = calloc(1, sizeof *t);
    if (!t)
        return fa_fail(FA_NOMEM, "no memory for a trial");
    t->ctx = ctx;
    t->c = *c;
    t->op = fa_operation_find(c->problem.op);
    fa_status st = fa_context_enter(ctx, &in);
    if (st != FA_OK) {
        free(t);
        *out = NULL;
        return st;
    }
    t->args = fa_case_args(c);
    st = find_sequences(t);
    if (st == FA_OK)
        st = open_tensors(t);
    if (st == FA_OK)
        st = reference(t, how);
    fa_context_leave(ctx, &in);
    if (st != FA_OK) {
        fa_trial_close(t);
        *out = NULL;
    }
    return st;
}

void fa_trial_close(fa_trial *t)
{
    fa_entered in;
    if (!t)
        return;
    bool entered = fa_context_enter(t->ctx, &in) == FA_OK;
    for (int i = 0; i < FA_OPERANDS_MAX; i++)
        fa_buffer_close(&t->tensor[i]);
    fa_scratch_free(&t->scratch, t->ctx);
    if (entered)
        fa_context_leave(t->ctx, &in);
    for (int i = 0; i < FA_OPERANDS_MAX; i++) {
        free(t->dense[i]);
        free(t->bits[i]);
        free(t->value[i]);
    }
    fa_expected_close(&t->expected);
    fa_sequences_close(&t->sequences);
    fa_ragged_close(&t->ragged);
    free(t->use_q);
    free(t->use_k);
    free(t->use_table);
    free(t);
}

/* ---- judging ---- */

static uint64_t hash(uint64_t h, const uint8_t *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ s[i]) * 0x100000001b3u; /* FNV-1a */
    return h;
}

/* Copies rows out of what was read back, and puts the image's own in place of those that are to be written, so that what is left must
 * equal the image. */
static void take_rows(const fa_trial *t, int operand)
{
    const fa_buffer *b = &t->tensor[operand];
    const fa_layout *l = &b->layout;
    size_t n = (size_t)l->width * (size_t)b->bytes;
    uint8_t *to = t->bits[operand];
    int64_t at = 0;
    for (int32_t i = 0; i < l->b; i++)
        for (int32_t s = 0; s < l->s; s++)
            for (int32_t h = 0; h < l->h; h++, to += n, at += l->width) {
                uint8_t *row = fa_buffer_row(b, b->back, i, s, h);
                memcpy(to, row, n);
                if (fa_expected_writes(&t->expected, operand, at))
                    memcpy(row, fa_buffer_row(b, b->image, i, s, h), n);
            }
}

static bool unchanged(const fa_trial *t, int operand, fa_verdict *v)
{
    const fa_buffer *b = &t->tensor[operand];
    const fa_operand *o = &t->op->operand[operand];
    const char *what = !o->output ? "an input" : is_ragged(t) ? "a gap, a canary, or a row of no query" : "a gap or a canary";
    if (!memcmp(b->back, b->image, b->image_size))
        return true;
    size_t i = 0;
    while (b->back[i] == b->image[i])
        i++;
    snprintf(v->text, sizeof v->text, "byte %lld of %s was changed, counted from its first element: %s",
             (long long)i - (long long)b->origin, o->name, what);
    return false;
}

static int64_t unwritten(const fa_trial *t, int operand)
{
    static const uint8_t poison[4] = { POISON, POISON, POISON, POISON };
    int bytes = t->tensor[operand].bytes;
    for (int64_t i = 0; i < t->expected.n[operand]; i++)
        if (!memcmp(t->bits[operand] + i * bytes, poison, (size_t)bytes) && fa_expected_writes(&t->expected, operand, i))
            return i;
    return -1;
}

/* The outputs' bits, and a hash of them. */
static void take_outputs(fa_trial *t, fa_verdict *v)
{
    v->bits = 0xcbf29ce484222325u;
    for (int i = 0; i < t->op->n; i++)
        if (is_written(t, i)) {
            take_rows(t, i);
            v->bits = hash(v->bits, t->bits[i], (size_t)t->expected.n[i] * (size_t)t->tensor[i].bytes);
        }
}

/* Whether every element was written; and the elements as numbers. */
static bool is_whole(fa_trial *t, int i, fa_verdict *v)
{
    const fa_operand *o = &t->op->operand[i];
    int bytes = t->tensor[i].bytes;
    int64_t left = unwritten(t, i);
    if (left >= 0) {
        snprintf(v->text, sizeof v->text, "%s[%lld] was not written", t->expected.title[i], (long long)left);
        if (o->strided)
            fa_expected_place(&t->expected, i, left, v);
        return false;
    }
    for (int64_t k = 0; k < t->expected.n[i]; k++)
        t->value[i][k] = fa_number_load(t->bits[i] + k * bytes, fa_operand_dtype(o, &t->c.problem));
    return true;
}

static bool judge(fa_trial *t, fa_verdict *v)
{
    const float *got[FA_OPERANDS_MAX] = { NULL };
    take_outputs(t, v);
    for (int i = 0; i < t->op->n; i++)
        if (fa_case_has(&t->c, i) && !unchanged(t, i, v))
            return false;
    for (int i = 0; i < t->op->n; i++)
        if (is_written(t, i)) {
            if (!is_whole(t, i, v))
                return false;
            got[i] = t->value[i];
        }
    return fa_expected_judge(&t->expected, got, v);
}

fa_status fa_trial_run(fa_trial *t, const fa_plan *plan, fa_verdict *v)
{
    fa_entered in;
    char line[800];
    *v = (fa_verdict){ .ok = false };
    fa_status st = fa_context_enter(t->ctx, &in);
    if (st != FA_OK)
        return st;
    for (int i = 0; i < t->op->n && st == FA_OK; i++)
        if (is_written(t, i))
            st = fa_buffer_upload(&t->tensor[i]);
    if (st == FA_OK)
        st = launch(t, plan, &t->args);
    for (int i = 0; i < t->op->n && st == FA_OK; i++)
        if (fa_case_has(&t->c, i))
            st = fa_buffer_download(&t->tensor[i]);
    fa_context_leave(t->ctx, &in);
    if (st == FA_OK && !judge(t, v)) {
        fa_case_print(line, sizeof line, &t->c);
        st = fa_fail(FA_WRONG, "%s; %s", v->text, line);
    } else if (st != FA_OK) {
        snprintf(v->text, sizeof v->text, "%.*s", (int)sizeof v->text - 1, fa_last_error());
    }
    return st;
}

const fa_args *fa_trial_args(const fa_trial *t)
{
    return &t->args;
}

const void *fa_trial_output(const fa_trial *t, const char *name, size_t *bytes)
{
    int i = fa_operand_index(t->op, name);
    *bytes = 0;
    if (i < 0 || !is_written(t, i))
        return NULL;
    *bytes = (size_t)t->expected.n[i] * (size_t)t->tensor[i].bytes;
    return t->bits[i];
}

fa_status fa_verify_case(fa_context *ctx, const fa_case *c, const fa_config *config, fa_verdict *v)
{
    fa_trial *t;
    const fa_plan *plan = NULL;
    *v = (fa_verdict){ .ok = false };
    fa_status st = config ? fa_plan_make(ctx, &c->problem, config, "named for verification", &plan) : FA_OK;
    if (st == FA_OK)
        st = fa_trial_open(&t, ctx, c, FA_REFERENCE_ORACLE);
    if (st != FA_OK)
        return st;
    st = fa_trial_run(t, plan, v);
    fa_trial_close(t);
    return st;
}
