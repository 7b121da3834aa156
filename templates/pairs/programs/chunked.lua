-- keys of the query's own chunk, up to its own (Llama 4)
chunk = scalar(8192, "int", 1, 1073741824)
function mask(b, h, i, j) return j <= i + off and (i + off) // chunk == j // chunk end
