//| needs "l.vec"
//| -- quantize: rows of fp32 that teams of lanes hold by pieces of VEC columns become codes of few bits (docs/lowbits.md). A row's pieces are
//| -- lane, lane + LANES, ... of its team. quantizer(f) prints what a format needs.
constexpr int CODE_WORDS = $(math.max(1, l.vec // 4));  // of a piece's codes, a byte each

// ---- scales ----
// A row's scale s, by which x is divided and rounded once. 1 / s is taken once; a quotient of it that codes tell from the largest is
// corrected twice, as division is made of (Markstein 1990). Where s is so far from 1 that a step of that would pass what fp32 holds, a power
// of two multiplies x and s: what x loses by it no code tells.
struct Divisor {
  float s, inverse, factor;
  bool zero;  // codes are those of 0
};
__device__ __forceinline__ Divisor divisor_of(float s) {
  const float a = fabsf(s), factor = a < 0x1p-60f ? 0x1p100f : a > 0x1p60f ? 0x1p-100f : 1.f, scaled = __fmul_rn(s, factor);
  return {scaled, __fdiv_rn(1.f, scaled), factor, s == 0.f};
}
// SIGNED_ZERO: -0 has a code of its own.
template <bool SIGNED_ZERO>
__device__ __forceinline__ float divide(float x, const Divisor &by) {
  const float q = __fmul_rn(x, by.inverse);
  const float r = __fmaf_rn(__fmaf_rn(-q, by.s, x), by.inverse, q), t = __fmaf_rn(__fmaf_rn(-r, by.s, x), by.inverse, r);
  return (!SIGNED_ZERO || fabsf(q) > 0x1p-40f) && fabsf(q) < 0x1p40f ? t : q;
}
//| if p.k_scale_out > 0 or p.v_scale_out > 0 then

// The largest |x| of a row, NaN left out, and whether there is one.
struct Largest {
  float x;
  bool nan;
};
__device__ __forceinline__ Largest largest_of(const float (&x)[SHARE][VEC], int pieces, int lane) {
  float most = 0.f;
  int nan = 0;
#pragma unroll
  for (int s = 0; s < SHARE; s++)
#pragma unroll
    for (int i = 0; i < VEC; i++) {
      if (lane + s * LANES >= pieces) continue;
      most = fmaxf(most, fabsf(x[s][i]));
      nan |= x[s][i] != x[s][i];
    }
#pragma unroll
  for (int i = LANES / 2; i > 0; i /= 2) {
    most = fmaxf(most, __shfl_xor_sync(~0u, most, i));
    nan |= __shfl_xor_sync(~0u, nan, i);
  }
  return {most, nan != 0};
}
// The scale that it is given; `strict`: codes have no NaN, so that the scale is NaN.
__device__ __forceinline__ float scale_of(const Largest &largest, float most, bool strict) {
  if (strict && largest.nan) return __uint_as_float(0x7fffffffu);
  return __fdiv_rn(fminf(largest.x, 0x1.fffffep127f), most);
}
//| end

// The codes of a piece, and the scale of its block in fp16.
struct Codes {
  u32 word[CODE_WORDS], scale;
};
//| local printed = {}
//| local unit_type = { [16] = "uint4", [8] = "uint2", [4] = "u32", [2] = "u16", [1] = "unsigned char" }

//| local function hex(x) return ("0x1p%df"):format(x) end
//| -- The code of a number.
//| local function code_of(f)
//|   if f.kind == "floats" then
//|     local bias = 2 ^ (f.exponent - 1) // 1 - 1
//|     bias = math.tointeger(bias)
__device__ __forceinline__ u32 code_$(f.name)(float x) {
  if (x != x) return $(("0x%02x"):format((1 << f.exponent + f.fraction) - 1));
  const float a = fminf(fabsf(x), $(f.most).f);
  u32 code;
  if (a < $(hex(1 - bias))) {
    code = (u32)__float2int_rn(__fmul_rn(a, $(hex(f.fraction + bias - 1))));
  } else {
    const u32 bits = __float_as_uint(a);
    code = (bits + $((1 << 22 - f.fraction) - 1) + (bits >> $(23 - f.fraction) & 1) >> $(23 - f.fraction)) - $(127 - bias << f.fraction);
  }
  return code | __float_as_uint(x) >> 24 & 0x80;
}
//|   else
__device__ __forceinline__ u32 code_$(f.name)(float x) { return (u32)min(max(x != x ? 0 : __float2int_rn(x), -128), 127) & 0xff; }
//|   end
//| end
//| -- Of a format whose scales are not in its rows.
//| local function of_bytes(f)
//|   local pairs = f.name == "e4m3" and a.cc >= 89
//|   if not pairs then code_of(f) end
// The codes of a piece, where it is SCALED divided by the scale of its row.
template <bool SCALED>
__device__ __forceinline__ void store_$(f.name)(char *to, const float (&from)[VEC], const Divisor &by) {
  u32 word[CODE_WORDS] = {};
  float x[VEC];
#pragma unroll
  for (int i = 0; i < VEC; i++) x[i] = from[i];
  if (SCALED && by.factor != 1.f)
#pragma unroll
    for (int i = 0; i < VEC; i++) x[i] = __fmul_rn(x[i], by.factor);
#pragma unroll
  for (int i = 0; i < VEC; i++)
    if (SCALED) x[i] = divide<$(f.kind == "floats")>(x[i], by);
  if (SCALED && by.zero)
#pragma unroll
    for (int i = 0; i < VEC; i++) x[i] = from[i] != from[i] ? from[i] : 0.f;
#pragma unroll
//|   if pairs then
  for (int i = 0; i < VEC; i += 2) {
    u16 two;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(two) : "f"(i + 1 < VEC ? x[(i + 1) % VEC] : 0.f), "f"(x[i]));
    word[i / 4] |= (u32)two << (i % 4 * 8);
  }
//|   else
  for (int i = 0; i < VEC; i++) word[i / 4] |= code_$(f.name)(x[i]) << (i % 4 * 8);
//|   end
//|   local unit = math.min(16, p.align, l.vec)
#pragma unroll
//|   if unit == 16 then
  for (int i = 0; i < VEC; i += 16) *(uint4 *)(to + i) = make_uint4(word[i / 4], word[i / 4 + 1], word[i / 4 + 2], word[i / 4 + 3]);
//|   elseif unit == 8 then
  for (int i = 0; i < VEC; i += 8) *(uint2 *)(to + i) = make_uint2(word[i / 4], word[i / 4 + 1]);
//|   else
  for (int i = 0; i < VEC; i += $(unit)) *($(unit_type[unit]) *)(to + i) = ($(unit_type[unit]))(word[i / 4] >> (i % 4 * 8));
//|   end
}
//| end
//| -- Of a format of blocks of 32 with a scale in front.
//| local function of_blocks(f)
//|   local signed = f.kind == "signed"
// The codes of a piece, of whose block $(32 // l.vec) lanes have pieces.
__device__ __forceinline__ void quantize_$(f.name)(Codes &to, const float (&x)[VEC], int lane) {
  // The first of the largest.
  float most = 0.f;
  int nan = 0;
#pragma unroll
  for (int i = 0; i < VEC; i++) {
    if (fabsf(x[i]) > fabsf(most)) most = x[i];
    nan |= x[i] != x[i];
  }
#pragma unroll
  for (int i = 1; i < 32 / VEC; i *= 2) {
    const float other = __shfl_xor_sync(~0u, most, i);
    if (lane & i ? fabsf(other) >= fabsf(most) : fabsf(other) > fabsf(most)) most = other;
    nan |= __shfl_xor_sync(~0u, nan, i);
  }
  float d = $(signed and ("__fdiv_rn(fabsf(most), %d.f)"):format(f.most) or ("__fdiv_rn(most, -%d.f)"):format(f.most));
  if (fabsf(d) >= 65520.f) d = copysignf(65504.f, d);
  u16 half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(d));
  to.scale = nan ? 0x7fff : half;
  float by = nan || d == 0.f ? 0.f : __fdiv_rn(1.f, d);
  if (fabsf(by) > 0x1.fffffep127f) by = 0.f;
#pragma unroll
  for (int i = 0; i < CODE_WORDS; i++) to.word[i] = 0;
#pragma unroll
  for (int i = 0; i < VEC; i++) {
    const float y = by == 0.f ? 0.f : __fmul_rn(x[i], by);
//|   if signed then
    // Halves away from 0.
    const float whole = truncf(y), rounded = fabsf(__fadd_rn(y, -whole)) >= 0.5f ? whole + copysignf(1.f, y) : whole;
    const int code = (int)fminf(fmaxf(rounded, -127.f), 127.f);
//|   else
    const int code = (int)fminf(fmaxf(floorf(__fadd_rn(y, $(f.zero).5f)), 0.f), $((1 << f.bits) - 1).f);
//|   end
    to.word[i / 4] |= (u32)(code & $((1 << f.bits) - 1)) << (i % 4 * 8);
  }
//|   if f.halves then
  // Elements 16 apart share a byte.
#pragma unroll
  for (int i = 0; i < CODE_WORDS; i++) to.word[i] |= __shfl_down_sync(~0u, to.word[i], 16 / VEC) << $(f.bits);
//|   end
}
// To a row, by the first of its columns.
__device__ __forceinline__ void store_$(f.name)(char *row, int column, const Codes &from) {
  char *const block = row + column / 32 * $(f.block_bytes);
  const int at = column % 32;
  if (at == 0) *(u16 *)block = (u16)from.scale;
//|   if f.halves then
  if (at >= 16) return;
//|   end
#pragma unroll
  for (int i = 0; i < VEC; i += 2) *(u16 *)(block + $(f.codes_at) + at + i) = (u16)(from.word[i / 4] >> (i % 4 * 8));
}
//| end
//| function quantizer(f)
//|   if printed[f.name] then return end
//|   printed[f.name] = true

//|   if f.has_scale then of_blocks(f) else of_bytes(f) end
//| end
