//| needs "c.pack? l.in_chunks? l.masks? l.pack? l.row_ends? l.runs? l.staged? l.tanh_by_fma? l.tma?"
//| -- program: a score program's functions as kernels have them. Of problems without a program it prints nothing, and the texts are those
//| -- of the scaled product. What kernels make of them: program_tiles.cu, program_staged.cu, program_gradients.cu, program_sink.cu.
//|
//| local edges = include "pairs/edges.lua"
//|
//| local function print_lines(lines)
//|   for _, line in ipairs(lines) do
$(line)
//|   end
//| end
//|
//| -- tanh by a polynomial: of which numbers, its largest error, coefficients. docs/experiments.md has how they were found.
//| local by_fma = {
//|   chip = { kind = "relative", most = "0.4", error = "6.3e-6", a = { "0.999993753", "-0.332625795", "0.121277867" } },
//|   exact = { kind = "absolute", most = "0.42", error = "3e-8", a = { "0.99999938", "-0.333285718", "0.132340431", "-0.0461688947" } },
//| }
//| for _, of in ipairs({ by_fma.chip, by_fma.exact }) do
//|   of.names, of.horner = {}, "a" .. #of.a - 1
//|   for n = 0, #of.a - 1 do of.names[n + 1] = "a" .. n end
//|   for n = #of.a - 2, 0, -1 do of.horner = ("fmaf(u, %s, a%d)"):format(of.horner, n) end
//| end
//|
//| return function(pr, p, l)
//|   local program = p.score
//|   local has_score, has_sink = program and program.has_score, program and program.has_sink
//|   local has_mask = program and program.has_mask
//|   local number = p.has_lengths and "sequence.index" or "(int)sequence.batch"
//|   local off = program and program.off and "p.relative ? sequence.sk() - sequence.sq() : p.off" or "0"
//|   function pr.packed() return (c.pack or l.pack) == 1 end  -- rows of a tile are of several heads
//|
//|   -- P times the derivative of the score.
//|   local function bent(probability, bend)
//|     local text = program.bends_below_one and "fmaf(%s, %s, %s)" or "%s * %s"
//|     return text:format(probability, bend, probability)
//|   end
//|   pr.bent_by = bent
//|
//|   -- What a score in the kernel's registers is multiplied by to be one, and to be an exponent of 2.
//|   pr.unit, pr.unit_log2 = "p.scale", "p.scale_log2"
//|   if has_score then
//|     local unit = program.unit
//|     pr.unit, pr.unit_log2 = unit or "1.f", unit and ("(%s * 1.44269504088896341f)"):format(unit) or "1.44269504088896341f"
//|   end
//|   pr.has_score, pr.has_mask, pr.has_sink = has_score, has_mask, has_sink
//|   pr.walks, pr.marked = edges.walks(p), edges.marked(p)
//|   pr.late = pr.marked and not has_score  -- what pairs share is read where a tile is in doubt
//|   pr.ends = edges.ends(p)  -- the mask is two keys for each row, which tell what is hidden
//|   pr.of_pairs = edges.of_pairs(p)
//|   -- Some of its conditions are such keys, and what is staged is the rest.
//|   pr.ends_in_part = l.masks and program.solved_in_part and not pr.ends
//|   pr.row_ends = pr.ends or pr.ends_in_part
//|   pr.keeps_ends = pr.row_ends and l.row_ends -- which lie in shared memory
//|   pr.ends_type, pr.ends_argument = pr.ends and ", const ScoreTile &scored" or "", pr.ends and ", scored" or ""
//|   if pr.keeps_ends then pr.ends_type, pr.ends_argument = ", u32 ends", ", ends" end
//|   -- Blocks of keys of a tile that begins with a run are counted from its first key, and so are ends that lie in shared memory.
//|   pr.counts_from = l.runs and not pr.keeps_ends
//|   if pr.counts_from then pr.ends_type, pr.ends_argument = ", int from", ", tiles.from(smem)" end
//|   -- Whether gradients of scores take another factor on their way to the product.
//|   pr.bends = has_score and p.op == "backward" and program.bends
//|   -- Gradients: one number of key - query is all that a pair looks up. array: what it is read from.
//|   pr.line = p.op == "backward" and has_score and l.tma and not pr.bends and edges.line(program)
//|   pr.far = pr.line and not pr.line.array and (program.has_far_below or program.has_far_above)
//|   pr.sum_type = has_sink and "float" or "const float"
//|
//|   -- The functions: of a pair, after pairs/mask.cu; of the sink, after those of the softmax.
//|   function pr.program()
//|     if not program then return end

// ---- the score program ----
//|     print_lines(program.helpers())
//|     if has_mask and (edges.bounds(p) or pr.marked) then

