//| -- Of a program whose mask has runs of rows that are told by the launch alone, such as chunks: after mask_run().
// Tiles that begin where runs of rows do. A tile with rows of two walks the keys of both, and its warpgroups wait for each other's. A run's
// first tile has the fewest rows, which see the fewest keys; of runs shorter than a tile one has several. Where there would be more than
// five for four of as many rows as tiles hold, they begin anywhere.
struct RunTiles {
  int first, rows;          // rows of the first run, and of each other, or of some together
  int of_first, each, all;  // tiles
};
__device__ __forceinline__ int tiles_of_rows(int rows) { return (rows + BR - 1) / BR; }
__device__ __forceinline__ RunTiles run_tiles(const Params &p) {
  const int sq = (int)p.sq;
  const MaskRun run = mask_run(p, score_tile(p, sequence_of(p, 0), 0));
  RunTiles r;
  const bool several = run.rows < BR;
  r.first = min(several ? run.first + max(BR - run.first, 0) / run.rows * run.rows : run.first, sq);
  r.rows = several ? BR / run.rows * run.rows : run.rows;
  r.of_first = tiles_of_rows(r.first), r.each = tiles_of_rows(r.rows);
  const int whole = (sq - r.first) / r.rows;
  r.all = r.of_first + whole * r.each + tiles_of_rows(sq - r.first - whole * r.rows);
  if (4 * r.all > 5 * tiles_of_rows(sq)) r.first = sq, r.of_first = r.all = tiles_of_rows(sq);
  return r;
}
