/* grid: named sets of problems, as series of one kernel class over lengths. */
#include "grid.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "gen/score/known.h"
#include "gen/score/shipped.h"
#include "runtime/choose/shipped.h"
#include <stdio.h>
#include <string.h>

enum {
    DEFAULT = 1,
    PREFILL = 2,
    DECODE = 4,
    VIT = 8,
    CACHE = 16,
    MIXED = 32,
    TRAINING = 64,
    VERIFY = 128,
    LOW = 512,
    SHIPPED = 256, /* the rows of the default table */
    SCORES = 1024, /* those of programs[] */
    ALL = DEFAULT | PREFILL | DECODE | VIT | CACHE | MIXED | TRAINING | VERIFY | LOW
};

const cli_grid cli_grids[] = {
    { "default", "the classes and lengths that most programs meet: bf16 from 512 to 16k, the usual GQA, a window, fp16 at one length",
      DEFAULT },
    { "llm-prefill", "prompts of language models, in the shapes of their heads", PREFILL },
    { "llm-decode-like", "few queries over a long cache: a token, a few speculated ones, a chunk", DECODE },
    { "llm-decode", "1, 4 and 16 queries over caches of 1k to 131k keys: dense, and pages of 16 and 64 tokens with lengths on the device",
      CACHE },
    { "llm-verify", "2 to 256 queries over caches of 2k to 65k keys: drafts that are verified, chunks, cross attention", VERIFY },
    { "llm-low-bits",
      "a token, drafts and chunks over caches of e4m3, of integers with scales of tokens, of q8_0 and q4_0: 1k to 131k keys, dense and in "
      "pages",
      LOW },
    { "llm-mixed",
      "packed prompts, chunks of prompts after cached prefixes, and chunks beside the tokens of others: lengths on the device, and pages",
      MIXED },
    { "training", "both passes of training, bf16 from 512 to 16k: as many key heads as query heads, and four query heads to a key head",
      TRAINING },
    { "vit", "images: vision and diffusion transformers", VIT },
    { "all", "all of these", ALL },
    { "shipped", "all, and the other problems of the winners that ship", SHIPPED | ALL },
    { "scores", "score programs that ship, biases and masks, in both passes of 4k and 16k tokens", SCORES },
    { NULL, NULL, 0 },
};
#define LENGTHS 8
#define WINDOW(keys) (FA_MASK_WINDOW | (keys) << 4)                 /* a mask with its size */
#define OVER_CODES(kv, scale) (FA_BF16 | (kv) << 8 | (scale) << 16) /* fa_dtype of Q, of K and V in few bits; fa_scale_by */
#define BYTE(x, n) ((x) >> 8 * (n)&255)
#define MASK(mask) ((mask)&15)
#define KEYS(mask) ((mask) >> 4)
#define LENGTHS_ALONE (-1)

