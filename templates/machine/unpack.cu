//| local place = include "tiles/codes.lua"
// ---- codes of few bits as pairs of fp16 ----
//| local printed = {}
//| local function once(name) if printed[name] then return false end printed[name] = true return true end

// A number that the compiler takes for another one each time: what follows from it is computed where it is used, and not kept in registers.
__device__ __forceinline__ int opaque(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
// x, out of a shuffle, so that the assembler keeps it in a register. It would read threadIdx again at each use, which takes as long as a
// load from shared memory. By all threads of a warp.
__device__ __forceinline__ int in_register(int x) { return __shfl_sync(~0u, x, threadIdx.x % 32); }
__device__ __forceinline__ u32 add_f16x2(u32 a, u32 b) {
  u32 r;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
__device__ __forceinline__ u32 fma_f16x2(u32 a, u32 b, u32 c) {
  u32 r;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}
__device__ __forceinline__ u32 mul_f16x2(u32 a, u32 b) {
  u32 r;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
// x & mask | base in one instruction, which holds one constant: the other stays in a register.
__device__ __forceinline__ u32 pick(u32 x, u32 mask, u32 base) {
  u32 r;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(r) : "r"(x), "r"(mask), "r"(base));
  return r;
}
//| if p.k_scale == 2 or p.v_scale == 2 then
__device__ __forceinline__ float2 load_shared_f32x2(u32 from) {
  float2 x;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(from) : "memory");
  return x;
}
//| end
// Two floats rounded to nearest even, lo in the low half.
__device__ __forceinline__ u32 pack_f16x2(float lo, float hi) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
//| -- What four bytes of a format become: h[0] of bytes 0 and 1, h[1] of bytes 2 and 3. by: the bytes' order in `word`.
//| local function bytes(f, by)
//|   if f.name == "e4m3" and f.unpack_cc >= 89 then
  asm("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %2; cvt.rn.f16x2.e4m3x2 %0, lo; cvt.rn.f16x2.e4m3x2 %1, hi; }"
      : "=r"(h[0]), "=r"(h[1]) : "r"(word));
//|   elseif f.name == "e4m3" then
  // The sign, then exponent and fraction a bit lower: the number times 2^-8. 7f is NaN: its exponent becomes the largest.
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const u32 x = __byte_perm(word, 0, i ? $(by[2]) : $(by[1])), nan = (x & 0x7f007f00) + 0x01000100;
    h[i] = (x & 0x80008000) | (x >> 1 & 0x3f803f80) | (nan >> 1 & 0x40004000);
  }
//|   elseif f.name == "e5m2" then
  h[0] = __byte_perm(word, 0, $(by[1]));
  h[1] = __byte_perm(word, 0, $(by[2]));
//|   elseif f.kind == "signed" and f.bits == 8 then
  // 1024 + (code ^ 80), less 1152.
#pragma unroll
  for (int i = 0; i < 2; i++) h[i] = add_f16x2(__byte_perm(word ^ 0x80808080, 0x64646464, i ? $(by[2]) : $(by[1])), 0xe480e480);
//|   else
//|     fail("no unpacking of " .. f.name)
//|   end
//| end
//| -- unpack(f): prints unpack_rows_NAME(), of 4 bytes of a row, and unpack_columns_NAME(), of 2 bytes of a row in the lower half of the
//| -- word and the same 2 bytes of the next row in the upper one: h[i] is then one element of both rows. Numbers come times 2^-power. With
//| -- bits of the codes that lie apart there is another argument: bits i and 16 + i are those of the lower and the upper code of byte i.
//| function unpack(f)
//|   if not once(f.name) then return end
//|   local n = place.registers(f)
//|   if f.kind == "table" then
//|     local t = {}
//|     for i = 0, 3 do
//|       t[i] = 0
//|       for k = 0, 3 do t[i] = t[i] | (f.table[4 * i + k + 1] + 128) << 8 * k end
//|       t[i] = ("0x%08xu"):format(t[i])
//|     end

// Four numbers, 128 too large, in bytes, by the four lower codes of a word.
__device__ __forceinline__ u32 numbers_$(f.name)(u32 codes) {
  const u32 low = codes & 0x7777;
  return __byte_perm(__byte_perm($(t[0]), $(t[1]), low), __byte_perm($(t[2]), $(t[3]), low), codes >> 1 & 0x4444 | 0x3210);
}
// Codes of bytes 0 and 2, the lower ones and the upper ones, then those of bytes 1 and 3: 1024 + byte, less 1152.
__device__ __forceinline__ void unpack_columns_$(f.name)(u32 (&h)[$(n)], u32 word) {
  const u32 a = numbers_$(f.name)(word), b = numbers_$(f.name)(word >> 16);
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const u32 both = __byte_perm(a, b, i ? 0x7362 : 0x5140);
    h[2 * i] = add_f16x2(__byte_perm(both, 0x64646464, 0x4140), 0xe480e480);
    h[2 * i + 1] = add_f16x2(__byte_perm(both, 0x64646464, 0x4342), 0xe480e480);
  }
}
__device__ __forceinline__ void unpack_rows_$(f.name)(u32 (&h)[$(n)], u32 word) { unpack_columns_$(f.name)(h, word); }
//|   elseif f.kind == "floats" and f.bits == 4 then

