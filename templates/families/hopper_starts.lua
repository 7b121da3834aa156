-- Where a search in flash_fwd_wgmma begins, and what is chosen from where nothing was measured.

local round_up = include "families/round_up.lua"
local registers = include "families/hopper_registers.lua"
local places = include "families/hopper_places.lua"
local keeps_maxima = include "families/hopper_maxima.lua"
local staged = include "pairs/staged.lua"
local edges = include "pairs/edges.lua"

-- Persistent blocks, two buffers; tiles by what registers hold: the two widest blocks of keys, and a narrow one. Where tiles are few,
-- one warpgroup to a block makes twice as many, and two such blocks to an SM hide each other's waits.
-- packed: rows are those of all heads of a group.
return function(p, a, packed)
  local list = {}
  local scans = p.score and edges.scans(p)
  -- Where rows that keep their maximum were raced and gained: without a score up to d = 128, in windows of 512 keys and more; with one,
  -- numbers by key - query up to d = 128, others up to 64, and biases at 64 and 128.
  local has_score = p.score and p.score.has_score or false
  local of = has_score and p.score.arrays[1]
  local adds = of and of.diagonal or has_score and p.score.of_distance
  local raced = p.d + p.dv <= (has_score and not adds and 128 or edges.cuts_left(p) and p.score and 192 or 256)
  if of and of.by_row and not of.diagonal then raced = p.d + p.dv <= 128 or p.d + p.dv > 192 end
  if edges.walks(p) and not has_score and p.d + p.dv <= 256 then raced = true end
  local steady = p.dtype == "bf16" and not p.has_lengths and keeps_maxima(p) and raced
    and (not edges.left(p) or edges.long_window(p))
  -- Above 128 columns whole tiles of 64 rows take 0.93 to 0.99 of the time (40 pairs of 7 shapes), of 128 rows 0.98 to 1.05.
  -- Beside O of more than 256 columns registers have no room for it.
  local keeps_low = p.dtype == "bf16" and not p.has_lengths and not p.score and not edges.left(p) and not packed and p.dv <= 256
  local dense = not p.has_lengths and not p.score and p.d == p.dv -- what was raced in full
  local rows = packed and p.sq * (p.hq // p.hkv) or p.sq
  -- Chunks of prompts beside single tokens, over long keys: the longest tile may stand out and wants to be cut, which tiles that begin
  -- beside the one before are not. Of twelve batches on an H200 0.32 to 1.08 of the time; at d = 256 1.00 and 1.38.
  local stands_out = p.has_lengths and not p.has_batch_invariant and p.b >= 4 and p.sq < p.sk and p.sk >= 8192 and p.dv <= 192
  -- Whether two buffers of each of K and V, and so many of Q, find room.
  local key_bytes, query_bytes = 4 * (round_up(p.d, 64) + round_up(p.dv, 64)), 2 * round_up(p.d, 64)
  local function fit(c, bc, q_bufs) return bc * key_bytes + q_bufs * c.br * query_bytes + 1024 <= places.room(a, c) end
  -- Of one tile or two to a block a second buffer of Q costs more than it hides: 1.02 to 1.04 of the time of one in 52 pairs. O by TMA
  -- from a buffer of its own takes 0.98 to 0.99 of the time of O from registers, in 230 pairs where no tile begins early.
  local function short(c) return (p.sq + c.br - 1) // c.br * p.hq * p.b <= 2 * a.sm_count * c.ctas end
  -- Of arrays by rows 0.98, beside two stages of them; of softcaps 0.96 to 0.98, from a buffer of Q's.
  local function staged_bytes(c, bc) return staged.places(p, { br = c.br, bc = bc }).bytes * staged.least end
  local function o_fits(c, bc)
    if p.o_bytes ~= 2 or not fit(c, bc, 2) then return false end
    return dense or bc * key_bytes + 2 * c.br * query_bytes + staged_bytes(c, bc) + 3072 <= places.room(a, c)
  end
  local function by_rows(bc) return p.d + p.dv <= 128 and not packed and staged.wanted(p) and staged.by_rows(p) end
  local scored = has_score and p.score.tanh_of and not packed and not p.has_lengths
  -- Between the widest and 64 keys one more.
  local function between(last) return last >= 144 and 96 or last >= 96 and 80 or 0 end
  -- Rows between two atoms of 64 bytes, of which memory is read, take no boxes of so many: see price.hbm_speed().
  local halves = (p.d % 64 > 0 or p.dv % 64 > 0) and (not dense or p.d % 32 == 0)
  local clusters = p.d > 128 and p.d % 16 > 0 and (dense or not edges.cuts_right(p) and not p.has_lengths) -- see price.feed_rate()
  local function add(c, box, bc, cluster, stages, schedule, o_path)
    -- A second buffer of Q where there is room.
    local two = c.br == 64 and not stands_out and (not dense or not short(c) and fit(c, bc, 2))
    list[#list + 1] = {
      br = c.br, ctas = c.ctas, feeder = c.feeder or registers.feeder_of_start(p, c), schedule = schedule or c.schedule, bc = bc, box = box,
      stages_k = stages or 2, stages_v = stages or 2, q_bufs = two and 2 or 1, grid = cluster > 1 and "static" or "persistent",
      ahead = two and 1 or 0,
      sections = 1, cluster = cluster, rescale = (steady or keeps_low and c.br == 64) and "steady" or "lazy_scaled", exp = 0,
      convert = "early",
      o_path = o_path or (dense or by_rows(bc) or scored) and not two and o_fits(c, bc) and "tma" or "direct",
    }
  end
  local function scanned_fits(c, bc, stages, q_bufs)
    return places.of(p, { br = c.br, ctas = c.ctas, bc = bc, box = 64, stages_k = stages, stages_v = stages, q_bufs = q_bufs, grid = 2,
      ahead = 0, o_path = 2 }).bytes <= places.room(a, c)
  end
  -- Where a scan finds the blocks, tiles are short, and what their warpgroups see of them differs: O leaves beside the next tile, and
  -- no warpgroup waits for a turn at the products.
  local function add_scanned(c, bc)
    if c.br == 64 or p.o_bytes ~= 2 then return end
    local stages = bc <= 80 and 4 or 3
    while stages > 2 and not scanned_fits(c, bc, stages, 1) do stages = stages - 1 end
    for _, schedule in ipairs({ "plain", "pingpong_exp" }) do
      add(c, 64, bc, 1, stages, schedule, "tma")
      -- Of blocks of 128 in 128 x 128 a second buffer of Q takes 0.99 of the time at 4k and 0.97 at 16k, of others none gained.
      local runs = p.score and p.score.grained and p.score.grain % bc == 0 and c.br == 128 and schedule == "plain"
      if runs and scanned_fits(c, bc, stages, 2) then list[#list].q_bufs = 2 end
    end
  end
  for _, c in ipairs({ { br = 64, ctas = 1, schedule = "plain", wide = 2 }, { br = 64, ctas = 2, schedule = "plain", wide = 2 },
                       { br = 128, ctas = 1, schedule = "pingpong", wide = 2 }, { br = 128, ctas = 1, schedule = "plain", wide = 0 },
                       { br = 192, ctas = 1, schedule = "pingpong", wide = 2 },
                       { br = 256, ctas = 1, schedule = "pingpong", wide = 2 } }) do
    local _launch, consumer = registers.of(a, { br = c.br, ctas = c.ctas, feeder = registers.feeder_of_start(p, c) }, p)
    local room = math.min(224, (consumer - 26 - round_up(p.dv, 8) // 2) * 4 // 3)
    local n, last, one_more = 0, 0, dense and c.wide > 0 and not (packed and c.br > 192)
    if dense and c.br > 64 and rows <= 64 then room = 0 end -- one tile of 64 rows holds them all
    for _, bc in ipairs({ 224, 192, 176, 160, 144, 128, 112, 96, 80, 64, 48 }) do
      local wide = n < c.wide and (not dense or (bc > 48 or c.ctas == 1) and fit(c, bc, 1))
      wide = wide or adds and bc == 128 and c.br == 128 and c.wide > 0
      local grained = scans and bc > 64 and p.score.grain % bc == 0
      if bc <= room and (wide or bc == 64 or grained or one_more and bc == between(last)) then
        n, last = n + 1, bc
        add(c, 64, bc, 1)
        if (edges.walks(p) or adds and bc <= 64) and bc <= 96 then add(c, 64, bc, 1, 3) end -- see work()
        if scored and bc == 64 and c.br == 192 and p.d + p.dv > 224 then add(c, 64, bc, 1, 3) end
        if (scans or edges.walks(p) and bc <= 96) and c.wide > 0 then add_scanned(c, bc) end
        local few = scans and p.d <= 32 and n > 1 and bc > 64 -- there are many
        if halves and not few and (not dense or n == 1 and c.ctas == 1 and c.br < 192 or bc == 64 and not packed) then add(c, 32, bc, 1) end
        if clusters and c.br > (dense and not packed and c.ctas == 1 and 0 or 64) and bc == 64 then add(c, 64, bc, 2) end
      elseif bc == 48 and dense and not packed and p.dv > 192 and c.br == 128 and c.wide == 0 and short(c) and o_fits(c, bc) then
        add(c, 64, bc, 1) -- of these alone O has a buffer of its own, and short launches wait for its way out
      elseif scans and c.br == 128 and c.wide == 0 and bc == 128 and bc <= room then
        add_scanned(c, bc) -- runs of keys end at multiples of it
      end
    end
  end
  -- Runs of 64 keys and more that are alike: two blocks per SM of 128 rows, which begin and end tiles beside each other.
  if scans and steady and p.score.grained and p.d + p.dv <= 128 and p.o_bytes == 2 and not packed then
    add({ br = 128, ctas = 2, feeder = 32 }, 64, 64, 1, 4, "after", "tma")
    if scanned_fits(list[#list], 64, 4, 2) then list[#list].q_bufs = 2 end -- 0.99 of the time
  end
  return list
end
