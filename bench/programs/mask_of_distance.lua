t = bits "hq sq+sk"
function mask(b, h, i, j) return t[h][j - i + sq] end
