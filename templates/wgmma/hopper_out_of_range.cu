//| needs "l.joined_v? l.shared? l.split? l.v_in_k?"
//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- out-of-range rows: those of other sequences, and those that no pair uses ----
// The last box of a sequence, and the first of a window, may reach rows that are not the sequence's own or that none of its queries sees:
// whatever lies there, NaN too, has no part in the result. Scores of such keys become -inf by the mask, but 0 * NaN in P V is NaN, and what
//| if l.split then
// a query that is not the sequence's scores may have the whole warp rescale. So one warp writes zeros over such rows of V. The copies of Q
// write zeros themselves.
//| else
// a query that is not the sequence's scores may have the whole warp rescale. So one warp writes zeros over such rows of V and Q.
//| end

//| pr.own_rows()
//| if not l.split then
//|   pr.partial_rows()
//| end

//| include "tiles/clear_rows.cu"
//| if l.joined_v then
// The same of a buffer of V, whose boxes lie side by side.
__device__ __forceinline__ void clear_values(u32 tile, int first, int end, int lane) {
#pragma unroll 1
  for (int box = 0; box < BOXES_V; box++)
#pragma unroll 1
    for (int at = first * ROW + lane * 16; at < end * ROW; at += 32 * 16)
      store_shared(tile + at / GROUP * V_GROUP + box * V_BOX + at % GROUP, make_uint4(0, 0, 0, 0));
}
//| end

//| local clear = l.joined_v and "clear_values" or "clear_rows<BC, BOXES_V>"
__device__ __forceinline__ void clear_out_of_range_rows(const Params &p, u32 smem, int lane) {
//| if l.split then
  int v = 0;           // the buffer of the next block's V
  u32 v_parities = 0;  // a bit for each buffer's barrier
//| else
  Ring<Q_BUFS> q;
  int v = 0;                        // the buffer of the next block's V
  u32 q_parities = 0, v_parities = 0;  // a bit for each buffer's barrier
//| end
  TileQueue tiles;
  Tile where;
  // The copy to a buffer has landed at its barrier.
  auto wait = [](u32 landed, u32 &parities, int buffer) {
    mbarrier_wait(landed, parities >> buffer & 1);
    parities ^= 1u << buffer;
  };
  auto complete = [&](u32 full) {
    fence_async();
    __syncwarp();
    if (lane == 0) mbarrier_arrive(full);
  };
//| if pr.scans then
  grid_wait();
//| end
  while (tiles.next(p, smem, where)) {
    const KeyRange keys = tiles.keys(p, smem, 0);
    const Sequence sequence = tiles.sequence(p, smem);
//| if not pr.scans then
    tiles.done(smem, true);
    if (keys.loaded_hi < keys.loaded_lo) continue;
//| else
    if (keys.loaded_hi < keys.loaded_lo) {
      tiles.done(smem, true);
      continue;
    }
//|   indented(4, pr.begin_published)
    MaskBlocks blocks(keys.loaded_hi, keys.loaded_lo);
//| end
//| if not l.split then
    const int wg = partial_warpgroup(sequence, where.row);
    if (wg >= 0) {
      wait(q_landed(smem, q.at, wg), q_parities, q.at * WGS + wg);
      clear_rows<64, BOXES>(smem + (q.at * WGS + wg) * Q_TILE, partial_rows(sequence, where.row), 64, lane);
      complete(q_full(smem, q.at, wg));
    }
    q.next();
//| end
    // Of the blocks in between all rows are the sequence's own.
#pragma unroll 1
//| if pr.scans then
    for (int code; (code = blocks.next(look)) >= 0;) {
      const OwnRows own = own_rows(sequence, code >> 1);
//| else
    for (int block = keys.loaded_hi; block >= keys.loaded_lo; block--) {
      const OwnRows own = own_rows(sequence, block);
//| end
      if (!own.all()) {
        const u32 tile = smem + SMEM_V + v * V_TILE;
        wait(v_landed(smem, v), v_parities, v);
        $(clear)(tile, 0, own.first, lane);
        $(clear)(tile, own.end, BC, lane);
        complete($(l.v_in_k and "k_full(smem, v)" or "v_full(smem, v)"));
//| if l.shared then
        if (lane == 0) mbarrier_arrive(rest_full(smem, v));
//| end
      }
      if (++v == STAGES_V) v = 0;
    }
//| if pr.scans then
    tiles.done(smem, true);
//| end
  }
}
