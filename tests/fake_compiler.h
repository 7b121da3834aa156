/* What the fake compiler and the tests share. Sources are named "key<number>". */
#ifndef FAKE_COMPILER_H
#define FAKE_COMPILER_H
#include <stdatomic.h>

#define FAKE_COMPILER_KEYS 64

struct fake_compiler {
    atomic_int compiles[FAKE_COMPILER_KEYS];
    atomic_int inside, most; /* compiling now; the most at once so far */
    atomic_int wait_for;     /* a compilation ends when so many have been inside at once */
    atomic_int die_once;     /* key + 1: the next process to compile it is killed while it does */
    int microseconds;        /* that a compilation takes at least */
};
#endif
