-- What work() of flash_fwd_wgmma reckons with: how fast products, the L2 and memory are for a config's boxes, and numbers that were fitted
-- to timings.

local round_up = include "families/round_up.lua"
local edges = include "pairs/edges.lua"

local price = {}

-- Columns of so many that lie within whole sectors of the L2, of 32 bytes.
local function in_sectors(p) return p.d % 16 == 0 and p.dv % 16 == 0 end

-- How fast products take operands of narrow boxes, of rows of 32 and 64 bytes. Lengths: and of rows that begin between two sectors.
function price.feed_rate(p, c)
  if not p.has_lengths then
    local box = c.box == 16 and 0.82 or c.box == 32 and 0.98 or 1
    return in_sectors(p) and box or box * (c.cluster > 1 and 0.9 or c.box == 32 and 0.8 or 1)
  end
  local box = c.box == 16 and 0.55 or c.box == 32 and 0.89 or 1
  return in_sectors(p) and box or box * (c.box == 32 and 0.66 or 0.82)
end

-- Rows that keep their maximum take half of a block's exponentials beside the P V before, and their products wait less. By 300 timings of
-- 30 shapes on an H200, d = 96 to 128, without a window: EARLY below d = 128, and more where three warpgroups take no turns. Shorter rows
-- were priced right without it. So it is of scores that read nothing of a pair at d = 128, by races at 16k on both chips: SLOPES, and T5's
-- buckets.
local EARLY, WITHOUT_TURNS, SLOPES = 1.07, 1.06, 1.08
function price.early_rate(p, c, l)
  local width, score = p.d + p.dv, p.score
  if score and (score.has_mask or score.has_score and (width < 256 or l.staged and not l.staged.far)) then return 1 end
  if c.rescale < 4 or edges.cuts_left(p) or p.has_lengths or c.parts then return 1 end
  if width <= 160 or width > 256 then return 1 end
  return (width < 256 and EARLY or 1) * (c.schedule == 0 and l.wgs > 2 and (score and score.slopes and SLOPES or WITHOUT_TURNS) or 1)
end

-- How fast copies of boxes come out of the L2. A box writes its columns beyond the head's as zeros, in the same time. Rows of narrow boxes
-- are short requests: on an H100 an SM was seen to take 1.3 sectors of 32 bytes in a clock by boxes of 64 columns, 1.15 by 32, one by 16.
-- Rows that begin between two sectors take one more of each box's, but for blocks of a cluster, which share them.
function price.l2_speed(p, c, of_boxes)
  if p.has_lengths then return of_boxes end
  local filled = (p.d + p.dv) / (round_up(p.d, c.box) + round_up(p.dv, c.box))
  local narrow = c.box == 16 and 0.45 or c.box == 32 and 0.68 or 1
  return of_boxes * filled * narrow * (in_sectors(p) and 1 or c.cluster > 1 and 1 or 0.576)
end

-- How fast memory is read. Rows that are no whole lines of 128 bytes share lines with the next head's, which another SM reads: once, where
-- both are at the same keys. Bytes under way beyond what memory's latency asks for wait in its queues, and let SMs drift apart, until lines
-- come twice; with fewer memory idles. Row tiles that walk a head's keys in step ask for the same bytes. From 1,500 timings of 150 shapes
-- on an H100, and 96 of eight shapes on an H200 (docs/experiments/choice.md, "Lines that two heads share").
-- Boxes of 64 bytes beside those of 128: 0.980 of the time where rows are whole atoms of 64 bytes, of which memory is read (50 pairs), and
-- 1.045 where they begin between two (123).
-- TWICE, LEAST: by MB that an SM reads in all. A short launch is over before its SMs are apart, and fills memory's queues but once.
local IN_ATOMS, BETWEEN = 1.02, 0.96
local LINE, SHARED, MEASURED, MB = 128, 1.05, 3000, 1000 * 1000
local NEAR, FAR, TWICE, TWICE_LONG = 28 * 1024, 50 * 1024, 0.2, 0.33
local IDLE, LEAST, LEAST_SHORT = 0.3, 24 * 1024, 12 * 1024
-- Of one row tile to a head that is cut into parts, on an H200 1.05 times the price in 190 timings of rows between two atoms. Whole atoms
-- by boxes of 128 bytes, more than MET under way: 1.07 to 1.14 times there, 1.02 on an H100; by boxes of 64 bytes as priced on both.
local MET, FAST, APART, APART_FAST = 30 * 1024, 0.95, 0.97, 0.91

