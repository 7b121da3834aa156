function score(s, b, h, i, j) return s * log(1.0 + sk) / log(512) - 0.01 * (sq - i) + 1.0 * off * 0.001 end
