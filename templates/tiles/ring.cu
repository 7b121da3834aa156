// Where one walks around a ring of N buffers.
template <int N>
struct Ring {
  int at = 0;
  u32 parity = 0;
  __device__ __forceinline__ void next() {
//| if p.score and p.score.has_score then  -- of two, half of what is to be compiled
    if (N == 2)
      at ^= 1, parity ^= at ^ 1;
    else
//| end
    if (++at == N) at = 0, parity ^= 1;
  }
};
