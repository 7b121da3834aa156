/* A call that is right, for tests that change one thing of it. */
#ifndef FA_TESTS_GOOD_ARGS_H
#define FA_TESTS_GOOD_ARGS_H
#include "runtime/fagen.h"
#include <stdint.h>

#define AT(n) ((void *)(uintptr_t)(0x100000000u * (uint64_t)(n)))

__attribute__((unused)) static fa_args good(void)
{
    fa_args a = FA_ARGS_INIT;
    a.dtype = FA_BF16;
    a.d = 64;
    a.b = 2;
    a.hq = 8;
    a.hkv = 4;
    a.sq = 128;
    a.sk = 256;
    a.q.ptr = AT(1);
    a.k.ptr = AT(2);
    a.v.ptr = AT(3);
    a.o.ptr = AT(4);
    a.lse = AT(5);
    return a;
}
#endif
