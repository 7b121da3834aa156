//| needs "l.merge_threads l.pdl"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| local log2_scale, scale = pr.unit_log2, pr.unit
// ---- the second step: what the parts of all rows are together, a warp to 128 columns of a row ----
// Rows are long and tiles few. A lane weighs a part, and the loads of several parts are under way before the first is awaited.
constexpr int GROUPS = (COLS + 127) / 128;  // of columns, a warp to each

// Four columns of row `at` of a tile's first part, `parts` in all, from 4 * four on.
__device__ __forceinline__ Sum sum_of_row(const Params &p, long long at, int parts, int four, float scale_log2) {
  const int lane = threadIdx.x % 32;
  const float4 *const part_o = (const float4 *)p.part_o + min(four, COLS / 4 - 1);
  const float2 *const part_state = (const float2 *)p.part_state;
  Sum sum = $(wk.no_part);
#pragma unroll 1
  for (int first = 0; first < parts; first += 32) {
    constexpr int BATCH = 4;  // parts under way
    const int n = min(parts - first, 32);
    const long long from = at + (long long)first * BR;
    float2 state = make_float2(-infinity(), 0.f);
    if (lane < n) state = load_part(part_state + from + lane * BR);
    float4 x[BATCH];
    auto load = [&](int j) {
#pragma unroll
      for (int k = 0; k < BATCH; k++)
        if (j + k < n) x[k] = load_part(part_o + (from + (j + k) * BR) * (COLS / 4));
    };
    load(0);
    float top = fmaxf(sum.m, state.x);
#pragma unroll
    for (int i = 16; i > 0; i /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, i));
    const float shift = shift_of(top, scale_log2), keep = weight_of(sum.m, scale_log2, shift);
    const float weight = weight_of(state.x, scale_log2, shift);
    float l = weight * state.y;
#pragma unroll
    for (int i = 16; i > 0; i /= 2) l += __shfl_xor_sync(~0u, l, i);
    sum = {top, fmaf(sum.l, keep, l), make_float4(sum.o.x * keep, sum.o.y * keep, sum.o.z * keep, sum.o.w * keep)};
#pragma unroll 1
    for (int j = 0; j < n; j += BATCH) {
      if (j > 0) load(j);
#pragma unroll
      for (int k = 0; k < BATCH; k++) {
        if (j + k >= n) break;
        const float w = __shfl_sync(~0u, weight, j + k);
        sum.o.x = fmaf(w, x[k].x, sum.o.x);
        sum.o.y = fmaf(w, x[k].y, sum.o.y);
        sum.o.z = fmaf(w, x[k].z, sum.o.z);
        sum.o.w = fmaf(w, x[k].w, sum.o.w);
      }
    }
  }
  return sum;
}

extern "C" __global__ void __launch_bounds__($(l.merge_threads), 8) fa_fwd_merge(const __grid_constant__ Params p) {
//| if l.pdl then
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
//| end
//| if p.has_lengths then
  const int4 *const open = (const int4 *)p.tiles_open;
  const int4 launch = __ldcg(open);  // parts of each tile, tiles
  const int parts = launch.x, all = launch.y * BR * GROUPS;
//| else
  const int parts = __ldcg((const int *)p.tiles_open), rows = p.sq * p.group, tiles = (rows + BR - 1) / BR, all = p.b * p.hkv * rows * GROUPS;
//| end
  if (parts == 1) return;  // O is there
#pragma unroll 1
  for ($(wk.steps("int", "i", "all", l.merge_threads // 32, "(int)threadIdx.x / 32"))) {
    const int four = i % GROUPS * 32 + (int)threadIdx.x % 32;
    Tile where;
//| if p.has_lengths then
    const int number = i / GROUPS / BR, row = i / GROUPS - number * BR;
    const int4 place = __ldcg(open + 1 + number);
    if (row >= place.w) continue;
    where.batch = place.x;
    where.kv_head = place.y;
    where.row = place.z;
//| else
    const int at_head = i / GROUPS / rows, row_of_head = i / GROUPS - at_head * rows, row = row_of_head % BR;
    const int number = at_head * tiles + row_of_head / BR;
    where.batch = at_head / p.hkv;
    where.kv_head = at_head - (int)where.batch * p.hkv;
    where.row = row_of_head - row;
//| end
    where.head = where.kv_head * p.group;
    Sum sum = sum_of_row(p, (long long)number * parts * BR + row, parts, four, $(log2_scale));
    const Sequence sequence = sequence_of(p, where.batch);
    const Row at = row_of(p, where, where.row + row);
    sum = checked(p, sequence, (int)at.head, (int)at.query, four * 4, sum);
//| indented(4, wk.store_sum, "sum", { "at.head", "at.query" }, "four * 4", "four == 0", log2_scale, scale, pr.out_scale)
  }
}
