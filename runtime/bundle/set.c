/* set: the bundles of a context are read once (blob.h). */
#include "set.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "gen/score/known.h"
#include "image.h"
#include "runtime/context/context.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fa_status check_blob(const fa_blob *b)
{
    for (uint32_t i = 0; i < b->images; i++) {
        const fa_arch *arch = fa_arch_find(b->image[i].arch);
        if (!arch || strcmp(arch->name, b->image[i].arch) != 0)
            return fa_wrap(fa_fail(FA_INVALID, "arch is \"%.40s\"; accepted: %s", b->image[i].arch, fa_arch_names()), "%.60s: image %u",
                           b->name, i);
    }
    return FA_OK;
}

static fa_status take_row(fa_bundle_set_row *out, const fa_blob *b, uint32_t i)
{
    const fa_blob_row *r = &b->row[i];
    *out = (fa_bundle_set_row){ .bundle = b, .row = r, .image = &b->image[r->image] };
    out->arch = fa_arch_find(out->image->arch);
    const fa_program *program;
    fa_status st = r->score[0] ? fa_wrap(fa_score_known_read(&program, "score", r->score, strlen(r->score)), "score") : FA_OK;
    if (st == FA_OK)
        st = fa_problem_normalize(&out->problem, &r->problem);
    if (st == FA_OK && out->problem.op != out->image->operation->op)
        st = fa_fail(FA_INVALID, "op is %d; accepted: %d, as of image %d", out->problem.op, out->image->operation->op, r->image);
    if (st == FA_OK)
        st = fa_config_parse(&out->config, out->image->config);
    return fa_wrap(st == FA_OK ? FA_OK : FA_INVALID, "%.60s: row %u", b->name, i); /* also what this version does not compute */
}

/* size: of the blob; SIZE_MAX where it tells itself. */
static fa_status take_bundle(fa_bundle_set *s, const void *bytes, size_t size)
{
    fa_blob *b = calloc(1, sizeof *b), **blobs = realloc(s->blob, (s->blobs + 1) * sizeof *blobs);
    s->blob = blobs ? blobs : s->blob;
    if (!b || !blobs) {
        free(b);
        return fa_fail(FA_NOMEM, "host memory for a bundle");
    }
    s->blob[s->blobs++] = b;
    fa_status st = fa_blob_read(b, bytes, size);
    if (st == FA_OK)
        st = check_blob(b);
    if (st != FA_OK || !b->rows)
        return st;
    fa_bundle_set_row *rows = realloc(s->row, (s->n + b->rows) * sizeof *rows);
    if (!rows)
        return fa_fail(FA_NOMEM, "%zu bytes of host memory", (s->n + b->rows) * sizeof *rows);
    s->row = rows;
    for (uint32_t i = 0; st == FA_OK && i < b->rows; i++)
        st = take_row(&s->row[s->n++], b, i);
    return st;
}

fa_status fa_bundle_set_open(fa_bundle_set *out, const fa_bundle *const *bundles)
{
    fa_status st = FA_OK;
    *out = (fa_bundle_set){ .n = 0 };
    for (int k = 0; st == FA_OK && bundles && bundles[k]; k++) {
        const void *bytes;
        size_t size;
        fa_bundle_bytes(bundles[k], &bytes, &size);
        st = fa_wrap(take_bundle(out, bytes, size), "options: bundle %d", k);
    }
    if (st != FA_OK)
        fa_bundle_set_close(out);
    return st;
}

void fa_bundle_set_close(fa_bundle_set *s)
{
    for (size_t i = 0; i < s->blobs; i++) {
        fa_blob_free(s->blob[i]);
        free(s->blob[i]);
    }
    free(s->blob);
    free(s->row);
    *s = (fa_bundle_set){ .n = 0 };
}

