/* trial: a case's tensors on a device with what should come out. */
#include "trial.h"
#include "buffer.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "number.h"
#include "oracle.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POISON 0xff /* of outputs: a NaN of every type */

struct fa_trial {
    fa_context *ctx;
    fa_case c;
    fa_args args;
    fa_buffer tensor[FA_TENSORS], lse;
    float *dense[3];            /* Q, K, V */
    double *o_reference, *lse_reference;
    uint8_t *o_bits;            /* of the last run, dense */
    float *o, *lse_out;
    int64_t n_o, n_lse;
    fa_scale scale;
    fa_errors naive;
    CUdeviceptr workspace;
    size_t workspace_size;
};

static const char *const names[FA_TENSORS] = { "q", "k", "v", "o" };

/* ---- tensors ---- */

static fa_status fill_inputs(fa_trial *t, int which)
{
    const fa_buffer *b = &t->tensor[which];
    const fa_layout *l = &b->layout;
    size_t n = (size_t)l->b * (size_t)l->s * (size_t)l->h * (size_t)l->width;
    float *row = t->dense[which] = malloc((n + 1) * sizeof *row);
    if (!row)
        return fa_fail(FA_NOMEM, "no memory for %zu values of a tensor", n);
    for (int32_t i = 0; i < l->b; i++)
        for (int32_t s = 0; s < l->s; s++)
            for (int32_t h = 0; h < l->h; h++, row += l->width) {
                uint8_t *to = fa_buffer_row(b, b->image, i, s, h);
                fa_case_row(&t->c, which, i, s, h, row);
                for (int32_t x = 0; x < l->width; x++)
                    fa_number_store(to + (size_t)x * (size_t)b->bytes, row[x], t->c.problem.dtype);
            }
    return FA_OK;
}

static fa_status open_tensors(fa_trial *t)
{
    const fa_problem *p = &t->c.problem;
    const cu_driver *d = fa_context_driver(t->ctx);
    int32_t skew = p->align < 16 ? p->align : 0;
    fa_tensor *to[FA_TENSORS] = { &t->args.q, &t->args.k, &t->args.v, &t->args.o };
    fa_status st = FA_OK;
    for (int i = 0; i < FA_TENSORS && st == FA_OK; i++) {
        fa_layout l = fa_case_layout(&t->c, i);
        int32_t bytes = fa_dtype_bytes(fa_case_dtype(&t->c, i));
        st = fa_buffer_open(&t->tensor[i], d, &l, bytes, skew < bytes ? 0 : skew, i == FA_O ? POISON : t->c.gap);
        if (st == FA_OK && i != FA_O)
            st = fill_inputs(t, i);
        if (st == FA_OK)
            st = fa_buffer_upload(&t->tensor[i]);
        *to[i] = (fa_tensor){ (void *)(uintptr_t)fa_buffer_address(&t->tensor[i]), l.sb, l.ss, l.sh };
        if (fa_layout_broadcasts(t->c.layout[i]))
            t->args.flags |= FA_BROADCAST;
    }
    if (st == FA_OK && t->c.lse) {
        fa_layout l = fa_layout_make(FA_LAYOUT_PACKED, p->b, p->hq, p->sq, 1, 1, false);
        st = fa_buffer_open(&t->lse, d, &l, 4, 0, POISON);
        t->args.lse = (float *)(uintptr_t)(st == FA_OK ? fa_buffer_address(&t->lse) : 0);
    }
    return st;
}

static void fill_args(fa_trial *t)
{
    const fa_problem *p = &t->c.problem;
    t->args = (fa_args)FA_ARGS_INIT;
    t->args.dtype = p->dtype;
    t->args.o_dtype = p->o_dtype == p->dtype || (p->dtype == FA_TF32 && p->o_dtype == FA_F32) ? 0 : p->o_dtype;
    t->args.d = p->d;
    t->args.dv = p->dv;
    t->args.b = p->b;
    t->args.hq = p->hq;
    t->args.hkv = p->hkv;
    t->args.sq = p->sq;
    t->args.sk = p->sk;
    t->args.mask = p->mask;
    t->args.window_left = t->c.window_left;
    t->args.window_right = t->c.window_right;
    t->args.diagonal = t->c.diagonal;
    t->args.offset = t->c.offset;
    t->args.scale = t->c.scale;
}

/* ---- running ---- */

