-- split_mma: flash_fwd_mma of dense batches, with the query heads of a group in one tile and the keys of a tile cut into parts.

local whole = include "families/flash_fwd_mma.lua"
local family = include "families/parts_family.lua"
return family("flash attention forward of few tiles over long keys on mma.sync (fp16, bf16, TF32): tiles cut into parts", whole,
  function(p, c) return c.warps == 4 end,
  function(p, c) return 5500 end, function(p, a) return p.dtype == "tf32" and a.mma_tf32_flop or a.mma16_flop end, 0, "lse-strides+score")
