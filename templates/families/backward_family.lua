-- What all families of the backward pass share: D = rowsum(dO O) - dLSE as a first step (delta.cu), and the values that their kernels take.

local round_up = include "families/round_up.lua"
local values_of = include "pairs/values.lua"

local backward = { features = "lengths+deterministic+dropout+lse-strides+score" }

-- Lanes of a warp that share a row of O, and elements that one instruction loads.
function backward.delta(l, p)
  l.delta_vec = math.max(1, math.min(16, p.align) // p.o_bytes)
  l.delta_pieces = (p.dv + l.delta_vec - 1) // l.delta_vec
  l.delta_lanes = 1
  while l.delta_lanes < 32 and l.delta_lanes < l.delta_pieces do l.delta_lanes = 2 * l.delta_lanes end
  l.delta_rows = 256 // l.delta_lanes
  return l
end

-- With l.delta_pad: rows of a block, and of what the rows of a head are padded to. Each such number of rows has
-- LSE in base 2, +inf where it is -inf, and then D.
function backward.delta_step(l)
  return { entry = "fa_delta", threads = 256, smem = 0, grid = ("sq/%d hq b"):format(l.delta_pad or l.delta_rows) }
end

-- Whether a family computes gradients of the problem's score program.
function backward.differentiates(p)
  if not p.score or p.score.differentiable then return true end
  return false, "the derivative of the score program's function score has more than 1024 operations"
end

backward.delta_buffer = "delta fp32 b hq sq"
-- With l.pairs: beside each D the row's LSE in base 2, as a pair, +inf where it is -inf.
backward.pairs_buffer = "delta fp32 b hq sq 2"

function backward.delta_work(p)
  return { bytes = math.max(1, p.b * p.sq * p.hq * (2 * p.dv * p.o_bytes + 4)) }
end

-- buffers: names of what the kernels share in the workspace.
function backward.params(p, buffers)
  local values = values_of(p)
  return "q k v o lse grad_o grad_lse grad_q grad_k grad_v " .. buffers .. " " .. values.rows .. values.scores .. "tiles accumulate "
    .. values.seen
end

-- dS of one query head is the least that is there at a time: tiles of rows x rows elements of 16 bits. spills: of a config, whether dS goes
-- through memory.
function backward.workspace(rows, spills)
  return { "workspace", function(p, c)
    if not spills(c) then return true end
    local bytes = round_up(p.sq, rows) * round_up(p.sk, rows) * 2
    if bytes <= 8 << 30 then return true end
    return false, "dS of one query head takes " .. bytes .. " bytes of workspace; accepted: up to " .. (8 << 30) .. " (8 GiB)"
  end, search = true }
end

return backward
