//| needs "c.combine c.named l.parts_batch"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// ---- how the parts of segments become one ----
// SECTION segments are a section: its sum is made in the order of its segments, and that of the tile in the order of its sections. A
// thread block leaves what it cannot add in slots of the workspace: the sum of the tile's sections, if it has the first; the sum of a
// section that goes on elsewhere; and after these two, of a tile that began before its share, segments of a section that did, then whole
// sections.
// Groups of warps leave the parts of HELD segments in shared memory before they meet. Between such meetings the first two sums lie there.
constexpr int SLOT_TILE = 0, SLOT_SECTION = 1, SLOT_FIRST = 2;

__device__ __forceinline__ int section_of(int segment) { return segment / SECTION; }
__device__ __forceinline__ bool ends_section(int segment, int segments) {
  return (segment + 1) % SECTION == 0 || segment + 1 == segments;
}

// The slot of the sum that ends with a segment, in a thread block whose first segment of the tile is `first`.
__device__ __forceinline__ int slot_of(int segment, int first, int segments) {
  const int alone = (SECTION - first % SECTION) % SECTION;  // segments of a section that began before the block's share
  const int begin = section_of(segment) * SECTION;
  if (begin < first) return SLOT_FIRST + segment - first;
  if (!ends_section(segment, segments)) return SLOT_SECTION;
  return first == 0 ? SLOT_TILE : SLOT_FIRST + alone + (begin - first - alone) / SECTION;
}

// Four columns of a row in a slot of a thread block's, or in the one with a number of its own.
struct Slot {
  u32 at, row, four;
  __device__ __forceinline__ Slot(u32 at, int row, int four) : at(at), row((u32)row), four((u32)four) {}
  __device__ __forceinline__ u32 state() const { return at * BR + row; }
  __device__ __forceinline__ u32 o() const { return state() * (COLS / 4) + four; }
  __device__ __forceinline__ Sum load(const Params &p) const {
    const float2 ml = load_part((const float2 *)p.part_state + state());
    return {ml.x, ml.y, load_part((const float4 *)p.part_o + o())};
  }
  __device__ __forceinline__ void store(const Params &p, const Sum &s) const {
//| indented(4, wk.leave_sum, "s", "((float4 *)p.part_o)[o()]", "((float2 *)p.part_state)[state()]", "four == 0")
  }
};

// The same in shared memory, of the slots SLOT_TILE and SLOT_SECTION. (m, l) have two buffers, used alternately from one meeting to the
// next: all threads of a row read what only one of them writes. parity: which buffer.
struct KeptSum {
  float4 *o;
  float2 *state;
  __device__ __forceinline__ KeptSum(unsigned char *smem, int slot, int parity, int row, int four) {
    unsigned char *const at = smem + SMEM_SUMS + slot * (BR * (COLS * 4 + 16));
    o = (float4 *)at + row * (COLS / 4) + four;
    state = (float2 *)(at + BR * COLS * 4) + parity * BR + row;
  }
  __device__ __forceinline__ Sum load() const { return {state->x, state->y, *o}; }
  __device__ __forceinline__ void store(const Sum &s, bool first) const {
//| indented(4, wk.leave_sum, "s", "*o", "*state", "first")
  }
};

__device__ __forceinline__ Sum choose(bool first, const Sum &a, const Sum &b) {
  return {first ? a.m : b.m, first ? a.l : b.l,
          make_float4(first ? a.o.x : b.o.x, first ? a.o.y : b.o.y, first ? a.o.z : b.o.z, first ? a.o.w : b.o.w)};
}
// `sum`, and `next`, which follows it.
__device__ __forceinline__ Sum fold(Sum sum, const Sum &next, float scale_log2) {
  const float2 state[1] = {make_float2(next.m, next.l)};
  const float4 x[1] = {next.o};
  sum.add(state, x, scale_log2);
  return sum;
}

