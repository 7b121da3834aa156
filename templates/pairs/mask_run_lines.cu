//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| local program = p.score
//| local places, place = program.marks_by_b and "p.b" or "1", program.marks_by_b and "place" or "0"
constexpr int RUN_ROWS = 65536;  // of a sequence whose runs are looked for, at most
constexpr int RUN_TILES = RUN_ROWS / BR * 5 / 4 + 2;  // that these make, at most
// The sum of a warp's numbers up to this lane's.
__device__ __forceinline__ int sum_upto(int x, int lane) {
#pragma unroll
  for (int n = 1; n < 32; n *= 2) {
    const int before = __shfl_up_sync(~0u, x, n);
    x += lane >= n ? before : 0;
  }
  return x;
}
// How many tiles a sequence has that begin with its runs, 0 where these are none, or many. To be used by whole thread blocks.
__device__ __forceinline__ int cut_at_runs(const Params &p, const Sequence &sequence, int place, u32 *changes, int *begins, RunTile *tiles,
                                           int &found) {
  const int lane = (int)threadIdx.x % 32, rows = sequence.sq(), words = (p.sq + 31) / 32, most = run_tiles_most(p);
  bool wrong = rows != sequence.sk() || rows > RUN_ROWS;
  if (!wrong)
    for (int i = threadIdx.x; i < words; i += 256) {
      const uint2 of = ((const uint2 *)p.mask_runs)[(long long)$(place) * words + i];
      changes[i] = of.x, wrong |= of.y != 0;
    }
  if (__syncthreads_or(wrong)) return 0;
  if (threadIdx.x < 32) {
    int runs = 1, count = 0;  // the first begins with row 0, where nothing changes
#pragma unroll 1
    for (int first = 0; first < words && runs <= most; first += 32) {
      u32 mine = first + lane < words ? changes[first + lane] : 0;
      const int upto = sum_upto(__popc(mine), lane);
      for (int run = runs + upto - __popc(mine); mine != 0 && run < most; run++, mine &= mine - 1)
        begins[run] = (first + lane) * 32 + __ffs(mine) - 1;
      runs += __shfl_sync(~0u, upto, 31);
    }
    if (runs <= most) {
      if (lane == 0) begins[0] = 0, begins[runs] = rows;
      __syncwarp();
#pragma unroll 1
      for (int first = 0; first < runs; first += 32) {
        const int run = first + lane, at = run < runs ? begins[run] : 0, end = run < runs ? begins[run + 1] : 0;
        const int n = (end - at + BR - 1) / BR, upto = sum_upto(n, lane), to = count + upto - n;
        // The tile that is not full is the first, which sees least; its rows are whole lines, so that diagonals lie in one block.
        const int spare = n * WGS - (end - at + 63) / 64;
        for (int i = 0; i < n && to + i < most; i++)
          tiles[to + i] = {at + max(i * WGS - spare, 0) * 64, min(at + ((i + 1) * WGS - spare) * 64, end), at, end};
        count += __shfl_sync(~0u, upto, 31);
      }
    }
    if (lane == 0) found = count <= most ? count : 0;
  }
  __syncthreads();
  return found;
}

// A warp makes a word. Each thread block finds the tiles of its sequence, and the first of them leaves these.
extern "C" __global__ void __launch_bounds__(256) fa_mask_lines(const __grid_constant__ Params p) {
  __shared__ u32 changes[RUN_ROWS / 32];
  __shared__ int begins[RUN_TILES + 1];
  __shared__ RunTile tiles[RUN_TILES];
  __shared__ int found;
  const int lane = (int)threadIdx.x % 32, words = line_words(p), places = $(places), blocks = (int)$(wk.blocks);
  grid_over(), grid_wait();
#pragma unroll 1
  for (int place = (int)$(wk.block) % places; place < places; place += blocks) {
    const int share = (int)$(wk.block) / places, shares = max(1, (blocks - place + places - 1) / places);
    const Sequence sequence = sequence_of(p, place);
    const int cut = cut_at_runs(p, sequence, place, changes, begins, tiles, found), count = cut > 0 ? cut : head_tiles(p);
    auto tile_at = [&](int n) -> RunTile {  // from the last on
      const int i = count - 1 - n;
      if (cut > 0) return tiles[i];
      return {i * BR, min((i + 1) * BR, sequence.sq()), 0, -1};
    };
    if (share == 0) {
      const int most = run_tiles_most(p);
      for (int i = threadIdx.x; i < most; i += 256) {
        RunTile of = {-1, 0, 0, -1};
        if (i < count) of = tile_at(i);
        *run_tile_at(p, place, i) = make_int4(of.row, of.upto, of.from, of.end);
      }
      if (threadIdx.x == 0) run_tile_at(p, place, 2 * head_tiles(p) - 1)->x = count;
    }
    uint4 *const to = (uint4 *)p.mask_lines + (long long)$(place) * 2 * head_tiles(p) * WGS * words;
#pragma unroll 1
    for (int job = share * 8 + (int)threadIdx.x / 32; job < count * WGS * words; job += shares * 8) {
      const int block = job % words * 32 + lane, line = job / words;
      const RunTile tile = tile_at(line / WGS);
      const int row = tile.row + line % WGS * 64, end = min(row + 64, tile.upto) - 1;
      BlockOfLine of = {false, false, false};
      if (row < tile.upto)
        of = block_of_line(p, sequence, 0, row, end, key_range(p, sequence, 0, row, end, tile.from), block, tile);
      const u32 seen = __ballot_sync(~0u, of.seen), maybe = __ballot_sync(~0u, of.maybe), edges = __ballot_sync(~0u, of.edges);
      if (lane == 0) to[job] = make_uint4(seen, maybe, edges, 0);
    }
    __syncthreads();
  }
}
