-- a table of each head by key - query, from -(sq - 1) to sk - 1, in f32
t = f32 "hq sq+sk-1"
function score(s, b, h, i, j) return s + t[h][j - i + sq - 1] end
