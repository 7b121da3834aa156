/* problem_list: the problems of one command: one text, every combination of lists, or a grid that the lists narrow. */
#ifndef FA_CLI_OPTIONS_PROBLEM_LIST_H
#define FA_CLI_OPTIONS_PROBLEM_LIST_H
#include "grid.h"
#include "problem_options.h"

typedef struct cli_problem_lists {
    cli_list op, d, dtype, mask, n; /* op, mask: + 1 */
    int32_t dv, b, hq, hkv, sq, sk, features, page;
    cli_reach window;
    bool causal;
    const char *problem, *grid;
    cli_score score;
    cli_low low;
} cli_problem_lists;
extern const cli_option cli_problem_lists_table[];
#define CLI_PROBLEM_LISTS(type, title)                        \
    {                                                         \
        title, cli_problem_lists_table, offsetof(type, lists) \
    }

typedef struct cli_problem_list {
    cli_grid_row *row;
    size_t n;
} cli_problem_list;

/* All of them sound, with their shapes. usual: what holds where nothing is said, but for problems of a text or of a grid; what is in
 * neither is as fa_problem_fill_shape leaves it, head_dim 128, bf16. cli_problem_list_free it. FA_INVALID tells what contradicts what. */
fa_status cli_problem_list_make(cli_problem_list *out, const cli_problem_lists *a, const cli_problem_lists *usual);
void cli_problem_list_free(cli_problem_list *l); /* zeros are fine */

/* Whether any of them is given beside --op, --features, --page and --score. */
bool cli_problem_lists_given(const cli_problem_lists *a);
#endif
