//| needs "l.spread l.sums"
//| local first = l.spread and "unit.head" or l.sums and "unit.kv_head * p.group" or "first_head(p, unit)"
//| local members = l.spread and "unit.heads" or l.sums and "p.group" or "p.members"
// ---- which blocks of queries a tile of keys meets, where a score program's mask says so ----
// The thread that copies finds them, head by head, and leaves beside each what it is.
__device__ __forceinline__ int first_of(const Params &p, const Unit &unit) { return $(first); }
__device__ __forceinline__ int members_of(const Params &p, const Unit &unit) { return $(members); }

// Blocks of BR queries of a head that some pair with the tile's keys is of: by whole warps.
__device__ __forceinline__ int count_blocks(const Params &p, const Sequence &sequence, int head, int key0) {
  const Marks marks = marks_of_keys(p, sequence, head, key0, KEYS);
  int blocks = 0;
  for (int n = threadIdx.x % 32; n < marks.words; n += 32) {
    const u32 some = (u32)marks.word(n).x;
    blocks += __popc(BR == 64 ? some : (some | some >> 1) & 0x55555555u);
  }
#pragma unroll
  for (int i = 16; i > 0; i /= 2) blocks += __shfl_xor_sync(~0u, blocks, i);
  return blocks;
}
// Those of all heads, by their number alone: none where hi < lo.
struct QueryBlocks {
  int lo, hi;
};
__device__ __forceinline__ QueryBlocks query_blocks(const Params &p, const Unit &unit, const Sequence &sequence, int key0) {
  int blocks = 0;
#pragma unroll 1
  for (int member = 0; member < members_of(p, unit); member++) blocks += count_blocks(p, sequence, first_of(p, unit) + member, key0);
  return {0, blocks - 1};
}

// What a block in a buffer is: of which head, and whether a pair of 64 of its keys may be hidden.
struct Code {
  u32 bits, head;
  __device__ __forceinline__ int block() const { return (int)(bits >> 2); }
  __device__ __forceinline__ bool whole(int wg) const { return (bits >> wg & 1) == 0; }
};
__device__ __forceinline__ void leave_code(u32 smem, const Ring<STAGES> &ring, const Marks &marks, int head, int block) {
  u32 bits = (u32)block << 2;
#pragma unroll
  for (int i = 0; i < KEYS / 64; i++) bits |= marks.line(i).all(block * BR, BR) ? 0u : 1u << i;
  store_shared(smem + SMEM_CODES + ring.at * 8, bits);
  store_shared(smem + SMEM_CODES + ring.at * 8 + 4, (u32)head);
}
__device__ __forceinline__ Code load_code(u32 smem, const Ring<STAGES> &ring) {
  return {load_shared(smem + SMEM_CODES + ring.at * 8), load_shared(smem + SMEM_CODES + ring.at * 8 + 4)};
}
