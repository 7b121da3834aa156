//| needs "l.brief? l.placed? c.pack? c.sections? l.in_chunks? l.runs? l.even_rows? l.pack? l.parts? l.pieces? l.shared? l.split? l.walks?"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| local packed = (c.pack or l.pack) == 1  -- a tile has rows of all heads of a group
//| local by_head = l.split and not (l.shared and pr.right)
// ---- which tile a block owns ----

//| if p.has_lengths then
// Heads of one section run side by side and share the L2, longest tiles first.
//| elseif by_head then
// The tiles of a head run side by side, and read each of its keys at the same time.
//| else
// Tiles are numbered so that heads of one section run side by side and share the L2, longest tiles first.
//| end
struct Tile {
  int row;                         // first row of the tile
  int kv_head, head;               // head: of Q and O; the first of the group where rows are packed
  long long batch;
//| if l.walks then
  int number, part, parts;  // the place of its first part in the workspace, or -1; which of how many parts of its keys
  int place;                // its number among the tiles whose parts are shared
  // Whether one block does all of its parts, one after the other.
  __device__ __forceinline__ bool is_walked() const { return number < 0; }
//| elseif l.placed then
  int number, part, parts;  // where its first part lies in the workspace; which of how many parts of its keys
  int place;                // its number among the tiles that the second step looks at, or -1
//| elseif l.parts then
  int number, part, parts;  // its number among all tiles; which of how many parts of its keys
//| elseif l.runs then
  int upto, number;  // where its rows end; its number among those of a sequence
//| elseif l.in_chunks then
  int upto;  // where its rows end
//| elseif l.pieces then
  int warpgroups;  // that have rows of it, the first ones
//| end
};
//| if p.has_lengths then

//|   include "work/varlen_order.cu"

//| else
//|   if l.even_rows then
// The rows of a head are cut evenly: where the last tile had few, its warpgroups would come to the same keys before the others, and these then
// come from memory once more.
__device__ __forceinline__ int rows_of_tile(int rows, int tiles) { return (rows + tiles - 1) / tiles; }
__device__ __forceinline__ int rows_of_tile(const Params &p) { return rows_of_tile(p.sq * p.group, p.tiles); }
//|   end
//| if l.in_chunks then
//|   include "work/chunk_tiles.cu"
//| else
//| if l.runs then
// from: its first key.
__device__ __forceinline__ Tile tile_of(const Params &p, int index, int &from) {
//| else
__device__ __forceinline__ Tile tile_of(const Params &p, int index) {
//| end
  const int heads = $(wk.heads(packed));
//| if by_head then
  const int at = index / p.tiles, tile = index - at * p.tiles;
//| else
  const int total = heads * p.b;                           // heads of all batches
//| -- Of a mask that leaves few keys of each row, side by side, the keys of all heads at work lie in the L2.
//| local tables = pr.scans and include("pairs/edges.lua").tables(p)
//| if pr.walks and p.score.two_ended or tables and not tables:find("mask_pairs") then
  const int widest = total;
//| elseif (c.sections or 1) > 1 then
  const int widest = (p.section + $(c.sections - 1)) / $(c.sections);
//| else
  const int widest = p.section;
//| end
//| if l.brief then
  // One division in the text for four: the section, the tile, the head of Q, that of K and V.
  Tile w;
  u32 section = 0, n = index, by = p.tiles * widest;
#pragma unroll 1
  for (int turn = 0; turn < 4; turn++) {
    const u32 whole = n / by, rest = n % by;
    n = rest;
    if (turn == 0) section = whole * widest, by = min(widest, total - (int)section);  // the last section may be narrower
//|   -- The first of a tile's keys are those beside its diagonal: of rows from the last on they lie in the L2 already.
    if (turn == 1) w.row = $(pr.right and "(p.tiles - 1 - (int)whole)" or "(int)whole") * BR, n += section, by = heads;
    if (turn == 2) w.batch = whole, w.head = rest, by = p.group;
    if (turn == 3) w.kv_head = whole;
  }
  return w;
}
//| else
  const int per_section = $(l.runs and "2 * " or "")p.tiles * widest;
  const int section = index / per_section, rest = index % per_section;
  const int width = min(widest, total - section * widest);  // the last section may be narrower
  const int tile = rest / width, at = section * widest + rest % width;
//| end
//| end
//| if not l.brief then
  Tile w;
//| local high = l.even_rows and "rows_of_tile(p)" or "BR"
//| -- The first of a tile's keys are those beside its diagonal: of rows from the last on they lie in the L2 already.
//| if l.runs then
//| elseif not pr.right and not (pr.walks and not l.split) then
  w.row = tile * $(high);
//| else
  w.row = (p.tiles - 1 - tile) * $(high);
//| end
  w.batch = at / heads;
//| wk.take_head(packed, "at % heads")
//| if l.split and not l.walks then
//|   if l.even_rows then
  w.number = at * p.tiles + $(pr.right and "p.tiles - 1 - tile" or "tile");
//|   else
  w.number = at * p.tiles + w.row / BR;
//|   end
//| end
//| if l.pieces then
  w.warpgroups = WGS;
//| end
//| if l.runs then
  // A sequence may have fewer tiles than another: its last numbers are none.
  const RunTile of = run_tile(p, (int)w.batch, tile);
  w.number = tile, w.row = of.row, w.upto = of.upto, from = of.from;
//| end
  return w;
}
//| end
//| end
//|   if l.pieces then
// A last round of few tiles would keep few blocks at work for as long as a whole round: where pieces of these tiles, of fewer warpgroups,
// find a block each, they are dealt in their place. A warpgroup by itself takes half the time of three.
struct Pieces {
  int first, tiles, each;  // the tiles that are cut, and into how many pieces
  __device__ __forceinline__ int total(const Params &p) const { return p.total + tiles * (each - 1); }
  __device__ __forceinline__ Tile tile(const Params &p, int index) const {
    const int piece = index - first;
    if (piece < 0 || piece >= tiles * each) return tile_of(p, piece < 0 ? index : index - tiles * (each - 1));
    // Of three warpgroups in two pieces the first has two.
    const int number = piece / tiles, low = number * (WGS - each + 1);
    Tile w = tile_of(p, first + piece % tiles);
    w.row += low * 64;
    w.warpgroups = number == 0 ? WGS - each + 1 : 1;
    return w;
  }
};
__device__ __forceinline__ Pieces pieces_of_launch(const Params &p) {
  const int blocks = (int)$(wk.blocks), all = p.total / p.tiles, sections = (all + p.section - 1) / p.section;
  const int width = all - (sections - 1) * p.section;
  // A head's last tile may be small already: those of the last section come last of all.
  const bool small = p.sq <= (p.tiles - 1) * BR + (WGS - 1) * 64;
  const int ending = small ? width : 0, before = p.total - ending - (small ? (all - width) / 2 : 0);
  const int tiles = before % blocks;
  const int each = WGS * tiles + ending <= blocks ? WGS : 2 * tiles + ending <= blocks ? 2 : 1;
  if (WGS == 1 || tiles > width * (p.tiles - small)) return {p.total, 0, 1};
  return {p.total - ending - tiles, tiles, each};
}
//|   end
//| end
//| if l.split and not p.has_lengths then

//|   include "work/split_parts.cu"
//| end

// The query and the head of a row.
struct Row {
  long long query, head;
};
__device__ __forceinline__ Row row_of(const Params &p, const Tile &w, int row) {
//| if packed then
  return {row / p.group, w.head + row % p.group};
//| else
  return {row, w.head};
//| end
}
