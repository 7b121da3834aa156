//| needs "l.even_rows? l.last_round? l.merge_threads l.pdl l.walks?"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// ---- the second step: what the parts of all rows are together ----
extern "C" __global__ void __launch_bounds__($(l.merge_threads)) fa_fwd_merge(const __grid_constant__ Params p) {
//| if l.pdl then
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
//| end
//| if l.walks or p.has_lengths then
  const int4 *const open = (const int4 *)p.tiles_open;
//|   if l.walks then
  const int all = __ldcg(open).x * BR * (COLS / 4);  // of the tiles that are shared
//|   else
  const int4 launch = __ldcg(open);  // parts of each tile, tiles
  if (launch.x == 1) return;         // O is there
  const int all = launch.y * BR * (COLS / 4);
//|   end
#pragma unroll 1
  for ($(wk.steps("int", "i", "all", l.merge_threads, "(int)threadIdx.x"))) {
    const int number = i / (BR * (COLS / 4)), row = i / (COLS / 4) - number * BR;
    const int4 place = __ldcg(open + 1 + number);
    Tile where;
    where.batch = place.x;
    where.kv_head = place.y;
    where.head = where.kv_head * p.group;
    where.row = place.z;
//|   if l.walks then
    where.number = place.w >> 8;
    where.part = 0;
    where.parts = place.w & 255;
//|   else
    where.number = number;
    where.part = 0;
    where.parts = launch.x;
//|   end
    const Sequence sequence = sequence_of(p, place.x);
    if (where.row + row < row_count(p, sequence)) add_parts(p, sequence, where, row, i % (COLS / 4));
  }
//| elseif l.last_round then
  const int2 open = __ldcg((const int2 *)p.tiles_open);  // parts of a tile that is cut, and how many tiles are not
  if (open.x == 1) return;                               // O is there
  const int rows = p.sq * p.group, tiles = (rows + BR - 1) / BR, high = rows_of_tile(rows, tiles);
  const int all = (tiles * p.hkv * p.b - open.y) * BR * (COLS / 4);
#pragma unroll 1
  for ($(wk.steps("int", "i", "all", l.merge_threads, "(int)threadIdx.x"))) {
    const int number = i / (BR * (COLS / 4)), row = i / (COLS / 4) - number * BR;
    const int at = (open.y + number) / tiles, tile = open.y + number - at * tiles;  // as tile_of() has it
    Tile where;
    where.batch = at / p.hkv;
    where.kv_head = at - (int)where.batch * p.hkv;
    where.head = where.kv_head * p.group;
    where.row = $(pr.right and "(tiles - 1 - tile)" or "tile") * high;
    where.number = number;
    where.part = 0;
    where.parts = open.x;
    if (row < min(high, rows - where.row)) add_parts(p, sequence_of(p, where.batch), where, row, i % (COLS / 4));
  }
//| else
  const int parts = __ldcg((const int *)p.tiles_open);
  if (parts == 1) return;  // O is there
  const int rows = p.sq * p.group, tiles = (rows + BR - 1) / BR, all = p.b * p.hkv * rows * (COLS / 4);
//|   local high = l.even_rows and "high" or "BR"
//|   if l.even_rows then
  const int high = rows_of_tile(rows, tiles);
//|   end
#pragma unroll 1
  for ($(wk.steps("int", "i", "all", l.merge_threads, "(int)threadIdx.x"))) {
    const int at = i / (COLS / 4) / rows, row = i / (COLS / 4) - at * rows;
    Tile where;
    where.batch = at / p.hkv;
    where.kv_head = at - (int)where.batch * p.hkv;
    where.head = where.kv_head * p.group;
    where.row = row / $(high) * $(high);
    where.number = at * tiles + row / $(high);
    where.part = 0;
    where.parts = parts;
    add_parts(p, sequence_of(p, where.batch), where, row - where.row, i % (COLS / 4));
  }
//| end
}
