/* rule: the rows. H100, beside ggml-cuda of ggml 0.26 in one run; docs/ggml.md has the times. */
#include "rule.h"
#include <stdint.h>

enum { ALL = INT32_MAX };
static const fa_ggml_rule rules[] = {
    { 1, 576, 64, ALL, 1, ALL, true, false, FA_GGML_ANY_FORM, false, "prompts over blocks, which are unpacked for each 64 rows" },
    { 1, 576, 64, ALL, 1, ALL, false, true, FA_GGML_NO_BAND | FA_GGML_DISTANCES, false, "prompts under a mask that is added" },
    { 1, 256, 2, 63, 17, ALL, false, true, FA_GGML_ANY_MASK, false, "few rows, but more than a tile of decoding has" },
    { 257, 576, 1, ALL, 1, ALL, true, true, FA_GGML_ANY_MASK, false, "wide heads under a mask: keys are not cut, P is made for each pass" },
    { 1, 576, 1, ALL, 1, ALL, false, true, FA_GGML_ANY_MASK, true, "keys that are left of a mask are gathered there" },
};

const fa_ggml_rule *fa_ggml_rule_row(size_t i)
{
    return i < sizeof rules / sizeof *rules ? &rules[i] : NULL;
}

const fa_ggml_rule *fa_ggml_slower(const fa_ggml_claim *c, fa_ggml_form form)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const fa_ggml_rule *r = &rules[i];
        const int64_t rows = (int64_t)c->sq * (c->hq / c->hkv);
        if (c->d >= r->d_least && c->d <= r->d_most && c->sq >= r->queries_least && c->sq <= r->queries_most && rows >= r->rows_least &&
            rows <= r->rows_most && (c->kv_dtype ? r->blocks : r->plain) && (r->forms & (int)form) &&
            (!r->hinted || (c->keys_left > 0 && c->sk >= 4096 && c->sk / 2 >= c->keys_left)))
            return r;
    }
    return NULL;
}
