-- a slope for each head times the distance of query and key (ALiBi)
slope = f32 "hq"
function score(s, b, h, i, j) return s + slope[h] * (j - i - off) end
