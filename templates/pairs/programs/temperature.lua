-- each head's scores times a number of its own
tau = f32 "hq"
function score(s, b, h, i, j) return s * tau[h] end
