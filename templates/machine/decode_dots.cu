//| needs "c.dot_lanes l.chunks_v l.col_lanes l.p"
//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- the rows of a warp as dot products on the FMA units ----
// S: DOT_LANES lanes share a key. Each has every DOT_LANES-th 16-byte chunk of its row, and Q there as fp32. Where the lanes add up, they
// halve the keys that they still hold at each step, so that at the end every lane has scores of its own. O: COL_LANES lanes share a row of
// V, each with a few of its chunks, and every KEYS_V-th key; P comes to them through shared memory.
constexpr int DOT_LANES = $(c.dot_lanes);
constexpr int ABREAST = 32 / DOT_LANES;                                        // keys side by side
constexpr int DOT_CHUNKS = (CHUNKS + DOT_LANES - 1) / DOT_LANES;               // of a lane, of each row of Q and K
constexpr int PASSES = BC / ABREAST < DOT_LANES ? BC / ABREAST : DOT_LANES;    // for one score of a lane
constexpr int TWINS = DOT_LANES / PASSES;                                      // lanes with the same scores
constexpr int SCORES = BC / ABREAST / PASSES;                                  // of a lane, for each row
constexpr int COL_LANES = $(l.col_lanes);
constexpr int COL_CHUNKS = (CHUNKS_V + COL_LANES - 1) / COL_LANES;             // of a lane, of each row of V and O
constexpr int KEYS_V = 32 / COL_LANES;                                         // keys side by side
constexpr int KEYS_LANE = BC / KEYS_V;                                         // that a lane takes of a block
constexpr int WIDTH = 16 / (int)sizeof(element);                               // elements of a chunk
// A new maximum is taken only where some P would be more than 2^LAG: most blocks need none, and no shuffles for one.
constexpr float LAG = 8.f;
constexpr int SMEM_P = $(l.p), SMEM_P_GROUP = BR * BC * 4;                     // P of the groups, in bytes

// Two 16-byte loads of neighbouring lanes fall into different banks: eight lanes read one row, or the rows that tile_offset() keeps apart.
// So the lane's bits that choose the key of S lie below those that choose the chunk where there are few of the latter.
__device__ __forceinline__ int dot_lane(int lane) { return $(c.dot_lanes <= 4 and "lane / ABREAST" or "lane % DOT_LANES"); }
__device__ __forceinline__ int dot_key(int lane) { return $(c.dot_lanes <= 4 and "lane % ABREAST" or "lane / DOT_LANES"); }
constexpr int DOT_BIT = $(c.dot_lanes <= 4 and "ABREAST" or "1");  // of the lane, that tells apart the first two that share a key
//| if l.col_lanes == 4 then
// Eight lanes read two rows of V, and these have to lie four chunks apart, modulo eight.
//| end
__device__ __forceinline__ int key_of_place(int place) {
//| if l.col_lanes == 4 and l.chunks_v % 2 == 1 then
  return place / 2 + place % 2 * 4;
//| elseif l.col_lanes == 4 and l.chunks_v % 4 == 2 then
  return place / 4 * 4 + place / 2 % 2 + place % 2 * 2;
//| else
  return place;
//| end
}
__device__ __forceinline__ int place_of_key(int key) {
//| if l.col_lanes == 4 and l.chunks_v % 2 == 1 then
  return key % 4 * 2 + key / 4;
//| elseif l.col_lanes == 4 and l.chunks_v % 4 == 2 then
  return key / 4 * 4 + key % 2 * 2 + key / 2 % 2;
//| else
  return key;
//| end
}

// The elements of a chunk.
__device__ __forceinline__ void widen(float (&x)[WIDTH], uint4 chunk) {
  const u32 words[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
  for (int i = 0; i < 4; i++) {
//| if p.dtype == "bf16" then
    x[2 * i] = __uint_as_float(words[i] << 16);
    x[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
//| elseif p.dtype == "fp16" then
    asm("{\n.reg .b16 lo, hi;\nmov.b32 {lo, hi}, %2;\ncvt.f32.f16 %0, lo;\ncvt.f32.f16 %1, hi;\n}"
        : "=f"(x[2 * i]), "=f"(x[2 * i + 1])
        : "r"(words[i]));
//| elseif p.dtype == "tf32" then
    x[i] = __uint_as_float(to_tf32(__uint_as_float(words[i])));
//| else
    x[i] = __uint_as_float(words[i]);
//| end
  }
}

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int i = 16; i > 0; i /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, i));
  return x;
}
// Over lanes whose numbers differ by `bit`, or a larger power of two.
__device__ __forceinline__ float sum_from(float x, int bit) {
#pragma unroll
  for (int i = 16; i > 0; i /= 2)
    if (i >= bit) x += __shfl_xor_sync(~0u, x, i);
  return x;
}

