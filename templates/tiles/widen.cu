//| -- The kernel before those of a family that does not read few bits: K and V become 16 bits, a sequence after the other as they are packed or
//| -- padded, in pages too. p: the problem as it was asked for.
//| c, l = {}, {}  -- not those of the family
//| local place = include "tiles/codes.lua"
//| local widen = include "tiles/widening.lua"
//| local wk = include("work/work.lua").of(p, l)
//| local sides = { { "k", codes(p.kv, a.cc), p.d }, { "v", codes(p.v, a.cc) or codes(p.kv, a.cc), p.dv } }

// Few bits become 16, for the kernels after this one.
namespace widening {
//| include "machine/prelude.cu"

//| include "machine/unpack.cu"

//| include "pairs/sequence.cu"

//| include "pairs/seen_by_some.cu"
//| for _, x in ipairs(sides) do
//|   unpack(x[2])
//|   if x[2].scale_is_e4m3 then unpack_scales(a.cc) end
//| end

// The two halves of a register.
__device__ __forceinline__ float2 halves(u32 h) {
  float2 x;
  asm("{.reg .b16 lo, hi;\n\tmov.b32 {lo, hi}, %2;\n\tcvt.f32.f16 %0, lo;\n\tcvt.f32.f16 %1, hi;}" : "=f"(x.x), "=f"(x.y) : "r"(h));
  return x;
}
__device__ __forceinline__ float half_at(const unsigned char *from) { return halves(*(const u16 *)from).x; }

constexpr int KEYS = $(widen.keys);  // of a sequence that a block takes at a time

//| local names = { [16] = "uint4", [8] = "uint2", [4] = "u32", [2] = "u16" }
//| for _, x in ipairs(sides) do
//|   local side, f, width = x[1], x[2], x[3]
//|   local piece = f.block == 1 and (width % 16 == 0 and 16 or 8) or f.bits == 8 and 16 or f.shared
//|   local bytes = piece * place.bits(f) // 8
//|   local unit = math.min(bytes, p.kv_align, f.block == 1 and 16 or f.block_bytes & -f.block_bytes)
//|   local by = p[side .. "_scale"]
//|   local power = f.scale_is_e4m3 and f.owed or f.power
constexpr int $(side:upper())_PIECES = $(width // piece);  // of a row
//|   local n = piece // 8  -- chunks of 16 bytes that it becomes
//|   local in_pairs = n > 1 and width // piece % 2 == 0
// Piece number `piece` of a row of $(f.name), times `scale`.
//|   if in_pairs then
// By all lanes of a warp: two that have neighbouring pieces store them together, whole sectors.
//|   end
//|   local stores = in_pairs and ", bool stores" or ""
//|   if by == 4 then
// channels: the scales of a row's columns, `apart` from one to the next.
//|     stores = ", const float *channels, long long apart" .. stores
//|   end
__device__ __forceinline__ void widen_$(side)(uint4 *to, const unsigned char *row, int piece, float scale$(stores)) {
//|   if f.block == 1 then
  const unsigned char *const from = row + piece * $(bytes);
//|   else
//|     local pieces = f.block // piece
  const unsigned char *const block = row + piece / $(pieces) * $(f.block_bytes);
  const int in = piece % $(pieces);
  const unsigned char *const from = block + $(f.codes_at) + in * $(bytes);
//|   end
  u32 word[$(bytes // 4)];
//|   if unit == 16 then
  *(uint4 *)word = *(const uint4 *)from;
//|   elseif unit == 8 then
#pragma unroll
  for (int i = 0; i < $(bytes // 8); i++) {
    const uint2 two = ((const uint2 *)from)[i];
    word[2 * i] = two.x;
    word[2 * i + 1] = two.y;
  }
//|   elseif unit == 4 then
#pragma unroll
  for (int i = 0; i < $(bytes // 4); i++) word[i] = ((const u32 *)from)[i];
//|   else
#pragma unroll
  for (int i = 0; i < $(bytes // 4); i++) word[i] = (u32)((const u16 *)from)[2 * i] | (u32)((const u16 *)from)[2 * i + 1] << 16;
//|   end
//|   if f.scale_is_e4m3 then
  u32 own[2];
  scales_of_e4m3(own, (u32)block[$(f.scale_at) + in]);
  scale *= halves(own[0]).x;
//|   elseif f.has_scale then
  const float own = half_at(block + $(f.scale_at));
//|   end
//|   if f.least_at > 0 then
  const float least = half_at(block + $(f.least_at));
//|   end
//|   if f.high_at > 0 then
  const u32 high = (u32)((const u16 *)(block + $(f.high_at)))[0] | (u32)((const u16 *)(block + $(f.high_at)))[1] << 16;
//|   end
  float x[$(piece)];
#pragma unroll
  for (int w = 0; w < $(bytes // 4); w++) {
    u32 h[$(place.registers(f))];
    unpack_rows_$(f.name)(h, word[w]$(f.high_at > 0 and ", high >> 4 * w" or ""));
//|   for r = 0, place.registers(f) - 1 do
    {
      const float2 two = halves(h[$(r)]);
//|     for half = 0, 1 do
//|       local byte, code = place.place(f, r, half)
//|       local element = code == 0 and byte or piece // 2 + byte
      x[$(element) + 4 * w] = $(half == 0 and "two.x" or "two.y");
//|     end
    }
//|   end
  }
  u32 out[$(piece // 2)];
#pragma unroll
  for (int i = 0; i < $(piece // 2); i++) {
//|   local function value(i)
//|     local text = ("x[%s]"):format(i)
//|     if f.has_scale and not f.scale_is_e4m3 then
//|       text = f.least_at > 0 and ("(own * %s + least)"):format(text) or ("own * %s"):format(text)
//|     end
//|     if by == 4 then
//|       local of_channel = ("channels[(piece * %d + %s) * apart]"):format(piece, i)
//|       return power ~= 0 and ("%s * scale * %s"):format(text, of_channel) or ("%s * %s"):format(text, of_channel)
//|     end
//|     return (power ~= 0 or by > 0 or f.scale_is_e4m3) and text .. " * scale" or text
//|   end
    out[i] = pack2($(value("2 * i")), $(value("2 * i + 1")));
  }
//|   if in_pairs then
  const bool odd = threadIdx.x % 2 == 1;
  uint4 *const first = to + (piece - odd) * $(n) + odd;
#pragma unroll
  for (int i = 0; i < $(n); i += 2) {
    u32 other[4];
#pragma unroll
    for (int w = 0; w < 4; w++) other[w] = __shfl_xor_sync(~0u, odd ? out[4 * i + w] : out[4 * i + 4 + w], 1);
    const uint4 even_half = make_uint4(out[4 * i], out[4 * i + 1], out[4 * i + 2], out[4 * i + 3]);
    const uint4 odd_half = make_uint4(out[4 * i + 4], out[4 * i + 5], out[4 * i + 6], out[4 * i + 7]);
    const uint4 from_other = make_uint4(other[0], other[1], other[2], other[3]);
    if (stores) {
      first[i] = odd ? from_other : even_half;
      first[$(n) + i] = odd ? odd_half : from_other;
    }
  }
//|   else
#pragma unroll
  for (int i = 0; i < $(n); i++)
    to[piece * $(n) + i] = make_uint4(out[4 * i], out[4 * i + 1], out[4 * i + 2], out[4 * i + 3]);
//|   end
}
//| end

extern "C" __global__ void __launch_bounds__(256) fa_widen(const __grid_constant__ Params p) {
//| if a.cc >= 90 then
  asm volatile("griddepcontrol.wait;" ::: "memory");  // this kernel may have begun before what precedes it has ended
//| end
  const int parts = (p.sk + KEYS - 1) / KEYS;
  const long long tiles = (long long)p.b * parts;
  for ($(wk.steps("long long", "tile", "tiles"))) {
    const int index = (int)(tile / parts), part = (int)(tile - (long long)index * parts);
    const Sequence sequence = sequence_of(p, index);
    const int first = first_seen(sequence) + part * KEYS, keys = min(KEYS, end_seen(sequence) - first);
//| if p.has_lengths then
    const int before = sequence.first_k;
    const long long row0 = p.cu_seqlens_k != nullptr ? before + first : (long long)index * p.sk + first;  // in the workspace
//| else
    const int before = 0;
    const long long row0 = (long long)index * p.sk + first;
//| end
//| for _, x in ipairs(sides) do
//|   local side, f, width = x[1], x[2], x[3]
//|   local by, N = p[side .. "_scale"], side:upper()
//|   local piece = f.block == 1 and (width % 16 == 0 and 16 or 8) or f.bits == 8 and 16 or f.shared
//|   local in_pairs = piece > 8 and width // piece % 2 == 0
    const int pieces_$(side) = keys * p.hkv * $(N)_PIECES;
//|   if in_pairs then
    for (int base = 0; base < pieces_$(side); base += 256) {
      const bool real = base + (int)threadIdx.x < pieces_$(side);
      const int i = real ? base + (int)threadIdx.x : (int)threadIdx.x % 2;
//|   else
    for (int i = threadIdx.x; i < pieces_$(side); i += 256) {
//|   end
      const int piece = i % $(N)_PIECES, row = i / $(N)_PIECES, at = row / p.hkv, head = row - at * p.hkv, key = first + at;
      uint4 *const to = (uint4 *)((u16 *)p.wide_$(side) + ((row0 + at) * p.hkv + head) * $(width));
//|   if p.has_pages then
//|     local found = in_pairs and "found" or "page"
      const long long $(found) = p.page_table[index * (long long)p.page_table_stride + key / p.page_size], token = key % p.page_size;
//|     if in_pairs then
      const bool is_page = found >= 0 && found < p.pages;
      const long long page = is_page ? found : 0;
      if (real && !is_page) {  // as everywhere: its rows are zeros
//|     else
      if (page < 0 || page >= p.pages) {  // as everywhere: its rows are zeros
//|     end
#pragma unroll
        for (int x = 0; x < $(width // 8); x += $(N)_PIECES)
          if (piece + x < $(width // 8)) to[piece + x] = make_uint4(0, 0, 0, 0);
//|     if not in_pairs then
        continue;
//|     end
      }
//|   else
      const long long page = index, token = before + key;
//|   end
      const unsigned char *const from = (const unsigned char *)p.$(side) +
                                        (page * p.$(side)_sb + token * p.$(side)_ss + head * (long long)p.$(side)_sh) * $(f.block_bytes);
//|   local power = f.scale_is_e4m3 and f.owed or f.power
//|   local scale = f32(2.0 ^ power)
//|   if by == 1 then scale = scale .. (" * p.%s_scale[index * p.%s_scale_sb + head * p.%s_scale_sh]"):format(side, side, side) end
//|   if by == 2 then
//|     scale = scale .. (" * p.%s_scale[page * p.%s_scale_sb + token * p.%s_scale_ss + head * p.%s_scale_sh]"):format(side, side, side, side)
//|   end
//|   local channels = ""
//|   if by == 4 then
//|     channels = (", p.%s_scale + index * p.%s_scale_sb + head * p.%s_scale_sh, p.%s_scale_ss"):format(side, side, side, side)
//|   end
      widen_$(side)(to, from, piece, $(scale)$(channels)$(in_pairs and (p.has_pages and ", real && is_page" or ", real") or ""));
    }
//| end
  }
}
}  // namespace widening
