//| -- Blocks of 32 elements of which two lanes have two pieces each, half a block apart. dealt_quantizer(f) prints what a format needs that
//| -- is a scale and one number a code. undone_by() and what is above it: of quantize.cu.
// Eight bytes of codes to a block that begins, as it is the first or the second of two, two bytes before whole words or with one.
__device__ __forceinline__ void store_eight(unsigned char *to, u32 low, u32 high, bool second) {
  *(u32 *)(to + (second ? 4 : 2)) = __byte_perm(low, high, second ? 0x7654 : 0x5432);
  *(u16 *)to = (u16)low;
  *(u16 *)(to + (second ? 2 : 6)) = (u16)__byte_perm(low, high, second ? 0x4432 : 0x4476);
}
//| -- Rows of 16 bits that stay as they were loaded leave the last bits of fp32 free.
//| local loaded = p.bytes == 2 and not p.has_hadamard_k and not p.has_hadamard_v
//| function dealt_quantizer(f)
//|   local signed = f.kind == "signed"
//|   local by_power = f.most & f.most - 1 == 0
//|   local over = signed and f.most or -f.most
//|   if not signed then
// Of a block's pieces x and y, y after x, that number of both lanes which is farthest from 0, the first of such; 0 where all are 0 or NaN.
__device__ __forceinline__ float first_farthest(const float (&x)[VEC], const float (&y)[VEC], int lane) {
  float of_x = 0.f, of_y = 0.f;
#pragma unroll
  for (int i = 0; i < VEC; i++) {
    if (fabsf(x[i]) > fabsf(of_x)) of_x = x[i];
    if (fabsf(y[i]) > fabsf(of_y)) of_y = y[i];
  }
  const u32 both = 3u << (threadIdx.x % 32 & ~1u);
  const float other_x = __shfl_xor_sync(both, of_x, 1), other_y = __shfl_xor_sync(both, of_y, 1);
  const bool later = lane & 1;
  const float in_order[4] = {later ? other_x : of_x, later ? of_x : other_x, later ? other_y : of_y, later ? of_y : other_y};
  float most = in_order[0];
#pragma unroll
  for (int i = 1; i < 4; i++)
    if (fabsf(in_order[i]) > fabsf(most)) most = in_order[i];
  return most;
}
//|   end
// The codes of a row's blocks, each of two pieces of a lane. `turned`: numbers are not those that were loaded.
__device__ __forceinline__ void quantize_$(f.name)(Codes (&to)[SHARE / 2], const float (&x)[SHARE][VEC], bool turned, int lane) {
  constexpr int BLOCKS = SHARE / 2;
  // Of each block the number that the scale follows, and how far from 0 it is, NaN where there is one. What is done for one block waits for
  // itself at each step: all are done side by side, and what is rare is asked for once.
  float most[BLOCKS], far[BLOCKS];
  bool usual = true;
//|   if signed then
#pragma unroll
  for (int b = 0; b < BLOCKS; b++) {
    most[b] = 0.f;
#pragma unroll
    for (int i = 0; i < VEC; i++) most[b] = max_with_nan(max_with_nan(most[b], fabsf(x[2 * b][i])), fabsf(x[2 * b + 1][i]));
  }
#pragma unroll
  for (int b = 0; b < BLOCKS; b++) far[b] = most[b] = max_with_nan(most[b], __shfl_xor_sync(~0u, most[b], 1));
//|   else
  // What is farthest from 0 of numbers above it, and of those below it, as integers of either kind compare them; NaN is farther. Where all
  // are of one side, both are the same number.
  int top_bits[BLOCKS];
  u32 bottom_bits[BLOCKS];
  const auto ends_of = [&](const auto &key) {
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) {
      top_bits[b] = __float_as_int(key(b, 0));
      bottom_bits[b] = (u32)top_bits[b];
#pragma unroll
      for (int i = 1; i < 2 * VEC; i++) {
        top_bits[b] = max(top_bits[b], __float_as_int(key(b, i)));
        bottom_bits[b] = max(bottom_bits[b], __float_as_uint(key(b, i)));
      }
    }
  };
