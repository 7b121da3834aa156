/* attend: attention of three .npy files. */
#include "autotune/number.h"
#include "autotune/oracle.h"
#include "autotune/verify.h"
#include "ask.h"
#include "command.h"
#include "gen/error.h"
#include "gen/model.h"
#include "gen/problem.h"
#include "npy.h"
#include "progress.h"
#include "session.h"
#include "simulator.h"
#include "tensors.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct attend_args {
    cli_common common;
    cli_where where;
    cli_sim sim;
    const char *q, *k, *v, *o, *lse;
    int32_t dtype, o_dtype, window[2], diagonal, offset;
    float scale;
    bool causal, check;
} attend_args;

#define FIELD(f) .at = offsetof(attend_args, f)
static const cli_word diagonals[] = { { "bottom-right", FA_BOTTOM_RIGHT }, { "top-left", FA_TOP_LEFT }, { "offset", FA_OFFSET }, { NULL, 0 } };
static const cli_option options[] = {
    { .name = "q", .kind = &cli_text, FIELD(q), .value = "FILE", .help = "queries [b, sq, hq, d], fp16 or fp32" },
    { .name = "k", .kind = &cli_text, FIELD(k), .value = "FILE", .help = "keys [b, sk, hkv, d]" },
    { .name = "v", .kind = &cli_text, FIELD(v), .value = "FILE", .help = "values [b, sk, hkv, dv]" },
    { .name = "output", .letter = 'o', .kind = &cli_text, FIELD(o), .value = "FILE", .help = "O [b, sq, hq, dv], fp16 or fp32" },
    { .name = "lse", .kind = &cli_text, FIELD(lse), .value = "FILE", .help = "LSE [b, hq, sq], fp32 (default: not written)" },
    { .name = "dtype", .letter = 't', .kind = &cli_choice, FIELD(dtype), .value = "TYPE",
      .help = "what is computed with; the files are rounded to it (default: fp16 from fp16 files, else fp32)", .words = cli_dtypes },
    { .name = "o-dtype", .kind = &cli_choice, FIELD(o_dtype), .value = "TYPE", .help = "what O is rounded to (default: as --dtype)",
      .words = cli_dtypes },
    { .name = "causal", FIELD(causal), .help = "a query sees no later key" },
    { .name = "window", .kind = &cli_window, FIELD(window), .value = "L,R", .help = "keys seen to the left and right of the diagonal, -1 = all",
      .preset = "-1,-1" },
    { .name = "diagonal", .kind = &cli_choice, FIELD(diagonal), .value = "WHERE", .help = "where the mask's diagonal ends",
      .preset = "bottom-right", .words = diagonals },
    { .name = "offset", .kind = &cli_int, FIELD(offset), .value = "KEYS", .help = "with --diagonal offset", .preset = "0",
      .min = -FA_MAX_LENGTH, .max = FA_MAX_LENGTH },
    { .name = "scale", .kind = &cli_real, FIELD(scale), .value = "X", .help = "multiplies the scores (default 1/sqrt(d))" },
    { .name = "check", FIELD(check), .help = "hold the result against attention in fp64 on the CPU; exit 4 when it is wrong" },
    { .name = NULL },
};
static const cli_group groups[] = { { "Tensors and mask", options, 0 }, CLI_WHERE(attend_args), CLI_SIM(attend_args), CLI_COMMON, { NULL, NULL, 0 } };

typedef struct inputs {
    cli_npy t[3];
    fa_problem p;
} inputs;

static float element(void *user, int tensor, size_t i)
{
    const inputs *in = user;
    return cli_npy_at(&in->t[tensor], i);
}

