//| needs "l.integer? l.scaled"
//| local batch = p.has_lengths and "sequence.index" or "sequence.batch"
//| for _, x in ipairs { "q", "k", "v", "o" } do
//|   if p[x .. "_scale"] == 1 then
// What all of $(x:upper()) of a head is $(x == "o" and "divided" or "multiplied") by.
__device__ __forceinline__ float $(x)_scale_of(const Params &p, const Sequence &sequence, int head) {
  return p.$(x)_scale[$(batch) * p.$(x)_scale_sb + head * p.$(x)_scale_sh];
}
//|   end
//| end
//| if p.q_scale == 2 then
// What a row of Q is multiplied by.
__device__ __forceinline__ float q_scale_of(const Params &p, const Sequence &sequence, int head, int query) {
//|   if p.has_lengths then
  return p.q_scale[sequence.index * p.q_scale_sb + (sequence.first_q + query) * p.q_scale_ss + head * p.q_scale_sh];
//|   else
  return p.q_scale[sequence.batch * p.q_scale_sb + query * p.q_scale_ss + head * p.q_scale_sh];
//|   end
}
//| end
//| if p.k_scale == 2 then
// What rows of K are multiplied by, p.k_scale_ss apart$(p.has_pages and ", of a page p.k_scale_sb from the next" or "").
__device__ __forceinline__ const float *k_scales_of(const Params &p, const Sequence &sequence, int kv_head) {
//|   if p.has_pages then
  return p.k_scale + kv_head * p.k_scale_sh;
//|   elseif p.has_lengths then
  return p.k_scale + sequence.index * p.k_scale_sb + sequence.first_k * p.k_scale_ss + kv_head * p.k_scale_sh;
//|   else
  return p.k_scale + sequence.batch * p.k_scale_sb + kv_head * p.k_scale_sh;
//|   end
}
//| end
//| if l.scaled then
// What products of numbers are multiplied by to be those of Q and K.
__device__ __forceinline__ float score_scale_of(const Params &p, const Sequence &sequence, int head, $(l.integer and "int query, " or "")int kv_head) {
//|   local of = {}
//|   if p.q_scale == 1 then of[#of + 1] = "q_scale_of(p, sequence, head)" end
//|   if p.q_scale == 2 then of[#of + 1] = "q_scale_of(p, sequence, head, query)" end
//|   if p.k_scale == 1 then of[#of + 1] = "k_scale_of(p, sequence, kv_head)" end
  return $(table.concat(of, " * "));
}
//| end
