-- decode_ffma: as decode_mma, with dot products on the FMA units instead of tiles of 16 rows: exact in fp32, and without padding where
-- a group has one or two rows. Each warp walks keys of its own.

local decode = include "families/decode_family.lua"
local price = include "families/decode_price.lua"
local starts = include "families/decode_starts.lua"
local round_up = include "families/round_up.lua"
local program_cost = include "pairs/program_cost.lua"

-- 16-byte chunks of K's rows; chunks of a row of Q that each of `lanes` lanes holds.
local function chunks_of(p) return round_up(p.d, 8) * p.bytes // 16 end
local function dot_chunks(p, lanes) return (chunks_of(p) + lanes - 1) // lanes end

return decode.family {
  doc = "split-KV attention of few query rows on the FMA units, exact in fp32: dense, packed, paged",
  tunables = {
    { "br", { 1, 2, 4 }, "B_r: query rows (queries x heads of a group) per tile" },
    { "bk", { 8, 16, 32 }, "keys that a warp takes at a time" },
    { "row_warps", { 1 }, "warps that share keys" },
    { "key_warps", { 2, 4, 8 }, "warps of a block, each with keys of its own" },
    { "dot_lanes", { 4, 8, 16 }, "lanes that share the dot product of a key" },
  },
  constraints = {
    { "idle", function(p, c)
      if c.dot_lanes == 4 or c.dot_lanes // 2 < chunks_of(p) then return true end
      return false, c.dot_lanes .. " lanes for " .. chunks_of(p) .. " pieces of a row"
    end, upto = "dot_lanes" },
    { "q_regs", function(p, c)
      local own, wider = c.br * dot_chunks(p, c.dot_lanes) * 16 // p.bytes, c.br * dot_chunks(p, c.dot_lanes // 2) * 16 // p.bytes
      if own > 96 and c.dot_lanes < 16 then return false, "Q takes " .. own .. " registers" end
      if wider <= 24 and c.dot_lanes > 4 then return false, "Q takes only " .. wider .. " registers with half the lanes" end
      return true
    end, upto = "dot_lanes", search = true },
  },

  start = function(p, a)
    local rows, tiles = p.sq * (p.hq // p.hkv), {}
    for _, lanes in ipairs({ 4, 8, 16 }) do
      tiles[#tiles + 1] = { br = rows == 1 and 1 or rows == 2 and 2 or 4, bk = 16, row_warps = 1, key_warps = 4, dot_lanes = lanes }
    end
    return starts.of(tiles, "last_block")
  end,

  supports = function(p, a) return true end,

  layout = function(p, c, a)
    local l = decode.layout(p, c, a)
    l.dots = true
    local width = 16 // p.bytes  -- elements of a chunk
    -- Lanes that share a row of V: those that waste the least, of these the most, as far as their part of O leaves registers.
    for _, lanes in ipairs { 4, 8, 16, 32 } do
      local chunks = (l.chunks_v + lanes - 1) // lanes
      if not l.col_lanes or chunks * lanes <= l.col_lanes * l.col_chunks or c.br * l.col_chunks * width > 64 then
        l.col_lanes, l.col_chunks = lanes, chunks
      end
    end
    l.p = round_up(l.used, 16)
    l.bytes = math.max(l.bytes, l.p + c.key_warps * c.br * c.bk * 4)
    -- Registers: Q, O, scores that are not yet added up, row states, addresses of two walks.
    local passes = math.min(c.bk * c.dot_lanes // 32, c.dot_lanes)
    l.regs = c.br * (dot_chunks(p, c.dot_lanes) * width + l.col_chunks * width + passes + 2) + 3 * width + 48
    return l
  end,

  work = function(p, c, a, l, sq)
    -- Instructions of a warp's iteration: a load, conversions and FMAs for each chunk of a lane; copies and their addresses; the softmax.
    local width = 16 // p.bytes
    local loads = c.bk * (dot_chunks(p, c.dot_lanes) * c.dot_lanes + l.col_chunks * l.col_lanes) // 32
    local convert = p.dtype == "fp32" and 0 or width
    local issue = loads * (1 + convert + c.br * width) + 12 * c.bk * (l.chunks + l.chunks_v) // 32 + c.br * (2 * c.dot_lanes + 40) + 60
    issue = issue + program_cost(p).issue * c.br * c.bk // 32
    -- The chain of latencies of one warp, which issues 1.4 clocks apart, and the time of the schedulers, which at times find no warp
    -- that is ready.
    local iteration = math.max(500 + 1.4 * issue, 1.3 * c.ctas * c.key_warps * issue / 4)
    return price.stream(p, c, a, iteration, sq)
  end,
}
