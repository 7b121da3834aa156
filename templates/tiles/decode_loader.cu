//| needs "c.bk l.boxed? l.boxes? l.chunks l.chunks_v l.ctas l.heads? l.lines? l.low? l.next l.pdl l.shifts_k? l.shifts_v? l.tokens? l.walk"
//| local ke, ve, of, ofk, ofv = "element", "element", "element", "", ""
//| local kb, vb = "D * (int)sizeof(element)", "DV * (int)sizeof(element)"
//| if l.low then ke, ve, of, ofk, ofv, kb, vb = "k_element", "v_element", "E", ", k_element", ", v_element", "K_BYTES", "V_BYTES" end
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// ---- how K and V come to shared memory ----
//| local paged = p.has_pages
//| local run = paged and math.min(p.page, c.bk) or 0
//| local shifted = {}
//| if l.shifts_k and not l.tokens then shifted[1] = { "k", "CHUNKS" } end
//| if l.shifts_v and not l.tokens then shifted[#shifted + 1] = { "v", "CHUNKS_V" } end
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
//| if l.low then
  int thread;  // of the group, kept in a register: see in_register()
//|   for _, x in ipairs(shifted) do
  int $(x[1])_first, $(x[1])_column;  // of a pass over rows with shifts: the row and the chunk of the thread
//|   end
//| end
  // The tile at hand.
  int first_block, key_lo, key_hi;
//| if l.boxes then
  const TensorMap &k_map, &v_map;
  int kv_head$(paged and "" or ", batch, first_row");  // coordinates of the tile's head$(paged and "" or ", its sequence, its first key")
//| else
  const char *k, *v;
//| end
//| for _, x in ipairs(shifted) do
  int $(x[1])_shift;  // of the tile's rows, as it is copied; -1: by less than chunks
//| end
//| local alike  -- K's chunks and V's go to the same places of their tiles
//| local pieces = l.tokens and l.boxes  -- a token's rows of all heads by boxes
//| if l.tokens and not pieces then
  bool k_whole, v_whole;  // all heads' rows of a token are one piece of whole chunks: k, v are those of the first head; else the warp's own
  // Of a warp's keys TOKENS side by side, WIDTH chunks of each; then what is left of them all.
  template <int WHOLE>
  struct Share {
    static constexpr int KEYS = BC / HEADS, WIDTH = WHOLE >= 32 ? 32 : WHOLE >= 16 ? 16 : WHOLE >= 8 ? 8 : 4;
    static constexpr int TOKENS = 32 / WIDTH, LEFT = WHOLE % WIDTH;
  };
  // Bytes from the block's first key to the first chunks of the lane, kept in registers: of whole widths, and of what is left.
  struct Side {
    u32 whole, left;
  };
  template <int WHOLE>
  static __device__ __forceinline__ Side side_of(int thread, int step) {
    using Part = Share<WHOLE>;
    constexpr int LEFT = Part::LEFT > 0 ? Part::LEFT : 1;
    const int key = (int)threadIdx.x / HEAD_THREADS * Part::KEYS;
    const int whole = (key + thread / Part::WIDTH) * step + thread % Part::WIDTH * 16;
    const int left = (key + thread / LEFT) * step + (WHOLE - LEFT + thread % LEFT) * 16;
    return {(u32)in_register(whole), Part::LEFT > 0 ? (u32)in_register(left) : 0};
  }
//|   alike = l.tokens.k.whole == l.tokens.v.whole and l.tokens.k.pitch == l.tokens.v.pitch
  Side k_from, v_from, k_to$(alike and "" or ", v_to");  // in global memory; in a tile
//| end
//| local tokens = {}
//| for _, x in ipairs(l.low and { "k", "v" } or {}) do
//|   if p[x .. "_scale"] == 2 then
//|     tokens[#tokens + 1] = x
  const float *$(x)_scales;
//|     if l.tokens then
  bool $(x)_scales_whole;  // a token's scales are whole chunks: they are those of the first head
//|     end
//|   end
//| end
//| if pr.scans then
  MaskIterations classes;
  Tile tile;
