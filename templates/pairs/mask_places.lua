-- mask_places: where in shared memory lies what a score program's mask reads of a block of keys, which a warp of the producer brings where
-- some warpgroup may not see all of it: values of keys, four bytes each, and for each row the bits of its pairs, 32 keys to a word.

local edges = include "pairs/edges.lua"

local STAGES = 2

local places = {}

-- Whether a kernel that can does so, of rows of one head.
function places.wanted(p)
  return edges.scans(p) and p.score.staged_mask and not p.score.has_score and not p.has_lengths and true or false
end

-- Columns { node =, type =, at = }, rows { node =, type = }, bits = where the first row's begin, words and bytes of a row: at is in a
-- stage. bytes: of a stage.
function places.of(p, c)
  local of = p.score.staged_mask
  local l = { columns = {}, rows = of.rows, plane = of.plane, lookup = of.lookup, contrary = of.contrary, bytes = 0, stages = STAGES }
  for _, column in ipairs(of.columns) do
    l.columns[#l.columns + 1] = { node = column.node, type = column.type, at = l.bytes }
    l.bytes = l.bytes + 4 * c.bc
  end
  if of.plane then
    l.words = (c.bc + 31) // 32
    l.pitch = 4 * (l.words % 8 == 0 and l.words + 1 or l.words) -- eight rows lie in different banks
    l.bits = l.bytes
    l.bytes = l.bytes + c.br * l.pitch
  end
  l.bytes = (l.bytes + 511) // 512 * 512 -- what follows both stages lies in patterns of 1024 bytes
  return l
end

return places
