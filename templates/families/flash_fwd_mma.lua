-- flash_fwd_mma: flash attention forward with mma.sync, ldmatrix and cp.async, for sm_80 and later.
-- Each warp owns 16 or 32 rows of a tile of B_r rows and walks the keys in blocks of B_c (FlashAttention-2, Dao 2023).

local masked = include "families/masked_family.lua"
local round_up = include "families/round_up.lua"

local function gcd(x, y) return y == 0 and x or gcd(y, x % y) end

local split = include "families/split_family.lua"
local values_of = include "pairs/values.lua"
local program_cost = include "pairs/program_cost.lua"
local edges = include "pairs/edges.lua"

-- Registers that a thread may have when an SM is to hold this many blocks.
local function register_limit(a, warps, ctas) return math.min(a.regs_thread, a.regs_sm // (warps * 32 * ctas) // 8 * 8) end

-- How fast memory is read beside wgmma: a row that is no whole lines of 128 bytes shares one with its neighbour, which comes in two pieces.
-- Of rows of 176 to 480 bytes in races on an H100; shorter ones are taken as those of 176. Faster memory waits for pieces longer: on an
-- H200 25 shapes took 1.14 to 1.19 times what that gives.
local function hbm_speed(p, a)
  if p.d * p.bytes % 128 == 0 and p.dv * p.bytes % 128 == 0 then return 1 end
  return (1 - 0.28 * 256 / math.max((p.d + p.dv) * p.bytes, 2 * 176)) * (3000 / a.hbm_gbs) ^ 0.35
end

-- Rows that begin between two sectors of 32 bytes take one sector more, and their tiles have an odd number of 16-byte chunks: beside wgmma
-- these kernels then took 1.1 to 1.5 times their price, the shorter the more: waiting for a block of keys, and less of either rate.
local SPLIT_L2, SPLIT_RATE, SPLIT_WAIT = 0.8, 0.95, 500
-- Issue slots of a copy of 512 bytes of rows that are no whole lines, by a block of one warp, which has all of them to itself: where such
-- blocks are few to an SM they took up to twice their price, the more bytes a block of keys has.
local LONE_COPY = 8
-- And clocks that it waits in a block of keys: over 500 to 5,600 keys it took 1.1 to 1.6 times its price (nine timings of six shapes).
local LONE_WAIT = 800
-- Two tiles of packed rows to a head, whose keys are no whole lines: 1.24 to 1.55 times the price, six races of four shapes on both chips.
local BOTH_TILES = 0.8
-- Tiles after those that two blocks of each SM have, which are alone: 1.02 to 1.1 of the price, where fewer take 0.85 to 0.95. Six shapes.
local AFTER_TWO = 0.93
local function in_sectors(p) return p.d * p.bytes % 32 == 0 and p.dv * p.bytes % 32 == 0 end

-- Q and K are integers of 8 bits, V and P have 16: int8_mma.
local function integer(p) return p.dtype == "s8" end
local function value_bytes(p) return integer(p) and 2 or p.bytes end

return masked {
  doc = "flash attention forward on mma.sync (fp16, bf16, TF32)",
  rank = 0,
  features = "lengths+pages+batch-invariant+dropout+lse-strides+no-workspace+score+v-in-k",
  tile = { "br", "bc" },

  tunables = {
    { "br", { 16, 32, 64, 128, 256 }, "B_r: rows of Q per block", step = 2 },
    { "bc", { 16, 32, 48, 64, 80, 96, 112, 128 }, "B_c: keys per iteration", step = 2 },
    { "warps", { 1, 2, 4, 8 }, "warps per block, each with B_r / warps rows" },
    { "stages_k", { 1, 2 }, "buffers of K in shared memory" },
    { "stages_v", { 1, 2 }, "buffers of V in shared memory" },
    { "order", { { 0, "v_first" }, { 1, "v_last" }, { 2, "together" } },
      "when copies are awaited and issued: v_first = V before the softmax, v_last = after it, together = K and V at once, one barrier" },
    { "q_regs", { 0, 1 }, "Q fragments: 0 = read from shared memory each time, 1 = held in registers" },
    { "pack", { 0, 1 }, "GQA packing: 1 = the query heads of a group share the rows of a tile" },
    { "lag", { 0, 8 }, "lazy rescaling: O is rescaled where a row's maximum has grown by more than this, in log2 units" },
    { "ctas", { 1, 2, 3 }, "blocks per SM that registers are limited for" },
  },

  -- Four warps of 16 or 32 rows, or one; of a group whose rows do not fill a tile the heads share one. Beside wgmma one warp of 32 rows
  -- was the fastest of no shape that was raced, and 16 keys of one, by 2 %.
  start = function(p, a)
    local list = {}
    local pack = p.hq > p.hkv and p.sq < 64 and 1 or 0
    for _, rows in ipairs({ 16, 32 }) do
      for _, warps in ipairs(rows == 32 and a.has_wgmma and p.bytes == 2 and { 4 } or { 1, 4 }) do
        for _, bc in ipairs(p.d <= 128 and { 32, 64, 80 } or a.has_wgmma and p.bytes == 2 and { 32, 64 } or { 16, 32, 64 }) do
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
    if p.dtype == "fp32" then return false, "fp32 needs FMA units: flash_fwd_ffma" end
    return true
  end,

  constraints = {
    -- The one config of the class serves single tokens too: each would be computed in a whole tile.
    { "tokens", function(p, c)
      if not p.has_lengths or not p.has_batch_invariant then return true end
      return false, "single tokens would take whole tiles"
    end, upto = "br", search = true },
    { "page", function(p, c)
      if p.page == 0 or c.bc // gcd(c.bc, p.page) <= 32 then return true end
      return false, "bc = " .. c.bc .. " keys lie in more runs of " .. gcd(c.bc, p.page) .. " than a warp has lanes"
    end, upto = "bc" },
    { "rows", function(p, c)
      local rows = c.br // c.warps
      if rows == 16 or rows == 32 then return true end
      return false, "B_r / warps = " .. rows .. ", not 16 or 32"
    end, upto = "warps" },
    { "order", function(p, c)
      if c.order ~= c.named.order.together or (c.stages_k == 2 and c.stages_v == 2) then return true end
      return false, "order together needs two stages of K and of V"
    end, upto = "order" },
    -- A limit that leaves a thread as many registers as a smaller one compiles to the same code.
    { "ctas", function(p, c, a)
      local limit = register_limit(a, c.warps, c.ctas)
      if c.ctas * c.warps > 16 then
        return false, c.ctas .. " blocks of " .. c.warps .. " warps: " .. limit .. " registers per thread are too few"
      end
      if c.ctas == 1 or limit < register_limit(a, c.warps, c.ctas - 1) then return true end
      return false, "as with ctas=" .. c.ctas - 1 .. ": " .. limit .. " registers per thread"
    end, about = "registers" },
  },

  -- Shared memory, in bytes from its start. With Q in registers its tile lies over the last buffer of V, which is first filled
  -- when everyone has read Q.
  layout = function(p, c, a)
    local l = { threads = c.warps * 32, ctas = c.ctas }
    -- The product's depth and type of operands.
    l.mma = { k = value_bytes(p) == 2 and 16 or 8,
      type = ({ fp16 = "f16", bf16 = "bf16", tf32 = "tf32" })[integer(p) and p.wide_values or p.dtype] }
    l.chunks = round_up(p.d, integer(p) and 16 or 8) * p.bytes // 16
    l.chunks_v = round_up(p.dv, 8) * value_bytes(p) // 16
    l.vb = round_up(p.dv, 8) // 8
    if p.page > 0 then l.run = gcd(c.bc, p.page) end
    if p.has_lengths then
      l.part_tiles = split.rows_sm // (c.br * c.ctas)
      l.parts = l.part_tiles > 1 and not p.has_batch_invariant -- how many there are depends on the batch
      l.counts = l.parts
    end
    local q, k, v = c.br * l.chunks * 16, c.bc * l.chunks * 16, c.bc * l.chunks_v * 16
    if c.q_regs == 1 then
      l.k = 0
      l.v = c.stages_k * k
      l.q = l.v + (c.stages_v - 1) * v
      l.bytes = l.q + math.max(q, v)
    else
      l.q = 0
      l.k = q
      l.v = q + c.stages_k * k
      l.bytes = l.v + c.stages_v * v
    end
    if p.o_bytes == 2 and p.align >= 16 then l.bytes = math.max(l.bytes, c.br * l.chunks_v * 16) end
    -- Registers: accumulators of O and S, fragments in flight, row states, addresses.
    local mb = c.br // c.warps // 16
    l.regs = mb * l.vb * 4 + mb * (c.bc // 8) * 4 + mb * 8 + 40 + program_cost(p).regs
    if c.q_regs == 1 then l.regs = l.regs + mb * (l.chunks // 2) * 4 end
    -- What the compiler keeps besides. Of some hundred configs compiled for sm_80 those that spilled take more than seven eighths of
    -- the limit by this count, and most that take more do.
    local besides = (edges.right(p) and 8 or 0) + (p.has_lengths and 36 or 0) + (p.has_dropout and 16 or 0)
    l.spills = (l.regs + besides) * 8 > register_limit(a, c.warps, c.ctas) * 7
    return l
  end,

  steps = function(p, c, a, l)
    local grid = (c.pack > 0 and "rows/%d hkv b" or "sq/%d hq b"):format(c.br)
    local step = { entry = "fa_fwd", threads = l.threads, smem = l.bytes, grid = grid }
    if p.has_lengths then step.per_sm = c.ctas end
    if l.parts then step.grid = step.grid .. " 8" end -- parts of a tile at most
    return { step }
  end,

  workspace = function(p, c, a, l) return split.workspace(p, l.vb * 8) end,

  params = function(p, c, a, l)
    local values = values_of(p)
    return "q k v o lse " .. (l.parts and "workspace part_o part_state " or "") .. values.rows .. values.scores .. values.seen
      .. (p.has_lengths and "section_keys " or "tiles section ") .. values.pages
  end,

  -- What one block of B_r x B_c scores costs.
  -- prompts: no sequence has few query rows.
  work = function(p, c, a, l, prompts)
    local mb = c.br // c.warps // 16
    local k_chunks, v_chunks = l.chunks, l.chunks_v
    local n_mma = (c.br // 16) * ((c.bc // 8) * k_chunks // 2 + (c.bc * value_bytes(p) // 32) * l.vb)
    -- Fragments of K and V are read once per warp, those of Q once per warp unless they stay in registers.
    local fragments = c.warps * c.bc * 16 * (k_chunks + v_chunks)
    if c.q_regs == 0 then fragments = fragments + c.br * k_chunks * 16 end
    local copies = c.bc * 16 * (k_chunks + v_chunks)
    local elements = c.br * c.bc // 32
    -- Philox: seven rounds of two wide products and two exclusive ors for eight elements, with packed rows for four.
    local random = p.has_dropout and elements * (c.pack > 0 and 11 or 7) or 0
    local rescale = c.lag > 0 and 0 or c.br * l.vb * 8 // 32
    local program = program_cost(p)
    -- Waiting per block of keys: two barriers with the copy of V or of K after them, or one barrier. Fitted, see gen/cost.c.
    local latency = ({ [0] = 630, 1100, 240 })[c.order]
    if c.order < 2 then latency = latency - 60 * (c.stages_k - 1) - 60 * (c.stages_v - 1) end
    -- However short the block, the copy that it waits for was issued one block earlier and takes about 1000 clocks.
    latency = math.max(latency, 1000 - c.br * c.bc * (p.d + p.dv) // 1000)
    local split_rows = a.has_wgmma and not in_sectors(p)
    if split_rows then latency = latency + SPLIT_WAIT end
    -- A block with one warp computes nothing while it waits for its copies, and few blocks on an SM do not hide that.
    local tiles = (p.sq * (c.pack > 0 and p.hq // p.hkv or 1) + c.br - 1) // c.br * p.b * (c.pack > 0 and p.hkv or p.hq)
    if a.has_wgmma and c.warps == 1 and not p.has_lengths and tiles <= a.sm_count * 7 // 4 then latency = latency + LONE_WAIT end
    -- Where sequences have lengths of their own, as if beside each prompt another sequence took one token: a tile of mostly empty rows.
    local more = 1
    if p.has_lengths and p.b > 1 and not prompts then
      more = 1 + c.br / math.max(p.sq * (c.pack > 0 and p.hq // p.hkv or 1), c.br)
    end
    -- A lone warp issues all copies of a block of keys before its products.
    local slots = a.has_wgmma and c.warps == 1 and (p.d % 64 > 0 or p.dv % 64 > 0) and LONE_COPY or 1
    -- Beside wgmma, in races on an H100 and an H200, these kernels took an eighth longer than as they were fitted alone.
    local beside = a.has_wgmma
    local speed = beside and c.pack > 0 and not p.has_lengths and c.br == 64 and (p.d % 64 > 0 or p.dv % 64 > 0)
      and (p.sq * (p.hq // p.hkv) + 63) // 64 == 2 and BOTH_TILES or 1
    if beside and c.br == 64 and p.dv > 128 and p.dv % 64 > 0 and not p.has_lengths and p.sq * (p.hq // p.hkv) <= 64
      and tiles > 2 * a.sm_count and tiles <= 4 * a.sm_count then
      speed = AFTER_TWO
    end
    return {
      rows = c.br, cols = c.bc,
      matrix_flops = 2 * 8 * (round_up(p.d, 8) + l.vb * 8) // 8 * more,
      unit = p.dtype == "tf32" and "mma_tf32" or "mma16",
      exps = 1 + program.exps,
      issue = (split_rows and 1 / SPLIT_RATE or 1) * (n_mma + elements * ((beside and 2.94 or 3) + program.issue) + random + rescale
        + fragments // 512 + copies // 512 * slots + c.warps * (40 + 30 * mb)) * more,
      smem_bytes = (fragments + copies) * (beside and 1.07 or 1.2) * more,
      latency = latency,
      tile_latency = beside and 2650 or 5200,
      hbm_speed = (beside and hbm_speed(p, a) or 1) * speed,
      l2_speed = (split_rows and SPLIT_L2 or 1) * speed,
      efficiency = (beside and 0.77 or 0.83) * (split_rows and SPLIT_RATE or 1) * speed,
      -- The compiler takes about a quarter more than it must, to have loads under way.
      regs = math.min(register_limit(a, c.warps, c.ctas), l.regs * 5 // 4 + 8),
    }
  end,
}
