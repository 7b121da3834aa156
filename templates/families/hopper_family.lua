-- What families that load tiles through tensor maps have in common.

local round_up = include "families/round_up.lua"

local hopper = {}

-- A narrower box must save columns.
hopper.box = { "box", function(p, c)
  if c.box >= 64 then return true end
  local columns = round_up(p.d, c.box) + round_up(p.dv, c.box)
  for _, wider in ipairs({ 64, 32 }) do
    if wider > c.box and round_up(p.d, wider) + round_up(p.dv, wider) <= columns then
      return false, "boxes of " .. wider .. " columns hold no more"
    end
  end
  return true
end, upto = "box" }

return hopper
