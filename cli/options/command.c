/* command: the options that every subcommand takes. */
#include "command.h"

static const cli_word when[] = { { "never", 0 }, { "auto", 1 }, { "always", 2 }, { NULL, 0 } };
const cli_option cli_common_options[] = {
    { .name = "json", .at = offsetof(cli_common, json), .help = "one JSON document on standard output, and nothing else there" },
    { .name = "quiet",
      .letter = 'q',
      .at = offsetof(cli_common, quiet),
      .help = "no notes and no progress on standard error; results and reports stay" },
    { .name = "color",
      .type = &cli_choice,
      .at = offsetof(cli_common, color),
      .value = "WHEN",
      .help = "colours",
      .preset = "auto",
      .words = when },
    { .name = "help", .letter = 'h', .at = offsetof(cli_common, help), .help = "this text" },
    { .name = NULL },
};
