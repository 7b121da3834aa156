-- flash_bwd_mma: the gradients of attention with mma.sync, ldmatrix and cp.async, for sm_80 and later. Blocks of one kernel own keys,
-- for dK and dV, blocks of another own queries, for dQ, so that nothing is added up in memory and every launch has the same bits. A warp
-- owns 16 or 32 keys, or queries, and holds S^T and dP^T, or S and dP, of its own: P and dS become operands without a way through shared
-- memory. The kernel of dQ computes S and dP again (dq = recompute, 7 products), or takes dS from memory, where the kernel of dK and dV
-- left it in 16 bits (dq = spill, 5 products): in tiles in the order in which mma.sync takes them, for as many heads at a time as the
-- workspace holds.

local backward = include "families/backward_family.lua"
local program_cost = include "pairs/program_cost.lua"

local round_up = include "families/round_up.lua"

-- Blocks of 16 keys of a warp of the kernel of dK and dV; of 16 queries of one of dQ.
local function key_blocks(c) return c.bc * (1 + c.twins) // (c.warps * 16) end
local function query_blocks(c) return c.q_br // (c.warps * 16) end

local SCORES = 512 -- bytes of a tile of dS: 16 queries, 16 keys

local function one_or_two(rows, warps, what)
  if rows == warps * 16 or rows == warps * 32 then return true end
  return false, ("%s: %d rows for %d warps, not 16 or 32 of each"):format(what, rows, warps)
end

-- The numbers of work(): instructions for 32 scores, clocks and shares. beside_wgmma: fitted to 905 timings of random shapes on an H100,
-- where flash_bwd_wgmma was raced beside. fast: all of them by 1.4, since an H200 took up to 1.37 times as long as by flash_bwd_wgmma where
-- this was priced higher. elsewhere: to earlier ones, by themselves.
local fitted = {
  elsewhere = { issue = 6, smem = 1.1, copy = 700, part = 300, tile = 5000, q_latency = 1500, q_tile = 4000, efficiency = 1 },
  beside_wgmma = { issue = 7.8, smem = 0.98, copy = 940, part = 46, tile = 3960, q_latency = 490, q_tile = 5440, efficiency = 0.81 },
  fast = { issue = 10.9, smem = 1.37, copy = 1316, part = 64, tile = 5544, q_latency = 686, q_tile = 7616, efficiency = 0.58 },
}

