-- decode_mma: few query rows against many keys, split over all SMs, with mma.sync and cp.async, for sm_80 and later.
-- The query heads of a group and the queries of a sequence share the rows of a tile. Blocks share the keys of all sequences evenly;
-- inside a block groups of warps walk keys of their own with buffers of their own, and meet only where a tile ends.

local function round_up(x, to) return (x + to - 1) // to * to end

-- Registers that a thread may have when an SM is to hold this many blocks.
local function register_limit(a, warps, ctas) return math.min(a.regs_thread, a.regs_sm // (warps * 32 * ctas) // 8 * 8) end

return {
  doc = "split-KV attention of few query rows on mma.sync (fp16, bf16, TF32): dense, packed, paged",
  rank = 0,
  features = "lengths+pages+lse-strides",
  tile = { "br", "bk" },

  tunables = {
    { "br", { 16, 32, 64 }, "B_r: query rows (queries x heads of a group) per tile" },
    { "bk", { 16, 32, 64 }, "keys that a group of warps takes at a time" },
    { "row_warps", { 1, 2, 4 }, "warps of a group, each with B_r / row_warps rows" },
    { "key_warps", { 1, 2, 4, 8 }, "groups of a block, each with keys of its own" },
    { "stages", { 2, 3, 4, 5, 6, 8 }, "buffers of K and V of a group", step = "any" },
    { "ctas", { 1, 2, 3, 4 }, "blocks per SM" },
    { "lanes", { 1, 2, 4, 8 }, "neighbouring key/value heads that blocks walk side by side" },
    { "merge", { { 0, "last" }, { 1, "step" } }, "what adds up the parts of a tile: the block that comes last, or a second kernel" },
    { "waves", { 1, 2, 4, 8 }, "shares of the keys for each block that an SM holds: what the chip deals out by itself" },
    { "chunk", { 1, 2, 4, 8 }, "least turns (bk * key_warps keys) that a block takes" },
  },

  supports = function(p, a)
    if p.dtype == "fp32" then return false, "fp32 needs FMA units" end
    return true
  end,

  constraints = {
    { "rows", function(p, c)
      local rows = c.br // c.row_warps
      if rows == 16 or rows == 32 then return true end
      return false, "B_r / row_warps = " .. rows .. ", not 16 or 32"
    end, upto = "row_warps" },
    { "page", function(p, c)
      if p.page == 0 or c.bk <= 32 * p.page then return true end
      return false, "bk = " .. c.bk .. " keys lie in more pages than a warp has lanes"
    end, upto = "row_warps" },
    { "warps", function(p, c)
      local warps = c.row_warps * c.key_warps
      if warps <= 8 and warps * c.ctas <= 16 then return true end
      return false, warps .. " warps in each of " .. c.ctas .. " blocks"
    end, about = "registers" },
    { "slices", function(p, c)
      if c.ctas * c.waves <= (c.merge == c.named.merge.step and 16 or 32) then return true end
      return false, c.ctas * c.waves .. " shares on an SM"
    end },
    { "flight", function(p, c)
      local row = (round_up(p.d, 8) + round_up(p.dv, 8)) * p.bytes
      local bytes = row * c.bk * c.key_warps * (c.stages - 1) * c.ctas
      if bytes >= 24 << 10 then return true end
      return false, "only " .. bytes .. " bytes of an SM under way"
    end, search = true },
  },

  -- Shared memory, in bytes from its start: the buffers of the groups, (m, l) of their rows, and words that the block shares.
  layout = function(p, c, a)
    local l = { warps = c.row_warps * c.key_warps, ctas = c.ctas, pack = 1, pdl = a.cc >= 90 }
    l.threads = l.warps * 32
    l.mma = { k = p.bytes == 2 and 16 or 8, type = ({ fp16 = "f16", bf16 = "bf16", tf32 = "tf32" })[p.dtype] }
    l.chunks = round_up(p.d, 8) * p.bytes // 16
    l.chunks_v = round_up(p.dv, 8) * p.bytes // 16
    l.vb = round_up(p.dv, 8) // 8
    l.copiers, l.copier = "GROUP_THREADS", "(threadIdx.x % GROUP_THREADS)"
    local k, v = c.bk * l.chunks * 16, c.bk * l.chunks_v * 16
    local exchange = c.br * l.vb * 8 * 4
    l.stage = k + v
    l.group = c.stages * l.stage
    -- Where a tile ends, a group leaves its O in the buffer that it has just read, if that is large enough.
    l.exchange, l.exchange_stride, l.overlay = 0, l.group, exchange <= l.stage
    l.bytes = c.key_warps * l.group
    if not l.overlay then
      l.exchange, l.exchange_stride = l.bytes, exchange
      l.bytes = l.bytes + c.key_warps * exchange
    end
    l.states = l.bytes
    l.words = l.states + c.key_warps * c.br * 8
    l.bytes = l.words + 16 + (p.has_lengths and (l.warps + 3) * 8 or 0)
    -- No more blocks find room on an SM than the shares are made for: they would leave others without any.
    l.bytes = math.max(l.bytes, a.smem_sm // (c.ctas + 1) - a.smem_reserved + 16)
    l.merge_threads = 128
    l.slices = math.min(math.max(1, c.br * l.vb * 2 // l.merge_threads), 32 // (c.ctas * c.waves))
    -- Registers: Q, accumulators of O and S, row states, addresses of two walks.
    local mb = c.br // c.row_warps // 16
    l.regs = mb * (l.chunks // 2) * 4 + mb * l.vb * 4 + mb * (c.bk // 8) * 4 + mb * 8 + 44
    return l
  end,

  steps = function(p, c, a, l)
    local grid = ("rows/%d hkv b keys/%d"):format(c.br, c.bk * c.key_warps)
    local first = { entry = "fa_decode", threads = l.threads, smem = l.bytes, per_sm = c.ctas * c.waves, pdl = l.pdl, grid = grid }
    if c.merge == c.named.merge.last then return { first } end
    -- As many blocks for each slice of rows as the first step has.
    return { first, {
      entry = "fa_decode_merge", threads = l.merge_threads, smem = 0, per_sm = c.ctas * c.waves * l.slices, pdl = l.pdl,
      grid = ("%s %d"):format(grid, l.slices),
    } }
  end,

  -- What blocks leave of tiles that they share: at most one that began before them and one that goes on behind them.
  workspace = function(p, c, a, l)
    local rows = 2 * c.ctas * c.waves * c.br
    local parts = ("part_o fp32 sms %d, part_state fp32 sms %d"):format(rows * l.vb * 8, rows * 2)
    if c.merge == c.named.merge.last then return "counters, " .. parts end
    return ("%s, tiles_open int32 sms %d"):format(parts, c.ctas * c.waves * 4)
  end,

  params = function(p, c)
    local names = "q k v o lse " .. (c.merge == c.named.merge.last and "workspace" or "tiles_open") .. " part_o part_state q_sb q_ss q_sh k_sb k_ss k_sh v_sb v_ss v_sh o_sb o_ss o_sh "
    if p.has_lengths or p.has_lse_strides then names = names .. "lse_sb lse_ss lse_sh " end
    if p.has_lengths then names = names .. "cu_seqlens_q cu_seqlens_k seqlens_q seqlens_k " end
    if p.has_pages then names = names .. "page_table " end
    names = names .. "scale scale_log2 b hq hkv group sq sk "
    if p.has_lengths then names = names .. "total_q total_k relative shift_lo shift_hi " else names = names .. "diag_lo diag_hi " end
    if p.has_pages then names = names .. "page_size pages page_table_stride " end
    return names
  end,
}
