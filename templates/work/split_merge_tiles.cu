//| needs "l.even_rows? l.half_parts? l.placed? l.rests? l.merge_threads l.pdl"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| local log2_scale, scale = pr.unit_log2, pr.unit
// ---- the second step: what the parts of all tiles are together, a warp to eight rows and 32 columns, or of many parts a block ----
// A part lies as the threads held it (work/part_rows.cu). The lanes of a quad have a row, and each weighs one of four parts.
constexpr int FOURS = 2;                         // of a lane, of a row
constexpr int GROUPS = COLS / 16 / FOURS;        // of columns
constexpr int WARPS = $(l.merge_threads // 32);
constexpr int MANY = 2 * WARPS;  // of so many parts and more each warp adds up a share, where pieces are few

// What some parts of rows 8 * eight to 8 * eight + 7 of tile `number` are together, of this lane's row, and of its columns.
struct Piece {
  float m, l;
  float4 o[FOURS];
};
__device__ __forceinline__ Piece sum_of_parts(const Params &p, int number, int parts, int begin, int end, int eight, int group, bool real,
                                              float scale_log2) {
  const int lane = threadIdx.x % 32, t = lane % 4;
  const float4 zero = make_float4(0.f, 0.f, 0.f, 0.f);
//| local first = l.placed and "(long long)number" or "(long long)number * parts"  -- placed: where the first part lies
  const float2 *from = (const float2 *)p.part_o + $(first) * (BR * COLS / 2);
//| if l.half_parts then
  const float *of_room = room_of_part(p, $(first), eight * 8 + lane / 4, group * FOURS * 16 >= 2 * NO);
  from += (eight * (COLS / 16) + group * FOURS) * 32 + lane;
//| else
  from += (eight * (COLS / 8) + group * FOURS * 2) * 32 + lane;
//| end
  const float2 *of_row = (const float2 *)p.part_state + $(first) * BR + eight * 8 + lane / 4;
  Piece sum = {-infinity(), 0.f, {}};
#pragma unroll
  for (int i = 0; i < FOURS; i++) sum.o[i] = zero;
#pragma unroll 1
  for (int j = begin; j < end; j += 4) {
    float2 state = make_float2(-infinity(), 0.f);
    float4 x[4][FOURS];
//| if l.half_parts then
    float room = 0.f;
    if (real && j + t < end) state = load_part(of_row + (j + t) * BR), room = load_part(of_room + (j + t) * (BR * COLS));
//| else
    if (real && j + t < end) state = load_part(of_row + (j + t) * BR);
//| end
#pragma unroll
    for (int k = 0; k < 4; k++)
#pragma unroll
      for (int i = 0; i < FOURS; i++) {
        x[k][i] = zero;
        if (!real || j + k >= end) continue;
//| if l.half_parts then
        const float2 both = load_part(from + (j + k) * (BR * COLS / 2) + i * 32);
        const float2 first = unpack_halves(__float_as_uint(both.x)), second = unpack_halves(__float_as_uint(both.y));
//| else
        const float2 *const at = from + (j + k) * (BR * COLS / 2) + i * 64;
        const float2 first = load_part(at), second = load_part(at + 32);
//| end
        x[k][i] = make_float4(first.x, first.y, second.x, second.y);
      }
    const float top = fmaxf(sum.m, quad_max(state.x)), shift = shift_of(top, scale_log2), keep = weight_of(sum.m, scale_log2, shift);
    const float weight = weight_of(state.x, scale_log2, shift);
    sum.m = top;
    sum.l = fmaf(sum.l, keep, quad_sum(weight * state.y));
#pragma unroll
    for (int i = 0; i < FOURS; i++) sum.o[i] = make_float4(sum.o[i].x * keep, sum.o[i].y * keep, sum.o[i].z * keep, sum.o[i].w * keep);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const float w = __shfl_sync(~0u, $(l.half_parts and "weight * room" or "weight"), lane - t + k);
#pragma unroll
      for (int i = 0; i < FOURS; i++) {
        sum.o[i].x = fmaf(w, x[k][i].x, sum.o[i].x);
        sum.o[i].y = fmaf(w, x[k][i].y, sum.o[i].y);
        sum.o[i].z = fmaf(w, x[k][i].z, sum.o[i].z);
        sum.o[i].w = fmaf(w, x[k][i].w, sum.o[i].w);
      }
    }
  }
  return sum;
}

