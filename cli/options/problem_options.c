/* problem_options: one table of the problem's fields, one of the chip's. */
#include "problem_options.h"
#include "arch_names.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "gen/score/known.h"
#include "runtime/context/environment.h"
#include "runtime/runtime.h"
#include "verify/operands/ragged.h"

const cli_word cli_ops[] = {
    { "forward", FA_FORWARD + 1 }, { "backward", FA_BACKWARD + 1 }, { "merge", FA_MERGE + 1 }, { "append", FA_APPEND + 1 }, { NULL, 0 }
};
const cli_word cli_dtypes[] = { { "fp16", FA_F16 },
                                { "bf16", FA_BF16 },
                                { "tf32", FA_TF32 },
                                { "fp32", FA_F32 },
                                { "float16", FA_F16 },
                                { "half", FA_F16 },
                                { "bfloat16", FA_BF16 },
                                { "float32", FA_F32 },
                                { "float", FA_F32 },
                                { "e4m3", FA_E4M3 },
                                { "e5m2", FA_E5M2 },
                                { "s8", FA_S8 },
                                { NULL, 0 } };
const cli_word cli_formats[] = {
#define FORMAT(number, word, ...) { word, number },
#include "gen/formats.def"
#undef FORMAT
    { NULL, 0 }
};
const cli_word cli_v_formats[] = {
#define FORMAT(number, word, ...) { word, number },
#include "gen/formats.def"
#undef FORMAT
    { "fp16", FA_F16 }, { "bf16", FA_BF16 }, { NULL, 0 }
};
const cli_word cli_wide[] = { { "fp32", FA_F32 }, { NULL, 0 } };
const cli_word cli_scales[] = { { "folded", FA_SCALE_FOLDED }, { "token", FA_SCALE_TOKEN }, { "channel", FA_SCALE_CHANNEL }, { NULL, 0 } };
const cli_word cli_masks[] = {
    { "none", FA_MASK_NONE + 1 }, { "causal", FA_MASK_CAUSAL + 1 }, { "window", FA_MASK_WINDOW + 1 }, { NULL, 0 }
};

const cli_word cli_features[] = { { "lengths", FA_FEATURE_LENGTHS },
                                  { "pages", FA_FEATURE_PAGES },
                                  { "batch-invariant", FA_FEATURE_BATCH_INVARIANT },
                                  { "lse-strides", FA_FEATURE_LSE_STRIDES },
                                  { "no-workspace", FA_FEATURE_NO_WORKSPACE },
                                  { "deterministic", FA_FEATURE_DETERMINISTIC },
                                  { "dropout", FA_FEATURE_DROPOUT },
                                  { "v-in-k", FA_FEATURE_V_IN_K },
                                  { "v-columns", FA_FEATURE_V_COLUMNS },
                                  { "score-anywhere", FA_FEATURE_SCORE_ANYWHERE },
                                  { "score-columns", FA_FEATURE_SCORE_COLUMNS },
                                  { NULL, 0 } };

const cli_word cli_spreads[] = { { "full", FA_SPREAD_FULL + 1 },
                                 { "uniform", FA_SPREAD_UNIFORM + 1 },
                                 { "zipf", FA_SPREAD_ZIPF + 1 },
                                 { "log-uniform", FA_SPREAD_LOG + 1 },
                                 { NULL, 0 } };

const char *cli_spread_name(int32_t lengths)
{
    const cli_word *w = cli_spreads;
    for (int32_t v = lengths ? lengths : FA_SPREAD_UNIFORM + 1; w[1].name && w->value != v;)
        w++;
    return w->name;
}

fa_status cli_features_set(fa_problem *p, int32_t features, int32_t page)
{
    if (features)
        p->features = features | (p->features & FA_FEATURE_SCORE);
    if (page) {
        int32_t most = page & -page;
        p->page = most < FA_PAGE_MAX ? most : FA_PAGE_MAX;
        p->features |= FA_FEATURE_PAGES;
    }
    if (p->features & FA_FEATURE_PAGES)
        p->features |= FA_FEATURE_LENGTHS;
    else if (features)
        p->page = 0;
    if (p->features & FA_FEATURE_PAGES && !p->page)
        return fa_fail(FA_INVALID, "--features has pages, and --page is not given; accepted: --page with the tokens of a page");
    return FA_OK;
}

