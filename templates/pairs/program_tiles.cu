//| needs "l.pack? l.staged? l.tma?"
//| -- program_tiles: what a score program makes of a tile's products: scores, and -inf where its mask hides a pair.
//|
//| local loops = include "pairs/loops.cu"
//| local layouts = include "pairs/layouts.lua"
//|
//| return function(pr, p, l)
//|   local program, has_score, has_mask = p.score, pr.has_score, pr.has_mask
//|   -- In a kernel, before the pairs of a tile: `scored`, which the hooks below read.
//|   function pr.begin_score(head)
//|     if not has_score and not has_mask then return end
const ScoreTile scored = score_tile(p, sequence, (int)($(head)));
//|   end
//|   -- As a parameter of functions, and as an argument.
//|   pr.scored_type, pr.scored = pr.of_pairs and ", const ScoreTile &scored" or "", pr.of_pairs and ", scored" or ""
//|
//|   -- The last of the heads of a tile whose first is `head`.
//|   function pr.last_head(head) return pr.packed() and head .. " + p.group - 1" or head end
//|   -- A row's query and head.
//|   function pr.own_row(row)
//|     if pr.packed() then
const int own = $(row), query = query_of(p, own), head = scored.h + own - query * p.group;
//|     else
const int query = $(row), head = scored.h;
//|     end
//|   end
//|
//|   pr.reads_ahead = has_score and l.tma and not l.staged and (#program.arrays > 0 or program.of_distance and l.pack ~= 1)
//|   -- Whether products become exponents at once, where no pair is hidden.
//|   pr.slopes = has_score and program.slopes
//|
//|   -- Of a tile: products become scores, and those that the program's mask hides -inf. cut: whether keys past the last may be in it,
//|   -- and pairs that the mask hides; "exponents": scores become those, less the shift of the layout's rows; "ahead": arrays were read,
//|   -- two keys to a word of the layout. masked: whether the mask hides pairs of it, where `cut` is of the last key
//|   -- alone. Kernels without a program do not call it.
//|   function pr.apply(layout, x, cut, masked)
//|     local of, ahead = layouts[layout].score, ""
//|     for _, lookup in ipairs(cut == "ahead" and program.arrays or {}) do
//|       local word = ("ahead.v%d%s"):format(lookup.node, lookup.wide and of.at or of.word)
//|       local half = lookup.bf16 and ", __uint_as_float(e == 0 ? %s << 16 : %s & 0xffff0000u)"
//|         or ", score_half((unsigned short)(e == 0 ? %s : %s >> 16))"
//|       ahead = ahead .. (lookup.wide and ", " .. word or half:format(word, word))
//|     end
//|     if cut == "ahead" and program.of_distance and not pr.packed() then
//|       ahead = ahead .. (", of_distance(ahead.v%d, %s)"):format(program.of_distance, of.distance)
//|     end
//|     loops(of.loops, true, function()
//|       pr.own_row(of.row)
//|       local arguments = ("p, scored, head, query, %s, %s, %s%s"):format(of.key, of.column, x, of.at)
//|       local call = ("score_pair<%s>(%s)"):format(cut, arguments)
//|       if cut == "exponents" then call = ("score_exponent(%s, %s)"):format(arguments, of.shift) end
//|       if cut == "ahead" then call = ("score_pair_ahead<CUT>(%s%s)"):format(arguments, ahead) end
//|       if has_score then
$(x)$(of.at) = $(call);
//|       end
//|       if has_mask and not pr.ends and cut ~= "exponents" then
//|         local hides = masked or cut == "ahead" and "CUT" or cut
//|         local sees = ("score_sees<true>(p, scored, head, query, %s, %s)"):format(of.key, of.column)
//|         pr.set(of, x, "-infinity()", hides .. " && !" .. sees)
//|       end
//|     end)
//|   end
//|   -- Statements of a kernel's own where something is computed of each pair.
//|   function pr.scoring(...)
//|     for _, statement in ipairs(pr.of_pairs and { ... } or {}) do
$(statement)
//|     end
//|   end
//|   -- A kernel's apply_score() with these arguments, by whether a block is whole: where it is, no key is past the last, and the program's
//|   -- mask hides no pair. beside: arrays were read ahead.
//|   function pr.scoring_by(whole, arguments, beside, name)
//|     if not pr.of_pairs then return end
//|     name = name or "apply_score"
//|     if has_mask and not pr.ends or beside and program.cuts_beside or not beside and program.cuts then
if ($(whole))
  $(name)<false>($(arguments));
else
  $(name)<true>($(arguments));
//|     else
$(name)<false>($(arguments));
//|     end
//|   end
//|   -- The same where arrays are read ahead.
//|   function pr.reading(...) if pr.reads_ahead then pr.scoring(...) end end
//|   -- Of one pair: an expression.
//|   function pr.score_of(product, head, row, key)
//|     if not has_score then return product end
//|     return ("score_pair<true>(p, scored, %s, %s, %s, 0, %s)"):format(head, row, key, product)
//|   end
//|   -- Behind a condition on one pair that the mask of the launch leaves: what the program's mask adds. cut: whether it may hide pairs.
//|   function pr.and_sees(head, row, key, cut)
//|     local sees = ("score_sees<true>(p, scored, %s, %s, %s, 0)"):format(head, row, key)
//|     return has_mask and " && " .. (cut and ("(!%s || %s)"):format(cut, sees) or sees) or ""
//|   end
//|   -- In a loop over keys that the mask of the launch leaves: on to the next where the program's mask hides the pair.
//|   -- how: a function of the condition, of warps whose lanes have one pair.
//|   function pr.pass_hidden(head, row, key, how)
//|     if not has_mask then return end
//|     local hidden = ("!score_sees<true>(p, scored, %s, %s, %s, 0)"):format(head, row, key)
if ($(how and how .. "(" .. hidden .. ") != 0" or hidden)) continue;
//|   end
//|   -- Behind a condition on a row: that it has seen a key whose score is above -inf. Where a program's mask may have hidden all of them,
//|   -- there is nothing to compute again.
//|   function pr.and_seen(m) return has_mask and (" && %s != -infinity()"):format(m) or "" end
//|
//|   -- Where a thread comes from one head to the next.
//|   function pr.begin_scores(head)
//|     if not pr.of_pairs then return end
ScoreTile scored = score_tile(p, sequence, (int)($(head)));
//|   end
//|   function pr.next_scores(condition, head)
//|     if not pr.of_pairs then return end
if ($(condition)) scored = score_tile(p, sequence, $(head or "scored.h + 1"));
//|   end
//| end
