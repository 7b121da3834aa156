-- wide_bwd_mma: flash_bwd_mma of head_dims above 256, whose gradients find no room in registers: a tile walks its queries, or its keys, once
-- for every so many columns of dK and dV, or of dQ, and makes the same P and dS each time.

local whole = include "families/flash_bwd_mma.lua"

local WIDEST = 512

local family, constraints = {}, {}
for _, k in ipairs(sorted(whole)) do family[k] = whole[k] end

family.doc = "gradients of attention of wide heads on mma.sync (fp16, bf16): passes over columns, no atomics, dS recomputed or through memory"
family.head_dim = WIDEST
family.operation = "backward" -- said here: who looks for gradients reads no family that does not say so

family.tunables = {}
for i, t in ipairs(whole.tunables) do family.tunables[i] = t end
family.tunables[#family.tunables + 1] = { "pass", { 16, 8, 32 }, "columns of a pass, in eights" }

for _, t in ipairs(whole.constraints) do constraints[#constraints + 1] = t end
constraints[#constraints + 1] = { "pass", function(p, c)
  if c.pass <= math.min((p.d + 63) // 64, (p.dv + 63) // 64) * 8 then return true end
  return false, "a row of " .. math.min(p.d, p.dv) .. " has fewer columns than a pass of " .. c.pass * 8
end, upto = "pass" }
-- What a pass leaves goes through the stages.
constraints[#constraints + 1] = { "staging", function(p, c, a)
  local l = family.layout(p, c, a)
  if c.stages * l.stage < 2 * c.bc * c.pass * 16 then return false, "dK and dV of a pass find no room where Q and dO were" end
  if not l.spill and c.stages * l.q_stage < c.q_br * c.pass * 16 then return false, "dQ of a pass finds no room where K and V were" end
  return true
end }
family.constraints = constraints

family.start = function(p, a)
  local list = {}
  for _, t in ipairs({ { 32, 32, 64, 4, 0, 16 }, { 16, 16, 64, 4, 0, 16 }, { 32, 32, 32, 2, 0, 16 }, { 16, 16, 32, 2, 0, 16 }, { 32, 32, 32, 4, 1, 32 },
    { 64, 64, 32, 4, 1, 32 }, { 32, 32, 32, 4, 1, 16 }, { 16, 16, 16, 2, 1, 16 }, { 16, 16, 32, 2, 0, 8 } }) do
    for _, dq in ipairs({ { 0, 16 }, { 0, 32 }, { 1, 32 }, { 1, 64 } }) do
      list[#list + 1] = {
        br = t[1], br_part = t[2], bc = t[3], warps = t[4], twins = t[5], stages = 1, dq = dq[1], q_br = t[4] * 16, q_bc = dq[2], pass = t[6],
      }
    end
  end
  return list
end

family.supports = function(p, a)
  if p.d <= 256 and p.dv <= 256 then return false, "heads of at most 256 have faster families" end
  if p.d > WIDEST or p.dv > WIDEST then return false, "gradients of at most " .. WIDEST .. " columns" end
  return whole.supports(p, a)
end

return family
