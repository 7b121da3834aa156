-- How much longer rows of K and V of few bits take from memory than their bytes, by what reads neighbouring heads: other blocks, or one.

local kv_rows = include "families/decode_rows.lua"
local codes_of = include "tiles/codes.lua"

local apart = {}

-- Whether nearly every block has a tile of its own.
function apart.has_own_tiles(p, c, a) return p.b * p.hkv >= 7 / 8 * kv_rows.heads_of(c) * a.sm_count * c.ctas end

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
local APART_OWN_TILE, APART_SHARED_TILE = 0.88, 1.5
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
function apart.few_keys(p)
  local kv = p.b * p.hkv * p.sk * kv_rows.row_bytes(p)
  return kv > 4e6 and kv < IN_L2
end
-- Whether four groups of 32 keys do.
function apart.least_keys(p) return p.b * p.hkv * p.sk * kv_rows.row_bytes(p) <= 4e6 end
-- Factors of the time for rows of 64 bytes and of 128 that come by TMA, by the number of heads. One head does best where the L2 holds all
-- keys, or where no block has parts of two tiles, so that all walk in step, and worst elsewhere. 40 races of e4m3 and s8 on an H200.
local BOXES_SHORT, BOXES_LONG = { [1] = 1.1, [2] = 0.89, [4] = 0.87, [8] = 0.9 }, { [1] = 1.04, [2] = 1.02, [4] = 0.985, [8] = 1 }
local BOXES_KEPT, BOXES_IN_STEP = 0.84, 0.955
-- The same where two tiles of 16 rows have one head: of the stream, and of an iteration. They find each other's keys in the L2 where it
-- holds all, or where each tile is one block's: else one is far behind the other, 1.18 of the time of a tile of 32.
local BOXES_TWO = 0.8
apart.two_issue = 0.74
function apart.has_two_in_step(p, c, a)
  local rows, tiles, blocks = p.sq * (p.hq // p.hkv), 2 * p.b * p.hkv, a.sm_count * c.ctas
  if (c.boxes or 0) == 0 or c.br ~= 16 or kv_rows.heads_of(c) > 1 or rows <= 16 or rows > 32 or tiles > blocks then return false end
  local iterations = (p.sk + c.bk * c.key_warps - 1) // (c.bk * c.key_warps)
  return p.b * p.hkv * p.sk * kv_rows.row_bytes(p) <= a.l2_bytes or tiles * iterations > (iterations - 1) * blocks
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
function apart.uneven(p, c, a, low, wide)
  if wide then return low and low.k.block > 1 and p.hkv % 4 > 0 and UNEVEN_WIDE[p.kv_align] or 1 end
  local many = low and p.sq * (p.hq // p.hkv) > 16 and low.k.has_scale and a.hbm_gbs > 4000
  if many and p.hkv > 1 and p.hkv % 4 > 0 and kv_rows.heads_of(c) > 1 then
    local few = p.sq * (p.hq // p.hkv) <= 24 and low.k.bits == 8
    return p.hkv % kv_rows.heads_of(c) > 0 and MANY_IDLE or few and FEW_TWO or MANY_TWO
  end
  if not low or (c.token_rows or 0) == 1 or (c.boxes or 0) == 1 or p.hkv % 8 == 0 then return 1 end
  local most, tiles = 1, many and p.hkv == 1 and MANY_ALONE or 1
  for _, x in ipairs { { low.k, p.d }, { low.v, p.dv } } do
    local row = x[1].block > 1 and codes_of.row_bytes(x[1], x[2]) or 16
    if p.hkv % 4 == 0 then row = 4 * row end
    if row % 16 > 0 then most = math.max(most, tiles * UNEVEN[row & -row]) end
  end
  return most
end
-- Whether a block has one head's five to eight rows, of which two heads at a time would be limbs.
function apart.is_eight_alone(p, c, a, low)
  local alone = c.br == 8 and kv_rows.heads_of(c) == 1 and low.k.block > 1 and p.d > 64 and p.d <= 128
  return alone and p.hkv % 4 == 0 and a.hbm_gbs > 4000 and p.sq * (p.hq // p.hkv) > 4
end
-- walked: keys that a block has one after the other; kv: bytes of K and V.
function apart.factor(p, c, a, low, walked, kv)
  if not low or p.hkv == 1 then return 1 end
  local heads = kv_rows.heads_of(c)
  local few_4 = c.br == 4 and low.k.bits == 4
  if few_4 and heads == 2 and p.d > 64 then
    if p.hkv % 4 == 0 or codes_of.row_bytes(low.k, p.d) % 16 == 0 then return APART_TWO_4 end
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
    if not short and apart.has_two_in_step(p, c, a) then return BOXES_TWO end
    if heads == 1 and not short and p.b * p.hkv <= a.sm_count * c.ctas then return BOXES_IN_STEP end
    return (short and BOXES_SHORT or BOXES_LONG)[heads]
  end
  if bytes and c.br == 64 and kv_rows.is_narrow(p, low) and kv < IN_L2 then return APART_LANES end
  if apart.is_eight_alone(p, c, a, low) then return APART_EIGHT end
  if c.br == 16 and heads == 1 and low.k.block > 1 and a.hbm_gbs > 4000 then return APART_SIXTEEN end
  if bytes and a.hbm_gbs > 4000 then
    if heads == 2 and c.bk == 64 and math.max(p.d, p.dv) <= 64 and kv < KEPT_ALL * a.l2_bytes then return SHORT_FEW end
    if heads == 4 and c.bk == 64 and math.max(p.d, p.dv) <= 64 then
      if (c.token_rows or 0) > 0 then return SHORT_ROWS end
      return walked <= 1536 and SHORT_FEW or walked < 6144 and SHORT_SOME or SHORT_MANY
    end
    if kv_rows.is_narrow(p, low) and heads == 1 and (c.kv_lanes > 1 or kv < KEPT_ALL * a.l2_bytes) then
      return APART_LANES * (c.bk >= 32 and c.stages > 3 and SHORT_BUFFERS or 1)
    end
    if not kv_rows.is_narrow(p, low) then return heads == 1 and kv < FEW_BYTES and APART_FEW or APART_BYTES_FAST[heads] end
  end
  if (c.token_rows or 0) > 0 then
    -- Products of integers: the order of the configs is one chip's and the other's.
    local of_integers = c.br == 4 or (c.limbs or 0) == 1
    local short = p.d <= 64 and c.bk < 64 and ROWS_SHORT_KEYS or 1
    local short_4 = of_integers and low.k.bits == 4 and p.d <= 64
    if c.br == 4 and p.d > 64 and c.bk == 16 then
      return apart.has_own_tiles(p, c, a) and APART_OWN_TILE or APART_SHARED_TILE
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
  if bytes and kv_rows.is_narrow(p, low) then
    -- Where the L2 holds all keys the instructions for a key decide, and a block of 64 keys has fewer.
    if kv < KEPT_ALL * a.l2_bytes then
      if c.bk == 64 then return SHORT_FEW end
    elseif c.bk == 64 and c.br <= 8 then
      return SHORT_MANY
    end
    if heads == 1 and c.kv_lanes > 1 and c.bk >= 32 and c.stages > 3 then return APART_LANES * SHORT_BUFFERS end
  end
  if kv_rows.is_narrow(p, low) and not (bytes and heads == 4) then
    if heads == 1 and c.kv_lanes > 1 and few_4 then return APART_LANES_4 end
    return heads == 1 and c.kv_lanes > 1 and APART_LANES or APART[heads] or 1
  end
  if tokens then return heads == 1 and c.kv_lanes > 1 and APART_TOKENS_LANES or APART_TOKENS[heads] or 1 end
  if kv_rows.is_narrow(p, low) then return 1 end
  return bytes and APART_BYTES[heads] or heads == 1 and 1.03 or 1
end

apart.eight_issue = EIGHT_ISSUE

return apart
