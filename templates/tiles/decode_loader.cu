//| needs "c.bk l.boxed? l.chunks l.chunks_v l.ctas l.low? l.next l.pdl l.walk"
//| local ke, ve, of, ofk, ofv = "element", "element", "element", "", ""
//| local kb, vb = "D * (int)sizeof(element)", "DV * (int)sizeof(element)"
//| if l.low then ke, ve, of, ofk, ofv, kb, vb = "k_element", "v_element", "E", ", k_element", ", v_element", "K_BYTES", "V_BYTES" end
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// ---- how K and V come to shared memory ----
//| local paged = p.has_pages
//| local run = paged and math.min(p.page, c.bk) or 0
// A group of warps copies its block of keys of every iteration, rows by 16 bytes or less; rows that no query sees become zeros and are not
// read. It runs STAGES - 1 iterations early, across tiles.
//| if paged then
constexpr int RUN = $(run);            // keys of a block that certainly lie in one page
constexpr int RUNS = BC / RUN;
//|   if run < c.bk then
// Lane i of each warp looks up run i, and a shuffle tells the others.
//|   end
//| end
struct Loader {
  const Params &p;
  $(l.walk) walk;
  int group, iteration;
  // The tile at hand.
  int first_block, key_lo, key_hi;
  const char *k, *v;
//| local tokens = {}
//| for _, x in ipairs(l.low and { "k", "v" } or {}) do
//|   if p[x .. "_scale"] == 2 then
//|     tokens[#tokens + 1] = x
  const float *$(x)_scales;
//|   end
//| end
//| if pr.scans then
  MaskIterations classes;
  Tile tile;
//| end
//| if paged then
  long long k_page, v_page;  // elements from a page to the next
  const int *table;  // of the sequence
  // Of the run that this lane looked up for the iteration: its first key, the entry of the table, the page, and its first token there.
  int key, entry, page, token;
  int step_entries, step_tokens;  // from an iteration to the next
//| end

  __device__ __forceinline__ Loader(const Params &p, const $(l.walk) &start, int group) : p(p), walk(start), group(group) {
    enter();
//| if paged then
    step_entries = (int)((u32)(GROUPS * BC) / (u32)p.page_size);
    step_tokens = GROUPS * BC - step_entries * p.page_size;
//| end
  }

  __device__ __forceinline__ void enter() {
    iteration = walk.iteration;
    if (walk.left <= 0) return;
    const Sequence sequence = sequence_of(p, walk.batch);
//| if pr.scans then
    tile = tile_of(p, sequence, walk);
    classes = MaskIterations();
//| else
    const Tile tile = tile_of(p, sequence, walk);
//| end
    first_block = tile.first_block;
    key_lo = tile.range.key_lo;
    key_hi = tile.range.key_hi;
//| for _, x in ipairs(tokens) do
    $(x)_scales = $(x)_scales_of(p, sequence, tile.kv_head);
//| end
//| if paged then
    k = (const char *)((const $(ke) *)p.k + tile.kv_head * p.k_sh);
    v = (const char *)((const $(ve) *)p.v + tile.kv_head * p.v_sh);
    k_page = sequence.k_page();
    v_page = sequence.v_page();
    table = p.page_table + (long long)walk.batch * p.page_table_stride;
    look_up_first();
//| else
    k = (const char *)((const $(ke) *)p.k + sequence.k() + tile.kv_head * p.k_sh);
    v = (const char *)((const $(ve) *)p.v + sequence.v() + tile.kv_head * p.v_sh);
//| end
  }
//| if paged then

