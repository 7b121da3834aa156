-- flash1_fwd: FlashAttention-1 (Dao, Fu, Ermon, Rudra, Re 2022, algorithm 1), kept for comparison: blocks of K and V outside, blocks of Q
-- inside, so that O, l and m of every row block are read and written for each block of keys. Exact fp32 arithmetic for every input type.
-- One thread block per head and batch, 16 x 16 threads, as the paper's kernel.

local values_of = include "pairs/values.lua"

local function buffers(p)
  return "row_max fp32 b hq sq, row_sum fp32 b hq sq" .. (p.o == "fp32" and "" or ", partial fp32 b hq sq dv")
end

return {
  doc = "FlashAttention-1: K/V blocks outside, O, l and m through memory, fp32 arithmetic",
  default = false,
  tile = { "br", "bc" },

  tunables = {
    { "br", { 64, 32, 16 }, "B_r: rows of Q per block" },
    { "bc", { 64, 32, 16 }, "B_c: keys per block, which stay in shared memory" },
  },

  supports = function(p, a) return true end,

  constraints = {},

  layout = function(p, c, a)
    local l = { threads = 256 }
    l.chunks_v = (p.dv + 63) // 64
    l.q = 0
    l.k = p.d * (c.br + 4)
    l.v = l.k + p.d * (c.bc + 4)
    l.p = l.v + c.bc * l.chunks_v * 64
    l.bytes = 4 * (l.p + c.bc * (c.br + 4))
    l.regs = 128
    return l
  end,

  steps = function(p, c, a, l)
    return { { entry = "fa_fwd", threads = l.threads, smem = l.bytes, grid = "hq b" } }
  end,

  workspace = function(p, c, a, l) return buffers(p) end,

  params = function(p, c, a, l)
    local values = values_of(p)
    return "q k v o lse row_max row_sum " .. (p.o == "fp32" and "" or "partial ") .. values.rows .. "scale hq group sq sk " .. values.seen
  end,

  work = function(p, c, a, l)
    local ri, cj, warps = c.br // 16, c.bc // 16, l.threads // 32
    local s = p.d * (ri * cj + (ri + 3) // 4 + (cj + 3) // 4)
    local o = l.chunks_v * (c.bc * (4 * ri + (ri + 3) // 4 + 1) + 24 * ri)
    return {
      rows = c.br, cols = c.bc,
      algorithm = "flash1",
      unit = "ffma",
      matrix_flops = 2 * (p.d + 64 * l.chunks_v),
      exps = 1,
      issue = warps * (s + o + 12 * ri * cj + 40 * ri) + 8 * c.br * p.d // 32,
      smem_bytes = warps * 384 * (p.d + c.bc * l.chunks_v) + 8 * c.br * p.d * 4,
      latency = 3000,
    }
  end,
}
