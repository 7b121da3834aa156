-- flash_bwd_ffma: the gradients of attention in exact fp32 on the FMA units, deterministic by construction: blocks of one kernel own
-- keys, for dK and dV, blocks of another own queries, for dQ. Both compute S and dP again (7 products): nothing is added up in memory.
-- 256 threads as 16 x 16: thread (x, y) holds rows y, y + 16, ... and keys x, x + 16, ... of S and dP; of dQ, dK and dV every 16th float4.

local backward = include "families/backward_family.lua"
local program_cost = include "pairs/program_cost.lua"

return backward.family({
  doc = "gradients of attention in exact fp32 on the FMA units: keys and queries owned by blocks, no atomics",
  operation = "backward",
  features = backward.features,
  tile = { "br", "bc" },

  tunables = {
    { "br", { 16, 32, 64 }, "B_r: queries of a tile" },
    { "bc", { 16, 32, 64, 128 }, "B_c: keys of a tile" },
  },

  start = function(p, a)
    local list = {}
    for _, br in ipairs({ 16, 32, 64 }) do
      for _, bc in ipairs({ 32, 64 }) do list[#list + 1] = { br = br, bc = bc } end
    end
    return list
  end,

  supports = function(p, a)
    if p.dtype ~= "fp32" then return false, p.dtype .. " runs on the matrix units" end
    return backward.differentiates(p)
  end,

  constraints = {
    { "tile", function(p, c)
      if c.bc <= 4 * c.br then return true end
      return false, "B_c = " .. c.bc .. " > 4 B_r"
    end },
  },

  layout = function(p, c, a)
    local l = { threads = 256 }
    l.chunks, l.chunks_v = (p.d + 3) // 4, (p.dv + 3) // 4
    l.dj, l.vj = (l.chunks + 15) // 16, (l.chunks_v + 15) // 16
    l.k = 0
    l.v = l.k + c.bc * l.chunks * 16
    l.q = l.v + c.bc * l.chunks_v * 16
    l.grad_o = l.q + c.br * l.chunks * 16
    l.ds = l.grad_o + c.br * l.chunks_v * 16
    l.p = l.ds + c.br * c.bc * 4
    l.bytes = l.p + c.br * c.bc * 4
    local ri, cj = c.br // 16, c.bc // 16
    l.regs = math.max(2 * ri * cj + 4 * (ri + 2 * cj), 4 * (l.dj + l.vj + 2)) + 4 * math.max(cj * (l.dj + l.vj), ri * l.dj) + 40
      + program_cost(p).regs_back
    return backward.delta(l, p)
  end,

  steps = function(p, c, a, l)
    return {
      backward.delta_step(l),
      { entry = "fa_grad_kv", grid = ("sk/%d hkv b"):format(c.bc) },
      { entry = "fa_grad_q", smem = l.p, grid = ("sq/%d hq b"):format(c.br) },
    }
  end,

  workspace = backward.delta_buffer,
  params = function(p, c, a, l) return backward.params(p, "delta") end,

  work = function(p, c, a, l)
    local elements, program = c.br * c.bc // 32, program_cost(p)
    local ri, cj = c.br // 16, c.bc // 16
    local dots = 8 * (l.chunks + l.chunks_v) * (ri + cj)  -- 16-byte loads of all warps for S and dP
    local visible = p.b * p.hq * seen_share(p)
    local function table_of(products, loads, bytes)
      return {
        rows = c.br, cols = c.bc, matrix_flops = 2 * products, unit = "ffma", exps = 1 + program.exps_back,
        issue = math.floor(elements * (products + (p.has_dropout and 54 or 16) + program.issue_back)) + loads,
        smem_bytes = loads * 256, latency = 1500, bytes = math.max(1, bytes),
      }
    end
    local row, row_kv = 4 * (p.d + p.dv), 4 * (p.d + p.dv)
    return {
      backward.delta_work(p),
      table_of(4 * (l.chunks + l.chunks_v) + 64 * (l.dj + l.vj), dots + 8 * c.br * (2 + l.dj + l.vj),
        visible * p.sq * row * ((p.sk + c.bc - 1) // c.bc) + 2 * p.b * p.hkv * p.sk * row_kv),
      table_of(4 * (l.chunks + l.chunks_v) + 64 * l.dj, dots + 2 * c.bc * (ri + 4 * l.dj),
        visible * p.sk * row_kv * ((p.sq + c.br - 1) // c.br) + 2 * p.b * p.hq * p.sq * row),
    }
  end,
})
