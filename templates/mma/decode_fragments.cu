//| needs "l.low?"
//| local ob = l.low and "OB" or "VB"
//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- the rows of a warp as fragments of mma.sync and wgmma ----
struct WarpRows {
  Lane at;
  int row;  // the first, of the tile
  QFragments q;
  float o[MB][$(ob)][4];
//| if l.low then
  float factor[MB][2];  // of the row's products: their sum times it is Q K^T
  float v_factor;       // of O
//| end
  RowState state[MB][2];
  __device__ __forceinline__ explicit WarpRows(unsigned char *) : at(make_lane()), row(threadIdx.x % GROUP_THREADS / 32 * (16 * MB)) {}

  __device__ __forceinline__ void begin(const Params &p, const Sequence &sequence, const Tile &tile) {
//| if l.low then
    load_q(q, factor, p, sequence, tile, row, at);
    v_factor = $(f32(2.0 ^ l.low.v.power))$(p.v_scale == 1 and " * v_scale_of(p, sequence, tile.kv_head)" or "");
//| else
    load_q(q, p, sequence, tile, row, at);
//| end
//| if p.has_batch_invariant then
  }
  // No keys yet, of the same Q.
  __device__ __forceinline__ void fresh() {
//| end
#pragma unroll
    for (int m = 0; m < MB; m++) {
      state[m][0] = state[m][1] = {-infinity(), 0.f};
#pragma unroll
      for (int n = 0; n < $(ob); n++) o[m][n][0] = o[m][n][1] = o[m][n][2] = o[m][n][3] = 0.f;
    }
  }

  // One block of keys. masked: some row does not see all of them.
  __device__ __forceinline__ void attend(const Params &p, const Sequence &sequence, const Tile &tile, int block, bool masked, u32 k_tile,
                                         u32 v_tile) {
    float s[MB][NB][4];
    scores(s, q, k_tile, at);
//| if l.low then
#pragma unroll
    for (int m = 0; m < MB; m++)
#pragma unroll
      for (int n = 0; n < NB; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) s[m][n][i] *= factor[m][i / 2];
//| end
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
//| if l.low and l.low.v.block == 1 then
#pragma unroll
          for (int chunk = 0; chunk < CHUNKS_V; chunk++)
            if (DV % 16 == 0 || chunk * 16 + at.t * 4 < COLS) {
              const float(&even)[4] = o[m][2 * chunk], (&odd)[4] = o[m][2 * chunk + 1];
              *(float4 *)(exchange + exchange_offset(r, chunk * 8 + at.t * 2)) =
                  make_float4(even[2 * h] * v_factor, odd[2 * h] * v_factor, even[2 * h + 1] * v_factor, odd[2 * h + 1] * v_factor);
            }
//| elseif l.low then
#pragma unroll
          for (int v = 0; v < OB; v++)
#pragma unroll
            for (int x = 0; x < 2; x++) {
              const int r_of = v % V_WORD, byte = (v / V_WORD * 8 + 2 * at.t + x) * 2 + r_of * 2 / V_WORD;
              const int column = v_element_at(byte, V_WORD == 4 ? r_of % 2 : 0);
              if (column >= 0 && column < COLS)
                *(float *)(exchange + exchange_offset(r, column / 2) + column % 2 * 4) = o[m][v][2 * h + x] * v_factor;
            }
//| else
#pragma unroll
          for (int v = 0; v < VB; v++)
            *(float2 *)(exchange + exchange_offset(r, v * 4 + at.t)) = make_float2(o[m][v][2 * h], o[m][v][2 * h + 1]);
//| end
        }
      }
  }
};
