-- append: new rows of K and V on their way into a cache, rotated and transformed, and rows of Q rotated beside them. A team of lanes has
-- some heads of one token: its place in the cache, its cosines and sines are found once for them. Blocks are persistent.

local pair_values = include "pairs/values.lua"

local FOLDED = 1    -- scales of a sequence or a head
local HEADROOM, CODED = 24, 56 -- registers beside what is held of rows: of rows that stay as they are, of such that become codes

-- Words of the counters: entries of the table of few tokens. A launch has up to twice as many tokens as the problem that stands for its
-- bucket, and the table twice as many entries as tokens.
local ENTRIES = 1 << 14

local QUARTERED = 1 << 17 -- rows from which a lane may have four pieces of each

local bytes_of = { fp16 = 2, bf16 = 2, fp32 = 4 }

-- Types of the cache.
local function types(p)
  local k = p.kv ~= "?" and p.kv or p.dtype
  return k, p.v ~= "?" and p.v or k
end

-- Whether the cache has rows of blocks. They begin where other rows would not.
local function has_blocks(p)
  local k, v = types(p)
  local f, g = codes(k, 80), codes(v, 80)
  return f and f.block > 1 or g and g.block > 1 or false
end

-- Columns that a lane and its neighbours have of one scale in the cache's rows: of a block's own scales.
local function together(p)
  local n = 1
  for _, name in ipairs({ types(p) }) do
    local f = codes(name, 80)
    if f and f.has_scale then n = math.max(n, f.shared) end
  end
  return n
end

