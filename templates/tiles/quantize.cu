//| needs "l.k_format? l.lanes l.v_format? l.vec"
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
  float under, over;  // a bit less and a bit more than 1 / s
};
__device__ __forceinline__ Divisor divisor_of(float s) {
  const float a = fabsf(s), factor = a < 0x1p-60f ? 0x1p100f : a > 0x1p60f ? 0x1p-100f : 1.f, scaled = __fmul_rn(s, factor);
  const float inverse = __fdiv_rn(1.f, scaled);
  return {scaled, inverse, factor, s == 0.f, __fmul_rn(inverse, 0x1.fffff8p-1f), __fmul_rn(inverse, 0x1.000004p0f)};
}
// SIGNED_ZERO: -0 has a code of its own.
template <bool SIGNED_ZERO>
__device__ __forceinline__ float divide(float x, const Divisor &by) {
  const float q = __fmul_rn(x, by.inverse);
  const float r = __fmaf_rn(__fmaf_rn(-q, by.s, x), by.inverse, q), t = __fmaf_rn(__fmaf_rn(-r, by.s, x), by.inverse, r);
  return (!SIGNED_ZERO || fabsf(q) > 0x1p-40f) && fabsf(q) < 0x1p40f ? t : q;
}
// The larger of two; NaN where one of them is.
__device__ __forceinline__ float max_with_nan(float x, float y) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
  return r;
}
//| if p.k_scale_out > 0 or p.v_scale_out > 0 then

