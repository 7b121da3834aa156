//| -- drop: which pairs dropout drops, and what becomes of P, dP and the sums. pairs/philox.cu has the words that decide.
//|
//| local loops = include "pairs/loops.cu"
//| local layouts = include "pairs/layouts.lua"
//|
//| return function(pr, p)
//|   -- The scale of what is kept of P, which O and dV take at their end: behind another factor, and alone.
//|   pr.out_scale = p.has_dropout and " * p.keep_scale" or ""
//|   pr.keep_scale = p.has_dropout and "p.keep_scale" or "1.f"
//| end
