/* mutations_append: faults of FA_APPEND, as in mutations.c. */
#include "mutations.h"
#include "verify/cases/case.h"
#include <stddef.h>

#define NONE -1, -1, 0, 0
#define USUAL FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, NULL, 0
#define RAGGED(ragged) FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, ragged, 0
#define LOOK(heads) "append:warps=2,claims=0,token_heads=" #heads
#define TABLE(heads) "append:warps=4,claims=1,token_heads=" #heads

static const fa_ragged_how packed = { .seed = 5,
                                      .forms = FA_FORM_CU_Q | FA_FORM_SEQLENS_Q | FA_FORM_SEQLENS_K,
                                      .q = FA_SPREAD_UNIFORM,
                                      .k = FA_SPREAD_EDGES,
                                      .gap = 3 },
                           few = { .seed = 2, .forms = FA_FORM_SEQLENS_K, .k = FA_SPREAD_EDGES },
                           pages = { .seed = 3,
                                     .forms = FA_FORM_CU_Q | FA_FORM_SEQLENS_K | FA_FORM_PAGES,
                                     .q = FA_SPREAD_UNIFORM,
                                     .k = FA_SPREAD_LOG,
                                     .page_size = 12,
                                     .spare = 2,
                                     .wide = 3,
                                     .foreign = 1 };

static const scene scenes[] = {
    { "slots", "bf16,d=64,op=append,features=slots+positions+positions64,page=16,rotary=48,cos=fp32,b=2,hq=3,hkv=3", LOOK(2), 21, 40, NONE,
      USUAL },
    { "table", "fp16,d=64,op=append,features=slots+positions+rotary-pairs,page=4,rotary=64,cos=bf16,b=3,hq=2,hkv=2", TABLE(1), 15, 20, NONE,
      USUAL },
    { "crowd", "fp16,d=8,op=append,features=slots,page=16,b=2,hq=1,hkv=1", TABLE(1), 100, 400, NONE, USUAL },
    { "packed", "bf16,d=64,dv=32,op=append,features=lengths,rotary=64,cos=fp16,b=4,hq=6,hkv=3", LOOK(2), 9, 30, NONE, RAGGED(&packed) },
    { "unturned", "bf16,d=16,op=append,features=lengths,b=4,hq=2,hkv=2", LOOK(1), 9, 30, NONE, RAGGED(&few) },
    { "pages", "fp32,d=40,op=append,features=lengths+pages,page=4,rotary=34,cos=fp32,b=5,hq=2,hkv=2", LOOK(4), 14, 37, NONE,
      RAGGED(&pages) },
    { "hadamard", "fp32,d=256,dv=64,op=append,features=hadamard-k+hadamard-v,b=2,hq=2,hkv=2", LOOK(1), 3, 5, NONE, USUAL },
    { "odd", "bf16,d=33,op=append,v=fp32,rotary=10,cos=fp32,b=2,hq=2,hkv=1", LOOK(1), 4, 6, NONE, USUAL },
    { "e4m3", "bf16,d=64,op=append,features=slots,page=8,kv=e4m3,k_scale=1,v_scale=2,b=2,hq=2,hkv=2", TABLE(2), 15, 24, NONE, USUAL },
    { "found", "bf16,d=64,dv=32,op=append,kv=s8,v=e5m2,k_scale_out=2,v_scale_out=2,b=2,hq=2,hkv=2", LOOK(1), 5, 9, NONE, USUAL },
    { "blocks", "fp16,d=64,dv=128,op=append,kv=q8_0,v=q4_0,b=2,hq=2,hkv=2", LOOK(2), 7, 9, NONE, USUAL },
    { "turned", "fp16,d=64,op=append,kv=q8_0,v=q4_0,rotary=32,cos=fp32,b=2,hq=2,hkv=2", LOOK(2), 7, 9, NONE, USUAL },
    { "together", "fp16,d=64,dv=128,op=append,kv=q8_0,v=q4_0,b=2,hq=6,hkv=6", LOOK(4), 7, 9, NONE, FA_VALUES_NORMAL, FA_HIDDEN_NAN,
      FA_LAYOUT_PACKED, 0, NULL, 0 },
    { "dealt", "fp16,d=128,op=append,kv=q8_0,v=q4_0,rotary=128,cos=fp32,b=2,hq=6,hkv=6", LOOK(4), 7, 9, NONE, FA_VALUES_NORMAL,
      FA_HIDDEN_NAN, FA_LAYOUT_PACKED, 0, NULL, 0 },
    { "pair", "bf16,d=64,op=append,features=hadamard-k,kv=q4_0,v=q8_0,b=2,hq=3,hkv=3", LOOK(2), 7, 9, NONE, USUAL },
    { .name = NULL },
};

