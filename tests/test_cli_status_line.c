/* What the lines and the sets of `fagen tune` promise, without a process: a line fits, a grid holds what it says. */
#include "cli/options/grid.h"
#include "cli/text/status_line.h"
#include "gen/bucket.h"
#include "gen/problem.h"
#include <criterion/criterion.h>
#include <string.h>

static cli_status_line sample(double done)
{
    cli_status_line l = { .done = done };
    cli_status_line_add(&l, 0, "%d/%d", 12, 48);
    cli_status_line_add(&l, 6, "bf16 d128 causal 4x16 4096");
    cli_status_line_add(&l, 1, "best 712.3 TFLOP/s");
    cli_status_line_add(&l, 3, "+3.4 %% over the default");
    cli_status_line_add(&l, 2, "41 s left");
    cli_status_line_add(&l, 9, "%s", "");
    return l;
}

Test(cli_status_line, fits_every_width)
{
    char out[CLI_STATUS_LINE_MOST];
    for (int step = 0; step <= 10; step++)
        for (int width = -3; width < 300; width++) {
            cli_status_line l = sample(step / 10.0);
            cli_status_line_fit(&l, width, out);
            int n = (int)strlen(out);
            cr_assert_leq(n, width > 0 ? width : 0, "%d columns: %s", width, out);
            cr_assert(width < 5 || !strncmp(out, "12/48", 5), "%s", out);
            const char *bar = strchr(out, '[');
            if (bar) {
                int cells = (int)strcspn(bar + 1, "]");
                cr_assert(cells >= 6 && cells <= 24 && bar[cells + 1] == ']');
                cr_assert_eq((int)strspn(bar + 1, "#"), (int)(step / 10.0 * cells), "%s", out);
            }
            cr_assert(n == 0 || out[n - 1] != ' ');
        }
}

/* What matters most stays longest, and all of it is there where there is room. */
Test(cli_status_line, drops_the_least_first)
{
    static const struct {
        int width;
        const char *line;
    } lines[] = {
        { 5, "12/48" },
        { 17, "12/48  41 s left" },
        { 25, "12/48  best 712.3 TFLOP/s" },
        { 40, "12/48  best 712.3 TFLOP/s  41 s left" },
        { 63, "12/48  best 712.3 TFLOP/s  +3.4 % over the default  41 s left" },
        { 77, "12/48  [#####.....]  best 712.3 TFLOP/s  +3.4 % over the default  41 s left" },
        { 200, "12/48  [############............]  bf16 d128 causal 4x16 4096  best 712.3 TFLOP/s  +3.4 % over the default  41 s left" },
    };
    char out[CLI_STATUS_LINE_MOST];
    cli_status_line l = sample(0.5);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        cli_status_line_fit(&l, lines[i].width, out);
        if (lines[i].width == 77) /* the bar takes what is left */
            cr_expect(!strncmp(out, "12/48  [###", 11) && strstr(out, "best") && strstr(out, "left"), "%s", out);
        else
            cr_expect_str_eq(out, lines[i].line, "%d: %s", lines[i].width, out);
    }
    cli_status_line_plain(&l, out);
    cr_expect_str_eq(out, " 50 %  12/48, bf16 d128 causal 4x16 4096, best 712.3 TFLOP/s, +3.4 % over the default, 41 s left");
    static const double done[] = { 0, 0.004, 0.25, 0.996, 1, 3, -1 };
    static const char *const says[] = { "  0 %", "  0 %", " 25 %", "100 %", "100 %", "100 %", "  0 %" };
    for (size_t i = 0; i < sizeof done / sizeof *done; i++) {
        l.done = done[i];
        cli_status_line_plain(&l, out);
        cr_expect(!strncmp(out, says[i], 5), "%g: %s", done[i], out);
    }
}