//| end
//| if paged then
//|   if not l.boxes then
  long long k_page, v_page;  // elements from a page to the next
//|   end
  const int *table;  // of the sequence
  // Of the run that this lane looked up for the iteration: its first key, the entry of the table, the page, and its first token there.
  int key, entry, page, token;
  int step_entries, step_tokens;  // from an iteration to the next
//| end

//| if l.boxes then
  __device__ __forceinline__ Loader(const Params &p, const $(l.walk) &start, int group, const TensorMap &k_map, const TensorMap &v_map)
      : p(p), walk(start), group(group), k_map(k_map), v_map(v_map) {
//| else
  __device__ __forceinline__ Loader(const Params &p, const $(l.walk) &start, int group) : p(p), walk(start), group(group) {
//| end
//| if l.low then
    thread = in_register((int)threadIdx.x % GROUP_THREADS);
//|   for _, x in ipairs(shifted) do
    $(x[1])_first = in_register(thread / $(x[2]));
    $(x[1])_column = in_register(thread % $(x[2]));
//|   end
//| end
//| if l.tokens and not pieces then
    k_whole = k_has_whole_tokens(p);
    v_whole = v_has_whole_tokens(p);
    k_from = side_of<$(l.tokens.k.whole)>(thread, (int)p.k_ss * (int)sizeof(k_element));
    v_from = side_of<$(l.tokens.v.whole)>(thread, (int)p.v_ss * (int)sizeof(v_element));
    k_to = side_of<$(l.tokens.k.whole)>(thread, K_PITCH * 16);
//|   if not alike then
    v_to = side_of<$(l.tokens.v.whole)>(thread, V_PITCH * 16);
//|   end
//|   for _, x in ipairs(tokens) do
    $(x)_scales_whole = HEADS % 4 == 0 && p.$(x)_scale_sh == 1 && p.hkv % HEADS == 0 &&
                     ((u64)p.$(x)_scale | (u64)((p.$(x)_scale_sb | p.$(x)_scale_ss) * 4)) % 16 == 0;
//|   end
//| end
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
//|   if l.tokens then
    $(x)_scales = $(x)_scales_of(p, sequence, $(x)_scales_whole ? walk.kv_head * HEADS : tile.kv_head);
//|   else
    $(x)_scales = $(x)_scales_of(p, sequence, tile.kv_head);
//|   end
//| end
//| for _, x in ipairs(shifted) do
    $(x[1])_shift = $(x[1])_is_chunked(p) ? $(x[1])_shift_of(p, tile.kv_head) : -1;
//| end
//| local k_head, v_head = "tile.kv_head", "tile.kv_head"
//| if l.tokens then
//|   k_head, v_head = "(k_whole ? walk.kv_head * HEADS : tile.kv_head)", "(v_whole ? walk.kv_head * HEADS : tile.kv_head)"
//| end
//| if l.boxes then
    kv_head = tile.kv_head;
//|   if not paged then
    batch = sequence.$(p.has_lengths and "map_batch_k" or "map_batch")();
    first_row = sequence.map_key(0);
//|   end
//| end
//| if paged then
//|   if not l.boxes then
    k = (const char *)((const $(ke) *)p.k + $(k_head) * p.k_sh);
    v = (const char *)((const $(ve) *)p.v + $(v_head) * p.v_sh);
    k_page = sequence.k_page();
    v_page = sequence.v_page();
//|   end
    table = p.page_table + (long long)walk.batch * p.page_table_stride;
    look_up_first();
//| elseif not l.boxes then
    k = (const char *)((const $(ke) *)p.k + sequence.k() + $(k_head) * p.k_sh);
    v = (const char *)((const $(ve) *)p.v + sequence.v() + $(v_head) * p.v_sh);
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

//| local lanes = p.kv_align >= 16 and (paged or not (l.low or l.lines))  -- a lane's rows lie by constants from its first
//| if paged then
  // One of K and V: rows of the block whose first key is `key`. Few operations depend on a page: the copies wait for its number.
  template <int N, bool PAIRS, int ROW_BYTES$(l.low and ", class E" or "")>
  __device__ __forceinline__ void copy(u32 tile, const char *base, int key, long long stride, long long page_stride) {
    using S = Share<N>;
    constexpr bool WHOLE = RUN % S::STEP == 0;  // the rows of a pass lie in one run
    const u64 step = stride * (long long)sizeof($(of)), page_step = page_stride * (long long)sizeof($(of));
//|   if p.kv_align >= 16 then
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
//|   if p.kv_align >= 16 then
        load_lane<N, PAIRS, ROW_BYTES>(tile, own, r, from, r >= lo && r <= hi);
//|   else
        load_row<N, PAIRS, ROW_BYTES>(tile, row, from, r >= lo && r <= hi);
//|   end
      from += S::STEP * step;
    }
  }
//| else
  // One of K and V: rows of the block whose first key is `key`.
  template <int N, bool PAIRS, int ROW_BYTES$(l.low and ", class E" or l.lines and ", bool LINES" or "")>
  __device__ __forceinline__ void copy(u32 tile, const char *base, int key, long long stride) {
    using S = Share<N>;
    auto inside = [](int row) { return (BC % S::STEP == 0 || row < BC) && (S::STEP * S::WIDTH == GROUP_THREADS || S::row() < S::STEP); };
    const long long step = stride * (long long)sizeof($(of));
//|   if lanes then
    const char *from = base + (key + S::row()) * step + S::col() * 16;
    const u32 own = tile + tile_offset<N, PAIRS>(S::row(), S::col());
    const int lo = key_lo - key - S::row(), hi = key_hi - key - S::row();  // passes whose row is seen
#pragma unroll
    for (int r = 0; r < BC; r += S::STEP) {
      if (inside(S::row() + r)) load_lane<N, PAIRS, ROW_BYTES>(tile, own, r, from, r >= lo && r <= hi);
      from += S::STEP * step;
    }
//|   else
    const char *const from = base + key * step;
#pragma unroll
    for (int r = 0; r < BC; r += S::STEP) {
      const int row = S::row() + r;
//|   local lines = l.lines and ", LINES" or ""
      if (inside(row)) load_row<N, PAIRS, ROW_BYTES$(lines)>(tile, row, from + row * step, key + row >= key_lo && key + row <= key_hi);
    }
//|   end
  }
//| end
//| if lanes then

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
//| end

//| local of_page = paged and ", long long page_stride" or ""
//| local steps = l.low and not l.tokens and not l.boxes and p.kv_align >= 16 and (not paged or run == c.bk)  -- a lane's rows are a stride apart
//| if steps then
  // The same where a lane's rows are a stride apart: no address is multiplied out, and where all keys are seen nothing is asked of any.
  template <int N, int ROW_BYTES, class E>
  __device__ __forceinline__ void copy_steps(u32 tile, const char *base, int key, long long stride$(of_page)) {
    using S = Share<N>;
    const int own_row = thread / S::WIDTH, own_col = thread % S::WIDTH;
    if (S::STEP * S::WIDTH != GROUP_THREADS && own_row >= S::STEP) return;
    const long long step = stride * (long long)sizeof(E);
//|   if paged then
    const char *from = base + (u32)page * (page_stride * (long long)sizeof(E)) + (token + own_row) * step + own_col * 16;
    const int hi = (u32)page < (u32)p.pages ? key_hi - key : -1;
//|   else
    const char *from = base + (key + own_row) * step + own_col * 16;
    const int hi = key_hi - key;
//|   end
    const int lo = key_lo - key;
    const u32 own = tile + tile_offset<N>(own_row, own_col);
    // Rows of a pass differ from those of the first in other bits of their number, and so do the chunks in which they lie; or in none.
    constexpr bool BITS = N % 8 == 0 && (S::STEP & (S::STEP - 1)) == 0, SAME = N % 8 == 4 && S::STEP % 8 == 0;
    auto pass = [&](int r, bool read) {
#pragma unroll
      for (int c = 0; c < N; c += S::WIDTH)
        cp_async<16>(BITS || SAME ? (own ^ (u32)(BITS ? r % 8 * 16 : 0)) + (u32)(r * N + c) * 16
                                  : tile + tile_offset<N>(own_row + r, own_col + c),
                     from + c * 16, read && (ROW_BYTES == N * 16 || (own_col + c) * 16 < ROW_BYTES));
      from += S::STEP * step;
    };
    if (lo <= 0 && hi >= BC - 1) {
#pragma unroll
      for (int r = 0; r < BC; r += S::STEP)
        if (BC % S::STEP == 0 || own_row + r < BC) pass(r, true);
    } else {
#pragma unroll
      for (int r = 0; r < BC; r += S::STEP)
        if (BC % S::STEP == 0 || own_row + r < BC) pass(r, own_row + r >= lo && own_row + r <= hi);
    }
  }

//| end
//| -- Where heads do not lie side by side.
//| local unit = p.kv_align >= 16 and "16" or "UNIT"
//| local function own_rows(indent)
$(indent)constexpr int UNITS = ROW_BYTES / $(unit);
$(indent)const long long step = stride * (long long)sizeof(E);
$(indent)const u32 own = tile + (int)threadIdx.x / HEAD_THREADS * ROW_BYTES;
$(indent)base += first * step;
#pragma unroll 1
$(indent)for (int i = thread; i < BC * UNITS; i += GROUP_THREADS) {
$(indent)  const int row = i / UNITS, byte = i % UNITS * $(unit);
//|   if p.kv_align >= 16 then
$(indent)  cp_async<16>(own + row * (PITCH * 16) + byte, base + row * step + byte, row >= lo && row <= hi);
//|   else
$(indent)  load_units<1, 0, PITCH, false, ROW_BYTES>(own, row, byte, base + row * step + byte, 0,
$(indent)                                            [=](int) { return row >= lo && row <= hi; });
//|   end
$(indent)}
//| end
//| if pieces then
  // Rows of the warp's own head, where no map holds those of a token as one.
  template <int PITCH, int ROW_BYTES, class E>
  __device__ __forceinline__ void copy_own(u32 tile, const E *of_head, int key, long long stride$(of_page)) {
    const char *base = (const char *)of_head;
//|   if paged then
    const int lo = key_lo - key, hi = (u32)page < (u32)p.pages ? key_hi - key : -1, first = token;
    base += (u32)page * (page_stride * (long long)sizeof(E));
//|   else
    const int lo = key_lo - key, hi = key_hi - key, first = key;
//|   end
//|   own_rows("    ")
  }

//| elseif l.tokens then
  // Rows of all heads of the block's keys: a warp copies those of some keys, chunks of a key's rows one after the other. Where heads do not
  // lie so (whole is false) a warp copies its own head's rows, by less.
  template <int WHOLE, int PITCH, int ROW_BYTES, class E>
  __device__ __forceinline__ void copy_tokens(u32 tile, const char *base, bool whole, const Side &from, const Side &to, int key,
                                              long long stride$(of_page)) {
//|   if paged then
    const int lo = key_lo - key, hi = (u32)page < (u32)p.pages ? key_hi - key : -1, first = token;
    base += (u32)page * (page_stride * (long long)sizeof(E));
//|   else
    const int lo = key_lo - key, hi = key_hi - key, first = key;
//|   end
    if (!whole) {
//|   own_rows("      ")
      return;
    }
    using Part = Share<WHOLE>;
    const int step = (int)stride * (int)sizeof(E);
    base += first * (long long)step;
    auto pass = [&](auto read) {
      const char *chunk = base + from.whole;
#pragma unroll
      for (int r = 0; r < Part::KEYS; r += Part::TOKENS) {
        if (Part::KEYS % Part::TOKENS == 0 || thread / Part::WIDTH + r < Part::KEYS)
#pragma unroll
          for (int c = 0; c < WHOLE / Part::WIDTH; c++)
            cp_async<16>(tile + to.whole + (r * PITCH + c * Part::WIDTH) * 16, chunk + c * Part::WIDTH * 16, read(r, Part::WIDTH));
        chunk += (u32)(Part::TOKENS * step);
      }
      if constexpr (Part::LEFT > 0) {
        constexpr int EACH = 32 / Part::LEFT;  // keys of a pass
#pragma unroll
        for (int r = 0; r < Part::KEYS; r += EACH)
          if (thread < min(EACH, Part::KEYS - r) * Part::LEFT)
            cp_async<16>(tile + to.left + r * PITCH * 16, base + from.left + (u32)(r * step), read(r, Part::LEFT));
      }
    };
    if (lo <= 0 && hi >= BC - 1)
      pass([](int, int) { return true; });
    else
      pass([=](int r, int width) {
        const int row = (int)threadIdx.x / HEAD_THREADS * Part::KEYS + thread / width + r;
        return row >= lo && row <= hi;
      });
  }

//| elseif l.shifts_k or l.shifts_v then
  // Rows of blocks, with the bytes before them in their first chunk. Lanes have chunks of a pass's rows one after the other, and some
  // may have none. Where rows do not lie alike in chunks (shift < 0) they are copied by less, one by one.
  template <int N, int ROW_BYTES, class E>
  __device__ __forceinline__ void copy_shifted(u32 tile, const char *base, int shift, int first, int column, int key,
                                               long long stride$(of_page)) {
    constexpr int STEP = GROUP_THREADS / N;
    const long long step = stride * (long long)sizeof(E);
    // Rows between keys that are seen.
    const int lo = key_lo - key, hi = key_hi - key;
//|   if paged then
    const long long page_step = page_stride * (long long)sizeof(E);
    // Where a row lies, and the last row that is read there. By all lanes of a warp.
    auto find = [&](int row, int *last) -> const char * {
//|     if run == c.bk then
      const u32 at = page, first_token = token;
//|     else
      const int source = row / RUN;
      const u32 at = __shfl_sync(~0u, page, source), first_token = __shfl_sync(~0u, token, source);
//|     end
      *last = at < (u32)p.pages ? hi : -1;
      return base + at * page_step + (first_token + row % RUN) * step;
    };
//|   else
    base += key * step;
//|   end
    if (shift < 0) {
#pragma unroll 1
      for (int row = 0; row < BC; row++) {
//|   if paged then
        int last;
        const char *const from = find(row, &last);
//|   else
        const int last = hi;
        const char *const from = base + row * step;
//|   end
#pragma unroll 1
        for (int byte = thread * UNIT; byte < N * 16; byte += GROUP_THREADS * UNIT)
          load_units<1, 0, N, false, ROW_BYTES>(tile, row, byte, from + byte, 0, [=](int) { return row >= lo && row <= last; });
      }
      return;
    }
    const bool has_bytes = column * 16 < shift + ROW_BYTES;
    const int ahead = column * 16 - shift;
    const u32 to = tile + (first * N + column) * 16;
    const bool works = first < STEP;
//|   if not paged then
    if (lo <= 0 && hi >= BC - 1) {
      if (works) {
        const char *from = base + first * step + ahead;
#pragma unroll
        for (int r = 0; r < BC; r += STEP) {
          if (r + STEP <= BC || first + r < BC) cp_async<16>(to + r * (N * 16), from, has_bytes);
          from += STEP * step;
        }
      }
      return;
    }
//|   end
//|   local looks = paged and run < c.bk  -- by shuffles, which all lanes take
//|   if not looks then
    if (works) {
//|   end
//|   if not paged then
      const char *from = base + first * step + ahead;
//|   end
#pragma unroll
      for (int r = 0; r < BC; r += STEP) {
        const int row = first + r;
//|   if paged then
        int last;
        const char *const from = find($(looks and "min(row, BC - 1)" or "row"), &last) + ahead;
//|   else
        const int last = hi;
//|   end
        if ($(looks and "works && " or "")(r + STEP <= BC || row < BC))
          cp_async<16>(to + r * (N * 16), from, has_bytes && row >= lo && row <= last);
//|   if not paged then
        from += STEP * step;
//|   end
      }
//|   if not looks then
    }
//|   end
  }

//| end
//| if #tokens > 0 and l.tokens then
  // Scales of the block's tokens, those of a token side by side; zeros of those that no query sees. A warp copies those of some tokens, or
  // of its own head.
  __device__ __forceinline__ void copy_scales(u32 to, const float *from, bool whole, int key, long long stride, long long page_stride) {
    const int side = in_register((int)threadIdx.x / HEAD_THREADS), lo = key_lo - key;
//|   if paged then
    const int hi = (u32)page < (u32)p.pages ? key_hi - key : -1;
    from += (u32)page * page_stride + token * stride;
//|   else
    const int hi = key_hi - key;
    from += key * stride;
//|   end
    if (whole) {
      constexpr int EACH = (HEADS + 3) / 4, KEYS = BC / HEADS;
      const int row = side * KEYS + thread / EACH, chunk = thread % EACH;
      if (thread < KEYS * EACH) cp_async<16>(to + row * (HEADS * 4) + chunk * 16, from + row * stride + chunk * 4, row >= lo && row <= hi);
      return;
    }
#pragma unroll
    for (int r = 0; r < BC; r += GROUP_THREADS) {
      const int row = r + thread;
      if (BC % GROUP_THREADS == 0 || row < BC) cp_async<4>(to + row * (HEADS * 4) + side * 4, from + row * stride, row >= lo && row <= hi);
    }
  }

//| elseif #tokens > 0 then
  // Scales of the block's tokens, one after the other; zeros of those that no query sees.
  __device__ __forceinline__ void copy_scales(u32 to, const float *from, int key, long long stride, long long page_stride) {
#pragma unroll
    for (int r = 0; r < BC; r += GROUP_THREADS) {
      const int row = r + thread;
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
//| if pieces then
  // The keys of the next iteration of all heads' groups, to one of their buffers, whose barrier tells when they are there. Nothing after
  // the last. By the first head's warp, or where no map holds the rows by all of them.
  __device__ __forceinline__ void load(u32 buffer, u32 barrier) {
//| elseif l.boxes then
  // The group's keys of the next iteration, to one of its buffers, whose barrier tells when they are there. Nothing after the last.
  __device__ __forceinline__ void load(u32 buffer, u32 barrier) {
//| else
  // The group's keys of the next iteration, to one of its buffers. Nothing after the last.
  __device__ __forceinline__ void load(u32 buffer) {
//| end
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
//| if l.boxes and paged and run < c.bk then
      if (thread == 0) mbarrier_expect(barrier, BC * (K_BYTES + V_BYTES));
      __syncwarp();
      if (thread < RUNS) {  // what no row sees comes of no page, as zeros
        tma_load(buffer + thread * (RUN * K_BYTES), k_map, barrier, 0, token, kv_head, page);
        tma_load(buffer + K_TILE + thread * (RUN * V_BYTES), v_map, barrier, 0, token, kv_head, page);
      }
//| elseif pieces then
      if (!p.boxed) {
//|   local k_row, v_row = paged and "" or "sequence.k() + ", paged and "" or "sequence.v() + "
        const Sequence sequence = sequence_of(p, walk.batch);
        copy_own<K_PITCH, K_BYTES>(buffer, (const k_element *)p.k + $(k_row)kv_head * p.k_sh, key,
                                   p.k_ss$(paged and ", sequence.k_page()" or ""));
        copy_own<V_PITCH, V_BYTES>(buffer + K_TILE, (const v_element *)p.v + $(v_row)kv_head * p.v_sh, key,
                                   p.v_ss$(paged and ", sequence.v_page()" or ""));
      } else if (thread == 0) {
//|   local at = paged and "token, 0, page" or "first_row + key, 0, batch"
        mbarrier_expect(barrier, BC * (K_PITCH + V_PITCH) * 16);
        tma_load(buffer, k_map, barrier, kv_head * K_BYTES / 8, $(at));  // of the first head: its warp loads for all
        tma_load(buffer + K_TILE, v_map, barrier, kv_head * V_BYTES / 8, $(at));
      }
//| elseif l.boxes then
      if (thread == 0) {
//|   local at = paged and "token, kv_head, page" or "first_row + key, kv_head, batch"
        mbarrier_expect(barrier, BC * (K_BYTES + V_BYTES));
        tma_load(buffer, k_map, barrier, 0, $(at));
        tma_load(buffer + K_TILE, v_map, barrier, 0, $(at));
      }
//| elseif l.tokens then
      copy_tokens<$(l.tokens.k.whole), K_PITCH, K_BYTES, k_element>(buffer, k, k_whole, k_from, k_to, key,
                                            p.k_ss$(paged and ", k_page" or ""));
      copy_tokens<$(l.tokens.v.whole), V_PITCH, V_BYTES, v_element>(buffer + K_TILE, v, v_whole, v_from, $(alike and "k_to" or "v_to"), key,
                                            p.v_ss$(paged and ", v_page" or ""));
//| elseif paged then
//|   if l.shifts_k then
      copy_shifted<CHUNKS, $(kb)$(ofk)>(buffer, k, k_shift, k_first, k_column, key, p.k_ss, k_page);
//|   elseif steps then
      copy_steps<CHUNKS, $(kb)$(ofk)>(buffer, k, key, p.k_ss, k_page);
//|   else
      copy<CHUNKS, false, $(kb)$(ofk)>(buffer, k, key, p.k_ss, k_page);
//|   end
//|   if l.shifts_v then
      copy_shifted<CHUNKS_V, $(vb)$(ofv)>(buffer + K_TILE, v, v_shift, v_first, v_column, key, p.v_ss, v_page);
//|   elseif steps then
      copy_steps<CHUNKS_V, $(vb)$(ofv)>(buffer + K_TILE, v, key, p.v_ss, v_page);
//|   else
      copy<CHUNKS_V, PAIRS_V, $(vb)$(ofv)>(buffer + K_TILE, v, key, p.v_ss, v_page);
//|   end
//| else
//|   if l.shifts_k then
      copy_shifted<CHUNKS, $(kb)$(ofk)>(buffer, k, k_shift, k_first, k_column, key, p.k_ss);
//|   elseif steps then
      copy_steps<CHUNKS, $(kb)$(ofk)>(buffer, k, key, p.k_ss);
//|   elseif l.lines then
      // Blocks that are in step meet the rest of a line with the rows of other heads. Of others it comes for nothing, and comes again.
      if (walk.items.share > 0) {
        copy<CHUNKS, false, $(kb), true>(buffer, k, key, p.k_ss);
        copy<CHUNKS_V, PAIRS_V, $(vb), true>(buffer + K_TILE, v, key, p.v_ss);
      } else {
        copy<CHUNKS, false, $(kb), false>(buffer, k, key, p.k_ss);
        copy<CHUNKS_V, PAIRS_V, $(vb), false>(buffer + K_TILE, v, key, p.v_ss);
      }
//|   else
      copy<CHUNKS, false, $(kb)$(ofk)>(buffer, k, key, p.k_ss);
//|   end
//|   if l.shifts_v then
      copy_shifted<CHUNKS_V, $(vb)$(ofv)>(buffer + K_TILE, v, v_shift, v_first, v_column, key, p.v_ss);
//|   elseif steps then
      copy_steps<CHUNKS_V, $(vb)$(ofv)>(buffer + K_TILE, v, key, p.v_ss);
//|   elseif not l.lines then
      copy<CHUNKS_V, PAIRS_V, $(vb)$(ofv)>(buffer + K_TILE, v, key, p.v_ss);
//|   end
//| end
//| for _, x in ipairs(tokens) do
//|   local whole, page = l.tokens and (", %s_scales_whole"):format(x) or "", paged and ("p.%s_scale_sb"):format(x) or "0"
      copy_scales(buffer + $(x:upper())_SCALES, $(x)_scales$(whole), key, p.$(x)_scale_ss, $(page));
//| end
//| if l.boxes then
    } else if (thread == 0$(pieces and " && p.boxed" or "")) {
      mbarrier_arrive(barrier);
    }
//| else
    }
//| end
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
