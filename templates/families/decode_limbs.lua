-- Codes of K and V that are integers, which products take as they come: by rows of Q that are limbs of 8 bits, or as fp16 below its normal
-- numbers. What a row of codes is then, and where.

local kv_rows = include "families/decode_rows.lua"
local codes_of = include "tiles/codes.lua"

local limbs = {}

-- Tiles of four rows, of codes of K that are integers: a row of Q becomes four of integers of 8 bits, its limbs, the rows that mma.sync
-- multiplies at a time, so that codes are multiplied as they come. Sums of a block of codes, which are exact, are multiplied by its scale.
-- blocks: of a row; chunks: that a block's codes may lie in, `first`[b] the first; codes: that a byte holds; words: registers of a lane's
-- codes of a row.
function limbs.is_integer(f)
  if f.scales > 1 or f.least_at > 0 or f.high_at > 0 then return false end
  return f.kind == "signed" and f.bits == 8 or f.kind == "unsigned" and f.bits == 4 and f.zero == 8 and f.halves
end
function limbs.has_limbs(p)
  local f = codes(p.kv, 80)
  if not f or not limbs.is_integer(f) then return false end
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
-- Eight rows may be two such tiles, for which K's words are joined once. 16 rows have a sum of products for each block of K, and V's codes
-- as they stand; where a row is one block that gains nothing.
function limbs.has_more(p, c)
  if c.br ~= 8 and c.br ~= 16 or c.row_warps ~= 1 then return false, "limbs of br = " .. c.br .. " rows" end
  local low = kv_rows.low_bits(p, 80)
  for _, x in ipairs(low and { { low.k, p.d }, { low.v, p.dv } } or { { false } }) do
    local f = x[1]
    if not f or not limbs.is_integer(f) then return false, "codes are no integers" end
    local most = kv_rows.shifts(p, f) and 16 - p.kv_align or 0
    if (c.token_rows or 0) == 1 then most = kv_rows.token_rows(f, x[2], math.max(1, c.head_warps or 0)).most end
    if not joins(f, x[2] // f.block, most) then return false, "words are not joined" end
  end
  return true
end
function limbs.of_k(p, l)
  local f = l.low.k
  if f.block == 1 then return { blocks = 1, chunks = l.chunks, first = { [0] = 0 }, codes = 1, words = l.chunks, bytes = p.d } end
  local to = { blocks = p.d // f.block, codes = 8 // f.bits, bytes = f.block_bytes - f.codes_at }
  to.joined = joins(f, to.blocks, l.shifts_k and l.most_k or 0)
  if to.joined then to.first, to.chunks = joined_chunks(f, to.blocks)
  else to.first, to.chunks = chunks_of_blocks(f, to.blocks, to.bytes, l.shifts_k and l.most_k or 0) end
  to.words = to.blocks * to.chunks * to.codes
  return to
end
-- Of V, whose codes are integers, too (low_products.cu), and how many blocks of O there are then.
function limbs.of_v(p, c, l)
  local f = l.low.v
  local bytes = f.block == 1 and p.dv or f.block_bytes - f.codes_at
  local v = { blocks = f.block == 1 and 1 or p.dv // f.block, first = { [0] = 0 }, chunks = l.chunks_v, bytes = bytes }
  v.joined = joins(f, v.blocks, l.shifts_v and l.most_v or 0)
  if v.joined then v.first, v.chunks = joined_chunks(f, v.blocks)
  elseif f.block > 1 then v.first, v.chunks = chunks_of_blocks(f, v.blocks, bytes, l.shifts_v and l.most_v or 0) end
  v.rows = v.chunks * codes_of.registers(f) // (l.half and 2 or 1)  -- blocks of columns of O for each of V's blocks
  -- Blocks of O beside those, of four rows for two of V's blocks each.
  v.excess = c.br == 4 and (v.blocks + 1) // 2 or v.blocks
  return v, v.blocks * v.rows + v.excess
end

return limbs
