-- A family whose kernels take heads of any size, for those that the families of at most 256 leave.

local WIDEST = 576

-- accepts(p): whether it does a problem of wide heads, and why not.
return function(whole, doc, accepts)
  local family = {}
  for _, k in ipairs(sorted(whole)) do family[k] = whole[k] end
  family.doc = doc
  family.head_dim, family.default, family.reference = WIDEST, true, false

  family.supports = function(p, a)
    if p.d <= 256 and p.dv <= 256 then return false, "heads of at most 256 have faster families" end
    local yes, why = accepts(p)
    if not yes then return false, why end
    return whole.supports(p, a)
  end

  return family
end
