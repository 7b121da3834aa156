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

constexpr int KEYS = $(widen.keys);  // of a sequence that a block takes at a time
//| local by_token = p.k_scale == 2 or p.v_scale == 2  -- registers are few
constexpr int TOGETHER = $(by_token and 1 or 2);  // pieces of K, and of V, that a thread has on their way

//| local most_pieces = 0
//| for _, x in ipairs(sides) do
//|   local side, f, width = x[1], x[2], x[3]
//|   local piece = f.block == 1 and (width % 16 == 0 and 16 or 8) or f.bits == 8 and 16 or f.shared
//|   local bytes = piece * place.bits(f) // 8
//|   local unit = math.min(bytes, p.kv_align, f.block == 1 and 16 or f.block_bytes & -f.block_bytes)
//|   local by = p[side .. "_scale"]
//|   local power = f.scale_is_e4m3 and f.owed or f.power
constexpr int $(side:upper())_PIECES = $(width // piece);  // of a row
//|   most_pieces = math.max(most_pieces, width // piece)
//|   local n = piece // 8  -- chunks of 16 bytes that it becomes
//|   local in_pairs = n > 1 and width // piece % 2 == 0
// A piece of a row of $(f.name) on its way: what is loaded of it, and where it goes.
struct Piece_$(side) {
  u32 word[$(bytes // 4)];
//|   if f.has_scale and not f.scale_is_e4m3 then
  u16 own;
//|   elseif f.scale_is_e4m3 then
  u32 own;
//|   end
//|   if f.least_at > 0 then
  u16 least;
//|   end
//|   if f.high_at > 0 then
  u32 high;
//|   end
  float scale;
//|   if by == 4 then
  const float *channels;  // scales of a row's columns, `apart` from one to the next
//|   end
  uint4 *to;  // of the row
  int piece;
  bool real, there;  // is one of the row's; is not of a page that is none, whose rows are zeros
};
// Piece number i of `keys` keys from key `first` on, which lie in the workspace from row `row0` on.
__device__ __forceinline__ Piece_$(side) ask_$(side)(const Params &p, int i, int keys, int first, long long row0, int index, int before) {
  Piece_$(side) of = {};
  of.real = i < keys * p.hkv * $(side:upper())_PIECES;
  of.piece = i % $(side:upper())_PIECES;
  const int row = of.real ? i / $(side:upper())_PIECES : 0, at = row / p.hkv, head = row - at * p.hkv, key = first + at;
  of.to = (uint4 *)((u16 *)p.wide_$(side) + ((row0 + at) * p.hkv + head) * $(width));
//|   if p.has_pages then
  const long long page = of.real ? p.page_table[index * (long long)p.page_table_stride + key / p.page_size] : -1, token = key % p.page_size;
  of.there = page >= 0 && page < p.pages;
//|   else
  const long long page = index, token = before + key;
  of.there = of.real;
//|   end
  if (!of.there) return of;
  const unsigned char *const from_row = (const unsigned char *)p.$(side) +
                                        (page * p.$(side)_sb + token * p.$(side)_ss + head * (long long)p.$(side)_sh) * $(f.block_bytes);
//|   if f.block == 1 then
  const unsigned char *const from = from_row + of.piece * $(bytes);
//|   else
//|     local pieces = f.block // piece
  const unsigned char *const block = from_row + of.piece / $(pieces) * $(f.block_bytes);
  const int in = of.piece % $(pieces);
  const unsigned char *const from = block + $(f.codes_at) + in * $(bytes);
//|   end
//|   if unit == 16 then
  const uint4 four = *(const uint4 *)from;
  of.word[0] = four.x, of.word[1] = four.y, of.word[2] = four.z, of.word[3] = four.w;
//|   elseif unit == 8 then
#pragma unroll
  for (int w = 0; w < $(bytes // 4); w += 2) {
    const uint2 two = ((const uint2 *)from)[w / 2];
    of.word[w] = two.x;
    of.word[w + 1] = two.y;
  }
//|   elseif unit == 4 then
#pragma unroll
  for (int w = 0; w < $(bytes // 4); w++) of.word[w] = ((const u32 *)from)[w];
//|   else
#pragma unroll
  for (int w = 0; w < $(bytes // 4); w++) of.word[w] = (u32)((const u16 *)from)[2 * w] | (u32)((const u16 *)from)[2 * w + 1] << 16;
//|   end
//|   if f.scale_is_e4m3 then
  of.own = block[$(f.scale_at) + in];
//|   elseif f.has_scale then
  of.own = *(const u16 *)(block + $(f.scale_at));
//|   end
//|   if f.least_at > 0 then
  of.least = *(const u16 *)(block + $(f.least_at));
//|   end
//|   if f.high_at > 0 then
  of.high = (u32)((const u16 *)(block + $(f.high_at)))[0] | (u32)((const u16 *)(block + $(f.high_at)))[1] << 16;
//|   end
//|   if by == 1 then
  of.scale = p.$(side)_scale[index * p.$(side)_scale_sb + head * p.$(side)_scale_sh];
//|   elseif by == 2 then
  of.scale = p.$(side)_scale[page * p.$(side)_scale_sb + token * p.$(side)_scale_ss + head * p.$(side)_scale_sh];
//|   elseif by == 4 then
  of.channels = p.$(side)_scale + index * p.$(side)_scale_sb + head * p.$(side)_scale_sh;
//|   end
  return of;
}
// Its numbers times all scales, to the workspace.
//|   if in_pairs then
// By all lanes of a warp: two that have neighbouring pieces store them together, whole sectors.
//|   end
__device__ __forceinline__ void widen_$(side)(const Params &p, const Piece_$(side) &of) {
  const int piece = of.piece;
//|   local scale = f32(2.0 ^ power)
//|   if by == 1 or by == 2 then scale = scale .. " * of.scale" end
//|   if f.scale_is_e4m3 then
  u32 own[2];
  scales_of_e4m3(own, of.own);
  [[maybe_unused]] const float scale = $(scale) * halves(own[0]).x;
//|   else
  [[maybe_unused]] const float scale = $(scale);
//|     if f.has_scale then
  const float own = halves(of.own).x;
//|     end
//|   end
//|   if f.least_at > 0 then
  const float least = halves(of.least).x;
//|   end
  float x[$(piece)];
#pragma unroll
  for (int w = 0; w < $(bytes // 4); w++) {
    u32 h[$(place.registers(f))];
    unpack_rows_$(f.name)(h, of.word[w]$(f.high_at > 0 and ", of.high >> 4 * w" or ""));
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
//|       local of_channel = ("(of.there ? of.channels[(piece * %d + %s) * p.%s_scale_ss] : 0.f)"):format(piece, i, side)
//|       return power ~= 0 and ("%s * scale * %s"):format(text, of_channel) or ("%s * %s"):format(text, of_channel)
//|     end
//|     return (power ~= 0 or by > 0 or f.scale_is_e4m3) and text .. " * scale" or text
//|   end
    out[i] = pack2($(value("2 * i")), $(value("2 * i + 1")));
  }
//|   if p.has_pages then
#pragma unroll
  for (int i = 0; i < $(piece // 2); i++) out[i] = of.there ? out[i] : 0;
//|   end
//|   if in_pairs then
  const bool odd = threadIdx.x % 2 == 1;
  uint4 *const first = of.to + (piece - odd) * $(n) + odd;
#pragma unroll
  for (int i = 0; i < $(n); i += 2) {
    u32 other[4];
#pragma unroll
    for (int w = 0; w < 4; w++) other[w] = __shfl_xor_sync(~0u, odd ? out[4 * i + w] : out[4 * i + 4 + w], 1);
    const uint4 even_half = make_uint4(out[4 * i], out[4 * i + 1], out[4 * i + 2], out[4 * i + 3]);
    const uint4 odd_half = make_uint4(out[4 * i + 4], out[4 * i + 5], out[4 * i + 6], out[4 * i + 7]);
    const uint4 from_other = make_uint4(other[0], other[1], other[2], other[3]);
    if (of.real) {
      first[i] = odd ? from_other : even_half;
      first[$(n) + i] = odd ? odd_half : from_other;
    }
  }
//|   else
  if (of.real)
#pragma unroll
    for (int i = 0; i < $(n); i++)
      of.to[piece * $(n) + i] = make_uint4(out[4 * i], out[4 * i + 1], out[4 * i + 2], out[4 * i + 3]);
//|   end
}
//| end

extern "C" __global__ void __launch_bounds__(256, 4) fa_widen(const __grid_constant__ Params p) {
//| if a.cc >= 90 then
  asm volatile("griddepcontrol.wait;" ::: "memory");  // this kernel may have begun before what precedes it has ended
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");  // the next one may stand ready: it waits for all of this one
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
    // Several pieces of a thread are on their way before the first one is looked at.
#pragma unroll 1
    for (int base = threadIdx.x; base - (int)threadIdx.x < keys * p.hkv * $(most_pieces); base += 256 * TOGETHER) {
      Piece_k of_k[TOGETHER];
      Piece_v of_v[TOGETHER];
#pragma unroll
      for (int n = 0; n < TOGETHER; n++) {
        of_k[n] = ask_k(p, base + n * 256, keys, first, row0, index, before);
        of_v[n] = ask_v(p, base + n * 256, keys, first, row0, index, before);
      }
#pragma unroll
      for (int n = 0; n < TOGETHER; n++) {
        widen_k(p, of_k[n]);
        widen_v(p, of_v[n]);
      }
    }
  }
}
}  // namespace widening
