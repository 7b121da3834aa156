/* main: the command `fagen`: the table of its subcommands. */
#include "cli/attend/attend.h"
#include "cli/cache/cache.h"
#include "cli/commands/commands.h"
#include "cli/emit/emit.h"
#include "cli/explore/explore.h"
#include "cli/show/show.h"
#include "cli/tune/tune.h"

static const cli_command *const commands[] = { &cli_doctor, &cli_tune,   &cli_show,  &cli_attend,     &cli_verify, &cli_bench,
                                               &cli_run,    &cli_sample, &cli_space, &cli_scores,     &cli_model,  &cli_explore,
                                               &cli_emit,   &cli_cache,  &cli_archs, &cli_completion, NULL };

static const struct cli_alias others[] = {
    { "help", &cli_help },  { "--help", &cli_help },
    { "-h", &cli_help },    { "--version", &cli_version },
    { "-V", &cli_version }, { "candidate-process", &cli_candidate_process }, /* for other processes of fagen alone */
    { NULL, NULL }
};

static const cli_program fagen = { "fagen", "attention kernels, compiled and tuned for your chip", commands, &cli_help, others };

int main(int argc, char **argv)
{
    return cli_program_run(&fagen, argc, argv);
}
