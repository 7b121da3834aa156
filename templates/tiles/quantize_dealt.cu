//| -- Blocks of 32 elements of which two lanes have two pieces each, half a block apart. dealt_quantizer(f) prints what a format needs that
//| -- is a scale and one number a code. undone_by() and what is above it: of quantize.cu.
// Eight bytes of codes to a block that begins, as it is the first or the second of two, two bytes before whole words or with one.
__device__ __forceinline__ void store_eight(unsigned char *to, u32 low, u32 high, bool second) {
  *(u32 *)(to + (second ? 4 : 2)) = __byte_perm(low, high, second ? 0x7654 : 0x5432);
  *(u16 *)to = (u16)low;
  *(u16 *)(to + (second ? 2 : 6)) = (u16)__byte_perm(low, high, second ? 0x4432 : 0x4476);
}
//| function dealt_quantizer(f)
//|   local signed = f.kind == "signed"
//|   local by_power = f.most & f.most - 1 == 0
//|   local over = signed and f.most or -f.most
// The codes of a block's pieces x and y, y after x.
__device__ __forceinline__ void quantize_$(f.name)(Codes &to, const float (&x)[VEC], const float (&y)[VEC], int lane) {
//|   if signed then
  // The largest |x|; NaN where there is one.
  float most = 0.f;
#pragma unroll
  for (int i = 0; i < VEC; i++) most = max_with_nan(max_with_nan(most, fabsf(x[i])), fabsf(y[i]));
  most = max_with_nan(most, __shfl_xor_sync(~0u, most, 1));
  const float far = most;
//|   else
  // What is farthest from 0 of numbers above it, and of those below it, as integers of either kind compare them; NaN is farther. Where all
  // are of one side, both are the same number.
  int top_bits = __float_as_int(x[0]);
  u32 bottom_bits = (u32)top_bits;
#pragma unroll
  for (int i = 0; i < VEC; i++) {
    top_bits = max(max(top_bits, __float_as_int(x[i])), __float_as_int(y[i]));
    bottom_bits = max(max(bottom_bits, __float_as_uint(x[i])), __float_as_uint(y[i]));
  }
  top_bits = max(top_bits, __shfl_xor_sync(~0u, top_bits, 1));
  bottom_bits = max(bottom_bits, __shfl_xor_sync(~0u, bottom_bits, 1));
  const float top = __int_as_float(top_bits), bottom = __uint_as_float(bottom_bits);
  const float far = max_with_nan(fabsf(top), fabsf(bottom));
  float most = fabsf(bottom) > fabsf(top) ? bottom : top;
  if (__any_sync(~0u, top == -bottom)) {  // the first of them counts
    float of_x = 0.f, of_y = 0.f;
#pragma unroll
    for (int i = 0; i < VEC; i++) {
      if (fabsf(x[i]) > fabsf(of_x)) of_x = x[i];
      if (fabsf(y[i]) > fabsf(of_y)) of_y = y[i];
    }
    const float other_x = __shfl_xor_sync(~0u, of_x, 1), other_y = __shfl_xor_sync(~0u, of_y, 1);
    const bool later = lane & 1;
    const float in_order[4] = {later ? other_x : of_x, later ? of_x : other_x, later ? other_y : of_y, later ? of_y : other_y};
    most = in_order[0];
#pragma unroll
    for (int i = 1; i < 4; i++)
      if (fabsf(in_order[i]) > fabsf(most)) most = in_order[i];
  }
//|   end
  // Codes by what undoes the scale.
  const auto codes_of = [&](float by, bool clamped) {
    int number[2][VEC];
#pragma unroll
    for (int i = 0; i < 2 * VEC; i++) {
      float z = __fmul_rn(i < VEC ? x[i % VEC] : y[i % VEC], by);
      if (clamped) z = fminf(fmaxf(z, -$(f.most).f), $(f.most).f);
      number[i / VEC][i % VEC] = number_of_$(f.name)(z);
    }
//|   if f.halves then
    // Elements half a block apart share a byte. Numbers of 16 become 15.
    u32 low[CODE_WORDS], high[CODE_WORDS];
    last_bytes(low, number[0]);
    last_bytes(high, number[1]);
#pragma unroll
    for (int i = 0; i < CODE_WORDS; i++)
      to.word[0][i] = low[i] + high[i] * 16 - ((low[i] & 0x10101010) >> 4) - (high[i] & 0x10101010);
//|   else
    last_bytes(to.word[0], number[0]);
    last_bytes(to.word[1], number[1]);
//|   end
  };
  const auto as_half = [](float d) {
    u16 half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(d));
    return half;
  };
  if (__builtin_expect(far >= 0x1p-100f && far <= 0x1p18f, true)) {
    // No step of the quotients passes what normal numbers hold, nor does d what fp16 holds.
//|   if by_power then
    const float d = __fmul_rn(most, $(f32(1 / over)));
//|   else
    const float q = __fmul_rn(most, $(f32(1 / over)));
    const float d = __fmaf_rn(__fmaf_rn(-q, $(over).f, most), $(f32(1 / over)), q);
//|   end
    codes_of(usual_reciprocal(d), false);
    to.scale = as_half(d);
  } else {
    const bool nan = far != far;
//|   local d = by_power and ("__fmul_rn(most, %s)"):format(f32(1 / over)) or ("__fdiv_rn(most, %d.f)"):format(over)
    const Undone undone = undone_by($(d), nan);
    codes_of(undone.by, undone.clamped);
    to.scale = nan ? 0x7fff : as_half(undone.d);
//|   local zeros = signed and "0" or ("0x%08x"):format(f.zero * 0x11111111)
    if (undone.by == 0.f)
#pragma unroll
      for (int i = 0; i < 2 * CODE_WORDS; i++) to.word[i / CODE_WORDS][i % CODE_WORDS] = $(zeros);
  }
}
// To where the codes of the first piece lie.
__device__ __forceinline__ void store_$(f.name)(unsigned char *to, bool has_scale, bool second, const Codes &from) {
  if (has_scale) *(u16 *)(to - 2) = (u16)from.scale;
  store_eight(to, from.word[0][0], from.word[0][1], second);
//|   if not f.halves then
  store_eight(to + 16, from.word[1][0], from.word[1][1], second);
//|   end
}
//| end
