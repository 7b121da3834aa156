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

//| include "append/pieces.cu"
//| if l.k_format or l.v_format then
//|   include "tiles/quantize.cu"
//|   for _, f in ipairs({ l.k_format or false, l.v_format or false }) do
//|     if f then quantizer(f) end
//|   end
//| end
//| include "append/rotation.cu"

//| include "append/places.cu"

//| include "append/claims.cu"

//| include "append/hadamard.cu"

//| local batch = p.has_lengths and "p.cu_seqlens_q != nullptr ? 0 : token / p.sq" or "token / p.sq"
extern "C" __global__ void __launch_bounds__(THREADS) fa_append(const __grid_constant__ Params p) {
  const int lane = threadIdx.x % LANES, team = threadIdx.x / LANES;
  const int tokens = $(tokens);
  // Items of a token: some heads of K, some of V, some of Q.
  const int of_k = (p.hkv + HEADS - 1) / HEADS, of_q = p.q != nullptr ? (p.hq + HEADS - 1) / HEADS : 0, of_all = 2 * of_k + of_q;
  // Teams of a warp have rows of one kind: tokens are counted up to a whole warp.
  constexpr int TOGETHER = 32 / LANES;
  const int span = (tokens + TOGETHER - 1) / TOGETHER * TOGETHER;
  const long long items = (long long)span * of_all;
//| if a.cc >= 90 then
  asm volatile("griddepcontrol.wait;" ::: "memory");  // this kernel may have begun before what precedes it has ended
//| end
  struct Item {
    int part, token;
    bool real;
  };
  auto item_of = [&](long long item) -> Item {
    const int part = (int)(item >> 32 ? item / span : (u32)item / (u32)span), token = (int)(item - (long long)part * span);
    const bool real = part < of_all && token < tokens;
    return {part, real ? token : 0, real};
  };
  if (tokens == 0) return;
  Item next = item_of((long long)$(wk.block) * TEAMS + team);
  Told ahead = told_of(p, next.token);
  for ($(wk.steps("long long", "base", "items", "TEAMS"))) {
    const Told told = ahead;
    const int part = next.part, token = next.token;
    const bool real = next.real;
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

    // What lists say of the next item is on its way meanwhile.
    next = item_of(base + (long long)$(wk.blocks) * TEAMS + team);
    ahead = told_of(p, next.token);
//| if p.has_slots then
    const bool overtaken = is_overtaken(p, token, !is_q && real, tokens, lane);
//| end
    const Place place = place_of(p, token, told);
    const bool used = real && place.used;  // what is computed waits for that alone
    bool stores = used && (is_q || place.kept);
//| if p.has_slots then
    if (overtaken && !is_q) stores = false;
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
      if (used && place.kept && first + h < heads && $(side == "v" and "is_v" or "!is_v && !is_q"))
//|     if given == 1 then
        given_$(side)[h] = p.$(side)_scale[place.sequence * p.$(side)_scale_sb + (first + h) * p.$(side)_scale_sh];
//|     else
        given_$(side)[h] =
            p.$(side)_scale[place.page * p.$(side)_scale_sb + place.row * p.$(side)_scale_ss + (first + h) * p.$(side)_scale_sh];
//|     end
    }
//|   end
//| end

//| if l.k_format and l.k_format.has_scale or l.v_format and l.v_format.has_scale then
    const bool some_coded = __any_sync(~0u, !is_q && used);  // rows of Q have no codes
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
    const bool turns = real && !is_v && place.used && place.turns;
//|   if l.partner == "own" then
    // Pieces lane and lane + LANES turn together. Rows beside those that turn are stored nowhere.
    const bool some_turn = __any_sync(~0u, turns);
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
//|   if p.has_lengths then
        if (!used) piece[h][s] = Piece();  // rows of no sequence may hold what was never written
//|   end
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
      if (some_turn)
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
      Codes codes_$(f.name)[SHARE] = {};
      if (some_coded)
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
      Divisor $(divisor(side)) = {1.f, 1.f, 1.f, false, 1.f, 1.f, false};
//|       end
//|       declared[divisor(side)] = true
      if (there && $(side == "v" and "is_v" or "!is_v && !is_q")) {
//|     if given > 0 then
        $(divisor(side)) = divisor_of(given_$(side)[h], false);
//|     elseif out > 0 then
        const float scale = scale_of(largest, $(f.most).f, $(f.kind == "floats" and "false" or "true"));
        $(divisor(side)) = divisor_of(scale, largest.x <= 0x1.fffffep127f);
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
