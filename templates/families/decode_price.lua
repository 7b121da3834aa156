-- What a kernel that streams K and V past few query rows is priced at: the model of its memory, its products and its latencies.

local kv_rows = include "families/decode_rows.lua"
local limbs = include "families/decode_limbs.lua"
local apart = include "families/decode_apart.lua"
local round_up = include "families/round_up.lua"
local program_cost = include "pairs/program_cost.lua"

local price = {}

-- Row tiles of a head walk its keys side by side: a tile finds in the L2 what another has read, except for this part. From random shapes on
-- an H100; of four shapes of d = 128 it had been 0.15, and of d = 144 two tiles over 40k keys then took twice their price. Rows that are no
-- whole lines are read anew by each tile: two to four tiles took 1.2 to 2.5 times what 0.42 gives.
local REREAD, REREAD_PARTIAL = 0.42, 0.8
-- How much longer such rows take from memory, of tiles of few rows and of 32 and more. Of 90 timings over 40 MB.
local PARTIAL, PARTIAL_MANY = 1.08, 1.2
-- Of blocks that are not in step, where all heads of a sequence are side by side: of two shapes of d = 112 and 8 heads on an H100 0.94 and
-- 0.90 of the time of one head after the other, of three of d = 80 to 144 and 3 to 7 heads on an H200 0.88 to 0.92; of 32 heads, eight side
-- by side, 1.01. They are fast with fewer bytes under way. Few tiles are cut evenly, and in step without.
local LANES_MET, LANES_BYTES = 0.88, 40960
-- What the L2 keeps of K and V from one launch to the next, as gen/price.c has it.
local KEPT, KEPT_MOST = 0.4, 0.5

-- Dense, fitted to some 190 timings under 40 us on an H100. One kernel that shares tiles takes FILL clocks more than a stream of the same
-- keys: its first copies and its last products stand alone. The block that comes last adds up parts with all of its warps: so many clocks
-- for a byte and warp, with products as dots more. A second kernel waits for so many parts at a time.
local FILL, SUM, SUM_DOTS, BATCH, BATCH_CLOCKS = 2600, 0.25, 1.05, 8, 1000
-- A warp's products of 16 rows and 16 keys follow one another: 32 rows of d = 112 over 38k keys by four warps took 1.44 times what 110
-- gave; of more than 64 columns O and Q of 32 rows take all registers of a warp.
local CHAIN, CHAIN_WIDE = 650, 1500
-- Clocks for a value of a tile that ends in the middle of a share; of wgmma, for all of it: 44 timings under 17 us, of 9 shapes, took 1.0
-- to 1.45 times their price.
local END, END_BOXED = 2.2, 2500
-- Codes of a byte: what a group more costs where those of a block meet, and a buffer more before the first keys are looked at. One query
-- over 1k and 8k keys of e4m3, an H200: four groups for eight 0.3 us, three buffers for six 0.05. A byte of parts: 32k keys of 64 heads
-- there and on an H100, two heads in a block for eight streams of one.
local MEET, BUFFER, SUM_BYTES = 130, 30, 0.03
-- A byte of parts of 16 rows over blocks of integers, where heads are side by side: of eight races on an H200 with two, four and eight.
local SUM_SIXTEEN = 0.03
local function as_raced(p, a) return a.has_wgmma and not p.has_lengths and not kv_rows.low_bits(p, a.cc) end

