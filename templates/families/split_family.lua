-- What the families have in common that cut tiles into parts (split_tile.cu).

-- Rows of parts that an SM has room for in the workspace; the value of `parts` by which a tile's parts follow from its own length.
local split = { rows_sm = 512, by_length = 7 }

-- As much for every config of a class. cols: of O, rounded up. How many parts there are depends on the batch: batch invariance has none.
function split.workspace(p, cols)
  if not p.has_lengths or p.has_batch_invariant then return "" end
  return ("counters, part_o fp32 sms %d, part_state fp32 sms %d"):format(split.rows_sm * cols, split.rows_sm * 2)
end

return split
