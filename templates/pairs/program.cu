//| needs "c.pack? l.begins? l.in_chunks? l.masks? l.pack? l.reads_twice? l.relative? l.row_ends? l.runs? l.staged? l.sums?"
//| needs "l.tanh_by_fma? l.tma?"
//| -- program: a score program's functions as kernels have them, and what they make of a tile's scores and of a row's sum. Of problems
//| -- without a program it prints nothing, and the texts are those of the scaled product.
//|
//| local loops = include "pairs/loops.cu"
//| local layouts = include "pairs/layouts.lua"
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
//|   local function packed() return (c.pack or l.pack) == 1 end  -- rows of a tile are of several heads
//|
//|   -- P times the derivative of the score.
//|   local function bent(probability, bend)
//|     local text = program.bends_below_one and "fmaf(%s, %s, %s)" or "%s * %s"
//|     return text:format(probability, bend, probability)
//|   end
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
//|     for _, member in ipairs(has_score and program.members(packed(), pr.bends) or {}) do
  $(member);
//|     end
//|     for _, member in ipairs(has_mask and program.mask_members(packed()) or {}) do
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
//|     indented(2, print_lines, has_score and program.fill(packed(), pr.bends) or {})
//|     indented(2, print_lines, has_mask and program.mask_fill(packed()) or {})
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
//|       print_lines(program.mask(packed()))
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
//|     print_lines(program.pair(packed()))
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
//|       print_lines(program.bend(packed()))
}
// What dP - D is multiplied by in the place of P: 0 where P is, whatever the derivative is there.
__device__ __forceinline__ float bent(float probability, float bend) { return probability != 0.f ? $(bent("probability", "bend")) : 0.f; }
//|     end
//|     local ahead = ""
//|     for n, of in ipairs(l.tma and program.arrays or {}) do
//|       ahead = ahead .. (", float a%d"):format(of.node)
// Where key 0 of a row lies in array $(of.operand).
__device__ __forceinline__ const $(of.wide and "float" or "unsigned short") *score_ahead$(of.node)(const Params &p, const ScoreTile &t, int head, int row) {
//|       print_lines(program.ahead_row(packed(), n))
}
//|       if l.staged and l.staged.boxed[n] then
// The indices of key 0 of a row there.
__device__ __forceinline__ void score_at$(of.node)(const Params &p, const ScoreTile &t, int row, int (&at)[$(of.rank)]) {
//|         print_lines(program.ahead_at(packed(), n))
}
//|       end
//|     end
//|     if l.tma and program.of_distance and not packed() then
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
//|       print_lines(program.pair_ahead(packed()))
}
//|     end
//|     if not program.slopes then return end
// Its exponent of 2, less `shift`, of a key that is none past the last.
__device__ __forceinline__ float score_exponent(const Params &p, const ScoreTile &t, int head, int row, int key, int column, float x,
                                                float shift) {
//|     print_lines(program.exponent(packed()))
}
//|   end
//|
//|   function pr.sink_functions()
//|     if not has_sink then return end

