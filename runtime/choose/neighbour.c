/* neighbour: what would run if one thing of a problem's layout were otherwise: its rows, its pages, the order of its LSE. */
#include "choosing.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "jit.h"
#include <stdio.h>

#define ROW_BYTES 16 /* that rows begin at multiples of, where all kernels take them */
#define PAGE 16      /* tokens, that all kernels take */

/* What a problem has, and what another one has instead. */
typedef struct side {
    char what[96], with[64];
} side;

/* Head dims and addresses as the fastest kernels want them. */
static bool align_rows(fa_problem *p, side *is)
{
    const int32_t unit = ROW_BYTES / fa_dtype_bytes(p->dtype), align = fa_problem_kv_align(p);
    if (align >= ROW_BYTES || p->kv_dtype)
        return false;
    *is = (side){ .with = "at multiples of 16" };
    snprintf(is->what, sizeof is->what, "rows begin at multiples of %d bytes", align);
    if (p->d % unit || p->dv % unit)
        snprintf(is->with, sizeof is->with, "at multiples of 16, with d and dv at multiples of %d", unit);
    p->d = (p->d + unit - 1) / unit * unit;
    p->dv = (p->dv + unit - 1) / unit * unit;
    p->align = 0;
    return true;
}

static bool widen_pages(fa_problem *p, side *is)
{
    if (!(p->features & FA_FEATURE_PAGES) || p->page >= PAGE)
        return false;
    *is = (side){ .with = "with sizes of pages at multiples of 16" };
    snprintf(is->what, sizeof is->what, "the size of a page is a multiple of %d and of no greater power of two", p->page);
    p->page = PAGE;
    return true;
}

static bool pack_lse(fa_problem *p, side *is)
{
    if (!(p->features & FA_FEATURE_LSE_STRIDES))
        return false;
    *is = (side){ .what = "lse has strides of its own", .with = "with lse packed" };
    p->features &= ~FA_FEATURE_LSE_STRIDES;
    return true;
}

/* Seconds of what would be chosen; 0 = nothing. */
static double price(fa_context *ctx, const fa_problem *p)
{
    const fa_problem point = fa_problem_point(p);
    fa_choosing c;
    fa_status st = fa_choosing_open(&c, ctx, &point, false);
    double seconds = st == FA_OK && c.choice->n ? c.choice->row[0].price : 0;
    fa_choosing_close(&c);
    return seconds;
}

bool fa_jit_neighbour(fa_context *ctx, const fa_problem *p, double seconds, double times, char *buf, size_t n)
{
    static bool (*const others[])(fa_problem *, side *) = { align_rows, widen_pages, pack_lse };
    double most = times;
    fa_message before;
    fa_message_keep(&before);
    for (size_t i = 0; seconds > 0 && i < sizeof others / sizeof *others; i++) {
        side is;
        fa_problem q = *p;
        double with = others[i](&q, &is) && fa_problem_normalize(&q, &q) == FA_OK ? price(ctx, &q) : 0;
        if (with <= 0 || seconds < with * most)
            continue;
        most = seconds / with;
        snprintf(buf, n, "%s: %.4g us; %s another kernel runs, %.4g us", is.what, seconds * 1e6, is.with, with * 1e6);
    }
    fa_message_settle(&before, FA_OK);
    return most > times;
}
