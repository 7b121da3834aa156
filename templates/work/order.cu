//| -- order: which tile a number is. Blocks begin in the order of their numbers, so that long tiles in front let all end together.
//|
//| local edges = include "pairs/edges.lua"
//|
//| return function(wk, p)
//|   -- Tiles of a head side by side, whatever they cost: what block blockIdx.x has, of so many heads of a sequence.
//|   wk.tile = "blockIdx.x % p.tiles"
//|   function wk.head(heads) return "blockIdx.x / p.tiles % " .. heads end
//|   function wk.batch(heads) return "blockIdx.x / p.tiles / " .. heads end
//|
//|   -- Where tiles are long and short, the longest of all heads in front: `tile` of a head's, and `place` among the heads.
//|   function wk.tile_of_keys()
//|     if edges.grow(p) then
  // The first tiles are the longest: those of all heads go in front.
  const int heads_of_launch = gridDim.x / p.tiles, tile = blockIdx.x / heads_of_launch, place = blockIdx.x % heads_of_launch;
//|     else
  const int tile = $(wk.tile), place = blockIdx.x / p.tiles;
//|     end
//|   end
//|   function wk.tile_of_queries()
//|     if edges.grow(p) then
  // The last tiles are the longest: those of all heads go in front.
  const int heads_of_launch = gridDim.x / p.tiles, tile = p.tiles - 1 - blockIdx.x / heads_of_launch;
  const int place = blockIdx.x % heads_of_launch;
//|     else
  const int tile = $(wk.tile), place = blockIdx.x / p.tiles;
//|     end
//|   end
//|
//|   -- The same in groups of heads that share the L2.
//|   function wk.head_tiles()
struct HeadTile {
  int head, tile;  // of the launch's heads; of the head's tiles
};
//|     if not edges.right(p) then
// Head by head: all tiles take as long.
__device__ __forceinline__ HeadTile tile_at(int index, int tiles, int) { return {index / tiles, index % tiles}; }
//|     else
// Under a mask a head's first tiles take longest. Heads go in groups: first the first tile of each head in the group, then the second. Eight
// heads share the L2, and each is read by a part of the SMs. The last group has some 512 tiles, four for each SM of a large chip: they end
// together.
__device__ __forceinline__ HeadTile tile_at(int index, int tiles, int heads) {
  const int most = max(512 / tiles, 1), few = tiles < 8 ? 1 : min(most, 8);
  const int evenly = tiles < 8 ? heads : max(heads - most, 0) / few * few;  // heads in front of the last group
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
