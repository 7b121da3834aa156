//| include "pairs/seen_keys.cu"
// Keys of a sequence that some row sees, from the first on and before the end. Of others nothing is read.
__device__ __forceinline__ int first_seen(const Sequence &sequence) { return first_key(sequence, 0); }
__device__ __forceinline__ int end_seen(const Sequence &sequence) {
  return sequence.sq() > 0 ? last_key(sequence, sequence.sq() - 1) + 1 : 0;
}
