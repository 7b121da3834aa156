//| needs "l.besides? l.cuts? l.fades? l.held? l.one_text? l.relative l.runs? l.staged?"
//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- the mask, between S and the row maxima ----
// How many of the columns 8n and 8n + 1 lie below x, no more than 0 where x is: a thread holds these of a row.
//| if pr.keeps_ends then  -- asked of four ends, between S and P
__device__ __forceinline__ int columns_below(int x) { return (x >> 3) * 2 + min(x & 7, 2); }
//| else
__device__ __forceinline__ int columns_below(int x) { return x / 8 * 2 + min(x % 8, 2); }
//| end
// The lowest n bits, all or none where n is beyond.
//| if pr.keeps_ends then
__device__ __forceinline__ u32 bits_below(int n) { return __funnelshift_lc(~0u, 0u, (u32)max(n, 0)); }
//| else
__device__ __forceinline__ u32 bits_below(int n) { return n >= 32 ? ~0u : n > 0 ? (1u << n) - 1 : 0; }
//| end

//| if pr.keeps_ends then
// Where what a tile's rows see begins and ends is found once, and where few other registers are in use.
// row: the warp's first, of the sequence; to: of that row.$(l.runs and " They are counted from key `first` on." or "")
//| local of_first = l.runs and ", int first" or ""
__device__ __forceinline__ void keep_ends(const Params &p, const Sequence &sequence, const ScoreTile &scored, int row, u32 to$(of_first)) {
  const int lane = threadIdx.x % 32;
//|   indented(2, pr.keep_ends, "to")
}
//| end
// Scores of keys that their query does not see become -inf. row: this thread's first, of the sequence. Of a row, bit 2n + e stands for
// column 8n + 2t + e of the block.$(pr.keeps_ends and " ends: where the first and the last key lie that the thread's first row sees." or "")
//| local scored = pr.ends_type
//| if l.cuts == "tanh" then
// NS: of a half, for whose t its first column counts, too.
template <int NS>
//| end
__device__ __forceinline__ void apply_mask(float (&s)[NS], const Params &p, const Sequence &sequence$(scored), int row, int block, int t) {
//| indented(2, pr.hide, "wgmma", "s", "-infinity()")
}
//| if pr.of_pairs and not pr.masks then
//|   if not l.cuts or l.cuts == "scores" then

