function score(s, b, h, i, j) return s + (1 + abs(j - i)) ^ -0.5 + 2 ^ (-abs(j - i)) + (0.1 * s) ^ 3 end