//|     if loaded then
  if (turned) {
    ends_of([&](int b, int i) { return x[2 * b + i % 2][i / 2]; });
  } else {
    // As they were loaded, numbers leave bits free: of two that are as far from 0 the first is made a bit larger, by so many times four
    // units in the last place as there are elements after it, and eight. The lane whose elements come later takes eight times four off.
    ends_of([&](int b, int i) { return __fmul_rn(x[2 * b + i % 2][i / 2], 1.f + (39 - i % 2 * 16 - i / 2) * 0x4p-23f); });
    const float step = lane & 1 ? 1.f - 0x20p-23f : 1.f;
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) {
      top_bits[b] = __float_as_int(__fmul_rn(__int_as_float(top_bits[b]), step));
      bottom_bits[b] = __float_as_uint(__fmul_rn(__uint_as_float(bottom_bits[b]), step));
    }
  }
//|     else
  ends_of([&](int b, int i) { return x[2 * b + i % 2][i / 2]; });
//|     end
#pragma unroll
  for (int b = 0; b < BLOCKS; b++) {
    top_bits[b] = max(top_bits[b], __shfl_xor_sync(~0u, top_bits[b], 1));
    bottom_bits[b] = max(bottom_bits[b], __shfl_xor_sync(~0u, bottom_bits[b], 1));
    const float top = __int_as_float(top_bits[b]), bottom = __uint_as_float(bottom_bits[b]);
    far[b] = max_with_nan(fabsf(top), fabsf(bottom));
    most[b] = fabsf(bottom) > fabsf(top) ? bottom : top;
//|     if loaded then
    if (!turned) most[b] = __uint_as_float(__float_as_uint(most[b]) & $(p.dtype == "bf16" and "0xffff0000" or "0xffffe000"));
//|     end
    usual = usual && top != -bottom;
  }
//|   end
  // No step of the quotients passes what normal numbers hold, nor does d what fp16 holds.
#pragma unroll
  for (int b = 0; b < BLOCKS; b++) usual = usual && far[b] >= 0x1p-100f && far[b] <= 0x1p18f;
  // Codes by what undoes the scale.
  const auto codes_of = [&](int b, float by, bool clamped) {
    int number[2][VEC];
#pragma unroll
    for (int i = 0; i < 2 * VEC; i++) {
      float z = __fmul_rn(x[2 * b + i / VEC][i % VEC], by);
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
      to[b].word[0][i] = low[i] + high[i] * 16 - ((low[i] & 0x10101010) >> 4) - (high[i] & 0x10101010);
//|   else
    last_bytes(to[b].word[0], number[0]);
    last_bytes(to[b].word[1], number[1]);
//|   end
  };
  const auto as_half = [](float d) {
    u16 half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(d));
    return half;
  };
  if (__builtin_expect(usual, true)) {
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) {
//|   if by_power then
      const float d = __fmul_rn(most[b], $(f32(1 / over)));
//|   else
      const float q = __fmul_rn(most[b], $(f32(1 / over)));
      const float d = __fmaf_rn(__fmaf_rn(-q, $(over).f, most[b]), $(f32(1 / over)), q);
//|   end
      codes_of(b, usual_reciprocal(d), false);
      to[b].scale = as_half(d);
    }
  } else {
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) {
      const bool nan = far[b] != far[b];
//|   if not signed then
      most[b] = first_farthest(x[2 * b], x[2 * b + 1], lane);
//|   end
//|   local d = by_power and ("__fmul_rn(most[b], %s)"):format(f32(1 / over)) or ("__fdiv_rn(most[b], %d.f)"):format(over)
      const Undone undone = undone_by($(d), nan);
      codes_of(b, undone.by, undone.clamped);
      to[b].scale = nan ? 0x7fff : as_half(undone.d);
//|   local zeros = signed and "0" or ("0x%08x"):format(f.zero * 0x11111111)
      if (undone.by == 0.f)
#pragma unroll
        for (int i = 0; i < 2 * CODE_WORDS; i++) to[b].word[i / CODE_WORDS][i % CODE_WORDS] = $(zeros);
    }
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