fa_status cli_low_set(fa_problem *p, const cli_low *low)
{
    if (!low->kv && !low->v && !low->scale && !low->q)
        return FA_OK;
    bool eight = fa_problem_eight(p);
    bool wide = eight && (low->v == FA_F16 || low->v == FA_BF16); /* V of 16 bits beside Q and K of 8 */
    if (!low->kv && !p->kv_dtype && ((low->v && !wide) || low->q || !eight))
        return fa_fail(FA_INVALID, "%s is given without --kv; accepted: both, or neither",
                       low->v       ? "--v-format"
                       : low->scale ? "--kv-scale"
                                    : "--q-dtype");
    p->kv_dtype = low->kv ? low->kv : p->kv_dtype;
    p->v_dtype = low->v ? low->v : low->kv ? 0 : p->v_dtype;
    p->q_dtype = low->q ? low->q : p->q_dtype;
    if (low->scale)
        p->k_scale_by = p->v_scale_by = low->scale, p->q_scale_by = eight ? low->scale : 0;
    if (p->dtype == FA_S8 && low->scale == FA_SCALE_TOKEN) /* V of 16 bits has none of these */
        p->v_scale_by = 0;
    p->align = p->kv_align = 0;
    return FA_OK;
}

fa_status cli_window_set(fa_problem *p, const cli_reach *window, bool masked)
{
    if (!window->given)
        return FA_OK;
    if (masked && p->mask != FA_MASK_WINDOW)
        return fa_fail(FA_INVALID, "--window %d,%d and --mask %s contradict each other; accepted with a window: --mask window, or no mask",
                       window->left, window->right, fa_mask_name(p->mask));
    int64_t left = window->left >= 0 ? window->left : p->sk, right = window->right >= 0 ? window->right : p->sk, all = left + right;
    bool known = p->sk || (window->left >= 0 && window->right >= 0);
    p->mask = FA_MASK_WINDOW; /* as fa_problem_of() has it: keys beside a row's own */
    p->window = !known ? 0 : all < 1 ? 1 : all < FA_MAX_LENGTH ? (int32_t)all : FA_MAX_LENGTH;
    return FA_OK;
}

#define FIELD(f) .at = offsetof(cli_problem_options, f)
#define LENGTH .min = 1, .max = FA_MAX_LENGTH
/* clang-format off */
const cli_option cli_problem_options_table[] = {
    { .name = "op", .type = &cli_choice, FIELD(op), .value = "OP", .help = "what is computed (default forward)", .words = cli_ops },
    { .name = "head-dim", .letter = 'd', .type = &cli_int, FIELD(d), .value = "D", .help = "head_dim of Q and K (default 128)", .min = 1,
      .max = FA_MAX_HEAD_DIM },
    { .name = "dv", .type = &cli_int, FIELD(dv), .value = "D",
      .help = "head_dim of V and O (default: as Q)", .min = 1, .max = FA_MAX_HEAD_DIM },
    { .name = "dtype", .letter = 't', .type = &cli_choice, FIELD(dtype), .value = "TYPE", .help = "of Q, K, V (default bf16)",
      .words = cli_dtypes },
    { .name = "o-dtype", .type = &cli_choice, FIELD(o_dtype), .value = "TYPE", .help = "of O (default: as Q)", .words = cli_dtypes },
    { .name = "mask", .type = &cli_choice, FIELD(mask), .value = "MASK",
      .help = "which keys are visible (default none)", .words = cli_masks },
    { .name = "causal", FIELD(causal), .help = "the same as --mask causal" },
    CLI_WINDOW_ROW(offsetof(cli_problem_options, window)),
    { .name = "batch", .letter = 'b', .type = &cli_int, FIELD(b), .value = "B", .help = "batch", LENGTH },
    { .name = "heads", .letter = 'H', .type = &cli_int, FIELD(hq), .value = "H", .help = "query heads", .min = 1, .max = 1 << 16 },
    { .name = "kv-heads", .type = &cli_int, FIELD(hkv), .value = "H", .help = "key/value heads (default: as query heads)", .min = 1,
      .max = 1 << 16 },
    { .name = "n", .letter = 'n', .type = &cli_int, FIELD(n), .value = "N", .help = "sequence length of queries and keys", LENGTH },
    { .name = "sq", .type = &cli_int, FIELD(sq), .value = "N", .help = "query length", LENGTH },
    { .name = "sk", .type = &cli_int, FIELD(sk), .value = "N", .help = "key length", LENGTH },
    { .name = "align", .type = &cli_int, FIELD(align), .value = "BYTES", .help = "rows start at multiples of it: 2, 4, 8 or 16", .min = 2,
      .max = 16 },
    CLI_FEATURE_ROWS(offsetof(cli_problem_options, features), offsetof(cli_problem_options, page)),
    CLI_LOW_ROWS(offsetof(cli_problem_options, low)),
    CLI_SCORE_ROWS(offsetof(cli_problem_options, score)),
    { .name = "problem", .type = &cli_text, FIELD(problem), .value = "TEXT",
      .help = "all of it in one text, as fagen prints it: 'bf16,d=128,mask=causal,b=2,hq=16,sq=4096,sk=4096'" },
    { .name = NULL },
};
/* clang-format on */

