-- flash_fwd_wgmma: flash attention forward with wgmma and TMA, for sm_90a. A producer warpgroup loads for the block through tensor maps;
-- one to four others own 64 rows of Q each and walk the keys in blocks of B_c (FlashAttention-3, Shah and others 2024; cuDNN's Hopper
-- kernels for the second schedule).

local masked = include "families/masked_family.lua"
local round_up = include "families/round_up.lua"

local function gcd(x, y) return y == 0 and x or gcd(y, x % y) end

local split = include "families/split_family.lua"
local hopper = include "families/hopper_family.lua"
local values_of = include "pairs/values.lua"
local program_cost = include "pairs/program_cost.lua"
local price = include "families/hopper_price.lua"
local ways_of_scores = include "families/hopper_scores.lua"
local staged = include "pairs/staged.lua"
local edges = include "pairs/edges.lua"
local mask_places = include "pairs/mask_places.lua"
local mask_cost = include "pairs/mask_cost.lua"

-- O of a warpgroup's rows of so many columns leaves registers for S of 48 keys; above 256 a block's P V is two products.
local WIDEST, ONE_PRODUCT = 320, 256

-- Registers per thread that S, P and O take, and a score program: arrays that it reads by the key come before S, two keys to a register.
-- Half as many besides, and for other lookups by the key, which all are under way together, one for each two: of thirty compiled those that
-- spilled would have found room without.
-- Where these lie in shared memory they take none. packed: rows of several heads, of which they never do.
local function matrices(p, c, packed)
  local program = program_cost(p)
  if not packed and staged.wanted(p) then
    return c.bc // 2 + c.bc // 4 + round_up(p.dv, 8) // 2 + program.regs_staged + (program.cuts_beside and c.bc // 2 or 0)
  end
  -- Ends of a row are found where a mask of the launch has them; what is staged is read as it is compared.
  local regs = program.regs_ahead
  if p.score and (edges.ends(p) or not packed and mask_places.wanted(p, c)) then regs = regs - program.mask_regs end
  local lookups = (program.cuts_beside and c.bc // 2 or 0) + (program.of_distance and c.bc // 5 or 0)
  for _, of in ipairs(program.arrays) do lookups = lookups + (of.wide and 5 or 3) * c.bc // 8 end
  return c.bc // 2 + c.bc // 4 + round_up(p.dv, 8) // 2 + regs + lookups
end

-- What a warpgroup's others take beside them.
local function others(p, c)
  local masked = edges.cuts_right(p) or p.has_lengths
  local n = masked and p.dv > 128 and 30 or 26
  if edges.cuts_left(p) then n = 32 end
  if masked and (c.ctas == 2 or c.br == 64) or p.has_lengths and p.dv > 128 then n = 34 end
  if edges.cuts_left(p) and (c.br == 64 or p.dv > 224) then n = 36 end
  if edges.cuts_left(p) and p.has_lengths then n = 38 end
  if p.dv > ONE_PRODUCT then n = 40 end -- of 14 with 48 keys those with 36 spilled in the loop, with 44 a few bytes of a tile
  return n
end

-- What a start leaves the producer.
local function feeder_of_start(p, c) return p.dv > ONE_PRODUCT and 24 or c.br <= 128 and 40 or 32 end

-- Registers per thread: at the launch, and after the producer warpgroup, which keeps `feeder`, gave its own back (setmaxnreg).
local function after_launch(a, c, feeder)
  local wgs = c.br // 64
  local threads = 128 * (wgs + 1)
  local launch = math.min(a.regs_thread, a.regs_sm // (threads * c.ctas) // 8 * 8)
  local pool = launch * (wgs + 1) -- in units of 128
  return launch, math.max(launch, math.min(240, (pool - feeder) // wgs // 8 * 8))
end
-- A producer that asks what a score program's mask is on blocks of keys wants more, and more yet where it looks into tables of pairs: with
-- 72 it spilled 0 to 28 bytes of documents, and with 88 some 44 of a matrix, in what it does once for 32 blocks. Without tables of pairs it
-- gets them where the others leave them: a search that spills is still done before its tile begins, and larger tiles begin less often. On
-- an H100 documents took 0.84 to 0.90 of the time of tiles with fewer rows, and 1.03 at d = 128 and 16k; of matrices some took more.
-- With mask_lines the producer does not search; it copies bytes of an array by pairs with 24 registers more. Words of bits it copies with
-- those that it has, and spills: tiles of more rows are worth it, 0.90 of the time of a tree at d = 64 and 16k.
local function feeder_of(a, c, p)
  if not p.score or not edges.scans(p) or not c.bc then return c.feeder end
  if not c.parts and mask_places.wanted(p, c) then
    return c.feeder + (mask_places.plane(p, c) and not p.score.staged_mask.lookup.bits and 24 or 0)
  end
  if (edges.tables(p) or ""):find("mask_pairs") then return c.feeder + 48 end
  local wide = c.feeder + 32
  local _launch, consumer = after_launch(a, c, wide)
  return matrices(p, c, c.parts ~= nil) + others(p, c) <= consumer and wide or c.feeder
end
local function registers(a, c, p) return after_launch(a, c, feeder_of(a, c, p)) end

-- What seldom pays is tried one by one, from where all else is usual: these, in the order of the tunables.
local unusual = {
  { "feeder", function(c) return c.feeder ~= (c.br <= 128 and 40 or 32) end },
  { "schedule", function(c) return c.schedule == c.named.schedule.pingpong_exp end },
  { "stages_v", function(c) return c.stages_k ~= c.stages_v end },
  { "grid", function(c) return c.grid == c.named.grid.per_tile end },
  { "ahead", function(c) return (c.ahead == 1) ~= (c.q_bufs == 2 and c.grid ~= c.named.grid.per_tile) end },
  { "sections", function(c) return c.sections ~= 1 end },
  { "cluster", function(c) return c.cluster ~= 1 or c.grid == c.named.grid.static end },  -- clusters that stay have static tiles
  { "rescale", function(c) return c.rescale ~= c.named.rescale.lazy_scaled end },
  { "exp", function(c) return c.exp ~= 0 end },
  { "convert", function(c) return c.convert == c.named.convert.late end },
  { "o_path", function(c) return c.o_path == c.named.o_path.tma_q and c.q_bufs == 1 end },  -- the next Q waits for O
}

-- Of the first `last` at most one. Asked at each of them, for what it spares: most configs fail here.
local function departures(last)
  local mine = unusual[last][2]
  return { "departures", function(p, c)
    if not mine(c) then return true end
    for i = 1, last - 1 do
      if unusual[i][2](c) then return false, unusual[i][1] .. " and " .. unusual[last][1] .. " are unusual, one by one is tried" end
    end
    return true
  end, upto = unusual[last][1], search = true }
end

-- Where Q (by buffer and warpgroup), K and V (by stage) lie in shared memory, in bytes from its start. packed: rows of several heads.
-- stages: of arrays of a score program, each of `group` blocks of keys.
local function buffers(p, c, packed, stages, group)
  local row = c.box * 2
  local boxes, boxes_v = (p.d + c.box - 1) // c.box, (p.dv + c.box - 1) // c.box
  local l = { row = row, boxes = boxes, boxes_v = boxes_v }
  l.k = c.q_bufs * c.br * boxes * row
  l.v = l.k + c.stages_k * c.bc * boxes * row
  l.bytes = l.v + c.stages_v * c.bc * boxes_v * row
  if not packed and staged.wanted(p) then -- arrays of a score program
    l.staged = staged.places(p, c, stages, group)
    l.staged.at = l.bytes
    l.bytes = l.bytes + round_up(l.staged.stages * l.staged.bytes, 1024) -- O, which follows, lies in patterns of so many bytes
  end
  if p.score and not packed and mask_places.wanted(p, c) then -- what its mask reads
    l.masks = mask_places.of(p, c)
    l.masks.at = l.bytes
    l.bytes = l.bytes + l.masks.stages * l.masks.bytes
  end
  return l
end

-- After them: O where it has a buffer of its own, the mbarriers, what is published of tiles.
local function places(p, c, stages, group)
  local l = buffers(p, c, c.parts, stages, group)
  l.wgs = c.br // 64
  l.o = l.bytes
  l.barriers = l.o + (c.o_path == 2 and c.br * l.boxes_v * l.row or 0)
  local barriers = 2 * c.stages_k + 2 * c.stages_v + 2 * c.q_bufs * l.wgs + (c.grid > 0 and 5 or 0)
  if p.has_lengths then barriers = barriers + c.stages_v + (c.parts and 0 or c.q_bufs * l.wgs) end
  if l.staged then
    l.staged.barriers = barriers
    barriers = barriers + 2 * l.staged.stages
  end
  if l.masks then
    l.masks.barriers = barriers
    barriers = barriers + 2 * l.masks.stages
  end
  l.slots = round_up(l.barriers + 8 * barriers, 16)
  -- Where a tile is, and its sequence; what is loaded, and what each warpgroup does of it.
  if c.parts then
    l.parts = true
  elseif p.has_lengths then
    l.part_tiles = split.rows_sm // (c.br * c.ctas)
    -- How many parts there are depends on the batch. Adding them up beside the next tile's scores takes more registers than there are: of
    -- 44 configs compiled, five with ahead = 1 spilled, none with 0.
    l.parts = l.part_tiles > 1 and c.ahead == 0 and not p.has_batch_invariant
    l.counts = l.parts
  end
  l.ranges = (p.has_lengths and (edges.right(p) and 48 or 32) or 16) + (l.parts and 16 or 0)
  l.slot = l.ranges + ((edges.cuts_right(p) or p.has_lengths) and 16 + (l.masks and 0 or 16 * l.wgs) or 0)
  l.bytes = l.slots + (c.grid > 0 and 2 * l.slot or 0)
  -- The first and the last key of each row.
  if p.score and (edges.ends(p) or l.masks and p.score.solved_in_part) then
    l.row_ends = l.bytes
    l.bytes = l.bytes + 8 * c.br
  end
  if p.score and edges.scans(p) then -- which block of keys each buffer of K holds
    l.codes = l.bytes
    l.bytes = l.bytes + 16 * ((c.stages_k + 3) // 4)
  end
  if p.has_lengths then -- what the scheduler searches tiles with
    l.order = l.bytes
    l.bytes = l.order + (l.parts and p.has_batch_invariant and 48 + 32 * 32 or 32 + 32 * 16)
  end
  return l
end

-- What a block may take, where `ctas` share an SM.
local function shared_memory(a, c) return math.min(a.smem_block, a.smem_sm // c.ctas - a.smem_reserved) end

-- Counted by compiling some 700 (NVRTC 13.0): 24 others are too few for any config, 26 are enough but for a few kinds. In a window
-- 28 were once too few; 32 is the most that leaves d = 64 its four warpgroups and 64 keys. Of 1,300 more at the edge seven spilled,
-- with O in more than 64 registers or, in a window, one warpgroup. With lengths 1,600 were compiled: 128 rows spilled with
-- 96 keys at d = 256, and with 112 in a window at d = 224, and one warpgroup without a mask.
local function accumulators(packed)
  return function(p, c, a)
    local _launch, consumer = registers(a, c, p)
    local others = others(p, c)
    local need = matrices(p, c, packed) + others
    if need <= consumer then return true end
    return false, "S, P and O with " .. others .. " others take " .. need .. " > " .. consumer .. " registers"
  end
end

local function fits(packed)
  return function(p, c, a)
    local need, most = buffers(p, c, packed).bytes, shared_memory(a, c)
    if need <= most then return true end
    return false, "Q, K and V take " .. need .. " > " .. most .. " bytes"
  end
end

-- Score programs under which rows may keep their maximum: where no score is computed, and where it was raced and not slower.
local function keeps_maxima(p)
  local score = p.score
  if not score or not (score.has_score or score.has_mask) then return true end
  if score.most or score.has_mask and score.has_score then return false end
  local of = score.has_score and #score.arrays == 1 and score.arrays[1]
  local of_distance = score.of_distance and score.adds == score.of_distance and p.d + p.dv <= 256
  return p.d + p.dv <= (score.has_mask and 256 or 128) or of_distance
    or of and (of.by_row and not of.wide or of.diagonal and score.adds == of.node)
end

local function convert(packed)
  return function(p, c, a)
    local steady = c.rescale > 3
    if c.convert == 1 and not steady then return true end
    -- P is as large as its row's sum, which fp16 could not hold.
    if steady and (p.dtype ~= "bf16" or p.has_lengths or c.parts) then
      return false, "rows that keep their maximum are for bf16 without lengths and parts"
    end
    if steady and not keeps_maxima(p) then return false, "under this score program rows do not keep their maximum" end
    if steady and c.convert == 1 then return true end
    if steady then return false, "rows that keep their maximum go with convert=early" end
    if c.schedule == c.named.schedule.pingpong_exp then
      return false, "turns at the exponentials are for P that becomes 16-bit on the way"
    end
    -- Of 64 compiled under a causal mask, 4 of the 24 with 28 others spilled, none of the 28 with 32.
    local _launch, consumer = registers(a, c, p)
    local need = matrices(p, c, packed) + 30
    if not edges.cuts_right(p) or need <= consumer then return true end
    return false, "S, P and O with 30 others, under a mask where P becomes 16-bit after both, take " .. need .. " > " .. consumer ..
      " registers"
  end
end

return masked {
  doc = "flash attention forward on wgmma and TMA (fp16, bf16)",
  -- Constraints of families whose tiles have rows of several heads, in the place of those of the same name.
  packed = { accumulators = accumulators(true), buffers = fits(true), convert = convert(true) },

  tile = { "br", "bc" },
  features = "lengths+pages+batch-invariant+dropout+lse-strides+no-workspace+score",
  head_dim = WIDEST,

  tunables = {
    { "br", { 64, 128, 192, 256 }, "B_r: rows of Q per block, 64 for each consumer warpgroup" },
    { "ctas", { 1, 2 }, "blocks per SM" },
    { "feeder", { 24, 32, 40 }, "registers per thread that the producer warpgroup keeps" },
    { "schedule", { { 0, "plain" }, { 1, "pingpong" }, { 2, "pingpong_exp" } },
      "S of the next block is issued beside P V: plain = when a warpgroup gets there, pingpong = in turns; " ..
      "pingpong_exp = the exponentials are taken in turns" },
    { "bc", { 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256 }, "B_c: keys per iteration", step = 2 },
    { "box", { 64, 32, 16 }, "columns of a TMA box: rows of 128, 64 or 32 bytes, swizzled" },
    { "stages_k", { 2, 3, 4, 6 }, "buffers of K in shared memory" },
    { "stages_v", { 1, 2, 3, 4, 6 }, "buffers of V in shared memory", step = 2 },
    { "q_bufs", { 1, 2 }, "buffers of Q" },
    { "grid", { { 2, "persistent" }, { 1, "static" }, { 0, "per_tile" } },
      "how blocks get tiles: persistent = they stay and the next that is free draws one, " ..
      "static = they stay and get theirs beforehand, back and forth; per_tile = one block each" },
    { "ahead", { 0, 1 }, "the first scores of a tile are issued 0 = when the tile before is over, 1 = beside its last P V" },
    { "sections", { 1, 2, 4 }, "heads that are walked side by side fill this part of two thirds of the L2" },
    { "cluster", { 1, 2 }, "blocks with neighbouring rows that share K and V: each loads half and sends it to both" },
    { "rescale", { { 3, "lazy_scaled" }, { 2, "lazy" }, { 1, "moved" }, { 0, "always" }, { 4, "steady" } },
      "O is rescaled always = for each block of keys, moved = where a maximum moved, " ..
      "lazy = where it moved by more than 8 in log2 units; lazy_scaled = as lazy, seen after the scale; " ..
      "steady = where a row's sum is large, but as lazy_scaled while its maximum is not near 0" },
    { "exp", { 0, 16, 8 }, "exponentials: 0 = all on the special-function unit, N = one in N as a polynomial on the FMA units" },
    { "convert", { { 1, "early" }, { 0, "late" } },
      "P becomes 16-bit early = as its exponentials come, which follow the P V before; late = after both, which run side by side" },
    { "o_path", { { 0, "direct" }, { 1, "tma_q" }, { 2, "tma" } },
      "O goes back: direct = from registers, tma_q = by TMA from the buffer of Q, tma = by TMA from a buffer of its own" },
  },

  -- Persistent blocks, two buffers; tiles by what registers hold: the two widest blocks of keys, and a narrow one. Where tiles are few,
  -- one warpgroup to a block makes twice as many, and two such blocks to an SM hide each other's waits.
  -- packed: rows are those of all heads of a group.
  start = function(p, a, packed)
    local list = {}
    local scans = p.score and edges.scans(p)
    -- Where rows that keep their maximum were raced and gained: short rows of K and V, numbers by key - query up to d = 128, and biases at
    -- d = 64 and 128.
    local has_score = p.score and p.score.has_score or false
    local of = has_score and p.score.arrays[1]
    local adds = of and of.diagonal or has_score and p.score.of_distance
    local raced = p.d + p.dv <= (has_score and (adds and 256 or 128) or 192)
    if of and of.by_row and not of.diagonal then raced = p.d + p.dv <= 128 or p.d + p.dv > 192 end
    if edges.walks(p) and not has_score and p.d + p.dv <= 256 then raced = true end
    local steady = p.dtype == "bf16" and not p.has_lengths and keeps_maxima(p) and raced
    local dense = not p.has_lengths and not p.score and p.d == p.dv -- what was raced in full
    local rows = packed and p.sq * (p.hq // p.hkv) or p.sq
    -- Whether two buffers of each of K and V, and so many of Q, find room.
    local key_bytes, query_bytes = 4 * (round_up(p.d, 64) + round_up(p.dv, 64)), 2 * round_up(p.d, 64)
    local function fit(c, bc, q_bufs) return bc * key_bytes + q_bufs * c.br * query_bytes + 1024 <= shared_memory(a, c) end
    -- Of one tile or two to a block a second buffer of Q costs more than it hides: 1.02 to 1.04 of the time of one in 52 pairs. O by TMA
    -- from a buffer of its own takes 0.98 to 0.99 of the time of O from registers, in 230 pairs where no tile begins early.
    local function short(c) return (p.sq + c.br - 1) // c.br * p.hq * p.b <= 2 * a.sm_count * c.ctas end
    -- Of arrays by rows 0.98, beside two stages of them.
    local function staged_bytes(c, bc) return staged.places(p, { br = c.br, bc = bc }).bytes * staged.least end
    local function o_fits(c, bc)
      if p.o_bytes ~= 2 or not fit(c, bc, 2) then return false end
      return dense or bc * key_bytes + 2 * c.br * query_bytes + staged_bytes(c, bc) + 3072 <= shared_memory(a, c)
    end
    local function by_rows(bc) return p.d + p.dv <= 128 and not packed and staged.wanted(p) and staged.by_rows(p, { bc = bc }) end
    -- Between the widest and 64 keys one more.
    local function between(last) return last >= 144 and 96 or last >= 96 and 80 or 0 end
    -- Rows between two atoms of 64 bytes, of which memory is read, take no boxes of so many: see price.hbm_speed().
    local halves = (p.d % 64 > 0 or p.dv % 64 > 0) and (not dense or p.d % 32 == 0)
    local clusters = p.d > 128 and p.d % 16 > 0 and (dense or not edges.cuts_right(p) and not p.has_lengths) -- see price.feed_rate()
    local function add(c, box, bc, cluster, stages, schedule, o_path)
      -- A second buffer of Q where there is room.
      local two = c.br == 64 and (not dense or not short(c) and fit(c, bc, 2))
      list[#list + 1] = {
        br = c.br, ctas = c.ctas, feeder = feeder_of_start(p, c), schedule = schedule or c.schedule, bc = bc, box = box,
        stages_k = stages or 2, stages_v = stages or 2, q_bufs = two and 2 or 1, grid = cluster > 1 and "static" or "persistent",
        ahead = two and 1 or 0,
        sections = 1, cluster = cluster, rescale = steady and "steady" or "lazy_scaled", exp = 0, convert = "early",
        o_path = o_path or (dense or by_rows(bc)) and not two and o_fits(c, bc) and "tma" or "direct",
      }
    end
    -- Where a scan finds the blocks, tiles are short, and what their warpgroups see of them differs: O leaves beside the next tile, and
    -- no warpgroup waits for a turn at the products.
    local function add_scanned(c, bc)
      if c.br == 64 or p.o_bytes ~= 2 then return end
      local stages = bc <= 80 and 4 or 3
      local function bytes(n)
        return places(p, { br = c.br, ctas = c.ctas, bc = bc, box = 64, stages_k = n, stages_v = n, q_bufs = 1, grid = 2, ahead = 0,
          o_path = 2 }).bytes
      end
      while stages > 2 and bytes(stages) > shared_memory(a, c) do stages = stages - 1 end
      for _, schedule in ipairs({ "plain", "pingpong_exp" }) do add(c, 64, bc, 1, stages, schedule, "tma") end
    end
    for _, c in ipairs({ { br = 64, ctas = 1, schedule = "plain", wide = 2 }, { br = 64, ctas = 2, schedule = "plain", wide = 2 },
                         { br = 128, ctas = 1, schedule = "pingpong", wide = 2 }, { br = 128, ctas = 1, schedule = "plain", wide = 0 },
                         { br = 192, ctas = 1, schedule = "pingpong", wide = 2 },
                         { br = 256, ctas = 1, schedule = "pingpong", wide = 2 } }) do
      local _launch, consumer = registers(a, { br = c.br, ctas = c.ctas, feeder = feeder_of_start(p, c) }, p)
      local room = math.min(224, (consumer - 26 - round_up(p.dv, 8) // 2) * 4 // 3)
      local n, last, one_more = 0, 0, dense and c.wide > 0 and not (packed and c.br > 192)
      if dense and c.br > 64 and rows <= 64 then room = 0 end -- one tile of 64 rows holds them all
      for _, bc in ipairs({ 224, 192, 176, 160, 144, 128, 112, 96, 80, 64, 48 }) do
        local wide = n < c.wide and (not dense or (bc > 48 or c.ctas == 1) and fit(c, bc, 1))
        wide = wide or adds and bc == 128 and c.br == 128 and c.wide > 0
        local grained = scans and bc > 64 and p.score.grain % bc == 0
        if bc <= room and (wide or bc == 64 or grained or one_more and bc == between(last)) then
          n, last = n + 1, bc
          add(c, 64, bc, 1)
          if (edges.walks(p) or adds and bc <= 64) and bc <= 96 then add(c, 64, bc, 1, 3) end -- see work()
          if (scans or edges.walks(p) and bc <= 96) and c.wide > 0 then add_scanned(c, bc) end
          local few = scans and p.d <= 32 and n > 1 and bc > 64 -- there are many
          if halves and not few and (not dense or n == 1 and c.ctas == 1 and c.br < 192 or bc == 64 and not packed) then add(c, 32, bc, 1) end
          if clusters and c.br > (dense and not packed and c.ctas == 1 and 0 or 64) and bc == 64 then add(c, 64, bc, 2) end
        elseif scans and c.br == 128 and c.wide == 0 and bc == 128 and bc <= room then
          add_scanned(c, bc) -- runs of keys end at multiples of it
        end
      end
    end
    return list
  end,

  supports = function(p, a)
    if not a.has_wgmma then return false, "no wgmma on " .. a.name end
    if p.bytes ~= 2 then return false, "wgmma multiplies fp16 and bf16 here, not " .. p.dtype end
    if p.align < 16 then return false, "TMA needs rows at multiples of 16 bytes, not " .. p.align end
    if p.page > 0 and p.page < 16 then return false, "a box for each page of " .. p.page .. " tokens would be too small" end
    if p.score and math.max(p.d, p.dv) > ONE_PRODUCT and (edges.walks(p) or #program_cost(p).arrays > 0) then
      return false, "masks and arrays of score programs beside more than " .. ONE_PRODUCT .. " columns"
    end
    return true
  end,

  constraints = {
    -- The one config of the class serves single tokens too: each would be computed in a whole tile.
    { "tokens", function(p, c)
      if not p.has_lengths or not p.has_batch_invariant then return true end
      return false, "single tokens would take whole tiles"
    end, upto = "br", search = true },
    -- A block for each tile would be a grid for the longest lengths, of which most blocks may have nothing to do.
    { "varlen_grid", function(p, c)
      if not p.has_lengths or c.grid ~= c.named.grid.per_tile then return true end
      return false, "how many tiles there are is known on the device alone"
    end, upto = "grid" },
    { "feeder", function(p, c, a)
      if edges.cuts_left(p) and c.feeder < 32 then
        return false, "the tile scheduler of a window needs more than " .. c.feeder .. " registers"
      end
      -- Of 500 with lengths compiled 4 spilled, all causal with 24; none with 32 or 40.
      if p.has_lengths and c.feeder < 32 then
        return false, "the tile scheduler needs more than " .. c.feeder .. " registers to find tiles"
      end
      if staged.wanted(p) and not c.pack and c.feeder < 32 then
        return false, "the warp that brings arrays of a score program needs more than " .. c.feeder .. " registers"
      end
      if c.feeder >= 40 then return true end
      local _launch, consumer = registers(a, c, p)
      for _, more in ipairs({ 40, 32 }) do
        if more > c.feeder then
          local _, same = registers(a, { br = c.br, ctas = c.ctas, feeder = more }, p)
          if same == consumer then return false, "with " .. more .. " the others get " .. consumer .. " likewise" end
        end
      end
      return true
    end, upto = "feeder" },
    { "accumulators", accumulators(false), upto = "bc", about = "registers" },
    { "operands", function(p, c, a)
      if c.br <= 128 and c.ctas == 1 then return true end -- 168 and more, for 256 columns
      local launch, need = registers(a, c, p), math.max(c.bc, round_up(p.dv, 8)) // 2 + 30
      if need <= launch then return true end
      return false, "the assembler wants " .. need .. " > " .. launch .. " registers at the launch for one product"
    end, upto = "bc", about = "registers" },
    hopper.box,
    -- K is needed one block before V. Copies take about 1700 clocks, so that many buffers are for small blocks. In a window each
    -- warpgroup begins and ends a tile a block after the one below it: buffers let them.
    { "stages", function(p, c)
      if c.stages_k ~= c.stages_v and c.stages_k ~= c.stages_v + 1 then
        return false, c.stages_k .. " of K do not go with " .. c.stages_v .. " of V"
      end
      if c.stages_k < 4 or (c.stages_v == c.stages_k and c.bc <= 80 and (c.stages_k == 4 or edges.cuts_left(p))) then return true end
      return false, "four are for blocks of at most 80 keys, six for windows"
    end, upto = "stages_v" },
    { "buffers", fits(false), upto = "q_bufs", about = "shared memory" },
    { "turns", function(p, c)
      if c.br > 64 or c.schedule == c.named.schedule.plain then return true end
      return false, "one warpgroup has no other to take turns with"
    end, upto = "schedule" },
    departures(2), departures(3), departures(4), departures(5), departures(6), departures(7), departures(8), departures(9), departures(10),
    departures(11),
    -- Raced at d = 64 and 128 on an H200: 0.96 to 1.01 of the time, and a fifth less to compile.
    { "rescale", function(p, c)
      local score = p.score
      local adds = score and score.has_score and score.of_distance and score.adds == score.of_distance and p.d + p.dv <= 256
      if not adds or p.dtype ~= "bf16" or p.has_lengths or c.parts or c.rescale ~= c.named.rescale.lazy_scaled then return true end
      if c.schedule == c.named.schedule.pingpong_exp or c.exp > 0 then return true end
      return false, "rows keep their maximum (steady) where one number by key - query is added"
    end, upto = "exp" },
    { "convert", convert(false), upto = "convert" },
    { "q_bufs", function(p, c)
      if c.q_bufs == 1 or c.grid ~= c.named.grid.per_tile then return true end
      return false, "a block with one tile has one Q"
    end, upto = "grid" },
    { "ahead", function(p, c)
      if c.ahead == 0 or c.grid > 0 and c.q_bufs == 2 then return true end
      return false, "a tile begun under the end of another needs a second buffer of Q, and blocks with many tiles"
    end, upto = "ahead" },
    { "scan", function(p, c)
      if not p.score or not edges.scans(p) or c.grid ~= c.named.grid.per_tile and c.cluster == 1 then return true end
      return false, "the tile scheduler finds whether the score program's mask leaves a block of a tile"
    end, upto = "cluster" },
    { "cluster", function(p, c)
      if c.cluster == 1 then return true end
      if p.has_lengths then return false, "tiles of sequences of their own lengths have no neighbours to share K and V with" end
      if c.grid == c.named.grid.persistent then return false, "the blocks of a cluster would draw different tiles" end
      if staged.wanted(p) and not staged.by_rows(p, c) then
        return false, "arrays of a score program that go with the key alone come by another way than K and V"
      end
      if c.bc % 32 == 0 then return true end
      return false, "half of " .. c.bc .. " keys is no multiple of 16"
    end, upto = "cluster" },
    { "o_path", function(p, c)
      if c.o_path == 0 then return true end
      if p.o_bytes ~= 2 then return false, "O in fp32 leaves from registers" end
      if c.o_path == c.named.o_path.tma or p.dv <= round_up(p.d, c.box) then return true end
      return false, "rows of O are longer than those of Q"
    end, upto = "o_path" },
    { "resident", function(p, c, a)
      if c.ctas == 1 then return true end
      local need, most = places(p, c).bytes, shared_memory(a, c)
      if need <= most then return true end
      return false, c.ctas .. " blocks of " .. need .. " > " .. most .. " bytes"
    end, about = "shared memory" },
  },

  layout = function(p, c, a)
    local l = places(p, c)
    for stages = staged.least + 1, l.staged and #l.staged.tiles == 0 and staged.most or 0 do -- more of lines where there is room
      local more = places(p, c, stages)
      if more.bytes <= shared_memory(a, c) then l = more end
    end
    for group = l.staged and staged.most_group(p, c) or 1, 2, -1 do -- or stages of more blocks, by halves
      local more = places(p, c, nil, group)
      if group & group - 1 == 0 and more.bytes <= shared_memory(a, c) then
        l = more
        break
      end
    end
    l.tma = true
    l.masked = edges.cuts_right(p) and not edges.scans(p) -- some warpgroup may see other blocks than the tile
    l.persistent = c.grid > 0
    -- Under a mask or with lengths the scheduler publishes, with a tile, which blocks of it each warpgroup sees.
    l.published = l.persistent and (edges.cuts_right(p) or p.has_lengths)
    -- The first scores of a tile are issued beside the last P V of the tile before.
    l.ahead = c.ahead == 1
    -- Consumer warpgroups alternate at the issue of products, or at the exponentials.
    l.pingpong_products, l.pingpong_softmax = c.schedule == 1, c.schedule == 2
    l.pingpong = c.schedule > 0
    -- P is packed as its exponentials come: then they follow the P V before, which frees the registers that P goes to.
    l.interleaved = c.convert == 1
    -- Scores of later blocks are kept as exponents relative to the rows' maxima.
    l.relative = c.rescale >= 3
    -- O leaves from the buffer of its Q; where there are two, that one is given back when the next tile is under way.
    l.o_in_q = c.o_path == 1
    l.q_lent = l.o_in_q and c.q_bufs == 2
    -- Tiles with rows past their sequence's end leave through shared memory, too, and rows are computed again at one place for whole tiles
    -- and parts. Raced on an H100: 0.97 to 1.00 of the time at d = 128, up to 1.025 at d = 64; wider rows were not.
    l.once = c.o_path == 2 and p.has_lengths and p.dv > 64 and p.dv <= 128
    -- Tiles are short under the mask of a score program: Q of the next may come when the last S is there.
    l.q_soon = edges.walks(p) and not edges.scans(p) and not l.ahead and not l.o_in_q and not l.parts and not p.has_lengths
    -- Each warp stores its own rows, and waits for no other.
    l.warp_stores = edges.walks(p) and c.o_path == 2 and not p.has_lengths
    -- Blocks at a tile's end that only other warpgroups see pass after O has left.
    l.skip_late = l.masked and edges.cuts_left(p) and not l.ahead and c.schedule == 0
    if p.has_pages then
      l.run = gcd(c.bc, p.page)
      -- One box brings all columns of a run where they fill the boxes of a row.
      l.joined_k, l.joined_v = l.boxes > 1 and p.d == l.boxes * c.box, l.boxes_v > 1 and p.dv == l.boxes_v * c.box
      l.joined = l.joined_k or l.joined_v
    end
    l.threads, l.ctas = 128 * (l.wgs + 1), c.ctas
    l.o_regs = round_up(p.dv, 8) // 2
    l.regs, l.consumer = registers(a, c, p)
    l.feeder = feeder_of(a, c, p)
    l.grouped = l.staged and l.staged.group > 1 -- blocks of keys share a stage of it
    if p.score then ways_of_scores(p, c, l) end
    l.early = l.tanh_by_fma and l.most
    if c.rescale > 3 then
      -- Rows whose maximum is near 0 keep it until their sum is large (hopper_softmax.cu). They need no maxima, so that half of a block's
      -- exponentials are taken beside the P V before.
      l.sums = not l.most
      l.early = l.early or l.sums and not l.pingpong_softmax
    end
    -- Blocks that are cut, a tile's first and those whose rows may move have one text; how the scores of all are made.
    -- Where a scan finds blocks it is asked as they are hidden which those are.
    if l.early and not (p.score and edges.scans(p)) then
      local makes = p.score and p.score.has_score
      l.cuts = l.joins and "joins" or l.besides and "besides" or l.tanh_by_fma and "tanh" or not makes and "plain" or l.held and "held"
        or l.relative and p.score.slopes and "slopes" or "scores"
    end
    return l
  end,

  steps = function(p, c, a, l)
    local rows = p.has_pages and l.run or c.bc // (l.near and 1 or c.cluster)
    local maps = {
      { tensor = "q", cols = c.box, rows = 64, swizzle = l.row },
      { tensor = "k", cols = c.box, rows = rows, swizzle = l.row, boxes = l.joined_k and l.boxes or 0 },
      { tensor = "v", cols = c.box, rows = rows, swizzle = l.row, boxes = l.joined_v and l.boxes_v or 0 },
    }
    if c.o_path > 0 then maps[4] = { tensor = "o", cols = c.box, rows = l.warp_stores and 16 or 64, swizzle = l.row } end
    for _, map in ipairs(l.staged and l.staged.maps or {}) do maps[#maps + 1] = map end
    local steps = { {
      entry = "fa_fwd", threads = l.threads, smem = l.bytes, maps = maps, cluster = c.cluster,
      grid = ("sq/%d hq b%s"):format(c.br * c.cluster, l.parts and " 8" or ""),  -- 8: parts of a tile at most
      per_sm = c.grid > 0 and c.ctas or 0, counter = c.grid == c.named.grid.persistent and 1 or 0, pdl = 1,
    } }
    if l.masks then table.insert(steps, 1, { entry = "fa_mask_lines", threads = 256, smem = 0, grid = "sms 4", pdl = 1 }) end
    return steps
  end,

  workspace = function(p, c, a, l)
    if l.masks then return mask_places.lines(p, c) end
    return split.workspace(p, l.o_regs * 2)
  end,

  params = function(p, c, a, l)
    local values = values_of(p)
    return "q k v o lse counter " .. (l.parts and "workspace part_o part_state " or "")
      .. values.sequences .. values.strides .. values.strides_of_lse .. values.dropout .. values.scores .. values.seen
      .. (p.has_lengths and "section_keys " or "tiles total key_base section ") .. values.pages
      .. (p.has_pages and l.joined and "joined " or "")
      .. (l.masks and "mask_lines " or "")
      .. (l.staged and #l.staged.maps > 0 and "boxed " or "")
  end,

  -- What one block of B_r x B_c scores costs. How the numbers were fitted: docs/performance.md, "The model". Where timings differed by less
  -- than their spread, what is usual comes first.
  -- prompts: no sequence has few query rows. pieces: tiles and parts of tiles, where tiles are cut.
  work = function(p, c, a, l, prompts, pieces)
    local scans = p.score and edges.scans(p)
    local fit = price.fitted(p, l, scans)
    local elements = c.br * c.bc // 32
    local issue = math.floor(elements * fit.issue) + l.wgs * fit.per_group
    issue = issue + price.turn_passes(p, c, l, scans)
    -- Philox: seven rounds of two wide products and two exclusive ors for eight elements, and two instructions for each.
    if p.has_dropout then issue = issue + elements * 7 end
    if c.exp > 0 then issue = issue + elements * 6 // c.exp end
    local program_issue, program_exps = program_cost(p).issue_ahead, program_cost(p).exps
    if l.staged then
      program_issue, program_exps = staged.cost(p)
      -- Of short rows a vote for each block shows, more where maxima are looked for: by races of 256 x 64 and 192 x 128.
      issue = issue + l.wgs * staged.per_group(l.staged, p.d + p.dv > 128 and 0 or c.rescale > 3 and 220 or 330, l.joins)
    end
    -- A comparison, the square, and a multiply-add less than the polynomial has coefficients: nothing on the special-function unit.
    if l.tanh_by_fma then program_issue, program_exps = p.score.tanh_exact and 5 or 4, 0 end
    if l.tanh_by_fma and p.d + p.dv <= 128 then issue = issue + l.wgs * 50 end  -- the vote on products: by a race of two tiles
    if scans then issue = issue + l.wgs * 200 end
    -- Masks that leave few keys, above d = 64: what rows that keep their maximum spare, and no warpgroup waits for a turn. By a race of
    -- documents, chunks, blocks, trees and a matrix on an H200; ends that differ by sequence may leave most.
    local few = p.score and edges.walks(p) and p.d + p.dv > 128 and not l.split and not p.has_lengths
      and (scans or p.score.two_ended and not p.score.marks_by_b)
    local keeps = few and l.early and not p.score.has_score
    if few then issue = issue + (keeps and -1 or scans and 3 or 7) * elements end
    local share, mask_issue = 1, 0
    if p.score then share, mask_issue = mask_cost(p, c, c.br * c.cluster, 64, l.split) end
    if p.score and edges.walks(p) then program_issue = program_issue - p.score.mask_issue + mask_issue end
    issue = issue + math.floor(elements * program_issue)
    if c.rescale < 2 then issue = issue + c.br * p.dv // 32 elseif c.rescale == 2 then issue = issue + elements // 16 end
    -- A warpgroup waits for its products and at the mbarriers; with one buffer of V for the copy too, in a cluster for the other block.
    local latency = fit.latency
    -- Numbers of a line that do not join exponents: by a race of both at d = 64 and 128 on an H100.
    if l.staged and #l.staged.lines > 0 and not l.staged.far and not l.joins then latency = latency + 200 end
    if c.stages_v == 1 then latency = latency + fit.wait elseif c.stages_v == 2 and c.bc <= 96 then latency = latency + (scans and 500 or 25) end
    if c.cluster > 1 then latency = latency + fit.cluster + (p.hq > p.hkv and fit.in_group or 0) end
    if c.box < 64 and fit.narrow > 0 then latency = latency + fit.narrow // c.box - 10 end
    -- O's way out, and the first copies of a tile where no others are under way. Two blocks of an SM cover that for each other, persistent
    -- or not.
    -- Blocks that have an SM to themselves begin as one does.
    local pair = c.ctas > 1 and (l.split or (p.sq + c.br - 1) // c.br * p.hq * p.b > a.sm_count)
    local tile = fit.tile * c.br * p.dv // 16384 + (c.grid == 0 and fit.per_tile or pair and fit.pair or fit.alone)
    if c.o_path == 1 and c.q_bufs == 1 then tile = tile + 1500 elseif c.o_path > 0 then tile = tile - 200 end
    if few and c.o_path == 2 then tile = tile - 500 end -- no warp waits for another one's rows
    if c.grid == 1 then tile = tile + 100 end
    if c.q_bufs == 2 then tile = tile + 100 end
    -- Of trees by bits, on an H100: what is looked up for each pair of blocks of 64 keys, and of tiles of three warpgroups.
    if scans and not l.masks and not l.split and not p.has_lengths then
      latency = latency + math.max(0, 128 - c.bc) * 6
      if l.wgs > 2 then tile = tile + 6000 end
    end
    if l.ahead and l.masks and l.wgs > 2 then tile = tile + fit.ahead end
    -- Its first block of K and of V, which nothing hides.
    tile = tile + c.bc * (p.d + p.dv) * 2 // (fit.first_bytes * price.l2_speed(p, c, 1))
    if c.feeder ~= (c.br <= 128 and 40 or 32) then tile = tile + 50 end
    -- A search whose registers spill, see feeder_of().
    if scans and not l.masks and feeder_of(a, c, p) == c.feeder then tile = tile + 3000 end
    -- Where sequences have lengths of their own, as if beside each prompt another sequence took one token: a tile of mostly empty rows.
    local more = 1
    if p.has_lengths and p.b > 1 and not prompts then more = 1 + c.br / math.max(p.sq, c.br) end
    local walkers = l.even_rows and pieces <= a.sm_count * c.ctas and (p.sq * (p.hq // p.hkv) + c.br - 1) // c.br or 1
    local turns, exp_turns, plain = fit.turns, fit.exp_turns, l.wgs > 2 and fit.plain_many or fit.plain
    if few then turns, exp_turns = turns + 0.1, exp_turns + (scans and 0 or 0.08) end
    if keeps then plain = math.min(plain, 0.05) end
    local own = {
      rows = c.br * c.cluster, cols = c.bc, group = 64,
      matrix_flops = 2 * (round_up(p.d, 16) + round_up(p.dv, 8)) * more,
      unit = "wgmma16",
      exps = (c.exp > 0 and 1 - 1 / c.exp or 1) + program_exps,
      issue = issue * more,
      efficiency = price.feed_rate(p, c),
      smem_bytes = (c.bc * (round_up(p.d, 16) + p.dv) * 2 * l.wgs + c.br * round_up(p.d, 16) * 2) * more,
      latency = latency,
      tile_latency = tile,
      -- Of the shorter of products and exponentials: one warpgroup alone, four, two or three, by who waits for whom.
      shows = math.max(0, (l.wgs * c.ctas == 1 and fit.shown_lone or fit.shown
        + (c.schedule == 1 and turns + price.rested(p, c, l, fit) or c.schedule == 2 and exp_turns or plain)
        - (l.wgs > 3 and fit.hidden_by_four or 0)) + (c.bc - 96) / 1000
        + price.in_step(p, c, a, l, fit, pieces)),
      felt = fit.felt,
      l2_speed = price.l2_speed(p, c, fit.l2_speed),
      hbm_speed = price.hbm_speed(p, c, a, walkers, pieces or (p.sq + c.br - 1) // c.br * p.hq * p.b),
      share = share,
      regs = l.regs,
    }
    return l.masks and { { bytes = 65536, latency = 3000 }, own } or own
  end,
}
