/* problem_list: combinations of lists, and grids narrowed by them. */
#include "problem_list.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <stdlib.h>

#define FIELD(f) .at = offsetof(cli_problem_lists, f)
#define LENGTH .min = 1, .max = FA_MAX_LENGTH
/* clang-format off */
const cli_option cli_problem_lists_table[] = {
    { .name = "op", .type = &cli_choices, FIELD(op), .value = "LIST", .help = "what is computed (default forward)", .words = cli_ops },
    { .name = "head-dim", .letter = 'd', .type = &cli_ints, FIELD(d), .value = "LIST",
      .help = "head_dims, as 64,128", .min = 1, .max = FA_MAX_HEAD_DIM },
    { .name = "dv", .type = &cli_int, FIELD(dv), .value = "D",
      .help = "head_dim of V and O (default: as Q)", .min = 1, .max = FA_MAX_HEAD_DIM },
    { .name = "dtype", .letter = 't', .type = &cli_choices, FIELD(dtype), .value = "LIST",
      .help = "types (default bf16)", .words = cli_dtypes },
    { .name = "mask", .type = &cli_choices, FIELD(mask), .value = "LIST", .help = "masks (default none)", .words = cli_masks },
    { .name = "causal", FIELD(causal), .help = "the same as --mask causal" },
    CLI_WINDOW_ROW(offsetof(cli_problem_lists, window)),
    { .name = "n", .letter = 'n', .type = &cli_ints, FIELD(n), .value = "LIST", .help = "lengths of queries and keys", LENGTH },
    { .name = "sq", .type = &cli_int, FIELD(sq), .value = "N", .help = "query length (default: as -n)", LENGTH },
    { .name = "sk", .type = &cli_int, FIELD(sk), .value = "N", .help = "key length (default: as -n)", LENGTH },
    { .name = "batch", .letter = 'b', .type = &cli_int, FIELD(b), .value = "B", .help = "batch (default 1)", .min = 1, .max = 1 << 20 },
    { .name = "heads", .letter = 'H', .type = &cli_int, FIELD(hq), .value = "H", .help = "query heads", .min = 1, .max = 1 << 16 },
    { .name = "kv-heads", .type = &cli_int, FIELD(hkv), .value = "H",
      .help = "key/value heads (default: as query heads)", .min = 1, .max = 1 << 16 },
    CLI_FEATURE_ROWS(offsetof(cli_problem_lists, features), offsetof(cli_problem_lists, page)),
    CLI_LOW_ROWS(offsetof(cli_problem_lists, low)),
    CLI_SCORE_ROWS(offsetof(cli_problem_lists, score)),
    { .name = "problem", .type = &cli_text, FIELD(problem), .value = "TEXT", .help = "one problem in one text, instead of the lists" },
    { .name = "grid", .letter = 'g', .type = &cli_text, FIELD(grid), .value = "NAME",
      .help = "a named set of problems, narrowed by the lists: default, llm-prefill, llm-decode-like, llm-decode, llm-verify, llm-low-bits, llm-mixed, training, vit, all, scores" },
    { .name = NULL },
};
/* clang-format on */

bool cli_problem_lists_given(const cli_problem_lists *a)
{
    return a->d.n || a->dtype.n || a->mask.n || a->n.n || a->dv || a->b || a->hq || a->hkv || a->sq || a->sk || a->causal || a->problem ||
           a->grid || a->window.given;
}

/* Problem i of the combinations, which may be unsound; false past the last. */
static bool combination(const cli_problem_lists *a, const cli_problem_lists *usual, size_t i, fa_problem *out)
{
    const cli_list *lists[] = { &a->op, a->d.n ? &a->d : &usual->d, &a->dtype, &a->mask, a->n.n ? &a->n : &usual->n };
    int32_t v[5];
    fa_problem p = FA_PROBLEM_INIT;
    bool there = cli_list_combine(lists, 5, i, v);
    p.op = v[0] ? v[0] - 1 : FA_FORWARD;
    p.d = v[1] ? v[1] : 128;
    p.dtype = v[2] ? v[2] : FA_BF16;
    p.mask = a->causal ? FA_MASK_CAUSAL : v[3] ? v[3] - 1 : FA_MASK_NONE;
    p.sq = a->sq ? a->sq : v[4];
    p.sk = a->sk ? a->sk : v[4];
    p.dv = a->dv;
    p.b = a->b ? a->b : usual->b;
    p.hq = a->hq ? a->hq : a->hkv ? 0 : usual->hq;
    p.hkv = a->hkv;
    *out = p;
    return there;
}

static bool holds(const cli_list *l, int32_t v)
{
    for (int32_t i = 0; i < l->n; i++)
        if (l->v[i] == v)
            return true;
    return l->n == 0;
}

