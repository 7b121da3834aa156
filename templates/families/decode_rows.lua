-- Rows of K and V where few query rows read them: in 16 bits, or of few bits; how they lie in shared memory, what may bring them, and how
-- many bytes a key has.

local round_up = include "families/round_up.lua"
local edges = include "pairs/edges.lua"
local codes_of = include "tiles/codes.lua"

local kv_rows = {}

-- Formats of K and V, where they have few bits, on a chip.
function kv_rows.low_bits(p, cc)
  local k = codes(p.kv, cc)
  return k and { k = k, v = codes(p.v, cc) or k }
end

-- Rows of blocks may begin anywhere in a chunk of 16 bytes of memory, and are copied with what lies in front of them there.
function kv_rows.shifts(p, f)
  return f.block > 1 and p.kv_align < 16 and f.scales == 1 and f.least_at == 0 and f.high_at == 0
end
-- Chunks of a row of n elements in shared memory; an odd number needs no swizzle.
function kv_rows.chunks_of(p, f, n)
  local bytes = codes_of.row_bytes(f, n)
  if kv_rows.shifts(p, f) then return (bytes + 31 - p.kv_align) // 16 | 1 end
  return (bytes + 15) // 16
end

-- Rows of a token, of heads side by side as they lie in a cache: head number `side` begins at its byte `side` * row, where chunks of 16
-- bytes are not its own. chunks: of a head's row, wherever it begins; pitch: chunks from a token to the next, odd, so that eight rows lie
-- in different banks without a swizzle.
function kv_rows.token_rows(f, n, heads)
  local row = codes_of.row_bytes(f, n)
  local unit = (row | 16) & -(row | 16)
  local t = { row = row, most = 16 - unit, whole = heads * row // 16 }
  t.chunks = (row + t.most + 15) // 16
  local read = ((heads - 1) * row & -16) // 16 + t.chunks
  t.pitch = math.max(read, t.whole) | 1
  t.after = math.max(0, read - t.whole)  -- chunks beyond all heads' rows that are read with the last head's
  return t
end

function kv_rows.row_bytes_of(name, n) return codes_of.row_bytes(codes(name, 80), n) end

-- Whether K and V of so many heads of a block may come so.
local function token_rows_of(p, heads)
  local low = kv_rows.low_bits(p, 80)
  if not low then return false, "K and V have no few bits" end
  if heads == 1 then return false, "a block has rows of one head" end
  if edges.bounds(p) then return false, "heads see keys of their own" end
  for _, x in ipairs { { low.k, p.d }, { low.v, p.dv } } do
    local f, row = x[1], codes_of.row_bytes(x[1], x[2])
    if row % 4 > 0 or heads * row % 16 > 0 then return false, "heads of " .. row .. " bytes" end
    if row % 16 > 0 and (f.block == 1 or f.scales > 1 or f.least_at > 0 or f.high_at > 0) then return false, "rows begin within chunks" end
  end
  return true
end
local rows_problem, rows_by_heads  -- what was asked last: the space of a problem asks for each config
function kv_rows.has_token_rows(p, c)
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
  local low = kv_rows.low_bits(p, 80)
  if not low then return false, "K and V have no few bits" end
  if cc < 90 then return false, "no TMA before sm_90" end
  if p.has_batch_invariant or edges.bounds(p) then return false, "a tile's keys are not those between two" end
  if p.align < 16 then return false, "rows at multiples of " .. p.align .. " bytes" end
  for _, x in ipairs { { low.k, p.d }, { low.v, p.dv } } do
    local bytes = codes_of.row_bytes(x[1], x[2])
    if x[1].block > 1 or bytes ~= 64 and bytes ~= 128 then return false, "rows of " .. bytes .. " bytes" end
  end
  return true
end
-- Whether a token's rows of all of a block's heads may: blocks, whose rows begin within chunks. Where heads do not lie side by side the
-- launch says so, and warps copy rows.
local function token_boxes_of(p, cc, heads)
  if cc < 90 then return false, "no TMA before sm_90" end
  local low = kv_rows.low_bits(p, 80)
  if not low or low.k.block == 1 or low.v.block == 1 then return false, "boxes of several heads of codes without blocks" end
  if p.has_batch_invariant then return false, "a tile's keys are not those between two" end
  for _, x in ipairs { { low.k, p.d }, { low.v, p.dv } } do
    local pitch = kv_rows.token_rows(x[1], x[2], heads).pitch
    if pitch > 128 then return false, "boxes of " .. 16 * pitch .. " bytes" end
  end
  return true
end
local boxed_problem, boxed_on, boxes, without, of_tokens  -- what was asked last: the space of a problem asks for each config
-- together: whether the warps of a group meet when a buffer is read.
function kv_rows.has_boxes(p, c, cc, together)
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

-- Whether a head's row of K or V ends within a line of memory. The rest of the line is another head's: a copy that asks the L2 for all of
-- it reads up to 1.6 times what is needed, where that head's block is not in step.
function kv_rows.is_narrow(p, low)
  if not low then return p.d * p.bytes % 128 > 0 or p.dv * p.bytes % 128 > 0 end
  return codes_of.row_bytes(low.k, p.d) % 128 > 0 or codes_of.row_bytes(low.v, p.dv) % 128 > 0
end

-- Bytes of a key's rows of K and V in shared memory.
local function row_bytes_of(p)
  local low = kv_rows.low_bits(p, 80)
  if low then
    local tokens = (p.k_scale == 2 and 4 or 0) + (p.v_scale == 2 and 4 or 0)
    return 16 * (kv_rows.chunks_of(p, low.k, p.d) + kv_rows.chunks_of(p, low.v, p.dv)) + tokens
  end
  return (round_up(p.d, 8) + round_up(p.dv, 8)) * p.bytes
end
local row_problem, row_known  -- what was asked last
function kv_rows.row_bytes(p)
  if row_problem ~= p then row_problem, row_known = p, row_bytes_of(p) end
  return row_known
end

-- Key/value heads of a block.
function kv_rows.heads_of(c) return math.max(1, c.head_warps or 0) end

return kv_rows
