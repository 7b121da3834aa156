-- the same, with a tanh that is exact to 1.2e-7
cap = scalar(50, "float", 1e-6, 1e30)
function score(s, b, h, i, j) return cap * tanh_exact(s / cap) end
