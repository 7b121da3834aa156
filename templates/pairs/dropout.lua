-- dropout: what becomes of P, dP and the sums where pairs are dropped.

return function(pr, p, l)
  -- What is kept of P is scaled by it, once, where O or dV is: a factor behind another one, and a factor alone.
  pr.out_scale = p.has_dropout and " * p.keep_scale" or ""
  pr.keep_scale = p.has_dropout and "p.keep_scale" or "1.f"
end
