//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| local mask_places = include "pairs/mask_places.lua"
//| local program, own = p.score, mask_places.own_entries(p)
//| local places, place = program.marks_by_b and "p.b" or "1", program.marks_by_b and "place" or "0"
constexpr int LINE_WARPS = 32;   // of a thread block of the kernel of lines
constexpr int RUN_ROWS = 65536;  // of a sequence whose runs are looked for, at most
constexpr int RUN_TILES = RUN_ROWS / BR * 5 / 4 + 2;  // that these make, at most
//| if own then
constexpr int SHORT = $(mask_places.SHORT);  // rows and keys of a sequence for which no kernel runs before
__device__ __forceinline__ bool is_short(const Params &p) { return p.sq <= SHORT && p.sk <= SHORT; }
//| end
// The sum of the thread block's numbers up to this thread's. all: of all of them. sums: in shared memory, read until the next barrier.
__device__ __forceinline__ int sum_upto(int x, int *sums, int &all) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
#pragma unroll
  for (int n = 1; n < 32; n *= 2) {
    const int before = __shfl_up_sync(~0u, x, n);
    x += lane >= n ? before : 0;
  }
  if (lane == 31) sums[warp] = x;
  __syncthreads();
  const int of_warp = sums[lane];
  all = (int)__reduce_add_sync(~0u, (u32)of_warp);
  return x + (int)__reduce_add_sync(~0u, lane < warp ? (u32)of_warp : 0u);
}
// How many tiles a sequence has that begin with its runs, 0 where these are none, or many; rising: whether there are runs. To be used by
// whole thread blocks.
__device__ __forceinline__ int cut_at_runs(const Params &p, const Sequence &sequence, int place, u32 *changes, int *before, int *begins,
                                           RunTile *tiles, int (*sums)[LINE_WARPS], bool &rising) {
  const int rows = sequence.sq(), words = (p.sq + 31) / 32, most = run_tiles_most(p);
  bool wrong = rows != sequence.sk() || rows > RUN_ROWS;
//| if own then
  if (!wrong && is_short(p)) {
    const int lane = (int)threadIdx.x % 32;
    const ScoreTile t = score_tile(p, sequence, 0);
#pragma unroll 4
    for (int i = (int)threadIdx.x / 32; i < words; i += LINE_WARPS) {
      const uint2 of = run_word(p, sequence, t, i, lane);
      if (lane == 0) changes[i] = of.x;
      wrong |= of.y != 0;
    }
  } else if (!wrong)
//| else
  if (!wrong)
//| end
    for (int i = threadIdx.x; i < words; i += LINE_WARPS * 32) {
      const uint2 of = ((const uint2 *)p.mask_runs)[(long long)$(place) * words + i];
      changes[i] = of.x, wrong |= of.y != 0;
    }
  rising = !__syncthreads_or(wrong);
  if (!rising) return 0;
  int runs = 1, all;  // the first begins with row 0, where nothing changes
#pragma unroll 1
  for (int first = 0; first < words; first += LINE_WARPS * 32) {
    const int i = first + (int)threadIdx.x;
    u32 mine = i < words ? changes[i] : 0;
    int run = runs - __popc(mine) + sum_upto(__popc(mine), sums[first / (LINE_WARPS * 32) % 2], all);
    if (i < words) before[i] = run - 1;
    for (; mine != 0 && run < most; run++, mine &= mine - 1) begins[run] = i * 32 + __ffs(mine) - 1;
    runs += all;
  }
  if (runs > most) {
    __syncthreads();
    return 0;
  }
  if (threadIdx.x == 0) begins[0] = 0, begins[runs] = rows;
  __syncthreads();
  int count = 0;
#pragma unroll 1
  for (int first = 0; first < runs; first += LINE_WARPS * 32) {
    const int run = first + (int)threadIdx.x, at = run < runs ? begins[run] : 0, end = run < runs ? begins[run + 1] : 0;
    const int n = (end - at + BR - 1) / BR, to = count - n + sum_upto(n, sums[2 + first / (LINE_WARPS * 32) % 2], all);
    // The tile that is not full is the first, which sees least; its rows are whole lines, so that diagonals lie in one block.
    const int spare = n * WGS - (end - at + 63) / 64;
    for (int i = 0; i < n && to + i < most; i++)
      tiles[to + i] = {at + max(i * WGS - spare, 0) * 64, min(at + ((i + 1) * WGS - spare) * 64, end), at, end};
    count += all;
  }
  __syncthreads();
  return count <= most ? count : 0;
}

