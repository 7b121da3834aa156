//| needs "l.boxes? l.half? l.heads? l.floats? l.integers_v? l.limbs? l.low? l.shifts_k? l.shifts_v? l.standing? l.tokens?"
//| needs "l.widened?"
//| local ob, halves = l.low and "OB" or "VB", l.half and 1 or 2
//| local pr = include("pairs/pairs.lua").of(p, l)
//| -- Scales of keys 2t and 2t + 1 of block n of keys, from `from` on.
//| local codes = l.widened and "codes" or "k_tile"
//| local by_token = p.k_scale == 2 or p.v_scale == 2
//| local function of_keys(from) return ("load_shared_f32x2(%s + (n * 8 + at.t * 2) * 4)"):format(from) end
//| if l.tokens then
//|   function of_keys(from) return ("scales_of_two(%s + scales_at + (n * 8 + at.t * 2) * (HEADS * 4))"):format(from) end
//| end
// ---- the rows of a warp as fragments of mma.sync and wgmma ----
struct WarpRows {
  Lane at;
  int row;  // the first, of the tile
  QFragments q;
  float o[MB][$(ob)][4];
//| if l.low then
//|   if l.limbs then
  float factor[MB][2];  // of the lane's sums, and of those of the row's other limbs
//|   else
  float factor[MB][2];  // of the row's products: their sum times it is Q K^T
//|   end
  float v_factor;       // of O
  Asked asked;
//|   if p.v_scale == 4 then
  const float *v_columns;  // scales of O's columns, `apart` from one to the next
  long long v_apart;
//|   end
//|   if p.v_scale == 2 then
  float v_top;  // the least power of two that no scale of a token of V passed so far: O is relative to it
//|   end
//| end
  RowState state[MB][2];
//| local I = l.integers_v
//| local power = I and l.low.v.has_scale
//| if power then
  PowerOfP power;  // O is relative to it
//| end
//| if l.half then
  u32 q_stage;  // where Q of a tile is left for all warps
//| end
//| if l.floats then
  u32 k_floats;  // where the scales of the blocks of keys are left for all lanes
//| end
//| if l.tokens and by_token then
  u32 scales_at;  // of the head, from where its K and the scales of all heads begin

  static __device__ __forceinline__ float2 scales_of_two(u32 from) {
    float2 x;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x.x) : "r"(from) : "memory");
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x.y) : "r"(from + HEADS * 4) : "memory");
    return x;
  }