-- A stream of K and V, as fast as memory where enough is under way, blocks have equal shares and no iteration takes longer than its bytes.
-- iteration: clocks of one, beside the other blocks of an SM. Constants: fitted to 2,918 timings of 25 problems on an H200
-- (docs/experiments/decoding.md, "Decoding"); what a launch and a second kernel take, to random shapes on an H100. sq: queries of each
-- sequence, where they are not p.sq. boxed: products are wgmma's.
function price.stream(p, c, a, iteration, sq, boxed)
  sq = sq or p.sq
  local rows = sq * (p.hq // p.hkv)
  local keys = seen_keys(p, sq)
  local row = kv_rows.row_bytes(p)
  local heads = kv_rows.heads_of(c)
  local tiles = p.b * ((p.hkv + heads - 1) // heads) * ((rows + c.br - 1) // c.br)
  local iterations = (keys + c.bk * c.key_warps - 1) // (c.bk * c.key_warps)
  local blocks = a.sm_count * c.ctas * c.sm_shares
  local share = math.max((tiles * iterations + blocks - 1) // blocks, c.min_turns)
  local parts = iterations > share and iterations // share + 1 or 1
  local partial = p.d % 64 > 0 or p.dv % 64 > 0  -- rows of partial lines
  local reread = partial and not p.has_lengths and REREAD_PARTIAL or REREAD
  local kv = p.b * p.hkv * keys * row * (1 + ((rows + c.br - 1) // c.br - 1) * reread)
  local seconds = kv / (a.hbm_gbs * 1e9)
  local flight = c.bk * c.key_warps * math.min(heads, p.hkv) * row * (c.stages - 1) * c.ctas
  local balance = math.max(0.02, math.min(1, tiles * iterations / share / blocks))
  local raced, slower, enough = as_raced(p, a), 1, heads > 1 and 24576 or 49152
  if raced then
    local met = c.kv_lanes > 1 and p.hkv > 1 and p.hkv <= 8 and kv_rows.is_narrow(p) and tiles * 2 > blocks
    if met then enough = LANES_BYTES end
    if partial then slower = (met and LANES_MET or 1) * (c.br < 32 and PARTIAL or PARTIAL_MANY) * (a.hbm_gbs / 3000) ^ 0.45 end
    local kept = KEPT_MOST * math.max(0, math.min(1, 2 - kv / (KEPT * a.l2_bytes)))
    slower = slower * (1 - kept)
  end
  local walked = math.min(keys, share * c.bk * c.key_warps)
  local under_way = math.min(1, flight / enough)
  local low = kv_rows.low_bits(p, a.cc)
  local longer = apart.factor(p, c, a, low, walked, kv) * apart.uneven(p, c, a, low, boxed)
  local stream = slower * seconds * longer / under_way / balance ^ 0.83
  local compute = share * c.sm_shares * iteration / (a.clock_ghz * 1e9)
  local efficiency = math.min(2, seconds / (stream ^ 4 + compute ^ 4) ^ 0.25)
  local latency = 1180 + 9500 * (c.sm_shares - 1) + 1490 * (c.ctas - 1)
  local partial = parts * math.min(rows, c.br) * math.min(heads, p.hkv) * p.dv * 4
  local low = kv_rows.low_bits(p, a.cc)
  local bytes = low and low.k.block == 1 and low.v.block == 1 and c.br <= 8
  local sum = partial * (bytes and SUM_BYTES or c.br == 16 and (c.limbs or 0) == 1 and SUM_SIXTEEN or 0.055)
  if bytes then latency = latency + MEET * c.key_warps + BUFFER * c.stages end
  if raced then
    sum = partial * (c.dot_lanes and SUM_DOTS or SUM) / (c.row_warps * c.key_warps)
    if parts > 1 and c.combine == c.named.combine.last_block then latency = latency + FILL end
    -- Where a tile ends in the middle of a share, its groups meet, and the next begins with nothing under way.
    if tiles > 1 then latency = latency + (boxed and END_BOXED or END * math.min(rows, 16) * p.dv * math.max(1, share / iterations)) end
  end
  -- A second kernel after wgmma began sooner in graphs on an H100 than the one after mma.sync that the other numbers are from.
  if parts > 1 then latency = latency + (c.combine == c.named.combine.last_block and sum or boxed and 5200 or 9000) end
  local first = { bytes = kv + 2 * p.b * sq * p.hq * p.dv * p.bytes, efficiency = math.max(0.01, efficiency), latency = latency }
  if c.combine == c.named.combine.last_block then return { first } end
  local waits = not raced and 0 or (parts + BATCH - 1) // BATCH - 1
  return { first, { bytes = math.max(1, tiles * partial), latency = BATCH_CLOCKS * waits } }
end

-- Blocks with scales, tiles of 8 rows: a warp's instructions of an iteration for a value beside its unpacking (products, scales, copies),
-- for a key, and for itself; instructions that a scheduler issues in a clock with so many warps. Of ncu's counts on an H200,
-- where rows of 64 and less were not raced. On an H100 memory bounds eight heads of 8 warps: 12 warps took 1.07 of their time.
local BESIDE, OF_KEY, OF_ITERATION = 1.2, 2.5, 120
local ISSUED = { 0.28, 0.51, 0.56, 0.5 }
-- Warps that copy rows together wait for each other, in one block of two key groups more than in two blocks: q4_0 on an H200, 0.966.
local TWO_BLOCKS = 0.966
-- Four blocks of four rows of q4_0 there, each with a tile of its own: 0.93 of the time of three; where they share tiles 1.01 to 1.13.
local FOUR_BLOCKS = 0.82
-- Blocks of 32 rows and of 64 of one head there, whose warps unpack the same keys, beside their prices.
local SAME_KEYS = { [32] = 1.36, [64] = 1.15 }
-- Where boxes bring rows no warp copies. Of 12 races of q4_0 there.
local BROUGHT = 0.68
-- wgmma over codes that become fp16 first, an iteration of a warpgroup beside another one: clocks for itself, for a key, for a value of a
-- key, and of it for an instruction of its unpacking; where boxes bring them. Of 14 races on an H200.
local WIDEN, WIDEN_KEY, WIDEN_VALUE, WIDEN_COST, WIDEN_BOXES = 333, 15, 0.13, 0.05, 0.88
-- Of codes in blocks, of so many bits, and where 128 keys are taken at a time: of 20 races of what moves a thread's blocks together.
local WIDEN_BLOCK, WIDEN_MANY = { [8] = 1.05, [4] = 1 }, 0.92
local function unpacking(p, c, a, l)
  local values = p.d * (l.cost_k + BESIDE) + p.dv * (l.cost_v + BESIDE)
  local warps = l.warps * c.ctas
  local waits = l.tokens and c.br == 4 and c.ctas == 2 and a.hbm_gbs > 4000 and TWO_BLOCKS or 1
  if l.tokens and c.br == 4 and c.ctas == 4 and apart.has_own_tiles(p, c, a) then waits = FOUR_BLOCKS end
  if l.boxes then waits = BROUGHT end
  return waits * warps * (OF_ITERATION + c.bk * (OF_KEY + values / 32)) / (4 * ISSUED[math.max(1, warps // 4)])
end

function price.work(p, c, a, l, sq)
  -- The chain of latencies from the arrival of an iteration's keys to its last product, or the products themselves.
  local heads = kv_rows.heads_of(c)
  local flops = 2 * c.br * c.bk * c.key_warps * heads * (round_up(p.d, 16) + l.vb * 8)
  -- A program's instructions, of all warps of a block on four schedulers.
  local program = program_cost(p).issue * c.br * c.bk * c.key_warps * heads / 128
  local rows_warp = math.max(1, c.br // c.row_warps // 16)
  local link = not as_raced(p, a) and 110 or rows_warp > 1 and p.dv > 64 and CHAIN_WIDE or CHAIN
  local chain = 640 + link * (c.bk // 16) * rows_warp * (p.d + p.dv) / 256
  local products = 3.7 * flops / a.mma16_flop
  if l.boxed then chain, products = 1030 + 7 * c.bk, 2.9 * flops / a.wgmma16_flop end
  if l.widened then
    local function value(f)
      local of_blocks = f.block > 1 and WIDEN_BLOCK[f.bits] * (c.bk == 128 and WIDEN_MANY or 1) or 1
      return (WIDEN_VALUE + WIDEN_COST * f.cost) * of_blocks
    end
    chain = WIDEN + c.bk * (WIDEN_KEY + p.d * value(l.low.k) + p.dv * value(l.low.v))
    if l.boxes then chain = WIDEN_BOXES * chain end
  elseif l.low then
    chain = 1.4 * chain
  end  -- not measured: unpacking stands between a load and its products
  local issue = math.max(chain, c.ctas * products) + program
  local nibbles = l.half and (l.low.k.bits == 4 or l.low.v.bits == 4)
  local is_bound = nibbles and (a.hbm_gbs > 4000 or limbs.has_limbs(p)) and math.min(p.d, p.dv) > 64
  if is_bound and l.low.k.has_scale then
    issue = math.max(chain, unpacking(p, c, a, l)) * (apart.is_eight_alone(p, c, a, l.low) and apart.eight_issue or 1) + program
  elseif l.low and not l.widened then  -- each warp of rows unpacks all keys of its group
    issue = issue + c.ctas * c.bk * c.key_warps * heads * c.row_warps * (p.d * l.cost_k + p.dv * l.cost_v) / 128
    local by_words = l.low.k.has_scale and kv_rows.row_bytes_of(p.kv, p.d) % 4 == 0
    if c.br >= 32 and heads == 1 and by_words and a.hbm_gbs > 4000 then issue = SAME_KEYS[c.br] * issue end
    issue = apart.uneven(p, c, a, l.low) * issue
    if math.max(p.d, p.dv) > 64 and apart.has_two_in_step(p, c, a) then issue = apart.two_issue * issue end
  end
  return price.stream(p, c, a, issue, sq, l.boxed)
end

return price
