// ---- which queries see a key ----
// First and last query of the sequence that sees key j; none where last < first.
//| if p.mask ~= "none" then
__device__ __forceinline__ int first_query(const Sequence &sequence, int j) { return max(0, j - sequence.diag_hi()); }
//| else
__device__ __forceinline__ int first_query(const Sequence &, int) { return 0; }
//| end
//| if p.mask == "window" then
__device__ __forceinline__ int last_query(const Sequence &sequence, int j) { return min(sequence.sq() - 1, j - sequence.diag_lo()); }
//| else
__device__ __forceinline__ int last_query(const Sequence &sequence, int) { return sequence.sq() - 1; }
//| end