// A warp makes a word. Each thread block finds the tiles of its sequence, and the first of them leaves these.
//| if own then
// Of a short sequence it asks arrays themselves for runs, and makes tables where there are none.
//| end
extern "C" __global__ void __launch_bounds__(LINE_WARPS * 32) fa_mask_lines(const __grid_constant__ Params p) {
  __shared__ u32 changes[RUN_ROWS / 32];
  __shared__ int before[RUN_ROWS / 32];
  __shared__ int begins[RUN_TILES + 1];
  __shared__ RunTile tiles[RUN_TILES];
  __shared__ int sums[4][LINE_WARPS];
//| if own then
  __shared__ __align__(16) int queries[SHORT / 64 * $(own.queries)], keys[SHORT / 64 * $(own.keys)];
//| end
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, words = line_words(p);
  const int places = $(places), blocks = (int)$(wk.blocks);
  grid_over(), grid_wait();
#pragma unroll 1
  for (int place = (int)$(wk.block) % places; place < places; place += blocks) {
    const int share = (int)$(wk.block) / places, shares = max(1, (blocks - place + places - 1) / places);
    const Sequence sequence = sequence_of(p, place);
    bool rising;
    const int cut = cut_at_runs(p, sequence, place, changes, before, begins, tiles, sums, rising), count = cut > 0 ? cut : head_tiles(p);
    const RunsOfRows runs = {changes, before, rising};
//| local of = own and "of_place" or "p"
//| if own then
    Params of_place = p;
    if (!rising && is_short(p)) {
      const ScoreTile t = score_tile(p, sequence, 0);
      const int steps = score_steps(p.sq), key_steps = score_steps(p.sk);
      for (int step = warp; step < steps; step += LINE_WARPS) score_fill_queries(p, t, 0, step, lane, queries + step * $(own.queries));
      for (int step = warp; step < key_steps; step += LINE_WARPS) score_fill_keys(p, t, 0, step, lane, keys + step * $(own.keys));
      of_place.mask_queries = queries - (long long)sequence.batch * steps * $(own.queries);
      of_place.mask_keys = keys - (long long)sequence.batch * key_steps * $(own.keys);
      __syncthreads();
    }
//| end
    auto tile_at = [&](int n) -> RunTile {  // from the last on
      const int i = count - 1 - n;
      if (cut > 0) return tiles[i];
      return {i * BR, min((i + 1) * BR, sequence.sq()), 0, -1};
    };
    if (share == 0) {
      const int most = run_tiles_most(p);
      for (int i = threadIdx.x; i < most; i += LINE_WARPS * 32) {
        RunTile of = {-1, 0, 0, -1};
        if (i < count) of = tile_at(i);
        *run_tile_at(p, place, i) = make_int4(of.row, of.upto, of.from, of.end);
      }
      if (threadIdx.x == 0) run_tile_at(p, place, 2 * head_tiles(p) - 1)->x = count;
    }
    uint4 *const to = (uint4 *)p.mask_lines + (long long)$(place) * 2 * head_tiles(p) * WGS * words;
#pragma unroll 1
    for (int job = share * LINE_WARPS + warp; job < count * WGS * words; job += shares * LINE_WARPS) {
      const int block = job % words * 32 + lane, line = job / words;
      const RunTile tile = tile_at(line / WGS);
      const int row = tile.row + line % WGS * 64, end = min(row + 64, tile.upto) - 1;
      BlockOfLine of = {false, false, false};
      if (row < tile.upto)
        of = block_of_line($(of), sequence, 0, row, end, key_range($(of), sequence, 0, row, end, tile.from), block, tile, runs);
      const u32 seen = __ballot_sync(~0u, of.seen), maybe = __ballot_sync(~0u, of.maybe), edges = __ballot_sync(~0u, of.edges);
      if (lane == 0) to[job] = make_uint4(seen, maybe, edges, 0);
    }
    __syncthreads();
  }
}