#define A "append.cu"
#define Q "quantize.cu"
#define D "quantize_dealt.cu"
#define C "claims.cu"
#define P "places.cu"
#define R "rotation.cu"
#define H "hadamard.cu"
static const mutation mutations[] = {
    { "the earlier of two tokens stays", C, "int i = token + 1 + lane; asks && i < tokens;", "int i = lane; asks && i < token;", 0,
      "slots" },
    { "two tokens for one slot", C, "later = true;", "later = false;", 0, "slots" },
    { "an earlier token in the table", C, "atomicMax(claims.row", "atomicMin(claims.row", 0, "table" },
    { "a table that is not cleared", C, "make_uint2(0, 0);", "make_uint2(1, 1);", 0, "table" },
    { "the later of two is overtaken", C, "min(last - 1, token)", "max(last - 1, token)", 0, "table" },
    { "rows that were overtaken in the launch before", C, "overtaken[base + threadIdx.x] = 0;", "overtaken[base + threadIdx.x] = 1;", 0,
      "table" },
    { "another slot's entry", C, "if (p.slots[other - 1] != at.slot) continue;", "", 0, "crowd" },
    { "negative slots", P, "at.slot >= 0 && at.slot <", "at.slot <", 0, "slots" },
    { "slots beyond the cache", P, "at.slot < (long long)p.pages * p.page_size", "at.slot <= (long long)p.pages * p.page_size", 0,
      "slots" },
    { "a token of another page, by slots", P, "at.row = at.slot - at.page * p.page_size;", "at.row = at.slot;", 0, "slots" },
    { "positions beyond the angles", P, "at.position < p.rotary_positions", "at.position <= p.rotary_positions", 0, "slots table" },
    { "negative positions", P, "at.position >= 0 && at.position <", "at.position <", 0, "slots table" },
    { "nobody is counted", A, "atomicAdd(p.skipped, 1ull)", "atomicAdd(p.skipped, 0ull)", 0, "slots" },
    { "a token is counted for each head", A, "real && item.part == 0 && lane == 0", "real && lane == 0", 0, "slots" },
    { "rows of no sequence", P, "at.used = i >= 0 && i < q.length;", "at.used = i >= 0;", 0, "packed" },
    { "keys counted from the first", P, "key = k.length - q.length + i;", "key = i;", 0, "packed" },
    { "the sequence after", P, "<= token)", "< token)", 0, "packed pages" },
    { "pages that are none", P, "at.kept = page >= 0 && page < p.pages;", "at.kept = true;", 0, "pages" },
    { "keys before the first", P, "at.kept = at.used && key >= 0;", "at.kept = at.used;", 0, "unturned" },
    { "a token of another page", P, "at.row = key % p.page_size;", "at.row = (key + 1) % p.page_size;", 0, "pages" },
    { "the other sign", R, "__fadd_rn(__fmul_rn(x, c), -__fmul_rn(y, s))", "__fadd_rn(__fmul_rn(x, c), __fmul_rn(y, s))", 0,
      "slots table" },
    { "one rounding less", R, "__fadd_rn(__fmul_rn(x, c), -__fmul_rn(y, s))", "fmaf(x, c, -__fmul_rn(y, s))", 0, "pages" },
    { "V is rotated", A, "const bool turns = used && !is_v && place.turns", "const bool turns = used && place.turns", 0, "table" },
    { "a partner beside", A, "at + HALF / VEC : at - HALF / VEC", "at + HALF / VEC : at", 0, "slots" },
    { "columns past the rotation", A, "if (column + i >= ROTARY) continue;", "", 0, "pages" },
    { "sines for cosines", R, "s[i] = $(to_float(p.cos, (\"((const %s *)row)[HALF + at]\")",
      "s[i] = $(to_float(p.cos, (\"((const %s *)row)[at]\")", 0, "pages" },
    { "queries of another head", A, "to_sh = p.q_out_sh", "to_sh = p.new_k_sh", 0, "slots" },
    { "the transform's factor", A, "f32(1 / math.sqrt(of_v and p.dv or p.d))", "f32(1 / math.sqrt(p.d))", 0, "hadamard" },
    { "a difference turned", H, "__fadd_rn(other, -x[s][i]) : __fadd_rn(x[s][i], other)",
      "__fadd_rn(x[s][i], -other) : __fadd_rn(x[s][i], other)", 0, "hadamard" },
    { "two products are more than the quotient", Q, "false, __fmul_rn(inverse, 0x1.fffff8p-1f)", "false, __fmul_rn(inverse, 0x1.000004p0f)",
      0, "found" },
    { "the tail of a block alone", Q, "tail | later << 16", "tail", 0, "blocks" },
    { "codes of a first block begin with a word", Q, "if (lane % 8 < 4) {", "if (lane % 8 < 0) {", 0, "blocks" },
    { "the second column turns as the first", A, "x[s + TURNED][i] = turn_second(b, a,", "x[s + TURNED][i] = turn_first(b, a,", 0,
      "packed dealt" },
    { "angles of the first pieces", A, "ready.cosine[s][i], ready.sine[s][i]);\n            x[s + TURNED]",
      "ready.cosine[0][i], ready.sine[0][i]);\n            x[s + TURNED]", 0, "dealt" },
    { "the scale of another head", A, "place.sequence * p.$(side)_scale_sb + head *", "place.sequence * p.$(side)_scale_sb + (head ^ 1) *",
      0, "e4m3" },
    { "K's scale for V", A, "p.$(side)_scale[place.page", "p.v_scale[place.page + 0 * p.v_scale_sb", 0, "e4m3" },
    { "the largest of a lane", Q, "most = fmaxf(most, __shfl_xor_sync(~0u, most, i));", "", 0, "found" },
    { "a scale of another row", A, " + place.row * p.$(side)_scale_out_ss", "", 0, "found" },
    { "small numbers twice as large", Q, "f.fraction + bias - 1", "f.fraction + bias", 0, "e4m3" },
    { "the smaller of two lanes", Q, "top > -bottom ? top : bottom", "top < -bottom ? top : bottom", 0, "blocks" },
    { "a head too few", A, "of.first + h < of.heads$", "of.first + h < of.heads - 1$", 0, "slots" },
    { "a head that is none", A, "there = stores && first + h < heads;", "there = stores;", 0, "slots" },
    { "queries of tokens that are skipped", A, "(is_q || place.kept)", "place.kept", 0, "slots" },
    { "queries without angles", A, "if (!place.turns)", "if (false)", 0, "slots" },
    { "teams of less than a block", "append.lua", "math.max(l.vec, together(p))", "l.vec", 0, "turned" },
    { "halves of numbers below 0 up", Q, "0x3f000000 + (__float_as_int(y) >> 31)", "0x3f000000", 0, "blocks dealt" },
    { "codes of a scale a bit less", Q, "codes_of(usual_reciprocal(d), false)", "codes_of(usual_reciprocal(0.99f * d), false)", 0,
      "blocks" },
    { "the upper codes below", Q, "16 / VEC) << 4;", "16 / VEC) << 0;", 0, "blocks" },
    { "a part of the rows that are together", A, "gathered)[i + lane];", "gathered)[lane];", 0, "together" },
    { "heads that are none with them", A, "first + HEADS <= heads && to_sh == (is_v", "to_sh == (is_v", 0, "together" },
    { "pieces of other blocks", A, "s % 2 * 2 + s / 2 * (2 * LANES)", "s % 2 * 2 + s / 2 * LANES", 0, "dealt" },
    { "what is below 0 of a lane", D, "bottom_bits = max(bottom_bits, __shfl_xor_sync(~0u, bottom_bits, 1));", "", 0, "dealt" },
    { "numbers above 0 alone", D, "fabsf(bottom) > fabsf(top) ? bottom : top", "top", 0, "dealt" },
    { "the largest of a lane of two", D, "most = max_with_nan(most, __shfl_xor_sync(~0u, most, 1));", "", 0, "dealt" },
    { "codes of a scale a bit less, of two lanes", D, "codes_of(usual_reciprocal(d), false)",
      "codes_of(usual_reciprocal(0.99f * d), false)", 0, "dealt" },
    { "halves side by side", D, "number[1][i] * 16", "number[1][i] * 8", 0, "dealt" },
    { "words of the other block", D, "to + (second ? 4 : 2)", "to + (second ? 2 : 4)", 0, "dealt" },
    { "the end of the other block", D, "second ? 0x4432 : 0x4476", "second ? 0x4476 : 0x4432", 0, "dealt" },
    { "the scale by the other lane", D, "if (has_scale) *(u16 *)", "if (!has_scale) *(u16 *)", 0, "dealt" },
    { "the second half over the first", D, "store_eight(to + 16,", "store_eight(to,", 0, "dealt" },
    { "which block is the second of two", A, "first_piece / 4 + s / 2 * (LANES / 2) & 1", "first_piece / 4 & 1", 0, "pair" },
    { "rows of the team before", A, "threadIdx.x / LANES * (HEADS * STAGED)", "threadIdx.x / (2 * LANES) * (HEADS * STAGED)", 0, "dealt" },
    { "a head too many goes out", A, "h < HEADS && first + h < heads; h++)", "h < HEADS; h++)", 0, "dealt" },
    { "words that are left", A, "i < ROW / 4;", "i < ROW / 4 - 1;", 0, "dealt" },
    { "chunks that are left", A, "i < HEADS * ROW / 16;", "i < HEADS * ROW / 16 - 1;", 0, "dealt" },
    { "lanes of a block are one", H, "pieces == 1 ? 1 :", "pieces == 1 ? 2 :", 0, "pair" },
    { "a block beside", Q, "row + column / 64 * $(2 * f.block_bytes) + (second", "row + column / 64 * $(2 * f.block_bytes) + (!second", 0,
      "blocks" },
    { .name = NULL },
};

/* On one SM, whose blocks go on from item to item. */
static const mutation looped[] = {
    { "what lists say of the item before", A, "told = told_of(p, next.token);\n      }", "told = told_of(p, item.token);\n      }", 0,
      "slots" },
    { "shares that nobody has", A, "share += (long long)$(wk.blocks) * WARPS;", "share += 2ll * $(wk.blocks) * WARPS;", 0, "slots" },
    { "rows over those that are read", A, "copy(coming, row, h, next.real);", "copy(coming, row, (h + 1) % HEADS, next.real);", 0,
      "slots" },
    { "the head before", A, "row += coming.sh;", "", 0, "slots" },
    { "rows that nobody waits for", A, "cp_async_wait<HEADS - 1>();", "cp_async_wait<HEADS>();", 0, "slots" },
    { .name = NULL },
};

const mutation_list mutation_lists[] = { { scenes, mutations, 0, 9, false }, { scenes, looped, 1, 0, false }, { .scenes = NULL } };
