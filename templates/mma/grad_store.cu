//| needs "l.pass?"
// ---- gradients of a warp's rows to memory ----

//| local first, on = l.pass and ", int first" or "", l.pass and "(first + n)" or "n"
//| local staged = p.grad_bytes == 2 and p.align >= 16
//| if staged then
//|   if l.pass then
// first: the first of the columns, in eights.
//|   end
// scale * sum to the rows of `to` below `rows`, through the warp's own 16 M rows of a tile in shared memory, in 16-byte pieces.
//| else
// scale * sum to the rows of `to` below `rows`.
//| end
template <int M, int CHUNKS, int WIDTH>
__device__ __forceinline__ void store_rows(const Params &p, const float (&sum)[M][CHUNKS][4], float scale, u32 staging, void *to,
                                           long long at, long long stride, int rows$(first)) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int m = 0; m < M; m++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int row = m * 16 + h * 8 + g;
//| if staged then
#pragma unroll
      for (int n = 0; n < CHUNKS; n++)
        store_shared(staging + tile_offset<CHUNKS>(row, n) + t * 4, pack2(sum[m][n][2 * h] * scale, sum[m][n][2 * h + 1] * scale));
//| else
      if (row >= rows) continue;
#pragma unroll
      for (int n = 0; n < CHUNKS; n++) {
        const int col = $(on) * 8 + 2 * t;
        if (col < WIDTH) store_gradient(p, to, at + row * stride + col, sum[m][n][2 * h] * scale);
        if (col + 1 < WIDTH) store_gradient(p, to, at + row * stride + col + 1, sum[m][n][2 * h + 1] * scale);
      }
//| end
    }
//| if staged and l.pass then
  __syncwarp();
  for (int i = lane; i < 16 * M * CHUNKS; i += 32) {
    const int row = i / CHUNKS, chunk = i % CHUNKS;
    if (row < rows && (first + chunk) * 8 < WIDTH)
      *(uint4 *)((u16 *)to + at + row * stride + (first + chunk) * 8) = load_shared_x4(staging + tile_offset<CHUNKS>(row, chunk));
  }
//| elseif staged then
  __syncwarp();
  for (int i = lane; i < 16 * M * CHUNKS; i += 32) {
    const int row = i / CHUNKS, chunk = i % CHUNKS;
    if (row < rows) *(uint4 *)((u16 *)to + at + row * stride + chunk * 8) = load_shared_x4(staging + tile_offset<CHUNKS>(row, chunk));
  }
//| end
}
