function score(s, b, h, i, j) return s + ((i ~ j) & 7) * 0.125 - (i >> 3 & 1) end