static fa_status provide_workspace(fa_trial *t, size_t need)
{
    const cu_driver *d = fa_context_driver(t->ctx);
    if (need > t->workspace_size) {
        if (t->workspace)
            d->cuMemFree(t->workspace);
        t->workspace = 0;
        t->workspace_size = 0;
        CUresult r = d->cuMemAlloc(&t->workspace, need);
        if (r != CUDA_SUCCESS)
            return fa_wrap(fa_driver_check(d, r, "cuMemAlloc"), "%zu bytes of workspace", need);
        t->workspace_size = need;
    }
    return FA_OK;
}

/* Launches and waits. */
static fa_status launch(fa_trial *t, const fa_plan *plan, const fa_args *args)
{
    const cu_driver *d = fa_context_driver(t->ctx);
    fa_args a = *args;
    size_t need;
    fa_status st = plan ? fa_plan_workspace(t->ctx, plan, &a, &need) : fa_workspace_size(t->ctx, &a, &need);
    if (st == FA_OK)
        st = provide_workspace(t, need);
    if (st != FA_OK)
        return st;
    a.workspace = (void *)(uintptr_t)t->workspace;
    a.workspace_size = t->workspace_size;
    st = plan ? fa_plan_launch(t->ctx, plan, &a, NULL) : fa_launch(t->ctx, &a, NULL);
    return st == FA_OK ? fa_driver_check(d, d->cuCtxSynchronize(), "waiting for the kernel") : st;
}

/* ---- what should come out ---- */

/* LSE of what the matrix units are given: TF32 rounds Q and K before anything is added up. */
static fa_status lse_of_rounded(fa_trial *t, const fa_attention *a)
{
    size_t n_q = (size_t)a->b * (size_t)a->sq * (size_t)a->hq * (size_t)a->d, n_k = (size_t)a->b * (size_t)a->sk * (size_t)a->hkv * (size_t)a->d;
    float *q = malloc((n_q + 1) * sizeof *q), *k = malloc((n_k + 1) * sizeof *k);
    double *o = malloc(((size_t)t->n_o + 1) * sizeof *o);
    fa_attention rounded = *a;
    fa_status st = q && k && o ? FA_OK : fa_fail(FA_NOMEM, "no memory for %zu rounded values", n_q + n_k);
    for (size_t i = 0; i < n_q && st == FA_OK; i++)
        q[i] = fa_number_to_tf32(a->q[i]);
    for (size_t i = 0; i < n_k && st == FA_OK; i++)
        k[i] = fa_number_to_tf32(a->k[i]);
    rounded.q = q;
    rounded.k = k;
    if (st == FA_OK)
        st = fa_oracle_exact(&rounded, o, t->lse_reference);
    free(q);
    free(k);
    free(o);
    return st;
}

/* The reference family on the same inputs, O packed in fp32. */
static fa_status device_reference(fa_trial *t)
{
    const fa_problem *p = &t->c.problem;
    const cu_driver *d = fa_context_driver(t->ctx);
    fa_problem naive = *p;
    fa_config config;
    const fa_plan *plan;
    fa_buffer o = { 0 }, lse = { 0 };
    fa_layout lo = fa_layout_make(FA_LAYOUT_PACKED, p->b, p->sq, p->hq, p->dv, 1, false),
              ll = fa_layout_make(FA_LAYOUT_PACKED, p->b, p->hq, p->sq, 1, 1, false);
    naive.o_dtype = FA_F32;
    naive.align = fa_dtype_bytes(p->dtype);
    fa_args args = t->args;
    args.o_dtype = FA_F32;
    fa_status st = fa_choose_reference(t->ctx, p->op, &config);
    if (st == FA_OK)
        st = fa_plan_make(t->ctx, &naive, &config, "the reference of verification", &plan);
    if (st == FA_OK)
        st = fa_buffer_open(&o, d, &lo, 4, 0, POISON);
    if (st == FA_OK)
        st = fa_buffer_open(&lse, d, &ll, 4, 0, POISON);
    if (st == FA_OK) {
        args.o = (fa_tensor){ (void *)(uintptr_t)fa_buffer_address(&o), 0, 0, 0 };
        args.lse = (float *)(uintptr_t)fa_buffer_address(&lse);
        st = launch(t, plan, &args);
    }
    if (st == FA_OK)
        st = fa_buffer_download(&o);
    if (st == FA_OK)
        st = fa_buffer_download(&lse);
    for (int64_t i = 0; i < t->n_o && st == FA_OK; i++)
        t->o_reference[i] = fa_number_load(o.back + o.origin + 4 * i, FA_F32);
    for (int64_t i = 0; i < t->n_lse && st == FA_OK; i++)
        t->lse_reference[i] = fa_number_load(lse.back + lse.origin + 4 * i, FA_F32);
    fa_buffer_close(&o);
    fa_buffer_close(&lse);
    return fa_wrap(st, "the reference on the device");
}

