/* grid: named sets of problems, as series of one kernel class over lengths. */
#include "grid.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <stdio.h>
#include <string.h>

enum { DEFAULT = 1, PREFILL = 2, DECODE = 4, VIT = 8, ALL = DEFAULT | PREFILL | DECODE | VIT };

const cli_grid cli_grids[] = {
    { "default", "the classes and lengths that most programs meet: bf16 from 512 to 16k, the usual GQA, a window, fp16 at one length",
      DEFAULT },
    { "llm-prefill", "prompts of language models, in the shapes of their heads", PREFILL },
    { "llm-decode-like", "few queries over a long cache: a token, a few speculated ones, a chunk", DECODE },
    { "vit", "images: vision and diffusion transformers", VIT },
    { "all", "all of these", ALL },
    { NULL, NULL, 0 },
};
#define LENGTHS 8
#define WINDOW(keys) (FA_MASK_WINDOW | (keys) << 4) /* a mask with its size */
#define MASK(mask) ((mask)&15)
#define KEYS(mask) ((mask) >> 4)

/* One kernel class with its heads, over lengths of the keys, the most telling first. */
static const struct series {
    unsigned grids;
    int32_t dtype, d, dv;
    int32_t mask; /* fa_mask, or WINDOW(keys) */
    int32_t hq, hkv;
    int32_t tokens; /* b = tokens / length, at least 1 */
    int32_t b;      /* > 0: instead of tokens */
    int32_t sq;     /* 0 = as the keys */
    int32_t n[LENGTHS];
    const char *why;
} series[] = {
#define WHOLE                              \
    {                                      \
        4096, 1024, 16384, 512, 8192, 2048 \
    }
#define THREE             \
    {                     \
        4096, 1024, 16384 \
    }
    { DEFAULT, FA_BF16, 128, 0, FA_MASK_CAUSAL, 16, 16, 16384, 0, 0, WHOLE, "decoders, the head_dim of most" },
    { DEFAULT, FA_BF16, 64, 0, FA_MASK_CAUSAL, 32, 32, 16384, 0, 0, WHOLE, "small decoders" },
    { DEFAULT, FA_BF16, 128, 0, FA_MASK_NONE, 16, 16, 16384, 0, 0, WHOLE, "encoders, diffusion" },
    { DEFAULT, FA_BF16, 64, 0, FA_MASK_NONE, 32, 32, 16384, 0, 0, WHOLE, "encoders, vision" },
    { DEFAULT, FA_BF16, 128, 0, FA_MASK_CAUSAL, 32, 8, 8192, 0, 0, { 2048, 8192 }, "decoders with four query heads to a key head" },
    { DEFAULT, FA_BF16, 256, 0, FA_MASK_CAUSAL, 8, 8, 16384, 0, 0, THREE, "decoders with wide heads" },
    { DEFAULT, FA_BF16, 192, 0, FA_MASK_CAUSAL, 10, 10, 16384, 0, 0, THREE, "decoders with wide heads" },
    { DEFAULT, FA_BF16, 96, 0, FA_MASK_CAUSAL, 21, 21, 16384, 0, 0, THREE, "decoders between the powers of two" },
    { DEFAULT, FA_F16, 128, 0, FA_MASK_CAUSAL, 16, 16, 16384, 0, 0, { 4096 }, "the same in fp16" },
    { DEFAULT, FA_F16, 64, 0, FA_MASK_CAUSAL, 32, 32, 16384, 0, 0, { 4096 }, "the same in fp16" },
    { DEFAULT, FA_BF16, 256, 0, FA_MASK_NONE, 8, 8, 16384, 0, 0, THREE, "encoders with wide heads" },
    { DEFAULT, FA_BF16, 192, 0, FA_MASK_NONE, 10, 10, 16384, 0, 0, THREE, "encoders with wide heads" },
    { DEFAULT, FA_BF16, 96, 0, FA_MASK_NONE, 21, 21, 16384, 0, 0, THREE, "encoders between the powers of two" },
    { DEFAULT, FA_F16, 128, 0, FA_MASK_NONE, 16, 16, 16384, 0, 0, { 4096 }, "the same in fp16" },
    { DEFAULT, FA_F16, 64, 0, FA_MASK_NONE, 32, 32, 16384, 0, 0, { 4096 }, "the same in fp16" },
    { DEFAULT, FA_BF16, 128, 0, FA_MASK_WINDOW, 16, 16, 16384, 0, 0, { 4096 }, "layers with a sliding window" },
    { DEFAULT, FA_BF16, 64, 0, FA_MASK_WINDOW, 32, 32, 16384, 0, 0, { 4096 }, "layers with a sliding window" },
    { DEFAULT, FA_BF16, 128, 0, WINDOW(4096), 16, 16, 16384, 0, 0, { 16384 }, "layers with a wide window" },
    { DEFAULT, FA_BF16, 64, 0, WINDOW(128), 32, 32, 16384, 0, 0, { 4096 }, "layers with a narrow window" },

    { PREFILL,
      FA_BF16,
      128,
      0,
      FA_MASK_CAUSAL,
      32,
      8,
      8192,
      0,
      0,
      { 4096, 1024, 16384, 8192, 2048, 32768, 512 },
      "Llama 3 8B and its like" },
    { PREFILL, FA_BF16, 128, 0, FA_MASK_CAUSAL, 64, 8, 8192, 0, 0, { 4096, 1024, 16384 }, "Llama 3 70B on one chip" },
    { PREFILL, FA_BF16, 128, 0, FA_MASK_CAUSAL, 8, 1, 8192, 0, 0, { 4096, 16384 }, "Llama 3 70B split over eight chips" },
    { PREFILL, FA_BF16, 128, 0, FA_MASK_CAUSAL, 32, 32, 8192, 0, 0, { 4096, 2048 }, "Llama 2 7B: as many key heads as query heads" },
    { PREFILL, FA_BF16, 128, 0, FA_MASK_CAUSAL, 32, 8, 0, 1, 2048, { 16384 }, "a chunk of 2048 behind a long prefix" },
    { PREFILL, FA_BF16, 64, 0, FA_MASK_CAUSAL, 32, 8, 8192, 0, 0, { 2048, 8192 }, "Llama 3.2 1B" },
    { PREFILL, FA_BF16, 64, 0, WINDOW(128), 64, 8, 8192, 0, 0, { 4096, 16384 }, "every other layer of gpt-oss" },
    { PREFILL, FA_BF16, 96, 0, FA_MASK_CAUSAL, 32, 32, 8192, 0, 0, { 4096, 1024 }, "Phi 3 mini" },
    { PREFILL, FA_BF16, 256, 0, FA_MASK_CAUSAL, 16, 8, 8192, 0, 0, { 4096, 8192 }, "Gemma 2 9B" },
    { PREFILL, FA_BF16, 256, 0, WINDOW(4096), 16, 8, 8192, 0, 0, { 8192 }, "every other layer of Gemma 2 9B" },
    { PREFILL,
      FA_BF16,
      192,
      128,
      FA_MASK_CAUSAL,
      16,
      16,
      8192,
      0,
      0,
      { 4096, 16384 },
      "latent attention of DeepSeek V3, an eighth of its heads" },

    { DECODE, FA_BF16, 128, 0, FA_MASK_CAUSAL, 32, 8, 0, 32, 1, { 4096, 1024, 16384 }, "a token each for 32 users, Llama 3 8B" },
    { DECODE, FA_BF16, 128, 0, FA_MASK_CAUSAL, 64, 8, 0, 32, 1, { 4096, 16384 }, "a token each for 32 users, Llama 3 70B" },
    { DECODE, FA_BF16, 128, 0, FA_MASK_CAUSAL, 32, 32, 0, 32, 1, { 4096 }, "a token each for 32 users, Llama 2 7B" },
    { DECODE, FA_BF16, 128, 0, FA_MASK_CAUSAL, 32, 8, 0, 16, 4, { 4096, 16384 }, "four speculated tokens each for 16 users" },
    { DECODE, FA_BF16, 128, 0, FA_MASK_CAUSAL, 32, 8, 0, 4, 256, { 8192 }, "chunks of 256 between the tokens of others" },
    { DECODE, FA_BF16, 64, 0, FA_MASK_CAUSAL, 32, 8, 0, 64, 1, { 4096 }, "a token each for 64 users, Llama 3.2 1B" },
    { DECODE, FA_BF16, 256, 0, FA_MASK_CAUSAL, 16, 8, 0, 16, 1, { 4096 }, "a token each for 16 users, Gemma 2 9B" },

    { VIT, FA_BF16, 64, 0, FA_MASK_NONE, 16, 16, 0, 64, 0, { 577, 197 }, "ViT-L at 336 and 224 pixels" },
    { VIT, FA_F16, 64, 0, FA_MASK_NONE, 12, 12, 0, 64, 0, { 197 }, "ViT-B in fp16" },
    { VIT, FA_BF16, 72, 0, FA_MASK_NONE, 16, 16, 0, 32, 0, { 729, 256 }, "SigLIP So400m; DiT-XL" },
    { VIT, FA_BF16, 80, 0, FA_MASK_NONE, 16, 16, 16384, 0, 0, { 257, 4096 }, "ViT-H; the eyes of Qwen2-VL" },
    { VIT, FA_BF16, 88, 0, FA_MASK_NONE, 16, 16, 0, 64, 0, { 257 }, "ViT-g" },
    { VIT, FA_BF16, 104, 0, FA_MASK_NONE, 16, 16, 0, 64, 0, { 257 }, "ViT-bigG" },
    { VIT, FA_BF16, 64, 0, FA_MASK_NONE, 24, 24, 0, 2, 0, { 4250 }, "Stable Diffusion 3 at 1024 pixels" },
    { VIT, FA_BF16, 128, 0, FA_MASK_NONE, 24, 24, 0, 1, 0, { 4608 }, "Flux at 1024 pixels" },
};
#define SERIES (sizeof series / sizeof *series)

