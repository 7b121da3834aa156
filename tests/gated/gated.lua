-- gated: O = gate * attention(Q, K, V), the operation of tests/test_operation_toy.c: attention of each row goes to the workspace in fp32, and a
-- second kernel multiplies it. One warp has one row.

return {
  doc = "attention multiplied by a gate, for tests",
  operation = "gated",

  tunables = {
    { "rows", { 2, 4, 8 }, "query rows, and warps, of a block" },
    { "threads", { 128, 256 }, "of a block that multiplies" },
  },

  supports = function(p, a) return true end,

  constraints = {
    { "one size", function(p, c, a)
      if c.rows == 8 and c.threads == 128 then return false, "the blocks of both kernels have 256 threads" end
      return true
    end },
  },

  layout = function(p, c, a) return { bytes = 0, threads = 256, regs = 40 } end,

  steps = function(p, c, a, l)
    return {
      { entry = "gated_attend", threads = 32 * c.rows, smem = 0, grid = ("sq/%d hq b"):format(c.rows) },
      { entry = "gated_multiply", threads = c.threads, smem = 0, grid = "sq hq b" },
    }
  end,

  workspace = "partial fp32 b sq hq dv",

  params = "q k v gate o lse partial q_sb q_ss q_sh k_sb k_ss k_sh v_sb v_ss v_sh gate_sb gate_ss gate_sh o_sb o_ss o_sh " ..
           "scale hq group sq sk diag_lo diag_hi",

  work = function(p, c, a, l)
    return {
      rows = c.rows, cols = 1,
      matrix_flops = 2 * (p.d + p.dv),
      unit = "ffma",
      exps = 1,
      issue = c.rows * (p.d + p.dv) // 16 + 20,
      smem_bytes = 0,
    }
  end,
}
