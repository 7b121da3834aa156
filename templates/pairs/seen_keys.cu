// First and last key of its sequence that query i sees.
//| if p.mask == "window" then
__device__ __forceinline__ int first_key(const Sequence &sequence, int i) { return max(0, i + sequence.diag_lo()); }
//| else
__device__ __forceinline__ int first_key(const Sequence &, int) { return 0; }
//| end
//| if p.mask ~= "none" then
__device__ __forceinline__ int last_key(const Sequence &sequence, int i) { return min(sequence.sk() - 1, i + sequence.diag_hi()); }
//| else
__device__ __forceinline__ int last_key(const Sequence &sequence, int) { return sequence.sk() - 1; }
//| end
