//| needs "l.placed? c.pack? c.sections? l.near? l.order? l.pack? l.parts l.shared? l.split? l.tma? l.walks?"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| local packed = (c.pack or l.pack) == 1
// ---- in which order tiles are done where every sequence has its own lengths ----
// The tiles of a head, of 32 sequences, longest first: those with the most keys before their right edge, whichever sequence they
// belong to; then those of the next 32. The lengths are on the device, so every warp finds its tiles there, without a list. Each lane has
// one of the 32 sequences. A tile's level counts its keys in units of a tile's queries, and the number of tiles from a level up is a sum
// over the lanes (`from`), by which the n-th tile is found.
//| if pr.grow then
// Where sequences are masked causally a sequence has one tile of each level, from its first tile's on.
//| else
// The tiles of a sequence are all of one level.
//| end
//| if l.walks then
// How many parts the tiles of a sequence have says the sequence. There are two passes: first tiles of which one block walks all parts, then
// the parts of tiles that are shared, which are counted like tiles.
//| end
//| local times = l.walks and " * each" or ""

// One sequence, as far as the order needs it.
struct Levels {
  int lowest, tiles;  // level of its first tile; tiles of one head
//| if l.walks then
  int each;           // what each tile counts in this pass: 0, 1 or its parts
//| end
  // Its tiles of a level and of those above.
  __device__ __forceinline__ int from(int level) const {
//| if pr.grow then
    return max(min(lowest + tiles - level, tiles), 0)$(times);
//| else
    return level <= lowest ? tiles$(times) : 0;
//| end
  }
  __device__ __forceinline__ int highest() const {
//| if pr.grow then
    return tiles > 0 ? lowest + tiles - 1 : 0;
//| else
    return tiles > 0 ? lowest : 0;
//| end
  }
};

//| if l.split then
//|   include "work/split_parts.cu"

//| elseif l.parts then
// How many parts each of `tiles` tiles, of which the longest sees `keys` keys and one in the mean `mean`, is cut into for `blocks` thread
// blocks: what takes the least rounds of a part each, where that saves more than adding up costs. Two blocks of keys at least in each, and
// no more parts than there is room for. A part is left and added up in the time of ADDING keys, or of a sixteenth of its own: 9 to 20 us of
// 128 rows on an H200, more for more columns, however many parts there are. Where a tile of LONG keys stands out among others, rounds are
// as long as the others, and none is shorter than its part: cut where a quarter of the time is spared.
__device__ __forceinline__ int parts_for(int tiles, int keys, int mean, int blocks) {
  constexpr int ADDING = 720, LONG = 8192;
  const int most = min(min(8, keys / (2 * BC)), tiles > 0 ? blocks * PART_TILES / tiles : 1);
  if (most < 2) return 1;
  const bool stands_out = keys >= LONG && 2 * keys > 5 * mean;
  const int usual = stands_out ? mean : keys;
  int best = 1, least = max((tiles + blocks - 1) / blocks * usual, keys);
  if (stands_out) least -= least / 4;
  for (int n = 2; n <= most; n++) {
    auto part = [n](int of) { return of / n + max(of / (16 * n), ADDING); };
    const int time = max((tiles * n + blocks - 1) / blocks * part(usual), part(keys));
    if (time < least) best = n, least = time;
  }
  return best;
}

//| pr.part_of()

//| end
// What the search for tiles keeps: for each lane, and for all.
struct LaneSequence {
  Levels levels;
  int number;  // in the batch
//| if l.walks then
  int parts, number_of_first, place;  // of each tile; number and place of the first of its tiles, number -1: they are walked
//| else
  int width;   // heads of a section, the same in all lanes
//| end
};
//| if l.walks then
struct Counts {
  int per_head;      // tiles of a head of the 32 sequences at hand, as they count in this pass
  int begin, total;  // of all heads: of the sequences before these, of both passes
  int walked;        // of the first pass
  int parts, places; // of the sequences that are cut, up to these: all parts, and tiles
  int pass;
  __device__ __forceinline__ int end(int heads) const { return begin + per_head * heads; }
};
//| elseif l.shared then
struct Counts {
  int per_head;      // tiles of a head of the 32 sequences at hand
  int begin, total;  // tiles of all heads of the sequences before these; what there is to take: tiles that are not cut, then parts
  int parts;         // of each tile that is cut
  int whole;         // tiles that are not
//| if l.placed then
  int chunk, places; // blocks of keys of a part, or 0: all tiles are cut alike; tiles of the sequences before these
//| end
  __device__ __forceinline__ int end(int heads) const { return begin + per_head * heads; }
};
//| else
struct Counts {
  int per_head;      // tiles of a head of the 32 sequences at hand
  int begin, total;  // tiles of all heads, times their parts: of the sequences before these, of all
  int parts;         // of each tile
  __device__ __forceinline__ int end(int heads) const { return begin + per_head * heads * parts; }
};
//| end
struct Found {
  int section;       // of heads, the one at hand; -1: none
  int level, above;  // the level of the tile found last in it; tiles of the levels above
};

