//| local wk = include("work/work.lua").of(p, l)
// fagen $(version), new rows into a cache of K and V$(p.rotary > 0 and ", rotated" or ""); rows of Q beside them.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

// ---- the problem ----
constexpr int D = $(p.d), DV = $(p.dv);  // columns of a row of K and of Q; of V
//| if p.rotary > 0 then
constexpr int ROTARY = $(p.rotary);      // of them are rotated
constexpr int HALF = ROTARY / 2;         // cosines of a position, and sines after them
//| end

// ---- the config ----
constexpr int THREADS = $(l.threads);
constexpr int HEADS = $(c.token_heads);  // of a token that a team of lanes does at a time

// ---- what follows from them ----
constexpr int VEC = $(l.vec);      // columns of a piece
constexpr int LANES = $(l.lanes);  // of a team: one holds pieces lane, lane + LANES, ...
constexpr int SHARE = $(l.share);  // pieces of a lane
constexpr int WORDS = $(l.words);  // of a piece as it is loaded
constexpr int TEAMS = THREADS / LANES;
//| if l.angles and p.rotary > 0 then
constexpr int ANGLES = $(l.angles);  // cosines that the columns of a piece have
//| end

//| include "machine/prelude.cu"

//| -- The type of so many bytes.
//| local unit_type = { [16] = "uint4", [8] = "uint2", [4] = "u32", [2] = "u16" }
//| local function is_wide(type) return type == "fp32" end
//| local function to_float(type, x)
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
//| if l.k_format or l.v_format then
//|   include "tiles/quantize.cu"
//|   for _, f in ipairs({ l.k_format or false, l.v_format or false }) do
//|     if f then quantizer(f) end
//|   end
//| end
//| if p.rotary > 0 then
// Cosines and sines of the columns of a piece that begins at `column`, out of a position's row.
__device__ __forceinline__ void load_angles(float (&c)[ANGLES], float (&s)[ANGLES], const char *row, int column) {
//|   if l.partner == "any" then
#pragma unroll
  for (int i = 0; i < VEC; i++) {
//|     if p.has_rotary_pairs then
    const int at = (column + i) / 2;
//|     else
    const int at = (column + i) % HALF;
//|     end
    if (column + i < ROTARY) {
//|     local element = l.angle_bytes == 4 and "u32" or "u16"
      c[i] = $(to_float(p.cos, ("((const %s *)row)[at]"):format(element)));
      s[i] = $(to_float(p.cos, ("((const %s *)row)[HALF + at]"):format(element)));
    }
  }
//|   else
//|     if l.partner == "pairs" then
  const int first = column / 2;
//|     else
  const int first = column < HALF ? column : column - HALF;
//|     end
//|     local unit, words = l.angle_unit, l.angle_unit // 4
//|     local per = unit // l.angle_bytes
#pragma unroll
  for (int i = 0; i < ANGLES; i += $(per)) {
//|     for _, of in ipairs({ { "c", "" }, { "s", "HALF + " } }) do
    {
      const $(unit_type[unit]) x = *(const $(unit_type[unit]) *)(row + ($(of[2])first + i) * $(l.angle_bytes));
//|       for n = 0, per - 1 do
//|         local word = n * l.angle_bytes // 4
//|         local text = words > 1 and "x." .. ({ "x", "y", "z", "w" })[word + 1] or "x"
//|         if l.angle_bytes == 2 and unit > 2 then text = n % 2 == 1 and text .. " >> 16" or text end
      $(of[1])[i$(n > 0 and " + " .. n or "")] = $(to_float(p.cos, text));
//|       end
    }
//|     end
  }
//|   end
}

// Each product and each sum is rounded by itself, so that the result is one number on every chip: x cos - y sin, and x cos + y sin.
//|   if l.partner ~= "halves" then
__device__ __forceinline__ float turn_first(float x, float y, float c, float s) {
  return __fadd_rn(__fmul_rn(x, c), -__fmul_rn(y, s));
}
//|   end
__device__ __forceinline__ float turn_second(float x, float y, float c, float s) { return __fadd_rn(__fmul_rn(x, c), __fmul_rn(y, s)); }
//| end

// ---- where rows go ----
//| if p.has_lengths then
//|   include "pairs/rows.cu"
// The last sequence whose first row is not after a packed row.
__device__ __forceinline__ int sequence_with(const Params &p, int token) {
  int low = 0, high = p.b;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (p.cu_seqlens_q[middle] <= token)
      low = middle;
    else
      high = middle;
  }
  return low;
}
//| end

