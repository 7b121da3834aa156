//| needs "l.ahead? l.masks? l.runs? l.o_in_q? l.reverses? l.wgs?"
//| -- mask_stage: what is left of a score program's mask in a kernel that finds its parts in shared memory, of the layout l.masks.
//|
//| local loops = include "pairs/loops.cu"
//| local layouts = include "pairs/layouts.lua"
//|
//| return function(pr, p, l)
//|   pr.masks = l.masks
//|   pr.brings_mask = l.masks and l.masks.brings
//|   -- A warpgroup lets pass what it sees nothing of. Beside the next tile's first scores it does not, nor where two share a tile: they
//|   -- see nearly the same.
//|   pr.skips = l.masks and not l.ahead and (l.wgs or 1) > 2
//|   pr.overs = pr.skips and not l.o_in_q  -- and is over before others
//|   -- Of one or two warpgroups under an array by pairs, as of trees, the last block of keys is most often the one in doubt: it comes last
//|   -- and its pairs are asked beside products of the block before.
//|   pr.ascends = l.masks and l.masks.plane and (l.wgs or 1) <= 2
//|   -- When its last S is there, Q of the next tile may come.
//|   pr.last_s = l.masks and not l.ahead and not l.o_in_q and (pr.skips and "CODE_OVER << wg" or "CODE_LAST")
//|   local program = p.score
//|   local function print_lines(lines)
//|     for _, line in ipairs(lines) do
$(line)
//|     end
//|   end
//|   local function parameters()
//|     local list = ""
//|     for _, of in ipairs(l.masks.columns) do list = list .. (", %s a%d"):format(of.type, of.node) end
//|     for _, of in ipairs(l.masks.rows) do list = list .. (", %s a%d"):format(of.type, of.node) end
//|     return l.masks.plane and list .. (", bool a%d"):format(l.masks.plane) or list
//|   end
//|
//|   -- The number beside each K has what each warpgroup sees of the block, in two bits that lie apart: all of it; nothing; of each row
//|   -- the keys between its ends; of these what the program's mask leaves. CODE_STAGED: the last is some warpgroup's. CODE_OVER: it sees
//|   -- nothing of later blocks, as far as that is known.
//|   function pr.staged_codes()

constexpr int CODE_LAST = 1 << WGS, CODE_STAGED = 2 << WGS, CODE_BLOCK = 3 * WGS + 2;
// Of the first warpgroup; those of others lie as many bits further.
constexpr int CODE_CUT = 1, CODE_HIDDEN = 4 << WGS, CODE_EDGE = CODE_CUT | CODE_HIDDEN, CODE_OVER = 4 << 2 * WGS;
__device__ __forceinline__ u32 code_at(u32 smem, int stage) { return smem + SMEM_CODES + stage * 4; }
// By a vote, which the compiler knows to be the same for all lanes: addresses of products stay in uniform registers.
__device__ __forceinline__ bool code_has(int code, int bits) { return __any_sync(~0u, (code & bits) != 0); }
__device__ __forceinline__ bool code_is(int code, int wg, int what) { return __any_sync(~0u, (code >> wg & CODE_EDGE) == what); }

