//| -- pair_products: S and dP of a tile of 64 queries and 64 keys by 256 threads, each of which has 4 x 4 pairs in the end: by mma.sync
//| -- where both operands have 16 bits, else on the FMA units.
//| local matrix = p.bytes == 2 and p.o == p.dtype
constexpr int PAIRS = 64;  // queries and keys of a tile
constexpr int PAIRS_DEPTH = $(matrix and 64 or 32);  // columns of both operands that are in shared memory
constexpr int PAIRS_PITCH = $(matrix and "PAIRS_DEPTH + 8" or "PAIRS + 4");
constexpr int PAIRS_SHARED = 4608;  // floats

//| if matrix then
// sum += a b: 16 rows, 8 columns, 16 deep.
__device__ __forceinline__ void pair_mma(float (&sum)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.$(p.dtype == "bf16" and "bf16.bf16" or "f16.f16").f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Columns k0 and on of 64 rows: of row(i), or zeros where that is null. WIDTH: the columns that there are.
template <int WIDTH, class Row>
__device__ __forceinline__ void load_pairs(u16 *to, int k0, Row row) {
#pragma unroll
  for (int i = threadIdx.x; i < PAIRS * PAIRS_DEPTH / 8; i += 256) {
    const int at = i / (PAIRS_DEPTH / 8), k = k0 + i % (PAIRS_DEPTH / 8) * 8;
    const u16 *const from = row(at);
    uint4 x = make_uint4(0, 0, 0, 0);
//|   if p.align >= 16 then
    if (from != nullptr && k < WIDTH) x = *(const uint4 *)(from + k);
//|   else
    u32 words[8];
#pragma unroll
    for (int n = 0; n < 8; n++) words[n] = from != nullptr && k + n < WIDTH ? from[k + n] : 0;
    x = make_uint4(words[0] | words[1] << 16, words[2] | words[3] << 16, words[4] | words[5] << 16, words[6] | words[7] << 16);
//|   end
    *(uint4 *)(to + at * PAIRS_PITCH + k - k0) = x;
  }
}

// sum[i][j] = the product of row 4 y + i and key 4 x + j over WIDTH columns.
template <int WIDTH, class Row, class Key>
__device__ __forceinline__ void pair_product(float (&sum)[4][4], float *shared, Row row, Key key) {
  u16 *const rows = (u16 *)shared, *const keys = rows + PAIRS * PAIRS_PITCH;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, first_row = threadIdx.x / 32 % 4 * 16, first_key = threadIdx.x / 128 * 32;
  float part[4][4] = {};
#pragma unroll 1
  for (int k0 = 0; k0 < WIDTH; k0 += PAIRS_DEPTH) {
    load_pairs<WIDTH>(rows, k0, row);
    load_pairs<WIDTH>(keys, k0, key);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < PAIRS_DEPTH; k += 16) {
      if (k0 + k >= WIDTH) break;
      const u16 *const from = rows + (first_row + g) * PAIRS_PITCH + k + 2 * t;
      const u32 a[4] = {*(const u32 *)from, *(const u32 *)(from + 8 * PAIRS_PITCH), *(const u32 *)(from + 8),
                        *(const u32 *)(from + 8 * PAIRS_PITCH + 8)};
#pragma unroll
      for (int n = 0; n < 4; n++) {
        const u16 *const of = keys + (first_key + n * 8 + g) * PAIRS_PITCH + k + 2 * t;
        pair_mma(part[n], a, *(const u32 *)of, *(const u32 *)(of + 8));
      }
    }
    __syncthreads();
  }
  // Through shared memory into the order of the threads' pairs.
#pragma unroll
  for (int n = 0; n < 4; n++)
#pragma unroll
    for (int e = 0; e < 4; e++) shared[(first_row + g + e / 2 * 8) * (PAIRS + 4) + first_key + n * 8 + 2 * t + e % 2] = part[n][e];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) sum[i][j] = shared[(threadIdx.x / 16 * 4 + i) * (PAIRS + 4) + threadIdx.x % 16 * 4 + j];
  __syncthreads();
}

// Where a row of Q, K, V or dO begins.
__device__ __forceinline__ const u16 *pair_row(const void *x, long long at) { return (const u16 *)x + at; }
//| else
//|   local number = p.bytes == 4 and "((const float *)x)[i]" or "__uint_as_float((u32)((const u16 *)x)[i] << 16)"
//|   if p.dtype == "tf32" then number = "__uint_as_float(to_tf32(((const float *)x)[i]))" end
__device__ __forceinline__ float number_of(const void *x, long long i) {
//|   if p.dtype == "fp16" then
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(((const u16 *)x)[i]));
  return y;
//|   else
  return $(number);
//|   end
}

// sum[i][j] = the product of row 4 y + i and key 4 x + j over WIDTH columns; row, key: functions of one of 64 and a column.
template <int WIDTH, class Row, class Key>
__device__ __forceinline__ void pair_product(float (&sum)[4][4], float *shared, Row row, Key key) {
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) sum[i][j] = 0.f;
#pragma unroll 1
  for (int k0 = 0; k0 < WIDTH; k0 += PAIRS_DEPTH) {
#pragma unroll 4
    for (int i = threadIdx.x; i < PAIRS * PAIRS_DEPTH; i += 256) {
      const int k = k0 + i % PAIRS_DEPTH, at = i / PAIRS_DEPTH;
      shared[i % PAIRS_DEPTH * PAIRS_PITCH + at] = k < WIDTH ? row(at, k) : 0.f;
      shared[(PAIRS_DEPTH + i % PAIRS_DEPTH) * PAIRS_PITCH + at] = k < WIDTH ? key(at, k) : 0.f;
    }
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < PAIRS_DEPTH; k++) {
      const float *const rows = shared + k * PAIRS_PITCH + 4 * y, *const keys = shared + (PAIRS_DEPTH + k) * PAIRS_PITCH + 4 * x;
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sum[i][j] = fmaf(rows[i], keys[j], sum[i][j]);
    }
    __syncthreads();
  }
}
//| end
