/* score: a program of a bundle becomes an object of a context: its text is read again. */
#include "blob.h"
#include "gen/error.h"
#include <string.h>

/* The i-th text that rows name, each once; NULL: there is none, and *n are how many there are. */
static const char *text_at(const fa_blob *b, int32_t i, int32_t *n)
{
    *n = 0;
    for (uint32_t r = 0; r < b->rows; r++) {
        const char *text = b->row[r].score;
        bool met = !text[0];
        for (uint32_t k = 0; k < r && !met; k++)
            met = !strcmp(b->row[k].score, text);
        if (!met && (*n)++ == i)
            return text;
    }
    return NULL;
}

fa_status fa_score_of_bundle(fa_context *ctx, const fa_bundle *bundle, int32_t i, fa_score **out)
{
    fa_blob b;
    fa_message before;
    const void *bytes;
    size_t size;
    int32_t n;
    if (!out)
        return fa_fail(FA_INVALID, "out: NULL; accepted: the address of a fa_score pointer");
    *out = NULL;
    if (!bundle)
        return fa_fail(FA_INVALID, "bundle: NULL; accepted: a fa_bundle, linked or of fa_bundle_open()");
    fa_message_keep(&before);
    fa_bundle_bytes(bundle, &bytes, &size);
    fa_status st = fa_wrap(fa_blob_read(&b, bytes, size), "bundle");
    const char *text = st == FA_OK ? text_at(&b, i, &n) : NULL;
    if (st == FA_OK && !text)
        st = n ? fa_fail(FA_INVALID, "i: %d; accepted: from 0, below %d, the score programs of the bundle %.60s", i, n, b.name)
               : fa_fail(FA_INVALID, "i: %d; accepted: none, as the bundle %.60s has no score program", i, b.name);
    if (st == FA_OK)
        st = fa_score_create(ctx, text, out);
    fa_blob_free(&b);
    return fa_message_settle(&before, st);
}