// A row's place in the cache, and the position that it is rotated by.
struct Place {
  long long page;  // of a cache without pages: the sequence
  long long row;   // in it
//| if p.has_slots then
  long long slot;
//| end
//| if l.folded then
  int sequence;
//| end
//| if p.rotary > 0 then
  long long position;
  bool turns;  // it has cosines and sines
//| end
  bool used;   // it is a row of some sequence
  bool kept;   // it has a place
};

//| local batch = p.has_lengths and "p.cu_seqlens_q != nullptr ? 0 : token / p.sq" or "token / p.sq"
__device__ __forceinline__ Place place_of(const Params &p, int token) {
  Place at;
  at.used = true;
//| if l.sequences then
//|   if p.has_lengths then
  const bool packed = p.cu_seqlens_q != nullptr;
  const int index = packed ? sequence_with(p, token) : token / p.sq;
  const Rows q = rows_of(p.cu_seqlens_q, p.seqlens_q, index, p.sq, p.total_q);
  const Rows k = rows_of(p.cu_seqlens_k, p.seqlens_k, index, p.sk, p.total_k);
  const int i = token - (packed ? q.first : index * p.sq);
  [[maybe_unused]] const int key = k.length - q.length + i;
  at.used = i >= 0 && i < q.length;
//|   else
  const int index = token / p.sq;
  [[maybe_unused]] const int key = p.sk - p.sq + token % p.sq;
//|   end
//| end
//| if l.folded then
  at.sequence = index;
//| end
//| if p.has_slots then
  at.slot = p.slots[token];
  at.kept = at.used && at.slot >= 0 && at.slot < (long long)p.pages * p.page_size;
  if (at.kept) {
    at.page = at.slot >> 32 ? at.slot / p.page_size : (u32)at.slot / (u32)p.page_size;
    at.row = at.slot - at.page * p.page_size;
  }
//| else
  at.kept = at.used && key >= 0;
//|   if p.has_pages then
  if (at.kept) {
    const int page = p.page_table[index * (long long)p.page_table_stride + key / p.page_size];
    at.page = page;
    at.row = key % p.page_size;
    at.kept = page >= 0 && page < p.pages;
  }
//|   elseif p.has_lengths then
  at.page = p.cu_seqlens_k != nullptr ? 0 : index;
  at.row = k.first + key;
//|   else
  at.page = index;
  at.row = key;
//|   end
//| end
//| if p.rotary > 0 then
//|   if p.has_positions then
  at.position = ((const $(p.has_positions64 and "long long" or "int") *)p.positions)[token];
//|   else
  at.position = key;
//|   end
  at.turns = at.position >= 0 && at.position < p.rotary_positions;
  at.kept = at.kept && at.turns;
//| end
  return at;
}

//| local tokens = p.has_lengths and "(p.cu_seqlens_q != nullptr ? p.total_q : p.b * p.sq)" or "p.b * p.sq"
//| if p.has_slots and c.claims == 0 then
// Whether a later row goes to the same slot, asked by all lanes of a team.
__device__ __forceinline__ bool is_overtaken(const Params &p, int token, const Place &at, bool asks, int tokens, int lane) {
  constexpr int BATCH = 8;  // slots that are on their way at a time
  bool later = false;
  for (int i = token + 1 + lane; asks && i < tokens; i += LANES * BATCH) {
    long long slot[BATCH];
#pragma unroll
    for (int j = 0; j < BATCH; j++) slot[j] = p.slots[min(i + j * LANES, tokens - 1)];
    bool same = false;
#pragma unroll
    for (int j = 0; j < BATCH; j++) same = same || (slot[j] == at.slot && i + j * LANES < tokens);
    for (int j = i; same && j < tokens && j < i + LANES * BATCH; j += LANES)
      if (p.slots[j] == at.slot && place_of(p, j).kept) later = true;
  }
//|   if l.lanes > 1 then
#pragma unroll
  for (int i = LANES / 2; i > 0; i /= 2) later = __shfl_xor_sync(~0u, (int)later, i) || later;
//|   end
  return later;
}
//| elseif p.has_slots then
// The table: of each slot that some row goes to, the last such row, counted from 1. 0: free.
struct Claims {
  int *row;
  u32 entries;
};
__device__ __forceinline__ Claims claims_of(const Params &p, int tokens) { return {(int *)p.claims, 2u * (u32)tokens}; }
__device__ __forceinline__ u32 first_entry(const Claims &claims, long long slot) {
  const u64 x = (u64)slot * 0x9e3779b97f4a7c15ull;
  return (u32)((x >> 32) * claims.entries >> 32);
}

