-- A family with kernels before its own: where a score program's mask asks for tables of its operands (pairs/mask_tables.cu), and where K
-- and V of few bits become 16 bits (tiles/widen.cu).

local edges = include "pairs/edges.lua"
local mask_places = include "pairs/mask_places.lua"
local widen = include "tiles/widening.lua"

-- a with those names of b that it has not.
local function joined(a, b)
  local seen = {}
  for name in a:gmatch("%S+") do seen[name] = true end
  for name in b:gmatch("%S+") do
    if not seen[name] then a = a .. " " .. name end
  end
  return a
end

-- family: as it is without. What families are made of others takes `bare`.
return function(family)
  local masked = { bare = family }
  for _, key in ipairs(sorted(family)) do masked[key] = family[key] end

  masked.steps = function(p, c, a, l)
    local steps = family.steps(p, c, a, l)
    if edges.fills(p, l) then
      table.insert(steps, 1, { entry = "fa_mask_tables", threads = 256, smem = 0,
        grid = l and l.runs and mask_places.own_entries(p) and "sms 4 long" or "sms 4", pdl = l and l.masks and 1 or 0 })
    end
    if p.low then table.insert(steps, 1, widen.step(a)) end
    return steps
  end

  masked.workspace = function(p, c, a, l)
    local buffers = family.workspace or ""
    if type(buffers) == "function" then buffers = buffers(p, c, a, l) end
    for _, more in ipairs({ edges.tables(p) or "", p.low and widen.workspace(p.low) or "" }) do
      if more ~= "" then buffers = buffers == "" and more or buffers .. ", " .. more end
    end
    return buffers
  end

  if family.params and not family.reference then
    masked.widens = true
    masked.params = function(p, c, a, l)
      local names = family.params
      if type(names) == "function" then names = names(p, c, a, l) end
      return p.low and joined(names, widen.params(p.low)) or names
    end
  end

  -- A launch takes about as long, and reads operands that are few beside K and V. A table that stands for several steps stays.
  masked.work = function(p, c, a, l, ...)
    local work = family.work(p, c, a, l, ...)
    if not edges.fills(p, l) and not p.low then return work end
    local steps = #work == 0 and #family.steps(p, c, a, l) or 1
    if steps > 1 and not p.low then return work end
    if #work == 0 then work = { work } end
    for _ = 2, steps do work[#work + 1] = { bytes = 1 } end
    if edges.fills(p, l) then table.insert(work, 1, { bytes = 65536, latency = 3000 }) end
    if p.low then table.insert(work, 1, widen.work(p.low, a)) end
    return work
  end
  return masked
end