/* One kernel class with its heads, over lengths of the keys, the most telling first. */
static const struct series {
    unsigned grids;
    int32_t dtype, d, dv; /* dtype, or OVER_CODES(a cache of few bits) */
    int32_t mask;         /* fa_mask, or WINDOW(keys) */
    int32_t hq, hkv;
    int32_t tokens; /* b = tokens / length, at least 1 */
    int32_t b;      /* > 0: instead of tokens */
    int32_t sq;     /* 0 = as the keys */
    int32_t n[LENGTHS];
    const char *why;
    int32_t page; /* > 0: K and V in pages of so many tokens, lengths on the device; LENGTHS_ALONE: lengths without pages */
} series[] = {
#define WHOLE                              \
    {                                      \
        4096, 1024, 16384, 512, 8192, 2048 \
    }
#define THREE             \
    {                     \
        4096, 1024, 16384 \
    }
    { DEFAULT, FA_BF16, 128, 0, FA_MASK_CAUSAL, 16, 16, 16384, 0, 0, WHOLE, "decoders, the head_dim of most", 0 },
    { DEFAULT, FA_BF16, 64, 0, FA_MASK_CAUSAL, 32, 32, 16384, 0, 0, WHOLE, "small decoders", 0 },
    { DEFAULT, FA_BF16, 128, 0, FA_MASK_NONE, 16, 16, 16384, 0, 0, WHOLE, "encoders, diffusion", 0 },
    { DEFAULT, FA_BF16, 64, 0, FA_MASK_NONE, 32, 32, 16384, 0, 0, WHOLE, "encoders, vision", 0 },
    { DEFAULT, FA_BF16, 128, 0, FA_MASK_CAUSAL, 32, 8, 8192, 0, 0, { 2048, 8192 }, "decoders with four query heads to a key head", 0 },
    { DEFAULT, FA_BF16, 256, 0, FA_MASK_CAUSAL, 8, 8, 16384, 0, 0, THREE, "decoders with wide heads", 0 },
    { DEFAULT, FA_BF16, 192, 0, FA_MASK_CAUSAL, 10, 10, 16384, 0, 0, THREE, "decoders with wide heads", 0 },
    { DEFAULT, FA_BF16, 96, 0, FA_MASK_CAUSAL, 21, 21, 16384, 0, 0, THREE, "decoders between the powers of two", 0 },
    { DEFAULT, FA_F16, 128, 0, FA_MASK_CAUSAL, 16, 16, 16384, 0, 0, { 4096 }, "the same in fp16", 0 },
    { DEFAULT, FA_F16, 64, 0, FA_MASK_CAUSAL, 32, 32, 16384, 0, 0, { 4096 }, "the same in fp16", 0 },
    { DEFAULT, FA_BF16, 256, 0, FA_MASK_NONE, 8, 8, 16384, 0, 0, THREE, "encoders with wide heads", 0 },
    { DEFAULT, FA_BF16, 192, 0, FA_MASK_NONE, 10, 10, 16384, 0, 0, THREE, "encoders with wide heads", 0 },
    { DEFAULT, FA_BF16, 96, 0, FA_MASK_NONE, 21, 21, 16384, 0, 0, THREE, "encoders between the powers of two", 0 },
    { DEFAULT, FA_F16, 128, 0, FA_MASK_NONE, 16, 16, 16384, 0, 0, { 4096 }, "the same in fp16", 0 },
    { DEFAULT, FA_F16, 64, 0, FA_MASK_NONE, 32, 32, 16384, 0, 0, { 4096 }, "the same in fp16", 0 },
    { DEFAULT, FA_BF16, 128, 0, FA_MASK_WINDOW, 16, 16, 16384, 0, 0, { 4096 }, "layers with a sliding window", 0 },
    { DEFAULT, FA_BF16, 64, 0, FA_MASK_WINDOW, 32, 32, 16384, 0, 0, { 4096 }, "layers with a sliding window", 0 },
    { DEFAULT, FA_BF16, 128, 0, WINDOW(4096), 16, 16, 16384, 0, 0, { 16384 }, "layers with a wide window", 0 },
    { DEFAULT, FA_BF16, 64, 0, WINDOW(128), 32, 32, 16384, 0, 0, { 4096 }, "layers with a narrow window", 0 },

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
      "Llama 3 8B and its like",
      0 },
    { PREFILL, FA_BF16, 128, 0, FA_MASK_CAUSAL, 64, 8, 8192, 0, 0, { 4096, 1024, 16384 }, "Llama 3 70B on one chip", 0 },
    { PREFILL, FA_BF16, 128, 0, FA_MASK_CAUSAL, 8, 1, 8192, 0, 0, { 4096, 16384 }, "Llama 3 70B split over eight chips", 0 },
    { PREFILL, FA_BF16, 128, 0, FA_MASK_CAUSAL, 32, 32, 8192, 0, 0, { 4096, 2048 }, "Llama 2 7B: as many key heads as query heads", 0 },
    { PREFILL, FA_BF16, 128, 0, FA_MASK_CAUSAL, 32, 8, 0, 1, 2048, { 16384 }, "a chunk of 2048 after a long prefix", 0 },
    { PREFILL, FA_BF16, 64, 0, FA_MASK_CAUSAL, 32, 8, 8192, 0, 0, { 2048, 8192 }, "Llama 3.2 1B", 0 },
    { PREFILL, FA_BF16, 64, 0, WINDOW(128), 64, 8, 8192, 0, 0, { 4096, 16384 }, "every other layer of gpt-oss", 0 },
    { PREFILL, FA_BF16, 96, 0, FA_MASK_CAUSAL, 32, 32, 8192, 0, 0, { 4096, 1024 }, "Phi 3 mini", 0 },
    { PREFILL, FA_BF16, 256, 0, FA_MASK_CAUSAL, 16, 8, 8192, 0, 0, { 4096, 8192 }, "Gemma 2 9B", 0 },
    { PREFILL, FA_BF16, 256, 0, WINDOW(4096), 16, 8, 8192, 0, 0, { 8192 }, "every other layer of Gemma 2 9B", 0 },
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
      "latent attention of DeepSeek V3, an eighth of its heads",
      0 },

    { DECODE, FA_BF16, 128, 0, FA_MASK_CAUSAL, 32, 8, 0, 32, 1, { 4096, 1024, 16384 }, "a token each for 32 users, Llama 3 8B", 0 },
    { DECODE, FA_BF16, 128, 0, FA_MASK_CAUSAL, 64, 8, 0, 32, 1, { 4096, 16384 }, "a token each for 32 users, Llama 3 70B", 0 },
    { DECODE, FA_BF16, 128, 0, FA_MASK_CAUSAL, 32, 32, 0, 32, 1, { 4096 }, "a token each for 32 users, Llama 2 7B", 0 },
    { DECODE, FA_BF16, 128, 0, FA_MASK_CAUSAL, 32, 8, 0, 16, 4, { 4096, 16384 }, "four speculated tokens each for 16 users", 0 },
    { DECODE, FA_BF16, 128, 0, FA_MASK_CAUSAL, 32, 8, 0, 4, 256, { 8192 }, "chunks of 256 between the tokens of others", 0 },
    { DECODE, FA_BF16, 64, 0, FA_MASK_CAUSAL, 32, 8, 0, 64, 1, { 4096 }, "a token each for 64 users, Llama 3.2 1B", 0 },
    { DECODE, FA_BF16, 256, 0, FA_MASK_CAUSAL, 16, 8, 0, 16, 1, { 4096 }, "a token each for 16 users, Gemma 2 9B", 0 },

