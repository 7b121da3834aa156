function score(s, b, h, i, j) return s + (i - j) % 5 * 0.25 + (j - i) // 7 * 0.125 end