-- Columns of a piece: what a lane loads at a time, of fp32 twice that.
local function columns(p)
  local blocks = has_blocks(p)
  if blocks and p.d % 8 == 0 and p.dv % 8 == 0 then return 8 end
  local vec = math.max(blocks and 2 or 1, math.min(p.align, 16) // 2)
  while p.d % vec ~= 0 or p.dv % vec ~= 0 do vec = vec // 2 end
  return vec
end

-- Whether a lane may have four pieces of each row: what is found for a row, or for a block of it, is found by fewer.
local function quarters(p)
  local fits = p.d == p.dv and p.d >= 64 and p.d & p.d - 1 == 0 and columns(p) == 8
  return fits and (p.rotary == 0 or p.has_rotary_pairs or p.rotary == p.d)
end

-- Whether two lanes have the four pieces of a block, each two that lie half a block apart. Of rows with codes of 4 bits; those of q8_0
-- alone lose by it with few tokens or columns.
local function deals(p, l)
  if not quarters(p) or p.align < 4 then return false end
  local nibbles = false
  for _, f in ipairs({ l.k_format or false, l.v_format or false }) do
    if f and f.block > 1 then
      if f.kind == "table" or f.least_at > 0 or f.high_at > 0 or f.scale_is_e4m3 then return false end
      nibbles = nibbles or f.bits == 4
    end
  end
  return nibbles
end

-- Instructions that make a code of an element.
local function cost_of(format) return format and (format.has_scale and 11 or 6) or 0 end

return {
  doc = "new keys and values into a cache, a team of lanes for some heads of a token",
  head_dim = 576,
  operation = "append",
  formats = "e4m3 e5m2 s8 q8_0 q4_0 q4_1 q5_0 q5_1 iq4_nl nvfp4",
  features = "lengths+pages+slots+positions+positions64+rotary+rotary-pairs+hadamard-k+hadamard-v",

  tunables = {
    { "warps", { 4, 8, 2 }, "of a block" },
    { "token_heads", { 1, 2, 4, 8 }, "heads of a token that a team of lanes does at a time" },
    -- How the later of two tokens for one slot is found: each looks at those after it, or all claim their slots in a table before.
    { "claims", { { 0, "looked_for" }, { 1, "hashed" }, { 2, "hashed_few" } },
      "how a token finds a later one of its slot: it looks at each, or in a table, which of few tokens is one that needs no clearing" },
    { "quarters", { 0, 1 }, "rows of s8 whose scales are found: a lane has four pieces of each, and a head comes at a time", later = true },
  },

  start = function(p, a)
    local list = {}
    for _, heads in ipairs(p.hkv > 1 and { 4, 2, 1, 8 } or { 1 }) do
      for _, claims in ipairs(not p.has_slots and { 0 } or p.b * p.sq <= ENTRIES // 4 and { 0, 1, 2 } or { 0, 1 }) do
        list[#list + 1] = { warps = 4, token_heads = heads, claims = claims }
      end
    end
    -- Where memory is so fast that what they issue bounds many rows: of 13 shapes from 16,384 tokens of 8 heads on 0.84 to 0.99 of the time
    -- on an H200, 65,536 of 8 0.94. A few thousand tokens take up to 1.26, and rows of 64 up to 1.57.
    if p.b * p.sq * p.hkv >= QUARTERED and p.d >= 128 and a.hbm_gbs > 4000 then
      list[#list + 1] = { warps = 4, token_heads = 4, claims = p.has_slots and 1 or 0, quarters = 1 }
    end
    return list
  end,

  supports = function(p, a) return true end,

  constraints = {
    { "claims", function(p, c, a)
      if c.claims > 0 and not p.has_slots then return false, "a table of slots without slots" end
      if c.claims < 2 or p.b * p.sq <= ENTRIES // 4 then return true end
      return false, p.b * p.sq .. " tokens, more than " .. ENTRIES // 4
    end },
    { "quarters", function(p, c, a)
      if (c.quarters or 0) == 0 then return true end
      local k, v = types(p)
      local found = p.k_scale_out > 0 and p.v_scale_out > 0
      if k ~= "s8" or v ~= "s8" or not found then return false, "rows that are no integers with scales to be found" end
      if not quarters(p) then return false, "rows without four pieces of eight columns for each lane" end
      if c.token_heads >= 4 and c.warps <= 4 then return true end
      return false, c.warps .. " warps, " .. c.token_heads .. " heads at a time"
    end },
  },

  layout = function(p, c, a)
    local l = { threads = 32 * c.warps, bytes = 0, entries = ENTRIES }
    l.k_type, l.v_type = types(p)
    l.k_format, l.v_format = codes(l.k_type, a.cc), codes(l.v_type, a.cc)
    -- Of what strides count: an element, or a block.
    l.k_bytes = l.k_format and l.k_format.block_bytes or bytes_of[l.k_type]
    l.v_bytes = l.v_format and l.v_format.block_bytes or bytes_of[l.v_type]
    l.row_k = p.d // (l.k_format and l.k_format.block or 1) * l.k_bytes
    l.row_v = p.dv // (l.v_format and l.v_format.block or 1) * l.v_bytes
    l.folded = p.k_scale == FOLDED or p.v_scale == FOLDED
    l.vec = columns(p)
    l.pieces, l.pieces_v = p.d // l.vec, p.dv // l.vec
    local most = math.max(l.pieces, l.pieces_v)
    l.lanes = 1
    while l.lanes < 32 and l.lanes < most do l.lanes = 2 * l.lanes end
    -- A lane has both of the columns that turn together, where half a rotation is as many pieces as it may have lanes. Teams whose lanes
    -- find the scales of blocks hold whole ones side by side.
    local half_pieces = not p.has_rotary_pairs and p.rotary // 2 % math.max(l.vec, together(p)) == 0 and p.rotary // 2 // l.vec or 0
    local own = half_pieces >= 2 and half_pieces <= 16 and half_pieces & half_pieces - 1 == 0
    if own then l.lanes = half_pieces end
    l.dealt = c.token_heads >= 4 and deals(p, l)
    l.by_head = l.dealt or (c.quarters or 0) == 1 -- a lane has four pieces of a row
    if l.by_head then
      l.lanes = most // 4
      own = p.rotary > 0 and not p.has_rotary_pairs
    end
    -- Pieces of a lane that turn with others of it.
    l.turned = own and half_pieces // l.lanes or 0
    l.share = (most + l.lanes - 1) // l.lanes
    l.full = l.by_head -- each lane has as many pieces of each row
    l.words = math.max(1, l.vec * p.bytes // 4)
    l.wide = p.align < 16 and has_blocks(p) and l.vec == 8 -- rows that are read may begin at more than those of the cache
    -- How an element's partner is found: in registers, as a piece, or one by one.
    local half = p.rotary // 2
    if p.rotary == 0 then
      l.partner = "none"
    elseif p.has_rotary_pairs then
      l.partner = l.vec % 2 == 0 and p.rotary % l.vec == 0 and "pairs" or "any"
    else
      l.partner = own and "own" or half % l.vec == 0 and "halves" or "any"
    end
    l.angles = l.partner == "pairs" and l.vec // 2 or l.vec
    if p.rotary > 0 then
      l.angle_bytes = bytes_of[p.cos]
      l.angle_unit = 16 -- bytes: rows of cosines, and of sines, begin at a multiple of it
      while half * l.angle_bytes % l.angle_unit ~= 0 do l.angle_unit = l.angle_unit // 2 end
      l.angle_unit = math.min(l.angle_unit, l.angles * l.angle_bytes)
    end
    -- Which sequence a row is of says where it goes, its position, or whether it counts.
    l.sequences = not p.has_slots or p.has_lengths or l.folded or (p.rotary > 0 and not p.has_positions)
    -- Two items of a block's lanes: one is done while the other is on its way. Or each head makes room for that of the next item.
    l.bytes = (l.by_head and 1 or 2) * c.token_heads * l.share * (l.words * 4 * l.threads + (l.dealt and 32 or 0))
    -- Rows of blocks of a token, side by side, where they are whole chunks of 16 bytes.
    local function gathers(format, row) return format ~= nil and format.block > 1 and c.token_heads * row % 16 == 0 end
    l.gathers_k, l.gathers_v = gathers(l.k_format, l.row_k), gathers(l.v_format, l.row_v)
    if l.dealt then
      l.blocks_k, l.blocks_v = l.k_format and l.k_format.block > 1, l.v_format and l.v_format.block > 1
      l.staged, l.staged_row = (l.bytes + 15) // 16 * 16, math.max(l.blocks_k and l.row_k or 0, l.blocks_v and l.row_v or 0)
      -- An odd number of chunks of 16 bytes: of eight teams no more than two write to a bank.
      l.team_rows = ((c.token_heads * l.staged_row + 15) // 16 | 1) * 16
      l.bytes = l.staged + l.threads // l.lanes * l.team_rows
    elseif l.gathers_k or l.gathers_v then
      l.gathered = l.bytes
      l.bytes = l.bytes + l.threads // l.lanes * c.token_heads * math.max(l.row_k, l.row_v)
    end
    l.regs = (l.k_format or l.v_format) and CODED or HEADROOM
    l.regs = l.regs + l.share * (l.words + 2 * l.vec) + (p.rotary > 0 and 2 * l.angles * (own and l.turned or l.share) or 0)
    if l.by_head then l.regs = 168 end -- no more by launch bounds
    l.per_sm = math.max(1, math.min(32 // c.warps, 65536 // (l.threads * math.min(255, (l.regs + 7) // 8 * 8)),
      a.smem_sm // (l.bytes + a.smem_reserved)))
    l.bounds = l.by_head and "THREADS, " .. l.per_sm or "THREADS"
    return l
  end,

  steps = function(p, c, a, l)
    local pdl = a.cc >= 90 and 1 or 0
    local append = { entry = "fa_append", grid = "total_q hq", smem = l.bytes, per_sm = l.per_sm, pdl = pdl }
    if c.claims == 0 then return { append } end
    if c.claims == 2 then
      return { { entry = "fa_claim", grid = ("total_q/%d"):format(l.threads), smem = 0, pdl = pdl }, append }
    end
    local grid = ("total_q/%d"):format(l.threads)
    return { { entry = "fa_clear", grid = grid, smem = 0, pdl = pdl }, { entry = "fa_claim", grid = grid, smem = 0, pdl = pdl }, append }
  end,

  workspace = function(p, c, a, l)
    return c.claims == 1 and "claims int32 total_q 3" or c.claims == 2 and "counters, claims int32 total_q" or ""
  end,

  params = function(p, c, a, l)
    local values = pair_values(p)
    local names = {
      "new_k new_v q q_out k v",
      p.has_slots and "slots" or "",
      values.sequences,
      p.has_positions and "positions" or "",
      p.rotary > 0 and "cos_sin" or "",
      p.k_scale > 0 and "k_scale" or "",
      p.v_scale > 0 and "v_scale" or "",
      p.k_scale_out > 0 and "k_scale_out" or "",
      p.v_scale_out > 0 and "v_scale_out" or "",
      "skipped",
      c.claims == 2 and "workspace" or "",
      c.claims > 0 and "claims" or "",
      "new_k_sb new_k_ss new_k_sh new_v_sb new_v_ss new_v_sh q_sb q_ss q_sh q_out_sb q_out_ss q_out_sh k_sb k_ss k_sh v_sb v_ss v_sh",
      p.k_scale > 0 and "k_scale_sb k_scale_ss k_scale_sh" or "",
      p.v_scale > 0 and "v_scale_sb v_scale_ss v_scale_sh" or "",
      p.k_scale_out > 0 and "k_scale_out_sb k_scale_out_ss k_scale_out_sh" or "",
      p.v_scale_out > 0 and "v_scale_out_sb v_scale_out_ss v_scale_out_sh" or "",
      "b hq hkv sq sk",
      p.has_lengths and "total_q total_k" or "",
      values.pages,
      p.has_slots and "page_size pages" or "",
      p.rotary > 0 and "rotary_positions" or "",
    }
    local text = ""
    for _, name in ipairs(names) do
      if name ~= "" then text = text .. (text ~= "" and " " or "") .. name end
    end
    return text
  end,

  -- With rows of Q. An SM whose rows keep less than 32 KiB on the way waits for them.
  work = function(p, c, a, l)
    local tokens = p.b * p.sq
    local items = tokens * (2 * ((p.hkv + c.token_heads - 1) // c.token_heads) + (p.hq + c.token_heads - 1) // c.token_heads)
    local at_work = math.min(items, a.sm_count * l.per_sm * (l.threads // l.lanes)) / a.sm_count
    local heads = math.min(c.token_heads, p.hkv)
    local way = heads * p.d * p.bytes
    local scales = (p.k_scale > FOLDED and 4 or 0) + (p.v_scale > FOLDED and 4 or 0) + 2 * (p.k_scale_out + p.v_scale_out)
    local rows = p.hkv * ((p.d + p.dv) * p.bytes + l.row_k + l.row_v + scales) + 2 * p.hq * p.d * p.bytes
    local lists = (p.has_slots and 8 or 0) + (p.has_positions and 4 or 0) + p.rotary * (l.angle_bytes or 0)
    -- Instructions of a warp whose teams do an item each: of an element, and beside its elements.
    local element = 2 + (p.rotary > 0 and (l.partner == "own" and 3 or 5) or 0) + math.max(cost_of(l.k_format), cost_of(l.v_format))
    local instructions = 500 + heads * (30 + l.share * l.vec * element)
    -- Half of what 16 warps could issue, less of fewer: each waits for places, angles and rows in turn. Twelve with quarters of rows wait
    -- less.
    local rate = a.issue_rate / 2 * math.min(1, l.per_sm * c.warps / ((c.quarters or 0) == 1 and 12 or 16))
    local busy = math.min(1, items / (a.sm_count * l.per_sm * (l.threads // l.lanes)))
    local issued = busy * items * l.lanes / 32 * instructions / (a.sm_count * rate)
    local bytes = tokens * (rows + lists)
    local l2_speed = math.max(1 / 64, math.min(1, at_work * way / 32768))
    -- What is slower of memory and of the L2 is divided by it.
    local stream = bytes * a.clock_ghz * math.max(1 / a.hbm_gbs, 1 / (a.l2_gbs * l2_speed))
    local append = {
      bytes = bytes,
      l2_speed = l2_speed,
      efficiency = math.max(1 / 64, math.min(1, stream / issued)),
      -- one item alone; and each reads the slots of half the tokens, 32 bytes a clock and SM
      latency = 600 + 3 * instructions + (p.has_slots and c.claims == 0 and items * (tokens * 4 / (32 * a.sm_count)) or 0),
    }
    if c.claims == 0 then return append end
    if c.claims == 2 then return { { bytes = (8 + 4) * tokens }, append } end
    return { { bytes = 12 * tokens }, { bytes = (8 + 4) * tokens }, append }
  end,
}
