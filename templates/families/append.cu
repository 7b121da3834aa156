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
constexpr int LANES = $(l.lanes);  // of a team
constexpr int SHARE = $(l.share);  // pieces of a lane
//| if l.dealt then
// From a lane's first piece to its piece s: two of a block that lie half a block apart, and those of blocks that no lane has before.
constexpr __device__ int step_of(int s) { return s % 2 * 2 + s / 2 * (2 * LANES); }
//| else
constexpr __device__ int step_of(int s) { return s * LANES; }  // from a lane's first piece to its piece s
//| end
constexpr int WORDS = $(l.words);  // of a piece as it is loaded
constexpr int SLOT = WORDS * 4 < 16 ? WORDS * 4 : 16;  // bytes of a piece that lie together in shared memory
//| if l.dealt then
constexpr int SMEM_STAGED = $(l.staged), TEAM_ROWS = $(l.team_rows);  // where rows of blocks are put together; bytes of a team's
//| elseif l.gathered then
constexpr int ROW_K = $(l.row_k), ROW_V = $(l.row_v);  // bytes of a row in the cache
constexpr int SMEM_GATHERED = $(l.gathered);  // where a token's rows are put together
//| end
//| if l.angles and p.rotary > 0 then
constexpr int ANGLES = $(l.angles);  // cosines that the columns of a piece have
//|   if l.turned > 0 then
constexpr int TURNED = $(l.turned);  // pieces of a lane that turn with the next so many
//|   end
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

