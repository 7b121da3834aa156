//| needs "l.delta_pad? l.pdl? l.rows_from? l.rows_upto? l.shared? l.stream? l.tile_rows? l.tma?"
// ---- the sequence that a tile belongs to ----
//| if p.has_lengths then
// All that may differ between the sequences of a batch: lengths, diagonals, and where the rows lie. Queries and keys are counted from the
// sequence's own first. What device memory says is clamped: to the maxima, to the rows that are allocated, and before the next
// sequence.
struct Sequence {
  const Params &p;
  int index;              // in the batch
  int first_q, first_k;   // rows before its first, where packed
  int length_q, length_k;
//|   if p.mask ~= "none" then
  int diagonal_lo, diagonal_hi;
//|   end
  // Its queries and keys.
  __device__ __forceinline__ int sq() const { return length_q; }
  __device__ __forceinline__ int sk() const { return length_k; }
//|   if p.mask ~= "none" then
  // Query i sees key j when i + diag_lo() <= j <= i + diag_hi().
//|     if p.mask == "window" then
  __device__ __forceinline__ int diag_lo() const { return diagonal_lo; }
//|     end
  __device__ __forceinline__ int diag_hi() const { return diagonal_hi; }
//|   end
//|   if l.tma then
  // Coordinates of the tensor maps, which span all that is allocated.
  __device__ __forceinline__ int map_query(int query) const { return first_q + query; }
  __device__ __forceinline__ int map_batch_q() const { return p.cu_seqlens_q != nullptr ? 0 : index; }
//|     if not p.has_pages then
  __device__ __forceinline__ int map_key(int key) const { return first_k + key; }
  __device__ __forceinline__ int map_batch_k() const { return p.cu_seqlens_k != nullptr ? 0 : index; }
//|     end
//|   end
//|   if not l.tma or p.op == "forward" or p.score and p.score.reads then
  // Before its first row, in elements of the tensor. The stride of the batch is 0 where sequences are packed.
  __device__ __forceinline__ long long q() const { return index * p.q_sb + first_q * p.q_ss; }
//|   end
//|   if l.tma and p.op ~= "forward" and not (p.score and p.score.reads) then
//|   elseif p.has_pages then
  // From a page to the next.
  __device__ __forceinline__ long long k_page() const { return p.k_sb; }
  __device__ __forceinline__ long long v_page() const { return p.v_sb; }
//|   else
  __device__ __forceinline__ long long k() const { return index * p.k_sb + first_k * p.k_ss; }
  __device__ __forceinline__ long long v() const { return index * p.v_sb + first_k * p.v_ss; }
//|   end
  __device__ __forceinline__ long long o() const { return index * p.o_sb + first_q * p.o_ss; }
//|   if p.op == "backward" then
  __device__ __forceinline__ long long grad_o() const { return index * p.grad_o_sb + first_q * p.grad_o_ss; }
  __device__ __forceinline__ long long grad_q() const { return index * p.grad_q_sb + first_q * p.grad_q_ss; }
  __device__ __forceinline__ long long grad_k() const { return index * p.grad_k_sb + first_k * p.grad_k_ss; }
  __device__ __forceinline__ long long grad_v() const { return index * p.grad_v_sb + first_k * p.grad_v_ss; }
  // Index of a query's D: [b, hq, sq], packed or not. More rows may be allocated than sequences have.
  __device__ __forceinline__ long long delta(long long head, long long query) const {
//|     if l.delta_pad then
    return (index * (long long)p.hq + head) * ((p.sq + $(l.delta_pad - 1)) / $(l.delta_pad) * $(l.delta_pad)) + query;
//|     else
    return (index * (long long)p.hq + head) * p.sq + query;
//|     end
  }
//|   end
//|   if p.has_dropout then
  __device__ __forceinline__ long long number() const { return index; }  // in the batch
//|   end
  // Index of a query's LSE.
  __device__ __forceinline__ long long lse(long long head, long long query) const {
    return index * p.lse_sb + head * p.lse_sh + (first_q + query) * p.lse_ss;
  }
};

//|   if l.stream or l.shared then
// A line of 32 integers, which the keys that stream through the L2 shall not drive out: the launch for the next layer reads it again.
__device__ __forceinline__ void keep_in_l2(const int *line) { asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(line)); }
// The arrays of lengths and of first rows. To be called by one warp.
__device__ __forceinline__ void keep_lengths_in_l2(const Params &p) {
  const int *const lists[] = {p.cu_seqlens_q, p.cu_seqlens_k, p.seqlens_q, p.seqlens_k};
  for (int i = (int)threadIdx.x % 32 * 32; i < p.b; i += 1024)
#pragma unroll
    for (const int *list : lists)
      if (list != nullptr) keep_in_l2(list + i);
}
//|     if p.has_pages then
// Whether the rows of the page table have the entry.
__device__ __forceinline__ bool in_table(const Params &p, int entry) { return (long long)entry * p.page_size < p.sk; }
//|     end
//|   end
//|   local early = l.stream and l.pdl
//|   include "pairs/rows.cu"
//|   local rows = early and "rows_of<EARLY>" or "rows_of"
//|   local function of_rows()
//|   if p.mask ~= "none" then
  const int off = p.relative ? k.length - q.length : 0;
  const int lo = min(max(off + p.shift_lo, -q.length), k.length), hi = min(max(off + p.shift_hi, -q.length), k.length);
  return {p, index, q.first, k.first, q.length, k.length, lo, hi};
