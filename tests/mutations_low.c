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

#define TILES "flash_fwd_mma:br=64,bc=32,warps=4,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=8,ctas=1"

/* clang-format off */
static const fa_ragged_how
    foreign = { .seed = 5, .forms = FA_FORM_SEQLENS_K | FA_FORM_PAGES, .k = FA_SPREAD_UNIFORM, .page_size = 8, .spare = 2, .wide = 1,
                .foreign = 1 },
    packed = { .seed = 6, .forms = FA_FORM_CU_K | FA_FORM_SEQLENS_K, .k = FA_SPREAD_UNIFORM, .gap = 5 },
    many = { .seed = 9, .forms = FA_FORM_SEQLENS_K, .k = FA_SPREAD_UNIFORM };
/* clang-format on */
const scene low_scenes[] = {
    { "heads", "bf16,d=64,mask=causal,kv=q8_0,b=2,hq=6,hkv=3", HALF ",head_warps=2", 2, 450, NONE, WITH(NULL) },
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
    { "columns", "bf16,d=64,mask=none,b=2,hq=4,hkv=2,kv=s8,k_scale=4,v_scale=4", HALF, 2, 100, NONE, WITH(NULL) },
    { "half_q8", "bf16,d=128,mask=causal,align=8,b=2,hq=4,hkv=2,kv=q8_0", HALF, 2, 100, NONE, PACKED },
    { "half_q4", "fp16,d=64,mask=none,align=4,b=2,hq=4,hkv=4,kv=q4_0", HALF, 2, 100, NONE, PACKED },
    { "q5", "fp16,d=64,mask=none,b=2,hq=2,hkv=1,kv=q5_0,v=q5_1", MMA(2, "sm_shares=1,combine=0"), 2, 100, NONE, WITH(NULL) },
    { "q5_1", "bf16,d=64,mask=none,b=2,hq=2,hkv=1,kv=q5_1,v=q5_0", MMA(2, "sm_shares=1,combine=0"), 2, 100, NONE, WITH(NULL) },
    { "table", "bf16,d=64,mask=none,b=2,hq=2,hkv=1,kv=iq4_nl,v=q4_1", MMA(2, "sm_shares=1,combine=0"), 2, 100, NONE, WITH(NULL) },
    { "shares", "bf16,d=128,mask=none,b=2,hq=2,hkv=1,kv=nvfp4", MMA(2, "sm_shares=1,combine=0"), 2, 100, NONE, WITH(NULL) },
    { "wide_pages", "bf16,d=64,mask=causal,features=lengths+pages,page=4,b=3,hq=4,hkv=2,kv=s8,k_scale=2,v_scale=2", TILES, 40, 90, NONE,
      WITH(&foreign) },
    { "wide_packed", "fp16,d=64,mask=none,features=lengths,b=3,hq=2,hkv=1,kv=q5_1,v=nvfp4", TILES, 40, 90, NONE, WITH(&packed) },
    { "wide_folded", "bf16,d=64,mask=none,b=2,hq=4,hkv=2,kv=e4m3,v=q5_0,k_scale=1", TILES, 40, 90, NONE, WITH(NULL) },
    { NULL, NULL, NULL, 0, 0, NONE, WITH(NULL) },
};

#define S "mma_softmax.cu"
#define P "low_products.cu"
#define Q "low_query.cu"
#define R "low_rows.cu"
#define F "decode_fragments.cu"
#define L "decode_loader.cu"
#define U "unpack.cu"
#define W "widen.cu"

