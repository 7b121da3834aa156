//| needs "l.dealt l.k_format? l.lanes l.v_format? l.vec"
//| -- quantize: rows of fp32 that teams of lanes hold by pieces of VEC columns become codes of few bits (docs/lowbits.md). A row's pieces
//| -- are lane, lane + LANES, ... of its team. quantizer(f) prints what a format needs.
constexpr int CODE_WORDS = $(math.max(1, l.vec // 4));  // of a piece's codes, a byte each

// 1 / x rounded to nearest even, of an x from 2^-100 to 2^100: as __frcp_rn() makes it, without looking whether x is one.
__device__ __forceinline__ float usual_reciprocal(float x) {
  const float y = reciprocal_approx(x), e = __fmaf_rn(x, y, -1.f);
  return __fmaf_rn(y, -e, y);
}

// ---- scales ----
// A row's scale s, by which x is divided and rounded once. 1 / s is taken once; a quotient of it that codes tell from the largest is
// corrected twice, as division is made of (Markstein 1990). Where s is so far from 1 that a step of that would pass what fp32 holds, a power
// of two multiplies x and s: what x loses by it no code tells.
//| -- Whether rows of integers are divided by scales that are given.
//| given_integers = false
//| for _, side in ipairs({ "k", "v" }) do
//|   local f = l[side .. "_format"]
//|   if f and f.kind == "signed" and not f.has_scale and p[side .. "_scale"] > 0 then given_integers = true end
//| end
struct Divisor {
  float s, inverse, factor;
  bool zero;  // codes are those of 0
  float under, over;  // a bit less and a bit more than 1 / s
  bool within;  // no quotient is beyond the range of codes
//| if given_integers then
  float least, most;  // of what is divided: beyond them codes are the last ones
//| end
};
//| local ends = given_integers and ", fminf(-128.f * s, 127.f * s), fmaxf(-128.f * s, 127.f * s)" or ""
__device__ __forceinline__ Divisor divisor_of(float s, bool within) {
  if (__builtin_expect(fabsf(s) >= 0x1p-60f && fabsf(s) <= 0x1p60f, true)) {
    const float inverse = usual_reciprocal(s);
    return {s, inverse, 1.f, false, __fmul_rn(inverse, 0x1.fffff8p-1f), __fmul_rn(inverse, 0x1.000004p0f), within$(ends)};
  }
  const float a = fabsf(s), factor = a < 0x1p-60f ? 0x1p100f : 0x1p-100f, scaled = __fmul_rn(s, factor);
  const float inverse = __fdiv_rn(1.f, scaled);
  return {scaled, inverse, factor, s == 0.f, __fmul_rn(inverse, 0x1.fffff8p-1f), __fmul_rn(inverse, 0x1.000004p0f), within$(ends)};
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
//| local has = {}
//| for _, f in ipairs({ l.k_format or false, l.v_format or false }) do
//|   if f then has[f.kind .. f.bits .. (f.has_scale and " in rows" or "")] = true end
//| end
//| local found_by_both = has["unsigned4 in rows"] or has["unsigned5 in rows"] or has["table4 in rows"]
//| local blocks_of_integers = found_by_both or has["signed8 in rows"]
//| if found_by_both then
__device__ __forceinline__ float min_with_nan(float x, float y) {
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
  return r;
}
//| end
//| if l.vec >= 4 then
// The last bytes of numbers, one after the other.
__device__ __forceinline__ void last_bytes(u32 (&word)[CODE_WORDS], const int (&number)[VEC]) {
#pragma unroll
  for (int i = 0; i < CODE_WORDS; i++)
    word[i] = __byte_perm(__byte_perm(number[4 * i], number[4 * i + 1], 0x40),
                          __byte_perm(number[4 * i + 2], number[4 * i + 3], 0x40), 0x5410);
}
//| else
__device__ __forceinline__ void last_bytes(u32 (&word)[CODE_WORDS], const int (&number)[VEC]) {
  word[0] = 0;
#pragma unroll
  for (int i = 0; i < VEC; i++) word[0] |= (u32)(number[i] & 0xff) << (i * 8);
}
//| end
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
// The scale that it is given; `strict`: codes have no NaN, so that the scale is NaN. most, 1 / most: no largest number from 2^-60 to 2^60
// has a quotient that these products do not round as division does.
__device__ __forceinline__ float scale_of(const Largest &largest, float most, float inverse, bool strict) {
  if (__builtin_expect(largest.x >= 0x1p-60f && largest.x <= 0x1p60f, true) && !(strict && largest.nan)) {
    const float q = __fmul_rn(largest.x, inverse);
    return __fmaf_rn(__fmaf_rn(-q, most, largest.x), inverse, q);
  }
  if (strict && largest.nan) return __uint_as_float(0x7fffffffu);
  return __fdiv_rn(fminf(largest.x, 0x1.fffffep127f), most);
}
//| end

// The codes of a piece, and what is beside those of its block: a scale and a number that is added, as bits, and the codes' highest bits.
struct Codes {
//| if l.dealt then
  u32 word[2][CODE_WORDS], scale;  // of two pieces
//| else
  u32 word[CODE_WORDS], scale;
//| end
//| local function has(of) return l.k_format and l.k_format[of] > 0 or l.v_format and l.v_format[of] > 0 end
//| if has("least_at") then
  u32 least;
//| end
//| if has("high_at") then
  u32 high;
//| end
};
//| local printed = {}
//| local unit_type = { [16] = "uint4", [8] = "uint2", [4] = "u32", [2] = "u16", [1] = "unsigned char" }

//| local function hex(x) return ("0x1p%df"):format(x) end
//| -- The code of a number.
//| local coded = {}
//| local function code_of(f)
//|   if coded[f.name] then return end
//|   coded[f.name] = true
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
  return code | __float_as_uint(x) >> $(31 - f.exponent - f.fraction) & $(1 << f.exponent + f.fraction);
}
//|   else
__device__ __forceinline__ u32 code_$(f.name)(float x) { return (u32)min(max(x != x ? 0 : __float2int_rn(x), -128), 127) & 0xff; }
//|   end
//| end
//| -- Of a format whose scales are not in its rows.
//| local function of_bytes(f)
//|   local pairs = f.kind == "floats" and a.cc >= 89
//|   -- By a scale that is given, 0.05 say, many quotients are in the middle between two codes: of numbers with few bits one in thirty.
//|   local exact = p.k_scale > 0 and l.k_format == f or p.v_scale > 0 and l.v_format == f
//|   if not pairs then code_of(f) end
//|   if exact then
//|     local none = f.kind == "floats" and "NaN or infinite" or "NaN"
// Codes of a piece by quotients as division rounds them, of scales whose quotients stay within normal numbers. Returns whether they are:
// not where a number is $(none). A quotient is corrected once: of all scales and of all numbers next to where a code ends,
// 2^32 pairs, there is none for which two corrections, as divide() makes them, lead to another code.
__device__ __forceinline__ bool usual_$(f.name)(u32 (&word)[CODE_WORDS], const float (&from)[VEC], const Divisor &by) {
  bool nan = false;
//|     if f.kind == "signed" then
  int number[VEC];
#pragma unroll
  for (int i = 0; i < VEC; i++) {
    const float x = fminf(fmaxf(from[i], by.least), by.most), q = __fmul_rn(x, by.inverse);
    // 1.5 2^23 + the nearest integer, whose last byte is the code.
    number[i] = __float_as_int(__fadd_rn(__fmaf_rn(__fmaf_rn(-q, by.s, x), by.inverse, q), 12582912.f));
    nan = nan || from[i] != from[i];
  }
  last_bytes(word, number);
  return by.factor == 1.f && !by.zero && !nan;
//|     else
  float y[VEC];
#pragma unroll
  for (int i = 0; i < VEC; i++) {
    const float q = __fmul_rn(from[i], by.inverse);
    y[i] = __fmaf_rn(-__fmaf_rn(q, by.s, -from[i]), by.inverse, q);  // the rest's sign keeps -0
    nan = nan || y[i] != y[i];
  }
#pragma unroll
//|       if pairs then
  for (int i = 0; i < VEC; i += 2) {
    u16 two;
    asm("cvt.rn.satfinite.$(f.name)x2.f32 %0, %1, %2;" : "=h"(two) : "f"(i + 1 < VEC ? y[(i + 1) % VEC] : 0.f), "f"(y[i]));
    word[i / 4] |= (u32)two << (i % 4 * 8);
  }
//|       else
  for (int i = 0; i < VEC; i++) word[i / 4] |= code_$(f.name)(y[i]) << (i % 4 * 8);
//|       end
  return by.factor == 1.f && by.s > 0.f && !nan;
//|     end
}
//|   else
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
  int under[VEC], over[VEC];
#pragma unroll
  for (int i = 0; i < VEC; i++) {
    under[i] = __float_as_int(fmaf(x[i], by.under, ONE));
    over[i] = __float_as_int(fmaf(x[i], by.over, ONE));
  }
  if (!by.within)
#pragma unroll
    for (int i = 0; i < VEC; i++) {
      under[i] = __float_as_int(fminf(fmaxf(__int_as_float(under[i]), LEAST), LARGEST));
      over[i] = __float_as_int(fmaxf(fminf(__int_as_float(over[i]), LARGEST), LEAST));
    }
  last_bytes(word, under);
  last_bytes(other, over);
//|   end
  bool same = by.factor == 1.f && !by.zero;
#pragma unroll
  for (int i = 0; i < CODE_WORDS; i++) same = same && word[i] == other[i];
  return same;
}
//|   end
// The codes of a piece, where it is SCALED divided by the scale of its row.
template <bool SCALED>
__device__ __forceinline__ void store_$(f.name)(char *to, const float (&from)[VEC], const Divisor &by) {
  u32 word[CODE_WORDS] = {};
  if (!SCALED || __builtin_expect(!$(exact and "usual" or "likely")_$(f.name)(word, from, by), false)) {
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
//| -- The code of a number y: `x` times what undoes a block's scale.
//| local function block_code(f)
//|   if f.kind == "table" then
    int code = 0;
//|     for i = 1, 15 do
    code += 2.f * y >= $(f.table[i] + f.table[i + 1]).f;
//|     end
//|   else
    const int most_code = $((1 << f.bits) - 1);
    const int code = __float_as_int(__fadd_rz(fminf(fmaxf(__fadd_rn(y, $(f.zero).5f), 0.f), (float)most_code), 0x1p23f)) & most_code;
//|   end
//| end
//| if blocks_of_integers then
// d of a block as fp16 holds it, and what its elements are multiplied by; 0: codes are those of 0.
struct Undone {
  float d, by;
  bool clamped;
};
__device__ __forceinline__ Undone undone_by(float d, bool nan) {
  const bool clamped = fabsf(d) >= 65520.f;
  if (clamped) d = copysignf(65504.f, d);
  float by = nan || d == 0.f ? 0.f : __frcp_rn(d);
  if (fabsf(by) > 0x1.fffffep127f) by = 0.f;
  return {d, by, clamped};
}
//| end
//| -- The number of an element that is multiplied by what undoes the scale, whose last byte is the code. Of formats that are a scale and
//| -- codes of integers.
//| local function number_of(f)
__device__ __forceinline__ int number_of_$(f.name)(float y) {
//|   if f.kind == "signed" then
  // Halves away from 0: the integer not above y + 0.5, of y < 0 not above y + the number before 0.5. 1.5 2^23 + an integer ends with its
  // last byte. Sums are rounded down.
  const float half = __int_as_float(0x3f000000 + (__float_as_int(y) >> 31));
  return __float_as_int(__fadd_rd(__fadd_rd(y, half), 12582912.f));
//|   else
  // 2^23 + an integer, by a sum rounded toward 0, whose last byte is the integer's.$(l.dealt and " At most 16 for 15." or "")
//|     local number = ("__fadd_rn(y, %d.5f)"):format(f.zero)
  return __float_as_int(__fadd_rz($(l.dealt and number or ("fminf(%s, %d.f)"):format(number, (1 << f.bits) - 1)), 0x1p23f));
//|   end
}
//| end
//| -- Of a format of blocks of 32 with a scale in front.
//| local function of_blocks(f)
//|   local signed = f.kind == "signed"
//|   -- Numbers that one product and its rounding make, and nothing is beside.
//|   local plain = f.least_at == 0 and f.high_at == 0 and f.kind ~= "table"
//|   -- Two blocks are whole words: teams whose lanes have all of both store these.
//|   local paired = plain and l.vec == 8 and l.lanes >= 8 and p.align >= 4 and p.d % 64 == 0 and p.dv % 64 == 0
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
//|   elseif f.least_at > 0 then
  int nan = 0;
  // The first of the least, and the largest.
  float m = __uint_as_float(0x7f800000u), most = -m;
#pragma unroll
  for (int i = 0; i < VEC; i++) {
    if (x[i] < m) m = x[i];
    if (x[i] > most) most = x[i];
    nan |= x[i] != x[i];
  }
#pragma unroll
  for (int i = 1; i < 32 / VEC; i *= 2) {
    const float other = __shfl_xor_sync(~0u, m, i);
    if (lane & i ? other <= m : other < m) m = other;
    most = fmaxf(most, __shfl_xor_sync(~0u, most, i));
    nan |= __shfl_xor_sync(~0u, nan, i);
  }
  float range = fabsf(__fdiv_rn(__fadd_rn(most, -m), $(f.most).f));
  if (range != range) range = 0.f;  // all are one infinity
  if (fabsf(m) >= 65520.f) m = copysignf(65504.f, m);
  u16 least;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(least) : "f"(m));
  to.least = nan ? 0x7fff : least;
//|   else
  // The largest and the least, NaN where there is one; where they are as far from 0 the first of them counts.
  float top = x[0], bottom = x[0];
#pragma unroll
  for (int i = 1; i < VEC; i++) {
    top = max_with_nan(top, x[i]);
    bottom = min_with_nan(bottom, x[i]);
  }
#pragma unroll
  for (int i = 1; i < 32 / VEC; i *= 2) {
    top = max_with_nan(top, __shfl_xor_sync(~0u, top, i));
    bottom = min_with_nan(bottom, __shfl_xor_sync(~0u, bottom, i));
  }
  const bool nan = top != top;
  float most = top > -bottom ? top : bottom;
  if (__any_sync(~0u, top == -bottom)) {
    most = 0.f;
#pragma unroll
    for (int i = 0; i < VEC; i++)
      if (fabsf(x[i]) > fabsf(most)) most = x[i];
#pragma unroll
    for (int i = 1; i < 32 / VEC; i *= 2) {
      const float other = __shfl_xor_sync(~0u, most, i);
      if (lane & i ? fabsf(other) >= fabsf(most) : fabsf(other) > fabsf(most)) most = other;
    }
  }
//|   end
//|   -- d by a quotient of so much.
//|   local by_power = f.most & f.most - 1 == 0
//|   local over = (f.least_at == 0 and not signed) and -f.most or f.most
//|   local whole = by_power and ("__fmul_rn(most, %s)"):format(f32(1 / over)) or ("__fdiv_rn(most, %d.f)"):format(over)
//|   if plain then
  // Codes by what undoes the scale.
  const auto codes_of = [&](float by, bool clamped) {
    float y[VEC];
    int number[VEC];
#pragma unroll
    for (int i = 0; i < VEC; i++) y[i] = __fmul_rn(x[i], by);
    if (clamped)
#pragma unroll
      for (int i = 0; i < VEC; i++) y[i] = fminf(fmaxf(y[i], -$(f.most).f), $(f.most).f);
#pragma unroll
    for (int i = 0; i < VEC; i++) number[i] = number_of_$(f.name)(y[i]);
    last_bytes(to.word, number);
  };
  float d;
  bool nan_of_block = false;
  if (__builtin_expect(!nan && fabsf(most) >= 0x1p-100f && fabsf(most) <= 0x1p18f, true)) {
    // No step of the quotients passes what normal numbers hold, nor does d what fp16 holds.
//|     if by_power then
    d = __fmul_rn(most, $(f32(1 / over)));
//|     else
    const float q = __fmul_rn(most, $(f32(1 / over)));
    d = __fmaf_rn(__fmaf_rn(-q, $(over).f, most), $(f32(1 / over)), q);
//|     end
    codes_of(usual_reciprocal(d), false);
  } else {
    const Undone undone = undone_by($(whole), nan);
    d = undone.d;
    codes_of(undone.by, undone.clamped);
    if (undone.by == 0.f)
#pragma unroll
      for (int i = 0; i < CODE_WORDS; i++) to.word[i] = $(signed and "0" or ("0x%08x"):format(f.zero * 0x01010101));
    nan_of_block = nan;
  }
//|   else
  const Undone undone = undone_by($(f.least_at > 0 and "range" or whole), nan);
  [[maybe_unused]] float d = undone.d;
  const float by = undone.by;
#pragma unroll
  for (int i = 0; i < CODE_WORDS; i++) to.word[i] = 0;
//|   if f.high_at > 0 then
  u32 high = 0;
//|   end
//|   if f.kind == "table" then
  // What fits best, x counted by its square: sums in the order of the elements, so that one lane goes on where another has ended.
  float to_s[VEC], to_t[VEC];
//|   end
#pragma unroll
  for (int i = 0; i < VEC; i++) {
    const float y = by == 0.f ? 0.f : __fmul_rn($(f.least_at > 0 and "__fadd_rn(x[i], -m)" or "x[i]"), by);
//|   block_code(f)
//|   if f.kind == "table" then
    const float number = table_$(f.name)(code), weight = __fmul_rn(__fmul_rn(x[i], x[i]), number);
    to_s[i] = __fmul_rn(weight, x[i]);
    to_t[i] = __fmul_rn(weight, number);
//|   end
//|   if f.high_at > 0 then
    high |= (u32)(code >> 4) << (lane * VEC + i) % 32;
    to.word[i / 4] |= (u32)(code & 15) << (i % 4 * 8);
//|   else
    to.word[i / 4] |= (u32)(code & $((1 << f.bits) - 1)) << (i % 4 * 8);
//|   end
  }
//|   end
//|   if f.kind == "table" then
  float s = 0.f, t = 0.f;
#pragma unroll
  for (int k = 0; k < 32 / VEC; k++) {
    const int from = lane / (32 / VEC) * (32 / VEC) + k;
    float own_s = s, own_t = t;
#pragma unroll
    for (int i = 0; i < VEC; i++) {
      own_s = __fadd_rn(own_s, to_s[i]);
      own_t = __fadd_rn(own_t, to_t[i]);
    }
    s = __shfl_sync(~0u, own_s, from, LANES);
    t = __shfl_sync(~0u, own_t, from, LANES);
  }
  if (t > 0.f && t <= 0x1.fffffep127f && fabsf(s) <= 0x1.fffffep127f) d = __fdiv_rn(s, t);
  if (fabsf(d) >= 65520.f) d = copysignf(65504.f, d);
//|   end
  u16 half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(d));
  to.scale = $(plain and "nan_of_block" or "nan") ? 0x7fff : half;
//|   if f.high_at > 0 then
#pragma unroll
  for (int i = 1; i < 32 / VEC; i *= 2) high |= __shfl_xor_sync(~0u, high, i);
  to.high = high;
//|   end
//|   if f.halves then
  // Elements 16 apart share a byte.
#pragma unroll
  for (int i = 0; i < CODE_WORDS; i++) to.word[i] |= __shfl_down_sync(~0u, to.word[i], 16 / VEC) << 4;
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
//|     local header = { { "scale", f.scale_at } }
//|     if f.least_at > 0 then header[#header + 1] = { "least", f.least_at } end
//|     if f.high_at > 0 then
//|       header[#header + 1] = { "high", f.high_at }
//|       header[#header + 1] = { "high >> 16", f.high_at + 2 }
//|     end
  if (at == 0) {
//|     for _, h in ipairs(header) do
    *(u16 *)(block + $(h[2])) = (u16)(from.$(h[1]));
//|     end
  }
//|     if f.halves then
  if (at >= 16) return;
//|     end
#pragma unroll
  for (int i = 0; i < VEC; i += 2) *(u16 *)(block + $(f.codes_at) + at + i) = (u16)(from.word[i / 4] >> (i % 4 * 8));
//|   end
}
//| end
//| -- Of a format whose blocks have scales of e4m3, of $(f.shared) elements each.
//| local function of_shares(f)
//|   code_of(codes("e4m3", 80))
//|   code_of(f)
//|   local n = f.shared
// The codes of a piece, of whose scale's $(n) elements $(n // l.vec) lanes have pieces.
__device__ __forceinline__ void quantize_$(f.name)(Codes &to, const float (&x)[VEC], int) {
  float most = 0.f;
  int nan = 0;
#pragma unroll
  for (int i = 0; i < VEC; i++) {
    most = fmaxf(most, fabsf(x[i]));
    nan |= x[i] != x[i];
  }
#pragma unroll
  for (int i = 1; i < $(n) / VEC; i *= 2) {
    most = fmaxf(most, __shfl_xor_sync(~0u, most, i));
    nan |= __shfl_xor_sync(~0u, nan, i);
  }
  to.scale = nan ? 0x7f : code_e4m3(__fdiv_rn(fminf(most, 0x1.fffffep127f), $(f.most).f));
  const float scale = nan ? 0.f : __fmul_rn(__uint_as_float(to.scale << 20), 0x1p120f);
#pragma unroll
  for (int i = 0; i < CODE_WORDS; i++) to.word[i] = 0;
#pragma unroll
  for (int i = 0; i < VEC; i++)
    to.word[i / 4] |= (scale == 0.f ? 0 : code_$(f.name)(__fdiv_rn(x[i], scale))) << (i % 4 * 8);
//|   if l.vec < n then
#pragma unroll
  for (int i = 0; i < CODE_WORDS; i++) to.word[i] |= __shfl_down_sync(~0u, to.word[i], $(n // 2) / VEC) << 4;
//|   else
#pragma unroll
  for (int i = 0; i < $(n // 8); i++) to.word[i] |= to.word[$(n // 8) + i] << 4;
//|   end
}
// To a row, by the first of its columns.
__device__ __forceinline__ void store_$(f.name)(char *row, int column, const Codes &from) {
  char *const block = row + column / $(f.block) * $(f.block_bytes);
  const int share = column % $(f.block) / $(n), at = column % $(n);
  if (at == 0) block[$(f.scale_at) + share] = (char)from.scale;
  if (at >= $(n // 2)) return;
#pragma unroll
  for (int i = 0; i < VEC && i < $(n // 2); i += 2)
    *(u16 *)(block + $(f.codes_at) + share * $(n // 2) + at + i) = (u16)(from.word[i / 4] >> (i % 4 * 8));
}
//| end
//| if l.dealt then
//|   include "tiles/quantize_dealt.cu"
//| end
//| function quantizer(f)
//|   if printed[f.name] then return end
//|   printed[f.name] = true

//|   if f.scale_is_e4m3 then
//|     of_shares(f)
//|   elseif l.dealt and f.has_scale then
//|     number_of(f)
//|     dealt_quantizer(f)
//|   elseif f.has_scale then
//|     if f.least_at == 0 and f.high_at == 0 and f.kind ~= "table" then number_of(f) end
//|     if f.kind == "table" then
// The number of a code.
__device__ __forceinline__ float table_$(f.name)(int code) {
  float x = $(f.table[1]).f;
//|       for i = 1, 15 do
  x = code >= $(i) ? $(f.table[i + 1]).f : x;
//|       end
  return x;
}
//|     end
//|     of_blocks(f)
//|   else
//|     of_bytes(f)
//|   end
//| end
