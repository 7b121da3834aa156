//| needs "l.integer? l.low? l.wide?"
//| -- Rows of keys of few bits have types of their own, one for K and one for V; an element is a number of the row, scales apart.
//| local ke, ve = l.low and "k_element" or "element", l.low and "v_element" or l.wide and "value" or "element"
//| function k_element_of(row, i) return (l.low and "element_of_k(%s, %s)" or "element_of(%s, %s)"):format(row, i) end
//| function v_element_of(row, i) return (l.low and "element_of_v(%s, %s)" or "element_of(%s, %s)"):format(row, i) end
//| k_row_type, v_row_type = ke, ve
//| local pr = include("pairs/pairs.lua").of(p, l)
//| -- A row's maximum with one key more, the factor of what the keys before have added, and the key's P: exponents are exactly 0 at the
//| -- maximum.
//| function raise_exactly()
    const float top = fmaxf(row.m, s), keep = row.m == -infinity() ? 0.f : exp2_approx((row.m - top) * $(pr.unit_log2));
    float e = s == -infinity() && top == -infinity() ? 0.f : exp2_approx((s - top) * $(pr.unit_log2));
//| end
// ---- keys of a row one by one, straight from global memory ----

__device__ __forceinline__ float widened(element x) {
//| if p.dtype == "bf16" then
  return __uint_as_float((u32)x << 16);
//| elseif p.dtype == "fp16" then
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
//| elseif p.dtype == "e4m3" or p.dtype == "e5m2" then
  u32 y;
  float z;
  asm("cvt.rn.f16x2.$(p.dtype)x2 %0, %1;" : "=r"(y) : "h"((u16)x));
  asm("cvt.f32.f16 %0, %1;" : "=f"(z) : "h"((u16)y));
  return z;
//| elseif p.dtype == "tf32" then
  return __uint_as_float(to_tf32(x));
//| elseif p.dtype == "s8" then
  return (float)x;
//| else
  return x;
//| end
}

//| if p.has_pages then
//|   local typed = l.low or l.integer -- K and V have types of their own
//|   local e, of_k, of_v = typed and "E" or "element", typed and "<" .. ke .. ">" or "", typed and "<" .. ve .. ">" or ""
// Key `key` of the sequence in K or V; null where its page is none, whose keys are zeros.
//|   if typed then
template <class E>
__device__ __forceinline__ const E *row_of_key(const Params &p, const Sequence &sequence, const void *from, long long page_stride,
                                               long long stride, int key) {
//|   else
__device__ __forceinline__ const element *row_of_key(const Params &p, const Sequence &sequence, const void *from, long long page_stride,
                                                     long long stride, int key) {
//|   end
  const int entry = key / p.page_size, page = p.page_table[sequence.index * (long long)p.page_table_stride + entry];
//|   local at = "page * page_stride + (key - entry * p.page_size) * stride"
  return (u32)page < (u32)p.pages ? (const $(e) *)from + $(at) : nullptr;
}
__device__ __forceinline__ const $(ke) *k_of(const Params &p, const Sequence &sequence, int kv_head, int key) {
  return row_of_key$(of_k)(p, sequence, (const $(ke) *)p.k + kv_head * p.k_sh, p.k_sb, p.k_ss, key);
}
__device__ __forceinline__ const $(ve) *v_of(const Params &p, const Sequence &sequence, int kv_head, int key) {
  return row_of_key$(of_v)(p, sequence, (const $(ve) *)p.v + kv_head * p.v_sh, p.v_sb, p.v_ss, key);
}
//|   if not l.low then
__device__ __forceinline__ float element_of(const element *row, int col) { return row == nullptr ? 0.f : widened(row[col]); }
//|   end
//|   if l.wide then
__device__ __forceinline__ float element_of(const value *row, int col) {
  if (row == nullptr) return 0.f;
//|     if p.wide_values == "bf16" then
  return __uint_as_float((u32)row[col] << 16);
//|     else
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(row[col]));
  return y;
//|     end
}
//|   end
//| else
__device__ __forceinline__ const $(ke) *k_of(const Params &p, const Sequence &sequence, int kv_head, int key) {
  return (const $(ke) *)p.k + sequence.k() + kv_head * p.k_sh + key * p.k_ss;
}
__device__ __forceinline__ const $(ve) *v_of(const Params &p, const Sequence &sequence, int kv_head, int key) {
  return (const $(ve) *)p.v + sequence.v() + kv_head * p.v_sh + key$(p.has_v_columns and "" or " * p.v_ss");
}
//|   if not l.low then
__device__ __forceinline__ float element_of(const element *row, int col) { return widened(row[col]); }
//|   end
//|   if l.wide then
__device__ __forceinline__ float element_of(const value *row, int col) {
//|     if p.wide_values == "bf16" then
  return __uint_as_float((u32)row[col] << 16);
//|     else
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(row[col]));
  return y;
//|     end
}
//|   end
//| end
//| for _, x in ipairs((l.low or l.integer) and { "k", "v" } or {}) do
//|   if p[x .. "_scale"] == 2 then
// What the key's row of $(x:upper()) is multiplied by.
__device__ __forceinline__ float $(x)_token_scale(const Params &p, const Sequence &sequence, int kv_head, int key) {
//|     if p.has_pages then
  const float *const row = row_of_key<float>(p, sequence, $(x)_scales_of(p, sequence, kv_head), p.$(x)_scale_sb, p.$(x)_scale_ss, key);
  return row == nullptr ? 0.f : *row;
//|     else
  return $(x)_scales_of(p, sequence, kv_head)[key * p.$(x)_scale_ss];
//|     end
}
//|   end
//| end
//| if l.low then
//|   local null = p.has_pages and "row == nullptr ? 0.f : " or ""
__device__ __forceinline__ float element_of_k(const k_element *row, int col) { return $(null)k_number(row, col); }
__device__ __forceinline__ float element_of_v(const v_element *row, int col) { return $(null)v_number(row, col); }
//| end

__device__ __forceinline__ bool sees_keys(const Sequence &sequence, int query) {
  return first_key(sequence, query) <= last_key(sequence, query);
}
//| if pr.cuts_right then

// Of the keys beside those that a row sees some lie in blocks that are walked for it: those that rows less than this away see.
constexpr int REACH = BR + BC;
//| end
