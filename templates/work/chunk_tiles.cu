//| needs "c.br c.ctas"
//| -- Tiles that begin with a run of rows whose keys begin alike, as chunks do, or with the first multiple of 64 in it: of rows of two of
//| -- them a tile would walk over the keys of both. A warpgroup's 64 rows lie in one tile.
struct ChunkTiles {
  static constexpr int LAST = $(512 * c.ctas);  // tiles of a launch
  int lead, length;  // rows before the first run that begins within the sequence; of each run but these and the last
  int all;           // tiles of a head
  __device__ __forceinline__ static int lines_of(int rows) { return (rows + 63) / 64; }
  __device__ __forceinline__ static int tiles_of(int rows) { return (rows + $(c.br - 1)) / $(c.br); }
  __device__ __forceinline__ int total(const Params &p) const { return all * p.hq * p.b; }
  // Of all heads at the same rows side by side, the last rows first.
  __device__ __forceinline__ Tile tile(const Params &p, int index) const {
    const int heads = p.hq * p.b, number = index / heads, at = index - number * heads, rows = sequence_of(p, 0).sq();
    const int before = tiles_of(lead), each = tiles_of(length), runs = (rows - lead) / length;
    int n = all - 1 - number, begin = 0, end = lead, tiles = before;
    // Of the first runs, whose tiles come last, first the last tile of each, which sees most: all thread blocks end together.
    const int few = min(LAST / (heads * each), runs), into = n - before;
    if (into >= 0 && into < few * each) n = before + into % few * each + into / few;
    if (n >= before) {
      const int run = min((n - before) / each, runs), from = lead + run * length;
      n -= before + run * each;
      begin = lines_of(from) * 64, end = run < runs ? from + length : rows, tiles = run < runs ? each : tiles_of(rows - begin);
    }
    end = min(lines_of(end) * 64, rows);
    // The tile that is not full is a run's first, which sees least; runs may have a line less than others, and as many tiles.
    const int lines = lines_of(end - begin), spare = tiles * WGS - lines;
    Tile w;
    w.row = begin + max(n * WGS - spare, n) * 64;
    w.upto = n + 1 < tiles ? begin + max((n + 1) * WGS - spare, n + 1) * 64 : end;
    w.batch = at / p.hq;
    w.head = at % p.hq;
    w.kv_head = w.head / p.group;
    return w;
  }
};
// The sequence is one run where runs are many: their tiles would be short.
__device__ __forceinline__ ChunkTiles chunk_tiles_of(const Params &p) {
  const Sequence sequence = sequence_of(p, 0);
  const MaskRuns runs = mask_runs(p, score_tile(p, sequence, 0), 0);
  const int rows = sequence.sq(), usual = ChunkTiles::tiles_of(rows), past = runs.first % runs.length;
  const int into = past < 0 ? past + runs.length : past;
  const int lead = min(into > 0 ? runs.length - into : 0, rows), length = min(runs.length, rows), whole = (rows - lead) / length;
  const int rest = max(rows - ChunkTiles::lines_of(lead + whole * length) * 64, 0);
  const int all = ChunkTiles::tiles_of(lead) + whole * ChunkTiles::tiles_of(length) + ChunkTiles::tiles_of(rest);
  if (runs.length < 64 || all > usual + (usual + 3) / 4) return {0, rows, usual};
  return {lead, length, all};
}