// ---- the sink: one more term of a row's sum ----
// Its exponent of 2 beside sums relative to m: to r where the row is not far, else to m itself, as rows that are computed again have it. A
// row that has seen no key is relative to 0.
__device__ __forceinline__ float sink_exponent(float z, float m, float scale_log2, float scale) {
//|     local log2e = "1.44269504088896341f"
  const float far = fmaf(-m, scale, z) * $(log2e), near = $(pr.exponent("z", log2e, "shift_of(m, scale_log2)"));
  return m == -infinity() ? z * $(log2e) : is_far(m, scale_log2) ? far : near;
}
// What it adds to l: of +inf NaN, as of a score. Where it outweighs all keys by far, 1 / l is small enough for an O of 0 in any type.
__device__ __forceinline__ float sink_weight(float z, float m, float scale_log2, float scale) {
  const float x = sink_exponent(z, m, scale_log2, scale);
  return z == infinity() ? __int_as_float(0x7fffffff) : exp2_approx(x > 120.f ? 120.f : x);
}
// LSE, with the sink's term in l: that term alone where there is no other, or none that shows. NaN in l is that of a score.
__device__ __forceinline__ float log_sum_exp(const RowState &row, float l, float scale, float z, float scale_log2) {
  const float lse = log_sum_exp(row, l, scale);
//|   local alone = l.relative and l.sums and "120.f" or "64.f"
  return (l == l) & ((row.m == -infinity()) | (sink_exponent(z, row.m, scale_log2, scale) > $(alone))) ? z : lse;
}
//|   end
//|
//|   -- In a kernel, before the pairs of a tile: `scored`, which the hooks below read.
//|   function pr.begin_score(head)
//|     if not has_score and not has_mask then return end
const ScoreTile scored = score_tile(p, sequence, (int)($(head)));
//|   end
//|   -- As a parameter of functions, and as an argument.
//|   pr.scored_type, pr.scored = pr.of_pairs and ", const ScoreTile &scored" or "", pr.of_pairs and ", scored" or ""
//|
//|   -- The last of the heads of a tile whose first is `head`.
//|   function pr.last_head(head) return packed() and head .. " + p.group - 1" or head end
//|   -- A row's query and head.
//|   function pr.own_row(row)
//|     if packed() then
const int own = $(row), query = query_of(p, own), head = scored.h + own - query * p.group;
//|     else
const int query = $(row), head = scored.h;
//|     end
//|   end
//|
//|   -- Whether a kernel that can reads arrays before the product is there: from global memory, or from shared memory.
//|   pr.staged = has_score and l.staged
//|   pr.produces_scores, pr.owns_rows = pr.staged and l.staged.produced, pr.staged and l.staged.owned
//|   -- Maps of what is staged: as a kernel's parameters, as arguments of a function, and as its parameters.
//|   local function box_words(word)
//|     local text = ""
//|     for _, tile in ipairs(pr.staged and l.staged.tiles or {}) do
//|       if tile.boxed then text = text .. (", %smap%d"):format(word, tile.node) end
//|     end
//|     return text
//|   end
//|   function pr.box_maps() return box_words("const __grid_constant__ TensorMap ") end
//|   function pr.box_arguments() return box_words("") end
//|   function pr.box_types() return box_words("const TensorMap &") end
//|   pr.reads_ahead = has_score and l.tma and not l.staged and (#program.arrays > 0 or program.of_distance and l.pack ~= 1)
//|   -- Whether products become exponents at once, where no pair is hidden.
//|   pr.slopes = has_score and program.slopes
//|
//|   -- Of a tile: products become scores, and those that the program's mask hides -inf. cut: whether keys past the last may be in it,
//|   -- and pairs that the mask hides; "exponents": scores become those, less the shift of the layout's rows; "ahead": arrays were read,
//|   -- two keys to a word of the layout. masked: where `cut` does not tell of the mask's pairs, what does. Kernels without a program do
//|   -- not call it.
//|   function pr.apply(layout, x, cut, masked)
//|     local of, ahead = layouts[layout].score, ""
//|     for _, lookup in ipairs(cut == "ahead" and program.arrays or {}) do
//|       local word = ("ahead.v%d%s"):format(lookup.node, lookup.wide and of.at or of.word)
//|       local half = lookup.bf16 and ", __uint_as_float(e == 0 ? %s << 16 : %s & 0xffff0000u)"
//|         or ", score_half((unsigned short)(e == 0 ? %s : %s >> 16))"
//|       ahead = ahead .. (lookup.wide and ", " .. word or half:format(word, word))
//|     end
//|     if cut == "ahead" and program.of_distance and not packed() then
//|       ahead = ahead .. (", of_distance(ahead.v%d, %s)"):format(program.of_distance, of.distance)
//|     end
//|     loops(of.loops, true, function()
//|       pr.own_row(of.row)
//|       local arguments = ("p, scored, head, query, %s, %s, %s%s"):format(of.key, of.column, x, of.at)
//|       local call = ("score_pair<%s>(%s)"):format(cut, arguments)
//|       if cut == "exponents" then call = ("score_exponent(%s, %s)"):format(arguments, of.shift) end
//|       if cut == "ahead" then call = ("score_pair_ahead<CUT>(%s%s)"):format(arguments, ahead) end
//|       if has_score then
$(x)$(of.at) = $(call);
//|       end
//|       if has_mask and not pr.ends and cut ~= "exponents" then
//|         local hides = masked or cut == "ahead" and "CUT" or cut
//|         local sees = ("score_sees<true>(p, scored, head, query, %s, %s)"):format(of.key, of.column)
//|         pr.set(of, x, "-infinity()", hides .. " && !" .. sees)
//|       end
//|     end)
//|   end
//|   -- Where a lane reads 16 bytes of a tile of 16-bit elements, and of the m-th 32 bytes of its row.
//|   function pr.tile_from(tile, stage, row, n)
//|     if tile.columns then
const u32 from$(n) = $(stage) + $(tile.at) + $(row) / 64 * $(tile.box) + (lane / 16 * 8 + lane % 8) * 128;
const u32 turn$(n) = ($(row) % 64 / 8 + lane / 8 % 2 ^ lane % 8) * 16;
//|     elseif tile.shifted then
// Words of a thread's two rows, each from the one on in which its first key is; which halves of two words are two keys.
const u32 from$(n) = $(stage) + $(tile.at) + ($(row) + lane / 4) * $(tile.pitch) + lane % 4 * 4;
const u32 own$(n)[2] = {from$(n) + shift$(n)[0] / 2 * 4, from$(n) + $(8 * tile.pitch) + shift$(n)[1] / 2 * 4};
const u32 halves$(n)[2] = {shift$(n)[0] % 2 == 0 ? 0x3210u : 0x5432u, shift$(n)[1] % 2 == 0 ? 0x3210u : 0x5432u};
//|     elseif tile.swizzled then
const u32 from$(n) = $(stage) + $(tile.at) + ($(row) + lane % 16) * $(tile.pitch), turn$(n) = lane / 16 * 16 ^ lane % 8 * 16;
//|     else
const u32 from$(n) = $(stage) + $(tile.at) + $(tile.pitch > 0 and ("(%s + lane %% 16) * %d + "):format(row, tile.pitch) or "")lane / 16 * 16;
//|     end
//|   end
//|   function pr.tile_at(tile, n)
//|     if not tile.swizzled then return ("from%s + m * 32"):format(n) end
//|     if tile.columns then return ("from%s + m * 2048 + turn%s"):format(n, n) end
//|     return ("from%s + m / 4 * %d + (m %% 4 * 32 ^ turn%s)"):format(n, tile.box, n)
//|   end
//|   -- v: a thread's words of the m-th 32 bytes of its rows.
//|   function pr.tile_read(tile, n)
//|     if not tile.shifted then
ldmatrix_x4(v$(n), $(pr.tile_at(tile, n)));
//|     else
#pragma unroll
for (int i = 0; i < 4; i++) {
  const u32 word = own$(n)[i % 2] + m * 32 + i / 2 * 16;
  v$(n)[i] = __byte_perm(load_shared(word), load_shared(word + 4), halves$(n)[i % 2]);
}
//|     end
//|   end
//|   -- Reads the elements of eight products, two to a word, and adds them: in one statement, which is compiled sooner than 25.
//|   local function add_tile(tile, x)
//|     local bf16, into = tile.of.bf16, {}
//|     for i = 0, 7 do into[#into + 1] = ('"+f"(%s[8 * m + %d])'):format(x, i) end
asm volatile("{\n.reg .b32 v<4>;\n"
//|     if bf16 then
    ".reg .b32 element;\n"
//|     else
    ".reg .b16 low, high;\n.reg .f32 element;\n"
//|     end
    "ldmatrix.sync.aligned.m8n8.x4$(tile.columns and ".trans" or "").shared.b16 {v0, v1, v2, v3}, [%8];\n"
//|     for i = 0, 7 do
//|       local word, add = "v" .. i // 2, ("fma.rn.f32 %%%d, %%%d, %%9, element;"):format(i, i)
//|       if bf16 then
    "$(i % 2 == 0 and "shl.b32 element, " .. word .. ", 16" or "and.b32 element, " .. word .. ", 0xffff0000");\n$(add)\n"
//|       else
    "$(i % 2 == 0 and "mov.b32 {low, high}, " .. word .. ";\\n" or "")cvt.f32.f16 element, $(i % 2 == 0 and "low" or "high");\n$(add)\n"
//|       end
//|     end
    "}" : $(table.concat(into, ", "))
    : "r"($(pr.tile_at(tile, tile.node))), "f"(p.scale) : "memory");
