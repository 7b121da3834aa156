/* params: the one struct that every kernel takes, by value. The C struct here and the text that templates print come from
 * the same list, so host and device cannot disagree. 8-byte members first, so that no compiler pads differently. */
#ifndef FA_GEN_PARAMS_H
#define FA_GEN_PARAMS_H
#include <stdint.h>

/* X(type in C, type in CUDA, name, comment) */
#define FA_PARAMS(X)                                                                                                       \
    X(uint64_t, const void *, q, "[b, sq, hq, d]")                                                                         \
    X(uint64_t, const void *, k, "[b, sk, hkv, d]")                                                                        \
    X(uint64_t, const void *, v, "[b, sk, hkv, dv]")                                                                       \
    X(uint64_t, void *, o, "[b, sq, hq, dv]")                                                                              \
    X(uint64_t, float *, lse, "[b, hq, sq], or null")                                                                      \
    X(uint64_t, void *, workspace, "scratch in global memory, or null")                                                    \
    X(uint64_t, unsigned *, counter, "one word, 0 when the kernel starts and left 0; null unless the step asks for it")    \
    X(int64_t, long long, q_sb, "strides in elements: batch")                                                              \
    X(int64_t, long long, q_ss, "sequence")                                                                                \
    X(int64_t, long long, q_sh, "head")                                                                                    \
    X(int64_t, long long, k_sb, "")                                                                                        \
    X(int64_t, long long, k_ss, "")                                                                                        \
    X(int64_t, long long, k_sh, "")                                                                                        \
    X(int64_t, long long, v_sb, "")                                                                                        \
    X(int64_t, long long, v_ss, "")                                                                                        \
    X(int64_t, long long, v_sh, "")                                                                                        \
    X(int64_t, long long, o_sb, "")                                                                                        \
    X(int64_t, long long, o_ss, "")                                                                                        \
    X(int64_t, long long, o_sh, "")                                                                                        \
    X(float, float, scale, "multiplies Q K^T")                                                                             \
    X(float, float, scale_log2, "scale * log2(e)")                                                                         \
    X(int32_t, int, b, "batch")                                                                                            \
    X(int32_t, int, hq, "query heads")                                                                                     \
    X(int32_t, int, hkv, "key/value heads")                                                                                \
    X(int32_t, int, group, "hq / hkv")                                                                                     \
    X(int32_t, int, sq, "query length")                                                                                    \
    X(int32_t, int, sk, "key length")                                                                                      \
    X(int32_t, int, diag_lo, "key j is visible to query i when i + diag_lo <= j <= i + diag_hi;")                          \
    X(int32_t, int, diag_hi, "the host clamps both to [-sq, sk]")                                                          \
    X(int32_t, int, tiles, "row tiles of one head")                                                                        \
    X(int32_t, int, total, "tiles of all heads and batches")                                                               \
    X(int32_t, int, key_base, "the key at coordinate 0 of the tensor maps of K and V: the first that any row sees")        \
    X(int32_t, int, section, "heads that run side by side so that their K and V share the L2")

typedef struct fa_params {
#define X(c, cuda, name, comment) c name;
    FA_PARAMS(X)
#undef X
} fa_params;
#endif
