//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| local log2_scale, scale = pr.unit_log2, pr.unit
// ---- parts of a tile that the last of the warps with the same rows and columns adds up ----
constexpr int AT_ONCE = 4, WAY = 6;  // parts whose loads are under way, and blocks of eight columns of each

//| include "work/held_columns.cu"

// A warp has left its part of rows [first, first + 16) of the tile and of its warpgroup's columns, which begin at `column`. The last of all
// adds up the parts, in their order. Others walk no columns: a branch around this would part the warps of a warpgroup.
__device__ __forceinline__ void add_held_parts(const Params &p, const Tile &where, const Sequence &sequence, int first, int column,
                                               int from) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, rows = min(ROWS_WARP, row_count(p, sequence) - where.row - first);
  u32 last = 0;
  __syncwarp();
  if (lane == 0 && rows > 0)
    last = $(wk.is_last("(where.number * (BR / ROWS_WARP) + first / ROWS_WARP) * CONSUMERS + (column > 0)", "where.parts"));
  const int end = __shfl_sync(~0u, last, 0) != 0 ? NO / 4 : 0;
  const long long part = (long long)where.number * where.parts;  // the first
#pragma unroll 1
  for (int n0 = from / 8; n0 < end; n0 += WAY) {
    float2 x[2][WAY];
    float m[2] = {-infinity(), -infinity()}, l[2] = {0.f, 0.f};
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int n = 0; n < WAY; n++) x[h][n] = make_float2(0.f, 0.f);
#pragma unroll 1
    for (int j = 0; j < where.parts; j += AT_ONCE) {
      float2 of[2][AT_ONCE], y[2][AT_ONCE][WAY];
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int row = first + min(h * 8 + g, rows - 1);  // lanes without a row have the last once more
        const float2 *const states = (const float2 *)p.part_state + (part * BR + row) * 2 + (column > 0);
        const float2 *const values = (const float2 *)p.part_o + part * (BR * COLS / 2) +
                                     (row / 8 * (COLS / 8) + column / 8 + n0) * 32 + row % 8 * 4 + t;
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
          const int at = min(j + k, where.parts - 1);
          of[h][k] = load_part(states + at * (BR * 2));
#pragma unroll
          for (int n = 0; n < WAY; n++) {
            y[h][k][n] = make_float2(0.f, 0.f);
            if (j + k < where.parts && n0 + n < end) y[h][k][n] = load_part(values + at * (BR * COLS / 2) + n * 32);
          }
          if (j + k >= where.parts) of[h][k].x = -infinity();  // the last once more
        }
      }
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float top = m[h];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) top = fmaxf(top, of[h][k].x);
        const float shift = shift_of(top, $(log2_scale)), keep = weight_of(m[h], $(log2_scale), shift);
        m[h] = top;
        l[h] *= keep;
#pragma unroll
        for (int n = 0; n < WAY; n++) x[h][n] = make_float2(x[h][n].x * keep, x[h][n].y * keep);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
          const float weight = weight_of(of[h][k].x, $(log2_scale), shift);
          l[h] = fmaf(weight, of[h][k].y, l[h]);
#pragma unroll
          for (int n = 0; n < WAY; n++)
            x[h][n] = make_float2(fmaf(weight, y[h][k][n].x, x[h][n].x), fmaf(weight, y[h][k][n].y, x[h][n].y));
        }
      }
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const Row at = row_of(p, where, where.row + first + min(h * 8 + g, rows - 1));
#pragma unroll
      for (int n = 0; n < WAY; n += 2) {
        const int block = n0 + n, col = column + block * 8 + t * 4;
        Sum sum = {m[h], l[h], in_order(make_float4(x[h][n].x, x[h][n].y, x[h][n + 1].x, x[h][n + 1].y))};
        if (block >= end) continue;
        sum = checked(p, sequence, (int)at.head, (int)at.query, col, sum);
//| indented(8, wk.store_sum, "sum", { "at.head", "at.query" }, "col", "col == 0", log2_scale, scale, pr.out_scale)
      }
    }
  }
}