static fa_status reference(fa_trial *t, fa_reference how)
{
    const fa_problem *p = &t->c.problem;
    fa_band band = fa_case_band(&t->c);
    fa_attention a = { p->b, p->hq, p->hkv, p->sq, p->sk, p->d, p->dv, band.lo, band.hi, fa_case_scale(&t->c),
                       t->dense[FA_Q], t->dense[FA_K], t->dense[FA_V] };
    t->n_o = (int64_t)p->b * p->sq * p->hq * p->dv;
    t->n_lse = (int64_t)p->b * p->sq * p->hq;
    t->o_reference = malloc(((size_t)t->n_o + 1) * sizeof *t->o_reference);
    t->lse_reference = malloc(((size_t)t->n_lse + 1) * sizeof *t->lse_reference);
    t->o_bits = malloc((size_t)t->n_o * 4 + 1);
    t->o = malloc(((size_t)t->n_o + 1) * sizeof *t->o);
    t->lse_out = malloc(((size_t)t->n_lse + 1) * sizeof *t->lse_out);
    if (!t->o_reference || !t->lse_reference || !t->o_bits || !t->o || !t->lse_out)
        return fa_fail(FA_NOMEM, "no memory for %lld reference values", (long long)t->n_o);
    double luck = 1;
    fa_status st = how == FA_REFERENCE_DEVICE ? device_reference(t) : fa_oracle_exact(&a, t->o_reference, t->lse_reference);
    if (st == FA_OK && p->dtype == FA_TF32)
        st = lse_of_rounded(t, &a);
    if (st == FA_OK)
        st = fa_oracle_naive(&a, p->dtype, p->o_dtype, t->o, &luck);
    if (st == FA_OK)
        t->naive = fa_verify_errors(t->o, t->o_reference, t->n_o, false);
    t->scale = fa_verify_scale(t->o_reference, t->n_o, t->lse_reference, t->n_lse, p->o_dtype, t->c.lse);
    t->scale.luck = luck;
    return st;
}

fa_status fa_trial_open(fa_trial **out, fa_context *ctx, const fa_case *c, fa_reference how)
{
    fa_entered in;
    fa_trial *t = *out = calloc(1, sizeof *t);
    if (!t)
        return fa_fail(FA_NOMEM, "no memory for a trial");
    t->ctx = ctx;
    t->c = *c;
    fa_status st = fa_context_enter(ctx, &in);
    if (st != FA_OK) {
        free(t);
        *out = NULL;
        return st;
    }
    fill_args(t);
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
    for (int i = 0; i < FA_TENSORS; i++)
        fa_buffer_close(&t->tensor[i]);
    fa_buffer_close(&t->lse);
    if (t->workspace)
        fa_context_driver(t->ctx)->cuMemFree(t->workspace);
    if (entered)
        fa_context_leave(t->ctx, &in);
    for (int i = 0; i < 3; i++)
        free(t->dense[i]);
    free(t->o_reference);
    free(t->lse_reference);
    free(t->o_bits);
    free(t->o);
    free(t->lse_out);
    free(t);
}

/* ---- judging ---- */

static uint64_t hash(uint64_t h, const uint8_t *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ s[i]) * 0x100000001b3u; /* FNV-1a */
    return h;
}

/* Copies rows out of what was read back, and puts the image's own in their place, so that what is left must equal the image. */
static void take_rows(const fa_buffer *b, uint8_t *to)
{
    const fa_layout *l = &b->layout;
    size_t n = (size_t)l->width * (size_t)b->bytes;
    for (int32_t i = 0; i < l->b; i++)
        for (int32_t s = 0; s < l->s; s++)
            for (int32_t h = 0; h < l->h; h++, to += n) {
                uint8_t *row = fa_buffer_row(b, b->back, i, s, h);
                memcpy(to, row, n);
                memcpy(row, fa_buffer_row(b, b->image, i, s, h), n);
            }
}

