-- a table of each head by 32 buckets of distances in both directions (the encoder of T5)
t = f32 "hq 32"
function bucket(d)
  local n = abs(d)
  local far = min(15, 8 + floor(log2(max(n, 1) / 8) * 2))
  return (d > 0 and 16 or 0) + (n < 8 and min(n, 8) or far)
end
function score(s, b, h, i, j) return s + t[h][bucket(j - i - off)] end
