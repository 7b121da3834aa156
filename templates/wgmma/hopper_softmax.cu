//| needs "c.exp c.rescale l.begins? l.besides? l.cuts? l.early? l.interleaved l.most?"
//| needs "l.pingpong_softmax l.relative l.sums? l.tanh_by_fma?"
//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- a consumer warpgroup: 64 rows; a thread holds parts of two, g and g + 8 of its warp's sixteen ----
// Elements 2h and 2h + 1 of each four belong to row g + 8h, columns 8n + 2t and 8n + 2t + 1, where n counts the fours.

//| local larger, quad_max = c.exp > 0 and "max_or_nan" or "fmaxf", c.exp > 0 and "quad_max_or_nan" or "quad_max"
//| if l.most then
// P, and with it sums, may be as large where m stays. What is infinite then is computed again.
constexpr float HIGHEST = 96.f;
//| end
//| if l.tanh_by_fma then
// Whether the tanh of all products of the warp is a polynomial.
__device__ __forceinline__ bool all_small(const float (&s)[NS], const TanhByFma &by) {
  float top[4] = {};
#pragma unroll
  for (int i = 0; i < NS; i++) top[i % 4] = fmaxf(top[i % 4], fabsf(s[i]));
  return __all_sync(~0u, fmaxf(fmaxf(top[0], top[1]), fmaxf(top[2], top[3])) <= by.most);
}
//| if l.cuts then
// Products become exponents relative to the rows' m. Each that is small takes the polynomial here, too, so that what a row has follows from
// its own products alone. Both are there before one is chosen: a branch for each would take longer to compile.
template <int NS>
__device__ __forceinline__ void apply_exponent(float (&s)[NS], const Params &p, const ScoreTile &scored, const RowState (&state)[2],
                                               const TanhByFma &by, int row, int block) {
  const float shift[2] = {near_shift(state[0].m), near_shift(state[1].m)};
#pragma unroll
  for (int i = 0; i < NS; i++) {
    const float x = s[i], y = score_pair<false>(p, scored, scored.h, row, block * BC, 0, x);
    const float small = by.exponent(x, shift[i / 2 % 2]), other = $(pr.exponent("y", pr.unit_log2, "shift[i / 2 % 2]"));
    s[i] = fabsf(x) <= by.most ? small : other;
  }
}
//| else
// Products of a later block become exponents relative to the rows' m, and those of hidden pairs -inf. small: all_small(). Each that is
// small takes the polynomial either way, so that what a row has follows from its own products alone.
__device__ __forceinline__ void apply_exponent(float (&s)[NS], const Params &p, const Sequence &sequence, const ScoreTile &scored,
                                               const RowState (&state)[2], const TanhByFma &by, int row, int block, int t, bool small,
                                               bool whole) {
  const float shift[2] = {near_shift(state[0].m), near_shift(state[1].m)};
  if (__builtin_expect(small, 1)) {
#pragma unroll
    for (int i = 0; i < NS; i++) s[i] = by.exponent(s[i], shift[i / 2 % 2]);
  } else {
#pragma unroll
    for (int i = 0; i < NS; i++) {
      const float x = s[i], y = score_pair<false>(p, scored, scored.h, row, block * BC, 0, x);
      const float small = by.exponent(x, shift[i / 2 % 2]), other = $(pr.exponent("y", pr.unit_log2, "shift[i / 2 % 2]"));
      s[i] = fabsf(x) <= by.most ? small : other;
    }
  }
  if (!whole) apply_mask(s, p, sequence$(pr.ends_argument), row, block, t);
}
//| end
//| end
//| if l.sums then
// A row whose m is no further from 0 than STEADY keeps it until its sum is above HIGHEST_SUM. P may be as large, and in one block larger:
// where a score is 2^128 above m, which is one of such size itself, P is infinite, and its row is computed again.
constexpr float STEADY = 64.f, HIGHEST_SUM = 0x1p64f;
//| end
//| local may_move = (l.most or l.sums) and "!stays[h] && " or ""
//| local beside = l.besides and ", float beside" or ""
//| if l.relative then
// m of a row is in log2 units here: scale log2(e) times the largest score of the first block, or what took its place since.
//| end
//| if l.cuts then
//|   include "wgmma/hopper_cut.cu"
//| else
// S of a tile's first block: the rows' maxima.
__device__ __forceinline__ void first_maxima(const float (&s)[NS], RowState (&state)[2], float scale_log2) {
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float top = -infinity();
#pragma unroll
    for (int n = 0; n < NS / 4; n++) top = $(larger)(top, $(larger)(s[4 * n + 2 * h], s[4 * n + 2 * h + 1]));
    state[h].m = $(quad_max)(top)$(l.relative and " * scale_log2" or "");
  }
}