/* A cache of b sequences for sq queries each. */
#define OVER(d, mask, hq, hkv, b, sq, ...)                                   \
    {                                                                        \
        CACHE, FA_BF16, d, 0, FA_MASK_##mask, hq, hkv, 0, b, sq, __VA_ARGS__ \
    }
#define OVER_64_AND_128(...) OVER(128, __VA_ARGS__), OVER(64, __VA_ARGS__)
#define LIST(...)   \
    {               \
        __VA_ARGS__ \
    }
    OVER_64_AND_128(NONE, 32, 8, 1, 1, LIST(8192, 1024, 131072), "one user, four query heads to a key head", 0),
    OVER_64_AND_128(NONE, 32, 8, 64, 1, LIST(8192, 1024), "a token each for 64 users", 0),
    OVER_64_AND_128(NONE, 32, 8, 8, 1, LIST(8192), "a token each for 8 users", 0),
    OVER_64_AND_128(NONE, 32, 8, 8, 1, LIST(8192), "a token each for 8 users, pages of 16", 16),
    OVER_64_AND_128(NONE, 32, 8, 64, 1, LIST(8192), "a token each for 64 users, pages of 64", 64),
    OVER_64_AND_128(NONE, 32, 8, 8, 4, LIST(8192), "four speculated tokens each for 8 users", 0),
    OVER_64_AND_128(CAUSAL, 32, 8, 8, 4, LIST(8192), "four speculated tokens each for 8 users, pages of 16", 16),
    OVER_64_AND_128(NONE, 32, 32, 32, 1, LIST(4096), "as many key heads as query heads, 32 users", 0),
    OVER_64_AND_128(NONE, 64, 8, 16, 1, LIST(32768), "eight query heads to a key head, 16 users", 0),
    OVER_64_AND_128(NONE, 64, 8, 16, 1, LIST(32768), "eight query heads to a key head, 16 users, pages of 16", 16),
    OVER_64_AND_128(NONE, 32, 8, 256, 1, LIST(2048), "a token each for 256 users", 0),
    OVER_64_AND_128(NONE, 64, 8, 1, 1, LIST(32768), "eight query heads to a key head, one user", 0),
    OVER_64_AND_128(NONE, 32, 32, 1, 1, LIST(8192), "as many key heads as query heads, one user", 0),
    OVER_64_AND_128(NONE, 32, 8, 1, 16, LIST(8192), "sixteen speculated tokens", 0),
    OVER_64_AND_128(NONE, 32, 8, 1, 1, LIST(8192), "one user, pages of 16", 16),
    OVER_64_AND_128(NONE, 32, 8, 64, 1, LIST(8192, 1024), "a token each for 64 users, pages of 16", 16),
    OVER_64_AND_128(NONE, 32, 8, 1, 1, LIST(8192), "one user, pages of 64", 64),

