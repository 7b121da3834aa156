//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// ---- dQ out of what was added up in fp32, 64 queries of a head ----
extern "C" __global__ void __launch_bounds__(256) fa_grad_q(const __grid_constant__ Params p) {
//| local blocks = p.has_lengths and "((p.sq + 63) / 64)" or "p.tiles"
  const int head = $(wk.head("p.hq")), wg = threadIdx.x / 128;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp_row = threadIdx.x / 32 % 4 * 16;
//| if p.has_lengths then
  grid_wait();
  if (threadIdx.x == 0) grid_over();
  const RowTile at_hand = row_tile<64>(p, $(wk.tile()));
  const int block = at_hand.tile;
  const Sequence sequence = sequence_of(p, at_hand.sequence);
  if (block < 0 || block * 64 >= sequence.sq()) return;
//| else
  const int block = $(wk.tile());
  const Sequence sequence = sequence_of(p, $(wk.batch("p.hq")));
//| end
  const int columns = GradQueries::columns(wg), row = block * 64 + warp_row + g;
//| local number = p.has_lengths and "index" or "batch"
  const float *const from = (const float *)p.sums + (((long long)sequence.$(number) * p.hq + head) * $(blocks) + block) * (64 * D) +
                            wg * 64 * COLUMNS + warp_row * columns + lane * 4;
  const long long to = sequence.grad_q() + row * p.grad_q_ss + head * p.grad_q_sh + wg * COLUMNS;
//| if not p.has_lengths then
  grid_wait();
  if (threadIdx.x == 0) grid_over();
//| end
//| if p.grad_bytes == 2 then
  constexpr int BLOCKS = (COLUMNS + 31) / 32 * 4;  // of eight columns: four at a time, of which a lane stores one
  float4 four[BLOCKS];
#pragma unroll
  for (int n = 0; n < BLOCKS; n++) four[n] = n < columns / 8 ? *(const float4 *)(from + n * 128) : make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
  for (int n = 0; n < BLOCKS; n += 4) {
    u32 x[2][4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      x[0][i] = pack2(four[n + i].x * $(pr.grad_scale), four[n + i].y * $(pr.grad_scale)),
      x[1][i] = pack2(four[n + i].z * $(pr.grad_scale), four[n + i].w * $(pr.grad_scale));
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const uint4 eight = gather_block(x[h][0], x[h][1], x[h][2], x[h][3], t);
      if (n + t < columns / 8 && row + 8 * h < sequence.sq()) *(uint4 *)((u16 *)p.grad_q + to + 8 * h * p.grad_q_ss + (n + t) * 8) = eight;
    }
  }
//| else
  for (int n = 0; n < columns / 8; n++) {
    const float4 four = *(const float4 *)(from + n * 128);
    const float x[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int e = 0; e < 4; e++)
      if (row + e / 2 * 8 < sequence.sq())
        store_gradient(p, p.grad_q, to + e / 2 * 8 * p.grad_q_ss + n * 8 + 2 * t + e % 2, x[e] * $(pr.grad_scale));
  }
//| end
}
