// ---- the sequence that a tile belongs to ----
// All that may differ between the sequences of a batch: lengths, diagonals, and where the rows lie. Queries and keys are counted from the
// sequence's own first. In a dense batch lengths and diagonals are the launch's, so only the index is kept in registers.
struct Sequence {
  const Params &p;
  long long batch;
  // Its queries and keys.
  __device__ __forceinline__ int sq() const { return p.sq; }
  __device__ __forceinline__ int sk() const { return p.sk; }
//| if p.mask ~= "none" then
  // Query i sees key j when i + diag_lo() <= j <= i + diag_hi().
//|   if p.mask == "window" then
  __device__ __forceinline__ int diag_lo() const { return p.diag_lo; }
//|   end
  __device__ __forceinline__ int diag_hi() const { return p.diag_hi; }
//| end
//| if l.tma then
  // Coordinates of the tensor maps. Those of K and V begin with the first key that some row sees.
  __device__ __forceinline__ int map_batch() const { return (int)batch; }
  __device__ __forceinline__ int map_query(int query) const { return query; }
  __device__ __forceinline__ int map_key(int key) const { return key - p.key_base; }
//| else
  // In front of its first row, in elements of the tensor.
  __device__ __forceinline__ long long q() const { return batch * p.q_sb; }
  __device__ __forceinline__ long long k() const { return batch * p.k_sb; }
  __device__ __forceinline__ long long v() const { return batch * p.v_sb; }
//| end
  __device__ __forceinline__ long long o() const { return batch * p.o_sb; }
  // Index of a query's LSE.
  __device__ __forceinline__ long long lse(long long head, long long query) const { return (batch * p.hq + head) * p.sq + query; }
};
__device__ __forceinline__ Sequence sequence_of(const Params &p, long long batch) { return {p, batch}; }
