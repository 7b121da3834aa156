/* claim: what a node FLASH_ATTN_EXT asks for, in fagen's terms, or why it is left to ggml. Reads shapes, strides and parameters alone,
 * takes no time, compiles nothing. Whether a kernel computes the class is asked of the library afterwards (engine.h).
 *
 *     s = scale q k    s = cap tanh(s / cap) where cap is not 0    s = s + slope_h mask    O = softmax(s, a sink) V, written [b, sq, hq,
 * dv]
 *
 * Of the mask -inf hides, and nothing else does. Head h reads mask h % m2, sequence i mask i % m3. */
#ifndef FA_GGML_CLAIM_H
#define FA_GGML_CLAIM_H
#include "layout.h"
#include <fagen.h>

enum { FA_GGML_IN_PLACE = 16 }; /* rows, queries times heads of a KV head, whose Q kernels read in fp32 beside blocks */

/* How Q, K and V are multiplied. */
typedef struct fa_ggml_claim {
    int32_t dtype, kv_dtype, v_dtype; /* as in fa_args */
    bool casts;                       /* Q is rounded to dtype, times the scale, before the launch: else it is read in place, in fp32 */
    bool v_in_k;                      /* V is the first dv columns of K, of more than 256 in 16 bits: one read serves both */
    int32_t d, dv, hq, hkv, b, sq, sk;
    int32_t keys_left; /* of each row by the mask, at most, as the node hints; 0: it does not */
    float scale, max_bias, cap;
    fa_tensor q, k, v, o;     /* strides in elements, of blocks in blocks; q of fp32 */
    bool has_mask, has_sinks; /* which have no address yet where a program asks what is supported */
    const void *mask;         /* fp16 */
    int32_t m2, m3;           /* heads and sequences that it has */
    int64_t mask_sb, mask_sh, mask_ss;
    const float *sinks; /* [hq] */
} fa_ggml_claim;

/* true: *c is filled. false: `why` tells field, value and what is accepted. */
bool fa_ggml_claim_node(const fa_ggml *g, const fa_ggml_tensor *node, fa_ggml_claim *c, char *why, size_t n);

/* The slope of head h. */
float fa_ggml_slope(float max_bias, int32_t hq, int32_t h);

/* What of the tensor a claim's type of K or V is called there, for messages and tables; row i of all that are known: NULL past the last. */
typedef struct fa_ggml_format {
    const char *name; /* ggml's */
    int32_t dtype;    /* fa_dtype that it is read as */
    int32_t product;  /* fa_dtype of the products with it */
} fa_ggml_format;
const fa_ggml_format *fa_ggml_format_row(size_t i);
#endif
