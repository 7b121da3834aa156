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

//| include "pairs/seen_keys.cu"

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
