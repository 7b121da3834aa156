/* rule: the rows. H100, beside ggml-cuda of ggml 0.26 in one run; docs/ggml.md has the times. */
#include "rule.h"
#include <stdint.h>

static const fa_ggml_rule rules[] = {
    { 1, 576, 64, INT32_MAX, true, false, FA_GGML_ANY_FORM, false, "prompts over blocks, which are unpacked for each 64 rows" },
    { 1, 576, 64, INT32_MAX, false, true, FA_GGML_NO_BAND | FA_GGML_DISTANCES, false, "prompts under a mask that is added" },
    { 257, 576, 1, INT32_MAX, true, true, FA_GGML_ANY_MASK, false, "wide heads under a mask: keys are not cut, P is made for each pass" },
    { 1, 576, 1, INT32_MAX, true, true, FA_GGML_ANY_MASK, true, "keys that are left of a mask are gathered there" },
};

const fa_ggml_rule *fa_ggml_rule_row(size_t i)
{
    return i < sizeof rules / sizeof *rules ? &rules[i] : NULL;
}

const fa_ggml_rule *fa_ggml_slower(const fa_ggml_claim *c, fa_ggml_form form)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const fa_ggml_rule *r = &rules[i];
        if (c->d >= r->d_least && c->d <= r->d_most && c->sq >= r->rows_least && c->sq <= r->rows_most &&
            (c->kv_dtype ? r->blocks : r->plain) && (r->forms & (int)form) &&
            (!r->hinted || (c->keys_left > 0 && c->sk >= 4096 && c->sk / 2 >= c->keys_left)))
            return r;
    }
    return NULL;
}
