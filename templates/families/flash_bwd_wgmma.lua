-- flash_bwd_wgmma: the gradients of attention with wgmma and TMA, for sm_90a, in five products. Blocks of a kernel own keys: warpgroups of
-- 64 keys each compute S^T, dP^T, dV and dK with P and dS as operands straight out of registers. dQ = scale dS K comes about in one of two
-- ways. spill: they leave dS in memory, in 16 bits, for as many heads at a time as the workspace holds, and blocks of another kernel, which
-- own queries, multiply it; nothing is added up in memory, so that every launch has the same bits. add: two warpgroups of a block exchange
-- dS in shared memory and add their part of dQ to sums in global memory in fp32, which a last kernel converts; the order of the additions
-- is the chip's. A block does the query heads of a group one after the other, or spread: a block for each of them, or for some, whose
-- sums go to memory in fp32 and are added up in the order of the heads by one kernel more. Of sequences with lengths of their own tensor
-- maps span all that is allocated, and a warp writes zeros over rows of others in the boxes that reach beyond a sequence's end.

local backward = include "families/backward_family.lua"
local hopper = include "families/hopper_family.lua"
local program_cost = include "pairs/program_cost.lua"
local mask_cost = include "pairs/mask_cost.lua"
local edges = include "pairs/edges.lua"

local round_up = include "families/round_up.lua"

local FEEDER = 24      -- registers per thread that the warpgroup of copies keeps
local SMEM_TILE = 8192 -- bytes of a tile of dS: 64 keys, 64 queries

