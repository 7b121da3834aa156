/* command: what a subcommand is, the options that every one takes, and a command that has subcommands. */
#ifndef FA_CLI_OPTIONS_COMMAND_H
#define FA_CLI_OPTIONS_COMMAND_H
#include "args.h"
#include "cli/text/cli.h"

/* The first member of every command's struct of options. */
typedef struct cli_common {
    bool json, quiet, help;
    int32_t color; /* 0 never, 1 auto, 2 always */
} cli_common;
extern const cli_option cli_common_options[];
#define CLI_COMMON                          \
    {                                       \
        "Everywhere", cli_common_options, 0 \
    }

typedef struct cli_command {
    const char *name, *summary;
    const char *usage; /* what follows the name */
    const char *about;
    const char *examples; /* one command a line */
    const cli_group *groups;
    size_t size; /* of the struct of options */
    int words;   /* most words that are no options */
    int (*run)(cli *c, const void *args, int n, char **words);
    /* For completion: the i-th that the first word may be, NULL past the last; and whether words may be names of files. */
    const char *(*word)(const struct cli_program *p, size_t i);
    bool files;
} cli_command;

/* A command with subcommands: `fagen`, and that of the developers (bench/). */
typedef struct cli_program {
    const char *name, *title;
    const cli_command *const *commands; /* those that are listed, in the order in which a person meets them; NULL past the last */
    const cli_command *help;            /* completed after them, where words are completed */
    const struct cli_alias {
        const char *name; /* NULL past the last */
        const cli_command *command;
    } * others; /* that are not listed */
} cli_program;
#endif
