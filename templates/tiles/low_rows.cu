//| needs "l.low l.shifts_k l.shifts_v l.tokens? l.widened?"
//| local K, V = l.low.k, l.low.v
//| local batch = p.has_lengths and "sequence.index" or "sequence.batch"
// ---- rows of K and V of few bits, in global memory ----
//| for _, x in ipairs { { "k", K, "D" }, { "v", V, "DV" } } do
//|   local name, f, width = x[1], x[2], x[3]
//|   if f.block == 1 then
typedef unsigned char $(name)_element;  // $(f.name)
//|   else
struct $(name)_element {  // $(f.name): a block of $(f.block)
  unsigned char bytes[$(f.block_bytes)];
};
//|   end
constexpr int $(name:upper())_BYTES = $(width) / $(f.block) * (int)sizeof($(name)_element);  // of a row
//| end
//| for _, x in ipairs { { "k", l.shifts_k }, { "v", l.shifts_v } } do
//|   if x[2] and not l.tokens then
//|     local x = x[1]
// Where all rows of a head lie alike in chunks of 16 bytes, they are copied by these: how many bytes of a row's first chunk are in front of
// it. A token's first row begins at a chunk then, and its last one ends with one, so that all bytes of these chunks are the tensor's own.
__device__ __forceinline__ bool $(x)_is_chunked(const Params &p) {
  constexpr long long SIZE = sizeof($(x)_element);
  const u64 last = (p.hkv - 1) * p.$(x)_sh * SIZE + $(x:upper())_BYTES;
  return p.$(x)_sh >= 0 && ((u64)p.$(x) | (u64)((p.$(x)_sb | p.$(x)_ss) * SIZE) | last) % 16 == 0;
}
__device__ __forceinline__ int $(x)_shift_of(const Params &p, int kv_head) {
  return $(x)_is_chunked(p) ? (int)(kv_head * p.$(x)_sh * (long long)sizeof($(x)_element)) & 15 : 0;
}
//|     if l.widened then
// Rows that do not lie alike may be copied by chunks, too, each with what is before it in its first one: how much further behind the
// beginning of that each next row begins, 1 to 15. 0: they lie alike, or a sequence's rows do not begin with a chunk.
__device__ __forceinline__ int $(x)_turn_of(const Params &p) {
  constexpr long long SIZE = sizeof($(x)_element);
//|       local even = p.page % 16 == 0 and "true" or "false"
//|       local rows = p.has_pages and (" && (u64)(p.%s_sb * SIZE) %% 16 == 0 && %s"):format(x, even) or ""
  const bool forward = p.$(x)_sb >= 0 && p.$(x)_ss >= 0 && p.$(x)_sh >= 0;  // what is before a row is no less than the first one's address
  return !$(x)_is_chunked(p) && forward && (u64)p.$(x) % 16 == 0$(rows) ? (int)(p.$(x)_ss * SIZE) & 15 : 0;
}
// How far behind its first chunk the first row of a sequence, or of a page, begins then.
__device__ __forceinline__ int $(x)_first_of(const Params &p, const Sequence &sequence, int kv_head) {
  const long long at = $(p.has_pages and "" or "sequence." .. x .. "() + ")kv_head * p.$(x)_sh;
  return $(x)_turn_of(p) > 0 ? (int)(at * (long long)sizeof($(x)_element)) & 15 : $(x)_shift_of(p, kv_head);
}
//|     end
//|   end
//| end
//| for _, x in ipairs { l.tokens and "k" or false, l.tokens and "v" or false } do
//|   if x then
// Whether rows of HEADS heads of a token are one piece of whole chunks, for all tokens and all heads, and tokens so near each other that
// 32 bits hold the distance of any two of a block.
__device__ __forceinline__ bool $(x)_has_whole_tokens(const Params &p) {
  constexpr long long SIZE = sizeof($(x)_element);
  return p.$(x)_sh * SIZE == $(x:upper())_BYTES && p.hkv % HEADS == 0 && (u64)(p.$(x)_ss * SIZE) <= 1u << 24 &&
         ((u64)p.$(x) | (u64)((p.$(x)_sb | p.$(x)_ss) * SIZE)) % 16 == 0;
}
//|   end
//| end

