m = f32 "hq"
function score(s, b, h, i, j) return -s * m[h] end
