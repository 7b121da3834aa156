/* dev: the command `fagen-dev`: the table of its subcommands. */
#include "bench/dev/dev.h"

static const cli_command *const commands[] = { &dev_replay, &dev_judge, &dev_search, &dev_compare_devices, &dev_hot, &dev_cubins, NULL };

static const struct cli_alias others[] = { { "help", &cli_help },         { "--help", &cli_help }, { "-h", &cli_help },
                                           { "--version", &cli_version }, { "-V", &cli_version },  { NULL, NULL } };

static const cli_program dev = { "fagen-dev", "what the developers of fagen hold it against", commands, &cli_help, others };

int main(int argc, char **argv)
{
    return cli_program_run(&dev, argc, argv);
}
