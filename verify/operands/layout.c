/* layout: how a tensor lies in memory. */
#include "layout.h"
#include <stddef.h>

const char *fa_layout_name(int kind)
{
    static const char *const names[FA_LAYOUT_KINDS] = { "packed",     "padded",    "heads", "reversed", "far",
                                                        "same-batch", "same-head", "same",  "turned" };
    return kind >= 0 && kind < FA_LAYOUT_KINDS ? names[kind] : "?";
}

bool fa_layout_broadcasts(int kind)
{
    return kind == FA_LAYOUT_SAME_BATCH || kind == FA_LAYOUT_SAME_HEAD || kind == FA_LAYOUT_SAME;
}

static int64_t round_up(int64_t v, int64_t to)
{
    return (v + to - 1) / to * to;
}

/* Extent of one dimension: only what is really stepped over counts. */
static void extend(fa_layout *l, int32_t n, int64_t stride)
{
    int64_t most = n > 1 ? (n - 1) * stride : 0;
    if (most < 0)
        l->first += most;
    else
        l->last += most;
}

fa_layout fa_layout_make(int kind, int32_t b, int32_t s, int32_t h, int32_t width, int32_t unit, bool odd)
{
    fa_layout l = { .b = b, .s = s, .h = h, .width = width };
    int64_t row = round_up(width, unit);
    l.sh = row;
    l.ss = row * h;
    l.sb = l.ss * s;
    switch (kind) {
    case FA_LAYOUT_PADDED:
        l.sh = row + unit;
        l.ss = l.sh * h + 3 * unit;
        l.sb = l.ss * s + 5 * unit;
        break;
    case FA_LAYOUT_HEADS:
        l.ss = row;
        l.sh = row * s;
        l.sb = l.sh * h;
        break;
    case FA_LAYOUT_REVERSED:
        l.ss = -l.ss;
        break;
    case FA_LAYOUT_FAR: {
        int64_t far = (int64_t)1 << 32, *longest = s > 1 ? &l.ss : h > 1 ? &l.sh : &l.sb;
        int64_t n = s > 1 ? s : h > 1 ? h : b;
        l.sh = row;
        l.sb = s > 1 ? row * h : row;
        l.ss = row * h;
        *longest = round_up(far / (n > 1 ? n - 1 : 1) + row * h * b, unit);
        break;
    }
    case FA_LAYOUT_TURNED:
        l.sb = row;
        l.ss = row * b;
        l.sh = l.ss * s;
        break;
    case FA_LAYOUT_SAME_BATCH:
        l.sb = 0;
        break;
    case FA_LAYOUT_SAME_HEAD:
        l.sh = 0;
        l.ss = row;
        l.sb = row * s;
        break;
    case FA_LAYOUT_SAME:
        l.sh = l.sb = 0;
        l.ss = row;
        break;
    default:
        break;
    }
    l.last = b > 0 && s > 0 && h > 0 ? width - 1 : -1;
    if (l.last >= 0) {
        extend(&l, b, l.sb);
        extend(&l, s, l.ss);
        extend(&l, h, l.sh);
    }
    if (odd) {
        if (b == 1)
            l.sb = -((int64_t)1 << 45) + 3;
        if (s == 1)
            l.ss = ((int64_t)1 << 44) + 1;
        if (h == 1)
            l.sh = -7;
    }
    return l;
}

int64_t fa_layout_row(const fa_layout *l, int32_t b, int32_t s, int32_t h)
{
    return (b ? b * l->sb : 0) + (s ? s * l->ss : 0) + (h ? h * l->sh : 0);
}
