//| needs "c.cluster? l.block_clocks l.fixed_parts? l.last_round? l.merge_clocks l.merges l.more_rounds l.near? l.nominal? l.part_clocks"
//| needs "l.chunk_clocks? l.placed? l.rests? l.rounds l.shared? l.sum_clocks l.tile_clocks l.tma? l.walks?"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| local tiles_at_once = "(int)" .. ((c.cluster or 1) > 1 and "(" .. wk.blocks .. " / CLUSTER)" or wk.blocks)
//| local by_mean = l.shared and p.has_lengths  -- sequences are few, and as long as they are
// ---- into how many parts the keys of every tile are cut ----
//| if l.shared then
// x / y of numbers below 2^21, and of larger ones nearly. A division is two dozen instructions, and who finds a launch's first tile waits
// for each to be read.
__device__ __forceinline__ int whole_of(int x, int y) { return (int)(((float)x + .5f) * reciprocal_approx((float)y)); }

//| end

//| if l.near then
// A cluster has one tile, and each of its blocks a part.
//| elseif l.fixed_parts then
constexpr int PARTS = $(l.fixed_parts);  // of each tile, as far as there are keys and room
//| else
// Clocks of an SM: of a block of keys, of what a part begins and ends with, of adding up, and of each part more in a sum.
constexpr int BLOCK_CLOCKS = $(l.block_clocks), TILE_CLOCKS = $(l.tile_clocks);
constexpr int MERGE_CLOCKS = $(l.merge_clocks), PART_CLOCKS = $(l.part_clocks);
constexpr int ROUNDS = $(l.rounds);  // of parts for every thread block at most, where tiles are cut
//|   if l.more_rounds or l.placed then
constexpr int SUM_CLOCKS = $(l.chunk_clocks or l.sum_clocks);  // of each part of a tile, which the second step reads
//|   end
//| end

//| if l.walks then
// Batch invariance: parts of a sequence's tiles, as many as the sequence alone would take on so many thread blocks. Neither the batch nor
// the chip has a say in it.
constexpr int NOMINAL = $(l.nominal);
// Parts that find room in the workspace, beside the sum that each thread block keeps of the tile whose parts it walks.
__device__ __forceinline__ int places() { return (int)$(wk.blocks) * (PART_TILES - 1); }

//|   if not p.has_lengths then
// What there is to take: first the tiles whose parts one thread block walks, then all parts of the others.
struct Parts {
  int tiles, each, walked;
  __device__ __forceinline__ int total() const { return walked + (tiles - walked) * each; }
};
//|   end
//| elseif l.placed then
// What there is to take: first the tiles that are not cut, then all parts of the others. Or, where `chunk` is not 0, of the tiles of each
// sequence as many parts as have so many blocks of keys at most: `each` is then the most of all.
struct Parts {
  int tiles, each, whole, chunk;
};
//| elseif l.last_round or by_mean or l.rests then
// What there is to take: first the tiles that are not cut, then all parts of the others.
struct Parts {
  int tiles, each, whole;
  __device__ __forceinline__ int total() const { return whole + (tiles - whole) * each; }
};
//| else
// Parts of all tiles, number n of tile t being t * each + n.
struct Parts {
  int tiles, each;
  __device__ __forceinline__ int total() const { return tiles * each; }
};
//| end

//| if not p.has_lengths then
//|   pr.most_keys()

