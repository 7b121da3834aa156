function score(s, b, h, i, j) return s + abs((s * 3) % 2 - 1) end
