-- pairs: whatever is a function of (sequence, head, query, key), as text that each kernel prints where it has such a pair.
--
--   local pr = include("pairs/pairs.lua").of(p, l)
--
-- gives the hooks for a problem and a layout: what a hook returns goes into $(...), what it prints stands where it is called. A kernel that
-- calls no hook prints nothing. A part is a file that gives pr its hooks; a part may call those of the parts before it.

local parts = {
  include("pairs/edges.lua").of,
  include "pairs/hide.cu",
  include "pairs/drop.cu",
  include "pairs/score.lua",
  include "pairs/program.cu",
  include "pairs/program_tiles.cu",
  include "pairs/program_staged.cu",
  include "pairs/program_gradients.cu",
  include "pairs/program_sink.cu",
  include "pairs/ranges.cu",
  include "pairs/scan.cu",
  include "pairs/mask_stage.cu",
}

local pairs = {}
local last = {} -- all pieces of a kernel ask for the same

function pairs.of(p, l)
  if last.p ~= p or last.l ~= l then
    last = { p = p, l = l, pr = {} }
    for _, part in ipairs(parts) do part(last.pr, p, l) end
  end
  return last.pr
end

return pairs