// To be used by whole warps. Tiles are asked for in growing order.
struct TileOrder {
  const Params &p;
//| if l.walks then
  u32 smem;  // what is kept lies there: the scheduler has few registers
  __device__ __forceinline__ u32 place_of_lane() const { return smem + $(l.order + 48) + threadIdx.x % 32 * 32; }
  __device__ __forceinline__ LaneSequence own() const {
    const uint4 x = load_shared_x4(place_of_lane()), y = load_shared_x4(place_of_lane() + 16);
    return {{(int)x.x, (int)x.y, (int)x.z}, (int)x.w, (int)y.x, (int)y.y, (int)y.z};
  }
  __device__ __forceinline__ Counts counts() const {
    const uint4 x = load_shared_x4(smem + $(l.order)), y = load_shared_x4(smem + $(l.order + 32));
    return {(int)x.x, (int)x.y, (int)x.z, (int)x.w, (int)y.x, (int)y.y, (int)y.z};
  }
  __device__ __forceinline__ Found found() const {
    const uint4 x = load_shared_x4(smem + $(l.order + 16));
    return {(int)x.x, (int)x.y, (int)x.z};
  }
  __device__ __forceinline__ void keep(const LaneSequence &x) {
    store_shared(place_of_lane(), make_uint4(x.levels.lowest, x.levels.tiles, x.levels.each, x.number));
    store_shared(place_of_lane() + 16, make_uint4(x.parts, x.number_of_first, x.place, 0));
  }
  __device__ __forceinline__ void keep(const Counts &n) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      store_shared(smem + $(l.order), make_uint4(n.per_head, n.begin, n.total, n.walked));
      store_shared(smem + $(l.order + 32), make_uint4(n.parts, n.places, n.pass, 0));
    }
    __syncwarp();
  }
  __device__ __forceinline__ void keep(const Found &f) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) store_shared(smem + $(l.order + 16), make_uint4(f.section, f.level, f.above, 0));
    __syncwarp();
  }
//| elseif l.tma then
  u32 smem;  // what is kept lies there: the scheduler has few registers
  __device__ __forceinline__ LaneSequence own() const {
    const uint4 x = load_shared_x4(smem + $(l.order + 32) + threadIdx.x % 32 * 16);
    return {{(int)x.x, (int)x.y}, (int)x.z, (int)x.w};
  }
  __device__ __forceinline__ Counts counts() const {
    const uint4 x = load_shared_x4(smem + $(l.order));
//|   if l.shared then
//|     if l.placed then
    const uint4 y = load_shared_x4(smem + $(l.order + 32 + 32 * 16));
    return {(int)x.x, (int)x.y, (int)x.z, (int)x.w, (int)y.x, (int)y.y, (int)y.z};
//|     else
    return {(int)x.x, (int)x.y, (int)x.z, (int)x.w, (int)load_shared(smem + $(l.order + 32 + 32 * 16))};
//|     end
//|   else
    return {(int)x.x, (int)x.y, (int)x.z, (int)x.w};
//|   end
  }
  __device__ __forceinline__ Found found() const {
    const uint4 x = load_shared_x4(smem + $(l.order + 16));
    return {(int)x.x, (int)x.y, (int)x.z};
  }
  __device__ __forceinline__ void keep(const LaneSequence &x) {
    store_shared(smem + $(l.order + 32) + threadIdx.x % 32 * 16, make_uint4(x.levels.lowest, x.levels.tiles, x.number, x.width));
  }
  __device__ __forceinline__ void keep(const Counts &n) {
    __syncwarp();
//|   if l.shared then
    if (threadIdx.x % 32 == 0) {
      store_shared(smem + $(l.order), make_uint4(n.per_head, n.begin, n.total, n.parts));
      store_shared(smem + $(l.order + 32 + 32 * 16), $(l.placed and "make_uint4(n.whole, n.chunk, n.places, 0)" or "(u32)n.whole"));
    }
//|   else
    if (threadIdx.x % 32 == 0) store_shared(smem + $(l.order), make_uint4(n.per_head, n.begin, n.total, n.parts));
//|   end
    __syncwarp();
  }
  __device__ __forceinline__ void keep(const Found &f) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) store_shared(smem + $(l.order + 16), make_uint4(f.section, f.level, f.above, 0));
    __syncwarp();
  }
