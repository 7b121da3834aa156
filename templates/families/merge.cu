//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// fagen $(version), merge of partial results: m = max LSE_i, w_i = exp(LSE_i - m), O = sum w_i O_i / sum w_i, LSE = m + log(sum w_i).
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

// ---- the problem ----
constexpr int DV = $(p.dv);  // columns of a row

// ---- the config ----
constexpr int THREADS = $(l.threads);
constexpr int TEAM = $(c.team);    // lane groups that share the parts of a row
constexpr int AHEAD = $(c.ahead);  // parts that a lane loads before it adds them up

// ---- what follows from them ----
constexpr int VEC = $(l.vec);        // columns of a piece, which one instruction loads
constexpr int PIECES = $(l.pieces);  // of a row
constexpr int LANES = $(l.lanes);    // of a group: one holds pieces lane, lane + LANES, ...
constexpr int SHARE = $(l.share);    // pieces of a lane
constexpr int ROWS = $(l.rows);      // that a block has at a time
constexpr int MATES = LANES * TEAM;  // threads of a team
//| if l.mates > 1 then
constexpr int WARPS = $(l.mates);    // of a team
//| end

//| include "machine/prelude.cu"

//| local piece = ({ [16] = "uint4", [8] = "uint2", [4] = "u32", [2] = "u16" })[l.vec * p.bytes]
//| local store = ({ [16] = "uint4", [8] = "uint2", [4] = "u32", [2] = "u16" })[l.store]
//| local words = math.max(1, l.vec * p.bytes // 4)
typedef $(piece) Piece;

