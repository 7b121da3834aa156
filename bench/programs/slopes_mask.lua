m = f32 "hq"
n = i32 "b"
function score(s, b, h, i, j) return s + m[h] * (j - i - off) end
function mask(b, h, i, j) return j < n[b] or j <= i + off end
