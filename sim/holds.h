/* holds: what the analyzer of scripts/tidy cannot see by itself, told to it; no code in a build. */
#ifndef SIM_HOLDS_H
#define SIM_HOLDS_H
#ifdef __clang_analyzer__
#define sim_holds(x)                 \
    do {                             \
        if (!(x))                    \
            __builtin_unreachable(); \
    } while (0)
#else
#define sim_holds(x) ((void)0)
#endif
#endif
