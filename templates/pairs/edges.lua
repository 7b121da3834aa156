-- edges: where the keys that a row sees end inside of its sequence. Only what differs from row to row is an edge.

local edges = {}

-- Each row sees keys up to one of its own; from one of its own on.
function edges.right(p) return p.mask ~= "none" end
function edges.left(p) return p.mask == "window" end
-- Whether a row sees so many keys before it that what its first block had weighs little.
function edges.long_window(p) return edges.left(p) and p.window >= 512 end
-- A later row sees all that an earlier one does, and more: tiles of rows become longer, tiles of keys shorter.
function edges.grow(p) return edges.right(p) and not edges.left(p) end

-- The same of blocks of keys: a score program's mask may cut them at both sides.
local function has_mask(p) return p.score and p.score.has_mask or false end
function edges.cuts_right(p) return edges.right(p) or has_mask(p) end
function edges.cuts_left(p) return edges.left(p) or has_mask(p) end

-- Whether keys are walked by the program's mask. The backward pass walks both ways, by marks that a kernel before makes of all tiles.
local function walks(p) return has_mask(p) and p.op ~= "backward" end
edges.walks = walks
local function marked(p) return has_mask(p) and p.op == "backward" end
edges.marked = marked
-- A mask may need tables of its operands, buffers of the workspace: their text, nil where there are none.
local function tables(p) return has_mask(p) and p.score.tables or nil end
local function lacks_tables(p) return tables(p) and p.has_no_workspace end
function edges.tables(p) return not lacks_tables(p) and tables(p) or nil end
-- Whether a kernel before fills them. Where all pairs of a tile are alike to the mask, intervals are numbers, and what arrays hold is read.
function edges.fills(p, l)
  local text = edges.tables(p)
  if not text then return false end
  local alike = l and l.masks and not l.masks.brings
  return not (alike and not text:find("mask_keys") and not text:find("mask_queries"))
end
-- Bounds of the keys that rows see; where they are exact they tell hidden pairs by themselves, else blocks of keys are asked one by one.
function edges.bounds(p) return walks(p) and not lacks_tables(p) end
function edges.ends(p) return edges.bounds(p) and p.score.exact or false end
-- Something is computed of each pair.
function edges.of_pairs(p) return p.score and (p.score.has_score or p.score.has_mask and not edges.ends(p)) or false end
function edges.scans(p) return edges.bounds(p) and not p.score.exact or false end

-- Buffers of marks.
function edges.marks(p) return marked(p) and p.score.marks or nil end

function edges.of(pr, p)
  pr.cuts_right, pr.cuts_left = edges.cuts_right(p), edges.cuts_left(p)
  pr.right, pr.left, pr.grow = edges.right(p), edges.left(p), edges.grow(p)
  pr.reach = "sequence.sq() + sequence.diag_hi()" -- keys up to the last that the last query sees, whether they are there or not
end

-- Of a program whose pairs look up one number of key - query and nothing else: { node =, array = }, where it comes from an array.
function edges.line(program)
  local array = program.arrays[1]
  if #program.arrays == 1 and array.diagonal and not program.of_distance then return { node = array.node, array = array } end
  return #program.arrays == 0 and program.of_distance and { node = program.of_distance } or nil
end

return edges
