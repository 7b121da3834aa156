// Rows [first, end) of a block are keys that some query of the sequence sees.
struct OwnRows {
  int first, end;
  __device__ __forceinline__ bool all() const { return first <= 0 && end >= BC; }
};
__device__ __forceinline__ OwnRows own_rows(const Sequence &sequence, int block) {
  return {first_key(sequence, 0) - block * BC, last_key(sequence, sequence.sq() - 1) + 1 - block * BC};
}
