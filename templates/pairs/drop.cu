//| -- drop: which pairs dropout drops, and what becomes of P, dP and their sums. The words that decide are those of pairs/philox.cu.
//| -- Without dropout kernels call no hook of tiles, and the others print nothing.
//|
//| local loops = include "pairs/loops.cu"
//| local layouts = include "pairs/layouts.lua"
//|
//| -- The words of an octet; of_e: of the key that e says.
//| local function words_of(octet, of_e)
//|   return ("dropout.words(%s, %s, %s)"):format(octet.number, octet.query, of_e and octet.key or octet.key:gsub(" %+ e", ""))
//| end
//|
//| -- A layout's octets. element(kept, at) prints what becomes of one of its elements. p.dtype "tf32": elements of a thread side by side
//| -- are not those of keys side by side (key_of_column()), but of keys both even or both odd.
//| local function each_octet(octet, p, element)
//|   local apart = p.dtype == "tf32" and octet.key:find("key_of_column")
//|   local of_both = { "int e = 0; e < 2; e++" }
//|   local function decided(odd)
//|     if octet.after then
const $(octet.after);
//|     end
//|     loops(not apart and of_both or nil, true, function()
//|       for i, word in ipairs(octet.words or { "w.x", "w.y", "w.z", "w.w" }) do
//|         element(("dropout.keeps(%s, %s)"):format(word, odd), octet.at[i])
//|       end
//|     end)
//|   end
//|   loops(octet.loops, true, function()
//|     if octet.rows then
// Rows are of several heads: the two have no words in common.
//|     end
//|     loops(octet.rows, true, function()
//|       if octet.rows then
const Row own = $(octet.row);
const int query = (int)own.query;
//|       end
//|       loops(apart and of_both or nil, true, function()
const uint4 w = $(words_of(octet, apart));
//|         decided(apart and "at.t % 2" or "e")
//|       end)
//|     end)
//|   end)
//| end
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
//|     each_octet(layouts[layout].octet, p, function(kept, at)
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
//|     local kept, octet = layouts[layout].kept, layouts[layout].octet
//|     if kept then
//|       loops(kept.operand, false, function()
$(a)[x] &= signs_of_halves($(kept.two));
//|       end)
//|       return
//|     end
//|     loops(octet.loops, true, function()
const uint4 w = $(words_of(octet));
//|       for i, word in ipairs(octet.words) do
$(a)$(octet.at[i]) &= dropout.kept_halves(w.$(word));
//|       end
//|     end)
//|   end
//|
//|   -- `bits`: one for each element of a tile that is kept, for drop() and drop_operand(). To be called by whole warps.
//|   function pr.keep(layout)
//|     local octet = layouts[layout].octet
const int odd = $(octet.odd);
int place[$(octet.calls)];
uint4 words[$(octet.calls)];
//|     loops({ ("int n = 0; n < %s; n++"):format(octet.calls) }, false, ("place[n] = %s;"):format(octet.query))
dropout.words_of_all(words, $(octet.number), place, $(octet.key));
u32 own = 0;  // of even keys in the lower half
//|     loops({ ("int n = 0; n < %s; n++"):format(octet.calls) }, true, function()
//|       for i, word in ipairs({ "x", "y", "z", "w" }) do
own |= (dropout.kept(words[n].$(word)) & 0x80008000u) >> ($(16 - i) - 4 * n);
//|       end
//|     end)
// Of this thread's keys: those of queries 2 t in the lower half.
const u32 others = __shfl_xor_sync(~0u, own, $(octet.mate));
const u32 bits = __byte_perm(own, others, odd ? 0x3276 : 0x5410);
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
