// ---- tables of what a mask reads, from which tiles are classed: filled by a kernel before ----
// The values of a warp's lanes, as an entry.
__device__ __forceinline__ void score_store(int *to, int lane, ScoreSpan r) {
  r = {__reduce_min_sync(~0u, r.lo), __reduce_max_sync(~0u, r.hi)};
  if (lane == 0) *(int2 *)to = make_int2(r.lo, r.hi);
}
__device__ __forceinline__ void score_store(int *to, int lane, ScoreSpan r, unsigned long long set) {
  score_store(to, lane, r);
  const unsigned low = __reduce_or_sync(~0u, (unsigned)set), high = __reduce_or_sync(~0u, (unsigned)(set >> 32));
  if (lane == 0) *(uint2 *)(to + 2) = make_uint2(low, high);
}
__device__ __forceinline__ void score_store(int *to, int lane, ScoreReal r) {
  const bool nan = __any_sync(0xffffffffu, r.nan);
  for (int m = 16; m > 0; m /= 2) {
    r.lo = fminf(r.lo, __shfl_xor_sync(0xffffffffu, r.lo, m));
    r.hi = fmaxf(r.hi, __shfl_xor_sync(0xffffffffu, r.hi, m));
  }
  if (lane == 0) *(float2 *)to = make_float2(nan ? __int_as_float(0x7fffffff) : r.lo, r.hi);
}

