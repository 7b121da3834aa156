-- int8_mma: flash_fwd_mma of Q and K that are integers of 8 bits, beside V and P of 16, for sm_80 and later. Sums of Q K^T are exact, and
-- become floats by one subtraction. Scales of a head or of a row of Q are folded into the exponents' factor; those of K's tokens come with
-- K.

local masked = include "families/masked_family.lua"
local round_up = include "families/round_up.lua"
local program_cost = include "pairs/program_cost.lua"
local whole = include "families/flash_fwd_mma.lua"
whole = whole.bare or whole

return masked {
  doc = "flash attention forward of Q and K of 8-bit integers on mma.sync, V in fp16 or bf16",
  rank = 0,
  eight = true,
  features = "lengths+pages+batch-invariant+dropout+lse-strides+no-workspace+score",
  tile = whole.tile,
  tunables = whole.tunables,
  constraints = whole.constraints,

  start = function(p, a)
    local list = {}
    local pack = p.hq > p.hkv and p.sq < 64 and 1 or 0
    for _, rows in ipairs({ 16, 32 }) do
      for _, warps in ipairs({ 1, 4 }) do
        for _, bc in ipairs(p.dv <= 128 and { 32, 64, 80 } or { 16, 32, 64 }) do
          for stages = 1, 2 do
            list[#list + 1] = {
              br = rows * warps, bc = bc, warps = warps, stages_k = stages, stages_v = stages,
              order = stages == 2 and "together" or "v_first",
              q_regs = 0, pack = pack, lag = 8, ctas = 1,
            }
          end
        end
      end
    end
    return list
  end,

  supports = function(p, a)
    if p.dtype ~= "s8" then return false, "it multiplies integers of 8 bits, not " .. p.dtype end
    return true
  end,

  layout = function(p, c, a)
    local l = whole.layout(p, c, a)
    l.integer, l.eight, l.wide = true, true, true
    l.scaled = p.q_scale > 0 or p.k_scale == 1
    l.row_scaled = p.q_scale == 2 or p.q_scale == 1 and c.pack == 1
    if p.k_scale == 2 then
      l.key_scales = round_up(l.bytes, 16)
      l.bytes = l.key_scales + c.stages_k * c.bc * 4
    end
    return l
  end,

  steps = whole.steps,
  workspace = whole.workspace,

  params = function(p, c, a, l)
    local scales = ""
    for _, x in ipairs { "q", "k", "v" } do
      local by = p[x .. "_scale"]
      if by > 0 then scales = scales .. (" %s_scale %s_scale_sb %s%s_scale_sh"):format(x, x, by == 2 and x .. "_scale_ss " or "", x) end
    end
    return whole.params(p, c, a, l) .. scales
  end,

  work = function(p, c, a, l, prompts)
    local w = whole.work(p, c, a, l, prompts)
    local elements = c.br * c.bc // 32
    w.matrix_flops = w.matrix_flops - round_up(p.d, 8) * 2 + round_up(p.d, 16) -- products of 8 bits take half as long
    w.issue = w.issue + elements * (p.k_scale == 2 and 2 or 1)
    return w
  end,
}
