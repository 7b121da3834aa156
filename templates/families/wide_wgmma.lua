-- wide_wgmma: wide heads on wgmma and TMA, for sm_90a. Two consumer warpgroups share 64 rows: each makes P of every second block of keys,
-- and sums up half of O's columns over all blocks (as FlashMLA does for d = 576 beside dv = 512). Rows are those of all heads of a group,
-- and the keys of a tile are cut into parts. Where V lies in K's rows one buffer serves both products.

local round_up = include "families/round_up.lua"
local split = include "families/split_family.lua"
local family = include "families/parts_family.lua"
local program_cost = include "pairs/program_cost.lua"
local edges = include "pairs/edges.lua"
local whole = include "families/flash_fwd_wgmma.lua"
whole = whole.bare or whole

local PART_CLOCKS = 5280     -- of 128 rows of 128 columns of a part that leave
local BOX, CONSUMERS = 64, 2 -- columns of a box, at most; warpgroups that share rows
-- Clocks in which the last of the warps with the same rows and columns adds up their parts, and for each part.
local LAST_CLOCKS, LAST_PART_CLOCKS = 12000, 4000

local function gcd(x, y) return y == 0 and x or gcd(y, x % y) end

-- Columns of O of each warpgroup, whole boxes: of an odd number of boxes both sum up the middle one.
local function columns_of(p, c) return ((p.dv + c.box - 1) // c.box + 1) // CONSUMERS * c.box end

-- Registers per thread: at the launch, and of consumers when the producer has given its own back.
local function registers(a, c)
  local launch = math.min(a.regs_thread, a.regs_sm // (128 * (CONSUMERS + 1)) // 8 * 8)
  return launch, math.min(240, (launch * (CONSUMERS + 1) - c.feeder) // CONSUMERS // 8 * 8)
end

-- Whether halves of the columns of K's and V's blocks come in turn through one ring of stages_k places. One box of Q is held in registers,
-- and has its place in shared memory where P is exchanged later.
local HALVES = 2
local function halves(c) return c.schedule == HALVES end

-- What a consumer's thread needs, of S, P and O and others.
local function registers_of(p, c) return c.bc // 2 + 2 * (c.bc // 4) + columns_of(p, c) // 2 + 36 + program_cost(p).regs_ahead end

-- Whether the blocks of a cluster are the parts of one tile, which they add up through their shared memory.
local NEAR = 2
local BY_LENGTH = split.by_length
-- Parts by length: what they are expected to spare where lengths are unlike, as a part of the time; clocks that they cost where these are
-- not, 2 to 8 us as raced on an H200; and of so many thread blocks to a tile at most, as fewer tiles are cut into many parts anyway.
local BY_LENGTH_PAYS, BY_LENGTH_CLOCKS, BY_LENGTH_BLOCKS = 1.05, 8000, 3
local function near(c) return c.combine == NEAR end

-- Where what lies in shared memory.
local function places(p, c)
  local l = { row = 2 * c.box, boxes = (p.d + c.box - 1) // c.box, boxes_v = (p.dv + c.box - 1) // c.box, wgs = 1 }
  -- P of a block, 16 bytes of a thread at a time, and of each thread's two rows m and l.
  local exchanged = 128 * (c.bc // 16 + 1) * 16
  l.k = c.br * l.boxes * l.row
  if halves(c) then
    l.exchange = l.k - c.br * l.row
    l.k = round_up(math.max(l.k, l.exchange + exchanged), 1024)
    l.v, l.barriers = l.k, l.k + c.stages_k * c.bc * l.boxes // 2 * l.row
  else
    l.v = l.k + c.stages_k * c.bc * l.boxes * l.row
    l.exchange = l.v + (p.has_v_in_k and 0 or c.stages_v * c.bc * l.boxes_v * l.row)
    l.barriers = l.exchange + exchanged
  end
  l.rest_barriers = 2 * c.stages_k + 2 * c.stages_v + 2 + 5 + (p.has_lengths and c.stages_v or 0)
  local barriers = l.rest_barriers + (p.has_v_in_k and 0 or 2 * c.stages_v)
  -- Columns of K beside V are read by S alone: of whole boxes of them a buffer's part is empty sooner, and they come first.
  if p.has_v_in_k and l.boxes > l.boxes_v then l.tail_barriers, barriers = barriers, barriers + 2 * c.stages_k end
  if near(c) then l.near_barriers, barriers = barriers, barriers + 2 end
  -- Where blocks share keys, the first one draws tiles for both: two barriers, and the slot of a number.
  if halves(c) then l.half_barriers, l.draws_at, barriers = barriers, barriers + c.stages_k, barriers + c.stages_k + 3 end
  l.slots = round_up(l.barriers + 8 * barriers, 16)
  l.ranges = (p.has_lengths and (edges.right(p) and 48 or 32) or 16) + 16
  l.slot = l.ranges + ((edges.cuts_right(p) or p.has_lengths) and 32 or 0)
  l.bytes = l.slots + 2 * l.slot
  if p.has_lengths then -- what the scheduler searches tiles with
    l.order = l.bytes
    l.bytes = l.order + 32 + 32 * 16 + 16
  end
  return l
end

-- Whether blocks that share keys draw their tiles, the first of them for both.
local function draws_for_all(c) return c.cluster > 1 and c.grid == 2 and not near(c) end

local rows = {
  doc = "wide heads",
  rank = whole.rank,
  tile = whole.tile,
  clusters = true,
  copies = true, -- rows are copied by who multiplies them

  tunables = {
    { "br", { 64 }, "B_r: rows of Q per block, which its consumer warpgroups share" },
    { "ctas", { 1 }, "blocks per SM" },
    { "feeder", { 40, 24 }, "registers per thread that the producer warpgroup keeps" },
    { "schedule", { { 0, "plain" }, { HALVES, "halves" } }, "S of a warpgroup's next block is issued beside P V of the other's; " ..
      "halves = halves of the columns of K and V come in turn through one ring of stages_k places" },
    { "bc", { 64, 48, 32, 80, 96 }, "B_c: keys per iteration", step = 2 },
    { "box", { BOX, 32 }, "columns of a TMA box: of an odd number of 64 both warpgroups sum up the middle one" },
    -- Never one: a warpgroup waits for K of its own blocks alone, every second one, and of one buffer the parity of the block before last
    -- is that of the next. It would read K too early and give back more than it took, which ends the launch.
    { "stages_k", { 2, 3, 4, 5, 6, 8, 10 }, "buffers of K in shared memory, and of V where it lies in K" },
    { "stages_v", { 2, 1, 3, 4 }, "buffers of V in shared memory" },
    { "q_bufs", { 1 }, "buffers of Q" },
    { "grid", { { 2, "persistent" }, { 1, "static" } }, "how blocks get tiles: persistent = they draw them, static = back and forth" },
    { "ahead", { 0 }, "the first scores of a tile are issued when the tile before is over" },
    { "sections", { 1, 2, 4 }, "heads that are walked side by side fill two thirds of the L2" },
    { "cluster", { 1, 2, 4 },
      "blocks with neighbouring rows that share K and V: each loads half and sends it to both; or the parts of a tile" },
    { "rescale", { { 2, "lazy" } }, "O is rescaled where a maximum moved by more than 8 in log2 units" },
    { "exp", { 0 }, "exponentials on the special-function unit" },
    { "convert", { { 0, "late" } }, "P becomes 16-bit after all its exponentials" },
    { "o_path", { { 0, "direct" } }, "O goes back from registers" },
  },

  constraints = {
    { "halves", function(p, c)
      if not halves(c) then
        if c.stages_k <= 4 and c.feeder == 40 then return true end
        return false, "whole blocks: at most four buffers of K, and a producer with 40 registers"
      end
      if c.feeder ~= 24 then return false, "halves of columns: consumers need what a producer with 24 registers leaves" end
      if p.has_v_in_k or p.has_lengths then return false, "halves of columns: of dense K and V apart" end
      if p.d ~= p.dv or p.d % (2 * c.box) > 0 then return false, "halves of columns are whole boxes, of K and V alike" end
      if c.stages_k < 4 or c.stages_v ~= 1 then return false, "a ring of halves has places for a block of K and V, and no other of V" end
      return true
    end, upto = "stages_v" },
    { "stages", function(p, c)
      if not p.has_v_in_k then return true end
      if c.stages_v == c.stages_k then return true end
      return false, "V lies in K's rows: " .. c.stages_v .. " buffers of V are not " .. c.stages_k
    end, upto = "stages_v" },
    { "box", function(p, c)
      if c.box == BOX or columns_of(p, c) < columns_of(p, { box = BOX }) then return true end
      return false, "narrow boxes: halves of " .. p.dv .. " columns are whole boxes of " .. BOX
    end, upto = "box" },
    { "page", function(p, c)
      if p.page == 0 or c.bc // gcd(c.bc, p.page) <= 32 then return true end
      return false, "bc = " .. c.bc .. " keys lie in more runs than a warp has lanes"
    end, upto = "bc" },
    { "cluster", function(p, c)
      if c.cluster == 1 then return true end
      if c.grid == c.named.grid.persistent and not halves(c) then return false, "the blocks of a cluster would draw different tiles" end
      return true
    end, upto = "cluster" },
    { "accumulators", function(p, c, a)
      local _launch, consumer = registers(a, c)
      local need = registers_of(p, c)
      if need <= consumer then return true end
      return false, "S, P and O with 36 others take " .. need .. " > " .. consumer .. " registers"
    end, upto = "box", about = "registers" },
    { "buffers", function(p, c, a)
      local need = places(p, c).bytes
      if need <= a.smem_block then return true end
      return false, "Q, K, V and P take " .. need .. " > " .. a.smem_block .. " bytes"
    end, upto = "stages_v", about = "shared memory" },
  },

  supports = function(p, a)
    if p.d <= 256 and p.dv <= 256 then return false, "heads of at most 256 find room in one warpgroup: flash_fwd_wgmma" end
    if p.dv <= BOX or p.dv > 512 then return false, "two warpgroups sum up dv of 72 to 512 in boxes of 64, not " .. p.dv end
    if p.score and edges.walks(p) then return false, "masks of score programs" end
    if #program_cost(p).arrays > 0 then return false, "arrays of score programs" end
    return whole.supports(p, a)
  end,

  layout = function(p, c, a)
    local l = places(p, c)
    l.tma, l.persistent, l.shared = true, true, true
    l.masked = edges.cuts_right(p)
    l.published = edges.cuts_right(p) or p.has_lengths
    l.ahead, l.pingpong, l.pingpong_products, l.pingpong_softmax = false, false, false, false
    l.interleaved, l.relative, l.o_in_q, l.q_lent, l.skip_late, l.most = false, false, false, false, false, false
    l.v_in_k = p.has_v_in_k
    l.near, l.q_held = near(c), c.q_held
    l.halves = halves(c) or nil
    l.draw_barriers = draws_for_all(c) and l.draws_at or nil
    l.apart = not l.v_in_k and not p.has_pages and not l.halves -- a thread loads K, another one V
    if p.has_pages then
      l.run = gcd(c.bc, p.page)
      l.joined_k, l.joined_v = not l.v_in_k and l.boxes > 1 and p.d == l.boxes * c.box, false
      l.joined = l.joined_k
    end
    l.threads, l.ctas = 128 * (CONSUMERS + 1), 1
    l.o_regs = columns_of(p, c) // 2
    l.all_columns = l.boxes_v * c.box
    l.regs, l.consumer = registers(a, c)
    l.feeder = c.feeder
    return l
  end,

  steps = whole.steps,
  params = whole.params,

  start = function(p, a) return {} end,

  work = function(p, c, a, l)
    -- Clocks in which a block of keys is waited for, of races on an H100: where V lies in K a buffer is free late, and two of fewer keys
    -- are too few bytes under way. Products of 32 keys wait for Q, which they read as often as those of 64.
    local keys = c.bc * math.min(c.stages_k, c.stages_v)
    local wait = keys < 64 and 900 or c.stages_k + c.stages_v < 4 and 400 or 0
    if l.v_in_k then wait = c.bc >= 64 and 300 or ({ [2] = 1500, [3] = 600 })[c.stages_k] or 200 end
    local columns = columns_of(p, c) * CONSUMERS
    local elements = c.br * c.bc // 32
    -- Parts in a cluster: each of its blocks has one of so many blocks of keys, and a share of the columns to add up.
    -- Of V apart 3000 clocks less: of 63 raced prompts (H200) few tiles took other configs else, up to 1.18 of the time.
    local near_tile, clock = near(c) and (l.v_in_k and 6500 or 3500) or 0, 1
    -- And where tiles are fewer than clusters, the chip has power left and its clock is higher: of 4 and of 32 tiles a block of keys took
    -- 0.73 and 0.82 of the time of 64.
    if near(c) then
      local idle = math.max(0, 1 - (p.sq * (p.hq // p.hkv) + c.br - 1) // c.br * p.hkv * p.b * c.cluster / a.sm_count)
      clock, wait = 1 + 0.3 * idle, wait * (1 - idle)
    end
    -- Two blocks that share halves, under a diagonal: 1.0 to 1.25 of the rate of whole blocks of keys at d = 384 and 512 on an H200, of 600
    -- rows and more. What they read and write takes less of shared memory's time than by count.
    local sharing = l.halves and c.cluster > 1 and edges.grow(p)
    if sharing then clock = p.d <= 384 and 1.36 or 1.28 end
    -- Halves by one block: Q of the next tile comes beside the last P V, and of 63 raced shapes (H200, 350 to 8k rows) the shorter were
    -- priced the higher. Without a diagonal two blocks wait for each other and get nothing for it.
    local tile = 4000 + c.br * p.d // 16
    if l.halves and c.cluster == 1 then tile = edges.grow(p) and 2500 or 0 end
    if l.halves and c.cluster > 1 and not sharing then wait = wait + 450 end
    return {
      rows = c.br * (near(c) and 1 or c.cluster), cols = c.bc * (near(c) and c.cluster or 1), group = near(c) and 0 or c.br,
      matrix_flops = 2 * (round_up(p.d, 16) + columns),
      unit = "wgmma16",
      efficiency = clock,
      exps = 1 + program_cost(p).exps,
      issue = elements * 10 + 700 + math.floor(elements * program_cost(p).issue_ahead),
      -- K and V are read by products, Q once for each block of keys; and written by copies.
      smem_bytes = c.bc * (round_up(p.d, 16) + columns) * 2 + c.br * (round_up(p.d, 16) - c.q_held * c.box) * 2
        + c.bc * (p.d + (l.v_in_k and 0 or p.dv)) * (sharing and 1 or 2),
      latency = (sharing and 100 or 300) + wait,
      tile_latency = tile + near_tile,
      -- As raced at d = 512. Under a diagonal blocks are apart, and less of what they read is the same.
      l2_speed = l.halves and (c.cluster == 1 and edges.grow(p) and 1.75 or 1.9) or 1.5,
      bytes = l.v_in_k and p.b * (p.hq * p.sq * (p.d + p.dv) + p.hkv * p.sk * p.d) * 2 or nil,
      regs = l.regs,
    }
  end,
}

local made = family("attention of wide heads on wgmma and TMA (fp16, bf16): two warpgroups share rows, keys cut into parts", rows,
  function(p, c) return true end,
  function(p, c) return 4000 + c.br * p.d // 8 + c.bc * (p.d + p.dv) // 12 end, function(p, a) return a.wgmma16_flop end,
  PART_CLOCKS, "lengths+pages+lse-strides+score+v-in-k")
-- Few blocks store parts at a time where they are fewer than SMs: each takes less.
local work = made.work
made.work = function(p, c, a, l)
  local steps = work(p, c, a, l)
  local first = steps[p.low and 2 or 1]  -- after K and V of few bits have become 16
  if l.placed then
    for _, speed in ipairs({ "efficiency", "hbm_speed", "l2_speed" }) do first[speed] = (first[speed] or 1) * BY_LENGTH_PAYS end
    first.tile_latency = first.tile_latency + BY_LENGTH_CLOCKS
  end
  local blocks = (p.sq * (p.hq // p.hkv) + c.br - 1) // c.br * p.hkv * p.b * (first.cuts or 1)
  if first.cuts and first.cuts > 1 and blocks < a.sm_count then
    local rows = math.min(c.br, p.sq * (p.hq // p.hkv))
    first.tile_latency = first.tile_latency - math.floor(PART_CLOCKS * (1 - math.max(0.4, blocks / a.sm_count))) * rows * p.dv // 16384
  end
  return steps
end
local layout = made.layout
made.layout = function(p, c, a)
  local l = layout(p, c, a)
  l.columns = l.all_columns
  l.counts = not (l.merges or near(c))
  l.half_parts = p.has_v_in_k and l.merges and not l.walks and p.o_bytes == 2 or nil
  l.parts_batch = 2 -- mostly there are two to four parts
  if l.counts then -- both warpgroups leave states of a row
    l.part_tiles = l.part_tiles // CONSUMERS
    l.merge_clocks, l.part_clocks = LAST_CLOCKS, LAST_PART_CLOCKS
  end
  return l
end
made.splits = nil
made.head_dim = 576
for _, t in ipairs(made.tunables) do
  if t[1] == "combine" then
    t[2] = { { 1, "second_kernel" }, { NEAR, "cluster" }, { 0, "last_warp" } }
    t[3] = "what adds up the parts of a tile: a second kernel, the blocks of a cluster, each of which has a part, " ..
      "or the last of the warps with the same rows and columns"
  elseif t[1] == "parts" then
    local values = {}
    for i, value in ipairs(t[2]) do values[i] = value end
    values[#values + 1] = { BY_LENGTH, "by_length" }
    t[2], t[3] = values, t[3] .. "; by_length = as by_cost, or where lengths are unlike parts of one length"
  end
end
made.constraints[#made.constraints + 1] = { "by_length", function(p, c)
  if c.parts ~= BY_LENGTH then return true end
  if not p.has_lengths or p.has_batch_invariant then
    return false, "parts by length are of sequences with lengths, which only the device knows"
  end
  if near(c) or c.cluster > 1 then return false, "blocks of a cluster have tiles of their own" end
  if c.combine ~= 1 then return false, "parts by length are added up by a second kernel" end
  return true
end, upto = "combine" }
made.constraints[#made.constraints + 1] = { "shared", function(p, c)
  if c.cluster == 1 or near(c) then return true end
  if c.cluster > 2 then return false, "two blocks at most share K and V" end
  if c.combine == 0 then return false, "warps of both blocks would count as one: a second kernel adds up parts" end
  if p.sq > 0 and p.sq * (p.hq // p.hkv) <= c.br then return false, "one block has all rows of a head" end
  if p.has_pages or c.bc // c.cluster % 8 == 0 then return true end
  return false, "half of " .. c.bc .. " keys is no multiple of 8"
end, upto = "combine" }
made.constraints[#made.constraints + 1] = { "near", function(p, c)
  if not near(c) then return true end
  if c.cluster == 1 then return false, "parts are added up in a cluster of two blocks or four" end
  if c.parts ~= 0 then return false, "a tile has as many parts as a cluster has blocks" end
  local columns = columns_of(p, c)
  if columns * CONSUMERS > round_up(p.dv, c.box) then return false, "both warpgroups have the middle of " .. p.dv .. " columns" end
  if columns // 8 % c.cluster > 0 then return false, columns .. " columns of a warpgroup are no " .. c.cluster .. " shares" end
  local l = places(p, c)
  if l.exchange - l.k >= c.br * (columns * CONSUMERS * 4 + 8) then return true end
  return false, "O in fp32 finds no room where K and V were"
end, upto = "combine" }
made.tunables[#made.tunables + 1] = { "q_held", { 0, 1, 2 },
  "boxes of Q that registers hold: products of Q and K read so much less in shared memory", later = true }
made.constraints[#made.constraints + 1] = { "held", function(p, c, a)
  if halves(c) then
    if c.q_held ~= 1 then return false, "one box of Q has its place where P is exchanged" end
    if c.combine ~= 1 then return false, "halves of columns: a second kernel adds up parts" end
    return true
  end
  if c.q_held == 0 then return true end
  if p.has_v_in_k then return false, "S begins with the boxes of K that come first" end
  local _launch, consumer = registers(a, c)
  local need = registers_of(p, c) + c.q_held * c.box // 4
  if need <= consumer then return true end
  return false, "S, P, O and what is held of Q with 36 others take " .. need .. " > " .. consumer .. " registers"
end, upto = "q_held", about = "registers" }
-- Tiles of more than two thirds of a round, and a sixteenth for what a bucket has besides, are never cut: then no second kernel is to begin
-- and end, 3 to 5 us of a launch on an H200 (docs/experiments.md). Where they are cut the last of the warps takes 10 to 15 us longer.
-- How many tiles a dense call has is known, and the price tells whether they are cut.
-- Parts of a cluster of two are offered where their tiles are one round of the chip. On an H100 sharing rows, clusters of four and boxes of
-- 32 columns won nothing: a tuner finds them, and a config can name them.
made.start = function(p, a)
  local list, tiles = {}, (p.sq * (p.hq // p.hkv) + 63) // 64 * p.hkv * p.b
  local by_length = p.has_lengths and not p.has_batch_invariant and tiles * BY_LENGTH_BLOCKS > a.sm_count
  for _, bc in ipairs({ 64, 48, 32 }) do
    for _, stages in ipairs({ { 4, 4 }, { 2, 2 }, { 2, 1 }, { 3, 3 } }) do
      local function add(cluster, grid, combine, held, box, parts)
        list[#list + 1] = { br = 64, ctas = 1, feeder = 40, schedule = 0, bc = bc, box = box or BOX, stages_k = stages[1],
          stages_v = stages[2], q_bufs = 1, q_held = held or 0, grid = grid, ahead = 0, sections = 1, cluster = cluster, rescale = 2,
          exp = 0, convert = 0, o_path = 0, parts = parts or 0, combine = combine }
      end
      add(1, "persistent", "second_kernel")
      if by_length then add(1, "persistent", "second_kernel", 0, BOX, BY_LENGTH) end
      local one_kernel = p.has_v_in_k and tiles * 48 > a.sm_count * 34 or not (p.has_v_in_k or p.has_lengths)
      if one_kernel then add(1, "persistent", "last_warp") end
      if bc == 32 and not p.has_v_in_k then
        add(1, "persistent", "second_kernel", 2)
        if one_kernel then add(1, "persistent", "last_warp", 2) end
      end
      if tiles * 2 <= a.sm_count then add(2, "static", "cluster") end
      -- Of few tiles nothing hides the box that both warpgroups would sum up: 1.15 to 1.3 of the rate of others at d = 320 on an H200.
      local narrow = bc == 64 and stages[2] == 2 and columns_of(p, { box = 32 }) < columns_of(p, { box = BOX })
      if tiles * 2 <= a.sm_count and narrow then add(2, "static", "cluster", 0, 32) end
    end
  end
  -- Of several tiles to a head halves of columns, and half as many heads side by side: 1.04 to 1.07 of the rate at d = 512 on an H200.
  if not p.has_v_in_k and p.sq * (p.hq // p.hkv) > 64 then
    for cluster = 1, edges.grow(p) and 2 or 1 do
      list[#list + 1] = { br = 64, ctas = 1, feeder = 24, schedule = HALVES, bc = 64, box = BOX, stages_k = p.d > 384 and 5 or 6,
        stages_v = 1, q_bufs = 1, q_held = 1, grid = "persistent", ahead = 0, sections = 2, cluster = cluster, rescale = 2, exp = 0,
        convert = 0, o_path = 0, parts = 0, combine = "second_kernel" }
    end
  end
  return list
end
return made
