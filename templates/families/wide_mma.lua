-- wide_mma: flash_fwd_mma of head_dims above 256, whose O finds no room in registers: a tile walks its keys once for every so many columns
-- of V, and makes the same P each time.

local masked = include "families/masked_family.lua"
local round_up = include "families/round_up.lua"
local split = include "families/split_family.lua"
local whole = include "families/flash_fwd_mma.lua"
whole = whole.bare or whole

-- Passes over the keys, and the columns of each: as even as eights allow.
local function passes_of(p, cols)
  local eights = round_up(p.dv, 8) // 8
  local n = (p.dv + cols - 1) // cols
  return n, (eights + n - 1) // n * 8
end

-- What a function of whole tiles returns for one pass: of a problem with its columns.
local function of_pass(p, width, f, ...)
  local dv = p.dv
  p.dv = width
  local result = f(p, ...)
  p.dv = dv
  return result
end

local tunables, constraints = {}, {}
for i, t in ipairs(whole.tunables) do tunables[i] = t end
tunables[#tunables + 1] = { "pass_cols", { 256, 192, 128, 64 }, "columns of O that a pass over the keys sums up, at most" }

-- There is no other family for single tokens.
for _, t in ipairs(whole.constraints) do
  if t[1] ~= "tokens" then constraints[#constraints + 1] = t end
end
constraints[#constraints + 1] = { "passes", function(p, c)
  local n = passes_of(p, c.pass_cols)
  for _, fewer in ipairs({ 64, 128, 192 }) do
    if fewer < c.pass_cols and passes_of(p, fewer) == n then return false, n .. " passes, as with pass_cols=" .. fewer end
  end
  if c.br // c.warps == 16 or c.pass_cols <= 128 then return true end
  return false, "32 rows of a warp and " .. c.pass_cols .. " columns take too many registers"
end, about = "registers" }

return masked {
  doc = "flash attention forward of wide heads on mma.sync (fp16, bf16, TF32): O in passes over the keys",
  rank = whole.rank,
  features = "lengths+pages+batch-invariant+dropout+lse-strides+no-workspace+score+v-in-k",
  head_dim = 576,
  tile = whole.tile,
  tunables = tunables,
  constraints = constraints,

  start = function(p, a)
    local list = {}
    local pack = p.hq > p.hkv and p.sq < 64 and 1 or 0
    for _, warps in ipairs({ 1, 4, 8 }) do
      for _, bc in ipairs({ 16, 32 }) do
        for _, cols in ipairs({ 64, 128, 192, 256 }) do
          list[#list + 1] = { br = 16 * warps, bc = bc, warps = warps, stages_k = 1, stages_v = 1, order = "v_first", q_regs = 0,
            pack = pack, lag = 8, ctas = 1, pass_cols = cols }
        end
      end
    end
    return list
  end,

  supports = function(p, a)
    if p.d <= 256 and p.dv <= 256 then return false, "heads of at most 256 need no passes: flash_fwd_mma" end
    return whole.supports(p, a)
  end,

  layout = function(p, c, a)
    local n, width = passes_of(p, c.pass_cols)
    local l = of_pass(p, width, whole.layout, c, a)
    l.passes, l.width = n, n > 1 and width or p.dv
    l.part_tiles = split.rows_sm // (c.br * c.ctas * n)
    l.parts = p.has_lengths and l.part_tiles > 1 and not p.has_batch_invariant and not p.has_no_workspace
    l.counts = l.parts
    return l
  end,

  workspace = function(p, c, a, l) return l.parts and split.workspace(p, l.vb * 8) or "" end,

  steps = whole.steps,
  params = whole.params,

  work = function(p, c, a, l, prompts)
    local n, width = passes_of(p, c.pass_cols)
    local w = of_pass(p, width, whole.work, c, a, l, prompts)
    for _, k in ipairs({ "matrix_flops", "exps", "issue", "smem_bytes", "latency", "tile_latency" }) do w[k] = w[k] * n end
    return w
  end,
}
