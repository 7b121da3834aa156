// ---- how the parts of segments become one ----
// SECTION segments are a section: its sum is made in the order of its segments, and that of the tile in the order of its sections. What a
// thread block cannot add it leaves in slots of the workspace: the sum of the tile's sections so far, if it has the first; the sum of
// the section at hand; and behind these two, of a tile that began in front of it, segments of a section that did, then whole sections.
// The first two are in shared memory as long as segments of the tile follow.
constexpr int SLOT_TILE = 0, SLOT_SECTION = 1, SLOT_FIRST = 2;

__device__ __forceinline__ int section_of(int segment) { return segment / SECTION; }
__device__ __forceinline__ bool ends_section(int segment, int segments) {
  return (segment + 1) % SECTION == 0 || segment + 1 == segments;
}

// The slot of the sum that ends with a segment, in a thread block whose first segment of the tile is `first`.
__device__ __forceinline__ int slot_of(int segment, int first, int segments) {
  const int alone = (SECTION - first % SECTION) % SECTION;  // segments of a section that began in front of the thread block
  const int begin = section_of(segment) * SECTION;
  if (begin < first) return SLOT_FIRST + segment - first;
  if (!ends_section(segment, segments)) return SLOT_SECTION;
  return first == 0 ? SLOT_TILE : SLOT_FIRST + alone + (begin - first - alone) / SECTION;
}
// (m, l) have two places for each slot, which take turns from one sum to the next: all threads of a row read what only one of them writes.
__device__ __forceinline__ int turn_of(int slot, int segment) { return (slot == SLOT_TILE ? section_of(segment) : segment) & 1; }

// Four columns of a row in a slot, and where its (m, l) lie.
struct Slot {
  long long o, state;
  __device__ __forceinline__ Slot(long long block, int slot, int turn, int row, int four) {
    const long long at = block * SLOTS + slot;
    o = (at * BR + row) * (COLS / 4) + four;
    state = (at * 2 + turn) * BR + row;
  }
  __device__ __forceinline__ Sum load(const Params &p) const {
    const float2 ml = load_part((const float2 *)p.part_state + state);
    return {ml.x, ml.y, load_part((const float4 *)p.part_o + o)};
  }
  __device__ __forceinline__ void store(const Params &p, const Sum &s, bool first) const {
    ((float4 *)p.part_o)[o] = s.o;
    if (first) ((float2 *)p.part_state)[state] = make_float2(s.m, s.l);
  }
};

// The same in shared memory, of the slots SLOT_TILE and SLOT_SECTION.
struct KeptSum {
  float4 *o;
  float2 *state;
  __device__ __forceinline__ KeptSum(unsigned char *smem, int slot, int turn, int row, int four) {
    unsigned char *const at = smem + SMEM_SUMS + slot * (BR * (COLS * 4 + 16));
    o = (float4 *)at + row * (COLS / 4) + four;
    state = (float2 *)(at + BR * COLS * 4) + turn * BR + row;
  }
  __device__ __forceinline__ Sum load() const { return {state->x, state->y, *o}; }
  __device__ __forceinline__ void store(const Sum &s, bool first) const {
    *o = s.o;
    if (first) *state = make_float2(s.m, s.l);
  }
};

__device__ __forceinline__ Sum choose(bool first, const Sum &a, const Sum &b) {
  return {first ? a.m : b.m, first ? a.l : b.l,
          make_float4(first ? a.o.x : b.o.x, first ? a.o.y : b.o.y, first ? a.o.z : b.o.z, first ? a.o.w : b.o.w)};
}
// `sum` and what comes behind it.
__device__ __forceinline__ Sum fold(Sum sum, const Sum &next, float scale_log2) {
  const float2 state[1] = {make_float2(next.m, next.l)};
  const float4 x[1] = {next.o};
  sum.add(state, x, scale_log2);
  return sum;
}

// The thread block has the part of a segment, of which this thread has four columns of a row.
__device__ __forceinline__ void fold_segment(const Params &p, const Sequence &sequence, const Tile &tile, const SegmentWalk &walk,
                                             int segment, unsigned char *smem, int row, int four, Sum sum) {
  const int section = section_of(segment), slot = slot_of(segment, walk.first, walk.cuts.segments());
  const int before_section = section * SECTION - 1;  // the last segment of the section in front
  const bool last = segment + 1 == walk.upto;
  auto kept = [&](int slot, int segment) { return KeptSum(smem, slot, turn_of(slot, segment), row, four); };
  auto left = [&](int slot, int segment) { return Slot(blockIdx.x, slot, turn_of(slot, segment), row, four); };
  if (section * SECTION >= walk.first && segment > section * SECTION) sum = fold(kept(SLOT_SECTION, segment - 1).load(), sum, p.scale_log2);
  if (slot == SLOT_TILE && section > 0) sum = fold(kept(SLOT_TILE, before_section).load(), sum, p.scale_log2);
  if (last && walk.whole_tile())
    store_row(p, sequence, tile, row, four * 4, sum);
  else if (slot < SLOT_FIRST && !last)
    kept(slot, segment).store(sum, four == 0);
  else
    left(slot, segment).store(p, sum, four == 0);
  if (last && slot == SLOT_SECTION && walk.first == 0 && section > 0)
    left(SLOT_TILE, before_section).store(p, kept(SLOT_TILE, before_section).load(), four == 0);
}

