//| local place = include "tiles/codes.lua"
// ---- codes of few bits as pairs of fp16 ----
//| local printed = {}
//| local function once(name) if printed[name] then return false end printed[name] = true return true end

// A number that the compiler takes for another one each time: what follows from it is computed where it is used, and not kept in registers.
__device__ __forceinline__ int opaque(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
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
//| -- unpack(f): prints unpack_rows_NAME(), of 4 bytes of a row, and unpack_columns_NAME(), of 2 bytes of a row in the lower half of the word and
//| -- the same 2 bytes of the next row in the upper one: h[i] is then one element of both rows. Numbers come times 2^-power.
//| function unpack(f)
//|   if not once(f.name) then return end
//|   local n = place.registers(f)
//|   if f.bits == 4 then

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