//|   end
//|   -- Where a thread reads a line.
//|   local function begin_line(line, stage, row)
//|     local n = line.node
// From the distance of the first key and the thread's second row on.
const int place$(n) = BR - 1 - ($(row) + g + 8) + 2 * t;
const u32 from$(n) = $(stage) + $(line.at) + (place$(n) & 1) * LINE + (place$(n) + (place$(n) & 1)) * 4;
//|   end
//|   -- Where a thread reads what scores of a block begin with, and what four of x are then.
//|   function pr.begin_at(stage, row)
//|     begin_line(l.staged.lines[1], stage, row)
//|     local from = "from" .. l.staged.lines[1].node
return {$(from)$(l.reads_twice and (", %s + 32 + (u32)(p.sk >> 31)"):format(from) or "")};
//|   end
//|   function pr.join_at(stage, row)
//|     begin_line(l.staged.lines[1], stage, row)
return from$(l.staged.lines[1].node);
//|   end
//|   function pr.begin_four(x, n, from)
//|     local here = l.reads_twice and "here" or "above + 32"
const float2 above = load_shared_float2($(from).above + $(n) * 32), here = load_shared_float2($(from).$(here) + $(n) * 32);
$(x)[4 * $(n)] = here.x, $(x)[4 * $(n) + 1] = here.y, $(x)[4 * $(n) + 2] = above.x, $(x)[4 * $(n) + 3] = above.y;
//|   end
//|   -- The same of x, a tile in the layout wgmma, where arrays are in shared memory, the stage at `stage`. A warp's rows begin at `row`
//|   -- of the tile.
//|   -- beside: what all have in common is told there, where `far` says so.
//|   function pr.apply_staged(x, stage, row, beside)
//|     local of, arguments = layouts.wgmma.score, {}
//|     if l.staged.far and beside then
if (__float_as_int(far.x) != 0) {  // one number for all pairs
  $(beside) = far.y * 1.44269504088896341f;
  return true;
}
//|     elseif l.staged.far then
const u32 far = $(stage) + $(l.staged.far.at);
if (load_shared(far) != 0) {  // one number for all pairs
  const float value = load_shared_float(far + 4);
//|       indented(2, loops, of.loops, true, function()
//|         pr.own_row(of.row)
$(x)$(of.at) = score_pair_ahead<CUT>(p, scored, head, query, $(of.key), $(of.column), $(x)$(of.at), value);
//|       end)
  return;
}
//|     end
//|     for _, tile in ipairs(l.staged.tiles) do
//|       local n = tile.node
//|       if tile.shifted then
const u32 shift$(n)[2] = {row_shift$(n)(p, scored, row), row_shift$(n)(p, scored, row + 8)};
//|       end
//|       if tile.of.wide then
const u32 from$(n) = $(stage) + $(tile.at) + $(tile.pitch > 0 and ("(%s + g) * %d + "):format(row, tile.pitch) or "")t * 8;
//|         arguments[n] = ("h == 0 ? e == 0 ? v%d[i].x : v%d[i].y : e == 0 ? v%d[2 + i].x : v%d[2 + i].y"):format(n, n, n, n)
//|       else
//|         pr.tile_from(tile, stage, row, n)
//|         local word = ("v%d[2 * i + h]"):format(n)
//|         arguments[n] = tile.of.bf16 and ("__uint_as_float(e == 0 ? %s << 16 : %s & 0xffff0000u)"):format(word, word)
//|           or ("score_half((unsigned short)(e == 0 ? %s : %s >> 16))"):format(word, word)
//|       end
//|     end
//|     for _, line in ipairs(l.staged.lines) do
//|       local n = line.node
//|       begin_line(line, stage, row)
float2 before$(n) = load_shared_float2(from$(n));
//|       local element = ("e == 0 ? v%d[1 + i - h].x : v%d[1 + i - h].y"):format(n, n)
//|       local unit = l.begins and "p.scale"
//|       arguments[n] = unit and ("%s * (%s)"):format(unit, element) or element
//|     end
//|     local ahead = ""
//|     for _, of in ipairs(program.arrays) do ahead = ahead .. ", " .. arguments[of.node] end
//|     if program.of_distance then ahead = ahead .. ", " .. arguments[program.of_distance] end
//|     local only = #l.staged.tiles == 1 and #l.staged.lines == 0 and l.staged.tiles[1]
#pragma unroll
for (int m = 0; m < NS / 8; m++) {
//|     if only and only.node == program.adds and not only.of.wide and not only.shifted then
//|       indented(2, add_tile, only, x)
}
//|       return
//|     end
//|     for _, tile in ipairs(l.staged.tiles) do
//|       local n = tile.node
//|       if tile.of.wide then
//|         if tile.shifted then
  float2 v$(n)[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const u32 at = from$(n) + m * 64 + i % 2 * 32 + i / 2 * $(8 * tile.pitch) + shift$(n)[i / 2] * 4;
    v$(n)[i] = {__uint_as_float(load_shared(at)), __uint_as_float(load_shared(at + 4))};
  }
