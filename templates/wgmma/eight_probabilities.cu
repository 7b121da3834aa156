//| needs "c.exp c.schedule l.first_keys l.ones l.raised l.row_scaled l.turned l.wide"
//| -- eight_probabilities: P of a block's scores, and P as the first operand of the second product.
//| local np = l.wide and "NS / 2" or "NS / 4" -- registers of P
//| local exps, fma = c.schedule == 2, c.exp > 0 -- exponentials in turns; some of them without the special-function unit
//| local range, of_first, of_last, pairs_first, pairs_last = "", "0", "NS / 4", "0", "NS / 2" -- of which keys
//| if l.first_keys then
//|   range, of_first, of_last, pairs_first, pairs_last = "template <int FROM, int TO>\n", "FROM / 8", "TO / 8", "FROM / 4", "TO / 4"
//| end
//| local larger, quad_max = fma and "max_or_nan" or "fmaxf", fma and "quad_max_or_nan" or "quad_max"
//| local units, of_row = "float scale_log2", "" -- what makes exponents of products: of all rows, or of each
//| if l.row_scaled then units, of_row = "const float (&scale_log2)[2]", "[h]" end
//| local adds = l.ones and not fma and ", bool adds" or fma and ", u32 one" or ""
// ---- P ----
// P is 2^$(l.raised) times as large, so that e4m3 holds of a row's largest 2^-$(l.raised + 9) and more; so are l and O until the end.
constexpr float RAISED = $(l.raised);
// S of a block: the rows' maxima, and what O and l are multiplied by.
__device__ __forceinline__ void maxima(const float (&s)[NS], RowState (&state)[2], float (&keep)[2], $(units)) {
  float top[2] = {state[0].m, state[1].m};
  if (__any_sync(~0u, (__float_as_int(top[0]) | __float_as_int(top[1])) < 0)) {
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int n = 0; n < NS / 4; n++) top[h] = $(larger)(top[h], $(larger)(s[4 * n + 2 * h], s[4 * n + 2 * h + 1]));
  } else {
    // From a maximum of 0 or more on the larger of two numbers is that of their bits, and one instruction compares three.
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int most = __float_as_int(top[h]);
#pragma unroll
      for (int n = 0; n < NS / 4; n++) most = max(max(most, __float_as_int(s[4 * n + 2 * h])), __float_as_int(s[4 * n + 2 * h + 1]));
      top[h] = __int_as_float(most);
    }
  }
