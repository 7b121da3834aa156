//| needs "l.by_reach? l.delta_lanes l.delta_pad l.delta_pdl l.delta_pieces l.delta_rows l.delta_threads l.listed? l.ordered? l.sums"
//| local wk = include("work/work.lua").of(p, l)
//| local passes, depth = l.delta_pad // l.delta_rows, (l.delta_pieces + l.delta_lanes - 1) // l.delta_lanes
//| if p.has_lengths then
//|   include "work/spaced_rows.cu"

//| end
//| if l.listed then
// The sequences of the most queries come first; more than ORDERED come as they are, for then the last are a small part.
constexpr int ORDERED = 256;
//|   if l.by_reach then
// Tiles of the last sequences, some 512, four for each SM of a large chip, come by how many queries see them, whose they are: they end
// together. reach: of a sequence among those how far its queries see, in tiles; of one before them farther than of any.
constexpr int FAR = 1 << 30;
//|   end
//|   local reach = l.by_reach and ", int (&reach)[ORDERED]" or ""
__device__ __forceinline__ void list_key_tiles(const Params &p, int (&queries)[ORDERED], int (&tiles)[ORDERED]$(reach)) {
  const int each = (p.b + ORDERED - 1) / ORDERED;  // sequences that count as one
  for (int i = threadIdx.x; i < ORDERED; i += $(l.delta_threads)) {
    tiles[i] = queries[i] = 0;
    for (int n = i * each; n < min((i + 1) * each, p.b); n++) {
      const Sequence sequence = sequence_of(p, n);
      if (each == 1) queries[i] = sequence.sq();
      tiles[i] += key_tiles_of(sequence);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < ORDERED && i * each < p.b; i += $(l.delta_threads)) {
    int before = 0, first = 0$(l.by_reach and ", all = 0" or "");
    for (int j = 0; j < ORDERED && j * each < p.b; j++) {
//|   if l.by_reach then
      all += tiles[j];
//|   end
      if (queries[j] > queries[i] || (queries[j] == queries[i] && j < i)) before++, first += tiles[j];
    }
//|   if l.by_reach then
    reach[i] = FAR;
    if (each == 1 && first >= all - max(512 / p.hkv, 1)) {
      reach[i] = key_tiles_seen(sequence_of(p, i));
      if (before == p.b - 1) leave_key_tiles(p, {0, all, 0, 0}, key_tiles_most(p));
      continue;
    }
//|   end
    for (int n = i * each; n < min((i + 1) * each, p.b); n++) {
      const int own = key_tiles_of(sequence_of(p, n));
      const bool last = each == 1 ? before == p.b - 1 : n == p.b - 1;
      leave_key_tiles(p, {n, first, own$(l.by_reach and ", 0" or "")}, last ? key_tiles_most(p) : first + own);
      first += own;
    }
  }
//|   if l.by_reach then
  __syncthreads();
  for (int i = threadIdx.x / 32; each == 1 && i < p.b; i += $(l.delta_threads // 32)) {
    if (reach[i] == FAR) continue;
    for (int tile = threadIdx.x % 32; tile < tiles[i]; tile += 32) {
      int n = 0;  // tiles before this one
      for (int j = 0; j < p.b; j++) {
        const int longer = reach[j] - (reach[i] - tile);
        n += min(max(longer, 0), tiles[j]) + (j < i && longer >= 0 && longer < tiles[j]);
      }
      leave_key_tiles(p, {i, n, 1, tile}, n + 1);
    }
  }
//|   end
}

//| elseif l.ordered then
// The sequences in the order in which the next kernels do them: those of the most queries first. Of more than ORDERED as they come, for
// then the last are a small part.
constexpr int ORDERED = 256;
__device__ __forceinline__ void order_sequences(const Params &p, int (&queries)[ORDERED]) {
  int *const order = (int *)p.order;
  if (p.b <= ORDERED)
    for (int i = threadIdx.x; i < p.b; i += $(l.delta_threads)) queries[i] = sequence_of(p, i).sq();
  __syncthreads();
  for (int i = threadIdx.x; i < p.b; i += $(l.delta_threads)) {
    int before = p.b <= ORDERED ? 0 : i;
    for (int j = 0; p.b <= ORDERED && j < p.b; j++) before += queries[j] > queries[i] || (queries[j] == queries[i] && j < i);
    order[before] = i;
  }
}

//| end
constexpr int DELTA_DEPTH = $(depth);  // pieces of a row that a lane has
constexpr int DELTA_BATCH = $(math.max(1, math.min(passes, 4 // depth)));  // rows that a lane has pieces of at once

// $(l.delta_pad) rows of a head have their LSE in base 2, and then their D. Of a row that sees no key LSE is +inf, so that P = 0, and D is
// 0 whatever its dO is; rows past the last are such. Of sixteen rows 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 are neighbours: a thread that has
// their columns of S^T loads them at once. So many threads have all loads of a block on their way at once: in a short launch nothing else
// hides how long they take.
//| -- With a list of tiles it takes more registers than leave room for two blocks on an SM. Others would spill, and gain nothing.
//| local threads = l.listed and p.d > 64 and ("%d, %d"):format(l.delta_threads, 2048 // l.delta_threads) or l.delta_threads
extern "C" __global__ void __launch_bounds__($(threads)) fa_delta(const __grid_constant__ Params p) {
  __shared__ float sum_of[$(l.delta_pad)];
//| if p.has_lengths then
  const int head = $(wk.head("p.hq"));
//| else
  const int tile = $(wk.tile()), head = $(wk.head("p.hq"));
//| end
//| if l.delta_pdl then
  // What is in front has ended: so the next kernel, which may begin now, finds Q, K, V and dO as they are.
  grid_wait();
  if (threadIdx.x == 0) grid_over();
//| end
//| if l.ordered then
  __shared__ int queries[ORDERED];
//|   if l.listed then
  __shared__ int tiles[ORDERED];
//|     if l.by_reach then
  __shared__ int reach[ORDERED];
//|     end
  if ($(wk.block) == 0) list_key_tiles(p, queries, tiles$(l.by_reach and ", reach" or ""));
//|   else
  if ($(wk.block) == 0) order_sequences(p, queries);
//|   end
//| end
//| if p.has_lengths then
  const RowTile at_hand = row_tile<$(l.delta_pad)>(p, $(wk.tile()));
  const int tile = at_hand.tile;
  const Sequence sequence = sequence_of(p, at_hand.sequence);
  if (tile < 0 || tile * $(l.delta_pad) >= sequence.sq()) return;  // no later kernel reads of these rows
//| else
  const Sequence sequence = sequence_of(p, $(wk.batch("p.hq")));
//| end
  const int at = threadIdx.x, row = tile * $(l.delta_pad) + at, lane = at % DELTA_LANES;
  const bool real = at < $(l.delta_pad) && row < sequence.sq();  // one thread for each row
  float lse = -infinity(), extra = 0.f;
  if (real) {
    lse = load_here(p.lse + sequence.lse(head, row));
    if (p.grad_lse != nullptr) extra = load_here(p.grad_lse + sequence.lse(head, row));
  }
  const char *const o = (const char *)p.o + (sequence.o() + head * p.o_sh) * $(p.o_bytes);
  const char *const grad = (const char *)p.grad_o + (sequence.grad_o() + head * p.grad_o_sh) * $(p.o_bytes);
#pragma unroll
  for (int begin = 0; begin < $(passes); begin += DELTA_BATCH) {
    DeltaPiece a[DELTA_BATCH][DELTA_DEPTH], b[DELTA_BATCH][DELTA_DEPTH];
#pragma unroll
    for (int n = 0; n < DELTA_BATCH; n++) {
      // Past the last row, and the last piece of a row, it is loaded once more: a load under a condition would be waited for.
      const long long line = min(tile * $(l.delta_pad) + (begin + n) * DELTA_ROWS + at / DELTA_LANES, sequence.sq() - 1);
#pragma unroll
      for (int k = 0; k < DELTA_DEPTH; k++) {
        const int i = min(lane + k * DELTA_LANES, DELTA_PIECES - 1);
        a[n][k] = load_here((const DeltaPiece *)(o + line * p.o_ss * $(p.o_bytes)) + i);
        b[n][k] = load_here((const DeltaPiece *)(grad + line * p.grad_o_ss * $(p.o_bytes)) + i);
      }
    }
//| if l.sums then
    // dQ is added up from zeros.
    if (begin == 0) {
      const int blocks = (p.sq + 63) / 64, first = tile * $(l.delta_pad // 64);
      const int pieces = min($(l.delta_pad // 64), blocks - first) * (64 * D / 4);
//|   local number = p.has_lengths and "index" or "batch"
      float4 *const sums = (float4 *)p.sums + ((long long)(sequence.$(number) * p.hq + head) * blocks + first) * (64 * D / 4);
      for (int i = at; i < pieces; i += $(l.delta_threads)) sums[i] = make_float4(0.f, 0.f, 0.f, 0.f);
    }
//| end
#pragma unroll
    for (int n = 0; n < DELTA_BATCH; n++) {
      float sum = 0.f;
#pragma unroll
      for (int k = 0; k < DELTA_DEPTH; k++) {
        const float dot = dot_pieces(a[n][k], b[n][k]);
        sum += lane + k * DELTA_LANES < DELTA_PIECES ? dot : 0.f;
      }
#pragma unroll
      for (int i = DELTA_LANES / 2; i > 0; i /= 2) sum += __shfl_xor_sync(~0u, sum, i);
      if (lane == 0) sum_of[(begin + n) * DELTA_ROWS + at / DELTA_LANES] = sum;
    }
  }
  __syncthreads();
  if (at >= $(l.delta_pad)) return;
  const bool sees = lse != -infinity();
  const float sum = sum_of[at];
  const long long first = sequence.delta(head, tile * $(l.delta_pad));
  const int place = at / 16 * 16 + at % 8 / 2 * 4 + at / 8 % 2 * 2 + at % 2;
  float *const to = (float *)p.delta + 2 * first + place;
  to[0] = sees ? lse_log2(p, lse) : infinity();
  to[$(l.delta_pad)] = sees ? sum - extra : 0.f;
}
