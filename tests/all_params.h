/* all_params: the parameters of a kernel whose family lists none, as the forward operation has them: what the fake driver is handed. */
#ifndef FA_TEST_ALL_PARAMS_H
#define FA_TEST_ALL_PARAMS_H
#include <stdint.h>

/* clang-format off */
#define ALL_PARAMS(X)                                                                                                                  \
    X(uint64_t, q) X(uint64_t, k) X(uint64_t, v) X(uint64_t, o) X(uint64_t, lse) X(uint64_t, workspace) X(uint64_t, counter)           \
    X(int64_t, q_sb) X(int64_t, q_ss) X(int64_t, q_sh) X(int64_t, k_sb) X(int64_t, k_ss) X(int64_t, k_sh)                              \
    X(int64_t, v_sb) X(int64_t, v_ss) X(int64_t, v_sh) X(int64_t, o_sb) X(int64_t, o_ss) X(int64_t, o_sh)                              \
    X(float, scale) X(float, scale_log2) X(int32_t, b) X(int32_t, hq) X(int32_t, hkv) X(int32_t, group) X(int32_t, sq) X(int32_t, sk)  \
    X(int32_t, diag_lo) X(int32_t, diag_hi) X(int32_t, tiles) X(int32_t, total) X(int32_t, key_base) X(int32_t, section)
/* clang-format on */

typedef struct all_params {
#define X(type, name) type name;
    ALL_PARAMS(X)
#undef X
} all_params;
#endif