return backward.family({
  doc = "gradients of attention on mma.sync (fp16, bf16): keys and queries owned by blocks, no atomics, dS recomputed or through memory",
  operation = "backward",
  features = backward.features,
  rank = 0,
  tile = { "br", "bc" },

  tunables = {
    { "br", { 16, 32, 64, 128 }, "B_r: queries per iteration of dK and dV" },
    { "br_part", { 16, 32, 64, 128 }, "queries of an iteration that a warp of dK and dV has at a time" },
    { "bc", { 16, 32, 64, 128, 256 }, "B_c: keys of a block of dK and dV" },
    { "warps", { 2, 4, 8 }, "warps per block" },
    { "twins", { 0, 1 },
      "warps that have a block of keys in dK and dV: 0 = one, 1 = two: one computes S, P and dV, the other dP, dS and dK" },
    { "stages", { 1, 2 }, "buffers of what an iteration reads: Q and dO, or K and V" },
    { "dq", { { 0, "recompute" }, { 1, "spill" } },
      "how dQ comes by dS: computed again from Q, K, dO and V, or out of memory, left by dK and dV" },
    { "q_br", { 32, 64, 128, 256 }, "queries of a block of dQ" },
    { "q_bc", { 16, 32, 64, 128 }, "keys per iteration of dQ" },
  },

  -- Two warps of a block of keys have all queries of an iteration at a time. Twice the warps with twice the keys and queries of a block
  -- leave each warp its rows.
  moves = { { br = 1, br_part = 1 }, { br_part = 1, twins = 1 }, { bc = 1, warps = 1, q_br = 1 } },

  -- Tiles of dK and dV from the most rows to the fewest, with keys of dQ as memory allows.
  start = function(p, a)
    local list = {}
    for _, t in ipairs({ { 128, 64, 128, 8, 0, 2, 256 }, { 64, 64, 64, 4, 1, 2, 64 }, { 32, 32, 64, 4, 1, 2, 128 },
      { 64, 32, 64, 4, 0, 1, 64 }, { 64, 32, 128, 8, 0, 1, 128 } }) do
      for _, q_bc in ipairs({ 32, 64, 128 }) do
        for dq = 0, 1 do
          list[#list + 1] = {
            br = t[1], br_part = t[2], bc = t[3], warps = t[4], twins = t[5], stages = t[6], dq = dq, q_br = t[7], q_bc = q_bc,
          }
        end
      end
    end
    return list
  end,

  supports = function(p, a)
    if p.bytes ~= 2 then return false, p.dtype .. " has no 16-bit operands" end
    if p.o ~= p.dtype then return false, "O in " .. p.o end
    return backward.differentiates(p)
  end,

  constraints = {
    { "br_part", function(p, c)
      if c.br_part <= c.br then return true end
      return false, c.br_part .. " at a time of " .. c.br .. " queries"
    end, upto = "br_part" },
    { "warps", function(p, c)
      if c.bc // 16 >= c.warps // 2 then return one_or_two(c.bc * (1 + c.twins), c.warps, "dK and dV") end
      return false, "B_c = " .. c.bc .. " leaves warps without keys"
    end, upto = "twins" },
    -- P goes from a warp to the other one of its keys once in an iteration.
    { "twin_part", function(p, c)
      if c.twins == 0 or c.br_part == c.br then return true end
      return false, "two warps of a block of keys have all " .. c.br .. " queries at a time"
    end, upto = "twins" },
    { "q_warps", function(p, c) return one_or_two(c.q_br, c.warps, "dQ") end, upto = "q_br" },
    backward.workspace(16, function(c) return c.dq == c.named.dq.spill end),
  },

  layout = function(p, c, a)
    local l = { threads = c.warps * 32, pairs = true, spill = c.dq == 1 }
    l.mma = { k = 16, type = p.dtype == "fp16" and "f16" or "bf16" }
    -- Of passes whole boxes of eight chunks, whose places are alike.
    local eights = c.pass and 64 or 8
    l.chunks, l.chunks_v = round_up(p.d, eights) // 8, round_up(p.dv, eights) // 8
    if c.pass then l.pass, l.passes = c.pass, (math.max(l.chunks, l.chunks_v) + c.pass - 1) // c.pass end
    l.kb, l.qb = key_blocks(c), query_blocks(c)
    -- dK and dV: K, V, stages of Q, dO and their rows' LSE and D, P from a warp to the other one of its keys.
    local both = (l.chunks + l.chunks_v) * 16
    l.v = c.bc * l.chunks * 16
    l.q = l.v + c.bc * l.chunks_v * 16
    l.stage = c.br * both + c.br * 8
    l.p = l.q + c.stages * l.stage
    l.bytes_kv = l.p + (c.twins == 1 and c.bc * c.br * 4 or 0)
    if l.spill then
      -- dQ: two stages of K, then dQ.
      l.q_stage = c.q_bc * l.chunks * 16
      l.bytes_q = math.max(2 * l.q_stage, c.q_br * l.chunks * 16)
    else
      -- dQ: Q, dO, stages of K and V.
      l.q_grad_o = c.q_br * l.chunks * 16
      l.q_k = l.q_grad_o + c.q_br * l.chunks_v * 16
      l.q_stage = c.q_bc * both
      l.bytes_q = l.q_k + c.stages * l.q_stage
    end
    l.bytes = math.max(l.bytes_kv, l.bytes_q)
    -- Registers: gradients, S and dP, fragments in flight, addresses.
    local sums = c.twins == 1 and math.max(l.chunks, l.chunks_v) or l.chunks + l.chunks_v
    if c.pass then sums = c.pass * (2 - c.twins) end
    l.regs_kv = l.kb * (4 * sums + c.br_part // 8 * (c.twins == 1 and 6 or 8) + 4) + (c.twins == 1 and 52 or c.br_part >= 64 and 84 or 60)
    l.regs_q = l.qb * (4 * (c.pass or l.chunks) + (l.spill and c.q_bc // 16 * 4 or c.q_bc // 8 * 8 + 8)) + 60
    if p.has_dropout then l.regs_kv = l.regs_kv + l.kb * ((c.br_part + 63) // 64) + 8 end
    if p.score and p.score.has_score then
      local bends = p.score.bends and 4 or 0
      l.regs_kv = l.regs_kv + p.score.regs_back + bends * l.kb * (c.br_part // 8)
      l.regs_q = l.regs_q + (l.spill and 0 or p.score.regs_back + bends * l.qb * (c.q_bc // 8))
    end
    l.regs = math.max(l.regs_kv, l.regs_q)
    return backward.delta(l, p)
  end,

  steps = function(p, c, a, l)
    return {
      backward.delta_step(l),
      { entry = "fa_grad_kv", smem = l.bytes_kv, grid = ("sk/%d %s"):format(c.bc, l.spill and "units" or "hkv b") },
      { entry = "fa_grad_q", smem = l.bytes_q, grid = ("sq/%d %s"):format(c.q_br, l.spill and "members units" or "hq b") },
    }
  end,

  workspace = function(p, c, a, l)
    if not l.spill then return backward.pairs_buffer end
    return ("%s, grad_s %s units members sq/16 sk/16 %d, sums_kv fp32 sliced units sk/%d %d"):format(backward.pairs_buffer, p.dtype,
      SCORES // 2, c.bc, c.bc * 8 * (l.pass and 2 * l.pass * l.passes or l.chunks + l.chunks_v))
  end,
  params = function(p, c, a, l)
    return backward.params(p, l.spill and "delta grad_s sums_kv" or "delta") .. (l.spill and "unit member members" or "")
  end,

  work = function(p, c, a, l)
    local chunks, chunks_v, passes = l.chunks, l.chunks_v, l.passes or 1
    local fit = backward.raced_on_fast(p, a) and fitted.fast or a.has_wgmma and fitted.beside_wgmma or fitted.elsewhere
    local visible = p.b * p.hq * seen_share(p)
    local row, program = 2 * (p.d + p.dv), program_cost(p)
    -- widths: 8-column blocks of a 16-row block's products with one row of operands.
    local function table_of(rows, cols, own, owners, n, parts, widths, copies, bytes)
      local pairs = rows * cols // 256
      -- Operands of a warp's own rows are read once in a part for S and dP; those of the other side by every owner of rows, in every
      -- product.
      local fragments = parts * own * (chunks + chunks_v) * 16 + owners * n * widths * 16
      return {
        rows = rows, cols = cols, matrix_flops = 16 * widths, unit = "mma16", exps = passes * (1 + program.exps_back),
        efficiency = fit.efficiency,
        issue = pairs * widths + math.floor(passes * rows * cols // 32 * ((p.has_dropout and 16 or fit.issue) + program.issue_back))
          + fragments // 512 + copies // 512 + c.warps * 60,
        smem_bytes = (fragments + copies) * fit.smem, latency = fit.copy // c.stages + fit.part * parts, tile_latency = fit.tile,
        bytes = math.max(1, bytes),
      }
    end
    local owners = c.warps // (1 + c.twins)
    local kv = table_of(c.br, c.bc, c.bc, owners, c.br, c.br // c.br_part, (passes + 1) * (chunks + chunks_v), passes * l.stage,
      visible * p.sq * row * ((p.sk + c.bc - 1) // c.bc) + 2 * p.b * p.hkv * p.sk * row)
    if c.twins == 1 then
      kv.smem_bytes = kv.smem_bytes + c.br * c.bc * 8
      kv.issue = kv.issue + c.br * c.bc // 64
    end
    kv.regs = l.regs_kv
    if l.spill then
      -- Four matrices turned, a store and its address for every tile of dS.
      local tiles, bytes = visible * (p.sq // 16) * (p.sk // 16), SCORES
      kv.issue = kv.issue + c.br * c.bc // 256 * 8
      kv.bytes = kv.bytes + tiles * bytes
      -- Warps wait for dS out of memory in each iteration: with 64 keys d = 64 takes 1.06 times as long as with 128, all steps together.
      local q = {
        rows = c.q_br, cols = c.q_bc, matrix_flops = 16 * chunks, unit = "mma16", exps = 0,
        issue = c.q_br * c.q_bc // 256 * (chunks + 6) + (c.warps * c.q_bc * chunks * 16 + passes * l.q_stage) // 512 + c.warps * 40,
        smem_bytes = (c.warps * c.q_bc * chunks * 16 + passes * l.q_stage) * 1.1, latency = fit.q_latency, tile_latency = fit.q_tile,
        bytes = math.max(1, tiles * bytes + visible * p.sk * 2 * p.d * ((p.sq + c.q_br - 1) // c.q_br) + p.b * p.hq * p.sq * 2 * p.d),
        regs = l.regs_q,
      }
      return { backward.delta_work(p, nil, a), kv, q }
    end
    local q = table_of(c.q_br, c.q_bc, c.q_br, c.warps, c.q_bc, 1, passes * (chunks + chunks_v) + chunks, passes * l.q_stage,
      visible * p.sk * row * ((p.sq + c.q_br - 1) // c.q_br) + 2 * p.b * p.hq * p.sq * row)
    q.regs = l.regs_q
    return { backward.delta_work(p, nil, a), kv, q }
  end,
})
