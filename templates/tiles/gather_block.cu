// Four lanes that share a row, each with the same two columns of four blocks of eight, exchange: lane t gets all of block t.
__device__ __forceinline__ uint4 gather_block(u32 x0, u32 x1, u32 x2, u32 x3, int t) {
  const bool odd = t & 1, upper = t & 2;
  u32 a = __shfl_xor_sync(~0u, odd ? x0 : x1, 1), b = __shfl_xor_sync(~0u, odd ? x2 : x3, 1);
  const u32 y0 = odd ? a : x0, y1 = odd ? x1 : a, y2 = odd ? b : x2, y3 = odd ? x3 : b;
  a = __shfl_xor_sync(~0u, upper ? y0 : y2, 2), b = __shfl_xor_sync(~0u, upper ? y1 : y3, 2);
  return upper ? make_uint4(a, b, y2, y3) : make_uint4(y0, y1, a, b);
}