/* The files' shapes agree; the problem is filled from them. */
static fa_status shapes(inputs *in, const attend_args *a)
{
    const char *names[3] = { a->q, a->k, a->v };
    const cli_npy *q = &in->t[0], *k = &in->t[1], *v = &in->t[2];
    fa_problem p = FA_PROBLEM_INIT;
    for (int i = 0; i < 3; i++) {
        if (in->t[i].n != 4)
            return fa_fail(FA_INVALID, "%s: %d dimensions; accepted: 4, [b, s, h, d]", names[i], in->t[i].n);
        for (int j = 0; j < 4; j++)
            if (in->t[i].dim[j] < 1 || in->t[i].dim[j] > FA_MAX_LENGTH)
                return fa_fail(FA_INVALID, "%s: dimension %d is %lld; accepted: 1 to %d", names[i], j, (long long)in->t[i].dim[j], FA_MAX_LENGTH);
    }
    const struct {
        const char *what;
        int64_t a, b;
        const char *file, *other;
    } same[] = {
        { "batch", k->dim[0], q->dim[0], a->k, a->q }, { "batch", v->dim[0], q->dim[0], a->v, a->q },
        { "head_dim", k->dim[3], q->dim[3], a->k, a->q }, { "key length", v->dim[1], k->dim[1], a->v, a->k },
        { "key/value heads", v->dim[2], k->dim[2], a->v, a->k },
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (same[i].a != same[i].b)
            return fa_fail(FA_INVALID, "%s: %s is %lld; accepted with %s: %lld", same[i].file, same[i].what, (long long)same[i].a, same[i].other,
                           (long long)same[i].b);
    if (q->dtype != k->dtype || q->dtype != v->dtype)
        return fa_fail(FA_INVALID, "%s, %s and %s differ in type; accepted: all fp16 or all fp32", a->q, a->k, a->v);
    p.dtype = a->dtype ? a->dtype : q->dtype;
    p.o_dtype = a->o_dtype;
    p.d = (int32_t)q->dim[3];
    p.dv = (int32_t)v->dim[3];
    p.b = (int32_t)q->dim[0];
    p.sq = (int32_t)q->dim[1];
    p.hq = (int32_t)q->dim[2];
    p.sk = (int32_t)k->dim[1];
    p.hkv = (int32_t)k->dim[2];
    bool window = a->window[0] >= 0 || a->window[1] >= 0;
    if (window && a->causal && a->window[1] > 0)
        return fa_fail(FA_INVALID, "--causal and --window %d,%d contradict each other", a->window[0], a->window[1]);
    p.mask = window ? FA_MASK_WINDOW : a->causal ? FA_MASK_CAUSAL : FA_MASK_NONE;
    return fa_problem_normalize(&in->p, &p);
}

static bool to_stdout(const attend_args *a)
{
    return !strcmp(a->o, "-") || (a->lse && !strcmp(a->lse, "-"));
}

static fa_status read_inputs(inputs *in, const attend_args *a)
{
    const char *names[3] = { a->q, a->k, a->v };
    const struct {
        const char *option, *value;
    } needed[] = { { "q", a->q }, { "k", a->k }, { "v", a->v }, { "output", a->o } };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].value)
            return fa_fail(FA_INVALID, "--%s is missing; accepted: a .npy file", needed[i].option);
    if (a->lse && !strcmp(a->lse, a->o))
        return fa_fail(FA_INVALID, "--output and --lse are both \"%.80s\"; accepted: two files", a->o);
    fa_status st = FA_OK;
    for (int i = 0; i < 3 && st == FA_OK; i++)
        st = cli_npy_read(&in->t[i], names[i]);
    return st == FA_OK ? shapes(in, a) : st;
}

/* O as fp32 in `o`. */
static fa_status write_outputs(const attend_args *a, const cli_tensors *t, const fa_problem *p, const float *o, const float *lse)
{
    const int64_t o_dim[4] = { p->b, p->sq, p->hq, p->dv }, lse_dim[3] = { p->b, p->hq, p->sq };
    fa_status st = FA_OK;
    if (cli_tensors_dtype(t, CLI_O) == FA_F16) {
        uint16_t *half = malloc(t->count[CLI_O] * sizeof *half);
        if (!half)
            return fa_fail(FA_NOMEM, "O: host memory");
        for (size_t i = 0; i < t->count[CLI_O]; i++)
            half[i] = fa_number_to_f16(o[i]);
        st = cli_npy_write(a->o, FA_F16, 4, o_dim, half);
        free(half);
    } else {
        st = cli_npy_write(a->o, FA_F32, 4, o_dim, o);
    }
    if (st == FA_OK && a->lse)
        st = cli_npy_write(a->lse, FA_F32, 3, lse_dim, lse);
    return st;
}

