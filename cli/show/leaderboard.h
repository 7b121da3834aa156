/* leaderboard: the configs that are on record for a problem, fastest first. */
#ifndef FA_CLI_SHOW_LEADERBOARD_H
#define FA_CLI_SHOW_LEADERBOARD_H
#include "cache/record.h"
#include "cli/text/cli.h"

typedef struct cli_leaderboard {
    fa_record *r;
    size_t n;
} cli_leaderboard;

/* Of each config its newest record of that kind that ran and, measured, is verified, in the shape bucket that fa_records_best() goes to:
 * the problem's own, else the nearest with one. */
fa_status cli_leaderboard_of(const fa_records *rs, const fa_problem *p, fa_how how, cli_leaderboard *out);
void cli_leaderboard_free(cli_leaderboard *s);

/* The first n, each with its distance from the fastest. */
json_t *cli_leaderboard_json(const cli_leaderboard *s, size_t n);
void cli_leaderboard_print(const cli_leaderboard *s, size_t n, const char *title, const cli *c, fa_context *ctx);
#endif
