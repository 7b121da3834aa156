//| needs "l.dealt l.k_bytes l.k_type l.partner l.v_bytes l.v_type l.vec l.wide l.words"
//| -- Pieces of rows as they lie in memory, as fp32, and in the types of the cache that are no codes.
//| -- The type of so many bytes.
//| unit_type = { [16] = "uint4", [8] = "uint2", [4] = "u32", [2] = "u16" }
//| local function is_wide(type) return type == "fp32" end
//| function to_float(type, x)
//|   if type == "fp32" then return ("__uint_as_float(%s)"):format(x) end
//|   return ("%s_to_float((u16)(%s))"):format(type, x)
//| end
//| local narrow = {}
//| for _, type in ipairs({ p.dtype, l.k_type, l.v_type, p.rotary > 0 and p.cos or p.dtype }) do narrow[type] = true end
//| if narrow.fp16 then
__device__ __forceinline__ float fp16_to_float(u16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
// Two floats rounded to nearest even, lo in the low half.
__device__ __forceinline__ u32 pack_fp16(float lo, float hi) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
//| end
//| if narrow.bf16 then
__device__ __forceinline__ float bf16_to_float(u16 x) { return __uint_as_float((u32)x << 16); }
// Two floats rounded to nearest even, lo in the low half.
__device__ __forceinline__ u32 pack_bf16(float lo, float hi) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
//| end

// A piece of a row, as it lies in memory.
struct Piece {
  u32 word[WORDS];
};
//| local load = math.max(p.bytes, math.min(16, p.align, l.vec * p.bytes))
//| if l.wide then
// Whether rows begin at multiples of 16 bytes.
__device__ __forceinline__ bool is_wide(const void *rows, long long sb, long long ss, long long sh) {
  return ((u64)rows | (u64)((sb | ss | sh) * $(p.bytes))) % 16 == 0;
}
__device__ __forceinline__ void load(Piece &piece, const char *from, bool wide) {
  if (wide) {
#pragma unroll
    for (int i = 0; i < WORDS; i += 4) {
      const uint4 x = *(const uint4 *)(from + 4 * i);
      piece.word[i] = x.x, piece.word[i + 1] = x.y, piece.word[i + 2] = x.z, piece.word[i + 3] = x.w;
    }
    return;
  }
//| else
__device__ __forceinline__ void load(Piece &piece, const char *from) {
//| end
//| if load == 2 then
  piece = Piece();
#pragma unroll
  for (int i = 0; i < VEC; i++) piece.word[i / 2] |= (u32)((const u16 *)from)[i] << (i % 2 * 16);
//| else
//|   local words = load // 4
#pragma unroll
  for (int i = 0; i < WORDS; i += $(words)) {
    const $(unit_type[load]) x = *(const $(unit_type[load]) *)(from + 4 * i);
//|   for i, member in ipairs({ "x", "y", "z", "w" }) do
//|     if i <= words then
    piece.word[i$(i > 1 and " + " .. i - 1 or "")] = x$(words > 1 and "." .. member or "");
//|     end
//|   end
  }
//| end
}

// Where pieces lie in shared memory: those of neighbouring threads side by side.
//| if l.dealt then
// Lanes of a team read pieces of two numbers s at a time, which lie in different banks.
//| end
__device__ __forceinline__ u32 place_in_ring(int slot, int s, int thread) {
  return (u32)(slot * SHARE + s) * (THREADS * WORDS * 4$(l.dealt and " + 32" or "")) + (u32)thread * SLOT;
}
// A piece on its way there; zeros where it is not there.
__device__ __forceinline__ void copy_piece(u32 to, const char *from, bool there$(l.wide and ", bool wide" or "")) {
//| if l.wide then
  if (wide) {
#pragma unroll
    for (int i = 0; i < WORDS * 4; i += 16) cp_async<16>(to + i / 16 * (THREADS * 16), from + i, there);
    return;
  }
//| end
//| if load >= 4 then
#pragma unroll
  for (int i = 0; i < WORDS * 4; i += $(load)) cp_async<$(load)>(to + i / SLOT * (THREADS * SLOT) + i % SLOT, from + i, there);
//| else
  Piece piece = Piece();
  if (there) load(piece, from$(l.wide and ", false" or ""));
#pragma unroll
  for (int i = 0; i < WORDS; i++) store_shared(to + i * 4 / SLOT * (THREADS * SLOT) + i * 4 % SLOT, piece.word[i]);
//| end
}
// A piece that has arrived.
__device__ __forceinline__ Piece piece_of(u32 from) {
  Piece piece;
//| if l.words % 4 == 0 then
#pragma unroll
  for (int i = 0; i < WORDS; i += 4) {
    const uint4 x = load_shared_x4(from + i / 4 * (THREADS * 16));
    piece.word[i] = x.x, piece.word[i + 1] = x.y, piece.word[i + 2] = x.z, piece.word[i + 3] = x.w;
  }
//| else
#pragma unroll
  for (int i = 0; i < WORDS; i++) piece.word[i] = load_shared(from + i * 4 / SLOT * (THREADS * SLOT) + i * 4 % SLOT);
//| end
  return piece;
}
//| if l.partner == "any" then
// One of its columns as fp32.
__device__ __forceinline__ float column_of(u32 from, int i) {
//|   if p.bytes == 4 then
  return __uint_as_float(load_shared(from + i * 4 / SLOT * (THREADS * SLOT) + i * 4 % SLOT));
//|   else
  const u32 word = load_shared(from + i / 2 * 4 / SLOT * (THREADS * SLOT) + i / 2 * 4 % SLOT);
  return $(to_float(p.dtype, "word >> (i % 2 * 16)"));
//|   end
}
//| end

// Its columns as fp32.
__device__ __forceinline__ void unpack(float (&x)[VEC], const Piece &piece) {
#pragma unroll
  for (int i = 0; i < VEC; i++)
//| if p.bytes == 4 then
    x[i] = __uint_as_float(piece.word[i]);
//| else
    x[i] = $(to_float(p.dtype, "piece.word[i / 2] >> (i % 2 * 16)"));
//| end
}

//| -- A function that stores a piece in a type.
//| local function stores(type, bytes)
//|   local unit = math.max(bytes, math.min(16, p.align, l.vec * bytes))
// The columns of a piece in the type of the destination, rounded to nearest even.
__device__ __forceinline__ void store_$(type)(char *to, const float (&x)[VEC]) {
//|   local per = unit // bytes
#pragma unroll
  for (int i = 0; i < VEC; i += $(per)) {
//|   local function word(n)
//|     if bytes == 4 then return ("__float_as_uint(x[i + %d])"):format(n) end
//|     return ("pack_%s(x[i + %d], x[i + %d])"):format(type, 2 * n, 2 * n + 1)
//|   end
//|   if unit == 16 then
    *(uint4 *)(to + i * $(bytes)) = make_uint4($(word(0)), $(word(1)), $(word(2)), $(word(3)));
//|   elseif unit == 8 then
    *(uint2 *)(to + i * $(bytes)) = make_uint2($(word(0)), $(word(1)));
//|   elseif unit == 4 then
    *(u32 *)(to + i * $(bytes)) = $(word(0));
//|   else
    *(u16 *)(to + i * $(bytes)) = (u16)pack_$(type)(x[i], 0.f);
//|   end
  }
}

//| end
//| local stored = {}
//| for _, type in ipairs({ { p.dtype, p.bytes }, { l.k_type, l.k_bytes }, { l.v_type, l.v_bytes } }) do
//|   if not stored[type[1]] and not codes(type[1], a.cc) then
//|     stored[type[1]] = true
//|     stores(type[1], type[2])
//|   end
//| end
