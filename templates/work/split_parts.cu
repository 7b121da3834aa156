//| needs "l.block_clocks l.merge_clocks l.merges l.part_clocks l.rounds l.tile_clocks l.tma? c.parts"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// ---- into how many parts the keys of every tile are cut ----

//| if c.parts > 0 then
constexpr int PARTS = $(c.parts);  // of each tile, as far as there are keys and room
//| else
// Clocks of an SM: of a block of keys, of what a part begins and ends with, of adding up, and of each part more in a sum.
constexpr int BLOCK_CLOCKS = $(l.block_clocks), TILE_CLOCKS = $(l.tile_clocks);
constexpr int MERGE_CLOCKS = $(l.merge_clocks), PART_CLOCKS = $(l.part_clocks);
constexpr int ROUNDS = $(l.rounds);  // of parts for every thread block at most, where tiles are cut
//| end

// Parts of all tiles, number n of tile t being t * each + n.
struct Parts {
  int tiles, each;
  __device__ __forceinline__ int total() const { return tiles * each; }
};

//| if not p.has_lengths then
//|   pr.most_keys()

//| end
//| if c.parts == 0 then
// What takes the fewest clocks: as many parts as fill one round over the thread blocks, or two, or one for each tile.
//| end
// At least two blocks of keys are in a part of the longest tile, and all parts find room in the workspace.
__device__ __forceinline__ Parts parts_of(int tiles, int blocks, int thread_blocks) {
  const int most = tiles > 0 ? min(blocks / 2, thread_blocks * PART_TILES / tiles) : 0;
//| if c.parts > 0 then
  return {tiles, max(min(PARTS, most), 1)};
//| else
  int each = 1;
  long long least = (long long)((tiles + thread_blocks - 1) / thread_blocks) * ((long long)blocks * BLOCK_CLOCKS + TILE_CLOCKS);
#pragma unroll 1
  for (int rounds = 1; rounds <= ROUNDS; rounds++) {
    const int n = min(rounds * thread_blocks / max(tiles, 1), most);
    if (n < 2 || n == each) continue;
    const long long clocks = (long long)((tiles * n + thread_blocks - 1) / thread_blocks) *
                                 ((long long)((blocks + n - 1) / n) * BLOCK_CLOCKS + TILE_CLOCKS) + MERGE_CLOCKS + n * PART_CLOCKS;
    if (clocks < least) each = n, least = clocks;
  }
  return {tiles, each};
//| end
}
//| local function blocks_of(keys) return ("(%s + BC - 1) / BC"):format(keys) end
//| if p.has_lengths then
// The same for this launch: of each of its tiles, where the longest sees so many keys. By a warp of each block.
__device__ __forceinline__ int parts_of_launch(const Params &p, int tiles, int keys) {
  const int parts = parts_of(tiles, $(blocks_of("keys")), (int)$(wk.blocks)).each;
//|   if l.merges then
  if ($(wk.block) == 0 && threadIdx.x % 32 == 0) *(int4 *)p.tiles_open = make_int4(parts, tiles, 0, 0);  // for the second step
//|   end
  return parts;
}
//|   if l.merges then
// Where a tile is, for the second step: its number says nothing without the search.
__device__ __forceinline__ void leave_place(const Params &p, const Tile &where) {
  if (where.row >= 0 && where.parts > 1 && where.part == 0)
    ((int4 *)p.tiles_open)[1 + where.number] = make_int4((int)where.batch, where.kv_head, where.row, 0);
}
//|   end

//|   pr.part_of(true)
//| else
// The same for this launch.
__device__ __forceinline__ Parts parts_of_launch(const Params &p) {
  const Parts parts = parts_of(p.tiles * p.hkv * p.b, $(blocks_of("most_keys(p, sequence_of(p, 0))")), (int)$(wk.blocks));
//| if l.merges then
  if ($(wk.block) == 0 && threadIdx.x == $(l.tma and 64 or 0)) *(int *)p.tiles_open = parts.each;  // for the second step
//| end
  return parts;
}

//| pr.part_of(true)
// Which part of which tile the index-th of all is.
__device__ __forceinline__ Tile tile_of(const Params &p, const Parts &parts, int index) {
  const int tile = index / parts.each;
  Tile w = tile_of(p, tile);
  w.part = index - tile * parts.each;
  w.parts = parts.each;
  return w;
}
//| end
