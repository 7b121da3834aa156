/* mutations_int8: faults of what products of 8-bit integers have of their own: sums that become floats, scales of rows and of tokens. */
#include "mutations.h"
#include "verify/cases/case.h"
#include <stddef.h>

#define NONE -1, -1, 0, 0
#define WITH(ragged) FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, ragged, 0
#define MMA(rows, warps, keys, pack, rest) "int8_mma:br=" #rows ",bc=" #keys ",warps=" #warps ",q_regs=0,pack=" #pack ",lag=8,ctas=1," rest
#define TWO "stages_k=2,stages_v=2,order=2"
#define ONE "stages_k=1,stages_v=1,order=0"
#define WGMMA(rows, keys, rest)                                                                                                       \
    "fp8_wgmma:br=" #rows ",ctas=1,feeder=56,bc=" #keys ",sums=1,box=64,stages_k=2,stages_v=2,stages_t=1,q_bufs=1,grid=2,sections=1," \
    "cluster=1,rescale=0," rest

static const fa_ragged_how packed = { .seed = 6, .forms = FA_FORM_CU_Q | FA_FORM_CU_K, .k = FA_SPREAD_UNIFORM }, pages = {
    .seed = 7, .forms = FA_FORM_SEQLENS_K | FA_FORM_PAGES, .k = FA_SPREAD_FULL, .page_size = 16, .spare = 2
};

static const scene mma_scenes[] = {
    { "tokens", "s8,d=64,mask=causal,v=bf16,q_scale=2,k_scale=2,b=2,hq=2,hkv=2", MMA(64, 4, 32, 0, TWO), 70, 200, NONE, WITH(NULL) },
    { "heads", "s8,d=80,dv=48,mask=none,v=fp16,q_scale=1,k_scale=1,v_scale=1,b=2,hq=2,hkv=2", MMA(64, 4, 64, 0, ONE), 70, 130, NONE,
      WITH(NULL) },
    { "group", "s8,d=64,mask=none,v=fp16,q_scale=1,b=1,hq=4,hkv=1", MMA(64, 4, 64, 1, TWO), 12, 130, NONE, WITH(NULL) },
    { "packed", "s8,d=64,mask=none,features=lengths,v=bf16,q_scale=2,k_scale=2,b=3,hq=2,hkv=1", MMA(64, 4, 32, 0, TWO), 60, 150, NONE,
      WITH(&packed) },
    { "pages", "s8,d=32,mask=none,features=lengths+pages,page=16,v=bf16,k_scale=2,b=2,hq=2,hkv=1", MMA(16, 1, 32, 0, ONE), 20, 150, NONE,
      WITH(&pages) },
    { "bytes", "s8,d=33,dv=17,mask=none,v=bf16,b=1,hq=2,hkv=1", MMA(16, 1, 32, 0, ONE), 20, 70, NONE, WITH(NULL) },
    { NULL, NULL, NULL, 0, 0, NONE, WITH(NULL) },
};

static const scene wgmma_scenes[] = {
    { "tokens", "s8,d=64,mask=causal,v=bf16,q_scale=2,k_scale=2,b=2,hq=2,hkv=2", WGMMA(128, 64, "schedule=1,overlap=0"), 150, 300, NONE,
      WITH(NULL) },
    { "beside", "s8,d=64,mask=none,v=fp16,q_scale=1,k_scale=2,b=2,hq=2,hkv=1", WGMMA(64, 64, "schedule=0,overlap=1"), 60, 250, NONE,
      WITH(NULL) },
    { NULL, NULL, NULL, 0, 0, NONE, WITH(NULL) },
};

#define I "integer_products.cu"
#define F "flash_fwd_mma.cu"
#define S "eight_scales.cu"
#define C "eight_consumer.cu"
#define P "eight_producer.cu"

