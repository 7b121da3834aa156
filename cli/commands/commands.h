/* commands: the subcommands of `fagen` that are a file each, and the run of one. Those with a room of their own are declared there. */
#ifndef FA_CLI_COMMANDS_COMMANDS_H
#define FA_CLI_COMMANDS_COMMANDS_H
#include "cli/options/command.h"

extern const cli_command cli_archs, cli_bench, cli_completion, cli_doctor, cli_help, cli_model, cli_run, cli_sample, cli_scores, cli_space,
    cli_verify, cli_version, cli_candidate_process;

/* Runs the subcommand that argv names; returns the exit code. */
int cli_program_run(const cli_program *p, int argc, char **argv);

/* ---- of help.c ---- */

/* The list of subcommands and topics, for people. */
void cli_help_list(const cli_program *p, FILE *f);
/* Everything that --help tells of a subcommand, in c's form; returns an exit code. */
int cli_help_command(cli *c, const cli_command *cmd);
#endif
