function score(s, b, h, i, j) return 1 end
