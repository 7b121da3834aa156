/* image: the bytes of an image are looked at when they are first loaded. */
#include "image.h"
#include "gen/error.h"
#include "runtime/build/kernels.h"
#include "runtime/context/context.h"
#include "runtime/context/exit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fa_status fa_bundle_image_check(const fa_blob *b, const fa_blob_image *image, fa_key *key)
{
    char hex[33];
    *key = fa_blob_image_check(image);
    fa_key_print(hex, *key);
    if (strcmp(hex, image->check) != 0)
        return fa_fail(FA_INVALID, "bundle %.60s: image %d: its checksum is %s; accepted: %s, as when it was written: emit it again",
                       b->name, (int)(image - b->image), hex, image->check);
    return FA_OK;
}

static fa_status load(fa_context *ctx, const fa_blob_image *image, const fa_source *s, fa_key key, fa_kernel **out)
{
    fa_entered in;
    /* a copy: no driver says how it wants the bytes aligned */
    fa_entry e = { .key = key, .ptx = image->ptx, .image = malloc((size_t)image->size), .image_size = (size_t)image->size };
    if (!e.image)
        return fa_fail(FA_NOMEM, "%d bytes of host memory", image->size);
    memcpy(e.image, image->bytes, (size_t)image->size);
    fa_status st = fa_exit_begin("load");
    if (st == FA_OK) {
        st = fa_context_enter(ctx, &in);
        if (st == FA_OK) {
            st = fa_kernel_load(out, &ctx->device, &e, s);
            fa_context_leave(ctx, &in);
        }
        fa_exit_end();
    }
    free(e.image);
    for (int i = 0; st == FA_OK && i < image->steps && i < s->steps; i++)
        if (image->step[i].registers) { /* what ptxas said of this very cubin: the driver does not tell of spills */
            (*out)->resources[i].known = true;
            (*out)->resources[i].registers = image->step[i].registers;
            (*out)->resources[i].spill_stores = image->step[i].spills;
        }
    return st;
}

fa_status fa_bundle_image_load(fa_context *ctx, const fa_blob *b, const fa_blob_image *image, const fa_source *s, const char *from,
                               const fa_kernel **out)
{
    fa_key key;
    fa_kernel *k = NULL;
    *out = NULL;
    fa_status st = fa_bundle_image_check(b, image, &key);
    if (st != FA_OK)
        return st;
    *out = fa_kernels_find(ctx->kernels, key, s->steps, s->step);
    if (*out)
        return FA_OK;
    st = load(ctx, image, s, key, &k);
    if (st != FA_OK)
        return fa_wrap(st, "bundle %.60s: image %d", b->name, (int)(image - b->image));
    snprintf(k->from, sizeof k->from, "%s", from);
    fa_log_say(&ctx->log, FA_LOG_INFO, "kernel %s for %s from the bundle %s", s->name, image->arch, b->name);
    *out = fa_kernels_keep(ctx->kernels, &ctx->device, k);
    return FA_OK;
}