static bool problem_of(const struct series *s, int32_t n, fa_problem *out)
{
    fa_problem p = FA_PROBLEM_INIT;
    p.dtype = s->dtype;
    p.d = s->d;
    p.dv = s->dv;
    p.mask = MASK(s->mask);
    p.window = KEYS(s->mask);
    p.hq = s->hq;
    p.hkv = s->hkv;
    p.b = s->b > 0 ? s->b : s->tokens > n ? s->tokens / n : 1;
    p.sk = n;
    p.sq = s->sq > 0 ? s->sq : n;
    return fa_problem_normalize(out, &p) == FA_OK;
}

static bool is_new(const cli_grid_row *rows, size_t n, const fa_problem *p)
{
    for (size_t i = 0; i < n; i++)
        if (!memcmp(&rows[i].problem, p, sizeof *p))
            return false;
    return true;
}

size_t cli_grid_list(const char *name, cli_grid_row out[CLI_GRID_MOST])
{
    unsigned wanted = 0;
    size_t n = 0;
    for (const cli_grid *g = cli_grids; g->name; g++)
        if (!strcmp(g->name, name))
            wanted = g->sets;
    for (int round = 0; round < LENGTHS; round++)
        for (size_t i = 0; i < SERIES && n < CLI_GRID_MOST; i++) {
            fa_problem p;
            if (!(series[i].grids & wanted) || !series[i].n[round] || !problem_of(&series[i], series[i].n[round], &p) ||
                !is_new(out, n, &p))
                continue;
            out[n++] = (cli_grid_row){ p, series[i].why };
        }
    return n;
}

fa_status cli_grid_unknown(const char *name, const char *more)
{
    char names[200] = "";
    for (const cli_grid *g = cli_grids; g->name; g++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", names[0] ? ", " : "", g->name);
    return fa_fail(FA_INVALID, "--grid is \"%.60s\"; accepted: %s%s", name, names, more);
}
