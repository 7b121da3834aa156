//| needs "l.ones l.turned l.wide"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| include "wgmma/hopper_rows.cu"

// Straight from the registers. row: this thread's first; o and l are those of P as it is.
//|   if p.has_lengths then
__device__ __forceinline__ void store_rows(const Params &p, const Tile &where, const Sequence &sequence, const float (&o)[NO],
                                           const RowState (&state)[2], int row, int t) {
//|   else
//|     if l.ones then
// weights: what O is divided by.
__device__ __forceinline__ void store_rows(const Params &p, const Tile &where, const float (&o)[NO], const RowState (&state)[2],
                                           const float (&weights)[2], int row, int t) {
//|     else
__device__ __forceinline__ void store_rows(const Params &p, const Tile &where, const float (&o)[NO], const RowState (&state)[2], int row,
                                           int t) {
//|     end
  const Sequence sequence = sequence_of(p, where.batch);
//|   end
//| if p.o_scale == 1 then
  const float per_o = 1.f / o_scale_of(p, sequence, where.head);
//| end
  const u32 again = rows_again(sequence, state, o, row, $(pr.unit_log2));
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int i = row + 8 * h;
//|   if pr.has_sink then
    $(pr.sum_type) l = quad_sum(state[h].l);
//|     indented(4, pr.add_sink, "l", "state[h].m", "where.head", "i")
    const float inverse = reciprocal(l);
//|   else
    const float l = quad_sum(state[h].l), inverse = reciprocal($(l.ones and "weights[h]" or "l"));
//|   end
    store_lse(p, where, $(p.has_lengths and "sequence, " or "")state[h], l$(pr.has_sink and ", z" or ""), i, t);
    if (i >= sequence.sq()) continue;
//| if p.o_scale == 1 then
    const float to_o = inverse * per_o;
//| end
//| local inverse = p.o_scale == 1 and "to_o" or "inverse"
    output *const to = (output *)p.o + sequence.o() + i * p.o_ss + where.head * p.o_sh;
//| if l.turned then
    // Of 16 columns, the even ones of which come first, a thread has four neighbours.
#pragma unroll
    for (int n = 0; n < NO / 8; n++) {
      const float x[4] = {o[8 * n + 2 * h] * $(inverse), o[8 * n + 4 + 2 * h] * $(inverse), o[8 * n + 2 * h + 1] * $(inverse),
                          o[8 * n + 5 + 2 * h] * $(inverse)};
      if (DV % 16 != 0 && n * 16 + 4 * t >= DV) continue;
//|   if p.o_bytes == 1 then
      *(u32 *)(to + n * 16 + 4 * t) = to_e4m3(x[0], x[1], x[2], x[3]);
//|   elseif p.o_bytes == 4 then
      *(float4 *)(to + n * 16 + 4 * t) = make_float4(x[0], x[1], x[2], x[3]);
//|   else
      *(uint2 *)(to + n * 16 + 4 * t) = make_uint2(pack2(x[0], x[1]), pack2(x[2], x[3]));
//|   end
    }
//| else
#pragma unroll
    for (int n = 0; n < NO / 4; n++) {
      const float x = o[4 * n + 2 * h] * $(inverse), y = o[4 * n + 2 * h + 1] * $(inverse);
      if ($(l.wide and "COLUMNS > DV" or "DV % 8 != 0") && n * 8 + 2 * t >= DV) continue;
//|   if p.o_bytes == 1 then
      *(u16 *)(to + n * 8 + 2 * t) = (u16)to_e4m3(x, y, 0.f, 0.f);
//|   elseif p.o_bytes == 4 then
      *(float2 *)(to + n * 8 + 2 * t) = make_float2(x, y);
//|   else
      *(u32 *)(to + n * 8 + 2 * t) = pack2(x, y);
//|   end
    }
//| end
  }
  if (__builtin_expect(__any_sync(~0u, again != 0), 0)) store_rows_again(again, [&](int i, bool far) {
    const int query = row - (int)threadIdx.x % 32 / 4 + i;
    store_again(p, sequence, {query, where.head}, far);
  });
}
