//| needs "l.eight? l.integer? l.rows_show? l.scaled? l.shared? l.wide?"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local of_v = p.has_v_columns and " * (int)p.v_ss" or ""
// ---- rows that are computed again, key by key ----
// A row needs it where its largest score is beyond what exponents relative to a rounded maximum hold, and where a value that it may not see
// has reached it: 0 times NaN or infinity is NaN. Both show in the result. Here a row takes the keys that it sees, and no others, and its
// exponents are (s - m) c, exactly 0 where s = m.

//| include "pairs/exact_keys.cu"

// What lane 0 has, for control that is uniform. Where lanes may part, the walk around the buffers of wgmma would lose its uniform
// registers.
__device__ __forceinline__ int uniform(int x) { return __shfl_sync(~0u, x, 0); }

// A row$(l.rows_show and "" or " that sees keys"), by a whole warp, key by key: a lane has every 32nd column of Q, K, V and O.
// put(col, x) takes O / l.
template <class Put>
__device__ __forceinline__ RowState exact_row(const Params &p, const Sequence &sequence, int head, int query, Put put) {
  const int lane = threadIdx.x % 32, kv_head = head / p.group, hi = uniform(last_key(sequence, query));
  RowState row = {-infinity(), 0.f};
  float q[(D + 31) / 32], o[(DV + 31) / 32] = {};
#pragma unroll
  for (int n = 0; n < (D + 31) / 32; n++)
    q[n] = lane + 32 * n < D ? widened(((const element *)p.q)[sequence.q() + query * p.q_ss + head * p.q_sh + lane + 32 * n]) : 0.f;
//| if l.scaled then
  const float scaled = score_scale_of(p, sequence, head, $(l.integer and "query, " or "")kv_head);
#pragma unroll
  for (int n = 0; n < (D + 31) / 32; n++) q[n] *= scaled;
//| end
//| indented(2, pr.begin_dropout)
//| indented(2, pr.begin_score, "head")
#pragma unroll 1
  for (int key = uniform(first_key(sequence, query)); key <= hi; key++) {
//| indented(4, pr.pass_hidden, "head", "query", "key", "uniform")
//| if l.wide then
    const element *const k = k_of(p, sequence, kv_head, key);
    const value *const v = v_of(p, sequence, kv_head, key);
//| else
    const element *const k = k_of(p, sequence, kv_head, key), *const v = v_of(p, sequence, kv_head, key);
//| end
    float s = 0.f;
#pragma unroll
    for (int n = 0; n < (D + 31) / 32; n++) s = fmaf(q[n], element_of(k, min(lane + 32 * n, D - 1)), s);
#pragma unroll
    for (int i = 16; i > 0; i /= 2) s += __shfl_xor_sync(~0u, s, i);
//| if l.integer and p.k_scale == 2 then
    s *= k_token_scale(p, sequence, kv_head, key);
//| end
//| indented(4, pr.scoring, "s = " .. pr.score_of("s", "head", "query", "key") .. ";")
//| raise_exactly()
    row = {top, fmaf(row.l, keep, e)};
//| indented(4, pr.drop_pair, "e", "(int)(sequence.number() * p.hq) + head", "query", "key")
#pragma unroll
    for (int n = 0; n < (DV + 31) / 32; n++) o[n] = fmaf(e, element_of(v, min(lane + 32 * n, DV - 1)$(of_v)), o[n] * keep);
  }
  // A largest score beyond fp32, in either direction, is no weight.
  if ($(l.rows_show and "sees_keys(sequence, query) && " or "")$(pr.beyond("row.m"))) row.l = __int_as_float(0x7fffffff);
//| indented(2, pr.add_sink, "row.l", "row.m", "head", "query")
//| local of_v = l.eight and p.v_scale == 1 and " * v_scale_of(p, sequence, kv_head)" or ""
//| local of_o = l.eight and p.o_scale == 1 and " / o_scale_of(p, sequence, head)" or ""
  const float inverse = reciprocal(row.l)$(pr.out_scale)$(of_v)$(of_o);
#pragma unroll
  for (int n = 0; n < (DV + 31) / 32; n++)
    if (lane + 32 * n < DV) put(lane + 32 * n, o[n] * inverse);
  return row;
}
//| if pr.right and not pr.has_mask and not l.rows_show then

