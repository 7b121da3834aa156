-- mask_places: where in shared memory lies what a score program's mask reads of a block of keys, which a warp of the producer brings where
-- some warpgroup may not see all of it: values of keys, four bytes each, and for each row the elements of an array by query and key, as
-- they are in memory.

local edges = include "pairs/edges.lua"

local STAGES, STAGES_PLANE = 4, 2 -- without elements they are small

local places = {}

-- Whether a block of keys lies in one run of keys that are alike to the mask, and a warpgroup's rows likewise: then it is empty or whole,
-- and nothing is brought.
local function grained(p, c) return p.score.grained and p.score.grain % c.bc == 0 end

-- Whether a kernel that can does so, of rows of one head.
function places.wanted(p, c)
  if not edges.scans(p) or p.score.has_score or p.has_lengths or p.has_no_workspace then return false end
  return p.score.staged_mask and true or grained(p, c)
end

-- Whether elements of an array by query and key are brought.
function places.plane(p, c) return not grained(p, c) and p.score.staged_mask.plane or nil end

-- Whether tiles begin where what the mask reads of rows changes, and their keys likewise: pairs/mask_runs.cu. One value of a query is the
-- one of a key, or nothing is seen.
function places.runs(p, c)
  if p.op ~= "forward" or not c.grid or not places.wanted(p, c) or grained(p, c) or p.score.marks_by_h then return false end
  return p.score.staged_mask.equal and c.grid == 2 and c.o_path == 2 and c.cluster == 1
end

-- Queries, and keys, of a sequence that each thread block of the kernel of lines looks through by itself, so that none need be waited for:
-- up to as many the extent `long` is 0. Ints of an entry of its tables of what is read by queries and by keys, which then lie in shared
-- memory; nil where these are too large.
places.SHORT = 8192
local ENTRIES = 8 -- ints of both: 4 KB
function places.own_entries(p)
  local queries, keys = edges.tables(p):match("mask_queries int32 [^,]* (%d+)"), edges.tables(p):match("mask_keys int32 [^,]* (%d+)")
  if not queries or not keys or queries + keys > ENTRIES then return nil end
  return { queries = tonumber(queries), keys = tonumber(keys) }
end

-- Columns { node =, type =, at = }, rows { node =, type = }, elements = where those of the first row begin, pitch of a row, words of bits,
-- whole where blocks begin at words: at is in a stage. bytes: of a stage. brings: whether anything is.
function places.of(p, c)
  if grained(p, c) then return { columns = {}, rows = {}, bytes = 0, stages = 0 } end
  local of = p.score.staged_mask
  local l = { columns = {}, rows = of.rows, plane = of.plane, lookup = of.lookup, contrary = of.contrary, bytes = 0 }
  l.stages = of.plane and STAGES_PLANE or STAGES
  l.brings = true
  for _, column in ipairs(of.columns) do
    l.columns[#l.columns + 1] = { node = column.node, type = column.type, at = l.bytes }
    l.bytes = l.bytes + 4 * c.bc
  end
  if of.plane then
    l.whole = c.bc % 32 == 0 and not of.lookup.shifted -- blocks begin at words of bits
    l.words = of.lookup.bits and (c.bc + 31) // 32 + (l.whole and 0 or 1)
    -- Eight rows lie in different banks.
    l.pitch = l.words and 4 * (l.words % 8 == 0 and l.words + 1 or l.words) or c.bc + (c.bc % 32 == 0 and 16 or 32)
    l.elements = l.bytes
    l.bytes = l.bytes + c.br * l.pitch
  end
  local part = 1024 // l.stages -- what follows these stages lies in patterns of so many bytes
  l.bytes = (l.bytes + part - 1) // part * part
  return l
end

-- How many keys codes can number, whose blocks begin at CODE_BLOCK of pairs/mask_stage.cu and which are not below 0; 0: any.
function places.keys_most(c, wgs)
  local keys = c.bc << 31 - (3 * wgs + 2)
  return keys < 1 << 30 and keys or 0
end

-- The buffer of what a kernel before finds of 64 rows and 32 blocks of keys: pairs/mask_lines.cu.
function places.lines(p, c)
  local of = (p.score.marks_by_b and "b " or "") .. (p.score.marks_by_h and "hq " or "")
  local words = ("sk/%d 4"):format(32 * c.bc)
  if not places.runs(p, c) then return ("mask_lines int32 %ssq/64 %s"):format(of, words) end
  local tiles = ("%s2 sq/%d"):format(of, c.br) -- at most twice as many as without
  return ("mask_lines int32 %s %d %s, mask_tiles int32 %s 4, mask_runs int32 %ssq/32 2"):format(tiles, c.br // 64, words, tiles, of)
end

return places
