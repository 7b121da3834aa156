-- a number for each pair, in bf16; strides of 0 read the same for all sequences, heads or queries
bias = bf16 "b hq sq sk"
function score(s, b, h, i, j) return s + bias[b][h][i][j] end
