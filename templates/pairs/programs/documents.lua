-- keys of the query's own document, up to its own; documents by a number of each key
doc = i32 "b sk"
function mask(b, h, i, j) return j <= i + off and doc[b][i + off] == doc[b][j] end
