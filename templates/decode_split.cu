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

// Where a thread block is on the line: turns [turn, end) of a tile are next, `left` turns in all.
struct Walk {
  long long at, left;           // at: of `turn` on the line
  int batch, kv_head, tile;
  int turn, end, turns, tiles;  // turns: of a tile; tiles: of a head
  int lanes;                    // steps between heads of the line
  __device__ __forceinline__ void take() { end = left < turns - turn ? turn + (int)left : turns; }
  __device__ __forceinline__ void next_tile(const Params &p) {
    at += end - turn;
    left -= end - turn;
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
};

struct Split {
  Walk walk;
  long long size;           // turns of each thread block
  int lanes, lane;          // of this thread block
  // Which thread block it is on its line; the whole grid's number of such a one.
  __device__ __forceinline__ int index() const { return (int)blockIdx.x / lanes; }
  __device__ __forceinline__ long long block(long long index) const { return index * lanes + lane; }
};
//| if c.kv_lanes > 1 then
__device__ __forceinline__ int lanes_of(const Params &p) { return min(LANES, p.hkv & -p.hkv); }
//| else
__device__ __forceinline__ int lanes_of(const Params &) { return 1; }
//| end
__device__ __forceinline__ void choose_lane(const Params &p, Split &s) {
  s.lanes = lanes_of(p);
  s.lane = (int)blockIdx.x - s.index() * s.lanes;
}

//| if p.has_lengths then
// Sums over the threads in front of this one; *all over all of them. words: WARPS + 1 of the block.
__device__ __forceinline__ long long sum_before(long long mine, long long *words, long long *all) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  long long sum = mine;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const long long other = __shfl_up_sync(~0u, sum, d);
    if (lane >= d) sum += other;
  }
  if (lane == 31) words[warp] = sum;
  __syncthreads();
  long long before = sum - mine;
  *all = 0;
#pragma unroll
  for (int w = 0; w < THREADS / 32; w++) {
    if (w < warp) before += words[w];
    *all += words[w];
  }
  return before;
}

// Each thread adds up sequences of its own, one after the other; the one that meets the first turn of the thread block tells the others.
__device__ __forceinline__ Split split_of(const Params &p, void *room) {
  long long *const words = (long long *)room + 2;
  int *const found = (int *)(words + THREADS / 32);  // batch, turns, tiles
  long long *const rest = (long long *)room;
  const int each = (p.b + THREADS - 1) / THREADS, first = min((int)threadIdx.x * each, p.b), last = min(first + each, p.b);
  Split s;
  choose_lane(p, s);
  const int heads = p.hkv / s.lanes;  // of a line
  long long mine = 0, all;
#pragma unroll 4
  for (int i = first; i < last; i++) {
    const Sequence sequence = sequence_of(p, i);
    mine += (long long)turns_of(sequence) * tiles_of(p, sequence) * heads;
  }
  long long before = sum_before(mine, words, &all);
  const int shares = gridDim.x / s.lanes;
  s.size = max(divide(all + shares - 1, shares), (long long)CHUNK);
  const long long at = s.size * s.index();
  s.walk.at = at;
  s.walk.left = min(s.size, all - at);
  s.walk.batch = s.walk.kv_head = s.walk.tile = s.walk.turn = s.walk.turns = s.walk.tiles = s.walk.end = 0;
  s.walk.lanes = s.lanes;
  if (s.walk.left <= 0 || s.index() >= shares) {
    s.walk.left = 0;
    return s;
  }
  if (at >= before && at < before + mine) {
    for (int i = first; i < last; i++) {
      const Sequence sequence = sequence_of(p, i);
      const int turns = turns_of(sequence), tiles = tiles_of(p, sequence);
      const long long n = (long long)turns * tiles * heads;
      if (at < before + n) {
        found[0] = i;
        found[1] = turns;
        found[2] = tiles;
        *rest = at - before;
        break;
      }
      before += n;
    }
  }
  __syncthreads();
  Walk &w = s.walk;
  w.batch = found[0];
  w.turns = found[1];
  w.tiles = found[2];
  const long long tile = divide(*rest, w.turns);
  const int head = (int)divide(tile, w.tiles);
  w.turn = (int)(*rest - tile * w.turns);
  w.tile = (int)(tile - (long long)head * w.tiles);
  w.kv_head = head * s.lanes + s.lane;
  w.take();
  return s;
}
//| else
__device__ __forceinline__ Split split_of(const Params &p) {
  const Sequence sequence = sequence_of(p, 0);
  Split s;
  choose_lane(p, s);
  Walk &w = s.walk;
  w.lanes = s.lanes;
  w.turns = turns_of(sequence);
  w.tiles = tiles_of(p, sequence);
  const int shares = gridDim.x / s.lanes;
  const long long tiles = (long long)p.b * (p.hkv / s.lanes) * w.tiles;  // of a line
  s.size = max(divide(tiles * w.turns + shares - 1, shares), (long long)CHUNK);
  // As many blocks for every tile, and no block with parts of two, where that makes the longest share no longer by much.
  if (tiles <= shares && w.turns > 0) {
    const int parts = shares / (int)tiles;
    const long long even = max((w.turns + parts - 1) / parts, CHUNK);
    if (even * 16 <= s.size * 17) {
      s.size = even;
      w.turns = (w.turns + (int)even - 1) / (int)even * (int)even;
    }
  }
  w.at = s.size * s.index();
  w.left = s.index() < shares ? max(min(s.size, tiles * w.turns - w.at), 0ll) : 0;
  const long long tile = w.turns > 0 ? divide(w.at, w.turns) : 0;
  const u32 heads = (u32)divide(tile, w.tiles), of_line = (u32)(p.hkv / s.lanes);
  w.turn = (int)(w.at - tile * w.turns);
  w.tile = (int)(tile - (long long)heads * w.tiles);
  w.batch = (int)(heads / of_line);
  w.kv_head = (int)(heads - (u32)w.batch * of_line) * s.lanes + s.lane;
  w.take();
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
