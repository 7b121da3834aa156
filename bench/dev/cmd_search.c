/* search: the strategy of fagen tune by itself: it says what to time next, another program times it as it likes and says how long each
 * took. */
#include "autotune/strategy/strategy.h"
#include "bench/dev/dev.h"
#include "bench/dev/shipped_choice.h"
#include "cli/options/command.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct search_args {
    cli_common common;
    const char *arch, *problem;
    int32_t limit, seeds;
} search_args;

#define FIELD(f) .at = offsetof(search_args, f)
/* clang-format off */
static const cli_option options[] = {
    { .name = "problem", .type = &cli_text, FIELD(problem), .value = "TEXT", .help = "what is tuned" },
    { .name = "arch", .type = &cli_text, FIELD(arch), .value = "ARCH", .help = "the chip that it is tuned for", .preset = "h100" },
    { .name = "limit", .type = &cli_int, FIELD(limit), .value = "N",
      .help = "listed configs that are tried, without seeds and neighbours", .preset = "48", .min = 1, .max = 100000 },
    { .name = "seeds", .type = &cli_int, FIELD(seeds), .value = "N",
      .help = "of the candidates of the choice, that are tried first", .preset = "12", .min = 0, .max = FA_CANDIDATES_MAX },
    { .name = NULL },
};
/* clang-format on */
static const cli_group groups[] = { { "The search", options, 0 }, CLI_COMMON, { NULL, NULL, 0 } };

typedef struct search {
    fa_gen *g;
    fa_pool pool;
    fa_neighbours_site site;
    fa_neighbours neighbours;
    fa_search_state state;
    size_t *at; /* of the pool, what is asked for */
} search;

/* The cheapest candidates of the choice go first, what is chosen before all others. */
static fa_status plant(search *s, const fa_choice *choice, int32_t most)
{
    for (size_t i = 0; i < choice->n && i < (size_t)most; i++) {
        fa_pool_entry x = { .config = choice->row[i].config };
        if (!s->neighbours.accept(&s->neighbours, &x.config, &x))
            continue;
        x.rank = x.cost.seconds;
        x.origin = FA_SEED;
        size_t at = fa_pool_add(&s->pool, &x);
        if (at == FA_NOWHERE)
            return fa_fail(FA_NOMEM, "no memory for %zu candidates", choice->n);
        if (i == 0)
            s->state.baseline = at;
    }
    return FA_OK;
}

/* Asks for n configs, a line each, then an empty one; hears a number of seconds for each, 0 where it did not run. */
static fa_status ask(search *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[512];
        fa_config_print(text, sizeof text, &s->pool.p[s->at[i]].config);
        printf("%s\n", text);
    }
    printf("\n");
    fflush(stdout);
    for (size_t i = 0; i < n; i++) {
        char line[64], *end;
        if (!fgets(line, sizeof line, stdin))
            return fa_fail(FA_INVALID, "%zu configs were asked for and %zu lines came; accepted: a line of seconds for each", n, i);
        double seconds = strtod(line, &end);
        if (end == line || seconds < 0)
            return fa_fail(FA_INVALID, "seconds are \"%.40s\"; accepted: a number from 0, which says that it did not run", line);
        fa_search_state_tell(&s->state, s->at[i], seconds);
    }
    return FA_OK;
}

static fa_status search_all(search *s, const search_args *a, const fa_problem *p, const fa_arch *arch, fa_choice *choice)
{
    fa_space space = { 0 };
    fa_status st = fa_pool_list(&s->pool, s->g, p, arch, 0, NULL, &space);
    fa_space_free(&space);
    if (st != FA_OK || (st = fa_shipped_choice(s->g, p, arch, choice)) != FA_OK)
        return st;
    s->site = (fa_neighbours_site){ s->g, p, arch, 0 };
    s->neighbours = fa_neighbours_of_families(&s->site);
    fa_search_state_open(&s->state, &s->pool, &s->neighbours, fa_strategy_find(NULL), a->limit, 0);
    size_t n, most = 2 * (size_t)a->limit + FA_CANDIDATES_MAX;
    st = plant(s, choice, a->seeds);
    s->at = calloc(most, sizeof *s->at);
    if (st == FA_OK && !s->at)
        st = fa_fail(FA_NOMEM, "no memory for %zu candidates", most);
    while (st == FA_OK && (n = fa_search_state_next(&s->state, s->at, most)) > 0)
        st = ask(s, n);
    fa_search_state_close(&s->state);
    return st;
}

static int run(cli *c, const void *args, int n, char **path)
{
    const search_args *a = args;
    const fa_arch *arch = fa_arch_find(a->arch);
    search s = { .g = NULL };
    fa_problem p;
    fa_choice *choice = malloc(sizeof *choice);
    fa_status st = choice ? FA_OK : fa_fail(FA_NOMEM, "no memory for the candidates");
    (void)path;
    if (st == FA_OK && (!arch || n))
        st = fa_fail(FA_INVALID, "--arch is \"%.40s\"; accepted: %s, and no files", a->arch, fa_arch_names());
    if (st == FA_OK && !a->problem)
        st = fa_fail(FA_INVALID, "search wants --problem TEXT");
    if (st == FA_OK)
        st = fa_problem_parse(&p, a->problem);
    if (st == FA_OK)
        st = fa_gen_open(&s.g, getenv("FAGEN_TEMPLATE_DIR"));
    if (st == FA_OK)
        st = search_all(&s, a, &p, arch, choice);
    free(s.at);
    fa_pool_free(&s.pool);
    fa_gen_close(s.g);
    free(choice);
    return st == FA_OK ? CLI_EXIT_OK : cli_fail(c, st);
}

const cli_command dev_search = {
    .name = "search",
    .summary = "what fagen tune would time next, of times that another program measures",
    .usage = "--problem TEXT",
    .about =
        "Prints configs, a line each and an empty line, reads a line of seconds for each (0: it did not run), and goes on with what "
        "the strategy wants next: seeds and the best by the model, then neighbours of the fastest. It ends when nothing promises more. "
        "FAGEN_TEMPLATE_DIR names other templates.",
    .examples = "fagen-dev search --arch h100 --problem bf16,d=128,dv=128,mask=none,o=bf16,align=16,b=2,hq=8,hkv=2,sq=5,sk=9000",
    .groups = groups,
    .size = sizeof(search_args),
    .run = run,
};
