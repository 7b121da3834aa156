-- a truth for each pair, 32 keys in a word; strides of 0 read the same for all sequences, heads or queries
seen = bits "b hq sq sk"
function mask(b, h, i, j) return seen[b][h][i][j] end