//| local first_block = p.has_v_columns and "; or that lies in their first block" or ""
// Whether V of a key that the row does not see, but a row beside it, holds NaN or infinity$(first_block).
__device__ __forceinline__ bool reached(const Params &p, const Sequence &sequence, int head, int query) {
  const int lane = threadIdx.x % 32, kv_head = head / p.group;
  const int lo = uniform(first_key(sequence, query)), hi = uniform(last_key(sequence, query));
  const int beside_lo = uniform(first_key(sequence, max(query - REACH, 0)))$(p.has_v_columns and " / BC * BC" or "");
  const int beside_hi = uniform(last_key(sequence, min(query + REACH, sequence.sq() - 1)));
  bool found = false;
#pragma unroll 1
  for (int key = beside_lo; key <= beside_hi; key++) {
    if (key == lo) key = hi + 1;
    if (key > beside_hi) break;
    const $(l.wide and "value" or "element") *const v = v_of(p, sequence, kv_head, key);
#pragma unroll 1
    for (int n = 0; n < (DV + 31) / 32; n++) found = found | !(fabsf(element_of(v, min(lane + 32 * n, DV - 1)$(of_v))) < infinity());
  }
  return __any_sync(~0u, found);
}
//| end

//| local far = l.rows_show and "" or ", bool far"
//| if l.rows_show then
// A row again, by a whole warp, over what it has stored of it. put(col, x) stores O.
//| else
// A row again, by a whole warp, over what it has stored of it. far: whatever its values are, of a row that sees keys. put(col, x) stores O.
//| end
template <class Put>
__device__ __forceinline__ void store_again(const Params &p, const Sequence &sequence, const Row &at$(far), Put put) {
  const int head = (int)at.head, query = (int)at.query;
//| if not l.rows_show then
  if (uniform(!sees_keys(sequence, query)) != 0) {  // O = 0; its LSE is -inf
#pragma unroll 1
    for (int n = 0; n < (DV + 31) / 32; n++)
      if ((int)threadIdx.x % 32 + 32 * n < DV) put((int)threadIdx.x % 32 + 32 * n, 0.f);
    return;
  }
//| end
//| if pr.right and not pr.has_mask and not l.rows_show then
  if (!far && !reached(p, sequence, head, query)) return;
//| end
  const RowState row = exact_row(p, sequence, head, query, put);
  if (p.lse != nullptr && threadIdx.x % 32 == 0)
    p.lse[sequence.lse(head, query)] = $(pr.log_sum_exp("row", "row.l", "sink_of(p, sequence, head, query)"));
}
//| local columns = l.shared and ", int first, int end" or ""
// To global memory$(l.shared and ": the columns from `first` to `end`, another warpgroup the others" or "").
__device__ __forceinline__ void store_again(const Params &p, const Sequence &sequence, const Row &at$(far)$(columns)) {
  const long long to = sequence.o() + at.query * p.o_ss + at.head * p.o_sh;
  store_again(p, sequence, at$(l.rows_show and "" or ", far"), [&](int col, float x) {
//| if l.shared then
    if (col < first || col >= end) return;
//| end
//| if p.o_bytes == 1 then
    ((element *)p.o)[to + col] = (element)to_e4m3(x, 0.f, 0.f, 0.f);
//| elseif p.o_bytes == 4 then
    ((float *)p.o)[to + col] = x;
//| else
    ((u16 *)p.o)[to + col] = (u16)pack2(x, 0.f);
//| end
  });
}
