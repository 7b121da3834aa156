/* bundle_set: the bytes of a bundle of compiled kernels: what fa_bundle_open() and fa_create() look at. Whatever is accepted keeps to its
 * ranges, and every problem finds a row that runs it or none. */
#include "fuzz.h"
#include "gen/problem.h"
#include "runtime/bundle/columns.h"
#include "runtime/bundle/set.h"

static void judge(const fa_bundle_set *s)
{
    static cu_driver driver[2] = { { .takes_ptx = false }, { .takes_ptx = true } };
    for (size_t r = 0; r < s->n; r++)
        for (size_t a = 0; a < fa_arch_count(); a++)
            for (int k = 0; k < 4; k++) {
                fa_device d = { .driver = &driver[k & 1], .arch = *fa_arch_at(a) };
                fa_problem p = s->row[r].problem;
                fa_source source;
                p.sq = p.sk = 777;
                const fa_bundle_set_row *found = fa_bundle_set_find(s, &p, &d, 100000, k & 2 ? FA_BUNDLE_SET_ANY : FA_BUNDLE_SET_OWN);
                if (!found)
                    continue;
                FUZZ_CHECK(found->problem.d == p.d && found->problem.align <= p.align && (found->image->ptx || !d.driver->takes_ptx));
                fa_bundle_set_source(&source, found->image);
                FUZZ_CHECK(source.steps >= 1 && source.steps <= FA_SOURCE_STEPS && !source.text);
                for (int i = 0; i < source.steps; i++)
                    FUZZ_CHECK(source.step[i].threads >= 1 && source.step[i].threads <= 1024 && source.step[i].smem <= 100000 &&
                               source.step[i].cluster >= 1 && source.step[i].n_maps <= FA_STEP_MAPS && source.step[i].entry[0]);
            }
}

/* What is accepted as a file is accepted where it is linked, too. */
static void look(const char *bytes, size_t size)
{
    const fa_bundle *out, *list[] = { (const fa_bundle *)(const void *)bytes, NULL };
    fa_bundle_set bundle_set;
    if (fa_bundle_open(&out, bytes, size) == FA_OK)
        FUZZ_CHECK((const void *)out == bytes && fa_bundle_set_open(&bundle_set, list) == FA_OK);
    else
        FUZZ_CHECK(!out && (strstr(fa_last_error(), "accepted") || strstr(fa_last_error(), "config: ")) &&
                   fa_bundle_set_open(&bundle_set, NULL) == FA_OK);
    judge(&bundle_set);
    fa_bundle_set_close(&bundle_set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = fuzz_copy(data, size, 0);
    fa_blob b;
    look(copy, size);
    /* once more with what belongs to the rest: magic, format, size and checksums, and then those of the images */
    if (size >= FA_BLOB_HEAD) {
        memcpy(copy, FA_BUNDLE_MAGIC, 8);
        fa_put_number((unsigned char *)copy + 8, 4, FA_BUNDLE_FORMAT);
        fa_put_number((unsigned char *)copy + SIZE_AT, 8, size);
    }
    if (fa_blob_sign((unsigned char *)copy, size)) {
        bool whole = fa_blob_read(&b, copy, size) == FA_OK;
        for (uint32_t i = 0; whole && i < b.images; i++) {
            char check[33];
            fa_key_print(check, fa_blob_image_check(&b.image[i]));
            memcpy(copy + (b.image[i].check - copy), check, 32);
        }
        fa_blob_sign((unsigned char *)copy, size);
        fa_blob_free(&b);
        look(copy, size);
    }
    free(copy);
    return 0;
}
