x = bf16 "sq sk"
y = f16 "b hq sq sk"
function score(s, b, h, i, j) return s + x[i][j] + y[b][h][i][j] end
