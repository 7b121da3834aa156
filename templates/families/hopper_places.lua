-- Where things lie in shared memory in flash_fwd_wgmma, in bytes from its start.

local round_up = include "families/round_up.lua"
local split = include "families/split_family.lua"
local staged = include "pairs/staged.lua"
local edges = include "pairs/edges.lua"
local mask_places = include "pairs/mask_places.lua"

local places = {}

-- Where Q (by buffer and warpgroup), K and V (by stage) lie in shared memory, in bytes from its start. packed: rows of several heads.
-- stages: of arrays of a score program, each of `group` blocks of keys.
function places.buffers(p, c, packed, stages, group)
  local row = c.box * 2
  local boxes, boxes_v = (p.d + c.box - 1) // c.box, (p.dv + c.box - 1) // c.box
  local l = { row = row, boxes = boxes, boxes_v = boxes_v }
  l.k = c.q_bufs * c.br * boxes * row
  l.v = l.k + c.stages_k * c.bc * boxes * row
  l.bytes = l.v + c.stages_v * c.bc * boxes_v * row
  if not packed and staged.wanted(p) then -- arrays of a score program
    l.staged = staged.places(p, c, stages, group)
    l.staged.at = l.bytes
    l.bytes = l.bytes + round_up(l.staged.stages * l.staged.bytes, 1024) -- O, which follows, lies in patterns of so many bytes
  end
  if p.score and not packed and mask_places.wanted(p, c) then -- what its mask reads
    l.masks = mask_places.of(p, c)
    l.masks.at = l.bytes
    l.bytes = l.bytes + l.masks.stages * l.masks.bytes
  end
  return l
end

-- After them: O where it has a buffer of its own, the mbarriers, what is published of tiles.
function places.of(p, c, stages, group)
  local l = places.buffers(p, c, c.parts, stages, group)
  l.wgs = c.br // 64
  l.o = l.bytes
  l.barriers = l.o + (c.o_path == 2 and c.br * l.boxes_v * l.row or 0)
  local barriers = 2 * c.stages_k + 2 * c.stages_v + 2 * c.q_bufs * l.wgs + (c.grid > 0 and 5 or 0)
  if p.has_lengths then barriers = barriers + c.stages_v + (c.parts and 0 or c.q_bufs * l.wgs) end
  if l.staged then
    l.staged.barriers = barriers
    barriers = barriers + 2 * l.staged.stages
  end
  if l.masks then
    l.masks.barriers = barriers
    barriers = barriers + 2 * l.masks.stages
  end
  l.slots = round_up(l.barriers + 8 * barriers, 16)
  -- Where a tile is, and its sequence; what is loaded, and what each warpgroup does of it.
  if c.parts then
    l.parts = true
  elseif p.has_lengths then
    l.part_tiles = split.rows_sm // (c.br * c.ctas)
    -- How many parts there are depends on the batch. Adding them up beside the next tile's scores takes more registers than there are: of
    -- 44 configs compiled, five with ahead = 1 spilled, none with 0.
    l.parts = l.part_tiles > 1 and c.ahead == 0 and not p.has_batch_invariant
    l.counts = l.parts
  end
  l.ranges = (p.has_lengths and (edges.right(p) and 48 or 32) or 16) + (l.parts and 16 or 0)
  l.slot = l.ranges + ((edges.cuts_right(p) or p.has_lengths) and 16 + (l.masks and 0 or 16 * l.wgs) or 0)
  l.runs = l.masks and not c.parts and mask_places.runs(p, c) or false
  -- So many tiles, the last of a launch, come in the order of their blocks of keys: pairs/mask_line_words.cu.
  l.ordered = l.masks and not l.masks.brings and not c.parts and c.grid == 2 and c.ctas == 1 and 512 or false
  -- At d = 64 a launch takes some 4 us more so, for which no reason was found.
  l.in_chunks = p.d + p.dv > 128 and p.op == "forward" and not c.parts and c.grid == 2 and c.cluster == 1 and c.ahead == 0 and l.wgs > 1
    and not p.has_lengths and p.score and edges.ends(p) and p.score.of_runs or false
  if l.runs then l.slot = l.slot + 16 end -- where a tile's rows end and its keys begin
  l.bytes = l.slots + (c.grid > 0 and 2 * l.slot or 0)
  -- The first and the last key of each row.
  if p.score and (edges.ends(p) or l.masks and p.score.solved_in_part) then
    l.row_ends = l.bytes
    l.bytes = l.bytes + 8 * c.br
  end
  if p.score and edges.scans(p) then -- which block of keys each buffer of K holds
    l.codes = l.bytes
    l.bytes = l.bytes + 16 * ((c.stages_k + 3) // 4)
  end
  if p.has_lengths then -- what the scheduler searches tiles with
    l.order = l.bytes
    l.bytes = l.order + (l.parts and p.has_batch_invariant and 48 + 32 * 32 or 32 + 32 * 16)
  end
  return l
end

-- What a block may take, where `ctas` share an SM.
function places.room(a, c) return math.min(a.smem_block, a.smem_sm // c.ctas - a.smem_reserved) end

return places
