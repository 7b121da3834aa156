//| needs "c.spread"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// ---- dK and dV out of what the heads of a group have left: 64 keys and 32 columns of one of the two ----
// Parts are added up in the order of the heads. Where a group is done in several launches, sums go from one to the next in fp32, and the last
// stores gradients$(c.spread == 1 and ": their bits are those of one launch" or "").
//| include "tiles/load_sums.cu"

constexpr int FOLD = 16;  // registers of a thread: 32 columns of two rows
constexpr int FOLDS_K = (NK + FOLD - 1) / FOLD, FOLDS = FOLDS_K + (NV + FOLD - 1) / FOLD;

extern "C" __global__ void __launch_bounds__(128) fa_grad_fold(const __grid_constant__ Params p) {
  const int key0 = $(wk.tile()) * 64, fold = $(wk.head("FOLDS")), local = $(wk.batch("FOLDS"));
  const int unit = p.unit + local, kv_head = unit % p.hkv;
  grid_wait();
  if (threadIdx.x == 0) grid_over();
  const Sequence sequence = sequence_of(p, batch_of(p, unit));
//| if p.has_lengths then
  if (key0 >= sequence.sk()) return;
//| end
  const bool values = fold >= FOLDS_K;
  const int first = (values ? fold - FOLDS_K : fold) * FOLD, fours = min(FOLD, (values ? NV : NK) - first) / 4;
  const int before = (values ? NK : 0) + first;
  float4 *const sums = (float4 *)((float *)p.sums_kv + part_of(p, local, key0, before));
  float x[FOLD];
#pragma unroll
  for (int i = 0; i < FOLD / 4; i++) load_sums(x + 4 * i, sums + i * 128, p.member > 0 && i < fours);
#pragma unroll 4
  for (int i = 0; i < spreads(p); i++) {
    const float4 *const part = (const float4 *)((const float *)p.parts_kv + part_of(p, local * spreads(p) + i, key0, before));
#pragma unroll
    for (int n = 0; n < FOLD / 4; n++) {
      const float4 four = n < fours ? part[n * 128] : make_float4(0.f, 0.f, 0.f, 0.f);
      x[4 * n] += four.x, x[4 * n + 1] += four.y, x[4 * n + 2] += four.z, x[4 * n + 3] += four.w;
    }
  }
  if (p.member + p.members < p.group) {
#pragma unroll
    for (int i = 0; i < FOLD / 4; i++)
      if (i < fours) sums[i * 128] = make_float4(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]);
    return;
  }
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, row = key0 + threadIdx.x / 32 * 16 + g;
  const float scale = values ? $(pr.keep_scale) : $(pr.grad_scale);
  void *const to = values ? p.grad_v : p.grad_k;
  const long long stride = values ? p.grad_v_ss : p.grad_k_ss;
  const long long at = (values ? sequence.grad_v() + kv_head * p.grad_v_sh : sequence.grad_k() + kv_head * p.grad_k_sh) + row * stride;
//| if p.grad_bytes == 2 then
#pragma unroll
  for (int h = 0; h < 2; h++) {
    u32 y[4];
#pragma unroll
    for (int i = 0; i < 4; i++) y[i] = pack2(x[4 * i + 2 * h] * scale, x[4 * i + 2 * h + 1] * scale);
    const uint4 eight = gather_block(y[0], y[1], y[2], y[3], t);
    if (t < fours && row + 8 * h < sequence.sk()) *(uint4 *)((u16 *)to + at + 8 * h * stride + (first / 4 + t) * 8) = eight;
  }
//| else
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int e = 0; e < 4; e++)
      if (i < fours && row + e / 2 * 8 < sequence.sk())
        store_gradient(p, to, at + e / 2 * 8 * stride + (first / 4 + i) * 8 + 2 * t + e % 2, x[4 * i + e] * scale);
//| end
}