//|         else
  const float2 v$(n)[4] = {load_shared_float2(from$(n) + m * 64), load_shared_float2(from$(n) + m * 64 + 32),
                       load_shared_float2(from$(n) + m * 64 + $(8 * tile.pitch)), load_shared_float2(from$(n) + m * 64 + $(8 * tile.pitch + 32))};
//|         end
//|       else
  u32 v$(n)[4];
//|         indented(2, pr.tile_read, tile, n)
//|       end
//|     end
//|     for _, line in ipairs(l.staged.lines) do
//|       local n = line.node
  const float2 v$(n)[3] = {before$(n), load_shared_float2(from$(n) + m * 64 + 32), load_shared_float2(from$(n) + m * 64 + 64)};
  before$(n) = v$(n)[2];
//|     end
//|     indented(2, loops, { "int i = 0; i < 2; i++", "int e = 0; e < 2; e++", "int h = 0; h < 2; h++" }, true, function()
const int n = 2 * m + i;
//|       pr.own_row(of.row)
$(x)$(of.at) = score_pair_ahead<CUT>(p, scored, head, query, $(of.key), $(of.column), $(x)$(of.at)$(ahead));
//|     end)
}
//|   end
//|   -- The same of words that the thread has of the program's only array.
//|   function pr.apply_held(x, held)
//|     local of, array = layouts.wgmma.score, program.arrays[1]
//|     local value = array.bf16 and "__uint_as_float(e == 0 ? %s << 16 : %s & 0xffff0000u)"
//|       or "score_half((unsigned short)(e == 0 ? %s : %s >> 16))"
//|     local word = held .. "[2 * n + h]"
//|     loops(of.loops, true, function()
//|       pr.own_row(of.row)
$(x)$(of.at) = score_pair_ahead<CUT>(p, scored, head, query, $(of.key), $(of.column), $(x)$(of.at), $(value:format(word, word)));
//|     end)
//|   end
//|   -- Statements of a kernel's own where something is computed of each pair.
//|   function pr.scoring(...)
//|     for _, statement in ipairs(pr.of_pairs and { ... } or {}) do
$(statement)
//|     end
//|   end
//|   -- A kernel's apply_score() with these arguments, by whether a block is whole: where it is, no key is past the last, and the program's
//|   -- mask hides no pair. beside: arrays were read ahead.
//|   function pr.scoring_by(whole, arguments, beside, name)
//|     if not pr.of_pairs then return end
//|     name = name or "apply_score"
//|     if has_mask and not pr.ends or beside and program.cuts_beside or not beside and program.cuts then
if ($(whole))
  $(name)<false>($(arguments));
