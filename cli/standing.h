/* standing: the configs that are on record for a problem, fastest first. */
#ifndef FA_CLI_STANDING_H
#define FA_CLI_STANDING_H
#include "cache/record.h"
#include "command.h"

typedef struct cli_standing {
    fa_record *r;
    size_t n;
} cli_standing;

/* Of each config its newest record of that kind that ran and, measured, is verified, in the shape bucket that fa_records_best() goes to:
 * the problem's own, else the nearest with one. */
fa_status cli_standing_of(const fa_records *rs, const fa_problem *p, fa_how how, cli_standing *out);
void cli_standing_free(cli_standing *s);

/* The first n, each with its distance from the fastest. */
json_t *cli_standing_json(const cli_standing *s, size_t n);
void cli_standing_print(const cli_standing *s, size_t n, const char *title, const cli *c, fa_context *ctx);
#endif
