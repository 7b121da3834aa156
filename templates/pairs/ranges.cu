//| needs "l.in_chunks? l.even_rows? l.parts? l.pieces? l.reverses? l.runs? l.shared? l.split?"
//| -- ranges: which blocks of keys rows see, which blocks of queries see keys, which rows of a sequence any pair uses. A function prints
//| -- the one of its name, where a kernel needs it.
//|
//| return function(pr, p, l)
//|   -- ---- of rows: the keys that they see ----
//|
//|   function pr.key_range()
// The keys of one row tile, and its blocks of BC keys, which are walked from right to left:
//   blocks [full_hi, block_hi] cut by the right edge, (full_lo, full_hi) seen whole by every row, [block_lo, full_lo] cut by the left.
struct Range {
  int key_lo, key_hi;      // seen by some row of the tile; empty when key_lo > key_hi
  int block_lo, block_hi;  // blocks that hold them
  int full_lo, full_hi;    // exclusive bounds of the blocks that need no mask
};
//|   if pr.walks then
// head: the first of those that the rows are of.
//|   local of_from, from = l.runs and ", int from = 0" or "", l.runs and " - from" or ""
//|   local function above(x) return l.runs and "max(" .. x .. " - from, 0)" or x end
//|   if l.runs then
// Blocks of keys are counted from key `from` on, before which no row sees any.
//|   end
__device__ __forceinline__ Range key_range(const Params &p, const Sequence &sequence, int head, int first_row, int last_row$(of_from)) {
  const int i0 = query_of(p, first_row), i1 = query_of(p, last_row), last = max(sequence.sq() - 1, 0);
  const MaskBounds seen = mask_bounds(p, score_tile(p, sequence, head), head, $(pr.last_head("head")), min(i0, last), min(i1, last));
  Range r;
  r.key_lo = max(first_key(sequence, i0), seen.lo);
  r.key_hi = min(last_key(sequence, i1), seen.hi);
  r.block_lo = $(above("r.key_lo")) / BC;
  r.block_hi = r.key_hi < r.key_lo ? r.block_lo - 1 : $(above("r.key_hi")) / BC;
//|   if pr.scans then
  // What the launch's mask leaves to every row: blocks are asked what the program's does.
  const int all_lo = $(above("first_key(sequence, i1)")), all_hi = last_key(sequence, i0)$(from);
//|   else
  // What every row sees.
  const int all_lo = max(first_key(sequence, i1), seen.full_lo), all_hi = min(last_key(sequence, i0), seen.full_hi);
//|   end
  r.full_lo = all_hi < all_lo ? r.block_hi : min(r.block_hi, (all_lo + BC - 1) / BC - 1);
  r.full_hi = all_hi < all_lo ? r.full_lo + 1 : max(r.full_lo + 1, (all_hi + 1) / BC);
  return r;
}
//|   else
__device__ __forceinline__ Range key_range(const Params &p, const Sequence &sequence, int first_row, int last_row) {
  const int i0 = query_of(p, first_row), i1 = query_of(p, last_row);
  Range r;
  r.key_lo = first_key(sequence, i0);
  r.key_hi = last_key(sequence, i1);
  r.block_lo = r.key_lo / BC;
  r.block_hi = r.key_hi < r.key_lo ? r.block_lo - 1 : r.key_hi / BC;
//|   if pr.left then
  r.full_lo = min(r.block_hi, (first_key(sequence, i1) + BC - 1) / BC - 1);
//|   else
  r.full_lo = -1;
//|   end
  r.full_hi = max(r.full_lo + 1, (last_key(sequence, i0) + 1) / BC);
  return r;
}
//|   end
//|   end
//|   -- The call: head is the first of the rows' heads.
//|   function pr.range_of(head, first, last)
//|     return ("key_range(p, sequence, %s%s, %s)"):format(pr.walks and head .. ", " or "", first, last)
//|   end
//|
//|   -- Whether an edge may cut the block, and whether every row sees all of it.
//|   function pr.is_cut(range) return ("block >= %s.full_hi || block <= %s.full_lo"):format(range, range) end
//|   function pr.is_whole(range) return ("block < %s.full_hi && block > %s.full_lo"):format(range, range) end
//|
//|   -- Calls step(cut) for `block` and all blocks of a range to the left of it; each of the loops has code of its own.
//|   function pr.walk(range, step)
//|     if pr.scans then
//|       pr.scan(("if (code & 1) %s(Constant<true>{}); else %s(Constant<false>{});"):format(step, step))
//|       return
//|     end
    for (; block >= max($(range).full_hi, $(range).block_lo); block--) $(step)(Constant<true>{});
    for (; block > max($(range).full_lo, $(range).block_lo - 1); block--) $(step)(Constant<false>{});
