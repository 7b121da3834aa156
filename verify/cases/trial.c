/* trial: a case's tensors on a device with what should come out. */
#include "trial.h"
#include "append.h"
#include "gen/error.h"
#include "gen/format.h"
#include "gen/problem.h"
#include "runtime/choose/select.h"
#include "runtime/launch/widen.h"
#include "tensors.h"
#include "verify/operands/number.h"
#include "verify/operands/scratch.h"
#include "verify/truth/expected.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What kernels make of K and V of few bits: rows of blocks are rounded to fp16; they become Q's type first; codes of integers are
 * multiplied as they are, by Q as fp16 or by all digits of Q, and their blocks' scales come after that. */
typedef enum taking { ROUNDED, WIDENED, STANDING, EXACT } taking;

struct fa_trial {
    fa_case_tensors in;
    uint8_t *bits[FA_OPERANDS_MAX]; /* of outputs, dense: what the last run left */
    float *value[FA_OPERANDS_MAX];  /* the same as numbers */
    fa_expected expected;
    fa_reference how;  /* made it */
    taking how_taken;  /* for kernels of this kind */
    fa_expected other; /* for those of another, where has_other: candidates of several kinds may take turns */
    bool has_other;
    taking other_taken;
    uint8_t *appended[FA_OPERANDS_MAX]; /* of an append, in the place of expected: its outputs' images */
    fa_scratch scratch;
    int score_changed; /* the operand of the score program that the last run wrote to; -1: none */
};

/* Whether operand i is an output that was asked for. */
static bool is_written(const fa_trial *t, int i)
{
    return t->in.op->operand[i].output && fa_case_has(&t->in.c, i);
}

/* Launches and waits. */
static fa_status launch(fa_trial *t, const fa_plan *plan, const fa_args *args)
{
    fa_args a = *args;
    return fa_scratch_launch(&t->scratch, t->in.ctx, plan, &a);
}

/* ---- what should come out ---- */

/* The outputs of the reference family's config on the same inputs, packed, and in fp32 where their types may be. */
static fa_status device_reference(fa_trial *t, const fa_config *config)
{
    const cu_driver *d = fa_context_driver(t->in.ctx);
    fa_case plain = t->in.c;
    fa_problem *p = &plain.problem;
    const fa_plan *plan;
    fa_buffer out[FA_OPERANDS_MAX] = { 0 };
    for (int i = 0; i < t->in.op->n; i++)
        if (t->in.op->operand[i].output) {
            p->o_dtype = t->in.op->operand[i].type == FA_TYPE_OUTPUT ? FA_F32 : p->o_dtype;
            p->grad_dtype = t->in.op->operand[i].type == FA_TYPE_GRAD ? FA_F32 : p->grad_dtype;
        }
    fa_problem_set_align(p, fa_dtype_bytes(p->dtype), fa_dtype_bytes(p->dtype));
    plain.odd = 0;
    memset(plain.layout, FA_LAYOUT_PACKED, sizeof plain.layout);
    fa_args args = t->in.args;
    args.o_dtype = p->o_dtype;
    args.grad_dtype = p->grad_dtype;
    fa_status st = fa_plan_make(t->in.ctx, p, config, "the reference of verification", &plan);
    for (int i = 0; i < t->in.op->n && st == FA_OK; i++)
        if (t->in.op->operand[i].output) {
            fa_layout l = fa_case_layout(&plain, &t->in.sequences.sizes, i);
            st = fa_buffer_open(&out[i], d, &l, fa_operand_bytes(&t->in.op->operand[i], p), 0, FA_POISON);
            fa_operand_set(&t->in.op->operand[i], &args, (void *)(uintptr_t)(st == FA_OK ? fa_buffer_address(&out[i]) : 0), 0, 0, 0);
        }
    if (st == FA_OK)
        st = launch(t, plan, &args);
    for (int i = 0; i < t->in.op->n && st == FA_OK; i++)
        if (t->in.op->operand[i].output) {
            st = fa_buffer_download(&out[i]);
            for (int64_t k = 0; k < t->expected.n[i] && st == FA_OK; k++)
                t->expected.out[i][k] =
                    fa_number_load(out[i].back + out[i].origin + k * out[i].bytes, fa_operand_dtype(&t->in.op->operand[i], p));
        }
    for (int i = 0; i < t->in.op->n; i++)
        fa_buffer_close(&out[i]);
    return fa_wrap(st, "the reference on the device");
}

/* On the device where that is asked for and the operation has a reference family, which knows of no feature but dropout, else on the CPU.
 */
