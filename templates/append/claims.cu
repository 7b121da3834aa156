//| needs "c.claims l.entries l.lanes"
//| -- Of two rows that go to one slot the later one stays: is_overtaken(). `tokens` counts the rows.
//| local wk = include("work/work.lua").of(p, l)
//| tokens = p.has_lengths and "(p.cu_seqlens_q != nullptr ? p.total_q : p.b * p.sq)" or "p.b * p.sq"
//| if p.has_slots and c.claims ~= 1 then
// Whether a later row goes to the same slot, `own`, asked by all lanes of a team.
//|   local looks = c.claims == 0 and "is_overtaken" or "is_overtaken_by_any"
__device__ __forceinline__ bool $(looks)(const Params &p, int token, long long own, bool asks, int tokens, int lane) {
  constexpr int BATCH = 8;  // slots that are on their way at a time
  bool later = false;
  for (int i = token + 1 + lane; asks && i < tokens; i += LANES * BATCH) {
    long long slot[BATCH];
#pragma unroll
    for (int j = 0; j < BATCH; j++) slot[j] = p.slots[min(i + j * LANES, tokens - 1)];
    // No short cut: after one a load would begin where the one before has ended. The last row stands for those behind it.
    bool same = false;
#pragma unroll
    for (int j = 0; j < BATCH; j++) same |= slot[j] == own;
    for (int j = i; same && j < tokens && j < i + LANES * BATCH; j += LANES)
      if (p.slots[j] == own && place_of(p, j).kept) later = true;
  }
//|   if l.lanes > 1 then
#pragma unroll
  for (int i = LANES / 2; i > 0; i /= 2) later = __shfl_xor_sync(~0u, (int)later, i) || later;
//|   end
  return later;
}
//| end
//| if p.has_slots and c.claims > 0 then
//|   local few = c.claims == 2
//|   if few then
// The table: of each slot that some row goes to, the last such row, counted from 1. 0: free. It lies in the counters, which are 0 between
// launches: this kernel's second step leaves them so. Apart, of each row: whether a later one has its slot. The counters have room for so
// many rows; where there are more each row looks at those after it.
constexpr int ENTRIES = $(l.entries), MOST_ROWS = ENTRIES / 2;
//|   else
// The table: of each slot that some row goes to, the last such row, counted from 1. 0: free. After it, of each row: whether a later one
// has its slot.
//|   end
struct Claims {
  int *row;
  u32 entries;
  int *overtaken;
};
__device__ __forceinline__ Claims claims_of(const Params &p, int tokens) {
//|   if few then
  return {(int *)p.workspace, ENTRIES, (int *)p.claims};
//|   else
  return {(int *)p.claims, 2u * (u32)tokens, (int *)p.claims + 2ll * tokens};
//|   end
}
__device__ __forceinline__ u32 first_entry(const Claims &claims, long long slot) {
  const u64 x = (u64)slot * 0x9e3779b97f4a7c15ull;
  return (u32)((x >> 32) * claims.entries >> 32);
}

//|   if not few then
extern "C" __global__ void __launch_bounds__(THREADS) fa_clear(const __grid_constant__ Params p) {
  const int tokens = $(tokens);
//|   if a.cc >= 90 then
  asm volatile("griddepcontrol.wait;" ::: "memory");
//|   end
  for ($(wk.steps("long long", "base", "tokens", "THREADS")))
    if (base + threadIdx.x < tokens) {
      ((uint2 *)p.claims)[base + threadIdx.x] = make_uint2(0, 0);
      claims_of(p, tokens).overtaken[base + threadIdx.x] = 0;
    }
}

//|   end
extern "C" __global__ void __launch_bounds__(THREADS) fa_claim(const __grid_constant__ Params p) {
  const int tokens = $(tokens);
  const Claims claims = claims_of(p, tokens);
//|   if a.cc >= 90 then
  asm volatile("griddepcontrol.wait;" ::: "memory");
//|   end
  for ($(wk.steps("long long", "base", "tokens", "THREADS"))) {
    if (base + threadIdx.x >= tokens$(few and " || tokens > MOST_ROWS" or "")) continue;
    const int token = (int)(base + threadIdx.x);
//|   if few then
    // Before the row is in the table, where who overtakes it finds it.
    claims.overtaken[token] = 0;
    __threadfence();
//|   end
    const Place at = place_of(p, token);
    if (!at.kept) continue;
    for (u32 entry = first_entry(claims, at.slot);; entry = entry + 1 == claims.entries ? 0 : entry + 1) {
      const int other = atomicCAS(claims.row + entry, 0, token + 1);
      if (other == 0) break;
      if (p.slots[other - 1] != at.slot) continue;
      // Of this row and the last one so far the earlier is overtaken: each row is named once.
      const int last = atomicMax(claims.row + entry, token + 1);
//|   if few then
      __threadfence();  // after what the other wrote of itself
//|   end
      claims.overtaken[min(last - 1, token)] = 1;
      break;
    }
  }
}

// Whether a later row goes to the same slot.
//|   if few then
__device__ __forceinline__ bool is_overtaken(const Params &p, int token, long long own, bool asks, int tokens, int lane) {
  if (tokens > MOST_ROWS) return is_overtaken_by_any(p, token, own, asks, tokens, lane);
  return asks && claims_of(p, tokens).overtaken[token] != 0;
}
// After the step that claims, by all blocks.
__device__ __forceinline__ void clear_claims(const Params &p, int tokens) {
  if (tokens > MOST_ROWS) return;
  for ($(wk.steps("int", "base", "ENTRIES", "THREADS")))
    if (base + (int)threadIdx.x < ENTRIES) ((int *)p.workspace)[base + (int)threadIdx.x] = 0;
}
//|   else
__device__ __forceinline__ bool is_overtaken(const Params &p, int token, long long, bool asks, int tokens, int) {
  return asks && claims_of(p, tokens).overtaken[token] != 0;
}
//|   end
//| end
