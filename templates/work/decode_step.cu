//| needs "l.heads? l.pdl"
//| local wk = include("work/work.lua").of(p, l)
// The second step: thread block i of each slice of rows takes the tile that begins in block i of the first step and goes on in the next, if
// there is one.
extern "C" __global__ void __launch_bounds__(MERGE_THREADS) fa_decode_merge(const __grid_constant__ Params p) {
//| if l.pdl then
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
//| end
//| if l.heads then
  constexpr int OWN = SLICES / HEADS;  // slices of a head
  const int block = (int)$(wk.block) / SLICES, slice = (int)$(wk.block) % OWN, side = (int)$(wk.block) % SLICES / OWN;
//| else
  const int block = (int)$(wk.block) / SLICES, slice = (int)$(wk.block) % SLICES;
//| end
  const int4 open = __ldcg((const int4 *)p.tiles_open + $(p.has_batch_invariant and "2 * " or "")block);
  if (open.w == 0) return;
  const Sequence sequence = sequence_of(p, open.x);
  Walk walk;
  walk.kv_head = open.y;
  walk.tile = open.z;
//| if l.heads then
  if (walk.kv_head * HEADS + side >= p.hkv) return;
  const Tile tile = tile_of(p, sequence, walk, side);
//| else
  const Tile tile = tile_of(p, sequence, walk);
//| end
  const int rows = rows_in(tile);
//| if p.has_batch_invariant then
  if (slice * MERGE_THREADS >= rows * (COLS / 4)) return;
  __shared__ Found list[SEGMENTS];
  __shared__ int parts;
  if (threadIdx.x < 32) find_parts(deal_of(p, block, open.w), list, &parts);
  __syncthreads();
//| end
  for (int i = slice * MERGE_THREADS + threadIdx.x; i < rows * (COLS / 4); i += $(l.heads and "OWN" or "SLICES") * MERGE_THREADS) {
    const int row = i / (COLS / 4), four = i % (COLS / 4);
//| if p.has_batch_invariant then
    add_segments(p, sequence, tile, list, parts, row, four);
//| else
    const Sum sum = sum_of_parts(p, row, four, block, open.w, streams_of(p)$(l.heads and ", side" or ""));
    store_row(p, sequence, tile, row, four * 4, sum);
//| end
  }
}
