//| needs "l.chunks l.chunks_v l.ctas l.heads? l.low? l.pdl"
//| -- What a block fetches into the L2 while earlier work of the CUDA stream still runs.
//| local kb, vb = "D * (int)sizeof(element)", "DV * (int)sizeof(element)"
//| if l.low then kb, vb = "K_BYTES", "V_BYTES" end
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| local paged = p.has_pages
//| local thread, threads = "threadIdx.x", "THREADS"
//| if l.heads then thread, threads = "threadIdx.x % HEAD_THREADS", "HEAD_THREADS" end
//| if l.pdl and not p.has_lengths and not pr.has_mask then  -- which keys are seen tell operands of a program's mask

// Earlier work in the CUDA stream may still run: no byte is read before it has ended. But the first keys of the share can be on their way
// to the L2, where later writes find them.
__device__ __forceinline__ void prefetch(const Params &p, const Split &split) {
  constexpr int LINE = 128, KEYS = $(math.max(1, 131072 // ((l.heads or 1) * l.ctas * (l.chunks + l.chunks_v) * 16)));
  const Walk &walk = split.walk;
  if (walk.left <= 0) return;
  const Sequence sequence = sequence_of(p, walk.batch);
  const Tile tile = tile_of(p, sequence, walk);
  const int first = max((tile.first_block + walk.iteration * GROUPS) * BC, tile.range.key_lo);
//|   if l.low then
  // None of another block's: what begins later begins its own keys later.
  const int keys = min(min(KEYS, tile.range.key_hi - first + 1), (walk.end - walk.iteration) * (GROUPS * BC));
  auto lines = [&](const void *base, long long at, long long stride, int bytes, long long size) {
    const long long step = stride * size;
    const char *row = (const char *)base + (at + first * stride) * size + $(thread) * step;
#pragma unroll 1
    for (int i = $(thread); i < keys; i += $(threads), row += $(threads) * step)
#pragma unroll
      for (int line = 0; line < bytes; line += LINE) asm volatile("prefetch.global.L2 [%0];" ::"l"(row + line));
  };
//|   else
  const int keys = min(KEYS, tile.range.key_hi - first + 1);
  auto lines = [&](const void *base, long long at, long long stride, int bytes) {
    const int each = (bytes + LINE - 1) / LINE;
    const char *const from = (const char *)base + (at + first * stride) * (long long)sizeof(element);
    const long long step = stride * (long long)sizeof(element);
#pragma unroll 1
    for (int i = $(thread); i < keys * each; i += $(threads))
      asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i / each * step + i % each * LINE));
  };
//|   end
  lines(p.k, sequence.k() + tile.kv_head * p.k_sh, p.k_ss, $(kb)$(l.low and ", sizeof(k_element)" or ""));
  lines(p.v, sequence.v() + tile.kv_head * p.v_sh, p.v_ss, $(vb)$(l.low and ", sizeof(v_element)" or ""));
}
//| end
//| if l.pdl and p.has_lengths and not p.has_batch_invariant and not pr.has_mask then

// The same, by what the lengths$(paged and ", and the entries of the page table," or "") seem to be; a row of the wrong keys costs its
// transfer alone. A thread has a row of K and V. A share that the L2 may hold, of 384 KB for an SM, would be no faster, and begin later.
__device__ __forceinline__ void prefetch(const Params &p, const Split &split) {
  constexpr int LINE = 128, KEYS = $(math.max(1, 131072 // ((l.heads or 1) * l.ctas * (l.chunks + l.chunks_v) * 16)));
  const Walk &walk = split.walk;
  if (walk.left <= 0 || walk.iteration >= walk.iterations || split.size * (GROUPS * BC) <= 3 * KEYS) return;
  const Sequence sequence = sequence_of<true>(p, walk.batch);
  const Tile tile = tile_of(p, sequence, walk);
  const int first = max((tile.first_block + walk.iteration * GROUPS) * BC, tile.range.key_lo);
  const int keys = min(min(KEYS, tile.range.key_hi - first + 1), (walk.end - walk.iteration) * (GROUPS * BC));
  auto row = [&](const void *base, long long at, int bytes$(l.low and ", long long size" or "")) {
    const char *const from = (const char *)base + at * $(l.low and "size" or "(long long)sizeof(element)");
#pragma unroll
    for (int line = 0; line < bytes; line += LINE) asm volatile("prefetch.global.L2 [%0];" ::"l"(from + line));
  };
//|   if l.low and paged then
  // Pages of several rows are looked up side by side.
  constexpr int BATCH = 4;
#pragma unroll 1
  for (int i = $(thread); i < keys; i += BATCH * $(threads)) {
    u32 pages[BATCH];
    int tokens[BATCH];
#pragma unroll
    for (int n = 0; n < BATCH; n++) {
      const int key = first + min(i + n * $(threads), keys - 1), entry = (int)((u32)key / (u32)p.page_size);
      tokens[n] = key - entry * p.page_size;
      pages[n] = word<true>(p.page_table + (long long)walk.batch * p.page_table_stride + entry);
    }
#pragma unroll
    for (int n = 0; n < BATCH; n++) {
      if (pages[n] >= (u32)p.pages || i + n * $(threads) >= keys) continue;
      row(p.k, pages[n] * sequence.k_page() + tokens[n] * p.k_ss + tile.kv_head * p.k_sh, K_BYTES, sizeof(k_element));
      row(p.v, pages[n] * sequence.v_page() + tokens[n] * p.v_ss + tile.kv_head * p.v_sh, V_BYTES, sizeof(v_element));
    }
  }
//|   else
#pragma unroll 1
  for (int i = $(thread); i < keys; i += $(threads)) {
    const int key = first + i;
//|   if paged then
    const int entry = (int)((u32)key / (u32)p.page_size), token = key - entry * p.page_size;
    const u32 page = word<true>(p.page_table + (long long)walk.batch * p.page_table_stride + entry);
    if (page >= (u32)p.pages) continue;
    row(p.k, page * sequence.k_page() + token * p.k_ss + tile.kv_head * p.k_sh, $(kb)$(l.low and ", sizeof(k_element)" or ""));
    row(p.v, page * sequence.v_page() + token * p.v_ss + tile.kv_head * p.v_sh, $(vb)$(l.low and ", sizeof(v_element)" or ""));
//|   else
    row(p.k, sequence.k() + key * p.k_ss + tile.kv_head * p.k_sh, $(kb)$(l.low and ", sizeof(k_element)" or ""));
    row(p.v, sequence.v() + key * p.v_ss + tile.kv_head * p.v_sh, $(vb)$(l.low and ", sizeof(v_element)" or ""));
//|   end
  }
//|   end
}
//| end
//| if paged then

// Fetches the table to the L2 while the lengths are looked up, which decide on the entries of the share: the rows of the sequences that the
// thread block would have if all were as long, up to a cache line for each thread. A prefetch reads no byte: earlier work in the CUDA
// stream may still write them.
__device__ __forceinline__ void prefetch_table(const Params &p) {
  constexpr int LINE = 32;  // entries
  const int entry = (int)threadIdx.x * LINE;
  if (!in_table(p, entry)) return;
  const int first = (int)$(wk.share("p.b")), last = min(first + (int)divide(p.b, $(wk.blocks)), p.b - 1);
#pragma unroll 1
  for (int row = first; row <= last; row++)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p.page_table + (long long)row * p.page_table_stride + entry));
}
//| end
