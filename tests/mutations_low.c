/* mutations_low: faults of what reads K and V of few bits, a list of the suite mutation_decode: its scenes run as those of
 * mutations_decode.c do. */
#include "mutations.h"
#include "verify/cases/case.h"
#include <stddef.h>

#define NONE -1, -1, 0, 0
#define WITH(ragged) FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, ragged, 0
#define PACKED FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PACKED, 0, NULL, 0
#define HALF "decode_mma:br=8,bk=16,key_warps=2,ctas=1,min_turns=1,row_warps=1,stages=3,kv_lanes=1,sm_shares=1,combine=0"
#define MMA(keys, rest) "decode_mma:br=16,bk=16,key_warps=" #keys ",ctas=1,min_turns=1,row_warps=1,stages=3,kv_lanes=1," rest

/* clang-format off */
static const fa_ragged_how
    foreign = { .seed = 5, .forms = FA_FORM_SEQLENS_K | FA_FORM_PAGES, .k = FA_SPREAD_UNIFORM, .page_size = 8, .spare = 2, .wide = 1,
                .foreign = 1 },
    packed = { .seed = 6, .forms = FA_FORM_CU_K | FA_FORM_SEQLENS_K, .k = FA_SPREAD_UNIFORM, .gap = 5 },
    many = { .seed = 9, .forms = FA_FORM_SEQLENS_K, .k = FA_SPREAD_UNIFORM };
/* clang-format on */
const scene low_scenes[] = {
    { "folded", "bf16,d=128,mask=causal,b=2,hq=16,hkv=2,kv=e4m3,k_scale=1,v_scale=1", MMA(2, "sm_shares=1,combine=0"), 2, 150, NONE,
      WITH(NULL) },
    { "tokens", "bf16,d=64,mask=none,features=lengths,b=3,hq=4,hkv=2,kv=s8,k_scale=2,v_scale=2", MMA(2, "sm_shares=1,combine=0"), 2, 150,
      NONE, WITH(&many) },
    { "token_pages", "fp16,d=64,mask=none,features=lengths+pages,page=4,b=3,hq=2,hkv=1,kv=s8,k_scale=2,v_scale=2",
      MMA(2, "sm_shares=1,combine=0"), 1, 120, NONE, WITH(&foreign) },
    { "token_packed", "bf16,d=64,mask=none,features=lengths,b=3,hq=2,hkv=1,kv=s8,k_scale=2,v_scale=2", MMA(2, "sm_shares=1,combine=1"), 1,
      120, NONE, WITH(&packed) },
    { "q8", "bf16,d=128,mask=causal,b=2,hq=4,hkv=2,kv=q8_0", MMA(2, "sm_shares=1,combine=0"), 2, 100, NONE, WITH(NULL) },
    { "q4", "fp16,d=64,mask=none,b=2,hq=2,hkv=1,kv=q4_0", MMA(2, "sm_shares=1,combine=0"), 2, 100, NONE, WITH(NULL) },
    { "half", "bf16,d=128,mask=causal,b=2,hq=8,hkv=2,kv=e4m3,k_scale=1,v_scale=1", HALF, 2, 150, NONE, WITH(NULL) },
    { "half_tokens", "bf16,d=64,mask=none,features=lengths,b=3,hq=4,hkv=2,kv=s8,k_scale=2,v_scale=2", HALF, 2, 150, NONE, WITH(&many) },
    { "half_q8", "bf16,d=128,mask=causal,align=8,b=2,hq=4,hkv=2,kv=q8_0", HALF, 2, 100, NONE, PACKED },
    { "half_q4", "fp16,d=64,mask=none,align=4,b=2,hq=4,hkv=4,kv=q4_0", HALF, 2, 100, NONE, PACKED },
    { NULL, NULL, NULL, 0, 0, NONE, WITH(NULL) },
};

#define S "mma_softmax.cu"
#define P "low_products.cu"
#define Q "low_query.cu"
#define R "low_rows.cu"
#define F "decode_fragments.cu"
#define L "decode_loader.cu"
#define U "unpack.cu"

