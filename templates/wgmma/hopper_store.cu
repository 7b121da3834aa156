//| needs "c.o_path c.rescale l.even_rows? l.most? l.near? l.once? l.one_text? l.pack? l.rows_show? l.runs? l.shared? l.sums?"
//| needs "l.sums_show? l.warp_stores?"
//| local far, of_far = l.rows_show and "" or ", far", l.rows_show and "" or ", bool far"
//| local returns = l.once and "u32" or "void"  -- which rows are computed again
//| local no = l.near and "NO_OWN" or "NO"  -- registers of O that are stored
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local log2_scale, scale = pr.unit_log2, pr.unit
//| local z_of = pr.has_sink and ", z" or ""
//| if c.rescale >= 3 then  -- maxima are kept in log2 units
//|   log2_scale, scale = "1.f", "0.693147180559945309f"
//| end
//| local end_of_rows = l.even_rows and "min(row_count(p, sequence), where.row + rows_of_tile(p))" or "row_count(p, sequence)"
//| include "wgmma/hopper_rows.cu"

//| local brief = c.o_path == 1 and pr.has_score and not p.has_lengths -- tiles without keys have a text that is short to compile
//| local from_registers = c.o_path < 2 and not brief or p.has_lengths and not l.once
//| local sequence = p.has_lengths and "sequence, " or ""
//| if p.o_bytes == 2 and from_registers then
//| include "tiles/gather_block.cu"

