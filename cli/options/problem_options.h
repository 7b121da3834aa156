/* problem_options: the problem, the chip and the budget, as the command line asks for them; the options that subcommands share. */
#ifndef FA_CLI_OPTIONS_PROBLEM_OPTIONS_H
#define FA_CLI_OPTIONS_PROBLEM_OPTIONS_H
#include "args.h"
#include "gen/arch.h"
#include "gen/gen.h"
#include "score_option.h"

/* K and V of few bits. */
typedef struct cli_low {
    int32_t kv, v, scale; /* fa_dtype; fa_scale_by. 0 = not given */
    int32_t q;            /* fa_dtype */
} cli_low;
extern const cli_word cli_formats[], cli_v_formats[], cli_scales[], cli_wide[];
#define CLI_LOW_ROWS(low_at)                                                                                                          \
    { .name = "kv",                                                                                                                   \
      .type = &cli_choice,                                                                                                            \
      .at = low_at + offsetof(cli_low, kv),                                                                                           \
      .value = "FORMAT",                                                                                                              \
      .help = "of K and V in a cache of few bits (default: as Q)",                                                                    \
      .words = cli_formats },                                                                                                         \
        { .name = "v-format",                                                                                                         \
          .type = &cli_choice,                                                                                                        \
          .at = low_at + offsetof(cli_low, v),                                                                                        \
          .value = "FORMAT",                                                                                                          \
          .help = "of V, beside --kv, or 16 bits beside --dtype e4m3, e5m2 or s8 (default: as K)",                                    \
          .words = cli_v_formats },                                                                                                   \
        { .name = "q-dtype",                                                                                                          \
          .type = &cli_choice,                                                                                                        \
          .at = low_at + offsetof(cli_low, q),                                                                                        \
          .value = "TYPE",                                                                                                            \
          .help = "of Q, beside --kv, with products of fp16: fp32 (default: as --dtype)",                                             \
          .words = cli_wide },                                                                                                        \
    {                                                                                                                                 \
        .name = "kv-scale", .type = &cli_choice, .at = low_at + offsetof(cli_low, scale), .value = "HOW",                             \
        .help = "scales of K and V beside --kv: one of a head, of each token, or of each column (default: none)", .words = cli_scales \
    }
/* Sets what is given; the rows' alignment is then what the types allow. FA_INVALID: --v-format or --kv-scale without
 * --kv, but for V of 16 bits and scales beside products of 8. */
fa_status cli_low_set(fa_problem *p, const cli_low *low);

typedef struct cli_problem_options {
    const char *problem; /* text as problems are printed; what else is set overrides its fields */
    int32_t op, d, dv, dtype, o_dtype, mask, align, b, hq, hkv, n, sq, sk; /* 0 = not given; op, mask: + 1 */
    int32_t features, page;
    cli_reach window;
    bool causal;
    cli_score score;
    cli_low low;
} cli_problem_options;
/* head_dim, batch, heads, length of a problem where a command is given none: one shape for what a GPU runs, the compiler compiles or the
 * model prices, a small one for what the simulator or the CPU computes. All that `--help` tells of them. The first is that of
 * fa_problem_fill_shape(), too. */
#define CLI_SHAPE_OF_GPU(X) X(128, 1, 16, 4096)
#define CLI_SHAPE_OF_SIMULATOR(X) X(128, 1, 2, 256)
#define CLI_SHAPE_TEXT(d, b, h, n) "head_dim " #d ", batch " #b ", " #h " heads, length " #n
#define CLI_SHAPE_TEXT_SMALL(d, b, h, n) #h " heads, length " #n

extern const cli_option cli_problem_options_table[];
#define CLI_PROBLEM_OPTIONS(type)                                                                                                      \
    {                                                                                                                                  \
        "The problem (default: " CLI_SHAPE_OF_GPU(CLI_SHAPE_TEXT) "; where the simulator or the CPU computes " CLI_SHAPE_OF_SIMULATOR( \
            CLI_SHAPE_TEXT_SMALL) ")",                                                                                                 \
            cli_problem_options_table, offsetof(type, problem_options)                                                                 \
    }

extern const cli_word cli_ops[], cli_dtypes[], cli_masks[]; /* the values are fa_op + 1 and fa_mask + 1, so that 0 is "not given" */

extern const cli_word cli_features[]; /* those of a problem that some family computes */
/* The rows of --features and --page, of two int32_t of a command's own table. */
#define CLI_FEATURE_ROWS(features_at, page_at)                                                                 \
    { .name = "features",                                                                                      \
      .type = &cli_set,                                                                                        \
      .at = features_at,                                                                                       \
      .value = "LIST",                                                                                         \
      .help = "what a launch has beside tensors",                                                              \
      .words = cli_features },                                                                                 \
    {                                                                                                          \
        .name = "page", .type = &cli_int, .at = page_at, .value = "TOKENS",                                    \
        .help = "K and V in pages of so many; brings the features lengths and pages", .min = 1, .max = 1 << 20 \
    }

/* The row of --window, of a cli_reach of a command's own table. */
#define CLI_WINDOW_ROW(window_at)                                                                                      \
    {                                                                                                                  \
        .name = "window", .type = &cli_reach_type, .at = window_at, .value = "LEFT[,RIGHT]",                           \
        .help = "keys that are visible before and after a query's own: --mask window; its size is a bucket of tunings" \
    }
/* Sets mask and window of what is given. masked: the problem's mask was asked for. FA_INVALID: by another one. */
fa_status cli_window_set(fa_problem *p, const cli_reach *window, bool masked);

/* How the lengths of sequences are drawn where a problem has the feature lengths: fa_spread + 1, so that 0 is "not given". */
extern const cli_word cli_spreads[];
const char *cli_spread_name(int32_t lengths); /* of 0: that of the typical */
#define CLI_LENGTHS_ROW(lengths_at)                                                                    \
    {                                                                                                  \
        .name = "lengths", .type = &cli_choice, .at = lengths_at, .value = "HOW",                      \
        .help = "of caches with the feature lengths, up to sk (default uniform)", .words = cli_spreads \
    }

/* Sets what is not 0. page: tokens of a page; kernels are compiled for the largest power of two in it. FA_INVALID: pages of no size. */
fa_status cli_features_set(fa_problem *p, int32_t features, int32_t page);

/* Whether any of them is given. */
bool cli_problem_options_given(const cli_problem_options *a);

/* The problem, normalized; bf16 and d = 128 where nothing is said. The shape stays as given. */
fa_status cli_problem_options_read(const cli_problem_options *a, fa_problem *out);

typedef struct cli_chip {
    const char *arch;   /* NULL = sm_80 */
    const char *device; /* its chip instead; NULL = none */
    int32_t sram;       /* 0 = what the chip offers */
} cli_chip;
extern const cli_option cli_chip_options[];
#define CLI_CHIP(type)                                     \
    {                                                      \
        "The chip", cli_chip_options, offsetof(type, chip) \
    }

/* FA_INVALID for an unknown arch and for a budget beyond what it has. */
fa_status cli_chip_arch(const cli_chip *c, const fa_arch **out);

/* Shared memory per block that is allowed for, in bytes. */
int32_t cli_chip_budget(const cli_chip *c, const fa_arch *a);

/* The generator with FAGEN_TEMPLATE_DIR's files. */
fa_status cli_gen_open(fa_gen **out);
#endif
