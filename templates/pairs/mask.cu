//| needs "c.pack? l.pack?"
// ---- which keys a row, a tile and a block see ----

//| if (c.pack or l.pack) == 1 then
// Row r of the tile rows of a key/value head: query r / group of head r % group within the group.
__device__ __forceinline__ int query_of(const Params &p, int row) { return row / p.group; }
__device__ __forceinline__ int row_count(const Params &p, const Sequence &sequence) { return sequence.sq() * p.group; }
//| else
__device__ __forceinline__ int query_of(const Params &, int row) { return row; }
__device__ __forceinline__ int row_count(const Params &, const Sequence &sequence) { return sequence.sq(); }
//| end

// First and last key of its sequence that query i sees.
//| if p.mask == "window" then
__device__ __forceinline__ int first_key(const Sequence &sequence, int i) { return max(0, i + sequence.diag_lo()); }
//| else
__device__ __forceinline__ int first_key(const Sequence &, int) { return 0; }
//| end
//| if p.mask ~= "none" then
__device__ __forceinline__ int last_key(const Sequence &sequence, int i) { return min(sequence.sk() - 1, i + sequence.diag_hi()); }
//| else
__device__ __forceinline__ int last_key(const Sequence &sequence, int) { return sequence.sk() - 1; }
//| end

// The keys of one row tile, and its blocks of BC keys, which are walked from right to left:
//   blocks [full_hi, block_hi] cut by the right edge, (full_lo, full_hi) seen whole by every row, [block_lo, full_lo] cut by the left.
struct Range {
  int key_lo, key_hi;      // seen by some row of the tile; empty when key_lo > key_hi
  int block_lo, block_hi;  // blocks that hold them
  int full_lo, full_hi;    // exclusive bounds of the blocks that need no mask
};
__device__ __forceinline__ Range key_range(const Params &p, const Sequence &sequence, int first_row, int last_row) {
  const int i0 = query_of(p, first_row), i1 = query_of(p, last_row);
  Range r;
  r.key_lo = first_key(sequence, i0);
  r.key_hi = last_key(sequence, i1);
  r.block_lo = r.key_lo / BC;
  r.block_hi = r.key_hi < r.key_lo ? r.block_lo - 1 : r.key_hi / BC;
//| if p.mask == "window" then
  r.full_lo = min(r.block_hi, (first_key(sequence, i1) + BC - 1) / BC - 1);
//| else
  r.full_lo = -1;
//| end
  r.full_hi = max(r.full_lo + 1, (last_key(sequence, i0) + 1) / BC);
  return r;
}
