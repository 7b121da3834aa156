-- wide_bwd: naive_bwd of head_dims above 256, for whose gradients no kernel keeps in registers.

local whole = include "families/naive_bwd.lua"

local family = {}
for _, k in ipairs(sorted(whole)) do family[k] = whole[k] end
family.doc = "gradients of attention of wide heads in passes through memory, P and dS in fp32"
family.head_dim, family.default, family.reference = 576, true, false

family.supports = function(p, a)
  if p.d <= 256 and p.dv <= 256 then return false, "heads of at most 256 have faster families" end
  return whole.supports(p, a)
end

return family
