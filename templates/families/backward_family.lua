-- What all families of the backward pass share: D = rowsum(dO O) - dLSE as a first step (delta.cu), and the values that their kernels take.

local round_up = include "families/round_up.lua"
local values_of = include "pairs/values.lua"
local edges = include "pairs/edges.lua"

local backward = { features = "lengths+deterministic+dropout+lse-strides+score" }

-- Lanes of a warp that share a row of O, and elements that one instruction loads.
function backward.delta(l, p)
  l.delta_vec = math.max(1, math.min(16, p.align) // p.o_bytes)
  l.delta_pieces = (p.dv + l.delta_vec - 1) // l.delta_vec
  l.delta_lanes = 1
  while l.delta_lanes < 32 and l.delta_lanes < l.delta_pieces do l.delta_lanes = 2 * l.delta_lanes end
  l.delta_threads = l.delta_pad and math.min(1024, l.delta_pad * l.delta_lanes) or 256
  l.delta_rows = l.delta_threads // l.delta_lanes
  return l
end

-- Whether prices are those of races on an H200, which other chips with wgmma and slower memory have not seen: dense launches.
function backward.raced_on_fast(p, a)
  return a.has_wgmma and a.hbm_gbs > 4000 and p.d >= 64 and p.d <= 128 and p.d == p.dv and not p.has_lengths and not p.score
end

-- The grid of tiles of rows of all heads: with lengths of those that there are, work/spaced_rows.cu.
function backward.row_tiles(p, rows) return (p.has_lengths and "spaced_q/%d hq" or "sq/%d hq b"):format(rows) end

-- With l.delta_pad: rows of a block, and of what the rows of a head are padded to. Each such number of rows has
-- LSE in base 2, +inf where it is -inf, and then D. With l.delta_pdl it begins before what is in front has ended.
function backward.delta_step(l, p)
  return { entry = "fa_delta", threads = l.delta_threads, smem = 0, pdl = l.delta_pdl and 1 or 0,
    grid = l.delta_pad and backward.row_tiles(p, l.delta_pad) or ("sq/%d hq b"):format(l.delta_rows) }
end

-- Whether a family computes gradients of the problem's score program.
function backward.differentiates(p)
  if not p.score or p.score.differentiable then return true end
  return false, "the derivative of the score program's function score has more than 1024 operations"
end

backward.delta_buffer = "delta fp32 b hq sq"
-- With l.pairs: beside each D the row's LSE in base 2, as a pair, +inf where it is -inf.
backward.pairs_buffer = "delta fp32 b hq sq 2"

-- a: the chip, of a family whose kernels do not begin early where others of the chip do. Those have taken 3 us less since: d = 96, 10 heads
-- of 4 x 234 take 20.5 us by mma.sync on an H200, priced 16.6, and 14.5 by wgmma, priced 17.6.
function backward.delta_work(p, l, a)
  return { bytes = math.max(1, p.b * p.sq * p.hq * (2 * p.dv * p.o_bytes + 4)), regs = l and l.delta_pad and 32 or 0,
    latency = a and a.has_wgmma and 5000 or nil }
end

-- Gradients of the operands of a score program, pairs/grad_operands.cu: the steps behind those of a family; of what its kernels take the
-- buffers; and what they cost.
local function reads_of(p) return p.score and p.score.reads end

local function with_operands(p, steps)
  local reads, tile = reads_of(p), 4608 * 4
  if not reads then return steps end
  local function step(entry, smem) steps[#steps + 1] = { entry = entry, threads = 256, smem = smem, grid = "sms 8" } end
  if reads.planes.row > 0 then step("fa_operand_rows", tile) end
  if reads.planes.key > 0 then step("fa_operand_keys", tile) end
  if reads.planes.band > 0 then step("fa_operand_bands", tile + 64 * 65 * 4) end
  for _, read in ipairs(reads.list) do
    if read.by == "pair" then step("fa_operand_pairs" .. read.operand, tile) end
  end
  if reads.folds then step("fa_operand_fold", 0) end
  return steps
end

local function with_sums(p, buffers)
  local reads = reads_of(p)
  if not reads then return buffers end
  local planes = reads.planes
  if planes.row > 0 then buffers = ("%s, sums_row fp32 %d b hq sq"):format(buffers, planes.row) end
  if planes.key > 0 then buffers = ("%s, sums_key fp32 %d b hq sk"):format(buffers, planes.key) end
  if planes.band > 0 then
    buffers = ("%s, sums_behind fp32 %d b hq sq, sums_ahead fp32 %d b hq sk"):format(buffers, planes.band, planes.band)
  end
  return buffers
end

local function sums_of(p)
  local reads = reads_of(p)
  if not reads then return "" end
  local planes = reads.planes
  return "score_grads " .. (planes.row > 0 and "sums_row " or "") .. (planes.key > 0 and "sums_key " or "")
    .. (planes.band > 0 and "sums_behind sums_ahead " or "")
end

local function with_work(p, work)
  local reads = reads_of(p)
  if not reads then return work end
  local pairs, matrix = p.b * p.hq * p.sq * p.sk, p.bytes == 2 and p.o == p.dtype
  local function add(times, bytes)
    work[#work + 1] = { rows = 64, cols = 64, matrix_flops = 2 * (p.d + p.dv) * times, unit = matrix and "mma16" or "ffma", exps = 1,
      issue = 64 * 64 // 32 * (matrix and (p.d + p.dv) // 8 + 60 or p.d + p.dv + 40) * times,
      smem_bytes = 64 * 64 * (p.d + p.dv) // 2 * times, latency = 2500, bytes = math.max(1, bytes) }
  end
  if reads.planes.row > 0 then add(1, 4 * p.b * p.hq * p.sq * reads.planes.row) end
  if reads.planes.key > 0 then add(1, 4 * p.b * p.hq * p.sk * reads.planes.key) end
  if reads.planes.band > 0 then add(2, 4 * p.b * p.hq * (p.sq + p.sk) * reads.planes.band) end
  for _, read in ipairs(reads.list) do
    if read.by == "pair" then add(1, 4 * pairs) end
  end
  if reads.folds then work[#work + 1] = { bytes = math.max(1, 4 * p.b * p.hq * (p.sq + p.sk)) } end
  return work
end

-- A score program's mask: the steps before those of a family, which mark its tiles, pairs/marks.cu.
local function with_marks(p, steps)
  if edges.marked(p) then table.insert(steps, 1, { entry = "fa_mask_marks", threads = 256, smem = 0, grid = "sms 8" }) end
  if edges.marked(p) and edges.tables(p) then
    table.insert(steps, 1, { entry = "fa_mask_tables", threads = 256, smem = 0, grid = "sms 4" })
  end
  return steps
end

local function with_marks_of(p, buffers)
  for _, more in ipairs({ edges.tables(p) or "", edges.marks(p) or "" }) do
    if more ~= "" then buffers = buffers .. ", " .. more end
  end
  return buffers
end

local function with_work_of_marks(p, work)
  if not edges.marked(p) then return work end
  local lines = (p.score.marks_by_b and p.b or 1) * (p.score.marks_by_h and p.hq or 1)
  table.insert(work, 1, { bytes = 65536 + lines * (p.sq // 64) * (p.sk // 64) // 2, latency = 3000 })
  if edges.tables(p) then table.insert(work, 1, { bytes = 65536, latency = 3000 }) end
  return work
end

-- buffers: names of what the kernels share in the workspace.
function backward.params(p, buffers)
  local values = values_of(p)
  buffers = buffers .. " " .. sums_of(p)
  return "q k v o lse grad_o grad_lse grad_q grad_k grad_v " .. buffers .. " " .. values.rows .. values.scores .. "tiles accumulate "
    .. values.seen
end

-- dS of one query head is the least that is there at a time: tiles of rows x rows elements of 16 bits. spills: of a config, whether dS goes
-- through memory.
function backward.workspace(rows, spills)
  return { "workspace", function(p, c)
    if not spills(c) then return true end
    local bytes = round_up(p.sq, rows) * round_up(p.sk, rows) * 2
    if bytes <= 8 << 30 then return true end
    return false, "dS of one query head takes " .. bytes .. " bytes of workspace; accepted: up to " .. (8 << 30) .. " (8 GiB)"
  end, search = true }
end

-- A family with what a score program's mask and gradients of operands need besides.
function backward.family(family)
  local steps, workspace, work = family.steps, family.workspace, family.work
  family.steps = function(p, c, a, l) return with_operands(p, with_marks(p, steps(p, c, a, l))) end
  family.workspace = function(p, c, a, l)
    return with_sums(p, with_marks_of(p, type(workspace) == "string" and workspace or workspace(p, c, a, l)))
  end
  family.work = function(p, c, a, l) return with_work(p, with_work_of_marks(p, work(p, c, a, l))) end
  return family
end

return backward
