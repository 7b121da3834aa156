/* key: what decides a compiled kernel's bytes, in one hash. */
#include "root.h"
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* Folds one field in, its length with it: no two lists of fields give the same sequence of hashes. */
static void fold(XXH128_hash_t *acc, const void *bytes, size_t n)
{
    XXH128_hash_t h = XXH3_128bits(bytes, n);
    uint64_t both[5] = { acc->low64, acc->high64, h.low64, h.high64, n };
    *acc = XXH3_128bits(both, sizeof both);
}

fa_key fa_key_make(const uint64_t source_hash[2], const char *const *options, int n_options, const char *arch, const char *compiler)
{
    const uint64_t head[4] = { FA_FORMAT_VERSION, source_hash[0], source_hash[1], (uint64_t)n_options };
    XXH128_hash_t acc = { 0, 0 };
    fold(&acc, head, sizeof head);
    for (int i = 0; i < n_options; i++)
        fold(&acc, options[i], strlen(options[i]));
    fold(&acc, arch, strlen(arch));
    fold(&acc, compiler, strlen(compiler));
    return (fa_key){ acc.low64, acc.high64 };
}

void fa_key_print(char out[33], fa_key k)
{
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)k.hi, (unsigned long long)k.lo);
}

bool fa_key_parse(fa_key *out, const char *hex)
{
    uint64_t half[2] = { 0, 0 };
    for (int i = 0; i < 32; i++) {
        char c = hex[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return false;
        half[i / 16] = half[i / 16] << 4 | (uint64_t)digit;
    }
    if (hex[32])
        return false;
    *out = (fa_key){ half[1], half[0] };
    return true;
}