// Elements of an array by queries and keys, bytes or bits: of 64 x 64 of its last two indices, or of 64 of its only one, 1 where none is 0,
// and 256 times the bits that any has. A warp takes 64 rows and 512 columns of bytes, or 1024 of bits, four rows side by side: 16 bytes a
// lane and row. Where rows do not lie so, or end within, bytes side by side are read by words, others one by one, of bits words.
template <bool BITS> struct ScorePiece {
  static constexpr int ABREAST = BITS ? 4 : 1, LANES = 32 / ABREAST;  // rows, and lanes of one
  unsigned any[4], all[4];  // bytes of `all`: the highest bit is that none was 0
  __device__ __forceinline__ void begin() {
    for (int k = 0; k < 4; k++) any[k] = 0, all[k] = 0xffffffffu;
  }
  __device__ __forceinline__ void join(int k, unsigned word) {
    any[k] |= word;
    all[k] &= BITS ? word : ((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word;
  }
  __device__ __forceinline__ void join(uint4 v) { join(0, v.x), join(1, v.y), join(2, v.z), join(3, v.w); }
  __device__ __forceinline__ void join_rows() {
#pragma unroll
    for (int m = LANES; m < 32; m *= 2)
#pragma unroll
      for (int k = 0; k < 4; k++) {
        any[k] |= __shfl_xor_sync(0xffffffffu, any[k], m);
        all[k] &= __shfl_xor_sync(0xffffffffu, all[k], m);
      }
  }
};

// The words of a lane's columns of a row. from: the row. Past the last column nothing is seen, and nothing hidden.
template <bool BITS, class From>
__device__ __forceinline__ void score_read_piece(ScorePiece<BITS> &piece, const From *row, long long stride, int column, int columns) {
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const int first = column + k * (BITS ? 32 : 4), left = columns - first;
    unsigned word = 0, past = 0;
    if (left <= 0) break;
    if (BITS) {
      word = row[(first >> 5) * stride];
      past = left < 32 ? 0xffffffffu << left : 0u;
    } else {
      for (int e = 0; e < 4; e++) {
        if (e < left) word |= (unsigned)row[(first + e) * stride] << (e * 8);
        else past |= 0xffu << (e * 8);
      }
    }
    piece.any[k] |= word & ~past;
    piece.all[k] &= (BITS ? word : ((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word) | past;
  }
}

// The same of bytes side by side that begin anywhere: the words that hold one of them, moved to where they belong.
template <bool BITS> __device__ __forceinline__ void score_read_bytes(ScorePiece<BITS> &piece, const unsigned char *from, int left) {
  const int before = (int)((size_t)from & 3);
  const unsigned *const words = (const unsigned *)(from - before);
  unsigned word[5];
#pragma unroll
  for (int k = 0; k < 5; k++) word[k] = 4 * k < before + min(left, 16) ? words[k] : 0;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const int n = min(max(left - 4 * k, 0), 4);
    const unsigned x = __funnelshift_r(word[k], word[k + 1], 8 * before), past = n == 4 ? 0u : 0xffffffffu << 8 * n;
    piece.any[k] |= x & ~past;
    piece.all[k] &= ((x & 0x7f7f7f7fu) + 0x7f7f7f7fu) | x | past;
  }
}

// column: of the lane's first; entries of a row of entries: steps.
template <bool BITS> __device__ __forceinline__ void score_store_piece(ScorePiece<BITS> &piece, int *to, int column, int steps, int lane) {
  if (BITS) {
    if (lane >= ScorePiece<BITS>::LANES) return;
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const unsigned any = piece.any[half * 2] | piece.any[half * 2 + 1], all = piece.all[half * 2] & piece.all[half * 2 + 1];
      if (column / 64 + half < steps) to[column / 64 + half] = (all == 0xffffffffu ? 1 : 0) | (any != 0 ? 256 : 0);
    }
  } else {
    unsigned any = piece.any[0] | piece.any[1] | piece.any[2] | piece.any[3];
    unsigned all = piece.all[0] & piece.all[1] & piece.all[2] & piece.all[3];
    any |= any >> 16, all &= all >> 16;
    any |= any >> 8, all &= all >> 8;
    for (int m = 1; m < 4; m *= 2) {
      any |= __shfl_xor_sync(0xffffffffu, any, m);
      all &= __shfl_xor_sync(0xffffffffu, all, m);
    }
    if (lane % 4 == 0 && column / 64 < steps) to[column / 64] = (int)((all >> 7 & 1) | (any & 255) << 8);
  }
}

template <bool BITS> struct ScoreElement {
  using type = unsigned char;
};
template <> struct ScoreElement<true> {
  using type = unsigned;
};

// The last digit of a number whose digit has n values, and the number without it.
__device__ __forceinline__ int score_digit(unsigned &number, int n) {
  if (n == 1) return 0;
  const unsigned is = number;
  number = is / (unsigned)n;
  return (int)(is - number * (unsigned)n);
}

template <bool BITS, int RANK, class Extent, class Stride>
__device__ __forceinline__ void score_fill_pairs(const void *array, const Extent &extent, const Stride &stride, int *to, int warp,
                                                 int warps, int lane) {
  using From = typename ScoreElement<BITS>::type;
  constexpr int ABREAST = ScorePiece<BITS>::ABREAST, LANES = ScorePiece<BITS>::LANES;
  constexpr int EACH = BITS ? 128 : 16, WIDE = LANES * EACH, OUTER = RANK > 1 ? RANK - 2 : 0;
  const int rows = RANK > 1 ? (int)extent[OUTER] : 1, columns = (int)extent[RANK - 1];
  const int row_steps = score_steps(rows), steps = score_steps(columns), chunks = (int)((unsigned)(columns + WIDE - 1) / WIDE);
  const long long row_stride = RANK > 1 ? (long long)stride[OUTER] : 0;
  long long jobs = (long long)row_steps * chunks;
  long long apart = (long long)(size_t)array | row_stride * (int)sizeof(From);
#pragma unroll
  for (int k = 0; k < OUTER; k++) jobs *= stride[k] != 0 ? extent[k] : 1;  // others read what their first does
  if (warp >= jobs) return;
  // Each leaves 32 bytes and more: there are no 2^32, and divisions of 64 bits would take as long as the array's first words.
#pragma unroll
  for (int k = 0; k < OUTER; k++) apart |= (long long)stride[k] * (int)sizeof(From);
  const bool aligned = stride[RANK - 1] == 1 && (apart & 15) == 0;
  for (unsigned job = warp; job < jobs; job += warps) {
    unsigned lead = job;  // the matrix of all
    long long at = 0, apiece = 1;
    const int column = score_digit(lead, chunks) * WIDE + lane % LANES * EACH;
    const int step = score_digit(lead, row_steps), first = step * 64, n = min(64, rows - first);
    const From *row = (const From *)array + first * row_stride;
#pragma unroll
    for (int k = OUTER - 1; k >= 0; k--) {
      const int n = stride[k] != 0 ? (int)extent[k] : 1, x = score_digit(lead, n);
      row += x * (long long)stride[k];
      at += x * apiece, apiece *= extent[k];
    }
    ScorePiece<BITS> piece;
    piece.begin();
    if (aligned && column + EACH <= columns) {
      const From *const from = row + (BITS ? column >> 5 : column);
#pragma unroll 8
      for (int r = 0; r < 64; r += ABREAST)  // the last row again in the place of rows that there are not
        piece.join(*(const uint4 *)(from + min(r + lane / LANES, n - 1) * row_stride));
    } else if (!BITS && stride[RANK - 1] == 1 && row_stride > 0 && column < columns) {
      // No word is read past the array: of its last row elements are read one by one.
      const unsigned char *const from = (const unsigned char *)row + column;
      const int m = first + n < rows ? n : n - 1;
#pragma unroll 4
      for (int r = 0; r < m; r++) score_read_bytes(piece, from + r * row_stride, columns - column);
      if (m < n) score_read_piece<BITS>(piece, row + m * row_stride, 1, column, columns);
    } else
      for (int r = lane / LANES; r < n; r += ABREAST)
        score_read_piece<BITS>(piece, row + r * row_stride, stride[RANK - 1], column, columns);
    piece.join_rows();
    score_store_piece<BITS>(piece, to + (at * row_steps + step) * steps, column, steps, lane);
  }
}