#pragma unroll
  for (int h = 0; h < 2; h++) keep[h] = raise(state[h], $(quad_max)(top[h]), scale_log2$(of_row));
}
//| if fma then
// 2^x without the special-function unit, for e4m3: x + 15 as a number of fixed point, 5 bits before the point and 10 behind it, has the
// bits of 2^n (1 + f) in fp16, where n + f = x. Times a quadric of 1 + f, which is 2^f / (1 + f) to 0.0035, that is 2^x; e4m3 rounds to
// 0.0625.
constexpr float EXP_OFFSET = 15.00048828125f;  // and a half of the last bit, as bits are cut off
// Those bits are the second and the third byte: 2 + 2 (x + 15) / 32, from 0 on. NaN becomes 0: a row that has seen one has m = NaN.
__device__ __forceinline__ float exp2_bits(float score, float scale_log2, float offset) {
  float y;
  asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(y) : "f"(score), "f"(scale_log2), "f"(offset));
  return fmaf(y, 2.f, 2.f);
}
// Of two, in fp16.
__device__ __forceinline__ u32 exp2_halves(float x, float y, u32 one) {
  const u32 bits = __byte_perm(__float_as_uint(x), __float_as_uint(y), 0x6521);
  const u32 fraction = (bits & 0x03ff03ff) | one;
  u32 r;
  asm("{\n.reg .b32 q;\n"
      "fma.rn.f16x2 q, %2, %3, %4;\n"
      "fma.rn.f16x2 q, q, %2, %5;\n"
      "mul.rn.f16x2 %0, q, %1;\n}"
      : "=r"(r) : "r"(bits), "r"(fraction), "r"(0x337b337b), "r"(0xb98eb98e), "r"(0x3dd43dd4));
  return r;
}
// Whether 2^x of eight keys of the `n`th is found by multiply-adds.
__device__ constexpr bool by_fma(int n) { return n % EXP_SHARE == EXP_SHARE - 1; }
// The first bits of 2^x in the place of scores.
__device__ __forceinline__ void bits_by_fma(float &x, float &y, float shift, float scale_log2, float &sum, bool adds) {
  if (adds) sum += probability(x, scale_log2, shift) + probability(y, scale_log2, shift);
  const float scale = scale_log2 * (1.f / 32), offset = (EXP_OFFSET - shift) * (1.f / 32);
  x = exp2_bits(x, scale, offset), y = exp2_bits(y, scale, offset);
}
//| if exps then
// P of the scores in their place, where the special-function unit finds it.
//| else
// P of the scores in their place; where it is found by multiply-adds its first bits.
//| end
$(range)__device__ __forceinline__ void exponentials(float (&s)[NS], const float (&shift)[2], $(units), float (&sum)[2], bool adds) {
#pragma unroll
  for (int n = $(of_first); n < $(of_last); n++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float &x = s[4 * n + 2 * h], &y = s[4 * n + 2 * h + 1];
      if (by_fma(n)) {
//| if not exps then
        bits_by_fma(x, y, shift[h], scale_log2$(of_row), sum[h], adds);
//| end
      } else {
        x = probability(x, scale_log2$(of_row), shift[h]), y = probability(y, scale_log2$(of_row), shift[h]);
        if (adds) sum[h] += x + y;
      }
    }
}
//| if exps then
// The first bits of P of the others, out of turn.
$(range)__device__ __forceinline__ void other_exponentials(float (&s)[NS], const float (&shift)[2], $(units), float (&sum)[2], bool adds) {
#pragma unroll
  for (int n = $(of_first); n < $(of_last); n++)
    if (by_fma(n))
#pragma unroll
      for (int h = 0; h < 2; h++) bits_by_fma(s[4 * n + 2 * h], s[4 * n + 2 * h + 1], shift[h], scale_log2$(of_row), sum[h], adds);
}
//| end
//| else
// P of the scores in their place.
$(range)__device__ __forceinline__ void exponentials(float (&s)[NS], const float (&shift)[2], $(units)) {
#pragma unroll
  for (int n = $(of_first); n < $(of_last); n++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float &x = s[4 * n + 2 * h], &y = s[4 * n + 2 * h + 1];
      x = probability(x, scale_log2$(of_row), shift[h]), y = probability(y, scale_log2$(of_row), shift[h]);
    }
}
//| end
// P as the first operand of the second product, and what it adds to l, a sum of P before it is rounded.
//| if l.wide then
// A thread has its own elements, of 16 bits.
__device__ __forceinline__ void to_operand(u32 (&a)[$(np)], const float (&s)[NS], RowState (&state)[2]) {
#pragma unroll
  for (int n = 0; n < NS / 2; n++) {
    state[n % 2].l += s[2 * n] + s[2 * n + 1];
    a[n] = to_values(s[2 * n], s[2 * n + 1]);
  }
}
//| else
//| if l.turned then
// A thread has its own elements, of the keys that V transposed has there.
//| else
// Keys are in their order: of 16 thread t of four has 2t, 2t + 1, 2t + 8 and 2t + 9, and is to have 4t to 4t + 3, which are halves of two
// others.
//| end
$(range)__device__ __forceinline__ void to_operand(u32 (&a)[$(np)], const float (&s)[NS], RowState (&state)[2]$(adds)) {
//| if l.ones and not fma then
  if (adds)
#pragma unroll
    for (int n = $(pairs_first); n < $(pairs_last); n++) state[n % 2].l += s[2 * n] + s[2 * n + 1];
//| end
//| if not l.turned then
  const int lane = threadIdx.x % 32, from = lane / 4 * 4 + lane % 2 * 2;
  const u32 halves = lane % 4 < 2 ? 0x5410 : 0x7632;
//| end
#pragma unroll
  for (int n = $(of_first); n < $(of_last); n++) {
    const int i = n / 2, h = n % 2;
//| if not l.ones then
    state[h].l += s[8 * i + 2 * h] + s[8 * i + 2 * h + 1];
    state[h].l += s[8 * i + 4 + 2 * h] + s[8 * i + 5 + 2 * h];
//| end
//| if fma then
    const float p0 = s[8 * i + 2 * h], p1 = s[8 * i + 2 * h + 1], p2 = s[8 * i + 4 + 2 * h], p3 = s[8 * i + 5 + 2 * h];
    const u32 x = by_fma(2 * i) ? to_e4m3(exp2_halves(p0, p1, one), exp2_halves(p2, p3, one))
                  : by_fma(2 * i + 1) ? to_e4m3(p0, p1, exp2_halves(p2, p3, one)) : to_e4m3(p0, p1, p2, p3);
//| else
    const u32 x = to_e4m3(s[8 * i + 2 * h], s[8 * i + 2 * h + 1], s[8 * i + 4 + 2 * h], s[8 * i + 5 + 2 * h]);
//| end
//| if l.turned then
    a[n] = x;
//| else
    a[n] = __byte_perm(__shfl_sync(~0u, x, from), __shfl_sync(~0u, x, from + 1), halves);
//| end
  }
}
//| end
