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

// `sum` and what comes behind it.
__device__ __forceinline__ Sum fold(Sum sum, const Sum &next, float scale_log2) {
  const float2 state[1] = {make_float2(next.m, next.l)};
  const float4 x[1] = {next.o};
  sum.add(state, x, scale_log2);
  return sum;
}

// The thread block has the part of the segment at hand, of which this thread has four columns of a row.
__device__ __forceinline__ void fold_segment(const Params &p, const Sequence &sequence, const Tile &tile, const SegmentWalk &walk,
                                             unsigned char *smem, int row, int four, Sum sum) {
  const int segment = walk.segment, section = section_of(segment), slot = slot_of(segment, walk.first, walk.segments);
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

// What the thread block that adds up a tile finds of a segment's: nothing, as it is part of what is found of a later one; the segment, which
// goes on with a section that began elsewhere; a section from its first segment on; or all sections up to this one.
enum Kind { NOTHING, SEGMENT, SECTION_SUM, TILE_SUM };
struct Found {
  int at, kind;  // at: index of a place of (m, l), counted over all slots
};
__device__ __forceinline__ Found find_part(const SegmentWalk &walk, const Split &split, int segment) {
  auto owner = [&](int segment) { return divide(walk.begin_of_tile() + walk.middle_of(segment), split.size); };
  const long long block = owner(segment), place = block * split.size - walk.begin_of_tile();
  const int first = place <= 0 ? 0 : walk.segments_before((int)place), slot = slot_of(segment, first, walk.segments);
  const int begin = section_of(segment) * SECTION, end = min(begin + SECTION, walk.segments) - 1;
  Found found = {(int)(split.block(block) * SLOTS + slot) * 2 + turn_of(slot, segment), SECTION_SUM};
  if (begin < first)
    found.kind = SEGMENT;
  else if (slot == SLOT_SECTION)
    found.kind = owner(segment + 1) == block ? NOTHING : SECTION_SUM;
  else if (slot == SLOT_TILE)
    found.kind = owner(min(end + SECTION, walk.segments - 1)) == block ? NOTHING : TILE_SUM;
  return found;
}

// Four columns of a row out of all parts of a tile.
__device__ __forceinline__ void add_segments(const Params &p, const Sequence &sequence, const Tile &tile, int segments, const Found *list,
                                             int row, int four) {
  constexpr int BATCH = 8;  // parts under way
  Sum whole = {-infinity(), 0.f, make_float4(0.f, 0.f, 0.f, 0.f)}, section = whole;
#pragma unroll 1
  for (int j = 0; j < segments; j += BATCH) {
    Sum parts[BATCH];
    int kind[BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; k++) {
      const Found found = j + k < segments ? list[j + k] : Found{0, NOTHING};
      kind[k] = found.kind;
      if (kind[k] != NOTHING) parts[k] = Slot(0, found.at / 2, found.at % 2, row, four).load(p);
    }
#pragma unroll
    for (int k = 0; k < BATCH; k++) {
      if (kind[k] == NOTHING) continue;
      if (kind[k] == TILE_SUM) {
        whole = parts[k];
        continue;
      }
      section = kind[k] == SEGMENT ? fold(section, parts[k], p.scale_log2) : parts[k];
      if (ends_section(j + k, segments)) whole = j + k < SECTION ? section : fold(whole, section, p.scale_log2);
    }
  }
  store_row(p, sequence, tile, row, four * 4, whole);
}

// Adds to a counter, and returns what it was. What this thread knows to be written, the thread that counts next knows.
__device__ __forceinline__ u32 count_on(u32 *counter, u32 n) {
  u32 was;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(was) : "l"(counter), "r"(n) : "memory");
  return was;
}

// The thread block has left all that it has of the tile. The one that comes last adds up all, and leaves the counter at 0: it sees what
// the others wrote before they counted their segments. The counter is that of the thread block on whose share the tile begins.
__device__ __forceinline__ void finish_tile(const Params &p, const Sequence &sequence, const Tile &tile, const SegmentWalk &walk,
                                            const Split &split, unsigned char *smem) {
  int *const word = (int *)(smem + SMEM_WORDS);
  Found *const list = (Found *)(smem + SMEM_FOUND);
  if (threadIdx.x == 0) {
    u32 *const counter = (u32 *)p.workspace + split.block(divide(walk.begin_of_tile(), split.size));
    const u32 own = (u32)(walk.upto - walk.first);
    *word = count_on(counter, own) + own == (u32)walk.segments;
    if (*word != 0) *counter = 0;
  }
  __syncthreads();
  if (*word == 0) return;
  for (int i = threadIdx.x; i < walk.segments; i += THREADS) list[i] = find_part(walk, split, i);
  __syncthreads();
  const int rows = rows_in(tile);
#pragma unroll 1
  for (int i = threadIdx.x; i < rows * (COLS / 4); i += THREADS)
    add_segments(p, sequence, tile, walk.segments, list, i / (COLS / 4), i % (COLS / 4));
}