// The parts of n segments of the run, from `from` on, of which this thread has four columns of a row.
__device__ __forceinline__ void fold_segments(const Params &p, const Sequence &sequence, const Tile &tile, const SegmentWalk &walk,
                                              int from, int n, unsigned char *smem, int row, int four, const Sum (&parts)[HELD]) {
  const int segments = walk.cuts.segments(), parity = (from - walk.first) / HELD & 1;
  auto kept = [&](int slot, int parity) { return KeptSum(smem, slot, parity, row, four); };
  auto left = [&](int slot) { return Slot((u32)($(wk.block) * SLOTS + slot), row, four); };
  Sum whole = $(wk.no_part), section = whole;
  if (from > walk.first) {
    whole = kept(SLOT_TILE, parity ^ 1).load();
    section = kept(SLOT_SECTION, parity ^ 1).load();
  }
#pragma unroll
  for (int h = 0; h < HELD; h++) {
    if (h >= n) break;
    const int segment = from + h, begin = section_of(segment) * SECTION, slot = slot_of(segment, walk.first, segments);
    section = segment > begin && begin >= walk.first ? fold(section, parts[h], $(pr.unit_log2)) : parts[h];
    if (slot >= SLOT_FIRST)
      left(slot).store(p, section);
    else if (slot == SLOT_TILE)
      whole = begin > 0 ? fold(whole, section, $(pr.unit_log2)) : section;
  }
  if (from + n < walk.upto) {
    kept(SLOT_TILE, parity).store(whole, four == 0);
    kept(SLOT_SECTION, parity).store(section, four == 0);
  } else if (walk.whole_tile()) {
    store_row(p, sequence, tile, row, four * 4, whole);
  } else {
    if (walk.first == 0 && walk.upto >= SECTION) left(SLOT_TILE).store(p, whole);
    if (slot_of(walk.upto - 1, walk.first, segments) == SLOT_SECTION) left(SLOT_SECTION).store(p, section);
  }
}

// The block has done its last iteration of a segment, and its groups have left the parts of n, from `from` on. last: the buffer of that
// iteration, free in every group.
__device__ __forceinline__ void store_segments(const Params &p, const Sequence &sequence, const Tile &tile, const SegmentWalk &walk,
                                               int from, int n, unsigned char *smem, int last) {
  const int rows = rows_in(tile);
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < rows * (COLS / 4); i += THREADS) {
    const int row = i / (COLS / 4), four = i % (COLS / 4);
    Sum parts[HELD];
    auto meet = [&](int h) {
      const int group = min(h, n - 1) * GROUPS;
      float2 states[GROUPS];
      float4 x[GROUPS];
#pragma unroll
      for (int g = 0; g < GROUPS; g++) {
        states[g] = states_of_group(smem, group + g)[row];
        x[g] = *(const float4 *)(part_of_group(smem, last, group + g) + exchange_offset(row, 2 * four));
      }
      parts[h] = $(wk.no_part);
      parts[h].add(states, x, $(pr.unit_log2));
    };
    meet(0);
    if (HELD > 1 && n > 1) {  // without a branch for each, so that all are under way together
#pragma unroll
      for (int h = 1; h < HELD; h++) meet(h);
    }
    fold_segments(p, sequence, tile, walk, from, n, smem, row, four, parts);
  }
  __syncthreads();  // the buffers are free, and what the block leaves of a tile is written
}

// How a tile is dealt out: its cuts, its work index, and the shares of its stream.
struct Deal {
  Cuts cuts;
  long long begin, size;  // the work index of the tile; work items of a share
  int streams, stream;
  __device__ __forceinline__ long long owner(int segment) const { return divide(begin + cuts.middle_of(segment), size); }
};

// A part of a tile that some thread block left. It goes on with the section of the part before it, or else begins one. It may close the
// section. FIRST: the section, or several in one sum, is the tile's first.
enum Flag { PART = 1, GOES_ON = 2, CLOSES = 4, FIRST = 8 };
struct Found {
  int at, flags;  // at: a slot, counted over all thread blocks; flags 0: the segment is in the part of a later one
};
__device__ __forceinline__ Found find_part(const Deal &deal, int segment) {
  const int segments = deal.cuts.segments();
  const long long block = deal.owner(segment), item = block * deal.size - deal.begin;
  const int first = item <= 0 ? 0 : deal.cuts.before((int)item), slot = slot_of(segment, first, segments);
  const int begin = section_of(segment) * SECTION, end = min(begin + SECTION, segments) - 1;
  // The last segment of what the thread block adds to the same sum, if that is its own as well.
  int next = segment;
  if (slot == SLOT_SECTION) next = segment + 1;
  if (slot == SLOT_TILE) next = min(end + SECTION, segments - 1);
  Found found = {(int)((block * deal.streams + deal.stream) * SLOTS + slot), PART};
  if (next > segment && deal.owner(next) == block) found.flags = 0;
  if (found.flags != 0) {
    if (begin < first) found.flags |= GOES_ON;
    if (segment == end) found.flags |= CLOSES;
    if (slot == SLOT_TILE || begin == 0) found.flags |= FIRST;
  }
  return found;
}

