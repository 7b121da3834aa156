//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| local number = p.has_lengths and "sequence.index" or "(int)sequence.batch"
//| local of_sequence = p.score.marks_by_b and number or "0"
//| local heads, of_head = p.score.marks_by_h and "p.hq" or "1", p.score.marks_by_h and "head" or "0"
// ---- tiles of 64 queries and 64 keys that hold a pair which both masks leave ----
__device__ __forceinline__ int mark_words(int n) { return (n + 2047) / 2048; }

// Marks of a line of tiles: bit t % 32 of word t / 32 is that of the t-th tile, of 64 keys with each 64 queries, or the other way around.
// x: both masks leave some pair; y: they leave all, none of which is past a last one. Of several lines side by side together.
struct Marks {
  const int2 *from;
  int lines, words;
  __device__ __forceinline__ int2 word(int n) const {
    int2 both = make_int2(0, lines > 0 ? -1 : 0);
    for (int i = 0; i < lines; i++) {
      const int2 one = from[i * words + n];
      both.x |= one.x, both.y &= one.y;
    }
    return both;
  }
  __device__ __forceinline__ Marks line(int n) const { return {from + n * words, min(lines - n, 1), words}; }
  // Of up to LINES: tiles of word n that hold some pair; which lines hold one of tile 32 n + bit, a bit for each.
  template <int LINES>
  __device__ __forceinline__ u32 tiles_of(int n) const {
    u32 some = 0;
#pragma unroll
    for (int i = 0; i < LINES; i++) some |= i < lines ? (u32)from[i * words + n].x : 0;
    return some;
  }
  template <int LINES>
  __device__ __forceinline__ u32 lines_of(int n, int bit) const {
    u32 some = 0;
#pragma unroll
    for (int i = 0; i < LINES; i++) some |= (i < lines ? (u32)from[i * words + n].x >> bit & 1 : 0) << i;
    return some;
  }
  // The first block from `block` on that meets a tile with some pair, -1 where there is none. Of SIZE queries, or keys.
  template <int SIZE>
  __device__ __forceinline__ int next(int block) const {
    int tile = block * SIZE / 64;
#pragma unroll 1
    for (int n = tile / 32; n < words; n++, tile = n * 32) {
      const u32 some = (u32)word(n).x >> tile % 32;
      if (some != 0) return max(block, (tile + __ffs((int)some) - 1) * 64 / SIZE);
    }
    return -1;
  }
  // x: some pair of those from `first` to `last`; y: all of them.
  __device__ __forceinline__ int2 between(int first, int last) const {
    int2 both = make_int2(0, 1);
#pragma unroll 1
    for (int tile = first / 64; tile <= last / 64; tile++) {
      const int2 one = tile / 32 < words ? word(tile / 32) : make_int2(0, 0);
      both.x |= one.x >> tile % 32 & 1, both.y &= one.y >> tile % 32;
    }
    return both;
  }
  __device__ __forceinline__ bool some(int first, int n) const { return between(first, first + n - 1).x != 0; }
  __device__ __forceinline__ bool all(int first, int n) const { return between(first, first + n - 1).y != 0; }
};
// A walk over the tiles of a line, or of several. No word is read twice.
struct MarkWalk {
  int word = -1, bit = 0;
  u32 left = 0;
  // The next tile, -1 at the end. read(n): the tiles of word n.
  template <class Read>
  __device__ __forceinline__ int next(int words, const Read &read) {
    while (left == 0) {
      if (++word >= words) return -1;
      left = read(word);
    }
    bit = __ffs((int)left) - 1;
    left &= left - 1;
    return word * 32 + bit;
  }
};
// A word that all lanes of a warp have. By a vote, of which the compiler knows it: addresses of products stay in uniform registers.
__device__ __forceinline__ u32 by_vote(u32 word) { return __ballot_sync(~0u, word >> threadIdx.x % 32 & 1); }
__device__ __forceinline__ Marks marks_of(const void *marks, int place, int length, int others, int first, int n) {
  const int lines = (length + 63) / 64, words = mark_words(others), line = first / 64;
  return {(const int2 *)marks + ((long long)place * lines + line) * words, min((first + n - 1) / 64, lines - 1) - line + 1, words};
}
// Of n keys from `key` on with the head's queries, and of n queries from `row` on with its keys.
__device__ __forceinline__ Marks marks_of_keys(const Params &p, const Sequence &sequence, int head, int key, int n) {
  return marks_of(p.marks_keys, $(of_sequence) * $(heads) + $(of_head), p.sk, p.sq, key, n);
}
__device__ __forceinline__ Marks marks_of_queries(const Params &p, const Sequence &sequence, int head, int row, int n) {
  return marks_of(p.marks_queries, $(of_sequence) * $(heads) + $(of_head), p.sq, p.sk, row, n);
}

// ---- the kernel that makes them ----
// What both masks are on a tile: 0 hides all pairs, 2 leaves all, 1 whatever else.
__device__ __forceinline__ int mark_of(const Params &p, const Sequence &sequence, const ScoreTile &t, int row, int key) {
  const int last_row = min(row + 63, t.sq - 1), last = min(key + 63, t.sk - 1);
  if (row > last_row || key > last || $(pr.first_key("row")) > last || $(pr.last_key("last_row")) < key) return 0;
  const int is = mask_class(p, t, t.h, t.h, row, last_row, key, last);
  const bool all = $(pr.first_key("last_row")) <= key && $(pr.last_key("row")) >= key + 63 && row + 63 < t.sq;
  return is == 2 && !all ? 1 : is;
}
// A warp makes a word: both ways, so that blocks of keys and of queries find theirs side by side.
extern "C" __global__ void __launch_bounds__(256) fa_mask_marks(const __grid_constant__ Params p) {
  const int lane = (int)threadIdx.x % 32, lines_k = (p.sk + 63) / 64, lines_q = (p.sq + 63) / 64;
  const int words_k = mark_words(p.sq), words_q = mark_words(p.sk);
  const long long heads = (long long)$(p.score.marks_by_b and "p.b" or "1") * $(heads);
  const long long of_keys = heads * lines_k * words_k, all = of_keys + heads * lines_q * words_q;
  for (long long job = $(wk.block) * 8 + (int)threadIdx.x / 32; job < all; job += $(wk.blocks) * 8) {
    const bool by_keys = job < of_keys;
    const long long at = by_keys ? job : job - of_keys;
    const int words = by_keys ? words_k : words_q, lines = by_keys ? lines_k : lines_q;
    const int tile = ((int)(at % words) * 32 + lane) * 64, line = (int)(at / words % lines) * 64, place = (int)(at / words / lines);
    const Sequence sequence = sequence_of(p, place / $(heads));
    const ScoreTile t = score_tile(p, sequence, place % $(heads));
    const int is = mark_of(p, sequence, t, by_keys ? tile : line, by_keys ? line : tile);
    const u32 some = __ballot_sync(~0u, is != 0), full = __ballot_sync(~0u, is == 2);
    if (lane == 0) ((int2 *)(by_keys ? p.marks_keys : p.marks_queries))[at] = make_int2((int)some, (int)full);
  }
}
