-- What the families of split-KV attention of few query rows have in common, to be put into their tables.
-- Blocks share the keys of all sequences evenly; inside a block groups of warps walk keys of their own with buffers of their own, and meet
-- only where a tile of rows ends.

local masked = include "families/masked_family.lua"
local round_up = include "families/round_up.lua"
local values_of = include "pairs/values.lua"
local edges = include "pairs/edges.lua"
local program_cost = include "pairs/program_cost.lua"

local rows_of = include "tiles/codes.lua"

local decode = { rows_sm = 128, round_up = round_up }

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

-- Formats of K and V, where they have few bits, on a chip.
local function low_bits(p, cc)
  local k = codes(p.kv, cc)
  return k and { k = k, v = codes(p.v, cc) or k }
end

-- Rows of blocks may begin anywhere in a chunk of 16 bytes of memory, and are copied with what lies in front of them there.
local function shifts(p, f)
  return f.block > 1 and p.kv_align < 16 and f.scales == 1 and f.least_at == 0 and f.high_at == 0
end
-- Chunks of a row of n elements in shared memory; an odd number needs no swizzle.
local function chunks_of(p, f, n)
  local bytes = rows_of.row_bytes(f, n)
  if shifts(p, f) then return (bytes + 31 - p.kv_align) // 16 | 1 end
  return (bytes + 15) // 16
end

