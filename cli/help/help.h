/* help: what the command tells of itself, from the tables of its subcommands: as text, as JSON, as manual pages, for completion. */
#ifndef FA_CLI_HELP_HELP_H
#define FA_CLI_HELP_HELP_H
#include "cli/options/command.h"

/* Of all that p has; NULL where there is none of the name. */
const cli_command *cli_command_find(const cli_program *p, const char *name);
/* FA_INVALID, with the nearest name. */
fa_status cli_command_unknown(const cli_program *p, const char *word);

typedef struct cli_topic {
    const char *name, *key; /* of `fagen help NAME`; of its list in JSON */
    const char *section;    /* of the manual page */
    const char *title, *summary;
    bool (*at)(size_t i, cli_term *out); /* false past the last */
} cli_topic;
extern const cli_topic cli_topics[]; /* name NULL past the last */

/* A manual page in roff, in the macros man(7): of one subcommand, or of p as a whole where cmd is NULL. */
void cli_manual(FILE *f, const cli_program *p, const cli_command *cmd);
#endif