static fa_status expect(fa_trial *t, fa_reference how)
{
    fa_message before;
    fa_config config;
    fa_message_keep(&before);
    fa_status st = how == FA_REFERENCE_DEVICE && !t->in.c.problem.kv_dtype && !fa_problem_eight(&t->in.c.problem) &&
                           !(t->in.c.problem.features & ~(FA_FEATURE_DETERMINISTIC | FA_FEATURE_DROPOUT))
                       ? fa_choose_reference(t->in.ctx, t->in.op->op, &config)
                       : FA_UNSUPPORTED;
    if (st == FA_OK)
        return device_reference(t, &config);
    fa_message_settle(&before, st == FA_UNSUPPORTED ? FA_OK : st);
    return st == FA_UNSUPPORTED ? fa_expected_exact(&t->expected) : st;
}

/* Whether products take operand i as it is rounded. */
static bool takes_rounded(const fa_trial *t, int i)
{
    if (!t->in.taken[i] || t->how_taken == WIDENED)
        return false;
    const fa_format *f = fa_format_of(fa_operand_dtype(&t->in.op->operand[i], &t->in.c.problem));
    bool integers = f && (f->kind == FA_CODE_SIGNED || (f->kind == FA_CODE_UNSIGNED && f->bits == 4 && f->zero));
    return !integers || t->how_taken == ROUNDED;
}

