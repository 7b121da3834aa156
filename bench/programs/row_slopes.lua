m = f32 "b hq sq"
function score(s, b, h, i, j) return s + m[b][h][i] * (j - i - off) end
