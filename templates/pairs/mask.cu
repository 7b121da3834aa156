//| needs "c.pack? l.pack? l.rows_from? l.rows_upto?"
//| local edges = include "pairs/edges.lua"
//| local pr = include("pairs/pairs.lua").of(p, l)
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

//| if pr.walks then
//|   pr.program()

//|   pr.key_range()
//|   pr.mask_blocks()
//|   if edges.tables(p) and not l.rows_upto and not l.rows_from then

//|     include "pairs/mask_kernel.cu"
//|   end
//| else
//|   pr.key_range()
//|   pr.program()
//|   if pr.marked then

//|     if edges.tables(p) then
//|       include "pairs/mask_kernel.cu"

//|     end
//|     include "pairs/marks.cu"
//|   end
//| end