// The lane's sums of PASSES keys become, over the lanes that share the keys, the whole sum of one.
__device__ __forceinline__ float scatter_sum(float (&x)[PASSES], int lane) {
  int left = PASSES;
#pragma unroll
  for (int share = DOT_LANES / 2; share > 0; share /= 2) {
    const int bit = share * DOT_BIT;
    if (left > 1) {
      left /= 2;
      const bool upper = (lane & bit) != 0;
#pragma unroll
      for (int i = 0; i < PASSES / 2; i++)
        if (i < left) {
          const float give = upper ? x[i] : x[i + left];
          x[i] = (upper ? x[i + left] : x[i]) + __shfl_xor_sync(~0u, give, bit);
        }
    } else {
      x[0] += __shfl_xor_sync(~0u, x[0], bit);
    }
  }
  return x[0];
}

struct WarpRows {
  int lane;
  u32 probabilities;  // of the group, in shared memory: of each row those of the first place, then those of the second ...
  float q[BR][DOT_CHUNKS][WIDTH], o[BR][COL_CHUNKS][WIDTH];
  RowState state[BR];
  __device__ __forceinline__ explicit WarpRows(unsigned char *smem)
      : lane(threadIdx.x % 32), probabilities(shared_address(smem) + SMEM_P + threadIdx.x / 32 * SMEM_P_GROUP) {}

  // The lane's part of Q: row r is query row / group of head row % group. Rows after the last are zeros.
  __device__ __forceinline__ void begin(const Params &p, const Sequence &sequence, const Tile &tile) {
#pragma unroll
    for (int r = 0; r < BR; r++) {
      const int row = tile.row + r;
      const bool real = row < tile.rows;
      const int query = query_of(p, row), head = tile.head + row - query * p.group;
      const char *const from = (const char *)((const element *)p.q + sequence.q() + query * p.q_ss + head * p.q_sh);
#pragma unroll
      for (int c = 0; c < DOT_CHUNKS; c++) {
        const int byte = (c * DOT_LANES + dot_lane(lane)) * 16;
//| if p.align >= 16 then
        uint4 chunk = make_uint4(0, 0, 0, 0);
        if (real && byte < D * (int)sizeof(element)) chunk = *(const uint4 *)(from + byte);
        widen(q[r][c], chunk);
//| else
        widen(q[r][c], make_uint4(query_word(from, byte, real), query_word(from, byte + 4, real), query_word(from, byte + 8, real),
                                  query_word(from, byte + 12, real)));
//| end
      }
//| if p.has_batch_invariant then
    }
  }
  // No keys yet, of the same Q.
  __device__ __forceinline__ void fresh() {
#pragma unroll
    for (int r = 0; r < BR; r++) {
//| end
      state[r] = {-infinity(), 0.f};
#pragma unroll
      for (int c = 0; c < COL_CHUNKS; c++)
#pragma unroll
        for (int i = 0; i < WIDTH; i++) o[r][c][i] = 0.f;
    }
  }

  // Key of the block that score i is of.
  __device__ __forceinline__ int key_of_score(int i) const { return (i * PASSES + dot_lane(lane) / TWINS) * ABREAST + dot_key(lane); }

  __device__ __forceinline__ void scores(float (&s)[BR][SCORES], u32 k_tile) const {
#pragma unroll
    for (int i = 0; i < SCORES; i++) {
      float sum[BR][PASSES];
#pragma unroll
      for (int r = 0; r < BR; r++)
#pragma unroll
        for (int n = 0; n < PASSES; n++) sum[r][n] = 0.f;
#pragma unroll
      for (int n = 0; n < PASSES; n++)
#pragma unroll
        for (int c = 0; c < DOT_CHUNKS; c++) {
          const int row = (i * PASSES + n) * ABREAST + dot_key(lane), chunk = c * DOT_LANES + dot_lane(lane);
          uint4 words = make_uint4(0, 0, 0, 0);
          if (CHUNKS % DOT_LANES == 0 || c + 1 < DOT_CHUNKS || chunk < CHUNKS)
            words = load_shared_x4(k_tile + tile_offset<CHUNKS>(row, chunk));
          float k[WIDTH];
          widen(k, words);
#pragma unroll
          for (int r = 0; r < BR; r++)
#pragma unroll
            for (int x = 0; x < WIDTH; x++) sum[r][n] = fmaf(q[r][c][x], k[x], sum[r][n]);
        }
#pragma unroll
      for (int r = 0; r < BR; r++) s[r][i] = scatter_sum(sum[r], lane);
    }
  }

