//| needs "c.bk l.boxed? l.boxes? l.lines? l.low? l.shifts_k? l.shifts_v? l.strided? l.tokens? l.widened?"
//| -- Copies of a block's rows of K and V by the warps of a group, and of its tokens' scales: members of the loader, which knows the tile.
//| local of = l.low and "E" or "element"
//| local paged = p.has_pages
//| local run = paged and math.min(p.page, c.bk) or 0
//| local pieces = l.tokens and l.boxes  -- a token's rows of all heads by boxes
//| local scales = p.k_scale == 2 or p.v_scale == 2  -- of tokens
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
//| if l.strided then
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
//|   if l.widened then
  // Rows that turn have a shift each, and their last chunks are read up to their ends.
//|   end
  template <int N, int ROW_BYTES, class E>
//|   local turn = l.widened and "int turn, " or ""
  __device__ __forceinline__ void copy_shifted(u32 tile, const char *base, int shift, $(turn)int first, int column, int key,
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
//|   local looks = paged and run < c.bk  -- by shuffles, which all lanes take
//|   if l.widened then
    if (turn > 0) {
#pragma unroll
      for (int r = 0; r < BC; r += STEP) {
        const int row = first + r, before = shift + row * turn & 15;
//|     if paged then
        int last;
        const char *const from = find($(looks and "min(row, BC - 1)" or "row"), &last);
//|     else
        const int last = hi;
        const char *const from = base + row * step;
//|     end
        const int bytes = row >= lo && row <= last ? max(0, min(16, before + ROW_BYTES - column * 16)) : 0;
        if (first < STEP && (r + STEP <= BC || row < BC))
          asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                       :
                       : "r"(tile + (row * N + column) * 16), "l"(from + column * 16 - before), "r"(bytes)
                       : "memory");
      }
      return;
    }
//|   end
    if (shift < 0) {
//|   if not looks then
//|     local many = p.kv_align < 4  -- by loads that a warp waits for, several side by side
      constexpr int UNITS = N * 16 / UNIT$(many and ", BATCH = 8" or "");
#pragma unroll 1
      for (int i = thread; i < BC * UNITS; i += $(many and "BATCH * " or "")GROUP_THREADS) {
//|     if many then
        u32 words[BATCH];
#pragma unroll
        for (int n = 0; n < BATCH; n++) {
          const int row = (i + n * GROUP_THREADS) / UNITS, byte = (i + n * GROUP_THREADS) % UNITS * UNIT;
//|     else
        const int row = i / UNITS, byte = i % UNITS * UNIT;
//|     end
//|     local indent = many and "  " or ""
//|     if paged then
        $(indent)int last;
        $(indent)const char *const from = find(row, &last);
//|     else
        $(indent)const int last = hi;
        $(indent)const char *const from = base + row * step;
//|     end
//|     if many then
          const bool read = row < BC && row >= lo && row <= last;
          const u16 low = read && byte < ROW_BYTES ? *(const u16 *)(from + byte) : (u16)0;
          const u16 high = read && byte + 2 < ROW_BYTES ? *(const u16 *)(from + byte + 2) : (u16)0;
          words[n] = (u32)high << 16 | low;
        }
#pragma unroll
        for (int n = 0; n < BATCH; n++) {
          const int row = (i + n * GROUP_THREADS) / UNITS, byte = (i + n * GROUP_THREADS) % UNITS * UNIT;
          if (row < BC) store_shared(tile + tile_offset<N>(row, byte / 16) + byte % 16, words[n]);
        }
      }
//|     else
        load_units<1, 0, N, false, ROW_BYTES>(tile, row, byte, from + byte, 0, [=](int) { return row >= lo && row <= last; });
      }
//|     end
//|   else
#pragma unroll 1
      for (int row = 0; row < BC; row++) {
        int last;
        const char *const from = find(row, &last);
#pragma unroll 1
        for (int byte = thread * UNIT; byte < N * 16; byte += GROUP_THREADS * UNIT)
          load_units<1, 0, N, false, ROW_BYTES>(tile, row, byte, from + byte, 0, [=](int) { return row >= lo && row <= last; });
      }
//|   end
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
//| if scales and l.tokens then
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

//| elseif scales then
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
