-- merge: partial results (O, LSE) of disjoint keys become one: O = sum w_i O_i / sum w_i with w_i = exp(LSE_i - max LSE). A row is shared
-- by a team of lane groups: the lanes of a group hold the row's columns, and the groups take turns at the parts. Blocks are persistent.

local lanes_of = function(p)
  local load = math.max(p.align, p.bytes)
  local vec = load // p.bytes
  local pieces, lanes = (p.dv + vec - 1) // vec, 1
  while lanes < 32 and lanes < pieces do lanes = 2 * lanes end
  return lanes, vec, pieces
end

return {
  doc = "partial results of disjoint keys into one, a team of lane groups per row",
  head_dim = 576,
  operation = "merge",

  tunables = {
    { "warps", { 4, 8, 2 }, "of a block" },
    { "team", { 1, 2, 4, 8, 16, 32 }, "lane groups that share the parts of a row" },
    { "ahead", { 4, 2, 8 }, "parts that a lane loads before it adds them up" },
  },

  start = function(p, a)
    local list = {}
    for _, team in ipairs({ 1, 2, 4, 8 }) do list[#list + 1] = { warps = 4, team = team, ahead = 4 } end
    return list
  end,

  supports = function(p, a) return true end,

  constraints = {
    { "team", function(p, c, a)
      local lanes = lanes_of(p)
      if lanes * c.team <= 32 * c.warps then return true end
      return false, ("%d groups of %d lanes > %d warps"):format(c.team, lanes, c.warps)
    end },
  },

  layout = function(p, c, a)
    local l = { threads = 32 * c.warps }
    l.lanes, l.vec, l.pieces = lanes_of(p)
    l.share = (l.pieces + l.lanes - 1) // l.lanes
    l.sum = l.share * l.vec
    l.store = math.max(p.o_bytes, math.min(16, p.align, l.vec * p.o_bytes))
    l.rows = l.threads // (l.lanes * c.team)
    l.mates = math.max(1, l.lanes * c.team // 32)
    -- of each warp, where a team has several: its maximum; its sums, lane by lane
    l.bytes = l.mates > 1 and c.warps * (1 + l.lanes * (l.sum + 1)) * 4 or 0
    l.regs = 36 + l.sum + c.ahead * (l.share * l.vec * p.bytes // 4 + 1)
    l.per_sm = 32 // c.warps
    return l
  end,

  steps = function(p, c, a, l)
    return { { entry = "fa_merge", grid = "hq sq b", per_sm = l.per_sm, pdl = a.cc >= 90 and 1 or 0 } }
  end,

  params = "part part_lse o lse part_sb part_ss part_sh part_sp part_lse_sp o_sb o_ss o_sh lse_sb lse_ss lse_sh hq sq total parts",

  -- Of the typical number of parts. An SM whose rows keep less than 32 KiB on the way waits for them.
  work = function(p, c, a, l)
    local parts, rows = 8, p.b * p.sq * p.hq
    local way = math.min(c.team * c.ahead, parts) * p.dv * p.bytes
    local at_work = math.min(rows, a.sm_count * l.per_sm * l.rows) / a.sm_count
    return {
      bytes = rows * (parts * (p.dv * p.bytes + 4) + p.dv * p.o_bytes + 4),
      l2_speed = math.max(1 / 64, math.min(1, at_work * way / 32768)),
    }
  end,
}
