//| -- drop: which pairs dropout drops, and what becomes of P, dP and their sums. The words that decide are those of pairs/philox.cu.
//| -- Without dropout kernels call no hook of tiles, and the others print nothing.
//|
//| local loops = include "pairs/loops.cu"
//| local layouts = include "pairs/layouts.lua"
//|
//| -- The words of a quad, or of the one whose key is further on.
//| local function words_of(quad, on) return ("dropout.words(%s, %s, %s%s)"):format(quad.number, quad.query, quad.key, on) end
//|
//| -- A layout's quads, and the words of each. element(kept, at) prints what becomes of one of its elements.
//| local function each_quad(quad, element)
//|   if quad.calls then
int place[$(quad.calls)];
uint4 words[$(quad.calls)];
//|     loops(quad.loops, false, ("place[%s] = %s;"):format(quad.call, quad.query))
dropout.words_of_all(words, $(quad.number), place, $(quad.key));
//|   end
//|   loops(quad.loops, true, function()
//|     if quad.pair then
const int $(quad.pair);
//|     end
//|     if quad.rows then
// Rows are of several heads: the two have no words in common.
//|     end
//|     loops(quad.rows, true, function()
//|       if quad.rows then
const Row own = $(quad.row);
const int query = (int)own.query;
//|       end
const uint4 w = $(quad.calls and ("words[%s]"):format(quad.call) or words_of(quad, ""));
//|       if quad.after then
const $(quad.after);
//|       end
//|       for i, word in ipairs(quad.words or { "w.x", "w.y", "w.z", "w.w" }) do element(("dropout.keeps(%s)"):format(word), quad.at[i]) end
//|     end)
//|   end)
//| end
//|
//| -- Of a word of two 16-bit elements the bits of those that are kept.
//| local function halves(low, high) return ("(%s ? 0xffff : 0) | (%s ? 0xffff0000 : 0)"):format(low, high) end
//|
//| return function(pr, p)
//|   -- The scale of what is kept. O and dV take it at their end, after another factor or alone, and dP where its pairs are dropped.
//|   pr.out_scale = p.has_dropout and " * p.keep_scale" or ""
//|   pr.keep_scale = p.has_dropout and "p.keep_scale" or "1.f"
//|
//|   -- Before the pairs. number: of the head among those of all sequences, where it is the same for all of them.
//|   function pr.begin_dropout(number)
//|     if p.has_dropout then
const Dropout dropout = make_dropout(p);
//|       if number then
const int number = $(number);
//|       end
//|     end
//|   end
//|
//|   -- Where pairs are dropped: statements of a kernel's own, and pieces with a blank line behind each.
//|   function pr.dropping(...)
//|     for _, statement in ipairs(p.has_dropout and { ... } or {}) do
$(statement)
//|     end
//|   end
//|   function pr.dropping_by(...)
//|     for _, piece in ipairs(p.has_dropout and { ... } or {}) do
//|       include(piece)

//|     end
//|   end
//|
//|   -- Of a tile: what is dropped of x becomes 0, and the rest is multiplied by scale where there is one.
//|   function pr.drop(layout, x, scale)
//|     local kept = layouts[layout].kept
//|     if kept then
//|       local element = x .. kept.at
//|       return loops(kept.loops, false, ("%s = (%s & 1 ? %s : 0.f) * %s;"):format(element, kept.bit, element, scale))
//|     end
//|     each_quad(layouts[layout].quad, function(kept, at)
//|       if scale then
$(x)$(at) = ($(kept) ? $(x)$(at) : 0.f) * $(scale);
//|       else
if (!$(kept)) $(x)$(at) = 0.f;
//|       end
//|     end)
//|   end
//|
//|   -- The same of P as an operand of 16-bit elements, two to a word.
//|   function pr.drop_operand(layout, a)
//|     local kept, quad = layouts[layout].kept, layouts[layout].quad
//|     if kept then
//|       loops(kept.operand, false, function()
$(a)[x] &= ($(kept.two) & 0x00010001u) * 0xffffu;
//|       end)
//|       return
//|     end
//|     loops(quad.loops, true, function()
const int $(quad.pair);
//|       local first, next = words_of(quad, ""), words_of(quad, " + 1")
const uint4 x = $(first), y = $(next);
//|       for i, word in ipairs(quad.words) do
$(a)$(quad.at[i]) &= kept_halves(dropout, x.$(word), y.$(word));
//|       end
//|     end)
//|   end
//|   pr.kept_halves = halves("dropout.keeps(lo)", "dropout.keeps(hi)")
//|
//|   -- A bit for each element of a tile that is kept, for drop() and drop_operand().
//|   function pr.keep(layout)
//|     local quad = layouts[layout].quad
//|     each_quad(quad, function(kept, at)
if ($(kept)) $(quad.bits) |= 1u << $(at);
//|     end)
//|   end
//|
//|   -- Of one pair, for kernels that take them one by one: the type of P, which drop_pair() may change; whether the pair is kept; P
//|   -- becoming 0 where it is not; a factor of P, after another one; and x with its scale, or 0, as a variable `kept` says.
//|   pr.p_type = p.has_dropout and "float" or "const float"
//|   function pr.keeps(number, query, key) return ("dropout.keeps(%s, %s, %s)"):format(number, query, key) end
//|   function pr.drop_pair(x, number, query, key)
//|     if p.has_dropout then
if (!$(pr.keeps(number, query, key))) $(x) = 0.f;
//|     end
//|   end
//|   function pr.weight(number, query, key)
//|     return p.has_dropout and (" * (%s ? p.keep_scale : 0.f)"):format(pr.keeps(number, query, key)) or ""
//|   end
//|   function pr.kept(x) return p.has_dropout and ("(kept ? %s * p.keep_scale : 0.f)"):format(x) or x end
//| end
