//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// fagen $(version), flash attention forward in exact fp32: O = softmax(scale Q K^T, masked) V and LSE.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

// ---- the problem ----
constexpr int D = $(p.d);    // head_dim of Q and K
constexpr int DV = $(p.dv);  // head_dim of V and O

// ---- the config ----
constexpr int BR = $(c.br);        // rows of Q per block
constexpr int BC = $(c.bc);        // keys per iteration
constexpr int WARPS = $(c.warps);  // each owns BR / WARPS rows
constexpr int THREADS = WARPS * 32;

// ---- what follows from them ----
constexpr int RI = $(l.ri);        // rows of a lane
constexpr int CJ = BC / 16;   // columns of S of a lane
constexpr int VJ = $(l.vj);        // float4 of O of a lane, per row$(l.half and ", and a float2 of the columns behind them" or "")
constexpr int CHUNKS = $(l.chunks);    // float4 of a row of Q and K
constexpr int CHUNKS_V = $(l.chunks_v);  // float4 of a row of V
//| if l.p_pieces > 1 then
constexpr int PIECES = $(l.p_pieces);  // P of so many keys of a block lies in shared memory, one piece after the other
//| end
constexpr int SMEM_Q = $(l.q), SMEM_K = $(l.k), SMEM_V = $(l.v), SMEM_P = $(l.p);  // offsets in dynamic shared memory

//| include "machine/prelude.cu"

//| include "tiles/tile.cu"

//| include "pairs/sequence.cu"

//| include "pairs/mask.cu"

//| include "work/tile_order.cu"

//| include "tiles/softmax.cu"

//| include "pairs/philox.cu"

typedef float element;

//| include "pairs/exact_rows.cu"

// Over the 16 lanes that share rows.
__device__ __forceinline__ float half_warp_max(float x) {
#pragma unroll
  for (int i = 8; i > 0; i /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, i));
  return x;
}
__device__ __forceinline__ float half_warp_sum(float x) {
#pragma unroll
  for (int i = 8; i > 0; i /= 2) x += __shfl_xor_sync(~0u, x, i);
  return x;
}

__device__ __forceinline__ float4 load_float4(u32 from) {
  const uint4 x = load_shared_x4(from);
  return make_float4(__uint_as_float(x.x), __uint_as_float(x.y), __uint_as_float(x.z), __uint_as_float(x.w));
}
//| if l.half then
__device__ __forceinline__ float2 load_float2(u32 from) {
  float2 x;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(from) : "memory");
  return x;
}
//| end
__device__ __forceinline__ void fma4(float4 &sum, float x, const float4 &y) {
  sum.x = fmaf(x, y.x, sum.x);
  sum.y = fmaf(x, y.y, sum.y);
  sum.z = fmaf(x, y.z, sum.z);
  sum.w = fmaf(x, y.w, sum.w);
}
//| if l.half then
__device__ __forceinline__ void fma2(float2 &sum, float x, const float2 &y) {
  sum.x = fmaf(x, y.x, sum.x);
  sum.y = fmaf(x, y.y, sum.y);
}
//| end

