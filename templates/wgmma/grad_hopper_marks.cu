//| needs "l.spread l.sums"
//| local first = l.spread and "unit.head" or l.sums and "unit.kv_head * p.group" or "first_head(p, unit)"
//| local members = l.spread and "unit.heads" or l.sums and "p.group" or "p.members"
// ---- which blocks of queries a tile of keys meets, where a score program's mask says so ----
// The thread that copies finds them, head by head, and leaves beside each what it is.
__device__ __forceinline__ int first_of(const Params &p, const Unit &unit) { return $(first); }
__device__ __forceinline__ int members_of(const Params &p, const Unit &unit) { return $(members); }

// Whether some pair of the tile's keys and a head's queries is seen: by whole warps, of which the compiler knows that all lanes hear the
// same. Where it did not, nothing of a loop would be in uniform registers.
__device__ __forceinline__ bool meets_head(const Params &p, const Sequence &sequence, int head, int key0) {
  const Marks marks = marks_of_keys(p, sequence, head, key0, KEYS);
  int some = 0;
  for (int n = threadIdx.x % 32; n < marks.words; n += 32) some |= marks.word(n).x;
  return __any_sync(~0u, some != 0);
}
// Of all heads: there are blocks where lo <= hi.
struct QueryBlocks {
  int lo, hi;
};
__device__ __forceinline__ QueryBlocks blocks_of(const Params &p, const Unit &unit, const Sequence &sequence, int key0) {
  bool any = false;
#pragma unroll 1
  for (int member = 0; member < members_of(p, unit); member++) any = any || meets_head(p, sequence, first_of(p, unit) + member, key0);
  return {0, any ? 0 : -1};
}

// What a block in a buffer is: its number, whether it is the head's first, its last, the tile's last, and whether a pair of 64 of the
// tile's keys may be hidden; and which head it is of. Read where it is needed, so that no register holds it beside the products.
struct Code {
  u32 bits;
  __device__ __forceinline__ int block() const { return (int)(bits >> 5); }
  __device__ __forceinline__ bool first() const { return (bits & 4) != 0; }
  __device__ __forceinline__ bool last_of_head() const { return (bits & 8) != 0; }
  __device__ __forceinline__ bool last() const { return (bits & 16) != 0; }
  __device__ __forceinline__ bool sees_all(int wg) const { return (bits >> wg & 1) == 0; }
};
__device__ __forceinline__ void leave_code(u32 smem, const Ring<STAGES> &ring, const Marks &marks, int head, int block, bool first,
                                           bool last_of_head, bool last) {
  u32 bits = (u32)block << 5 | (first ? 4u : 0u) | (last_of_head ? 8u : 0u) | (last ? 16u : 0u);
#pragma unroll
  for (int i = 0; i < KEYS / 64; i++) bits |= marks.line(i).all(block * BR, BR) ? 0u : 1u << i;
  store_shared(smem + SMEM_CODES + ring.at * 8, bits);
  store_shared(smem + SMEM_CODES + ring.at * 8 + 4, (u32)head);
}
// On to the next block of the tile's heads, from this one on. False: there is none.
__device__ __forceinline__ bool seek_block(const Params &p, const Sequence &sequence, int key0, int end, int &head, int &block) {
#pragma unroll 1
  for (; head < end; head++, block = 0) {
    block = marks_of_keys(p, sequence, head, key0, KEYS).next<BR>(block);
    if (block >= 0) return true;
  }
  return false;
}
__device__ __forceinline__ Code load_code(u32 smem, const Ring<STAGES> &ring) { return {load_shared(smem + SMEM_CODES + ring.at * 8)}; }
__device__ __forceinline__ int load_head(u32 smem, const Ring<STAGES> &ring) {
  return (int)load_shared(smem + SMEM_CODES + ring.at * 8 + 4);
}
