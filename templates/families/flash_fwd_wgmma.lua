-- flash_fwd_wgmma: flash attention forward with wgmma and TMA, for sm_90a. A producer warpgroup loads for the block through tensor maps;
-- one to four others own 64 rows of Q each and walk the keys in blocks of B_c (FlashAttention-3, Shah and others 2024; cuDNN's Hopper
-- kernels for the second schedule).

local masked = include "families/masked_family.lua"
local round_up = include "families/round_up.lua"

local function gcd(x, y) return y == 0 and x or gcd(y, x % y) end

local split = include "families/split_family.lua"
local hopper = include "families/hopper_family.lua"
local registers = include "families/hopper_registers.lua"
local places = include "families/hopper_places.lua"
local starts = include "families/hopper_starts.lua"
local keeps_maxima = include "families/hopper_maxima.lua"
local values_of = include "pairs/values.lua"
local program_cost = include "pairs/program_cost.lua"
local price = include "families/hopper_price.lua"
local ways_of_scores = include "families/hopper_scores.lua"
local staged = include "pairs/staged.lua"
local edges = include "pairs/edges.lua"
local mask_places = include "pairs/mask_places.lua"
local mask_cost = include "pairs/mask_cost.lua"

local AFTER = 82 -- percent of issue slots that show, see work()

-- What seldom pays is tried one by one, from where all else is usual: these, in the order of the tunables.
local unusual = {
  { "feeder", function(c) return c.feeder ~= (c.br <= 128 and c.schedule ~= registers.AFTER and 40 or 32) end },
  { "schedule", function(c) return c.schedule >= c.named.schedule.pingpong_exp end },
  { "stages_v", function(c) return c.stages_k ~= c.stages_v end },
  { "grid", function(c) return c.grid == c.named.grid.per_tile end },
  { "ahead", function(c) return (c.ahead == 1) ~= (c.q_bufs == 2 and c.grid ~= c.named.grid.per_tile) end },
  { "sections", function(c) return c.sections ~= 1 end },
  { "cluster", function(c) return c.cluster ~= 1 or c.grid == c.named.grid.static end },  -- clusters that stay have static tiles
  { "rescale", function(c) return c.rescale ~= c.named.rescale.lazy_scaled end },
  { "exp", function(c) return c.exp ~= 0 end },
  { "convert", function(c) return c.convert == c.named.convert.late end },
  { "o_path", function(c) return c.o_path == c.named.o_path.tma_q and c.q_bufs == 1 end },  -- the next Q waits for O
}

-- Of the first `last` at most one. Asked at each of them, for what it spares: most configs fail here.
local function departures(last)
  local mine = unusual[last][2]
  return { "departures", function(p, c)
    if not mine(c) then return true end
    for i = 1, last - 1 do
      if unusual[i][2](c) then return false, unusual[i][1] .. " and " .. unusual[last][1] .. " are unusual, one by one is tried" end
    end
    return true
  end, upto = unusual[last][1], search = true }
end

-- Counted by compiling some 700 (NVRTC 13.0): 24 others are too few for any config, 26 are enough but for a few kinds. In a window
-- 28 were once too few; 32 is the most that leaves d = 64 its four warpgroups and 64 keys. Of 1,300 more at the edge seven spilled,
-- with O in more than 64 registers or, in a window, one warpgroup. With lengths 1,600 were compiled: 128 rows spilled with
-- 96 keys at d = 256, and with 112 in a window at d = 224, and one warpgroup without a mask.
local function accumulators(packed)
  return function(p, c, a)
    local _launch, consumer = registers.of(a, c, p)
    local others = registers.others(p, c)
    local need = registers.matrices(p, c, packed) + others
    if need <= consumer then return true end
    return false, "S, P and O with " .. others .. " others take " .. need .. " > " .. consumer .. " registers"
  end
end

local function fits(packed)
  return function(p, c, a)
    local need, most = places.buffers(p, c, packed).bytes, places.room(a, c)
    if need <= most then return true end
    return false, "Q, K and V take " .. need .. " > " .. most .. " bytes"
  end
end

