//| local program = p.score
// ---- tiles that begin where what the mask reads of rows changes, and whose keys do ----
// Documents, most of all: of rows of two of them a tile would walk over the keys of both.
struct RunTile {
  int row, upto, from, end;  // its rows, and its first key; the end of the run, or -1: rows and keys are those of any tile
  __device__ __forceinline__ bool of_run() const { return end >= 0; }
  // What an equality is on a block of keys, of those up to `last`, which other conditions leave: 0 hides all pairs, 2 none, 1 maybe some.
  __device__ __forceinline__ int class_of(int block, int last) const {
    const int key = from + block * BC;
    return key >= end ? 0 : min(key + BC - 1, last) < end ? 2 : 1;
  }
};
// The runs of a sequence whose values rise, as a bit for each row with which one begins: of the rows before each 32, how many do.
struct RunsOfRows {
  const u32 *changes;
  const int *before;
  bool known;
  __device__ __forceinline__ int run_of(int row) const {
    return before[row / 32] + __popc(changes[row / 32] & (2u << row % 32) - 1);
  }
  // What an equality is on these rows and keys, as RunTile::class_of() has it.
  __device__ __forceinline__ int class_of(int row, int end, int key, int last) const {
    const int lo = run_of(row), hi = run_of(end), key_lo = run_of(key), key_hi = run_of(last);
    return key_hi < lo || hi < key_lo ? 0 : lo == key_hi && hi == key_lo ? 2 : 1;
  }
};
__device__ __forceinline__ int head_tiles(const Params &p) { return (p.sq + BR - 1) / BR; }
// So many a sequence may have: tiles that are short are many.
__device__ __forceinline__ int run_tiles_most(const Params &p) {
  const int tiles = head_tiles(p);
  return min(2 * tiles - 1, tiles + (tiles + 3) / 4);
}
//| local place = program.marks_by_b and "batch" or "0"
// A sequence's tiles, the last one first, and -1 for the row of what is none; after them their number stands.
__device__ __forceinline__ int4 *run_tile_at(const Params &p, int batch, int number) {
  return (int4 *)p.mask_tiles + $(place) * (2ll * head_tiles(p)) + number;
}
__device__ __forceinline__ RunTile run_tile(const Params &p, int batch, int number) {
  const int4 of = *run_tile_at(p, batch, number);
  return {of.x, of.y, of.z, of.w};
}
__device__ __forceinline__ int run_tiles(const Params &p, int batch) { return run_tile_at(p, batch, 2 * head_tiles(p) - 1)->x; }
