-- scores grow with the query's place in its sequence (Llama 4)
scale = scalar(0.1)
floor_scale = scalar(8192, "int", 1, 1048576)
function score(s, b, h, i, j) return s * (1 + scale * log((i + off + 1.0) // floor_scale + 1)) end
