-- softcap of the scores, then ALiBi
cap = scalar(50, "float", 1e-6, 1e30)
slope = f32 "hq"
function score(s, b, h, i, j) return cap * tanh(s / cap) + slope[h] * (j - i - off) end
