//| needs "c.br c.combine c.named l.heads? l.in_wide? l.overlay l.parts_batch l.parts_early? l.parts_few? l.tokens?"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// ---- how a tile's parts come together ----
// Groups of warps, and thread blocks, have seen different keys of a tile. Each has O relative to its own maximum m, and l; the whole is
// the sum of all, each times exp(scale * (m - the largest m)).

//| include "work/tile_parts.cu"

//| include "pairs/exact_keys.cu"

//| include "pairs/exact_columns.cu"

// O = sum / l and LSE of a row of the tile. A row that saw no key has l = 0: O = 0, LSE = -inf.
__device__ __forceinline__ void store_row(const Params &p, const Sequence &sequence, const Tile &tile, int tile_row, int col,
                                          const Sum &sum) {
  const int row = tile.row + tile_row, query = query_of(p, row), head = tile.head + row - query * p.group;
  const Sum s = checked(p, sequence, head, query, col, sum);
//| indented(2, wk.store_sum, "s", { "head", "query" }, "col", "col == 0", pr.unit_log2, pr.unit)
}
//| if not p.has_batch_invariant then

// The slot of a thread block's part of a tile: the block's first slot if the tile began before the block's share, else its second. A tile
// that goes on after the share is the block's last, and one that began before it is the block's first.
__device__ __forceinline__ long long part_slot(long long block, bool begun) { return 2 * block + (begun ? 0 : 1); }
//| end

// Eight bytes of a row of fp32 in shared memory. Four rows that lanes write together lie in different banks.
__device__ __forceinline__ u32 exchange_offset(int row, int pair) {
  return (u32)(row * (COLS / 2) + (COLS % 32 == 0 ? pair ^ (row & 3) << 2 : pair)) * 8;
}
//| if not p.has_batch_invariant then

// Four columns of a row out of all parts of its tile, the first of which the thread block `first` left; the others are `step` blocks apart.
__device__ __forceinline__ Sum sum_of_parts(const Params &p, int row, int four, long long first, int parts,
                                            int step$(l.heads and ", int lane" or "")) {
  constexpr int SLOT = $(l.heads and "HEADS * BR" or "BR");  // rows of it
  const long long begun = part_slot(first, true) * SLOT + $(l.heads and "lane * BR + " or "")row;
  const int stride = part_slot(step, true) * SLOT;  // from a part to the next
//| local from = "begun + (long long)min(j + k, parts - 1) * stride + (j + k > 0 ? 0 : SLOT)"
//| if l.parts_few then
  if (parts <= $(l.parts_few)) {  // no more loads than parts, nearly
//|   indented(4, wk.sum_of_parts, "parts", l.parts_few, from, pr.unit_log2)
    return sum;
  }
//| end
//| indented(2, wk.sum_of_parts, "parts", l.parts_batch, from, pr.unit_log2)
  return sum;
}
//| end

//| local shares = c.combine == c.named.combine.last_block and l.parts_early and not l.heads and c.br <= 8
//| if shares then
// The same of up to SHARED_ROWS rows, and to memory, which nothing is beside when the last part has come: of SHARES threads side by side
// each adds up every SHARES-th part.
constexpr int SHARED_ROWS = 4, ALL_SHARES = THREADS / (SHARED_ROWS * (COLS / 4)), SHARES = ALL_SHARES < 2 ? 1 : ALL_SHARES < 4 ? 2 : 4;
__device__ __forceinline__ void sum_of_shares(const Params &p, const Sequence &sequence, const Tile &tile, int rows, long long first,
                                              int parts, int step) {
  const int item = (int)threadIdx.x / SHARES, share = (int)threadIdx.x % SHARES;
  const int row = min(item / (COLS / 4), rows - 1), four = item % (COLS / 4);
  const float4 *const part_o = (const float4 *)p.part_o;
  const float2 *const part_state = (const float2 *)p.part_state;
  Sum sum = $(wk.no_part);
  constexpr int BATCH = $(l.parts_batch) / SHARES;
  for (int j = share; j < parts; j += BATCH * SHARES) {
    float2 states[BATCH];
    float4 x[BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; k++) {
      const int part = min(j + k * SHARES, parts - 1);
      const long long from = part_slot(first + part * step, part > 0) * BR + row;
      states[k] = load_part(part_state + from);
      x[k] = load_part(part_o + from * (COLS / 4) + four);
    }
#pragma unroll
    for (int k = 1; k < BATCH; k++)
      if (j + k * SHARES >= parts) states[k].x = -infinity();  // the last once more
    sum.add(states, x, $(pr.unit_log2));
  }
#pragma unroll
  for (int d = 1; d < SHARES; d *= 2) {
    auto other = [d](float x) { return __shfl_xor_sync(~0u, x, d); };
    const float2 state[1] = {make_float2(other(sum.m), other(sum.l))};
    const float4 x[1] = {make_float4(other(sum.o.x), other(sum.o.y), other(sum.o.z), other(sum.o.w))};
    sum.add(state, x, $(pr.unit_log2));
  }
  if (share == 0 && item < rows * (COLS / 4)) store_row(p, sequence, tile, row, four * 4, sum);
}
//| end

// Where a group leaves its part of a tile: O in the exchange's order, (m, l) of each row. last: the buffer of its last iteration.
__device__ __forceinline__ unsigned char *part_of_group(unsigned char *smem, int last, int group) {
//| if l.tokens and l.overlay then
  return smem + SMEM_O + group % GROUPS * SMEM_GROUP + group / GROUPS * SMEM_O_GROUP + last * STAGE;
//| else
  return smem + SMEM_O + group * SMEM_O_GROUP$(l.overlay and not l.in_wide and " + last * STAGE" or "");
//| end
}
__device__ __forceinline__ float2 *states_of_group(unsigned char *smem, int group) { return (float2 *)(smem + SMEM_STATES) + group * BR; }