  // The pages of the block of keys of the tile's first iteration here, and of the one after that: no division. An entry is read only where
  // one of its keys is seen, or lies between keys that are.
  __device__ __forceinline__ void look_up_first() {
    key = (first_block + iteration * GROUPS + group) * BC$(run < c.bk and " + (int)(threadIdx.x % 32) % RUNS * RUN" or "");
    entry = (int)((u32)key / (u32)p.page_size);
    token = key - entry * p.page_size;
    look_up();
  }
  __device__ __forceinline__ void look_up_next() {
    key += GROUPS * BC;
    entry += step_entries;
    token += step_tokens;
    if (token >= p.page_size) token -= p.page_size, entry++;
    look_up();
  }
  __device__ __forceinline__ void look_up() { page = $(pr.meets("RUN", "key_lo", "key_hi")) ? table[entry] : -1; }
//| end

//| if paged then
  // One of K and V: rows of the block whose first key is `key`. Few operations depend on a page: the copies wait for its number.
  template <int N, bool PAIRS, int ROW_BYTES$(l.low and ", class E" or "")>
  __device__ __forceinline__ void copy(u32 tile, const char *base, int key, long long stride, long long page_stride) {
    using S = Share<N>;
    constexpr bool WHOLE = RUN % S::STEP == 0;  // the rows of a pass lie in one run
    const u64 step = stride * (long long)sizeof($(of)), page_step = page_stride * (long long)sizeof($(of));
//|   if p.align >= 16 then
    base += S::col() * 16;
    const u32 own = tile + tile_offset<N, PAIRS>(S::row(), S::col());
//|   end
    // Passes whose row lies between keys that are seen: from the first row on.
    const int lo = key_lo - key - S::row(), most = key_hi - key - S::row();
    const char *from = base;
    int hi = most;
#pragma unroll
    for (int r = 0; r < BC; r += S::STEP) {
      const int row = S::row() + r;
      if (!WHOLE || r % RUN == 0) {
//|   if run == c.bk then
        const u32 at = page, first = token;
//|   else
        const int source = WHOLE ? r / RUN : min(row, BC - 1) / RUN;
        const u32 at = __shfl_sync(~0u, page, source), first = __shfl_sync(~0u, token, source);
//|   end
        from = base + at * page_step + (first + (WHOLE ? S::row() : row % RUN)) * step;
        hi = at < (u32)p.pages ? most : -1;
      }
      if ((BC % S::STEP == 0 || row < BC) && (S::STEP * S::WIDTH == GROUP_THREADS || S::row() < S::STEP))
//|   if p.align >= 16 then
        load_lane<N, PAIRS, ROW_BYTES>(tile, own, r, from, r >= lo && r <= hi);
//|   else
        load_row<N, PAIRS, ROW_BYTES>(tile, row, from, r >= lo && r <= hi);
//|   end
      from += S::STEP * step;
    }
  }
//|   if p.align >= 16 then