local function convert(packed)
  return function(p, c, a)
    local steady = c.rescale > 3
    if c.convert == 1 and not steady then return true end
    -- P is as large as its row's sum, which fp16 could not hold.
    if steady and (p.dtype ~= "bf16" or p.has_lengths and p.score) then
      return false, "rows that keep their maximum are for bf16, and with lengths without a score program"
    end
    if steady and c.parts and (p.has_lengths or p.has_batch_invariant or p.score) then
      return false, "rows of parts keep their maximum in dense batches, without a score program"
    end
    if steady and not keeps_maxima(p) then return false, "under this score program rows do not keep their maximum" end
    if steady and c.convert == 1 then return true end
    if steady then return false, "rows that keep their maximum go with convert=early" end
    if c.schedule == c.named.schedule.pingpong_exp then
      return false, "turns at the exponentials are for P that becomes 16-bit on the way"
    end
    -- Of 64 compiled under a causal mask, 4 of the 24 with 28 others spilled, none of the 28 with 32.
    local _launch, consumer = registers.of(a, c, p)
    local need = registers.matrices(p, c, packed) + 30
    if not edges.cuts_right(p) or need <= consumer then return true end
    return false, "S, P and O with 30 others, under a mask where P becomes 16-bit after both, take " .. need .. " > " .. consumer ..
      " registers"
  end
end