// A warp lists the parts of a tile in their order.
__device__ __forceinline__ void find_parts(const Deal &deal, Found *list, int *parts) {
  const int lane = threadIdx.x % 32, segments = deal.cuts.segments();
  int n = 0;
#pragma unroll 1
  for (int i = lane; i - lane < segments; i += 32) {
    const Found found = i < segments ? find_part(deal, i) : Found{0, 0};
    const u32 there = __ballot_sync(~0u, found.flags != 0);
    if (found.flags != 0) list[n + __popc(there & ((1u << lane) - 1))] = found;
    n += __popc(there);
  }
  if (lane == 0) *parts = n;
}

// Four columns of a row out of all parts of a tile.
__device__ __forceinline__ void add_segments(const Params &p, const Sequence &sequence, const Tile &tile, const Found *list, int n, int row,
                                             int four) {
  constexpr int BATCH = $(l.parts_batch);  // parts under way
  Sum whole = $(wk.no_part), section = whole;
#pragma unroll 1
  for (int j = 0; j < n; j += BATCH) {
    Sum parts[BATCH];
    int flags[BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; k++) {
      const Found found = list[min(j + k, n - 1)];
      flags[k] = j + k < n ? found.flags : 0;
      parts[k] = Slot((u32)found.at, row, four).load(p);
    }
#pragma unroll
    for (int k = 0; k < BATCH; k++) {  // after the last part are sections that do not end
      section = choose((flags[k] & GOES_ON) != 0, fold(section, parts[k], $(pr.unit_log2)), parts[k]);
      if ((flags[k] & CLOSES) != 0) whole = (flags[k] & FIRST) != 0 ? section : fold(whole, section, $(pr.unit_log2));
    }
  }
  store_row(p, sequence, tile, row, four * 4, whole);
}
//| if c.combine == c.named.combine.last_block then

// Adds to a counter, and returns what it was. The thread that counts next sees all writes that this thread has made or seen.
__device__ __forceinline__ u32 count_on(u32 *counter, u32 n) {
  u32 was;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(was) : "l"(counter), "r"(n) : "memory");
  return was;
}

// The thread block has left all that it has of the tile. The one that comes last adds up all, and leaves the counter at 0: it sees what
// the others wrote before they counted their segments. The counter is that of the thread block in whose share the tile begins, `home`.
// While one thread counts, the last warp looks for the parts.
__device__ __forceinline__ void finish_tile(const Params &p, const Sequence &sequence, const Tile &tile, const SegmentWalk &walk,
                                            const Split &split, int home, unsigned char *smem) {
  int *const words = (int *)(smem + SMEM_WORDS);
  Found *const list = (Found *)(smem + SMEM_FOUND);
  if (threadIdx.x == 0) {
    u32 *const counter = (u32 *)p.workspace + home;
    const u32 own = (u32)(walk.upto - walk.first);
    words[0] = count_on(counter, own) + own == (u32)walk.cuts.segments();
    if (words[0] != 0) *counter = 0;
  }
  if (threadIdx.x >= THREADS - 32) find_parts({walk.cuts, walk.begin_of_tile(), split.size, split.streams, split.stream}, list, words + 1);
  __syncthreads();
  if (words[0] == 0) return;
  const int rows = rows_in(tile);
#pragma unroll 1
  for (int i = threadIdx.x; i < rows * (COLS / 4); i += THREADS)
    add_segments(p, sequence, tile, list, words[1], i / (COLS / 4), i % (COLS / 4));
}
//| else

// The tile begins here and goes on elsewhere: what the next step has to know of it.
__device__ __forceinline__ void open_tile(const Params &p, const SegmentWalk &walk, const Split &split) {
  const u64 begin = (u64)walk.begin_of_tile(), size = (u64)split.size;
  int4 *const open = (int4 *)p.tiles_open + 2 * $(wk.block);
  open[0] = make_int4(walk.batch, walk.kv_head, walk.tile, walk.iterations);
  open[1] = make_int4((int)(u32)begin, (int)(begin >> 32), (int)(u32)size, (int)(size >> 32));
}
__device__ __forceinline__ Deal deal_of(const Params &p, int block, int iterations) {
  const int4 open = __ldcg((const int4 *)p.tiles_open + 2 * block + 1);
  const int streams = streams_of(p);
  auto whole = [](int low, int high) { return (long long)((u64)(u32)high << 32 | (u32)low); };
  return {{iterations, segment_digits(iterations)}, whole(open.x, open.y), whole(open.z, open.w), streams, block % streams};
}
//| end
