-- mixed_mma: flash_fwd_mma for the sequences of a batch that have many query rows, decode_mma for those that have few.

local mixed = include "families/mixed_family.lua"
return mixed("prompts and single tokens in one batch on mma.sync (fp16, bf16, TF32): packed, padded, paged",
  include "families/flash_fwd_mma.lua", include "families/decode_mma.lua")