/* Queries that are verified or computed together after a long cached prefix, more than a token and less than a prompt. */
#define AFTER_CACHE(d, mask, hq, hkv, b, sq, lengths, why)                             \
    {                                                                                  \
        VERIFY, FA_BF16, d, 0, FA_MASK_##mask, hq, hkv, 0, b, sq, LIST lengths, why, 0 \
    }
    AFTER_CACHE(128, CAUSAL, 32, 8, 1, 8, (16384, 4096, 65536), "a draft of eight tokens for one user"),
    AFTER_CACHE(128, CAUSAL, 32, 8, 1, 32, (16384, 4096, 65536), "a tree of 32 drafted tokens for one user"),
    AFTER_CACHE(128, CAUSAL, 32, 8, 1, 64, (16384, 4096, 65536), "a tree of 64 drafted tokens for one user"),
    AFTER_CACHE(128, CAUSAL, 32, 8, 1, 256, (16384, 4096), "a chunk of 256 for one user"),
    AFTER_CACHE(128, CAUSAL, 32, 8, 8, 8, (8192, 2048), "drafts of eight tokens for 8 users"),
    AFTER_CACHE(128, CAUSAL, 32, 8, 8, 64, (8192), "trees of 64 drafted tokens for 8 users"),
    AFTER_CACHE(128, CAUSAL, 64, 8, 4, 16, (16384), "drafts of sixteen tokens for 4 users, eight query heads to a key head"),
    AFTER_CACHE(128, CAUSAL, 8, 1, 1, 32, (32768), "a tree of 32 drafted tokens, heads split over eight chips"),
    AFTER_CACHE(64, CAUSAL, 32, 8, 1, 32, (16384, 4096), "a tree of 32 drafted tokens, Llama 3.2 1B"),
    AFTER_CACHE(64, CAUSAL, 32, 8, 8, 8, (8192), "drafts of eight tokens for 8 users, Llama 3.2 1B"),
    AFTER_CACHE(256, CAUSAL, 16, 8, 1, 32, (16384), "a tree of 32 drafted tokens, Gemma 2 9B"),
    AFTER_CACHE(96, CAUSAL, 32, 32, 1, 64, (8192), "a tree of 64 drafted tokens, Phi 3 mini"),
    AFTER_CACHE(128, NONE, 16, 16, 1, 128, (8192, 2048), "cross attention of 128 queries"),
    AFTER_CACHE(64, NONE, 16, 16, 2, 256, (16384, 4096), "cross attention of 256 queries"),

/* A cache of few bits. */
#define FEW(kv, scale, d, mask, hq, hkv, b, sq, lengths, why, page)                                  \
    {                                                                                                \
        LOW, OVER_CODES(kv, scale), d, 0, FA_MASK_##mask, hq, hkv, 0, b, sq, LIST lengths, why, page \
    }
