/* grid: named sets of problems, to tune a chip in one go. */
#ifndef FA_CLI_OPTIONS_GRID_H
#define FA_CLI_OPTIONS_GRID_H
#include <fagen.h>
#include <stddef.h>

typedef struct cli_grid_row {
    fa_problem problem; /* normalized, with its whole shape */
    const char *why;    /* who asks such a thing */
} cli_grid_row;

#define CLI_GRID_MOST 1024 /* problems of a grid */

/* The grids in the order of the help; name NULL past the last. */
typedef struct cli_grid {
    const char *name, *about;
    unsigned sets; /* of series, in grid.c */
} cli_grid;
extern const cli_grid cli_grids[];

/* The problems of a grid, none twice; returns how many, 0 for an unknown name. In rounds: the most telling length of every kernel
 * class first, then the next, so that a run that ends early has covered the breadth. */
size_t cli_grid_list(const char *name, cli_grid_row out[CLI_GRID_MOST]);

/* FA_INVALID: no grid has the name; more: after the list of those that are accepted. */
fa_status cli_grid_unknown(const char *name, const char *more);
#endif
