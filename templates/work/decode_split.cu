//| needs "c.kv_lanes l.heads? l.low? l.pdl l.walk"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// ---- which keys a thread block owns ----
// As in stream-K, one work index counts all work items: sequences, their key/value heads, row tiles of a head, and of each tile its
// iterations, each over GROUPS blocks of keys. Thread block i owns the work items [i, i + 1) * size, whatever the lengths: the grid never
// changes, and every thread block finds its share by itself.
// There are `streams` of heads, each with a work index of its own: stream n has the heads h with h % streams = n. So neighbouring heads of
// the same keys are read at about the same time, and their rows lie in the same pages of HBM.

//| if l.heads then
// Heads are counted by HEADS, which a thread block walks side by side.
//| end
//| local all_heads = l.heads and "heads_to_walk(p)" or "p.hkv"
//| if l.heads then
__device__ __forceinline__ int heads_to_walk(const Params &p) { return (p.hkv + HEADS - 1) / HEADS; }
//| end
//| pr.iterations_of()
__device__ __forceinline__ int tiles_of(const Params &p, const Sequence &sequence) { return (row_count(p, sequence) + BR - 1) / BR; }

// a / b for a >= 0 and b >= 1, without a division where a < b. The compiler takes one of 32 bits where these are enough.
__device__ __forceinline__ long long divide(long long a, long long b) {
  return a < b ? 0 : (long long)((unsigned long long)a / (unsigned long long)b);
}

// A tile has more work items than iterations: what a thread block spends where a tile begins and ends counts as well. Where all tiles have
// the same number of iterations, and there are no more tiles than thread blocks, a tile's work items are a multiple of a share instead: no
// thread block has parts of two. Work items after a tile's last iteration are padding.
struct Items {
  // A tile's work items are a multiple of it$(p.has_batch_invariant and ", a segment" or ""); 0: they are its iterations and ENDS more.
  int share;
  __device__ __forceinline__ int of(int iterations) const {
//| local up = p.has_batch_invariant and "(iterations + share - 1) & -share" or "(iterations + share - 1) / share * share"
    return share > 0 ? $(up) : iterations > 0 ? iterations + ENDS : 0;
  }
};

// Where a thread block is in its share: iterations [iteration, end) of a tile are next, up to the tile's work item `stop`; `left`
// work items in all.
struct Walk {
  Items items;
  long long at, left;           // at: the work index of `iteration`
  int batch, kv_head, tile;
//| if p.has_lengths then
  int iteration, end, stop, iterations;  // iterations: of a tile
//| else
  int iteration, end, stop, iterations, all;  // iterations, all: of every tile, and its work items
//| end
  int tiles;                    // of a head
  int streams;                  // from a head of the stream to its next
  __device__ __forceinline__ void take() {
//| if p.has_lengths then
    const int all = items.of(iterations);
//| end
    stop = left < all - iteration ? iteration + (int)left : all;
    end = min(stop, iterations);
  }
  __device__ __forceinline__ void next_tile(const Params &p) {
    at += stop - iteration;
    left -= stop - iteration;
    iteration = 0;
    if (++tile == tiles) {
      tile = 0;
      kv_head += streams;
      if (kv_head >= $(all_heads)) {
        kv_head -= $(all_heads);
//| if p.has_lengths then
        iterations = 0;
        while (left > 0 && iterations == 0) {
          const Sequence sequence = sequence_of(p, ++batch);
          iterations = iterations_of(sequence);
          tiles = tiles_of(p, sequence);
        }
//| else
        batch++;
//| end
      }
    }
    take();
  }
  // Begins `item` work items after the beginning of the sequence's first tile.
  __device__ __forceinline__ void begin(const Params &p, int sequence, long long item, int stream) {
    $(p.has_lengths and "const int " or "")all = items.of(iterations);
    const long long before = divide(item, all), heads = tiles == 1 ? before : divide(before, tiles);
    batch = sequence;
    iteration = (int)(item - before * all);
    tile = (int)(before - heads * tiles);
    kv_head = (int)heads * streams + stream;
    take();
//| if p.has_lengths then
  }
  // Only padding may be left of the tile in which a thread block begins.
  __device__ __forceinline__ void skip_padding(const Params &p) {
    if (left > 0 && iteration >= iterations) next_tile(p);
//| else
    if (iteration >= iterations) next_tile(p);  // only padding is left of that tile
//| end
  }
};