#define OF_FORMAT(kv, scale, word)                                                                                   \
    FEW(kv, scale, 128, NONE, 32, 8, 1, 1, (8192, 1024, 131072), "one user, a cache of " word, 0),                   \
        FEW(kv, scale, 128, NONE, 32, 8, 64, 1, (8192, 1024), "a token each for 64 users, a cache of " word, 0),     \
        FEW(kv, scale, 128, NONE, 64, 8, 16, 1, (32768), "eight query heads to a key head, a cache of " word, 0),    \
        FEW(kv, scale, 128, NONE, 32, 8, 64, 1, (8192), "a token each for 64 users, pages of " word, 16),            \
        FEW(kv, scale, 128, CAUSAL, 32, 8, 8, 4, (8192), "four speculated tokens for 8 users, a cache of " word, 0), \
        FEW(kv, scale, 128, CAUSAL, 32, 8, 1, 2048, (16384), "a chunk of 2048 after a prefix of " word, 0)
    OF_FORMAT(FA_E4M3, FA_SCALE_FOLDED, "e4m3"),
    OF_FORMAT(FA_S8, FA_SCALE_TOKEN, "integers with scales of tokens"),
    OF_FORMAT(FA_Q8_0, 0, "q8_0"),
    OF_FORMAT(FA_Q4_0, 0, "q4_0"),
    FEW(FA_E4M3, FA_SCALE_FOLDED, 64, NONE, 32, 8, 64, 1, (8192), "small heads, a cache of e4m3", 0),
    FEW(FA_Q8_0, 0, 64, NONE, 32, 8, 64, 1, (8192), "small heads, a cache of q8_0", 0),

/* What a step of an engine holds: see fa_ragged_typical for the lengths. Causal, over the longest lengths of keys. */
#define STEP(d, hq, hkv, tokens, b, sq, lengths, ...)                                           \
    {                                                                                           \
        MIXED, FA_BF16, d, 0, FA_MASK_CAUSAL, hq, hkv, tokens, b, sq, LIST lengths, __VA_ARGS__ \
    }
#define PROMPTS(d, hq, hkv, lengths, page) STEP(d, hq, hkv, 65536, 0, 0, lengths, "packed prompts, 65536 tokens at most", page)
#define CHUNK(d, hq, hkv, sq, lengths, page) STEP(d, hq, hkv, 0, 1, sq, lengths, "a chunk of a prompt after its cached prefix", page)
#define BESIDE(d, hq, hkv, b, sq, lengths, page) STEP(d, hq, hkv, 0, b, sq, lengths, "chunks beside the tokens of other users", page)
    PROMPTS(128, 32, 8, (4096, 16384, 1024), LENGTHS_ALONE),
    PROMPTS(64, 32, 8, (4096, 16384, 1024), LENGTHS_ALONE),
    PROMPTS(256, 16, 16, (4096, 16384), LENGTHS_ALONE),
    PROMPTS(128, 32, 8, (4096), 16),
    PROMPTS(64, 32, 8, (4096), 16),
    PROMPTS(128, 32, 8, (4096), 64),
    CHUNK(128, 32, 8, 512, (32768, 8192, 131072), LENGTHS_ALONE),
    CHUNK(128, 32, 8, 2048, (32768, 131072), LENGTHS_ALONE),
    CHUNK(128, 32, 8, 8192, (32768), LENGTHS_ALONE),
    CHUNK(128, 32, 8, 512, (32768, 131072), 16),
    CHUNK(128, 32, 8, 2048, (32768), 16),
    CHUNK(128, 32, 8, 512, (32768), 64),
    CHUNK(128, 32, 8, 2048, (32768), 64),
    CHUNK(64, 32, 8, 512, (32768), LENGTHS_ALONE),
    CHUNK(64, 32, 8, 2048, (32768), LENGTHS_ALONE),
    CHUNK(64, 32, 8, 512, (32768), 16),
    CHUNK(256, 16, 16, 2048, (32768), LENGTHS_ALONE),
    CHUNK(256, 16, 16, 2048, (32768), 16),
    BESIDE(128, 32, 8, 32, 512, (8192), 16),
    BESIDE(64, 32, 8, 32, 512, (8192), 16),
    BESIDE(256, 16, 16, 32, 512, (8192), 16),
    BESIDE(128, 32, 8, 32, 512, (8192), 64),
    BESIDE(128, 32, 8, 32, 512, (8192), LENGTHS_ALONE),
    BESIDE(128, 32, 8, 64, 2048, (8192), 16),
    BESIDE(128, 32, 8, 16, 512, (32768), 16),

/* 16k tokens, forward and backward. */
#define PASSES(d, hq, hkv, mask, ...)                                                 \
    {                                                                                 \
        TRAINING, FA_BF16, d, 0, FA_MASK_##mask, hq, hkv, 16384, 0, 0, __VA_ARGS__, 0 \
    }
