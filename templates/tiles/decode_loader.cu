//| needs "c.bk l.boxes? l.lines? l.low? l.next l.shifts_k? l.shifts_v? l.strided? l.tokens? l.walk l.widened?"
//| local ke, ve, of, ofk, ofv = "element", "element", "element", "", ""
//| local kb, vb = "D * (int)sizeof(element)", "DV * (int)sizeof(element)"
//| if l.low then ke, ve, of, ofk, ofv, kb, vb = "k_element", "v_element", "E", ", k_element", ", v_element", "K_BYTES", "V_BYTES" end
//| local pr = include("pairs/pairs.lua").of(p, l)
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
//|   if l.widened then
  int $(x[1])_turn;  // from a row to the next
//|   end
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
//|   if l.widened then
    $(x[1])_turn = $(x[1])_turn_of(p);
    $(x[1])_shift = $(x[1])_is_chunked(p) || $(x[1])_turn > 0 ? $(x[1])_first_of(p, sequence, tile.kv_head) : -1;
//|   else
    $(x[1])_shift = $(x[1])_is_chunked(p) ? $(x[1])_shift_of(p, tile.kv_head) : -1;
//|   end
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

//| include "tiles/decode_copies.cu"
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
      copy_shifted<CHUNKS, $(kb)$(ofk)>(buffer, k, k_shift, $(l.widened and "k_turn, " or "")k_first, k_column, key, p.k_ss, k_page);
//|   elseif l.strided then
      copy_steps<CHUNKS, $(kb)$(ofk)>(buffer, k, key, p.k_ss, k_page);
//|   else
      copy<CHUNKS, false, $(kb)$(ofk)>(buffer, k, key, p.k_ss, k_page);
//|   end
//|   if l.shifts_v then
      copy_shifted<CHUNKS_V, $(vb)$(ofv)>(buffer + K_TILE, v, v_shift, $(l.widened and "v_turn, " or "")v_first, v_column, key, p.v_ss, v_page);
//|   elseif l.strided then
      copy_steps<CHUNKS_V, $(vb)$(ofv)>(buffer + K_TILE, v, key, p.v_ss, v_page);
//|   else
      copy<CHUNKS_V, PAIRS_V, $(vb)$(ofv)>(buffer + K_TILE, v, key, p.v_ss, v_page);
//|   end
//| else
//|   if l.shifts_k then
      copy_shifted<CHUNKS, $(kb)$(ofk)>(buffer, k, k_shift, $(l.widened and "k_turn, " or "")k_first, k_column, key, p.k_ss);
//|   elseif l.strided then
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
      copy_shifted<CHUNKS_V, $(vb)$(ofv)>(buffer + K_TILE, v, v_shift, $(l.widened and "v_turn, " or "")v_first, v_column, key, p.v_ss);
//|   elseif l.strided then
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
