// Where one walks around a ring of N buffers.
template <int N>
struct Ring {
  int at = 0;
  u32 parity = 0;
  __device__ __forceinline__ void next() {
    if (++at == N) at = 0, parity ^= 1;
  }
};
