/* select: a bundle's kernel, or one that is made here. */
#include "select.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "jit.h"
#include "pins.h"
#include "runtime/bundle/set.h"
#include "runtime/context/context.h"
#include <stdio.h>
#include <string.h>

static bool from_bundles(fa_context *ctx, const fa_problem *p, fa_bundle_set_fit fit, fa_selection *out, fa_source *source)
{
    char other[96] = "";
    const fa_bundle_set_row *r = fa_bundle_set_find(ctx->bundle_set, p, &ctx->device, ctx->budget, fit);
    if (!r)
        return false;
    bool own = strcmp(r->arch->name, ctx->device.arch.name) == 0;
    if (!own || r->image->ptx || fa_problem_align_apart(&r->problem, p))
        snprintf(other, sizeof other, " (%s for %s, rows at multiples of %d bytes)", r->image->ptx ? "PTX" : "a cubin", r->image->arch,
                 fa_problem_kv_align(&r->problem));
    *out = (fa_selection){ .config = r->config, .where = "bundle", .bundle_row = r };
    snprintf(out->why, sizeof out->why, "of the bundle %.40s by fagen %.12s%s: %.80s", r->bundle->name, r->bundle->version, other,
             r->row->why);
    if (source)
        fa_bundle_set_source(source, r->image);
    return true;
}

/* No bundle has a kernel for p. Some may have them for other chips or classes: how many tells which it is. */
static fa_status none(const fa_context *ctx, const fa_problem *p)
{
    size_t here = 0;
    char line[160];
    fa_problem_print_key(line, sizeof line, p);
    for (size_t i = 0; i < ctx->bundle_set->n; i++)
        here += strcmp(ctx->bundle_set->row[i].arch->name, ctx->device.arch.name) == 0;
    return fa_fail(
        FA_NO_KERNEL,
        "no bundle has a kernel for %s on %s with %d bytes of shared memory per block, and nothing is compiled here; the bundles "
        "hold %zu rows, %zu of them for %s; accepted: a bundle of fagen emit --bundle --problem %s --arch %s, or bundle_only = 0 "
        "in a library that compiles",
        line, ctx->device.arch.name, ctx->budget, ctx->bundle_set->n, here, ctx->device.arch.name, line, ctx->device.arch.name);
}

static fa_status select_class(fa_context *ctx, const fa_problem *p, fa_selection *out, fa_source *source)
{
    if (fa_pins_find(ctx->pins, p, NULL))
        return fa_select_jit(ctx, p, out, source);
    if (from_bundles(ctx, p, FA_BUNDLE_SET_OWN, out, source))
        return FA_OK;
    if (ctx->bundle_only)
        return from_bundles(ctx, p, FA_BUNDLE_SET_ANY, out, source) ? FA_OK : none(ctx, p);
    /* NVRTC is looked for only where something could take its place */
    if (fa_bundle_set_find(ctx->bundle_set, p, &ctx->device, ctx->budget, FA_BUNDLE_SET_ANY) && !fa_jit_compiles(ctx))
        return from_bundles(ctx, p, FA_BUNDLE_SET_ANY, out, source) ? FA_OK : none(ctx, p);
    return fa_select_jit(ctx, p, out, source);
}

fa_status fa_select(fa_context *ctx, const fa_problem *of, fa_selection *out, fa_source *source)
{
    const fa_problem p = fa_problem_point(of);
    fa_problem with = p;
    fa_source own = { 0 };
    fa_message before;
    bool lacks = false;
    double with_seconds = 0;
    fa_message_keep(&before);
    if (!fa_pins_find(ctx->pins, &p, NULL)) /* one of the class without a workspace is what is asked for */
        with.features &= ~FA_FEATURE_NO_WORKSPACE;
    fa_status st = select_class(ctx, &with, out, &own);
    if (with.features != p.features && (st != FA_OK || fa_workspace_any(&own.workspace))) {
        lacks = st == FA_OK;
        with_seconds = lacks ? out->seconds : 0;
        fa_source_free(&own);
        st = select_class(ctx, &p, out, &own);
    }
    if (st == FA_OK) {
        out->lacks = lacks;
        out->seconds_with = with_seconds;
    }
    if (source && st == FA_OK)
        *source = own;
    else
        fa_source_free(&own);
    if (source && st != FA_OK)
        memset(source, 0, sizeof *source);
    return fa_message_settle(&before, st);
}
