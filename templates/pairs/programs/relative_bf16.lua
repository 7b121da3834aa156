-- a table of each head by key - query, from -(sq - 1) to sk - 1, in bf16
t = bf16 "hq sq+sk-1"
function score(s, b, h, i, j) return s + t[h][j - i + sq - 1] end