//| -- Scales that are given beside the codes: of a head by each lane.
//| local function given_of(side)
//|   local f = l[side .. "_format"]
//|   return f and not f.has_scale and p[side .. "_scale"] or 0
//| end
//| local is_given = given_of("k") > 0 or given_of("v") > 0
//| local given_by_lanes = is_given and c.token_heads <= l.lanes
//| local first_copied = l.dealt and "lane" or "first_piece"
//| local shares_rows = p.rotary > 0 and (l.partner == "halves" or l.partner == "any")  -- lanes read what others have copied
//| local batch = p.has_lengths and "p.cu_seqlens_q != nullptr ? 0 : at / p.sq" or "p.b == 1 ? 0 : at / p.sq"
extern "C" __global__ void __launch_bounds__($(l.bounds)) fa_append(const __grid_constant__ Params p) {
  extern __shared__ __align__(16) unsigned char smem[];
  const int lane = threadIdx.x % LANES, first_piece = $(l.dealt and "lane / 2 * 4 + lane % 2" or "lane");
  const int tokens = $(tokens);
  // Items of a token: some heads of K, some of V, some of Q.
  const int of_k = (p.hkv + HEADS - 1) / HEADS, of_q = p.q != nullptr ? (p.hq + HEADS - 1) / HEADS : 0, of_all = 2 * of_k + of_q;
  // Teams of a warp have rows of one kind: tokens are counted up to a whole warp. A warp does all rows of its tokens, which lie in the same
  // lines, item after item. Of the last tokens, fewer than there are warps, each item goes to another one.
  constexpr int TOGETHER = 32 / LANES, WARPS = THREADS / 32;
  const int groups = (tokens + TOGETHER - 1) / TOGETHER, whole = groups / ((int)$(wk.blocks) * WARPS) * ((int)$(wk.blocks) * WARPS);
  const long long shares = whole + (long long)(groups - whole) * of_all;
  struct Item {
    int part, end;  // of those of a token; the first that is not the warp's
    int token;
    bool real;
    int batch, query;
  };
  auto first_of = [&](long long share) -> Item {
    int group = (int)share, part = 0, end = of_all;
    if (share >= whole) {
      const u32 rest = (u32)(share - whole);
      group = whole + (int)(rest / (u32)of_all), part = (int)(rest % (u32)of_all), end = part + 1;
    }
    const int token = group * TOGETHER + (int)(threadIdx.x % 32) / LANES;
    const bool real = token < tokens;
    const int at = real ? token : 0, batch = $(batch);
    return {part, end, at, real, batch, at - batch * p.sq};
  };
  // Where the rows of an item come from.
  struct Source {
    bool is_q, is_v;
    int first, heads, pieces;
    const char *row;
    long long sh;
//| if l.wide then
    bool wide;  // rows begin at multiples of 16 bytes
//| end
  };
  auto source_of = [&](const Item &item) -> Source {
    Source of;
    of.is_q = item.part >= 2 * of_k, of.is_v = !of.is_q && item.part >= of_k;
    of.first = (item.part - (of.is_q ? 2 * of_k : of.is_v ? of_k : 0)) * HEADS, of.heads = of.is_q ? p.hq : p.hkv;
    of.pieces = of.is_v ? DV / VEC : D / VEC;
    const long long batch = item.batch, query = item.query;
    if (of.is_q)
      of.row = (const char *)p.q + (batch * p.q_sb + query * p.q_ss) * $(p.bytes), of.sh = p.q_sh * $(p.bytes);
    else if (of.is_v)
      of.row = (const char *)p.new_v + (batch * p.new_v_sb + query * p.new_v_ss) * $(p.bytes), of.sh = p.new_v_sh * $(p.bytes);
    else
      of.row = (const char *)p.new_k + (batch * p.new_k_sb + query * p.new_k_ss) * $(p.bytes), of.sh = p.new_k_sh * $(p.bytes);
//| if l.wide then
    of.wide = of.is_q   ? is_wide(p.q, p.q_sb, p.q_ss, p.q_sh)
              : of.is_v ? is_wide(p.new_v, p.new_v_sb, p.new_v_ss, p.new_v_sh)
                        : is_wide(p.new_k, p.new_k_sb, p.new_k_ss, p.new_k_sh);
//| end
    of.row += of.first * of.sh;
    return of;
  };
//| if l.by_head then
  // A head of the next item is on its way as soon as that of the item before is read.
//|   if l.dealt then
  // The lanes of a team copy pieces side by side, as memory gives them, and read those of their blocks.
//|   end
//| else
  // Rows are on their way while the item before is done.
//| end
  const u32 ring = shared_address(smem);
  auto copy_head = [&](const Source &of, const char *row, int h, int slot, bool real) {
#pragma unroll
    for (int s = 0; s < SHARE; s++) {
      const bool there = real && of.first + h < of.heads$(l.full and "" or " && first_piece + step_of(s) < of.pieces");
      copy_piece(ring + place_in_ring(slot, s, threadIdx.x), row + $(l.dealt and "s * LANES" or "step_of(s)") * (VEC * $(p.bytes)),
                 there$(l.wide and ", of.wide" or ""));
    }
  };
//| if not l.by_head then
  auto copy = [&](const Item &item, int stage) {
    const Source of = source_of(item);
    const char *row = of.row + first_piece * (VEC * $(p.bytes));
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
      copy_head(of, row, h, stage * HEADS + h, item.real);
      row += of.sh;
    }
    cp_async_commit();
  };
//| end
//| if is_given then
  // The scale that is given for one of an item's heads.
  auto scale_given = [&](const Place &place, bool is_v, int part, int h) -> float {
    const int head = part * HEADS + h;
    if (!place.used || !place.kept || head >= p.hkv) return 1.f;
//|   for _, side in ipairs({ "k", "v" }) do
//|     if given_of(side) == 1 then
    if ($(side == "v" and "is_v" or "!is_v")) return p.$(side)_scale[place.sequence * p.$(side)_scale_sb + head * p.$(side)_scale_sh];
//|     elseif given_of(side) > 1 then
    if ($(side == "v" and "is_v" or "!is_v"))
      return p.$(side)_scale[place.page * p.$(side)_scale_sb + place.row * p.$(side)_scale_ss + head * p.$(side)_scale_sh];
//|     end
//|   end
    return 1.f;
  };
