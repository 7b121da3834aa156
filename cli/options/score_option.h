/* score_option: the score program that a command line names: one that ships, with its scalars, or a file. */
#ifndef FA_CLI_OPTIONS_SCORE_OPTION_H
#define FA_CLI_OPTIONS_SCORE_OPTION_H
#include "args.h"
#include "gen/score/program.h"

typedef struct cli_score {
    const char *name; /* "softcap", "softcap:30", "softcap_alibi:30"; NULL: none */
    const char *file; /* NULL: none */
} cli_score;

/* The rows of --score and --score-file, of a cli_score of a command's own table. */
#define CLI_SCORE_ROWS(score_at)                                                                                \
    { .name = "score",                                                                                          \
      .type = &cli_text,                                                                                        \
      .at = (score_at) + offsetof(cli_score, name),                                                             \
      .value = "NAME[:NUMBER,...]",                                                                             \
      .help = "a score program, with its scalars, as softcap:30: fagen scores lists them" },                    \
    {                                                                                                           \
        .name = "score-file", .type = &cli_text, .at = (score_at) + offsetof(cli_score, file), .value = "FILE", \
        .help = "a score program of a file (docs/scores.md)"                                                    \
    }

/* The program, known to the process from then on, NULL where none is named; scalars (may be NULL): what a launch gives. FA_INVALID, FA_IO
 * tell what is wrong, of a text with line and column. */
fa_status cli_score_read(const cli_score *s, const fa_program **out, fa_score_scalars *scalars);

/* The same, put into a problem: at its end, when all else is set. */
fa_status cli_score_set(const cli_score *s, fa_problem *p);
#endif