static float *rounded(const cli_npy *a, int dtype)
{
    float *x = malloc(a->count * sizeof *x);
    for (size_t i = 0; x && i < a->count; i++)
        x[i] = fa_number_round(cli_npy_at(a, i), dtype);
    return x;
}

/* The rule of autotune/verify.h. */
static fa_status judge(const inputs *in, const fa_args *args, int o_dtype, const float *o, const float *lse, fa_verdict *v)
{
    const fa_problem *p = &in->p;
    int64_t n = (int64_t)p->b * p->hq * p->sq * p->dv, rows = (int64_t)p->b * p->hq * p->sq;
    fa_band band = fa_band_of(p, args->diagonal, args->offset, args->window_left, args->window_right);
    float *x[3] = { rounded(&in->t[0], p->dtype), rounded(&in->t[1], p->dtype), rounded(&in->t[2], p->dtype) };
    double *exact = malloc((size_t)n * sizeof *exact), *exact_lse = malloc((size_t)rows * sizeof *exact_lse);
    float *naive = malloc((size_t)n * sizeof *naive);
    double luck;
    fa_status st = FA_NOMEM;
    *v = (fa_verdict){ .ok = false };
    if (x[0] && x[1] && x[2] && exact && exact_lse && naive) {
        fa_attention a = { p->b, p->hq, p->hkv, p->sq, p->sk, p->d, p->dv, band.lo, band.hi,
                           args->scale > 0 ? args->scale : (float)(1 / sqrt(p->d)), x[0], x[1], x[2] };
        st = fa_oracle_exact(&a, exact, exact_lse);
        if (st == FA_OK)
            st = fa_oracle_naive(&a, p->dtype, o_dtype, naive, &luck);
        if (st == FA_OK) {
            v->o = fa_verify_errors(o, exact, n, false);
            v->naive = fa_verify_errors(naive, exact, n, false);
            v->lse = fa_verify_errors(lse, exact_lse, rows, true);
            fa_scale scale = fa_verify_scale(exact, n, exact_lse, rows, o_dtype, true);
            scale.luck = luck;
            fa_verify_judge(v, &scale);
        }
    } else {
        fa_fail(st, "--check: host memory");
    }
    for (int i = 0; i < 3; i++)
        free(x[i]);
    free(exact);
    free(exact_lse);
    free(naive);
    return st == FA_OK && !v->ok ? fa_fail(FA_WRONG, "%s", v->text) : st;
}

static int answer(cli *c, const attend_args *a, const cli_session *s, const cli_tensors *t, const fa_problem *p, const fa_verdict *v, double seconds)
{
    char text[256], why[4096] = "";
    if (a->check && !v->ok)
        fprintf(stderr, "fagen attend: the result is wrong: %s\n", v->text);
    fa_problem_print(text, sizeof text, p);
    fa_explain(s->ctx, NULL, &t->args, why, sizeof why);
    if (c->json) {
        json_t *doc = json_pack("{s:o,s:s,s:s,s:o,s:s,s:o}", "device", cli_session_json(s), "problem", text, "output", a->o, "lse",
                                a->lse ? json_string(a->lse) : json_null(), "explain", why, "seconds", cli_json_number(seconds));
        if (a->check)
            json_object_set_new(doc, "check", json_pack("{s:b,s:o,s:o,s:o}", "ok", v->ok, "max_error", cli_json_number(v->o.most), "allowed",
                                                        cli_json_number(v->most), "lse_error", cli_json_number(v->lse.most)));
        return cli_answer(c, doc, a->check && !v->ok ? CLI_EXIT_WRONG : CLI_EXIT_OK);
    }
    FILE *to = to_stdout(a) ? stderr : stdout;
    if (!c->quiet) {
        fprintf(to, "%sran        one launch%s, %s with what came before it\n", why, s->simulated ? " on the simulator" : "", cli_show_seconds(seconds));
        fprintf(to, "wrote      %s%s%s\n", a->o, a->lse ? ", " : "", a->lse ? a->lse : "");
    }
    if (a->check)
        fprintf(to, "check      %s: max error %.3g of %.3g allowed, naive %.3g, LSE %.3g\n", v->ok ? "ok" : "WRONG", v->o.most, v->most, v->naive.most,
               v->lse.most);
    return a->check && !v->ok ? CLI_EXIT_WRONG : CLI_EXIT_OK;
}

