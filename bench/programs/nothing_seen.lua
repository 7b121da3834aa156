function mask(b, h, i, j) return false end