//|     local first, last = pr.ascends and "lo" or "hi", pr.ascends and "hi" or "lo"
//|     local way = pr.ascends and "left to right" or "right to left"
// A tile's blocks from $(way), as the rows of each warpgroup see them: a lane for each has its line. -1 ends them. To be used by
// a whole warp.
struct TileBlocks {
  const uint4 *line;
  int $(last), word;             // of the words that hold blocks: the one that comes last, and the one at hand
  u32 some;                 // blocks of it that are left
  u32 seen, maybe, edges;  // of this lane's warpgroup
//|     local slot = l.reverses and ", int slot" or ""
//|     local before = pr.ascends and "- 1" or "+ 1"
  __device__ __forceinline__ TileBlocks(const Params &p, const Sequence &sequence, const Tile &where$(slot), int loaded_hi, int loaded_lo)
      : $(last)(loaded_$(last) >> 5), word((loaded_$(first) >> 5) $(before)), some(0), seen(~0u), maybe(0), edges(0) {
//|     if l.runs then
    const int lane = (int)threadIdx.x % 32, own = $(l.reverses and "slot == 0 ? lane : WGS - 1 - lane" or "lane");
    line = lane < WGS ? mask_line(p, sequence, where.number) + own * line_words(p) : nullptr;
//|     elseif l.reverses then
    const int lane = (int)threadIdx.x % 32, row = where.row + 64 * (slot == 0 ? lane : WGS - 1 - lane);
//|     else
    const int row = where.row + 64 * ((int)threadIdx.x % 32);
//|     end
//|     if not l.runs then
    line = (int)threadIdx.x % 32 < WGS && row < row_count(p, sequence) ? mask_line(p, sequence, where.head, row) : nullptr;
//|     end
  }
  __device__ __forceinline__ int next() {
    while (some == 0) {
      if (word $(pr.ascends and ">= hi" or "<= lo")) return -1;
      word$(pr.ascends and "++" or "--");
      const uint4 of = line != nullptr ? line[word] : make_uint4(0, 0, 0, 0);
      maybe = of.y, edges = of.z, seen = (int)threadIdx.x % 32 < WGS ? of.x : ~0u;
#pragma unroll
      for (int i = 0; i < WGS; i++) some |= __shfl_sync(~0u, of.x, i);
    }
    const int n = $(pr.ascends and "__ffs((int)some) - 1" or "31 - __clz((int)some)");
    some ^= 1u << n;
    const u32 cut = __ballot_sync(~0u, maybe >> n & 1), edge = __ballot_sync(~0u, (edges & ~maybe) >> n & 1);
    const u32 hidden = __ballot_sync(~0u, !(seen >> n & 1));
//|     local over = pr.ascends and "word >= hi && (seen & ~((2u << n) - 1)) == 0" or "word <= lo && (seen & ((1u << n) - 1)) == 0"
    const u32 over = __ballot_sync(~0u, (int)threadIdx.x % 32 < WGS && $(over));
    return (word * 32 + n) << CODE_BLOCK | (int)(cut | edge) | (int)(hidden | edge) * CODE_HIDDEN | (int)over * CODE_OVER |
           (cut != 0 ? CODE_STAGED : 0);
  }
  // Whether few are left: the search for a tile takes as long as some blocks of keys.
  __device__ __forceinline__ bool are_few() const { return word $(pr.ascends and ">= hi" or "<= lo") && __popc(some) <= 3; }
};

