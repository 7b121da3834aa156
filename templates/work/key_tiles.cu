//| needs "c.bc l.by_reach?"
//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- tiles of keys of all sequences, one after the other ----
// The next kernel's blocks are numbered so that those of a sequence, of all heads, follow each other. fa_delta leaves for each tile of
// keys, as if there were one head, whose it is: so a launch has blocks for the keys that there are, where with as many for each sequence
// as the longest has, of a hundred to an SM most would end at once.
//| if l.by_reach then
// The last tiles follow each other by how long they are, each with all heads.
//| end
struct KeyTiles {
  int batch;         // the sequence
  int first, tiles;  // of its tiles, among those of all sequences; how many it has. A last one has numbers behind them, which are of none
//| if l.by_reach then
  int at;  // the first of these tiles, among those of the sequence
//| end
};
__device__ __forceinline__ int key_tiles_of(const Sequence &sequence) { return (sequence.sk() + $(c.bc - 1)) / $(c.bc); }
//| if l.by_reach then
// How far its queries see, in tiles.
__device__ __forceinline__ int key_tiles_seen(const Sequence &sequence) {
  return ($(pr.reach) + $(c.bc - 1)) / $(c.bc);
}
//| end
// There is room for so many.
__device__ __forceinline__ int key_tiles_most(const Params &p) {
  const long long keys = p.cu_seqlens_k != nullptr ? p.total_k : (long long)p.b * p.sk;
  return (int)((keys + 127ll * p.b) / $(c.bc)) + ((keys + 127ll * p.b) % $(c.bc) != 0);
}
// upto: the first tile of the next sequence. Whatever device memory says, no more are written than there is room for.
__device__ __forceinline__ void leave_key_tiles(const Params &p, const KeyTiles &x, int upto) {
  const int end = min(upto, key_tiles_most(p));
  for (int n = x.first; n < end; n++) ((int4 *)p.key_tiles)[n] = make_int4(x.batch, x.first, x.tiles, $(l.by_reach and "x.at" or "0"));
}
__device__ __forceinline__ KeyTiles key_tiles_at(const Params &p, int n) {
  const int4 x = ((const int4 *)p.key_tiles)[n];
  return {x.x, x.y, x.z$(l.by_reach and ", x.w" or "")};
}
