//| needs "c.exp"
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
