//| needs "l.runs?"
//| -- hide: which pairs the mask hides, and what becomes of them. Query i sees key j where first_key(i) <= j <= last_key(i): pairs/mask.cu.
//|
//| local loops = include "pairs/loops.cu"
//| local layouts = include "pairs/layouts.lua"
//|
//| return function(pr, p, l)
//|   -- Where what a query sees begins and ends, and the first query that sees a key.
//|   function pr.first_key(query) return ("first_key(sequence, %s)"):format(query) end
//|   function pr.last_key(query) return ("last_key(sequence, %s)"):format(query) end
//|   function pr.first_query(key) return ("first_query(sequence, %s)"):format(key) end
//|   -- Whether a key is one of first to last; whether it is none of them; whether a query sees it.
//|   function pr.seen(key, first, last) return ("%s >= %s && %s <= %s"):format(key, first, key, last) end
//|   function pr.unseen(key, first, last) return ("%s > %s || %s < %s"):format(key, last, key, first) end
//|   function pr.sees(query, key) return pr.seen(key, pr.first_key(query), pr.last_key(query)) end
//|
//|   -- Of one element: where the condition holds it becomes value, or what x, a function, prints.
//|   local function set(of, x, value, condition)
//|     if type(x) == "function" then return x(of, condition) end
//|     if of.pair then
const int $(of.pair);
//|     end
if ($(condition)) $(x)$(of.at) = $(value);
//|   end
//|   pr.set = set
//|
//|   -- Of a row, where a score program's mask has ends of its own: the first and last key that both leave. Rows past the last query see
//|   -- what it sees.
//|   local function ends_of(of)
//|     pr.own_row(of.score.row)
const int within = min(query, sequence.sq() - 1);
const MaskEnds ends = mask_ends(p, scored, head, within);
const int from = max($(pr.first_key("within")), ends.lo), upto = min($(pr.last_key("within")), ends.hi);
//|   end
//|
//|   -- Of a warp's 16 rows from `row` on: these keys, to shared memory, 8 bytes for each row, which a lane finds.
//|   function pr.keep_ends(to)
//|     local less = l.runs and " - first" or ""
//|     ends_of({ score = { row = "row + lane % 16" } })
__syncwarp();  // those of the tile before have been read
if (lane < 16) store_shared($(to) + lane * 8, (u32)(from$(less))), store_shared($(to) + lane * 8 + 4, (u32)(upto$(less)));
__syncwarp();
//|   end
//|
//|   -- The four ways to tell hidden pairs, by what threads know before they walk over the elements of a row.
//|   local told = {}
//|
//|   -- The first and last key that a row's query sees, within the block.
//|   function told.keys(of, x, value)
//|     loops(of.outer, true, function()
//|       if pr.row_ends then
//|         ends_of(of)
const int lo = from - block * BC, hi = upto - block * BC;
//|         loops(of.inner, of.pair, function() set(of, x, value, pr.unseen(of.key, "lo", "hi")) end)
//|         return
//|       end
const int $(of.row);
const int lo = $(pr.first_key(of.query)) - block * BC, hi = $(pr.last_key(of.query)) - block * BC;
//|       loops(of.inner, of.pair, function() set(of, x, value, pr.unseen(of.key, "lo", "hi")) end)
//|     end)
//|   end
//|
//|   -- A bit for each element of a row: bit 2n + e for column 8n + 2t + e of the block.
//|   function told.bits(of, x, value)
const int first = $(pr.counts_from and "from + " or "")block * BC + 2 * t;
//|     loops(of.outer, true, function()
//|       if pr.row_ends then
//|         if pr.keeps_ends then
const int from = (int)load_shared(ends + h * 64), upto = (int)load_shared(ends + h * 64 + 4);
//|         else
//|           ends_of(of)
//|         end
const int below_hi = columns_below(upto + 1 - first), below_lo = columns_below(from - first);
//|       elseif p.has_lengths then
// Rows past the last query see what it sees: of keys that only they would see nothing is known.
const int query = min($(of.query), sequence.sq() - 1);
//|       else
const int query = $(of.query);
//|       end
//|       if not pr.row_ends then
const int below_hi = columns_below($(pr.last_key("query")) + 1 - first);
//|       end
//|       if pr.left and not pr.row_ends then
const int below_lo = columns_below($(pr.first_key("query")) - first);
//|       end
//|       loops(of.words, true, function()
//|         local seen = "32 * word + bit < below_hi"
//|         if pr.left or pr.row_ends then
//|           seen = "(seen >> bit & 1)"
const u32 seen = bits_below(below_hi - 32 * word) & ~bits_below(below_lo - 32 * word);
//|         end
//|         loops(of.inner, true, function() set(of, x, value, ("i < NS && !(%s)"):format(seen)) end)
//|       end)
//|     end)
//|   end
//|
//|   -- The diagonals, counted from the first key and query of the tile: no register holds anything of a row. past: keys after the last
//|   -- may be in the tile, and are hidden as well.
//|   function told.diagonals(of, x, value, past)
//|     local hidden = {}
//|     if pr.right then
// Key j and query i, the warp's: hidden where j - i is above hi or below lo.
const int hi = sequence.diag_hi() - (key - row), lo = $(pr.left and "sequence.diag_lo() - (key - row)" or "-PART");
//|       table.insert(hidden, pr.unseen(of.key .. " - " .. of.query, "lo", "hi"))
//|     end
//|     if past then
const int last = sequence.sk() - 1 - key;
//|       table.insert(hidden, of.key .. " > last")
//|     end
//|     if pr.has_score then
const int rows = sequence.sq() - row;  // whatever the program makes of queries after the last
//|       table.insert(hidden, of.query .. " >= rows")
//|     end
//|     loops(of.inner, true, function() set(of, x, value, table.concat(hidden, " || ")) end)
//|   end
//|
//|   -- The first and last query that sees a row's key, within the block. Keys after the last may be in the tile, and are hidden as well.
//|   function told.queries(of, x, value)
//|     local hidden = of.key .. " > last"
const int last = sequence.sk() - 1 - key;
//|     if pr.right then
const int hi = sequence.diag_hi() - (key - row);
//|       hidden = of.query .. " < first"
//|     end
//|     if pr.left then
const int lo = sequence.diag_lo() - (key - row);
//|       hidden = of.query .. " < first || " .. of.query .. " > end"
//|     end
//|     if pr.has_score then
const int rows = sequence.sq() - row - 2 * t;  // whatever the program makes of queries after the last
//|       hidden = hidden .. (" || %s >= rows"):format(of.query)
//|     end
//|     loops(of.outer, true, function()
const int $(of.row);
//|       if pr.right then
const int first = $(of.key) > last ? BR : $(of.key) - hi - 2 * t;  // of the queries that see the key, less 2 t
//|       end
//|       if pr.left then
const int end = $(of.key) - lo - 2 * t;  // the last of them
//|       end
//|       loops(of.inner, true, function() set(of, x, value, hidden) end)
//|     end)
//|   end
//|
//|   -- What x holds of hidden pairs becomes value: -infinity() of scores, 0.f of P and dS.
//|   function pr.hide(layout, x, value, past)
//|     told[layouts[layout].told](layouts[layout], x, value, past)
//|   end
//|   -- The same of P as an operand of 16-bit elements, which becomes 0.
//|   function pr.hide_operand(layout, operand)
//|     told[layouts[layout].told](layouts[layout], function(of, condition)
const int $(of.pair);
if ($(condition)) $(operand)[x / 2] &= x % 2 ? 0xffffu : 0xffff0000u;
//|     end)
//|   end
//| end