  // The chunks of a lane in its row of the pass at `r`, from its first one on, which lies at `own` in the first pass.
  template <int N, bool PAIRS, int ROW_BYTES>
  static __device__ __forceinline__ void load_lane(u32 tile, u32 own, int r, const char *from, bool read) {
    using S = Share<N>;
    // Rows of a pass differ from those of the first in other bits of their number, and so do the chunks in which they lie.
    constexpr bool BITS = $(l.boxed and "false" or "!PAIRS && N % 8 == 0 && (S::STEP & (S::STEP - 1)) == 0");
#pragma unroll
    for (int c = 0; c < N; c += S::WIDTH)
      cp_async<16>(BITS ? (own ^ (u32)(r % 8 * 16)) + (u32)(r * N + c) * 16 : tile + tile_offset<N, PAIRS>(S::row() + r, S::col() + c),
                   from + c * 16, read && (ROW_BYTES == N * 16 || (S::col() + c) * 16 < ROW_BYTES));
  }
//|   end
//| else
  // One of K and V: rows of the block whose first key is `key`.
  template <int N, bool PAIRS, int ROW_BYTES$(l.low and ", class E" or "")>
  __device__ __forceinline__ void copy(u32 tile, const char *base, int key, long long stride) {
    using S = Share<N>;
    auto inside = [](int row) { return (BC % S::STEP == 0 || row < BC) && (S::STEP * S::WIDTH == GROUP_THREADS || S::row() < S::STEP); };
    const long long step = stride * (long long)sizeof($(of));
    const char *const from = base + key * step;
#pragma unroll
    for (int r = 0; r < BC; r += S::STEP) {
      const int row = S::row() + r;
      if (inside(row)) load_row<N, PAIRS, ROW_BYTES>(tile, row, from + row * step, key + row >= key_lo && key + row <= key_hi);
    }
  }
//| end

//| if #tokens > 0 then
  // Scales of the block's tokens, one after the other; zeros of those that no query sees.
  __device__ __forceinline__ void copy_scales(u32 to, const float *from, int key, long long stride, long long page_stride) {
#pragma unroll
    for (int r = 0; r < BC; r += GROUP_THREADS) {
      const int row = r + (int)threadIdx.x % GROUP_THREADS;
      bool read = key + row >= key_lo && key + row <= key_hi;
//|   if paged then
//|     if run == c.bk then
      const u32 at = page, first = token;
//|     else
      const int source = min(row, BC - 1) / RUN;
      const u32 at = __shfl_sync(~0u, page, source), first = __shfl_sync(~0u, token, source);
//|     end
      read = read && at < (u32)p.pages;
      const float *const scale = from + at * page_stride + (long long)(first + row % RUN) * stride;
//|   else
      const float *const scale = from + (key + row) * stride;
//|   end
      if (BC % GROUP_THREADS == 0 || row < BC) cp_async<4>(to + row * 4, scale, read);
    }
  }

//| end
  // The group's keys of the next iteration, to one of its buffers. Nothing after the last.
  __device__ __forceinline__ void load(u32 buffer) {
    if (walk.left <= 0) return;
    const int key = (first_block + iteration * GROUPS + group) * BC;
//| if pr.scans then
    const int is = classes.at(iteration, [&](int iteration) {
      return class_of(p, sequence_of(p, walk.batch), tile, first_block + iteration * GROUPS + group);
    });
    if (is != 0) {
//| else
    if ($(pr.meets("BC", "key_lo", "key_hi"))) {
//| end
//| if paged then
      copy<CHUNKS, false, $(kb)$(ofk)>(buffer, k, key, p.k_ss, k_page);
      copy<CHUNKS_V, PAIRS_V, $(vb)$(ofv)>(buffer + K_TILE, v, key, p.v_ss, v_page);
//| else
      copy<CHUNKS, false, $(kb)$(ofk)>(buffer, k, key, p.k_ss);
      copy<CHUNKS_V, PAIRS_V, $(vb)$(ofv)>(buffer + K_TILE, v, key, p.v_ss);
//| end
//| for _, x in ipairs(tokens) do
      copy_scales(buffer + $(x:upper())_SCALES, $(x)_scales, key, p.$(x)_scale_ss, $(paged and "p." .. x .. "_scale_sb" or "0"));
//| end
    }
    if (++iteration == walk.end) {
      walk.$(l.next)(p);
      enter();
//| if paged then
    } else {
      look_up_next();
//| end
    }
  }
};
//| if l.pdl and not p.has_lengths and not pr.has_mask then  -- which keys are seen tell operands of a program's mask

// Earlier work in the CUDA stream may still run: no byte is read before it has ended. But the first keys of the share can be on their way
// to the L2, where later writes find them.
__device__ __forceinline__ void prefetch(const Params &p, const Split &split) {
  constexpr int LINE = 128, KEYS = $(math.max(1, 131072 // (l.ctas * (l.chunks + l.chunks_v) * 16)));
  const Walk &walk = split.walk;
  if (walk.left <= 0) return;
  const Sequence sequence = sequence_of(p, walk.batch);
  const Tile tile = tile_of(p, sequence, walk);
  const int first = max((tile.first_block + walk.iteration * GROUPS) * BC, tile.range.key_lo);
  const int keys = min(KEYS, tile.range.key_hi - first + 1);
  auto lines = [&](const void *base, long long at, long long stride, int bytes$(l.low and ", long long size" or "")) {
    const int each = (bytes + LINE - 1) / LINE;
    const char *const from = (const char *)base + (at + first * stride) * $(l.low and "size" or "(long long)sizeof(element)");
    const long long step = stride * $(l.low and "size" or "(long long)sizeof(element)");
#pragma unroll 1
    for (int i = threadIdx.x; i < keys * each; i += THREADS)
      asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i / each * step + i % each * LINE));
  };
  lines(p.k, sequence.k() + tile.kv_head * p.k_sh, p.k_ss, $(kb)$(l.low and ", sizeof(k_element)" or ""));
  lines(p.v, sequence.v() + tile.kv_head * p.v_sh, p.v_ss, $(vb)$(l.low and ", sizeof(v_element)" or ""));
}
//| end
//| if l.pdl and p.has_lengths and not p.has_batch_invariant and not pr.has_mask then

// The same, by what the lengths$(paged and ", and the entries of the page table," or "") seem to be; a row of the wrong keys costs its
// transfer alone. A thread has a row of K and V. A share that the L2 may hold, of 384 KB for an SM, would be no faster, and begin later.
__device__ __forceinline__ void prefetch(const Params &p, const Split &split) {
  constexpr int LINE = 128, KEYS = $(math.max(1, 131072 // (l.ctas * (l.chunks + l.chunks_v) * 16)));
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
#pragma unroll 1
  for (int i = threadIdx.x; i < keys; i += THREADS) {
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
