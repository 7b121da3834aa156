// kernels: what runs beside fagen's own around a node of ggml's: rows of Q in 16 bits, and what a mask leaves of its rows and tiles.
typedef unsigned short u16;
typedef unsigned int u32;
typedef long long i64;

__device__ __forceinline__ u32 rounded(float x, int bf16) {
  u16 y;
  if (bf16) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  } else {
    x = x > 65504.f ? 65504.f : x < -65504.f ? -65504.f : x;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  }
  return y;
}

// Rows of Q in fp32, ne {d, sq, hq, b} by strides in elements, become [b, sq, hq, d] of fp16 or bf16, side by side, times `scale`. What fp16
// does not hold becomes its largest number; NaN stays. 128 threads for 1024 elements, each for eight side by side: 16 bytes of memory at a
// time where `whole`, which says that d is a multiple of 8, strides are of 4, and the rows begin at a multiple of 16 bytes. It may begin
// before what precedes it has ended, and waits for that; then what comes after may begin, and waits for these rows.
extern "C" __global__ void __launch_bounds__(128) fa_ggml_rows(const float *from, u16 *to, i64 sb, i64 ss, i64 sh, u32 elements, u32 sq,
                                                               u32 hq, u32 d, float scale, int bf16, int whole) {
  const u32 first = (blockIdx.x * 128 + threadIdx.x) * 8;
  auto place = [&](u32 i) {
    const u32 row = i / d, at = row / hq;
    return from + at / sq * sb + at % sq * ss + row % hq * sh + i % d;
  };
  const float *const q = place(first);
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  if (first >= elements) return;
  if (whole) {
    const float4 x = *(const float4 *)q, y = *(const float4 *)(q + 4);
    uint4 o;
    o.x = rounded(x.x * scale, bf16) | rounded(x.y * scale, bf16) << 16;
    o.y = rounded(x.z * scale, bf16) | rounded(x.w * scale, bf16) << 16;
    o.z = rounded(y.x * scale, bf16) | rounded(y.y * scale, bf16) << 16;
    o.w = rounded(y.z * scale, bf16) | rounded(y.w * scale, bf16) << 16;
    *(uint4 *)(to + first) = o;
    return;
  }
  for (u32 i = first; i < first + 8 && i < elements; i++) to[i] = (u16)rounded(*place(i) * scale, bf16);
}

// What row i of a mask leaves: {first key, past the last, how many, 1 where one of them is not 0}, no key: {0, 0, 0, 0}. And of tiles of 64
// rows and 64 keys, which are 0 before: 1 where one pair is left. A warp for each row, a block for 8 of one head and sequence: blockIdx.x =
// ((sequence heads) + head) blocks + block. -inf hides, and so does NaN. Eight tiles of a row are under way at a time.
extern "C" __global__ void __launch_bounds__(256) fa_ggml_mask(const u16 *mask, int4 *rows, unsigned char *tiles, i64 sb, i64 ss, i64 sh,
                                                               int sq, int sk, int heads) {
  const int blocks = (sq + 7) / 8, i = blockIdx.x % blocks * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  const i64 which = blockIdx.x / blocks, key_tiles = (sk + 63) / 64;
  if (i >= sq) return;
  const u16 *m = mask + which / heads * sb + which % heads * sh + i * ss;
  unsigned char *t = tiles + (which * ((sq + 63) / 64) + i / 64) * key_tiles;
  int4 row;
  row.x = row.y = row.z = row.w = 0;
  for (int begin = 0; begin < sk; begin += 512) {
    u16 x[16];
#pragma unroll
    for (int n = 0; n < 16; n++) x[n] = begin + n * 32 + lane < sk ? m[begin + n * 32 + lane] : (u16)0xfc00;
#pragma unroll
    for (int n = 0; n < 16; n++) {
      const u32 seen = __ballot_sync(~0u, (x[n] & 0x7fffu) < 0x7c00u), other = __ballot_sync(~0u, (x[n] & 0x7fffu) != 0) & seen;
      if (!seen) continue;
      if (!row.z) row.x = begin + n * 32 + __ffs(seen) - 1;
      row.y = begin + n * 32 + 32 - __clz(seen);
      row.z += __popc(seen);
      row.w |= other != 0;
      if (lane == 0) t[(begin + n * 32) / 64] = 1;
    }
  }
  if (lane == 0) rows[which * sq + i] = row;
}
