//| needs "l.published? l.runs?"
//| -- scan: the blocks of keys of a tile that hold a pair which a score program's mask leaves, where no bounds of keys tell them: the
//| -- lanes of a warp ask of 32 blocks at a time what the mask is on them. All warps that walk a tile find the same blocks.
//|
//| local edges = include "pairs/edges.lua"
//|
//| return function(pr, p, l)
//|   pr.scans = edges.scans(p)
//|
//|   -- After the ranges, pairs/mask.cu.
//|   function pr.mask_blocks()
//|     if not pr.scans then return end
//|     local keys = 1024
//|     if not (pr.masks and pr.ends_in_part) then

// What the program's mask is on `blocks` blocks of keys and rows `from` to `end`, of heads from `head` on: 0 hides all pairs, 2 none, 1 maybe
// some.
__device__ __forceinline__ int class_of_rows(const Params &p, const Sequence &sequence, int head, int from, int end, int block,
                                             int blocks = 1) {
  const ScoreTile t = score_tile(p, sequence, head);
  const int most = max(sequence.sq() - 1, 0), key = block * BC, last_key = min(key + blocks * BC, t.sk) - 1;
  return mask_class(p, t, head, $(pr.last_head("head")), min(query_of(p, from), most), min(query_of(p, end), most), key, last_key);
}
//|     end
//|     if pr.ends_in_part and pr.masks then

// What conditions of the program's mask that are not solved are on a block of keys and rows `from` to `end`: 0 hides all pairs, 2 none, 1 maybe
// some; and 4 times that of those that are solved.
__device__ __forceinline__ int classes_of_rows(const Params &p, const Sequence &sequence, int head, int from, int end, int block) {
  const ScoreTile t = score_tile(p, sequence, head);
  const int most = max(sequence.sq() - 1, 0), key = block * BC, last_key = min(key + BC, t.sk) - 1;
  return mask_classes(p, t, head, $(pr.last_head("head")), min(query_of(p, from), most), min(query_of(p, end), most), key, last_key);
}
//|       if l.runs then
// Of those that are solved, without tables of the others.
__device__ __forceinline__ int solved_of_rows(const Params &p, const Sequence &sequence, int head, int from, int end, int key) {
  const int most = max(sequence.sq() - 1, 0), last_key = min(key + BC, sequence.sk()) - 1;
  return mask_solved(p, score_tile(p, sequence, head), head, $(pr.last_head("head")), min(query_of(p, from), most),
                     min(query_of(p, end), most), key, last_key);
}
//|       end
//|     end
//|     if pr.masks then return end  -- what a kernel before finds is read, pairs/mask_lines.cu
// The same with the edges of the launch's mask, which cut all blocks but those between full_lo and full_hi.
__device__ __forceinline__ int block_class(const Params &p, const Sequence &sequence, int head, int from, int end, int full_lo, int full_hi,
                                           int block) {
  const int is = class_of_rows(p, sequence, head, from, end, block);
  return is != 0 && (block <= full_lo || block >= full_hi) ? 1 : is;
}

// Blocks of a tile from right to left, as 2 * block, and 1 more where some pair may be hidden; -1 ends them.
struct MaskBlocks {
  int lo, top;    // the last; blocks from `top` on have been looked at
  u32 some, cut;  // of those: block top + 31 - n, bit n
  __device__ __forceinline__ MaskBlocks(int hi, int lo) : lo(lo), top(hi + 1), some(0), cut(0) {}
  // look(block): its class. To be used by whole warps.
  template <class Look>
  __device__ __forceinline__ int next(const Look &look) {
    while (some == 0) {
      if (top <= lo) return -1;
      top -= 32;
      const int block = top + 31 - (int)threadIdx.x % 32, is = block >= lo ? look(block) : 0;
      some = __ballot_sync(~0u, is != 0);
      cut = __ballot_sync(~0u, is == 1);
    }
    const int n = __ffs(some) - 1;
    some &= some - 1;
    return 2 * (top + 31 - n) + (int)(cut >> n & 1);
  }
};
//|     if l.published then

