-- decode_mma: few query rows against many keys, split over all SMs, with mma.sync and cp.async, for sm_80 and later.
-- The query heads of a group and the queries of a sequence share the rows of a tile (FlashDecoding, Dao et al. 2023; stream-K, Osama et
-- al. 2023).

local decode = include "decode_family.lua"

local tunables = {
  { "br", { 16, 32, 64 }, "B_r: query rows (queries x heads of a group) per tile" },
  { "bk", { 16, 32, 64 }, "keys that a group of warps takes at a time" },
  { "row_warps", { 1, 2, 4 }, "warps of a group, each with B_r / row_warps rows" },
  { "key_warps", { 1, 2, 4, 8 }, "groups of a block, each with keys of its own" },
}
for _, t in ipairs(decode.shares) do tunables[#tunables + 1] = t end

local constraints = {
  { "rows", function(p, c)
    local rows = c.br // c.row_warps
    if rows == 16 or rows == 32 then return true end
    return false, "B_r / row_warps = " .. rows .. ", not 16 or 32"
  end, upto = "row_warps" },
}
for _, t in ipairs(decode.constraints) do constraints[#constraints + 1] = t end

return {
  doc = "split-KV attention of few query rows on mma.sync (fp16, bf16, TF32): dense, packed, paged",
  rank = 0,
  few_rows = true,
  features = "lengths+pages+lse-strides",
  tile = { "br", "bk" },
  tunables = tunables,
  constraints = constraints,

  supports = function(p, a)
    if p.dtype == "fp32" then return false, "fp32 needs FMA units" end
    return true
  end,

  layout = function(p, c, a)
    local l = decode.layout(p, c, a)
    l.mma = { k = p.bytes == 2 and 16 or 8, type = ({ fp16 = "f16", bf16 = "bf16", tf32 = "tf32" })[p.dtype] }
    return l
  end,

  steps = decode.steps,
  workspace = decode.workspace,
  params = decode.params,
  work = decode.work,
}
