-- naive_bwd: the gradients of attention in passes through memory, the oracle of the tuner: D; P and dS are written for all pairs; dQ, dK
-- and dV are their products. Exact fp32 arithmetic for every input type.

local backward = include "families/backward_family.lua"

return backward.family({
  doc = "gradients of attention in passes, P and dS through memory, fp32 arithmetic",
  head_dim = 576,
  operation = "backward",
  features = backward.features,
  default = false,
  reference = true,

  tunables = {
    { "tile", { 64 }, "rows and columns of a tile of a product" },
  },

  supports = function(p, a) return backward.differentiates(p) end,

  constraints = {},

  layout = function(p, c, a)
    return backward.delta({ bytes = 2 * 16 * (c.tile + 4) * 4, threads = 256, regs = 96 }, p)
  end,

  steps = function(p, c, a, l)
    return {
      backward.delta_step(l),
      { entry = "fa_probabilities", threads = 256, smem = l.bytes, grid = ("sq/%d sk/%d hq b"):format(c.tile, c.tile) },
      { entry = "fa_grad_q", threads = 256, smem = l.bytes, grid = ("sq/%d hq b"):format(c.tile) },
      { entry = "fa_grad_kv", threads = 256, smem = l.bytes, grid = ("sk/%d hkv b"):format(c.tile) },
    }
  end,

  workspace = backward.delta_buffer .. ", probabilities fp32 b hq sq sk, grad_scores fp32 b hq sq sk",
  params = function(p, c, a, l) return backward.params(p, "delta probabilities grad_scores") end,

  work = function(p, c, a, l)
    local tile, pairs = c.tile, p.b * p.hq * p.sq * p.sk
    local function product(width, bytes)
      return { rows = tile, cols = tile, matrix_flops = 2 * width, unit = "ffma", exps = 0, issue = tile * tile // 32 * (width + 8),
        smem_bytes = tile * tile * width // 2, bytes = math.max(1, bytes) }
    end
    return { backward.delta_work(p), product(p.d + p.dv, 8 * pairs), product(p.d, 4 * pairs), product(p.d + p.dv, 8 * pairs) }
  end,
})
