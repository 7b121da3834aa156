//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- the rows of a warp as fragments of mma.sync and wgmma ----
struct WarpRows {
  Lane at;
  int row;  // the first, of the tile
  QFragments q;
  float o[MB][VB][4];
  RowState state[MB][2];
  __device__ __forceinline__ explicit WarpRows(unsigned char *) : at(make_lane()), row(threadIdx.x % GROUP_THREADS / 32 * (16 * MB)) {}

  __device__ __forceinline__ void begin(const Params &p, const Sequence &sequence, const Tile &tile) {
    load_q(q, p, sequence, tile, row, at);
//| if p.has_batch_invariant then
  }
  // No keys yet, of the same Q.
  __device__ __forceinline__ void fresh() {
//| end
#pragma unroll
    for (int m = 0; m < MB; m++) {
      state[m][0] = state[m][1] = {-infinity(), 0.f};
#pragma unroll
      for (int n = 0; n < VB; n++) o[m][n][0] = o[m][n][1] = o[m][n][2] = o[m][n][3] = 0.f;
    }
  }

  // One block of keys. masked: some row does not see all of them.
  __device__ __forceinline__ void attend(const Params &p, const Sequence &sequence, const Tile &tile, int block, bool masked, u32 k_tile,
                                         u32 v_tile) {
    float s[MB][NB][4];
    scores(s, q, k_tile, at);
//| indented(4, pr.begin_score, "tile.head")
//| indented(4, pr.scoring_by, "!masked", "s, p, scored, tile.row + row, block, at")
    if (masked) apply_mask(s, p, sequence$(pr.ends_argument), tile.row + row, block, at);
    softmax(s, o, state, $(pr.unit_log2));
    u32 probabilities[MB][P_STEPS][4];
    to_fragments(probabilities, s);
    accumulate(o, probabilities, v_tile, at);
  }

  // O, m and l to where the block finds those of the group. rows: of the tile.
  __device__ __forceinline__ void leave(unsigned char *exchange, float2 *states, int rows) const {
#pragma unroll
    for (int m = 0; m < MB; m++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const float l = quad_sum(state[m][h].l);
        const int r = row + m * 16 + h * 8 + at.g;
        if (r < rows) {
          if (at.t == 0) states[r] = make_float2(state[m][h].m, l);
#pragma unroll
          for (int v = 0; v < VB; v++)
            *(float2 *)(exchange + exchange_offset(r, v * 4 + at.t)) = make_float2(o[m][v][2 * h], o[m][v][2 * h + 1]);
        }
      }
  }
};
