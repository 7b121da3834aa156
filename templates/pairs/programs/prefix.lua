-- keys up to the query's own, and a prefix of each sequence that all queries see (PrefixLM)
n = i32 "b"
function mask(b, h, i, j) return j <= i + off or j < n[b] end
