/* backward: the gradients of attention of tensors in .npy files: a forward launch for O and LSE, then a backward one. */
#include "attend.h"
#include "cli/session/check.h"
#include "cli/text/progress.h"
#include "cli/text/say.h"
#include "gen/error.h"
#include "gen/pairs.h"
#include "gen/problem.h"
#include "verify/operands/number.h"
#include "verify/operands/tensors.h"
#include "verify/truth/expected.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The files by row of the operation; NULL = drawn from nothing, or not to be written. */
typedef struct files {
    const fa_operation *op;
    cli_npy in[FA_OPERANDS_MAX]; /* those that are read here; inputs of the forward operation are in `given` */
    const attend_inputs *given;
    const char *name[FA_OPERANDS_MAX];
} files;

/* Whether it is an operand of gradients alone. */
static bool is_new(const fa_operand *o)
{
    return fa_operand_slot(fa_operation_find(FA_FORWARD), o->id) < 0;
}

static void name_files(files *f, const attend_args *a)
{
    for (int i = 0; i < f->op->n; i++)
        if (!f->given->t[f->op->operand[i].id].file)
            f->name[i] = a->file[f->op->operand[i].id];
}

static fa_status check_options(const attend_args *a, const fa_operation *op)
{
    for (int i = 0; i < op->n; i++)
        if (is_new(&op->operand[i]) && !op->operand[i].optional && !a->file[op->operand[i].id])
            return fa_fail(FA_INVALID, "--%s is missing; accepted with --backward: a .npy file", op->operand[i].word);
    for (fa_operand_id id = FA_ID_NONE + 1; id < FA_ID_COUNT; id++) {
        int row = fa_operand_slot(fa_operation_find(FA_FORWARD), id);
        if (row >= 0 && a->file[id] && fa_operation_find(FA_FORWARD)->operand[row].drawn == FA_DRAWN_SEQUENCES)
            return fa_fail(FA_INVALID, "--backward and \"%.80s\"; accepted: dense tensors, without lengths and pages", a->file[id]);
    }
    return FA_OK;
}

/* A file of gradients has the dimensions of what it is a gradient of. */
static fa_status read_file(files *f, const fa_problem *p, int i)
{
    fa_sizes sizes = fa_sizes_of(p, 0);
    cli_npy *t = &f->in[i];
    fa_dims d;
    fa_status st = cli_npy_read(t, f->name[i]);
    if (st != FA_OK)
        return st;
    fa_operand_dims(&d, &f->op->operand[i], &sizes);
    if (cli_npy_has_integers(t))
        return fa_fail(FA_INVALID, "%s: elements are %s; accepted: fp16, fp32", f->name[i], cli_npy_type(t));
    if (t->n != f->op->operand[i].rank)
        return fa_fail(FA_INVALID, "%s: %d dimensions; accepted: %d", f->name[i], t->n, f->op->operand[i].rank);
    for (int k = 0; k < t->n; k++)
        if (t->dim[k] != d.of[k])
            return fa_fail(FA_INVALID, "%s: dimension %d is %lld; accepted: %lld", f->name[i], k, (long long)t->dim[k], (long long)d.of[k]);
    return FA_OK;
}

static fa_status read_files(files *f, const fa_problem *p)
{
    fa_status st = FA_OK;
    for (int i = 0; i < f->op->n && st == FA_OK; i++)
        if (is_new(&f->op->operand[i]) && !f->op->operand[i].output && f->name[i])
            st = read_file(f, p, i);
    return st;
}

static float element(void *user, int operand, size_t i)
{
    const files *f = user;
    const cli_npy *given = &f->given->t[f->op->operand[operand].id];
    if (given->file)
        return cli_npy_at(given, i);
    return f->in[operand].file ? cli_npy_at(&f->in[operand], i) : 0;
}

static fa_status write_file(const char *file, const fa_tensors *t, int i, const float *x)
{
    const fa_operand *o = &t->op->operand[i];
    fa_sizes sizes = fa_sizes_of(&t->problem, 0);
    fa_dims d;
    fa_operand_dims(&d, o, &sizes);
    if (fa_operand_dtype(o, &t->problem) != FA_F16)
        return cli_npy_write(file, FA_F32, o->rank, d.of, x);
    uint16_t *half = malloc(t->count[i] * sizeof *half + 1);
    if (!half)
        return fa_fail(FA_NOMEM, "%s: host memory", file);
    for (size_t k = 0; k < t->count[i]; k++)
        half[k] = fa_number_to_f16(x[k]);
    fa_status st = cli_npy_write(file, FA_F16, o->rank, d.of, half);
    free(half);
    return st;
}