//|     if pr.cuts_left then
    for (; block >= $(range).block_lo; block--) $(step)(Constant<true>{});
//|     end
//|   end
//|
//|   -- many: so many parts that their product with the blocks has more than 32 bits.
//|   function pr.part_of(many)
//|     local function upto(n) return (many and "(int)((long long)blocks * %s / where.parts)" or "blocks * %s / where.parts"):format(n) end
// The blocks of keys of one part.
__device__ __forceinline__ Range part_of(Range range, const Tile &where) {
  const int blocks = range.block_hi - range.block_lo + 1;
//|     if l.shared then  -- the shares of a whole and of what is left: no product needs 64 bits
  const u32 parts = where.parts, whole = (u32)max(blocks, 0) / parts, left = (u32)max(blocks, 0) - whole * parts;
  range.block_hi = range.block_lo + (int)(whole * (where.part + 1) + left * (where.part + 1) / parts) - 1;
  range.block_lo += (int)(whole * where.part + left * where.part / parts);
//|     else
  range.block_hi = range.block_lo + $(upto("(where.part + 1)")) - 1;
  range.block_lo += $(upto("where.part"));
//|     end
  return range;
}
//|   end
//|
//|   function pr.key_range_of()
// In blocks of keys: all that are loaded are those from loaded_hi down to loaded_lo. A warpgroup sees those from first down to last, and
// needs no mask between full_lo and full_hi, both left out.
struct KeyRange {
  int loaded_hi, loaded_lo, first, last, full_lo, full_hi;
  // A tile's last warpgroups may have no row of the problem: they let pass all that is loaded.
  __device__ __forceinline__ bool idle() const { return first < 0; }
};
//|   if p.has_lengths then
__device__ __forceinline__ KeyRange key_range_of(const Params &p, const Sequence &sequence, const Tile &where, int wg) {
//|   else
__device__ __forceinline__ KeyRange key_range_of(const Params &p, const Tile &where, int wg$(l.reverses and ", int slot" or "")) {
  const Sequence sequence = sequence_of(p, where.batch);
//|   end
//|   local upto = l.in_chunks and "where.upto"
//|   local own = l.even_rows and "rows_of_tile(p)" or l.pieces and "64 * where.warpgroups" -- of the tile
//|   local rows = own and ("min(row_count(p, sequence), where.row + %s)"):format(own) or "row_count(p, sequence)"
  const int row = where.row + row_in_tile(wg$(l.reverses and ", slot" or "")), rows = $(upto or rows);
//|   if l.parts then
  const Range loaded = part_of($(pr.range_of("where.head", "where.row", "min(where.row + BR, rows) - 1")), where);
//|   else
  const Range loaded = $(pr.range_of("where.head", "where.row", "min(where.row + BR, rows) - 1"));
//|   end
  const Range own = $(pr.range_of("where.head", "row", "max(row, min(row + 64, rows) - 1)"));
//|   local last = "max(own.block_lo, loaded.block_lo)"
//|   if pr.scans then  -- what is loaded
  const int first = max(loaded.block_hi, loaded.block_lo);
//|     last = "loaded.block_lo"
//|   else
  const int first = max(min(own.block_hi, loaded.block_hi), loaded.block_lo);
//|   end
//|   if (l.parts or pr.walks) and not pr.scans then  -- keys that its rows see lie in another part, or past the sequence's end
//|     last = "min(max(own.block_lo, loaded.block_lo), first)"
//|   end
//|   local idle = upto and "row >= rows" or "row >= rows && loaded.block_lo <= loaded.block_hi"
  return {loaded.block_hi, loaded.block_lo, $(idle) ? -1 : first, $(last), own.full_lo,
          own.full_hi};
}
//|   end
//|
//|   function pr.key_blocks()
// Blocks of keys that rows of the tile see: of all of it, and of a warpgroup's 64 rows, none where hi < lo.
struct KeyBlocks {
  int lo, hi;
  __device__ __forceinline__ bool has(int block) const { return lo <= block && block <= hi; }
};
__device__ __forceinline__ KeyBlocks key_blocks(const Params &p, const Sequence &sequence, int row, int rows) {
  if (row >= sequence.sq()) return {0, -1};
  const Range r = key_range(p, sequence, row, min(row + rows, sequence.sq()) - 1);
  return {r.block_lo, r.block_hi};
}
//|   end
//|
//|   function pr.tiles_of()
// Tiles of dS that hold a pair which 16 rows see, from `lo` on; of other tiles nothing was left.
struct Tiles {
  int lo, count;
  __device__ __forceinline__ bool has(int tile) const { return (u32)(tile - lo) < (u32)count; }
  // Some of n tiles from `tile` on, and all of them.
  __device__ __forceinline__ bool meets(int tile, int n) const { return count > 0 && tile < lo + count && lo < tile + n; }
  __device__ __forceinline__ bool holds(int tile, int n) const { return lo <= tile && tile + n <= lo + count; }
};
__device__ __forceinline__ Tiles tiles_of(const Sequence &sequence, int row) {
  const int lo = first_key(sequence, row), hi = last_key(sequence, min(row + 16, sequence.sq()) - 1);
  return row < sequence.sq() && lo <= hi ? Tiles{lo / 16, hi / 16 - lo / 16 + 1} : Tiles{0, 0};
}
//|   end
//|
//|   -- ---- of keys: the queries that see them ----
//|
//|   -- The last query that sees one of `keys` keys from `key` on, of which one at least is the sequence's.
//|   function pr.last_query_of(key, keys, sk)
//|     return ("last_query(sequence, min(%s + %s, %s) - 1)"):format(key, keys, sk or "sequence.sk()")
//|   end
//|
//|   function pr.query_blocks()
// Blocks of BR queries that see some of `keys` keys from `key` on: none where hi < lo.
struct QueryBlocks {
  int lo, hi;
};
__device__ __forceinline__ QueryBlocks query_blocks(const Sequence &sequence, int key, int keys) {
  const int first = first_query(sequence, key), last = key < sequence.sk() ? $(pr.last_query_of("key", "keys")) : -1;
  return first <= last ? QueryBlocks{first / BR, last / BR} : QueryBlocks{0, -1};
}
//|   end
//|
//|   -- ---- of both: whether pairs of some keys and some queries are hidden ----
//|
//|   function pr.whole()
// Whether the warp's keys from `key` on and its queries from `row` on have no pair that hide() would change, and none after the last.
__device__ __forceinline__ bool whole(const Sequence &sequence, int key, int row) {
//|   if pr.right then
  if (key + 16 * KB - 1 - row > sequence.diag_hi()) return false;
//|   end
//|   if pr.left then
  if (key - (row + PART - 1) < sequence.diag_lo()) return false;
//|   end
  return key + 16 * KB <= sequence.sk() && row$(pr.has_score and " + PART <=" or " <") sequence.sq();
}
//|   end
//|
//|   -- The same of a warpgroup's 64 keys from `key` on and a block of BR queries from `row` on, as the lines of a function.
//|   function pr.whole_block()
  const int last = sequence.sk() - 1 - key;
//|   local rows = pr.has_score and " && row + BR <= sequence.sq()" or ""
//|   if not pr.right then
  const bool whole = 63 <= last$(rows);
//|   else
  // Key j of the warpgroup's and query i of the block: hidden where j - i is above hi or below lo.
  const int hi = sequence.diag_hi() - (key - row);
//|     if pr.left then
  const int lo = sequence.diag_lo() - (key - row);
  const bool whole = 63 <= min(hi, last) && 1 - BR >= lo$(rows);
//|     else
  const bool whole = 63 <= min(hi, last)$(rows);
//|     end
//|   end
//|   end
//|
//|   function pr.meet()
// Whether the warp's keys from `key` on and its queries from `row` on have a pair that the mask leaves.
__device__ __forceinline__ bool meet(const Sequence &sequence, int key, int row) {
//|   if pr.right then
  if (key - (row + PART - 1) > sequence.diag_hi()) return false;
//|   end
//|   if pr.left then
  if (key + 16 * KB - 1 - row < sequence.diag_lo()) return false;
//|   end
  return key < sequence.sk() && row < sequence.sq();
}
//|   end
//|
//|   -- ---- of a sequence: what some pair of it uses ----
//|
//|   pr.first_own_key, pr.first_own_query = "first_key(sequence, 0)", "first_query(sequence, 0)"
//|   function pr.last_own_key(sq) return ("last_key(sequence, %s - 1)"):format(sq or "sequence.sq()") end
//|   function pr.last_own_query(sk) return ("last_query(sequence, %s - 1)"):format(sk or "sequence.sk()") end
//|
//|   -- Whether one of `keys` keys from `key` on is of first to last.
//|   function pr.meets(keys, first, last) return ("key <= %s && key + %s > %s"):format(last, keys, first) end
//|
//|   -- Of sequence `number` of a batch that tiles are ordered in, work/varlen_order.cu: its levels, counted in units of a tile's queries.
//|   -- Its lowest is that of the keys which its first tile has before its right edge; of a window, of those that any tile sees, at most.
//|   function pr.levels_of()
//|     local keys = ("max(min(%s + 1, sequence.diag_hi() - sequence.diag_lo()), 0)"):format(pr.last_own_key())
//|     if pr.grow then keys = "max(sequence.diag_hi(), 0)" elseif not pr.right then keys = "sequence.sk()" end
  __device__ __forceinline__ Levels levels_of(int number) const {
    if (number >= p.b) return {0, 0};
    const Sequence sequence = sequence_of(p, number);
    const int tiles = (row_count(p, sequence) + BR - 1) / BR;
    return {$(l.split and ("(int)((long long)%s * p.group / BR)"):format(keys) or keys .. " / unit()"), tiles};
  }
//|   end
//|   function pr.keys_of()
//|     local most = "p.section_keys"
//|     if pr.left then most = ("min(sequence.diag_hi() - sequence.diag_lo() + unit(), %s)"):format(most) end
  // Keys of a head that the rows of a tile of the sequence see, as far as they are counted.
  __device__ __forceinline__ int keys_of(int number) const {
    if (number >= p.b) return 0;
    const Sequence sequence = sequence_of(p, number);
    return min(sequence.sk(), $(most));
  }
//|   end
//|
//|   function pr.most_keys()
// Keys that the rows of some tile see at most, of a sequence.
__device__ __forceinline__ int most_keys(const Params &p, const Sequence &sequence) {
//|     if not pr.right then
  return sequence.sk();
//|     elseif not pr.left then
  return max($(pr.last_own_key()) + 1, 0);
//|     else
  const int seen = sequence.diag_hi() - sequence.diag_lo() + (BR + p.group - 1) / p.group + 1;
  return min(max($(pr.last_own_key()) + 1, 0), seen);
//|     end
}
//|   end
//|
//|   function pr.iterations_of()
// The iterations that a tile of a sequence takes: those of the keys that some row sees.
__device__ __forceinline__ int first_block_of(const Sequence &sequence) { return $(pr.first_own_key) / BC; }
__device__ __forceinline__ int iterations_of(const Sequence &sequence) {
  const int lo = $(pr.first_own_key), hi = $(pr.last_own_key());
  return sequence.sq() == 0 || hi < lo ? 0 : (hi / BC - lo / BC + GROUPS) / GROUPS;
}
//|   end
//|
//|   function pr.own_rows()
// Rows [first, end) of a block are keys that some query of the sequence sees.
struct OwnRows {
  int first, end;
  __device__ __forceinline__ bool all() const { return first <= 0 && end >= BC; }
};
__device__ __forceinline__ OwnRows own_rows(const Sequence &sequence, int block) {
  return {$(pr.first_own_key) - block * BC, $(pr.last_own_key()) + 1 - block * BC};
}
//|   end
//|
//|   function pr.own_queries()
// Of queries rows [first, end) of a block of BR: those that see some key of the sequence.
struct OwnQueries {
  int first, end;
  __device__ __forceinline__ bool all() const { return first <= 0 && end >= BR; }
};
__device__ __forceinline__ OwnQueries own_queries(const Sequence &sequence, int block) {
  return {$(pr.first_own_query) - block * BR, $(pr.last_own_query()) + 1 - block * BR};
}
//|   end
//|
//|   function pr.has_own_keys()
// Whether all keys of a tile count.
__device__ __forceinline__ bool has_own_keys(const Sequence &sequence, int key0) {
  bool all = true;
#pragma unroll
  for (int i = 0; i < KEYS / 64; i++) all = all && own_rows(sequence, key0 / 64 + i).all();
  return all;
}
//|   end
//|
//|   function pr.partial_rows()
// The warpgroup of a tile whose last rows are past the sequence's last query, and the first of these; -1: none. Of warpgroups after it no
// row counts.
__device__ __forceinline__ int partial_rows(const Sequence &sequence, int row) { return (sequence.sq() - row) % 64; }
__device__ __forceinline__ int partial_warpgroup(const Sequence &sequence, int row) {
  const int rows = sequence.sq() - row;
  return rows < BR && rows % 64 != 0 ? rows / 64 : -1;
}
//|   end
//| end
