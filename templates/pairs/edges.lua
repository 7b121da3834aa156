-- edges: where the keys that a row sees end inside of its sequence. Only what differs from row to row is an edge.

local edges = {}

-- Each row sees keys up to one of its own; from one of its own on.
function edges.right(p) return p.mask ~= "none" end
function edges.left(p) return p.mask == "window" end
-- A later row sees all that an earlier one does, and more: tiles of rows become longer, tiles of keys shorter.
function edges.grow(p) return edges.right(p) and not edges.left(p) end

function edges.of(pr, p)
  pr.right, pr.left, pr.grow = edges.right(p), edges.left(p), edges.grow(p)
end

return edges
