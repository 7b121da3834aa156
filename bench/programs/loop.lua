function score(s, b, h, i, j)
  local x = s
  for k = 1, 12 do
    if s > k / 4 then x = x + (s - k / 4) / 2 end
  end
  return x
end