static int run(cli *c, const void *args, int n, char **words)
{
    const attend_args *a = args;
    inputs in = { .p = FA_PROBLEM_INIT };
    cli_session s = { .ctx = NULL };
    cli_tensors t = { .ctx = NULL };
    fa_verdict v = { .ok = true };
    float *o = NULL, *lse = NULL;
    sim_options on = { .threads = 0 };
    (void)n, (void)words;
    fa_status st = read_inputs(&in, a), wrong = FA_OK;
    if (st == FA_OK && c->json && to_stdout(a))
        st = fa_fail(FA_INVALID, "--json and a file that is \"-\" both want standard output; accepted: one of them");
    if (st == FA_OK)
        st = cli_session_open(&s, c, &a->where);
    if (st == FA_OK)
        st = cli_sim_set(&a->sim, s.simulated, &on);
    if (st == FA_OK)
        sim_set_options(&on);
    if (st == FA_OK)
        st = cli_tensors_open(&t, s.ctx, &in.p);
    if (st == FA_OK)
        st = cli_tensors_fill(&t, element, &in);
    double start = cli_clock();
    if (st == FA_OK) {
        t.args.window_left = a->window[0];
        t.args.window_right = a->causal && a->window[0] >= 0 ? 0 : a->window[1];
        t.args.diagonal = in.p.mask == FA_MASK_NONE ? FA_BOTTOM_RIGHT : a->diagonal;
        t.args.offset = a->offset;
        t.args.scale = a->scale;
        st = cli_tensors_launch(&t, NULL);
    }
    double seconds = cli_clock() - start;
    if (st == FA_OK)
        st = cli_tensors_get(&t, CLI_O, &o);
    if (st == FA_OK)
        st = cli_tensors_get(&t, CLI_LSE, &lse);
    if (st == FA_OK && a->check)
        st = wrong = judge(&in, &t.args, cli_tensors_dtype(&t, CLI_O), o, lse, &v);
    if (st == FA_OK || wrong == FA_WRONG)
        st = write_outputs(a, &t, &in.p, o, lse);
    int code = st == FA_OK ? answer(c, a, &s, &t, &in.p, &v, seconds) : cli_fail(c, st);
    cli_sim_tell(c, &a->sim);
    free(o);
    free(lse);
    cli_tensors_close(&t);
    cli_session_close(&s);
    for (int i = 0; i < 3; i++)
        cli_npy_free(&in.t[i]);
    return code;
}

const cli_command cli_attend = {
    .name = "attend", .summary = "attention of tensors in .npy files",
    .usage = "--q FILE --k FILE --v FILE -o FILE [--lse FILE] [--causal] [--check]",
    .about = "Reads Q, K and V, runs fa_launch once and writes O, and LSE where asked. Heads, lengths and sizes are those of the files; fewer "
             "key/value heads than query heads are GQA. With --dtype bf16 the fp32 files are rounded, and O is written as fp32.",
    .examples = "fagen attend --q q.npy --k k.npy --v v.npy -o o.npy --lse lse.npy --causal\n"
                "fagen attend --q q.npy --k k.npy --v v.npy -o o.npy --dtype bf16 --window 128,0 --check --device sim:sm_80",
    .groups = groups, .size = sizeof(attend_args), .run = run,
};
