//| needs "c.exp l.cuts l.most? l.one_text? l.sums?"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local relative = l.cuts == "tanh" or l.cuts == "besides" or l.cuts == "slopes"
//| local scores = (l.cuts == "tanh" or l.one_text) and "(&tops)[2]" or "(&s)[NS]"
//| local larger, quad_max = c.exp > 0 and "max_or_nan" or "fmaxf", c.exp > 0 and "quad_max_or_nan" or "quad_max"
//| if l.cuts == "tanh" then
// No exponent of the row can be as large as HIGHEST.
__device__ __forceinline__ bool stays(const RowState &row, float scale_log2) {
  return $(("%.9gf"):format(l.most):gsub("^(%-?%d+)f$", "%1.f")) * scale_log2 - row.m <= HIGHEST;
}
__device__ __forceinline__ bool all_stay(const RowState (&state)[2], const Params &p) {
  return __all_sync(~0u, stays(state[0], $(pr.unit_log2)) & stays(state[1], $(pr.unit_log2)));
}
//| end
//| if l.cuts == "tanh" then
// A block that is cut, or whose rows may move, is made in a loop of two halves, so that it is compiled for one: they change places.
constexpr int HALF = NS / 2;
__device__ __forceinline__ void other_half(float (&s)[NS]) {
#pragma unroll
  for (int i = 0; i < HALF; i++) {
    const float first = s[i];
    s[i] = s[HALF + i], s[HALF + i] = first;
  }
}
__device__ __forceinline__ void raise_tops(const float (&s)[HALF], float (&tops)[2]) {
#pragma unroll
  for (int i = 0; i < HALF; i += 2) tops[i / 2 % 2] = $(larger)(tops[i / 2 % 2], $(larger)(s[i], s[i + 1]));
}
//| end
// Of a block that is cut, or whose rows may move: m of the rows, in log2 units, and what their exponents are relative to, in products of
// `scale`$(relative and " that are relative to it already" or ""). O and sums are multiplied by keep. What a row has follows from its own
// scores alone.
__device__ __forceinline__ void cut_maxima(const float $(scores), RowState (&state)[2], float (&keep)[2], float (&shift)[2],
                                           float scale) {
#pragma unroll
  for (int h = 0; h < 2; h++) {
//| if l.cuts == "tanh" or l.one_text then
    float top = tops[h];
//| else
    float top = -infinity();
#pragma unroll
    for (int n = 0; n < NS / 4; n++) top = $(larger)(top, $(larger)(s[4 * n + 2 * h], s[4 * n + 2 * h + 1]));
//| end
    top = $(quad_max)(top)$(relative and "" or " * scale");
    const float m = state[h].m;
//| if relative then
    const float base = near_shift(m);
    float next = fmaxf(m, base + top);
    // So far from what they are relative to exponents have lost 2^-11 and more: the row goes far above, and is computed again.
    if (next > m && fabsf(top) > 16384.f) next = 2 * FAR;
    if ($(l.cuts == "tanh" and "stays(state[h], scale)" or "fabsf(m) <= STEADY")) next = m;
//| elseif l.cuts == "joins" then
    float next = fmaxf(m, top);
    if (fabsf(next) < STEADY || m == 0.f) next = 0.f;
//| else
    float next = fabsf(m) <= STEADY ? m : fmaxf(m, top);
//| end
//| if l.sums then
    // A large sum becomes less by its power of 2; 2^-127 would be 0.
    const float sum = quad_max(state[h].l);
    if (sum > HIGHEST_SUM && sum < infinity()) next = m + (float)min((__float_as_int(sum) >> 23) - 127, 120);
//| end
//| if l.one_text then
    // That is an estimate: a sum that would be lost beside it may be all that the row has, which is computed again then.
    if (m - next < -120.f && log2_approx(sum) + m - next > -120.f) next = 2 * FAR;
//| end
    keep[h] = next == m ? 1.f : exp2_approx(m - next);
    state[h].m = next;
    state[h].l *= keep[h];
    shift[h] = near_shift(next)$(relative and " - base" or "");
  }
}
