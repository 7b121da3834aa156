-- Long keys beside few tiles: a family of whole tiles whose rows are queries of all heads of a group, and whose tiles are cut into as
-- many parts of their keys as the chip has room for (split_parts.cu, split_tile.cu).

local masked = include "families/masked_family.lua"
local decode = include "families/decode_family.lua"
local edges = include "pairs/edges.lua"
local round_up = include "families/round_up.lua"
local split = include "families/split_family.lua"
local price = include "families/hopper_price.lua"

local FEW_ROWS = 64 -- query rows of a group of heads that one tile of the fewest rows holds
local ROWS_SM = 2 * decode.rows_sm -- rows of parts that an SM has room for in the workspace
-- With lengths the workspace is as large as that of whole tiles, and holds where each tile is as well: so many tiles for each SM.
local LENGTHS_ROWS_SM, PLACES_SM = split.rows_sm - 64, 32
local ROUNDS = 2                   -- of parts for every thread block at most, where the cost decides
-- Where two warpgroups share rows and tiles are of nearly one length, a launch of more tiles than a round cuts those of the last one alone,
-- for so many rounds of parts at most: with lengths a warp has a lane for each way, and seven for unlike lengths.
local RESTS = 22
-- Where more rounds than these fill the chip better: so many, of so many rows of parts for an SM; the fewer columns, the more. A tile's
-- parts are then read by all SMs, so many bytes in a clock. A start takes them where they spare a part of the time.
local MORE_ROUNDS, SPARED, FULL, PART_KEYS = 8, 0.05, 0.93, 256
local LONG = 4 -- times as many keys as queries: a diagonal makes tiles of nearly one length (LONG_DIAGONAL in gen/bucket.c)
-- Queries of a shape with as many keys, and of others that it stands for.
local function around(p) return p.sk > p.sq and { p.sq } or { p.sq, p.sq * 17 // 16, p.sq * 15 // 16 } end
local function more_rows_sm(columns) return columns <= 64 and 1024 or columns <= 128 and 640 or 512 end
local EVEN = 86 -- hundredths of the rows that evenly cut tiles multiply
local MERGE_CLOCKS, SUM_BYTES_CLK = 6000, 2000
-- One row tile of a head, over so many keys and more: where rounds of parts leave SMs empty in the mean memory is not read as fast, so much
-- for each part of them that is below ENOUGH. Of 325 timings over 400 MB on an H200 1.15 times the price of half a chip, 1.10 of three
-- quarters, and 1.00 of 0.8 and more; of 746 on an H100 1.08, 1.06, 0.98. Over fewer keys what more parts cost was as much.
local EMPTY, EMPTY_FAST, ENOUGH, EMPTY_KEYS = 0.25, 0.4, 0.85, 16384
-- However few products a block of keys has, a warpgroup's scores, exponentials and sums follow one another: so many clocks, and more for
-- each key. Without them 600 to 1,500 keys of d = 64 and 96 stayed whole, by the model for 1.3 to 2 times what two to eight parts take.
local CHAIN, CHAIN_KEY = 500, 6
-- What a launch takes to find out how many rounds to cut for: of 40 pairs of one tile and one number of parts 0.2 to 4 us on an H100.
local ROUNDS_CLOCKS = 2200
-- Two blocks to an SM walk keys of two places: of 143 timings of 30 shapes on an H100, beside other tiles of a shape, they took 1.07 times
-- what was priced; of 64 and of 128 columns, beside one block of 128 rows and more in 130 shapes on both chips, 1.05 times.
local TWO_PLACES, TWO_PLACES_LINES = 0.94, 0.955
-- Clocks for a block of keys with one buffer of V. Where row tiles of a head meet in the L2, the copy of V waits for the last of them: 1.12
-- of the time of two buffers in 52 pairs of tiles that have their SM alone, 1.24 from memory (25 pairs). One that reads its keys alone
-- waits for memory anyway: 1.03 in 31 pairs.
local TOGETHER_WAIT, ALONE_SPARES = 900, 400
-- Batch invariance: a sequence's tiles have as many parts as they would take alone on so many thread blocks, in one round. The config
-- follows from the class, so that the workspace may follow from the config: parts, and a sum of parts that each thread block keeps.
local NOMINAL, INVARIANT_ROWS_SM = 128, 512

-- Tiles of so many rows, and more columns of V. Where their keys come from HBM once, one buffer of V beside two of K was the fastest of
-- tunings on an H100, by 3 to 14 % for dv of 144 to 240 and 1 to 3 % for 256, with about so many values of V in a buffer. Where tiles of a
-- head share keys in the L2 two were, and above so many columns 80 keys were 4 to 11 % faster than 64.
local WIDE_ROWS, WIDE_COLUMNS, ONE_V_VALUES, WIDEST_COLUMNS, WIDEST_KEYS = 128, 128, 16384, 192, 80
-- Of tiles of 64 rows, where three share keys, with so many values of full boxes: 112 keys at d = 240 were 12 % faster than 64.
local ONE_V_OF_64 = 28672
-- Bytes under way for an SM, above which lines that two heads share come twice (price.hbm_speed()). Tiles of mma.sync take rows that are no
-- whole lines at this part of the speed, and wait so many clocks more.
local UNDER_WAY = 30 * 1024
local PIECES, PIECES_WAIT = 0.93, 1000
local LOW_TILES, MOST_COLUMNS = 0.96, 256
-- Of rows that keep their maximum: hundredths of the issue slots, of one warpgroup to an SM and of more; and of what shows the part up to
-- 96 columns, and beyond.
local EARLY_ISSUE_LONE, EARLY_ISSUE, EARLY_SHOWS_SHORT, EARLY_SHOWS = 78, 92, 0.2, 0.7
-- Clocks for a value of Q and of O of each whole tile after a block's first. Its rows are copied when the last product of the tile before
-- is done: over fewer than 24 blocks of keys such launches took 1.07 to 1.4 times their price, the more the higher and the wider the tile
-- (350 timings), and over many what they were priced at.
local NEXT_TILE = 0.12
-- Of tiles in turns with 129 to 192 columns: in 12 of 13 races on an H100 0.93 to 1.01 of the time of 64 keys.
local TURNS_KEYS = 112

-- What a config of the family of whole tiles has that these do not choose.
local fixed = { pack = { 1 }, ahead = { 0 }, sections = { 1 }, cluster = { 1 } }

-- Constraints that these lack, or have in another form.
local dropped = { tokens = true, varlen_grid = true, page = true, ahead = true, cluster = true, o_path = true, q_bufs = true }

-- Of the tiles of the last round: parts that fill the chip in the fewest clocks, without those of the rounds before, and how many tiles
-- these are.
local function parts_of_last(l, tiles, blocks, thread_blocks, most_rounds)
  local rest = tiles % thread_blocks
  local most = math.min(blocks // 2, rest > 0 and thread_blocks * l.part_tiles // rest or 0)
  local each, least = 1, blocks * l.block_clocks + l.tile_clocks
  for rounds = 1, most_rounds do
    local n = rest > 0 and math.min(rounds * thread_blocks // rest, most) or 1
    if n >= 2 and n ~= each then
      local clocks = (rest * n + thread_blocks - 1) // thread_blocks * ((blocks + n - 1) // n * l.block_clocks + l.tile_clocks)
        + l.merge_clocks + n * l.part_clocks + rest * n * l.sum_clocks
      if clocks < least then each, least = n, clocks end
    end
  end
  return each, each > 1 and rest or 0
end

-- The number of parts of each tile, as parts_of() of split_parts.cu finds it, by the tunable's value; and the clocks that they take, where
-- the cost decides. blocks: of the keys that the longest tile sees. Batch invariance: tiles and thread blocks are those of a sequence.
local function parts_of(parts, l, tiles, blocks, thread_blocks)
  if l.last_round then return parts_of_last(l, tiles, blocks, thread_blocks, l.rounds) end
  if l.rests and tiles > thread_blocks then return parts_of_last(l, tiles, blocks, thread_blocks, l.rests) end
  local most = math.min(blocks // 2, thread_blocks * l.part_tiles // tiles)
  if l.walks then most = parts > 1 and blocks // 2 or math.min(blocks // 2, blocks * l.block_clocks // (2 * l.tile_clocks)) end
  if parts > 1 and not l.placed then return math.max(math.min(parts, most), 1) end
  local each, least = 1, (tiles + thread_blocks - 1) // thread_blocks * (blocks * l.block_clocks + l.tile_clocks)
  for rounds = 1, l.rounds do
    local n = rounds * thread_blocks // tiles
    if n > most then n = most end
    if n >= 2 and n ~= each then
      local clocks = (tiles * n + thread_blocks - 1) // thread_blocks * ((blocks + n - 1) // n * l.block_clocks + l.tile_clocks)
        + l.merge_clocks + n * l.part_clocks + tiles * n * l.sum_clocks
      if clocks < least then each, least = n, clocks end
    end
  end
  return each, least
end

-- All that a tile's units do, at this part of their speed.
local function slow(work, part)
  for _, speed in ipairs({ "efficiency", "hbm_speed", "l2_speed" }) do work[speed] = (work[speed] or 1) * part end
end

-- whole: the family of whole tiles. chosen(p, c): which of its starts are these families' too. tile_clocks(p, c): what one
-- begins and ends with. flop(p, a): of the matrix unit, in a clock of an SM. part_clocks: what 128 rows of 128 columns of a part add to
-- that. features: what they compute.
return function(doc, whole, chosen, tile_clocks, flop, part_clocks, features)
  local tunables, constraints = {}, {}

  local function part_tiles(p, c, columns, more)
    local dense = more and more_rows_sm(columns) or ROWS_SM
    local rows = p.has_batch_invariant and INVARIANT_ROWS_SM or p.has_lengths and LENGTHS_ROWS_SM or dense
    return rows // (c.br * c.ctas)
  end
  -- Whether rows want to be cut evenly, or more rounds than two fill the chip better, of one of the numbers of heads that the shape
  -- stands for (gen/bucket.c), and spare more than adding up takes. Tiles of so many rows have one answer, however many keys a block has.
  local function rounds_pay(p, c, a)
    if p.has_lengths or p.has_batch_invariant or p.sq < 1 then return false end
    local keys, heads, chip, columns = p.sk, p.b * p.hkv, a.sm_count * c.ctas, round_up(p.dv, 8)
    local rows, most = p.sq * (p.hq // p.hkv), math.min(MORE_ROUNDS, part_tiles(p, c, columns, true))
    local each = (rows + c.br - 1) // c.br
    -- Tiles that all walk at once, of which the last would have a warpgroup without rows: cut evenly, all come to a key at once.
    -- In more rounds likewise, where few rows more are multiplied: each tile had read its keys anew (docs/experiments.md). In one, where
    -- the L2 does not hold the keys.
    if c.box and each > 1 and each * c.br - rows >= 64 then
      local even, uneven = ((rows + each - 1) // each + 63) // 64 * each, (rows + 63) // 64
      if heads * each > chip then
        if even * EVEN < uneven * 100 then return true end
      elseif heads * keys * (p.d + p.dv) * 2 > a.l2_bytes then
        return true
      end
    end
    if heads * each * 2 > chip * most then return false end
    if edges.left(p) then keys = math.min(keys, (p.window > 0 and p.window or 1024) + p.sq) end
    for _, n in ipairs(heads > 16 and { heads, heads * 7 // 8, heads * 9 // 8 } or { heads }) do
      local tiles = n * each
      local function rounds(parts) return (tiles * parts + chip - 1) // chip / parts end -- of whole tiles
      local least = math.min(rounds(1), rounds(math.max(chip // tiles, 1)), rounds(math.max(2 * chip // tiles, 1)))
      if least * chip * FULL > tiles then
        local clocks_each = c.br * keys * (p.d + p.dv) * 3 // flop(p, a)
        for k = 3, most do
          local parts = k * chip // tiles
          local spared = parts > 1 and parts * PART_KEYS <= keys and least - rounds(parts) or 0
          local costs = MERGE_CLOCKS + ROUNDS_CLOCKS + tiles * parts * c.br * columns * 4 // SUM_BYTES_CLK
          if spared > least * SPARED and spared * clocks_each > costs then return true end
        end
      end
    end
    return false
  end

  -- Whether a round that is not full is cut for more than it costs. Of tiles of one length: the shorter ones of a diagonal end last, and
  -- fill what the longer leave.
  local function last_round_pays(p, c, a)
    if p.has_lengths or p.has_batch_invariant or p.sq < 1 or edges.right(p) and p.sk < LONG * p.sq or edges.left(p) then return false end
    local chip, columns, clocks_each = a.sm_count * c.ctas, round_up(p.dv, 8), c.br * p.sk * (p.d + p.dv) * 3 // flop(p, a)
    for _, sq in ipairs(around(p)) do
      local tiles = (sq * (p.hq // p.hkv) + c.br - 1) // c.br * p.b * p.hkv
      local rounds, rest = tiles // chip, tiles % chip
      local most = rest > 0 and chip * part_tiles(p, c, columns, true) // rest or 0
      local enough = rounds > 0 and rest > 0 and 1 - rest / chip > (rounds + 1) * SPARED
      for k = 1, enough and MORE_ROUNDS or 0 do
        local parts = math.min(k * chip // rest, most, p.sk // PART_KEYS)
        local spared = parts > 1 and 1 - ((rest * parts + chip - 1) // chip) / parts or 0
        if spared > (rounds + 1) * SPARED and spared * clocks_each > MERGE_CLOCKS + rest * parts * c.br * columns * 4 // SUM_BYTES_CLK then
          return true
        end
      end
    end
    return false
  end

  whole = whole.bare or whole
  local function kept(name) return (name == "cluster" or name == "sections") and whole.clusters end
  for i, t in ipairs(whole.tunables) do tunables[i] = fixed[t[1]] and not kept(t[1]) and { t[1], fixed[t[1]], t[3] } or t end
  tunables[#tunables + 1] = { "parts", { { 0, "by_cost" }, { 1, "in_rounds" }, 2, 3, 4, 8, 16, { 6, "last_round" } },
    "of the keys of a tile: by_cost = as many as take the least time in one round or two of the chip; in_rounds = in up to eight; " ..
    "N = so many, as far as there are keys; last_round = of the tiles of a round that is not full alone, as in_rounds" }
  tunables[#tunables + 1] = { "combine", { { 1, "second_kernel" }, { 0, "last_warp" } },
    "what adds up the parts of a tile: a second kernel, or of the warps with the same rows the one that comes last" }
  for _, t in ipairs(whole.constraints) do
    local packed = whole.packed and whole.packed[t[1]]
    if packed then t = { t[1], packed, upto = t.upto, about = t.about, search = t.search } end
    if not dropped[t[1]] or kept(t[1]) then constraints[#constraints + 1] = t end
  end
  constraints[#constraints + 1] = { "rows_packed", function(p, c)
    -- Of 40 compiled those with 32 spilled, none with 40: a warp of the producer's copies rows of several heads.
    if c.feeder and c.feeder < 40 and not whole.copies then
      return false, "copies of packed rows need more than " .. c.feeder .. " registers"
    end
    if c.grid == 0 then return false, "blocks stay: how many parts there are says the shape" end
    if c.o_path and c.o_path > 0 then return false, "rows of several heads lie in no one box" end
    -- Of 90 compiled with lengths, these alone spilled.
    if c.feeder and p.has_lengths and edges.cuts_left(p) and p.dv > 240 and c.br > 64 and c.bc > 64 then
      return false, "rows of several heads in a window beside " .. c.bc .. " keys and O of " .. p.dv .. " columns take too many registers"
    end
    return true
  end, upto = whole.tunables[#whole.tunables][1] }
  constraints[#constraints + 1] = { "by_cost", function(p, c, a)
    if c.parts == c.named.parts.last_round then
      if last_round_pays(p, c, a) then return true end
      return false, "the last round is full enough"
    end
    if c.parts == split.by_length then return true end
    if c.parts > 1 then return false, "a number of parts is for one shape, and a config is for many" end
    if c.parts == 0 or rounds_pay(p, c, a) then return true end
    return false, "more rounds than two fill the chip no better"
  end, upto = "parts", search = true }
  constraints[#constraints + 1] = { "in_rounds", function(p, c)
    if c.parts ~= 1 and c.parts ~= c.named.parts.last_round then return true end
    if c.parts ~= 1 and not c.feeder then return false, "only tiles of wgmma are cut in the last round alone" end
    if not (p.has_lengths or p.has_batch_invariant) then return true end
    return false, "parts in many rounds are of dense batches, whose number of tiles is known before"
  end, upto = "parts" }
  -- Some blocks walk all parts of a tile, and others take single parts in the meantime. Which tiles these are says the batch.
  constraints[#constraints + 1] = { "invariant", function(p, c)
    if not p.has_batch_invariant then return true end
    if c.grid ~= c.named.grid.persistent then
      return false, "batch invariance: some blocks take all parts of a tile, so the next is drawn"
    end
    if c.combine ~= c.named.combine.second_kernel then
      return false, "batch invariance: only a second kernel adds up the parts that blocks share"
    end
    return true
  end, upto = "combine" }
  constraints[#constraints + 1] = { "parts_fit", function(p, c)
    local rows = c.br * c.ctas
    if rows <= ROWS_SM then return true end
    return false, rows .. " rows of parts for an SM, of which there is room for " .. ROWS_SM
  end }

  local function layout(p, c, a)
    local l = whole.layout(p, c, a)
    local columns = l.o_regs and l.o_regs * 2 or l.vb * 8
    l.split, l.parts, l.pack, l.columns = true, true, 1, columns
    l.pdl = a.cc >= 90 and l.tma or false
    -- Warps that copy Q, and of them those that share a warpgroup's rows; with lengths the second clears rows.
    if l.tma and not l.shared and not p.has_lengths then l.q_warps, l.q_warps_rows = 2, c.br == 64 and 2 or 1 end
    l.last_round = c.parts == c.named.parts.last_round or nil
    l.placed = c.parts == split.by_length or nil
    l.more_rounds = c.parts == c.named.parts.in_rounds or l.last_round or false
    l.fixed_parts = c.parts > 1 and not (l.last_round or l.placed) and c.parts or nil
    l.even_rows = l.more_rounds and l.tma or false
    l.part_tiles = part_tiles(p, c, columns, l.more_rounds)
    if p.has_batch_invariant then l.walks, l.nominal = true, NOMINAL end
    l.merges = c.combine == c.named.combine.second_kernel
    l.counts = not l.merges
    l.merge_threads, l.parts_batch = 128, l.merges and 8 or 4
    -- Clocks of an SM for a block of keys, two FLOP for each pair and column, and half as much again; of a tile; of adding up: a kernel
    -- more, or a warp's own rows, whose loads wait for each other.
    l.block_clocks = math.max(1, c.br * c.bc * (p.d + p.dv) * 3 // flop(p, a))
    if c.feeder and c.ctas == 1 and not (p.has_lengths or p.has_batch_invariant) then
      l.block_clocks = math.max(l.block_clocks, CHAIN + CHAIN_KEY * c.bc)
    end
    l.tile_clocks = tile_clocks(p, c) * c.ctas
    l.merge_clocks, l.part_clocks = l.merges and MERGE_CLOCKS or 90 * columns, l.merges and 100 or 28 * columns
    l.sum_clocks = l.more_rounds and l.merges and c.br * columns * 4 // SUM_BYTES_CLK or 0
    l.rounds = p.has_batch_invariant and 1 or l.more_rounds and MORE_ROUNDS or ROUNDS
    l.chunk_clocks = l.placed and c.br * columns * 4 // SUM_BYTES_CLK or nil
    local alike = p.has_lengths or c.cluster == 1 and not (edges.cuts_right(p) or edges.cuts_left(p))
    l.rests = l.shared and alike and not (l.near or l.fixed_parts) and RESTS or nil
    return l
  end

  return masked {
    doc = doc,
    rank = whole.rank,
    tile = whole.tile,
    tunables = tunables,
    constraints = constraints,
    moves = whole.moves,
    splits = true,
    features = features,
    supports = whole.supports,
    layout = layout,

    -- As those of the whole tiles; but few rows take no tile of many, and where tiles fill the chip nothing is cut: then only the heads
    -- of a group that share a tile are won.
    start = function(p, a)
      local list, group, queries = {}, p.hq // p.hkv, around(p)
      local rows = p.sq * group
      local in_lines, under_way = p.d % 64 == 0 and p.dv % 64 == 0, UNDER_WAY
      local in_atoms = p.d % 32 == 0 and p.dv % 32 == 0 and not in_lines and not p.has_lengths
      -- The values of a config of whole tiles, but for those of `with`.
      local function together(at, with)
        local to = {}
        for _, t in ipairs(whole.tunables) do
          local k = t[1]
          local value = with[k]
          if value == nil then value = at[k] end
          to[k] = value
        end
        if to.o_path then to.o_path = "direct" end
        return to
      end
      local pays, last_pays = {}, {}
      local function last_round(c)
        local tile = c.br + c.ctas
        if last_pays[tile] == nil then last_pays[tile] = c.feeder ~= nil and last_round_pays(p, c, a) end
        return last_pays[tile]
      end
      local function parts(c)
        local tile = c.br + c.ctas
        if pays[tile] == nil then pays[tile] = rounds_pay(p, c, a) and 1 or 0 end
        return pays[tile]
      end
      local function add(at, with)
        local to, short = together(at, with), not at.feeder and a.has_wgmma -- tiles of mma.sync are for short launches then
        to.parts, to.combine = short and 0 or parts(to), "second_kernel"
        if to.parts > 0 and to.box and to.box < 64 and not (in_atoms and to.br == 64) then return end
        list[#list + 1] = to
        -- The price says which. Of more than a round, and of the highest tiles, a launch has time to find out.
        if to.parts > 0 and to.br < 256 and not last_round(to) then
          local by_cost = together(to, to)
          by_cost.parts, by_cost.combine = 0, "second_kernel"
          list[#list + 1] = by_cost
        end
        -- Where lengths decide whether anything is cut, the second kernel may have nothing to do.
        if p.has_lengths and not p.has_batch_invariant then
          local last = together(to, to)
          last.parts = to.parts
          last.combine = "last_warp"
          list[#list + 1] = last
        end
      end
      -- Rows of more columns: of the most blocks of keys that fill shared memory; and where one tile reads its keys alone one buffer of V,
      -- with blocks as high as such winners have, and either way of adding up.
      local function add_wide(at, with)
        if p.dv <= WIDE_COLUMNS or p.has_lengths then return end
        local function add_wider(bc, stages_v, combine)
          local to = together(at, with)
          to.bc, to.stages_k, to.stages_v, to.grid, to.combine = bc, 2, stages_v, "persistent", combine
          to.parts = parts(to)
          if combine == "second_kernel" or not p.has_batch_invariant then list[#list + 1] = to end
        end
        local spills = edges.cuts_left(p) and p.dv > 240 -- eight bytes of 256 columns
        if p.dv > WIDEST_COLUMNS and not spills and at.br == WIDE_ROWS then add_wider(WIDEST_KEYS, 2, "second_kernel") end
        if rows > 2 * WIDE_ROWS then return end
        local most = at.br < WIDE_ROWS and ONE_V_OF_64 // (round_up(p.dv, 64) * 16) * 16
          or (ONE_V_VALUES + p.dv * 16 - 1) // (p.dv * 16) * 16
        local near = in_lines and most or math.max(48, math.floor(under_way // (2 * p.d * 16)) * 16)
        if rows <= at.br then most = near + (at.br < WIDE_ROWS and 0 or 16) end
        for _, bc in ipairs(at.br < WIDE_ROWS and { most } or { most, most - 16 }) do
          for _, combine in ipairs(rows > WIDE_ROWS and { "second_kernel" } or { "second_kernel", "last_warp" }) do
            add_wider(bc, 1, combine)
          end
        end
      end
      for _, at in ipairs(whole.start(p, a, true)) do
        local tiles, most = (rows + at.br - 1) // at.br * p.hkv * p.b, 0 -- most: of a shape that the bucket stands for
        for _, sq in ipairs(queries) do most = math.max(most, (sq * group + at.br - 1) // at.br * p.hkv * p.b) end
        local few = rows <= FEW_ROWS and at.br > FEW_ROWS
        local packs, edge = false, false -- edge: one round of this shape, of others of the bucket a second of few tiles, which is cut
        for _, sq in ipairs(group > 1 and queries or {}) do
          packs = packs or (sq * group + at.br - 1) // at.br * 33 < (sq + at.br - 1) // at.br * group * 32
        end
        -- Rows that keep their maximum, where whole tiles begin with them and cut ones were raced.
        local raced = not (p.has_batch_invariant or p.has_lengths or p.score or edges.cuts_left(p))
        local rescale = raced and at.rescale or "lazy_scaled"
        if chosen(p, at) and at.box == 64 and at.br < 256 and rows > FEW_ROWS and most > a.sm_count and last_round(at) then
          local to = together(at, { ahead = 0, grid = "static", feeder = 40, q_bufs = 1, rescale = rescale })
          to.parts, to.combine = "last_round", "second_kernel"
          list[#list + 1] = to
          edge = tiles <= a.sm_count
        end
        if chosen(p, at) and not few and not edge and (tiles <= a.sm_count or packs) then
          if at.feeder then
            -- Tiles that free blocks draw: of 283 pairs on an H100 0.993 of the time of tiles that are dealt out beforehand. With lengths, of
            -- more tiles than a round, 0.69 on an H200, of 22 batches 0.43 to 1.48, one of them above 1.05.
            local drawn = p.has_batch_invariant or not p.has_lengths or tiles > a.sm_count * at.ctas
            local with = { ahead = 0, grid = drawn and "persistent" or "static", feeder = 40, q_bufs = 1, rescale = rescale }
            -- Few products to a block of keys: then a third block is under way.
            if at.br == 64 and at.bc == 64 and at.ctas == 1 then
              if not in_lines and rows <= FEW_ROWS and 256 * p.d * 5 >= under_way * 4 then add(at, with) end
              -- Whole atoms of 64 bytes, which no two heads share: boxes of as many.
              for _, bc in ipairs(in_atoms and rows <= FEW_ROWS and at.box == 64 and { 64, 80 } or {}) do
                add(at, { ahead = 0, grid = with.grid, feeder = 40, q_bufs = 1, rescale = rescale, bc = bc, box = 32 })
              end
              with.stages_k, with.stages_v = 3, 3
            end
            add(at, with)
            local one = at.br == 64 and at.bc == 64 and at.ctas == 1 and rows > WIDE_ROWS
            if (at.br == WIDE_ROWS or one) and at.schedule == "plain" and at.box == 64 then add_wide(at, with) end
            -- Two tiles and more to a head: the most keys that two buffers of each find room for, in turns.
            if at.br == WIDE_ROWS and at.bc == 64 and at.schedule == "pingpong" and at.box == 64 and rows > WIDE_ROWS
              and p.dv > WIDE_COLUMNS and p.dv <= WIDEST_COLUMNS and not p.has_lengths then
              add(at, { ahead = 0, grid = with.grid, feeder = 40, q_bufs = 1, rescale = rescale, bc = TURNS_KEYS })
            end
          else
            add(at, { pack = 1 })
          end
        end
      end
      return list
    end,

    steps = function(p, c, a, l)
      local first = whole.steps(p, c, a, l)[1]
      first.grid = l.near and ("rows/%d hkv b"):format(c.br) or ("rows/%d hkv b keys/%d"):format(c.br * (c.cluster or 1), 2 * c.bc)
      first.per_sm, first.pdl = c.ctas, l.pdl and 1 or 0
      -- A launch begins while the one before still holds SMs: without this, more of its blocks than are meant for one come to SMs that are
      -- free, and others stay empty.
      if l.pdl and not l.near then first.smem = math.max(first.smem, a.smem_sm // (c.ctas + 1) - a.smem_reserved + 16) end
      if first.maps then table.remove(first.maps, 1) end
      if not l.merges then return { first } end
      local last = {
        entry = "fa_fwd_merge", threads = l.merge_threads, smem = 0, per_sm = 8, pdl = l.pdl and 1 or 0,
        grid = ("rows/%d hkv b"):format(math.max(1, l.merge_threads * 4 // l.columns)) .. (l.shared and " keys/1024" or ""),
      }
      return { first, last }
    end,

    -- As the families of split keys, and with lengths as those of whole tiles: a class has one size.
    workspace = function(p, c, a, l)
      if l.walks then
        local places = l.part_tiles * c.ctas
        return ("part_o fp32 sms %d, part_state fp32 sms %d, tiles_open int32 sms %d"):format(
          places * c.br * l.columns, places * c.br * 2, places * 4)
      end
      if p.has_lengths then
        return ("counters, part_o fp32 sms %d, part_state fp32 sms %d, tiles_open int32 sms %d"):format(
          split.rows_sm * l.columns, split.rows_sm * 2 - PLACES_SM * 4, PLACES_SM * 4)
      end
      local rows_sm = l.more_rounds and more_rows_sm(l.columns) or ROWS_SM
      return (l.counts and "counters, " or "") .. ("part_o fp32 sms %d, part_state fp32 sms %d, tiles_open int32 sms %d"):format(
        rows_sm * l.columns, rows_sm * 2, decode.rows_sm * 4)
    end,

    params = function(p, c, a, l)
      return whole.params(p, c, a, l) .. (l.merges and " tiles_open" or "")
    end,

    work = function(p, c, a, l)
      local rows, keys = p.sq * (p.hq // p.hkv), p.sk
      if edges.left(p) then keys = math.min(keys, (p.window > 0 and p.window or 1024) + p.sq) end
      local together = c.cluster or 1 -- blocks that share a tile, by its rows or by its keys
      local span = l.near and c.br or c.br * together
      local each = (rows + span - 1) // span
      local tiles = each * p.hkv * p.b
      local total = tiles * ((p.sk + 2 * c.bc - 1) // (2 * c.bc))
      local blocks, thread_blocks = (keys + c.bc - 1) // c.bc, math.min(total, a.sm_count * c.ctas // together)
      local parts, rest = 1, 0
      if not l.near then
        parts, rest = parts_of(c.parts, l, l.walks and tiles // p.b or tiles, blocks, l.walks and NOMINAL or thread_blocks)
      end
      local last = l.last_round or l.rests and tiles > thread_blocks
      local cut = last and rest or tiles
      local pieces = tiles - cut + cut * parts
      local first = whole.work(p, c, a, l, not l.walks, pieces) -- batch invariance: one config for single tokens, too
      -- Fitted as those numbers were: rows are copied, not boxes.
      first.issue, first.efficiency = first.issue * 111 // 100, (first.efficiency or 1) * 0.94
      -- Half of a block's exponentials beside the P V before: of 146 pairs of one tile on an H100 (docs/experiments/forward.md, "Cut tiles
      -- whose rows keep their maximum").
      local gathers = c.ctas > 1 and l.pdl and pieces * together <= a.sm_count
      if c.feeder and c.rescale > 3 and not gathers then
        local short = p.d + p.dv <= 192
        first.issue = first.issue * (c.br * c.ctas == FEW_ROWS and EARLY_ISSUE_LONE or EARLY_ISSUE) // 100
        first.shows = first.shows * (short and EARLY_SHOWS_SHORT or EARLY_SHOWS)
      end
      if c.feeder and c.ctas > 1 and p.dv >= 64 and not p.has_lengths then
        local places = (p.dv == 64 or p.dv == 128) and TWO_PLACES_LINES or TWO_PLACES
        slow(first, places)
      end
      if c.feeder and rows <= c.br and not p.has_lengths and not p.has_batch_invariant and not last and keys >= EMPTY_KEYS then
        local full = pieces / ((pieces + thread_blocks - 1) // thread_blocks * thread_blocks)
        first.hbm_speed = (first.hbm_speed or 1) / (1 + (a.hbm_gbs > 4000 and EMPTY_FAST or EMPTY) * math.max(0, ENOUGH - full))
      end
      -- Copies of rows that are no whole lines, by warps that multiply as well: of 43 shapes of one tile to a head under 40 us 1.05 to 1.07
      -- of the price on an H100, 1.06 to 1.11 on an H200.
      local wide = p.dv > WIDE_COLUMNS and p.dv <= MOST_COLUMNS and not p.has_lengths
      if wide and not c.feeder and a.has_wgmma and p.dv % 64 > 0 then
        first.hbm_speed, first.l2_speed = (first.hbm_speed or 1) * PIECES, (first.l2_speed or 1) * PIECES
        first.tile_latency = first.tile_latency + PIECES_WAIT
      end
      -- Tiles of 64 rows of which a head has several take the L2's columns of 128 and more so much more slowly than was priced.
      if wide and c.feeder and c.br == FEW_ROWS and rows > FEW_ROWS then slow(first, LOW_TILES) end
      -- So far a wait for one buffer of V shows as elsewhere; such tiles wait for HBM.
      if c.feeder and c.stages_v == 1 and rows <= c.br and p.dv > WIDE_COLUMNS then
        first.latency = math.max(0, first.latency - (p.has_lengths and 630 or math.floor(ALONE_SPARES * math.min(1, price.read(p, a)))))
      elseif c.feeder and c.stages_v == 1 and c.ctas == 1 and rows > c.br and not p.has_lengths then
        first.latency = first.latency + TOGETHER_WAIT
      end
      if l.walks and parts > 1 then
        -- Tiles whose parts find no room are walked: each part begins and ends as a tile, and is added to the sum of those before.
        local room = thread_blocks * (l.part_tiles - 1) // parts
        if math.min(tiles < thread_blocks and tiles or tiles % thread_blocks, room) < tiles then
          first.tile_latency = parts * (first.tile_latency + 4300 * c.br * p.dv // 16384)
          parts = 1
        end
      end
      if c.feeder and not p.has_lengths and parts == 1 and tiles > thread_blocks then
        local rounds = (tiles + thread_blocks - 1) // thread_blocks -- of the block that ends last
        first.tile_latency = first.tile_latency + math.floor(NEXT_TILE * c.br * (p.d + p.dv) * (rounds - 1) / rounds)
      end
      first.cuts, first.even = parts, l.even_rows and 1 or 0
      if last and parts > 1 then first.rest = rest end
      if p.has_lengths and c.feeder and c.grid == 2 and parts > 1 then first.tile_latency = first.tile_latency + 600 end
      if gathers then first.gathers = 1 end
      -- They leave in fp32, twice the bytes, and are added up: the rows that are there.
      local there = p.has_lengths and c.br or math.max(1, (rows + each - 1) // each)
      if l.shared then there = math.max(1, (rows + each - 1) // each) end
      if parts > 1 then first.tile_latency = first.tile_latency + part_clocks * there * p.dv // 16384 + (c.feeder and 0 or 900) end
      if parts > 1 and not l.merges then first.tile_latency = first.tile_latency + l.merge_clocks + parts * l.part_clocks end
      local finds = l.more_rounds and ROUNDS_CLOCKS or 0
      if not l.merges then
        first.tile_latency = first.tile_latency + finds
        return { first }
      end
      -- The second kernel waits beside the first where an SM has registers for both, or thread blocks to spare.
      local held = (c.feeder and c.br >= 128 and 1400 or 0) + (pieces * together * 10 > a.sm_count * c.ctas * 9 and 500 or 0)
      return { first, { bytes = parts > 1 and cut * parts * there * (l.columns + 2) * 4 + 2 * cut * there * p.dv or 1,
                        latency = finds + (parts > 1 and 1900 + 1500 * ((parts + 7) // 8) + held or 2750) } }
    end,
  }
end
