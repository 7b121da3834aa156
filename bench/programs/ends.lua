function score(s, b, h, i, j) return i == j and huge * 0 == 0 and s or s + 1e-40 end
