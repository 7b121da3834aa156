-- keys up to the query's own, as the mask of the launch has them
function mask(b, h, i, j) return j <= i + off end
