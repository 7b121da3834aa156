-- work: which tiles a thread block does, and in which order, as text that each kernel prints.
--
--   local wk = include("work/work.lua").of(p, l)
--
-- gives the hooks, as pairs/pairs.lua does for pairs. A tile has a number. order.cu says which tile a number is, deal.cu which numbers a
-- block does, queue.cu how the warps of a block hear of them, parts.cu how parts of a tile become one.

local parts = {
  include "work/order.cu",
  include "work/deal.cu",
  include "work/queue.cu",
  include "work/parts.cu",
}

local work = {}
local last = {} -- all pieces of a kernel ask for the same

function work.of(p, l)
  if last.p ~= p or last.l ~= l then
    last = { p = p, l = l, wk = {} }
    for _, part in ipairs(parts) do part(last.wk, p, l) end
  end
  return last.wk
end

return work