//| end
//| local floats = l.floats
//| local close = (l.tokens and by_token or floats) and "" or "}"
//| if l.half then
//| local q_bytes = l.limbs and ("(Q_WORDS * %d)"):format(128 * l.limbs.tiles) or "(Q_PAIRS * 512)"
//| local of_head = l.heads and " + (int)threadIdx.x / HEAD_THREADS * " .. q_bytes or ""
//| local stage = "q_stage(shared_address(smem) + SMEM_Q" .. of_head .. ")"
  __device__ __forceinline__ explicit WarpRows(unsigned char *smem) : at(make_lane()), row(0), $(stage) {$(close)
//| else
//| local first = "row(threadIdx.x % GROUP_THREADS / 32 * (16 * MB))"
  __device__ __forceinline__ explicit WarpRows(unsigned char *$(floats and "smem" or "")) : at(make_lane()), $(first) {$(close)
//| end
//| if l.tokens and by_token then
    const int side = (int)threadIdx.x / HEAD_THREADS;
    scales_at = (u32)in_register(side * 4 - (side * K_BYTES & -16));
//| end
//| if floats then
    k_floats = shared_address(smem) + SMEM_FLOATS + (int)threadIdx.x / 32 * (BC * K_SCALES_OF_ROW * 4);
//| end
//| if close == "" then
  }
//| end

//| if l.low then
  // Before begin(): find() reads nothing, read() asks for what begin() needs of the tile.
  __device__ __forceinline__ void find(const Params &p, const Sequence &sequence, const Tile &tile) {
//|   if l.shifts_k or l.shifts_v then
    at.shift(p, $(l.widened and "sequence, " or "")tile.kv_head);
//|   end
//|   local straight = not l.half and p.q ~= "fp32"
    asked.find(p, sequence, tile$(straight and ", row, at" or ""));
  }
  __device__ __forceinline__ void read(const Params &p) { asked.read(p, at$(straight and ", q" or "")); }
//| end
  __device__ __forceinline__ void begin(const Params &p, const Sequence &sequence, const Tile &tile) {
//| if l.low then
    load_q(q, factor, p, sequence, tile, $(l.half and "q_stage" or "row"), at, asked);
    v_factor = $(f32(2.0 ^ l.low.v.owed))$(p.v_scale == 1 and " * asked.v_scale" or "");
//|   if p.v_scale == 4 then
    v_columns = v_scales_of(p, sequence, tile.kv_head);
    v_apart = p.v_scale_ss;
//|   end
//| else
    load_q(q, p, sequence, tile, row, at);
//| end
//| if p.has_batch_invariant then
  }
  // No keys yet, of the same Q.
  __device__ __forceinline__ void fresh() {
//| end
//| if p.v_scale == 2 then
    v_top = __uint_as_float(1u << 23);
//| end
//| if power then
    power = first_power();
//| end
#pragma unroll
    for (int m = 0; m < MB; m++) {
      state[m][0] = state[m][1] = {-infinity(), 0.f};
#pragma unroll
      for (int n = 0; n < $(ob); n++) o[m][n][0] = o[m][n][1] = o[m][n][2] = o[m][n][3] = 0.f;
    }
  }

//| if l.widened then
  // One block of keys, whose buffer has codes: they become fp16 at `wide` first. masked: some row does not see all of them.
  __device__ __forceinline__ void attend(const Params &p, const Sequence &sequence, const Tile &tile, int block, bool masked, u32 codes,
                                         u32 wide) {
    const u32 k_tile = wide, v_tile = wide + WIDE_K;
    const int thread = (int)threadIdx.x % GROUP_THREADS;
    auto meet = [] {  // what all threads of the group have stored is the matrix unit's
      fence_async();
      asm volatile("bar.sync %0, %1;" ::"r"((int)threadIdx.x / GROUP_THREADS + 1), "n"(GROUP_THREADS) : "memory");
    };
//| if l.boxes and (p.has_lengths or p.mask ~= "none") then
    // A box brings rows that no query of the tile sees, and their NaN times a probability of 0 would be NaN.
    if (masked) {
      const int lo = tile.range.key_lo - block * BC, hi = tile.range.key_hi - block * BC;
      clear_rows<K_BYTES>(codes, lo, hi, thread);
      clear_rows<V_BYTES>(codes + K_TILE, lo, hi, thread);
      meet();
    }
//| end
    // While P V of the block before is under way.
    widen_k<CHUNKS>(k_tile, codes, thread, $(l.shifts_k and "at.k_shift, at.k_turn" or "0, 0"));
    accumulate_wait(o);
    meet();
//| else
  // One block of keys. masked: some row does not see all of them.
  __device__ __forceinline__ void attend(const Params &p, const Sequence &sequence, const Tile &tile, int block, bool masked, u32 k_tile,
                                         u32 v_tile) {
//| end
    float s[MB][NB][4];
//| if power then
    watch_limit(power, o, v_tile, at);
//| end
//| if l.widened then
    scores_begin(s, q, k_tile);
    // While the matrix unit multiplies.
    widen_v<CHUNKS_V>(v_tile, codes + K_TILE, thread, $(l.shifts_v and "at.v_shift, at.v_turn" or "0, 0"));
    scores_wait(s);
//| else
    scores(s, q, $(l.limbs and "factor[0], " or "")k_tile, $(floats and "k_floats, " or "")at);
//| end
//| if l.low then
//|   if not l.limbs then
#pragma unroll
    for (int m = 0; m < MB; m++)
#pragma unroll
      for (int n = 0; n < NB; n++)
#pragma unroll
        for (int i = 0; i < $(2 * halves); i++) s[m][n][i] *= factor[m][i / 2];
//|   end
//|   if p.k_scale == 2 then
#pragma unroll
    for (int n = 0; n < NB; n++) {
      const float2 scale = $(of_keys(codes .. " + K_SCALES"));
#pragma unroll
      for (int m = 0; m < MB; m++)
#pragma unroll
        for (int i = 0; i < $(2 * halves); i++) s[m][n][i] *= i % 2 ? scale.y : scale.x;
    }
//|   end
//| end
//| local lane = "at"
//| if l.limbs and l.limbs.tiles == 1 then
//|   lane = "of_rows"
    Lane of_rows = at;
    of_rows.g = at.g % 4;  // rows 4 to 7 are rows 0 to 3 again
//| end
//| indented(4, pr.begin_score, "tile.head")
//| indented(4, pr.scoring_by, "!masked", ("s, p, scored, tile.row + row, block, %s"):format(lane))
    if (masked) apply_mask(s, p, sequence$(pr.ends_argument), tile.row + row, block, $(lane));
    softmax(s, o, state, $(pr.unit_log2));
//| if p.v_scale == 2 then
    scale_probabilities(s, $(codes) + V_SCALES);
//| end
//| if I then
    accumulate(o, s, $(power and "power, " or "")v_tile, at);
//| else
//|   if l.low and not l.widened then
    Probabilities probabilities;
//|   else
    u32 probabilities[MB][P_STEPS][4];
//|   end
    to_fragments(probabilities, s);
//|   if l.widened then
    meet();
    accumulate_begin(o, probabilities, v_tile);
//|   else
    accumulate(o, probabilities, v_tile, at);
//|   end
//| end
  }

//| if p.v_scale == 2 then
  // P times the scales of V's tokens, relative to the largest so far, so that fp16 holds the products. They are no part of l.
  __device__ __forceinline__ void scale_probabilities(float (&s)[MB][NB][4], u32 scales) {
    float2 scale[NB];
    float top = 0.f;
#pragma unroll
    for (int n = 0; n < NB; n++) {
      scale[n] = $(of_keys("scales"));
      top = fmaxf(top, fmaxf(fabsf(scale[n].x), fabsf(scale[n].y)));
    }
    top = quad_max(top);
    // The next power of two, at most 2^126.
    const u32 exponent = min((__float_as_uint(top) + 0x7fffff) >> 23, 253u);
    if (exponent > __float_as_uint(v_top) >> 23) {
      const float next = __uint_as_float(exponent << 23), keep = v_top / next;
      v_top = next;
#pragma unroll
      for (int m = 0; m < MB; m++)
#pragma unroll
        for (int v = 0; v < OB; v++)
#pragma unroll
          for (int i = 0; i < 4; i++) o[m][v][i] *= keep;
    }
    const float by = __uint_as_float((254u << 23) - __float_as_uint(v_top));  // 1 / v_top
#pragma unroll
    for (int n = 0; n < NB; n++)
#pragma unroll
      for (int m = 0; m < MB; m++)
#pragma unroll
        for (int i = 0; i < $(2 * halves); i++) s[m][n][i] *= (i % 2 ? scale[n].y : scale[n].x) * by;
  }

//| end
//| if p.v_scale == 4 then
  __device__ __forceinline__ float of_column(int i) const { return i < DV ? v_columns[i * v_apart] : 0.f; }

//| end
  // O, m and l to where the block finds those of the group. rows: of the tile.
  __device__ __forceinline__ void leave(unsigned char *exchange, float2 *states, int rows) const {
#pragma unroll
    for (int m = 0; m < MB; m++)
#pragma unroll
      for (int h = 0; h < $(halves); h++) {
        const float l = quad_sum(state[m][h].l);
        const int r = row + m * 16 + h * 8 + at.g;
        if (r < rows) {
          if (at.t == 0) states[r] = make_float2(state[m][h].m, l);
//| if l.half or I then
//| elseif l.low and not l.widened and l.low.v.block == 1 then
          const float of_o = v_factor$(p.v_scale == 2 and " * v_top" or "");
#pragma unroll
          for (int chunk = 0; chunk < CHUNKS_V; chunk++)
            if (DV % 16 == 0 || chunk * 16 + at.t * 4 < COLS) {
              const float(&even)[4] = o[m][2 * chunk], (&odd)[4] = o[m][2 * chunk + 1];
//|   local function by(i) return p.v_scale == 4 and (" * of_column(chunk * 16 + at.t * 4 + %d)"):format(i) or "" end
              *(float4 *)(exchange + exchange_offset(r, chunk * 8 + at.t * 2)) =
                  make_float4(even[2 * h] * of_o$(by(0)), odd[2 * h] * of_o$(by(1)),
                              even[2 * h + 1] * of_o$(by(2)), odd[2 * h + 1] * of_o$(by(3)));
            }
//| elseif l.widened then
          const float of_o = v_factor$(p.v_scale == 2 and " * v_top" or "");
#pragma unroll
          for (int v = 0; v < VB; v++) {
//|   local function by(i) return p.v_scale == 4 and (" * of_column(v * 8 + at.t * 2 + %d)"):format(i) or "" end
            *(float2 *)(exchange + exchange_offset(r, v % 4 * 4 + at.t) + v / 4 * 128) =
                make_float2(o[m][v][2 * h] * of_o$(by(0)), o[m][v][2 * h + 1] * of_o$(by(1)));
          }
//| elseif not l.low then
#pragma unroll
          for (int v = 0; v < VB; v++)
            *(float2 *)(exchange + exchange_offset(r, v % 4 * 4 + at.t) + v / 4 * 128) = make_float2(o[m][v][2 * h], o[m][v][2 * h + 1]);
//| end
        }
      }
//| if I and l.standing then
//|   local standing = (include "mma/low_standing.cu")(l, nil, {})
//|   standing.leave()
//| elseif I then
    // O has queries 2t and 2t + 1 as columns, and columns where V's codes have them as rows, each too large by what it had codes too large.
    const float of_o = v_factor * 0x1p24f$(p.v_scale == 2 and " * v_top" or "")$(power and " * undo(power)" or "");
    const int g = opaque(at.g);
//|   local f = l.low.v
//|   local function excess(b)
//|     if I.excess == I.blocks then return ("o[0][EXCESS + %d][e]"):format(b) end
//|     local own = ("o[0][EXCESS + %d][e]"):format(b // 2)
//|     return b % 2 == 0 and own or ("__shfl_down_sync(~0u, %s, 2)"):format(own)
//|   end
//|   for b = 0, I.blocks - 1 do
    {
      float excess[4];
#pragma unroll
      for (int e = 0; e < 4; e++) excess[e] = $(excess(b));
#pragma unroll
    for (int i = 0; i < $(I.chunks); i++) {
//|   if I.joined then
      const int byte = i * 16 + ((g * 2$(l.shifts_v and " - at.v_shift" or "") - $(b * f.block_bytes % 16 + 2)) & 15);
      const int column = $(b * f.block) + byte;
      const bool there = true;
//|   else
      const int byte = ($(I.first[b]) + i) * 16 + g * 2$(l.shifts_v and " - at.v_shift" or "") - $(f.block == 1 and 0 or b * f.block_bytes + f.codes_at);
      const int column = $(b * f.block) * $(f.block == 1 and 0 or 1) + byte;
      const bool there = byte >= 0 && byte < $(I.bytes);
//|   end
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const int r = row + at.t * 2 + e;
        if (r >= rows || !there) continue;
        const float more = excess[e];
//|     if f.bits == 8 then
//|       local function by(i) return p.v_scale == 4 and (" * of_column(column + %d)"):format(i) or "" end
        const float(&x)[4] = o[0][$(b * I.rows) + i];
        *(float2 *)(exchange + exchange_offset(r, column / 2)) = make_float2((x[e] - more) * of_o$(by(0)), (x[e + 2] - more) * of_o$(by(1)));
//|     else
        const float(&even)[4] = o[0][$(b * I.rows) + 2 * i], (&odd)[4] = o[0][$(b * I.rows) + 2 * i + 1];
        const float upper = excess[e + 2];
        *(float2 *)(exchange + exchange_offset(r, column / 2)) = make_float2((even[e] - more) * of_o, (odd[e] - more) * of_o);
        *(float2 *)(exchange + exchange_offset(r, column / 2 + $(f.shared // 4))) =
            make_float2((even[e + 2] - upper) * (of_o * 0x1p-4f), (odd[e + 2] - upper) * (of_o * 0x1p-4f));
//|     end
      }
    }
    }
//|   end
//| elseif l.half then
    // O has queries 2t and 2t + 1 as columns, and columns where V's codes have them as rows.
    const float of_o = v_factor$(p.v_scale == 2 and " * v_top" or "");
    const int g = opaque(at.g);
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS_V; chunk++) {
      // Two bytes of a chunk are neighbouring columns, of 4 bits of two blocks of them.
//|   if l.low.v.block == 1 then
      const int column = chunk * 16 + g * 2;
      const bool there = DV % 16 == 0 || column < COLS;
//|   else
      const int column = v_element_at(chunk * 16 + g * 2$(l.shifts_v and " - at.v_shift" or ""), 0);
      const bool there = column >= 0 && column < COLS;
//|   end
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const int r = row + at.t * 2 + e;
        if (r >= rows || !there) continue;
//|   if l.low.v.bits == 8 then
//|     local function by(i) return p.v_scale == 4 and (" * of_column(column + %d)"):format(i) or "" end
        *(float2 *)(exchange + exchange_offset(r, column / 2)) =
            make_float2(o[0][chunk][e] * of_o$(by(0)), o[0][chunk][e + 2] * of_o$(by(1)));
//|   elseif l.low.v.halves then
#pragma unroll
        for (int y = 0; y < 2; y++)
          *(float2 *)(exchange + exchange_offset(r, column / 2 + y * $(l.low.v.shared // 4))) =
              make_float2(o[0][2 * chunk][e + 2 * y] * of_o, o[0][2 * chunk + 1][e + 2 * y] * of_o);
//|   else
#pragma unroll
        for (int y = 0; y < 2; y++)
          *(float2 *)(exchange + exchange_offset(r, column / 2 + y)) =
              make_float2(o[0][2 * chunk + y][e] * of_o, o[0][2 * chunk + y][e + 2] * of_o);
//|   end
      }
    }
//| elseif l.low and not l.widened and l.low.v.block > 1 then
    // Columns lie where V's blocks have them: each is found once, for both rows.
    const float of_o = v_factor$(p.v_scale == 2 and " * v_top" or "");
    const int t = opaque(at.t);
#pragma unroll
    for (int v = 0; v < OB; v++)
#pragma unroll
      for (int x = 0; x < 2; x++) {
        const int place = v % V_WORD, byte = (v / V_WORD * 8 + 2 * t + x) * 2 + place * 2 / V_WORD$(l.shifts_v and " - at.v_shift" or "");
        const int column = v_element_at(byte, V_WORD == 4 ? place % 2 : 0);
        if (column < 0 || column >= COLS) continue;
#pragma unroll
        for (int m = 0; m < MB; m++)
#pragma unroll
          for (int h = 0; h < 2; h++) {
            const int r = row + m * 16 + h * 8 + at.g;
            if (r < rows) *(float *)(exchange + exchange_offset(r, column / 2) + column % 2 * 4) = o[m][v][2 * h + x] * of_o;
          }
      }
//| end
  }
};
