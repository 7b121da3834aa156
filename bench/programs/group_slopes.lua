m = f32 "hkv"
function score(s, b, h, i, j) return s + m[h // group] * abs(j - i - off) end