//| if l.relative then
// S of a later block: exponents of two relative to the rows' m, and m raised where one of them is above LAG. They are looked
// through as integers, three at a time: floats above 0 are ordered as their bits are, and all others are below the bits of LAG.
// Returns whether O must be multiplied by keep: uniform in the warp.
//|   if pr.slopes or l.tanh_by_fma then
// They are there already.
//|   elseif l.besides then
// beside: what all of them have besides, in log2 units.
//|   end
__device__ __forceinline__ bool next_maxima(float (&s)[NS], RowState (&state)[2], float (&keep)[2], float scale_log2$(beside)) {
  const float shift[2] = {near_shift(state[0].m), near_shift(state[1].m)};
//|   if l.besides then
  const float less[2] = {shift[0] - beside, shift[1] - beside};
//|   end
//|   if l.most then
  // No exponent of these rows can be as large as HIGHEST, so that m stays: nothing is looked for.
  const float most = $(("%.9gf"):format(l.most):gsub("^(%-?%d+)f$", "%1.f")) * scale_log2;
  const bool stays[2] = {most - state[0].m <= HIGHEST, most - state[1].m <= HIGHEST};
  if (__all_sync(~0u, stays[0] & stays[1])) {
#pragma unroll
    for (int i = 0; i < NS; i++) s[i] = $(pr.exponent("s[i]", "scale_log2", "shift[i / 2 % 2]"));
    return false;
  }
//|   end
//|   if l.sums then
//|     if not l.early then
  // Where that is so of all rows of the warp, nothing is looked for: their sums tell.
//|     end
  const bool stays[2] = {fabsf(state[0].m) <= STEADY, fabsf(state[1].m) <= STEADY};
//|     if not l.early then
  if (__all_sync(~0u, stays[0] & stays[1])) {
//|     if not pr.slopes then
#pragma unroll
    for (int i = 0; i < NS; i++) s[i] = $(pr.exponent("s[i]", "scale_log2", l.besides and "less[i / 2 % 2]" or "shift[i / 2 % 2]"));
//|     end
    return false;
  }
//|     end
//|   end
  int top[2] = {0, 0};
#pragma unroll
  for (int n = 0; n < NS / 4; n++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float &x = s[4 * n + 2 * h], &y = s[4 * n + 2 * h + 1];
//|   if not pr.slopes and not l.tanh_by_fma then
      x = $(pr.exponent("x", "scale_log2", l.besides and "less[h]" or "shift[h]"));
      y = $(pr.exponent("y", "scale_log2", l.besides and "less[h]" or "shift[h]"));
//|   end
      top[h] = max(max(top[h], __float_as_int(x)), __float_as_int(y));
    }
  const bool moved = __any_sync(~0u, max(top[0], top[1]) > __float_as_int(LAG) || is_far(state[0].m, 1.f) || is_far(state[1].m, 1.f));
  if (moved) {
    // Where the mask has hidden all keys from a row of the warp so far, all rows move: those beside it have seen few.
    const bool few = __any_sync(~0u, state[0].m == -infinity() || state[1].m == -infinity());
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float rise = -infinity();
#pragma unroll
      for (int n = 0; n < NS / 4; n++) rise = $(larger)(rise, $(larger)(s[4 * n + 2 * h], s[4 * n + 2 * h + 1]));
      rise = $(quad_max)(rise);
      // Else whether a row's m moves follows from its own scores alone. One far above stays, and one far below has nothing to keep. Where m
      // moves by so much that exponents have lost 2^-11 and more, it goes far above: that row is computed again.
      const bool none = state[h].m < -FAR && rise != -infinity();
      const bool moves = none || ($(may_move)state[h].m <= FAR && state[h].m >= -FAR && !(rise <= (few ? 0.f : LAG)));
      float m = shift[h] + rise;
      if (fabsf(rise) > 16384.f && m >= -FAR) m = 2 * FAR;
      const float step = m - shift[h];
      keep[h] = none ? 0.f : moves ? exp2_approx(-step) : 1.f;
      if (!moves) continue;
      state[h].m = m;
      state[h].l *= keep[h];
#pragma unroll
      for (int n = 0; n < NS / 4; n++) s[4 * n + 2 * h] -= step, s[4 * n + 2 * h + 1] -= step;
    }
  }
  return moved;
}
//| else
// S of a later block: the rows' maxima. Returns whether O must be multiplied by keep: uniform in the warp.
__device__ __forceinline__ bool next_maxima(const float (&s)[NS], RowState (&state)[2], float (&keep)[2], float scale_log2) {
  float top[2];
#pragma unroll
  for (int h = 0; h < 2; h++) {
    top[h] = state[h].m;
#pragma unroll
    for (int n = 0; n < NS / 4; n++) top[h] = $(larger)(top[h], $(larger)(s[4 * n + 2 * h], s[4 * n + 2 * h + 1]));
    top[h] = $(quad_max)(top[h]);
  }
  bool moved = true;
//|   if c.rescale > 0 then
//|     if c.exp > 0 then
  moved = !((top[0] - state[0].m) * scale_log2 <= LAG && (top[1] - state[1].m) * scale_log2 <= LAG);  // NaN, too
//|     else
  moved = (top[0] - state[0].m) * scale_log2 > LAG || (top[1] - state[1].m) * scale_log2 > LAG;
//|     end
  moved = __any_sync(~0u, moved);
  if (moved) {
    // Where the mask has hidden all keys from a row of the warp so far, all rows move: those beside it have seen few. Else whether a row's
    // m moves follows from its own scores alone.
    const bool few = __any_sync(~0u, state[0].m == -infinity() || state[1].m == -infinity());
//|   end
#pragma unroll
    for (int h = 0; h < 2; h++) {
//|   if c.rescale > 0 then
      if (!few && (top[h] - state[h].m) * scale_log2 <= LAG) top[h] = state[h].m;
//|   end
      keep[h] = raise(state[h], top[h], scale_log2);
    }
//|   if c.rescale > 0 then
  }
//|   end
  return moved;
}
//| end

