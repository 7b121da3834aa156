// ---- which keys a thread block owns ----
// The work is a line: sequences, their key/value heads, row tiles of a head, and of each tile its turns of GROUPS blocks of keys. Thread
// block i owns [i, i + 1) * share of it, whatever the lengths: the grid never changes, and every thread block finds its part by itself.
// There are `lanes` such lines side by side, each with the heads that leave its number as remainder: neighbouring heads of the same keys are
// read at about the same time, and their rows lie in the same pages of HBM.

// The turns that a tile of a sequence takes: those of the keys that some row sees.
__device__ __forceinline__ int first_block_of(const Sequence &sequence) { return first_key(sequence, 0) / BC; }
__device__ __forceinline__ int turns_of(const Sequence &sequence) {
  const int lo = first_key(sequence, 0), hi = last_key(sequence, sequence.sq() - 1);
  return sequence.sq() == 0 || hi < lo ? 0 : (hi / BC - lo / BC + GROUPS) / GROUPS;
}
__device__ __forceinline__ int tiles_of(const Params &p, const Sequence &sequence) { return (row_count(p, sequence) + BR - 1) / BR; }

__device__ __forceinline__ long long divide(long long a, long long b) {
  return (a | b) >> 32 == 0 ? (long long)((u32)a / (u32)b) : a / b;
}

// A tile takes more places on the line than it has turns: what a thread block spends where a tile begins and ends counts as well. Where all
// tiles have as many turns, and there are no more of them than thread blocks, their places are a multiple of a share instead: no thread
// block has parts of two.
struct Places {
  int share;  // of which a tile's places are a multiple; 0: they are its turns and ENDS more
  __device__ __forceinline__ int of(int turns) const {
    return share > 0 ? (turns + share - 1) / share * share : turns > 0 ? turns + ENDS : 0;
  }
};

// Where a thread block is on the line: turns [turn, end) of a tile are next, up to the tile's place `stop`; `left` places in all.
struct Walk {
  Places places;
  long long at, left;           // at: of `turn` on the line
  int batch, kv_head, tile;
  int turn, end, stop, turns;   // turns: of a tile
  int tiles;                    // of a head
  int lanes;                    // steps between heads of the line
  __device__ __forceinline__ void take() {
    const int all = places.of(turns);
    stop = left < all - turn ? turn + (int)left : all;
    end = min(stop, turns);
  }
  __device__ __forceinline__ void next_tile(const Params &p) {
    at += stop - turn;
    left -= stop - turn;
    turn = 0;
    if (++tile == tiles) {
      tile = 0;
      kv_head += lanes;
      if (kv_head >= p.hkv) {
        kv_head -= p.hkv;
//| if p.has_lengths then
        turns = 0;
        while (left > 0 && turns == 0) {
          const Sequence sequence = sequence_of(p, ++batch);
          turns = turns_of(sequence);
          tiles = tiles_of(p, sequence);
        }
//| else
        batch++;
//| end
      }
    }
    take();
  }
  // Begins `place` places behind the first tile of the sequence.
  __device__ __forceinline__ void begin(const Params &p, int sequence, long long place, int lane) {
    const int all = places.of(turns);
    const long long before = divide(place, all), heads = divide(before, tiles);
    batch = sequence;
    turn = (int)(place - before * all);
    tile = (int)(before - heads * tiles);
    kv_head = (int)heads * lanes + lane;
    take();
    if (turn >= turns) next_tile(p);  // only places are left of that tile
  }
};

struct Split {
  Walk walk;
  long long size;           // places of each thread block
  int lanes, lane, shares;  // lane: of this thread block; shares: thread blocks of a line
  // Which thread block it is on its line; the whole grid's number of such a one.
  __device__ __forceinline__ int index() const { return (int)blockIdx.x / lanes; }
  __device__ __forceinline__ long long block(long long index) const { return index * lanes + lane; }
  // turns, tiles: of a line; each: turns of every tile, 0 where they differ. Returns the place at which the thread block begins.
  __device__ __forceinline__ long long share_out(long long turns, long long tiles, int each) {
    long long all = turns + tiles * ENDS;
    walk.places.share = 0;
    size = max(divide(all + shares - 1, shares), (long long)CHUNK);
    if (each > 0 && tiles <= shares) {
      const int parts = shares / (int)tiles;
      const int even = max((each + parts - 1) / parts, CHUNK);
      if ((long long)even * 16 <= divide(turns + shares - 1, shares) * 17 || even == CHUNK) {
        size = walk.places.share = even;
        all = tiles * walk.places.of(each);
      }
    }
    const long long at = size * index();
    walk.at = at;
    walk.left = index() < shares ? max(min(size, all - at), 0ll) : 0;
    return at;
  }
};
//| if c.kv_lanes > 1 then
__device__ __forceinline__ int lanes_of(const Params &p) { return min(LANES, p.hkv & -p.hkv); }
//| else
__device__ __forceinline__ int lanes_of(const Params &) { return 1; }
//| end
__device__ __forceinline__ void choose_lane(const Params &p, Split &s) {
  s.lanes = s.walk.lanes = lanes_of(p);
  s.lane = (int)blockIdx.x - s.index() * s.lanes;
  s.shares = (int)gridDim.x / s.lanes;
  s.walk.batch = s.walk.kv_head = s.walk.tile = s.walk.turn = s.walk.turns = s.walk.tiles = s.walk.end = s.walk.stop = 0;
}

