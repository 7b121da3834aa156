t = f32 "17"
d = i32 "b sk"
function score(s, b, h, i, j) return s + t[d[b][j] % 17] end
