// ---- the mask, between S and the row maxima ----
// How many of the columns 8n and 8n + 1 lie below x, no more than 0 where x is: a thread holds these of a row.
__device__ __forceinline__ int columns_below(int x) { return x / 8 * 2 + min(x % 8, 2); }
// The lowest n bits, all or none where n is beyond.
__device__ __forceinline__ u32 bits_below(int n) { return n >= 32 ? ~0u : n > 0 ? (1u << n) - 1 : 0; }

// Scores of keys that their query does not see become -inf. row: this thread's first, of the sequence. Of a row, bit 2n + e stands for
// column 8n + 2t + e of the block.
__device__ __forceinline__ void apply_mask(float (&s)[NS], const Params &p, const Sequence &sequence, int row, int block, int t) {
  const int first = block * BC + 2 * t;
#pragma unroll
  for (int h = 0; h < 2; h++) {
//| if p.has_lengths then
    // Rows past the last query see what it sees: of keys that only they would see nothing is known.
    const int query = min(query_of(p, row + 8 * h), sequence.sq() - 1);
//| else
    const int query = query_of(p, row + 8 * h);
//| end
    const int below_hi = columns_below(last_key(sequence, query) + 1 - first);
//| if p.mask == "window" then
    const int below_lo = columns_below(first_key(sequence, query) - first);
//| end
#pragma unroll
    for (int word = 0; word < (NS + 63) / 64; word++) {
//| if p.mask == "window" then
      const u32 seen = bits_below(below_hi - 32 * word) & ~bits_below(below_lo - 32 * word);
//| else
      const u32 seen = bits_below(below_hi - 32 * word);
//| end
#pragma unroll
      for (int bit = 0; bit < 32; bit++) {
        const int i = 2 * (32 * word + bit - bit % 2) + 2 * h + bit % 2;
        if (i < NS && !(seen >> bit & 1)) s[i] = -infinity();
      }
    }
  }
}
