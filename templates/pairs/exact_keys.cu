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
//| elseif p.dtype == "tf32" then
  return __uint_as_float(to_tf32(x));
//| else
  return x;
//| end
}

//| if p.has_pages then
// Key `key` of the sequence in K or V; null where its page is none, whose keys are zeros.
__device__ __forceinline__ const element *row_of_key(const Params &p, const Sequence &sequence, const void *from, long long page_stride,
                                                     long long stride, int key) {
  const int entry = key / p.page_size, page = p.page_table[sequence.index * (long long)p.page_table_stride + entry];
  return (u32)page < (u32)p.pages ? (const element *)from + page * page_stride + (key - entry * p.page_size) * stride : nullptr;
}
__device__ __forceinline__ const element *k_of(const Params &p, const Sequence &sequence, int kv_head, int key) {
  return row_of_key(p, sequence, (const element *)p.k + kv_head * p.k_sh, p.k_sb, p.k_ss, key);
}
__device__ __forceinline__ const element *v_of(const Params &p, const Sequence &sequence, int kv_head, int key) {
  return row_of_key(p, sequence, (const element *)p.v + kv_head * p.v_sh, p.v_sb, p.v_ss, key);
}
__device__ __forceinline__ float element_of(const element *row, int col) { return row == nullptr ? 0.f : widened(row[col]); }
//| else
__device__ __forceinline__ const element *k_of(const Params &p, const Sequence &sequence, int kv_head, int key) {
  return (const element *)p.k + sequence.k() + kv_head * p.k_sh + key * p.k_ss;
}
__device__ __forceinline__ const element *v_of(const Params &p, const Sequence &sequence, int kv_head, int key) {
  return (const element *)p.v + sequence.v() + kv_head * p.v_sh + key * p.v_ss;
}
__device__ __forceinline__ float element_of(const element *row, int col) { return widened(row[col]); }
//| end

__device__ __forceinline__ bool sees_keys(const Sequence &sequence, int query) {
  return first_key(sequence, query) <= last_key(sequence, query);
}
//| if pr.cuts_right then

// Of the keys beside those that a row sees some lie in blocks that are walked for it: those that rows less than this away see.
constexpr int REACH = BR + BC;
//| end