/* The rule of verify/truth/rule.h. x: every operand as the device has it. */
static fa_status judge(const fa_tensors *t, float *const x[FA_OPERANDS_MAX], fa_verdict *v)
{
    const fa_args *args = &t->args;
    const float *got[FA_OPERANDS_MAX] = { NULL };
    fa_reference_call c = { .op = t->op,
                            .problem = t->problem,
                            .scale = args->scale > 0 ? args->scale : (float)(1 / sqrt(args->d)),
                            .band = fa_band_of(&t->problem, args->diagonal, args->offset, args->window_left, args->window_right),
                            .dropout = fa_dropout_of(args->dropout, t->rng[0], t->rng[1]),
                            .score = &t->score,
                            .relative = args->diagonal == FA_BOTTOM_RIGHT,
                            .off = fa_offset_of(args->diagonal, args->offset),
                            .approximate = !fa_device_is_simulated(fa_context_device(t->ctx)) };
    fa_expected e = { .row = NULL };
    for (int i = 0; i < t->op->n; i++) {
        c.in[i] = t->op->operand[i].output ? NULL : x[i];
        got[i] = t->op->operand[i].output ? x[i] : NULL;
    }
    fa_status st = fa_expected_open(&e, &c);
    if (st == FA_OK)
        st = fa_expected_exact(&e);
    if (st == FA_OK)
        st = fa_expected_finish(&e);
    if (st == FA_OK && !fa_expected_judge(&e, got, v))
        st = fa_fail(FA_WRONG, "%s", v->text);
    fa_expected_close(&e);
    return st;
}

static int answer(cli *c, const attend_args *a, const cli_session *s, const fa_tensors *t, const fa_verdict *v, double seconds)
{
    char text[FA_PROBLEM_TEXT], why[4096] = "";
    fa_problem_print(text, sizeof text, &t->problem);
    fa_explain(s->ctx, NULL, &t->args, why, sizeof why);
    if (a->check && !v->ok)
        cli_say(stderr, "fagen attend: the result is wrong: %s\n", v->text);
    int code = a->check && !v->ok ? CLI_EXIT_WRONG : CLI_EXIT_OK;
    if (c->json)
        return cli_answer(c,
                          json_pack("{s:o,s:s,s:s,s:s,s:s,s:s,s:o,s:o}", "device", cli_session_json(s), "problem", text, "grad_q",
                                    a->file[FA_ID_grad_q], "grad_k", a->file[FA_ID_grad_k], "grad_v", a->file[FA_ID_grad_v], "explain", why,
                                    "seconds", cli_json_number(seconds), "check", a->check ? cli_check_json(v) : json_null()),
                          code);
    if (!c->quiet)
        cli_say(stdout, "%sran        one launch%s, %s with what came before it\nwrote      %s, %s, %s\n", why,
                s->simulated ? " on the simulator" : "", cli_show_seconds(seconds), a->file[FA_ID_grad_q], a->file[FA_ID_grad_k],
                a->file[FA_ID_grad_v]);
    if (a->check)
        cli_check_print(stdout, v, false);
    return code;
}

/* Tensors of the files, O and LSE of a forward launch, and the gradients. */
static fa_status launch(fa_tensors *t, const cli_session *s, const attend_args *a, files *f, const fa_problem *p)
{
    fa_status st = fa_tensors_open(t, s->ctx, p);
    if (st != FA_OK)
        return st;
    attend_mask(&t->args, a, p);
    t->rng[0] = a->seed;
    st = attend_scores(t, a);
    if (st == FA_OK)
        st = fa_tensors_fill(t, element, f); /* with O and LSE by a launch, which reads the program's operands */
    return st == FA_OK ? fa_tensors_launch(t, NULL) : st;
}

int attend_backward(cli *c, const attend_args *a, const attend_inputs *in, const cli_session *s)
{
    files f = { .op = fa_operation_find(FA_BACKWARD), .given = in };
    fa_problem p = in->p;
    fa_tensors t = { .ctx = NULL };
    fa_verdict v = { .ok = true };
    float *x[FA_OPERANDS_MAX] = { NULL };
    name_files(&f, a);
    p.op = FA_BACKWARD;
    p.grad_dtype = a->grad_dtype;
    fa_status st = check_options(a, f.op), wrong = FA_OK;
    if (st == FA_OK)
        st = fa_problem_normalize(&p, &p);
    if (st == FA_OK)
        st = read_files(&f, &p);
    double start = cli_clock();
    if (st == FA_OK)
        st = launch(&t, s, a, &f, &p);
    double seconds = cli_clock() - start;
    for (int i = 0; i < f.op->n && st == FA_OK; i++)
        if (t.count[i] && fa_operand_dtype(&f.op->operand[i], &p))
            st = fa_tensors_get(&t, i, &x[i]);
    if (st == FA_OK && a->check)
        st = wrong = judge(&t, x, &v);
    for (int i = 0; i < f.op->n && (st == FA_OK || wrong == FA_WRONG); i++)
        if (f.name[i] && !f.in[i].file) {
            fa_status wrote = write_file(f.name[i], &t, i, x[i]);
            st = wrong = wrote == FA_OK ? wrong : wrote;
        }
    int code = st == FA_OK || wrong == FA_WRONG ? answer(c, a, s, &t, &v, seconds) : cli_fail(c, st);
    for (int i = 0; i < FA_OPERANDS_MAX; i++) {
        free(x[i]);
        cli_npy_free(&f.in[i]);
    }
    fa_tensors_close(&t);
    return code;
}
