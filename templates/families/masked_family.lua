-- A family whose kernels a score program's mask may ask for tables of its operands: then a kernel before makes them, pairs/mask_tables.cu.

local edges = include "pairs/edges.lua"

-- family: as it is without. What families are made of others takes `bare`.
return function(family)
  local masked = { bare = family }
  for _, key in ipairs(sorted(family)) do masked[key] = family[key] end

  masked.steps = function(p, c, a, l)
    local steps = family.steps(p, c, a, l)
    if edges.tables(p) then table.insert(steps, 1, { entry = "fa_mask_tables", threads = 256, smem = 0, grid = "sms 4" }) end
    return steps
  end

  masked.workspace = function(p, c, a, l)
    local buffers = family.workspace or ""
    if type(buffers) == "function" then buffers = buffers(p, c, a, l) end
    local tables = edges.tables(p)
    return tables and (buffers == "" and tables or buffers .. ", " .. tables) or buffers
  end

  -- A launch takes about as long, and reads operands that are few beside K and V. A table that stands for several steps stays.
  masked.work = function(p, c, a, l, ...)
    local work = family.work(p, c, a, l, ...)
    if not edges.tables(p) then return work end
    if #work == 0 and #family.steps(p, c, a, l) > 1 then return work end
    if #work == 0 then work = { work } end
    table.insert(work, 1, { bytes = 65536, latency = 3000 })
    return work
  end
  return masked
end
