/* model: what attention costs on paper: bytes, operations, time, of the algorithms of the literature and of one config. */
#include "cli/options/problem_options.h"
#include "cli/session/config_text.h"
#include "cli/session/ranking.h"
#include "cli/text/say.h"
#include "cli/text/table.h"
#include "commands.h"
#include "gen/error.h"
#include "gen/literature.h"
#include "gen/problem.h"
#include <string.h>

#define TILE_USUAL 64 /* rows and columns, of a family that declares no tile */

typedef struct model_args {
    cli_common common;
    cli_problem_options problem_options;
    cli_chip chip;
    const char *config;
    int32_t br, bc, left;
} model_args;

/* clang-format off */
static const cli_option options[] = {
    { .name = "br", .type = &cli_int, .at = offsetof(model_args, br), .value = "ROWS",
      .help = "rows of the tile (default: of the config)", .min = 1,
      .max = 1 << 20 },
    { .name = "bc", .type = &cli_int, .at = offsetof(model_args, bc), .value = "KEYS",
      .help = "keys of the tile (default: of the config)", .min = 1,
      .max = 1 << 20 },
    { .name = "config", .type = &cli_text, .at = offsetof(model_args, config), .value = "CONFIG",
      .help = "the config whose time is told (default: the model's best)" },
    /* of before --window */
    { .name = "left", .type = &cli_int, .at = offsetof(model_args, left), .value = "KEYS", .min = -1, .max = FA_MAX_LENGTH },
    { .name = NULL },
};
/* clang-format on */
static const cli_group groups[] = {
    CLI_PROBLEM_OPTIONS(model_args), CLI_CHIP(model_args), { "The tile", options, 0 }, CLI_COMMON, { NULL, NULL, 0 }
};

static json_t *traffic_json(const fa_traffic *t, double flops)
{
    double total = fa_traffic_total(t);
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "read", cli_json_number(fa_traffic_read(t)), "write",
                     cli_json_number(fa_traffic_write(t)), "total", cli_json_number(total), "without_output",
                     cli_json_number(fa_traffic_without_output(t)), "held", cli_json_number(t->held), "intensity",
                     cli_json_number(flops / total));
}

/* flops: of the products. */
static json_t *cost_json(const fa_config *config, const fa_cost *k, double flops)
{
    char text[512];
    cli_config_text(text, config);
    return json_pack("{s:s,s:o,s:o,s:s,s:{s:o,s:o,s:o,s:o,s:o,s:o},s:o,s:i,s:s,s:o,s:I,s:o}", "config", text, "seconds",
                     cli_json_number(k->seconds), "tflops", cli_json_number(flops / k->seconds * 1e-12), "bound", k->bound, "units",
                     "matrix", cli_json_number(k->t_matrix), "exp", cli_json_number(k->t_exp), "issue", cli_json_number(k->t_issue), "smem",
                     cli_json_number(k->t_smem), "l2", cli_json_number(k->t_l2), "hbm", cli_json_number(k->t_hbm), "bytes",
                     cli_json_number(k->bytes), "blocks_sm", k->blocks_sm, "limiter", k->limiter, "occupancy",
                     cli_json_number(k->occupancy), "grid", (json_int_t)k->grid, "waves", cli_json_number(k->waves));
}

static void print_cost(const fa_gen *g, const fa_config *config, const fa_cost *k, double flops, const fa_arch *arch, const fa_problem *p)
{
    char text[512];
    fa_gen_config_print(g, text, sizeof text, config);
    cli_say(stdout, "\n%s\non %s (%s), b=%d, hq=%d\n", text, arch->name, arch->chip, p->b, p->hq);
    cli_say(stdout, "  time       %s, bound by %s", cli_show_seconds(k->seconds), k->bound);
    cli_say(stdout, flops > 0 ? ": %.1f TFLOP/s of the products\n" : "\n", flops / k->seconds / 1e12);
    cli_say(stdout, "  units      matrix %s, exp %s, issue %s, smem %s\n", cli_show_seconds(k->t_matrix), cli_show_seconds(k->t_exp),
            cli_show_seconds(k->t_issue), cli_show_seconds(k->t_smem));
    cli_say(stdout, "             L2 %s, HBM %s\n", cli_show_seconds(k->t_l2), cli_show_seconds(k->t_hbm));
    cli_say(stdout, "  occupancy  %.0f %%: %d blocks per SM, limited by %s\n", 100 * k->occupancy, k->blocks_sm, k->limiter);
    cli_say(stdout, "  grid       %lld blocks, %.2f waves\n", (long long)k->grid, k->waves);
}

static void print_literature(const cli *c, const fa_problem *p, int br, int bc, fa_band band, double flops)
{
    cli_table t;
    const fa_literature *row;
    cli_table_open(&t, "algorithm >bytes_read >bytes_written >total >FLOP/byte >held");
    for (size_t i = 0; (row = fa_literature_row(p->op, i)) != NULL; i++) {
        fa_traffic f = row->traffic(p, br, bc, band);
        cli_table_cells(&t, "%s\t%.0f\t%.0f\t%.0f\t%.1f\t%s", row->title, fa_traffic_read(&f), fa_traffic_write(&f), fa_traffic_total(&f),
                        flops / fa_traffic_total(&f), cli_show_bytes(f.held));
    }
    cli_table_print(&t, c);
    fa_traffic naive = fa_literature_naive(p);
    if (p->op == FA_FORWARD)
        cli_say(stdout, "\nThe literature leaves the write of O out of the naive count: %.0f bytes, %.1f FLOP/byte\n",
                fa_traffic_without_output(&naive), flops / fa_traffic_without_output(&naive));
}

