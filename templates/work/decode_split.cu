//| needs "c.kv_lanes l.pdl l.walk"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// ---- which keys a thread block owns ----
// The work is a line: sequences, their key/value heads, row tiles of a head, and of each tile its turns of GROUPS blocks of keys. Thread
// block i owns [i, i + 1) * share of it, whatever the lengths: the grid never changes, and every thread block finds its part by itself.
// There are `lanes` such lines side by side, each with the heads that leave its number as remainder. Neighbouring heads of the same keys
// are read at about the same time, and their rows lie in the same pages of HBM.

//| pr.turns_of()
__device__ __forceinline__ int tiles_of(const Params &p, const Sequence &sequence) { return (row_count(p, sequence) + BR - 1) / BR; }

// a / b for a from 0 and b from 1, without a division where there is nothing to divide.
__device__ __forceinline__ long long divide(long long a, long long b) {
  if (a < b) return 0;
  return (a | b) >> 32 == 0 ? (long long)((u32)a / (u32)b) : a / b;
}

// A tile takes more places on the line than it has turns: what a thread block spends where a tile begins and ends counts as well. Where all
// tiles have as many turns, and there are no more of them than thread blocks, their places are a multiple of a share instead: no thread
// block has parts of two.
struct Places {
  // Of which a tile's places are a multiple$(p.has_batch_invariant and ", a segment" or ""); 0: they are its turns and ENDS more.
  int share;
  __device__ __forceinline__ int of(int turns) const {
//| local up = p.has_batch_invariant and "(turns + share - 1) & -share" or "(turns + share - 1) / share * share"
    return share > 0 ? $(up) : turns > 0 ? turns + ENDS : 0;
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
    const long long before = divide(place, all), heads = tiles == 1 ? before : divide(before, tiles);
    batch = sequence;
    turn = (int)(place - before * all);
    tile = (int)(before - heads * tiles);
    kv_head = (int)heads * lanes + lane;
    take();
//| if p.has_lengths then
  }
  // Only places may be left of the tile in which a thread block begins.
  __device__ __forceinline__ void skip_places(const Params &p) {
    if (left > 0 && turn >= turns) next_tile(p);
//| else
    if (turn >= turns) next_tile(p);  // only places are left of that tile
//| end
  }
};

//| if p.has_batch_invariant then
//|   include "work/decode_segments.cu"

