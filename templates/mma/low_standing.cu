//| needs "l.chunks l.integers_v? l.low l.shifts_v? l.standing?"
//| -- low_standing: the two products of 16 rows over blocks of codes that are integers. The scale of a block of K multiplies sums of
//| -- products with Q, that of a block of V multiplies P. V's codes are fp16 as they stand, below its normal numbers: 2^-24 times the
//| -- code, plus half of the largest code. A column more of O has what that adds. K's codes become their numbers first: beside a large
//| -- element of Q that addend would cost the other products bits.
//|
//| -- integers: what low_integers.cu has, of which these are the scales of K's blocks, the power of P and V's registers. of: what
//| -- low_products.cu has.
//| return function(l, integers, of)
//|   local K, V, I, S = l.low.k, l.low.v, l.integers_v, l.standing
//|   local k_pitch, v_pitch = of.k_pitch, of.v_pitch
//|   local to = {}
//|
//|   -- S = Q K^T.
//|   function to.scores()
//|     integers.scales()
// S = Q K^T for the warp's rows and the BC keys of one tile.
__device__ __forceinline__ void scores(float (&s)[MB][NB][4], const QFragments &q, u32 k_tile, u32 floats, const Lane &at) {
  leave_scales(floats, k_tile, at);
#pragma unroll
  for (int n = 0; n < NB; n += 2) {
    u32 words[2][CHUNKS];
#pragma unroll
    for (int chunk = 0; chunk + 1 < CHUNKS; chunk += 2) {
      u32 b[4];
      ldmatrix_x4(b, k_tile + further<$(k_pitch)>(at.k, n * 8, chunk));
#pragma unroll
      for (int i = 0; i < 4; i++) words[i / 2][chunk + i % 2] = b[i];
    }
//|     if l.chunks % 2 == 1 then
    ldmatrix_x2(words[0][CHUNKS - 1], words[1][CHUNKS - 1], k_tile + at.last + n * 8 * $(k_pitch) * 16);
//|     end
#pragma unroll
    for (int i = 0; i < 2; i++) {
      float scale[2][K_SCALES_OF_ROW];
      load_floats(scale, floats + ((n + i) * 8 + at.t * 2) * (K_SCALES_OF_ROW * 4));
//|     for b = 0, S.blocks - 1 do
      {
        float sum[4] = {};
#pragma unroll
        for (int r = 0; r < $(S.chunks); r++) {
          u32 h[K_WORD];
//|       local which = ("at.k_joins[%d]%s"):format(b // 2, b % 2 == 1 and " >> 16" or "")
          unpack_rows_$(K.name)(h, __byte_perm(words[i][$(S.first[b]) + r], words[i][$(S.first[b] + 1) + r], $(which)));
#pragma unroll
          for (int j = 0; j < K_WORD / 2; j++) mma_full(sum, q.full[0][($(b * S.chunks) + r) * (K_WORD / 2) + j], h[2 * j], h[2 * j + 1]);
        }
#pragma unroll
        for (int e = 0; e < 4; e++)
          s[0][n + i][e] = $(b == 0 and "sum[e] * scale[e % 2][0]" or ("fmaf(sum[e], scale[e %% 2][%d], s[0][n + i][e])"):format(b));
      }
//|     end
    }
  }
}
//|   end
//|
//|   -- O += P V.
//|   function to.accumulate()
//|     integers.power()
// O += P V, and what codes that are too large add to a row of it. Block (b * $(I.chunks) + i) * V_WORD + r of O has register r of words of
// the i-th chunk of V's block b. P is that of the keys times the scale of their block. What is too large of block b has block EXCESS + b.
__device__ __forceinline__ void accumulate(float (&o)[MB][OB][4], const float (&s)[MB][NB][4], PowerOfP &power, u32 v_tile,
                                           const Lane &at) {
#pragma unroll
  for (int kk = 0; kk < NB / 2; kk++) {
//|     integers.words_of_v()
    u32 of_keys[4];  // P of rows g and g + 8 of keys 2t and 2t + 1, and of those 8 further
#pragma unroll
    for (int i = 0; i < 4; i++)
      of_keys[i] = pack_f16x2(s[0][2 * kk + i / 2][i % 2 * 2] * power.up, s[0][2 * kk + i / 2][i % 2 * 2 + 1] * power.up);
//|     integers.scales_of_keys()
//|     for b = 0, I.blocks - 1 do
    {
      u32 of_block[4];
#pragma unroll
      for (int i = 0; i < 4; i++) of_block[i] = mul_f16x2(of_keys[i], scale[i / 2][$(b)]);
#pragma unroll
      for (int i = 0; i < $(I.chunks); i++) {
        u32 lo[V_WORD], hi[V_WORD];
        const int chunk = $(I.first[b]) + i;
        const bool later = at.v_row <= $(b * V.block_bytes % 16 // 2);  // the row's codes are those of the next chunk
        integers_of_columns(lo, later ? words[chunk + 1][0] : words[chunk][0]);
        integers_of_columns(hi, later ? words[chunk + 1][1] : words[chunk][1]);
#pragma unroll
        for (int r = 0; r < V_WORD; r++) mma_full(o[0][$(b * I.rows) + i * V_WORD + r], of_block, lo[r], hi[r]);
      }
      constexpr u32 TOO_LARGE = $(V.bits == 8 and "0x00800080" or "0x00080008");
      mma_full(o[0][EXCESS + $(b)], of_block, TOO_LARGE, TOO_LARGE);
    }
//|     end
  }
}
//|   end
//|
//|   -- In WarpRows::leave(): O where the group leaves it, without what is too large.
//|   function to.leave()
    const float of_o = v_factor * 0x1p24f * undo(power);
    const int t = opaque(at.t);
//|     local f = V
//|     for b = 0, I.blocks - 1 do
#pragma unroll
    for (int i = 0; i < $(I.chunks); i++)
#pragma unroll
      for (int x = 0; x < 2; x++) {
        // The first of two bytes of a row of V that are of columns side by side.
        const int byte = i * 16 + (((2 * t + x) * 2$(l.shifts_v and " - at.v_shift" or "") - $(b * f.block_bytes % 16 + 2)) & 15);
        const int column = $(b * f.block) + byte;
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const int r = row + h * 8 + at.g;
          if (r >= rows) continue;
          const float(*const of_block)[4] = o[0] + $(b * I.rows) + i * V_WORD;
          const float more = o[0][EXCESS + $(b)][2 * h];
//|       if f.bits == 8 then
          *(float2 *)(exchange + exchange_offset(r, column / 2)) =
              make_float2((of_block[0][2 * h + x] - more) * of_o, (of_block[1][2 * h + x] - more) * of_o);
//|       else
          // Upper halves are 16 times their codes.
          *(float2 *)(exchange + exchange_offset(r, column / 2)) =
              make_float2((of_block[0][2 * h + x] - more) * of_o, (of_block[2][2 * h + x] - more) * of_o);
          *(float2 *)(exchange + exchange_offset(r, column / 2 + $(f.shared // 4))) =
              make_float2((of_block[1][2 * h + x] * 0x1p-4f - more) * of_o, (of_block[3][2 * h + x] * 0x1p-4f - more) * of_o);
//|       end
        }
      }
//|     end
//|   end
//|
//|   return to
//| end
