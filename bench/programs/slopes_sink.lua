m = f32 "hq"
z = bf16 "hq"
function score(s, b, h, i, j) return s + m[h] * (j - i - off) end
function sink(b, h, i) return z[h] end