/* Whether the lists leave a problem of a grid. class: the features and the page that are asked for. */
static bool keeps(const cli_problem_lists *a, const fa_problem *class, const fa_problem *p)
{
    return holds(&a->op, p->op + 1) && holds(&a->d, p->d) && holds(&a->dtype, p->dtype) && holds(&a->mask, p->mask + 1) &&
           holds(&a->n, p->sk) && (!a->causal || p->mask == FA_MASK_CAUSAL) && (!a->sq || p->sq == a->sq) && (!a->sk || p->sk == a->sk) &&
           (p->features & class->features) == class->features && (!class->page || p->page == class->page);
}

/* A problem of a grid, with the program and the formats that the command line names. */
static fa_status with_options(const cli_problem_lists *a, fa_problem *p)
{
    fa_problem named = *p;
    fa_status st = cli_score_set(&a->score, &named);
    if (st == FA_OK)
        st = cli_low_set(&named, &a->low);
    return st == FA_OK ? fa_problem_normalize(p, &named) : st;
}

static fa_status from_grid(cli_problem_list *out, const cli_problem_lists *a)
{
    const struct {
        bool given;
        const char *name;
    } apart[] = { { a->problem, "--problem" }, { a->dv, "--dv" },        { a->b, "--batch" },
                  { a->hq, "--heads" },        { a->hkv, "--kv-heads" }, { a->window.given, "--window" } };
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        if (apart[i].given)
            return fa_fail(FA_INVALID,
                           "--grid %s and %s do not go together; a grid is narrowed by --op, --head-dim, --dtype, --mask, -n, --sq, --sk, "
                           "--features and --page",
                           a->grid, apart[i].name);
    size_t n = cli_grid_list(a->grid, out->row);
    if (!n)
        return cli_grid_unknown(a->grid, " (fagen tune --list-grids tells what they hold)");
    fa_problem class = FA_PROBLEM_INIT;
    if (a->page) /* else any page that has the features */
        cli_features_set(&class, a->features, a->page);
    class.features |= a->features;
    for (size_t i = 0; i < n; i++)
        if (keeps(a, &class, &out->row[i].problem))
            out->row[out->n++] = out->row[i];
    fa_status st = FA_OK;
    for (size_t i = 0; st == FA_OK && i < out->n && (a->score.name || a->score.file || a->low.kv || a->low.v || a->low.scale); i++)
        st = with_options(a, &out->row[i].problem);
    if (st != FA_OK)
        return st;
    return out->n ? FA_OK
                  : fa_fail(FA_INVALID, "--grid %s holds no such problem; fagen tune --list-grids --grid %s shows the %zu it holds",
                            a->grid, a->grid, n);
}

static fa_status add(cli_problem_list *out, const cli_problem_lists *a, fa_problem *p)
{
    cli_grid_row *row = &out->row[out->n];
    fa_status st = cli_features_set(p, a->features, a->page);
    if (st == FA_OK)
        st = cli_window_set(p, &a->window, a->mask.n || a->causal);
    if (st == FA_OK)
        st = cli_score_set(&a->score, p);
    if (st == FA_OK)
        st = cli_low_set(p, &a->low);
    if (st == FA_OK)
        st = fa_problem_normalize(&row->problem, p);
    if (st == FA_OK)
        fa_problem_fill_shape(&row->problem);
    row->why = "";
    out->n++;
    return st;
}

static fa_status from_text(cli_problem_list *out, const cli_problem_lists *a)
{
    fa_problem p;
    const fa_program *program;
    fa_status st = cli_score_read(&a->score, &program, NULL); /* which the text may name */
    if (st == FA_OK)
        st = fa_wrap(fa_problem_parse(&p, a->problem), "--problem");
    return st == FA_OK ? add(out, a, &p) : st;
}

fa_status cli_problem_list_make(cli_problem_list *out, const cli_problem_lists *a, const cli_problem_lists *usual)
{
    size_t most = CLI_GRID_MOST;
    fa_problem p;
    fa_status st = FA_OK;
    *out = (cli_problem_list){ .n = 0 };
    if (a->causal && a->mask.n)
        return fa_fail(FA_INVALID, "--causal and --mask are two ways to say one thing; accepted: one of them");
    for (size_t i = 0; !a->grid && combination(a, usual, i, &p); i++)
        most = i + 1 > most ? i + 1 : most;
    out->row = calloc(most, sizeof *out->row);
    if (!out->row)
        return fa_fail(FA_NOMEM, "no memory for %zu problems", most);
    if (a->grid)
        st = from_grid(out, a);
    else if (a->problem)
        st = from_text(out, a);
    for (size_t i = 0; !a->grid && !a->problem && st == FA_OK && combination(a, usual, i, &p); i++)
        st = add(out, a, &p);
    if (st != FA_OK)
        cli_problem_list_free(out);
    return st;
}

void cli_problem_list_free(cli_problem_list *l)
{
    free(l->row);
    *l = (cli_problem_list){ .n = 0 };
}
