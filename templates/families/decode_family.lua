-- What the families of split-KV attention of few query rows have in common, to be put into their tables.
-- Blocks share the keys of all sequences evenly; inside a block groups of warps walk keys of their own with buffers of their own, and meet
-- only where a tile of rows ends.

local masked = include "families/masked_family.lua"
local round_up = include "families/round_up.lua"
local values_of = include "pairs/values.lua"
local codes_of = include "tiles/codes.lua"
local kv_rows = include "families/decode_rows.lua"
local limbs = include "families/decode_limbs.lua"
local price = include "families/decode_price.lua"

local decode = { rows_sm = 128 }

-- Batch invariance: segments of a tile at most, segments of a section, keys of a segment at least.
local SEGMENTS, SECTION, SEGMENT_KEYS = 64, 8, 128
local HELD = 4  -- segments at most after which the groups of a block meet

-- Binary digits of x after the first.
local function digits(x) return x > 1 and 1 + digits(x // 2) or 0 end

-- Tunables after those of the tile.
decode.shares = {
  { "stages", { 2, 3, 4, 5, 6 }, "buffers of K and V of a group", step = "any" },
  { "ctas", { 1, 2, 3, 4 }, "blocks per SM" },
  { "kv_lanes", { 1, 8 }, "neighbouring key/value heads that blocks walk side by side" },
  { "combine", { { 0, "last_block" }, { 1, "second_kernel" } },
    "what adds up the parts of a tile: the block that comes last, or a second kernel" },
  { "sm_shares", { 1, 2, 4 }, "shares of the keys for each block that an SM holds: what the chip deals out by itself" },
  { "min_turns", { 1, 4 }, "least iterations (bk * key_warps keys) that a block takes" },
}

-- Batch invariance: bytes of a sum of segments in shared memory, O and two buffers of (m, l).
local function sum_bytes(p, c) return c.br * (round_up(p.dv, 8) * 4 + 16) end

decode.constraints = {
  { "page", function(p, c)
    if p.page == 0 or c.bk <= 32 * p.page then return true end
    return false, "bk = " .. c.bk .. " keys lie in more pages than a warp has lanes"
  end },
  { "warps", function(p, c)
    local warps = c.row_warps * c.key_warps * kv_rows.heads_of(c)
    if warps <= 8 and warps * c.ctas <= 16 then return true end
    return false, warps .. " warps in each of " .. c.ctas .. " blocks"
  end, upto = "ctas", about = "registers" },
  -- With lengths parts of tiles take as much workspace whatever the config: serving sizes it once, for every batch that comes.
  { "parts", function(p, c)
    local rows = c.br * kv_rows.heads_of(c) * c.ctas * c.sm_shares
    if rows <= decode.rows_sm then return true end
    return false, rows .. " rows of parts for an SM, of which there is room for " .. decode.rows_sm
  end },
  -- Each stream of heads has thread blocks of its own, and how many heads there are a class does not say. Devices have eight SMs or more.
  { "streams", function(p, c, a)
    local blocks = a.sm_count * c.ctas * c.sm_shares
    if c.kv_lanes <= blocks then return true end
    return false, "up to " .. c.kv_lanes .. " streams of heads for " .. blocks .. " thread blocks"
  end },
  { "combined", function(p, c)
    if c.combine == c.named.combine.last_block or c.br >= 32 then return true end
    return false, "the last block adds up " .. c.br .. " rows as fast as a second kernel begins"
  end, search = true },
  { "blocks_fit", function(p, c, a)
    local groups = c.key_warps * kv_rows.heads_of(c)
    local bytes = kv_rows.row_bytes(p) * c.bk * groups * c.stages + groups * c.br * 8 + 1024 + a.smem_reserved
    if p.has_batch_invariant then bytes = bytes + 2 * sum_bytes(p, c) end
    if bytes * c.ctas <= a.smem_sm then return true end
    return false, c.ctas .. " blocks of at least " .. bytes .. " bytes on an SM with " .. a.smem_sm
  end, upto = "ctas", about = "shared memory" },
  { "flight", function(p, c)
    local bytes = kv_rows.row_bytes(p) * c.bk * c.key_warps * kv_rows.heads_of(c) * (c.stages - 1) * c.ctas
    if bytes >= 24 << 10 then return true end
    return false, "only " .. bytes .. " bytes of an SM under way"
  end, upto = "ctas", search = true },
}

-- Shared memory, in bytes from its start: the buffers of the groups, (m, l) of their rows, and words that the block shares. wide: codes
-- become fp16 there, for wgmma.
local ENDS_BOXED = 3 * 65536 -- bytes that are read in the time of a tile's beginning and end, of 64 rows
function decode.layout(p, c, a, wide)
  local heads = kv_rows.heads_of(c)
  local groups = c.key_warps * heads
  local l = { warps = c.row_warps * groups, ctas = c.ctas, heads = heads > 1 and heads or nil, pack = 1, pdl = a.cc >= 90, stream = true }
  l.counts = c.combine == c.named.combine.last_block and not p.has_batch_invariant
  -- Where a warp has registers for it: Q of a block's first tile is asked for before its keys; which blocks have parts of a tile, too.
  l.asks_early = kv_rows.low_bits(p, a.cc) and l.warps * c.ctas <= 12 or nil
  l.parts_early = kv_rows.low_bits(p, a.cc) and not p.has_batch_invariant and l.warps * c.ctas <= 8 or nil
  l.threads = l.warps * 32
  l.chunks = round_up(p.d, 8) * p.bytes // 16
  l.chunks_v = round_up(p.dv, 8) * p.bytes // 16
  l.vb = round_up(p.dv, 8) // 8
  l.low = kv_rows.low_bits(p, a.cc)
  l.narrow = l.low and kv_rows.is_narrow(p, l.low) or nil
  l.lines = not l.low and not p.has_lengths and not p.has_batch_invariant and p.align >= 16 and kv_rows.is_narrow(p) or nil
  if l.low then
    l.chunks, l.chunks_v = kv_rows.chunks_of(p, l.low.k, p.d), kv_rows.chunks_of(p, l.low.v, p.dv)
    l.shifts_k, l.shifts_v = kv_rows.shifts(p, l.low.k), kv_rows.shifts(p, l.low.v)
    l.most_k, l.most_v = 16 - p.kv_align, 16 - p.kv_align  -- bytes of a row's first chunk before it, at most
    if (c.token_rows or 0) == 1 then
      l.tokens = { k = kv_rows.token_rows(l.low.k, p.d, heads), v = kv_rows.token_rows(l.low.v, p.dv, heads) }
      l.chunks, l.chunks_v = l.tokens.k.chunks, l.tokens.v.chunks
      l.most_k, l.most_v = l.tokens.k.most, l.tokens.v.most
      l.shifts_k, l.shifts_v = l.most_k > 0, l.most_v > 0
    end
    -- Rows of 8, or of 4, are half of what mma.sync multiplies: Q is that half, and O is summed up transposed, V on the left.
    l.half = c.br <= 8
    -- Blocks of 8 columns of O as it is summed up; of 16 where it is transposed.
    l.ob = wide and l.vb or l.chunks_v * codes_of.registers(l.low.v) // (l.half and 2 or 1)
    l.limbs = (c.br == 4 or c.br == 8 and (c.limbs or 0) == 1) and limbs.of_k(p, l) or nil
    if l.limbs then l.limbs.tiles = c.br // 4 end
    l.standing = c.br == 16 and (c.limbs or 0) == 1 and limbs.of_k(p, l) or nil
    if (l.limbs or l.standing) and limbs.is_integer(l.low.v) then
      l.integers_v, l.ob = limbs.of_v(p, c, l)
    end
  end
  if l.low then  -- instructions of a thread for a value of K, of V, beside products
    l.cost_k, l.cost_v = l.low.k.cost, l.low.v.cost
    -- Of 16 rows of s8 by boxes memory hides a part: two unseen shapes that were priced without took 0.64 and 0.75 of the time so.
    if c.br == 16 and (c.boxes or 0) == 1 and l.low.k.block == 1 and limbs.is_integer(l.low.k) then l.cost_k, l.cost_v = 0.75, 0.75 end
    local nibbles = l.low.k.bits == 4
    if l.limbs then l.cost_k = (l.low.k.has_scale and 0.75 or 0.1) + (nibbles and 0.5 or 0) end
    if l.integers_v and (l.limbs or heads > 1) then l.cost_v = (l.low.v.has_scale and 0.3 or 0) + (l.low.v.bits == 4 and 0.63 or 0.75) end
  end
  l.copiers, l.copier = "GROUP_THREADS", "(threadIdx.x % GROUP_THREADS)"
  local k, v = c.bk * l.chunks * 16, c.bk * l.chunks_v * 16
  if l.tokens then k, v = c.bk * l.tokens.k.pitch * 16, c.bk * l.tokens.v.pitch * 16 end
  local exchange = c.br * l.vb * 8 * 4
  l.stage = k + v
  if l.low then  -- scales of tokens after K and V
    local scales = c.bk * (l.tokens and heads or 1) * 4
    l.k_scales, l.v_scales = k + v, k + v + (p.k_scale == 2 and scales or 0)
    l.boxes = (c.boxes or 0) == 1 or nil
    l.tma = l.boxes
    l.stage = round_up(l.v_scales + (p.v_scale == 2 and scales or 0), l.boxes and 1024 or 128)  -- chunks are found by exclusive or
  end
  l.group = c.stages * l.stage
  if l.low and wide then  -- K and V of a group in fp16, as boxes of wgmma
    l.widened = round_up(l.group, 1024)
    l.group = l.widened + c.bk * (p.d + p.dv) * 2
  end
  -- Where a tile ends, a group leaves its O in the buffer that it has just read, if that is large enough.
  l.exchange, l.exchange_stride, l.overlay = 0, l.group, exchange <= l.stage
  if l.widened and not l.overlay and exchange <= l.group - l.widened then  -- or where its K and V in fp16 were
    l.exchange, l.overlay, l.in_wide = l.widened, true, true
  end
  l.bytes = groups * l.group
  if l.tokens then  -- the heads' parts side by side in the buffer that they share
    l.bytes, l.exchange_stride, l.overlay = c.key_warps * l.group, exchange, heads * exchange <= l.stage
  end
  if not l.overlay then
    l.exchange, l.exchange_stride = l.bytes, exchange
    l.bytes = l.bytes + groups * exchange
  end
  l.states = l.bytes
  l.words = l.states + groups * c.br * 8
  l.used = l.words + 16
  if l.half then  -- Q, as lanes take it
    l.q = round_up(l.used, 16)
    l.used = l.q + (l.chunks * codes_of.registers(l.low.k) // 2 + 1) // 2 * 512 * heads
    if l.limbs then l.used = l.q + l.limbs.tiles * l.limbs.words * 128 * heads end
  end
  if (l.limbs or l.standing) and l.low.k.has_scale then  -- scales of K's blocks, of a group's keys
    l.floats = l.used
    l.used = l.floats + groups * c.bk * codes_of.scales(l.low.k, p.d) * 4
  end
  if l.boxes then  -- mbarriers of the groups' buffers; where heads share them one that tells when all have read a buffer, too
    l.barriers = round_up(l.used, 8)
    l.used = l.barriers + (l.tokens and 2 * c.key_warps or groups) * c.stages * 8
  end
  -- Rows of a lane are a stride apart.
  local in_page = not p.has_pages or p.page >= c.bk
  l.strided = l.low and not l.tokens and not l.boxes and p.kv_align >= 16 and in_page or nil
  l.walk, l.next = "Walk", "next_tile"
  if p.has_batch_invariant then
    l.walk, l.next = "SegmentWalk", "next"
    l.section, l.segments_digits, l.segment_digits = SECTION, digits(SEGMENTS), digits(SEGMENT_KEYS // (c.bk * c.key_warps))
    l.slots = SEGMENTS // SECTION + SECTION
    l.found = l.used
    l.sums = round_up(l.found + SEGMENTS * 8, 16)
    l.used = l.sums + 2 * sum_bytes(p, c)
    -- Where there is room, the groups meet after several segments.
    local part = exchange + c.br * 8
    local room = math.min(a.smem_block, a.smem_sm // c.ctas - a.smem_reserved) - l.used
    if c.dot_lanes then room = room - c.br * c.bk * c.key_warps * 4 - 16 end
    l.held = math.max(1, math.min(HELD, room // (c.key_warps * part)))
    if l.held > 1 then
      l.overlay, l.exchange, l.exchange_stride = false, l.used, exchange
      l.states = l.exchange + l.held * c.key_warps * exchange
      l.used = l.states + l.held * c.key_warps * c.br * 8
    end
  end
  l.ends = math.max(1, 65536 // (c.bk * groups * kv_rows.row_bytes(p)))
  if p.has_lengths and not (p.has_batch_invariant or l.low or c.dot_lanes) then
    -- Of 34 batches of unequal lengths on an H200: 64 rows by wgmma, d = 128 and 192, 0.90 of the time; others from d = 96 on 0.95. Of
    -- shorter rows, and more iterations, some took 1.07 to 1.18.
    if wide and kv_rows.row_bytes(p) >= 512 then
      l.ends = ENDS_BOXED // (c.bk * groups * kv_rows.row_bytes(p))
    elseif not wide and kv_rows.row_bytes(p) >= 384 then
      l.ends = math.max(2, l.ends)
    end
  end
  -- No more blocks find room on an SM than the shares are made for: they would leave others without any.
  l.bytes = math.max(l.used, a.smem_sm // (c.ctas + 1) - a.smem_reserved + 16)
  l.merge_threads, l.parts_batch = 128, (c.br == 16 or heads > 1 or l.parts_early and c.br < 16) and p.dv <= 128 and 16 or 8
  l.parts_few = l.boxes and l.parts_batch > 4 and 4 or nil
  if p.has_batch_invariant and l.threads * c.ctas > 256 then l.parts_batch = 8 end
  l.slices = math.min(math.max(1, c.br * l.vb * 2 // l.merge_threads), 32 // (c.ctas * c.sm_shares))
  if heads > 1 then l.slices = heads * math.max(1, math.min(l.slices, 32 // (c.ctas * c.sm_shares * heads))) end
  -- Registers: Q, accumulators of O and S, row states, addresses of two walks.
  local mb = math.max(1, c.br // c.row_warps // 16)
  local q_steps = l.low and (wide and p.d // 16 or l.chunks * codes_of.registers(l.low.k) // 2) or l.chunks // 2
  l.regs = mb * q_steps * 4 + mb * (l.ob or l.vb) * 4 + mb * (c.bk // 8) * 4 + mb * 8 + 44
  if l.limbs then l.regs = l.regs + l.limbs.tiles * l.limbs.words * 2 - q_steps * (l.tokens and 2 or 4) end
  if l.tokens then l.regs = l.regs - q_steps * 2 - 10 end  -- Q is half of that, and a warp's walk knows one address less
  return l
end

function decode.steps(p, c, a, l)
  local grid = ("rows/%d hkv%s b keys/%d"):format(c.br, l.heads and "/" .. l.heads or "", c.bk * c.key_warps)
  local first = { entry = "fa_decode", threads = l.threads, smem = l.bytes, per_sm = c.ctas * c.sm_shares, pdl = l.pdl, grid = grid }
  if l.boxes and l.tokens then
    local function map(tensor, pitch) return { tensor = tensor, cols = 2 * pitch, rows = c.bk, together = l.heads } end
    first.maps = { map("k", l.tokens.k.pitch), map("v", l.tokens.v.pitch) }
  elseif l.boxes then
    local rows = p.has_pages and math.min(p.page, c.bk) or c.bk  -- of a box, and of eight rows swizzled chunks are a pattern
    first.maps = { { tensor = "k", cols = p.d, rows = rows, swizzle = p.d }, { tensor = "v", cols = p.dv, rows = rows, swizzle = p.dv } }
  end
  if c.combine == c.named.combine.last_block then return { first } end
  -- As many blocks for each slice of rows as the first step has.
  return { first, {
    entry = "fa_decode_merge", threads = l.merge_threads, smem = 0, per_sm = c.ctas * c.sm_shares * l.slices, pdl = l.pdl,
    grid = ("%s %d"):format(grid, l.slices),
  } }
end

-- What blocks leave of tiles that they share: at most one that began before them and one that goes on after them. Of a dense batch as many
-- rows as the config's blocks can leave, mostly an eighth of those with lengths.
function decode.workspace(p, c, a, l)
  -- Batch invariance: the config follows from the class, and no other takes over.
  if p.has_batch_invariant then
    local rows = c.br * c.ctas * c.sm_shares * l.slots
    return ("counters, part_o fp32 sms %d, part_state fp32 sms %d, tiles_open int32 sms %d"):format(
      rows * round_up(p.dv, 8), rows * 2, c.ctas * c.sm_shares * 8)
  end
  local rows = p.has_lengths and decode.rows_sm or c.br * kv_rows.heads_of(c) * c.ctas * c.sm_shares
  return ("counters, part_o fp32 sms %d, part_state fp32 sms %d, tiles_open int32 sms %d"):format(
    2 * rows * round_up(p.dv, 8), 2 * rows * 2, decode.rows_sm * 4)
end

function decode.params(p, c)
  local values = values_of(p)
  local scales = ""
  for _, x in ipairs({ "k", "v" }) do
    if p[x .. "_scale"] > 0 then scales = scales .. (" %s_scale %s_scale_sb %s_scale_sh"):format(x, x, x) end
    if p[x .. "_scale"] == 2 or p[x .. "_scale"] == 4 then scales = scales .. (" %s_scale_ss"):format(x) end
  end
  return "q k v o lse " .. (c.combine == c.named.combine.last_block and "workspace" or "tiles_open") .. " part_o part_state "
    .. values.rows .. values.scores .. values.seen .. values.pages .. scales .. ((c.boxes or 0) == 1 and not p.has_lengths and " key_base" or "")
    .. ((c.boxes or 0) == 1 and (c.token_rows or 0) == 1 and " boxed" or "")
end

-- The table of a family: `t`, with what all have after its own tunables and constraints.
function decode.family(t)
  local function append(to, from)
    to = to or {}
    for _, x in ipairs(from) do to[#to + 1] = x end
    return to
  end
  t.rank, t.few_rows, t.features, t.tile = 0, true, "lengths+pages+batch-invariant+lse-strides+score+v-in-k", { "br", "bk" }
  t.tunables, t.constraints = append(append(t.tunables, decode.shares), t.more or {}), append(t.constraints, decode.constraints)
  if t.more then -- tunables that came later, which some constraints read
    for i, x in ipairs(t.more[1][1] == "head_warps" and t.constraints or {}) do
      if x.upto == "ctas" then t.constraints[i] = { x[1], x[2], upto = "head_warps", about = x.about, search = x.search } end
    end
    t.more = nil
  end
  t.layout = t.layout or decode.layout
  t.steps, t.workspace, t.params, t.work = decode.steps, decode.workspace, decode.params, t.work or price.work
  return masked(t)
end

return decode
