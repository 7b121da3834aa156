//| needs "l.spread"
// ---- D by two warps beside the products: where Q, dO and O of a block have landed, they leave its LSE and D ----
// As fa_delta would leave them in memory: LSE in base 2, and then D. Of a row that sees no key LSE is +inf, and D is 0 whatever its dO is;
// rows past the last are such. The barrier that the products wait for is that of Q.
constexpr int DELTA_WARPS = 2;

//| include "machine/mma_m16n8k16.cu"

// The diagonal of dO O^T of 16 rows, whose boxes lie BR rows apart: of rows g and g + 8, in the lane whose t is g / 2.
__device__ __forceinline__ float2 delta_of_landed(u32 o, u32 grad_o, int lane) {
  const int row = lane % 16, swizzle = ROW == 128 ? row % 8 : ROW == 64 ? row / 2 % 4 : row / 4 % 2;
  float upper[4] = {0.f, 0.f, 0.f, 0.f}, lower[4] = {0.f, 0.f, 0.f, 0.f};
#pragma unroll
  for (int box = 0; box < BOXES_V; box++)
#pragma unroll
    for (int i = 0; i < BOX / 16; i++) {
      const int at = box * BR * ROW + row * ROW + ((2 * i + lane / 16) ^ swizzle) * 16;
      u32 a[4], b[4];
      ldmatrix_x4(a, grad_o + at), ldmatrix_x4(b, o + at);
      mma_m16n8k16(upper, a, b[0], b[2]);
      mma_m16n8k16(lower, a, b[1], b[3]);
    }
  const bool odd = lane / 4 % 2;
  return make_float2(odd ? upper[1] : upper[0], odd ? lower[3] : lower[2]);
}
// part: which of the warps.
__device__ __forceinline__ void leave_rows(const Params &p, u32 smem, int part, int lane) {
  grid_wait();
  Ring<STAGES> ring;
  const int g = lane / 4;
  each_tile(p, smem, [&](const TileQueue &, const Unit &unit, const Sequence &sequence, int, const QueryBlocks &blocks) {
    const int first = first_head(p, unit), end = first + $(l.spread and "unit.heads" or "p.members");
#pragma unroll 1
    for (int head = first; head < end; head++)
#pragma unroll 1
      for (int block = blocks.lo; block <= blocks.hi; block++, ring.next()) {
        const u32 o = smem + SMEM_O + ring.at * GRAD_O_TILE, grad_o = smem + SMEM_GRAD_O + ring.at * GRAD_O_TILE;
        const u32 rows = smem + SMEM_ROWS + ring.at * BR * 8;
#pragma unroll
        for (int begin = part * 32; begin < BR; begin += DELTA_WARPS * 32) {
          const int row = block * BR + begin + lane;  // each lane one row
          float lse = -infinity(), extra = 0.f;
          if (row < sequence.sq()) {
            lse = load_here(p.lse + sequence.lse(head, row));
            if (p.grad_lse != nullptr) extra = load_here(p.grad_lse + sequence.lse(head, row));
          }
          const bool sees = lse != -infinity();
          const u32 seen = __ballot_sync(~0u, sees);
          mbarrier_wait(grad_o_full(smem, ring.at), ring.parity);
          const u32 to = rows + (begin + lane / 16 * 16 + lane % 8 / 2 * 4 + lane / 8 % 2 * 2 + lane % 2) * 4;
          store_shared(to, __float_as_uint(sees ? lse_log2(p, lse) : infinity()));
#pragma unroll 1
          for (int n = 0; n < 2; n++) {
            const float2 d = delta_of_landed(o + (begin + n * 16) * ROW, grad_o + (begin + n * 16) * ROW, lane);
            const float extra0 = __shfl_sync(~0u, extra, n * 16 + g), extra1 = __shfl_sync(~0u, extra, n * 16 + g + 8);
            const u32 at = rows + (BR + begin + n * 16 + g / 2 * 4 + g % 2) * 4, here = seen >> (n * 16 + g);
            if (lane % 4 == g / 2) {
              store_shared(at, __float_as_uint(here & 1 ? d.x - extra0 : 0.f));
              store_shared(at + 8, __float_as_uint(here >> 8 & 1 ? d.y - extra1 : 0.f));
            }
          }
        }
        release(q_full(smem, ring.at));
      }
  });
}
