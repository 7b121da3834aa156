-- flash_fwd_ffma: flash attention forward in exact fp32 on the FMA units, for sm_80 and later.
-- Half a warp (16 lanes) shares RI rows: lane x holds columns x, x + 16, ... of S and every 16th float4 of O; of the last columns a float2,
-- where that is enough.

local masked = include "families/masked_family.lua"
local values_of = include "pairs/values.lua"
local program_cost = include "pairs/program_cost.lua"

return masked {
  doc = "flash attention forward in exact fp32 on the FMA units",
  features = "batch-invariant+dropout+score+v-in-k",
  tile = { "br", "bc" },

  tunables = {
    { "br", { 16, 32, 64, 128 }, "B_r: rows of Q per block" },
    { "bc", { 32, 64, 96, 128 }, "B_c: keys per iteration" },
    { "warps", { 1, 2, 4, 8 }, "warps per block, each with B_r / warps rows" },
    { "pack", { 0, 1 }, "GQA packing: 1 = the query heads of a group share the rows of a tile" },
  },

  start = function(p, a)
    local list = {}
    local pack = p.hq > p.hkv and p.sq < 64 and 1 or 0
    -- 32 keys are for what finds no room else: in two shapes of eight they took 0.97 of the time of 64, in one 1.2, where few blocks are
    -- left for a last round.
    local room = 64 * (5 * p.d + 4 * p.dv + 64) <= a.smem_block  -- of 16 rows and 64 keys
    for _, br in ipairs({ 16, 32, 64, 128 }) do
      for _, bc in ipairs(room and { 64, 128 } or { 32, 64, 128 }) do
        for _, rows in ipairs({ 8, 16, 32 }) do
          local fits = br % rows == 0 and br // rows <= 8 and (bc < 128 or rows == 16)
          if fits then list[#list + 1] = { br = br, bc = bc, warps = br // rows, pack = pack } end
        end
      end
    end
    return list
  end,

  supports = function(p, a)
    if p.dtype ~= "fp32" then return false, p.dtype .. " runs on the matrix units: flash_fwd_mma" end
    return true
  end,

  constraints = {
    { "rows", function(p, c)
      local rows = c.br // c.warps
      if rows == 8 or rows == 16 or rows == 32 then return true end
      return false, "B_r / warps = " .. rows .. ", not 8, 16 or 32"
    end },
  },

  layout = function(p, c, a)
    local l = { threads = c.warps * 32 }
    l.chunks, l.chunks_v = (p.d + 3) // 4, (p.dv + 3) // 4
    l.ri = c.br // c.warps // 2
    l.half = l.chunks_v > 16 and l.chunks_v % 16 > 0 and l.chunks_v % 16 <= 8
    l.vj = l.half and l.chunks_v // 16 or (l.chunks_v + 15) // 16
    l.o_row = 4 * l.vj + (l.half and 2 or 0)  -- floats of O of a lane, per row
    l.q = 0
    l.k = c.br * l.chunks * 16
    l.v = l.k + c.bc * l.chunks * 16
    l.p = l.v + c.bc * l.chunks_v * 16
    -- P of a block of keys, or of one half after the other where that finds no room.
    l.p_pieces = l.p + c.br * c.bc * 4 > a.smem_block and c.bc % 64 == 0 and 2 or 1
    l.bytes = l.p + c.br * c.bc // l.p_pieces * 4
    -- Places are a lane's own and constants, where chunks of eight are a row's.
    l.even, l.even_v = l.chunks % 8 == 0, (l.chunks_v % 16 == 0 or l.half and l.chunks_v % 8 == 0)
    -- Fitted to the fewest with which ptxas 13.0 does not spill, within 12 for 24 configs of 27.
    l.regs = l.ri * (c.bc // 16 + l.o_row + 4) + c.bc // 4 + 68 + (l.half and 12 or 0)
    -- Eight warps with 128 keys do not spill with 255 where a few more are reckoned. Four are one to a scheduler there: 0.81 to 0.85.
    if l.regs <= 264 and c.warps == 8 then l.regs = math.min(l.regs, 255) end
    -- Blocks on an SM. Told none, ptxas aims at a number of its own, which spilled where shared memory has room for fewer.
    local by_regs = a.regs_sm // (l.threads * ((l.regs + 7) // 8 * 8))
    l.blocks = math.max(1, math.min(a.smem_sm // (l.bytes + a.smem_reserved), by_regs, a.threads_sm // l.threads))
    return l
  end,

  steps = function(p, c, a, l)
    local grid = (c.pack > 0 and "rows/%d hkv b" or "sq/%d hq b"):format(c.br)
    return { { entry = "fa_fwd", threads = l.threads, smem = l.bytes, grid = grid } }
  end,

  params = function(p, c, a, l)
    local values = values_of(p)
    return "q k v o lse " .. values.rows .. values.scores .. values.seen .. "tiles section"
  end,

  work = function(p, c, a, l)
    local elements, program = c.br * c.bc // 32, program_cost(p)
    -- 16-byte loads of a warp: of K and V, whose lanes read 16 places; of Q and P, where they read two. For S RI and BC/16 per chunk of
    -- the head_dim; for P V RI per four keys, and what a lane has of O. This and the numbers below are fitted to 65 timings of small and
    -- large shapes on an H200, and 35 on both chips.
    local apart, alike = l.chunks * (c.bc // 16) + c.bc // 4 * l.o_row, (l.chunks + c.bc // 4) * l.ri
    local loads, reads = c.warps * (apart + alike), c.warps * (apart + 0.2 * alike)
    -- Blocks of few warps wait for shared memory and for each other.
    local waits = ({ 1.91, 1.34, [4] = 1.3, [8] = 1.03 })[c.warps]
    return {
      rows = c.br, cols = c.bc,
      matrix_flops = 2 * 4 * (l.chunks + 4 * l.o_row),
      unit = "ffma", shows = 0,  -- products are issued as all else is, and counted there, too
      exps = 1 + program.exps,
      issue = math.floor(waits * (elements * (4 * l.chunks + 16 * l.o_row + (p.has_dropout and 46 or 8) + program.issue) + loads)),
      smem_bytes = waits * (reads * 512 + c.bc * (l.chunks + l.chunks_v) * 16),
      latency = 1850, tile_latency = 1600,
    }
  end,
}
