-- fp8_wgmma: attention of Q, K and V of 8 bits with wgmma and TMA, for sm_90a. wgmma adds up products of 8 bits with 13 bits of fraction: a
-- block's P V is a sum of its own, which O = keep O + T takes up in fp32 with the rescaling of O. P is e4m3. As second operand wgmma takes
-- V by columns alone: two warps of the producer transpose it, unless it lies so.

local masked = include "families/masked_family.lua"
local round_up = include "families/round_up.lua"
local values_of = include "pairs/values.lua"
local edges = include "pairs/edges.lua"
local program_cost = include "pairs/program_cost.lua"
local split = include "families/split_family.lua"

local MOST_LENT = 1 << 30 -- bytes of V transposed before, beyond which no call is to take a workspace for it by itself
local RAISED = 8 -- log2 of what P is multiplied by: the largest of a row is 256, of 448 that e4m3 holds

local function gcd(x, y) return y == 0 and x or gcd(y, x % y) end

-- V and P in 16 bits beside Q and K in 8.
local function wide(p) return p.wide_values ~= "" end

-- Of many columns a sum takes a part, which is to have whole sixteens where V has 16 bits.
local function columns_of(p) return round_up(p.dv, wide(p) and p.dv > 192 and 32 or 16) end

-- Registers per thread: at the launch, and of consumers when the producer has given its own back.
local function registers(a, c)
  local wgs = c.br // 64
  local launch = math.min(a.regs_thread, a.regs_sm // (128 * (wgs + 1) * c.ctas) // 8 * 8)
  return launch, math.max(launch, math.min(240, (launch * (wgs + 1) - c.feeder) // wgs // 8 * 8))
end

-- Columns of K, and of V where it comes in rows, in whole boxes; and the widest box of which no narrower one holds fewer.
local function columns_in_boxes(p, box)
  return round_up(p.d, box) + ((p.has_v_columns or wide(p)) and 0 or round_up(p.dv, box))
end
local function widest_box(p)
  for _, box in ipairs({ 128, 64 }) do
    if columns_in_boxes(p, box) <= columns_in_boxes(p, 32) then return box end
  end
  return 32
end

local function sum_of(p, c) return columns_of(p) // c.sums end

-- Columns of a box of V in 16 bits: a sum begins with a box.
local function value_box(p, c) return c.sums == 1 and 64 or gcd(sum_of(p, c), 64) end

-- Registers of P.
local function weights_of(p, c) return c.bc // (wide(p) and 4 or 8) end

-- The keys of a box of V transposed: rows of so many bytes.
local function key_box(c) return c.bc % 128 == 0 and 128 or c.bc % 64 == 0 and 64 or 32 end

-- Keys whose P V is under way while P of the others is found: half of them, or what leaves registers for its sums.
local function first_of(c) return round_up(c.bc // 2, 32) + (c.bc > 224 and 32 or 0) end

-- Where what lies in shared memory, in bytes from its start.
local function places(p, c)
  local turned = not p.has_v_columns and not wide(p)
  local before = turned and c.stages_t == 1 -- V transposed lies in the workspace, block after block, as it is to lie here
  local l = { boxes = (p.d + c.box - 1) // c.box, columns = columns_of(p), key_box = key_box(c), wgs = c.br // 64, turned = turned,
    before = before, transposes = turned and not before }
  l.value_box = wide(p) and value_box(p, c)
  l.boxes_v = wide(p) and (l.columns + l.value_box - 1) // l.value_box or turned and (p.dv + c.box - 1) // c.box or c.bc // l.key_box
  l.k = c.q_bufs * c.br * l.boxes * c.box
  l.v = l.k + c.stages_k * c.bc * l.boxes * c.box
  l.ones = c.row_sums == 1
  l.turned_rows = l.columns + (l.ones and 8 or 0)
  l.t = l.v + c.stages_v * c.bc
    * (wide(p) and 2 * l.boxes_v * l.value_box or l.transposes and l.boxes_v * c.box or before and l.turned_rows or l.columns)
  l.barriers = l.t + (l.transposes and c.stages_t * c.bc * l.turned_rows or 0)
  local barriers = 2 * c.stages_k + 2 * c.stages_v + 2 * c.q_bufs * l.wgs + 5
  l.turned_barriers = barriers
  if l.transposes then barriers = barriers + 2 * c.stages_t end
  l.first_keys = c.overlap == 3 and first_of(c)
  -- A turn at the exponentials has conversions, too: of many columns, raced at d = 256.
  l.converts = c.schedule == 2 and c.exp == 0 and l.columns > 128 and (c.overlap == 0 or c.overlap == 2) and not wide(p)
  l.idle_barrier = (c.overlap == 1 or c.schedule == 2) and barriers
  if l.idle_barrier then barriers = barriers + 1 end
  l.slots = round_up(l.barriers + 8 * barriers, 16)
  -- Few tiles of long keys are cut into parts. They leave in fp32, and who adds them up has no e4m3.
  if p.has_lengths then
    l.part_tiles = split.rows_sm // (c.br * c.ctas)
    l.parts = l.part_tiles > 1 and not p.has_batch_invariant and p.o_bytes > 1
    l.counts = l.parts
  end
  l.ranges = (p.has_lengths and (edges.right(p) and 48 or 32) or 16) + (l.parts and 16 or 0)
  l.slot = l.ranges + ((edges.cuts_right(p) or p.has_lengths) and 16 + 16 * l.wgs or 0)
  l.bytes = l.slots + 2 * l.slot
  if p.has_lengths then -- what the scheduler searches tiles with
    l.order = l.bytes
    l.bytes = l.order + 32 + 32 * 16
  end
  l.key_scales = p.k_scale == 2 and round_up(l.bytes, 16) -- of K's tokens
  if l.key_scales then l.bytes = l.key_scales + c.stages_k * c.bc * 4 end
  if before then -- of the kernel before: V as it comes, V transposed, an mbarrier
    l.before_t = round_up(c.bc * l.boxes_v * c.box, 1024)
    l.before_bytes = l.before_t + c.bc * l.turned_rows + 8
  end
  return l
end

local function shared_memory(a, c) return math.min(a.smem_block, a.smem_sm // c.ctas - a.smem_reserved) end

return masked {
  doc = "attention of 8 bits on wgmma and TMA (e4m3, e5m2; s8 beside V of 16): sums are flushed for each block of keys",
  eight = true,
  tile = { "br", "bc" },
  features = "lengths+pages+batch-invariant+lse-strides+no-workspace+v-columns+score",

  tunables = {
    { "br", { 128, 192, 64 }, "B_r: rows of Q per block, 64 for each consumer warpgroup" },
    { "ctas", { 1, 2 }, "blocks per SM" },
    { "feeder", { 56, 40, 32, 24 }, "registers per thread that the producer warpgroup keeps" },
    { "schedule", { { 0, "plain" }, { 1, "pingpong" }, { 2, "exponents" } },
      "plain = warpgroups go on as they get there, pingpong = S of a block is issued in turns, exponents = they are taken in turns" },
    { "overlap", { { 0, "in_turn" }, { 1, "side_by_side" }, { 2, "sums_ahead" }, { 3, "split" } },
      "a warpgroup's S of the next block is issued in_turn = when P V is over, side_by_side = beside the P V of this one; sums_ahead = " ..
      "in_turn, but a sum of P V is under way while the one before joins O; split = in_turn, but P V of a block's first keys is under " ..
      "way while P of the others is found" },
    { "bc", { 128, 96, 64, 160, 192, 224, 256 }, "B_c: keys per iteration", step = 2 },
    { "sums", { 1, 2, 4 }, "P V of a block is so many sums, of so many parts of O's columns, one after the other" },
    { "box", { 128, 64, 32 }, "columns of a TMA box: rows of so many bytes, swizzled" },
    { "stages_k", { 2, 3 }, "buffers of K in shared memory" },
    { "stages_v", { 1, 2 }, "buffers of V in shared memory, as it comes" },
    { "stages_t", { 2, 1 }, "buffers of V transposed; 1 where it lies so: none" },
    { "q_bufs", { 1, 2 }, "buffers of Q" },
    { "grid", { { 2, "persistent" } }, "how blocks get tiles: they stay, and the next that is free draws one" },
    { "sections", { 1, 2 }, "heads that are walked side by side fill this part of two thirds of the L2" },
    { "cluster", { 1 }, "blocks of a cluster" },
    { "rescale", { { 0, "always" } }, "O is rescaled for each block of keys, where what the block brings is added" },
    { "pieces", { { 0, "uncut" }, { 1, "last_round" } },
      "tiles of a last round that keeps few blocks at work are cut into pieces of fewer warpgroups", later = true },
    { "row_sums", { { 0, "added" }, { 1, "multiplied" } },
      "what O is divided by: P added up in fp32 before it is rounded, or products of P with ones; LSE has the first", later = true },
    { "transpose", { { 0, "in_block" }, { 1, "before" } },
      "V is transposed in_block = by two warps, again in each block of rows, before = once, by a kernel before, in the workspace",
      later = true },
    { "exp", { { 0, "looked_up" }, { 1, "multiplied" }, { 2, "halved" }, { 4, "quartered" } },
      "2^x of P by the special-function unit, or of all, a half or a quarter of the keys by multiply-adds", later = true },
  },

  supports = function(p, a)
    if not a.has_wgmma then return false, "no wgmma on " .. a.name end
    if p.bytes ~= 1 then return false, "wgmma multiplies e4m3, e5m2 and s8 here, not " .. p.dtype end
    if p.align < 16 then return false, "TMA needs rows at multiples of 16 bytes, not " .. p.align end
    if p.score and edges.walks(p) then return false, "masks of score programs" end
    if #program_cost(p).arrays > 0 or p.score and p.score.of_distance then return false, "arrays of score programs" end
    if wide(p) and p.has_lengths then return false, "V in 16 bits of sequences of lengths" end
    if p.page > 0 and p.page < 16 then return false, "a box for each page of " .. p.page .. " tokens would be too small" end
    return true
  end,

  constraints = {
    -- With 24 to 40 what transposes V spilled some 8 to 40 bytes in most of 20 compiled.
    { "feeder", function(p, c, a)
      local _launch, consumer = registers(a, c)
      for _, more in ipairs({ 56, 40 }) do
        local _, same = registers(a, { br = c.br, ctas = c.ctas, feeder = more })
        if more > c.feeder and same == consumer then return false, "with " .. more .. " the others get " .. consumer .. " likewise" end
      end
      local _, same = registers(a, { br = c.br, ctas = c.ctas, feeder = 32 })
      if c.feeder < 32 and same == consumer then return false, "with 32 the others get " .. consumer .. " likewise" end
      if c.feeder < 32 and (p.has_v_columns or wide(p)) then
        return false, "so few registers are for blocks beside which V is transposed before"
      end
      return true
    end, upto = "feeder" },
    { "resident", function(p, c)
      if c.ctas == 1 or c.br == 64 then return true end
      return false, "two blocks of " .. c.br .. " rows have too few registers"
    end, upto = "ctas" },
    { "box", function(p, c)
      for _, wider in ipairs({ 128, 64 }) do
        if wider > c.box and columns_in_boxes(p, wider) <= columns_in_boxes(p, c.box) then
          return false, "boxes of " .. wider .. " columns hold no more"
        end
      end
      return true
    end, upto = "box" },
    { "columns", function(p, c)
      local unit = wide(p) and 16 or 8
      if sum_of(p, c) * c.sums == columns_of(p) and sum_of(p, c) % unit == 0 then return true end
      return false, ("%s: %d are no %d sums of them"):format(wide(p) and "boxes of V have columns by sixteens" or
        "wgmma multiplies columns by eights", columns_of(p), c.sums)
    end, upto = "sums" },
    { "accumulators", function(p, c, a)
      local _launch, consumer = registers(a, c)
      local sums = sum_of(p, c) // 2 * (c.overlap == 2 and 2 or 1)
      local others = c.overlap == 2 and 20 or c.feeder < 32 and 16 or 26
      local need = columns_of(p) // 2 + others + program_cost(p).regs + (p.q_scale == 2 and 3 or 0)
        + (c.overlap == 1 and c.bc // 2 + sums + weights_of(p, c)
          or c.overlap == 3 and math.max(c.bc // 2, sums + 4 + first_of(c) // 8 + (c.bc - first_of(c)) // 2)
          or math.max(c.bc // 2, sums + weights_of(p, c)))
      if need <= consumer then return true end
      return false, "O, S or what a block adds, and P with " .. others .. " others take " .. need .. " > " .. consumer .. " registers"
    end, upto = "sums", about = "registers" },
    { "operands", function(p, c, a)
      local launch, need = registers(a, c), math.max(c.bc, sum_of(p, c)) // 2 + 30
      if need <= launch then return true end
      return false, "the assembler wants " .. need .. " > " .. launch .. " registers at the launch for one product"
    end, upto = "sums", about = "registers" },
    { "stages", function(p, c)
      if p.has_v_columns then return c.stages_t == 1, "V lies by columns: nothing is transposed" end
      if wide(p) then return c.stages_t == 1, "V in 16 bits is an operand as it lies: nothing is transposed" end
      if c.stages_t == 1 and p.has_lengths then return false, "V of sequences of lengths is transposed in blocks, into two buffers" end
      if c.stages_t == 2 and c.feeder < 32 then return false, "who transposes V needs more than " .. c.feeder .. " registers" end
      if c.stages_t == 1 and p.has_no_workspace then return false, "V transposed before lies in a workspace" end
      return true
    end, upto = "stages_t" },
    { "buffers", function(p, c, a)
      local need, most = places(p, c).bytes, shared_memory(a, c)
      if need <= most then return true end
      return false, "Q, K and V take " .. need .. " > " .. most .. " bytes"
    end, upto = "q_bufs", about = "shared memory" },
    { "transpose", function(p, c)
      local before = c.stages_t == 1 and not p.has_v_columns and not wide(p)
      if before then return c.transpose == 1, "one buffer of V transposed would be waited for where blocks transpose it" end
      return c.transpose == 0, "V transposed before has buffers of V"
    end, upto = "transpose" },
    { "ahead", function(p, c)
      if c.overlap ~= c.named.overlap.sums_ahead or c.sums > 1 then return true end
      return false, "P V is one sum: none is before another"
    end, upto = "sums" },
    { "pieces", function(p, c)
      if c.pieces == 0 then return true end
      if c.br == 64 then return false, "one warpgroup's rows are no two pieces" end
      return not p.has_lengths and not edges.cuts_right(p), "tiles of unequal keys end with short ones, those of lengths are cut by keys"
    end, upto = "pieces" },
    { "row_sums", function(p, c)
      if c.row_sums == 0 then return true end
      if p.has_v_columns or wide(p) then return false, "ones lie beside V transposed, and nothing is transposed here" end
      if p.has_lengths or p.score then return false, "sums of parts and of score programs are added" end
      -- Where one register array had sums of both widths, the assembler put all products one after the other.
      if c.overlap < 2 and c.sums > 1 then return false, "one sum or sums_ahead: the first sum alone has ones" end
      return sum_of(p, c) % 16 == 0 and sum_of(p, c) <= 248, "ones follow the " .. sum_of(p, c) .. " columns of the first sum"
    end, upto = "row_sums" },
    { "exp", function(p, c)
      if c.exp == 0 then return true end
      if c.exp == 1 and c.schedule == c.named.schedule.exponents then return false, "nothing is left for turns at the exponentials" end
      return c.row_sums == 1, "P by multiply-adds is no float: its sums are products with ones"
    end, upto = "exp" },
    { "split", function(p, c)
      if c.overlap < 3 then return true end
      return c.sums == 1 and c.bc >= 128 and c.row_sums == 1, "P V in two halves of keys is one sum of many keys, with ones"
    end, upto = "row_sums" },
    { "turns", function(p, c)
      if c.br > 64 or c.schedule == c.named.schedule.plain then return true end
      return false, "one warpgroup has no other to take turns with"
    end, upto = "schedule" },
  },

  layout = function(p, c, a)
    local l = places(p, c)
    l.eight, l.raised = true, RAISED
    l.integer, l.pieces = p.dtype == "s8", c.pieces == 1
    l.scaled = p.q_scale > 0 or p.k_scale == 1
    l.row_scaled = p.q_scale == 2
    l.sum_columns = sum_of(p, c)
    l.wide = wide(p)
    l.weights = weights_of(p, c)
    l.tma, l.persistent = true, true
    l.masked = edges.cuts_right(p)
    l.published = edges.cuts_right(p) or p.has_lengths
    l.beside = c.overlap == 1
    l.run = p.has_pages and gcd(c.bc, p.page) or c.bc
    l.joined, l.joined_k, l.joined_v = false, false, false
    l.ahead, l.relative, l.interleaved, l.most = false, false, false, false
    l.parts, l.counts = l.parts or false, l.counts or false
    l.threads, l.ctas = 128 * (l.wgs + 1), c.ctas
    l.regs, l.consumer = registers(a, c)
    return l
  end,

  steps = function(p, c, a, l)
    local maps = {
      { tensor = "q", cols = c.box, rows = 64, swizzle = c.box },
      { tensor = "k", cols = c.box, rows = l.run, swizzle = c.box },
      l.wide and { tensor = "v", cols = l.value_box, rows = l.run, swizzle = 2 * l.value_box }
        or l.turned and { tensor = "v", cols = c.box, rows = l.run, swizzle = c.box }
        or { tensor = "v", cols = l.key_box, rows = l.columns, swizzle = l.key_box },
    }
    local v_map = maps[3]
    if l.before then maps[3] = nil end
    local steps = { {
      entry = "fa_fwd", threads = l.threads, smem = l.bytes, maps = maps, grid = ("sq/%d hq b%s"):format(c.br, l.parts and " 8" or ""),
      per_sm = c.ctas, counter = c.grid == c.named.grid.persistent and 1 or 0, pdl = 1,
    } }
    if l.before then
      table.insert(steps, 1, { entry = "fa_transpose", threads = 256, smem = l.before_bytes, maps = { v_map }, pdl = 1,
        grid = ("hkv b sk/%d"):format(c.bc) })
    end
    return steps
  end,

  workspace = function(p, c, a, l)
    if l.before then return ("turned_v int32 %d sk/%d hkv b"):format(c.bc * l.turned_rows // 4, c.bc) end
    return l.parts and split.workspace(p, l.columns) or ""
  end,

  params = function(p, c, a, l)
    local values, scales = values_of(p), ""
    for _, x in ipairs { "q", "k", "v", "o" } do
      local by = p[x .. "_scale"]
      if by > 0 then scales = scales .. ("%s_scale %s_scale_sb %s%s_scale_sh "):format(x, x, by == 2 and x .. "_scale_ss " or "", x) end
    end
    return "q k v o lse counter " .. (l.parts and "workspace part_o part_state " or l.before and "turned_v " or "")
      .. values.sequences .. values.strides .. values.strides_of_lse .. scales .. values.scores .. values.seen
      .. (p.has_lengths and "section_keys " or "tiles total key_base section ") .. values.pages
  end,

  start = function(p, a)
    local list, parts, columns = {}, { 1, 2 }, columns_of(p)
    if columns > 128 then parts = wide(p) and { 1, 4 } or { 1, 2, 4 } end
    local few = p.sq > 0 and p.sq <= 64
    for _, br in ipairs(few and { 64 } or wide(p) and { 128, 64 } or columns > 160 and { 128 } or { 128, 192 }) do
      local keys = { 224, 192, 160, 128, 96, 64 }
      if columns > 128 then keys = br == 192 and { 192, 160, 128, 96 } or { 192, 160, 128, 96, 64 } end -- starts are at most 64
      for _, bc in ipairs(keys) do
        for _, sums in ipairs(parts) do
          for _, schedule in ipairs(wide(p) and { "pingpong", "plain" } or { "plain", "exponents" }) do
            list[#list + 1] = {
              br = br, ctas = 1, feeder = br == 192 and 32 or (columns <= 128 or br == 64) and 56 or 40, schedule = schedule,
              overlap = sums > 1 and columns > 192 and not wide(p) and "sums_ahead" or "in_turn", bc = bc, sums = sums,
              box = widest_box(p), stages_k = 2,
              stages_v = (p.has_v_columns or columns <= 128) and 2 or 1, stages_t = (p.has_v_columns or wide(p)) and 1 or 2, q_bufs = 1,
              grid = "persistent", sections = 1, cluster = 1, rescale = 0,
            }
          end
        end
      end
    end
    -- Many columns, and rows to read V for several times: V transposed before, and the registers of who transposes it.
    local alone = p.has_v_columns or wide(p) or p.has_lengths or p.has_no_workspace or p.sq * (p.hq // math.max(p.hkv, 1)) < 512
    if columns > 128 and not alone then
      for _, bc in ipairs({ 192, 160, 128 }) do
        for _, way in ipairs({ { "sums_ahead", 4 }, { "in_turn", 2 } }) do
          list[#list + 1] = {
            br = 128, ctas = 1, feeder = 24, schedule = "plain", overlap = way[1], bc = bc, sums = way[2],
            box = widest_box(p), stages_k = 2, stages_v = 2, stages_t = 1, q_bufs = 1,
            grid = "persistent", sections = 1, cluster = 1, rescale = 0, transpose = "before",
          }
        end
      end
    end
    return list
  end,

  work = function(p, c, a, l)
    local elements = c.br * c.bc // 32
    -- S: maxima, exponents, sums, and packing of P. O: one multiply-add for each block.
    local each = 7 + (l.integer and 2 or 0) + (l.key_scales and 2 or 0)
    local issue = elements * each + c.br * l.columns // 32 + l.wgs * 350 + math.floor(elements * program_cost(p).issue)
    local main = {
      rows = c.br, cols = c.bc, group = 64,
      matrix_flops = round_up(p.d, 32) + l.columns * (l.wide and 2 or 1), -- as of 16 bits: products of 8 take half as long
      unit = "wgmma16",
      exps = 1 + program_cost(p).exps,
      issue = issue,
      smem_bytes = c.bc * (round_up(p.d, 32) + l.columns * (l.wide and 2 or 1)) * l.wgs + c.br * round_up(p.d, 32)
        + c.bc * (p.d + p.dv * (l.wide and 2 or l.transposes and 3 or 1)),
      latency = 900 + (c.overlap == 1 and 600 or 0), -- of races on an H100: wide blocks of keys won, and S apart from P V
      tile_latency = 4000,
      shows = c.schedule == 1 and 0.3 or 0.35,
      l2_speed = 1.66,
      regs = l.regs,
    }
    if not l.before then return main end
    local lent = p.b * p.hkv * p.sk * l.turned_rows
    return { { bytes = lent + p.b * p.hkv * p.sk * p.dv, latency = lent <= MOST_LENT and 3000 or 1 << 40 }, main }
  end,
}
