-- staged: where arrays of a score program lie that a warp of the producer brings into shared memory, for each block of keys one of a few
-- stages. A tile: the elements of a block's pairs, or of its keys alone. A line: what depends on key - query alone, for each of their
-- distances, once from an even place on and once from an odd one, so that two keys side by side are one read of any row. Of lines alone a
-- stage is of a few blocks of keys, `group`, so that the warp has less to do for each. far: a block
-- whose pairs all have one number of key - query has that number alone, where nothing else is staged.

local edges = include "pairs/edges.lua"

local LEAST, MOST, PAD = 2, 4, 16 -- stages; bytes by which rows are apart, so that eight of them lie in different banks
local SWIZZLE, PATTERN = 128, 1024 -- of rows that need none: boxes of so many bytes a row, in patterns of eight rows
local SPAN = 640 -- keys that a stage of lines is of, at most
local none = {}

local staged = { least = LEAST, most = MOST }

-- Whether a kernel that can does so, of rows of one head. Under a program's mask, which blocks are walked is not known to that warp.
function staged.wanted(p)
  return p.score and p.score.has_score and not p.score.has_mask and not p.has_lengths and (#p.score.arrays > 0 or p.score.of_distance) and true or false
end

-- Whether TMA brings a block of an array, by a map of it, where its rows begin at multiples of 16 bytes, or its queries lie side by side:
-- rows that lie apart in memory by one stride, of elements of 16 bits.
local function boxed(of) return of.by_row and of.row_index and not of.wide or nil end

-- Whether all that comes are boxes of rows, of which each block of a cluster has its own.
function staged.by_rows(p)
  for _, of in ipairs(p.score.arrays) do
    if of.diagonal or not boxed(of) then return false end
  end
  return not p.score.of_distance
end

-- How many blocks of keys may share a stage, a power of 2.
function staged.most_group(p, c)
  for _, of in ipairs(p.score.arrays) do
    if not of.diagonal then return 1 end
  end
  if p.score.of_distance and (p.score.has_far_below or p.score.has_far_above) then return 1 end
  local group = 8
  while group * c.bc > SPAN and group > 1 do group = group // 2 end
  return group
end

-- Tiles { of =, at =, bytes =, pitch =, boxed =, swizzled =, box = }, in the order of the program's arrays, and lines { of =, node =,
-- at = }: at is in a stage; copy: bytes of one of a line's copies; span: keys of a stage, those of `group` blocks. far: { at =, below =,
-- above = }, a flag and the number, and on which sides there are such blocks. owned: warps of consumers copy tiles, each its own rows, of
-- which shifted are those whose rows begin anywhere; produced: a warp of the producer brings what else there is,
-- by_thread: one of its threads, where boxes are all.
-- bytes: of a stage.
function staged.places(p, c, stages, group)
  local l = { tiles = {}, lines = {}, bytes = 0, stages = stages or LEAST, boxed = {}, maps = {} }
  local align = 128
  l.group = group or 1
  l.span = l.group * c.bc
  l.copy = ((c.br + l.span + 2 + 31) // 32 * 32 + 16) * 4
  for n, of in ipairs(p.score.arrays) do
    if of.diagonal then
      l.lines[#l.lines + 1] = { of = of, node = of.node, at = l.bytes }
      l.bytes = l.bytes + 2 * l.copy
    else
      local row = c.bc * (of.wide and 4 or 2)
      local tile = { of = of, node = of.node, rows = of.by_row and c.br or 1 }
      tile.columns = boxed(of) and p.has_score_columns or nil
      tile.boxed = boxed(of) and not p.has_score_anywhere or nil
      tile.owned = of.by_row and not tile.boxed or nil
      tile.shifted = tile.owned and (p.has_score_anywhere or not of.row_index) or nil
      tile.swizzled = tile.boxed and (tile.columns or row % SWIZZLE == 0)
      tile.pitch = tile.swizzled and SWIZZLE or of.by_row and row + (of.wide and 2 * PAD or PAD) or 0
      tile.bytes = tile.swizzled and c.br * row or of.by_row and c.br * tile.pitch or row
      tile.box = (tile.columns and c.bc or c.br) * tile.pitch -- bytes of one
      if tile.swizzled then align, l.bytes = PATTERN, (l.bytes + PATTERN - 1) // PATTERN * PATTERN end
      tile.at = l.bytes
      l.bytes = l.bytes + tile.bytes
      l.tiles[#l.tiles + 1], l.boxed[n] = tile, tile.boxed
      if tile.owned then l.owned = true else l.produced = true end
      if tile.boxed then
        local row_index, col_index = of.row_index, of.rank - 1
        if tile.columns then row_index, col_index = col_index, row_index end
        l.maps[#l.maps + 1] = { array = of.operand, row_index = row_index, col_index = col_index, cols = tile.pitch // 2,
          rows = tile.columns and c.bc or c.br, swizzle = tile.swizzled and SWIZZLE or 0 }
      end
    end
  end
  if p.score.of_distance then
    l.lines[#l.lines + 1] = { node = p.score.of_distance, at = l.bytes }
    l.bytes = l.bytes + 2 * l.copy
    if #l.tiles == 0 and #l.lines == 1 and (p.score.has_far_below or p.score.has_far_above and not edges.cuts_right(p)) then
      l.far = { at = l.bytes, below = p.score.has_far_below, above = p.score.has_far_above and not edges.cuts_right(p) }
      l.bytes = l.bytes + 16
    end
  end
  l.produced = l.produced or #l.lines > 0
  l.by_thread = l.produced and #l.lines == 0
  for _, tile in ipairs(l.tiles) do l.by_thread = l.by_thread and (tile.boxed or tile.owned) and true or false end
  l.bytes = (l.bytes + align - 1) // align * align
  return l
end

-- Issue slots of a warpgroup for a block: the stage's wait and addresses. From a race of three tiles for two kinds of operands on an H200.
-- far: the same of a line that may have one number for a block, which is voted on. joins: of one that is added to exponents.
function staged.per_group(l, far, joins) return #l.tiles * 370 + #l.lines * (l.far and far or joins and 170 or 220) end

-- Of a pair: instructions, and of these those on the special-function unit. Two numbers of 16 bits are one word, a line serves two rows.
function staged.cost(p)
  local issue = p.score.issue_staged
  for _, of in ipairs(p.score.arrays) do issue = issue + (of.diagonal and 0.3 or of.wide and 0.5 or 1.2) end
  return issue + (p.score.of_distance and 0.3 or 0), p.score.exps_staged
end

return staged