#define FOUR                   \
    {                          \
        4096, 1024, 16384, 512 \
    }
    PASSES(128, 16, 16, CAUSAL, WHOLE, "training of decoders, the head_dim of most"),
    PASSES(64, 32, 32, CAUSAL, WHOLE, "training of small decoders"),
    PASSES(128, 16, 16, NONE, WHOLE, "training of encoders and of diffusion"),
    PASSES(64, 32, 32, NONE, WHOLE, "training of encoders and of vision"),
    PASSES(128, 16, 4, CAUSAL, FOUR, "training of decoders with four query heads to a key head"),
    PASSES(64, 32, 8, CAUSAL, FOUR, "training of small decoders with four query heads to a key head"),
    PASSES(128, 16, 4, NONE, LIST(4096, 1024, 16384), "training with four query heads to a key head, no mask"),
    PASSES(256, 8, 8, CAUSAL, FOUR, "training of decoders with wide heads"),
    PASSES(192, 10, 10, CAUSAL, FOUR, "training of decoders with wide heads"),
    PASSES(96, 21, 21, CAUSAL, FOUR, "training of decoders between the powers of two"),
    PASSES(256, 8, 8, NONE, FOUR, "training of encoders with wide heads"),
    PASSES(192, 10, 10, NONE, FOUR, "training of encoders with wide heads"),
    PASSES(96, 21, 21, NONE, FOUR, "training of encoders between the powers of two"),

    { VIT, FA_BF16, 64, 0, FA_MASK_NONE, 16, 16, 0, 64, 0, { 577, 197 }, "ViT-L at 336 and 224 pixels", 0 },
    { VIT, FA_F16, 64, 0, FA_MASK_NONE, 12, 12, 0, 64, 0, { 197 }, "ViT-B in fp16", 0 },
    { VIT, FA_BF16, 72, 0, FA_MASK_NONE, 16, 16, 0, 32, 0, { 729, 256 }, "SigLIP So400m; DiT-XL", 0 },
    { VIT, FA_BF16, 80, 0, FA_MASK_NONE, 16, 16, 16384, 0, 0, { 257, 4096 }, "ViT-H; the eyes of Qwen2-VL", 0 },
    { VIT, FA_BF16, 88, 0, FA_MASK_NONE, 16, 16, 0, 64, 0, { 257 }, "ViT-g", 0 },
    { VIT, FA_BF16, 104, 0, FA_MASK_NONE, 16, 16, 0, 64, 0, { 257 }, "ViT-bigG", 0 },
    { VIT, FA_BF16, 64, 0, FA_MASK_NONE, 24, 24, 0, 2, 0, { 4250 }, "Stable Diffusion 3 at 1024 pixels", 0 },
    { VIT, FA_BF16, 128, 0, FA_MASK_NONE, 24, 24, 0, 1, 0, { 4608 }, "Flux at 1024 pixels", 0 },
};
#define SERIES (sizeof series / sizeof *series)

