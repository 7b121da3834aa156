/* commands: the subcommands of `fagen`, a file each; and the run of one. */
#ifndef FA_CLI_COMMANDS_COMMANDS_H
#define FA_CLI_COMMANDS_COMMANDS_H
#include "cli/options/command.h"

extern const cli_command cli_attend, cli_bench, cli_cache, cli_completion, cli_doctor, cli_emit, cli_explore, cli_help, cli_model, cli_run,
    cli_sample, cli_show, cli_space, cli_tune, cli_verify, cli_version, cli_candidate_process;

/* Runs the subcommand that argv names; returns the exit code. */
int cli_program_run(const cli_program *p, int argc, char **argv);
#endif
