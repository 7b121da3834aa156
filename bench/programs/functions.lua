function score(s, b, h, i, j)
  return s * sigmoid(s) + rsqrt(1 + s * s) - exp(min(s, 4)) * 0.01 + sqrt(abs(s)) + log2(1 + exp2(min(s, 9)))
end
