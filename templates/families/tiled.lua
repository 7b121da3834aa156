-- tiled: two-dimensional tiling without online softmax, kept for comparison: the products S = scale Q K^T and O = P V are tiled, each tile
-- of rows reads K or V once, and S and P go through memory. Exact fp32 arithmetic for every input type, 16 x 16 threads.

local values_of = include "pairs/values.lua"

return {
  doc = "two-dimensional tiles without online softmax, S and P through memory, fp32 arithmetic",
  default = false,

  tunables = {
    { "tile", { 64, 32, 16 }, "rows and columns of a tile of S" },
    { "row", { 8192, 2048 }, "scores of a row that the softmax holds in shared memory: those of longer rows it reads again" },
  },

  supports = function(p, a) return true end,

  constraints = {},

  layout = function(p, c, a)
    local l = { threads = 256, chunks_v = (p.dv + 63) // 64, depth = 16 }
    l.scores = 4 * (p.d + l.depth) * (c.tile + 4)
    l.softmax = 4 * (c.row + 4)
    l.output = 4 * l.depth * (c.tile + 4 + 64 * l.chunks_v)
    l.bytes = math.max(l.scores, l.softmax, l.output)
    l.regs = 16 + c.tile // 16 * 5 * l.chunks_v + 40
    return l
  end,

  steps = function(p, c, a, l)
    return {
      { entry = "fa_scores", smem = l.scores, grid = ("sq/%d hq b"):format(c.tile) },
      { entry = "fa_softmax", threads = 128, smem = l.softmax, grid = "sq hq b" },
      { entry = "fa_output", smem = l.output, grid = ("sq/%d hq b"):format(c.tile) },
    }
  end,

  workspace = "scores fp32 b hq sq sk",

  params = function(p, c, a, l)
    local values = values_of(p)
    return "q k v o lse scores " .. values.rows .. "scale hq group sq sk " .. values.seen
  end,

  work = function(p, c, a, l)
    local n, warps, dv = c.tile // 16, l.threads // 32, 64 * l.chunks_v
    local loads = (n + 3) // 4
    return {
      { rows = c.tile, cols = c.tile, algorithm = "tiled2d_scores", unit = "ffma", matrix_flops = 2 * p.d, exps = 0,
        issue = warps * (p.d * (n * n + 2 * loads) + 8 * n * n) + 8 * c.tile * p.d // 32, smem_bytes = warps * 384 * p.d, latency = 2000 },
      { rows = c.tile, algorithm = "tiled2d_softmax", regs = 32 },
      { rows = c.tile, cols = c.tile, algorithm = "tiled2d_output", unit = "ffma", matrix_flops = 2 * dv, exps = 0,
        issue = warps * c.tile * l.chunks_v * (4 * n + loads + 1) + 8 * c.tile * (c.tile + dv) // 32,
        smem_bytes = warps * 384 * c.tile * l.chunks_v, latency = 2000 },
    }
  end,
}