/* Score programs over as many tokens, with the heads of models that have them. */
static const struct program_series {
    const char *name;
    int32_t mask, d, hq, hkv;
    const char *why;
} programs[] = {
#define HEADS_OF_2048(name, mask, why)          \
    { name, FA_MASK_##mask, 128, 16, 16, why }, \
    {                                           \
        name, FA_MASK_##mask, 64, 32, 32, why   \
    }
    HEADS_OF_2048("documents", NONE, "packed documents, by a number of each key"),
    HEADS_OF_2048("prefix", NONE, "prefixes that all queries see"),
    HEADS_OF_2048("chunked", NONE, "chunks of keys"),
    HEADS_OF_2048("blocks", NONE, "blocks of 128 queries and keys that are seen, or are not"),
    HEADS_OF_2048("tree", NONE, "trees of drafts, by bits"),
    HEADS_OF_2048("matrix", NONE, "any mask, by bits"),
    HEADS_OF_2048("matrix_u8", NONE, "any mask, by bytes"),
    HEADS_OF_2048("padding", NONE, "keys between two ends"),
    HEADS_OF_2048("window", NONE, "a window whose size is told at run time"),
    HEADS_OF_2048("alibi", CAUSAL, "a slope for each head"),
    HEADS_OF_2048("softcap", CAUSAL, "scores bent towards a cap"),
    HEADS_OF_2048("relative", CAUSAL, "a table by key - query"),
    HEADS_OF_2048("bias_bf16", CAUSAL, "a number for each pair"),
    { "softcap", FA_MASK_CAUSAL, 256, 16, 8, "Gemma 2 9B" },
    { "sink", FA_MASK_CAUSAL, 64, 64, 8, "gpt-oss" },
    { "sink", FA_MASK_CAUSAL, 128, 16, 16, "a sink beside the heads of most" },
    { "t5", FA_MASK_NONE, 64, 32, 32, "the encoder of T5" },
    { "t5_decoder", FA_MASK_CAUSAL, 64, 32, 32, "the decoder of T5" },
};
#define PROGRAMS (sizeof programs / sizeof *programs)
static const int32_t program_lengths[] = { 4096, 16384 };

static bool program_problem(const struct program_series *s, int32_t op, int32_t n, fa_problem *out)
{
    fa_problem p = FA_PROBLEM_INIT;
    p.op = op, p.dtype = FA_BF16, p.mask = s->mask, p.d = s->d, p.hq = s->hq, p.hkv = s->hkv;
    p.b = 16384 / n, p.sq = p.sk = n;
    const fa_score_file *file = fa_score_shipped_find(s->name, strlen(s->name));
    const fa_program *program;
    if (!file || fa_score_known_read(&program, file->name, file->bytes, file->size) != FA_OK)
        return false;
    fa_score_known_name(&p, program);
    return fa_problem_normalize(out, &p) == FA_OK;
}

static int32_t last_op(const struct series *s)
{
    return s->grids & TRAINING ? FA_BACKWARD : FA_FORWARD;
}

static bool problem_of(const struct series *s, int32_t op, int32_t n, fa_problem *out)
{
    fa_problem p = FA_PROBLEM_INIT;
    p.op = op;
    p.dtype = BYTE(s->dtype, 0);
    p.d = s->d;
    p.dv = s->dv;
    p.mask = MASK(s->mask);
    p.window = KEYS(s->mask);
    p.hq = s->hq;
    p.hkv = s->hkv;
    p.b = s->b > 0 ? s->b : s->tokens > n ? s->tokens / n : 1;
    p.sk = n;
    p.sq = s->sq > 0 ? s->sq : n;
    p.kv_dtype = BYTE(s->dtype, 1);
    p.k_scale_by = p.v_scale_by = BYTE(s->dtype, 2);
    p.page = s->page > 0 ? s->page : 0;
    p.features = s->page > 0 ? FA_FEATURE_LENGTHS | FA_FEATURE_PAGES : s->page ? FA_FEATURE_LENGTHS : 0;
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
    for (size_t i = 0; i < fa_shipped_count && wanted & SHIPPED; i++)
        if (n < CLI_GRID_MOST && is_new(out, n, &fa_shipped_rows[i].problem))
            out[n++] = (cli_grid_row){ fa_shipped_rows[i].problem, "a winner that ships" };
    for (int round = 0; round < LENGTHS; round++)
        for (size_t i = 0; i < SERIES; i++)
            for (int32_t op = FA_FORWARD; op <= last_op(&series[i]); op++) {
                fa_problem p;
                if (n < CLI_GRID_MOST && series[i].grids & wanted && series[i].n[round] &&
                    problem_of(&series[i], op, series[i].n[round], &p) && is_new(out, n, &p))
                    out[n++] = (cli_grid_row){ p, series[i].why };
            }
    for (size_t k = 0; k < sizeof program_lengths / sizeof *program_lengths; k++)
        for (size_t i = 0; i < PROGRAMS && wanted & SCORES; i++)
            for (int32_t op = FA_FORWARD; op <= FA_BACKWARD; op++) {
                fa_problem p;
                if (n < CLI_GRID_MOST && program_problem(&programs[i], op, program_lengths[k], &p))
                    out[n++] = (cli_grid_row){ p, programs[i].why };
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
