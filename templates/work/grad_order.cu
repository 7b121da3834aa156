//| -- The tile that a thread block of gradients has, and its place among the heads, of which each has p.tiles. Where tiles are long and short
//| -- the longest of all heads go in front: of keys the first, of queries the last.
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local order = {}
//| function order.of_keys()
//|   if pr.grow then
  // The first tiles are the longest: those of all heads go in front.
  const int heads_of_launch = gridDim.x / p.tiles, tile = blockIdx.x / heads_of_launch, place = blockIdx.x % heads_of_launch;
//|   else
  const int tile = blockIdx.x % p.tiles, place = blockIdx.x / p.tiles;
//|   end
//| end
//| function order.of_queries()
//|   if pr.grow then
  // The last tiles are the longest: those of all heads go in front.
  const int heads_of_launch = gridDim.x / p.tiles, tile = p.tiles - 1 - blockIdx.x / heads_of_launch;
  const int place = blockIdx.x % heads_of_launch;
//|   else
  const int tile = blockIdx.x % p.tiles, place = blockIdx.x / p.tiles;
//|   end
//| end
//| return order
