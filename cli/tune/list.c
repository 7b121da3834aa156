/* list: the problems of one command, and what --list-grids tells. */
#include "cli/options/usual_shape.h"
#include "cli/text/table.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "tune.h"
#include "workload.h"
#include <stdlib.h>

static fa_status from_workload(const cli *c, cli_problem_list *out, const char *path)
{
    cli_workload w;
    char first[256], time[64] = "of times not known; first ";
    double seconds = 0;
    *out = (cli_problem_list){ .n = 0 };
    fa_status st = fa_wrap(cli_workload_read(&w, path), "--workload");
    if (st != FA_OK)
        return st;
    out->row = calloc(w.n, sizeof *out->row);
    if (!out->row)
        st = fa_fail(FA_NOMEM, "no memory for %zu problems", w.n);
    for (size_t i = 0; st == FA_OK && i < w.n; i++) {
        out->row[out->n++] = (cli_grid_row){ .problem = w.row[i].problem, .why = "" };
        seconds += cli_workload_seconds(&w.row[i]);
    }
    if (st == FA_OK && w.cut)
        cli_note(c, "%s: %zu lines are cut off in the middle, and left out", path, w.cut);
    if (st == FA_OK) {
        fa_problem_print(first, sizeof first, &w.row[0].problem);
        if (seconds > 0)
            snprintf(time, sizeof time, "some %.3g s; %.0f %% of them are of ", seconds, 100 * cli_workload_seconds(&w.row[0]) / seconds);
        cli_note(c, "%s: %zu problems, %llu launches, %s%s", path, w.n, (unsigned long long)w.launches, time, first);
    }
    cli_workload_free(&w);
    return st;
}

fa_status tune_list(const cli *c, cli_problem_list *out, const tune_args *a)
{
    if (a->workload && (cli_problem_lists_given(&a->lists) || a->lists.op.n || a->lists.features || a->lists.page))
        return fa_fail(FA_INVALID, "--workload %s names the problems; accepted beside it: no other option that names or narrows them",
                       a->workload);
    if (a->workload)
        return from_workload(c, out, a->workload);
    return cli_problem_list_make(out, &a->lists, &cli_lists_of_gpu);
}

static int list_problems(cli *c, const tune_args *a)
{
    cli_problem_list l;
    cli_table t;
    char text[FA_PROBLEM_TEXT];
    json_t *list = json_array();
    fa_status st = tune_list(c, &l, a);
    cli_table_open(&t, "problem for");
    for (size_t i = 0; st == FA_OK && i < l.n; i++) {
        fa_problem_print(text, sizeof text, &l.row[i].problem);
        cli_table_cells(&t, "%s\t%s", text, l.row[i].why);
        json_array_append_new(list, json_pack("{s:s,s:s}", "problem", text, "why", l.row[i].why));
    }
    cli_problem_list_free(&l);
    if (st == FA_OK && c->json) {
        fa_text_free(&t.cells);
        return cli_answer(c, json_pack("{s:s,s:o}", "grid", a->lists.grid, "problems", list), CLI_EXIT_OK);
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
    if (a->lists.grid || !row) {
        free(row);
        json_decref(list);
        return a->lists.grid ? list_problems(c, a) : cli_fail(c, fa_fail(FA_NOMEM, "no memory for a grid"));
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