-- Lines that a head's row lies in, over those that its bytes would fill.
local function lines(columns, bytes)
  local row, step = columns * bytes, LINE
  while row % step > 0 do step = step // 2 end
  return (row + LINE - step) / row
end

-- MB of keys and values that an SM reads in all.
function price.read(p, a)
  return math.max(0.1, p.b * p.hkv * p.sk * (p.d + p.dv) * p.bytes / a.sm_count * (MEASURED / a.hbm_gbs) / MB)
end

-- walkers: row tiles that walk a head's keys in step. pieces: of thread blocks, which may be fewer than SMs.
function price.hbm_speed(p, c, a, walkers, pieces)
  if p.has_lengths then return 1 end
  local slower = MEASURED / a.hbm_gbs
  local under_way = c.bc * c.ctas * 2 * ((c.stages_k - 1) * p.d + (c.stages_v - 1) * p.dv) / walkers
    * math.min(1, pieces / (a.sm_count * c.ctas))
  local read = price.read(p, a)
  local idles = 1 + IDLE * math.max(0, 1 - under_way * slower ^ 0.5 / (LEAST + LEAST_SHORT / read))
  if p.d % 64 == 0 and p.dv % 64 == 0 then return 1 / idles end
  local atoms = p.d % 32 == 0 and p.dv % 32 == 0
  local box = c.box ~= 32 and 1 or atoms and IN_ATOMS or BETWEEN
  if c.parts and p.sq * (p.hq // p.hkv) <= 64 and p.hkv > 1 then
    local fast = a.hbm_gbs > 4000
    if not atoms then
      if fast then box = box * FAST end
    elseif c.box == 64 and under_way > MET then
      box = fast and APART_FAST or APART
    end
  end
  local more = (p.d * lines(p.d, p.bytes) + p.dv * lines(p.dv, p.bytes)) / (p.d + p.dv) - 1
  local twice = slower * more * math.max(0, math.min(1, TWICE + TWICE_LONG * math.log(read)))
  return box / (SHARED * idles * (1 + twice * math.max(0, math.min(1, (under_way - NEAR) / (FAR - NEAR)))))
end

-- Issue slots of a block of keys that pass with the turn, of two warpgroups, up to 128 columns and up to 64: their products are no longer
-- than what else they do. Tiles of 128 rows took 1.02 to 1.09 times as long, beside 192 and 256 rows, as was priced (900 timings, H100).
local TURN_PASSES, TURN_PASSES_64 = 400, 700
function price.turn_passes(p, c, l, scans)
  if c.parts and c.rescale > 3 then return 0 end -- half of the exponentials are taken before
  if c.schedule ~= 1 or l.wgs ~= 2 or c.ctas ~= 1 or p.dv > 128 or p.has_lengths or scans then return 0 end
  return p.dv <= 64 and TURN_PASSES_64 or TURN_PASSES
end

-- Warpgroups that take turns, of tiles of packed rows: where one has no rows in the last tile, its turn passes to nobody.
function price.rested(p, c, l, fit)
  local rows = p.sq * (p.hq // p.hkv)
  local tiles = (rows + c.br - 1) // c.br
  return l.split and tiles > 1 and rows - (tiles - 1) * c.br <= c.br - 64 and fit.rested / tiles or 0
end

-- Without turns the warpgroups of a block begin its first tile together, and stay in step: products wait while all take exponentials, the
-- longer the wider a block of keys is. Later tiles begin apart, and those of a window. pieces: as in work().
function price.in_step(p, c, a, l, fit, pieces)
  if c.schedule > 0 or l.wgs == 1 or edges.cuts_left(p) then return 0 end
  pieces = pieces or (p.sq + c.br - 1) // c.br * p.hq * p.b
  return fit.in_step * math.max(0, c.bc - 40) / 1000 * math.min(1, a.sm_count * c.ctas / pieces)
end

-- The numbers of work(). issue: issue slots of 32 elements of S; per_group: more for each warpgroup. latency: clocks of waits in a block of
-- keys. tile, alone, pair: clocks of a tile, for O of 128 x 128 and besides, where one block or two reside on an SM. first_bytes: of the
-- first block of keys that arrive in a clock. shown, shown_lone, hidden_by_four: the share of the shorter of products and exponentials that
-- shows, of one warpgroup, and how much less of four; by schedule, without turns for two warpgroups and for more, and with turns. wait: for
-- one buffer of V; cluster: for the other block of one; in_group: more of it where heads of a group meet in the L2 anyway: two blocks then
-- took 1.05 of the time of one in 71 races, and 1.00 on paper. rested: see above. per_tile: clocks of a tile without persistent blocks.
-- felt: see gen/work.h. narrow: clocks for narrow boxes.
-- Dense: fitted to 4,720 timings of 749 random shapes on an H100 (docs/experiments/choice.md, "The model's missing terms"). Lengths: to
-- timings on an H200. The dense numbers took tiles of 128 rows there where tiles of 64 are up to twice as fast.
local fitted = {
  dense = {
    issue = 6.75, per_group = 354, latency = 425, tile = 129, alone = 840, pair = 2640, per_tile = 1850, first_bytes = 23, wait = 370,
    shown = 0.114, shown_lone = 0.043, hidden_by_four = 0.123, plain = 0.06, plain_many = 0.053, turns = 0.002, exp_turns = 0.02,
    rested = 0.2, in_step = 2.6, cluster = 400, in_group = 150, felt = 1.8, l2_speed = 1.66, narrow = 0,
  },
  lengths = {
    issue = 9.5, per_group = 200, latency = 490, tile = 2200, alone = 700, pair = 2700, per_tile = 3900, first_bytes = 32, wait = 470,
    shown = 0.44, shown_lone = 0.6, hidden_by_four = 0.12, plain = 0, plain_many = 0.03, turns = 0.01, exp_turns = 0.06,
    rested = 0, in_step = 0, cluster = 100, in_group = 0, felt = 0, l2_speed = 2, narrow = 640,
  },
}
-- Of masks that are scanned: searched where pairs look things up, on an H200; scanned where a kernel before finds lines, on an H100, of
-- documents (docs/experiments.md). Which warpgroups see what of a block is read, and voted on; and turns at the products let those wait
-- that have little to do, 2 to 10 % beside none or turns at the exponentials.
fitted.scanned, fitted.searched = {}, {}
for _, key in ipairs(sorted(fitted.dense)) do fitted.scanned[key], fitted.searched[key] = fitted.dense[key], fitted.dense[key] end
fitted.searched.latency, fitted.searched.turns, fitted.searched.in_step = fitted.dense.latency + 300, 0.25, 0
fitted.scanned.latency, fitted.scanned.turns, fitted.scanned.in_step = fitted.dense.latency + 150, 0.25, 0
-- Of lines, turns at the exponentials let wait too; two warpgroups are often at the same place; and clocks of a tile where the next begins
-- beside it, as then no warpgroup lets pass what it does not see.
fitted.scanned.exp_turns, fitted.scanned.plain, fitted.scanned.ahead = 0.12, 0.2, 4000

-- scans: whether keys are found by a scan.
function price.fitted(p, l, scans)
  return p.has_lengths and fitted.lengths or scans and (l.masks and fitted.scanned or fitted.searched) or fitted.dense
end

return price
