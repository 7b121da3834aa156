-- a truth for each pair, in a byte: hidden where it is 0
seen = u8 "b hq sq sk"
function mask(b, h, i, j) return seen[b][h][i][j] ~= 0 end