//| end
//| if from_registers then
// Straight from the registers. row: this thread's first. KEYS: the tile has some.
//|   local shared = l.shared and ", int column, int from" or ""
//|   if l.shared then
// column: the warpgroup's first, of which those before the `from`th are another one's to store.
//|   end
template <bool KEYS>
//|   if p.has_lengths then
__device__ __forceinline__ void store_rows(const Params &p, const Tile &where, const Sequence &sequence, const float (&o)[$(no)],
                                           const RowState (&state)[2], int row, int t$(shared)) {
//|   else
__device__ __forceinline__ void store_rows(const Params &p, const Tile &where, const float (&o)[$(no)], const RowState (&state)[2], int row,
                                           int t$(shared)) {
  const Sequence sequence = sequence_of(p, where.batch);
//|   end
//|   local mine = l.shared and " && n * 8 >= from" or ""
//|   local inside, inside_t = "", ""
//|   if l.shared and p.dv % 64 > 0 then  -- the last box has columns past the last
//|     inside, inside_t = " && column + n * 8 < DV", " && column + (n + t) * 8 < DV"
//|   end
//|   local state_of = l.sums_show and "spoilt, row" or "o, row, " .. pr.unit_log2
//|   if l.sums_show then
  float sum[2], taint[4] = {};  // infinite or NaN where O is; four, since each addition waits for the one before
#pragma unroll
  for (int h = 0; h < 2; h++) sum[h] = quad_sum(state[h].l);
  const float made[2] = {reciprocal(sum[0]), reciprocal(sum[1])};
#pragma unroll
  for (int n = 0; n < NO / 2; n++) taint[n % 4] = fmaf(o[2 * n] * made[n % 2], o[2 * n + 1] * made[n % 2], taint[n % 4]);
  bool spoilt[2];  // row h has the sums h and h + 2
//|     -- Its m was far above its scores, or so far below that 1 / sum is 0.
//|     local far_off = l.one_text and " || !(sum[h] >= 0x1p-96f && sum[h] <= 0x1p125f)" or ""
#pragma unroll
  for (int h = 0; h < 2; h++) spoilt[h] = !(fabsf(taint[h] + taint[h + 2]) < infinity()) || !(state[h].l < infinity())$(far_off);
//|   end
//|   if l.even_rows then
  u32 again = KEYS ? rows_again(sequence, state, $(state_of)) : 0;
  if (row >= $(end_of_rows)) again &= ~5u;
  if (row + 8 >= $(end_of_rows)) again &= ~10u;
//|   else
  const u32 again = KEYS ? rows_again(sequence, state, $(state_of)) : 0;
//|   end
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int i = row + 8 * h;
//|   if pr.has_sink then
    float l = quad_sum(state[h].l);
//|     if l.pack == 1 then
//|       indented(4, pr.add_sink, "l", "state[h].m", "row_of(p, where, i).head", "row_of(p, where, i).query", log2_scale, scale)
//|     else
//|       indented(4, pr.add_sink, "l", "state[h].m", "where.head", "i", log2_scale, scale)
//|     end
    const float inverse = reciprocal(l)$(pr.out_scale);
//|   else
//|     if l.sums_show then
    const float l = sum[h], inverse = made[h]$(pr.out_scale);
//|     else
    const float l = quad_sum(state[h].l), inverse = reciprocal(l)$(pr.out_scale);
//|     end
//|   end
    $(l.shared and "if (column == 0) " or "")store_lse(p, where, $(sequence)state[h], l$(z_of), i, t);
//|   if l.pack == 1 then
    const bool real = i < $(end_of_rows);
    const Row at = row_of(p, where, i);
    output *const to = (output *)p.o + sequence.o() + at.query * p.o_ss + at.head * p.o_sh$(l.shared and " + column" or "");
//|   else
    const bool real = i < sequence.sq();
    output *const to = (output *)p.o + sequence.o() + i * p.o_ss + where.head * p.o_sh;
//|   end
//|   if p.o_bytes == 4 then
#pragma unroll
    for (int n = 0; n < $(no) / 4; n++)
      if (real$(mine)$(inside)) *(float2 *)(to + n * 8 + 2 * t) = make_float2(o[4 * n + 2 * h] * inverse, o[4 * n + 2 * h + 1] * inverse);
//|   else
    u32 x[$(no) / 4];
#pragma unroll
    for (int n = 0; n < $(no) / 4; n++) x[n] = pack2(o[4 * n + 2 * h] * inverse, o[4 * n + 2 * h + 1] * inverse);
#pragma unroll
    for (int n = 0; n + 4 <= $(no) / 4; n += 4) {
      const uint4 block = gather_block(x[n], x[n + 1], x[n + 2], x[n + 3], t);
      if (real$(mine)$(inside_t)) *(uint4 *)(to + (n + t) * 8) = block;
    }
#pragma unroll
    for (int n = $(no) / 16 * 4; n < $(no) / 4; n++)
      if (real$(mine)$(inside)) *(u32 *)(to + n * 8 + 2 * t) = x[n];
//|   end
  }
  if (KEYS && __builtin_expect(__any_sync(~0u, again != 0), 0)) store_rows_again(again, [&](int i$(of_far)) {
//|   if l.pack == 1 then
//|     local columns = l.shared and ", column + from, column + 2 * " .. no or ""
    store_again(p, sequence, row_of(p, where, row - (int)threadIdx.x % 32 / 4 + i)$(far)$(columns));
//|   else
    const int query = row - (int)threadIdx.x % 32 / 4 + i;
    store_again(p, sequence, {query, where.head}$(far));
//|   end
  });
}
//| end
//| if brief then
// Of a tile without keys, which is rare, all O is 0. row: the warpgroup's first.
__device__ __forceinline__ void store_zeros(const Params &p, const Tile &where, int row) {
  const Sequence sequence = sequence_of(p, where.batch);
  const int columns = DV / 8;  // eight of them lie in 16 bytes
#pragma unroll 1
  for (int i = threadIdx.x % 128; i < min(sequence.sq() - row, 64) * columns; i += 128) {
    const long long query = row + i / columns;
    *(uint4 *)((output *)p.o + sequence.o() + query * p.o_ss + where.head * p.o_sh + i % columns * 8) = make_uint4(0, 0, 0, 0);
    if (i % columns == 0 && p.lse != nullptr) p.lse[sequence.lse(where.head, query)] = $(pr.keyless_lse("where.head", "query"));
  }
}
//| end
//| local late = c.o_path == 2  -- the look for them after the store: from Q's place it was 2.3 % slower where two warpgroups take turns
//| if c.o_path > 0 then
// Through shared memory, in the boxes and the swizzle of the tensor map, and out by the copy engine, which drops rows past the end.
// row: the warpgroup's first. The caller's tma_wait_read() tells when the place is free again.
//|   if l.once then
// Rows past the end of a sequence may be the next one's: of a tile that has some, threads store the others. The result is bits of
// this thread's rows that are computed again, as of rows_again().
//|   end
//|   if p.has_lengths then
__device__ __forceinline__ $(returns) store_tile(const Params &p, const TensorMap &o_map, const Tile &where, const Sequence &sequence,
                                           const float (&o)[NO], const RowState (&state)[2], u32 tile, int row, int wg) {
//|   else
__device__ __forceinline__ void store_tile(const Params &p, const TensorMap &o_map, const Tile &where, const float (&o)[NO],
                                           const RowState (&state)[2], u32 tile, int row, int wg) {
//|   end
  const int lane = threadIdx.x % 32, warp_row = threadIdx.x / 32 % 4 * 16;
  float l[2], inverse[2];
//|   if pr.has_sink then
  float z[2];  // on its way first
#pragma unroll
  for (int h = 0; h < 2; h++)
    z[h] = sink_of(p, $(p.has_lengths and "sequence" or "sequence_of(p, where.batch)"), where.head, row + warp_row + lane / 4 + 8 * h);
//|   end
//|   if not pr.has_sink then
#pragma unroll
  for (int h = 0; h < 2; h++) l[h] = quad_sum(state[h].l), inverse[h] = reciprocal(l[h])$(pr.out_scale);
//|   end
//|   if c.o_path == 2 then
  tma_wait_read();  // of the tile before, by the thread that stored it
//|   end
//|   if not p.has_lengths then
  const Sequence sequence = sequence_of(p, where.batch);
//|   end
  const int first = row + warp_row;
//|   if pr.has_sink then
#pragma unroll
  for (int h = 0; h < 2; h++) {
    l[h] = quad_sum(state[h].l);
//|     indented(4, pr.join_sink, "l[h]", "state[h].m", "z[h]", log2_scale, scale)
    inverse[h] = reciprocal(l[h])$(pr.out_scale);
  }
//|   end
//|   if not late then
  const u32 again = rows_again(sequence, state, o, first + lane / 4, $(pr.unit_log2));
//|   end
//|   if late and (l.most or l.sums or pr.cuts_right) then
  float taint[4] = {};  // infinite or NaN where O is; four sums, since each addition waits for the one before
#pragma unroll
//|     if l.sums_show then
  for (int n = 0; n < NO / 2; n++) taint[n % 4] = fmaf(o[2 * n] * inverse[n % 2], o[2 * n + 1] * inverse[n % 2], taint[n % 4]);
//|     elseif l.most or l.sums then
  for (int n = 0; n < NO / 2; n++) taint[n % 4] = fmaf(o[2 * n], o[2 * n + 1], taint[n % 4]);
//|     else
  // One of the two rows shows it: what V holds beside the rows' own keys, products take to all rows.
  for (int n = 0; n < NO / 4; n++) taint[n % 4] = fmaf(o[4 * n], o[4 * n + 1], taint[n % 4]);
//|     end
//|   end
//|   if l.warp_stores then
  __syncwarp();  // what lay here has been read
//|   else
  named_wait(8 + wg, 128);  // the whole warpgroup is through with what lay here
//|   end
  const int r = warp_row + lane % 16;
  const int swizzle = ROW == 128 ? r % 8 : ROW == 64 ? r / 2 % 4 : r / 4 % 2;
#pragma unroll
  for (int n = 0; n < NO / 4; n += 2) {
    const int block = n + lane / 16, box = block * 8 / BOX, chunk = block % (BOX / 8);
    const u32 to = tile + box * 64 * ROW + r * ROW + (chunk ^ swizzle) * 16;
    u32 x[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
      x[i] = n + i / 2 < NO / 4 ? pack2(o[(4 * n + 2 * i) % NO] * inverse[i % 2], o[(4 * n + 2 * i + 1) % NO] * inverse[i % 2]) : 0;
    if (n + 1 < NO / 4)
      stmatrix_x4(to, x);
    else
      stmatrix_x2(to, x[0], x[1]);
  }
//|   if late then
//|     local maybe = { ("is_far(state[0].m, %s) || is_far(state[1].m, %s)"):format(log2_scale, log2_scale) }
//|     if l.most or l.sums then maybe[#maybe + 1] = "!(state[0].l < infinity()) || !(state[1].l < infinity())" end
//|     if l.most or l.sums or pr.cuts_right then maybe[#maybe + 1] = "!(fabsf(taint[0] + taint[1] + taint[2] + taint[3]) < infinity())" end
//|     if l.sums_show then
  bool spoilt[2];  // row h has the sums h and h + 2
//|       -- Its m was far above its scores, or so far below that 1 / sum is 0.
//|       local far_off = l.one_text and " || !(l[h] >= 0x1p-96f && l[h] <= 0x1p125f)" or ""
#pragma unroll
  for (int h = 0; h < 2; h++) spoilt[h] = !(state[h].l < infinity()) || !(fabsf(taint[h] + taint[h + 2]) < infinity())$(far_off);
  // Whether one of this thread's rows may have to be computed again: of rows that see no key, too.
  const bool maybe = $(maybe[1]) || spoilt[0] || spoilt[1];
//|     else
  // Whether one of this thread's rows may have to be computed again: of rows that see no key, too.
  const bool maybe = $(table.concat(maybe, " || "));
//|     end
  fence_async();
  const bool any = $(l.warp_stores and "__any_sync(~0u, maybe)" or "named_any(8 + wg, 128, maybe)");
//|   else
  if (__builtin_expect(__any_sync(~0u, again != 0), 0)) store_rows_again(again, [&](int i$(of_far)) {
    const int r = warp_row + i, swizzle = ROW == 128 ? r % 8 : ROW == 64 ? r / 2 % 4 : r / 4 % 2;
    store_again(p, sequence, {first + i, where.head}$(far), [&](int col, float x) {
      store_shared(tile + col / BOX * 64 * ROW + r * ROW + (col % BOX / 8 ^ swizzle) * 16 + col % 8 * 2, (u16)pack2(x, 0.f));
    });
  });
  fence_async();
  named_wait(8 + wg, 128);
//|   end
//|   if l.runs then
  // A box would write rows of the next tile too. By a vote, and as often for all lanes: addresses of products stay in uniform registers.
  const int own = where.upto - first;
  if (__any_sync(~0u, own < 16)) {
    __syncwarp();
#pragma unroll 1
    for (int n = 0; n < 16 * (DV / 8); n += 32) {
//|     if p.dv % 16 ~= 0 then  -- the last of them are another warp's rows
      const int i = min(n + lane, 16 * (DV / 8) - 1), r = warp_row + i / (DV / 8), block = i % (DV / 8);
//|     else
      const int i = n + lane, r = warp_row + i / (DV / 8), block = i % (DV / 8);
//|     end
      const int swizzle = ROW == 128 ? r % 8 : ROW == 64 ? r / 2 % 4 : r / 4 % 2;
      const uint4 x = load_shared_x4(tile + block * 8 / BOX * 64 * ROW + r * ROW + (block % (BOX / 8) ^ swizzle) * 16);
      if (i / (DV / 8) < own)
        *(uint4 *)((output *)p.o + sequence.o() + (row + r) * p.o_ss + where.head * p.o_sh + block * 8) = x;
    }
  } else if (lane == 0) {
//|   elseif l.once then
  if (row + 64 > sequence.sq()) {
#pragma unroll 1
    for (int i = threadIdx.x % 128; i < (sequence.sq() - row) * (DV / 8); i += 128) {
      const int r = i / (DV / 8), block = i % (DV / 8), swizzle = ROW == 128 ? r % 8 : ROW == 64 ? r / 2 % 4 : r / 4 % 2;
      const uint4 x = load_shared_x4(tile + block * 8 / BOX * 64 * ROW + r * ROW + (block % (BOX / 8) ^ swizzle) * 16);
      *(uint4 *)((output *)p.o + sequence.o() + (row + r) * p.o_ss + where.head * p.o_sh + block * 8) = x;
    }
  } else if (threadIdx.x % 128 == 0) {
//|   else
  if ($(l.warp_stores and "lane == 0" or "threadIdx.x % 128 == 0")) {
//|   end
//|   local from, first = "tile", "row"
//|   if l.warp_stores then from, first = "tile + warp_row * ROW", "first" end
#pragma unroll
    for (int box = 0; box < BOXES_V; box++)
      tma_store(o_map, $(from) + box * 64 * ROW, box * BOX, sequence.map_query($(first)), where.head,
                sequence.$(p.has_lengths and "map_batch_q" or "map_batch")());
    tma_commit();
  }
//|   if late then
  // Rows that are computed again go over what the copy engine has written. The vote keeps control uniform.
  u32 again = 0;
  if (__builtin_expect(__any_sync(~0u, any), 0)) {
    again = rows_again(sequence, state, $(l.sums_show and "spoilt, first + lane / 4" or "o, first + lane / 4, " .. pr.unit_log2));
//|     if l.runs then  -- others are rows of another tile
    again &= (first + lane / 4 < where.upto ? 1u : 0u) | (first + lane / 4 + 8 < where.upto ? 2u : 0u);
//|     end
//|     if l.warp_stores then
    if (__any_sync(~0u, again != 0)) {
      if (lane == 0) tma_wait();
      __syncwarp();
//|     else
    if (__any_sync(~0u, named_any(8 + wg, 128, again != 0))) {
      if (threadIdx.x % 128 == 0) tma_wait();
      named_wait(8 + wg, 128);
//|     end
//|     if not l.once then
      store_rows_again(again, [&](int i$(of_far)) { store_again(p, sequence, {first + i, where.head}$(far)); });
//|     end
    }
  }
//|   end
  // After the fence, which would wait until memory has it.
#pragma unroll
  for (int h = 0; h < 2; h++)
    if ((again >> h & 1) == 0) store_lse(p, where, $(sequence)state[h], l[h]$(pr.has_sink and ", z[h]" or ""), row + warp_row + lane / 4 + 8 * h, lane % 4);
//|   if l.once then
  return again;
//|   end
}
//| end
