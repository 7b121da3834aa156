-- keys before the queries, and of the queries' own keys those that are its ancestors: a tree of drafts
anc = bits "b sq sq"
function mask(b, h, i, j) return j < off or anc[b][i][j - off] end