static int run(cli *c, const void *args, int n_words, char **words)
{
    const model_args *a = args;
    fa_problem p;
    const fa_arch *arch;
    fa_gen *g = NULL;
    fa_config config;
    fa_cost cost;
    int code = CLI_EXIT_OK;
    (void)n_words, (void)words;
    fa_status st = cli_problem_options_read(&a->problem_options, &p);
    if (st == FA_OK)
        st = cli_chip_arch(&a->chip, &arch);
    if (st == FA_OK)
        st = cli_gen_open(&g);
    if (st != FA_OK)
        return cli_fail(c, st);
    fa_problem_fill_shape(&p);
    st = cli_pick(g, &p, arch, a->chip.sram, a->config, &config);
    if (st == FA_OK)
        st = fa_model_cost(g, &p, &config, arch, 0, &cost);
    bool priced = st == FA_OK;
    if (!priced && (a->config || !a->br || !a->bc)) { /* with a tile on paper, no kernel needs to have it */
        fa_gen_close(g);
        return cli_fail(c, st);
    }
    int32_t tile[2] = { TILE_USUAL, TILE_USUAL };
    if (priced && !fa_gen_tile(g, &config, tile))
        tile[0] = tile[1] = TILE_USUAL;
    int32_t br = a->br ? a->br : tile[0], bc = a->bc ? a->bc : tile[1];
    const cli_reach *w = &a->problem_options.window;
    int32_t left = a->left ? a->left : w->given ? w->left : p.window ? p.window : FA_MODEL_WINDOW, right = w->given ? w->right : 0;
    fa_band band = fa_band_of(&p, FA_BOTTOM_RIGHT, 0, left, right);
    double matrix = fa_model_matrix_flops(&p, band), other = fa_model_other_flops(&p, band), sram = fa_model_tile_sram(&p, br, bc);
    int32_t budget = cli_chip_budget(&a->chip, arch);
    const fa_literature *row;
    char text[FA_PROBLEM_TEXT];
    fa_problem_print(text, sizeof text, &p);
    if (c->json) {
        json_t *traffic = json_object();
        for (size_t i = 0; (row = fa_literature_row(p.op, i)) != NULL; i++) {
            fa_traffic f = row->traffic(&p, br, bc, band);
            json_object_set_new(traffic, row->key, traffic_json(&f, matrix + other));
        }
        code = cli_answer(c,
                          json_pack("{s:s,s:s,s:{s:i,s:i,s:o,s:i,s:b},s:{s:o,s:o,s:o},s:o,s:o}", "problem", text, "arch", arch->name,
                                    "tile", "br", br, "bc", bc, "sram", cli_json_number(sram), "budget", budget, "fits", sram <= budget,
                                    "flops", "matrix", cli_json_number(matrix), "other", cli_json_number(other), "total",
                                    cli_json_number(matrix + other), "traffic", traffic, "cost",
                                    priced ? cost_json(&config, &cost, matrix) : json_null()),
                          CLI_EXIT_OK);
        fa_gen_close(g);
        return code;
    }
    cli_say(stdout, "%s\n", text);
    if (fa_literature_row(p.op, 0)) {
        cli_say(stdout, "\nFLOPs        %.6g in the products, %.6g in scale, max, exp, sum, divide\n", matrix, other);
        cli_say(stdout, "tile         %d x %d with %s resident: %.0f bytes of SRAM, %s\n\n", br, bc,
                p.op == FA_BACKWARD ? "Q, dO, K, V, P, dS" : "Q, K, V, S", sram, sram <= budget ? "fits the budget" : "exceeds the budget");
        print_literature(c, &p, br, bc, band, matrix + other);
    }
    if (priced)
        print_cost(g, &config, &cost, matrix, arch, &p);
    fa_gen_close(g);
    return code;
}

const cli_command cli_model = {
    .name = "model",
    .summary = "bytes, operations and time on paper, of the textbook algorithms and of one config",
    .usage = "[problem] [--br ROWS --bc KEYS] [--config CONFIG]",
    .about =
        "Counts the global-memory traffic of naive attention, of two-dimensional tiling, of FlashAttention-1 and -2 for a tile, the SRAM "
        "that "
        "the tile takes and the FLOPs, and estimates the time of a config as a roofline over six units. One head unless told otherwise.",
    .examples =
        "fagen model -d 64 --n 2048 --dtype fp32 --heads 1 --br 64 --bc 64\nfagen model -d 128 -n 32768 --heads 16 --causal --arch h200\n"
        "fagen model -d 64 --n 2048 --dtype fp32 --heads 1 --br 64 --bc 64 --json",
    .groups = groups,
    .size = sizeof(model_args),
    .run = run,
};
