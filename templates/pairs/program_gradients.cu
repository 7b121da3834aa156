//| -- program_gradients: what a score program makes of a tile's products in the backward pass: P, and what dP - D is multiplied by.
//|
//| local loops = include "pairs/loops.cu"
//| local layouts = include "pairs/layouts.lua"
//|
//| return function(pr, p, l)
//|   local program, has_score, has_mask = p.score, pr.has_score, pr.has_mask
//|   -- Of one pair: statements before score_of_pair() and bent() are asked for, of a kernel in which `scored` is.
//|   function pr.begin_pair(product, head, row, key)
//|     if not pr.bends then return end
float bend;
const float bent_score = score_pair_bend<true>(p, scored, $(head), $(row), $(key), 0, $(product), bend);
//|   end
//|   -- The score in its unit, pr.unit.
//|   function pr.score_of_pair(product, head, row, key)
//|     return pr.bends and "bent_score" or has_score and pr.score_of(product, head, row, key) or product
//|   end
//|   function pr.bent(probability) return pr.bends and ("bent(%s, bend)"):format(probability) or probability end
//|
//|   -- Where an exponent depends on query and key by their distance alone: the pair for which a thread computes least.
//|   function pr.along(of) return pr.slopes and not pr.bends and not has_mask and program.along and of.along end
//|
//|   -- P of an element of x, relative to the LSE of the layout's rows; bend: where its derivative goes. cut: as of score_pair. masked:
//|   -- whether the program's mask may hide pairs.
//|   local function probability_of(of, x, bend, cut, masked)
//|     local along = pr.along(of)
//|     local place = ("p, scored, head, query, %s, %s"):format(of.key, along and along.column or of.column)
//|     local arguments, score = ("%s, %s%s"):format(place, x, of.at), x .. of.at
//|     if has_score then score = ("score_pair<%s>(%s)"):format(cut, arguments) end
//|     if pr.bends then score = ("score_pair_bend<%s>(%s, %s)"):format(cut, arguments, bend) end
//|     local probability = pr.probability(score, pr.unit_log2, of.lse)
//|     if pr.slopes and not pr.bends then
//|       probability = ("probability_exp2(score_exponent(%s, %s))"):format(arguments, of.lse)
//|     end
//|     return has_mask and ("%s && !score_sees<true>(%s) ? 0.f : %s"):format(masked, place, probability) or probability
//|   end
//|   -- Of a tile: products become P; derivatives go to `bends`.
//|   function pr.probabilities(layout, x, bends, cut, masked)
//|     local of = layouts[layout].score
//|     local along = pr.along(of)
//|     loops(of.loops, true, function()
//|       pr.own_row(along and along.row or of.row)
$(x)$(of.at) = $(probability_of(of, x, pr.bends and bends .. of.at, cut, masked));
//|     end)
//|   end
//|   -- The same of a tile in the layout wgmma_keys that is whole, has no query past the last, and of which pr.line() is. Two of a thread's
//|   -- keys are as far apart as eight queries are, so that a number is of two pairs.
//|   function pr.probabilities_by_line(x)
//|     local of, line = layouts.wgmma_keys.score, pr.line
//|     local function probability(value)
//|       local arguments = ("p, scored, scored.h, %s, %s, %s, %s%s, %s"):format(of.row, of.key, of.column, x, of.at, value)
//|       local score = ("score_pair_ahead<false>(%s)"):format(arguments)
//|       return pr.probability(score, pr.unit_log2, of.lse)
//|     end
const int apart = key + warp_key + g - (row + 2 * t);
//|     if pr.far then
//|       local below = program.has_far_below and "key + 63 - row <= score_far_below(p, scored)" or "false"
//|       local above = program.has_far_above and "key - (row + BR - 1) >= score_far_above(p, scored)" or "false"
const bool below = $(below), above = $(above);
if (below || above) {  // one number for all pairs
  const float far = below ? scored.below : scored.above;
//|       indented(2, loops, of.loops, true, function()
$(x)$(of.at) = $(probability("far"));
//|       end)
  return;
}
//|     end
//|     local value = "score_distance(p, scored, apart - (%s))"
//|     if line.array then
const auto *const line = score_ahead$(line.node)(p, scored, scored.h, 0) + apart;
//|       value = line.array.wide and "line[-(%s)]" or line.array.bf16 and "__uint_as_float((u32)line[-(%s)] << 16)"
//|         or "score_half(line[-(%s)])"
//|     end
float before[2] = {$(value:format("-8")), $(value:format("-7"))};
//|     loops({ of.loops[1] }, true, function()
const float here[2] = {$(value:format("8 * n")), $(value:format("8 * n + 1"))};
//|       loops({ of.loops[2], of.loops[3] }, true, function()
$(x)$(of.at) = $(probability("h == 0 ? here[e] : before[e]"));
//|       end)
before[0] = here[0], before[1] = here[1];
//|     end)
//|   end
//|   -- Where it may be asked for, beside that.
//|   function pr.line_lies()
//|     local array = pr.line.array
//|     return array and (" && p.score%d_stride[%d] == 1"):format(array.operand, array.rank - 1) or ""
//|   end
//|   -- Products become what dP - D is multiplied by, and P an operand of 16-bit elements.
//|   function pr.bent_operand(layout, x, operand, cut, masked)
//|     local of = layouts[layout].score
//|     loops({ of.loops[1] }, true, function()
float probability[4];
//|       loops({ of.loops[2], of.loops[3] }, true, function()
//|         pr.own_row(of.row)
float bend;
probability[2 * h + e] = $(probability_of(of, x, "bend", cut, masked));
//|         if program.bend_is_finite and not has_mask then
$(x)$(of.at) = $(pr.bent_by("probability[2 * h + e]", "bend"));
//|         elseif program.bend_is_finite then
$(x)$(of.at) = $(masked) ? bent(probability[2 * h + e], bend) : $(pr.bent_by("probability[2 * h + e]", "bend"));
//|         else
$(x)$(of.at) = bent(probability[2 * h + e], bend);
//|         end
//|       end)
$(operand)[2 * n] = pack2(probability[0], probability[1]), $(operand)[2 * n + 1] = pack2(probability[2], probability[3]);
//|     end)
//|   end
//| end