//| -- Formats without NaN ask whether a row has one, the others for its largest number without: rarely both in one kernel.
//| local asks_nan, leaves_nan = false, false
//| for _, side in ipairs({ "k", "v" }) do
//|   local f = l[side .. "_format"]
//|   if p[side .. "_scale_out"] > 0 and f then
//|     if f.kind == "floats" then leaves_nan = true else asks_nan = true end
//|   end
//| end
// The largest |x| of a row$(leaves_nan and ", NaN left out" or "")$(asks_nan and ", and whether there is a NaN" or "").
struct Largest {
  float x;
  bool nan;
};
__device__ __forceinline__ Largest largest_of(const float (&x)[SHARE][VEC], int pieces, int lane) {
  float most = 0.f, most_or_nan = 0.f;
#pragma unroll
  for (int s = 0; s < SHARE; s++)
#pragma unroll
    for (int i = 0; i < VEC; i++) {
      if (lane + s * LANES >= pieces) continue;
      most = fmaxf(most, fabsf(x[s][i]));
      most_or_nan = max_with_nan(most_or_nan, fabsf(x[s][i]));
    }
#pragma unroll
  for (int i = LANES / 2; i > 0; i /= 2) {
//|   if leaves_nan then
    most = fmaxf(most, __shfl_xor_sync(~0u, most, i));
//|   end
//|   if asks_nan then
    most_or_nan = max_with_nan(most_or_nan, __shfl_xor_sync(~0u, most_or_nan, i));
//|   end
  }
  return {$(leaves_nan and "most" or "most_or_nan"), $(asks_nan and "most_or_nan != most_or_nan" or "false")};
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
//|   local pairs = f.kind == "floats" and a.cc >= 89
//|   if not pairs then code_of(f) end
// Codes of a piece out of two products, one of which is no more than x / s and one no less. Returns whether they are the same: then they are
// those of the quotient.
__device__ __forceinline__ bool likely_$(f.name)(u32 (&word)[CODE_WORDS], const float (&x)[VEC], const Divisor &by) {
  u32 other[CODE_WORDS] = {};
//|   if pairs then
#pragma unroll
  for (int i = 0; i < VEC; i += 2) {
    u16 two, more;
    const float y = i + 1 < VEC ? x[(i + 1) % VEC] : 0.f;
    asm("cvt.rn.satfinite.$(f.name)x2.f32 %0, %1, %2;" : "=h"(two) : "f"(__fmul_rn(y, by.under)), "f"(__fmul_rn(x[i], by.under)));
    asm("cvt.rn.satfinite.$(f.name)x2.f32 %0, %1, %2;" : "=h"(more) : "f"(__fmul_rn(y, by.over)), "f"(__fmul_rn(x[i], by.over)));
    word[i / 4] |= (u32)two << (i % 4 * 8);
    other[i / 4] |= (u32)more << (i % 4 * 8);
  }
//|   elseif f.kind == "floats" then
#pragma unroll
  for (int i = 0; i < VEC; i++) {
    word[i / 4] |= code_$(f.name)(__fmul_rn(x[i], by.under)) << (i % 4 * 8);
    other[i / 4] |= code_$(f.name)(__fmul_rn(x[i], by.over)) << (i % 4 * 8);
  }
//|   else
  // 1.5 2^23 + the nearest integer, whose last byte is the code. NaN becomes the least of one and the largest of the other.
  constexpr float ONE = 12582912.f, LEAST = ONE - 128.f, LARGEST = ONE + 127.f;
#pragma unroll
  for (int i = 0; i < VEC; i++) {
    const float a = fminf(fmaxf(fmaf(x[i], by.under, ONE), LEAST), LARGEST), b = fmaxf(fminf(fmaf(x[i], by.over, ONE), LARGEST), LEAST);
    word[i / 4] |= (__float_as_uint(a) & 0xff) << (i % 4 * 8);
    other[i / 4] |= (__float_as_uint(b) & 0xff) << (i % 4 * 8);
  }
//|   end
  bool same = by.factor == 1.f && !by.zero;
#pragma unroll
  for (int i = 0; i < CODE_WORDS; i++) same = same && word[i] == other[i];
  return same;
}
// The codes of a piece, where it is SCALED divided by the scale of its row.
template <bool SCALED>
__device__ __forceinline__ void store_$(f.name)(char *to, const float (&from)[VEC], const Divisor &by) {
  u32 word[CODE_WORDS] = {};
  if (!SCALED || __builtin_expect(!likely_$(f.name)(word, from, by), false)) {
#pragma unroll
  for (int i = 0; i < CODE_WORDS; i++) word[i] = 0;
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
    asm("cvt.rn.satfinite.$(f.name)x2.f32 %0, %1, %2;" : "=h"(two) : "f"(i + 1 < VEC ? x[(i + 1) % VEC] : 0.f), "f"(x[i]));
    word[i / 4] |= (u32)two << (i % 4 * 8);
  }
//|   else
  for (int i = 0; i < VEC; i++) word[i / 4] |= code_$(f.name)(x[i]) << (i % 4 * 8);
//|   end
  }
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
//|   -- Two blocks are whole words: teams whose lanes have all of both store these.
//|   local paired = l.vec == 8 and l.lanes >= 8 and p.align >= 4 and p.d % 64 == 0 and p.dv % 64 == 0
//|   local code_bytes = f.block_bytes - f.codes_at
// The codes of a piece, of whose block $(32 // l.vec) lanes have pieces.
__device__ __forceinline__ void quantize_$(f.name)(Codes &to, const float (&x)[VEC], int lane) {
//|   if signed then
  // The largest |x|; NaN where there is one.
  float most = 0.f;
#pragma unroll
  for (int i = 0; i < VEC; i++) most = max_with_nan(most, fabsf(x[i]));
#pragma unroll
  for (int i = 1; i < 32 / VEC; i *= 2) most = max_with_nan(most, __shfl_xor_sync(~0u, most, i));
  const bool nan = most != most;
  float d = __fdiv_rn(most, $(f.most).f);
//|   else
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
  float d = __fmul_rn(most, -0x1p-3f);
//|   end
  if (fabsf(d) >= 65520.f) d = copysignf(65504.f, d);
  u16 half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(d));
  to.scale = nan ? 0x7fff : half;
  float by = nan || d == 0.f ? 0.f : __fdiv_rn(1.f, d);
  if (fabsf(by) > 0x1.fffffep127f) by = 0.f;
#pragma unroll
  for (int i = 0; i < CODE_WORDS; i++) to.word[i] = 0;
  // 2^23 + an integer below 256, by sums rounded toward 0: its last byte is the integer.
#pragma unroll
  for (int i = 0; i < VEC; i++) {
    const float y = __fmul_rn(x[i], by);
//|   if signed then
    // Halves away from 0.
    const int n = __float_as_int(__fadd_rz(fminf(__fadd_rz(fabsf(y), 0.5f), $(f.most).f), 0x1p23f)), sign = __float_as_int(y) >> 31;
    const u32 code = (u32)((n ^ sign) - sign);
//|   else
    const u32 code = __float_as_uint(__fadd_rz(fminf(fmaxf(__fadd_rn(y, $(f.zero).5f), 0.f), $((1 << f.bits) - 1).f), 0x1p23f));
//|   end
    to.word[i / 4] |= (code & 0xff) << (i % 4 * 8);
  }
  if (by == 0.f)
#pragma unroll
    for (int i = 0; i < CODE_WORDS; i++) to.word[i] = $(signed and "0" or ("0x%08x"):format(f.zero * 0x01010101));
//|   if f.halves then
  // Elements 16 apart share a byte.
#pragma unroll
  for (int i = 0; i < CODE_WORDS; i++) to.word[i] |= __shfl_down_sync(~0u, to.word[i], 16 / VEC) << $(f.bits);
//|   end
//|   if paired then
  // Of two blocks the first has its scale and its codes two bytes before whole words, and its last two codes share one with the scale of
  // the second.
  const u32 tail = to.word[1] >> 16, before = __shfl_up_sync(~0u, tail, 1), later = __shfl_down_sync(~0u, to.scale, 4);
  if (lane % 8 < 4) {
    to.word[1] = __byte_perm(to.word[0], to.word[1], 0x5432);
    to.word[0] = (lane % 4 == 0 ? to.scale : before) | to.word[0] << 16;
    to.scale = tail | later << 16;
  }
//|   end
}
// To a row, by the first of its columns.
__device__ __forceinline__ void store_$(f.name)(char *row, int column, const Codes &from) {
//|   if paired then
  const int at = column / 8 % 4;
//|     if f.halves then
  if (at >= 2) return;
//|     end
  const bool second = column % 64 >= 32;
  char *const to = row + column / 64 * $(2 * f.block_bytes) + (second ? $(f.block_bytes + 2) : 0) + at * 8;
  *(u32 *)to = from.word[0];
  *(u32 *)(to + 4) = from.word[1];
  if (!second && at == $(code_bytes // 8 - 1)) *(u32 *)(to + 8) = from.scale;
//|   else
  char *const block = row + column / 32 * $(f.block_bytes);
  const int at = column % 32;
  if (at == 0) *(u16 *)block = (u16)from.scale;
//|     if f.halves then
  if (at >= 16) return;
//|     end
#pragma unroll
  for (int i = 0; i < VEC; i += 2) *(u16 *)(block + $(f.codes_at) + at + i) = (u16)(from.word[i / 4] >> (i % 4 * 8));
//|   end
}
//| end
//| function quantizer(f)
//|   if printed[f.name] then return end
//|   printed[f.name] = true

//|   if f.has_scale then of_blocks(f) else of_bytes(f) end
//| end