// How a tile is dealt out: its cuts, its place on the line, and the line's shares.
struct Deal {
  Cuts cuts;
  long long begin, size;  // of the tile; of a share
  int lanes, lane;
  __device__ __forceinline__ long long owner(int segment) const { return divide(begin + cuts.middle_of(segment), size); }
};

// A part of a tile that some thread block left. It goes on with the section of the part in front of it, or else begins one; it may close the
// section; and nothing of the tile is in front of what it begins.
enum Flag { PART = 1, GOES_ON = 2, CLOSES = 4, AT_FRONT = 8 };
struct Found {
  int at, flags;  // at: index of a place of (m, l), counted over all slots; flags 0: the segment is in the part of a later one
};
__device__ __forceinline__ Found find_part(const Deal &deal, int segment) {
  const int segments = deal.cuts.segments();
  const long long block = deal.owner(segment), place = block * deal.size - deal.begin;
  const int first = place <= 0 ? 0 : deal.cuts.before((int)place), slot = slot_of(segment, first, segments);
  const int begin = section_of(segment) * SECTION, end = min(begin + SECTION, segments) - 1;
  // The last segment of what the thread block might have added to the same sum.
  const int next = begin < first ? segment : slot == SLOT_SECTION ? segment + 1 : slot == SLOT_TILE ? min(end + SECTION, segments - 1) : segment;
  Found found = {(int)((block * deal.lanes + deal.lane) * SLOTS + slot) * 2 + turn_of(slot, segment), PART};
  if (next > segment && deal.owner(next) == block) found.flags = 0;
  if (found.flags != 0) {
    if (begin < first) found.flags |= GOES_ON;
    if (segment == end) found.flags |= CLOSES;
    if (slot == SLOT_TILE || begin == 0) found.flags |= AT_FRONT;
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
  Sum whole = {-infinity(), 0.f, make_float4(0.f, 0.f, 0.f, 0.f)}, section = whole;
#pragma unroll 1
  for (int j = 0; j < n; j += BATCH) {
    Sum parts[BATCH];
    int flags[BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; k++) {
      const Found found = list[min(j + k, n - 1)];
      flags[k] = j + k < n ? found.flags : 0;
      parts[k] = Slot(0, found.at / 2, found.at % 2, row, four).load(p);
    }
#pragma unroll
    for (int k = 0; k < BATCH; k++) {  // behind the last part are sections that do not end
      section = choose((flags[k] & GOES_ON) != 0, fold(section, parts[k], p.scale_log2), parts[k]);
      if ((flags[k] & CLOSES) != 0) whole = (flags[k] & AT_FRONT) != 0 ? section : fold(whole, section, p.scale_log2);
    }
  }
  store_row(p, sequence, tile, row, four * 4, whole);
}
//| if c.combine == c.named.combine.last_block then

// Adds to a counter, and returns what it was. What this thread knows to be written, the thread that counts next knows.
__device__ __forceinline__ u32 count_on(u32 *counter, u32 n) {
  u32 was;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(was) : "l"(counter), "r"(n) : "memory");
  return was;
}

// The thread block has left all that it has of the tile. The one that comes last adds up all, and leaves the counter at 0: it sees what
// the others wrote before they counted their segments. The counter is that of the thread block on whose share the tile begins, `home`.
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
  if (threadIdx.x >= THREADS - 32) find_parts({walk.cuts, walk.begin_of_tile(), split.size, split.lanes, split.lane}, list, words + 1);
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
  int4 *const open = (int4 *)p.tiles_open + 2 * blockIdx.x;
  open[0] = make_int4(walk.batch, walk.kv_head, walk.tile, walk.turns);
  open[1] = make_int4((int)(u32)begin, (int)(begin >> 32), (int)(u32)size, (int)(size >> 32));
}
__device__ __forceinline__ Deal deal_of(const Params &p, int block, int turns) {
  const int4 open = __ldcg((const int4 *)p.tiles_open + 2 * block + 1);
  const int lanes = lanes_of(p);
  return {{turns, segment_digits(turns)}, (long long)((u64)(u32)open.y << 32 | (u32)open.x), (long long)((u64)(u32)open.w << 32 | (u32)open.z),
          lanes, block % lanes};
}
//| end