static const mutation mma_mutations[] = {
    { "sums are one more", I, "- __int_as_float(BIAS))", "- 12582911.f)", 0, "heads" },
    { "odd keys have the scale of even ones", I, "(i % 2 ? odd : even)", "even", 0, "tokens packed" },
    { "eight keys have K of the eight before", "products.cu", "$(sum)[m][n + 1], $(a), b[2], b[3]);",
      "$(sum)[m][n + 1], $(a), b[0], b[1]);", 0, "tokens heads" },
    { "the last columns are of the eight keys before", "products.cu", "$(a)[1], b1);", "$(a)[1], b0);", 0, "heads" },
    { "P is of the pair's other key first", I, "\"=r\"(r) : \"f\"(y), \"f\"(x)", "\"=r\"(r) : \"f\"(x), \"f\"(y)", 0, "tokens" },
    { "scales of keys are those of the first buffer", F, "\", scales_at + stage_k * BC * 4\"", "\", scales_at\"", 0, "tokens" },
    { "scales of keys are those of the block's first", F, "key_scales + (key + i) * p.k_scale_ss", "key_scales + key * p.k_scale_ss", 0,
      "tokens packed" },
    { "scales of keys are of the first page", F, "key_scales + page * p.k_scale_sb", "key_scales", 0, "pages" },
    { "scales of a page are those of its first token", F, "(token + i % RUN) * p.k_scale_ss", "token * p.k_scale_ss", 0, "pages" },
    { "exponents have no scale of the row", F, "unit_log2[m][h] = scaled[m][h] * $(unit);", "unit_log2[m][h] = $(unit);", 0,
      "tokens group" },
    { "exponents have no scale of the head", F, "unit_log2 = scaled * $(unit);", "unit_log2 = $(unit);", 0, "heads" },
    { "LSE has no scale of the row", F, "state[m][h].m *= scaled", "state[m][h].m += 0 * scaled", 0, "tokens heads" },
    { "all rows have the first one's scale", F, "(int)of.head, (int)of.query", "(int)of.head, 0", 0, "tokens packed" },
    { "rows of a group have the scale of its first head", F, "(int)of.head, (int)of.query", "where.head, (int)of.query", 0, "group" },
    { "O has no scale of V", F, "o[m][n][i] *= v_scale;", ";", 0, "heads" },
    { "rows have the scales of the batch's first sequence", S, "(sequence.first_q + query)", "query", 0, "packed" },
    { "keys have the scales of the batch's first sequence", S, "sequence.first_k * p.k_scale_ss + ", "", 0, "packed" },
    { "keys have the scales of the first head", S, "sequence.batch * p.k_scale_sb + kv_head * p.k_scale_sh",
      "sequence.batch * p.k_scale_sb", 0, "tokens" },
    { "the scales of Q and K are added", S, "table.concat(of, \" * \")", "table.concat(of, \" + \")", 0, "heads" },
    { "bytes of a row come in the other order", "tile.cu", "(u32)bytes[j] << 8 * j", "(u32)bytes[j] << 8 * (3 - j)", 0, "bytes" },
    { "bytes past a row are read", "tile.cu", "inside && byte + j < ROW_BYTES", "inside && byte < ROW_BYTES", 0, "bytes" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};

static const mutation wgmma_mutations[] = {
    { "odd keys have the scale of even ones", C, "(i % 2 ? odd : even)", "even", 0, "tokens beside" },
    { "scales of keys are those of the first buffer", C, "smem + SMEM_SCALES + k.at * BC * 4, t", "smem + SMEM_SCALES, t", 0, "tokens" },
    { "rows have the scale of the eighth row before", C, "warp_row + g + 8 * h;\n      scaled", "warp_row + g;\n      scaled", 0,
      "tokens" },
    { "exponents have no scale of the row", C, "unit_log2[h] = scaled[h] * $(unit);", "unit_log2[h] = $(unit);", 0, "tokens" },
    { "P is relative to the other row", C, "$(l.row_scaled and \"[1]\" or \"\")", "$(l.row_scaled and \"[0]\" or \"\")", 0, "tokens" },
    { "sums are read before they are there", C, "wgmma_wait<1>($(raw));", "", 0, "beside" },
    { "a block's keys have the scales of the last block", P, "block * BC + i * 32 + lane", "keys.loaded_hi * BC + i * 32 + lane", 0,
      "tokens beside" },
    { "scales are written over those in use", P, "mbarrier_wait(k_empty(smem, k.at), k.parity ^ 1);\n#pragma unroll", "#pragma unroll", 0,
      "tokens beside" },
    { "scales are awaited by nobody", "fp8_wgmma.cu", "mbarrier_init(k_full(smem, i), $(l.key_scales and 2 or 1))",
      "mbarrier_init(k_full(smem, i), 1)", 0, "tokens" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};

const mutation_list mutation_lists[] = { { mma_scenes, mma_mutations, 0, 16, false },
                                         { wgmma_scenes, wgmma_mutations, 2, 13, false },
                                         { NULL, NULL, 0, 0, false } };