extern "C" __global__ void __launch_bounds__(THREADS, $(l.blocks)) fa_fwd(const __grid_constant__ Params p) {
  extern __shared__ __align__(128) unsigned char smem[];
  const u32 q_tile = shared_address(smem) + SMEM_Q, k_tile = shared_address(smem) + SMEM_K;
  const u32 v_tile = shared_address(smem) + SMEM_V, p_tile = shared_address(smem) + SMEM_P;
  const u32 thread = threadIdx.x;
  const int x = thread % 16, half = thread / 16 % 2;
  // Row i of this lane. The two halves of a warp take turns in groups of four rows, so that their stores of P do not collide.
  const int warp_row = thread / 32 * (2 * RI);
  auto row_at = [&](int i) { return warp_row + i / 4 * 8 + half * 4 + i % 4; };

//| if l.even then
  const u32 k_lane = k_tile + x * (CHUNKS * 16) + x % 8 * 16, q_lane = q_tile + (warp_row + half * 4) * (CHUNKS * 16) + half * 64;
//| end
//| if l.even_v then
  const u32 v_lane = v_tile + x * 16;
//|   if l.half then
  const u32 v_half = v_tile + VJ * 256 + x * 8;
//|   end
//| end
  // P: chunks of a second four rows are exchanged, four by four, so that both halves of a warp find banks of their own.
  constexpr int P_ROW = BC$(l.p_pieces > 1 and " / " .. l.p_pieces or "") * 4;
  const u32 p_lane = p_tile + (warp_row + half * 4) * P_ROW;
  auto p_at = [&](int i, int byte) { return p_lane + (byte ^ half * 64) + (i / 4 * 8 + i % 4) * P_ROW; };

  const Tile where = tile_of(p, $(wk.block));
  const Sequence sequence = sequence_of(p, where.batch);
  const Range range = $(pr.range_of("where.head", "where.row", "min(where.row + BR, row_count(p, sequence)) - 1"));
  const float *const q = (const float *)p.q + sequence.q();
  const char *const k = (const char *)((const float *)p.k + sequence.k() + where.kv_head * p.k_sh);
  const char *const v = (const char *)((const float *)p.v + sequence.v() + where.kv_head * p.v_sh);

  auto load_k = [&](int block) {
    if (block < range.block_lo) return;
    const long long key = block * BC;
    load_tile<BC, CHUNKS, false, D * 4>(k_tile, k + key * p.k_ss * 4, p.k_ss * 4, range.key_lo - key, range.key_hi - key);
  };
  auto load_v = [&](int block) {
    const long long key = block * BC;
    load_tile<BC, CHUNKS_V, false, DV * 4>(v_tile, v + key * p.v_ss * 4, p.v_ss * 4, range.key_lo - key,
                                           range.key_hi - key);
  };

  float4 o[RI][VJ];
//| if l.half then
  float2 o_half[RI];
//| end
  RowState state[RI];
#pragma unroll
  for (int i = 0; i < RI; i++) {
    state[i] = {-infinity(), 0.f};
#pragma unroll
    for (int j = 0; j < VJ; j++) o[i][j] = make_float4(0.f, 0.f, 0.f, 0.f);
//| if l.half then
    o_half[i] = make_float2(0.f, 0.f);
//| end
  }

//| indented(2, pr.begin_dropout)
//| indented(2, pr.begin_score, "where.head")
//| indented(2, pr.begin_walk, "range", "where.head", "where.row", "min(where.row + BR, row_count(p, sequence)) - 1", 1)
  if (block >= range.block_lo) {
//| if c.pack == 1 then
    if (Share<CHUNKS>::row() < Share<CHUNKS>::STEP)
      for (int r = Share<CHUNKS>::row(); r < BR; r += Share<CHUNKS>::STEP) {
        const Row at = row_of(p, where, where.row + r);
        load_row<CHUNKS, false, D * 4>(q_tile, r, (const char *)(q + at.query * p.q_ss + at.head * p.q_sh),
                                       where.row + r < row_count(p, sequence));
      }
//| else
    load_tile<BR, CHUNKS, false, D * 4>(q_tile, (const char *)(q + where.head * p.q_sh + where.row * p.q_ss), p.q_ss * 4, 0,
                                        row_count(p, sequence) - 1 - where.row);
//| end
    load_k(block);
    cp_async_commit();

    auto step = [&](auto masked) {
      constexpr bool MASKED = decltype(masked)::value;
      cp_async_wait<0>();
      __syncthreads();  // K has arrived, V is free
      load_v(block);
      cp_async_commit();

      float s[RI][CJ];
#pragma unroll
      for (int i = 0; i < RI; i++)
#pragma unroll
        for (int j = 0; j < CJ; j++) s[i][j] = 0.f;
//| local function dots(count, k_row, q_row)
#pragma unroll$(count == 4 and "" or " 4")
      for (int c = 0; c < $(count); c++) {
        float4 kc[CJ];
#pragma unroll
        for (int j = 0; j < CJ; j++) kc[j] = load_float4($(k_row));
#pragma unroll
        for (int i = 0; i < RI; i++) {
          const float4 qc = load_float4($(q_row));
#pragma unroll
          for (int j = 0; j < CJ; j++)
            s[i][j] = fmaf(qc.w, kc[j].w, fmaf(qc.z, kc[j].z, fmaf(qc.y, kc[j].y, fmaf(qc.x, kc[j].x, s[i][j]))));
        }
      }
//| end
//| if l.even then
      // Chunk c of row r lies at chunk c ^ r % 8.
#pragma unroll 1
      for (int four = 0; four < CHUNKS; four += 4) {
        const u32 further = four / 8 * 128, k_at = (k_lane ^ four % 8 * 16) + further, q_at = (q_lane ^ four % 8 * 16) + further;
//|   indented(2, dots, 4, "(k_at ^ c * 16) + j * (16 * CHUNKS * 16)", "q_at + (i / 4 * 8 + i % 4) * (CHUNKS * 16) + (c ^ i % 4) * 16")
      }
//| else
//|   dots("CHUNKS", "k_tile + tile_offset<CHUNKS>(x + 16 * j, c)", "q_tile + tile_offset<CHUNKS>(row_at(i), c)")
//| end
      cp_async_wait<0>();
      __syncthreads();  // V has arrived, K is free
      load_k($(pr.later(1, "block - 1")));
      cp_async_commit();

#pragma unroll
      for (int i = 0; i < RI; i++) {
//| if pr.of_pairs then
//|   indented(8, pr.apply, "ffma", "s", "MASKED")
//| end
        if constexpr (MASKED) {
//| indented(10, pr.hide, "ffma", "s", "-infinity()")
        }
        float m = state[i].m;
#pragma unroll
        for (int j = 0; j < CJ; j++) m = fmaxf(m, s[i][j]);
        const float keep = raise(state[i], half_warp_max(m), $(pr.unit_log2));
        const float shift = shift_of(state[i].m, $(pr.unit_log2));
//| indented(8, pr.dropping, "const Row own = row_of(p, where, where.row + row_at(i));",
//|   "const int number = (int)(where.batch * p.hq + own.head);")
#pragma unroll
        for (int j = 0; j < CJ; j++) {
          $(pr.p_type) e = probability(s[i][j], $(pr.unit_log2), shift);
          state[i].l += e;
//| indented(10, pr.drop_pair, "e", "number", "(int)own.query", "block * BC + x + 16 * j")
//| if l.p_pieces == 1 then
          store_shared(p_at(i, (x + 16 * j) * 4), __float_as_uint(e));
//| else
          s[i][j] = e;
//| end
        }
#pragma unroll
        for (int j = 0; j < VJ; j++) {
          o[i][j].x *= keep;
          o[i][j].y *= keep;
          o[i][j].z *= keep;
          o[i][j].w *= keep;
        }
//| if l.half then
        o_half[i].x *= keep;
        o_half[i].y *= keep;
//| end
      }
//| local function multiply(chunks, from)
#pragma unroll 2
      for (int c = 0; c < $(chunks); c++) {
//|   if l.even_v then
        const u32 v_at = (v_lane ^ c % 2 * 64) + ($(from)4 * c) * (CHUNKS_V * 16);
//|     if l.half then
        const u32 v_half_at = (v_half ^ c % 2 * 64) + ($(from)4 * c) * (CHUNKS_V * 16);
//|     end
//|   end
        float4 vc[4][VJ];
#pragma unroll
        for (int n = 0; n < 4; n++)
#pragma unroll
          for (int j = 0; j < VJ; j++)
//|   if l.even_v then
            vc[n][j] = load_float4((v_at ^ n * 16) + n * (CHUNKS_V * 16) + j * 256);
//|   else
            vc[n][j] = load_float4(v_tile + tile_offset<CHUNKS_V>($(from)4 * c + n, min(x + 16 * j, CHUNKS_V - 1)));
//|   end
//|   if l.half then
        float2 rest[4];
#pragma unroll
        for (int n = 0; n < 4; n++)
//|     if l.even_v then
          rest[n] = load_float2((v_half_at ^ n * 16) + n * (CHUNKS_V * 16));
//|     else
          rest[n] = load_float2(v_tile + tile_offset<CHUNKS_V>($(from)4 * c + n, min(16 * VJ + x / 2, CHUNKS_V - 1)) + x % 2 * 8);
//|     end
//|   end
#pragma unroll
        for (int i = 0; i < RI; i++) {
          const float4 pc = load_float4(p_at(i, c * 16));
#pragma unroll
          for (int j = 0; j < VJ; j++) {
            fma4(o[i][j], pc.x, vc[0][j]);
            fma4(o[i][j], pc.y, vc[1][j]);
            fma4(o[i][j], pc.z, vc[2][j]);
            fma4(o[i][j], pc.w, vc[3][j]);
          }
//|   if l.half then
          fma2(o_half[i], pc.x, rest[0]);
          fma2(o_half[i], pc.y, rest[1]);
          fma2(o_half[i], pc.z, rest[2]);
          fma2(o_half[i], pc.w, rest[3]);
//|   end
        }
      }
      __syncwarp();  // before $(l.p_pieces == 1 and "the next block" or "what follows") overwrites P
//| end
//| if l.p_pieces == 1 then
      __syncwarp();  // P of the warp's rows is complete

//|   multiply("BC / 4", "")
//| else
#pragma unroll
      for (int piece = 0; piece < PIECES; piece++) {
#pragma unroll
        for (int i = 0; i < RI; i++)
#pragma unroll
          for (int j = 0; j < CJ / PIECES; j++)
            store_shared(p_at(i, (x + 16 * j) * 4), __float_as_uint(s[i][piece * (CJ / PIECES) + j]));
        __syncwarp();  // P of the warp's rows is complete

//|   indented(2, multiply, "BC / PIECES / 4", "piece * (BC / PIECES) + ")
      }
//| end
    };
//| pr.walk("range", "step")
    cp_async_wait<0>();
  }

  u32 far = 0, tainted = 0;  // rows of this lane, by bit
  // O / l to memory, LSE = scale m + log(l). A row that saw no key has l = 0: O = 0, LSE = -inf.
#pragma unroll
  for (int i = 0; i < RI; i++) {
    $(pr.sum_type) l = half_warp_sum(state[i].l);
//| local at = "row_of(p, where, where.row + row_at(i))"
//| indented(4, pr.add_sink, "l", "state[i].m", at .. ".head", at .. ".query")
    const float inverse = reciprocal(l)$(pr.out_scale);
    const int row = where.row + row_at(i);
    if (row >= row_count(p, sequence)) continue;
    const Row at = row_of(p, where, row);
    if (is_far(state[i].m, $(pr.unit_log2)) && sees_keys(sequence, (int)at.query)$(pr.and_seen("state[i].m"))) far |= 1u << i;
//| if pr.cuts_right then
    float zero = 0.f;  // NaN where a column is not finite
#pragma unroll
    for (int j = 0; j < VJ; j++)
      zero = fmaf(o[i][j].x, 0.f, fmaf(o[i][j].y, 0.f, fmaf(o[i][j].z, 0.f, fmaf(o[i][j].w, 0.f, zero))));
//|   if l.half then
    zero = fmaf(o_half[i].x, 0.f, fmaf(o_half[i].y, 0.f, zero));
//|   end
    if (!(zero == 0.f)) tainted |= 1u << i;
//| end
    if (p.lse != nullptr && x == 0) p.lse[sequence.lse(at.head, at.query)] = $(pr.log_sum_exp("state[i]", "l", "z"));
    float *const to = (float *)p.o + sequence.o() + at.query * p.o_ss + at.head * p.o_sh;
#pragma unroll
    for (int j = 0; j < VJ; j++) {
      const int col = (x + 16 * j) * 4;
      const float4 y = make_float4(o[i][j].x * inverse, o[i][j].y * inverse, o[i][j].z * inverse, o[i][j].w * inverse);
//| if p.align >= 16 then
      if (col < DV) *(float4 *)(to + col) = y;
//| else
      if (col < DV) to[col] = y.x;
      if (col + 1 < DV) to[col + 1] = y.y;
      if (col + 2 < DV) to[col + 2] = y.z;
      if (col + 3 < DV) to[col + 3] = y.w;
//| end
    }
//| if l.half then
    const int col = VJ * 64 + x * 2;
    const float2 y = make_float2(o_half[i].x * inverse, o_half[i].y * inverse);
//|   if p.align >= 16 then
    if (col < DV) *(float2 *)(to + col) = y;
//|   else
    if (col < DV) to[col] = y.x;
    if (col + 1 < DV) to[col + 1] = y.y;
//|   end
//| end
  }
  if (!__any_sync(~0u, (far | tainted) != 0)) return;
  __syncwarp();
#pragma unroll 1
  for (int i = 0; i < RI; i++) {
    const u32 is_far = __ballot_sync(~0u, far >> i & 1), lanes = is_far | __ballot_sync(~0u, tainted >> i & 1);
#pragma unroll 1
    for (int h = 0; h < 2; h++)
      if ((lanes >> 16 * h & 0xffff) != 0)
        store_again(p, sequence, row_of(p, where, where.row + warp_row + i / 4 * 8 + h * 4 + i % 4), (is_far >> 16 * h & 0xffff) != 0);
  }
}
