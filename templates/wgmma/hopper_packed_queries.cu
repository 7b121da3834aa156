//| needs "l.q_warps? l.q_warps_rows? l.shared?"
// The rows of a tile are queries of all heads of a group, which lie in no one box: a warp copies them, 16 bytes a lane, to where a box of
// BOX columns would have them. Rows and columns past the last are zeros.
//| if l.shared then
// Rows first to first + 7 of the tile, by a warp of the consumers.
__device__ __forceinline__ void copy_queries(const Params &p, const Sequence &sequence, const Tile &where, u32 to, int first, int lane) {
  constexpr int CHUNKS = BOXES * BOX / 8, IN_BOX = BOX / 8;  // 16-byte chunks of a row, and of them in a box
  const Row at = row_of(p, where, where.row + first);
  int head = (int)at.head - where.head;  // in its group
  const element *from = (const element *)p.q + sequence.q() + at.query * p.q_ss + at.head * p.q_sh;
#pragma unroll 2
  for (int r = first; r < first + 8; r++) {
    const int swizzle = ROW == 128 ? r % 8 : r / 2 % 4;
    const bool real = where.row + r < row_count(p, sequence);
#pragma unroll
    for (int c = 0; c < CHUNKS; c += 32) {
      const int chunk = c + lane;
      if (chunk < CHUNKS)
        cp_async<16>(to + chunk / IN_BOX * 64 * ROW + r * ROW + (chunk % IN_BOX ^ swizzle) * 16, from + chunk * 8, real && chunk * 8 < D);
    }
    from += p.q_sh;
    if (++head == p.group) head = 0, from += p.q_ss - p.group * p.q_sh;
  }
}
//| else
//| local warps, copiers = l.q_warps or 1, l.q_warps_rows or 1
//| local copier = copiers > 1 and "copier" or "0"
constexpr int COPIERS = $(copiers);  // warps that copy rows of each warpgroup, in turns
__device__ __forceinline__ void copy_queries(const Params &p, const Sequence &sequence, const Tile &where, u32 to, int first,
                                             int lane$(copiers > 1 and ", int copier" or "")) {
  constexpr int CHUNKS = BOXES * BOX / 8, STEP = 32 / CHUNKS;  // 16-byte chunks of a row; rows of one pass
  const int chunk = lane % CHUNKS, box = chunk / (BOX / 8), piece = chunk % (BOX / 8);
  if (lane >= STEP * CHUNKS) return;
  const int left = chunk * 8 < D ? row_count(p, sequence) - first : 0;  // rows that are there
  const int begin = $(copier) * STEP + lane / CHUNKS, row = first + begin, query = row / p.group;
  int head = row - query * p.group;  // in its group
  const element *from = (const element *)p.q + sequence.q() + query * p.q_ss + (where.head + head) * p.q_sh + chunk * 8;
  // A pass goes so many queries and so many heads on, and once more where that is another group: without a loop, so that passes overlap.
  const int queries = COPIERS * STEP / p.group, heads = COPIERS * STEP - queries * p.group;
  const long long step = queries * p.q_ss + heads * p.q_sh;
#pragma unroll(STEP < 4 ? 4 : 2)
  for (int pass = 0; pass < (64 + COPIERS * STEP - 1) / (COPIERS * STEP); pass++) {
    const int r = pass * COPIERS * STEP + begin, swizzle = ROW == 128 ? r % 8 : ROW == 64 ? r / 2 % 4 : r / 4 % 2;
    if (64 % (COPIERS * STEP) == 0 || r < 64) cp_async<16>(to + box * 64 * ROW + r * ROW + (piece ^ swizzle) * 16, from, r < left);
    head += heads;
    from += step;
    if (head >= p.group) {
      head -= p.group;
      from += p.q_ss - p.group * p.q_sh;
    }
  }
}
__device__ __forceinline__ void produce_queries(const Params &p, u32 smem, int lane$(warps > 1 and ", int copier" or "")) {
  Ring<Q_BUFS> q;
  TileQueue tiles;
  Tile where;
  grid_wait();
  // What this lane has copied is there for wgmma to read.
  auto arrive = [&](int wg) {
    cp_async_wait<0>();
    fence_async();
    __syncwarp();
    if (lane == 0) mbarrier_arrive(q_full(smem, q.at, wg));
  };
  int fresh = Q_BUFS;  // buffers that nobody has read yet: no warpgroup waits for another's
#pragma unroll 1
  while (tiles.next(p, smem, where)) {
    const KeyRange keys = tiles.keys(p, smem, 0);
    const Sequence sequence = $(p.has_lengths and "tiles.sequence(p, smem)" or "sequence_of(p, where.batch)");
    tiles.done(smem, true);
    if (keys.loaded_hi < keys.loaded_lo) continue;
#pragma unroll 1
    for (int wg = $(warps > copiers and "copier" or "0"); wg < WGS; wg += $(warps > copiers and warps or 1)) {
      mbarrier_wait(q_empty(smem, q.at, wg), q.parity ^ 1);
      if (where.row + wg * 64 < row_count(p, sequence))
        copy_queries(p, sequence, where, smem + (q.at * WGS + wg) * Q_TILE, where.row + wg * 64, lane$(copiers > 1 and ", copier" or ""));
      cp_async_commit();
      if (fresh == 0) arrive(wg);
    }
    if (fresh > 0) {
      fresh--;
#pragma unroll 1
      for (int wg = $(warps > copiers and "copier" or "0"); wg < WGS; wg += $(warps > copiers and warps or 1)) arrive(wg);
    }
    q.next();
  }
}
//| end