static fa_status reference(fa_trial *t, fa_reference how)
{
    t->how = how;
    if (t->in.op->op == FA_APPEND)
        return fa_append_expect(t->appended, &t->in);
    fa_reference_call call = { .op = t->in.op,
                               .problem = t->in.c.problem,
                               .band = fa_case_band(&t->in.c),
                               .scale = fa_case_scale(&t->in.c),
                               .dropout = fa_case_dropout(&t->in.c),
                               .bounds = fa_case_bounded(&t->in.c) };
    for (int i = 0; i < FA_OPERANDS_MAX; i++)
        call.in[i] = takes_rounded(t, i) ? t->in.taken[i] : t->in.dense[i];
    call.widened = t->how_taken == WIDENED;
    call.exact_q = t->how_taken == EXACT;
    call.sequences = fa_case_tensors_ragged(&t->in) ? &t->in.sequences : NULL;
    call.score = &t->in.score;
    call.relative = t->in.c.diagonal == FA_BOTTOM_RIGHT;
    call.off = fa_offset_of(t->in.c.diagonal, t->in.c.offset);
    call.approximate = !fa_device_is_simulated(fa_context_device(t->in.ctx));
    fa_status st = fa_expected_open(&t->expected, &call);
    for (int i = 0; i < t->in.op->n && st == FA_OK; i++) {
        if (!t->in.op->operand[i].output)
            continue;
        t->bits[i] = t->bits[i] ? t->bits[i] : malloc((size_t)t->expected.n[i] * 4 + 1);
        t->value[i] = t->value[i] ? t->value[i] : malloc(((size_t)t->expected.n[i] + 1) * sizeof *t->value[i]);
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
    fa_status st = fa_context_enter(ctx, &in);
    if (st != FA_OK) {
        free(t);
        *out = NULL;
        return st;
    }
    st = fa_case_tensors_open(&t->in, ctx, c);
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
    bool entered = fa_context_enter(t->in.ctx, &in) == FA_OK;
    fa_context *ctx = t->in.ctx;
    fa_case_tensors_close(&t->in);
    fa_scratch_free(&t->scratch, ctx);
    if (entered)
        fa_context_leave(ctx, &in);
    for (int i = 0; i < FA_OPERANDS_MAX; i++) {
        free(t->bits[i]);
        free(t->value[i]);
        free(t->appended[i]);
    }
    fa_expected_close(&t->expected);
    fa_expected_close(&t->other);
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
    const fa_buffer *b = &t->in.tensor[operand];
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
    const fa_buffer *b = &t->in.tensor[operand];
    const fa_operand *o = &t->in.op->operand[operand];
    const char *what = !o->output                       ? "an input"
                       : fa_case_tensors_ragged(&t->in) ? "a gap, a canary, or a row of no query"
                                                        : "a gap or a canary";
    if (!memcmp(b->back, b->image, b->image_size))
        return true;
    size_t i = 0;
    while (b->back[i] == b->image[i])
        i++;
    v->rule = "bytes outside the outputs";
    v->at = -1;
    snprintf(v->text, sizeof v->text, "byte %lld of %s was changed, counted from its first element: %s",
             (long long)i - (long long)b->origin, o->name, what);
    return false;
}

static bool score_unchanged(const fa_trial *t, fa_verdict *v)
{
    if (t->score_changed < 0)
        return true;
    v->rule = "bytes outside the outputs";
    v->at = -1;
    snprintf(v->text, sizeof v->text, "%s was changed: an operand of the score program",
             t->in.score.program->ir.operand[t->score_changed].name);
    return false;
}

static int64_t unwritten(const fa_trial *t, int operand)
{
    static const uint8_t poison[4] = { FA_POISON, FA_POISON, FA_POISON, FA_POISON };
    int bytes = t->in.tensor[operand].bytes;
    for (int64_t i = 0; i < t->expected.n[operand]; i++)
        if (!memcmp(t->bits[operand] + i * bytes, poison, (size_t)bytes) && fa_expected_writes(&t->expected, operand, i))
            return i;
    return -1;
}

/* The outputs' bits, and a hash of them. */
static void take_outputs(fa_trial *t, fa_verdict *v)
{
    v->bits = 0xcbf29ce484222325u;
    for (int i = 0; i < t->in.op->n; i++)
        if (is_written(t, i)) {
            take_rows(t, i);
            v->bits = hash(v->bits, t->bits[i], (size_t)t->expected.n[i] * (size_t)t->in.tensor[i].bytes);
        }
}

/* Whether every element was written; and the elements as numbers. */
static bool is_whole(fa_trial *t, int i, fa_verdict *v)
{
    const fa_operand *o = &t->in.op->operand[i];
    int bytes = t->in.tensor[i].bytes;
    int64_t left = unwritten(t, i);
    if (left >= 0) {
        v->rule = "elements that were not written";
        v->at = left;
        v->x = v->wanted = NAN;
        snprintf(v->text, sizeof v->text, "%s[%lld] was not written", t->expected.title[i], (long long)left);
        fa_expected_place(&t->expected, i, left, v);
        return false;
    }
    for (int64_t k = 0; k < t->expected.n[i]; k++)
        t->value[i][k] = fa_number_load(t->bits[i] + k * bytes, fa_operand_dtype(o, &t->in.c.problem));
    return true;
}

static bool judge(fa_trial *t, fa_verdict *v)
{
    const float *got[FA_OPERANDS_MAX] = { NULL };
    if (t->in.op->op == FA_APPEND)
        return fa_append_judge(&t->in, t->appended, v);
    take_outputs(t, v);
    for (int i = 0; i < t->in.op->n; i++)
        if (fa_case_has(&t->in.c, i) && !unchanged(t, i, v))
            return false;
    if (!score_unchanged(t, v))
        return false;
    for (int i = 0; i < t->in.op->n; i++)
        if (is_written(t, i)) {
            if (!is_whole(t, i, v))
                return false;
            got[i] = t->value[i];
        }
    return fa_expected_judge(&t->expected, got, v);
}

/* Poisoned outputs, a launch, and everything read back. */
static fa_status launch_anew(fa_trial *t, const fa_plan *plan)
{
    fa_status st = FA_OK;
    for (int i = 0; i < t->in.op->n && st == FA_OK; i++)
        if (is_written(t, i))
            st = fa_buffer_upload(&t->in.tensor[i]);
    if (st == FA_OK)
        st = launch(t, plan, &t->in.args);
    for (int i = 0; i < t->in.op->n && st == FA_OK; i++)
        if (fa_case_has(&t->in.c, i))
            st = fa_buffer_download(&t->in.tensor[i]);
    return st == FA_OK ? fa_score_operands_changed(&t->in.score, &t->score_changed) : st;
}

/* The status of a verdict, or of what kept it from being one. */
static fa_status told(const fa_trial *t, fa_status st, bool ok, fa_verdict *v)
{
    char line[1200];
    if (st == FA_OK && !ok) {
        fa_case_print(line, sizeof line, &t->in.c);
        st = fa_fail(FA_WRONG, "%s; %s", v->text, line);
    } else if (st != FA_OK) {
        snprintf(v->text, sizeof v->text, "%.*s", (int)sizeof v->text - 1, fa_last_error());
    }
    return st;
}

/* What should come out of kernels of that kind. */
static fa_status as_taken(fa_trial *t, taking how)
{
    if (t->how_taken == how)
        return FA_OK;
    bool known = t->has_other && t->other_taken == how;
    if (t->has_other && !known)
        fa_expected_close(&t->other);
    fa_expected before = t->expected;
    t->expected = known ? t->other : (fa_expected){ 0 };
    t->other = before;
    t->has_other = true;
    t->other_taken = t->how_taken;
    t->how_taken = how;
    return known ? FA_OK : reference(t, t->how);
}

static taking taking_of(const fa_config *c, const fa_workspace *w)
{
    if (fa_widens(w))
        return WIDENED;
    int br = fa_config_get(c, "br", 16);
    if (strcmp(c->family, "decode_mma") || (br != 4 && !fa_config_get(c, "limbs", 0)))
        return ROUNDED;
    return br == 16 ? STANDING : EXACT;
}

/* Of which kind the plan's kernels are; NULL: those that a launch chooses. */
static fa_status find_taking(const fa_trial *t, const fa_plan *plan, taking *out)
{
    fa_selection selection;
    fa_source source = { 0 };
    *out = plan ? taking_of(&plan->config, &plan->kernel->workspace) : ROUNDED;
    if (plan || !t->in.c.problem.kv_dtype)
        return FA_OK;
    fa_status st = fa_select(t->in.ctx, &t->in.c.problem, &selection, &source);
    if (st == FA_OK)
        *out = taking_of(&selection.config, &source.workspace);
    fa_source_free(&source);
    return st;
}

fa_status fa_trial_run(fa_trial *t, const fa_plan *plan, fa_verdict *v)
{
    fa_entered in;
    *v = (fa_verdict){ .ok = false };
    fa_status st = fa_context_enter(t->in.ctx, &in);
    if (st != FA_OK)
        return st;
    taking how;
    st = find_taking(t, plan, &how);
    if (st == FA_OK)
        st = as_taken(t, how);
    if (st == FA_OK)
        st = launch_anew(t, plan);
    fa_context_leave(t->in.ctx, &in);
    return told(t, st, st == FA_OK && judge(t, v), v);
}

/* Whether the sequence's rows hold the bits of `before`. */
static bool same_rows(const fa_trial *t, int32_t sequence, uint8_t *const before[FA_OPERANDS_MAX], fa_verdict *v)
{
    const fa_sequence *s = &t->in.sequences.of[sequence];
    for (int i = 0; i < t->in.op->n; i++) {
        size_t bytes = (size_t)t->in.tensor[i].bytes;
        for (int64_t k = 0; is_written(t, i) && k < t->expected.n[i]; k++) {
            bool keys = fa_operand_has_keys(&t->in.op->operand[i]);
            int64_t row = fa_expected_row(&t->expected, i, k), first = keys ? s->k : s->q, rows = keys ? s->nk : s->nq;
            if (row < first || row >= first + rows || !memcmp(t->bits[i] + (size_t)k * bytes, before[i] + (size_t)k * bytes, bytes))
                continue;
            v->rule = "sequences apart";
            v->at = k;
            snprintf(v->text, sizeof v->text, "%s[%lld] of sequence %d depends on what another sequence holds", t->expected.title[i],
                     (long long)k, sequence);
            return false;
        }
    }
    return true;
}

fa_status fa_trial_alone(fa_trial *t, const fa_plan *plan, int32_t sequence, fa_verdict *v)
{
    fa_entered in;
    uint8_t *before[FA_OPERANDS_MAX] = { NULL };
    *v = (fa_verdict){ .ok = false };
    fa_status st = fa_context_enter(t->in.ctx, &in);
    if (st != FA_OK)
        return st;
    for (int i = 0; i < t->in.op->n && st == FA_OK; i++) {
        if (!is_written(t, i))
            continue;
        size_t n = (size_t)t->expected.n[i] * (size_t)t->in.tensor[i].bytes;
        before[i] = malloc(n + 1);
        if (before[i])
            memcpy(before[i], t->bits[i], n);
        else
            st = fa_fail(FA_NOMEM, "no memory for %zu bytes of an output", n);
    }
    if (st == FA_OK)
        st = fa_case_tensors_alone(&t->in, sequence);
    if (st == FA_OK)
        st = launch_anew(t, plan);
    if (st == FA_OK) {
        take_outputs(t, v);
        v->ok = same_rows(t, sequence, before, v);
        st = fa_case_tensors_alone(&t->in, -1);
    }
    for (int i = 0; i < t->in.op->n; i++) {
        if (before[i] && st == FA_OK)
            memcpy(t->bits[i], before[i], (size_t)t->expected.n[i] * (size_t)t->in.tensor[i].bytes);
        free(before[i]);
    }
    fa_context_leave(t->in.ctx, &in);
    return told(t, st, v->ok, v);
}

int32_t fa_trial_sequences(const fa_trial *t)
{
    return fa_case_tensors_ragged(&t->in) && t->in.op->op != FA_APPEND ? t->in.sequences.b : 0;
}

const fa_args *fa_trial_args(const fa_trial *t)
{
    return &t->in.args;
}

const void *fa_trial_output(const fa_trial *t, const char *name, size_t *bytes)
{
    int i = fa_operand_index(t->in.op, name);
    *bytes = 0;
    if (i < 0 || !is_written(t, i))
        return NULL;
    *bytes = (size_t)t->expected.n[i] * (size_t)t->in.tensor[i].bytes;
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