return masked {
  doc = "flash attention forward on wgmma and TMA (fp16, bf16)",
  -- Constraints of families whose tiles have rows of several heads, in the place of those of the same name.
  packed = { accumulators = accumulators(true), buffers = fits(true), convert = convert(true) },

  tile = { "br", "bc" },
  features = "lengths+pages+batch-invariant+dropout+lse-strides+no-workspace+score+score-anywhere+score-columns",
  head_dim = registers.WIDEST,

  tunables = {
    { "br", { 64, 128, 192, 256 }, "B_r: rows of Q per block, 64 for each consumer warpgroup" },
    { "ctas", { 1, 2 }, "blocks per SM" },
    { "feeder", { 24, 32, 40 }, "registers per thread that the producer warpgroup keeps" },
    { "schedule", { { 0, "plain" }, { 1, "pingpong" }, { 2, "pingpong_exp" }, { 3, "after" } },
      "S of the next block is issued beside P V: plain = when a warpgroup gets there, pingpong = in turns; " ..
      "pingpong_exp = the exponentials are taken in turns; after = when P V is over, into the registers of P" },
    { "bc", { 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256 }, "B_c: keys per iteration", step = 2 },
    { "box", { 64, 32, 16 }, "columns of a TMA box: rows of 128, 64 or 32 bytes, swizzled" },
    { "stages_k", { 2, 3, 4, 6 }, "buffers of K in shared memory" },
    { "stages_v", { 1, 2, 3, 4, 6 }, "buffers of V in shared memory", step = 2 },
    { "q_bufs", { 1, 2 }, "buffers of Q" },
    { "grid", { { 2, "persistent" }, { 1, "static" }, { 0, "per_tile" } },
      "how blocks get tiles: persistent = they stay and the next that is free draws one, " ..
      "static = they stay and get theirs beforehand, back and forth; per_tile = one block each" },
    { "ahead", { 0, 1 }, "the first scores of a tile are issued 0 = when the tile before is over, 1 = beside its last P V" },
    { "sections", { 1, 2, 4 }, "heads that are walked side by side fill this part of two thirds of the L2" },
    { "cluster", { 1, 2 }, "blocks with neighbouring rows that share K and V: each loads half and sends it to both" },
    { "rescale", { { 3, "lazy_scaled" }, { 2, "lazy" }, { 1, "moved" }, { 0, "always" }, { 4, "steady" } },
      "O is rescaled always = for each block of keys, moved = where a maximum moved, " ..
      "lazy = where it moved by more than 8 in log2 units; lazy_scaled = as lazy, seen after the scale; " ..
      "steady = where a row's sum is large, but as lazy_scaled while its maximum is not near 0" },
    { "exp", { 0, 16, 8 }, "exponentials: 0 = all on the special-function unit, N = one in N as a polynomial on the FMA units" },
    { "convert", { { 1, "early" }, { 0, "late" } },
      "P becomes 16-bit early = as its exponentials come, which follow the P V before; late = after both, which run side by side" },
    { "o_path", { { 0, "direct" }, { 1, "tma_q" }, { 2, "tma" } },
      "O goes back: direct = from registers, tma_q = by TMA from the buffer of Q, tma = by TMA from a buffer of its own" },
  },

  start = starts,

  supports = function(p, a)
    if not a.has_wgmma then return false, "no wgmma on " .. a.name end
    if p.bytes ~= 2 then return false, "wgmma multiplies fp16 and bf16 here, not " .. p.dtype end
    if p.align < 16 then return false, "TMA needs rows at multiples of 16 bytes, not " .. p.align end
    if p.page > 0 and p.page < 16 then return false, "a box for each page of " .. p.page .. " tokens would be too small" end
    if p.score and math.max(p.d, p.dv) > registers.ONE_PRODUCT and (edges.walks(p) or #program_cost(p).arrays > 0) then
      return false, "masks and arrays of score programs beside more than " .. registers.ONE_PRODUCT .. " columns"
    end
    return true
  end,

  constraints = {
    -- The one config of the class serves single tokens too: each would be computed in a whole tile.
    { "tokens", function(p, c)
      if not p.has_lengths or not p.has_batch_invariant then return true end
      return false, "single tokens would take whole tiles"
    end, upto = "br", search = true },
    -- A block for each tile would be a grid for the longest lengths, of which most blocks may have nothing to do.
    { "varlen_grid", function(p, c)
      if not p.has_lengths or c.grid ~= c.named.grid.per_tile then return true end
      return false, "how many tiles there are is known on the device alone"
    end, upto = "grid" },
    { "feeder", function(p, c, a)
      if edges.cuts_left(p) and c.feeder < 32 then
        return false, "the tile scheduler of a window needs more than " .. c.feeder .. " registers"
      end
      -- Of 500 with lengths compiled 4 spilled, all causal with 24; none with 32 or 40.
      if p.has_lengths and c.feeder < 32 then
        return false, "the tile scheduler needs more than " .. c.feeder .. " registers to find tiles"
      end
      if staged.wanted(p) and not c.pack and c.feeder < 32 then
        return false, "the warp that brings arrays of a score program needs more than " .. c.feeder .. " registers"
      end
      if c.feeder >= 40 then return true end
      local _launch, consumer = registers.of(a, c, p)
      for _, more in ipairs({ 40, 32 }) do
        if more > c.feeder then
          local _, same = registers.of(a, { br = c.br, ctas = c.ctas, feeder = more }, p)
          if same == consumer then return false, "with " .. more .. " the others get " .. consumer .. " likewise" end
        end
      end
      return true
    end, upto = "feeder" },
    { "accumulators", accumulators(false), upto = "bc", about = "registers" },
    { "operands", function(p, c, a)
      if c.br <= 128 and c.ctas == 1 then return true end -- 168 and more, for 256 columns
      local launch, need = registers.of(a, c, p), math.max(c.bc, round_up(p.dv, 8)) // 2 + 30
      if need <= launch then return true end
      return false, "the assembler wants " .. need .. " > " .. launch .. " registers at the launch for one product"
    end, upto = "bc", about = "registers" },
    hopper.box,
    -- K is needed one block before V. Copies take about 1700 clocks, so that many buffers are for small blocks. In a window each
    -- warpgroup begins and ends a tile a block after the one below it: buffers let them.
    { "stages", function(p, c)
      if c.stages_k ~= c.stages_v and c.stages_k ~= c.stages_v + 1 then
        return false, c.stages_k .. " of K do not go with " .. c.stages_v .. " of V"
      end
      if c.stages_k < 4 or (c.stages_v == c.stages_k and c.bc <= 80 and (c.stages_k == 4 or edges.cuts_left(p))) then return true end
      return false, "four are for blocks of at most 80 keys, six for windows"
    end, upto = "stages_v" },
    { "buffers", fits(false), upto = "q_bufs", about = "shared memory" },
    { "turns", function(p, c)
      if c.br > 64 or c.schedule == c.named.schedule.plain then return true end
      return false, "one warpgroup has no other to take turns with"
    end, upto = "schedule" },
    -- Two warpgroups with O of 64 columns, twice on an SM, have registers for 64 keys so. Of blocks of 128 that is 0.92 of the time of one
    -- thread block, of documents 1.05, by a race on an H200. Words or bytes of an array by pairs would be copied with too few.
    { "after", function(p, c)
      if c.schedule ~= c.named.schedule.after then return true end
      if not p.score or not edges.scans(p) or not mask_places.wanted(p, c) or mask_places.plane(p, c) then
        return false, "S after P V is for masks of programs whose blocks a kernel before has found, and which read nothing by pairs"
      end
      if c.ctas ~= 2 or c.br ~= 128 or p.d + p.dv > 128 then
        return false, "S after P V is for two blocks per SM of 128 rows and up to 64 columns"
      end
      if c.rescale == c.named.rescale.steady and c.ahead == 0 then return true end
      return false, "S after P V goes with rows that keep their maximum (steady) and ahead=0"
    end, upto = "rescale" },
    departures(2), departures(3), departures(4), departures(5), departures(6), departures(7), departures(8), departures(9), departures(10),
    departures(11),
    -- Raced at d = 64 and 128 on an H200: 0.96 to 1.01 of the time, and a fifth less to compile.
    { "rescale", function(p, c)
      local score = p.score
      local adds = score and score.has_score and score.of_distance and score.adds == score.of_distance and p.d + p.dv <= 256
      if not adds or p.dtype ~= "bf16" or p.has_lengths or c.parts or c.rescale ~= c.named.rescale.lazy_scaled then return true end
      if c.schedule == c.named.schedule.pingpong_exp or c.exp > 0 then return true end
      return false, "rows keep their maximum (steady) where one number by key - query is added"
    end, upto = "exp" },
    { "convert", convert(false), upto = "convert" },
    { "q_bufs", function(p, c)
      if c.q_bufs == 1 or c.grid ~= c.named.grid.per_tile then return true end
      return false, "a block with one tile has one Q"
    end, upto = "grid" },
    { "ahead", function(p, c)
      if c.ahead == 0 or c.grid > 0 and c.q_bufs == 2 then return true end
      return false, "a tile begun under the end of another needs a second buffer of Q, and blocks with many tiles"
    end, upto = "ahead" },
    { "scan", function(p, c)
      if not p.score or not edges.scans(p) or c.grid ~= c.named.grid.per_tile and c.cluster == 1 then return true end
      return false, "the tile scheduler finds whether the score program's mask leaves a block of a tile"
    end, upto = "cluster" },
    { "cluster", function(p, c)
      if c.cluster == 1 then return true end
      if p.has_lengths then return false, "tiles of sequences of their own lengths have no neighbours to share K and V with" end
      if c.grid == c.named.grid.persistent then return false, "the blocks of a cluster would draw different tiles" end
      if staged.wanted(p) and not staged.by_rows(p) then
        return false, "arrays of a score program that go with the key alone come by another way than K and V"
      end
      if c.bc % 32 == 0 then return true end
      return false, "half of " .. c.bc .. " keys is no multiple of 16"
    end, upto = "cluster" },
    { "o_path", function(p, c)
      if c.o_path == 0 then return true end
      if p.o_bytes ~= 2 then return false, "O in fp32 leaves from registers" end
      if c.o_path == c.named.o_path.tma or p.dv <= round_up(p.d, c.box) then return true end
      return false, "rows of O are longer than those of Q"
    end, upto = "o_path" },
    { "resident", function(p, c, a)
      if c.ctas == 1 then return true end
      local need, most = places.of(p, c).bytes, places.room(a, c)
      if need <= most then return true end
      return false, c.ctas .. " blocks of " .. need .. " > " .. most .. " bytes"
    end, about = "shared memory" },
  },

  layout = function(p, c, a)
    local l = places.of(p, c)
    for stages = staged.least + 1, l.staged and #l.staged.tiles == 0 and staged.most or 0 do -- more of lines where there is room
      local more = places.of(p, c, stages)
      if more.bytes <= places.room(a, c) then l = more end
    end
    for group = l.staged and staged.most_group(p, c) or 1, 2, -1 do -- or stages of more blocks, by halves
      local more = places.of(p, c, nil, group)
      if group & group - 1 == 0 and more.bytes <= places.room(a, c) then
        l = more
        break
      end
    end
    l.tma = true
    l.masked = edges.cuts_right(p) and not edges.scans(p) -- some warpgroup may see other blocks than the tile
    l.persistent = c.grid > 0
    -- Under a mask or with lengths the scheduler publishes, with a tile, which blocks of it each warpgroup sees.
    l.published = l.persistent and (edges.cuts_right(p) or p.has_lengths)
    -- The first scores of a tile are issued beside the last P V of the tile before.
    l.ahead = c.ahead == 1
    -- Consumer warpgroups alternate at the issue of products, or at the exponentials.
    l.pingpong_products, l.pingpong_softmax = c.schedule == 1, c.schedule == 2
    l.pingpong = l.pingpong_products or l.pingpong_softmax
    l.after = c.schedule == c.named.schedule.after -- P V is over before S of the next block is issued
    -- P is packed as its exponentials come: then they follow the P V before, which frees the registers that P goes to.
    l.interleaved = c.convert == 1
    -- Scores of later blocks are kept as exponents relative to the rows' maxima.
    l.relative = c.rescale >= 3
    -- O leaves from the buffer of its Q; where there are two, that one is given back when the next tile is under way.
    l.o_in_q = c.o_path == 1
    l.q_lent = l.o_in_q and c.q_bufs == 2
    -- Tiles with rows past their sequence's end leave through shared memory, too, and rows are computed again at one place for whole tiles
    -- and parts. Raced on an H100: 0.97 to 1.00 of the time at d = 128, up to 1.025 at d = 64; wider rows were not.
    l.once = c.o_path == 2 and p.has_lengths and p.dv > 64 and p.dv <= 128
    -- Tiles are short under the mask of a score program: Q of the next may come when the last S is there.
    l.q_soon = edges.walks(p) and not edges.scans(p) and not l.ahead and not l.o_in_q and not l.parts and not p.has_lengths
    -- Each warp stores its own rows, and waits for no other.
    l.warp_stores = edges.walks(p) and c.o_path == 2 and not p.has_lengths
    -- Of a tile's warpgroups the one with the last rows sees keys first, and most: in every other tile it has the first rows. Raced on an
    -- H200: documents and chunks 0.96 to 1.01 of the time, a window 1.03, whose rows see as many each, and a tree by bits 1.02.
    l.reverses = edges.walks(p) and l.persistent and not l.ahead and not l.pingpong and c.cluster == 1 and not p.has_lengths
      and not l.parts and l.wgs > 1
      and (edges.ends(p) and p.score.in_runs or l.masks and l.masks.brings and not l.masks.plane and l.wgs > 2)
    -- Blocks at a tile's end that only other warpgroups see pass after O has left.
    l.skip_late = l.masked and edges.cuts_left(p) and not l.ahead and c.schedule == 0
    if p.has_pages then
      l.run = gcd(c.bc, p.page)
      -- One box brings all columns of a run where they fill the boxes of a row.
      l.joined_k, l.joined_v = l.boxes > 1 and p.d == l.boxes * c.box, l.boxes_v > 1 and p.dv == l.boxes_v * c.box
      l.joined = l.joined_k or l.joined_v
    end
    l.threads, l.ctas = 128 * (l.wgs + 1), c.ctas
    l.o_regs = round_up(p.dv, 8) // 2
    l.regs, l.consumer = registers.of(a, c, p)
    l.feeder = registers.feeder_of(a, c, p)
    l.grouped = l.staged and l.staged.group > 1 -- blocks of keys share a stage of it
    if p.score then ways_of_scores(p, c, l) end
    -- What runs once, or once for a tile, in loops of one statement: 2 % of what compiling takes. Kernels without a program keep their text.
    l.brief = p.score and p.score.has_score and not p.score.has_mask and not p.has_lengths and not c.parts and l.persistent
      and c.cluster == 1 or false
    l.early = l.tanh_by_fma and l.most
    if c.rescale > 3 then
      -- Rows whose maximum is near 0 keep it until their sum is large (hopper_softmax.cu). They need no maxima, so that half of a block's
      -- exponentials are taken beside the P V before.
      l.sums = not l.most
      l.early = l.early or l.sums and not l.pingpong_softmax
    end
    -- Blocks that are cut, a tile's first and those whose rows may move have one text; how the scores of all are made.
    -- Where a scan finds blocks it is asked as they are hidden which those are.
    if l.early and not (p.score and edges.scans(p)) then
      local makes = p.score and p.score.has_score
      l.cuts = l.joins and "joins" or l.besides and "besides" or l.tanh_by_fma and "tanh" or not makes and "plain" or l.held and "held"
        or l.relative and p.score.slopes and "slopes" or "scores"
    end
    -- What a program adds by a tile alone leaves hidden pairs hidden: where its elements are held, whole blocks and others have one text
    -- but for masks and maxima. At d = 64 to 112 that was raced and slower (docs/experiments/programs.md).
    l.one_text = l.cuts == "held" and c.cluster == 1 and c.o_path ~= 1 and p.score.adds == l.staged.tiles[1].node
      and not p.score.has_mask and not p.has_score_columns or false
    -- Fences before products list O and P but where machine code is the same without: a list is 1 to 3 % of what compiling takes.
    local bare = { plain = true, joins = true, scores = true, held = true, slopes = true, besides = true, tanh = p.d + p.dv < 256 }
    l.fences_bare = l.pingpong_products and bare[l.cuts] or false
    -- What passes before a tile's first block is compiled once, but for plain attention at d = 64, where short causal tiles lose a percent,
    -- and with lengths, where mixed batches lose a third of one.
    local plain = not (p.score and p.score.has_score)
    l.passes_once = l.cuts and l.masked and not (l.q_lent or l.ahead) and not (plain and (p.d <= 64 or p.has_lengths)) or false
    -- Which rows are computed again their sums and maxima show, whatever V holds beside them.
    l.rows_show = l.sums or l.most
    -- Asked where O is made ready for its store.
    l.sums_show = (l.sums or l.most) and (c.o_path == 2 and (not p.has_lengths or l.once) or l.one_text)
    -- A wait for P V lists O, so that nothing of it is read before: a list is a percent of what compiling takes. Here all that reads O
    -- waits for shuffles that come after, or stores it.
    l.waits_bare = (l.cuts == "plain" or l.cuts == "joins" or l.one_text) and l.sums_show and not p.has_lengths
    return l
  end,

  steps = function(p, c, a, l)
    local rows = p.has_pages and l.run or c.bc // (l.near and 1 or c.cluster)
    local maps = {
      { tensor = "q", cols = c.box, rows = 64, swizzle = l.row },
      { tensor = "k", cols = c.box, rows = rows, swizzle = l.row, boxes = l.joined_k and l.boxes or 0 },
      { tensor = "v", cols = c.box, rows = rows, swizzle = l.row, boxes = l.joined_v and l.boxes_v or 0 },
    }
    if c.o_path > 0 then maps[4] = { tensor = "o", cols = c.box, rows = l.warp_stores and 16 or 64, swizzle = l.row } end
    for _, map in ipairs(l.staged and l.staged.maps or {}) do maps[#maps + 1] = map end
    local steps = { {
      entry = "fa_fwd", threads = l.threads, smem = l.bytes, maps = maps, cluster = c.cluster,
      grid = ("sq/%d hq b%s"):format(c.br * c.cluster, l.parts and " 8" or ""),  -- 8: parts of a tile at most
      per_sm = c.grid > 0 and c.ctas or 0, counter = c.grid == c.named.grid.persistent and 1 or 0, pdl = 1,
    } }
    if l.masks then
      steps[1].keys_most = mask_places.keys_most(c, l.wgs)
      -- Of tiles that begin with runs few thread blocks make the lines: attention's wait for them on the other SMs. Where the kernel leaves
      -- an order of tiles, these are numbered by its launch as by the kernel's that draws them.
      local grid = l.runs and (p.score.marks_by_b and "b " or "") .. "sq/512" or l.ordered and steps[1].grid or "sms 4"
      table.insert(steps, 1, { entry = "fa_mask_lines", threads = l.runs and 1024 or 256, smem = 0, grid = grid,
        per_sm = l.runs and 1 or l.ordered and 4 or 0, pdl = 1 })
    end
    return steps
  end,

  workspace = function(p, c, a, l)
    if l.ordered then return ("counters, %s, mask_order int32 %d"):format(mask_places.lines(p, c), l.ordered) end
    if l.masks then return mask_places.lines(p, c) end
    return split.workspace(p, l.o_regs * 2)
  end,

  params = function(p, c, a, l)
    local values = values_of(p)
    return "q k v o lse counter " .. (l.parts and "workspace part_o part_state " or "")
      .. values.sequences .. values.strides .. values.strides_of_lse .. values.dropout .. values.scores .. values.seen
      .. (p.has_lengths and "section_keys " or "tiles total key_base section ") .. values.pages
      .. (p.has_pages and l.joined and "joined " or "")
      .. (l.masks and "mask_lines " or "") .. (l.runs and "mask_tiles mask_runs " or "") .. (l.ordered and "workspace mask_order " or "")

  end,

  -- What one block of B_r x B_c scores costs. How the numbers were fitted: docs/performance.md, "The model". Where timings differed by less
  -- than their spread, what is usual comes first.
  -- prompts: no sequence has few query rows. pieces: tiles and parts of tiles, where tiles are cut.
  work = function(p, c, a, l, prompts, pieces)
    local scans = p.score and edges.scans(p)
    local fit = price.fitted(p, l, scans)
    local elements = c.br * c.bc // 32
    local issue = math.floor(elements * fit.issue) + l.wgs * fit.per_group
    issue = issue + price.turn_passes(p, c, l, scans)
    -- Philox: seven rounds of two wide products and two exclusive ors for eight elements, and two instructions for each.
    if p.has_dropout then issue = issue + elements * 7 end
    if c.exp > 0 then issue = issue + elements * 6 // c.exp end
    local program_issue, program_exps = program_cost(p).issue_ahead, program_cost(p).exps
    if l.staged then
      program_issue, program_exps = staged.cost(p)
      -- Of short rows a vote for each block shows, more where maxima are looked for: by races of 256 x 64 and 192 x 128.
      issue = issue + l.wgs * staged.per_group(l.staged, p.d + p.dv > 128 and 0 or c.rescale > 3 and 220 or 330, l.joins)
    end
    -- A comparison, the square, and a multiply-add less than the polynomial has coefficients: nothing on the special-function unit.
    if l.tanh_by_fma then program_issue, program_exps = p.score.tanh_exact and 5 or 4, 0 end
    if l.tanh_by_fma and p.d + p.dv <= 128 then issue = issue + l.wgs * 50 end  -- the vote on products: by a race of two tiles
    if scans then issue = issue + l.wgs * 200 end
    -- By a race of blocks of 128 on an H200: four warpgroups of two thread blocks, of which none waits for another's rows.
    if l.after then issue = issue * AFTER // 100 end
    -- Masks that leave few keys, above d = 64: what rows that keep their maximum spare, and no warpgroup waits for a turn. By a race of
    -- documents, chunks, blocks, trees and a matrix on an H200; ends that differ by sequence may leave most.
    local few = p.score and edges.walks(p) and p.d + p.dv > 128 and not l.split and not p.has_lengths
      and (scans or p.score.two_ended and not p.score.marks_by_b)
    local keeps = few and l.early and not p.score.has_score
    if few then issue = issue + (keeps and -1 or scans and 3 or 7) * elements end
    local share, mask_issue = 1, 0
    if p.score then share, mask_issue = mask_cost(p, c, c.br * c.cluster, 64, l.split) end
    if p.score and edges.walks(p) then program_issue = program_issue - p.score.mask_issue + mask_issue end
    issue = issue + math.floor(elements * program_issue)
    -- Rows that keep their maximum look for none: of 62 pairs 0.95 of the time of lazy_scaled at d = 64 (38), 0.98 at 72, 0.99 above 128. In
    -- windows of 512 and 1024 keys 0.89 to 0.98, of 128 1.00 to 1.05: there a tile has few blocks whose maximum is the first one's.
    if c.rescale > 3 and not p.score and (not edges.cuts_left(p) or edges.long_window(p)) then issue = issue - elements * 4 // 5 end
    if c.rescale < 2 then issue = issue + c.br * p.dv // 32 elseif c.rescale == 2 then issue = issue + elements // 16 end
    -- A warpgroup waits for its products and at the mbarriers; with one buffer of V for the copy too, in a cluster for the other block.
    local latency = fit.latency
    -- Numbers of a line that do not join exponents: by a race of both at d = 64 and 128 on an H100.
    if l.staged and #l.staged.lines > 0 and not l.staged.far and not l.joins then latency = latency + 200 end
    if c.stages_v == 1 then latency = latency + fit.wait elseif c.stages_v == 2 and c.bc <= 96 then latency = latency + (scans and 500 or 25) end
    if c.cluster > 1 then latency = latency + fit.cluster + (p.hq > p.hkv and fit.in_group or 0) end
    if c.box < 64 and fit.narrow > 0 then latency = latency + fit.narrow // c.box - 10 end
    -- O's way out, and the first copies of a tile where no others are under way. Two blocks of an SM cover that for each other, persistent
    -- or not.
    -- Blocks that have an SM to themselves begin as one does.
    local pair = c.ctas > 1 and (l.split or (p.sq + c.br - 1) // c.br * p.hq * p.b > a.sm_count)
    local tile = fit.tile * c.br * p.dv // 16384 + (c.grid == 0 and fit.per_tile or pair and fit.pair or fit.alone)
    -- The next Q waits for O; under scores longer, by a race of softcaps at d = 128 on an H100, 5,700 clocks. They are priced higher: plain
    -- attention's winners have a buffer of Q's, and its text takes longer to compile.
    local waits = p.score and p.score.has_score and not p.has_lengths and 8000 or 1500
    -- By TMA it leaves without its warps: of 420 pairs 70 clocks for 128 x 64 of it, 350 for 256 x 64 and 128 x 128, 600 for 128 x 232.
    local leaves = (p.score or p.has_lengths or l.split) and 200 or 350 * c.br * p.dv // 16384
    if c.o_path == 1 and c.q_bufs == 1 then tile = tile + waits elseif c.o_path > 0 then tile = tile - leaves end
    if few and c.o_path == 2 then tile = tile - 500 end -- no warp waits for another one's rows
    -- Three warpgroups that see few blocks pass each other by as many as there are buffers: documents at d = 128 take 0.92 and 0.98 of the
    -- time of three of them at 4k, by races on an H200 and an H100.
    local apart = few and l.masks and l.masks.brings and not l.masks.plane and p.d + p.dv > 192 and c.q_bufs == 1
    if apart and l.wgs > 2 and c.stages_k > 3 then tile = tile - 700 end
    -- Of chunks at d = 128, where three buffers have a winner's time of a plain call: 0.98 on an H200 at 4k, 0.99 at 16k.
    local chunks = few and l.reverses and not scans and l.wgs > 2 and p.d + p.dv > 192 and c.q_bufs == 1
    if chunks and c.stages_k > 3 then tile = tile - 1300 end
    -- Blocks that are cut take both ways of tanh: 192 x 64 was 0.97 of the time of 192 x 80 at d = 128, 4k, and as fast at 16k.
    if l.tanh_by_fma and p.d + p.dv > 224 then tile = tile + 40 * math.max(0, c.bc - 64) end
    if l.reverses and l.wgs > 3 then tile = tile - 400 end -- by a race of documents with 192 and 256 rows on an H200
    -- Sections are written out once more for blocks under a diagonal: of 450 pairs two take 1.01 of the time of one, and four 1.03 to 1.08.
    if edges.cuts_right(p) and not (p.score or p.has_lengths or l.split) then tile = tile + 250 * (c.sections - 1) end
    if c.grid == 1 then tile = tile + 100 end
    if c.q_bufs == 2 then tile = tile + 100 end
    -- Of trees by bits, on an H100: what is looked up for each pair of blocks of 64 keys, and of tiles of three warpgroups.
    if scans and not l.masks and not l.split and not p.has_lengths then
      latency = latency + math.max(0, 128 - c.bc) * 6
      if l.wgs > 2 then tile = tile + 6000 end
    end
    if l.ahead and l.masks and l.wgs > 2 then tile = tile + fit.ahead end
    -- Its first block of K and of V, which nothing hides.
    tile = tile + c.bc * (p.d + p.dv) * 2 // (fit.first_bytes * price.l2_speed(p, c, 1))
    if c.feeder ~= (c.br <= 128 and 40 or 32) then tile = tile + 50 end
    -- A search whose registers spill, see feeder_of().
    if scans and not l.masks and registers.feeder_of(a, c, p) == c.feeder then tile = tile + 3000 end
    -- Where sequences have lengths of their own, as if beside each prompt another sequence took one token: a tile of mostly empty rows.
    local more = 1
    if p.has_lengths and p.b > 1 and not prompts then more = 1 + c.br / math.max(p.sq, c.br) end
    local walkers = l.even_rows and pieces <= a.sm_count * c.ctas and (p.sq * (p.hq // p.hkv) + c.br - 1) // c.br or 1
    local turns, exp_turns, plain = fit.turns, fit.exp_turns, l.wgs > 2 and fit.plain_many or fit.plain
    if few then turns, exp_turns = turns + 0.1, exp_turns + (scans and 0 or 0.08) end
    if keeps then plain = math.min(plain, 0.05) end
    -- The same of short rows, by a race of chunks and blocks of 128 on an H200.
    if p.score and edges.walks(p) and p.d + p.dv <= 128 and not l.split and not p.has_lengths
      and (scans or p.score.two_ended and not p.score.marks_by_b) then
      turns, exp_turns = turns + 0.4, exp_turns + (scans and 0.05 or 0.4)
      if l.early then plain = math.min(plain, 0.05) end
    end
    local own = {
      rows = c.br * c.cluster, cols = c.bc, group = 64,
      matrix_flops = 2 * (round_up(p.d, 16) + round_up(p.dv, 8)) * more,
      unit = "wgmma16",
      exps = (c.exp > 0 and 1 - 1 / c.exp or 1) + program_exps,
      issue = issue * more,
      efficiency = price.feed_rate(p, c) * price.early_rate(p, c, l),
      smem_bytes = (c.bc * (round_up(p.d, 16) + p.dv) * 2 * l.wgs + c.br * round_up(p.d, 16) * 2) * more,
      latency = latency,
      tile_latency = tile,
      -- Of the shorter of products and exponentials: one warpgroup alone, four, two or three, by who waits for whom.
      shows = math.max(0, (l.wgs * c.ctas == 1 and fit.shown_lone or fit.shown
        + (c.schedule == 1 and turns + price.rested(p, c, l, fit) or c.schedule == 2 and exp_turns or plain)
        - (l.wgs > 3 and fit.hidden_by_four or 0)) + (c.bc - 96) / 1000
        + price.in_step(p, c, a, l, fit, pieces)),
      felt = fit.felt,
      l2_speed = price.l2_speed(p, c, fit.l2_speed),
      hbm_speed = price.hbm_speed(p, c, a, walkers, pieces or (p.sq + c.br - 1) // c.br * p.hq * p.b),
      share = share,
      regs = l.regs,
    }
    return l.masks and { { bytes = 65536, latency = 3000, regs = l.runs and 64 or nil }, own } or own
  end,
}
