-- keys near the query's own: so many before it, so many after
left = scalar(128, "int", 0, 1073741824)
right = scalar(0, "int", 0, 1073741824)
function mask(b, h, i, j) return i + off - j <= left and j - i - off <= right end
