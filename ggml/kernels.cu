// kernels: what runs beside fagen's own around a node of ggml's: rows of Q in 16 bits, and what a mask leaves of its rows and tiles.
typedef unsigned short u16;
typedef unsigned int u32;
typedef long long i64;

// Rows of Q in fp32, ne {d, sq, hq, b} by strides in elements, become [b, sq, hq, d] of fp16 or bf16, side by side, times `scale`. What fp16
// does not hold becomes its largest number; NaN stays. A warp for each row.
extern "C" __global__ void __launch_bounds__(128) fa_ggml_rows(const float *from, u16 *to, i64 sb, i64 ss, i64 sh, i64 rows, int sq, int hq,
                                                               int d, float scale, int bf16) {
  i64 row = (i64)blockIdx.x * 4 + threadIdx.x / 32;
  if (row >= rows) return;
  int h = (int)(row % hq);
  i64 at = row / hq;
  int i = (int)(at % sq);
  at /= sq;
  const float *q = from + at * sb + (i64)i * ss + (i64)h * sh;
  u16 *o = to + row * d;
  for (int c = threadIdx.x % 32; c < d; c += 32) {
    float x = q[c] * scale;
    u16 y;
    if (bf16) {
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
    } else {
      x = x > 65504.f ? 65504.f : x < -65504.f ? -65504.f : x;
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
    }
    o[c] = y;
  }
}

// What row i of a mask leaves: {first key, past the last, how many, 1 where one of them is not 0}, no key: {0, 0, 0, 0}. And of tiles of 64
// rows and 64 keys: 1 where one pair is left. A block for 64 rows of one head and sequence: blockIdx.x = ((sequence heads) + head) tiles +
// tile. -inf hides, and so does NaN.
extern "C" __global__ void __launch_bounds__(256) fa_ggml_mask(const u16 *mask, int4 *rows, unsigned char *tiles, i64 sb, i64 ss, i64 sh,
                                                               int sq, int sk, int heads) {
  int n = (sq + 63) / 64, key_tiles = (sk + 63) / 64, tile = blockIdx.x % n;
  i64 which = blockIdx.x / n;
  const u16 *m = mask + which / heads * sb + which % heads * sh;
  unsigned char *t = tiles + (which * n + tile) * key_tiles;
  int lane = threadIdx.x % 32;
  for (int k = threadIdx.x; k < key_tiles; k += 256) t[k] = 0;
  __syncthreads();
  for (int r = threadIdx.x / 32; r < 64; r += 8) {
    int i = tile * 64 + r;
    if (i >= sq) break;
    int first = 0, past = 0, live = 0, other = 0;
    for (int k = 0; k < key_tiles; k++) {
      u32 any = 0;
      for (int half = 0; half < 2; half++) {
        int j = k * 64 + half * 32 + lane;
        u32 x = j < sk ? m[i * ss + j] : 0xfc00u;
        u32 seen = __ballot_sync(~0u, (x & 0x7fffu) < 0x7c00u);
        u32 not_zero = __ballot_sync(~0u, (x & 0x7fffu) != 0) & seen;
        if (seen) {
          if (!live) first = k * 64 + half * 32 + __ffs(seen) - 1;
          past = k * 64 + half * 32 + 32 - __clz(seen);
          live += __popc(seen);
          other |= not_zero != 0;
        }
        any |= seen;
      }
      if (any && lane == 0) t[k] = 1;
    }
    int4 row;
    row.x = first, row.y = past, row.z = live, row.w = other;
    if (lane == 0) rows[which * sq + i] = row;
  }
}