// Of a scheduler: the last block of keys that some row of a tile sees, and one before which none is; hi < lo where none is.
struct BlockEnds {
  int lo, hi;
};
__device__ __forceinline__ BlockEnds ends_of_lines(const Params &p, const Sequence &sequence, const Tile &where) {
//|     if l.runs then
  const int lane = threadIdx.x % 32, words = line_words(p), lines = WGS;
  const uint4 *const from = mask_line(p, sequence, where.number);
//|     else
  const int lane = threadIdx.x % 32, words = line_words(p), lines = min(line_count(p) - where.row / 64, WGS);
  const uint4 *const from = mask_line(p, sequence, where.head, where.row);
//|     end
  BlockEnds ends = {0, -1};
#pragma unroll 1
  for (int first = 0; first < words; first += 32) {
    u32 some = 0;
#pragma unroll
    for (int i = 0; i < WGS; i++)
      if (i < lines && first + lane < words) some |= from[i * words + first + lane].x;
    const u32 found = __ballot_sync(~0u, some != 0);
    if (found == 0) continue;
    if (ends.hi < ends.lo) ends.lo = (first + __ffs((int)found) - 1) * 32;
    const int last = 31 - __clz((int)found);
    ends.hi = (first + last) * 32 + 31 - __clz((int)__shfl_sync(~0u, some, last));
  }
  return ends;
}
//|   end
//|
//|   -- The parts, and of a pair what they tell.
//|   function pr.mask_parts()
//|     for n, of in ipairs(l.masks.columns) do
__device__ __forceinline__ $(of.type) mask_column$(of.node)(const Params &p, const ScoreTile &t, int key) {
//|       print_lines(program.mask_column(false, n))
}
//|     end
//|     for n, of in ipairs(l.masks.rows) do
__device__ __forceinline__ $(of.type) mask_row$(of.node)(const Params &p, const ScoreTile &t, int head, int row) {
//|       print_lines(program.mask_row(false, n))
}
//|     end
//|     if l.masks.plane then
// Where element 0 of a row lies.
//| local element = l.masks.words and "unsigned" or "unsigned char"
__device__ __forceinline__ const $(element) *mask_plane_row(const Params &p, const ScoreTile &t, int head, int row) {
//|       print_lines(program.mask_plane_row(false))
}
//|       if l.masks.lookup.shifted then
// The element of key 0; those before element 0 are seen, and after the last all are as it is.
__device__ __forceinline__ int mask_plane_first(const Params &p, const ScoreTile &t, int head) {
//|         print_lines(program.mask_plane_first(false))
}
//|       end
//|     end
// Whether a row's query sees key + column$(pr.ends_in_part and ", as far as that is not solved" or "").
__device__ __forceinline__ bool mask_sees(const Params &p, const ScoreTile &t, int head, int row, int key, int column$(parameters())) {
//|     print_lines(program.mask_staged(false))
}
//|   end
//|
//|   -- Pairs of x, a tile in the layout wgmma, that the mask hides become -inf. stage: where its parts lie. A warp's rows begin at `row`
//|   -- of the tile.
//|   -- What the mask reads of a thread's two rows, once for a tile: as a parameter, as an argument, its declaration with what fetches it.
//|   pr.rows_type, pr.rows_argument = "", ""
//|   for _, row in ipairs(l.masks and l.masks.rows or {}) do
//|     pr.rows_type = pr.rows_type .. (", const %s (&r%d)[2]"):format(row.type, row.node)
//|     pr.rows_argument = pr.rows_argument .. (", r%d"):format(row.node)
//|   end
//|   function pr.mask_rows(row)
//|     local fetches = ""
//|     for _, of in ipairs(l.masks.rows) do
//|       local function value(of_row) return ("mask_row%d(p, scored, scored.h, %s)"):format(of.node, of_row) end
$(of.type) r$(of.node)[2];
//|       fetches = fetches .. ("r%d[0] = %s, r%d[1] = %s;"):format(of.node, value(l.runs and "row" or row), of.node, value((l.runs and "row" or row) .. " + 8"))
//|     end
//|     if l.runs then
auto find_rows = [&] {
  int row = $(row);
  asm volatile("" : "+r"(row));  // no address is made before the products are under way
  $(fetches)
};
//|     else
auto find_rows = [&] { $(fetches) };
//|     end
//|   end
//|   -- Whether the staged conditions depend on values of rows and of keys alone.
//|   local function by_values()
//|     if l.masks.plane or #l.masks.rows == 0 or #l.masks.columns == 0 then return false end
//|     for _, line in ipairs(program.mask_staged(false)) do
//|       local declares = line:find("const int query = row", 1, true)
//|       if not declares and (line:find("%f[%w_]query%f[^%w_]") or line:find("%f[%w_]j%f[^%w_]")) then return false end
//|     end
//|     return true
//|   end
//|
//|   function pr.hide_staged(x, stage, tile_row)
//|     local of, arguments = layouts.wgmma.score, ""
//|     for _, column in ipairs(l.masks.columns) do
//|       local n = column.node
const u32 from$(n) = $(stage) + $(column.at) + t * 8;
//|       local word = ("(e == 0 ? v%d.x : v%d.y)"):format(n, n)
//|       local as = { int = "(int)" .. word, float = ("__int_as_float((int)%s)"):format(word), bool = word .. " != 0" }
//|       arguments = arguments .. ", " .. as[column.type]
//|     end
//|     for _, row in ipairs(l.masks.rows) do
//|       local n = row.node
//|       arguments = arguments .. (", r%d[h]"):format(n)
//|     end
//|     if by_values() then
//|       local alike, of_lane = "", ""
//|       for _, row in ipairs(l.masks.rows) do
//|         local r = ("r%d[0]"):format(row.node)
//|         alike = alike .. (" & (%s == r%d[1]) & (%s == __shfl_sync(~0u, %s, 0))"):format(r, row.node, r, r)
//|       end
//|       for _, column in ipairs(l.masks.columns) do
//|         local word = ("load_shared(%s + %s + column * 4)"):format(stage, column.at)
//|         local as = { int = "(int)" .. word, float = ("__int_as_float((int)%s)"):format(word), bool = word .. " != 0" }
//|         of_lane = of_lane .. ", " .. as[column.type]
//|       end
//|       for _, row in ipairs(l.masks.rows) do of_lane = of_lane .. (", r%d[0]"):format(row.node) end
// Of a warp whose rows have the same values a lane asks for a key, and often all see it.
if (__all_sync(~0u, true$(alike))) {
  u32 seen[(BC + 31) / 32], hidden = 0;
#pragma unroll
  for (int word = 0; word < (BC + 31) / 32; word++) {
    const int column = min(32 * word + lane, BC - 1);
    seen[word] = __ballot_sync(~0u, mask_sees(p, scored, scored.h, row, block * BC, column$(of_lane)));
    hidden |= ~seen[word];
    seen[word] >>= 2 * t;
  }
  if (!__any_sync(~0u, hidden != 0)) return;
#pragma unroll
  for (int n = 0; n < NS / 4; n++)
#pragma unroll
    for (int i = 0; i < 4; i++) $(x)[4 * n + i] = seen[n / 4] >> (8 * (n % 4) + i % 2) & 1 ? $(x)[4 * n + i] : -infinity();
  return;
}
//|     end
//|     local bits, whole = l.masks.words, l.masks.whole
//|     local anywhere = l.masks.plane and not bits and p.has_score_anywhere
//|     if anywhere then
//|       local lookup = l.masks.lookup
// Each of the thread's rows begins by itself within 16 bytes.
u32 own[2];
#pragma unroll
for (int h = 0; h < 2; h++) {
  const size_t from = (size_t)(mask_plane_row(p, scored, scored.h, min(row + 8 * h, scored.sq - 1)) + block * BC);
  const u32 before = p.score$(lookup.operand)_stride[$(lookup.rank - 1)] == 1 ? (u32)from & 15 : 0;
  own[h] = $(stage) + $(l.masks.elements) + ($(tile_row) + g + 8 * h) * $(l.masks.pitch) + 2 * t + before;
}
//|       arguments = arguments .. (", seen[h][e] %s"):format(l.masks.contrary and "== 0" or "!= 0")
//|     elseif l.masks.plane then
const u32 elements = $(stage) + $(l.masks.elements) + ($(tile_row) + g) * $(l.masks.pitch)$(bits and "" or " + 2 * t");
//|       local is = l.masks.contrary and "== 0" or "!= 0"
//|       arguments = arguments .. (bits and ", (seen[h] >> (8 * m + e) & 1) %s" or ", (e == 0 ? seen[h] & 255 : seen[h] >> 8) %s"):format(is)
//|     end
//|     if bits and not whole then
//|       local first = l.masks.lookup.shifted and "block * BC + mask_plane_first(p, scored, scored.h)" or "block * BC"
const int begin = ($(first)) & 31;  // in the middle of a word
u32 next[2] = {load_shared(elements), load_shared(elements + $(8 * l.masks.pitch))};
//|     end
#pragma unroll
for (int word = 0; word < (NS + 15) / 16; word++) {
//|     if bits and whole then
  const u32 seen[2] = {load_shared(elements + 4 * word) >> 2 * t, load_shared(elements + $(8 * l.masks.pitch) + 4 * word) >> 2 * t};
//|     elseif bits then
  u32 seen[2];
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const u32 after = load_shared(elements + h * $(8 * l.masks.pitch) + 4 * (word + 1));
    seen[h] = __funnelshift_r(next[h], after, begin) >> 2 * t;
    next[h] = after;
  }
//|     end
#pragma unroll
  for (int m = 0; m < 4 && 4 * word + m < NS / 4; m++) {
    const int n = 4 * word + m;
//|     if anywhere then
    u32 seen[2][2];
#pragma unroll
    for (int h = 0; h < 2; h++) seen[h][0] = load_shared_u8(own[h] + 8 * n), seen[h][1] = load_shared_u8(own[h] + 8 * n + 1);
//|     elseif l.masks.plane and not bits then
    const u32 seen[2] = {load_shared_u16(elements + 8 * n), load_shared_u16(elements + $(8 * l.masks.pitch) + 8 * n)};
//|     end
//|     for _, column in ipairs(l.masks.columns) do
    const uint2 v$(column.node) = load_shared_x2(from$(column.node) + n * 32);
//|     end
//|     indented(4, loops, { "int e = 0; e < 2; e++", "int h = 0; h < 2; h++" }, true, function()
//|       pr.own_row(of.row)
//|       pr.set(of, x, "-infinity()", ("!mask_sees(p, scored, head, query, %s, %s%s)"):format(of.key, of.column, arguments))
//|     end)
  }
}
//|   end
//| end
