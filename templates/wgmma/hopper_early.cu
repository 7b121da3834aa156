//| needs "c.bc l.cuts?"
//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- a whole block of rows that all stay: no maxima, half of its exponentials while the P V before is under way ----
//| -- What the blocks of a way need for that besides, and how the four at 4n become probabilities.
//| local beside = l.cuts == "besides" and " - beside" or ""
//| local with, four = "float scale_log2", "exponentials<false>(s, n, state, shift, scale_log2)"
//| if l.cuts == "joins" then
//|   with, four = "float scale_log2, u32 from", "joined_exponentials(s, n, state, scale_log2, from, above)"
//| elseif l.cuts == "besides" then
//|   with = "float scale_log2, float beside"
//| elseif l.cuts == "slopes" then
//|   four = "exponentials<true>(s, n, state, shift, scale_log2)"
//| elseif l.cuts == "tanh" then
//|   with, four = "const TanhByFma &by", "exponentials(s, n, state, shift, by)"
//| end
//| local shift = l.cuts == "tanh" and "near_shift(state[%d].m)" or "state[%d].m" .. beside
//| if l.cuts == "joins" or l.cuts == "besides" then include "pairs/joined.cu" end
//| if l.cuts == "tanh" then
__device__ __forceinline__ void exponentials(float (&s)[NS], int n, RowState (&state)[2], const float (&shift)[2], const TanhByFma &by) {
#pragma unroll
  for (int i = 4 * n; i < 4 * n + 4; i++) s[i] = by.exponent(s[i], shift[i / 2 % 2]);
  exponentials<true>(s, n, state, shift, 0.f);
}
//| else
// Whether a whole block needs no maxima: rows that stay have a maximum near 0.
//|   if l.cuts then
// And no sum that has to be made less, which is asked here and not where it grew.
//|   end
__device__ __forceinline__ bool all_stay(const RowState (&state)[2]$(l.cuts == "besides" and ", float2 far" or "")) {
//|   if l.cuts then
  const bool few = fmaxf(state[0].l, state[1].l) <= HIGHEST_SUM;
//|   end
//|   local near = l.cuts == "joins" and "(state[%d].m == 0.f)" or "(fabsf(state[%d].m) <= STEADY)"
//|   local one = l.cuts == "besides" and "(__float_as_int(far.x) != 0) & " or ""
  return __all_sync(~0u, $(one)$(near:format(0)) & $(near:format(1))$(l.cuts and " & few" or ""));
}
//| end
__device__ __forceinline__ void pack_four(const float (&s)[NS], u32 (&a)[NS / 2], int n) {
  a[2 * n] = pack2(s[4 * n], s[4 * n + 1]);
  a[2 * n + 1] = pack2(s[4 * n + 2], s[4 * n + 3]);
}
constexpr int EARLY = NS / $(l.cuts == "joins" and c.bc >= 128 and 16 or 8);  // fours of exponentials
__device__ __forceinline__ void early_exponentials(float (&s)[NS], RowState (&state)[2], $(with)) {
//| if l.cuts == "joins" then
  float2 above = load_shared_float2(from);
//| else
  const float shift[2] = {$(shift:format(0)), $(shift:format(1))};
//| end
#pragma unroll
  for (int n = 0; n < EARLY; n++) $(four);
}
__device__ __forceinline__ void other_exponentials(float (&s)[NS], u32 (&a)[NS / 2], RowState (&state)[2], $(with)) {
//| if l.cuts == "joins" then
  float2 above = load_shared_float2(from + EARLY * 32);
//| else
  const float shift[2] = {$(shift:format(0)), $(shift:format(1))};
//| end
#pragma unroll
  for (int n = EARLY; n < NS / 4; n++) {
    $(four);
    pack_four(s, a, n);
#pragma unroll
    for (int i = 0; i < (EARLY + NS / 4 - EARLY - 1) / (NS / 4 - EARLY); i++) {
      const int at = (n - EARLY) * EARLY / (NS / 4 - EARLY) + i;
      if (at < (n - EARLY + 1) * EARLY / (NS / 4 - EARLY)) pack_four(s, a, at);
    }
  }
}