const mutation low_mutations[] = {
    { "words of K go to the chunk beside theirs", P, "i % 2 == 0 and \"chunk\"", "i % 2 == 1 and \"chunk\"", 0, "folded" },
    { "eight keys and the next eight are exchanged", P, "i < 2 and \"n\"", "i >= 2 and \"n\"", 0, "folded" },
    { "V of keys 8 further on stands for the first", P, "lo[r], hi[r]);", "hi[r], lo[r]);", 0, "folded tokens" },
    { "both of two keys have the first one's scale", P, "load_shared_u16(from + CHUNKS_V * 16 + byte)", "load_shared_u16(from + byte)", 0,
      "q8 q4" },
    { "the scales of the next eight keys are those of the first", P, "load_scales(scale[1], k_tile, n * 8 + 8 + at.g, at)",
      "load_scales(scale[1], k_tile, n * 8 + at.g, at)", 0, "q8 q4" },
    { "words of a shifted row are of the block before", P, "(first + mask) * of.f.block_bytes", "(first + mask) * of.f.block_bytes + 4", 0,
      "half_q8 half_q4" },
    { "even and odd rows of V^T are exchanged", P, "{lo[r], lo[r + 1], hi[r], hi[r + 1]}", "{lo[r + 1], lo[r], hi[r + 1], hi[r]}", 0,
      "half" },
    { "keys of P^T are exchanged", P, "b[n / 2][n % 2] =", "b[n / 2][(n + 1) % 2] =", 0, "half half_tokens" },
    { "odd queries are multiplied as even ones are", S, "keep, threadIdx.x % 4 * 8 + 4)", "keep, threadIdx.x % 4 * 8)", 0,
      "half half_tokens" },
    { "O of even queries stays where a maximum moves", S, "o[m][v][0] *= even;", "", 0, "half half_tokens" },
    { "queries of O^T are exchanged", F, "make_float2(o[0][chunk][e] * of_o, o[0][chunk][e + 2] * of_o)",
      "make_float2(o[0][chunk][e ^ 1] * of_o, o[0][chunk][(e ^ 1) + 2] * of_o)", 0, "half half_tokens" },
    { "columns of O^T are a chunk's first", F, "v_element_at(chunk * 16 + g * 2", "v_element_at(chunk * 16", 0, "half_q8 half_q4" },
    { "Q is taken for rows without a shift", Q, "i / 4 % 4 * 4$(l.shifts_k and", "i / 4 % 4 * 4$(false and", 0, "half_q8 half_q4" },
    { "upper halves of bytes are the elements beside", P, "code * $(f.block // 2)", "code", 0, "q4" },
    { "K has the first head's scale", Q, "k_scale_of(p, sequence, tile.kv_head)", "k_scale_of(p, sequence, 0)", 0, "half" },
    { "what narrowing divides by is multiplied back by half", Q, "exponent - 14 << 23", "exponent - 15 << 23", 0, "folded tokens" },
    { "lanes of a row narrow it apart", Q, "top = max(top, __shfl_xor_sync(~0u, top, 2));", "", 0, "folded tokens" },
    { "Q lies in the order of 16-bit K", Q, "query_pair(from, %s + 2 * %s, real)", "query_pair(from, %s + 2 * (%s ^ 1), real)", 0,
      "folded tokens" },
    { "V has the first sequence's scale", R, "p.v_scale[$(batch) * p.v_scale_sb + kv_head", "p.v_scale[kv_head", 0, "folded" },
    { "scales of packed tokens begin with the first sequence's", R, " + sequence.first_k * p.k_scale_ss", "", 0, "token_packed" },
    { "rows of a warp have the first one's factor", F, "s[m][n][i] *= factor[m][i / 2];", "s[m][n][i] *= factor[m][0];", 0,
      "folded tokens" },
    { "two tokens of K have the first one's scale", F, "s[m][n][i] *= i % 2 ? scale.y : scale.x;", "s[m][n][i] *= scale.x;", 0, "tokens" },
    { "two tokens of V have the first one's scale", F, "(i % 2 ? scale[n].y : scale[n].x) * by;", "scale[n].x * by;", 0, "tokens" },
    { "O stays when the largest scale grows", F, "o[m][v][i] *= keep;", "(void)keep;", 0, "tokens" },
    { "O is left relative to the largest scale", F, "and \" * v_top\" or", "and \"\" or", 0, "tokens token_pages" },
    { "even and odd columns of V are exchanged", F, "make_float4(even[2 * h] * of_o, odd[2 * h] * of_o",
      "make_float4(odd[2 * h] * of_o, even[2 * h] * of_o", 0, "folded tokens" },
    { "scales of tokens are those of the run's first", L, "(long long)(first + row % RUN) * stride", "(long long)first * stride", 0,
      "token_pages" },
    { "scales are read of tokens that no query sees", L, "cp_async<4>(to + row * 4, scale, read)", "cp_async<4>(to + row * 4, scale, true)",
      0, "tokens token_packed" },
    { "scales of V are K's", L, "copy_scales(buffer + $(x:upper())_SCALES, $(x)_scales",
      "copy_scales(buffer + $(x:upper())_SCALES, k_scales", 0, "tokens" },
    { "bytes of two keys are not brought together", U, "word = __byte_perm(word, 0, 0x3120);", "", 0, "folded" },
    { "integers are one too large", U, "0xe480e480", "0xe47fe47f", 0, "tokens q8" },
    { "upper halves of bytes are half too large", U, "0xd400 + 16 * f.zero, 0xd400", "0xd400 + 15 * f.zero, 0xd400", 0, "q4" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};
