-- decode_mma: few query rows against many keys, split over all SMs, with mma.sync and cp.async, for sm_80 and later.
-- The query heads of a group and the queries of a sequence share the rows of a tile (FlashDecoding, Dao et al. 2023; stream-K, Osama et
-- al. 2023).

local decode = include "families/decode_family.lua"
local kv_rows = include "families/decode_rows.lua"
local limbs = include "families/decode_limbs.lua"
local apart = include "families/decode_apart.lua"
local starts = include "families/decode_starts.lua"

-- Pieces of several heads by TMA: keys, heads, buffers, and groups where these are not 8 warps'.
local boxed = {
  few = { { 32, 8, 2 }, { 32, 4, 2 } },
  few_short = { { 64, 8, 2 }, { 64, 4, 2 } },
  eight = { { 32, 8, 2 }, { 32, 4, 2 }, { 32, 2, 2 } },
  eight_4 = { { 32, 8, 2 }, { 32, 4, 2 }, { 32, 2, 2 }, { 64, 2, 2 } },
  four_bits = { { 64, 8, 2 }, { 32, 4, 3 } },
  many = { { 32, 8, 2 }, { 32, 4, 2 }, { 32, 2, 2 } },
  many_short = { { 64, 8, 2 }, { 64, 4, 2 } },
  wide = { { 32, 4, 2 }, { 16, 4, 2 }, { 32, 2, 2, 2 } },
}

