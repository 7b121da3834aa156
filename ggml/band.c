/* band: rows {first, past} that are those of no mask, of a causal one, or of a window. */
#include "band.h"
#include <fagen.h>
#include <string.h>

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

bool fa_ggml_band_of(const fa_ggml_row *rows, int64_t masks, int32_t sq, int32_t sk, fa_ggml_band *out)
{
    int32_t begin = sk, past = 0;
    bool all_begin = true, all_end = true;
    for (int64_t i = 0; i < masks * sq; i++) {
        const fa_ggml_row *r = &rows[i];
        if (r->live < 1 || r->other || r->past - r->first != r->live || memcmp(r, &rows[i % sq], sizeof *r) != 0)
            return false;
        begin = r->first < begin ? r->first : begin;
        past = r->past > past ? r->past : past;
    }
    for (int32_t i = 0; i < sq; i++) {
        all_begin = all_begin && rows[i].first == begin;
        all_end = all_end && rows[i].past == past;
    }
    *out = (fa_ggml_band){ .begin = begin, .sk = past - begin };
    if (all_begin && all_end)
        return true; /* FA_MASK_NONE over the keys that all see */
    /* row i ends after key i + off, or with the last: off is that of the first row */
    int64_t off = (int64_t)rows[0].past - 1 - begin, left = 0;
    for (int32_t i = 0; i < sq; i++) {
        if (rows[i].past - begin != least(past - begin, i + off + 1))
            return false;
        if (rows[i].first > begin) /* where its keys begin is told by the rows that do not begin with all */
            left = most(left, i + off - (rows[i].first - begin));
    }
    out->offset = (int32_t)off;
    out->mask = FA_MASK_CAUSAL;
    if (all_begin)
        return true;
    out->mask = FA_MASK_WINDOW;
    out->left = (int32_t)left;
    for (int32_t i = 0; i < sq; i++)
        if (rows[i].first - begin != most(0, i + off - left))
            return false;
    return true;
}