//| else
  LaneSequence own_;
  Counts counts_;
  Found found_;
  __device__ __forceinline__ const LaneSequence &own() const { return own_; }
  __device__ __forceinline__ const Counts &counts() const { return counts_; }
  __device__ __forceinline__ const Found &found() const { return found_; }
  __device__ __forceinline__ void keep(const LaneSequence &x) { own_ = x; }
  __device__ __forceinline__ void keep(const Counts &n) { counts_ = n; }
  __device__ __forceinline__ void keep(const Found &f) { found_ = f; }
//| end

  __device__ __forceinline__ int heads() const { return $(wk.heads(packed)); }
//| if l.parts and not l.split then
  // Of all tiles, by the sums of the lanes.
  __device__ __forceinline__ float mean_level(float sum, int tiles) const {
#pragma unroll
    for (int i = 16; i > 0; i /= 2) sum += __shfl_xor_sync(~0u, sum, i);
    return sum * (float)heads() / (float)max(tiles, 1);
  }
//| end
//| if not l.split then
  // Queries of a tile.
  __device__ __forceinline__ int unit() const { return $(packed and "max(BR / p.group, 1)" or "BR"); }
//| end
  __device__ __forceinline__ int total() const { return counts().total; }

//| pr.levels_of()

//| if not l.split then
//|   pr.keys_of()
  // Heads that run side by side so that so many keys of each share the L2: sections are as wide as each other.
  __device__ __forceinline__ int width_of(int keys) const {
    const int most = min(max(p.section_keys / max(keys, 1), 1), p.hkv), sections = (p.hkv + most - 1) / most;
    return (p.hkv + sections - 1) / sections$(packed and "" or " * p.group");
  }
//| end

//| if l.walks then
  // The sum over the lanes up to this one.
  __device__ __forceinline__ static int upto_lane(int x) {
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const int more = __shfl_up_sync(~0u, x, d);
      if (threadIdx.x % 32 >= (u32)d) x += more;
    }
    return x;
  }
  // A lane's sequence, and where its parts are: `parts` and `places` of those before are the warp's, and go on past its sequences.
  __device__ __forceinline__ LaneSequence lane_sequence(int number, int pass, int &parts, int &places_before) const {
    LaneSequence x = {levels_of(number), number, 1, -1, 0};
    const int tiles = x.levels.tiles * heads();
    x.parts = parts_of(tiles, (int)(((x.levels.highest() + 1ll) * BR / p.group + BC - 1) / BC));
    const int cut = x.parts > 1 ? tiles : 0, parts_upto = parts + upto_lane(cut * x.parts), tiles_upto = places_before + upto_lane(cut);
    if (cut > 0 && parts_upto <= places()) x.number_of_first = parts_upto - cut * x.parts, x.place = tiles_upto - cut;
    x.levels.each = (x.number_of_first < 0) == (pass == 0) ? pass == 0 ? 1 : x.parts : 0;
    parts = __shfl_sync(~0u, parts_upto, 31);
    places_before = __shfl_sync(~0u, tiles_upto, 31);
    return x;
  }

//| end
//| if l.shared then
//|   local chunk, of_chunk, each = "", "", ""
//|   if l.placed then
//|     chunk, of_chunk, each = ", int chunk", ", chunk", " * parts_of_tile(levels, chunk)"
  // Of each tile of a sequence, by the keys of its longest.
  __device__ __forceinline__ int parts_of_tile(const Levels &levels, int chunk) const {
    if (chunk == 0) return 1;
    const int blocks = (int)(((levels.highest() + 1ll) * BR / p.group + BC - 1) / BC);
    return max((blocks + chunk - 1) / chunk, 1);
  }
//|   end
  // Sequences are the lanes'; $(l.placed and "what there is to take" or "tiles") of a head of these.
  __device__ __forceinline__ int deal(const Levels &levels, int number$(chunk)) {
    keep(LaneSequence{levels, number, p.hkv});  // few tiles of a head read the same keys, and these run side by side
    keep(Found{-1, 0, 0});
    return __reduce_add_sync(~0u, levels.tiles$(each));
  }
  // The same of those from number `first` on.
  __device__ __forceinline__ int gather(int first$(chunk)) {
    const int number = min(first + (int)(threadIdx.x % 32), p.b);
    return deal(levels_of(number), number$(of_chunk));
  }
