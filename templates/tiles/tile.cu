//| needs "l.boxed? l.copier? l.copiers? l.integer? l.lines? l.low?"
// ---- tiles in shared memory ----
// A tile is ROWS dense rows of CHUNKS 16-byte chunks. Chunk c of row r lies at chunk c ^ swizzle(r): the eight rows that one
// phase of ldmatrix reads, and the eight chunks that one phase of a copy writes, then fall into different bank groups for every
// even CHUNKS; an odd count needs no swizzle.
//
//   8 | CHUNKS: r % 8        4 | CHUNKS: (r / 2) % 4        2 | CHUNKS: (r / 4) % 2        else 0
//| if p.dtype == "tf32" then
// V of TF32 is read as single words, rows t = 0..3 by columns g = 0..7, and wants pairs of chunks apart instead (PAIRS).
//| end
template <int CHUNKS, bool PAIRS>
__device__ __forceinline__ int swizzle(int row) {
  if constexpr (PAIRS)
    return CHUNKS % 8 == 0 ? (row & 3) << 1 : CHUNKS % 4 == 0 ? ((row >> 1) & 1) << 1 : 0;
  else
    return CHUNKS % 8 == 0 ? row & 7 : CHUNKS % 4 == 0 ? (row >> 1) & 3 : CHUNKS % 2 == 0 ? (row >> 2) & 1 : 0;
}

// Byte offset of a chunk in its tile.
//| if l.boxed and not l.low then
// The tile is boxes of 64 columns, one after the other: rows of 8 chunks, as wgmma reads them.
template <int CHUNKS, bool PAIRS = false>
__device__ __forceinline__ u32 tile_offset(int row, int chunk) {
  return (u32)(chunk / 8 * BC + row) * 128 + (u32)((chunk ^ row) % 8) * 16;
}
//| else
template <int CHUNKS, bool PAIRS = false>
__device__ __forceinline__ u32 tile_offset(int row, int chunk) {
  return (u32)(row * CHUNKS + (chunk ^ swizzle<CHUNKS, PAIRS>(row))) * 16;
}
//| end

// The same for a lane whose own offset within the first rows and chunks of the tile is known: `row` rows and `chunk` chunks on, a
// multiple of eight rows (four for PAIRS) and an even number of chunks. Constants, so it costs one exclusive or.
template <int CHUNKS>
__device__ __forceinline__ u32 further(u32 lane, int row, int chunk) {
  constexpr int PERIOD = CHUNKS % 8 == 0 ? 8 : CHUNKS % 4 == 0 ? 4 : CHUNKS % 2 == 0 ? 2 : 1;
  return (lane ^ (u32)(chunk % PERIOD * 16)) + (u32)(row * CHUNKS + chunk / PERIOD * PERIOD) * 16;
}

//| local copiers, copier = l.copiers or "THREADS", l.copier or "threadIdx.x"
//| -- Where p.kv_align is less than p.align, K and V alone are copied.
// How the block's threads share a copy: neighbouring lanes take neighbouring pieces of a row, a thread keeps its column.
//| if p.kv_align >= 16 then
template <int CHUNKS>
struct Share {
  static constexpr int POW2 = CHUNKS % 8 == 0 ? 8 : CHUNKS % 4 == 0 ? 4 : CHUNKS % 2 == 0 ? 2 : 1;
  static constexpr int WIDTH = POW2 < 4 && CHUNKS <= $(copiers) ? CHUNKS : POW2;  // chunks side by side
  static constexpr int STEP = $(copiers) / WIDTH;                                // rows of one pass
  static __device__ __forceinline__ int row() { return $(copier) / WIDTH; }
  static __device__ __forceinline__ int col() { return $(copier) % WIDTH; }
};

// One row of one thread: its chunks from `from`, the row's first byte; zeros where read is false and past ROW_BYTES.
template <int CHUNKS, bool PAIRS, int ROW_BYTES$(l.lines and ", bool LINES = true" or "")>
__device__ __forceinline__ void load_row(u32 tile, int row, const char *from, bool read) {
  using S = Share<CHUNKS>;
#pragma unroll
  for (int c = 0; c < CHUNKS; c += S::WIDTH)
    cp_async<16$(l.lines and ", LINES" or "")>(tile + tile_offset<CHUNKS, PAIRS>(row, S::col() + c), from + (S::col() + c) * 16,
                 read && (ROW_BYTES == CHUNKS * 16 || (S::col() + c) * 16 < ROW_BYTES));
}
//| else
//| if p.kv_align < 4 then
constexpr int UNIT = 4;   // bytes that a thread copies at a time: two elements, which the alignment of the tensors lets it load one by one
constexpr int BATCH = 8;  // rows that a thread loads before it stores: loads under way. Loops are unrolled no further: the code stays short
//| else
constexpr int UNIT = $(p.kv_align);   // bytes that a thread copies at a time: the most that the alignment of the tensors allows
constexpr int BATCH = 4;  // rows of one turn of a loop, which is unrolled no further: the code stays short
//| end
template <int CHUNKS>
struct Share {
  static constexpr int UNITS = CHUNKS * 16 / UNIT;  // of a row
  static constexpr int WIDTH = UNITS < $(copiers) ? UNITS : $(copiers);
  static constexpr int STEP = $(copiers) / WIDTH;
  static __device__ __forceinline__ int row() { return $(copier) / WIDTH; }
  static __device__ __forceinline__ int col() { return $(copier) % WIDTH; }
};