else
  $(name)<true>($(arguments));
//|     else
$(name)<false>($(arguments));
//|     end
//|   end
//|   -- The same where arrays are read ahead.
//|   function pr.reading(...) if pr.reads_ahead then pr.scoring(...) end end
//|   -- Of one pair: an expression.
//|   function pr.score_of(product, head, row, key)
//|     if not has_score then return product end
//|     return ("score_pair<true>(p, scored, %s, %s, %s, 0, %s)"):format(head, row, key, product)
//|   end
//|   -- Behind a condition on one pair that the mask of the launch leaves: what the program's mask adds. cut: whether it may hide pairs.
//|   function pr.and_sees(head, row, key, cut)
//|     local sees = ("score_sees<true>(p, scored, %s, %s, %s, 0)"):format(head, row, key)
//|     return has_mask and " && " .. (cut and ("(!%s || %s)"):format(cut, sees) or sees) or ""
//|   end
//|   -- In a loop over keys that the mask of the launch leaves: on to the next where the program's mask hides the pair.
//|   -- how: a function of the condition, of warps whose lanes have one pair.
//|   function pr.pass_hidden(head, row, key, how)
//|     if not has_mask then return end
//|     local hidden = ("!score_sees<true>(p, scored, %s, %s, %s, 0)"):format(head, row, key)
if ($(how and how .. "(" .. hidden .. ") != 0" or hidden)) continue;
//|   end
//|   -- Behind a condition on a row: that it has seen a key whose score is above -inf. Where a program's mask may have hidden all of them,
//|   -- there is nothing to compute again.
//|   function pr.and_seen(m) return has_mask and (" && %s != -infinity()"):format(m) or "" end
//|
//|   -- ---- of the backward pass ----
//|
//|   -- Of one pair: statements before score_of_pair() and bent() are asked for, of a kernel in which `scored` is.
//|   function pr.begin_pair(product, head, row, key)
//|     if not pr.bends then return end
float bend;
const float bent_score = score_pair_bend<true>(p, scored, $(head), $(row), $(key), 0, $(product), bend);
//|   end
//|   -- The score in its unit, pr.unit.
//|   function pr.score_of_pair(product, head, row, key)
//|     return pr.bends and "bent_score" or has_score and pr.score_of(product, head, row, key) or product
//|   end
//|   function pr.bent(probability) return pr.bends and ("bent(%s, bend)"):format(probability) or probability end
//|
//|   -- Where a thread comes from one head to the next.
//|   function pr.begin_scores(head)
//|     if not pr.of_pairs then return end
ScoreTile scored = score_tile(p, sequence, (int)($(head)));
//|   end
//|   function pr.next_scores(condition, head)
//|     if not pr.of_pairs then return end
if ($(condition)) scored = score_tile(p, sequence, $(head or "scored.h + 1"));
//|   end
//|
//|   -- Where exponents tell of query and key by their distance alone: the pair for which a thread computes least.
//|   function pr.along(of) return pr.slopes and not pr.bends and not has_mask and program.along and of.along end
//|
//|   -- P of an element of x, relative to the LSE of the layout's rows; bend: where its derivative goes. cut: as of score_pair. masked:
//|   -- whether the program's mask may hide pairs.
//|   local function probability_of(of, x, bend, cut, masked)
//|     local along = pr.along(of)
//|     local place = ("p, scored, head, query, %s, %s"):format(of.key, along and along.column or of.column)
//|     local arguments, score = ("%s, %s%s"):format(place, x, of.at), x .. of.at
//|     if has_score then score = ("score_pair<%s>(%s)"):format(cut, arguments) end
//|     if pr.bends then score = ("score_pair_bend<%s>(%s, %s)"):format(cut, arguments, bend) end
//|     local probability = pr.probability(score, pr.unit_log2, of.lse)
//|     if pr.slopes and not pr.bends then
//|       probability = ("probability_exp2(score_exponent(%s, %s))"):format(arguments, of.lse)
//|     end
//|     return has_mask and ("%s && !score_sees<true>(%s) ? 0.f : %s"):format(masked, place, probability) or probability
//|   end
//|   -- Of a tile: products become P; derivatives go to `bends`.
//|   function pr.probabilities(layout, x, bends, cut, masked)
//|     local of = layouts[layout].score
//|     local along = pr.along(of)
//|     loops(of.loops, true, function()
//|       pr.own_row(along and along.row or of.row)
$(x)$(of.at) = $(probability_of(of, x, pr.bends and bends .. of.at, cut, masked));
//|     end)
//|   end
//|   -- The same of a tile in the layout wgmma_keys that is whole, has no query past the last, and of which pr.line() is. Two of a thread's
//|   -- keys are as far apart as eight queries are, so that a number is of two pairs.
//|   function pr.probabilities_by_line(x)
//|     local of, line = layouts.wgmma_keys.score, pr.line
//|     local function probability(value)
//|       local score = ("score_pair_ahead<false>(p, scored, scored.h, %s, %s, %s, %s%s, %s)"):format(of.row, of.key, of.column, x, of.at, value)
//|       return pr.probability(score, pr.unit_log2, of.lse)
//|     end
const int apart = key + warp_key + g - (row + 2 * t);
//|     if pr.far then
//|       local below = program.has_far_below and "key + 63 - row <= score_far_below(p, scored)" or "false"
//|       local above = program.has_far_above and "key - (row + BR - 1) >= score_far_above(p, scored)" or "false"
const bool below = $(below), above = $(above);
if (below || above) {  // one number for all pairs
  const float far = below ? scored.below : scored.above;
//|       indented(2, loops, of.loops, true, function()
$(x)$(of.at) = $(probability("far"));
//|       end)
  return;
}
//|     end
//|     local value = "score_distance(p, scored, apart - (%s))"
//|     if line.array then
const auto *const line = score_ahead$(line.node)(p, scored, scored.h, 0) + apart;
//|       value = line.array.wide and "line[-(%s)]" or line.array.bf16 and "__uint_as_float((u32)line[-(%s)] << 16)" or "score_half(line[-(%s)])"
//|     end
float before[2] = {$(value:format("-8")), $(value:format("-7"))};
//|     loops({ of.loops[1] }, true, function()
const float here[2] = {$(value:format("8 * n")), $(value:format("8 * n + 1"))};
//|       loops({ of.loops[2], of.loops[3] }, true, function()
$(x)$(of.at) = $(probability("h == 0 ? here[e] : before[e]"));
//|       end)
before[0] = here[0], before[1] = here[1];
//|     end)
//|   end
//|   -- Where it may be asked for, beside that.
//|   function pr.line_lies()
//|     local array = pr.line.array
//|     return array and (" && p.score%d_stride[%d] == 1"):format(array.operand, array.rank - 1) or ""
//|   end
//|   -- Products become what dP - D is multiplied by, and P an operand of 16-bit elements.
//|   function pr.bent_operand(layout, x, operand, cut, masked)
//|     local of = layouts[layout].score
//|     loops({ of.loops[1] }, true, function()
float probability[4];
//|       loops({ of.loops[2], of.loops[3] }, true, function()
//|         pr.own_row(of.row)
float bend;
probability[2 * h + e] = $(probability_of(of, x, "bend", cut, masked));
//|         if program.bend_is_finite and not has_mask then
$(x)$(of.at) = $(bent("probability[2 * h + e]", "bend"));
//|         elseif program.bend_is_finite then
$(x)$(of.at) = $(masked) ? bent(probability[2 * h + e], bend) : $(bent("probability[2 * h + e]", "bend"));
//|         else
$(x)$(of.at) = bent(probability[2 * h + e], bend);
//|         end
//|       end)
$(operand)[2 * n] = pack2(probability[0], probability[1]), $(operand)[2 * n + 1] = pack2(probability[2], probability[3]);
//|     end)
//|   end
//|
//|   -- After a row's sum is complete, over all of its keys: the sink joins l. A kernel that calls it names l by pr.sum_type.
//|   function pr.add_sink(l, m, head, query, scale_log2, scale)
//|     if not has_sink then return end
const float z = sink_of(p, sequence, $(head), $(query));
//|     pr.join_sink(l, m, "z", scale_log2, scale)
//|   end
//|   -- The same of one that is known.
//|   function pr.join_sink(l, m, z, scale_log2, scale)
//|     if not has_sink then return end
$(l) += sink_weight($(z), $(m), $(scale_log2 or pr.unit_log2), $(scale or pr.unit));
//|   end
//|   -- LSE of a row whose l has the sink's term.
//|   function pr.log_sum_exp(state, l, z, scale, scale_log2)
//|     scale, scale_log2 = scale or pr.unit, scale_log2 or pr.unit_log2
//|     if has_sink then return ("log_sum_exp(%s, %s, %s, %s, %s)"):format(state, l, scale, z, scale_log2) end
//|     return ("log_sum_exp(%s, %s, %s)"):format(state, l, scale)
//|   end
//|   -- Whether a row's maximum is beyond fp32; downwards a sink is all that counts. Of a program's scores themselves, not of exponents of 2:
//|   -- a mask that is added has the least number of fp32.
//|   function pr.beyond(m)
//|     local unit = has_score and pr.unit or pr.unit_log2
//|     local finite = (has_sink and "!(%s * %s < infinity())" or "!(fabsf(%s * %s) < infinity())"):format(m, unit)
//|     return finite .. pr.and_seen(m)
//|   end
//|   -- LSE of a row that sees no key.
//|   function pr.keyless_lse(head, query)
//|     return has_sink and ("sink_of(p, sequence, %s, %s)"):format(head, query) or "-infinity()"
//|   end
//| end
