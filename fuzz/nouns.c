/* nouns: the texts of a problem, a config and a key, as they come from the command line, records and bundles. What is accepted is
 * printed and read again, to the same value. */
#include "cache/entry.h"
#include "fuzz.h"
#include "gen/arch.h"
#include "gen/bucket.h"
#include "gen/config.h"
#include "gen/problem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *s = fuzz_copy(data, size, 1), text[1024];
    fa_problem p, q;
    fa_config c, d;
    fa_key k, l;
    if (fa_problem_parse(&p, s) == FA_OK) {
        int n = fa_problem_print(text, sizeof text, &p);
        FUZZ_CHECK(n > 0 && n < (int)sizeof text && fa_problem_parse(&q, text) == FA_OK && !memcmp(&p, &q, sizeof p));
        fa_problem_bucket(&p);
        fa_problem_fill_shape(&p);
        FUZZ_CHECK(p.sq > 0 && p.sk > 0 && p.b > 0 && p.hq > 0 && p.hkv > 0);
    }
    if (fa_config_parse(&c, s) == FA_OK) {
        int n = fa_config_print(text, sizeof text, &c);
        FUZZ_CHECK(n > 0 && n < (int)sizeof text && fa_config_parse(&d, text) == FA_OK && fa_config_equal(&c, &d));
    }
    if (size >= 32 && fa_key_parse(&k, s)) {
        fa_key_print(text, k);
        FUZZ_CHECK(!strcmp(text, s) && fa_key_parse(&l, text) && k.lo == l.lo && k.hi == l.hi);
    }
    fa_arch_find(s);
    free(s);
    return 0;
}
