-- mixed_wgmma: flash_fwd_wgmma for the sequences of a batch that have many query rows, decode_mma for those that have few.

local mixed = include "families/mixed_family.lua"
return mixed("prompts and single tokens in one batch on wgmma and TMA (fp16, bf16): packed, padded, paged",
  include "families/flash_fwd_wgmma.lua", include "families/decode_mma.lua")