//| end
  // What an item waits for beside its rows.
  struct Ready {
    Place place;
    bool overtaken;
//| if p.rotary > 0 then
//|   if l.partner == "own" then
    float cosine[TURNED][ANGLES], sine[TURNED][ANGLES];
//|   else
    float cosine[SHARE][ANGLES], sine[SHARE][ANGLES];
//|   end
//| end
  };
  auto prepare = [&](Ready &to, const Item &item, const Told &told) {
    const bool is_q = item.part >= 2 * of_k, is_v = !is_q && item.part >= of_k;
    to.place = place_of(p, item.token, told);
//| if p.rotary > 0 then
    const bool turns = item.real && (!is_v || item.end > item.part + 1) && to.place.used && to.place.turns;
//|   if l.partner == "own" then
    // Pieces s and s + TURNED turn together. Rows beside those that turn are stored nowhere.
#pragma unroll
    for (int s = 0; s < TURNED; s++)
      if (turns)
        load_angles(to.cosine[s], to.sine[s], (const char *)p.cos_sin + to.place.position * (ROTARY * $(l.angle_bytes)),
                    (first_piece + step_of(s)) * VEC);
//|   else
#pragma unroll
    for (int s = 0; s < SHARE; s++)
      if (turns && (first_piece + step_of(s)) * VEC < ROTARY)
        load_angles(to.cosine[s], to.sine[s], (const char *)p.cos_sin + to.place.position * (ROTARY * $(l.angle_bytes)),
                    (first_piece + step_of(s)) * VEC);
//|   end
//| end
  };
  // After it, since what is read here is compared at once.
  auto look = [&](Ready &to, const Item &item, const Told &told) {
    to.overtaken = false;
//| if p.has_slots then
    to.overtaken = is_overtaken(p, item.token, told.slot, item.part < 2 * of_k && item.real, tokens, lane);
//| end
  };
//| if given_by_lanes then
  // That of its head number `lane`.
  auto scale_of_lane = [&](const Place &place, const Item &item) -> float {
    const bool is_v = item.part >= of_k;
    return item.real && item.part < 2 * of_k && lane < HEADS ? scale_given(place, is_v, item.part - (is_v ? of_k : 0), lane) : 1.f;
  };
//| end

  long long share = (long long)$(wk.block) * WARPS + threadIdx.x / 32;
  Item next = first_of(share);
//| if a.cc >= 90 then
  asm volatile("griddepcontrol.wait;" ::: "memory");  // this kernel may have begun before what precedes it has ended
//|   if c.claims == 0 then
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");  // what follows may stand ready
//|   end
//| end
//| if c.claims == 2 then
  clear_claims(p, tokens);
//| end
  if (share >= shares) return;
  Ready ready = {};
  const Told first_told = told_of(p, next.token);
//| if l.by_head then
  Source coming = source_of(next);
#pragma unroll 1
  for (int h = 0; h < HEADS; h++) {
    copy_head(coming, coming.row + h * coming.sh + $(first_copied) * (VEC * $(p.bytes)), h, h, next.real);
    cp_async_commit();
  }
//| else
  copy(next, 0);
//| end
  prepare(ready, next, first_told);
//| if given_by_lanes then
  float next_given = scale_of_lane(ready.place, next);
//| end
  look(ready, next, first_told);
//| if not l.by_head then
  int stage = 0;
