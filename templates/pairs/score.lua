-- score: what becomes of the product of a query and a key: its score, the exponent of that, P, the row's LSE, and dS on the way back.

return function(pr, p)
  -- The score as such. Kernels whose exponentials are of base 2 have none: their exponents take the scale along.
  function pr.score(product, head, row, key)
    if not pr.has_score then return product .. " * p.scale" end
    return pr.score_of(product, head, row, key) .. (p.score.unit and " * " .. p.score.unit or "")
  end

  -- The exponent of P: a product in the unit of `shift`, less that one, rounded once. shift: of the row, its maximum or LSE.
  function pr.exponent(product, unit, shift) return ("fmaf(%s, %s, -%s)"):format(product, unit, shift) end

  -- What a score, or what sums relative to a maximum or an LSE have, weighs beside those relative to `shift`. In base 2 the maximum is a
  -- product that `unit` turns into an exponent, which is rounded up before `shift` is taken away.
  function pr.exp(score, shift) return ("expf(%s - %s)"):format(score, shift) end
  function pr.exp_log2(m, unit, shift) return ("exp2_approx(__fmul_ru(%s, %s) - %s)"):format(m, unit, shift) end

  -- P of the backward pass, from the LSE in that unit, pairs/grad_probability.cu; log2e: a factor, of units that are not of base 2. And of
  -- a score as such.
  function pr.probability(product, unit, lse, log2e)
    return ("probability_exp2(%s%s)"):format(pr.exponent(product, unit, lse), log2e and " * " .. log2e or "")
  end

  function pr.probability_e(score, lse) return ("expf(at_most_zero(%s - %s))"):format(score, lse) end

  -- LSE of a row with maximum m and sum l, which sees keys. In base 2 scores are products, which `unit` turns into scores.
  function pr.lse(m, l) return m .. " + logf(" .. l .. ")" end
  function pr.lse_log2(m, l, unit) return ("fmaf(%s, %s, log2_approx(%s) * 0.693147180559945309f)"):format(m, unit, l) end

  -- The gradient of a score: P (dP - D). D: rowsum(dO O) - dLSE.
  function pr.dscore(probability, grad, delta) return ("%s * (%s - %s)"):format(probability, grad, delta) end

  -- What dQ and dK, sums of dS K and of dS^T Q, take at their end.
  pr.grad_scale = "p.scale"
end
