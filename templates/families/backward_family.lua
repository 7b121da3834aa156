-- What all families of the backward pass share: D = rowsum(dO O) - dLSE as a first step (delta.cu), and the values that their kernels take.

local round_up = include "families/round_up.lua"

local backward = { features = "lengths+deterministic+dropout+lse-strides" }

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

backward.delta_buffer = "delta fp32 b hq sq"
-- With l.pairs: beside each D the row's LSE in base 2, as a pair, +inf where it is -inf.
backward.pairs_buffer = "delta fp32 b hq sq 2"

function backward.delta_work(p)
  return { bytes = math.max(1, p.b * p.sq * p.hq * (2 * p.dv * p.o_bytes + 4)) }
end

-- With the buffers' names behind.
function backward.params(p, buffers)
  local names = "q k v o lse grad_o grad_lse grad_q grad_k grad_v " .. buffers .. " "
  for _, tensor in ipairs { "q", "k", "v", "o", "grad_o", "grad_q", "grad_k", "grad_v" } do
    names = names .. ("%s_sb %s_ss %s_sh "):format(tensor, tensor, tensor)
  end
  if p.has_lengths or p.has_lse_strides then names = names .. "lse_sb lse_ss lse_sh " end
  if p.has_lengths then names = names .. "cu_seqlens_q cu_seqlens_k seqlens_q seqlens_k " end
  if p.has_dropout then names = names .. "rng drop_below keep_scale " end
  names = names .. "scale scale_log2 b hq hkv group sq sk tiles accumulate "
  return names .. (p.has_lengths and "total_q total_k relative shift_lo shift_hi" or "diag_lo diag_hi")
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
