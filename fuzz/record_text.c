/* record_text: a text of records, as it is, and as a body under a head that fits; what was read is plausible or refused, and is written and
 * read again. */
#include "cache/record_text.h"
#include "autotune/records/plausible.h"
#include "cache/entry.h"
#include "fuzz.h"
#include <xxhash.h>

static void read(const char *bytes, size_t size)
{
    static fa_gen *g;
    fa_records rs, again;
    fa_text one = { 0 }, two = { 0 };
    if (!g)
        FUZZ_CHECK(fa_gen_open(&g, NULL) == FA_OK);
    if (fa_record_text_read(&rs, bytes, size) != FA_OK) {
        FUZZ_CHECK(!rs.r && !rs.n);
        return;
    }
    for (size_t i = 0; i < rs.n; i++)
        if (fa_record_plausible(g, &rs.r[i], 0) == FA_OK)
            FUZZ_CHECK(rs.r[i].outcome == FA_RAN && rs.r[i].seconds > 0 && rs.r[i].chip[0]);
    FUZZ_CHECK(fa_record_text_write(&one, rs.r, rs.n) == FA_OK && fa_record_text_begins(one.s, one.n));
    FUZZ_CHECK(fa_record_text_read(&again, one.s, one.n) == FA_OK && again.n == rs.n);
    FUZZ_CHECK(fa_record_text_write(&two, again.r, again.n) == FA_OK && one.n == two.n && !memcmp(one.s, two.s, one.n));
    fa_records_free(&rs);
    fa_records_free(&again);
    fa_text_free(&one);
    fa_text_free(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = fuzz_copy(data, size, 1), hex[33];
    const char *body = memchr(bytes, '\n', size);
    fa_text whole = { 0 };
    read(bytes, size);
    body = body ? body + 1 : bytes;
    size_t n = size - (size_t)(body - bytes), lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += body[i] == '\n';
    XXH128_hash_t h = XXH3_128bits(body, n);
    fa_key_print(hex, (fa_key){ h.low64, h.high64 });
    fa_text_fmt(&whole, "fagen records %d %zu %s\n", FA_RECORDS_FORMAT, lines, hex);
    fa_text_add(&whole, body, n);
    read(whole.s, whole.n);
    fa_text_free(&whole);
    free(bytes);
    return 0;
}