// Of a scheduler: among blocks lo to hi the first that is left, and one before which none is; hi < lo where none is left.
struct BlockEnds {
  int lo, hi;
};
// look(block, blocks): the class of so many; first(hi, lo): the first of these that is left, below 0 where none is. Lanes ask for groups of
// blocks, of up to $(keys) keys, and only of the first that are left for blocks.
template <class Look, class First>
__device__ __forceinline__ BlockEnds ends_of_blocks(int lo, int hi, const Look &look, const First &first) {
  const int lane = threadIdx.x % 32, each = min((hi - lo) / 32 + 1, BC < $(keys) ? $(keys) / BC : 1);
  BlockEnds ends = {lo, lo - 1};
#pragma unroll 1
  for (int end = hi + 1; end > lo; end -= 32 * each) {
    const int upto = end - each * lane, from = max(upto - each, lo);
    u32 found = __ballot_sync(~0u, from < upto && look(from, upto - from) != 0);
#pragma unroll 1
    while (found != 0 && ends.hi < lo) {
      const int n = __ffs(found) - 1;
      ends.lo = max(end - each * (n + 1), lo);
      ends.hi = max(first(end - each * n - 1, ends.lo), lo - 1);
      found &= found - 1;
    }
    if (found != 0) ends.lo = max(end - each * (32 - __clz(found)), lo);
  }
  return ends;
}
//|     end
//|   end
//|   -- Of tiles that hold their rows and their range.
//|   function pr.class_of()
//|     if not pr.scans then return end
// What a score program's mask is on a block of the tile: 0 hides all pairs, 2 none.
__device__ __forceinline__ int class_of(const Params &p, const Sequence &sequence, const Tile &t, int block) {
  if (block < t.range.block_lo || block > t.range.block_hi) return 0;
  const int last = min(t.row + BR, t.rows) - 1;
  return block_class(p, sequence, t.head, t.row, last, t.range.full_lo, t.range.full_hi, block);
}
//|   end
//|   -- Of kernels that take blocks in iterations from left to right.
//|   function pr.mask_iterations()
//|     if not pr.scans then return end

// What the mask is on the block of an iteration, as block_class() tells: of 32 iterations at a time.
struct MaskIterations {
  int from = -(1 << 30);
  u32 some = 0, cut = 0;
  // look(iteration): the class of its block. To be used by whole warps.
  template <class Look>
  __device__ __forceinline__ int at(int iteration, const Look &look) {
    if (iteration < from || iteration >= from + 32) {
      from = iteration;
      const int is = look(iteration + (int)threadIdx.x % 32);
      some = __ballot_sync(~0u, is != 0);
      cut = __ballot_sync(~0u, is == 1);
    }
    const int n = iteration - from;
    return (some >> n & 1) == 0 ? 0 : 2 - (int)(cut >> n & 1);
  }
};
//|   end
//|
//|   -- A kernel's walk over the blocks of a tile, right after `range` is known: `block`, and with a scan numbers of `count` blocks more.
//|   function pr.begin_walk(range, head, from, upto, count)
//|     if not pr.scans then
int block = $(range).block_hi;
//|       return
//|     end
auto look = [&](int block) {
  const int first = $(from), last = $(upto);
  return block_class(p, sequence, (int)$(head), first, last, $(range).full_lo, $(range).full_hi, block);
};
MaskBlocks blocks($(range).block_hi, $(range).block_lo);
int code = blocks.next(look);
//|     for n = 1, count do
int code$(n) = blocks.next(look);
//|     end
int block = code >> 1;
//|     pr.walk_depth = count
//|   end
//|   -- The nth block after `block`, which is below 0 where there is none. text: of kernels that walk all blocks.
//|   function pr.later(n, text) return pr.scans and (n == 0 and "block" or ("code%d >> 1"):format(n)) or text end
//|   function pr.scan(step)
    for (; code >= 0; block = code >> 1) {
      $(step)
      code = $(pr.walk_depth > 0 and "code1" or "blocks.next(look)");
//|     for n = 1, pr.walk_depth do
      code$(n) = $(n < pr.walk_depth and "code" .. n + 1 or "blocks.next(look)");
//|     end
    }
