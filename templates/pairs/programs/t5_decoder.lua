-- a table of each head by 32 buckets of distances to keys before (the decoder of T5)
t = f32 "hq 32"
function bucket(d)
  local n = max(-d, 0)
  return n < 16 and n or min(31, 16 + floor(log2(max(n, 1) / 16) * (16 / 3)))
end
function score(s, b, h, i, j) return s + t[h][bucket(j - i - off)] end
