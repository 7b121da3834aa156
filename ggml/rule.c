/* rule: the rows. H100 and H200, beside ggml-cuda of ggml 0.26 in one run, 2026-11-27; docs/performance.md has the times. */
#include "rule.h"
#include <stdint.h>

enum { FEW = FA_GGML_NO_MASK | FA_GGML_FEW_ROWS | FA_GGML_DISTANCES };
/* clang-format off */
const fa_ggml_rule fa_ggml_rules[FA_GGML_RULES] = {
    /* prompts */
    { .blocks = true, .forms = FA_GGML_ANY_FORM, .queries_least = 64, .narrow = true,
      .because = "prompts over blocks, half of whose heads find no room in 16 bits" },
    { .blocks = true, .forms = FA_GGML_ANY_FORM, .d_least = 129, .queries_least = 64,
      .because = "prompts over blocks of more than 128 columns" },
    { .plain = true, .blocks = true, .forms = FA_GGML_NO_BAND | FA_GGML_DISTANCES, .queries_least = 64,
      .because = "prompts under a mask that is added" },
    { .plain = true, .blocks = true, .forms = FA_GGML_A_BAND | FA_GGML_NO_BAND, .d_most = 256, .queries_least = 64, .queries_most = 191,
      .because = "prompts of few rows" },
    /* few rows in 16 bits */
    { .plain = true, .forms = FEW, .d_most = 96, .queries_most = 63,
      .because = "few rows of at most 96 columns" },
    { .plain = true, .forms = FEW, .d_least = 97, .d_most = 128, .queries_most = 1, .keys_most = 16383,
      .because = "single rows over few keys" },
    { .plain = true, .forms = FEW, .d_least = 97, .d_most = 128, .queries_most = 1, .group_most = 3,
      .because = "single rows of few heads to a KV head" },
    { .plain = true, .forms = FEW, .d_least = 97, .d_most = 128, .queries_least = 2, .queries_most = 63,
      .because = "a few rows" },
    { .plain = true, .forms = FEW, .d_least = 129, .d_most = 256, .queries_most = 1, .whole = true,
      .because = "single rows of more than 128 columns" },
    { .plain = true, .forms = FEW, .d_least = 129, .d_most = 256, .queries_least = 2, .queries_most = 63,
      .because = "few rows of more than 128 columns" },
    /* and over blocks */
    { .blocks = true, .forms = FEW, .d_most = 256, .queries_most = 63, .keys_most = 4095,
      .because = "few rows over few keys in blocks" },
    { .blocks = true, .forms = FEW, .d_most = 256, .queries_most = 63, .keys_most = 8191, .cut = true,
      .because = "few rows over blocks of so few keys, which cost the graph its whole" },
    { .blocks = true, .forms = FEW, .d_most = 256, .queries_least = 2, .queries_most = 63, .rows_least = 17,
      .because = "few rows over blocks, but more than a tile of decoding has" },
    { .blocks = true, .forms = FEW, .d_most = 256, .queries_most = 1, .group_most = 1, .keys_most = 16383,
      .because = "single rows over few keys in blocks, one head to a KV head" },
    /* wide heads, sparse masks */
    { .plain = true, .blocks = true, .forms = FA_GGML_ANY_MASK, .d_least = 257,
      .because = "wide heads under a mask" },
    { .plain = true, .forms = FA_GGML_ANY_MASK, .hinted = true,
      .because = "keys that a mask leaves are gathered there" },
};
/* clang-format on */

static bool within(int64_t n, int32_t least, int32_t most)
{
    return n >= least && (!most || n <= most);
}

static bool holds(const fa_ggml_rule *r, const fa_ggml_claim *c, fa_ggml_form form, fa_ggml_way way)
{
    const int32_t group = c->hq / c->hkv;
    return (c->kv_dtype ? r->blocks : r->plain) && (r->forms & (int)form) && within(c->d, r->d_least, r->d_most) &&
           within(c->sq, r->queries_least, r->queries_most) && within((int64_t)c->sq * group, r->rows_least, 0) &&
           within(group, 0, r->group_most) && within(c->sk, 0, r->keys_most) && (!r->whole || c->sk % 256 == 0) &&
           (!r->narrow || !way.unpacks) && (!r->cut || way.cuts) &&
           (!r->hinted || (c->keys_left > 0 && c->sk >= 4096 && c->sk / 2 >= c->keys_left));
}

const fa_ggml_rule *fa_ggml_slower(const fa_ggml_claim *c, fa_ggml_form form, fa_ggml_way way)
{
    for (size_t i = 0; i < FA_GGML_RULES; i++)
        if (holds(&fa_ggml_rules[i], c, form, way))
            return &fa_ggml_rules[i];
    return NULL;
}
