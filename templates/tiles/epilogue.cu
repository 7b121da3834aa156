//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- how the rows of a tile go back to memory ----

//| local staged = p.o_bytes == 2 and p.align >= 16
// O / l to memory, LSE = scale m + log(l). A row that saw no key has l = 0: O = 0, LSE = -inf.
//| if staged then
// The 16-bit tile is put together in shared memory, which no other step uses any more, and leaves in 16-byte pieces.
//| end
__device__ __forceinline__ void store_output(const Params &p, const Sequence &sequence, const Tile &w, float (&o)[MB][VB][4],
                                             RowState (&state)[MB][2], u32 smem, int g, int t) {
  const int warp_row = threadIdx.x / 32 * (16 * MB);
  u32 far = 0, tainted = 0;  // rows of this thread, by bit 2m + h
//| if staged then
  __syncthreads();
//| end
#pragma unroll
  for (int m = 0; m < MB; m++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      $(pr.sum_type) l = quad_sum(state[m][h].l);
//| local of = "row_of(p, w, w.row + warp_row + m * 16 + h * 8 + g)"
//| indented(6, pr.add_sink, "l", "state[m][h].m", of .. ".head", of .. ".query")
      const float inverse = reciprocal(l)$(pr.out_scale);
      const int tile_row = warp_row + m * 16 + h * 8 + g;
      const int row = w.row + tile_row;
      const bool real = row < row_count(p, sequence);
      const Row at = row_of(p, w, row);
      if (real && is_far(state[m][h].m, $(pr.unit_log2)) && sees_keys(sequence, (int)at.query)$(pr.and_seen("state[m][h].m"))) far |= 1u << (2 * m + h);
//| if pr.cuts_right then
      int top = 0;  // as integers: a NaN that arithmetic makes is the largest
#pragma unroll
      for (int v = 0; v < VB; v++) top = max(max(top, __float_as_int(o[m][v][2 * h])), __float_as_int(o[m][v][2 * h + 1]));
      if (real && top > 0x7f800000) tainted |= 1u << (2 * m + h);
//| end
      if (p.lse != nullptr && t == 0 && real)
        p.lse[sequence.lse(at.head, at.query)] = $(pr.log_sum_exp("state[m][h]", "l", "z"));
//| if staged then
#pragma unroll
      for (int v = 0; v < VB; v++)
        store_shared(smem + tile_offset<CHUNKS_V>(tile_row, v) + t * 4,
                     pack2(o[m][v][2 * h] * inverse, o[m][v][2 * h + 1] * inverse));
//| else
      output *const to = (output *)p.o + sequence.o() + at.query * p.o_ss + at.head * p.o_sh;
#pragma unroll
      for (int v = 0; v < VB; v++) {
        const int col = v * 8 + 2 * t;
        const float x0 = o[m][v][2 * h] * inverse, x1 = o[m][v][2 * h + 1] * inverse;
//|   if p.o_bytes == 4 and p.align >= 8 then
        if (real && col < DV) *(float2 *)(to + col) = make_float2(x0, x1);
//|   elseif p.o_bytes == 4 then
        if (real && col < DV) to[col] = x0;
        if (real && col + 1 < DV) to[col + 1] = x1;
//|   elseif p.align >= 4 then
        if (real && col < DV) *(u32 *)(to + col) = pack2(x0, x1);
//|   else
        const u32 pair = pack2(x0, x1);
        if (real && col < DV) to[col] = (u16)pair;
        if (real && col + 1 < DV) to[col + 1] = (u16)(pair >> 16);
//|   end
      }
//| end
    }
//| if staged then
  __syncwarp();
  // Each warp stores the rows that it wrote.
  for (int i = threadIdx.x % 32; i < 16 * MB * CHUNKS_V; i += 32) {
    const int tile_row = warp_row + i / CHUNKS_V, chunk = i % CHUNKS_V;
    const int row = w.row + tile_row;
    if (row >= row_count(p, sequence)) continue;
    const Row at = row_of(p, w, row);
    u16 *const to = (u16 *)p.o + sequence.o() + at.query * p.o_ss + at.head * p.o_sh + chunk * 8;
    *(uint4 *)to = load_shared_x4(smem + tile_offset<CHUNKS_V>(tile_row, chunk));
  }
//| end
  if (!__any_sync(~0u, (far | tainted) != 0)) return;
  __syncwarp();  // what the warp stored is there
#pragma unroll 1
  for (int i = 0; i < 2 * MB; i++) {
    const u32 is_far = __ballot_sync(~0u, far >> i & 1);
#pragma unroll 1
    for (u32 lanes = is_far | __ballot_sync(~0u, tainted >> i & 1); lanes != 0;) {
      const int quad = (__ffs(lanes) - 1) / 4;
      lanes &= ~(15u << 4 * quad);
      store_again(p, sequence, row_of(p, w, w.row + warp_row + i * 8 + quad), (is_far >> 4 * quad & 15) != 0);
    }
  }
}