  // One block of keys. masked: some row does not see all of them.
  __device__ __forceinline__ void attend(const Params &p, const Sequence &sequence, const Tile &tile, int block, bool masked, u32 k_tile,
                                         u32 v_tile) {
    float s[BR][SCORES];
    scores(s, k_tile);
//| indented(4, pr.begin_score, "tile.head")
//| if pr.of_pairs then
//|   indented(4, pr.apply, "dots", "s", "true", "masked")
//| end
    if (masked) {
//| indented(6, pr.hide, "dots", "s", "-infinity()")
    }
#pragma unroll
    for (int r = 0; r < BR; r++) {
      float top = s[r][0];
#pragma unroll
      for (int i = 1; i < SCORES; i++) top = fmaxf(top, s[r][i]);
      if (__any_sync(~0u, (top - state[r].m) * $(pr.unit_log2) > LAG)) {
        const float keep = raise(state[r], fmaxf(state[r].m, warp_max(top)), $(pr.unit_log2));
#pragma unroll
        for (int c = 0; c < COL_CHUNKS; c++)
#pragma unroll
          for (int x = 0; x < WIDTH; x++) o[r][c][x] *= keep;
      }
      const float shift = shift_of(state[r].m, $(pr.unit_log2));
#pragma unroll
      for (int i = 0; i < SCORES; i++) {
        const float e = probability(s[r][i], $(pr.unit_log2), shift);
        const int key = key_of_score(i), at = place_of_key(key % KEYS_V) * KEYS_LANE + key / KEYS_V;
        if (TWINS == 1 || dot_lane(lane) % TWINS == 0) {
          state[r].l += e;
          store_shared(probabilities + (r * BC + at) * 4, __float_as_uint(e));
        }
      }
    }
    __syncwarp();  // P is complete. The next block's comes after all lanes have waited for its keys
    accumulate(v_tile);
  }

  // O += P V.
  __device__ __forceinline__ void accumulate(u32 v_tile) {
    constexpr int STEP = KEYS_LANE < 4 ? KEYS_LANE : 4;  // keys whose P is loaded at once
    const int place = lane / COL_LANES;
#pragma unroll
    for (int n = 0; n < KEYS_LANE; n += STEP) {
      float e[BR][STEP];
#pragma unroll
      for (int r = 0; r < BR; r++) {
        const u32 from = probabilities + (r * BC + place * KEYS_LANE + n) * 4;
        if constexpr (STEP == 4) {
          const uint4 x = load_shared_x4(from);
          e[r][0] = __uint_as_float(x.x);
          e[r][1] = __uint_as_float(x.y);
          e[r][2] = __uint_as_float(x.z);
          e[r][3] = __uint_as_float(x.w);
        } else {
#pragma unroll
          for (int i = 0; i < STEP; i++) e[r][i] = __uint_as_float(load_shared(from + i * 4));
        }
      }
#pragma unroll
      for (int i = 0; i < STEP; i++)
#pragma unroll
        for (int c = 0; c < COL_CHUNKS; c++) {
          float v[WIDTH];
          // Lanes after the last chunk read that one; what they compute of it is not used.
          widen(v, load_shared_x4(v_tile + tile_offset<CHUNKS_V>((n + i) * KEYS_V + key_of_place(place),
                                                                 min(c * COL_LANES + lane % COL_LANES, CHUNKS_V - 1))));
#pragma unroll
          for (int r = 0; r < BR; r++)
#pragma unroll
            for (int x = 0; x < WIDTH; x++) o[r][c][x] = fmaf(e[r][i], v[x], o[r][c][x]);
        }
    }
  }

  // O, m and l to where the block finds those of the group. rows: of the tile.
  __device__ __forceinline__ void leave(unsigned char *exchange, float2 *states, int rows) const {
#pragma unroll
    for (int r = 0; r < BR; r++) {
      const float l = sum_from(state[r].l, 1);
      if (lane == 0 && r < rows) states[r] = make_float2(state[r].m, l);
#pragma unroll
      for (int c = 0; c < COL_CHUNKS; c++) {
        float x[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) x[i] = sum_from(o[r][c][i], COL_LANES);
        const int chunk = c * COL_LANES + lane % COL_LANES;
        if (lane < COL_LANES && chunk < CHUNKS_V && r < rows) {
#pragma unroll
          for (int i = 0; i < WIDTH; i += 4) {
//| if p.bytes == 2 then
            // Lanes 4 to 7 of eight store their second half first: the first four's banks are taken.
            const bool second = (i > 0) != (lane % 8 >= 4);
            const float4 four = second ? make_float4(x[4], x[5], x[6], x[7]) : make_float4(x[0], x[1], x[2], x[3]);
            *(float4 *)(exchange + exchange_offset(r, chunk * 4 + (second ? 2 : 0))) = four;
//| else
            *(float4 *)(exchange + exchange_offset(r, chunk * 2)) = make_float4(x[0], x[1], x[2], x[3]);
//| end
          }
        }
      }
    }
  }
};
