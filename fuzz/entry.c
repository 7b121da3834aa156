/* entry: the file of a compiled kernel. The first byte says whether the checksum is put right, since no mutation would hit it. */
#include "cache/entry.h"
#include "fuzz.h"
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    char *s = fuzz_copy(data + 1, size - 1, 0);
    size_t n = size - 1;
    if ((data[0] & 1) && n >= sizeof(XXH128_canonical_t)) {
        XXH128_canonical_t sum;
        XXH128_canonicalFromHash(&sum, XXH3_128bits(s, n - sizeof sum));
        memcpy(s + n - sizeof sum, &sum, sizeof sum);
    }
    for (int with_image = 0; with_image < 2; with_image++) {
        fa_entry e;
        const char *wrong = fa_entry_unpack(&e, s, n, with_image);
        if (!wrong) {
            FUZZ_CHECK(e.metadata_size + e.image_size + e.log_size < n && e.metadata && e.log);
            FUZZ_CHECK(!e.metadata[e.metadata_size] && !e.log[e.log_size] && strlen(e.arch) < sizeof e.arch);
            FUZZ_CHECK(!with_image == !e.image && (!e.image || !e.image[e.image_size]));
        }
        fa_entry_free(&e);
    }
    free(s);
    return 0;
}
