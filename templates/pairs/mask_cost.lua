-- mask_cost: what a score program's mask makes of a walk over blocks of keys, as far as its text says it. Lengths of documents, and
-- which blocks of a matrix are seen, are in no problem: these shares stand for them, and were not fitted.

local edges = include "pairs/edges.lua"
local mask_places = include "pairs/mask_places.lua"

local ONE_END = 0.5  -- of the keys are seen: of a mask with one end
local FEW = 0.125    -- of another
local NEAR = 0.0625  -- of one that a scan finds by values of keys: of a row in the middle of a tile
local SEEN = 0.25    -- of the runs of keys that are seen alike
local RUN = 256      -- queries, or keys, that a matrix has alike
local IN_DOUBT = 0.4 -- of the blocks that are walked, where a scan finds them

local function gcd(x, y) return y == 0 and x or gcd(y, x % y) end

-- Of n rows or keys that begin at a multiple of n: how many runs of so many alike they meet, and the share that lies in one.
local function runs(n, grain)
  local step = gcd(n, grain)
  return (n + grain - step) / grain, math.max(0, (grain - n) // step + 1) * step / grain
end

-- Of the keys of a sequence those that are walked, where rows see NEAR of them up to their own. Tables have an entry for 64, and what is
-- seen ends at multiples of 64 more often than not: at d = 128 blocks of 80 took 1.04 to 1.07 of the time of 64 (documents, chunks, 16k).
local function near(p, bc, rows)
  return math.min(1, NEAR + (rows / 2 + bc + (64 - gcd(bc, 64))) / math.max(p.sk, 1))
end

-- Of tiles of so many rows and c.bc keys, in groups of so many rows: the share that is walked, and instructions of a pair beside those of a
-- walk without a mask. packed: rows are of several heads. Gradients pass over the same tiles, and ask all pairs of those in doubt.
return function(p, c, rows, group, packed)
  local program, marked = p.score, edges.marked(p)
  if not edges.walks(p) and not marked then return 1, 0 end
  if marked and program.exact then
    if program.two_ended then return FEW, IN_DOUBT * program.mask_issue end
    return ONE_END, 0
  end
  if edges.ends(p) then return program.two_ended and near(p, c.bc, rows) or ONE_END, 0 end
  if not edges.scans(p) and not marked then return 1, program.mask_issue end
  local staged = not marked and not packed and mask_places.wanted(p, c)
  local each = staged and (program.staged_mask and program.staged_mask.issue or 0) or program.mask_issue
  if program.grain == 1 or program.row_grain == 1 then
    local tables = not marked and edges.tables(p)
    if tables and not tables:find("mask_pairs") then return near(p, c.bc, rows), IN_DOUBT * each end
    -- A matrix of bits, of all keys, is as often of documents as of anything: of those 192 x 64 took 0.89 of the time of 128 x 128 at d =
    -- 128 on an H200.
    local lookup = staged and program.staged_mask and program.staged_mask.plane and program.staged_mask.lookup
    if lookup and lookup.bits and not lookup.shifted and p.d + p.dv > 128 then
      return near(p, c.bc, rows), IN_DOUBT * each
    end
    -- Trees have runs of keys and of queries, too. What lies before the queries is a cache, and seen.
    local few = 1 - (1 - FEW) ^ ((runs(c.bc, RUN)) * (runs(rows, RUN)))
    return math.max(few, 1 - p.sq / math.max(p.sk, 1)), IN_DOUBT * each
  end
  local met, within = runs(c.bc, program.grain)
  local met_by_rows = runs(rows, program.row_grain)
  local _, group_within = runs(group, program.row_grain)
  return 1 - (1 - SEEN) ^ (met * met_by_rows), (1 - within * group_within) * each
end