// The sum of the warps' shares, in their order. To be called by all warps of a block; each gets it.
__device__ __forceinline__ Piece sum_of_shares(const Piece &own, float scale_log2) {
  __shared__ float2 states[WARPS][32];
  __shared__ float4 values[WARPS][FOURS][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  states[warp][lane] = make_float2(own.m, own.l);
#pragma unroll
  for (int i = 0; i < FOURS; i++) values[warp][i][lane] = own.o[i];
  __syncthreads();
  Piece sum = {-infinity(), 0.f, {}};
#pragma unroll
  for (int n = 0; n < WARPS; n++) sum.m = fmaxf(sum.m, states[n][lane].x);
  const float shift = shift_of(sum.m, scale_log2);
#pragma unroll
  for (int i = 0; i < FOURS; i++) sum.o[i] = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
  for (int n = 0; n < WARPS; n++) {
    const float2 state = states[n][lane];
    const float weight = weight_of(state.x, scale_log2, shift);
    sum.l = fmaf(weight, state.y, sum.l);
#pragma unroll
    for (int i = 0; i < FOURS; i++) {
      const float4 x = values[n][i][lane];
      sum.o[i].x = fmaf(weight, x.x, sum.o[i].x);
      sum.o[i].y = fmaf(weight, x.y, sum.o[i].y);
      sum.o[i].z = fmaf(weight, x.z, sum.o[i].z);
      sum.o[i].w = fmaf(weight, x.w, sum.o[i].w);
    }
  }
  return sum;
}

//| include "work/held_columns.cu"

extern "C" __global__ void __launch_bounds__($(l.merge_threads), 6) fa_fwd_merge(const __grid_constant__ Params p) {
//| if l.pdl then
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
//| end
//| if p.has_lengths then
  const int4 *const open = (const int4 *)p.tiles_open;
  const int4 launch = __ldcg(open);  // parts of each tile, tiles
//|   local most = l.placed and "most" or "parts"
  const int $(most) = launch.x, eights = (min(p.sq * p.group, BR) + 7) / 8, all = launch.y * eights * GROUPS;
//| else
//|   local parts, cut = "__ldcg((const int *)p.tiles_open)", "p.b * p.hkv * tiles"
//|   if l.rests then
//|     parts, cut = "open.x", "(p.b * p.hkv * tiles - open.y)"
  const int2 open = __ldcg((const int2 *)p.tiles_open);  // parts of a tile that is cut, and how many tiles are not
//|   end
  const int parts = $(parts), tiles = (p.sq * p.group + BR - 1) / BR;
  const int eights = (min(p.sq * p.group, BR) + 7) / 8, all = $(cut) * eights * GROUPS;
//| end
//| local most = l.placed and "most" or "parts"
  if ($(most) == 1) return;  // O is there
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const bool many = $(most) >= MANY && all <= (int)$(wk.blocks);  // a block has one piece, if any
//| if not l.placed then
  const int begin = many ? parts * warp / WARPS : 0, end = many ? parts * (warp + 1) / WARPS : parts;
//| end
#pragma unroll 1
  for (int piece = many ? (int)$(wk.block) : (int)$(wk.block) * WARPS + warp; piece < all;
       piece += (int)$(wk.blocks) * (many ? 1 : WARPS)) {
    const int number = whole_of(piece / GROUPS, eights), eight = piece / GROUPS - number * eights, group = piece % GROUPS;
    const int row = eight * 8 + lane / 4;
    Tile where;
//| if p.has_lengths then
    const int4 place = __ldcg(open + 1 + number);
    where.batch = place.x;
    where.kv_head = place.y;
    where.row = place.z;
//|   if l.placed then
    const int rows = place.w & 255, parts = (u32)place.w >> 8 & 4095, first_part = (u32)place.w >> 20;
    if (parts == 1) continue;  // O is there
    const int begin = many ? parts * warp / WARPS : 0, end = many ? parts * (warp + 1) / WARPS : parts;
//|   else
    const int rows = place.w;
//|   end
//| else
    const int tile = $(l.rests and "open.y + number" or "number"), at_head = tile / tiles;
    where.batch = at_head / p.hkv;
    where.kv_head = at_head - (int)where.batch * p.hkv;
//|   if l.even_rows then
    const int high = rows_of_tile(p.sq * p.group, tiles);
    where.row = (tile - at_head * tiles) * high;
    const int rows = min(p.sq * p.group - where.row, high);
//|   else
    where.row = (tile - at_head * tiles) * BR;
    const int rows = p.sq * p.group - where.row;
//|   end
//| end
    where.head = where.kv_head * p.group;
    if (eight * 8 >= rows) continue;
    const bool real = row < rows;
    const Sequence sequence = sequence_of(p, where.batch);
    Piece sums = sum_of_parts(p, $(l.placed and "first_part" or "number"), parts, begin, end, eight, group, real, $(log2_scale));
    if (many) {
      sums = sum_of_shares(sums, $(log2_scale));
      if (warp > 0) continue;
    }
    const Row at = row_of(p, where, where.row + row);
#pragma unroll
    for (int i = 0; i < FOURS; i++) {
      const int column = (group * FOURS + i) * 16 + lane % 4 * 4;
      Sum sum = {sums.m, sums.l, in_order(sums.o[i])};
      if (!real) continue;
      sum = checked(p, sequence, (int)at.head, (int)at.query, column, sum);
//| indented(6, wk.store_sum, "sum", { "at.head", "at.query" }, "column", "column == 0", log2_scale, scale, pr.out_scale)
    }
  }
}