// Rows of the tile that are there.
__device__ __forceinline__ int rows_in(const Tile &tile) { return min(BR, tile.rows - tile.row); }

//| if p.has_batch_invariant then
//|   include "work/decode_fold.cu"

//| else
// The block has done its last iteration of the tile, and its groups have left their parts. last: the buffer of that iteration, free in
// every group.
//| if l.parts_early then
// The thread block `first` is the first of `parts` that have iterations of the tile.
__device__ __forceinline__ void store_tile(const Params &p, const Sequence &sequence, const Tile &tile, const Walk &walk,
                                           const Split &split, int first, int parts, unsigned char *smem, int last) {
  int *const word = (int *)(smem + SMEM_WORDS);
  const int rows = rows_in(tile);
//| else
__device__ __forceinline__ void store_tile(const Params &p, const Sequence &sequence, const Tile &tile, const Walk &walk,
                                           const Split &split, unsigned char *smem, int last) {
  int *const word = (int *)(smem + SMEM_WORDS);
  const int rows = rows_in(tile);
  const int first = split.first_of(walk), parts = split.parts_of(walk);
//| end
//| local mine = l.heads and "lane * GROUPS + g" or "g"
  __syncthreads();

//| if l.heads then
  // Threads of a head do its rows. The rows of a head that is none are another's.
  const int lane = (int)threadIdx.x / HEAD_THREADS;
  const bool real = walk.kv_head * HEADS + lane < p.hkv;
  const long long own = (part_slot($(wk.block), first < split.index()) * HEADS + lane) * BR;
//| else
  const long long own = part_slot($(wk.block), first < split.index()) * BR;
//| end
  float4 *const part_o = (float4 *)p.part_o;
  float2 *const part_state = (float2 *)p.part_state;
  auto sum_of_groups = [&](int row, int four) {
    Sum sum = $(wk.no_part);
    float2 states_of[GROUPS];
    float4 x[GROUPS];
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
      states_of[g] = states_of_group(smem, $(mine))[row];
      x[g] = *(const float4 *)(part_of_group(smem, last, $(mine)) + exchange_offset(row, 2 * four));
    }
    sum.add(states_of, x, $(pr.unit_log2));
    return sum;
  };
//| local thread, threads, items = "threadIdx.x", "THREADS", "rows * (COLS / 4)"
//| if l.heads then thread, threads, items = "threadIdx.x % HEAD_THREADS", "HEAD_THREADS", "(real ? rows * (COLS / 4) : 0)" end
//| local counts = c.combine == c.named.combine.last_block
//| local whole = counts and "all || parts == 1" or "parts == 1"
//| if counts then
  // Once for what the groups of this block have left; again, in the block that comes last, for all parts.
#pragma unroll 1
  for (bool all = false;; all = true) {
//| end
//| if shares then
    if (SHARES > 1 && all && rows <= SHARED_ROWS) {
      sum_of_shares(p, sequence, tile, rows, split.block(first), parts, split.streams);
      return;
    }
//| end
//| indented(counts and 2 or 0, function()
  for (int i = $(thread); i < $(items); i += $(threads)) {
    const int row = i / (COLS / 4), four = i % (COLS / 4);
//|   if counts then
    const Sum sum = all ? sum_of_parts(p, row, four, split.block(first), parts, split.streams$(l.heads and ", lane" or ""))
                        : sum_of_groups(row, four);
//|   else
    const Sum sum = sum_of_groups(row, four);
//|   end
    if ($(whole)) {
      store_row(p, sequence, tile, row, four * 4, sum);
    } else {
//|   indented(6, wk.leave_sum, "sum", "part_o[(own + row) * (COLS / 4) + four]", "part_state[own + row]", "four == 0")
    }
  }
//| end)
//| if counts then
    if (all) return;
    __syncthreads();  // the buffer is free, and what the block leaves of a tile is written
    if (parts == 1) return;
    // The block that comes last adds up all parts: it sees what the others wrote before they counted. The counter is back at 0 then. The
    // word is written again after the next tile's first barrier, when all threads have read it.
    if (threadIdx.x == 0) *word = $(wk.is_last("split.block(first)", "parts"));
    __syncthreads();
    if (*word == 0) return;
  }
//| else
  __syncthreads();  // the buffer is free, and what the block leaves of a tile is written
  if (parts == 1) return;
  // The next step adds up the parts; the block in which the tile begins tells it which tile that is.
  if (threadIdx.x == 0 && first == split.index())
    $(wk.leave_open(1, "walk.batch", "walk.kv_head", "walk.tile", "parts"))
//| end
}
//| end

// Rows of sequences none of whose rows sees a key: O = 0, LSE = -inf.
__device__ __forceinline__ void store_keyless(const Params &p) {
  for ($(wk.steps("int", "i", "p.b"))) {
    const Sequence sequence = sequence_of(p, i);
    if (iterations_of(sequence) > 0) continue;
    for (int query = 0; query < sequence.sq(); query++)
      for (int head = threadIdx.x / 32; head < p.hq; head += THREADS / 32) {
        output *const to = (output *)p.o + sequence.o() + query * p.o_ss + head * p.o_sh;
        for (int col = threadIdx.x % 32; col < DV; col += 32) to[col] = 0;
        if (p.lse != nullptr && threadIdx.x % 32 == 0) p.lse[sequence.lse(head, query)] = $(pr.keyless_lse("head", "query"));
      }
  }
}
