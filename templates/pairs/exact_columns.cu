//| needs "c.rescale? l.eight? l.integer? l.low? l.scaled?"
//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- rows that are computed again where their parts have come together: four columns by a lane alone ----

// Whether four columns of a row of O hold what is not finite.
__device__ __forceinline__ bool not_finite(float4 x) { return !(fmaf(x.x, 0.f, fmaf(x.y, 0.f, fmaf(x.z, 0.f, x.w * 0.f))) == 0.f); }

//| if pr.right and not pr.has_mask then
// As reached(), of four columns from `col` on.
__device__ __forceinline__ bool columns_reached(const Params &p, const Sequence &sequence, int head, int query, int col) {
  const int kv_head = head / p.group, lo = first_key(sequence, query), hi = last_key(sequence, query);
  const int beside_lo = first_key(sequence, max(query - REACH, 0)), beside_hi = last_key(sequence, min(query + REACH, sequence.sq() - 1));
  bool found = false;
#pragma unroll 1
  for (int key = beside_lo; key <= beside_hi; key++) {
    if (key == lo) key = hi + 1;
    if (key > beside_hi) break;
    const $(v_row_type) *const v = v_of(p, sequence, kv_head, key);
//| if p.v_scale == 2 then
    found = found || !(fabsf(v_token_scale(p, sequence, kv_head, key)) < infinity());
//| end
#pragma unroll 1
    for (int i = col; i < min(col + 4, DV); i++) found = found || !(fabsf($(v_element_of("v", "i"))) < infinity());
  }
  return found;
}
//| end

// Columns col to col + 3, and m and l of a row that sees keys.
__device__ __forceinline__ Sum exact_columns(const Params &p, const Sequence &sequence, int head, int query, int col) {
  const int kv_head = head / p.group, hi = last_key(sequence, query);
  const element *const q = (const element *)p.q + sequence.q() + query * p.q_ss + head * p.q_sh;
  Sum row = {-infinity(), 0.f, make_float4(0.f, 0.f, 0.f, 0.f)};
//| if l.eight and l.scaled then
  const float scaled = score_scale_of(p, sequence, head, $(l.integer and "query, " or "")kv_head);
//| elseif p.k_scale == 1 then
  const float k_scale = k_scale_of(p, sequence, kv_head);
//| end
//| indented(2, pr.begin_dropout)
//| indented(2, pr.begin_score, "head")
#pragma unroll 1
  for (int key = first_key(sequence, query); key <= hi; key++) {
//| indented(4, pr.pass_hidden, "head", "query", "key")
//| if l.low or l.integer then
    const $(k_row_type) *const k = k_of(p, sequence, kv_head, key);
    const $(v_row_type) *const v = v_of(p, sequence, kv_head, key);
//| else
    const element *const k = k_of(p, sequence, kv_head, key), *const v = v_of(p, sequence, kv_head, key);
//| end
    float s = 0.f;
#pragma unroll 4
    for (int i = 0; i < D; i++) s = fmaf(widened(q[i]), $(k_element_of("k", "i")), s);
//| if l.eight and l.scaled then
    s *= scaled;
//| elseif p.k_scale == 1 then
    s *= k_scale;
//| end
//| if p.k_scale == 2 then
    s *= k_token_scale(p, sequence, kv_head, key);
//| end
//| indented(4, pr.scoring, "s = " .. pr.score_of("s", "head", "query", "key") .. ";")
//| raise_exactly()
    row.m = top;
    row.l = fmaf(row.l, keep, e);
//| if p.v_scale == 2 then
    e *= v_token_scale(p, sequence, kv_head, key);
//| end
//| indented(4, pr.drop_pair, "e", "(int)(sequence.number() * p.hq) + head", "query", "key")
    row.o.x = fmaf(e, $(v_element_of("v", "col")), row.o.x * keep);
    if (col + 1 < DV) row.o.y = fmaf(e, $(v_element_of("v", "col + 1")), row.o.y * keep);
    if (col + 2 < DV) row.o.z = fmaf(e, $(v_element_of("v", "col + 2")), row.o.z * keep);
    if (col + 3 < DV) row.o.w = fmaf(e, $(v_element_of("v", "col + 3")), row.o.w * keep);
  }
//| if p.v_scale == 1 then
  const float v_scale = v_scale_of(p, sequence, kv_head);
  row.o = make_float4(row.o.x * v_scale, row.o.y * v_scale, row.o.z * v_scale, row.o.w * v_scale);
//| end
  if ($(pr.beyond("row.m"))) row.l = __int_as_float(0x7fffffff);
  return row;
}

// The sum of all parts of a row, or where that cannot be right the row computed again. Columns past the last are whatever they are.
__device__ __forceinline__ Sum checked(const Params &p, const Sequence &sequence, int head, int query, int col, const Sum &sum) {
  if (col >= DV) return sum;
  if (!sees_keys(sequence, query)) return {-infinity(), 0.f, make_float4(0.f, 0.f, 0.f, 0.f)};
//| local far = (c.rescale or 0) >= 3 and "is_far(sum.m, 1.f)" or "is_far(sum.m, " .. pr.unit_log2 .. ")"
//| if (c.rescale or 0) > 3 then  -- sums that are infinite, or no number, may be so for P far above 1
  if ($(far)$(pr.and_seen("sum.m")) || not_finite(sum.o) || !(sum.l < infinity())) {
//| elseif pr.has_mask then
  if ($(far)$(pr.and_seen("sum.m")) || not_finite(sum.o)) {
//| elseif pr.right then
  if ($(far) || not_finite(sum.o) && columns_reached(p, sequence, head, query, col)) {
//| else
  if ($(far)) {
//| end
    Sum row = exact_columns(p, sequence, head, query, col);
//| if (c.rescale or 0) >= 3 then
    row.m *= $(pr.unit_log2);
//| end
    return row;
  }
  return sum;
}