extern "C" __global__ void __launch_bounds__(THREADS) fa_clear(const __grid_constant__ Params p) {
  const int tokens = $(tokens);
//|   if a.cc >= 90 then
  asm volatile("griddepcontrol.wait;" ::: "memory");
//|   end
  for ($(wk.steps("long long", "base", "tokens", "THREADS")))
    if (base + threadIdx.x < tokens) ((uint2 *)p.claims)[base + threadIdx.x] = make_uint2(0, 0);
}

extern "C" __global__ void __launch_bounds__(THREADS) fa_claim(const __grid_constant__ Params p) {
  const int tokens = $(tokens);
  const Claims claims = claims_of(p, tokens);
//|   if a.cc >= 90 then
  asm volatile("griddepcontrol.wait;" ::: "memory");
//|   end
  for ($(wk.steps("long long", "base", "tokens", "THREADS"))) {
    if (base + threadIdx.x >= tokens) continue;
    const int token = (int)(base + threadIdx.x);
    const Place at = place_of(p, token);
    if (!at.kept) continue;
    for (u32 entry = first_entry(claims, at.slot);; entry = entry + 1 == claims.entries ? 0 : entry + 1) {
      const int other = atomicCAS(claims.row + entry, 0, token + 1);
      if (other == 0) break;
      if (p.slots[other - 1] != at.slot) continue;
      atomicMax(claims.row + entry, token + 1);
      break;
    }
  }
}

// Whether a later row goes to the same slot.
__device__ __forceinline__ bool is_overtaken(const Params &p, int token, const Place &at, bool asks, int tokens, int) {
  if (!asks) return false;
  const Claims claims = claims_of(p, tokens);
  for (u32 entry = first_entry(claims, at.slot);; entry = entry + 1 == claims.entries ? 0 : entry + 1) {
    const int last = claims.row[entry] - 1;
    if (p.slots[last] == at.slot) return last != token;
  }
}
//| end

//| local function transforms(of_v) return of_v and p.has_hadamard_v or not of_v and p.has_hadamard_k end
//| if p.has_hadamard_k or p.has_hadamard_v then
// The Hadamard transform of a row, in the order of Sylvester: sums and differences of columns 1, 2, 4, ... apart, each rounded, and at last
// the factor.
template <int WIDTH>
__device__ __forceinline__ void transform(float (&x)[SHARE][VEC], int lane, float factor) {
#pragma unroll
  for (int step = 1; step < WIDTH; step *= 2) {
    if (step < VEC) {
#pragma unroll
      for (int s = 0; s < SHARE; s++)
#pragma unroll
        for (int i = 0; i < VEC; i++) {
          if (i & step) continue;
          const float a = x[s][i], b = x[s][(i | step) % VEC];
          x[s][i] = __fadd_rn(a, b);
          x[s][(i | step) % VEC] = __fadd_rn(a, -b);
        }
    } else if (step < VEC * LANES) {
#pragma unroll
      for (int s = 0; s < SHARE; s++)
#pragma unroll
        for (int i = 0; i < VEC; i++) {
          const float other = __shfl_xor_sync(~0u, x[s][i], step / VEC % 32);
          x[s][i] = lane & (step / VEC) ? __fadd_rn(other, -x[s][i]) : __fadd_rn(x[s][i], other);
        }
    } else {
#pragma unroll
      for (int s = 0; s < SHARE; s++)
#pragma unroll
        for (int i = 0; i < VEC; i++) {
          const int far = (s | step / (VEC * LANES)) % SHARE;
          if (s & (step / (VEC * LANES)) || s * (VEC * LANES) >= WIDTH) continue;
          const float a = x[s][i], b = x[far][i];
          x[s][i] = __fadd_rn(a, b);
          x[far][i] = __fadd_rn(a, -b);
        }
    }
  }
#pragma unroll
  for (int s = 0; s < SHARE; s++)
#pragma unroll
    for (int i = 0; i < VEC; i++) x[s][i] = __fmul_rn(x[s][i], factor);
}
//| end

