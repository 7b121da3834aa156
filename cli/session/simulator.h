/* simulator: options of the simulator that several commands share, and what it warned of while they ran. */
#ifndef FA_CLI_SESSION_SIMULATOR_H
#define FA_CLI_SESSION_SIMULATOR_H
#include "cli/options/command.h"
#include "sim/sim.h"

typedef struct cli_sim {
    const char *checks;
    int32_t reports;
    uint64_t steps;
    double seconds;
} cli_sim;
extern const cli_option cli_sim_options[];
#define CLI_SIM(type)                                                                  \
    {                                                                                  \
        "The checks and limits of the simulator", cli_sim_options, offsetof(type, sim) \
    }

/* Adds them to *to. simulated: false where the command has no simulator, then only their absence is accepted. */
fa_status cli_sim_set(const cli_sim *a, bool simulated, sim_options *to);
/* What the simulator has warned of since the last call, and with --reports all that ended the last launch, on standard error. */
void cli_sim_tell(const cli *c, const cli_sim *a);
#endif
