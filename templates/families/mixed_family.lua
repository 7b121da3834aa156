-- Batches in which prompts, or chunks of them, meet sequences that take one token or a few: a kernel of whole tiles takes the first, a
-- kernel of split keys the others. Each sequence's own length says which kernel takes it, on the device, so that none is computed in
-- tiles of mostly empty rows, and none depends on its neighbours.

local masked = include "families/masked_family.lua"
local FEW_ROWS = 64  -- query rows of a group of heads up to which the keys of a sequence are split

-- The config of the kernel of split keys, which is not tuned but chosen by the size of a key. named: of the values of its tunables.
local function few_config(p, a, named)
  local key = (p.d + p.dv) * p.bytes
  local to = {
    br = 16, bk = key > 256 and 16 or 32, row_warps = 1, key_warps = 4, stages = 2, ctas = 2, kv_lanes = 1,
    combine = named.combine.last_block, sm_shares = 1, min_turns = 1, named = named,
  }
  -- Two blocks on an SM where they fit.
  if 2 * (to.bk * to.key_warps * to.stages * key + (2 << 10) + a.smem_reserved) > a.smem_sm then to.ctas = 1 end
  return to
end

-- prompt, few: the families of whole tiles and of split keys.
return function(doc, prompt, few)
  prompt, few = prompt.bare or prompt, few.bare or few
  local named = {}
  for _, t in ipairs(few.tunables) do
    named[t[1]] = {}
    for _, v in ipairs(t[2]) do
      if math.type(v) == nil then named[t[1]][v[2]] = v[1] end
    end
  end
  local constraints = {}
  for _, t in ipairs(prompt.constraints) do
    if t[1] ~= "tokens" then constraints[#constraints + 1] = t end
  end
  -- The kernel of split keys follows from problem and chip alone: found once for all configs that are asked for these tables.
  local found = {}
  local function split(p, a)
    if found.p == p and found.a == a then return found end
    found = { p = p, a = a, config = few_config(p, a, named), holds = true }
    for _, t in ipairs(few.constraints) do
      if not t.search then
        local holds, why = t[2](p, found.config, a)
        if not holds then found.holds, found.why = false, "sequences of few rows: " .. why break end
      end
    end
    if found.holds then
      found.layout = few.layout(p, found.config, a)
      found.layout.rows_upto = FEW_ROWS
    end
    return found
  end
  constraints[#constraints + 1] = { "few_rows", function(p, c, a)
    local kernel = split(p, a)
    return kernel.holds, kernel.why
  end }

  return masked {
    doc = doc,
    rank = prompt.rank,
    features = "lengths+pages+batch-invariant+lse-strides+score",
    tile = prompt.tile,
    tunables = prompt.tunables,
    constraints = constraints,
    moves = prompt.moves,

    start = prompt.start,

    supports = function(p, a)
      if not p.has_lengths then return false, "sequences without lengths of their own are all alike" end
      return prompt.supports(p, a)
    end,

    layout = function(p, c, a)
      local l = prompt.layout(p, c, a)
      local kernel = split(p, a)
      l.few_config, l.few_layout, l.rows_from = kernel.config, kernel.layout, FEW_ROWS + 1
      l.own = { bytes = l.bytes, threads = l.threads }
      l.bytes, l.threads = math.max(l.bytes, l.few_layout.bytes), math.max(l.threads, l.few_layout.threads)
      return l
    end,

    steps = function(p, c, a, l)
      local steps = prompt.steps(p, c, a, l)
      for _, s in ipairs(steps) do
        s.threads, s.smem, s.grid = l.own.threads, l.own.bytes, s.grid .. " prompts" -- not launched where no sequence can have many rows
      end
      local last = few.steps(p, l.few_config, a, l.few_layout)[1]
      -- Of sequences of few rows alone, however long the longest prompt is.
      last.grid = ("%d hkv b keys/%d"):format((FEW_ROWS + l.few_config.br - 1) // l.few_config.br, l.few_config.bk * l.few_config.key_warps)
      steps[#steps + 1] = last
      return steps
    end,

    -- The kernels run one after the other, and share buffers that are large enough for either.
    workspace = function(p, c, a, l)
      if p.has_batch_invariant then return few.workspace(p, l.few_config, a, l.few_layout) end
      return prompt.workspace and prompt.workspace(p, c, a, l) or few.workspace(p, l.few_config, a, l.few_layout)
    end,

    params = function(p, c, a, l)
      local names, seen = "", {}
      for _, list in ipairs { prompt.params(p, c, a, l), few.params(p, l.few_config, a, l.few_layout) } do
        for name in list:gmatch("%S+") do
          if not seen[name] then names = names .. " " .. name end
          seen[name] = true
        end
      end
      return names
    end,

    -- As if beside each prompt another sequence took one token. Where no sequence can have many rows all of them go to the kernel of split
    -- keys, with as many queries as there may be.
    work = function(p, c, a, l)
      local tables = { prompt.work(p, c, a, l, true) }
      local sq = p.sq * (p.hq // p.hkv) <= FEW_ROWS and p.sq or 1
      for _, t in ipairs(few.work(p, l.few_config, a, l.few_layout, sq)) do tables[#tables + 1] = t end
      return tables
    end,
  }
end