// Before that products become scores. CUT: keys past the last may be among them.
template <bool CUT>
__device__ __forceinline__ void apply_score(float (&s)[NS], const Params &p, const ScoreTile &scored, int row, int block,
                                            int t$(pr.reads_ahead and ", const ScoreAhead &ahead" or pr.staged and ", u32 stage, int wg" or "")) {
//|   if pr.staged then
  const int lane = threadIdx.x % 32, g = lane / 4, tile_row = wg * 64 + threadIdx.x / 32 % 4 * 16;
//|     indented(2, pr.apply_staged, "s", "stage", "tile_row")
//|   else
//|     indented(2, pr.apply, "wgmma", "s", pr.reads_ahead and "ahead" or "CUT")
//|   end
}
//|   end
//|   if l.held then
// The same with the elements of a tile that this thread holds.
template <bool CUT>
__device__ __forceinline__ void apply_held(float (&s)[NS], const Params &p, const ScoreTile &scored, int row, int block, int t,
                                           const u32 (&held)[NS / 2]) {
//|     indented(2, pr.apply_held, "s", "held")
}
//|   end
//|   if l.one_text then
//|     local tile = l.staged.tiles[1]
//|     local type, least = tile.of.bf16 and "bf16x2" or "f16x2", tile.of.bf16 and "0xff80" or "0xfc00"
//|     local two = least .. least:sub(3) .. "u"
//|     local floats = tile.of.bf16 and "__uint_as_float(%s << 16), __uint_as_float(%s & 0xffff0000u)"
//|       or "score_half((unsigned short)%s), score_half((unsigned short)(%s >> 16))"
//|     local place = ("(tile_row + r) * %d + c * 2"):format(tile.pitch)
//|     if tile.swizzled then place = ("tile_place%d(tile_row + r, c * 2)"):format(tile.node) end
// What the mask hides of a block becomes -inf in the stage. row: the thread's first.
__device__ __forceinline__ void hide_in_stage(const Params &p, const Sequence &sequence, int row, int block, u32 stage,
                                              int wg$(tile.shifted and ", const ScoreTile &scored" or "")) {
  const int lane = threadIdx.x % 32, tile_row = wg * 64 + threadIdx.x / 32 % 4 * 16;
  // Two lanes to a row: elements up to a multiple of eight, from there on eight at a time.
  const int r = lane / 2, query = query_of(p, row - lane / 4 + r);
  const int seen = min(max($(pr.last_key("query")) + 1 - block * BC, 0), BC);
//|     if tile.shifted then
  const int shift = row_shift$(tile.node)(p, scored, query);
#pragma unroll 1
  for (int c = seen + shift + lane % 2; c < BC + shift; c += 2) store_shared(stage + $(tile.at) + $(place), (u16)$(least));
//|     else
#pragma unroll 1
  for (int c = seen + lane % 2; c < (seen + 7) / 8 * 8; c += 2) store_shared(stage + $(tile.at) + $(place), (u16)$(least));
#pragma unroll 1
  for (int c = ((seen + 7) / 8 + lane % 2) * 8; c < BC; c += 16)
    store_shared(stage + $(tile.at) + $(place), make_uint4($(two), $(two), $(two), $(two)));
//|     end
  fence_async();
  __syncwarp();
}
// Two elements: the larger ones, NaN passed over.
__device__ __forceinline__ u32 max_two(u32 x, u32 y) {
  u32 r;
  asm("max.$(type) %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y));
  return r;
}
// About how large the scores of the rows are: of a lane's keys by the largest element that is seen, and the product of its first key, which
// its row sees where it sees any. P may be far above or below 1: a sum that is large moves m, and a row of a small one is computed again.
__device__ __forceinline__ void raise_tops(const float (&s)[NS], float (&tops)[2], const Params &p, const Sequence &sequence,
                                           const ScoreTile &scored, int row, int block, int t, const u32 (&held)[NS / 2]) {
  u32 most[2] = {$(two), $(two)};
#pragma unroll
  for (int n = 0; n < NS / 2; n++) most[n % 2] = max_two(most[n % 2], held[n]);
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int query = query_of(p, row + 8 * h);
    const float x[2] = {$(floats:format("most[h]", "most[h]"))};
    tops[h] = score_pair_ahead<false>(p, scored, scored.h, query, block * BC + 2 * t, 0, s[2 * h], fmaxf(x[0], x[1]));
  }
}
//|   end
//|   if l.besides and not l.cuts then
// Of a later block: true where all scores have `beside`, in log2 units, and are products as yet.
__device__ __forceinline__ bool apply_score_beside(float (&s)[NS], const Params &p, const ScoreTile &scored, int row, int block, int t,
                                                   u32 stage, int wg, float2 far, float &beside) {
  constexpr bool CUT = false;  // nothing is looked up by the key
  const int lane = threadIdx.x % 32, g = lane / 4, tile_row = wg * 64 + threadIdx.x / 32 % 4 * 16;
  beside = 0.f;
//|     indented(2, pr.apply_staged, "s", "stage", "tile_row", "beside")
  return false;
}
//|   end
//|   if l.fades then
// Up to here 2^x is 0, by the special-function unit as by exp2_by_fma().
constexpr float NOTHING = -127.f;
// Of a later block that is whole: whether the powers of 2 of all exponents may be 0. An exponent rises with the product, and over a row's
// keys it rises or falls all the way: so does what is rounded. None is above that of the largest product, or of 0, at the thread's first or
// last key. most: the largest of a product of 0. The same for a warp.
__device__ __forceinline__ bool may_fade(const Params &p, const ScoreTile &scored, const RowState (&state)[2], int row, int block, int t,
                                         float &most) {
  auto exponent = [&](int h, int column) {  // of a product of 0
//|     indented(4, pr.own_row, "row + 8 * h")
    return score_exponent(p, scored, head, query, block * BC + 2 * t, column, 0.f, near_shift(state[h].m));
  };
  most = -infinity();
  if (!__all_sync(~0u, exponent(0, 0) <= NOTHING)) return false;  // of most blocks the thread's first key is enough
  bool below = p.scale > 0.f;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const float first = exponent(h, 0), last = exponent(h, BC - 7);
    below = below && first <= NOTHING && last <= NOTHING && !is_far(state[h].m, 1.f);  // NaN is not
    most = fmaxf(most, fmaxf(first, last));
  }
  return __all_sync(~0u, below);
}
// Whether they are, by the products.
__device__ __forceinline__ bool all_fade(const float (&s)[NS], const Params &p, float most) {
  int top = 0;  // as integers products above 0 are in order, and NaN above all
#pragma unroll
  for (int i = 0; i < NS; i += 2) top = max(max(top, __float_as_int(s[i])), __float_as_int(s[i + 1]));
  return __all_sync(~0u, fmaf(__int_as_float(top), p.scale_log2, most) <= NOTHING);
}
//|   end
//|   if l.relative and pr.slopes then
// Products of a later block become exponents relative to the rows' m, and those of hidden pairs -inf.
__device__ __forceinline__ void apply_exponent(float (&s)[NS], const Params &p, const Sequence &sequence, const ScoreTile &scored,
                                               const RowState (&state)[2], int row, int block, int t, bool whole$(pr.keeps_ends and ", u32 ends" or "")) {
  const float shift[2] = {near_shift(state[0].m), near_shift(state[1].m)};
//|     if pr.has_mask and not pr.ends then
  if (!whole) {
    apply_score<true>(s, p, scored, row, block, t);
    apply_mask(s, p, sequence$(pr.ends_argument), row, block, t);
#pragma unroll
    for (int i = 0; i < NS; i++) s[i] = $(pr.exponent("s[i]", pr.unit_log2, "shift[i / 2 % 2]"));
    return;
  }
//|     end
//|     indented(2, pr.apply, "wgmma", "s", "exponents")
//|     if not pr.has_mask or pr.ends then
  if (!whole) apply_mask(s, p, sequence$(pr.ends_argument), row, block, t);
//|     end
}
//|   end
//| end