//| end
struct Split {
  $(l.walk) walk;
  long long size;           // places of each thread block
  int lanes, lane, shares;  // lane: of this thread block; shares: thread blocks of a line
  // Which thread block it is on its line; the whole grid's number of such a one.
  __device__ __forceinline__ int index() const { return (int)$(wk.block) / lanes; }
  __device__ __forceinline__ long long block(long long index) const { return index * lanes + lane; }
//| if p.has_batch_invariant then
  // The thread block on whose share the tile at hand begins.
  __device__ __forceinline__ int home_of(const SegmentWalk &w) const { return (int)block(divide(w.begin_of_tile(), size)); }
//| end
  // The thread blocks that have turns of the tile at hand: the first of them, and how many there are.
  __device__ __forceinline__ int first_of(const Walk &w) const { return index() - (int)divide(w.turn + size - 1, size); }
  __device__ __forceinline__ int parts_of(const Walk &w) const {
    return 1 + (int)divide(w.turn + size - 1, size) + (int)divide(w.at - size * index() + w.turns - 1 - w.turn, size);
  }
  // turns, tiles: of a line; each: turns of every tile, 0 where they differ. Returns the place at which the thread block begins.
  __device__ __forceinline__ long long share_out(long long turns, long long tiles, int each) {
    long long all = turns + tiles * ENDS;
    walk.places.share = 0;
    size = max(divide(all + shares - 1, shares), (long long)MIN_TURNS);
//| if p.has_batch_invariant then
    if (each > 0) {  // as many segments for every thread block
      const int digits = segment_digits(each);
      const long long segments = tiles * Cuts{each, digits}.segments();
      size = divide(segments + shares - 1, shares) << digits;
      walk.places.share = 1 << digits;
      all = segments << digits;
    }
//| else
    if (each > 0 && tiles <= shares) {
      const int parts = shares / (int)tiles;
      const int even = max((each + parts - 1) / parts, MIN_TURNS);
      if ((long long)even * shares * 16 <= turns * 17 + shares * 16 || even == MIN_TURNS) {
        size = walk.places.share = even;
        all = tiles * walk.places.of(each);
      }
    }
//| end
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
  s.lane = (int)$(wk.block) - s.index() * s.lanes;
  s.shares = (int)$(wk.blocks) / s.lanes;
  s.walk.batch = s.walk.kv_head = s.walk.tile = s.walk.turn = s.walk.turns = s.walk.tiles = s.walk.end = s.walk.stop = 0;
}

//| if p.has_lengths then
// What of a sequence the shares follow from.
struct Extent {
  int turns, tiles;  // of a tile, of a head
};
//|   if l.pdl then
template <bool EARLY = false>
//|   end
__device__ __forceinline__ Extent extent_of(const Params &p, int index) {
  if (index >= p.b) return {0, 0};
  const Sequence sequence = sequence_of$(l.pdl and "<EARLY>" or "")(p, index);
  return {turns_of(sequence), tiles_of(p, sequence)};
}

// Every warp finds its thread block's share for itself, without a barrier: each lane adds up sequences of its own, one behind the other,
// and the place at which the thread block begins goes from one lane to the others by a shuffle. told: of the lane's sequence, where no lane
// has two; nothing else is read then.
__device__ __forceinline__ Split split_of(const Params &p, const Extent &told) {
  const int lane = threadIdx.x % 32, each = (p.b + 31) / 32, first = min(lane * each, p.b), last = min(first + each, p.b);
  Split s;
  choose_lane(p, s);
  const int heads = p.hkv / s.lanes;  // of a line
  // Of this lane's sequences: turns of all their tiles of a line, tiles that have any, the most and the least turns of such a tile.
  long long turns = 0;
  int tiles = 0, most = 0, least = 0x7fffffff;
#pragma unroll 8
  for (int i = first; i < last; i++) {
    const Extent extent = each == 1 ? told : extent_of(p, i);
    const int of_tile = extent.turns, n = of_tile > 0 ? extent.tiles * heads : 0;
    turns += (long long)of_tile * n;
    tiles += n;
    most = max(most, of_tile);
    if (of_tile > 0) least = min(least, of_tile);
  }
  long long turns_before = turns;
  int tiles_before = tiles;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const long long more_turns = __shfl_up_sync(~0u, turns_before, d);
    const int more_tiles = __shfl_up_sync(~0u, tiles_before, d);
    if (lane >= d) turns_before += more_turns, tiles_before += more_tiles;
  }
  most = __reduce_max_sync(~0u, most);
  least = __reduce_min_sync(~0u, least);
  const long long at =
      s.share_out(__shfl_sync(~0u, turns_before, 31), __shfl_sync(~0u, tiles_before, 31), most == least ? most : 0);
  if (s.walk.left == 0) return s;
  turns_before -= turns;
  tiles_before -= tiles;
  // The place at which this lane's sequences begin.
  long long place =
      s.walk.places.share > 0 ? (long long)tiles_before * s.walk.places.of(most) : turns_before + (long long)tiles_before * ENDS;
  int batch = -1, of_tile = 0, of_head = 0;
  if (at >= place && tiles > 0)
    for (int i = first; i < last && batch < 0; i++) {
      const Extent extent = each == 1 ? told : extent_of(p, i);
      of_tile = extent.turns;
      of_head = extent.tiles;
      const long long n = (long long)s.walk.places.of(of_tile) * of_head * heads;
      if (at < place + n)
        batch = i;
      else
        place += n;
    }
  const int source = __ffs(__ballot_sync(~0u, batch >= 0)) - 1;
  s.walk.turns = __shfl_sync(~0u, of_tile, source);
  s.walk.tiles = __shfl_sync(~0u, of_head, source);
  s.walk.begin(p, __shfl_sync(~0u, batch, source), __shfl_sync(~0u, at - place, source), s.lane);
  return s;
}

// Waits for what precedes it in the stream, and finds the share. The lengths have most often been there for long: the share is found from
// what they seem to be while the launch before ends$(l.pdl and ", and its first keys are fetched" or ""). It is found again where they have
// become others.
template <typename Fetch>
__device__ __forceinline__ Split split_of_launch(const Params &p, const Fetch &fetch) {
  const int lane = (int)threadIdx.x % 32;
//|   if l.pdl then
  bool waited = p.b > 32;
  if (waited) asm volatile("griddepcontrol.wait;" ::: "memory");
  Extent told = waited ? Extent{0, 0} : extent_of<true>(p, lane);
  Split s;
#pragma unroll 1
  while (true) {
    s = split_of(p, told);
    if (waited) break;
    fetch(s);
    asm volatile("griddepcontrol.wait;" ::: "memory");
    waited = true;
    const Extent now = extent_of(p, lane);
    if (__all_sync(~0u, now.turns == told.turns && now.tiles == told.tiles)) break;
    told = now;
  }
//|   else
  Split s = split_of(p, p.b <= 32 ? extent_of(p, lane) : Extent{0, 0});
//|   end
  s.walk.$(p.has_batch_invariant and "settle" or "skip_places")(p);
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
//|   if p.has_batch_invariant then
  s.walk.settle(p);
//|   end
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