extern "C" __global__ void __launch_bounds__(THREADS) fa_append(const __grid_constant__ Params p) {
  const int lane = threadIdx.x % LANES, team = threadIdx.x / LANES;
  const int tokens = $(tokens);
  // Items of a token: some heads of K, some of V, some of Q.
  const int of_k = (p.hkv + HEADS - 1) / HEADS, of_q = p.q != nullptr ? (p.hq + HEADS - 1) / HEADS : 0, of_all = 2 * of_k + of_q;
  const long long items = (long long)tokens * of_all;
//| if a.cc >= 90 then
  asm volatile("griddepcontrol.wait;" ::: "memory");  // this kernel may have begun before what precedes it has ended
//| end
  for ($(wk.steps("long long", "base", "items", "TEAMS"))) {
    const bool real = base + team < items;
    const long long item = real ? base + team : 0;
    // Teams of a warp mostly have rows of one kind.
    const int part = (int)(item >> 32 ? item / tokens : (u32)item / (u32)tokens), token = (int)(item - (long long)part * tokens);
    const bool is_q = part >= 2 * of_k, is_v = !is_q && part >= of_k;
    const int first = (part - (is_q ? 2 * of_k : is_v ? of_k : 0)) * HEADS, heads = is_q ? p.hq : p.hkv;
    const int pieces = is_v ? DV / VEC : D / VEC;
    const long long batch = $(batch), query = token - batch * p.sq;

    // Rows are on their way while their place is found.
    const char *from;
    long long from_sh;
    if (is_q) {
      from = (const char *)p.q + (batch * p.q_sb + query * p.q_ss) * $(p.bytes);
      from_sh = p.q_sh;
    } else if (is_v) {
      from = (const char *)p.new_v + (batch * p.new_v_sb + query * p.new_v_ss) * $(p.bytes);
      from_sh = p.new_v_sh;
    } else {
      from = (const char *)p.new_k + (batch * p.new_k_sb + query * p.new_k_ss) * $(p.bytes);
      from_sh = p.new_k_sh;
    }
//| if l.wide then
    const bool wide = is_q   ? is_wide(p.q, p.q_sb, p.q_ss, p.q_sh)
                      : is_v ? is_wide(p.new_v, p.new_v_sb, p.new_v_ss, p.new_v_sh)
                             : is_wide(p.new_k, p.new_k_sb, p.new_k_ss, p.new_k_sh);
//| end
    Piece piece[HEADS][SHARE];
//| if l.partner == "halves" then
    Piece partner[HEADS][SHARE];  // half a rotation away
//| end
#pragma unroll
    for (int h = 0; h < HEADS; h++)
#pragma unroll
      for (int s = 0; s < SHARE; s++) {
        const int at = lane + s * LANES;
        const char *const row = from + (first + h) * from_sh * $(p.bytes);
        const bool there = real && first + h < heads && at < pieces;
        piece[h][s] = Piece();
        if (there) load(piece[h][s], row + at * (VEC * $(p.bytes))$(l.wide and ", wide" or ""));
//| if l.partner == "halves" then
        partner[h][s] = Piece();
        if (there && !is_v && at < ROTARY / VEC)
          load(partner[h][s], row + (at < HALF / VEC ? at + HALF / VEC : at - HALF / VEC) * (VEC * $(p.bytes))$(l.wide and ", wide" or ""));
//| end
      }

    const Place place = place_of(p, token);
    bool stores = real && place.used && (is_q || place.kept);
//| if p.has_slots then
    if (is_overtaken(p, token, place, !is_q && place.kept, tokens, lane)) stores = false;
//| end
    if (p.skipped != nullptr && real && part == 0 && lane == 0 && place.used && !place.kept) atomicAdd(p.skipped, 1ull);

//| -- Scales that are given, of all heads at once: each would wait for memory.
//| for _, side in ipairs({ "k", "v" }) do
//|   local f, given = l[side .. "_format"], p[side .. "_scale"]
//|   if f and not f.has_scale and given > 0 then
    float given_$(side)[HEADS];
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
      given_$(side)[h] = 1.f;
      if (stores && first + h < heads && $(side == "v" and "is_v" or "!is_v && !is_q"))
//|     if given == 1 then
        given_$(side)[h] = p.$(side)_scale[place.sequence * p.$(side)_scale_sb + (first + h) * p.$(side)_scale_sh];
//|     else
        given_$(side)[h] =
            p.$(side)_scale[place.page * p.$(side)_scale_sb + place.row * p.$(side)_scale_ss + (first + h) * p.$(side)_scale_sh];
//|     end
    }
//|   end
//| end

    char *to;
    long long to_sh;
    if (is_q) {
      to = (char *)p.q_out + (batch * p.q_out_sb + query * p.q_out_ss) * $(p.bytes);
      to_sh = p.q_out_sh * $(p.bytes);
    } else if (is_v) {
      to = (char *)p.v + (stores ? place.page * p.v_sb + place.row * p.v_ss : 0) * $(l.v_bytes);
      to_sh = p.v_sh * $(l.v_bytes);
    } else {
      to = (char *)p.k + (stores ? place.page * p.k_sb + place.row * p.k_ss : 0) * $(l.k_bytes);
      to_sh = p.k_sh * $(l.k_bytes);
    }
//| if p.rotary > 0 then
    const bool turns = stores && !is_v && place.turns;
//|   if l.partner == "own" then
    // Pieces lane and lane + LANES turn together.
    float cosine[ANGLES] = {}, sine[ANGLES] = {};
    if (turns) load_angles(cosine, sine, (const char *)p.cos_sin + place.position * (ROTARY * $(l.angle_bytes)), lane * VEC);
//|   else
    float cosine[SHARE][ANGLES] = {}, sine[SHARE][ANGLES] = {};
#pragma unroll
    for (int s = 0; s < SHARE; s++) {
      if (turns && (lane + s * LANES) * VEC < ROTARY)
        load_angles(cosine[s], sine[s], (const char *)p.cos_sin + place.position * (ROTARY * $(l.angle_bytes)), (lane + s * LANES) * VEC);
//|   if l.partner == "halves" then
#pragma unroll
      for (int i = 0; i < ANGLES; i++)
        if ((lane + s * LANES) * VEC < HALF) sine[s][i] = -sine[s][i];  // of a first half, whose partners are subtracted
//|   end
    }
//|   end
//| end

#pragma unroll
    for (int h = 0; h < HEADS; h++) {
      const bool there = stores && first + h < heads;
      float x[SHARE][VEC];
#pragma unroll
      for (int s = 0; s < SHARE; s++) {
//| if l.k_format or l.v_format then
        if (!there) piece[h][s] = Piece();  // rows of no sequence may hold what was never written
//| end
        unpack(x[s], piece[h][s]);
//| if p.rotary > 0 and l.partner ~= "own" then
        const int column = (lane + s * LANES) * VEC;
//|   if l.partner == "halves" then
        if (turns && column < ROTARY) {
          float y[VEC];
          unpack(y, partner[h][s]);
#pragma unroll
          for (int i = 0; i < VEC; i++)
            x[s][i] = turn_second(x[s][i], y[i], cosine[s][i], sine[s][i]);
        }
//|   elseif l.partner == "pairs" then
        if (turns && column < ROTARY)
#pragma unroll
          for (int i = 0; i < VEC; i += 2) {
            const float a = x[s][i], b = x[s][i + 1];
            x[s][i] = turn_first(a, b, cosine[s][i / 2], sine[s][i / 2]);
            x[s][i + 1] = turn_second(b, a, cosine[s][i / 2], sine[s][i / 2]);
          }
//|   else
        if (turns && there && column < ROTARY) {
          const char *const row = from + (first + h) * from_sh * $(p.bytes);
#pragma unroll
          for (int i = 0; i < VEC; i++) {
            if (column + i >= ROTARY) continue;
//|     local element = p.bytes == 4 and "u32" or "u16"
//|     if p.has_rotary_pairs then
            const bool is_first = (column + i) % 2 == 0;
            const int other = is_first ? column + i + 1 : column + i - 1;
//|     else
            const bool is_first = column + i < HALF;
            const int other = is_first ? column + i + HALF : column + i - HALF;
//|     end
            const float y = $(to_float(p.dtype, ("((const %s *)row)[other]"):format(element)));
            x[s][i] = is_first ? turn_first(x[s][i], y, cosine[s][i], sine[s][i]) : turn_second(x[s][i], y, cosine[s][i], sine[s][i]);
          }
        }
//|   end
//| end
      }
//| if l.partner == "own" then
      if (turns)
#pragma unroll
        for (int i = 0; i < VEC; i++) {
          const float a = x[0][i], b = x[1][i];
          x[0][i] = turn_first(a, b, cosine[i], sine[i]);
          x[1][i] = turn_second(b, a, cosine[i], sine[i]);
        }
//| end
//| -- Lanes of other teams may have other kinds of rows: all take the shuffles of both.
//| for _, of_v in ipairs({ false, true }) do
//|   if transforms(of_v) then
      {
        float y[SHARE][VEC];
#pragma unroll
        for (int s = 0; s < SHARE; s++)
#pragma unroll
          for (int i = 0; i < VEC; i++) y[s][i] = x[s][i];
        transform<$(of_v and "DV" or "D")>(y, lane, $(f32(1 / math.sqrt(of_v and p.dv or p.d))));
        if ($(of_v and "is_v" or "!is_v"))
#pragma unroll
          for (int s = 0; s < SHARE; s++)
#pragma unroll
            for (int i = 0; i < VEC; i++) x[s][i] = y[s][i];
      }
//|   end
//| end
//| -- Codes of rows whose scales are found, or lie in blocks: by shuffles, which the lanes of all rows take.
//| local found = p.k_scale_out > 0 or p.v_scale_out > 0
//| if found then
      const Largest largest = largest_of(x, pieces, lane);
//| end
//| local blocks = {}
//| for _, f in ipairs({ l.k_format or false, l.v_format or false }) do
//|   if f and f.has_scale and not blocks[f.name] then
//|     blocks[f.name] = true
      Codes codes_$(f.name)[SHARE];
#pragma unroll
      for (int s = 0; s < SHARE; s++) quantize_$(f.name)(codes_$(f.name)[s], x[s], lane);
//|   end
//| end
//| -- K and V of one type are stored by the same instructions.
//| local same, declared = l.k_type == l.v_type, {}
//| local function divisor(side) return same and "divisor" or "divisor_" .. side end
//| local function is_scaled(side) return p[side .. "_scale"] > 0 or p[side .. "_scale_out"] > 0 end
//| for _, side in ipairs({ "k", "v" }) do
//|   local f, given, out = l[side .. "_format"], p[side .. "_scale"], p[side .. "_scale_out"]
//|   if f and not f.has_scale then
//|     if given > 0 or out > 0 then
//|       if not declared[divisor(side)] then
      Divisor $(divisor(side)) = {1.f, 1.f, 1.f, false, 1.f, 1.f};
//|       end
//|       declared[divisor(side)] = true
      if (there && $(side == "v" and "is_v" or "!is_v && !is_q")) {
//|     if given > 0 then
        $(divisor(side)) = divisor_of(given_$(side)[h]);
//|     elseif out > 0 then
        const float scale = scale_of(largest, $(f.most).f, $(f.kind == "floats" and "false" or "true"));
        $(divisor(side)) = divisor_of(scale);
        if (lane == 0) p.$(side)_scale_out[place.page * p.$(side)_scale_out_sb + place.row * p.$(side)_scale_out_ss + (first + h) * p.$(side)_scale_out_sh] = scale;
//|     end
      }
//|     end
//|   end
//| end
//| local function store_side(side)
//|   local f = l[side .. "_format"]
//|   if not f then
          store_$(l[side .. "_type"])(here + at * (VEC * $(l[side .. "_bytes"])), x[s]);
//|   elseif f.has_scale then
          store_$(f.name)(here, at * VEC, codes_$(f.name)[s]);
//|   else
//|     local scaled = is_scaled(side) or same and is_scaled("v")
          store_$(f.name)<$(scaled)>(here + at * VEC, x[s], $(scaled and divisor(side) or "Divisor()"));
//|   end
//| end
#pragma unroll
      for (int s = 0; s < SHARE; s++) {
        const int at = lane + s * LANES;
        char *const here = to + (first + h) * to_sh;
        if (!there || at >= pieces) continue;
        if (is_q) {
//| if p.rotary > 0 then
          if (!place.turns)
#pragma unroll
            for (int i = 0; i < VEC; i++) x[s][i] = __uint_as_float(0x7fffffffu);
//| end
          store_$(p.dtype)(here + at * (VEC * $(p.bytes)), x[s]);
//| if not same then
        } else if (is_v) {
//|   store_side("v")
//| end
        } else {
//| store_side("k")
        }
      }
    }
  }
}
