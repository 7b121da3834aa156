/* counts: what fagen's kernel and naive attention do on the simulator, side by side: no times, but what times come from. */
#ifndef FA_CLI_COUNTS_H
#define FA_CLI_COUNTS_H
#include "session.h"
#include "table.h"

/* Launches both once on the simulated device of ctx with random data and adds their rows to the table (opened with
 * CLI_COUNTS_HEADS) and one object to the list. p: normalized. Where naive attention does not run, its row is left out. */
#define CLI_COUNTS_HEADS "kernel >instructions >matrix >exp,... >read >written >conflicts >blocks problem"
fa_status cli_counts_add(fa_context *ctx, fa_gen *g, const fa_problem *p, bool naive, cli_table *t, json_t *list);

/* The model's best of naive attention; false when it has none here. */
bool cli_plan_naive(fa_context *ctx, fa_gen *g, const fa_problem *p, const fa_plan **plan);
#endif
