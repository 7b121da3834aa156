r = scalar(3, "int", 1, 64)
function mask(b, h, i, j) return (i + off - j) % r == 0 end