//| else
  // Deals sequences that have tiles to the lanes, from number `first` on; tiles of a head of these. Other sequences, as those that take one
  // token, may hold most keys of the batch: how many heads share the L2 does not depend on them.
//| if l.walks then
  __device__ __forceinline__ void gather(int first, Counts &sums) {
//| else
  __device__ __forceinline__ int gather(int first) {
//| end
    const int lane = (int)(threadIdx.x % 32);
    int n = 0, number = p.b;
#pragma unroll 1
    for (; first < p.b && n < 32; first += 32)
#pragma unroll 1
      for (u32 left = __ballot_sync(~0u, levels_of(first + lane).tiles > 0); left != 0 && n < 32; left &= left - 1, n++)
        if (lane == n) number = first + __ffs(left) - 1;
//| if l.walks then
    const LaneSequence x = lane_sequence(number, sums.pass, sums.parts, sums.places);
    keep(x);
    keep(Found{-1, 0, 0});
    sums.per_head = __reduce_add_sync(~0u, x.levels.tiles * x.levels.each);
    keep(sums);
  }
//| else
    const Levels levels = levels_of(number);
//|   if l.split then
    keep(LaneSequence{levels, number, p.hkv});  // few tiles of a head read the same keys, and these run side by side
//| else
    keep(LaneSequence{levels, number, width_of(__reduce_add_sync(~0u, keys_of(number)))});
//|   end
    keep(Found{-1, 0, 0});
    return __reduce_add_sync(~0u, levels.tiles);
  }
//| end
//| end

//| if l.tma then
  __device__ __forceinline__ TileOrder(const Params &p, u32 smem) : p(p), smem(smem) {
//| else
  __device__ __forceinline__ explicit TileOrder(const Params &p) : p(p) {
//| end
//| if l.walks then
    Counts n = {0, 0, 0, 0, 0, 0, 0};
    int walked = 0, shared = 0, items = 0;
#pragma unroll 1
    for (int first = 0; first < p.b; first += 32) {
      const LaneSequence x = lane_sequence(first + (int)(threadIdx.x % 32), 0, n.parts, n.places);
      if (x.number_of_first < 0)
        walked += x.levels.tiles;
      else
        shared += x.levels.tiles, items += x.levels.tiles * x.parts;
    }
    shared = __reduce_add_sync(~0u, shared) * heads();
    if ($(wk.block) == 0 && threadIdx.x % 32 == 0) *(int4 *)p.tiles_open = make_int4(shared, 0, 0, 0);  // for the second step
    n.walked = __reduce_add_sync(~0u, walked) * heads();
    n.total = n.walked + __reduce_add_sync(~0u, items) * heads();
    n.parts = n.places = 0;
    keep(LaneSequence{{}, -1});  // no sequence yet: tile() deals the first
    keep(n);
  }
//| else
    int tiles = 0, most = 0;
//| if l.shared then
    const int lane = (int)(threadIdx.x % 32);
    Levels first = {0, 0};  // of the first 32 sequences
    float sum = 0.f;        // of the tiles' levels
#pragma unroll 4
//| else
//|   if l.parts and not l.split then
    float sum = 0.f;        // of the tiles' levels
//|   end
#pragma unroll 1
//| end
    for (int i = threadIdx.x % 32; i < p.b; i += 32) {
      const Levels levels = levels_of(i);
      tiles += levels.tiles;
//| if l.shared then
      if (i < 32) first = levels;
      sum += (float)levels.tiles * (float)levels.highest();
//| elseif l.parts and not l.split then
      sum += (float)levels.tiles * (0.5f * (float)(levels.lowest + levels.highest()));
//| end
      most = max(most, levels.highest());
    }
    Counts n = {0, 0, __reduce_add_sync(~0u, tiles) * heads(), 1$(l.placed and ", 0, 0, 0" or l.shared and ", 0" or "")};
//| if l.split then
//|   if l.shared then
//|     if not l.near then
    const float keys = (float)BR * reciprocal_approx((float)p.group);  // of a level
    most = __reduce_max_sync(~0u, most);
#pragma unroll
    for (int i = 16; i > 0; i /= 2) sum += __shfl_xor_sync(~0u, sum, i);
    const float mean = sum * (float)heads() * reciprocal_approx((float)max(n.total, 1));
    const Parts cut = parts_of_launch(p, n.total, (int)(((float)most + 1.f) * keys), (int)((mean + 1.f) * keys));
//|       if not l.placed then
    n.parts = cut.each, n.whole = cut.whole, n.total = cut.total();
//|       else
    n.parts = cut.each, n.whole = cut.whole, n.chunk = cut.chunk;
    if (cut.chunk > 0) {
      int items = 0;
#pragma unroll 1
      for (int i = lane; i < p.b; i += 32) {
        const Levels levels = levels_of(i);
        items += levels.tiles * parts_of_tile(levels, cut.chunk);
      }
      n.total = __reduce_add_sync(~0u, items) * heads();
    } else {
      n.total = cut.whole + (cut.tiles - cut.whole) * cut.each;
    }
//|       end
//|     end
//|   else
    n.parts = parts_of_launch(p, n.total, (int)((__reduce_max_sync(~0u, most) + 1ll) * BR / p.group));
    n.total *= n.parts;
//|   end
//| elseif l.parts then
    most = __reduce_max_sync(~0u, most);
    n.parts = parts_for(n.total, (most + 1) * unit(), (int)((mean_level(sum, n.total) + 1.f) * (float)unit()), (int)$(wk.blocks));
    n.total *= n.parts;
//| end
//| if l.shared then
    n.per_head = deal(first, min(lane, p.b)$(l.placed and ", n.chunk" or ""));
//| else
    keep(LaneSequence{{}, -1});  // no sequence yet: tile() deals the first
//| end
    keep(n);
  }