//|   end
//|
//|   -- The same of warps that walk a published tile: look(block), the class for all of the tile's rows. With wg, of a producer, also
//|   -- look_of(block, wg, of_tile), the class for a warpgroup's rows where that of the tile is of_tile. Nothing of it stays in registers.
//|   function pr.begin_published(wg)
//|     if not pr.scans then return end
//|     if wg and pr.masks then return pr.begin_staged() end
auto look = [&](int block) {
  const Tile where = tiles.again(p, smem);
//|     if p.has_lengths then
  const Sequence sequence = tiles.sequence(p, smem);
//|     else
  const Sequence sequence = sequence_of(p, where.batch);
//|     end
  return class_of_rows(p, sequence, where.head, where.row, min(where.row + BR, row_count(p, sequence)) - 1, block);
};
//|     if not wg then return end
auto look_of = [&](int block, int wg, int of_tile) {
  const KeyRange keys = tiles.keys(p, smem, wg);
  if (of_tile == 0) return 0;
  if (block <= keys.full_lo || block >= keys.full_hi) return 1;
  if (of_tile == 2) return 2;
  const Tile where = tiles.again(p, smem);
//|     if p.has_lengths then
  const Sequence sequence = tiles.sequence(p, smem);
//|     else
  const Sequence sequence = sequence_of(p, where.batch);
//|     end
  const int row = where.row + row_in_tile(wg), end = min(where.row + BR, row_count(p, sequence)) - 1;
  return max(1, class_of_rows(p, sequence, where.head, row, max(row, min(row + 63, end)), block));
};
//|   end
//|
//|   function pr.are_few()
  // Whether few are left: the search for a tile takes as long as some blocks of keys.
  __device__ __forceinline__ bool are_few() const { return top <= lo && __popc(some) <= 3; }
//|   end
//|
//|   -- A producer leaves a number beside each K, which the warpgroups read: below CODE_LAST a bit for each that may not see all of the
//|   -- block, CODE_LAST at the tile's last block, and the block.
//|   function pr.codes()
//|     if not pr.scans then return end
//|     if pr.masks then return pr.staged_codes() end

constexpr int CODE_LAST = 1 << WGS, CODE_BLOCK = WGS + 1;
__device__ __forceinline__ u32 code_at(u32 smem, int stage) { return smem + SMEM_CODES + stage * 4; }

// A tile's blocks, as MaskBlocks has them; -1 ends them.
struct TileBlocks {
  int lo, top;
  u32 some, cut[WGS];
  __device__ __forceinline__ TileBlocks(int hi, int lo) : lo(lo), top(hi + 1), some(0), cut{} {}
  // look(block): the class for all rows of the tile; look_of(block, wg, that class): for the warpgroup's rows. To be used by a whole warp.
  template <class Look, class LookOf>
  __device__ __forceinline__ int next(const Look &look, const LookOf &look_of) {
    while (some == 0) {
      if (top <= lo) return -1;
      top -= 32;
      const int block = top + 31 - (int)threadIdx.x % 32, of_tile = block >= lo ? look(block) : 0;
      some = __ballot_sync(~0u, of_tile != 0);
      if (some == 0) continue;
#pragma unroll 1
      for (int wg = 0; wg < WGS; wg++) {
        const u32 bits = __ballot_sync(~0u, look_of(block, wg, of_tile) == 1);
#pragma unroll
        for (int i = 0; i < WGS; i++) cut[i] = i == wg ? bits : cut[i];
      }
    }
    const int n = __ffs(some) - 1;
    some &= some - 1;
    int code = (top + 31 - n) << CODE_BLOCK;
#pragma unroll
    for (int i = 0; i < WGS; i++) code |= (int)(cut[i] >> n & 1) << i;
    return code;
  }
//|     pr.are_few()
};
//|   end
//| end
