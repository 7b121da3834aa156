-- values: the names for `params` that many families have. The order of a struct's members is that of these lists.

local edges = include "pairs/edges.lua"

local FORWARD = { "q", "k", "v", "o" }
local BACKWARD = { "q", "k", "v", "o", "grad_o", "grad_q", "grad_k", "grad_v" }

return function(p)
  local v = {}

  v.strides = ""
  for _, tensor in ipairs(p.op == "backward" and BACKWARD or FORWARD) do
    v.strides = v.strides .. ("%s_sb %s_ss %s_sh "):format(tensor, tensor, tensor)
  end
  v.strides_of_lse = (p.has_lengths or p.has_lse_strides) and "lse_sb lse_ss lse_sh " or ""
  v.sequences = (p.has_lengths and "cu_seqlens_q cu_seqlens_k seqlens_q seqlens_k " or "") .. (p.has_pages and "page_table " or "")
  v.dropout = p.has_dropout and "rng drop_bits keep_scale " or ""
  -- Where rows lie, and which pairs are dropped.
  v.rows = v.strides .. v.strides_of_lse .. v.sequences .. v.dropout

  -- Of a score program: its operands, and where its sequences' diagonals are, where it asks.
  local tables = ""
  for _, buffers in ipairs({ edges.tables(p) or "", edges.marks(p) or "" }) do
    for name in buffers:gmatch("([%w_]+) int32") do tables = tables .. name .. " " end
  end
  v.program = p.score and "score " .. tables .. (p.score.off and (p.has_lengths and "off " or "relative off ") or "") or ""
  v.scores = "scale scale_log2 b hq hkv group sq sk " .. v.program
  -- Which pairs are seen: of each sequence by its own lengths, or of all.
  v.seen = p.has_lengths and "total_q total_k relative shift_lo shift_hi " or "diag_lo diag_hi "
  v.pages = p.has_pages and "page_size pages page_table_stride " or ""

  return v
end
