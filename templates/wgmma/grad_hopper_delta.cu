//| needs "c.box c.br l.within l.spread"
//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- D by two warps beside the products: where Q, dO and O of a block have landed, they leave its LSE and D ----
// As fa_delta would leave them in memory: LSE in base 2, and then D. Of a row that sees no key LSE is +inf, and D is 0 whatever its dO is;
// rows past the last are such. The barrier that the products wait for is that of Q.
constexpr int DELTA_WARPS = 2;
constexpr int DELTA_CHUNKS = ROW / 16, DELTA_PASS = 32 / DELTA_CHUNKS;  // lanes of a row, rows at once
// D of 32 rows, one for each lane: of those at once each has DELTA_CHUNKS lanes, and what these have of a row is added up by the one that
// counts as many before it in them as there were rows at once before it. O and dO have their columns in the same order.
__device__ __forceinline__ int delta_row(int lane) { return lane % DELTA_CHUNKS * DELTA_PASS + lane / DELTA_CHUNKS; }
__device__ __forceinline__ float delta_of_landed(u32 o, u32 grad_o, int lane) {
  float sum[DELTA_CHUNKS];
#pragma unroll
  for (int pass = 0; pass < DELTA_CHUNKS; pass++) sum[pass] = 0.f;
#pragma unroll 1
  for (int box = 0; box < BOXES_V; box++)
#pragma unroll
    for (int pass = 0; pass < DELTA_CHUNKS; pass++) {
      const int at = box * BR * ROW + (pass * DELTA_PASS + lane / DELTA_CHUNKS) * ROW + lane % DELTA_CHUNKS * 16;
      sum[pass] += dot_pieces(load_shared_x4(o + at), load_shared_x4(grad_o + at));
    }
#pragma unroll
  for (int i = DELTA_CHUNKS / 2; i > 0; i /= 2)
#pragma unroll
    for (int n = 0; n < i; n++) {
      const bool upper = lane & i;
      const float other = __shfl_xor_sync(~0u, upper ? sum[n] : sum[n + i], i);
      sum[n] = (upper ? sum[n + i] : sum[n]) + other;
    }
  return sum[0];
}
// part: which of the warps.
__device__ __forceinline__ void leave_rows(const Params &p, u32 smem, int part, int lane) {
  grid_wait();
  Ring<STAGES> ring;
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
          const int at = begin + delta_row(lane), row = block * BR + at;
          float lse = -infinity(), extra = 0.f;
          if (row < sequence.sq()) {
            lse = load_here(p.lse + sequence.lse(head, row));
            if (p.grad_lse != nullptr) extra = load_here(p.grad_lse + sequence.lse(head, row));
          }
          mbarrier_wait(grad_o_full(smem, ring.at), ring.parity);
          const float delta = delta_of_landed(o + begin * ROW, grad_o + begin * ROW, lane);
          const bool sees = lse != -infinity();
          const u32 to = rows + (at / 16 * 16 + at % 8 / 2 * 4 + at / 8 % 2 * 2 + at % 2) * 4;
          store_shared(to, __float_as_uint(sees ? lse_log2(p, lse) : infinity()));
          store_shared(to + BR * 4, __float_as_uint(sees ? delta - extra : 0.f));
        }
        release(q_full(smem, ring.at));
      }
  });
}