//| end
// The four scores at 4n become probabilities and join the sums. RELATIVE: they are exponents already.
template <bool RELATIVE>
__device__ __forceinline__ void exponentials(float (&s)[NS], int n, RowState (&state)[2], const float (&shift)[2], float scale_log2) {
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float &x = s[4 * n + 2 * h], &y = s[4 * n + 2 * h + 1];
    if constexpr (!RELATIVE) x = $(pr.exponent("x", "scale_log2", "shift[h]")), y = $(pr.exponent("y", "scale_log2", "shift[h]"));
    x = exp2_approx(x);
//| if c.exp > 0 then
    y = (2 * n + h) % (EXP_SHARE / 2) == 0 ? exp2_by_fma(y) : exp2_approx(y);
//| else
    y = exp2_approx(y);
//| end
    state[h].l += x + y;
  }
}
//| -- What exponentials need: in a first block, and in a later one.
//| local shift = l.relative and "near_shift(state[%d].m)" or "shift_of(state[%d].m, scale_log2)"
//| local first_shift = "{" .. shift:format(0) .. ", " .. shift:format(1) .. "}"
//| local next_shift = l.relative and "{0.f, 0.f}" or first_shift
//| if l.interleaved then
// All of S to P, and the rescaling of O in between: the multiplications fill the gaps that the special-function unit leaves.
//|   if l.begins then
// So do reads of what the next block's scores begin with, from `next` on: always, since products that are added to registers of two ways
// would be waited for one by one.
//|   end
//|   local next, next_type = l.begins and ", next" or "", l.begins and ", const Beginning &next" or ""
template <bool RELATIVE, bool RESCALE>
__device__ __forceinline__ void exponentials(float (&s)[NS], u32 (&a)[NS / 2], float (&o)[NO], RowState (&state)[2], const float (&keep)[2],
                                             const float (&shift)[2], float scale_log2$(next_type)) {
#pragma unroll
  for (int n = 0; n < NS / 4; n++) {
    exponentials<RELATIVE>(s, n, state, shift, scale_log2);
    a[2 * n] = pack2(s[4 * n], s[4 * n + 1]);
    a[2 * n + 1] = pack2(s[4 * n + 2], s[4 * n + 3]);
//|   if l.begins then
    begin_scores(s, n, next);
//|   end
    if constexpr (RESCALE)
#pragma unroll
      for (int i = 0; i < (NO + NS / 4 - 1) / (NS / 4); i++) {  // a constant count: else o may end up in local memory
        const int at = n * NO / (NS / 4) + i;
        if (at < (n + 1) * NO / (NS / 4)) o[at] *= keep[at / 2 % 2];
      }
  }
}
//|   if l.sums and not l.cuts then
// After the exponentials of a block: m of a row whose sum is large is raised by the sum's power of 2, and P, O and the sum are made less,
// of each row by its own sum alone.
__device__ __forceinline__ void lower_sums(u32 (&a)[NS / 2], float (&o)[NO], RowState (&state)[2]) {
  if (__builtin_expect(!__any_sync(~0u, fmaxf(state[0].l, state[1].l) > HIGHEST_SUM), 1)) return;
  float keep[2];
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const float sum = quad_max(state[h].l), m = state[h].m;
    if (sum > HIGHEST_SUM && sum < infinity()) state[h].m = m + (float)min((__float_as_int(sum) >> 23) - 127, 120);  // 2^-127 would be 0
    keep[h] = state[h].m == m ? 1.f : exp2_approx(m - state[h].m);
    state[h].l *= keep[h];
  }
