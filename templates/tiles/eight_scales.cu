//| needs "l.scaled"
//| local batch = p.has_lengths and "sequence.index" or "sequence.batch"
//| for _, x in ipairs { "q", "k", "v", "o" } do
//|   if p[x .. "_scale"] == 1 then
// What all of $(x:upper()) of a head is $(x == "o" and "divided" or "multiplied") by.
__device__ __forceinline__ float $(x)_scale_of(const Params &p, const Sequence &sequence, int head) {
  return p.$(x)_scale[$(batch) * p.$(x)_scale_sb + head * p.$(x)_scale_sh];
}
//|   end
//| end
//| if l.scaled then
// What products of numbers are multiplied by to be those of Q and K.
__device__ __forceinline__ float score_scale_of(const Params &p, const Sequence &sequence, int head, int kv_head) {
//|   local of = {}
//|   if p.q_scale == 1 then of[#of + 1] = "q_scale_of(p, sequence, head)" end
//|   if p.k_scale == 1 then of[#of + 1] = "k_scale_of(p, sequence, kv_head)" end
  return $(table.concat(of, " * "));
}
//| end
