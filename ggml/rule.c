/* rule: the rows. H100 and H200, beside ggml-cuda of ggml 0.26 in one run, 2026-11-27; docs/performance.md has the times. */
#include "rule.h"
#include <stdint.h>

enum { ALL = INT32_MAX, FEW = FA_GGML_NO_MASK | FA_GGML_FEW_ROWS | FA_GGML_DISTANCES };
const fa_ggml_rule fa_ggml_rules[FA_GGML_RULES] = {
    /* prompts */
    { false, true, FA_GGML_ANY_FORM, 1, 576, 64, ALL, 1, ALL, ALL, false, false, true,
      "prompts over blocks, half of whose heads find no room in 16 bits" },
    { false, true, FA_GGML_ANY_FORM, 129, 576, 64, ALL, 1, ALL, ALL, false, false, false, "prompts over blocks of more than 128 columns" },
    { true, true, FA_GGML_NO_BAND | FA_GGML_DISTANCES, 1, 576, 64, ALL, 1, ALL, ALL, false, false, false,
      "prompts under a mask that is added" },
    /* few rows in 16 bits */
    { true, false, FEW, 1, 96, 1, 63, 1, ALL, ALL, false, false, false, "few rows of at most 96 columns" },
    { true, false, FEW, 97, 128, 1, 1, 1, ALL, 16383, false, false, false, "single rows over few keys" },
    { true, false, FEW, 97, 128, 1, 1, 1, 3, ALL, false, false, false, "single rows of few heads to a KV head" },
    { true, false, FEW, 97, 128, 2, 63, 1, ALL, ALL, false, false, false, "a few rows" },
    { true, false, FEW, 129, 256, 1, 1, 1, ALL, ALL, true, false, false, "single rows of more than 128 columns" },
    { true, false, FEW, 129, 256, 2, 63, 1, ALL, ALL, false, false, false, "few rows of more than 128 columns" },
    /* and over blocks */
    { false, true, FEW, 1, 256, 1, 63, 1, ALL, 4095, false, false, false, "few rows over few keys in blocks" },
    { false, true, FEW, 1, 256, 2, 63, 17, ALL, ALL, false, false, false, "few rows over blocks, but more than a tile of decoding has" },
    /* wide heads, sparse masks */
    { true, true, FA_GGML_ANY_MASK, 257, 576, 1, ALL, 1, ALL, ALL, false, false, false, "wide heads under a mask" },
    { true, false, FA_GGML_ANY_MASK, 1, 576, 1, ALL, 1, ALL, ALL, false, true, false, "keys that a mask leaves are gathered there" },
};

static bool holds(const fa_ggml_rule *r, const fa_ggml_claim *c, fa_ggml_form form, bool unpacks)
{
    const int32_t group = c->hq / c->hkv;
    return (c->kv_dtype ? r->blocks : r->plain) && (r->forms & (int)form) && c->d >= r->d_least && c->d <= r->d_most &&
           c->sq >= r->queries_least && c->sq <= r->queries_most && (int64_t)c->sq * group >= r->rows_least && group <= r->group_most &&
           c->sk <= r->keys_most && (!r->whole || c->sk % 256 == 0) && (!r->narrow || !unpacks) &&
           (!r->hinted || (c->keys_left > 0 && c->sk >= 4096 && c->sk / 2 >= c->keys_left));
}

const fa_ggml_rule *fa_ggml_slower(const fa_ggml_claim *c, fa_ggml_form form, bool unpacks)
{
    for (size_t i = 0; i < FA_GGML_RULES; i++)
        if (holds(&fa_ggml_rules[i], c, form, unpacks))
            return &fa_ggml_rules[i];
    return NULL;
}
