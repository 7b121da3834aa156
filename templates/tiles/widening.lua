-- A kernel before those of a family that does not read few bits: K and V in 16 bits, in the workspace, a sequence after the other
-- (tiles/widen.cu). p: the problem as it was asked for.

local values_of = include "pairs/values.lua"
local rows_of = include "tiles/codes.lua"

local widen = { keys = 8 }  -- keys of a sequence that a block takes at a time

function widen.step(a) return { entry = "fa_widen", threads = 256, smem = 0, grid = "sms 8", pdl = a.cc >= 90 and 1 or 0 } end

function widen.workspace(p) return ("wide_k %s total_k hkv %d, wide_v %s total_k hkv %d"):format(p.dtype, p.d, p.dtype, p.dv) end

function widen.params(p)
  local values, scales = values_of(p), ""
  for _, x in ipairs({ "k", "v" }) do
    if p[x .. "_scale"] > 0 then scales = scales .. (" %s_scale %s_scale_sb %s_scale_sh"):format(x, x, x) end
    if p[x .. "_scale"] == 2 or p[x .. "_scale"] == 4 then scales = scales .. (" %s_scale_ss"):format(x) end
  end
  return "k v wide_k wide_v b hq hkv group sq sk " .. values.rows .. values.seen .. values.pages .. scales
end

-- Reads few bits and writes 16. Instructions are half hidden behind that.
function widen.work(p, a)
  local k, v = codes(p.kv, a.cc), codes(p.v, a.cc) or codes(p.kv, a.cc)
  local rows = p.b * p.sk * p.hkv
  local scales = (p.k_scale == 2 and 4 or 0) + (p.v_scale == 2 and 4 or 0)
  local bytes = rows * (rows_of.row_bytes(k, p.d) + rows_of.row_bytes(v, p.dv) + scales + (p.d + p.dv) * p.bytes)
  return { bytes = math.max(1, bytes), efficiency = k.block == 1 and v.block == 1 and 0.85 or 0.6, latency = 3000 }
end

return widen
