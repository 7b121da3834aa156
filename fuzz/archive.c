/* archive: kernels and records from another store. The first byte says what is put right, since no mutation would hit it: 1 the size and
 * the checksum of the whole, 2 those of the entries, 4 the keys of the entries. */
#include "cache/archive.h"
#include "cache/archive_head.h"
#include "cache/metadata.h"
#include "fuzz.h"
#include <xxhash.h>

enum { ENTRY_HEAD = 72, SUM = sizeof(XXH128_canonical_t) };

static void put_sum(char *s, size_t n)
{
    XXH128_canonical_t sum;
    XXH128_canonicalFromHash(&sum, XXH3_128bits(s, n - SUM));
    memcpy(s + n - SUM, &sum, SUM);
}

/* The key that its description gives, in the entry's head and before the entry. */
static void put_key(char *hex, char *s, size_t n)
{
    uint64_t about;
    fa_metadata a;
    memcpy(&about, s + 48, sizeof about);
    if (about > n - ENTRY_HEAD - SUM || !fa_metadata_parse(&a, s + ENTRY_HEAD, (size_t)about))
        return;
    char text[33];
    fa_key k = fa_metadata_key(&a);
    memcpy(s + 16, &k.lo, 8);
    memcpy(s + 24, &k.hi, 8);
    fa_key_print(text, k);
    memcpy(hex, text, 32);
}

static void put_right(char *s, size_t n, int what)
{
    archive_head h;
    if (n < sizeof h + SUM)
        return;
    memcpy(&h, s, sizeof h);
    char *p = s + sizeof h, *end = s + n - SUM;
    for (uint32_t i = 0; i < h.entries && end - p >= 40; i++) {
        uint64_t size;
        memcpy(&size, p + 32, sizeof size);
        if (size > (size_t)(end - p) - 40)
            break;
        if ((what & 4) && size >= ENTRY_HEAD + SUM)
            put_key(p, p + 40, (size_t)size);
        if ((what & 2) && size >= SUM)
            put_sum(p + 40, (size_t)size);
        p += 40 + size;
    }
    if (what & 1) {
        h.size = n;
        memcpy(s, &h, sizeof h);
        put_sum(s, n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    char *s = fuzz_copy(data + 1, size - 1, 0), why[200] = "";
    fa_archive p;
    put_right(s, size - 1, data[0]);
    if (fa_archive_unpack(&p, s, size - 1, why, sizeof why)) {
        FUZZ_CHECK(!why[0]);
        for (size_t i = 0; i < p.n; i++) {
            FUZZ_CHECK(p.entry[i].bytes >= s && p.entry[i].size < size && p.entry[i].bytes + p.entry[i].size <= s + size - 1);
            FUZZ_CHECK(!i || p.entry[i].key.hi > p.entry[i - 1].key.hi ||
                       (p.entry[i].key.hi == p.entry[i - 1].key.hi && p.entry[i].key.lo > p.entry[i - 1].key.lo));
        }
        for (size_t i = 0; i < p.n_lines; i++)
            FUZZ_CHECK(p.line[i].bytes >= s && p.line[i].bytes + p.line[i].size <= s + size - 1 &&
                       !memchr(p.line[i].bytes, '\n', p.line[i].size));
    } else
        FUZZ_CHECK(why[0]);
    fa_archive_free(&p);
    free(s);
    return 0;
}
