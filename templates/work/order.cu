//| -- order: which tile a number is. Blocks begin in the order of their numbers: where long tiles come first, all end together.
//|
//| local edges = include "pairs/edges.lua"
//|
//| return function(wk, p)
//|   -- A thread block's number, and how many there are: kernels ask by these names alone.
//|   wk.block, wk.blocks = "blockIdx.x", "gridDim.x"
//|
//|   -- Tiles of a head side by side, whatever they cost. The digits of a number, the lowest first: its tile of so many of a head, its head
//|   -- of so many of a sequence, and its sequence. By default of the block's own number, and as many tiles as the launch counts.
//|   function wk.tile(tiles, number) return ("%s %% %s"):format(number or wk.block, tiles or "p.tiles") end
//|   function wk.head(heads, tiles, number) return ("%s / %s %% %s"):format(number or wk.block, tiles or "p.tiles", heads) end
//|   function wk.batch(heads, tiles, number) return ("%s / %s / %s"):format(number or wk.block, tiles or "p.tiles", heads) end
//|   -- The same as lines, of digits {name, radix, factor} from the lowest up, and of what is left.
//|   function wk.digits(digits, rest)
  int i = $(wk.block);
//|     for n, digit in ipairs(digits) do
  $(digit[1]) = i % $(digit[2])$(digit[3] or "");
//|       if n < #digits then
  i /= $(digit[2]);
//|       end
//|     end
  $(rest) = i / $(digits[#digits][2]);
//|   end
//|   -- Of blocks that have all of a head.
//|   function wk.whole_head(heads) return ("%s %% %s"):format(wk.block, heads) end
//|   function wk.batch_of_heads(heads) return ("%s / %s"):format(wk.block, heads) end
//|
//|   -- The heads that `head` is a number of, and those of a tile: the first of its group where a tile has rows of all heads of one.
//|   function wk.heads(packed) return packed and "p.hkv" or "p.hq" end
//|   function wk.take_head(packed, head)
//|     if packed then
  w.kv_head = $(head);
  w.head = w.kv_head * p.group;
//|     else
  w.head = $(head);
  w.kv_head = w.head / p.group;
//|     end
//|   end
//|
//|   -- Where tiles are long and short, the longest of all heads first: `tile` of a head's, and `head_index` among the heads.
//|   function wk.tile_of_keys()
//|     if edges.grow(p) then
  // The first tiles are the longest: those of all heads come first.
  const int heads_of_launch = $(wk.blocks) / p.tiles, tile = $(wk.block) / heads_of_launch, head_index = $(wk.block) % heads_of_launch;
//|     else
  const int tile = $(wk.tile()), head_index = $(wk.block) / p.tiles;
//|     end
//|   end
//|   function wk.tile_of_queries()
//|     if edges.grow(p) then
  // The last tiles are the longest: those of all heads come first.
  const int heads_of_launch = $(wk.blocks) / p.tiles, tile = p.tiles - 1 - $(wk.block) / heads_of_launch;
  const int head_index = $(wk.block) % heads_of_launch;
//|     else
  const int tile = $(wk.tile()), head_index = $(wk.block) / p.tiles;
//|     end
//|   end
//|
//|   -- The same in groups of heads that share the L2: tile_at(), and what it says of a block's own number.
//|   function wk.own_head_tile() return ("tile_at(%s, p.tiles, %s / p.tiles)"):format(wk.block, wk.blocks) end
//|   function wk.head_tiles()
struct HeadTile {
  int head, tile;  // of the launch's heads; of the head's tiles
};
//|     if not edges.right(p) then
// Head by head: all tiles take as long.
__device__ __forceinline__ HeadTile tile_at(int index, int tiles, int) { return {index / tiles, index % tiles}; }
//|     else
// Under a mask a head's first tiles take longest. Heads go in groups: first the first tile of each head in the group, then the second.
// Eight heads share the L2, and each is read by a part of the SMs; of fewer than eight tiles they go one by one. The last group has some
// 512 tiles, four for each SM of a large chip: they end together. Of many heads of few tiles the end is a small part: none such.
__device__ __forceinline__ HeadTile tile_at(int index, int tiles, int heads) {
  const int most = max(512 / tiles, 1), few = tiles < 8 ? 1 : min(most, 8);
  const int evenly = tiles < 8 && heads > 2 * most ? heads : max(heads - most, 0) / few * few;  // heads before the last group
  if (index < evenly * tiles) {
    const int group = index / (few * tiles), in_group = index - group * few * tiles;
    return {group * few + in_group % few, in_group / few};
  }
  const int in_group = index - evenly * tiles, last = heads - evenly;
  return {evenly + in_group % last, in_group / last};
}
//|     end
//|   end
//| end