//| if p.has_lengths then
// Sums over sequences.
struct Count {
  long long turns;        // of all their tiles of a line
  int tiles;              // that have turns
  int most, least;        // turns of such a tile; least: 0x7fffffff of none
};

// Over the threads in front of this one; *all over all threads. warps: WARPS of the block.
__device__ __forceinline__ Count count_before(const Count &mine, Count *warps, Count *all) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Count sum = mine;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const long long turns = __shfl_up_sync(~0u, sum.turns, d);
    const int tiles = __shfl_up_sync(~0u, sum.tiles, d);
    if (lane >= d) sum.turns += turns, sum.tiles += tiles;
  }
  sum.most = __reduce_max_sync(~0u, mine.most);
  sum.least = __reduce_min_sync(~0u, mine.least);
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  Count before = {sum.turns - mine.turns, sum.tiles - mine.tiles, 0, 0};
  *all = warps[0];
  if (warp > 0) before.turns += warps[0].turns, before.tiles += warps[0].tiles;
#pragma unroll
  for (int w = 1; w < THREADS / 32; w++) {
    if (w < warp) before.turns += warps[w].turns, before.tiles += warps[w].tiles;
    all->turns += warps[w].turns;
    all->tiles += warps[w].tiles;
    all->most = max(all->most, warps[w].most);
    all->least = min(all->least, warps[w].least);
  }
  return before;
}

// What the thread that meets the first place of the thread block tells the others.
struct Found {
  int batch, turns, tiles;
  long long place;  // behind the sequence's first
};

// Each thread adds up sequences of its own, one after the other.
__device__ __forceinline__ Split split_of(const Params &p, void *room) {
  Found *const found = (Found *)room;
  Count *const warps = (Count *)(found + 1);
  const int each = (p.b + THREADS - 1) / THREADS, first = min((int)threadIdx.x * each, p.b), last = min(first + each, p.b);
  Split s;
  choose_lane(p, s);
  const int heads = p.hkv / s.lanes;  // of a line
  Count mine = {0, 0, 0, 0x7fffffff}, all;
#pragma unroll 4
  for (int i = first; i < last; i++) {
    const Sequence sequence = sequence_of(p, i);
    const int turns = turns_of(sequence), tiles = turns > 0 ? tiles_of(p, sequence) * heads : 0;
    mine.turns += (long long)turns * tiles;
    mine.tiles += tiles;
    mine.most = max(mine.most, turns);
    if (turns > 0) mine.least = min(mine.least, turns);
  }
  const Count before = count_before(mine, warps, &all);
  const long long at = s.share_out(all.turns, all.tiles, all.most == all.least ? all.most : 0);
  if (s.walk.left == 0) return s;
  // The place at which this thread's sequences begin.
  const int share = s.walk.places.share;
  long long place = share > 0 ? (long long)before.tiles * s.walk.places.of(all.most) : before.turns + (long long)before.tiles * ENDS;
  if (at >= place && mine.tiles > 0)
    for (int i = first; i < last; i++) {
      const Sequence sequence = sequence_of(p, i);
      const int turns = turns_of(sequence), tiles = tiles_of(p, sequence);
      const long long n = (long long)s.walk.places.of(turns) * tiles * heads;
      if (at < place + n) {
        if (at >= place) *found = {i, turns, tiles, at - place};
        break;
      }
      place += n;
    }
  __syncthreads();
  s.walk.turns = found->turns;
  s.walk.tiles = found->tiles;
  s.walk.begin(p, found->batch, found->place, s.lane);
  return s;
}
//| else
__device__ __forceinline__ Split split_of(const Params &p) {
  const Sequence sequence = sequence_of(p, 0);
  Split s;
  choose_lane(p, s);
  Walk &w = s.walk;
  w.turns = turns_of(sequence);
  w.tiles = tiles_of(p, sequence);
  const int heads = p.hkv / s.lanes;                          // of a line
  const long long tiles = w.turns > 0 ? (long long)p.b * heads * w.tiles : 0;
  const long long at = s.share_out(tiles * w.turns, tiles, w.turns);
  if (w.left == 0) return s;
  const long long of_sequence = (long long)w.places.of(w.turns) * w.tiles * heads, before = divide(at, of_sequence);
  w.begin(p, (int)before, at - before * of_sequence, s.lane);
  return s;
}
//| end

// One row tile of one key/value head.
struct Tile {
  int row, rows;    // its first row, and how many rows the head has
  int kv_head, head;
  int first_block;  // of its first turn
  Range range;
};
__device__ __forceinline__ Tile tile_of(const Params &p, const Sequence &sequence, const Walk &walk) {
  Tile t;
  t.row = walk.tile * BR;
  t.rows = row_count(p, sequence);
  t.kv_head = walk.kv_head;
  t.head = walk.kv_head * p.group;
  t.first_block = first_block_of(sequence);
  t.range = key_range(p, sequence, t.row, min(t.row + BR, t.rows) - 1);
  return t;
}
