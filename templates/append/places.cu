//| needs "l.folded l.sequences"
// ---- where rows go ----
//| if p.has_lengths then
//|   include "pairs/rows.cu"
// The last sequence whose first row is not after a packed row.
__device__ __forceinline__ int sequence_with(const Params &p, int token) {
  int low = 0, high = p.b;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (p.cu_seqlens_q[middle] <= token)
      low = middle;
    else
      high = middle;
  }
  return low;
}
//| end

// A row's place in the cache, and the position that it is rotated by.
struct Place {
  long long page;  // of a cache without pages: the sequence
  long long row;   // in it
//| if p.has_slots then
  long long slot;
//| end
//| if l.folded then
  int sequence;
//| end
//| if p.rotary > 0 then
  long long position;
  bool turns;  // it has cosines and sines
//| end
  bool used;   // it is a row of some sequence
  bool kept;   // it has a place
};

// What lists say of a row: it may be read before the row's turn comes.
struct Told {
//| if p.has_slots then
  long long slot;
//| end
//| if p.rotary > 0 and p.has_positions then
  $(p.has_positions64 and "long long" or "int") position;
//| end
};
__device__ __forceinline__ Told told_of(const Params &p, int token) {
  Told told;
//| if p.has_slots then
  told.slot = p.slots[token];
//| end
//| if p.rotary > 0 and p.has_positions then
  told.position = ((const $(p.has_positions64 and "long long" or "int") *)p.positions)[token];
//| end
  return told;
}

__device__ __forceinline__ Place place_of(const Params &p, int token, const Told &told) {
  Place at;
  at.used = true;
//| if l.sequences then
//|   if p.has_lengths then
  const bool packed = p.cu_seqlens_q != nullptr;
  const int index = packed ? sequence_with(p, token) : token / p.sq;
  const Rows q = rows_of(p.cu_seqlens_q, p.seqlens_q, index, p.sq, p.total_q);
  const Rows k = rows_of(p.cu_seqlens_k, p.seqlens_k, index, p.sk, p.total_k);
  const int i = token - (packed ? q.first : index * p.sq);
  [[maybe_unused]] const int key = k.length - q.length + i;
  at.used = i >= 0 && i < q.length;
//|   else
  const int index = token / p.sq;
  [[maybe_unused]] const int key = p.sk - p.sq + token % p.sq;
//|   end
//| end
//| if l.folded then
  at.sequence = index;
//| end
//| if p.has_slots then
  at.slot = told.slot;
  at.kept = at.used && at.slot >= 0 && at.slot < (long long)p.pages * p.page_size;
  if (at.kept) {
    at.page = at.slot >> 32 ? at.slot / p.page_size : (u32)at.slot / (u32)p.page_size;
    at.row = at.slot - at.page * p.page_size;
  }
//| else
  at.kept = at.used && key >= 0;
//|   if p.has_pages then
  if (at.kept) {
    const int page = p.page_table[index * (long long)p.page_table_stride + key / p.page_size];
    at.page = page;
    at.row = key % p.page_size;
    at.kept = page >= 0 && page < p.pages;
  }
//|   elseif p.has_lengths then
  at.page = p.cu_seqlens_k != nullptr ? 0 : index;
  at.row = k.first + key;
//|   else
  at.page = index;
  at.row = key;
//|   end
//| end
//| if p.rotary > 0 then
//|   if p.has_positions then
  at.position = told.position;
//|   else
  at.position = key;
//|   end
  at.turns = at.position >= 0 && at.position < p.rotary_positions;
  at.kept = at.kept && at.turns;
//| end
  return at;
}
__device__ __forceinline__ Place place_of(const Params &p, int token) { return place_of(p, token, told_of(p, token)); }