//|   else
  return {p, index, q.first, k.first, q.length, k.length};
//|   end
//|   end
//|   if l.tile_rows then
// The same of rows that are known.
__device__ __forceinline__ Sequence sequence_with(const Params &p, int index, const Rows &q, const Rows &k) {
//|     of_rows()
}
//|   end
//|   if early then
template <bool EARLY = false>
//|   end
__device__ __forceinline__ Sequence sequence_of(const Params &p, int index) {
//|   if l.rows_from then
  Rows q = $(rows)(p.cu_seqlens_q, p.seqlens_q, index, p.sq, p.total_q);
  if (q.length * p.group < $(l.rows_from)) q.length = 0;  // the next kernel's
//|   elseif l.rows_upto then
  Rows q = $(rows)(p.cu_seqlens_q, p.seqlens_q, index, p.sq, p.total_q);
  if (q.length * p.group > $(l.rows_upto)) q.length = 0;  // the kernel's before
//|   else
  const Rows q = $(rows)(p.cu_seqlens_q, p.seqlens_q, index, p.sq, p.total_q);
//|   end
  const Rows k = $(rows)(p.cu_seqlens_k, p.seqlens_k, index, p.sk, p.total_k);
//|   of_rows()
}
//| else
// All that may differ between the sequences of a batch: lengths, diagonals, and where the rows lie. Queries and keys are counted from the
// sequence's own first. In a dense batch lengths and diagonals are the launch's, so only the index is kept in registers.
struct Sequence {
  const Params &p;
  long long batch;
  // Its queries and keys.
  __device__ __forceinline__ int sq() const { return p.sq; }
  __device__ __forceinline__ int sk() const { return p.sk; }
//|   if p.mask ~= "none" then
  // Query i sees key j when i + diag_lo() <= j <= i + diag_hi().
//|     if p.mask == "window" then
  __device__ __forceinline__ int diag_lo() const { return p.diag_lo; }
//|     end
  __device__ __forceinline__ int diag_hi() const { return p.diag_hi; }
//|   end
//|   if l.tma then
  // Coordinates of the tensor maps. Those of K and V begin with the first key that some row sees.
  __device__ __forceinline__ int map_batch() const { return (int)batch; }
//|     if p.op == "backward" and p.mask ~= "none" then
  // And those of Q and dO with the first query that sees one.
  __device__ __forceinline__ int map_query(int query) const { return query - max(0, -p.diag_hi); }
//|     else
  __device__ __forceinline__ int map_query(int query) const { return query; }
//|     end
  __device__ __forceinline__ int map_key(int key) const { return key - p.key_base; }
//|   end
//|   if not l.tma or p.op == "forward" or p.score and p.score.reads then
  // Before its first row, in elements of the tensor.
  __device__ __forceinline__ long long q() const { return batch * p.q_sb; }
  __device__ __forceinline__ long long k() const { return batch * p.k_sb; }
  __device__ __forceinline__ long long v() const { return batch * p.v_sb; }
//|   end
  __device__ __forceinline__ long long o() const { return batch * p.o_sb; }
//|   if p.op == "backward" then
  __device__ __forceinline__ long long grad_o() const { return batch * p.grad_o_sb; }
  __device__ __forceinline__ long long grad_q() const { return batch * p.grad_q_sb; }
  __device__ __forceinline__ long long grad_k() const { return batch * p.grad_k_sb; }
  __device__ __forceinline__ long long grad_v() const { return batch * p.grad_v_sb; }
  // Index of a query's D.
//|     if l.delta_pad then
  __device__ __forceinline__ long long delta(long long head, long long query) const {
    return (batch * p.hq + head) * ((p.sq + $(l.delta_pad - 1)) / $(l.delta_pad) * $(l.delta_pad)) + query;
  }
//|     else
  __device__ __forceinline__ long long delta(long long head, long long query) const { return (batch * p.hq + head) * p.sq + query; }
//|     end
//|   end
//|   if p.has_dropout then
  __device__ __forceinline__ long long number() const { return batch; }
//|   end
  // Index of a query's LSE.
//|   if p.has_lse_strides then
  __device__ __forceinline__ long long lse(long long head, long long query) const {
    return batch * p.lse_sb + head * p.lse_sh + query * p.lse_ss;
  }
//|   else
  __device__ __forceinline__ long long lse(long long head, long long query) const { return (batch * p.hq + head) * p.sq + query; }
//|   end
};
__device__ __forceinline__ Sequence sequence_of(const Params &p, long long batch) { return {p, batch}; }
//| end
