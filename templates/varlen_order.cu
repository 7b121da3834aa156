// ---- in which order tiles are done where every sequence has its own lengths ----
// The tiles of a head, of all sequences, longest first: those with the most keys in front of their right edge, whichever sequence they
// belong to. The lengths are on the device, so every warp finds its tiles there, without a list: a tile's level counts its keys in units of
// a tile's queries, and the number of tiles from a level up is a sum over the sequences (`from`), in which the n-th tile is searched.
//| if p.mask == "causal" then
// Where sequences are masked causally a sequence has one tile of each level, from its first tile's on.
//| else
// The tiles of a sequence are all of one level.
//| end

// One sequence, as far as the order needs it.
struct Levels {
  int lowest, tiles;  // level of its first tile; tiles of one head
  // Its tiles of a level and of those above.
  __device__ __forceinline__ int from(int level) const {
//| if p.mask == "causal" then
    return max(min(lowest + tiles - level, tiles), 0);
//| else
    return level <= lowest ? tiles : 0;
//| end
  }
  __device__ __forceinline__ int highest() const {
//| if p.mask == "causal" then
    return lowest + tiles - 1;
//| else
    return lowest;
//| end
  }
};

//| if l.parts then
// How many parts each of `tiles` tiles, of which the longest sees `keys` keys, is cut into for `blocks` thread blocks: what takes the least
// rounds of a part each, where that saves more than adding up costs. Two blocks of keys at least in each, and no more parts than there is
// room for.
__device__ __forceinline__ int parts_for(int tiles, int keys, int blocks) {
  constexpr int ALL = 840;  // a multiple of all counts up to eight
  const int most = min(min(8, keys / (2 * BC)), tiles > 0 ? blocks * PART_TILES / tiles : 1);
  if (most < 2) return 1;
  int best = 1, least = (tiles + blocks - 1) / blocks * ALL;
  for (int n = 2; n <= most; n++) {
    const int time = (tiles * n + blocks - 1) / blocks * (ALL / n) * 17 / 16;
    if (time < least) best = n, least = time;
  }
  return best;
}

// The blocks of keys of one part.
__device__ __forceinline__ Range part_of(Range range, const Tile &where) {
  const int blocks = range.block_hi - range.block_lo + 1;
  range.block_hi = range.block_lo + blocks * (where.part + 1) / where.parts - 1;
  range.block_lo += blocks * where.part / where.parts;
  return range;
}

//| end
// To be used by whole warps. Tiles are asked for in growing order.
struct TileOrder {
  const Params &p;
  int unit;               // queries of a tile
  Levels own;             // of the sequence with this lane's number
  int per_head, highest;  // tiles of a head; the highest level
  int total;              // tiles of all heads$(l.parts and ", times their parts" or "")
//| if l.parts then
  int parts;              // of each tile
//| end
  int section;            // the one at hand
  int level, above;       // the level of the tile found last in it; tiles of the levels above

  __device__ __forceinline__ Levels levels_of(int index) const {
    if (index >= p.b) return {0, 0};
    const Sequence sequence = sequence_of(p, index);
    const int tiles = (row_count(p, sequence) + BR - 1) / BR;
//| if p.mask == "causal" then
    return {max(sequence.diag_hi(), 0) / unit, tiles};
//| elseif p.mask == "window" then
    return {max(min(last_key(sequence, sequence.sq() - 1) + 1, sequence.diag_hi() - sequence.diag_lo()), 0) / unit, tiles};
//| else
    return {sequence.sk() / unit, tiles};
//| end
  }

  // Tiles of a head from a level up.
  __device__ __forceinline__ int from(int level) const {
    int n = own.from(level);
#pragma unroll 1
    for (int i = 32 + (int)threadIdx.x % 32; i < (p.b + 31) / 32 * 32; i += 32) n += levels_of(i).from(level);
    return __reduce_add_sync(~0u, n);
  }

  __device__ __forceinline__ explicit TileOrder(const Params &p) : p(p), section(-1) {
//| if (c.pack or l.pack) == 1 then
    unit = max(BR / p.group, 1);
//| else
    unit = BR;
//| end
    own = levels_of((int)threadIdx.x % 32);
    int most = own.highest();
#pragma unroll 1
    for (int i = 32 + (int)threadIdx.x % 32; i < (p.b + 31) / 32 * 32; i += 32) most = max(most, levels_of(i).highest());
    highest = max(__reduce_max_sync(~0u, most), 0);
    per_head = from(0);
    total = per_head * $((c.pack or l.pack) == 1 and "p.hkv" or "p.hq");
//| if l.parts then
    parts = parts_for(total, (highest + 1) * unit, (int)gridDim.x);
    total *= parts;
//| end
  }

  // Finds the level of the n-th tile of a head: that with n < from(level), and not above it.
  __device__ __forceinline__ void descend(int n) {
    int found = from(level), below = level + 1, step = 1;
    while (found <= n) {
      below = level, above = found;
      level = max(level - step, 0);
      step *= 2;
      found = from(level);
    }
    while (below - level > 1) {
      const int middle = (level + below) / 2, there = from(middle);
      if (there > n)
        level = middle;
      else
        below = middle, above = there;
    }
  }

  // A row of -1 behind the last.
  __device__ __forceinline__ Tile tile(int index) {
    Tile w = {-1, 0, 0, 0$(l.parts and ", 0, 0, 1" or "")};
    if (index >= total) return w;
//| if l.parts then
    w.parts = parts;
    w.number = index / parts;
    w.part = index - w.number * parts;
    index = w.number;
//| end
//| if (c.pack or l.pack) == 1 then
    const int heads = p.hkv;
//| else
    const int heads = p.hq;
//| end
//| if (c.sections or 1) > 1 then
    const int widest = (p.section + $(c.sections - 1)) / $(c.sections);
//| else
    const int widest = p.section;
//| end
    const int per_section = per_head * widest, at = index / per_section, rest = index - at * per_section;
    const int width = min(widest, heads - at * widest);  // the last section may be narrower
    int n = rest / width;
    const int head = at * widest + rest - n * width;
    if (at != section) section = at, level = highest, above = 0;
    descend(n);
    n -= above;
    // The sequence: the n-th of those with tiles of that level, or the one whose tiles hold it.
#pragma unroll 1
    for (int first = 0; first < p.b; first += 32) {
      const Levels levels = first == 0 ? own : levels_of(first + (int)threadIdx.x % 32);
      const int here = levels.from(level) - levels.from(level + 1);
      int upto = here;
#pragma unroll
      for (int d = 1; d < 32; d *= 2) {
        const int more = __shfl_up_sync(~0u, upto, d);
        if ((int)threadIdx.x % 32 >= d) upto += more;
      }
      const u32 holds = __ballot_sync(~0u, upto > n);
      if (holds == 0) {
        n -= __shfl_sync(~0u, upto, 31);
        continue;
      }
      const int lane = __ffs(holds) - 1;
      w.batch = first + lane;
//| if p.mask == "causal" then
      w.row = (level - __shfl_sync(~0u, levels.lowest, lane)) * BR;
//| else
      w.row = (n - __shfl_sync(~0u, upto - here, lane)) * BR;
//| end
      break;
    }
//| if (c.pack or l.pack) == 1 then
    w.kv_head = head;
    w.head = head * p.group;
//| else
    w.head = head;
    w.kv_head = head / p.group;
//| end
    return w;
  }
};