//| end
//| if not l.fixed_parts and not l.near then
// What takes the fewest clocks: as many parts as fill one round over the thread blocks, or $(l.more_rounds and "more" or "two"), or one for each tile.
//| end
//| if l.near then
//| elseif l.walks then
//| local twice = not l.fixed_parts and ", and it takes twice what it begins and ends with" or ""
// A part of the longest tile has two blocks of keys at least$(twice).
__device__ __forceinline__ int parts_of(int tiles, int blocks) {
//|   if not l.fixed_parts then
  constexpr int thread_blocks = NOMINAL;
  const int most = (int)min((long long)blocks * BLOCK_CLOCKS / (2 * TILE_CLOCKS), blocks / 2ll);
//|   else
  const int most = blocks / 2;
//|   end
//| else
// At least two blocks of keys are in a part of the longest tile, and all parts find room in the workspace.
//|   if by_mean then
//|     if l.placed then
constexpr float CHUNKS_PAY = .9f;  // parts of one length are taken where they are expected to take so much of the time of others
//|     end
//|     if l.fixed_parts then
__device__ __forceinline__ Parts parts_of(int tiles, int blocks, int thread_blocks, int) {
  const u32 most = max(min(blocks / 2, thread_blocks * PART_TILES / max(tiles, 1)), 1);
  return {tiles, (int)min((u32)PARTS, most), 0};
}
//|     else
// mean: blocks of a tile. By whole warps, of which each lane tries one way: lane 0 cuts nothing, the next ROUNDS cut all tiles, for a round
// of parts or more. Of more tiles than a round the next RESTS cut those of the last one alone, for one round of parts to RESTS.
//|       if l.merges then
// The others cut all tiles into two parts and more, which is for lengths so unlike that the longest tile would end last.
//|       end
__device__ __forceinline__ Parts parts_of(int tiles, int blocks, int thread_blocks, int mean) {
  constexpr int RESTS = $(l.rests);
  static_assert(1 + ROUNDS + RESTS < 32, "a lane for each way");
  const int lane = (int)threadIdx.x % 32, full = tiles / thread_blocks, unlike = $(l.merges and "lane - ROUNDS - RESTS" or "0");
  const float by_blocks = reciprocal_approx((float)thread_blocks);
  const bool last = lane > ROUNDS && unlike <= 0 && full > 0;
  const int whole = last ? full * thread_blocks : 0, cut = tiles - whole, some = max(cut, 1);
  const int rounds = last ? min(lane - ROUNDS, RESTS) : lane > ROUNDS ? 0 : lane;
  const int wanted = unlike > 0 ? 3 - unlike % 2 << (unlike - 1) / 2 : whole_of(rounds * thread_blocks, some);  // 2, 3, 4, 6, ...
  const int n = max(min(wanted, min(blocks / 2, whole_of(thread_blocks * PART_TILES, some))), 1);
  // Rounds are as long as their tiles on average, and no launch is shorter than its longest. Shorter tiles of a round begin where longer
  // ones leave room: uncut, rounds are as long as tiles that are as far below the mean as the longest is above.
  const int usual = full > 0 && n == 1 ? max(2 * mean - blocks, 0) : whole_of(mean + n - 1, n);
  const int longest = last ? blocks : whole_of(blocks + n - 1, n);
  float clocks = (float)whole_of(cut * n + thread_blocks - 1, thread_blocks) * (float)(usual * BLOCK_CLOCKS + TILE_CLOCKS) +
                 (last ? (float)full * (float)(mean * BLOCK_CLOCKS + TILE_CLOCKS) : 0.f);
  // Unlike parts fill what longer ones leave, and on average half of one is left over.
  if (unlike > 0)
    clocks = (float)tiles * ((float)mean * BLOCK_CLOCKS + (float)n * TILE_CLOCKS) * by_blocks +
             .5f * (float)(longest * BLOCK_CLOCKS + TILE_CLOCKS);
  const float all = fmaxf(clocks, (float)(longest * BLOCK_CLOCKS + TILE_CLOCKS)) + (n > 1 ? (float)(MERGE_CLOCKS + n * PART_CLOCKS) : 0.f);
  // Positive numbers are ordered as their bits. The first lane of those with the least has it, but for the last five bits.
  const u32 least = __reduce_min_sync(~0u, (__float_as_uint(all) & ~31u) | (u32)lane);
//|     if l.placed then
  // Tiles of unlike lengths: parts of one length, half and three quarters and so on of what a thread block has to do on average. A tile's
  // last part is half as long as the others, on average. Each part begins and ends, and all thread blocks together read them.
  const float share = (float)tiles * ((float)mean + (float)TILE_CLOCKS / BLOCK_CLOCKS) * by_blocks;
  int chunk = max((int)(share * (float)(lane + 4) * .125f), 2);
  const float pieces = (float)tiles * ((float)mean * reciprocal_approx((float)chunk) + .5f);
  const float ends = ((float)tiles * (float)mean * BLOCK_CLOCKS + pieces * TILE_CLOCKS) * by_blocks +
                     .5f * (float)(chunk * BLOCK_CLOCKS + TILE_CLOCKS) + (float)(MERGE_CLOCKS + whole_of(blocks, chunk) * PART_CLOCKS) +
                     pieces * (float)SUM_CLOCKS;
  // All parts find room: of a tile's blocks of keys, one more than its keys at most, a chunk has two and more.
  const float room = (float)(thread_blocks * PART_TILES);
  const bool fits = (float)tiles * ((float)mean * reciprocal_approx((float)chunk) + 1.f) < room && chunk < blocks;
  const u32 least_by_chunks = __reduce_min_sync(~0u, ((fits ? __float_as_uint(ends) : 0x7f800000u) & ~31u) | (u32)lane);
  chunk = __shfl_sync(~0u, chunk, (int)(least_by_chunks % 32));
  if (__uint_as_float(least_by_chunks) < CHUNKS_PAY * __uint_as_float(least))
    return {tiles, whole_of(blocks + chunk - 1, chunk), 0, chunk};
//|     end
  const int best = (int)(least % 32);
  const int each = __shfl_sync(~0u, n, best);
  return {tiles, each, each == 1 ? tiles : __shfl_sync(~0u, whole, best)$(l.placed and ", 0" or "")};
}
//|     end
//|   else
__device__ __forceinline__ Parts parts_of(int tiles, int blocks, int thread_blocks) {
//|   if l.last_round then
  const int all = tiles;
  tiles %= thread_blocks;  // of the last round
//|   end
//|   if l.rests then
  // Of more tiles than a round those of the last one alone.
  const int all = tiles, full = tiles > thread_blocks ? tiles / thread_blocks : 0, most_rounds = full > 0 ? $(l.rests) : ROUNDS;
  tiles -= full * thread_blocks;
//|   end
  const int most = tiles > 0 ? min(blocks / 2, thread_blocks * PART_TILES / tiles) : 0;
//|   end
//| end
//| local function found(n)
//|   return l.walks and n or ((l.last_round or l.rests) and "{all, %s, %s > 1 ? all - tiles : all}" or "{tiles, %s}"):format(n, n)
//| end
//| if not l.near and not (by_mean and not l.walks) then
//| if l.fixed_parts then
  return $(found("max(min(PARTS, most), 1)"));
//| else
  int each = 1;
  long long least = (long long)((tiles + thread_blocks - 1) / thread_blocks) * ((long long)blocks * BLOCK_CLOCKS + TILE_CLOCKS);
#pragma unroll 1
  for (int rounds = 1; rounds <= $(l.rests and "most_rounds" or "ROUNDS"); rounds++) {
    const int n = min(rounds * thread_blocks / max(tiles, 1), most);
    if (n < 2 || n == each) continue;
    const long long clocks = (long long)((tiles * n + thread_blocks - 1) / thread_blocks) *
                                 ((long long)((blocks + n - 1) / n) * BLOCK_CLOCKS + TILE_CLOCKS) + MERGE_CLOCKS + n * PART_CLOCKS$(l.more_rounds and " + (long long)tiles * n * SUM_CLOCKS" or "");
    if (clocks < least) each = n, least = clocks;
  }
  return $(found("each"));
//| end
}
//| end
//| local function blocks_of(keys) return ("(%s + BC - 1) / BC"):format(keys) end
//| if p.has_lengths and l.walks then
//|   pr.part_of(true)
//| elseif p.has_lengths then
//|   if not l.near then
//|     local kind, found, open = "int", ".each", "parts, tiles"
//|     if by_mean then kind, found, open = "Parts", "", "parts.each, tiles - parts.whole" end
//|     local of = "(tiles, " .. blocks_of("keys") .. ", " .. tiles_at_once .. (by_mean and ", " .. blocks_of("mean") or "") .. ")"
// The same for this launch: of each of its tiles, where the longest sees so many keys. By a warp of each block.
__device__ __forceinline__ $(kind) parts_of_launch(const Params &p, int tiles, int keys$(by_mean and ", int mean" or "")) {
  const $(kind) parts = parts_of$(of)$(found);
//|     if l.merges then
  if ($(wk.block) == 0 && threadIdx.x % 32 == 0) *(int4 *)p.tiles_open = make_int4($(open), 0, 0);  // for the second step
//|     end
  return parts;
}
//|   end
//|   if l.merges then
// Where a tile is$(l.shared and ", and its rows" or ""), for the second step: its number says nothing without the search.
__device__ __forceinline__ void leave_place(const Params &p, const Tile &where$(l.shared and ", int rows" or "")) {
//|     if not l.placed then
  if (where.row >= 0 && where.parts > 1 && where.part == 0)
    ((int4 *)p.tiles_open)[1 + where.number] = make_int4((int)where.batch, where.kv_head, where.row, $(l.shared and "rows" or "0"));
//|     else
  if (where.row >= 0 && where.place >= 0 && where.part == 0)
    ((int4 *)p.tiles_open)[1 + where.place] =
        make_int4((int)where.batch, where.kv_head, where.row, where.number << 20 | where.parts << 8 | min(rows, BR));
//|     end
}
//|   end

//|   pr.part_of(true)
//| else
//|   if not l.walks then
// The same for this launch.
__device__ __forceinline__ Parts parts_of_launch(const Params &p) {
//|   if l.near then
  const Parts parts = {p.tiles * p.hkv * p.b, 1};
//|   else
  const Parts parts = parts_of(p.tiles * p.hkv * p.b, $(blocks_of("most_keys(p, sequence_of(p, 0))")), $(tiles_at_once));
//|   end
//| if l.merges and (l.last_round or l.rests) then
  if ($(wk.block) == 0 && threadIdx.x == 64) *(int2 *)p.tiles_open = make_int2(parts.each, parts.whole);  // for the second step
//| elseif l.merges then
  if ($(wk.block) == 0 && threadIdx.x == $(l.tma and 64 or 0)) *(int *)p.tiles_open = parts.each;  // for the second step
//| end
  return parts;
}

//| pr.part_of(true)
// Which part of which tile the index-th of all is.
__device__ __forceinline__ Tile tile_of(const Params &p, const Parts &parts, int index) {
//|   if l.last_round or l.rests then
  const int item = index - parts.whole, tile = item < 0 ? 0 : item / parts.each;  // of those that are cut
  Tile w = tile_of(p, item < 0 ? index : parts.whole + tile);
  w.number = tile;
  w.part = item < 0 ? 0 : item - tile * parts.each;
  w.parts = item < 0 ? 1 : parts.each;
//|   else
  const int tile = index / parts.each;
  Tile w = tile_of(p, tile);
  w.part = index - tile * parts.each;
  w.parts = parts.each;
//|   end
  return w;
}
//|   else
// The same for this launch, and how many tiles are walked: those of all rounds that are full, and as many more as find no room.
__device__ __forceinline__ Parts parts_of_launch(const Params &p) {
  const int tiles = p.tiles * p.hkv * p.b, blocks = (int)$(wk.blocks);
  const int each = parts_of(p.tiles * p.hkv, $(blocks_of("most_keys(p, sequence_of(p, 0))")));
  const int walked = each > 1 ? tiles - min(tiles < blocks ? tiles : tiles % blocks, places() / each) : tiles;
  if ($(wk.block) == 0 && threadIdx.x == 64) *(int4 *)p.tiles_open = make_int4(tiles - walked, 0, 0, 0);  // for the second step
  return {tiles, each, walked};
}

//|     pr.part_of(true)
// Which part of which tile the index-th of all is; of a tile that is walked the first.
__device__ __forceinline__ Tile tile_of(const Params &p, const Parts &parts, int index) {
  const int item = index - parts.walked, tile = item < 0 ? 0 : item / parts.each;  // of those that are shared
  Tile w = tile_of(p, item < 0 ? index : parts.walked + tile);
  w.place = tile;
  w.number = item < 0 ? -1 : tile * parts.each;
  w.part = item < 0 ? 0 : item - tile * parts.each;
  w.parts = parts.each;
  return w;
}
//|   end
//| end
//| if l.walks then

// Where a tile is that is shared, and its parts, for the second step.
__device__ __forceinline__ void leave_place(const Params &p, const Tile &where) {
  if (where.row >= 0 && !where.is_walked() && where.part == 0)
    ((int4 *)p.tiles_open)[1 + where.place] = make_int4((int)where.batch, where.kv_head, where.row, where.number << 8 | where.parts);
}
//| end