static fa_status open_whole(const void *bytes, size_t size)
{
    fa_bundle_set s = { .n = 0 };
    fa_key key;
    fa_status st = fa_wrap(take_bundle(&s, bytes, size), "bundle");
    for (uint32_t i = 0; st == FA_OK && i < s.blob[0]->images; i++)
        st = fa_bundle_image_check(s.blob[0], &s.blob[0]->image[i], &key);
    fa_bundle_set_close(&s);
    return st;
}

fa_status fa_bundle_open(const fa_bundle **out, const void *bytes, size_t size)
{
    fa_message before;
    if (!out)
        return fa_fail(FA_INVALID, "out: NULL; accepted: the address of a fa_bundle pointer");
    *out = NULL;
    if (!bytes)
        return fa_fail(FA_INVALID, "bytes: NULL; accepted: what fagen emit --bundle --raw wrote");
    fa_message_keep(&before);
    fa_status st = fa_message_settle(&before, open_whole(bytes, size));
    *out = st == FA_OK ? bytes : NULL;
    return st;
}

/* How far an image's chip is from the device: 0 = its own; -1 = it does not run there. Kernels of features of one chip ("sm_90a") run on
 * no other; a cubin runs on later chips of the same major version, PTX on all later ones. Own cubins come before own PTX. */
static int chip_distance(const fa_bundle_set_row *r, const fa_device *d)
{
    bool own = strcmp(r->arch->name, d->arch.name) == 0, features = r->arch->name[strlen(r->arch->name) - 1] == 'a';
    if ((!r->image->ptx && d->driver->takes_ptx) || (!own && (features || r->arch->cc > d->arch.cc)))
        return -1;
    if (own)
        return r->image->ptx && !d->driver->takes_ptx ? 1 : 0;
    if (!r->image->ptx)
        return r->arch->cc / 10 == d->arch.cc / 10 ? 1 + d->arch.cc - r->arch->cc : -1;
    return 1000 + d->arch.cc - r->arch->cc;
}

static bool fits(const fa_blob_image *i, int32_t budget)
{
    for (int s = 0; s < i->steps; s++)
        if (i->step[s].launch.smem > budget)
            return false;
    return true;
}

const fa_bundle_set_row *fa_bundle_set_find(const fa_bundle_set *s, const fa_problem *p, const fa_device *d, int32_t budget,
                                            fa_bundle_set_fit fit)
{
    const fa_bundle_set_row *best = NULL;
    long nearest = 0;
    for (size_t i = 0; i < s->n; i++) {
        const fa_bundle_set_row *r = &s->row[i];
        bool serves = !fa_problem_hindrance(&r->problem, fa_workspace_any(&r->image->workspace), p) && fits(r->image, budget);
        int chip = serves ? chip_distance(r, d) : -1;
        if (chip < 0 || (fit == FA_BUNDLE_SET_OWN && (strcmp(r->arch->name, d->arch.name) || fa_problem_align_apart(&r->problem, p))))
            continue;
        long far = ((long)chip * 32 + fa_problem_align_apart(&r->problem, p)) * 256 + fa_problem_steps(&r->problem, p);
        if (!best || far < nearest) {
            best = r;
            nearest = far;
        }
    }
    return best;
}

void fa_bundle_set_source(fa_source *out, const fa_blob_image *image)
{
    fa_key hash = { 0, 0 };
    memset(out, 0, sizeof *out);
    fa_key_parse(&hash, image->source);
    snprintf(out->name, sizeof out->name, "%.*s", (int)strcspn(image->config, ":"), image->config);
    out->hash[0] = hash.lo;
    out->hash[1] = hash.hi;
    out->steps = image->steps;
    out->workspace = image->workspace;
    out->packing = image->packing;
    snprintf(out->params, sizeof out->params, "%s", image->params);
    for (int i = 0; i < image->steps; i++)
        out->step[i] = image->step[i].launch;
}

fa_status fa_bundle_set_load(fa_context *ctx, const fa_bundle_set_row *r, const fa_kernel **out)
{
    fa_source s;
    fa_bundle_set_source(&s, r->image);
    return fa_bundle_image_load(ctx, r->bundle, r->image, &s, "bundle", out);
}
