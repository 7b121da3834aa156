/* counts: what fagen's kernel and those kept for comparison do on the simulator, side by side: no times, but what times come from. */
#ifndef FA_CLI_SESSION_COUNTS_H
#define FA_CLI_SESSION_COUNTS_H
#include "cli/text/table.h"
#include "session.h"
#include "systems.h"

/* Launches each once on the simulated device of ctx with random data and adds their rows to the table (opened with
 * CLI_COUNTS_HEADS) and one object to the list. p: normalized, with its shape; lengths: as fa_ragged_of has them. A system that does not
 * run has no row. */
#define CLI_COUNTS_HEADS "kernel >instructions >matrix >exp,... >read >written >conflicts >blocks problem"
fa_status cli_counts_add(fa_context *ctx, fa_gen *g, const fa_problem *p, int32_t lengths, const cli_systems *systems, cli_table *t,
                         json_t *list);
#endif
