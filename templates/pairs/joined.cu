//| needs "c.exp l.cuts"
//| if l.cuts == "joins" then
// The four scores at 4n of rows whose m is 0, with what the program adds in the place of a shift. above: of the second row, which is what
// the first has of the next four. from: where that lies.
__device__ __forceinline__ void joined_exponentials(float (&s)[NS], int n, RowState (&state)[2], float scale_log2, u32 from,
                                                    float2 &above) {
  const float2 here = load_shared_float2(from + n * 32 + 32);
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float &x = s[4 * n + 2 * h], &y = s[4 * n + 2 * h + 1];
    x = exp2_approx(fmaf(x, scale_log2, h == 0 ? here.x : above.x));
    y = fmaf(y, scale_log2, h == 0 ? here.y : above.y);
//| if c.exp > 0 then
    y = (2 * n + h) % (EXP_SHARE / 2) == 0 ? exp2_by_fma(y) : exp2_approx(y);
//| else
    y = exp2_approx(y);
//| end
    state[h].l += x + y;
  }
  above = here;
}
//| end
//| local less = l.cuts == "besides" and {" - shift[0]", " - shift[1]"} or {"", ""}
// The same exponents of a block that is cut, or whose rows may move.
//| local given, next = "float scale_log2, u32 from", "from + n * 32 + 32"
//| if l.cuts == "besides" then
// They are relative to the rows' m. far: whether all pairs have one number; far_at: where that lies, twice.
//|   given = "const RowState (&state)[2], float scale_log2, float2 far, u32 far_at, u32 from"
//|   next = "from += step"
//| end
__device__ __forceinline__ void join_scores(float (&s)[NS], $(given)) {
//| if l.cuts == "besides" then
  const float shift[2] = {near_shift(state[0].m), near_shift(state[1].m)};
  // Where all pairs have one number it is read in each one's place.
  const bool one = __any_sync(~0u, __float_as_int(far.x) != 0);
  const u32 step = one ? 0 : 32;
  if (one) from = far_at;
//| end
  float2 above = load_shared_float2(from);
#pragma unroll
  for (int n = 0; n < NS / 4; n++) {
    const float2 here = load_shared_float2($(next));
    s[4 * n] = fmaf(s[4 * n], scale_log2, here.x$(less[1]));
    s[4 * n + 1] = fmaf(s[4 * n + 1], scale_log2, here.y$(less[1]));
    s[4 * n + 2] = fmaf(s[4 * n + 2], scale_log2, above.x$(less[2]));
    s[4 * n + 3] = fmaf(s[4 * n + 3], scale_log2, above.y$(less[2]));
    above = here;
  }
}