//| if p.dtype == "fp16" then
__device__ __forceinline__ float to_float(u16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
//| elseif p.dtype == "bf16" then
__device__ __forceinline__ float to_float(u16 x) { return __uint_as_float((u32)x << 16); }
//| end

// The columns of a piece as fp32.
__device__ __forceinline__ void unpack(float (&x)[VEC], const Piece &piece) {
//| if words == 1 then
  const u32 word[1] = {piece};
//| elseif words == 2 then
  const u32 word[2] = {piece.x, piece.y};
//| else
  const u32 word[4] = {piece.x, piece.y, piece.z, piece.w};
//| end
#pragma unroll
  for (int i = 0; i < VEC; i++)
//| if p.bytes == 4 then
    x[i] = __uint_as_float(word[i]);
//| else
    x[i] = to_float((u16)(word[i / 2] >> (i % 2 * 16)));
//| end
}

// Columns of O in its type.
__device__ __forceinline__ void store(void *to, const float (&x)[VEC]) {
//| local per = l.store // p.o_bytes
#pragma unroll
  for (int i = 0; i < VEC; i += $(per)) {
//| local function word(i)
//|   if p.o_bytes == 4 then return ("__float_as_uint(x[i + %d])"):format(i) end
//|   return ("pack2(x[i + %d], x[i + %d])"):format(2 * i, 2 * i + 1)
//| end
//| if l.store == 16 then
    const uint4 word = make_uint4($(word(0)), $(word(1)), $(word(2)), $(word(3)));
//| elseif l.store == 8 then
    const uint2 word = make_uint2($(word(0)), $(word(1)));
//| elseif l.store == 4 then
    const u32 word = $(word(0));
//| else
    const u16 word = (u16)pack2(x[i], 0.f);
//| end
    *($(store) *)((char *)to + i * $(p.o_bytes)) = word;
  }
}

// A row's parts and what they add up to.
struct Row {
  const char *part;  // of part 0
  const float *lse;
  int parts;
};

// Parts `first`, first + TEAM, ... with their LSE. Of one without keys nothing is added: with SKIP nothing is read either.
template <bool SKIP>
__device__ __forceinline__ void load(const Params &p, const Row &row, int first, int lane, Piece (&piece)[AHEAD][SHARE],
                                     float (&lse)[AHEAD]) {
#pragma unroll
  for (int k = 0; k < AHEAD; k++) {
    const int i = first + k * TEAM;
    lse[k] = i < row.parts ? row.lse[i * p.part_lse_sp] : -infinity();
  }
#pragma unroll
  for (int k = 0; k < AHEAD; k++) {
    const int i = first + k * TEAM;
    const char *const from = row.part + i * p.part_sp * $(p.bytes);
    if (i < row.parts && (!SKIP || lse[k] != -infinity())) {
#pragma unroll
      for (int s = 0; s < SHARE; s++)
        if (lane + s * LANES < PIECES) piece[k][s] = *(const Piece *)(from + (lane + s * LANES) * (int)sizeof(Piece));
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) fa_merge(const __grid_constant__ Params p) {
//| if l.mates > 1 then
  extern __shared__ __align__(16) float shared[];
  float *const tops = shared, *const sums = shared + THREADS / 32;  // of each warp
//| end
  const int mate = threadIdx.x % MATES, lane = mate % LANES, member = mate / LANES, slot = threadIdx.x / MATES;
//| if a.cc >= 90 then
  asm volatile("griddepcontrol.wait;" ::: "memory");  // this kernel may have begun before what precedes it has ended
//| end
  for ($(wk.steps("long long", "base", "p.total", "ROWS"))) {
    const bool real = base + slot < p.total;
    const int index = real ? (int)(base + slot) : 0, head = index % p.hq, query = index / p.hq % p.sq;
    const long long batch = index / p.hq / p.sq;
    Row row;
    row.part = (const char *)p.part + (batch * p.part_sb + query * p.part_ss + head * p.part_sh) * $(p.bytes);
    row.lse = p.part_lse + (batch * p.hq + head) * p.sq + query;
    row.parts = real ? p.parts : 0;

    // The first parts are on their way while the team looks for the largest LSE.
    Piece piece[AHEAD][SHARE];
    float lse[AHEAD], m = -infinity();
    load<false>(p, row, member, lane, piece, lse);
    for (int i = mate; i < row.parts; i += MATES) m = fmaxf(m, row.lse[i * p.part_lse_sp]);
#pragma unroll
    for (int i = min(MATES, 32) / 2; i > 0; i /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, i));
//| if l.mates > 1 then
    if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = m;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < WARPS; w++) m = fmaxf(m, tops[slot * WARPS + w]);
//| end

    // LSE of +inf or NaN makes l, and with it O and LSE, NaN.
    float sum[SHARE][VEC] = {}, l = 0.f;
    for (int first = member; first < row.parts;) {
#pragma unroll
      for (int k = 0; k < AHEAD; k++) {
        if (lse[k] == -infinity()) continue;  // whatever the part holds
        const float weight = $(pr.exp("lse[k]", "m"));
        l += weight;
#pragma unroll
        for (int s = 0; s < SHARE; s++) {
          if (lane + s * LANES >= PIECES) continue;
          float x[VEC];
          unpack(x, piece[k][s]);
#pragma unroll
          for (int v = 0; v < VEC; v++) sum[s][v] = fmaf(weight, x[v], sum[s][v]);
        }
      }
      first += AHEAD * TEAM;
      if (first < row.parts) load<true>(p, row, first, lane, piece, lse);
    }

    // Over the groups of a warp, then over the warps of the team: in an order that is always the same.
#pragma unroll
    for (int i = LANES; i < min(MATES, 32); i *= 2) {
      l += __shfl_xor_sync(~0u, l, i);
#pragma unroll
      for (int s = 0; s < SHARE; s++)
#pragma unroll
        for (int v = 0; v < VEC; v++) sum[s][v] += __shfl_xor_sync(~0u, sum[s][v], i);
    }
//| if l.mates > 1 then
    float *const mine = sums + threadIdx.x / 32 * (LANES * (SHARE * VEC + 1));
    if (threadIdx.x % 32 < LANES && mate >= 32) {
      mine[lane] = l;
#pragma unroll
      for (int s = 0; s < SHARE; s++)
#pragma unroll
        for (int v = 0; v < VEC; v++) mine[(1 + s * VEC + v) * LANES + lane] = sum[s][v];
    }
    __syncthreads();
    if (mate < LANES)
      for (int w = 1; w < WARPS; w++) {
        const float *const other = mine + w * (LANES * (SHARE * VEC + 1));
        l += other[lane];
#pragma unroll
        for (int s = 0; s < SHARE; s++)
#pragma unroll
          for (int v = 0; v < VEC; v++) sum[s][v] += other[(1 + s * VEC + v) * LANES + lane];
      }
//| else
    __syncwarp();  // O and LSE may take the place of a part: all of its row has been read
//| end

    if (real && mate < LANES) {
      const float inverse = l == 0.f ? 0.f : 1.f / l;
      char *const to = (char *)p.o + (batch * p.o_sb + query * p.o_ss + head * p.o_sh) * $(p.o_bytes);
#pragma unroll
      for (int s = 0; s < SHARE; s++) {
#pragma unroll
        for (int v = 0; v < VEC; v++) sum[s][v] *= inverse;
        if (lane + s * LANES < PIECES) store(to + (lane + s * LANES) * (VEC * $(p.o_bytes)), sum[s]);
      }
      if (lane == 0 && p.lse != nullptr)  // -inf of no key
        p.lse[batch * p.lse_sb + query * p.lse_ss + head * p.lse_sh] = $(pr.lse("m", "l"));
    }
  }
}
