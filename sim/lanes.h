/* lanes: the 32 lanes of a warp side by side. A register is one vec: 128 bytes, or 256 when it is 64 bits wide. */
#ifndef SIM_LANES_H
#define SIM_LANES_H
#include <stdint.h>

enum { SIM_LANES = 32 };
#define SIM_ALL 0xFFFFFFFFu

typedef union __attribute__((may_alias)) sim_vec {
    uint32_t u[SIM_LANES];
    int32_t s[SIM_LANES];
    float f[SIM_LANES];
    uint64_t q[SIM_LANES];
    int64_t sq[SIM_LANES];
    double d[SIM_LANES];
} sim_vec;

/* FOR_LANES(l, m): l runs over the set bits of m. */
#define FOR_LANES(l, m) for (uint32_t l##_rest = (m), l; l##_rest && ((l = (uint32_t)__builtin_ctz(l##_rest)), 1); l##_rest &= l##_rest - 1)

/* SIM_FAST: compiled a second time for AVX2 and FMA, chosen at load. Off where ifuncs and sanitizers do not mix. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SIM_FAST __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define SIM_FAST
#endif

static inline float sim_f32(uint32_t u)
{
    union {
        uint32_t u;
        float f;
    } x = { .u = u };
    return x.f;
}
static inline uint32_t sim_bits(float f)
{
    union {
        float f;
        uint32_t u;
    } x = { .f = f };
    return x.u;
}
/* Subnormals become zero of the same sign. */
static inline float sim_ftz(float f)
{
    uint32_t u = sim_bits(f);
    return sim_f32((u & 0x7F800000u) ? u : u & 0x80000000u);
}
#endif
