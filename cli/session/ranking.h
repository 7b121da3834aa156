/* ranking: the configs of a problem that fit, cheapest by the model first. */
#ifndef FA_CLI_SESSION_RANKING_H
#define FA_CLI_SESSION_RANKING_H
#include "gen/model.h"
#include "gen/space.h"

typedef struct cli_ranked {
    size_t point; /* index into space.points */
    fa_cost cost;
} cli_ranked;

typedef struct cli_ranking {
    fa_problem shape; /* with typical values where the caller gave none */
    fa_space space;
    cli_ranked *r;
    size_t n;
} cli_ranking;

/* FA_NO_FIT names the smallest tile. Ties keep the order of the space. */
fa_status cli_rank(fa_gen *g, const fa_problem *p, const fa_arch *a, int32_t budget, const char *family, cli_ranking *out);
void cli_ranking_free(cli_ranking *r);

/* Whether the model cannot tell the i-th from the j-th. */
bool cli_alike(const cli_ranking *r, size_t i, size_t j);

/* Every tunable of c is one of its family, with a declared value; FA_INVALID says what is accepted. */
fa_status cli_check_tunables(const fa_gen *g, const fa_config *c);
/* Whether c, which may leave tunables out, can mean `whole`. */
bool cli_config_names(const fa_config *c, const fa_config *whole);

/* The config that text names; of those that it can mean, as it may leave tunables out, the model's best; NULL = of all. */
fa_status cli_pick(fa_gen *g, const fa_problem *p, const fa_arch *a, int32_t budget, const char *text, fa_config *out);
#endif