/* Brief forms first, whole ones where all brief ones fit. */
Test(cli_status_line, widens_what_is_brief)
{
    char out[CLI_STATUS_LINE_MOST];
    cli_status_line l = { .n = 0 };
    cli_status_line_add(&l, 0, "1/2");
    cli_status_line_add(&l, 1, "14112 configs > 31 timed");
    cli_status_line_brief(&l, "14112>31");
    cli_status_line_add(&l, 2, "last");
    static const struct {
        int width;
        const char *line;
    } lines[] = { { 12, "1/2  last" },
                  { 13, "1/2  14112>31" },
                  { 19, "1/2  14112>31  last" },
                  { 28, "1/2  14112>31  last" },
                  { 29, "1/2  [......]  14112>31  last" },
                  { 45, "1/2  [......]  14112 configs > 31 timed  last" } };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        cli_status_line_fit(&l, lines[i].width, out);
        cr_expect_str_eq(out, lines[i].line, "%d: %s", lines[i].width, out);
    }
    cli_status_line_plain(&l, out);
    cr_expect_str_eq(out, "  0 %  1/2, 14112 configs > 31 timed, last");
}

Test(cli_status_line, more_pieces_than_room)
{
    char out[CLI_STATUS_LINE_MOST];
    cli_status_line l = { .done = 7 };
    for (int i = 0; i < 3 * CLI_STATUS_LINE_PIECES; i++)
        cli_status_line_add(&l, i % 12, "%099d", i);
    cr_assert_eq(l.n, CLI_STATUS_LINE_PIECES);
    cli_status_line_fit(&l, 100000, out);
    cr_expect_leq(strlen(out), CLI_STATUS_LINE_MOST - 1);
    cli_status_line_plain(&l, out);
    cr_expect_leq(strlen(out), CLI_STATUS_LINE_MOST - 1);
}

static cli_grid_row row[CLI_GRID_MOST], all[CLI_GRID_MOST];

Test(cli_status_line, grids)
{
    size_t of_all = cli_grid_list("all", all), grids = 0;
    cr_assert(of_all > 0 && of_all < CLI_GRID_MOST);
    for (const cli_grid *g = cli_grids; g->name; g++, grids++) {
        size_t n = cli_grid_list(g->name, row);
        cr_assert(n > 0 && n < CLI_GRID_MOST && g->about[0], "%s", g->name);
        for (size_t i = 0; i < n; i++) {
            fa_problem p;
            bool there = false;
            cr_assert_eq(fa_problem_normalize(&p, &row[i].problem), FA_OK, "%s", fa_last_error());
            cr_assert(!memcmp(&p, &row[i].problem, sizeof p) && p.b && p.hq && p.hkv && p.sq && p.sk && row[i].why[0]);
            for (size_t k = 0; k < i; k++)
                cr_assert(memcmp(&row[k].problem, &p, sizeof p), "%s: %zu and %zu are one", g->name, k, i);
            for (size_t k = 0; k < of_all; k++)
                there = there || !memcmp(&all[k].problem, &p, sizeof p);
            cr_assert(there || !strcmp(g->name, "shipped") || !strcmp(g->name, "scores"), "all lacks problem %zu of %s", i, g->name);
        }
    }
    cr_assert_eq(grids, 12);
    cr_assert_eq(cli_grid_list("nonsense", row), 0);
    cr_assert_eq(cli_grid_list("", row), 0);
}

/* The default grid is what ten minutes of one GPU hold, and a part of it covers every kernel class. */
Test(cli_status_line, default_grid_covers_the_breadth_first)
{
    size_t n = cli_grid_list("default", row), classes = 0, seen = 0;
    cr_assert(n >= 40 && n <= 60, "%zu", n);
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        char own[160], other[160];
        fa_problem_print_key(own, sizeof own, &row[i].problem);
        for (; k < i; k++) {
            fa_problem_print_key(other, sizeof other, &row[k].problem);
            if (!strcmp(own, other))
                break;
        }
        classes += k == i;
        seen = k == i ? i + 1 : seen;
    }
    cr_assert_geq(classes, 14);
    cr_assert_leq(seen, n / 2, "the last new class is problem %zu of %zu", seen, n);
    for (size_t i = 0; i < n; i++) /* no two compete for one bucket of a class */
        for (size_t k = 0; k < i; k++) {
            char own[160], other[160];
            fa_problem_print_key(own, sizeof own, &row[i].problem);
            fa_problem_print_key(other, sizeof other, &row[k].problem);
            cr_assert(strcmp(own, other) || fa_problem_bucket(&row[i].problem) != fa_problem_bucket(&row[k].problem), "%s: %zu and %zu",
                      own, k, i);
        }
}