const mutation low_mutations[] = {
    { "all heads of a block are its first", "decode_split.cu", "int side = (int)threadIdx.x / HEAD_THREADS", "int side = 0", 0, "heads" },
    { "the last heads left out", "decode_split.cu", "return (p.hkv + HEADS - 1) / HEADS;", "return p.hkv / HEADS;", 0, "heads" },
    { "a part of another head", "decode_merge.cu", "j + k > 0) * HEADS + lane)", "j + k > 0) * HEADS)", 0, "heads" },
    { "the groups of another head", "decode_merge.cu", "lane * GROUPS + g", "g", 0, "heads" },
    { "Q of another head", "decode_fragments.cu", " + (int)threadIdx.x / HEAD_THREADS * (Q_PAIRS * 512)", "", 0, "heads" },
    { "words of K go to the chunk beside theirs", P, "i % 2 == 0 and \"chunk\"", "i % 2 == 1 and \"chunk\"", 0, "folded" },
    { "eight keys and the next eight are exchanged", P, "i < 2 and \"n\"", "i >= 2 and \"n\"", 0, "folded" },
    { "V of keys 8 further on stands for the first", P, "lo[r], hi[r]);", "hi[r], lo[r]);", 0, "folded tokens" },
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
    { "O has the scale of the column beside", F, "v_columns[i * v_apart]", "v_columns[(i ^ 1) * v_apart]", 0, "columns" },
    { "Q has the scales of the first head", Q, "k_scales_of(p, sequence, tile.kv_head), p.k_scale_ss\"",
      "k_scales_of(p, sequence, 0), p.k_scale_ss\"", 0, "columns" },
    { "queries of O^T are exchanged", F, "make_float2(o[0][chunk][e] * of_o$(by(0)), o[0][chunk][e + 2] *",
      "make_float2(o[0][chunk][e ^ 1] * of_o$(by(0)), o[0][chunk][(e ^ 1) + 2] *", 0, "half half_tokens" },
    { "columns of O^T are a chunk's first", F, "v_element_at(chunk * 16 + g * 2", "v_element_at(chunk * 16", 0, "half_q8 half_q4" },
    { "Q is taken for rows without a shift", Q, "i / 4 % 4 * 4$(l.shifts_k and", "i / 4 % 4 * 4$(false and", 0, "half_q8 half_q4" },
    { "K has the first head's scale", Q, "k_scale_of(p, sequence, tile.kv_head)", "k_scale_of(p, sequence, 0)", 0, "half" },
    { "a block of K begins a word early", P, "place.scale_of(of.f, byte), of.n - 1)", "place.scale_of(of.f, byte + 4), of.n - 1)", 0,
      "shares" },
    { "both of two keys have the first one's scale", P, "load_blocks_of_v(next, v_tile, row + 1, at)",
      "load_blocks_of_v(next, v_tile, row, at)", 0, "q8 q4 q5 shares" },
    { "highest bits of K are those of the byte beside", P, "moved(sides.k, chunk, 8)", "moved(sides.k, chunk, 7)", 0, "q5 q5_1" },
    { "highest bits of V are those of the byte beside", P, "moved(sides.v, chunk, 0)", "moved(sides.v, chunk, 1)", 0, "q5 q5_1" },
    { "both of two keys have the first one's highest bits", P, "(__funnelshift_r(second, 0u, by)", "(__funnelshift_r(first, 0u, by)", 0,
      "q5 q5_1" },
    { "nothing is added to K", P, "h[i] = fma_f16x2(h[i], by, least);", "h[i] = mul_f16x2(h[i], by);", 0, "q5_1" },
    { "the lower bits of a block's highest ones stand for all", P, "| load_shared_u16($(address(\"bits + 2\"))) << 16", "", 0, "q5 q5_1" },
    { "scales of 16 elements are exchanged", P, "two[i / 2] >> i % 2 * 16", "two[i / 2] >> (i % 2 ^ 1) * 16", 0, "shares" },
    { "a share's upper halves are the next one's", P, "at % $(f.shared // 2) + code * $(f.shared // 2)",
      "at % $(f.shared // 2) + code * $(f.shared)", 0, "shares" },
    { "upper halves of bytes are the elements beside", P, "at + code * $(f.block // 2)", "at + code", 0, "q4 q5 table" },
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
    { "even and odd columns of V are exchanged", F, "make_float4(even[2 * h] * of_o$(by(0)), odd[2 * h] * of_o",
      "make_float4(odd[2 * h] * of_o$(by(0)), even[2 * h] * of_o", 0, "folded tokens" },
    { "scales of tokens are those of the run's first", L, "(long long)(first + row % RUN) * stride", "(long long)first * stride", 0,
      "token_pages" },
    { "scales are read of tokens that no query sees", L, "cp_async<4>(to + row * 4, scale, read)", "cp_async<4>(to + row * 4, scale, true)",
      0, "tokens token_packed" },
    { "scales of V are K's", L, "copy_scales(buffer + $(x:upper())_SCALES, $(x)_scales",
      "copy_scales(buffer + $(x:upper())_SCALES, k_scales", 0, "tokens" },
    { "bytes of two keys are not brought together", U, "word = __byte_perm(word, 0, 0x3120);", "", 0, "folded" },
    { "integers are one too large", U, "0xe480e480", "0xe47fe47f", 0, "tokens q8" },
    { "upper halves of bytes are half too large", U, "0xd400 + 16 * f.zero, 0xd400", "0xd400 + 15 * f.zero, 0xd400", 0, "q5" },
    { "highest bits of lower codes lie a bit too high", U, "* 0x40010 & 0x00100010", "* 0x80020 & 0x00200020", 0, "q5 q5_1" },
    { "highest bits of upper codes are those of the lower ones", U, "(high >> 16 + i & 5)", "(high >> i & 5)", 0, "q5 q5_1" },
    { "the lower numbers of a table stand for the upper ones", U, "codes >> 1 & 0x4444 | 0x3210", "0x3210", 0, "table" },
    { "signs of four-bit floats are lost", U, "(x << 12 & 0x80008000) | ", "", 0, "shares" },
    { "scales of e4m3 are half", U, "\"0x58005800\" or", "\"0x54005400\" or", 0, "shares" },
    { "widened: tokens of a page are the next ones", W, "token = key % p.page_size", "token = (key + 1) % p.page_size", 0, "wide_pages" },
    { "widened: pages are the first sequence's", W, "p.page_table[index * (long long)p.page_table_stride", "p.page_table[0", 0,
      "wide_pages" },
    { "widened: a head's rows go to another", W, "* p.hkv + head) *", "* p.hkv + p.hkv - 1 - head) *", 0, "wide_pages wide_folded" },
    { "widened: tokens have the first one's scale", W, "token * p.%s_scale_ss + head * p.%s_scale_sh]",
      "head * p.%s_scale_sh + 0 * p.%s_scale_ss]", 0, "wide_pages" },
    { "widened: packed sequences lie where the first does", W, "? before + first :", "? first :", 0, "wide_packed" },
    { "widened: packed sequences are read where the first lies", W, "token = before + key;", "token = key;", 0, "wide_packed" },
    { "widened: upper halves lie with the lower", W, "piece // 2 + byte", "byte", 0, "wide_packed wide_folded" },
    { "widened: halves of two lanes are exchanged", W, "first[i] = odd ? from_other : even_half;",
      "first[i] = odd ? even_half : from_other;", 0, "wide_pages wide_folded" },
    { "widened: nothing is added", W, "(own * %s + least)", "(own * %s)", 0, "wide_packed" },
    { "widened: highest bits are those of the first word", W, "\", high >> 4 * w\"", "\", high\"", 0, "wide_packed wide_folded" },
    { "widened: shares have the first one's scale", W, "(u32)block[$(f.scale_at) + in]", "(u32)block[$(f.scale_at)]", 0, "wide_packed" },
    { "widened: sequences have the first one's scale", W, "p.%s_scale[index * p.%s_scale_sb + head", "p.%s_scale[0 * p.%s_scale_sb + head",
      0, "wide_folded" },
    { "widened: keys lie a block's share off", W, "first_seen(sequence) + part * KEYS", "first_seen(sequence) + part * (KEYS + 1)", 0,
      "wide_folded" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};
