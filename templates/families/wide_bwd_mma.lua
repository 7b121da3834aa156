-- wide_bwd_mma: flash_bwd_mma of head_dims above 256, whose gradients find no room in registers: a tile walks its queries, or its keys,
-- once for every so many columns of dK and dV, or of dQ, and makes the same P and dS each time.

local whole = include "families/flash_bwd_mma.lua"

local WIDEST = 512

local family, constraints = {}, {}
for _, k in ipairs(sorted(whole)) do family[k] = whole[k] end

family.doc = "gradients of attention of wide heads on mma.sync (fp16, bf16): passes over columns, dS recomputed or through memory"
family.head_dim = WIDEST
family.operation = "backward" -- said here: who looks for gradients reads no family that does not say so

family.tunables = {}
for i, t in ipairs(whole.tunables) do family.tunables[i] = t end
family.tunables[#family.tunables + 1] = { "pass", { 16, 8, 32, 24, 40 }, "columns of a pass, in eights" }

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
  local function add(br, bc, warps, twins, pass, stages)
    for _, dq in ipairs({ { 0, 16 }, { 1, 32 }, { 1, 64 } }) do
      list[#list + 1] = {
        br = br, br_part = br, bc = bc, warps = warps, twins = twins, stages = stages or 1, dq = dq[1], q_br = warps * 16,
        q_bc = dq[2], pass = pass,
      }
    end
  end
  add(32, 64, 4, 0, 16)
  add(16, 64, 4, 0, 16)
  add(32, 32, 2, 0, 16)
  add(32, 32, 4, 1, 32)
  add(64, 32, 4, 1, 32)
  add(32, 64, 8, 1, 32)
  add(32, 32, 4, 1, 16)
  add(16, 16, 2, 1, 16)
  if p.d < 320 or p.dv < 320 then add(16, 32, 2, 0, 8) end
  -- All columns in one pass.
  if p.d <= 320 and p.dv <= 320 then
    add(32, 64, 8, 1, 40, 2)
    for stages = 1, 2 do add(32, 32, 4, 1, 40, stages) end
  elseif p.d <= 384 and p.dv <= 384 then
    add(32, 64, 8, 1, 24)
  end
  return list
end

family.supports = function(p, a)
  if p.d <= 256 and p.dv <= 256 then return false, "heads of at most 256 have faster families" end
  if p.d > WIDEST or p.dv > WIDEST then return false, "gradients of at most " .. WIDEST .. " columns" end
  return whole.supports(p, a)
end

return family