static bool unchanged(const fa_buffer *b, const char *name, bool output, fa_verdict *v)
{
    if (!memcmp(b->back, b->image, b->image_size))
        return true;
    size_t i = 0;
    while (b->back[i] == b->image[i])
        i++;
    snprintf(v->text, sizeof v->text, "byte %lld of %s was changed, counted from its first element: %s", (long long)i - (long long)b->origin,
             name, output ? "a gap or a canary" : "an input");
    return false;
}

static int64_t unwritten(const uint8_t *s, int64_t n, int bytes)
{
    static const uint8_t poison[4] = { POISON, POISON, POISON, POISON };
    for (int64_t i = 0; i < n; i++)
        if (!memcmp(s + i * bytes, poison, (size_t)bytes))
            return i;
    return -1;
}

static fa_status read_back(fa_trial *t)
{
    fa_status st = FA_OK;
    for (int i = 0; i < FA_TENSORS && st == FA_OK; i++)
        st = fa_buffer_download(&t->tensor[i]);
    return st == FA_OK && t->c.lse ? fa_buffer_download(&t->lse) : st;
}

static void where(const fa_trial *t, int64_t at, fa_verdict *v)
{
    const fa_problem *p = &t->c.problem;
    size_t n = strlen(v->text);
    int64_t row = at / p->dv;
    snprintf(v->text + n, sizeof v->text - n, " (batch %lld, query %lld, head %lld, column %lld)", (long long)(row / p->hq / p->sq),
             (long long)(row / p->hq % p->sq), (long long)(row % p->hq), (long long)(at % p->dv));
}

static bool judge(fa_trial *t, fa_verdict *v)
{
    const fa_problem *p = &t->c.problem;
    int bytes = t->tensor[FA_O].bytes;
    take_rows(&t->tensor[FA_O], t->o_bits);
    v->bits = hash(0xcbf29ce484222325u, t->o_bits, (size_t)t->n_o * (size_t)bytes);
    if (t->c.lse) {
        take_rows(&t->lse, (uint8_t *)t->lse_out);
        v->bits = hash(v->bits, (uint8_t *)t->lse_out, (size_t)t->n_lse * 4);
    }
    for (int i = 0; i < FA_TENSORS; i++)
        if (!unchanged(&t->tensor[i], names[i], i == FA_O, v))
            return false;
    if (t->c.lse && !unchanged(&t->lse, "lse", true, v))
        return false;
    int64_t left = unwritten(t->o_bits, t->n_o, bytes);
    if (left >= 0) {
        snprintf(v->text, sizeof v->text, "O[%lld] was not written", (long long)left);
        where(t, left, v);
        return false;
    }
    left = t->c.lse ? unwritten((uint8_t *)t->lse_out, t->n_lse, 4) : -1;
    if (left >= 0) {
        snprintf(v->text, sizeof v->text, "LSE[%lld] was not written", (long long)left);
        return false;
    }
    for (int64_t i = 0; i < t->n_o; i++)
        t->o[i] = fa_number_load(t->o_bits + i * bytes, p->o_dtype);
    v->o = fa_verify_errors(t->o, t->o_reference, t->n_o, false);
    if (t->c.lse)
        v->lse = fa_verify_errors(t->lse_out, t->lse_reference, t->n_lse, true);
    fa_verify_judge(v, &t->scale);
    if (!v->ok && (v->o.odd >= 0 || !(v->o.most <= v->most)))
        where(t, v->o.odd >= 0 ? v->o.odd : v->o.at, v);
    return v->ok;
}

fa_status fa_trial_run(fa_trial *t, const fa_plan *plan, fa_verdict *v)
{
    fa_entered in;
    char line[640];
    *v = (fa_verdict){ .naive = t->naive };
    fa_status st = fa_context_enter(t->ctx, &in);
    if (st != FA_OK)
        return st;
    st = fa_buffer_upload(&t->tensor[FA_O]);
    if (st == FA_OK && t->c.lse)
        st = fa_buffer_upload(&t->lse);
    if (st == FA_OK)
        st = launch(t, plan, &t->args);
    if (st == FA_OK)
        st = read_back(t);
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

const void *fa_trial_output(const fa_trial *t, size_t *bytes)
{
    *bytes = (size_t)t->n_o * (size_t)t->tensor[FA_O].bytes;
    return t->o_bits;
}

const float *fa_trial_lse(const fa_trial *t)
{
    return t->lse_out;
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
