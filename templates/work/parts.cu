//| needs "l.placed? l.counts? l.half_parts? l.walks?"
//| -- parts: a tile's keys are shared by several that each leave a part of it: O relative to their own maximum m, and l, of rows of COLS
//| -- columns. work/tile_parts.cu has the CUDA functions that the printed text calls.
//|
//| return function(wk, p, l)
//|   local pr = include("pairs/pairs.lua").of(p, l)
//|
//|   -- No part yet.
//|   wk.no_part = "{-infinity(), 0.f, make_float4(0.f, 0.f, 0.f, 0.f)}"
//|
//|   -- A thread's columns of row `row` of a part to memory. of: the accumulators of the row, for v of `count` blocks of eight columns, two
//|   -- of each, or of sixteen, four of each.
//|   function wk.leave_row(row, state, v, count, of)
//|     local n, values = #of, table.concat(of, ", ")
const long long at = part_row(where, $(row));
if (t == 0) ((float2 *)p.part_state)[at] = make_float2($(state).m, l);
float *const to = (float *)p.part_o + at * COLS;
#pragma unroll
for (int $(v) = 0; $(v) < $(count); $(v)++) *(float$(n) *)(to + $(v) * $(4 * n) + $(n) * t) = make_float$(n)($(values));
//|   end
//|
//|   -- The same for h of a thread's two rows, as the warp holds them: 256 bytes at once, of eight columns of eight rows. Stores of four
//|   -- columns would want them in registers side by side, and the loop over keys then spills. first: the warp's first row in the tile;
//|   -- column, from: the first of the accumulators' columns, and of those the first that are this warpgroup's to leave. Where a warp adds
//|   -- up its own columns it needs no other warpgroup's states: each leaves its own.
//|   -- Half parts: O of a row's columns of a warpgroup in fp16, times the power of two that is `room`.
//|   function wk.leave_as_held(first, column, from)
const long long part = $(l.placed and "(long long)where.number" or "(long long)where.number * where.parts") + where.part;
const int eight = $(first) / 8 + h;
//|     if l.counts then
if (t == 0) ((float2 *)p.part_state)[(part * BR + eight * 8 + g) * 2 + ($(column) > 0)] = make_float2(state[h].m, l);
//|     else
if (t == 0 && $(column) == 0) ((float2 *)p.part_state)[part * BR + eight * 8 + g] = make_float2(state[h].m, l);
//|     end
//|     if l.half_parts then
if (t == 0) *room_of_part(p, part, eight * 8 + g, $(column) > 0) = reciprocal_of_room(room);
uint2 *const to = (uint2 *)((float *)p.part_o + part * (BR * COLS)) + (eight * (COLS / 16) + $(column) / 16) * 32 + lane;
#pragma unroll
for (int n = 0; n < NO / 4; n += 2)
  if (n * 8 >= $(from)) to[n * 16] = make_uint2(pack_halves(o[4 * n + 2 * h] * room, o[4 * n + 2 * h + 1] * room),
                                         pack_halves(o[4 * n + 4 + 2 * h] * room, o[4 * n + 5 + 2 * h] * room));
//|     else
float2 *const to = (float2 *)p.part_o + part * (BR * COLS / 2) + (eight * (COLS / 8) + $(column) / 8) * 32 + lane;
#pragma unroll
for (int n = 0; n < NO / 4; n++)
  if (n * 8 >= $(from)) to[n * 32] = make_float2(o[4 * n + 2 * h], o[4 * n + 2 * h + 1]);
//|     end
//|   end
//|
//|   -- Whether of `parts` that count at a word of the workspace this is the last: it sees what the others wrote before. The word is 0
//|   -- then.
//|   function wk.is_last(word, parts)
//|     return ("count((u32 *)p.workspace + %s, (u32)%s - 1) == (u32)%s - 1"):format(word, parts, parts)
//|   end
//|
//|   -- `sum` of four columns of a row out of all parts, in their order, `batch` of them under way. from: the row of part
//|   -- min(j + k, parts - 1), of which those after the last are the last once more.
//|   function wk.sum_of_parts(parts, batch, from, scale_log2)
const float4 *const part_o = (const float4 *)p.part_o;
const float2 *const part_state = (const float2 *)p.part_state;
Sum sum = $(wk.no_part);
constexpr int BATCH = $(batch);  // parts under way
for (int j = 0; j < $(parts); j += BATCH) {
  float2 states[BATCH];
  float4 x[BATCH];
#pragma unroll
  for (int k = 0; k < BATCH; k++) {
    const long long from = $(from);
    states[k] = load_part(part_state + from);
    x[k] = load_part(part_o + from * (COLS / 4) + four);
  }
//|     if l.walks then
#pragma unroll
  for (int k = 0; k < BATCH; k++) {  // one by one, as a block does that walks them
    if (j + k == 0)
      sum = {states[0].x, states[0].y, x[0]};
    else if (j + k < $(parts))
      sum.add(states[k], x[k], $(scale_log2));
  }
//|     else
#pragma unroll
  for (int k = 1; k < BATCH; k++)
    if (j + k >= $(parts)) states[k].x = -infinity();  // the last once more
  sum.add(states, x, $(scale_log2));
//|     end
}
//|   end
//|
//|   -- Four columns of a sum to memory, for others to go on with: o: where they lie; state: where (m, l) of the row does, which the thread
//|   -- of the first columns writes.
//|   function wk.leave_sum(sum, o, state, first)
$(o) = $(sum).o;
if ($(first)) $(state) = make_float2($(sum).m, $(sum).l);
//|   end
//|
//|   -- Four columns of a row of O, from `col` on, out of the sum of all its parts: O = sum / l and LSE. A row that saw no key has l = 0:
//|   -- O = 0, LSE = -inf. at: its {head, query}; the thread of the `first` columns writes LSE. factor: what follows 1 / l.
//|   function wk.store_sum(sum, at, col, first, scale_log2, scale, factor)
//|     local all = sum .. ".l"
//|     if pr.has_sink then
//|       all = "l"
float l = $(sum).l;
//|       pr.add_sink("l", sum .. ".m", at[1], at[2], scale_log2, scale)
//|     end
//|     local lse = pr.log_sum_exp(("{%s.m, %s.l}"):format(sum, sum), all, "z", scale, scale_log2)
const float inverse = reciprocal($(all))$(factor or "");
if (p.lse != nullptr && $(first)) p.lse[sequence.lse($(at[1]), $(at[2]))] = $(lse);
store_columns((output *)p.o + sequence.o() + $(at[2]) * p.o_ss + $(at[1]) * p.o_sh, $(col),
              make_float4($(sum).o.x * inverse, $(sum).o.y * inverse, $(sum).o.z * inverse, $(sum).o.w * inverse));
//|   end
//|
//|   -- What a later step has to know of a tile that a block leaves open, in so many words of four; where there is none, nothing.
//|   local function open(words) return ("((int4 *)p.tiles_open)[%s%s]"):format(words > 1 and words .. " * " or "", wk.block) end
//|   function wk.leave_open(words, ...) return ("%s = make_int4(%s);"):format(open(words), table.concat({ ... }, ", ")) end
//|   function wk.leave_none_open(words) return wk.leave_open(words, 0, 0, 0, 0) end
//| end