#pragma unroll
  for (int i = 0; i < NO; i++) o[i] *= keep[i / 2 % 2];
#pragma unroll
  for (int i = 0; i < NS / 2; i++)
    a[i] = pack2(__uint_as_float(a[i] << 16) * keep[i % 2], __uint_as_float(a[i] & 0xffff0000u) * keep[i % 2]);
}
//|   end
//|   if l.early then include "wgmma/hopper_early.cu" end
//|   if not l.cuts then
//| local wg = l.pingpong_softmax and ", int wg" or ""
// P of a tile's first block.
__device__ __forceinline__ void first_probabilities(float (&s)[NS], u32 (&a)[NS / 2], float (&o)[NO], RowState (&state)[2],
                                                    float (&keep)[2], const Params &p$(wg)$(next_type)) {
  first_maxima(s, state, $(pr.unit_log2));
  const float scale_log2 = $(pr.unit_log2), shift[2] = $(first_shift);
//|   if l.pingpong_softmax then
  pingpong_wait(wg);
//|   end
  exponentials<false, false>(s, a, o, state, keep, shift, scale_log2$(next));
//|   if l.pingpong_softmax then
  pingpong_pass(wg);
//|   end
}
// P of a later block, after next_maxima() and the P V before.
__device__ __forceinline__ void next_probabilities(float (&s)[NS], u32 (&a)[NS / 2], float (&o)[NO], RowState (&state)[2],
                                                   $(l.early and "" or "const ")float (&keep)[2], bool moved,
                                                   const Params &p$(wg)$(next_type)) {
  const float scale_log2 = $(pr.unit_log2), shift[2] = $(next_shift);
//|   if l.pingpong_softmax then
  pingpong_wait(wg);
//|   end
//|   if l.early then  -- one text for rows that have moved, and for others
  if (!moved) keep[0] = keep[1] = 1.f;
  exponentials<true, true>(s, a, o, state, keep, shift, scale_log2$(next));
//|   else
  if (moved)
    exponentials<$(l.relative), true>(s, a, o, state, keep, shift, scale_log2$(next));
  else
    exponentials<$(l.relative), false>(s, a, o, state, keep, shift, scale_log2$(next));
//|   end
//|   if l.sums then
  lower_sums(a, o, state);
//|   end
//|   if l.pingpong_softmax then
  pingpong_pass(wg);
//|   end
}
//|   end
//| else
// Bits that depend on all exponentials.
__device__ __forceinline__ u32 sums(const RowState (&state)[2]) { return __float_as_int(state[0].l) ^ __float_as_int(state[1].l); }
__device__ __forceinline__ void first_softmax(float (&s)[NS], RowState (&state)[2], float scale_log2) {
  first_maxima(s, state, scale_log2);
  const float shift[2] = $(first_shift);
#pragma unroll
  for (int n = 0; n < NS / 4; n++) exponentials<false>(s, n, state, shift, scale_log2);
}
__device__ __forceinline__ bool next_softmax(float (&s)[NS], RowState (&state)[2], float (&keep)[2], float scale_log2$(beside)) {
  const bool moved = next_maxima(s, state, keep, scale_log2$(l.besides and ", beside" or ""));
  const float shift[2] = $(next_shift);
#pragma unroll
  for (int n = 0; n < NS / 4; n++) exponentials<$(l.relative)>(s, n, state, shift, scale_log2);
  return moved;
}

// P as the first operand of the second product: a thread's own elements, in order.
__device__ __forceinline__ void to_operand(u32 (&a)[NS / 2], const float (&s)[NS]) {
#pragma unroll
  for (int i = 0; i < NS / 2; i++) a[i] = pack2(s[2 * i], s[2 * i + 1]);
}

__device__ __forceinline__ void rescale(float (&o)[NO], const float (&keep)[2]) {
#pragma unroll
  for (int i = 0; i < NO; i++) o[i] *= keep[i / 2 % 2];
}

// P of a tile's first block.
__device__ __forceinline__ void first_probabilities(float (&s)[NS], u32 (&a)[NS / 2], float (&)[NO], RowState (&state)[2],
                                                    float (&)[2], const Params &p) {
  first_softmax(s, state, $(pr.unit_log2));
  to_operand(a, s);
}
// P of a later block, after next_softmax() and the P V before.
__device__ __forceinline__ void next_probabilities(float (&s)[NS], u32 (&a)[NS / 2], float (&o)[NO], RowState (&)[2],
                                                   const float (&keep)[2], bool moved, const Params &) {
  if (moved) rescale(o, keep);
  to_operand(a, s);
}
//| end