//| if p.has_batch_invariant then
//|   include "work/decode_segments.cu"

//| end
struct Split {
  $(l.walk) walk;
  long long size;               // work items of each thread block
  int streams, stream, shares;  // stream: of this thread block; shares: thread blocks of a stream
  // This thread block's number in its stream; the number in the grid of the stream's thread block `index`.
  __device__ __forceinline__ int index() const { return (int)$(wk.block) / streams; }
  __device__ __forceinline__ long long block(long long index) const { return index * streams + stream; }
//| if p.has_batch_invariant then
  // The thread block in whose share the tile at hand begins.
  __device__ __forceinline__ int home_of(const SegmentWalk &w) const { return (int)block(divide(w.begin_of_tile(), size)); }
//| end
  // The thread blocks that have iterations of the tile at hand: the first of them, and how many there are.
  __device__ __forceinline__ int first_of(const Walk &w) const { return index() - (int)divide(w.iteration + size - 1, size); }
  __device__ __forceinline__ int parts_of(const Walk &w) const {
    return 1 + (int)divide(w.iteration + size - 1, size) + (int)divide(w.at - size * index() + w.iterations - 1 - w.iteration, size);
  }
  // iterations, tiles: of a stream; each: iterations of every tile, 0 where they differ. Returns the work index at which the thread block
  // begins.
  __device__ __forceinline__ long long share_out(long long iterations, long long tiles, int each) {
    long long all = iterations + tiles * ENDS;
    walk.items.share = 0;
    size = max(divide(all + shares - 1, shares), (long long)MIN_TURNS);
//| if p.has_batch_invariant then
    if (each > 0) {  // as many segments for every thread block
      const int digits = segment_digits(each);
      const long long segments = tiles * Cuts{each, digits}.segments();
      size = divide(segments + shares - 1, shares) << digits;
      walk.items.share = 1 << digits;
      all = segments << digits;
    }
//| else
    if (each > 0 && tiles <= shares) {
      const int parts = shares / (int)tiles;
      const int even = max((each + parts - 1) / parts, MIN_TURNS);
      if ((long long)even * shares * 16 <= iterations * 17 + shares * 16 || even == MIN_TURNS) {
        size = walk.items.share = even;
        all = tiles * walk.items.of(each);
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
// All heads of a sequence where they are no more than LANES.
__device__ __forceinline__ int streams_of(const Params &p) {
  const int heads = $(all_heads);
  return heads <= LANES ? heads : min(LANES, heads & -heads);
}
//| else
__device__ __forceinline__ int streams_of(const Params &) { return 1; }
//| end
__device__ __forceinline__ void choose_stream(const Params &p, Split &s) {
  s.streams = s.walk.streams = streams_of(p);
  s.stream = (int)$(wk.block) - s.index() * s.streams;
  s.shares = (int)$(wk.blocks) / s.streams;
//| local all = p.has_lengths and "" or "s.walk.all = "
  s.walk.batch = s.walk.kv_head = s.walk.tile = s.walk.iteration = s.walk.iterations = s.walk.tiles = s.walk.end = s.walk.stop = $(all)0;
}

//| if p.has_lengths then
// What the shares need to know of a sequence.
struct Extent {
  int iterations, tiles;  // of a tile, of a head
};
//|   if l.pdl then
template <bool EARLY = false>
//|   end
__device__ __forceinline__ Extent extent_of(const Params &p, int index) {
  if (index >= p.b) return {0, 0};
  const Sequence sequence = sequence_of$(l.pdl and "<EARLY>" or "")(p, index);
  return {iterations_of(sequence), tiles_of(p, sequence)};
}

//|   local two = l.low and l.pdl  -- sequences of a lane that it knows before
//|   local extent = two and "each <= 2 ? (i == first ? held.first : held.second)" or "each == 1 ? held"
//|   if two then
// Of a lane's two sequences.
struct Extents {
  Extent first, second;
  template <bool EARLY = false>
  static __device__ __forceinline__ Extents of(const Params &p, int lane) {
    const int each = (p.b + 31) / 32, own = lane * each;
    return {extent_of<EARLY>(p, own), each > 1 ? extent_of<EARLY>(p, own + 1) : Extent{0, 0}};
  }
  __device__ __forceinline__ bool is(const Extents &x) const {
    return first.iterations == x.first.iterations && first.tiles == x.first.tiles && second.iterations == x.second.iterations &&
           second.tiles == x.second.tiles;
  }
};

// Every warp finds its thread block's share for itself, without a barrier: each lane adds up consecutive sequences of its own, and the lane
// whose sequences hold the beginning of the share hands it to the others by a shuffle. held: extents of the lane's sequences, where no lane
// has more than two; nothing else is read then.
__device__ __forceinline__ Split split_of(const Params &p, const Extents &held) {
//|   else
// Every warp finds its thread block's share for itself, without a barrier: each lane adds up consecutive sequences of its own, and the lane
// whose sequences hold the beginning of the share hands it to the others by a shuffle. held: the extent of the lane's sequence, where no
// lane has two; nothing else is read then.
__device__ __forceinline__ Split split_of(const Params &p, const Extent &held) {
//|   end
  const int lane = threadIdx.x % 32, each = (p.b + 31) / 32, first = min(lane * each, p.b), last = min(first + each, p.b);
  Split s;
  choose_stream(p, s);
  const int heads = $(all_heads) / s.streams;  // of a stream
  // Of this lane's sequences: iterations of all their tiles of a stream, tiles that have any, and the most and the least iterations of such
  // a tile.
  long long iterations = 0;
  int tiles = 0, most = 0, least = 0x7fffffff;
#pragma unroll 2
  for (int i = first; i < last; i++) {
    const Extent extent = $(extent) : extent_of(p, i);
    const int of_tile = extent.iterations, n = of_tile > 0 ? extent.tiles * heads : 0;
    iterations += (long long)of_tile * n;
    tiles += n;
    most = max(most, of_tile);
    if (of_tile > 0) least = min(least, of_tile);
  }
  long long iterations_before = iterations;
  int tiles_before = tiles;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const long long more_iterations = __shfl_up_sync(~0u, iterations_before, d);
    const int more_tiles = __shfl_up_sync(~0u, tiles_before, d);
    if (lane >= d) iterations_before += more_iterations, tiles_before += more_tiles;
  }
  most = __reduce_max_sync(~0u, most);
  least = __reduce_min_sync(~0u, least);
  const long long at =
      s.share_out(__shfl_sync(~0u, iterations_before, 31), __shfl_sync(~0u, tiles_before, 31), most == least ? most : 0);
  if (s.walk.left == 0) return s;
  iterations_before -= iterations;
  tiles_before -= tiles;
  // The work index at which this lane's sequences begin.
  long long item =
      s.walk.items.share > 0 ? (long long)tiles_before * s.walk.items.of(most) : iterations_before + (long long)tiles_before * ENDS;
  int batch = -1, of_tile = 0, of_head = 0;
  if (at >= item && tiles > 0)
    for (int i = first; i < last && batch < 0; i++) {
      const Extent extent = $(extent) : extent_of(p, i);
      of_tile = extent.iterations;
      of_head = extent.tiles;
      const long long n = (long long)s.walk.items.of(of_tile) * of_head * heads;
      if (at < item + n)
        batch = i;
      else
        item += n;
    }
  const int source = __ffs(__ballot_sync(~0u, batch >= 0)) - 1;
  s.walk.iterations = __shfl_sync(~0u, of_tile, source);
  s.walk.tiles = __shfl_sync(~0u, of_head, source);
  s.walk.begin(p, __shfl_sync(~0u, batch, source), __shfl_sync(~0u, at - item, source), s.stream);
  return s;
}

// Waits for what precedes it in the CUDA stream, and finds the share. Most often the lengths were written long before: the share is found
// from what they seem to be while the launch before ends$(l.pdl and ", and its first keys are fetched" or ""). It is found again where they
// have changed.
template <typename Fetch>
__device__ __forceinline__ Split split_of_launch(const Params &p, const Fetch &fetch) {
  const int lane = (int)threadIdx.x % 32;
//|   if l.pdl then
//|     local known = two and "Extents" or "Extent"
//|     local read = two and "Extents::of" or "extent_of"
//|     local same = two and "now.is(held)" or "now.iterations == held.iterations && now.tiles == held.tiles"
  bool waited = p.b > $(two and 64 or 32);
  if (waited) asm volatile("griddepcontrol.wait;" ::: "memory");
  $(known) held = waited ? $(known)$(two and "{{0, 0}, {0, 0}}" or "{0, 0}") : $(read)<true>(p, lane);
  Split s;
#pragma unroll 1
  while (true) {
    s = split_of(p, held);
    if (waited) break;
    fetch(s);
    asm volatile("griddepcontrol.wait;" ::: "memory");
    waited = true;
    const $(known) now = $(read)(p, lane);
    if (__all_sync(~0u, $(same))) break;
    held = now;
  }
//|   else
  Split s = split_of(p, p.b <= 32 ? extent_of(p, lane) : Extent{0, 0});
//|   end
  s.walk.$(p.has_batch_invariant and "find_run" or "skip_padding")(p);
  return s;
}
//| else
__device__ __forceinline__ Split split_of(const Params &p) {
  const Sequence sequence = sequence_of(p, 0);
  Split s;
  choose_stream(p, s);
  Walk &w = s.walk;
  w.iterations = iterations_of(sequence);
  w.tiles = tiles_of(p, sequence);
  const int heads = $(all_heads) / s.streams;  // of a stream
  const long long tiles = w.iterations > 0 ? (long long)p.b * heads * w.tiles : 0;
  const long long at = s.share_out(tiles * w.iterations, tiles, w.iterations);
  if (w.left == 0) return s;
  const long long of_sequence = (long long)w.items.of(w.iterations) * w.tiles * heads, before = divide(at, of_sequence);
  w.begin(p, (int)before, at - before * of_sequence, s.stream);
//|   if p.has_batch_invariant then
  s.walk.find_run(p);
//|   end
  return s;
}
//| end

// One row tile of one key/value head.
struct Tile {
  int row, rows;    // its first row, and how many rows the head has
  int kv_head, head;
  int first_block;  // of its first iteration
  Range range;
};
//| if l.heads then
// side: which of the heads side by side.
__device__ __forceinline__ Tile tile_of(const Params &p, const Sequence &sequence, const Walk &walk,
                                        int side = (int)threadIdx.x / HEAD_THREADS) {
//| else
__device__ __forceinline__ Tile tile_of(const Params &p, const Sequence &sequence, const Walk &walk) {
//| end
  Tile t;
  t.row = walk.tile * BR;
  t.rows = row_count(p, sequence);
//| if l.heads then
  t.kv_head = min(walk.kv_head * HEADS + side, p.hkv - 1);  // the last is done again where there are less
  t.head = t.kv_head * p.group;
//| else
  t.kv_head = walk.kv_head;
  t.head = walk.kv_head * p.group;
//| end
  t.first_block = first_block_of(sequence);
  t.range = $(pr.range_of("t.head", "t.row", "min(t.row + BR, t.rows) - 1"));
  return t;
}
//| pr.class_of()
