c = scalar(20, "float", 1e-6, 1e30)
z = f32 "b hq sq"
d = i32 "b sk"
function score(s, b, h, i, j) return c * tanh(s / c) end
function mask(b, h, i, j) return d[b][j] ~= 1 end
function sink(b, h, i) return z[b][h][i] end