__device__ __forceinline__ float widened_f16(u32 bits) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"((u16)bits));
  return y;
}
// Element i of a row, scales beside it apart.
//| for _, x in ipairs { { "k", K }, { "v", V } } do
//|   local name, f = x[1], x[2]
__device__ __forceinline__ float $(name)_number(const $(name)_element *row, int i) {
//|   if f.name == "e4m3" then
  const u32 code = row[i], magnitude = code & 0x7f;
  return magnitude == 0x7f ? __int_as_float(0x7fffffff) : widened_f16((code & 0x80) << 8 | magnitude << 7) * 256.f;
//|   elseif f.name == "e5m2" then
  return widened_f16((u32)row[i] << 8);
//|   elseif f.block == 1 then
  return (float)(signed char)row[i];
//|   else
  const unsigned char *const block = row[i / $(f.block)].bytes;
//|     local function half(at) return ("widened_f16((u32)block[%d] | (u32)block[%d] << 8)"):format(at, at + 1) end
//|     if f.scale_is_e4m3 then
  const int share = i % $(f.block) / $(f.shared);
  const u32 scale = block[$(f.scale_at) + share];
  const float d = (scale & 0x7f) == 0x7f ? __int_as_float(0x7fffffff) : widened_f16((scale & 0x80) << 8 | (scale & 0x7f) << 7) * 256.f;
//|     else
  const float d = $(half(f.scale_at));
//|     end
//|     if f.bits == 8 then
  const float number = (float)(signed char)block[$(f.codes_at) + i % $(f.block)];
//|     else
//|       local share = f.scales > 1 and (" + share * %d"):format(f.shared // 2) or ""
  const u32 code = block[$(f.codes_at) + i % $(f.shared // 2)$(share)] >> (i % $(f.shared) < $(f.shared // 2) ? 0 : 4) & 15;
//|       if f.kind == "table" then
//|         local names = {}
//|         for j = 1, 16 do names[j] = tostring(f.table[j]) end
  const signed char table[16] = { $(table.concat(names, ", ")) };
  const float number = (float)table[code];
//|       elseif f.kind == "floats" then
  const float number = widened_f16((code & 8) << 12 | (code & 7) << 9) * 16384.f;
//|       elseif f.bits == 5 then
  const u32 high = block[$(f.high_at) + i % $(f.block) / 8] >> i % 8 & 1;
  const float number = (float)((int)(code | high << 4) - $(f.zero));
//|       else
  const float number = (float)((int)code - $(f.zero));
//|       end
//|     end
//|     if f.least_at > 0 then
  return d * number + $(half(f.least_at));
//|     else
  return d * number;
//|     end
//|   end
}
//| end
//| if p.k_scale == 2 then
// The same of a key's row: `page` and `token` of it, or with no pages the sequence's own and the key's number.
__device__ __forceinline__ const float *k_scales_of(const Params &p, const Sequence &sequence, int kv_head) {
//|   if p.has_pages then
  return p.k_scale + kv_head * p.k_scale_sh;
//|   elseif p.has_lengths then
  return p.k_scale + sequence.index * p.k_scale_sb + sequence.first_k * p.k_scale_ss + kv_head * p.k_scale_sh;
//|   else
  return p.k_scale + sequence.batch * p.k_scale_sb + kv_head * p.k_scale_sh;
//|   end
}
//| elseif p.k_scale == 4 then
// Those of a head's columns, p.k_scale_ss apart.
__device__ __forceinline__ const float *k_scales_of(const Params &p, const Sequence &sequence, int kv_head) {
  return p.k_scale + $(batch) * p.k_scale_sb + kv_head * p.k_scale_sh;
}
//| elseif p.k_scale == 1 then
// What all of K of a head is multiplied by.
__device__ __forceinline__ float k_scale_of(const Params &p, const Sequence &sequence, int kv_head) {
  return p.k_scale[$(batch) * p.k_scale_sb + kv_head * p.k_scale_sh];
}
//| end
//| if p.v_scale == 2 then
// The same of a key's row: `page` and `token` of it, or with no pages the sequence's own and the key's number.
__device__ __forceinline__ const float *v_scales_of(const Params &p, const Sequence &sequence, int kv_head) {
//|   if p.has_pages then
  return p.v_scale + kv_head * p.v_scale_sh;
//|   elseif p.has_lengths then
  return p.v_scale + sequence.index * p.v_scale_sb + sequence.first_k * p.v_scale_ss + kv_head * p.v_scale_sh;
//|   else
  return p.v_scale + sequence.batch * p.v_scale_sb + kv_head * p.v_scale_sh;
//|   end
}
//| elseif p.v_scale == 4 then
// Those of a head's columns, p.v_scale_ss apart.
__device__ __forceinline__ const float *v_scales_of(const Params &p, const Sequence &sequence, int kv_head) {
  return p.v_scale + $(batch) * p.v_scale_sb + kv_head * p.v_scale_sh;
}
//| elseif p.v_scale == 1 then
__device__ __forceinline__ float v_scale_of(const Params &p, const Sequence &sequence, int kv_head) {
  return p.v_scale[$(batch) * p.v_scale_sb + kv_head * p.v_scale_sh];
}
//| end
