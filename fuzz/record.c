/* record: one line of a file of records. What was read is written and read again, to the same text. */
#include "cache/record.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = fuzz_copy(data, size, 1);
    fa_record r, again;
    fa_text one = { 0 }, two = { 0 };
    if (fa_record_from_json(&r, line) && fa_record_to_json(&r, &one)) {
        FUZZ_CHECK(!strchr(fa_text_cstr(&one), '\n'));
        FUZZ_CHECK(fa_record_from_json(&again, fa_text_cstr(&one)));
        FUZZ_CHECK(fa_record_to_json(&again, &two));
        FUZZ_CHECK(!strcmp(fa_text_cstr(&one), fa_text_cstr(&two)));
        fa_records rs = { &r, 1 };
        const fa_record *best = fa_records_best(&rs, &again.problem);
        FUZZ_CHECK(!best || best == &r);
    }
    fa_text_free(&one);
    fa_text_free(&two);
    free(line);
    return 0;
}