// One unit of each of N rows, STEP apart from `row` on: the one at `byte` of a row, for the first of them at `from`. Zeros where read(row)
// is false and past ROW_BYTES. Rows from ROWS on are not in the tile; ROWS = 0: all N are.
template <int N, int ROWS, int CHUNKS, bool PAIRS, int ROW_BYTES, class Read>
__device__ __forceinline__ void load_units(u32 tile, int row, int byte, const char *from, long long stride, Read read) {
  using S = Share<CHUNKS>;
//|   if p.kv_align < 4 then
  u32 pair[N];
#pragma unroll
  for (int i = 0; i < N; i++) {
    const bool inside = read(row + i * S::STEP) && (ROWS == 0 || row + i * S::STEP < ROWS);
//|     if l.integer then
    const unsigned char *const bytes = (const unsigned char *)from + i * (S::STEP * stride);
    pair[i] = 0;
#pragma unroll
    for (int j = 0; j < UNIT; j++)
      if (inside && byte + j < ROW_BYTES) pair[i] |= (u32)bytes[j] << 8 * j;
//|     else
    const u16 lo = inside && byte < ROW_BYTES ? *(const u16 *)(from + i * (S::STEP * stride)) : (u16)0;
    const u16 hi = inside && byte + 2 < ROW_BYTES ? *(const u16 *)(from + i * (S::STEP * stride) + 2) : (u16)0;
    pair[i] = (u32)hi << 16 | lo;
//|     end
  }
#pragma unroll
  for (int i = 0; i < N; i++)
    if (ROWS == 0 || row + i * S::STEP < ROWS)
      store_shared(tile + tile_offset<CHUNKS, PAIRS>(row + i * S::STEP, byte / 16) + byte % 16, pair[i]);
//|   else
#pragma unroll
  for (int i = 0; i < N; i++)
    if (ROWS == 0 || row + i * S::STEP < ROWS)
      cp_async<UNIT>(tile + tile_offset<CHUNKS, PAIRS>(row + i * S::STEP, byte / 16) + byte % 16, from + i * (S::STEP * stride),
                     read(row + i * S::STEP) && byte < ROW_BYTES);
//|   end
}

// One row of one thread: its units from `from`, the row's first byte; zeros where read is false and past ROW_BYTES.
template <int CHUNKS, bool PAIRS, int ROW_BYTES>
__device__ __forceinline__ void load_row(u32 tile, int row, const char *from, bool read) {
  using S = Share<CHUNKS>;
#pragma unroll 1
  for (int c = 0; c < S::UNITS; c += S::WIDTH) {
    const int byte = (S::col() + c) * UNIT;
    if (S::UNITS % S::WIDTH != 0 && byte >= CHUNKS * 16) break;
    load_units<1, 0, CHUNKS, PAIRS, ROW_BYTES>(tile, row, byte, from + byte, 0, [=](int) { return read; });
  }
}
//| end

// Copies ROWS rows with all threads of the block, asynchronously: row r from `from` + r * stride. Rows before `first` and after
// `last` become zeros and are not read: what no row of Q may see never meets the matrix units.
template <int ROWS, int CHUNKS, bool PAIRS, int ROW_BYTES>
__device__ __forceinline__ void load_tile(u32 tile, const char *from, long long stride, int first, int last) {
  using S = Share<CHUNKS>;
  if (S::STEP * S::WIDTH < $(copiers) && S::row() >= S::STEP) return;
//| if p.kv_align >= 16 then
  from += S::row() * stride;
#pragma unroll
  for (int r = 0; r < ROWS; r += S::STEP) {
    const int row = S::row() + r;
    if (ROWS % S::STEP != 0 && row >= ROWS) break;
    load_row<CHUNKS, PAIRS, ROW_BYTES>(tile, row, from, (u32)(row - first) <= (u32)(last - first));
    from += S::STEP * stride;
  }
//| else
  constexpr int PASSES = (ROWS + S::STEP - 1) / S::STEP, N = PASSES < BATCH ? PASSES : BATCH;
#pragma unroll 1
  for (int c = 0; c < S::UNITS; c += S::WIDTH) {
    const int byte = (S::col() + c) * UNIT;
    if (S::UNITS % S::WIDTH != 0 && byte >= CHUNKS * 16) break;
    const char *at = from + S::row() * stride + byte;
#pragma unroll 1
    for (int pass = 0; pass < PASSES; pass += N, at += N * (S::STEP * stride))
      load_units<N, PASSES % N == 0 && ROWS % S::STEP == 0 ? 0 : ROWS, CHUNKS, PAIRS, ROW_BYTES>(
          tile, S::row() + pass * S::STEP, byte, at, stride, [=](int row) { return (u32)(row - first) <= (u32)(last - first); });
  }
//| end
}
