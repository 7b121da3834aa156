-- wide_naive: naive of head_dims above 256, for which no kernel in exact fp32 keeps O in registers.

local family = include "families/wide_family.lua"

return family(include "families/naive.lua", "attention of wide heads in exact fp32, in three passes, S and P through memory", function(p)
  if p.dtype == "fp32" then return true end
  return false, p.dtype .. " runs on the matrix units: wide_mma"
end)
