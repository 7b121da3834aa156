/* attend: attention of tensors in .npy files, dense, or of sequences of their own lengths. */
#include "attend.h"
#include "cli/options/problem_options.h"
#include "cli/session/check.h"
#include "cli/text/progress.h"
#include "cli/text/say.h"
#include "gen/error.h"
#include "gen/pairs.h"
#include "gen/problem.h"
#include "runtime/args/lengths.h"
#include "verify/operands/number.h"
#include "verify/operands/tensors.h"
#include "verify/truth/expected.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PLACE(f) .at = offsetof(attend_args, f)
static const cli_word diagonals[] = {
    { "bottom-right", FA_BOTTOM_RIGHT }, { "top-left", FA_TOP_LEFT }, { "offset", FA_OFFSET }, { NULL, 0 }
};

/* The file of an operand, in the group that its row names. */
#define FILE_OF(field, word, with, text, ...) \
    { .name = word, .letter = with, .type = &cli_text, PLACE(file[FA_ID_##field]), .value = "FILE", .help = text },
#define TENSOR_IN_TENSORS(...) FILE_OF(__VA_ARGS__)
#define TENSOR_IN_SEQUENCES(...)
#define TENSOR_IN_GRADIENTS(...)
#define TENSOR_IN_NONE(...)
#define LIST_IN_TENSORS(...)
#define LIST_IN_SEQUENCES(...) FILE_OF(__VA_ARGS__)
#define LIST_IN_GRADIENTS(...)
#define LIST_IN_NONE(...)
#define GRADIENT_IN_TENSORS(...)
#define GRADIENT_IN_SEQUENCES(...)
#define GRADIENT_IN_GRADIENTS(...) FILE_OF(__VA_ARGS__)
#define GRADIENT_IN_NONE(...)

/* clang-format off */
static const cli_option options[] = {
#define OPERAND(field, forward, backward, merge, append, what, files, ...) TENSOR_IN_##files(field, __VA_ARGS__)
#include "gen/operands.def"
    { .name = "dv", .type = &cli_int, PLACE(dv), .value = "D",
      .help = "V inside K, in the place of --v: V is the first D columns of K", .min = 1, .max = FA_MAX_HEAD_DIM },
    { .name = "dtype", .letter = 't', .type = &cli_choice, PLACE(dtype), .value = "TYPE",
      .help = "what is computed with; the files are rounded to it (default: fp16 from fp16 files, else fp32)", .words = cli_dtypes },
    { .name = "o-dtype", .type = &cli_choice, PLACE(o_dtype), .value = "TYPE", .help = "what O is rounded to (default: as --dtype)",
      .words = cli_dtypes },
    { .name = "causal", PLACE(causal), .help = "a query sees no later key" },
    { .name = "window", .type = &cli_window, PLACE(window), .value = "L,R",
      .help = "keys seen to the left and right of the diagonal, -1 = all",
      .preset = "-1,-1" },
    { .name = "diagonal", .type = &cli_choice, PLACE(diagonal), .value = "WHERE", .help = "where the mask's diagonal ends",
      .preset = "bottom-right", .words = diagonals },
    { .name = "offset", .type = &cli_int, PLACE(offset), .value = "KEYS", .help = "with --diagonal offset", .preset = "0",
      .min = -FA_MAX_LENGTH, .max = FA_MAX_LENGTH },
    { .name = "scale", .type = &cli_scale, PLACE(scale), .value = "X", .help = "multiplies the scores (default 1/sqrt(d))" },
    { .name = "dropout", .type = &cli_real, PLACE(dropout), .value = "P",
      .help = "drop each weight with this probability, 0 to below 1, and divide the others by 1 - P (default 0)" },
    { .name = "seed", .letter = 's', .type = &cli_seed, PLACE(seed), .value = "N",
      .help = "of --dropout: the same weights are dropped for the same seed, with --backward too", .preset = "0" },
    CLI_LOW_ROWS(offsetof(attend_args, low)),
    CLI_SCORE_ROWS(offsetof(attend_args, score)),
    { .name = "operand", .type = &cli_text, PLACE(operand), .value = "NAME=FILE,...",
      .help = "arrays of the score program, by their names in its text: fp16 or fp32, or integers" },
    { .name = "force", PLACE(force), .help = "write over a file that is read" },
    { .name = "check", PLACE(check), .help = "hold the result against attention in fp64 on the CPU; exit 4 when it is wrong" },
    { .name = NULL },
};
static const cli_option lengths[] = {
#define OPERAND(field, forward, backward, merge, append, what, files, ...) LIST_IN_##files(field, __VA_ARGS__)
#include "gen/operands.def"
    { .name = NULL },
};
static const cli_option gradients[] = {
    { .name = "backward", PLACE(backward), .help = "dQ, dK and dV of dO, in the place of O; --output and --lse may be left out" },
#define OPERAND(field, forward, backward, merge, append, what, files, ...) GRADIENT_IN_##files(field, __VA_ARGS__)
#include "gen/operands.def"
    { .name = "grad-dtype", .type = &cli_choice, PLACE(grad_dtype), .value = "TYPE",
      .help = "what gradients are rounded to (default: as --dtype)", .words = cli_dtypes },
    { .name = NULL },
};
/* clang-format on */
static const cli_group groups[] = { { "Tensors and mask", options, 0 },
                                    { "Gradients", gradients, 0 },
                                    { "Sequences of their own lengths", lengths, 0 },
                                    CLI_WHERE(attend_args),
                                    CLI_SIM(attend_args),
                                    CLI_COMMON,
                                    { NULL, NULL, 0 } };

static float element(void *user, int operand, size_t i)
{
    return attend_element(user, fa_operation_find(FA_FORWARD)->operand[operand].id, i);
}

static bool to_stdout(const attend_args *a)
{
    return (a->file[FA_ID_o] && !strcmp(a->file[FA_ID_o], "-")) || (a->file[FA_ID_lse] && !strcmp(a->file[FA_ID_lse], "-"));
}

/* Operand i as fp32 values: a file of fp16 where its type is that, else of fp32. Of packed rows without the batch, which is 1. */
static fa_status write_output(const char *file, const fa_tensors *t, int i, const float *x)
{
    const fa_operand *o = &t->op->operand[i];
    fa_sizes sizes = fa_sizes_of(&t->problem, 0);
    char title[FA_OPERAND_TITLE];
    fa_dims d;
    fa_lengths_sizes(&sizes, &t->ragged.args);
    fa_operand_dims(&d, o, &sizes);
    int skip = t->ragged.args.cu_seqlens_q != NULL;
    if (fa_operand_dtype(o, &t->problem) != FA_F16)
        return cli_npy_write(file, FA_F32, o->rank - skip, d.of + skip, x);
    uint16_t *half = malloc(t->count[i] * sizeof *half);
    if (!half)
        return fa_fail(FA_NOMEM, "%s: host memory", fa_operand_title(title, o));
    for (size_t k = 0; k < t->count[i]; k++)
        half[k] = fa_number_to_f16(x[k]);
    fa_status st = cli_npy_write(file, FA_F16, o->rank - skip, d.of + skip, half);
    free(half);
    return st;
}

/* Rows of no sequence, which a launch leaves alone. */
static fa_status fill_unused(const fa_tensors *t, const fa_sequences *s, float *const got[FA_OPERANDS_MAX], float o, float lse)
{
    int64_t rows = fa_sequences_rows_q(s), hq = t->problem.hq, batch = rows / s->sizes.of[FA_EXTENT_BATCH_Q];
    int o_row = fa_operand_slot(t->op, FA_ID_o), lse_row = fa_operand_slot(t->op, FA_ID_lse);
    uint8_t *used = calloc((size_t)rows + 1, 1);
    if (!used)
        return fa_fail(FA_NOMEM, "no memory for %lld rows", (long long)rows);
    for (int32_t i = 0; i < s->b; i++)
        memset(used + s->of[i].q, 1, (size_t)s->of[i].nq);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t h = 0; h < hq && !used[i]; h++) {
            got[lse_row][(i / batch * hq + h) * batch + i % batch] = lse;
            for (int64_t k = 0; k < t->problem.dv; k++)
                got[o_row][(i * hq + h) * t->problem.dv + k] = o;
        }
    free(used);
    return FA_OK;
}

static fa_status write_outputs(const attend_args *a, const fa_tensors *t, float *const got[FA_OPERANDS_MAX])
{
    fa_status st = FA_OK;
    for (int i = 0; i < t->op->n && st == FA_OK; i++)
        if (t->op->operand[i].output && a->file[t->op->operand[i].id])
            st = write_output(a->file[t->op->operand[i].id], t, i, got[i]);
    return st;
}

/* n values of an input as products take them. */
static float *rounded(const attend_inputs *in, fa_operand_id id, size_t n, int dtype)
{
    float *x = malloc(n * sizeof *x);
    bool blocks = fa_number_block(dtype) > 1;
    for (size_t i = 0; x && i < n; i++)
        x[i] = attend_element(in, id, i);
    if (x)
        fa_number_round_row(x, (int64_t)n, dtype);
    for (size_t i = 0; x && blocks && i < n; i++)
        x[i] = fa_number_round(x[i], FA_F16);
    return x;
}

/* The rule of verify/truth/rule.h. */
static fa_status judge(const attend_inputs *in, const fa_tensors *t, const fa_sequences *sequences, float *const got[FA_OPERANDS_MAX],
                       fa_verdict *v)
{
    const fa_args *args = &t->args;
    fa_reference_call c = { .op = t->op,
                            .problem = t->problem,
                            .scale = args->scale > 0 ? args->scale : (float)(1 / sqrt(args->d)),
                            .band = fa_band_of(&t->problem, args->diagonal, args->offset, args->window_left, args->window_right),
                            .dropout = fa_dropout_of(args->dropout, t->rng[0], t->rng[1]),
                            .sequences = sequences,
                            .score = &t->score,
                            .relative = args->diagonal == FA_BOTTOM_RIGHT,
                            .off = fa_offset_of(args->diagonal, args->offset),
                            .approximate = !fa_device_is_simulated(fa_context_device(t->ctx)) };
    float *x[FA_OPERANDS_MAX] = { NULL };
    fa_expected e = { .row = NULL };
    fa_status st = FA_OK;
    *v = (fa_verdict){ .ok = false };
    for (int i = 0; i < t->op->n && st == FA_OK; i++) {
        const fa_operand *o = &t->op->operand[i];
        int dtype = fa_operand_dtype(o, &t->problem);
        if (dtype && t->count[i] && !o->output && (in->t[o->id].file || o->class_at)) {
            c.in[i] = x[i] = rounded(in, o->id, t->count[i] * (size_t)fa_number_block(dtype), dtype);
            st = x[i] ? FA_OK : fa_fail(FA_NOMEM, "--check: host memory");
        }
    }
    if (st == FA_OK)
        st = fa_expected_open(&e, &c);
    if (st == FA_OK)
        st = fa_expected_exact(&e);
    if (st == FA_OK)
        st = fa_expected_finish(&e);
    if (st == FA_OK && !fa_expected_judge(&e, (const float *const *)got, v))
        st = fa_fail(FA_WRONG, "%s", v->text);
    fa_expected_close(&e);
    for (int i = 0; i < FA_OPERANDS_MAX; i++)
        free(x[i]);
    return st;
}

static int answer(cli *c, const attend_args *a, const cli_session *s, const fa_tensors *t, const fa_problem *p, const fa_verdict *v,
                  double seconds)
{
    char text[FA_PROBLEM_TEXT], why[4096] = "";
    if (a->check && !v->ok)
        cli_say(stderr, "fagen attend: the result is wrong: %s\n", v->text);
    fa_problem_print(text, sizeof text, p);
    fa_explain(s->ctx, NULL, &t->args, why, sizeof why);
    if (c->json) {
        json_t *doc = json_pack("{s:o,s:s,s:s,s:o,s:s,s:o}", "device", cli_session_json(s), "problem", text, "output", a->file[FA_ID_o],
                                "lse", a->file[FA_ID_lse] ? json_string(a->file[FA_ID_lse]) : json_null(), "explain", why, "seconds",
                                cli_json_number(seconds));
        if (a->check) {
            json_t *check = cli_check_json(v);
            json_object_set_new(check, "lse_error", cli_json_number(v->lse.most));
            json_object_set_new(doc, "check", check);
        }
        return cli_answer(c, doc, a->check && !v->ok ? CLI_EXIT_WRONG : CLI_EXIT_OK);
    }
    FILE *to = to_stdout(a) ? stderr : stdout;
    if (!c->quiet) {
        cli_say(to, "%sran        one launch%s, %s with what came before it\n", why, s->simulated ? " on the simulator" : "",
                cli_show_seconds(seconds));
        cli_say(to, "wrote      %s%s%s\n", a->file[FA_ID_o], a->file[FA_ID_lse] ? ", " : "", a->file[FA_ID_lse] ? a->file[FA_ID_lse] : "");
    }
    if (a->check)
        cli_check_print(to, v, true);
    return a->check && !v->ok ? CLI_EXIT_WRONG : CLI_EXIT_OK;
}

static int run(cli *c, const void *args, int n, char **words)
{
    const attend_args *a = args;
    attend_inputs in = { .p = FA_PROBLEM_INIT };
    cli_session s = { .ctx = NULL };
    fa_tensors t = { .ctx = NULL };
    fa_verdict v = { .ok = true };
    fa_sequences sequences = { .of = NULL };
    float *got[FA_OPERANDS_MAX] = { NULL };
    sim_options on = { .threads = 0 };
    (void)n, (void)words;
    fa_status st = attend_check_outputs(a), wrong = FA_OK;
    if (st == FA_OK)
        st = attend_read(&in, a);
    if (st == FA_OK)
        st = cli_score_set(&a->score, &in.p);
    if (st == FA_OK && (a->score.name || a->score.file)) {
        fa_problem named = in.p;
        st = fa_problem_normalize(&in.p, &named);
    }
    if (st == FA_OK && c->json && to_stdout(a))
        st = fa_fail(FA_INVALID, "--json and a file that is \"-\" both want standard output; accepted: one of them");
    if (st == FA_OK)
        st = cli_session_open(&s, c, &a->where);
    if (st == FA_OK)
        st = cli_sim_set(&a->sim, s.simulated, &on);
    if (st == FA_OK)
        sim_set_options(&on);
    if (st == FA_OK && a->backward) {
        int code = attend_backward(c, a, &in, &s);
        cli_sim_tell(c, &a->sim);
        cli_session_close(&s);
        attend_free(&in);
        return code;
    }
    if (st == FA_OK)
        st = fa_tensors_open_ragged(&t, s.ctx, &in.p, &in.ragged);
    t.rng[0] = a->seed;
    if (st == FA_OK)
        st = fa_tensors_fill(&t, element, &in);
    if (st == FA_OK)
        st = attend_scores(&t, a);
    double start = cli_clock();
    if (st == FA_OK) {
        attend_mask(&t.args, a, &in.p);
        st = fa_tensors_launch(&t, NULL);
    }
    double seconds = cli_clock() - start;
    for (int i = 0; st == FA_OK && i < t.op->n; i++)
        if (t.op->operand[i].output)
            st = fa_tensors_get(&t, i, &got[i]);
    if (st == FA_OK && in.p.features) {
        st = fa_tensors_sequences(&t, &sequences);
        if (st == FA_OK)
            st = fill_unused(&t, &sequences, got, NAN, NAN);
    }
    if (st == FA_OK && a->check)
        st = wrong = judge(&in, &t, in.p.features ? &sequences : NULL, got, &v);
    if (in.p.features && (st == FA_OK || wrong == FA_WRONG)) {
        fa_status filled = fill_unused(&t, &sequences, got, 0, -INFINITY);
        st = filled == FA_OK ? st : filled;
    }
    if (st == FA_OK || wrong == FA_WRONG)
        st = write_outputs(a, &t, got);
    int code = st == FA_OK ? answer(c, a, &s, &t, &in.p, &v, seconds) : cli_fail(c, st);
    cli_sim_tell(c, &a->sim);
    for (int i = 0; i < FA_OPERANDS_MAX; i++)
        free(got[i]);
    fa_tensors_close(&t);
    cli_session_close(&s);
    fa_sequences_close(&sequences);
    attend_free(&in);
    return code;
}

const cli_command cli_attend = {
    .name = "attend",
    .summary = "attention of tensors in .npy files",
    .usage = "--q FILE --k FILE --v FILE -o FILE [--lse FILE] [--causal] [--check]",
    .about =
        "Reads Q, K and V, runs fa_launch once and writes O, and LSE where asked. Heads, lengths and sizes are those of the files; fewer "
        "key/value heads than query heads are GQA. With --dtype bf16 the fp32 files are rounded, and O is written as fp32. Files of "
        "lengths, first rows and page tables are checked to the last value. Rows past a length of queries are written as O = 0, LSE = "
        "-inf. With --dv V is the first columns of K, as in decoding with MLA's cache. With --backward the gradients of a dO are computed "
        "instead, from O and LSE of a forward launch.",
    .examples =
        "fagen attend --q q.npy --k k.npy --v v.npy -o o.npy --lse lse.npy --causal\n"
        "fagen attend --q q.npy --k k.npy --v v.npy -o o.npy --dtype bf16 --window 128,0 --check --device sim:sm_80\n"
        "fagen attend --backward --q q.npy --k k.npy --v v.npy --grad-o do.npy --grad-q dq.npy --grad-k dk.npy --grad-v dv.npy --check\n"
        "fagen attend --q q.npy --k k.npy --v v.npy -o o.npy --dtype bf16 --dropout 0.1 --seed 7 --check\n"
        "fagen attend --q q.npy --k k.npy --v v.npy --seqlens-k seqlens_k.npy --page-table page_table.npy -o o.npy --dtype bf16 --check\n"
        "fagen attend --q q.npy --k k.npy --dv 512 --seqlens-k seqlens_k.npy --page-table page_table.npy -o o.npy --dtype bf16",
    .groups = groups,
    .size = sizeof(attend_args),
    .run = run,
};
