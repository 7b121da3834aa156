-- wide_naive: naive of head_dims above 256, for which no kernel in exact fp32 keeps O in registers.

local whole = include "families/naive.lua"

local family = {}
for _, k in ipairs(sorted(whole)) do family[k] = whole[k] end
family.doc = "attention of wide heads in exact fp32, in three passes, S and P through memory"
family.head_dim, family.default, family.reference = 576, true, false

family.supports = function(p, a)
  if p.d <= 256 and p.dv <= 256 then return false, "heads of at most 256 have faster families" end
  if p.dtype ~= "fp32" then return false, p.dtype .. " runs on the matrix units: wide_mma" end
  return whole.supports(p, a)
end

return family
