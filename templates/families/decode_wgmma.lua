-- decode_wgmma: as decode_mma, with a warpgroup for each group of warps: 64 query rows, products by wgmma with Q and P in registers and K
-- and V in shared memory. For many heads in a group, or many queries of a sequence, where mma.sync reads K and V once for each 16 rows.

local decode = include "families/decode_family.lua"
local kv_rows = include "families/decode_rows.lua"
local starts = include "families/decode_starts.lua"

return decode.family {
  doc = "split-KV attention of 64 query rows on wgmma (fp16, bf16): dense, packed, paged",
  wide_q = true,
  formats = "e4m3 e5m2 s8 q8_0 q4_0",
  tunables = {
    { "br", { 64 }, "B_r: query rows (queries x heads of a group) per tile" },
    { "bk", { 32, 64, 128 }, "keys that a warpgroup takes at a time" },
    { "row_warps", { 4 }, "warps of a warpgroup, each with 16 rows" },
    { "key_warps", { 1, 2 }, "warpgroups of a block, each with keys of its own" },
  },
  more = { { "boxes", { 0, 1 }, "rows of a byte for an element come by TMA, a head's rows of a block of keys at a time", later = true } },
  constraints = {
    { "boxes", function(p, c, a)
      if (c.boxes or 0) == 0 then return true end
      return kv_rows.has_boxes(p, c, a.cc, true)
    end },
  },

  start = function(p, a)
    local tiles, low = {}, codes(p.kv, a.cc)
    for _, bk in ipairs({ 64, 128 }) do tiles[#tiles + 1] = { br = 64, bk = bk, row_warps = 4, key_warps = 2 } end
    local list = starts.of(tiles, "second_kernel", low and { { 2, 1, 1 }, { 3, 1, 1 }, { 3, 1, 8 } } or nil)
    for _, tile in ipairs(low and tiles or {}) do
      tile.boxes = 1
      if kv_rows.has_boxes(p, tile, a.cc, true) then
        for _, to in ipairs(starts.of({ tile }, "second_kernel", { { 2, 1, 1 }, { 3, 1, 1 } })) do list[#list + 1] = to end
      end
    end
    return list
  end,

  supports = function(p, a)
    if not a.has_wgmma then return false, a.name .. " has no wgmma" end
    if p.bytes ~= 2 then return false, "wgmma takes V across rows in 16 bits only" end
    if p.d % 64 ~= 0 or p.dv % 64 ~= 0 then return false, "d and dv are not multiples of 64" end
    if p.align < 16 then return false, "rows do not begin at multiples of 16 bytes" end
    return true
  end,

  layout = function(p, c, a)
    local l = decode.layout(p, c, a, true)
    l.boxed = true
    return l
  end,
}
