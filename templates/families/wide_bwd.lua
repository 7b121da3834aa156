-- wide_bwd: naive_bwd of head_dims above 256, for whose gradients no kernel keeps in registers.

local family = include "families/wide_family.lua"

local made = family(include "families/naive_bwd.lua", "gradients of attention of wide heads in passes through memory, P and dS in fp32",
  function(p) return true end)
made.operation = "backward" -- said here: who looks for gradients reads no family that does not say so
return made
