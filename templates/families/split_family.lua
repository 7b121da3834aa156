-- What the families have in common that cut tiles into parts (split_tile.cu).

local split = { rows_sm = 512 } -- rows of parts that an SM has room for in the workspace

-- As much for every config of a class. cols: of O, rounded up. How many parts there are depends on the batch: batch invariance has none.
function split.workspace(p, cols)
  if not p.has_lengths or p.has_batch_invariant then return "" end
  return ("counters, part_o fp32 sms %d, part_state fp32 sms %d"):format(split.rows_sm * cols, split.rows_sm * 2)
end

return split
