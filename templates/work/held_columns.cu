// A thread of a quad held columns 2t and 2t + 1 of two blocks of eight: it gets columns 4t to 4t + 3 of both blocks together.
__device__ __forceinline__ float4 in_order(float4 x) {
  const int lane = threadIdx.x % 32, from = lane - lane % 4 + lane % 2 * 2;
  const bool second = lane % 4 >= 2;
  auto of = [&](float first, float next, int at) {
    const float a = __shfl_sync(~0u, first, at), b = __shfl_sync(~0u, next, at);
    return second ? b : a;
  };
  return make_float4(of(x.x, x.z, from), of(x.y, x.w, from), of(x.x, x.z, from + 1), of(x.y, x.w, from + 1));
}
