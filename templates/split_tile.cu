// ---- tiles whose keys several blocks share ----
// Few tiles leave SMs idle, as those of a short chunk behind a long cache. Then each is cut into as many parts as fill the chip best; the
// block that ends last adds them up, in their order. Parts lie in the workspace by their number.

//| include "tile_parts.cu"

// The blocks of keys of one part.
__device__ __forceinline__ Range part_of(Range range, const Tile &where) {
  const int blocks = range.block_hi - range.block_lo + 1;
  range.block_hi = range.block_lo + blocks * (where.part + 1) / where.parts - 1;
  range.block_lo += blocks * where.part / where.parts;
  return range;
}

// Row `tile_row` of the tile, four columns from 4 * four on, out of all parts.
__device__ __forceinline__ void add_parts(const Params &p, const Sequence &sequence, const Tile &where, int tile_row, int four) {
  const float4 *const part_o = (const float4 *)p.part_o;
  const float2 *const part_state = (const float2 *)p.part_state;
  Sum sum = {-infinity(), 0.f, make_float4(0.f, 0.f, 0.f, 0.f)};
  constexpr int BATCH = 4;  // parts under way
  for (int j = 0; j < where.parts; j += BATCH) {
    float2 states[BATCH];
    float4 x[BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; k++) {
      const long long from = ((long long)where.number * where.parts + min(j + k, where.parts - 1)) * BR + tile_row;
      states[k] = load_part(part_state + from);
      x[k] = load_part(part_o + from * (COLS / 4) + four);
    }
#pragma unroll
    for (int k = 1; k < BATCH; k++)
      if (j + k >= where.parts) states[k].x = -infinity();  // the last once more
    sum.add(states, x, p.scale_log2);
  }
  const Row at = row_of(p, where, where.row + tile_row);
  const float inverse = reciprocal(sum.l);
  if (p.lse != nullptr && four == 0) p.lse[sequence.lse(at.head, at.query)] = log_sum_exp({sum.m, sum.l}, sum.l, p.scale);
  store_columns((output *)p.o + sequence.o() + at.query * p.o_ss + at.head * p.o_sh, four * 4,
                make_float4(sum.o.x * inverse, sum.o.y * inverse, sum.o.z * inverse, sum.o.w * inverse));
}