return decode.family {
  doc = "split-KV attention of few query rows on mma.sync (fp16, bf16, TF32): dense, packed, paged",
  wide_q = true,
  formats = "e4m3 e5m2 s8 q8_0 q4_0 q4_1 q5_0 q5_1 iq4_nl nvfp4",
  tunables = {
    { "br", { 16, 8, 32, 64, 4 },
      "B_r: query rows (queries x heads of a group) per tile; 8 over K and V of few bits, 4 over K of integers, by products of integers" },
    { "bk", { 16, 32, 64 }, "keys that a group of warps takes at a time" },
    { "row_warps", { 1, 2, 4 }, "warps of a group, each with B_r / row_warps rows" },
    { "key_warps", { 1, 2, 4, 8 }, "groups of a block, each with keys of its own" },
  },
  more = {
    { "head_warps", { 0, 2, 4, 8 },
      "key/value heads of a block, each with key_warps groups of its own: rows of few bits lie in the same lines; 0 is 1",
      later = true },
    { "token_rows", { 0, 1 },
      "rows of few bits come as they lie in a cache, all of a block's heads of a token side by side, into one tile of these heads",
      later = true },
    { "limbs", { 0, 1 }, "8 rows over K of integers are multiplied by products of integers, too, four at a time, 16 have sums of blocks",
      later = true },
    { "boxes", { 0, 1 }, "rows of few bits come by TMA, a head's rows of a block of keys at a time", later = true },
  },
  constraints = {
    { "rows", function(p, c)
      local rows = c.br // c.row_warps
      if rows == 16 or rows == 32 or c.br == 8 and c.row_warps == 1 and codes(p.kv, 80) then return true end
      if c.br == 4 and c.row_warps == 1 and limbs.has_limbs(p) then return true end
      return false, "B_r / row_warps = " .. rows .. ", not 16 or 32"
    end, upto = "row_warps" },
    { "head_warps", function(p, c)
      if (c.head_warps or 0) == 0 then return true end
      if p.has_batch_invariant then return false, "segments are of one head" end
      if not codes(p.kv, 80) then return false, "K and V have no few bits" end
      return c.br <= 32, "heads side by side have 32 rows each at most, not br = " .. c.br
    end, upto = "head_warps" },
    { "boxes", function(p, c, a)
      if (c.boxes or 0) == 0 then return true end
      return kv_rows.has_boxes(p, c, a.cc)
    end },
    { "boxes_alone", function(p, c)
      local in_step = (c.kv_lanes == 1) == ((c.head_warps or 0) == 0)
      if (c.boxes or 0) == 0 then return true end
      local usual = in_step and c.sm_shares == 1 and c.min_turns == 1
      if usual and ((c.token_rows or 0) == 0 or c.stages <= 3 and c.ctas <= 2 and c.bk >= 32) then return true end
      return false, "boxes of several heads that other blocks do not walk in step, shares of less than an SM, or pieces of few keys"
    end, search = true },
    { "token_rows", function(p, c)
      if (c.token_rows or 0) == 0 then return true end
      return kv_rows.has_token_rows(p, c)
    end },
    { "limbs", function(p, c)
      if (c.limbs or 0) == 0 then return true end
      return limbs.has_more(p, c)
    end },
    { "token_rows_whole", function(p, c)
      if (c.token_rows or 0) == 0 or p.hkv % c.head_warps == 0 then return true end
      return false, p.hkv .. " heads are not whole pieces of " .. c.head_warps
    end, search = true },
  },

  start = function(p, a)
    local rows, br, tiles = p.sq * (p.hq // p.hkv), 16, {}
    while br < 64 and br < rows do br = 2 * br end
    local low = codes(p.kv, a.cc) ~= nil
    if low and rows <= 8 then br = 8 end
    -- Codes of s8 are unpacked as fast.
    local raced = a.has_wgmma and low and codes(p.kv, a.cc).has_scale and limbs.has_limbs(p)
    if rows <= 4 and raced and not p.has_batch_invariant then br = 4 end
    for _, bk in ipairs(low and (br <= 8 and { 32, 16 } or { 32, 16, 64 }) or { 16, 32 }) do
      for _, warps in ipairs(low and { 8, 4 } or { 4, 8 }) do
        local row_warps = br > 32 and 2 or 1
        if low and (p.dv > 64 or br == 64) then row_warps = math.max(1, br // 16) end -- 32 rows of a warp would take all its registers
        tiles[#tiles + 1] = { br = br, bk = bk, row_warps = row_warps, key_warps = low and warps // row_warps or br > 16 and warps // 2 or warps }
      end
    end
    if not low then return starts.of(tiles, "last_block", starts.usual_dense(p)) end
    -- Two tiles of 16 rows, which find each other's keys in the L2: 0.86 of the time of one of 32, of two races on an H200.
    if br == 32 then tiles[#tiles + 1] = { br = 16, bk = 32, row_warps = 1, key_warps = 8 } end
    for _, tile in ipairs(raced and not p.has_batch_invariant and a.hbm_gbs > 4000 and tiles or {}) do
      if tile.br == 16 and limbs.has_more(p, tile) then tile.limbs = 1 end
    end
    local list = starts.of(tiles, "last_block", starts.usual_low(p))
    -- Of wide rows in blocks a warp has no room for 16, nor for four as integers: tiles of 8, too, each of which unpacks all keys again.
    local chunks = p.hkv * kv_rows.row_bytes_of(p.kv, p.d) % 16 == 0  -- rows of fewer are copied by less
    if br ~= 8 and math.max(p.d, p.dv) > 160 and codes(p.kv, a.cc).block > 1 and chunks then
      local narrow = { { br = 8, bk = 32, row_warps = 1, key_warps = 4 }, { br = 8, bk = 16, row_warps = 1, key_warps = 8 } }
      for _, to in ipairs(starts.of(narrow, "last_block", starts.usual_low(p))) do list[#list + 1] = to end
    end
    if br == 8 and a.has_wgmma and codes(p.kv, a.cc).block == 1 and apart.few_keys(p) then
      local tile = { br = 8, bk = 64, row_warps = 1, key_warps = 4 }
      for _, to in ipairs(starts.of({ tile }, "last_block", { { 3, 1, 1 }, { 2, 1, 1 } })) do list[#list + 1] = to end
    end
    -- Pieces of heads that do not divide all of them leave warps idle, and are copied head by head: by two heads, and of rows of 64 by
    -- four, still faster than heads apart, 0.35 to 0.9 of the time in nine races on an H200.
    local function goes(heads) return p.hkv % heads == 0 or p.hkv > 1 and (heads == 2 or heads == 4 and math.max(p.d, p.dv) <= 64) end
    -- Rows that begin within chunks of 16 bytes: those of several heads are copied as one piece.
    local two = br == 8 and raced and not p.has_batch_invariant  -- eight rows by limbs
    local pieces = br <= 8 and a.has_wgmma and (a.hbm_gbs < 4000 or br == 4 or two) and kv_rows.row_bytes_of(p.kv, p.d) % 16 > 0
    for _, heads in ipairs(pieces and { 8, 4, 2 } or {}) do
      local fast = br == 4 and heads == 8
      for _, x in ipairs(p.d > 64 and { { 32, 8 // heads, { 2, 1, 1 } }, { 32, 1, { 2, 2, 1 } }, fast and { 16, 1, { 2, 2, 1 } } or nil }
                         or { { 64, 8 // heads, { 2, 1, 1 } }, { 32, 8 // heads, { 3, 1, 1 } }, { 32, 8 // heads, { 3, 2, 1 } },
                              { 64, 1, { 2, 2, 1 } }, (raced or a.hbm_gbs > 4000) and { 32, 8 // heads, { 2, 2, 1 } } or nil }) do
        local tile = { br = br, bk = x[1], row_warps = 1, key_warps = x[2], head_warps = heads, token_rows = 1 }
        if two and limbs.has_more(p, tile) then tile.limbs = 1 end
        if goes(heads) and (x[2] > 1 or heads ~= 2) and kv_rows.has_token_rows(p, tile) then
          local shares = { heads == 2 and { x[3][1], x[3][2], 8 } or x[3] }
          -- 16 warps of four rows find room; 12, where memory is so fast that what they issue bounds: on an H100 none of seven races.
          if (br == 4 or two) and p.d > 64 and heads == 4 and x[2] == 1 and codes(p.kv, a.cc).bits == 4 then
            if a.hbm_gbs > 4000 then shares[2] = { 2, 3, 1 } end
            if br == 4 then shares[#shares + 1] = { 2, 4, 1 } end
          end
          for _, to in ipairs(starts.of({ tile }, "last_block", shares)) do list[#list + 1] = to end
        end
      end
    end
    -- The same pieces by TMA, where memory is that fast. More rows than 16 are several tiles: 32 of a warp would take all its registers,
    -- but for d of 64. Beyond 192 columns tiles have 8, as where four rows of integers find no room.
    local by_boxes, boxed_br = {}, br <= 16 and br or math.max(p.d, p.dv) <= 64 and 32 or 16
    if p.d > 192 and br > 8 or p.d > 128 and br == 4 then boxed_br = 8 end
    if raced and not p.has_batch_invariant and a.hbm_gbs > 4000 and (p.d > 192 or kv_rows.row_bytes_of(p.kv, p.d) % 16 > 0) then
      if p.d > 128 then by_boxes = boxed.wide
      elseif boxed_br >= 16 then by_boxes = p.d > 64 and boxed.many or boxed.many_short
      elseif p.d <= 64 then by_boxes = boxed.few_short
      elseif boxed_br == 4 then by_boxes = codes(p.kv, a.cc).bits == 4 and boxed.four_bits or boxed.few
      else by_boxes = p.hkv % 4 > 0 and boxed.few or codes(p.kv, a.cc).bits == 4 and boxed.eight_4 or boxed.eight end
    end
    for _, x in ipairs(by_boxes) do
      local tile = { br = boxed_br, bk = x[1], row_warps = 1, key_warps = x[4] or 8 // x[2], head_warps = x[2], token_rows = 1, boxes = 1 }
      -- Limbs of wider rows spill 250 to 400 bytes: 261 us for 135, 3 KV heads of d = 256 on an H200.
      if (two or boxed_br == 16) and p.d <= 192 and limbs.has_more(p, tile) then tile.limbs = 1 end
      if goes(x[2]) and kv_rows.has_token_rows(p, tile) and kv_rows.has_boxes(p, tile, a.cc) then
        local blocks = p.d <= 64 and br == 4 and x[2] == 8 and codes(p.kv, a.cc).bits == 4 and 2 or 1
        for _, to in ipairs(starts.of({ tile }, "last_block", { { x[3], blocks, 8 } })) do list[#list + 1] = to end
      end
    end
    -- Rows of 64 or 128 bytes by TMA.
    local short = math.max(p.d, p.dv) <= 64
    local boxes = br == 64 and (short and { { 64, 8, 1, 2 } } or {}) or br == 16 and (short and { { 64, 4, 2, 2 } } or { { 32, 8, 1, 2 } })
      or short and { { 64, 2, 4, 2 }, { 64, 4, 2, 2 }, { 64, 8, 1, 2 } } or { { 32, 2, 4, 2 }, { 32, 4, 2, 2 }, { 32, 8, 1, 2 } }
    if br == 8 and apart.few_keys(p) then boxes[3] = { 64, 4, 1, 2 } end
    if br == 8 and apart.least_keys(p) then boxes[3] = { 32, 4, 1, 3 } end
    if br == 32 then boxes = short and { { 32, 4, 2, 2 } } or { { 32, 8, 1, 2 } } end  -- of long rows two tiles of 16
    for _, x in ipairs(a.hbm_gbs > 4000 and boxes or {}) do
      local own = rows <= 4 and limbs.has_limbs(p) and 4 or br == 32 and short and 32 or math.min(br, 16)
      local tile = { br = own, bk = x[1], row_warps = 1, key_warps = x[2], head_warps = x[3], boxes = 1 }
      if goes(x[3]) and kv_rows.has_boxes(p, tile, a.cc) then
        if x[3] == 1 then tile.head_warps = 0 end
        -- The other heads of the same keys are walked by other blocks, in step: lines of scales have all heads of a token.
        for _, to in ipairs(starts.of({ tile }, "last_block", { { x[4], 1, x[3] > 1 and 8 or 1 } })) do list[#list + 1] = to end
      end
    end
    for _, heads in ipairs(br <= 8 and { 8, 4, 2 } or {}) do
      local tile = { br = br, bk = 32, row_warps = 1, key_warps = 8 // heads, head_warps = heads }
      if goes(heads) then
        for _, to in ipairs(starts.of({ tile }, "last_block", { { 2, 1, 1 }, { 3, 1, 1 } })) do list[#list + 1] = to end
        -- A fifth fewer instructions for a key.
        local longer = heads <= 4 and a.has_wgmma and math.max(p.d, p.dv) <= 64 and codes(p.kv, a.cc).block == 1
        for rows = 0, not longer and -1 or heads == 4 and a.hbm_gbs > 4000 and 1 or 0 do
          local more = { br = br, bk = 64, row_warps = 1, key_warps = 8 // heads, head_warps = heads, token_rows = rows }
          if rows == 0 or p.hkv % 4 == 0 and kv_rows.has_token_rows(p, more) then
            for _, to in ipairs(starts.of({ more }, "last_block", { { 2, 1, 1 } })) do list[#list + 1] = to end
          end
        end
        if heads == 4 and a.hbm_gbs > 4000 and math.min(p.d, p.dv) > 64 and kv_rows.row_bytes(p) <= 176 then -- 12 warps find room
          tile.key_warps = 1
          for _, to in ipairs(starts.of({ tile }, "last_block", { { 2, 3, 1 } })) do list[#list + 1] = to end
        end
      end
    end
    if br >= 32 then -- the last block would add up many rows
      for _, to in ipairs(starts.of(tiles, "second_kernel", { { 3, 1, 1 }, { 2, 2, 1 } })) do list[#list + 1] = to end
    end
    return list
  end,

  supports = function(p, a)
    if p.dtype == "fp32" then return false, "fp32 needs FMA units" end
    return true
  end,

  layout = function(p, c, a)
    local l = decode.layout(p, c, a)
    l.mma = { k = p.bytes == 2 and 16 or 8, type = ({ fp16 = "f16", bf16 = "bf16", tf32 = "tf32" })[l.low and "fp16" or p.dtype] }
    return l
  end,
}
