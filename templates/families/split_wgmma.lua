-- split_wgmma: flash_fwd_wgmma with the query heads of a group in one tile and the keys of a tile cut into parts, of dense batches and of
-- sequences with lengths of their own.

local whole = include "families/flash_fwd_wgmma.lua"
local hopper = include "families/hopper_family.lua"
local family = include "families/parts_family.lua"
return family("flash attention forward of few tiles over long keys on wgmma and TMA (fp16, bf16): tiles cut into parts", whole,
  function(p, c) return c.cluster == 1 and hopper.box[2](p, c) end,
  function(p, c) return 2500 + c.br * p.dv // 6 + c.bc * (p.d + p.dv) // 12 end, function(p, a) return a.wgmma16_flop end, 4600,
  "lengths+pages+batch-invariant+lse-strides+score")