-- Rows of a token, of heads side by side as they lie in a cache: head number `side` begins at its byte `side` * row, where chunks of 16
-- bytes are not its own. chunks: of a head's row, wherever it begins; pitch: chunks from a token to the next, odd, so that eight rows lie in
-- different banks without a swizzle.
local function token_rows(f, n, heads)
  local row = rows_of.row_bytes(f, n)
  local unit = (row | 16) & -(row | 16)
  local t = { row = row, most = 16 - unit, whole = heads * row // 16 }
  t.chunks = (row + t.most + 15) // 16
  local read = ((heads - 1) * row & -16) // 16 + t.chunks
  t.pitch = math.max(read, t.whole) | 1
  t.after = math.max(0, read - t.whole)  -- chunks beyond all heads' rows that are read with the last head's
  return t
end

function decode.row_bytes_of(name, n) return rows_of.row_bytes(codes(name, 80), n) end

-- Whether K and V of so many heads of a block may come so.
local function token_rows_of(p, heads)
  local low = low_bits(p, 80)
  if not low then return false, "K and V have no few bits" end
  if heads == 1 then return false, "a block has rows of one head" end
  if edges.bounds(p) then return false, "heads see keys of their own" end
  for _, x in ipairs { { low.k, p.d }, { low.v, p.dv } } do
    local f, row = x[1], rows_of.row_bytes(x[1], x[2])
    if row % 4 > 0 or heads * row % 16 > 0 then return false, "heads of " .. row .. " bytes" end
    if row % 16 > 0 and (f.block == 1 or f.scales > 1 or f.least_at > 0 or f.high_at > 0) then return false, "rows begin within chunks" end
  end
  return true
end
local rows_problem, rows_by_heads  -- what was asked last: the space of a problem asks for each config
function decode.has_token_rows(p, c)
  local heads = math.max(1, c.head_warps or 0)
  if rows_problem ~= p then rows_problem, rows_by_heads = p, {} end
  local known = rows_by_heads[heads]
  if not known then
    known = { token_rows_of(p, heads) }
    rows_by_heads[heads] = known
  end
  if not known[1] then return false, known[2] end
  if c.row_warps ~= 1 then return false, "a block has rows of one head" end
  if p.has_pages and p.page < c.bk then return false, "bk = " .. c.bk .. " keys lie in several pages" end
  if c.bk % heads > 0 then return false, c.bk .. " keys for " .. heads .. " heads" end
  return true
end

-- Whether rows of few bits may come by tensor maps, a head's keys of a block as one box. What comes with the first or the
-- last keys that rows of the tile see is cleared. A row is as long as a pattern of swizzled chunks.
local function boxes_of(p, cc)
  local low = low_bits(p, 80)
  if not low then return false, "K and V have no few bits" end
  if cc < 90 then return false, "no TMA before sm_90" end
  if p.has_batch_invariant or edges.bounds(p) then return false, "a tile's keys are not those between two" end
  if p.align < 16 then return false, "rows at multiples of " .. p.align .. " bytes" end
  for _, x in ipairs { { low.k, p.d }, { low.v, p.dv } } do
    local bytes = rows_of.row_bytes(x[1], x[2])
    if x[1].block > 1 or bytes ~= 64 and bytes ~= 128 then return false, "rows of " .. bytes .. " bytes" end
  end
  return true
end
-- Whether a token's rows of all of a block's heads may: blocks, whose rows begin within chunks. Where heads do not lie side by side the
-- launch says so, and warps copy rows.
local function token_boxes_of(p, cc, heads)
  if cc < 90 then return false, "no TMA before sm_90" end
  local low = low_bits(p, 80)
  if not low or low.k.block == 1 or low.v.block == 1 then return false, "boxes of several heads of codes without blocks" end
  if p.has_batch_invariant then return false, "a tile's keys are not those between two" end
  for _, x in ipairs { { low.k, p.d }, { low.v, p.dv } } do
    local pitch = token_rows(x[1], x[2], heads).pitch
    if pitch > 128 then return false, "boxes of " .. 16 * pitch .. " bytes" end
  end
  return true
end
local boxed_problem, boxed_on, boxes, without, of_tokens  -- what was asked last: the space of a problem asks for each config
-- together: whether the warps of a group meet when a buffer is read.
function decode.has_boxes(p, c, cc, together)
  if boxed_problem ~= p or boxed_on ~= cc then
    boxes, without = boxes_of(p, cc)
    boxed_problem, boxed_on, of_tokens = p, cc, {}
  end
  if (c.token_rows or 0) == 1 then
    local heads = math.max(1, c.head_warps or 0)
    of_tokens[heads] = of_tokens[heads] or { token_boxes_of(p, cc, heads) }
    return of_tokens[heads][1], of_tokens[heads][2]
  end
  if not boxes then return false, without end
  if p.has_pages and (p.page % 8 > 0 or p.page % c.bk > 0 and c.bk % p.page > 0) then return false, "runs of keys are no patterns" end
  if c.row_warps ~= 1 and not together then return false, "copies of several warps" end
  return true
end

-- Tiles of four rows, of codes of K that are integers: a row of Q becomes four of integers of 8 bits, its limbs, the rows that mma.sync
-- multiplies at a time, so that codes are multiplied as they come. Sums of a block of codes, which are exact, are multiplied by its scale.
-- blocks: of a row; chunks: that a block's codes may lie in, `first`[b] the first; codes: that a byte holds; words: registers of a lane's
-- codes of a row.
local function is_integer(f)
  if f.scales > 1 or f.least_at > 0 or f.high_at > 0 then return false end
  return f.kind == "signed" and f.bits == 8 or f.kind == "unsigned" and f.bits == 4 and f.zero == 8 and f.halves
end
function decode.has_limbs(p)
  local f = codes(p.kv, 80)
  if not f or not is_integer(f) then return false end
  return f.block > 1 or p.d < 256  -- sums of 256 products pass what a float holds beside the number that makes one of it
end
-- The chunk where each block's codes begin, and in how many they may lie, rows shifted by up to `most` bytes.
local function chunks_of_blocks(f, blocks, bytes, most)
  local first, chunks = {}, 1
  for b = 0, blocks - 1 do
    local at = b * f.block_bytes + f.codes_at
    first[b] = at // 16
    chunks = math.max(chunks, (at + bytes - 1 + most) // 16 - at // 16 + 1)
  end
  return first, chunks
end
-- Whether a block's codes lie, wherever a row begins, in a lane's bytes of two neighbouring chunks that are one chunk when each lane takes
-- its bytes of the one or of the other: scale and codes of whole chunks follow each other, and the scale never lies in a chunk further on.
-- Then there are as many joined words of a block as chunks have its codes, and no product is of another block.
local function joins(f, blocks, most)
  if f.block == 1 or f.scale_at ~= 0 or f.codes_at ~= 2 or (f.block_bytes - 2) % 16 > 0 then return false end
  for b = 0, blocks - 1 do
    if b * f.block_bytes % 16 + most > 14 then return false end
  end
  return true
end
-- The chunk where each block begins, and how many joined ones it has.
local function joined_chunks(f, blocks)
  local first = {}
  for b = 0, blocks - 1 do first[b] = b * f.block_bytes // 16 end
  return first, (f.block_bytes - 2) // 16
end
-- Eight rows may be two such tiles, for which K's words are joined once.
function decode.has_two_limbs(p, c)
  if c.br ~= 8 or c.row_warps ~= 1 then return false, "limbs of br = " .. c.br .. " rows" end
  local low = low_bits(p, 80)
  for _, x in ipairs(low and { { low.k, p.d }, { low.v, p.dv } } or { { false } }) do
    local f = x[1]
    if not f or not is_integer(f) then return false, "codes are no integers" end
    local most = shifts(p, f) and 16 - p.kv_align or 0
    if (c.token_rows or 0) == 1 then most = token_rows(f, x[2], math.max(1, c.head_warps or 0)).most end
    if not joins(f, x[2] // f.block, most) then return false, "words are not joined" end
  end
  return true
end
local function limbs_of(p, l)
  local f = l.low.k
  if f.block == 1 then return { blocks = 1, chunks = l.chunks, first = { [0] = 0 }, codes = 1, words = l.chunks, bytes = p.d } end
  local to = { blocks = p.d // f.block, codes = 8 // f.bits, bytes = f.block_bytes - f.codes_at }
  to.joined = joins(f, to.blocks, l.shifts_k and l.most_k or 0)
  if to.joined then to.first, to.chunks = joined_chunks(f, to.blocks)
  else to.first, to.chunks = chunks_of_blocks(f, to.blocks, to.bytes, l.shifts_k and l.most_k or 0) end
  to.words = to.blocks * to.chunks * to.codes
  return to
end
-- Whether a head's row of K or V ends within a line of memory. The rest of the line is another head's: a copy that asks the L2 for all of
-- it reads up to 1.6 times what is needed, where that head's block is not in step.
local function is_narrow(p, low)
  if not low then return p.d * p.bytes % 128 > 0 or p.dv * p.bytes % 128 > 0 end
  return rows_of.row_bytes(low.k, p.d) % 128 > 0 or rows_of.row_bytes(low.v, p.dv) % 128 > 0
end

-- Bytes of a key's rows of K and V in shared memory.
local function row_bytes_of(p)
  local low = low_bits(p, 80)
  if low then
    local tokens = (p.k_scale == 2 and 4 or 0) + (p.v_scale == 2 and 4 or 0)
    return 16 * (chunks_of(p, low.k, p.d) + chunks_of(p, low.v, p.dv)) + tokens
  end
  return (round_up(p.d, 8) + round_up(p.dv, 8)) * p.bytes
end
local row_problem, row_known  -- what was asked last
local function row_bytes(p)
  if row_problem ~= p then row_problem, row_known = p, row_bytes_of(p) end
  return row_known
end

decode.row_bytes = row_bytes

-- Batch invariance: bytes of a sum of segments in shared memory, O and two buffers of (m, l).
local function sum_bytes(p, c) return c.br * (round_up(p.dv, 8) * 4 + 16) end

-- Key/value heads of a block.
local function heads_of(c) return math.max(1, c.head_warps or 0) end

decode.constraints = {
  { "page", function(p, c)
    if p.page == 0 or c.bk <= 32 * p.page then return true end
    return false, "bk = " .. c.bk .. " keys lie in more pages than a warp has lanes"
  end },
  { "warps", function(p, c)
    local warps = c.row_warps * c.key_warps * heads_of(c)
    if warps <= 8 and warps * c.ctas <= 16 then return true end
    return false, warps .. " warps in each of " .. c.ctas .. " blocks"
  end, upto = "ctas", about = "registers" },
  -- With lengths parts of tiles take as much workspace whatever the config: serving sizes it once, for every batch that comes.
  { "parts", function(p, c)
    local rows = c.br * heads_of(c) * c.ctas * c.sm_shares
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
    local groups = c.key_warps * heads_of(c)
    local bytes = row_bytes(p) * c.bk * groups * c.stages + groups * c.br * 8 + 1024 + a.smem_reserved
    if p.has_batch_invariant then bytes = bytes + 2 * sum_bytes(p, c) end
    if bytes * c.ctas <= a.smem_sm then return true end
    return false, c.ctas .. " blocks of at least " .. bytes .. " bytes on an SM with " .. a.smem_sm
  end, upto = "ctas", about = "shared memory" },
  { "flight", function(p, c)
    local bytes = row_bytes(p) * c.bk * c.key_warps * heads_of(c) * (c.stages - 1) * c.ctas
    if bytes >= 24 << 10 then return true end
    return false, "only " .. bytes .. " bytes of an SM under way"
  end, upto = "ctas", search = true },
}

-- Shared memory, in bytes from its start: the buffers of the groups, (m, l) of their rows, and words that the block shares. wide: codes
-- become fp16 there, for wgmma.
local ENDS_BOXED = 3 * 65536 -- bytes that are read in the time of a tile's beginning and end, of 64 rows
function decode.layout(p, c, a, wide)
  local heads = heads_of(c)
  local groups = c.key_warps * heads
  local l = { warps = c.row_warps * groups, ctas = c.ctas, heads = heads > 1 and heads or nil, pack = 1, pdl = a.cc >= 90, stream = true }
  l.counts = c.combine == c.named.combine.last_block and not p.has_batch_invariant
  -- Where a warp has registers for it: Q of a block's first tile is asked for before its keys; which blocks have parts of a tile, too.
  l.asks_early = low_bits(p, a.cc) and l.warps * c.ctas <= 12 or nil
  l.parts_early = low_bits(p, a.cc) and not p.has_batch_invariant and l.warps * c.ctas <= 8 or nil
  l.threads = l.warps * 32
  l.chunks = round_up(p.d, 8) * p.bytes // 16
  l.chunks_v = round_up(p.dv, 8) * p.bytes // 16
  l.vb = round_up(p.dv, 8) // 8
  l.low = low_bits(p, a.cc)
  l.narrow = l.low and is_narrow(p, l.low) or nil
  l.lines = not l.low and not p.has_lengths and not p.has_batch_invariant and p.align >= 16 and is_narrow(p) or nil
  if l.low then
    l.chunks, l.chunks_v = chunks_of(p, l.low.k, p.d), chunks_of(p, l.low.v, p.dv)
    l.shifts_k, l.shifts_v = shifts(p, l.low.k), shifts(p, l.low.v)
    l.most_k, l.most_v = 16 - p.kv_align, 16 - p.kv_align  -- bytes of a row's first chunk before it, at most
    if (c.token_rows or 0) == 1 then
      l.tokens = { k = token_rows(l.low.k, p.d, heads), v = token_rows(l.low.v, p.dv, heads) }
      l.chunks, l.chunks_v = l.tokens.k.chunks, l.tokens.v.chunks
      l.most_k, l.most_v = l.tokens.k.most, l.tokens.v.most
      l.shifts_k, l.shifts_v = l.most_k > 0, l.most_v > 0
    end
    -- Rows of 8, or of 4, are half of what mma.sync multiplies: Q is that half, and O is summed up transposed, V on the left.
    l.half = c.br <= 8
    -- Blocks of 8 columns of O as it is summed up; of 16 where it is transposed.
    l.ob = wide and l.vb or l.chunks_v * rows_of.registers(l.low.v) // (l.half and 2 or 1)
    l.limbs = (c.br == 4 or (c.limbs or 0) == 1) and limbs_of(p, l) or nil
    if l.limbs then l.limbs.tiles = c.br // 4 end
    if l.limbs and is_integer(l.low.v) then -- V's codes as they come, too: see low_products.cu
      local f = l.low.v
      local bytes = f.block == 1 and p.dv or f.block_bytes - f.codes_at
      local v = { blocks = f.block == 1 and 1 or p.dv // f.block, first = { [0] = 0 }, chunks = l.chunks_v, bytes = bytes }
      v.joined = joins(f, v.blocks, l.shifts_v and l.most_v or 0)
      if v.joined then v.first, v.chunks = joined_chunks(f, v.blocks)
      elseif f.block > 1 then v.first, v.chunks = chunks_of_blocks(f, v.blocks, bytes, l.shifts_v and l.most_v or 0) end
      v.rows = v.chunks * rows_of.registers(f) // 2  -- blocks of 16 columns of O for each of V's blocks
      -- Blocks of O beside those, of four rows for two of V's blocks each.
      v.excess = c.br == 4 and (v.blocks + 1) // 2 or v.blocks
      l.integers_v, l.ob = v, v.blocks * v.rows + v.excess
    end
  end
  if l.low then  -- instructions of a thread for a value of K, of V, beside products
    l.cost_k, l.cost_v = l.low.k.cost, l.low.v.cost
    local nibbles = l.low.k.bits == 4
    if l.limbs then l.cost_k = (l.low.k.has_scale and 0.75 or 0.1) + (nibbles and 0.5 or 0) end
    if l.integers_v then l.cost_v = (l.low.v.has_scale and 0.3 or 0) + (l.low.v.bits == 4 and 0.63 or 0.75) end
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
    l.used = l.q + (l.chunks * rows_of.registers(l.low.k) // 2 + 1) // 2 * 512 * heads
    if l.limbs then l.used = l.q + l.limbs.tiles * l.limbs.words * 128 * heads end
    if l.low.k.has_scale and l.limbs then  -- scales of K's blocks, of a group's keys
      l.floats = l.used
      l.used = l.floats + groups * c.bk * rows_of.scales(l.low.k, p.d) * 4
    end
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
  l.ends = math.max(1, 65536 // (c.bk * groups * row_bytes(p)))
  if p.has_lengths and not (p.has_batch_invariant or l.low or c.dot_lanes) then
    -- Of 34 batches of unequal lengths on an H200: 64 rows by wgmma, d = 128 and 192, 0.90 of the time; others from d = 96 on 0.95. Of
    -- shorter rows, and more iterations, some took 1.07 to 1.18.
    if wide and row_bytes(p) >= 512 then
      l.ends = ENDS_BOXED // (c.bk * groups * row_bytes(p))
    elseif not wide and row_bytes(p) >= 384 then
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
  local q_steps = l.low and (wide and p.d // 16 or l.chunks * rows_of.registers(l.low.k) // 2) or l.chunks // 2
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
  local rows = p.has_lengths and decode.rows_sm or c.br * heads_of(c) * c.ctas * c.sm_shares
  return ("counters, part_o fp32 sms %d, part_state fp32 sms %d, tiles_open int32 sms %d"):format(
    2 * rows * round_up(p.dv, 8), 2 * rows * 2, decode.rows_sm * 4)
end

-- Row tiles of a head walk its keys side by side: a tile finds in the L2 what another has read, except for this part. From random shapes on
-- an H100; of four shapes of d = 128 it had been 0.15, and of d = 144 two tiles over 40k keys then took twice their price. Rows that are no
-- whole lines are read in pieces, each tile anew: two to four tiles took 1.2 to 2.5 times what 0.42 gives.
local REREAD, REREAD_PIECES = 0.42, 0.8
-- How much longer such rows take from memory, of tiles of few rows and of 32 and more. Of 90 timings over 40 MB.
local PIECES, PIECES_MANY = 1.08, 1.2
-- Of blocks that are not in step, where all heads of a sequence are side by side: of two shapes of d = 112 and 8 heads on an H100 0.94 and
-- 0.90 of the time of one head after the other, of three of d = 80 to 144 and 3 to 7 heads on an H200 0.88 to 0.92; of 32 heads, eight side
-- by side, 1.01. They are fast with fewer bytes under way. Few tiles are cut evenly, and in step without.
local LANES_MET, LANES_BYTES = 0.88, 40960
-- What the L2 keeps of K and V from one launch to the next, as gen/price.c has it.
local KEPT, KEPT_MOST = 0.4, 0.5

-- How much longer rows of few bits take that end within a line, or have scales beside them, where neighbouring heads are read by other
-- blocks: eight heads in one are 1, by the number of heads in a block. Of 11 shapes on an H100.
local APART, APART_TOKENS = { [1] = 1.45, [2] = 1.2, [4] = 1.04 }, { [1] = 1.2, [2] = 1.05 }
local APART_LANES, APART_TOKENS_LANES = 1.15, 1.05
-- The same where heads come as one piece: of less than eight heads, and of rows of 4 bits in two blocks. Of 16 races on an H100.
local APART_ROWS, APART_ROWS_4 = 1.015, 0.99
-- On an H200, of 15 races of q8_0, tiles of four rows: by the number of heads, of rows of d above 64 and of others.
local APART_ROWS_FAST, APART_ROWS_SHORT = { [2] = 1.1, [4] = 0.96 }, { [2] = 1.1, [4] = 1.02 }
-- There, of 8 races of q4_0, tiles of four rows: two heads of d above 64; eight of others by 32 keys in each of two blocks; eight streams.
local APART_TWO_4, APART_ROWS_SHORT_4, APART_LANES_4 = 1.25, 0.985, 1.5
-- Two heads as one piece, and apart, where four do not divide all: of four races there.
local APART_TWO_4_ROWS, APART_TWO_4_APART = 0.8, 1.7
-- There, of 16 races of rows of d to 64 whose words are joined, two blocks: eight heads of q4_0 by 64 keys, of q8_0 by 32; four heads of
-- q4_0 by 32 keys, where few are walked and where many are; four heads of eight rows.
local APART_TWO_LONG_4, APART_TWO_SHORT_8, APART_TWO_FEW_4, APART_TWO_MANY_4, APART_EIGHT_ROWS = 0.97, 0.9, 0.8, 1.03, 1.15
-- Rows of q8_0 of d above 64 there, by 16 keys in two blocks of eight heads: 0.94 where each has a tile of its own, else 1.02 to 1.7.
local APART_OWN_TILE, APART_SHARED_TILE, OWN_TILE = 0.88, 1.5, 7 / 8
-- Rows of d to 64 by 32 keys for 64, there: 1.06 to 1.1.
local ROWS_SHORT_KEYS = 1.06
-- Rows of a byte for an element, without scales of tokens. On an H100, of eight races of e4m3.
local APART_BYTES = { [2] = 1, [4] = 0.995, [8] = 1.01 }
-- On an H200, of 13 races of e4m3: rows of whole lines, where one head at a time does better while all keys are less than FEW_BYTES.
local IN_L2 = 2e7 -- bytes of which neighbouring heads find the lines in the L2, in whatever order they are read
local APART_BYTES_FAST, FEW_BYTES, APART_FEW = { [1] = 1.03, [2] = 1.03, [4] = 0.985, [8] = 1.01 }, 8e7, 0.97
-- Rows of 64 by 64 keys there, four heads: as one piece; each for itself, which a walk of many keys brings out of step; more buffers than
-- three, where eight heads are walked side by side by other blocks.
local SHORT_ROWS, SHORT_FEW, SHORT_SOME, SHORT_MANY, SHORT_BUFFERS = 0.93, 0.91, 0.945, 1.1, 1.07
local KEPT_ALL = 0.75  -- share of the L2 that holds all keys from one launch to the next
-- Whether four groups of 64 keys win beside the usual ones: the L2 holds all keys, and no tile is over in an iteration.
function decode.few_keys(p)
  local kv = p.b * p.hkv * p.sk * row_bytes(p)
  return kv > 4e6 and kv < IN_L2
end
-- Whether four groups of 32 keys do.
function decode.least_keys(p) return p.b * p.hkv * p.sk * row_bytes(p) <= 4e6 end
-- Factors of the time for rows of 64 bytes and of 128 that come by TMA, by the number of heads. One head does best where the L2 holds all
-- keys, or where no block has parts of two tiles, so that all walk in step, and worst elsewhere. 40 races of e4m3 and s8 on an H200.
local BOXES_SHORT, BOXES_LONG = { [1] = 1.1, [2] = 0.89, [4] = 0.87, [8] = 0.9 }, { [1] = 1.04, [2] = 1.02, [4] = 0.985, [8] = 1 }
local BOXES_KEPT, BOXES_IN_STEP = 0.84, 0.955
-- The same where two tiles of 16 rows have one head: of the stream, and of an iteration. They find each other's keys in the L2 where it
-- holds all, or where each tile is one block's: else one is far behind the other, 1.18 of the time of a tile of 32.
local BOXES_TWO, BOXES_TWO_ISSUE = 0.8, 0.74
local function has_two_in_step(p, c, a)
  local rows, tiles, blocks = p.sq * (p.hq // p.hkv), 2 * p.b * p.hkv, a.sm_count * c.ctas
  if (c.boxes or 0) == 0 or c.br ~= 16 or heads_of(c) > 1 or rows <= 16 or rows > 32 or tiles > blocks then return false end
  local iterations = (p.sk + c.bk * c.key_warps - 1) // (c.bk * c.key_warps)
  return p.b * p.hkv * p.sk * row_bytes(p) <= a.l2_bytes or tiles * iterations > (iterations - 1) * blocks
end
-- Rows of all heads of a token by boxes, in blocks: by the number of heads; of 16 rows and more. 33 races of q8_0 and q4_0 on an H200,
-- beside the prices of rows that warps copy, which are some 10 % below their times.
local TOGETHER_SHORT, TOGETHER_LONG = { [2] = 1.05, [4] = 0.83, [8] = 0.81 }, { [2] = 1.1, [4] = 0.89, [8] = 0.87 }
local TOGETHER_MANY, TOGETHER_MANY_SHORT = 0.8, 0.73
-- 16 rows of one head of them by copies, there.
local APART_SIXTEEN = 2.2
-- Five to eight rows of one head of them, which unpack each value by itself, where two heads by limbs come by boxes: of four races there.
local APART_EIGHT, EIGHT_ISSUE = 1.5, 1.3
-- Rows of blocks, of heads that are no whole number of chunks together, are copied by less: by 8 bytes, by 4, or by 2, which are loads
-- that a warp waits for. Of 12 races there. A bucket of two heads and more has even ones and odd ones.
local UNEVEN = { [8] = 1.3, [4] = 2.6, [2] = 3.5 }
-- Several tiles of 16 rows of such heads, each of which unpacks all keys, beside that, of 22 races there: of one head; of pieces with idle
-- warps; of two heads, which an odd number of heads copies by less, while up to 24 rows of codes of a byte an even number does better. For
-- wgmma rows that do not lie alike are copied by chunks all the same.
local MANY_ALONE, MANY_IDLE, MANY_TWO, FEW_TWO, UNEVEN_WIDE = 1.5, 2, 1.6, 0.85, { [8] = 1.1, [4] = 1.5, [2] = 2 }
local function uneven(p, c, a, low, wide)
  if wide then return low and low.k.block > 1 and p.hkv % 4 > 0 and UNEVEN_WIDE[p.kv_align] or 1 end
  local many = low and p.sq * (p.hq // p.hkv) > 16 and low.k.has_scale and a.hbm_gbs > 4000
  if many and p.hkv > 1 and p.hkv % 4 > 0 and heads_of(c) > 1 then
    local few = p.sq * (p.hq // p.hkv) <= 24 and low.k.bits == 8
    return p.hkv % heads_of(c) > 0 and MANY_IDLE or few and FEW_TWO or MANY_TWO
  end
  if not low or (c.token_rows or 0) == 1 or (c.boxes or 0) == 1 or p.hkv % 8 == 0 then return 1 end
  local most, tiles = 1, many and p.hkv == 1 and MANY_ALONE or 1
  for _, x in ipairs { { low.k, p.d }, { low.v, p.dv } } do
    local row = x[1].block > 1 and rows_of.row_bytes(x[1], x[2]) or 16
    if p.hkv % 4 == 0 then row = 4 * row end
    if row % 16 > 0 then most = math.max(most, tiles * UNEVEN[row & -row]) end
  end
  return most
end
-- Whether a block has one head's five to eight rows, of which two heads at a time would be limbs.
local function is_eight_alone(p, c, a, low)
  local alone = c.br == 8 and heads_of(c) == 1 and low.k.block > 1 and p.d > 64 and p.d <= 128
  return alone and p.hkv % 4 == 0 and a.hbm_gbs > 4000 and p.sq * (p.hq // p.hkv) > 4
end
-- walked: keys that a block has one after the other; kv: bytes of K and V.
local function apart(p, c, a, low, walked, kv)
  if not low or p.hkv == 1 then return 1 end
  local heads = heads_of(c)
  local few_4 = c.br == 4 and low.k.bits == 4
  if few_4 and heads == 2 and p.d > 64 then
    if p.hkv % 4 == 0 or rows_of.row_bytes(low.k, p.d) % 16 == 0 then return APART_TWO_4 end
    return (c.token_rows or 0) == 1 and APART_TWO_4_ROWS or APART_TWO_4_APART
  end
  local tokens = p.k_scale == 2 or p.v_scale == 2
  local bytes = low.k.block == 1 and low.v.block == 1 and not tokens
  if (c.boxes or 0) == 1 then
    local short = math.max(p.d, p.dv) <= 64
    if (c.token_rows or 0) == 1 then
      local many = c.br <= 8 and 1 or short and TOGETHER_MANY_SHORT or TOGETHER_MANY
      return many * (short and TOGETHER_SHORT or TOGETHER_LONG)[heads]
    end
    if heads == 1 and short and kv < KEPT_ALL * a.l2_bytes then return BOXES_KEPT end
    if not short and has_two_in_step(p, c, a) then return BOXES_TWO end
    if heads == 1 and not short and p.b * p.hkv <= a.sm_count * c.ctas then return BOXES_IN_STEP end
    return (short and BOXES_SHORT or BOXES_LONG)[heads]
  end
  if bytes and c.br == 64 and is_narrow(p, low) and kv < IN_L2 then return APART_LANES end
  if is_eight_alone(p, c, a, low) then return APART_EIGHT end
  if c.br == 16 and heads == 1 and low.k.block > 1 and a.hbm_gbs > 4000 then return APART_SIXTEEN end
  if bytes and a.hbm_gbs > 4000 then
    if heads == 2 and c.bk == 64 and math.max(p.d, p.dv) <= 64 and kv < KEPT_ALL * a.l2_bytes then return SHORT_FEW end
    if heads == 4 and c.bk == 64 and math.max(p.d, p.dv) <= 64 then
      if (c.token_rows or 0) > 0 then return SHORT_ROWS end
      return walked <= 1536 and SHORT_FEW or walked < 6144 and SHORT_SOME or SHORT_MANY
    end
    if is_narrow(p, low) and heads == 1 and (c.kv_lanes > 1 or kv < KEPT_ALL * a.l2_bytes) then
      return APART_LANES * (c.bk >= 32 and c.stages > 3 and SHORT_BUFFERS or 1)
    end
    if not is_narrow(p, low) then return heads == 1 and kv < FEW_BYTES and APART_FEW or APART_BYTES_FAST[heads] end
  end
  if (c.token_rows or 0) > 0 then
    -- Products of integers: the order of the configs is one chip's and the other's.
    local of_integers = c.br == 4 or (c.limbs or 0) == 1
    local short = p.d <= 64 and c.bk < 64 and ROWS_SHORT_KEYS or 1
    local short_4 = of_integers and low.k.bits == 4 and p.d <= 64
    if c.br == 4 and p.d > 64 and c.bk == 16 then
      return p.b * p.hkv >= OWN_TILE * heads * a.sm_count * c.ctas and APART_OWN_TILE or APART_SHARED_TILE
    end
    if short_4 and heads == 8 and c.ctas == 2 then return c.bk == 32 and APART_ROWS_SHORT_4 or APART_TWO_LONG_4 end
    if short_4 and c.br == 8 then return APART_EIGHT_ROWS end
    if short_4 and heads == 4 and c.ctas == 2 and c.bk == 32 and c.stages == 2 then
      return walked < 2048 and APART_TWO_FEW_4 or APART_TWO_MANY_4
    end
    if c.br == 4 and p.d <= 64 and heads == 8 and c.ctas == 2 and c.bk == 32 and walked >= 1024 then return APART_TWO_SHORT_8 end
    if of_integers or a.hbm_gbs > 4000 then return short * ((p.d > 64 and APART_ROWS_FAST or APART_ROWS_SHORT)[heads] or 1) end
    return short * (heads == 8 and 1 or low.k.bits == 4 and c.ctas > 1 and APART_ROWS_4 or APART_ROWS)
  end
  bytes = bytes and a.hbm_gbs < 4000
  if bytes and is_narrow(p, low) then
    -- Where the L2 holds all keys the instructions for a key decide, and a block of 64 keys has fewer.
    if kv < KEPT_ALL * a.l2_bytes then
      if c.bk == 64 then return SHORT_FEW end
    elseif c.bk == 64 and c.br <= 8 then
      return SHORT_MANY
    end
    if heads == 1 and c.kv_lanes > 1 and c.bk >= 32 and c.stages > 3 then return APART_LANES * SHORT_BUFFERS end
  end
  if is_narrow(p, low) and not (bytes and heads == 4) then
    if heads == 1 and c.kv_lanes > 1 and few_4 then return APART_LANES_4 end
    return heads == 1 and c.kv_lanes > 1 and APART_LANES or APART[heads] or 1
  end
  if tokens then return heads == 1 and c.kv_lanes > 1 and APART_TOKENS_LANES or APART_TOKENS[heads] or 1 end
  if is_narrow(p, low) then return 1 end
  return bytes and APART_BYTES[heads] or heads == 1 and 1.03 or 1
end

-- Dense, fitted to some 190 timings under 40 us on an H100. One kernel that shares tiles takes FILL clocks more than a stream of the same
-- keys: its first copies and its last products stand alone. The block that comes last adds up parts with all of its warps: so many clocks
-- for a byte and warp, with products as dots more. A second kernel waits for so many parts at a time.
local FILL, SUM, SUM_DOTS, BATCH, BATCH_CLOCKS = 2600, 0.25, 1.05, 8, 1000
-- A warp's products of 16 rows and 16 keys follow one another: 32 rows of d = 112 over 38k keys by four warps took 1.44 times what 110
-- gave; of more than 64 columns O and Q of 32 rows take all registers of a warp.
local CHAIN, CHAIN_WIDE = 650, 1500
-- Clocks for a value of a tile that ends in the middle of a share; of wgmma, for all of it: 44 timings under 17 us, of 9 shapes, took 1.0 to
-- 1.45 times their price.
local END, END_BOXED = 2.2, 2500
-- Codes of a byte: what a group more costs where those of a block meet, and a buffer more before the first keys are looked at. One query
-- over 1k and 8k keys of e4m3, an H200: four groups for eight 0.3 us, three buffers for six 0.05. A byte of parts: 32k keys of 64 heads
-- there and on an H100, two heads in a block for eight streams of one.
local MEET, BUFFER, SUM_BYTES = 130, 30, 0.03
local function as_raced(p, a) return a.has_wgmma and not p.has_lengths and not low_bits(p, a.cc) end

-- A stream of K and V, as fast as memory where enough is under way, blocks have equal shares and no iteration takes longer than its bytes.
-- iteration: clocks of one, beside the other blocks of an SM. Constants: fitted to 2,918 timings of 25 problems on an H200
-- (docs/experiments/decoding.md, "Decoding"); what a launch and a second kernel take, to random shapes on an H100. sq: queries of each
-- sequence, where they are not p.sq. boxed: products are wgmma's.
function decode.stream(p, c, a, iteration, sq, boxed)
  sq = sq or p.sq
  local rows = sq * (p.hq // p.hkv)
  local keys = seen_keys(p, sq)
  local row = row_bytes(p)
  local heads = heads_of(c)
  local tiles = p.b * ((p.hkv + heads - 1) // heads) * ((rows + c.br - 1) // c.br)
  local iterations = (keys + c.bk * c.key_warps - 1) // (c.bk * c.key_warps)
  local blocks = a.sm_count * c.ctas * c.sm_shares
  local share = math.max((tiles * iterations + blocks - 1) // blocks, c.min_turns)
  local parts = iterations > share and iterations // share + 1 or 1
  local pieces = p.d % 64 > 0 or p.dv % 64 > 0
  local reread = pieces and not p.has_lengths and REREAD_PIECES or REREAD
  local kv = p.b * p.hkv * keys * row * (1 + ((rows + c.br - 1) // c.br - 1) * reread)
  local seconds = kv / (a.hbm_gbs * 1e9)
  local flight = c.bk * c.key_warps * math.min(heads, p.hkv) * row * (c.stages - 1) * c.ctas
  local balance = math.max(0.02, math.min(1, tiles * iterations / share / blocks))
  local raced, slower, enough = as_raced(p, a), 1, heads > 1 and 24576 or 49152
  if raced then
    local met = c.kv_lanes > 1 and p.hkv > 1 and p.hkv <= 8 and is_narrow(p) and tiles * 2 > blocks
    if met then enough = LANES_BYTES end
    if pieces then slower = (met and LANES_MET or 1) * (c.br < 32 and PIECES or PIECES_MANY) * (a.hbm_gbs / 3000) ^ 0.45 end
    local kept = KEPT_MOST * math.max(0, math.min(1, 2 - kv / (KEPT * a.l2_bytes)))
    slower = slower * (1 - kept)
  end
  local walked = math.min(keys, share * c.bk * c.key_warps)
  local under_way = math.min(1, flight / enough)
  local codes_of = low_bits(p, a.cc)
  local stream = slower * seconds * apart(p, c, a, codes_of, walked, kv) * uneven(p, c, a, codes_of, boxed) / under_way / balance ^ 0.83
  local compute = share * c.sm_shares * iteration / (a.clock_ghz * 1e9)
  local efficiency = math.min(2, seconds / (stream ^ 4 + compute ^ 4) ^ 0.25)
  local latency = 1180 + 9500 * (c.sm_shares - 1) + 1490 * (c.ctas - 1)
  local partial = parts * math.min(rows, c.br) * math.min(heads, p.hkv) * p.dv * 4
  local low = low_bits(p, a.cc)
  local bytes = low and low.k.block == 1 and low.v.block == 1 and c.br <= 8
  local sum = partial * (bytes and SUM_BYTES or 0.055)
  if bytes then latency = latency + MEET * c.key_warps + BUFFER * c.stages end
  if raced then
    sum = partial * (c.dot_lanes and SUM_DOTS or SUM) / (c.row_warps * c.key_warps)
    if parts > 1 and c.combine == c.named.combine.last_block then latency = latency + FILL end
    -- Where a tile ends in the middle of a share, its groups meet, and the next begins with nothing under way.
    if tiles > 1 then latency = latency + (boxed and END_BOXED or END * math.min(rows, 16) * p.dv * math.max(1, share / iterations)) end
  end
  -- A second kernel after wgmma began sooner in graphs on an H100 than the one after mma.sync that the other numbers are from.
  if parts > 1 then latency = latency + (c.combine == c.named.combine.last_block and sum or boxed and 5200 or 9000) end
  local first = { bytes = kv + 2 * p.b * sq * p.hq * p.dv * p.bytes, efficiency = math.max(0.01, efficiency), latency = latency }
  if c.combine == c.named.combine.last_block then return { first } end
  local waits = not raced and 0 or (parts + BATCH - 1) // BATCH - 1
  return { first, { bytes = math.max(1, tiles * partial), latency = BATCH_CLOCKS * waits } }
end

-- Blocks with scales, tiles of 8 rows: a warp's instructions of an iteration for a value beside its unpacking (products, scales, copies),
-- for a key, and for itself; instructions that a scheduler issues in a clock with so many warps. Of ncu's counts on an H200,
-- where rows of 64 and less were not raced. On an H100 memory bounds eight heads of 8 warps: 12 warps took 1.07 of their time.
local BESIDE, OF_KEY, OF_ITERATION = 1.2, 2.5, 120
local ISSUED = { 0.28, 0.51, 0.56, 0.5 }
-- Warps that copy rows together wait for each other, in one block of two key groups more than in two blocks: q4_0 on an H200, 0.966.
local TWO_BLOCKS = 0.966
-- Four blocks of four rows of q4_0 there, each with a tile of its own: 0.93 of the time of three; where they share tiles 1.01 to 1.13.
local FOUR_BLOCKS = 0.82
-- Blocks of 32 rows and of 64 of one head there, whose warps unpack the same keys, beside their prices.
local SAME_KEYS = { [32] = 1.36, [64] = 1.15 }
-- Where boxes bring rows no warp copies. Of 12 races of q4_0 there.
local BROUGHT = 0.68
-- wgmma over codes that become fp16 first, an iteration of a warpgroup beside another one: clocks for itself, for a key, for a value of a
-- key, and of it for an instruction of its unpacking; where boxes bring them. Of 14 races on an H200.
local WIDEN, WIDEN_KEY, WIDEN_VALUE, WIDEN_COST, WIDEN_BOXES = 333, 15, 0.13, 0.05, 0.88
-- Of codes in blocks, of so many bits, and where 128 keys are taken at a time: of 20 races of what moves a thread's blocks together.
local WIDEN_BLOCK, WIDEN_MANY = { [8] = 1.05, [4] = 1 }, 0.92
local function unpacking(p, c, a, l)
  local values = p.d * (l.cost_k + BESIDE) + p.dv * (l.cost_v + BESIDE)
  local warps = l.warps * c.ctas
  local waits = l.tokens and c.br == 4 and c.ctas == 2 and a.hbm_gbs > 4000 and TWO_BLOCKS or 1
  if l.tokens and c.br == 4 and c.ctas == 4 and p.b * p.hkv >= OWN_TILE * heads_of(c) * a.sm_count * c.ctas then waits = FOUR_BLOCKS end
  if l.boxes then waits = BROUGHT end
  return waits * warps * (OF_ITERATION + c.bk * (OF_KEY + values / 32)) / (4 * ISSUED[math.max(1, warps // 4)])
end

function decode.work(p, c, a, l, sq)
  -- The chain of latencies from the arrival of an iteration's keys to its last product, or the products themselves.
  local heads = heads_of(c)
  local flops = 2 * c.br * c.bk * c.key_warps * heads * (round_up(p.d, 16) + l.vb * 8)
  -- A program's instructions, of all warps of a block on four schedulers.
  local program = program_cost(p).issue * c.br * c.bk * c.key_warps * heads / 128
  local rows_warp = math.max(1, c.br // c.row_warps // 16)
  local link = not as_raced(p, a) and 110 or rows_warp > 1 and p.dv > 64 and CHAIN_WIDE or CHAIN
  local chain = 640 + link * (c.bk // 16) * rows_warp * (p.d + p.dv) / 256
  local products = 3.7 * flops / a.mma16_flop
  if l.boxed then chain, products = 1030 + 7 * c.bk, 2.9 * flops / a.wgmma16_flop end
  if l.widened then
    local function value(f)
      local of_blocks = f.block > 1 and WIDEN_BLOCK[f.bits] * (c.bk == 128 and WIDEN_MANY or 1) or 1
      return (WIDEN_VALUE + WIDEN_COST * f.cost) * of_blocks
    end
    chain = WIDEN + c.bk * (WIDEN_KEY + p.d * value(l.low.k) + p.dv * value(l.low.v))
    if l.boxes then chain = WIDEN_BOXES * chain end
  elseif l.low then
    chain = 1.4 * chain
  end  -- not measured: unpacking stands between a load and its products
  local issue = math.max(chain, c.ctas * products) + program
  local nibbles = l.half and (l.low.k.bits == 4 or l.low.v.bits == 4)
  local is_bound = nibbles and (a.hbm_gbs > 4000 or decode.has_limbs(p)) and math.min(p.d, p.dv) > 64
  if is_bound and l.low.k.has_scale then
    issue = math.max(chain, unpacking(p, c, a, l)) * (is_eight_alone(p, c, a, l.low) and EIGHT_ISSUE or 1) + program
  elseif l.low and not l.widened then  -- each warp of rows unpacks all keys of its group
    issue = issue + c.ctas * c.bk * c.key_warps * heads * c.row_warps * (p.d * l.cost_k + p.dv * l.cost_v) / 128
    local pieces = l.low.k.has_scale and decode.row_bytes_of(p.kv, p.d) % 4 == 0
    if c.br >= 32 and heads == 1 and pieces and a.hbm_gbs > 4000 then issue = SAME_KEYS[c.br] * issue end
    issue = uneven(p, c, a, l.low) * issue
    if math.max(p.d, p.dv) > 64 and has_two_in_step(p, c, a) then issue = BOXES_TWO_ISSUE * issue end
  end
  return decode.stream(p, c, a, issue, sq, l.boxed)
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

-- Buffers, blocks of an SM and heads side by side as they mostly win.
decode.usual = { { 2, 1, 1 }, { 3, 1, 1 }, { 2, 2, 1 }, { 2, 2, 8 } }
-- Beside them, of rows that are no whole lines: as many heads side by side as there are, so that lines are met by all.
function decode.usual_dense(p)
  if p.has_lengths or p.has_batch_invariant or p.hkv == 1 or p.hkv > 8 and p.hkv % 8 > 0 or not is_narrow(p) then
    return decode.usual
  end
  return { { 2, 1, 1 }, { 3, 1, 1 }, { 2, 1, 8 }, { 2, 2, 1 }, { 2, 2, 8 } }
end
-- The same over K and V of few bits, whose buffers are smaller. A row that ends within a line leaves the rest of it to the next head, and
-- so does a token's scale.
function decode.usual_low(p)
  local low = low_bits(p, 80)
  local lanes = (is_narrow(p, low) or p.k_scale == 2 or p.v_scale == 2) and 8 or 1
  -- Many buffers first: where a tile ends, what is on its way lasts until the next one has begun.
  return { { 6, 1, lanes }, { 4, 1, lanes }, { 3, 1, lanes }, { 3, 2, lanes }, { 2, 2, lanes } }
end

-- Configs of these tiles and shares.
function decode.starts(tiles, combine, usual)
  local list = {}
  for _, tile in ipairs(tiles) do
    for _, shares in ipairs(usual or decode.usual) do
      local to = {}
      for _, k in ipairs(sorted(tile)) do to[k] = tile[k] end
      to.stages, to.ctas, to.kv_lanes = shares[1], shares[2], shares[3]
      to.combine, to.sm_shares, to.min_turns = combine, 1, 1
      list[#list + 1] = to
    end
  end
  return list
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
  t.steps, t.workspace, t.params, t.work = decode.steps, decode.workspace, decode.params, t.work or decode.work
  return masked(t)
end

return decode