//| end
#pragma unroll 1
  for (bool more = true; more;) {
    const Item item = next;
    const Source of = $(l.by_head and "coming" or "source_of(item)");
    const bool is_q = of.is_q, is_v = of.is_v, real = item.real;
    const int first = of.first, heads = of.heads, pieces = of.pieces;
    const long long batch = item.batch, query = item.query;
//| if given_by_lanes then
    const float givens = next_given;
//| end
//| if shares_rows then
    __syncwarp();  // the rows of the item before are read
//| end
    const bool ends = item.part + 1 == item.end;
    Told told;
    next.part++;
    if (ends) {
      share += (long long)$(wk.blocks) * WARPS;
      more = share < shares;
      if (more) {
        next = first_of(share);
        told = told_of(p, next.token);
      }
    }
//| local slot = l.by_head and "h" or "stage * HEADS + h"
//| if l.by_head then
    if (more) coming = source_of(next);
    const char *row = coming.row + $(first_copied) * (VEC * $(p.bytes));
//| else
    if (more) copy(next, stage ^ 1);
    else cp_async_commit();
    cp_async_wait<1>();
//| end
//| if shares_rows then
    __syncwarp();
//| end
    const Place &place = ready.place;
    const bool used = real && place.used;  // what is computed waits for that alone
    bool stores = used && (is_q || place.kept);
    if (ready.overtaken && !is_q) stores = false;
    if (p.skipped != nullptr && real && item.part == 0 && lane == 0 && place.used && !place.kept) atomicAdd(p.skipped, 1ull);

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
    const bool turns = used && !is_v && place.turns;
//|   if l.partner == "own" or l.dealt then
    const bool some_turn = __any_sync(~0u, turns);
//|   end
//| end
    to += first * to_sh;
//| for _, side in ipairs({ "k", "v" }) do
//|   if p[side .. "_scale_out"] > 0 then
    float *const scales_of_$(side) = p.$(side)_scale_out + place.page * p.$(side)_scale_out_sb + place.row * p.$(side)_scale_out_ss +
                               first * p.$(side)_scale_out_sh;
//|   end
//| end

//| if l.dealt then
    // Rows of blocks end within sectors, and half of the blocks within words: those of a token are put together before they go out.
//|   if l.blocks_k and l.blocks_v and l.row_k == l.row_v then
    const bool staged = !is_q;
    constexpr int ROW = $(l.row_k), BLOCK = $(l.k_bytes);
//|   elseif l.blocks_k and l.blocks_v then
    const bool staged = !is_q;
    const int ROW = is_v ? $(l.row_v) : $(l.row_k), BLOCK = is_v ? $(l.v_bytes) : $(l.k_bytes);
//|   else
    const bool staged = $(l.blocks_v and "is_v" or "!is_q && !is_v");
    constexpr int ROW = $(l.blocks_v and l.row_v or l.row_k), BLOCK = $(l.blocks_v and l.v_bytes or l.k_bytes);
//|   end
    unsigned char *const rows = smem + SMEM_STAGED + threadIdx.x / LANES * TEAM_ROWS;
    unsigned char *place_of_codes = rows + first_piece / 4 * BLOCK + 2 + first_piece % 4 * 8;
    char *const out = to;
//| elseif l.gathered then
    // Rows of blocks end within sectors: those of a token that lie side by side are put together before they go out.
//|   local gathered = l.gathers_k and l.gathers_v and "!is_q" or l.gathers_v and "is_v" or "!is_q && !is_v"
    const bool gathers = $(gathered) && first + HEADS <= heads && to_sh == (is_v ? ROW_V : ROW_K) && (u64)to % 16 == 0;
    unsigned char *const gathered = smem + SMEM_GATHERED + threadIdx.x / LANES * (HEADS * $(math.max(l.row_k, l.row_v)));
    char *const out = to;
    if (gathers) to = (char *)gathered;
//| end

#pragma unroll 1
    for (int h = 0; h < HEADS; h++, to += to_sh$(l.dealt and ", place_of_codes += ROW" or "")) {
      const bool there = stores && first + h < heads;
      float x[SHARE][VEC];
//| if l.by_head then
      cp_async_wait<HEADS - 1>();
//|   if l.dealt then
      __syncwarp();
//|   end
//| end
#pragma unroll
      for (int s = 0; s < SHARE; s++) {
//| if l.dealt then
        const int own = first_piece + step_of(s);
        Piece piece = piece_of(ring + place_in_ring($(slot), own / LANES, (int)threadIdx.x - lane + own % LANES));
//| else
        Piece piece = piece_of(ring + place_in_ring($(slot), s, threadIdx.x));
//| end
//| if l.k_format or l.v_format then
//|   if p.has_lengths then
        if (!used) piece = Piece();  // rows of no sequence may hold what was never written
//|   end
//| end
        unpack(x[s], piece);
//| if p.rotary > 0 and l.partner ~= "own" then
        const int column = (first_piece + step_of(s)) * VEC;
//|   if l.partner == "halves" then
        if (turns && column < ROTARY) {
          const int at = column / VEC, other = at < HALF / VEC ? at + HALF / VEC : at - HALF / VEC;  // half a rotation away
          float y[VEC];
          unpack(y, piece_of(ring + place_in_ring($(slot), other / LANES, threadIdx.x - lane + other % LANES)));
#pragma unroll
          for (int i = 0; i < VEC; i++)  // of a first half partners are subtracted
            x[s][i] = turn_second(x[s][i], y[i], ready.cosine[s][i], at < HALF / VEC ? -ready.sine[s][i] : ready.sine[s][i]);
        }
//|   elseif l.partner == "pairs" then
        if (turns && column < ROTARY)
#pragma unroll
          for (int i = 0; i < VEC; i += 2) {
            const float a = x[s][i], b = x[s][i + 1];
            x[s][i] = turn_first(a, b, ready.cosine[s][i / 2], ready.sine[s][i / 2]);
            x[s][i + 1] = turn_second(b, a, ready.cosine[s][i / 2], ready.sine[s][i / 2]);
          }
//|   else
        if (turns && there && column < ROTARY) {
#pragma unroll
          for (int i = 0; i < VEC; i++) {
            if (column + i >= ROTARY) continue;
//|     if p.has_rotary_pairs then
            const bool is_first = (column + i) % 2 == 0;
            const int other = is_first ? column + i + 1 : column + i - 1;
//|     else
            const bool is_first = column + i < HALF;
            const int other = is_first ? column + i + HALF : column + i - HALF;
//|     end
            const int at = other / VEC;
            const float y = column_of(ring + place_in_ring($(slot), at / LANES, threadIdx.x - lane + at % LANES), other % VEC);
            const float cosine = ready.cosine[s][i], sine = ready.sine[s][i];
            x[s][i] = is_first ? turn_first(x[s][i], y, cosine, sine) : turn_second(x[s][i], y, cosine, sine);
          }
        }
//|   end
//| end
      }
//| if l.by_head then
//|   if l.dealt then
      __syncwarp();
//|   end
      if (more) copy_head(coming, row, h, h, next.real);
      cp_async_commit();
      row += coming.sh;
//| end
//| if l.partner == "own" then
      if (some_turn)
#pragma unroll
        for (int s = 0; s < TURNED; s++)
#pragma unroll
          for (int i = 0; i < VEC; i++) {
            const float a = x[s][i], b = x[s + TURNED][i];
            x[s][i] = turn_first(a, b, ready.cosine[s][i], ready.sine[s][i]);
            x[s + TURNED][i] = turn_second(b, a, ready.cosine[s][i], ready.sine[s][i]);
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
      float scale = 1.f;
//| end
//| local blocks = {}
//| for _, f in ipairs({ l.k_format or false, l.v_format or false }) do
//|   if f and f.has_scale and not blocks[f.name] then
//|     blocks[f.name] = true
//|     if l.dealt then
      Codes codes_$(f.name)[SHARE / 2] = {};
      if (some_coded) quantize_$(f.name)(codes_$(f.name), x, $(p.rotary > 0 and "some_turn" or "false"), lane);
//|     else
      Codes codes_$(f.name)[SHARE] = {};
      if (some_coded)
#pragma unroll
        for (int s = 0; s < SHARE; s++) quantize_$(f.name)(codes_$(f.name)[s], x[s], lane);
//|     end
//|   end
//| end
//| -- K and V of one type are stored by the same instructions.
//| if given_by_lanes then
      const float given = __shfl_sync(~0u, givens, h, LANES);
//| elseif is_given then
      const float given = real && !is_q ? scale_given(place, is_v, item.part - (is_v ? of_k : 0), h) : 1.f;
//| end
//| local same, declared = l.k_type == l.v_type, {}
//| local function divisor(side) return same and "divisor" or "divisor_" .. side end
//| local function is_scaled(side) return p[side .. "_scale"] > 0 or p[side .. "_scale_out"] > 0 end
//| for _, side in ipairs({ "k", "v" }) do
//|   local f, given, out = l[side .. "_format"], p[side .. "_scale"], p[side .. "_scale_out"]
//|   if f and not f.has_scale then
//|     if given > 0 or out > 0 then
//|       if not declared[divisor(side)] then
      Divisor $(divisor(side)) = {1.f, 1.f, 1.f, false, 1.f, 1.f, false$(given_integers and ", -128.f, 127.f" or "")};
//|       end
//|       declared[divisor(side)] = true
//|     local mine = side == "v" and "is_v" or "!is_v && !is_q"
//|     if given > 0 then
      if (there && $(mine)) $(divisor(side)) = divisor_of(given, false);
//|     elseif not (same and side == "v" and p.k_scale_out > 0) then  -- else K's is that of both
      if (there && $(same and p.k_scale_out > 0 and p.v_scale_out > 0 and "!is_q" or mine)) {
        scale = scale_of(largest, $(f.most).f, $(f32(1 / f.most)), $(f.kind == "floats" and "false" or "true"));
        $(divisor(side)) = divisor_of(scale, largest.x <= 0x1.fffffep127f);
      }
//|     end
//|     if out > 0 then
      if (there && lane == 0 && $(mine)) scales_of_$(side)[h * p.$(side)_scale_out_sh] = scale;
//|     end
//|     end
//|   end
//| end
//| local function store_side(side)
//|   local f = l[side .. "_format"]
//|   if not f then
          store_$(l[side .. "_type"])(here + at * (VEC * $(l[side .. "_bytes"])), x[s]);
//|   elseif f.has_scale and l.dealt then
          if (s % 2 == 0) {
            const bool second = first_piece / 4 + s / 2 * (LANES / 2) & 1;
            store_$(f.name)(place_of_codes + s / 2 * (LANES / 2 * $(f.block_bytes)), first_piece % 4 == 0, second, codes_$(f.name)[s / 2]);
          }
//|   elseif f.has_scale then
          store_$(f.name)(here, at * VEC, codes_$(f.name)[s]);
//|   else
//|     local scaled = is_scaled(side) or same and is_scaled("v")
          store_$(f.name)<$(scaled)>(here + at * VEC, x[s], $(scaled and divisor(side) or "Divisor()"));
//|   end
//| end
#pragma unroll
      for (int s = 0; s < SHARE; s++) {
        const int at = first_piece + step_of(s);
        char *const here = to;
        if (!there$(l.full and "" or " || at >= pieces")) continue;
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
//| if l.dealt then
    __syncwarp();
    if (staged && stores) {
      const bool whole_rows = first + HEADS <= heads && to_sh == ROW && (u64)out % 16 == 0 && HEADS * ROW % 16 == 0;
      if (whole_rows)
        for (int i = lane; i < HEADS * ROW / 16; i += LANES) ((uint4 *)out)[i] = ((const uint4 *)rows)[i];
      else
#pragma unroll 1
        for (int h = 0; h < HEADS && first + h < heads; h++)
#pragma unroll 1
          for (int i = lane; i < ROW / 4; i += LANES) ((u32 *)(out + h * to_sh))[i] = ((const u32 *)(rows + h * ROW))[i];
    }
    __syncwarp();  // those of the next item go there
//| elseif l.gathered then
    __syncwarp();
    if (gathers && stores)
#pragma unroll
      for (int i = 0; i < HEADS * $(math.max(l.row_k, l.row_v)) / 16; i += LANES)
        if (i + lane < HEADS * (is_v ? ROW_V : ROW_K) / 16) ((uint4 *)out)[i + lane] = ((const uint4 *)gathered)[i + lane];
    __syncwarp();  // those of the next item go there
//| end
    if (more && ends) prepare(ready, next, told);
//| if given_by_lanes then
    if (more) next_given = scale_of_lane(ready.place, next);
//| end
    if (more && ends) look(ready, next, told);
//| if not l.by_head then
    stage ^= 1;
//| end
  }
}
