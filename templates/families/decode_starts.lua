-- What families of few query rows begin with: buffers, blocks of an SM and heads side by side.

local kv_rows = include "families/decode_rows.lua"

local starts = {}

-- Buffers, blocks of an SM and heads side by side as they mostly win.
starts.usual = { { 2, 1, 1 }, { 3, 1, 1 }, { 2, 2, 1 }, { 2, 2, 8 } }
-- Beside them, of rows that are no whole lines: as many heads side by side as there are, so that lines are met by all.
function starts.usual_dense(p)
  if p.has_lengths or p.has_batch_invariant or p.hkv == 1 or p.hkv > 8 and p.hkv % 8 > 0 or not kv_rows.is_narrow(p) then
    return starts.usual
  end
  return { { 2, 1, 1 }, { 3, 1, 1 }, { 2, 1, 8 }, { 2, 2, 1 }, { 2, 2, 8 } }
end
-- The same over K and V of few bits, whose buffers are smaller. A row that ends within a line leaves the rest of it to the next head, and
-- so does a token's scale.
function starts.usual_low(p)
  local low = kv_rows.low_bits(p, 80)
  local lanes = (kv_rows.is_narrow(p, low) or p.k_scale == 2 or p.v_scale == 2) and 8 or 1
  -- Many buffers first: where a tile ends, what is on its way lasts until the next one has begun.
  return { { 6, 1, lanes }, { 4, 1, lanes }, { 3, 1, lanes }, { 3, 2, lanes }, { 2, 2, lanes } }
end

-- Configs of these tiles and shares.
function starts.of(tiles, combine, usual)
  local list = {}
  for _, tile in ipairs(tiles) do
    for _, shares in ipairs(usual or starts.usual) do
      local to = {}
      for _, k in ipairs(sorted(tile)) do to[k] = tile[k] end
      to.stages, to.ctas, to.kv_lanes = shares[1], shares[2], shares[3]
      to.combine, to.sm_shares, to.min_turns = combine, 1, 1
      list[#list + 1] = to
    end
  end
  return list
end

return starts
