x = bf16 "hq sq sk"
function score(s, b, h, i, j) return s * x[h][i][j] end