//| end

  // Tiles of a head from a level up.
  __device__ __forceinline__ static int from(const Levels &own, int level) { return __reduce_add_sync(~0u, own.from(level)); }
  // Finds the level of the n-th tile of a head: that with n < from(level), and not above it.
  __device__ __forceinline__ static void descend(Found &s, const Levels &own, int n) {
    int there = from(own, s.level), below = s.level + 1, step = 1;
    while (there <= n) {
      below = s.level, s.above = there;
      s.level = max(s.level - step, 0);
      step *= 2;
      there = from(own, s.level);
    }
    while (below - s.level > 1) {
      const int middle = (s.level + below) / 2;
      there = from(own, middle);
      if (there > n)
        s.level = middle;
      else
        below = middle, s.above = there;
    }
  }

  // A row of -1 after the last.
  __device__ __forceinline__ Tile tile(int index) {
    Tile w = {-1, 0, 0, 0$(l.parts and ", 0, 0, 1" or "")$(l.placed and ", -1" or "")};
    if (index >= total()) return w;
//| if l.walks then
    while (index >= counts().end(heads())) {
      Counts sums = counts();
      const bool shared = sums.pass == 0 && index >= sums.walked;  // from here on
      sums.begin = shared ? sums.walked : sums.end(heads());
      if (shared) sums.pass = 1, sums.parts = sums.places = 0;
      gather(shared ? 0 : __shfl_sync(~0u, own().number, 31) + 1, sums);
    }
    const Counts sums = counts();
    index -= sums.begin;
//| elseif l.shared then
    Counts sums = counts();
//|   if l.placed then
    if (sums.chunk == 0 && index >= sums.whole) {  // a part
      const u32 item = index - sums.whole;
      w.parts = sums.parts;
      w.place = whole_of((int)item, sums.parts);
      w.number = w.place * sums.parts;
      w.part = (int)item - w.number;
      index = sums.whole + w.place;
    }
//|   else
    if (index >= sums.whole) {  // a part
      const u32 item = index - sums.whole;
      w.parts = sums.parts;
      w.number = whole_of((int)item, sums.parts);
      w.part = (int)item - w.number * sums.parts;
      index = sums.whole + w.number;
    }
//|   end
    LaneSequence lanes = own();
    while (index >= sums.end(heads())) {
      sums.begin = sums.end(heads());
//|   if l.placed then
      if (sums.chunk > 0) sums.places += __reduce_add_sync(~0u, lanes.levels.tiles) * heads();
//|   end
      sums.per_head = gather(__shfl_sync(~0u, lanes.number, 31) + 1$(l.placed and ", sums.chunk" or ""));
      lanes = own();
      keep(sums);
    }
//|   if l.placed then
    if (sums.chunk > 0) {  // parts of a sequence run side by side, and all tiles of a part
      int n = (index - sums.begin) / p.hkv;
      const int head = index - sums.begin - n * p.hkv, parts = parts_of_tile(lanes.levels, sums.chunk);
      const u32 here = (u32)(lanes.levels.tiles * parts) << 16 | (u32)lanes.levels.tiles;
      u32 upto = here;
#pragma unroll
      for (int d = 1; d < 32; d *= 2) {
        const u32 more = __shfl_up_sync(~0u, upto, d);
        if (threadIdx.x % 32 >= (u32)d) upto += more;
      }
      const int lane = __ffs(__ballot_sync(~0u, (int)(upto >> 16) > n)) - 1;
      const u32 before = __shfl_sync(~0u, upto - here, lane);
      const int tiles = __shfl_sync(~0u, lanes.levels.tiles, lane);
      w.batch = __shfl_sync(~0u, lanes.number, lane);
      w.parts = __shfl_sync(~0u, parts, lane);
      n -= (int)(before >> 16);
      w.part = n / tiles;
      const int tile = n - w.part * tiles;
      w.row = tile * BR;
      w.place = sums.places + (int)(before & 0xffff) * p.hkv + head * tiles + tile;
      w.number = sums.begin + (int)(before >> 16) * p.hkv + (head * tiles + tile) * w.parts;
//| indented(6, wk.take_head, packed, "head")
      return w;
    }
//|   end
    index -= sums.begin;
//| else
    while (index >= counts().end(heads())) {
      const int per_head = gather(__shfl_sync(~0u, own().number, 31) + 1);
      Counts n = counts();
      n.begin = n.end(heads());
      n.per_head = per_head;
      keep(n);
    }
    const Counts sums = counts();
//|   if l.parts then
    w.parts = sums.parts;
    w.number = index / sums.parts;
    w.part = index - w.number * sums.parts;
    index = w.number - sums.begin / sums.parts;
//|   else
    index -= sums.begin;
//|   end
//| end
//| if l.shared then
    int n = p.hkv == 1 ? index : (int)((u32)index / (u32)p.hkv);
    const int head = index - n * p.hkv;
    const Levels levels = lanes.levels;
    Found s = found();
    if (s.section < 0) s.section = 0, s.level = __reduce_max_sync(~0u, levels.highest()), s.above = 0;
//| else
//| if (c.sections or 1) > 1 then
    const int widest = (own().width + $(c.sections - 1)) / $(c.sections);
//| elseif l.walks then
    const int widest = p.hkv;
//| else
    const int widest = own().width;
//| end
    const int per_section = sums.per_head * widest, at = index / per_section, rest = index - at * per_section;
    const int width = min(widest, heads() - at * widest);  // the last section may be narrower
    int n = rest / width;
    const int head = at * widest + rest - n * width;
    const Levels levels = own().levels;
    Found s = found();
    if (at != s.section) s.section = at, s.level = __reduce_max_sync(~0u, levels.highest()), s.above = 0;
//| end
    descend(s, levels, n);
    keep(s);
    n -= s.above;
    // The sequence: the n-th of those with tiles of that level, or the one whose tiles hold it.
    const int here = levels.from(s.level) - levels.from(s.level + 1);
//| if l.walks then
    const int upto = upto_lane(here);
//| else
    int upto = here;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const int more = __shfl_up_sync(~0u, upto, d);
      if (threadIdx.x % 32 >= (u32)d) upto += more;
    }
//| end
    const int lane = __ffs(__ballot_sync(~0u, upto > n)) - 1;
    w.batch = __shfl_sync(~0u, $(l.shared and "lanes.number" or "own().number"), lane);
//| if l.walks then
    n -= __shfl_sync(~0u, upto - here, lane);
    const int each = __shfl_sync(~0u, levels.each, lane), tile = n / each, first = __shfl_sync(~0u, own().number_of_first, lane);
    w.part = n - tile * each;
    w.parts = __shfl_sync(~0u, own().parts, lane);
//|   if pr.grow then
    w.row = (s.level - __shfl_sync(~0u, levels.lowest, lane)) * BR;
//|   else
    w.row = tile * BR;
//|   end
    const int at_head = w.row / BR * p.hkv + head;
    w.number = first < 0 ? -1 : first + at_head * w.parts;
    w.place = __shfl_sync(~0u, own().place, lane) + at_head;
//| elseif pr.grow then
    w.row = (s.level - __shfl_sync(~0u, levels.lowest, lane)) * BR;
//| else
    w.row = (n - __shfl_sync(~0u, upto - here, lane)) * BR;
//| end
//| indented(2, wk.take_head, packed, "head")
    return w;
  }
};
