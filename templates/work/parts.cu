//| -- parts: a tile's keys are shared by several that each leave a part of it: O relative to their own maximum m, and l, of rows of COLS
//| -- columns. work/tile_parts.cu has the CUDA functions that the printed text calls.
//|
//| return function(wk)
//|   -- A thread's columns of row `row` of a part to memory. of: the accumulators of the row, for v of `count` blocks of eight columns.
//|   function wk.leave_row(row, state, v, count, of)
const long long at = part_row(where, $(row));
if (t == 0) ((float2 *)p.part_state)[at] = make_float2($(state).m, l);
float *const to = (float *)p.part_o + at * COLS;
#pragma unroll
for (int $(v) = 0; $(v) < $(count); $(v)++) *(float2 *)(to + $(v) * 8 + 2 * t) = make_float2($(of[1]), $(of[2]));
//|   end
//|
//|   -- Whether of `parts` that count at a word of the workspace this is the last: it sees what the others wrote before. The word is 0
//|   -- then.
//|   function wk.is_last(word, parts)
//|     return ("count((u32 *)p.workspace + %s, (u32)%s - 1) == (u32)%s - 1"):format(word, parts, parts)
//|   end
//|
//|   -- `sum` of four columns of a row out of all parts, in their order, `batch` of them under way. from: the row of part
//|   -- min(j + k, parts - 1), of which those behind the last are the last once more.
//|   function wk.sum_of_parts(parts, batch, from, scale_log2)
const float4 *const part_o = (const float4 *)p.part_o;
const float2 *const part_state = (const float2 *)p.part_state;
Sum sum = {-infinity(), 0.f, make_float4(0.f, 0.f, 0.f, 0.f)};
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
#pragma unroll
  for (int k = 1; k < BATCH; k++)
    if (j + k >= $(parts)) states[k].x = -infinity();  // the last once more
  sum.add(states, x, $(scale_log2));
}
//|   end
//| end
