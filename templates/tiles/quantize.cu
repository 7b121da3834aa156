//| needs "l.k_format? l.v_format? l.vec"
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

// The codes of a piece, and what is beside those of its block: a scale and a number that is added, as bits, and the codes' highest bits.
struct Codes {
  u32 word[CODE_WORDS], scale;
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
//| -- The codes of a format of blocks with a scale in fp16, of numbers y: `x` times what undoes the scale.
//| local function block_code(f)
//|   if f.kind == "signed" then
    // Halves away from 0.
    const float whole = truncf(y), rounded = fabsf(__fadd_rn(y, -whole)) >= 0.5f ? whole + copysignf(1.f, y) : whole;
    const int code = (int)fminf(fmaxf(rounded, -127.f), 127.f);
//|   elseif f.kind == "table" then
    int code = 0;
//|     for i = 1, 15 do
    code += 2.f * y >= $(f.table[i] + f.table[i + 1]).f;
//|     end
//|   else
    const int code = (int)fminf(fmaxf(floorf(__fadd_rn(y, $(f.zero).5f)), 0.f), $((1 << f.bits) - 1).f);
//|   end
//| end
//| -- Of a format of blocks of 32 with a scale in front.
//| local function of_blocks(f)
// The codes of a piece, of whose block $(32 // l.vec) lanes have pieces.
__device__ __forceinline__ void quantize_$(f.name)(Codes &to, const float (&x)[VEC], int lane) {
  int nan = 0;
//|   if f.least_at > 0 then
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
  float d = fabsf(__fdiv_rn(__fadd_rn(most, -m), $(f.most).f));
  if (d != d) d = 0.f;  // all are one infinity
  if (fabsf(m) >= 65520.f) m = copysignf(65504.f, m);
  u16 least;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(least) : "f"(m));
  to.least = nan ? 0x7fff : least;
//|   else
  // The first of the largest.
  float most = 0.f;
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
  float d = $(f.kind == "signed" and ("__fdiv_rn(fabsf(most), %d.f)"):format(f.most) or ("__fdiv_rn(most, -%d.f)"):format(f.most));
//|   end
  if (fabsf(d) >= 65520.f) d = copysignf(65504.f, d);
  float by = nan || d == 0.f ? 0.f : __fdiv_rn(1.f, d);
  if (fabsf(by) > 0x1.fffffep127f) by = 0.f;
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
  to.scale = nan ? 0x7fff : half;
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
}
// To a row, by the first of its columns.
__device__ __forceinline__ void store_$(f.name)(char *row, int column, const Codes &from) {
  char *const block = row + column / 32 * $(f.block_bytes);
  const int at = column % 32;
//|   local header = { { "scale", f.scale_at } }
//|   if f.least_at > 0 then header[#header + 1] = { "least", f.least_at } end
//|   if f.high_at > 0 then
//|     header[#header + 1] = { "high", f.high_at }
//|     header[#header + 1] = { "high >> 16", f.high_at + 2 }
//|   end
  if (at == 0) {
//|   for _, h in ipairs(header) do
    *(u16 *)(block + $(h[2])) = (u16)(from.$(h[1]));
//|   end
  }
//|   if f.halves then
  if (at >= 16) return;
//|   end
#pragma unroll
  for (int i = 0; i < VEC; i += 2) *(u16 *)(block + $(f.codes_at) + at + i) = (u16)(from.word[i / 4] >> (i % 4 * 8));
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
//| function quantizer(f)
//|   if printed[f.name] then return end
//|   printed[f.name] = true

//|   if f.scale_is_e4m3 then
//|     of_shares(f)
//|   elseif f.has_scale then
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
