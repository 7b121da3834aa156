//| needs "c.rescale l.runs? l.even_rows? l.most? l.near? l.pack? l.rows_show? l.sums? l.sums_show?"
//| local no = l.near and "NO_OWN" or "NO"  -- registers of O that are stored
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local log2_scale, scale = pr.unit_log2, pr.unit
//| local z_type = pr.has_sink and ", float z" or ""
//| if c.rescale >= 3 then  -- maxima are kept in log2 units
//|   log2_scale, scale = "1.f", "0.693147180559945309f"
//| end
//| local unit = c.rescale >= 3 and "1.f" or "scale_log2"
//| -- Rows of which a mask hides all have their O by other ways.
//| local of_mask = pr.has_mask and " && sees_keys(sequence, query)" .. pr.and_seen("state[h].m") or ""
//| local end_of_rows = l.even_rows and "min(row_count(p, sequence), where.row + rows_of_tile(p))" or "row_count(p, sequence)"
// ---- how the rows of a warpgroup go back to memory: O / l, and LSE = scale m + log(l) ----
// A row that saw no key has l = 0: O = 0, LSE = -inf.

// Of one of a thread's rows; l is the whole row's.
//| if p.has_lengths then
__device__ __forceinline__ void store_lse(const Params &p, const Tile &where, const Sequence &sequence, const RowState &state, float l$(z_type),
                                          int row, int t) {
//| else
__device__ __forceinline__ void store_lse(const Params &p, const Tile &where, const RowState &state, float l$(z_type), int row, int t) {
  const Sequence sequence = sequence_of(p, where.batch);
//| end
//| if l.pack == 1 then
  const Row at = row_of(p, where, row);
  if (p.lse != nullptr && t == 0 && row < $(end_of_rows))
    p.lse[sequence.lse(at.head, at.query)] = $(pr.log_sum_exp("state", "l", "z", scale, log2_scale));
//| else
  if (p.lse != nullptr && t == 0 && row < $(l.runs and "where.upto" or "sequence.sq()"))
    p.lse[sequence.lse(where.head, row)] = $(pr.log_sum_exp("state", "l", "z", scale, log2_scale));
//| end
}

//| if l.sums_show then
// Which of this thread's rows g + 8h are computed again: bit h. spoilt: those of which a sum is infinite or no number, which a row without
// keys is by the V of others. row: the first of them.
__device__ __forceinline__ u32 rows_again(const Sequence &sequence, const RowState (&state)[2], const bool (&spoilt)[2], int row) {
  u32 again = 0;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int query = row + 8 * h;
    const bool far = is_far(state[h].m, $(unit)) && sees_keys(sequence, query)$(pr.and_seen("state[h].m"));
    if ((far || spoilt[h]$(of_mask)) && query < sequence.sq()) again |= 1u << h;
  }
  return again;
}
//| else
// Which of this thread's rows g + 8h may have to be computed again: bit h, where they are far.
//|   if not l.rows_show then
// Bit 2 + h, where O is NaN.
//|   end
// row: the first of them.
__device__ __forceinline__ u32 rows_again(const Sequence &sequence, const RowState (&state)[2], const float (&o)[$(no)], int row,
                                          float scale_log2) {
  u32 again = 0;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int query = $(l.pack == 1 and "query_of(sequence.p, row + 8 * h)" or "row + 8 * h");
    if (is_far(state[h].m, $(unit)) && sees_keys(sequence, query)$(pr.and_seen("state[h].m"))) again |= 1u << h;
//| if (l.most or l.sums) and pr.has_score then
    float taint = 0.f;  // infinite or NaN where O is, which it may be for P far above 1: fewer instructions than by integers
#pragma unroll
    for (int n = 0; n < $(no) / 4; n++) taint = fmaf(o[4 * n + 2 * h], 0.f, fmaf(o[4 * n + 2 * h + 1], 0.f, taint));
    if ((taint != 0.f || !(state[h].l < infinity()))$(of_mask)) again |= 1u << h;
//| elseif l.most or l.sums then
    int top = 0;  // sums that are infinite, or no number, may be so for P far above 1
#pragma unroll
    for (int n = 0; n < $(no) / 4; n++)
      top = max(max(top, __float_as_int(o[4 * n + 2 * h]) & 0x7fffffff), __float_as_int(o[4 * n + 2 * h + 1]) & 0x7fffffff);
    if ((top >= 0x7f800000 || !(state[h].l < infinity()))$(of_mask)) again |= 1u << h;
//| elseif pr.cuts_right then
    int top = 0;  // as integers: a NaN that arithmetic makes is the largest
#pragma unroll
    for (int n = 0; n < $(no) / 4; n++) top = max(max(top, __float_as_int(o[4 * n + 2 * h])), __float_as_int(o[4 * n + 2 * h + 1]));
    if (top > 0x7f800000) again |= 4u << h;
//| end
    if (query >= sequence.sq()) again &= ~($(l.rows_show and "1u" or "5u") << h);
  }
  return again;
}
//| end
//| if l.rows_show then
// store(i) for row i of the warp's sixteen that has to be.
//| else
// store(i, far) for row i of the warp's sixteen that may have to be.
//| end
template <class Store>
__device__ __forceinline__ void store_rows_again(u32 again, Store store) {
  __syncwarp();
#pragma unroll 1
  for (int i = 0; i < 16; i++) {
    const int lanes = 15 << i % 8 * 4;
//| if l.rows_show then
    if ((__ballot_sync(~0u, again >> i / 8 & 1) & lanes) != 0) store(i);
//| else
    const bool far = (__ballot_sync(~0u, again >> i / 8 & 1) & lanes) != 0;
    if (far || (__ballot_sync(~0u, again >> i / 8 & 4) & lanes) != 0) store(i, far);
//| end
  }
}