//|       include "pairs/intervals.cu"
//|       print_lines(program.mask_helpers())
//|     end
//|     if has_sink then
// The score of the key that a row's sum has beside its own, whose value is 0.
__device__ __forceinline__ float score_sink(const Params &p, int b, int h, int row, int off, int sq, int sk) {
//|       print_lines(program.sink())
}
__device__ __forceinline__ float sink_of(const Params &p, const Sequence &sequence, long long head, long long query) {
  return score_sink(p, $(number), (int)head, (int)query, $(off), sequence.sq(), sequence.sk());
}
//|     end
//|     if not has_score and not has_mask then return end
// What the pairs of a tile share. h: the head; the first of the group where a tile has rows of several.
struct ScoreTile {
  int b, h, off, sq, sk;
//|     for _, member in ipairs(has_score and program.members(pr.packed(), pr.bends) or {}) do
  $(member);
//|     end
//|     for _, member in ipairs(has_mask and program.mask_members(pr.packed()) or {}) do
  $(member);
//|     end
//|     if pr.far then
  float below, above;  // what pairs that far apart have
//|     end
};
//|     if pr.far then
__device__ __forceinline__ float score_distance(const Params &p, const ScoreTile &t, int distance);
//|       for _, side in ipairs({ program.has_far_below and "below", program.has_far_above and "above" }) do
__device__ __forceinline__ int score_far_$(side)(const Params &p, const ScoreTile &t);
//|       end
//|     end
__device__ __forceinline__ ScoreTile score_tile(const Params &p, const Sequence &sequence, int head) {
  ScoreTile t;
  t.b = $(number), t.h = head, t.off = $(off), t.sq = sequence.sq(), t.sk = sequence.sk();
//|     indented(2, print_lines, has_score and program.fill(pr.packed(), pr.bends) or {})
//|     indented(2, print_lines, has_mask and program.mask_fill(pr.packed()) or {})
//|     if pr.far then
  t.below = $(program.has_far_below and "score_distance(p, t, score_far_below(p, t))" or "0.f");
  t.above = $(program.has_far_above and "score_distance(p, t, score_far_above(p, t))" or "0.f");
//|     end
  return t;
}
//|     if has_mask then
// Whether the program's mask lets a row's query see key + column. CUT: the key may be past the last.
template <bool CUT>
__device__ __forceinline__ bool score_sees(const Params &p, const ScoreTile &t, int head, int row, int key, int column) {
//|       print_lines(program.mask(pr.packed()))
}
//|     end
//|     if pr.walks then
// The keys that the mask leaves to queries i0 to i1 of heads h0 to h1: to some of them none outside of lo to hi; to each all of full_lo to
// full_hi.
struct MaskBounds {
  int lo, hi, full_lo, full_hi;
};
__device__ __forceinline__ MaskBounds mask_bounds(const Params &p, const ScoreTile &t, int h0, int h1, int i0, int i1) {
//|       if edges.bounds(p) then
//|         print_lines(program.mask_bounds())
//|       else
  return {0, t.sk - 1, 1, 0};  // without a workspace nothing is known of the mask's operands
//|       end
}
//|     end
//|     if pr.ends or pr.ends_in_part then
// Of a row: the first and the last key that $(pr.ends and "the mask leaves" or "what is solved of the mask leaves").
struct MaskEnds {
  int lo, hi;
};
__device__ __forceinline__ MaskEnds mask_ends(const Params &p, const ScoreTile &t, int head, int row) {
//|       print_lines(program.mask_ends())
}
//|     end
//|     if l.in_chunks then
// Runs of queries that begin at the same key: those whose sum with `first` has the same quotient by `length`.
struct MaskRuns {
  int first, length;
};
__device__ __forceinline__ MaskRuns mask_runs(const Params &p, const ScoreTile &t, int head) {
//|       print_lines(program.mask_runs())
}
//|     end
//|     if edges.scans(p) or pr.marked then
// What the mask is on these queries and keys j0 to j1: 0 hides all pairs, 2 leaves all, 1 whatever else.
__device__ __forceinline__ int mask_class(const Params &p, const ScoreTile &t, int h0, int h1, int i0, int i1, int j0, int j1) {
//|       print_lines(program.mask_class())
}
//|     end
//|     if pr.ends_in_part then
// The same of the conditions that are not solved, and 4 times that of those that are.
__device__ __forceinline__ int mask_classes(const Params &p, const ScoreTile &t, int h0, int h1, int i0, int i1, int j0, int j1) {
//|       print_lines(program.mask_classes())
}
//|       if l.runs then
// The same of those that are solved alone.
__device__ __forceinline__ int mask_solved(const Params &p, const ScoreTile &t, int h0, int h1, int i0, int i1, int j0, int j1) {
//|         print_lines(program.mask_solved())
}
//|       end
//|     end
//|     if not has_score then return end
// The score of the pair of a row's query and key + column, out of the product x, in units of $(pr.unit). CUT: the key may be past the last.
template <bool CUT>
__device__ __forceinline__ float score_pair(const Params &p, const ScoreTile &t, int head, int row, int key, int column, float x) {
//|     print_lines(program.pair(pr.packed()))
}
//|     if l.tanh_by_fma then
//|       local of = by_fma[program.tanh_exact and "exact" or "chip"]
// Exponents of 2 of scores whose tanh is a polynomial, x (a0 + a1 x^2 + ...), with the least $(of.kind) error, $(of.error), for |x| up
// to $(of.most). most: what a product is then, below 0 where powers of the factor that makes x of it are beyond fp32.
struct TanhByFma {
  float $(table.concat(of.names, ", ")), most;
  __device__ __forceinline__ float exponent(float x, float shift) const {
    const float u = x * x;
    return fmaf(x, $(of.horner), -shift);
  }
};
__device__ __forceinline__ TanhByFma tanh_by_fma(const Params &p) {
  const float k = $(program.tanh_of), kk = k * k;
  TanhByFma by;
//|       for n, a in ipairs(of.a) do
  by.a$(n - 1) = $(n == 1 and pr.unit_log2 .. " * k" or "by.a" .. n - 2 .. " * kk");
//|       end
//|       for n, a in ipairs(of.a) do
  by.a$(n - 1) *= $(a)f;
//|       end
  by.most = fabsf(k) > 1e-4f && fabsf(k) < 1e3f && fabsf($(pr.unit_log2)) < 1e9f ? $(of.most)f / fabsf(k) : -1.f;
  return by;
}
//|     end
//|     if pr.bends then
// The same, and the derivative of the score by x * p.scale$(program.bends_below_one and ", less 1" or "").
template <bool CUT>
__device__ __forceinline__ float score_pair_bend(const Params &p, const ScoreTile &t, int head, int row, int key, int column, float x,
                                                 float &bend) {
//|       print_lines(program.bend(pr.packed()))
}
// What dP - D is multiplied by in the place of P: 0 where P is, whatever the derivative is there.
__device__ __forceinline__ float bent(float probability, float bend) { return probability != 0.f ? $(bent("probability", "bend")) : 0.f; }
//|     end
//|     local ahead = ""
//|     for n, of in ipairs(l.tma and program.arrays or {}) do
//|       ahead = ahead .. (", float a%d"):format(of.node)
// Where key 0 of a row lies in array $(of.operand).
__device__ __forceinline__ const $(of.wide and "float" or "unsigned short") *score_ahead$(of.node)(const Params &p, const ScoreTile &t, int head, int row) {
//|       print_lines(program.ahead_row(pr.packed(), n))
}
//|       if l.staged and l.staged.boxed[n] then
// The indices of key 0 of a row there.
__device__ __forceinline__ void score_at$(of.node)(const Params &p, const ScoreTile &t, int row, int (&at)[$(of.rank)]) {
//|         print_lines(program.ahead_at(pr.packed(), n))
}
//|       end
//|     end
//|     if l.tma and program.of_distance and not pr.packed() then
//|       ahead = ahead .. (", float a%d"):format(program.of_distance)
// What depends on key - query alone.
__device__ __forceinline__ float score_distance(const Params &p, const ScoreTile &t, int distance) {
//|       print_lines(program.distance())
}
//|       local far = pr.far and { below = program.has_far_below, above = program.has_far_above } or l.staged and l.staged.far or {}
//|       if far.below then
// Up to this key - query, that is one number.
__device__ __forceinline__ int score_far_below(const Params &p, const ScoreTile &t) {
//|         print_lines(program.far_below())
}
//|       end
//|       if far.above then
// From this key - query on.
__device__ __forceinline__ int score_far_above(const Params &p, const ScoreTile &t) {
//|         print_lines(program.far_above())
}
//|       end
//|     end
//|     if ahead ~= "" then
// The score of a pair of which that is there.
template <bool CUT>
__device__ __forceinline__ float score_pair_ahead(const Params &p, const ScoreTile &t, int head, int row, int key, int column,
                                                  float x$(ahead)) {
//|       print_lines(program.pair_ahead(pr.packed()))
}
//|     end
//|     if not program.slopes then return end
// Its exponent of 2, less `shift`, of a key that is none past the last.
__device__ __forceinline__ float score_exponent(const Params &p, const ScoreTile &t, int head, int row, int key, int column, float x,
                                                float shift) {
//|     print_lines(program.exponent(pr.packed()))
}
//|   end
//| end
