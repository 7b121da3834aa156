// probe: what a chip sustains: products of mma.sync, exponentials, reads, and what a launch costs. No family: plain CUDA, which
// `fagen doctor --probe` runs. All take the same parameters. plain: operands of ones, so that what comes out is known.
typedef unsigned int u32;
typedef unsigned long long u64;

// Two bf16 of +-[1, 2), as random as data are: the clock that a chip keeps depends on them.
__device__ __forceinline__ u32 two_values(u32 seed, int plain) {
  u32 h = seed * 2654435761u;
  h ^= h >> 15;
  h *= 2246822519u;
  h ^= h >> 13;
  return plain ? 0x3f803f80u : (0x3f803f80u | (h & 0x807f807fu));
}

// Eight products of 16 x 8 x 16 under way in each warp; c grows by 16 with each where all is one.
extern "C" __global__ void __launch_bounds__(512) probe_mma(float *out, u64 *clocks, const uint4 *in, u64 n, int rounds, int plain) {
  float c[8][4];
  u32 a[4], b[2];
  for (int i = 0; i < 4; i++) a[i] = two_values(threadIdx.x * 8 + i, plain);
  for (int i = 0; i < 2; i++) b[i] = two_values(threadIdx.x * 8 + 4 + i, plain);
#pragma unroll
  for (int i = 0; i < 8; i++)
    for (int k = 0; k < 4; k++) c[i][k] = 0;
  __syncthreads();
  u64 begin = clock64();
  for (int r = 0; r < rounds; r++)
#pragma unroll
    for (int i = 0; i < 8; i++)
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                   : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  __syncthreads();
  u64 end = clock64();
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; i++)
    for (int k = 0; k < 4; k++) sum += c[i][k];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  if (threadIdx.x == 0) clocks[blockIdx.x] = end - begin;
}

// Eight chains of x = 2^-x in each thread, which come to rest at 0.641186.
extern "C" __global__ void __launch_bounds__(512) probe_exp(float *out, u64 *clocks, const uint4 *in, u64 n, int rounds, int plain) {
  float x[8];
#pragma unroll
  for (int i = 0; i < 8; i++) x[i] = (threadIdx.x + i) * (1.f / 1024);
  __syncthreads();
  u64 begin = clock64();
  for (int r = 0; r < rounds; r++)
#pragma unroll
    for (int i = 0; i < 8; i++) {
      float minus = -x[i];
      asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(x[i]) : "f"(minus));
    }
  __syncthreads();
  u64 end = clock64();
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) sum += x[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  if (threadIdx.x == 0) clocks[blockIdx.x] = end - begin;
}

// n pieces of 16 bytes, `rounds` times, past the L1: the sum of their words.
extern "C" __global__ void __launch_bounds__(512) probe_read(u32 *out, u64 *clocks, const uint4 *in, u64 n, int rounds, int plain) {
  u32 sum = 0;
  u64 step = (u64)gridDim.x * blockDim.x;
  for (int r = 0; r < rounds; r++)
#pragma unroll 4
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
      uint4 v = __ldcg(in + i);
      sum += v.x + v.y + v.z + v.w;
    }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void probe_launch(u32 *out, u64 *clocks, const uint4 *in, u64 n, int rounds, int plain) {
  if (plain) out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
