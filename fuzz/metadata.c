/* metadata: what an entry says of itself. What is whole is written and read again, to the same key. */
#include "cache/metadata.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *s = fuzz_copy(data, size, 0), words[200];
    static fa_metadata a, b;
    const char *field;
    fa_text text = { 0 };
    if (fa_metadata_parse(&a, s, size)) {
        FUZZ_CHECK(a.n_options >= 0 && a.n_options <= FA_METADATA_OPTIONS);
        fa_key k = fa_metadata_key(&a);
        FUZZ_CHECK(fa_metadata_print(&a, &text) || !a.whole);
        if (a.whole) {
            FUZZ_CHECK(fa_metadata_parse(&b, fa_text_cstr(&text), text.n) && b.whole);
            fa_key l = fa_metadata_key(&b);
            FUZZ_CHECK(k.lo == l.lo && k.hi == l.hi && fa_metadata_differ(&a, &b, &field, words, sizeof words) == 0 && !*field);
        }
    }
    fa_text_free(&text);
    free(s);
    return 0;
}
