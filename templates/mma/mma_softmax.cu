//| needs "c.lag? l.half? l.low? l.row_scaled?"
//| local ob, halves = l.low and "OB" or "VB", l.half and 1 or 2
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local unit = l.row_scaled and "unit_log2[m][h]" or "scale_log2" -- what makes exponents of products
//| if pr.of_pairs then
// Products become scores. row: the warp's first. CUT: keys past the last may be among them.
template <bool CUT>
__device__ __forceinline__ void apply_score(float (&s)[MB][NB][4], const Params &p, const ScoreTile &scored, int row, int block,
                                            const Lane &at) {
//|   indented(2, pr.apply, "mma", "s", "CUT")
}

//| end
// Scores of keys that their query does not see become -inf. row: the warp's first.
__device__ __forceinline__ void apply_mask(float (&s)[MB][NB][4], const Params &p, const Sequence &sequence$(pr.ends_type), int row, int block,
                                           const Lane &at) {
//| indented(2, pr.hide, "mma", "s", "-infinity()")
}

// One block of keys: scores become probabilities, O and the row states are brought up to date. Half h of a 16-row block is the row
// g + 8h, elements 2h and 2h + 1 of each block of eight columns$(l.half and "; there is no other half" or "").
//| local units = l.row_scaled and "const float (&unit_log2)[MB][2]" or "float scale_log2"
__device__ __forceinline__ void softmax(float (&s)[MB][NB][4], float (&o)[MB][$(ob)][4], RowState (&state)[MB][2], $(units)) {
  float top[MB][2];
#pragma unroll
  for (int m = 0; m < MB; m++)
#pragma unroll
    for (int h = 0; h < $(halves); h++) {
      top[m][h] = state[m][h].m;
#pragma unroll
      for (int n = 0; n < NB; n++) top[m][h] = fmaxf(top[m][h], fmaxf(s[m][n][2 * h], s[m][n][2 * h + 1]));
      top[m][h] = quad_max(top[m][h]);
    }
//| local lags = (c.lag or 0) > 0
//| if lags or l.low then
  bool moved = false;
#pragma unroll
  for (int m = 0; m < MB; m++)
#pragma unroll
//|   local rises = lags and "(top[m][h] - state[m][h].m) * " .. unit .. " > LAG" or "top[m][h] > state[m][h].m"
    for (int h = 0; h < $(halves); h++) moved = moved || $(rises);
  if (__any_sync(~0u, moved)) {$(lags and "" or "  // else all factors are 1")
//| end
//| if lags then
    // Where the mask has hidden all keys from a row of the warp so far, all rows move: those beside it have seen few. Else whether a row's
    // m moves follows from its own scores alone.
    bool hidden = false;
#pragma unroll
    for (int m = 0; m < MB; m++) hidden = hidden || state[m][0].m == -infinity() || state[m][1].m == -infinity();
    const bool few = __any_sync(~0u, hidden);
//| end
#pragma unroll
    for (int m = 0; m < MB; m++)
#pragma unroll
      for (int h = 0; h < $(halves); h++) {
//| if lags then
        if (!few && !((top[m][h] - state[m][h].m) * $(unit) > LAG)) top[m][h] = state[m][h].m;
//| end
        const float keep = raise(state[m][h], top[m][h], $(unit));
//| if l.half then
        // O has queries as columns.
        const float even = __shfl_sync(~0u, keep, threadIdx.x % 4 * 8), odd = __shfl_sync(~0u, keep, threadIdx.x % 4 * 8 + 4);
#pragma unroll
        for (int v = 0; v < OB; v++) {
          o[m][v][0] *= even;
          o[m][v][1] *= odd;
          o[m][v][2] *= even;
          o[m][v][3] *= odd;
        }
//| else
#pragma unroll
        for (int v = 0; v < $(ob); v++) {
          o[m][v][2 * h] *= keep;
          o[m][v][2 * h + 1] *= keep;
        }
//| end
      }
//| if lags or l.low then
  }
//| end
#pragma unroll
  for (int m = 0; m < MB; m++)
#pragma unroll
    for (int h = 0; h < $(halves); h++) {
      const float shift = shift_of(state[m][h].m, $(unit));
#pragma unroll
      for (int n = 0; n < NB; n++) {
        s[m][n][2 * h] = probability(s[m][n][2 * h], $(unit), shift);
        s[m][n][2 * h + 1] = probability(s[m][n][2 * h + 1], $(unit), shift);
        state[m][h].l += s[m][n][2 * h] + s[m][n][2 * h + 1];
      }
    }
}
