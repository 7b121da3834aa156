/* tune_list: the problems of one command: one text, the product of the lists, or a grid that the lists narrow. */
#include "gen/error.h"
#include "gen/problem.h"
#include "problem_options.h"
#include "table.h"
#include "tune.h"
#include <stdlib.h>
#include <string.h>

/* Problem i of the combinations; false past the last. */
static bool combination(const tune_args *a, size_t i, fa_problem *out)
{
    const cli_list *lists[] = { &a->d, &a->dtype, &a->mask, &a->n };
    int32_t v[4];
    fa_problem p = FA_PROBLEM_INIT;
    bool there = cli_list_combine(lists, 4, i, v);
    p.d = v[0] ? v[0] : 128;
    p.dtype = v[1] ? v[1] : FA_BF16;
    p.mask = a->causal ? FA_MASK_CAUSAL : v[2] ? v[2] - 1 : FA_MASK_NONE;
    p.sq = p.sk = v[3];
    p.dv = a->dv;
    p.b = a->b;
    p.hq = a->hq;
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

static fa_status from_grid(tune_list *out, const tune_args *a)
{
    const struct {
        bool given;
        const char *name;
    } apart[] = { { a->problem, "--problem" }, { a->dv, "--dv" }, { a->b, "--batch" }, { a->hq, "--heads" }, { a->hkv, "--kv-heads" } };
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        if (apart[i].given)
            return fa_fail(FA_INVALID, "--grid %s and %s do not go together; a grid is narrowed by --head-dim, --dtype, --mask and -n",
                           a->grid, apart[i].name);
    size_t n = cli_grid_list(a->grid, out->row);
    if (!n)
        return cli_grid_unknown(a->grid, " (--list-grids tells what they hold)");
    for (size_t i = 0; i < n; i++) {
        const fa_problem *p = &out->row[i].problem;
        if (holds(&a->d, p->d) && holds(&a->dtype, p->dtype) && holds(&a->mask, p->mask + 1) && holds(&a->n, p->sk) &&
            (!a->causal || p->mask == FA_MASK_CAUSAL))
            out->row[out->n++] = out->row[i];
    }
    return out->n
               ? FA_OK
               : fa_fail(FA_INVALID, "--grid %s holds no such problem; --list-grids --grid %s shows the %zu it holds", a->grid, a->grid, n);
}

static fa_status from_lists(tune_list *out, const tune_args *a)
{
    fa_status st = FA_OK;
    fa_problem p;
    for (size_t i = 0; st == FA_OK && combination(a, i, &p); i++) {
        st = fa_problem_normalize(&out->row[out->n].problem, &p);
        if (st == FA_OK)
            fa_problem_fill_shape(&out->row[out->n].problem);
        out->row[out->n++].why = "";
    }
    return st;
}

fa_status tune_list_make(tune_list *out, const tune_args *a)
{
    size_t most = CLI_GRID_MOST;
    fa_problem p;
    fa_status st = FA_OK;
    *out = (tune_list){ .n = 0 };
    if (a->causal && a->mask.n)
        return fa_fail(FA_INVALID, "--causal and --mask are two ways to say one thing; accepted: one of them");
    for (size_t i = 0; !a->grid && combination(a, i, &p); i++)
        most = i + 1 > most ? i + 1 : most;
    out->row = calloc(most, sizeof *out->row);
    if (!out->row)
        return fa_fail(FA_NOMEM, "no memory for %zu problems", most);
    if (a->grid) {
        st = from_grid(out, a);
    } else if (a->problem) {
        st = fa_wrap(fa_problem_parse(&out->row[0].problem, a->problem), "--problem");
        if (st == FA_OK)
            fa_problem_fill_shape(&out->row[0].problem);
        out->row[0].why = "";
        out->n = 1;
    } else {
        st = from_lists(out, a);
    }
    if (st != FA_OK)
        tune_list_free(out);
    return st;
}

void tune_list_free(tune_list *l)
{
    free(l->row);
    *l = (tune_list){ .n = 0 };
}

static int list_problems(cli *c, const tune_args *a)
{
    tune_list l;
    cli_table t;
    char text[256];
    json_t *list = json_array();
    fa_status st = tune_list_make(&l, a);
    cli_table_open(&t, "problem for");
    for (size_t i = 0; st == FA_OK && i < l.n; i++) {
        fa_problem_print(text, sizeof text, &l.row[i].problem);
        cli_table_cells(&t, "%s\t%s", text, l.row[i].why);
        json_array_append_new(list, json_pack("{s:s,s:s}", "problem", text, "why", l.row[i].why));
    }
    tune_list_free(&l);
    if (st == FA_OK && c->json) {
        fa_text_free(&t.cells);
        return cli_answer(c, json_pack("{s:s,s:o}", "grid", a->grid, "problems", list), CLI_EXIT_OK);
    }
    json_decref(list);
    if (st == FA_OK)
        cli_table_print(&t, c);
    else
        fa_text_free(&t.cells);
    return st == FA_OK ? CLI_EXIT_OK : cli_fail(c, st);
}

int tune_list_grids(cli *c, const tune_args *a)
{
    cli_grid_row *row = calloc(CLI_GRID_MOST, sizeof *row);
    cli_table t;
    json_t *list = json_array();
    if (a->grid || !row) {
        free(row);
        json_decref(list);
        return a->grid ? list_problems(c, a) : cli_fail(c, fa_fail(FA_NOMEM, "no memory for a grid"));
    }
    cli_table_open(&t, "grid >problems what_it_holds");
    for (const cli_grid *g = cli_grids; g->name; g++) {
        size_t n = cli_grid_list(g->name, row);
        cli_table_cells(&t, "%s\t%zu\t%s", g->name, n, g->about);
        json_array_append_new(list, json_pack("{s:s,s:I,s:s}", "grid", g->name, "problems", (json_int_t)n, "about", g->about));
    }
    free(row);
    if (c->json) {
        fa_text_free(&t.cells);
        return cli_answer(c, json_pack("{s:o}", "grids", list), CLI_EXIT_OK);
    }
    json_decref(list);
    cli_table_print(&t, c);
    return CLI_EXIT_OK;
}