bool cli_problem_options_given(const cli_problem_options *a)
{
    return a->problem || a->op || a->d || a->dv || a->dtype || a->o_dtype || a->mask || a->align || a->b || a->hq || a->hkv || a->n ||
           a->sq || a->sk || a->causal || a->features || a->page || a->window.given || a->score.name || a->score.file || a->low.kv ||
           a->low.v || a->low.scale;
}

fa_status cli_problem_options_read(const cli_problem_options *a, fa_problem *out)
{
    fa_problem p = FA_PROBLEM_INIT;
    const fa_program *program;
    fa_status st = cli_score_read(&a->score, &program, NULL); /* first: the text of --problem may name it */
    if (st != FA_OK)
        return st;
    if (a->problem) {
        st = fa_problem_parse(&p, a->problem);
        if (st != FA_OK)
            return fa_wrap(st, "--problem");
        if (a->d || a->dtype || a->dv || a->o_dtype)
            p.align = 0;
        if (a->d || a->dv || a->align)
            p.kv_align = 0;
        if (a->d && p.dv == p.d)
            p.dv = 0;
        if (a->dtype && p.o_dtype != FA_F32)
            p.o_dtype = 0;
    } else {
        p.d = 128;
        p.dtype = FA_BF16;
    }
    if (a->causal && a->mask && a->mask != FA_MASK_CAUSAL + 1)
        return fa_fail(FA_INVALID, "--causal and --mask %s contradict each other", fa_mask_name(a->mask - 1));
    if (a->op) {
        p.op = a->op - 1;
        p.grad_dtype = p.op == FA_BACKWARD ? p.grad_dtype : 0;
    }
    if (a->mask || a->causal)
        p.window = 0;
    if (a->mask || a->causal)
        p.mask = a->causal ? FA_MASK_CAUSAL : a->mask - 1;
    const struct {
        int32_t given, *to;
    } fields[] = {
        { a->d, &p.d },         { a->dv, &p.dv }, { a->dtype, &p.dtype }, { a->o_dtype, &p.o_dtype },
        { a->align, &p.align }, { a->b, &p.b },   { a->hq, &p.hq },       { a->hkv, &p.hkv },
        { a->n, &p.sq },        { a->n, &p.sk },  { a->sq, &p.sq },       { a->sk, &p.sk },
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].given)
            *fields[i].to = fields[i].given;
    st = cli_features_set(&p, a->features, a->page);
    if (st == FA_OK)
        st = cli_window_set(&p, &a->window, a->mask || a->causal);
    if (st == FA_OK)
        st = cli_low_set(&p, &a->low);
    if (st != FA_OK)
        return st;
    if (program)
        fa_score_known_name(&p, program);
    return fa_problem_normalize(out, &p);
}

/* clang-format off */
const cli_option cli_chip_options[] = {
    { .name = "arch", .type = &cli_text, .at = offsetof(cli_chip, arch), .value = "ARCH",
      .help = "sm_80, sm_90a, ..., or a product such as a100 or h100: fagen archs lists them (default sm_80)" },
    { .name = "device", .type = &cli_text, .at = offsetof(cli_chip, device), .value = "DEVICE",
      .help = "the chip of a device instead: cuda, cuda:N, or sim:ARCH" },
    { .name = "sram", .type = &cli_bytes, .at = offsetof(cli_chip, sram), .value = "BYTES",
      .help = "shared memory per block that a kernel may use, as 65536 or 64KiB (default: all the chip offers)", .min = 1, .max = 1 << 20 },
    { .name = NULL },
};
/* clang-format on */

/* The row of a simulated chip; else the device's own numbers. */
static fa_status of_device(const char *device, const fa_arch **out)
{
    static fa_arch there;
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    o.device = device;
    fa_status st = cli_device_check("device", device);
    if (st == FA_OK && (*out = cli_device_arch(device)) != NULL)
        return FA_OK;
    if (st == FA_OK)
        st = fa_wrap(fa_create(&ctx, &o), "--device");
    if (st != FA_OK)
        return st;
    there = *fa_context_arch(ctx);
    fa_destroy(ctx);
    *out = &there;
    return FA_OK;
}

fa_status cli_chip_arch(const cli_chip *c, const fa_arch **out)
{
    fa_status st = c->arch && c->device ? fa_fail(FA_INVALID, "--arch and --device are two ways to name the chip; accepted: one of them")
                   : c->device          ? of_device(c->device, out)
                                        : cli_arch_find(out, "arch", c->arch ? c->arch : "sm_80");
    if (st != FA_OK)
        return st;
    if (c->sram > (*out)->smem_block)
        return fa_fail(FA_INVALID, "--sram is %d; accepted on %s: 1 to %d bytes", c->sram, (*out)->name, (*out)->smem_block);
    return FA_OK;
}

int32_t cli_chip_budget(const cli_chip *c, const fa_arch *a)
{
    return c->sram ? c->sram : a->smem_block;
}

fa_status cli_gen_open(fa_gen **out)
{
    return fa_gen_open(out, fa_environment_read().template_dir);
}
