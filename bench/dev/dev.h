/* dev: the subcommands of `fagen-dev`, which is for developers and not installed. */
#ifndef FA_BENCH_DEV_H
#define FA_BENCH_DEV_H
#include "cli/commands/commands.h"

extern const cli_command dev_replay, dev_judge, dev_search, dev_compare_devices, dev_hot, dev_cubins;
#endif
