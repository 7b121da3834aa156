-- The registers of flash_fwd_wgmma: what a warpgroup's matrices and the rest take, and what setmaxnreg gives it.

local round_up = include "families/round_up.lua"
local program_cost = include "pairs/program_cost.lua"
local staged = include "pairs/staged.lua"
local edges = include "pairs/edges.lua"
local mask_places = include "pairs/mask_places.lua"

local registers = { WIDEST = 320, ONE_PRODUCT = 256, AFTER = 3 } -- AFTER: the schedule whose S takes the registers of P
-- O of a warpgroup's rows of so many columns leaves registers for S of 48 keys; above 256 a block's P V is two products.
local ONE_PRODUCT = registers.ONE_PRODUCT

-- Registers per thread that S, P and O take, and a score program: arrays that it reads by the key come before S, two keys to a register.
-- Half as many besides, and for other lookups by the key, which all are under way together, one for each two: of thirty compiled those that
-- spilled would have found room without.
-- Where these lie in shared memory they take none. packed: rows of several heads, of which they never do.
function registers.matrices(p, c, packed)
  local program = program_cost(p)
  if not packed and staged.wanted(p) then
    return c.bc // 2 + c.bc // 4 + round_up(p.dv, 8) // 2 + program.regs_staged + (program.cuts_beside and c.bc // 2 or 0)
  end
  -- Ends of a row are found where a mask of the launch has them; what is staged is read as it is compared.
  local regs = program.regs_ahead
  if p.score and (edges.ends(p) or not packed and mask_places.wanted(p, c)) then regs = regs - program.mask_regs end
  local lookups = (program.cuts_beside and c.bc // 2 or 0) + (program.of_distance and c.bc // 5 or 0)
  for _, of in ipairs(program.arrays) do lookups = lookups + (of.wide and 5 or 3) * c.bc // 8 end
  local of_p = c.schedule == registers.AFTER and 0 or c.bc // 4
  return c.bc // 2 + of_p + round_up(p.dv, 8) // 2 + regs + lookups
end

-- What a warpgroup's others take beside them.
function registers.others(p, c)
  local masked = edges.cuts_right(p) or p.has_lengths
  local n = masked and p.dv > 128 and 30 or 26
  if edges.cuts_left(p) then n = 32 end
  if masked and (c.ctas == 2 or c.br == 64) or p.has_lengths and p.dv > 128 then n = 34 end
  if edges.cuts_left(p) and (c.br == 64 or p.dv > 224) then n = 36 end
  if edges.cuts_left(p) and p.has_lengths then n = 38 end
  if c.schedule == registers.AFTER then n = 34 end -- with 80 keys, which leave 32, documents spilled
  if p.dv > ONE_PRODUCT then n = 40 end -- of 14 with 48 keys those with 36 spilled in the loop, with 44 a few bytes of a tile
  return n
end

-- What a start leaves the producer.
function registers.feeder_of_start(p, c) return p.dv > ONE_PRODUCT and c.br > 64 and 24 or c.br <= 128 and 40 or 32 end

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
function registers.feeder_of(a, c, p)
  if not p.score or not edges.scans(p) or not c.bc then return c.feeder end
  if not c.parts and mask_places.wanted(p, c) then
    return c.feeder + (mask_places.plane(p, c) and not p.score.staged_mask.lookup.bits and 24 or 0)
  end
  if (edges.tables(p) or ""):find("mask_pairs") then return c.feeder + 48 end
  local wide = c.feeder + 32
  local _launch, consumer = after_launch(a, c, wide)
  return registers.matrices(p, c, c.parts ~= nil) + registers.others(p, c) <= consumer and wide or c.feeder
end

-- At the launch, and a consumer's.
function registers.of(a, c, p) return after_launch(a, c, registers.feeder_of(a, c, p)) end

return registers