-- Registers per thread: at the launch, and what others have after the warpgroup of copies kept `feeder` (setmaxnreg).
local function registers(a, groups, feeder)
  local launch = math.min(a.regs_thread, a.regs_sm // (128 * (groups + 1)) // 8 * 8)
  return launch, math.max(launch, math.min(240, (launch * (groups + 1) - feeder) // groups // 8 * 8))
end

local function groups_of(c) return c.bc // 64 * (1 + c.twins) end

-- Of the kernel of dK and dV: where K, V, stages of Q and dO, dS on its way to the other warpgroup, P on its way to the other one of its
-- keys, LSE and D lie in shared memory, after them the barriers, and tiles that were drawn.
local function places_kv(p, c)
  local row = c.box * 2
  local boxes, boxes_v = (p.d + c.box - 1) // c.box, (p.dv + c.box - 1) // c.box
  local l = { row = row, boxes = boxes, boxes_v = boxes_v, groups = groups_of(c) }
  l.v = c.bc * boxes * row
  l.q = l.v + c.bc * boxes_v * row
  l.grad_o = l.q + c.stages * c.br * boxes * row
  l.ds = l.grad_o + c.stages * c.br * boxes_v * row
  l.p = l.ds + c.ds_bufs * 2 * SMEM_TILE
  -- Half of the columns of dQ, in whole boxes where there are several.
  l.columns = boxes > 1 and (boxes + 1) // 2 * c.box or c.box // 2
  l.rows_at = l.p + (c.twins == 1 and c.bc * c.br * 4 or 0)
  -- Under a score program's mask, beside LSE and D which block they are of.
  l.codes = l.rows_at + c.stages * c.br * 8
  l.barriers = l.codes + (edges.marked(p) and c.stages * 8 or 0)
  l.tile_barriers = 2 + 4 * c.stages + 3 * c.ds_bufs
  -- With lengths there is one for each `full`, at the same distance.
  l.landed = l.tile_barriers + (c.grid > 0 and 5 or 0)
  l.slots = l.barriers + 8 * (l.landed + (p.has_lengths and 2 + 3 * c.stages or 0))
  -- Two slots, of a tile's number each; or of the tile and its sequence's rows, where those would be read in global memory.
  l.tile_rows = c.grid > 0 and c.ds_bufs > 0 and c.spread == 0 and p.has_lengths
  if l.tile_rows then l.slots = round_up(l.slots, 16) end
  l.ended = l.slots + (c.grid > 0 and (l.tile_rows and 64 or 8) or 0)
  l.bytes_kv = l.ended + (c.ds_bufs > 0 and 4 or 0)
  return l
end

-- Of the kernel of dQ, into l: stages of a block of K and a tile of dS for each warpgroup.
local function places_q(l, p, c)
  l.q_groups = c.q_br // 64
  l.q_stage = 64 * l.boxes * l.row + l.q_groups * SMEM_TILE
  l.q_barriers = c.q_stages * l.q_stage
  l.bytes_q = l.q_barriers + 8 * (p.has_lengths and 3 or 2) * c.q_stages
  return l
end

-- What a score program takes. Of blocks that are whole one number for each distance is read, where S of them has its place; other blocks
-- may spill. Elements of pairs are read one after the other: at d = 128 some 70 bytes of spills cost less than tiles of fewer keys, 0.80 of
-- the time on an H100.
local function regs_of_program(p)
  local regs, program = program_cost(p).regs_back, p.score
  if not program or not program.has_score or program.bends then return regs end
  local few = edges.line(program) or #program.arrays > 0 and p.d + p.dv >= 256
  return few and math.min(regs, 4) or regs
end

-- What the gradients, S and dP, and P and dS as operands take, per thread.
local function matrices(p, c)
  local d, dv = round_up(p.d, 8) // 2, round_up(p.dv, 8) // 2
  if c.twins == 1 then return math.max(d, dv) + c.br // 2 + c.br // 4 end
  local held = (c.held > 0 and round_up(p.d, 16) // 4 or 0) + (c.held > 1 and round_up(p.dv, 16) // 4 or 0)
  return d + dv + c.br + c.br // 4 + held
end

-- The thread that draws tiles spills at 24 registers, and beside long sums one that knows where a sequence lies; 40 are there where the
-- others need no more than 232.
local function leaves_40(p, c) return matrices(p, c) + 36 + regs_of_program(p) <= 232 end
local function feeder_of(p, c)
  return (c.grid == c.named.grid.persistent or p.has_lengths and c.twins == 0) and leaves_40(p, c) and 40 or FEEDER
end

-- The thread that walks marks in the kernel of dQ spills at 24.
local function q_feeder_of(p) return edges.marked(p) and 32 or FEEDER end

-- How much more is read where Q and dO at work, and sums of dQ, do not fit the L2. Under a mask the blocks of a KV head's keys, which walk
-- the heads of its group one by one, leave each other behind, for each has more queries to go through than the next: half the heads are at
-- work, and of four and more they leave each other so far behind that hardly a row is read twice from the L2. Heads come in groups of
-- eight, and in a last one of some 512 tiles (tile_at() in work/order.cu); without a mask, one by one. Numbers: fitted to timings on an
-- H100.
local function again(p, c, a, l, row)
  local masked = seen_share(p) < 0.75
  local group = p.hq // p.hkv
  local heads = l.spread and math.min(c.spread, group) or group
  local apart = masked and not p.has_lengths and heads > 1 and heads * (p.d + p.dv) >= 768
  local share, l2 = apart and 1.1 or 0.79, apart and 0.7 * a.l2_bytes or a.l2_bytes
  local units = p.b * p.hkv * ((group + heads - 1) // heads)
  local tiles = (p.sk + c.bc - 1) // c.bc
  local function missed(at_work)
    local bytes = at_work * (masked and (heads + 1) / 2 or 1) * p.sq * (row + (l.sums and 4 * p.d or 0))
    return math.max(0, 1 - l2 / bytes)
  end
  local one_by_one = (a.sm_count + tiles - 1) // tiles
  if not masked or tiles < 8 then return 1 + share * missed(math.min(units, one_by_one)) end
  local most = math.max(512 // tiles, 1)
  local few = math.min(most, 8)
  local evenly = math.max(units - most, 0) // few * few
  local last = units - evenly
  if heads == 1 then return 1 + share * missed(few) end
  return 1 + share * (evenly * missed(few) + last * missed(math.min(last, a.sm_count))) / units
end

-- Clocks of a tile's ends. At d = 64 half as many keys leave so little that these are shorter: by races on an H200. Where memory is as
-- fast as there, of dense launches: fitted to races of some 360 shapes on an H200, most of them short, or of groups.
local FAST = { pair = { 7600, 9000 }, sums = { 10800, 14000 }, alone = { 12300, 10800 } }  -- up to d = 64, and beyond
local function ends_of_tile(p, c, a, l)
  if backward.raced_on_fast(p, a) then
    return FAST[c.twins == 1 and "pair" or l.sums and "sums" or "alone"][p.d <= 64 and 1 or 2] - (l.persistent and 800 or 0)
  end
  return (l.persistent and 10000 or 10800) - (c.twins == 1 and p.d <= 64 and 2000 or 0)
end

-- With lengths the place for dS is that of the longest sequence: a call becomes many launches, most of them with few tiles, whose ends cost
-- more than the model sees, and dS of short sequences lies far apart. Fitted to packed sequences on an H100.
local function ends_of(p, l)
  local launches = p.b * p.hq * round_up(p.sq, 64) * round_up(p.sk, 64) * 2 / (1 << 30)
  return p.has_lengths and l.spill and (launches > 2 and 1.4 or 1.2) or 1
end

-- A box that is not full takes its place and its time in shared memory: 190 pairs of configs at d = 96 on an H100.
local function padding_of(p, c) return (p.d % c.box > 0 or p.dv % c.box > 0) and 1.02 or 1 end

-- Where keys have one head of queries there is nothing to spread, and a winner with groups shall not bring it there.
local function alone_of(p, l) return l.spread and p.hq == p.hkv and 1.25 or 1 end

local function slow_down(by, ...)
  if by == 1 then return end
  for _, step in ipairs({ ... }) do
    for _, field in ipairs({ "matrix_flops", "exps", "issue", "smem_bytes", "latency", "tile_latency", "bytes" }) do
      if step[field] then step[field] = step[field] * by end
    end
  end
end

return backward.family({
  doc = "gradients of attention on wgmma and TMA (fp16, bf16): keys owned by blocks, dQ out of dS in memory or added up (dq=add)",
  operation = "backward",
  features = backward.features,
  tile = { "br", "bc" },

  tunables = {
    { "br", { 64, 128 }, "B_r: queries per iteration of dK and dV" },
    { "bc", { 128, 64 }, "B_c: keys of a block of dK and dV" },
    { "twins", { 0, 1 }, "warpgroups that have 64 keys in dK and dV: 0 = one, 1 = two: one computes S, P and dV, the other dP, dS and dK" },
    { "held", { 0, 1, 2 }, "operands of S and dP that a warpgroup keeps in registers: 1 = K, 2 = K and V" },
    { "schedule", { { 1, "turns" }, { 0, "plain" } },
      "a warpgroup issues dK with S and dP of the next block 1 = in turns with the other, 0 = when it gets there" },
    { "box", { 64, 32, 16 }, "columns of a TMA box: rows of 128, 64 or 32 bytes, swizzled" },
    { "stages", { 2, 3, 4, 6 }, "buffers of Q and dO" },
    { "dq", { { 0, "spill" }, { 1, "add" } }, "dQ: spill = out of dS in memory, add = added up in fp32" },
    { "ds_bufs", { 0, 2, 3 }, "buffers of dS on its way to the other warpgroup; 0 where it goes to memory" },
    { "grid", { { 2, "persistent" }, { 0, "per_tile" } },
      "how blocks get tiles of keys: persistent = they stay and the next that is free draws one, per_tile = a block for each" },
    { "q_br", { 128, 192, 256 }, "queries of a block of dQ" },
    { "q_stages", { 4, 3, 6 }, "buffers of K and dS in dQ" },
    { "spread", { 0, 1, 2, 4 },
      "query heads of a block of dK and dV: 0 = all of a group; else a kernel more adds up what those of a group left",
      later = true },
  },

  -- Two warpgroups of 64 keys each, or two of the same 64 where the sums of one take too many registers; dS through memory, or dQ added up.
  -- Of groups of several heads a block does all, or one.
  start = function(p, a)
    local list = {}
    -- Where no thread can draw tiles: of 64 query heads on 8, dense, adding dQ took 2 and 5 % more than dS in memory on an H200.
    local per_tile = p.has_lengths and not leaves_40(p, { br = 64, twins = 0, held = 0 })
    local function add(box, spread)
      for _, stages in ipairs({ 2, 4 }) do
        for _, twins in ipairs({ 0, 1 }) do
          list[#list + 1] = {
            br = 64, bc = twins == 1 and 64 or 128, twins = twins, held = 0, schedule = "plain", box = box, stages = stages, dq = "spill",
            ds_bufs = 0, grid = "per_tile", q_br = 128, q_stages = 4, spread = spread,
          }
        end
        for _, held in ipairs({ 0, 2 }) do
          list[#list + 1] = {
            br = 64, bc = 128, twins = 0, held = held, schedule = "turns", box = box, stages = stages, dq = "add", ds_bufs = 2,
            grid = held == 0 and not per_tile and "persistent" or "per_tile", q_br = 128, q_stages = 4, spread = spread,
          }
        end
      end
    end
    for _, box in ipairs({ 64, 32, 16 }) do add(box, 0) end
    if p.hq > p.hkv then add(hopper.box[2](p, { box = 32 }) and 32 or 64, 1) end
    -- Tiles are short under a program's mask: no warpgroup waits for a turn, K alone is kept, and dQ has more buffers.
    if edges.marked(p) then
      local function more(held, schedule, stages, dq, q_stages)
        list[#list + 1] = {
          br = 64, bc = 128, twins = 0, held = held, schedule = schedule, box = 64, stages = stages, dq = dq,
          ds_bufs = dq == "add" and 2 or 0, grid = dq == "add" and p.d + p.dv <= 128 and "persistent" or "per_tile", q_br = 128,
          q_stages = q_stages, spread = 0,
        }
      end
      if p.d + p.dv <= 128 then more(1, "turns", 4, "add", 4) else more(0, "plain", 3, "add", 4) end
      more(0, "plain", 4, "spill", 6)
    end
    return list
  end,

  supports = function(p, a)
    if not a.has_wgmma then return false, "no wgmma on " .. a.name end
    if p.bytes ~= 2 then return false, "wgmma multiplies fp16 and bf16 here, not " .. p.dtype end
    if p.o ~= p.dtype then return false, "O in " .. p.o end
    if p.align < 16 then return false, "TMA needs rows at multiples of 16 bytes, not " .. p.align end
    return backward.differentiates(p)
  end,

  constraints = {
    { "groups", function(p, c)
      local groups = groups_of(c)
      if groups == 2 or groups == 1 then return true end
      return false, groups .. " warpgroups leave each too few registers"
    end, upto = "twins", about = "registers" },
    { "held", function(p, c)
      if c.held == 0 or c.twins == 0 then return true end
      return false, "two warpgroups of the same keys have no more than one product with K or V each"
    end, upto = "held" },
    { "accumulators", function(p, c, a)
      local _launch, most = registers(a, groups_of(c), FEEDER)
      local others = 28 + regs_of_program(p)
      local need = matrices(p, c) + others
      if need <= most then return true end
      return false, "gradients, S and dP with " .. others .. " others take " .. need .. " > " .. most .. " registers"
    end, upto = "dq", about = "registers" },
    { "turns", function(p, c)
      if c.schedule == c.named.schedule.plain or groups_of(c) == 2 and c.twins == 0 then return true end
      return false, "turns are for two warpgroups with keys of their own"
    end, upto = "schedule" },
    hopper.box,
    { "add", function(p, c)
      if c.dq == c.named.dq.spill then return true end
      if p.has_deterministic then return false, "sums in memory have no order" end
      if c.bc == 128 and c.twins == 0 and c.br == 64 and p.d >= 64 and p.d % 8 == 0 then return true end
      return false, "dQ is added up by two warpgroups with 64 keys each and blocks of 64 queries, at head_dims from 64 on that 8 divides"
    end, upto = "dq" },
    { "exchange", function(p, c)
      if (c.ds_bufs == 0) == (c.dq == c.named.dq.spill) then return true end
      return false, c.ds_bufs == 0 and "dS of one block is multiplied beside that of the next" or "dS goes to memory"
    end, upto = "ds_bufs" },
    { "drawing", function(p, c)
      if c.grid == c.named.grid.per_tile or feeder_of(p, c) > FEEDER then return true end
      if p.has_lengths then return false, "tiles that are drawn and lengths leave too few registers" end
      if edges.marked(p) then return false, "tiles that are drawn and marks of a mask leave too few registers" end
      if c.dq == c.named.dq.spill then return true end
      return false, "tiles that are drawn and sums of dQ leave too few registers"
    end, upto = "grid", about = "registers" },
    { "buffers", function(p, c, a)
      local need = places_kv(p, c).bytes_kv
      if need <= a.smem_block then return true end
      return false, "K, V, Q, dO and dS take " .. need .. " > " .. a.smem_block .. " bytes"
    end, upto = "grid", about = "shared memory" },
    { "q_accumulators", function(p, c, a)
      local launch, most = registers(a, c.q_br // 64, q_feeder_of(p))
      local need = round_up(p.d, 8) // 2 + 28
      if need > most then return false, "dQ with 28 others takes " .. need .. " > " .. most .. " registers" end
      if need + 2 <= launch then return true end
      return false, "the assembler wants " .. need + 2 .. " > " .. launch .. " registers at the launch for one product"
    end, upto = "q_br", about = "registers" },
    { "one", function(p, c)
      if c.dq == c.named.dq.spill or c.q_br == 128 and c.q_stages == 4 then return true end
      return false, "where dQ is added up no kernel multiplies dS"
    end, upto = "q_stages" },
    { "q_buffers", function(p, c, a)
      local need = places_q(places_kv(p, c), p, c).bytes_q
      if need <= a.smem_block then return true end
      return false, "K and dS take " .. need .. " > " .. a.smem_block .. " bytes"
    end, upto = "q_stages", about = "shared memory" },
    backward.workspace(64, function(c) return c.dq == c.named.dq.spill end),
  },

  layout = function(p, c, a)
    local l = places_q(places_kv(p, c), p, c)
    l.tma, l.feeder, l.q_feeder = true, feeder_of(p, c), q_feeder_of(p)
    l.delta_pad, l.delta_pdl, l.ordered = 128, true, p.has_lengths
    l.turns = c.schedule == c.named.schedule.turns
    l.persistent = c.grid == c.named.grid.persistent
    l.sums, l.spill = c.dq == c.named.dq.add, c.dq == c.named.dq.spill
    l.spread = c.spread > 0
    l.listed = p.has_lengths and l.sums and not l.spread
    l.kv_regs, l.consumer = registers(a, l.groups, l.feeder)
    l.q_regs, l.q_consumer = registers(a, l.q_groups, l.q_feeder)
    l.kv_threads, l.q_threads = 128 * (l.groups + 1), 128 * (l.q_groups + 1)
    -- Where dQ is added up, the next kernel has neither buffers nor products.
    l.regs = l.sums and l.kv_regs or math.min(l.kv_regs, l.q_regs)
    l.threads = l.sums and l.kv_threads or math.max(l.kv_threads, l.q_threads)
    l.bytes = l.sums and l.bytes_kv or math.max(l.bytes_kv, l.bytes_q)
    l.dk, l.dv = round_up(p.d, 8) // 2, round_up(p.dv, 8) // 2
    l.dq = l.sums and l.columns // 2 or l.dk
    -- Whether there are registers for dQ beside dP.
    local left = l.consumer - matrices(p, c) - 36 - regs_of_program(p)
    l.apart = left >= l.dq
    -- Whether for dS as an operand, too, while the exponentials of the next block are computed.
    l.early = l.sums and not edges.marked(p) and not p.has_dropout and left >= l.dq + c.br // 4
    -- Whether scores and dS are computed eight values after eight, and D is loaded beside the exponentials. That was slower on an H200
    -- where dS goes to memory, S comes before dK, or dP waits for dQ.
    l.by_eight = not edges.of_pairs(p) and (c.twins == 1 or l.sums and l.apart and not l.early)
    -- Whether the last sequences' tiles come by how long they are, and dV and dK are stored beside a tile's last products. On an H200
    -- packed sequences take 0.985 and 0.98 of the time at d = 128 under a mask; 1.02 and 1.1 at d = 64 where blocks stay, and without a
    -- mask the second 1.05.
    l.by_reach = l.listed and edges.grow(p) and not l.persistent and p.d + p.dv >= 256
    l.stored_beside = l.by_reach
    l.early_d = l.by_eight and c.twins == 0 and not p.has_dropout
    return backward.delta(l, p)
  end,

  steps = function(p, c, a, l)
    local function map(tensor, rows) return { tensor = tensor, cols = c.box, rows = rows, swizzle = l.row } end
    local by_queries = { entry = "fa_grad_q", threads = l.q_threads, smem = l.bytes_q, grid = ("sq/%d members units"):format(c.q_br),
      pdl = 1,
      maps = { map("k", 64) } }
    if l.sums then by_queries = { entry = "fa_grad_q", threads = 256, smem = 0, grid = backward.row_tiles(p, 64), pdl = 1 } end
    local by_keys = { entry = "fa_grad_kv", threads = l.kv_threads, smem = l.bytes_kv, pdl = 1,
      grid = l.listed and ("spaced_k/%d hkv"):format(c.bc)
        or ("sk/%d %sunits"):format(c.bc, l.spread and "members/" .. c.spread .. " " or ""),
      per_sm = l.persistent and 1 or 0, counter = l.persistent and 1 or 0,
      maps = { map("q", c.br), map("k", 64), map("v", 64), map("grad_o", c.br) } }
    if not l.spread then return { backward.delta_step(l, p), by_keys, by_queries } end
    local folds = (l.dk + 15) // 16 + (l.dv + 15) // 16
    return {
      backward.delta_step(l, p), by_keys,
      { entry = "fa_grad_fold", threads = 128, smem = 0, grid = ("sk/64 %d units"):format(folds), pdl = 1 },
      by_queries,
    }
  end,

  workspace = function(p, c, a, l)
    local part, parts = 128 * (l.dk + l.dv), ""  -- of 64 keys and a head
    if l.ordered then parts = l.listed and (", key_tiles int32 spaced_k/%d 4"):format(c.bc) or ", order int32 b" end
    if l.spread then
      parts = parts .. (", parts_kv fp32 units members/%d sk/64 %d, sums_kv fp32 sliced units sk/64 %d"):format(c.spread, part, part)
    end
    if l.sums then
      return ("delta fp32 b hq sq/%d %d, sums fp32 b hq sq/64 %d"):format(l.delta_pad, 2 * l.delta_pad, 64 * p.d) .. parts
    end
    if l.spread then
      return ("delta fp32 b hq sq/%d %d, grad_s %s units members sq/64 sk/64 4096"):format(l.delta_pad, 2 * l.delta_pad, p.dtype) .. parts
    end
    return ("delta fp32 b hq sq/%d %d, grad_s %s units members sq/64 sk/64 4096, sums_kv fp32 sliced units sk/%d %d"):format(
      l.delta_pad, 2 * l.delta_pad, p.dtype, c.bc, 2 * c.bc * (l.dk + l.dv)) .. parts
  end,

  params = function(p, c, a, l)
    local order = l.listed and " key_tiles" or l.ordered and " order" or ""
    local buffers = (l.sums and "delta sums" or "delta grad_s") .. order .. (l.spread and " parts_kv" or "")
      .. ((l.spread or not l.sums) and " sums_kv" or "")
    return backward.params(p, buffers) .. (l.listed and "" or p.has_lengths and "unit" or "key_base unit")
      .. ((l.spread or not l.sums) and " member members" or "") .. (l.persistent and " counter total" or "")
  end,

  work = function(p, c, a, l)
    -- Of a score program's mask: the share of the blocks that are walked.
    local share, uneven, program_issue = 1, 0, program_cost(p).issue_back
    if edges.marked(p) then
      local mask_issue
      uneven = 2  -- as under a diagonal
      share, mask_issue = mask_cost(p, c, c.br, 64)
      program_issue = program_issue - p.score.mask_issue + mask_issue
    end
    local visible = p.b * p.hq * seen_share(p) * share
    local d, dv = round_up(p.d, 16), round_up(p.dv, 16)
    local scores, row = c.br * c.bc, 2 * (p.d + p.dv)
    -- What a copy takes beyond the time of the blocks before it. Fitted, as the numbers below, to 1,769 timings of random shapes on an
    -- H100.
    local latency = ({ [2] = 940, [3] = 408 })[c.stages] or 319
    local held = (c.held > 0 and d or 0) + (c.held > 1 and dv or 0)
    -- Q and dO come again for every tile of keys, K for every tile of queries, out of the L2, which was no limit on an H200.
    local once = p.b * p.hq * p.sq * row + 2 * p.b * p.hkv * p.sk * row
    local kv = {
      rows = c.br, cols = c.bc, group = c.br, matrix_flops = 4 * (d + dv), unit = "wgmma16", exps = 1 + program_cost(p).exps_back,
      issue = math.floor(scores // 32 * ((p.has_dropout and (c.twins == 1 and 25 or 17) or 6.5) + program_issue))
        + l.groups * 97,
      -- Operands of S and dP from both sides, of dV and dK from one; what comes and goes.
      smem_bytes = (c.bc // 64) * 1.72 * ((d + dv) * (64 + 2 * c.br) - held * 64) + c.br * 2 * (d + dv)
        + scores * (c.twins == 1 and 7.5 or 0),
      latency = latency, tile_latency = ends_of_tile(p, c, a, l),
      bytes = math.max(1, once + 2 * visible * p.sq * p.sk),
      share = share, uneven = uneven,
      regs = l.kv_regs,
    }
    local q = {
      rows = c.q_br, cols = 64, group = 64, matrix_flops = 2 * d, unit = "wgmma16", exps = 0, issue = l.q_groups * 100,
      smem_bytes = c.q_br * 64 * 4 + 64 * d * 2 * (l.q_groups + 1), latency = 1070 // c.q_stages,
      bytes = math.max(1, visible * p.sq * p.sk * 2 + 2 * p.d * (p.b * p.hkv * p.sk + p.b * p.hq * p.sq)),
      share = share, uneven = uneven,
      regs = l.q_regs,
    }
    -- Tiles are short there, and dS goes through memory slice by slice, each of which ends with its longest tile. By a race of documents
    -- and chunks on an H200: K and V in registers take 1.06 of the time of none, K alone 0.93; turns at d = 128 1.03 of that without, with
    -- dQ added up 1.07; eight slices 1.37 of dQ added up, two 0.88.
    if edges.marked(p) then
      if p.d + p.dv <= 128 then kv.tile_latency = kv.tile_latency + (c.held == 2 and 3500 or c.held == 0 and l.sums and 2000 or 0) end
      if l.turns and p.d + p.dv > 128 then kv.latency = kv.latency + (l.sums and 90 or 260) end
      if not l.sums then kv.latency = kv.latency + 140 * math.max(0, p.b * p.hq * p.sq * p.sk * 2 // (1 << 30) - 2) end
    end
    if l.sums then
      -- dQ is one more product, out of shared memory; its sums go through the L2 instead of dS.
      kv.matrix_flops = kv.matrix_flops + 2 * d
      kv.issue = kv.issue + 100
      -- dP waits for dQ and dK; at d = 128 an H200 took up to 7 % longer than with 130.
      if not l.apart then kv.latency = kv.latency + (p.d + p.dv >= 256 and 330 or 130) end
      kv.smem_bytes = kv.smem_bytes + 2 * (c.br + d) * c.bc * 2 + scores * 2
      -- Of each sum 4 bytes, and what of it does not stay in the L2: fitted, at d = 128 on an H100 and an H200.
      kv.bytes = math.max(1, once + (p.d + p.dv >= 256 and 4.9 or 5.7) * visible * p.sq * p.d * ((p.sk + c.bc - 1) // c.bc))
      q = { bytes = math.max(1, p.b * p.hq * p.sq * p.d * 6) }
    end
    kv.bytes = kv.bytes * again(p, c, a, l, row)
    slow_down(ends_of(p, l) * padding_of(p, c) * alone_of(p, l), kv, q)
    if not l.spread then return { backward.delta_work(p, l), kv, q } end
    -- Parts of dK and dV are written and read again: 8 bytes, which cost as much as 10 do elsewhere.
    local parts = p.b * p.hkv * ((p.hq // p.hkv + c.spread - 1) // c.spread) * p.sk * 10 * (l.dk + l.dv)
    kv.bytes = kv.bytes + parts
    local fold = { bytes = math.max(1, parts + p.b * p.hkv * p.sk * p.grad_bytes * (p.d + p.dv)) }
    return { backward.delta_work(p, l), kv, fold, q }
  end,
})
