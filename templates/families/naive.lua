-- naive: attention in three passes through memory, the baseline of the literature and the oracle of the tuner: S = scale Q K^T
-- is written, each row of S becomes P in place, O = P V. Exact fp32 arithmetic for every input type.

local edges = include "pairs/edges.lua"
local masked = include "families/masked_family.lua"
local values_of = include "pairs/values.lua"
local program_cost = include "pairs/program_cost.lua"

return masked {
  doc = "attention in three passes, S and P through memory, fp32 arithmetic",
  head_dim = 576,
  features = "dropout+score+v-in-k",
  default = false,
  reference = true,

  tunables = {
    { "tile", { 64 }, "rows and columns of a tile of S" },
  },

  supports = function(p, a) return true end,

  constraints = {},

  layout = function(p, c, a)
    return { bytes = 2 * 16 * (c.tile + 4) * 4, threads = 256, regs = 64 }
  end,

  steps = function(p, c, a, l)
    return {
      { entry = "fa_scores", threads = 256, smem = l.bytes, grid = ("sq/%d sk/%d hq b"):format(c.tile, c.tile) },
      { entry = "fa_rows", threads = 256, smem = 0, grid = "sq/8 hq b" },
      { entry = "fa_output", threads = 256, smem = l.bytes, grid = ("sq/%d hq b"):format(c.tile) },
    }
  end,

  workspace = "scores fp32 b hq sq sk",
  params = function(p, c, a, l)
    local values = values_of(p)
    return "q k v o lse scores " .. values.rows .. (p.score and p.score.slopes and "scale_log2 " or "")
      .. "scale hq group sq sk " .. (edges.tables(p) and "b " or "") .. values.program .. values.seen
  end,

  work = function(p, c, a, l)
    local tile, program = c.tile, program_cost(p)
    return {
      rows = tile, cols = tile,
      matrix_flops = 2 * (p.d + p.dv),
      unit = "ffma",
      exps = 1 + program.exps,
      issue = tile * tile // 32 * (p.d + p.dv + 16 + program.issue),
      smem_bytes = tile * tile * (p.d + p.dv) // 2,
    }
  end,
}