// Codes of bytes 0 and 2, the lower ones and the upper ones, then those of bytes 1 and 3: a sign, then the lowest bits of exponent and the
// highest of fraction.
__device__ __forceinline__ void unpack_columns_$(f.name)(u32 (&h)[$(n)], u32 word) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const u32 x = word >> 8 * i;
    h[2 * i] = (x << 12 & 0x80008000) | (x << 9 & 0x0e000e00);
    h[2 * i + 1] = (x << 8 & 0x80008000) | (x << 5 & 0x0e000e00);
  }
}
__device__ __forceinline__ void unpack_rows_$(f.name)(u32 (&h)[$(n)], u32 word) { unpack_columns_$(f.name)(h, word); }
//|   elseif f.bits == 5 then

// As with 4 bits, and the highest bit of each code where the lower ones end: a product puts the bits of two bytes there.
__device__ __forceinline__ void unpack_columns_$(f.name)(u32 (&h)[$(n)], u32 word, u32 high) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const u32 lower = (high >> i & 5) * 0x40010 & 0x00100010, upper = (high >> 16 + i & 5) * 0x400100 & 0x01000100;
    h[2 * i] = add_f16x2((word >> 8 * i & 0x000f000f) | lower | 0x64006400, $(("0x%04x%04x"):format(0xe400 + f.zero, 0xe400 + f.zero)));
    h[2 * i + 1] = fma_f16x2((word >> 8 * i & 0x00f000f0) | upper | 0x64006400, 0x2c002c00,
                             $(("0x%04x%04x"):format(0xd400 + 16 * f.zero, 0xd400 + 16 * f.zero)));
  }
}
__device__ __forceinline__ void unpack_rows_$(f.name)(u32 (&h)[$(n)], u32 word, u32 high) { unpack_columns_$(f.name)(h, word, high); }
//|   elseif f.bits == 4 then

// Codes of bytes 0 and 2, the lower ones and the upper ones, then those of bytes 1 and 3. 1024 + code, or 1024 + 16 code.
__device__ __forceinline__ void unpack_columns_$(f.name)(u32 (&h)[$(n)], u32 word) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    h[2 * i] = add_f16x2(pick(word >> 8 * i, 0x000f000f, 0x64006400), $(("0x%04x%04x"):format(0xe400 + f.zero, 0xe400 + f.zero)));
    h[2 * i + 1] = fma_f16x2(pick(word >> 8 * i, 0x00f000f0, 0x64006400), 0x2c002c00, $(("0x%04x%04x"):format(0xd400 + 16 * f.zero, 0xd400 + 16 * f.zero)));
  }
}
__device__ __forceinline__ void unpack_rows_$(f.name)(u32 (&h)[$(n)], u32 word) { unpack_columns_$(f.name)(h, word); }
//|   else
//|     local wide = f.kind == "floats"  -- a byte is the upper one of a half

__device__ __forceinline__ void unpack_rows_$(f.name)(u32 (&h)[$(n)], u32 word) {
//|     bytes(f, wide and { "0x1404", "0x3424" } or { "0x4140", "0x4342" })
}
__device__ __forceinline__ void unpack_columns_$(f.name)(u32 (&h)[$(n)], u32 word) {
//|     if f.name == "e4m3" and f.unpack_cc >= 89 then
  word = __byte_perm(word, 0, 0x3120);
//|     end
//|     bytes(f, wide and { "0x2404", "0x3414" } or { "0x4240", "0x4341" })
}
//|   end
//| end
//| -- unpack_scales(cc): prints scales_of_e4m3(), of 4 bytes: scales times 2^7, two and two.
//| function unpack_scales(cc)
//|   local f = codes("e4m3", cc)
//|   unpack(f)
//|   if not once("scales") then return end

__device__ __forceinline__ void scales_of_e4m3(u32 (&h)[2], u32 word) {
  unpack_rows_e4m3(h, word);
  h[0] = mul_f16x2(h[0], $(f.power == 0 and "0x58005800" or "0x78007800"));
  h[1] = mul_f16x2(h[1], $(f.power == 0 and "0x58005800" or "0x78007800"));
}
//| end
