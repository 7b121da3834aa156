//| needs "c.cluster c.o_path l.ahead l.begins? l.besides? l.cuts? l.fades? l.grouped? l.held? l.o_in_q"
//| needs "l.in_chunks? l.once? l.one_text? l.parts? l.passes_once l.pingpong l.q_lent l.reads_twice? l.relative l.reverses? l.rows_show?"
//| needs "l.runs? l.skip_late l.split? l.staged? l.tanh_by_fma?"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local of_slot = l.reverses and ", tiles.slot.at" or ""
// ---- a consumer warpgroup: 64 rows of Q, and its walk over tiles and blocks of keys ----
// The blocks of a tile go from right to left. A prologue issues S of the first. The main loop issues S of the next block beside P V of the
// one at hand. An epilogue does the last P V.
//| if c.o_path == 0 then
__device__ __forceinline__ void consume(const Params &p, u32 smem, int wg) {
//| else
__device__ __forceinline__ void consume(const Params &p, const TensorMap &o_map, u32 smem, int wg) {
//| end
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int warp_row = threadIdx.x / 32 % 4 * 16;
  Ring<Q_BUFS> q;
  Ring<STAGES_K> k;
  Ring<STAGES_V> v;
  float s[NS], o[NO];
  u32 a[NS / 2];  // P

  // This warp has read a buffer.
  auto release = [&](u32 empty) {
    __syncwarp();
    if (lane == 0) mbarrier_arrive(empty);
  };
//| if c.cluster > 1 then
  // The same for K and V, which the copies of every block of the cluster write.
  auto release_keys = [&](u32 empty) {
    __syncwarp();
    if (lane < CLUSTER) mbarrier_arrive_at(empty, lane);
  };
//| end
//| local grouped = l.grouped
//| local stage = grouped and "stage_of(block)" or "smem + SMEM_SCORE + stages.at * SCORE_STAGE"
//| local leaves = grouped and "block, keys.loaded_lo" or ""
//| local owned = pr.owns_rows
//| local release_keys = c.cluster > 1 and "release_keys" or "release"
  auto release_k = [&] {
    $(release_keys)(k_empty(smem, k.at));
    k.next();
  };
  auto release_v = [&] {
    $(release_keys)(v_empty(smem, v.at));
    v.next();
  };
//| if pr.staged then
  Ring<STAGES_SCORE> stages;
//|   if owned and not pr.produces_scores then
//|   elseif grouped then
  // Blocks of keys from the right to the left share a stage. lo: the last that is loaded for the tile.
  auto stage_of = [&](int block) { return smem + SMEM_SCORE + stages.at * SCORE_STAGE + (block & (GROUP - 1)) * (BC * 4); };
  auto release_stage = [&](int block, int lo) {
    if ((block & (GROUP - 1)) != 0 && block != lo) return;
//|   else
  auto $(owned and "leave" or "release")_stage = [&] {
//|   end
//|   if not owned or pr.produces_scores then
    release(score_empty(smem, stages.at));
    stages.next();
  };
//|   end
//| end

//| if l.cuts == "joins" then
  const u32 joins = opaque(join_at(0, wg));  // where in a stage this thread reads
//| end
//| if pr.brings_mask then
  Ring<STAGES_MASK> masks;
  auto release_mask = [&] {
    release(mask_empty(smem, masks.at));
    masks.next();
  };
//| end

//| if l.pingpong then
  if (wg == WGS - 1) pingpong_pass(wg);  // the first warpgroup begins
//| end
//| if l.tanh_by_fma then
  const TanhByFma by_fma = tanh_by_fma(p);
//| end
  TileQueue tiles;
  Tile where;

//| if l.o_in_q then
  // O leaves from the buffer of its Q, when q is one further.
//|   if l.q_lent then
  // There is a second Q, so the buffer is given back only when the next tile is under way: until then it is owed.
//|   end
  auto q_before = [&] { return (q.at + Q_BUFS - 1) % Q_BUFS; };
  auto return_q = [&] {
    tma_wait_read();
    release(q_empty(smem, q_before(), wg));
  };
//|   if l.q_lent then
  bool owed = false;  // by every tile that saw keys to the next one
//|   end
  // O of the tile at hand to memory.
  auto store = [&](const float (&o)[NO], const RowState (&state)[2], bool any_keys) {
//| else
  // O of the tile at hand to memory.
  auto store = [&](const float (&o)[NO], const RowState (&state)[2]) {
//| end
//| if p.has_lengths then
    const Sequence sequence = tiles.sequence(p, smem);
//| end
//| if l.runs then
    const int upto = tiles.upto(smem);
//| end
    where = tiles.again(p, smem);
//| if l.reverses then
    const int slot = tiles.slot.at;
//| end
    tiles.done(smem, true);
//| if l.runs then
    where.upto = upto;
//| end
//| if l.split and not p.has_lengths then
    const Sequence sequence = sequence_of(p, where.batch);
//| end
    const int row = where.row + row_in_tile(wg$(l.reverses and ", slot" or ""));
//| local sequence = p.has_lengths and " sequence," or ""
//| if c.o_path == 0 then
//|   if l.parts then
    if (where.parts > 1)
      store_part(p, where, sequence, o, state, row);
    else
      store_rows<true>(p, where,$(sequence) o, state, row + warp_row + g, t);
//|   else
    store_rows<true>(p, where,$(sequence) o, state, row + warp_row + g, t);
//|   end
//| elseif c.o_path == 1 then
    if (any_keys) {
//|   if p.has_lengths then
//|     if l.parts then
      if (where.parts > 1)
        store_part(p, where, sequence, o, state, row);
      else
//|     end
      // A box would write rows of the next sequence too.
      if (row + 64 > sequence.sq())
        store_rows<true>(p, where, sequence, o, state, row + warp_row + g, t);
      else
        store_tile(p, o_map, where, sequence, o, state, smem + (q_before() * WGS + wg) * Q_TILE, row, wg);
//|   else
      store_tile(p, o_map, where, o, state, smem + (q_before() * WGS + wg) * Q_TILE, row, wg);
//|   end
//|   if l.q_lent then
      owed = true;
//|   else
      return_q();
//|   end
    } else {  // a tile without keys never held a Q
//|   if l.parts then
      if (where.parts > 1)
        store_part(p, where, sequence, o, state, row);
      else
//|   end
//|   if pr.has_score and not p.has_lengths then
      store_zeros(p, where, row);
//|   else
      store_rows<false>(p, where,$(sequence) o, state, row + warp_row + g, t);
//|   end
    }
//| elseif l.once then
//|   local far, of_far = l.rows_show and "" or ", far", l.rows_show and "" or ", bool far"
//|   local part = l.parts and "where.parts > 1 ? store_part(p, where, sequence, o, state, row)\n" .. (" "):rep(38) .. ": " or ""
    const u32 again = $(part)store_tile(p, o_map, where, sequence, o, state, smem + SMEM_O + wg * O_TILE, row, wg);
    if (__builtin_expect(__any_sync(~0u, again != 0), 0))
      store_rows_again(again, [&](int i$(of_far)) { store_again(p, sequence, {row + warp_row + i, where.head}$(far)); });
//| elseif p.has_lengths then
//|   if l.parts then
    if (where.parts > 1)
      store_part(p, where, sequence, o, state, row);
    else
//|   end
    // A box would write rows of the next sequence too.
    if (row + 64 > sequence.sq())
      store_rows<true>(p, where, sequence, o, state, row + warp_row + g, t);
    else
      store_tile(p, o_map, where, sequence, o, state, smem + SMEM_O + wg * O_TILE, row, wg);
//| else
    store_tile(p, o_map, where, o, state, smem + SMEM_O + wg * O_TILE, row, wg);
//| end
  };

//| if l.ahead then
  bool begun = false;  // the scores of the tile's first block are there
//| end
//| if pr.scans then
  int code = 0;  // of the block at hand
//| end
  while (tiles.next(p, smem, where)) {
    const KeyRange keys = tiles.keys(p, smem, wg);
    const Sequence sequence = $(p.has_lengths and "tiles.sequence(p, smem)" or "sequence_of(p, where.batch)");
    const int wg_row = where.row + row_in_tile(wg$(of_slot));
//| indented(4, pr.begin_score, "where.head")
//| local stage_there = owned and "wait_stage();" or "mbarrier_wait(score_full(smem, stages.at), stages.parity);"
//| if owned then
    // Of arrays that no box brings this warp copies its own rows, the first blocks of a tile at once, and beside the products of each
    // later one, into the stage of the block before, the next that has none.
    int coming;  // that block
//|   for _, tile in ipairs(l.staged.tiles) do
//|     if tile.owned and tile.of.row_index then
    const size_t own$(tile.node) = own_rows$(tile.node)(p, scored, wg_row + warp_row);
//|     end
//|   end
    auto copy_stage = [&](int at) {
//|   for _, tile in ipairs(l.staged.tiles) do
//|     if tile.owned then
      if (coming >= keys.last)
        copy_rows$(tile.node)(p, scored, smem + SMEM_SCORE + at * SCORE_STAGE + $(tile.at) + (wg * 64 + warp_row) * $(tile.pitch),
                    wg_row + warp_row, coming * BC$(tile.of.row_index and (", own%d"):format(tile.node) or ""));
//|     end
//|   end
      cp_async_commit();
      coming--;
    };
    auto begin_stages = [&](int block) {
      coming = block;
#pragma unroll 1
      for (int i = 0; i < STAGES_SCORE; i++) copy_stage((stages.at + i) % STAGES_SCORE);
    };
    auto copy_next = [&] { copy_stage((stages.at + STAGES_SCORE - 1) % STAGES_SCORE); };
    auto wait_stage = [&] {
//|   if pr.produces_scores then
      mbarrier_wait(score_full(smem, stages.at), stages.parity);
//|   end
      cp_async_wait<STAGES_SCORE - 1>();
      __syncwarp();
    };
    auto release_stage = [&] {
      $(pr.produces_scores and "leave_stage" or "__syncwarp(), stages.next")();
    };
//| end
//| if pr.brings_mask then
//|   indented(4, pr.mask_rows, "wg_row + warp_row + g")
//|   if l.ahead then
    find_rows();
//|   end
//| end
//| if pr.keeps_ends then
    const u32 ends = smem + SMEM_ENDS + (wg * 64 + warp_row + g) * 8;
//|   local first = l.runs and ", tiles.from(smem)" or ""
//|   if not l.ahead and not l.parts then
    auto find_ends = [&] {
      int row = wg_row + warp_row;
      asm volatile("" : "+r"(row));  // found where this stands, while the first products are on their way
      keep_ends(p, sequence, scored, row, smem + SMEM_ENDS + (wg * 64 + warp_row) * 8$(first));
    };
//|   else
    auto find_ends = [&] { keep_ends(p, sequence, scored, wg_row + warp_row, smem + SMEM_ENDS + (wg * 64 + warp_row) * 8$(first)); };
//|   end
//|   if l.ahead then
    find_ends();
//|   end
//| end
//| if pr.reads_ahead then
    ScoreAhead ahead;
    auto read = [&](int $(pr.scans and "code" or "block")) {
//|   local block, is_whole = pr.scans and "code >> CODE_BLOCK" or "block", pr.scans and "(code >> wg & 1) == 0" or pr.is_whole("keys")
      read_ahead(ahead, p, scored, wg_row + warp_row + g, $(block), t, $(is_whole));
    };
//| end
//| if p.has_dropout then
    // Dropout of P of a block. Where the tile is is looked up each time, so that no register holds it.
    auto drop_block = [&](int block) {
      const Tile tile = tiles.again(p, smem);
      drop(a, p, (int)(tile.batch * p.hq) + tile.head, tile.row + row_in_tile(wg$(of_slot)) + warp_row + g, block, t);
    };
//| end
//| local none = l.one_text and "-2 * FAR" or "-infinity()"  -- exponents are relative to m as it is there
    RowState state[2] = {{$(none), 0.f}, {$(none), 0.f}};
    float keep[2];
#pragma unroll
    for (int n = 0; n < NO; n++) o[n] = 0.f;

    // A block of keys that only other warpgroups see.
    auto skip_k = [&]$(grouped and "(int block, int lo)" or "") {
      mbarrier_wait(k_full(smem, k.at), k.parity);
      release_k();
//| if l.pingpong then
      pingpong_wait(wg);  // before the wait for V: the warpgroup that frees its place may want this turn
      pingpong_pass(wg);
//| end
//| if pr.staged and not (owned and not pr.produces_scores) then
      mbarrier_wait(score_full(smem, stages.at), stages.parity);
      $(owned and "leave" or "release")_stage($(grouped and "block, lo" or ""));
//| end
    };
    auto skip_v = [&] {
      mbarrier_wait(v_full(smem, v.at), v.parity);
      release_v();
    };
//| if pr.skips then
    // A block that is there, and of which it sees nothing.
    auto skip_block = [&](int code) {
      skip_k();
//|   if pr.brings_mask then
      if (code_has(code, CODE_STAGED)) {
        mbarrier_wait(mask_full(smem, masks.at), masks.parity);
        release_mask();
      }
//|   end
      skip_v();
    };
//| end

//| if pr.masks then
    // A warpgroup without a row of the problem sees nothing of any block. Another way around the loops would take addresses of products out
    // of uniform registers.
//| else
//| if l.passes_once then
    // Blocks that only other warpgroups see, or all that is loaded, where no row of the problem is here.
    const bool idle = keys.idle();
    int block = keys.loaded_hi;
#pragma unroll 1
    for (const int first = idle ? keys.loaded_lo - 1 : block < keys.loaded_lo ? block : keys.first; block > first; block--)
      skip_k($(leaves)), skip_v();
    if (idle) {
      tiles.done(smem, true);
//|   if l.in_chunks then
      if (keys.loaded_lo > keys.loaded_hi) continue;  // there is no Q, and these rows are another tile's
//|   end
      mbarrier_wait(q_full(smem, q.at, wg), q.parity);
      release(q_empty(smem, q.at, wg));
      q.next();
      continue;
    }
//| else
    if (keys.idle()) {  // no row of the problem: all that is loaded passes
      tiles.done(smem, true);
//| if l.q_lent then
      if (owed) return_q();
      owed = false;
//| end
//| if l.in_chunks then
      if (keys.loaded_lo > keys.loaded_hi) continue;  // there is no Q, and these rows are another tile's
//| end
      mbarrier_wait(q_full(smem, q.at, wg), q.parity);
      release(q_empty(smem, q.at, wg));
      q.next();
#pragma unroll 1
//| if pr.scans then
      for (bool last = false; !last;) {
        mbarrier_wait(k_full(smem, k.at), k.parity);
        last = (load_shared(code_at(smem, k.at)) & CODE_LAST) != 0;
        skip_k(), skip_v();
      }
//| else
      for (int block = keys.loaded_hi; block >= keys.loaded_lo; block--) skip_k($(leaves)), skip_v();
//| end
      continue;
    }
//| end
//| end
//| local whole = pr.scans and "(code >> wg & 1) == 0" or pr.is_whole("keys")
//| local arguments = "s, p, scored, wg_row + warp_row + g, block, t"
//| arguments = arguments .. (pr.reads_ahead and ", ahead" or pr.staged and ", " .. stage .. ", wg" or "")
//| if pr.scans then
    // Blocks that a code tells to be whole need no mask.
    auto mask = [&](int code) {
      const int block = code >> CODE_BLOCK;
//| elseif not l.cuts then
    // Blocks between full_lo and full_hi need no mask.
    auto mask = [&](int block) {
//| end
//| if pr.masks then
      const int own = code >> wg & CODE_EDGE;
//|   if pr.brings_mask then
      // Votes side by side: none waits for another.
      const bool staged = code_has(code, CODE_STAGED), cuts = code_has(code, CODE_CUT << wg), hides = code_has(code, CODE_HIDDEN << wg);
      if (!staged && !cuts && !hides) return;
      if (staged) {
        mbarrier_wait(mask_full(smem, masks.at), masks.parity);
        if (cuts && !hides)
          hide_staged(s, p, scored, wg_row + warp_row + g, block, t, smem + SMEM_MASK + masks.at * MASK_STAGE, wg$(pr.rows_argument));
        release_mask();
      }
//|   else
      if (!__any_sync(~0u, own != 0)) return;
//|   end
//|   local hides = pr.brings_mask and "hides && !cuts" or "code_is(code, wg, CODE_HIDDEN)"
//|   local cuts = pr.brings_mask and "cuts" or "code_has(code, CODE_CUT << wg)"
      // By selects: beside a branch that has no scores the others would be copied.
      if ($(hides)) {
#pragma unroll
        for (int i = 0; i < NS; i++) s[i] = own == CODE_HIDDEN ? -infinity() : s[i];
      }
//|   if pr.keeps_ends then
      if ($(cuts)) {
        // Of the rows of this warp some may see all of it.
        bool cut = false;
#pragma unroll
        for (int h = 0; h < 2; h++)
          cut = cut || (int)load_shared(ends + h * 64) > block * BC || (int)load_shared(ends + h * 64 + 4) < block * BC + BC - 1;
        if (__any_sync(~0u, cut)) apply_mask(s, p, sequence$(pr.ends_argument), wg_row + warp_row + g, block, t);
      }
//|   elseif pr.brings_mask then
      if (cuts) {
        // Of most such blocks the launch's mask leaves all, and the last key is another block's.
        bool cut = false;
        const int key = $(pr.counts_from and "tiles.from(smem) + " or "")block * BC;
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const int query = wg_row + warp_row + g + 8 * h;
          cut = cut || $(pr.last_key("query")) < key + BC - 1$(pr.left and (" || %s > key"):format(pr.first_key("query")) or "");
        }
        if (__any_sync(~0u, cut)) apply_mask(s, p, sequence$(pr.ends_argument), wg_row + warp_row + g, block, t);
      }
//|   else
      if ($(cuts)) apply_mask(s, p, sequence$(pr.ends_argument), wg_row + warp_row + g, block, t);
//|   end
    };
//| else
//| if not l.cuts then
//|   if pr.staged then
      $(stage_there)
//|   end
//|   indented(6, pr.scoring_by, whole, arguments, pr.reads_ahead or pr.staged)
//|   if pr.staged then
      release_stage($(leaves));
//|   end
      if ($(whole)) return;
      apply_mask(s, p, sequence$(pr.ends_argument), wg_row + warp_row + g, block, t);
    };
//| end
//| if l.besides then
    // Of a later block, while its products are on their way: whether all scores have one number besides, and it.
    auto far_of_next = [&] {
      $(stage_there)
      return load_shared_float2(smem + SMEM_SCORE + stages.at * SCORE_STAGE + $(l.staged.far.at));
    };
//|   if not l.cuts then
    // What all scores have besides, or what the program adds to each, in units of which exponents are unit_log2.
    auto mask_beside = [&](int block, float2 far, float &unit_log2, float &beside) {
      unit_log2 = $(pr.unit_log2);
      if (apply_score_beside(s, p, scored, wg_row + warp_row + g, block, t, smem + SMEM_SCORE + stages.at * SCORE_STAGE, wg, far, beside))
        unit_log2 = p.scale_log2;
      release_stage();
      if ($(whole)) return;
      apply_mask(s, p, sequence$(pr.ends_argument), wg_row + warp_row + g, block, t);
    };
//|   end
//| end
//| if l.held then
//|   local tile = l.staged.tiles[1]
//|   if tile.shifted then
    const u32 shift[2] = {row_shift$(tile.node)(p, scored, wg_row + warp_row + g),
                          row_shift$(tile.node)(p, scored, wg_row + warp_row + g + 8)};
//|   end
    // Of a later block, while its products are on their way: the elements that are added to them.
    auto hold_next = [&](u32 (&held)[NS / 2]$(l.one_text and ", int block" or "")) {
      $(stage_there)
//|   if l.one_text then
//|     local of_rows = tile.shifted and ", scored" or ""
      if (!($(whole))) hide_in_stage(p, sequence, wg_row + warp_row + g, block, smem + SMEM_SCORE + stages.at * SCORE_STAGE, wg$(of_rows));
//|   end
      hold_tile(held, smem + SMEM_SCORE + stages.at * SCORE_STAGE, wg$(tile.shifted and ", shift" or ""));
      release_stage();
    };
//|   if not l.cuts then
    auto mask_held = [&](int block, const u32 (&held)[NS / 2]) {
//|   indented(6, pr.scoring_by, whole, "s, p, scored, wg_row + warp_row + g, block, t, held", true, "apply_held")
      if ($(whole)) return;
      apply_mask(s, p, sequence$(pr.ends_argument), wg_row + warp_row + g, block, t);
    };
//|   end
//| end
//| if l.cuts then
    auto is_whole = [&](int block) { return $(whole); };
//| end
//| if l.cuts == "joins" then
    // Of a block, while its products are on their way: where what is added to exponents lies.
    auto join = [&](int block) {
      $(stage_there)
      return $(stage) + joins;
    };
//| end
//| if l.begins then
    // Where there are numbers that the next block's scores begin with. Without such a block, of which nothing is made, what nobody writes.
    auto begin = [&](bool more, u32 idle$(grouped and ", int block" or "")) -> Beginning {
      if (!more) return {idle$(l.reads_twice and ", idle" or "")};
      $(stage_there)
      return begin_at(p, $(stage), wg);
    };
    // Of a block whose scores began so.
    auto mask_begun = [&](int block) {
      if ($(whole)) return;
      apply_mask(s, p, sequence$(pr.ends_argument), wg_row + warp_row + g, block, t);
    };
//| end
//| end
//| if l.relative and pr.slopes and not l.cuts then
    auto exponents = [&](int $(pr.scans and "code" or "block")) {
//|   local block, ends = pr.scans and "code >> CODE_BLOCK" or "block", pr.keeps_ends and ", ends" or ""
      apply_exponent(s, p, sequence, scored, state, wg_row + warp_row + g, $(block), t, $(whole)$(ends));
    };
//| end
//| if l.tanh_by_fma and not l.cuts then
    // Of a later block. small: whether all of its products are.
    auto exponents = [&](int block, bool small) {
      apply_exponent(s, p, sequence, scored, state, by_fma, wg_row + warp_row + g, block, t, small, $(whole));
    };
//| end
//| if l.cuts then
//|   local relative, row = l.tanh_by_fma or l.besides or pr.slopes, "wg_row + warp_row + g"
//|   local at, brought = "smem + SMEM_SCORE + stages.at * SCORE_STAGE", ({ joins = ", u32 from", besides = ", float2 far" })[l.cuts] or ""
//|   if l.cuts == "held" then brought = ", const u32 (&held)[NS / 2]" end
//|   if l.cuts == "scores" or l.cuts == "held" or l.cuts == "slopes" then
    // Products of a block become $(relative and "exponents relative to the rows' m" or "scores"). whole: no mask cuts it.
    auto make_scores = [&](int block, bool whole$(brought)) {
//|     if l.cuts == "slopes" then
      apply_exponent(s, p, sequence, scored, state, $(row), block, t, whole);
//|     elseif l.cuts == "held" then
//|       indented(6, pr.scoring_by, "whole", "s, p, scored, wg_row + warp_row + g, block, t, held", true, "apply_held")
//|     else
//|       if pr.staged then
      $(stage_there)
//|       end
//|       indented(6, pr.scoring_by, "whole", arguments, pr.reads_ahead or pr.staged)
//|       if pr.staged then
      release_stage($(leaves));
//|       end
//|     end
    };
//|   end
//|   local makes = relative and "exponents relative to the rows' m" or l.cuts == "joins" and "exponents" or "scores"
    // Of a block that is cut, or whose rows may move: $(makes), and -inf of hidden pairs.
//|   if l.cuts == "tanh" then
    auto cut_scores = [&](int block, float (&tops)[2]) {
      const bool whole = $(whole);
#pragma unroll 1
      for (int first = 0; first < NS; first += HALF) {
        auto &half = (float (&)[HALF])s;
        apply_exponent(half, p, scored, state, by_fma, $(row), block);
        if (!whole) apply_mask(half, p, sequence$(pr.ends_argument), $(row), block, t + first);
        raise_tops(half, tops);
        other_half(s);
      }
    };
//|   elseif l.one_text then
    // The rows' m, and O, before such a block.
    auto raise_rows = [&](int block, const u32 (&held)[NS / 2]) {
      float tops[2], shift[2];
      raise_tops(s, tops, p, sequence, scored, $(row), block, t, held);
      cut_maxima(tops, state, keep, shift, $(pr.unit_log2));
      wgmma_wait<0>(o);
#pragma unroll
      for (int i = 0; i < NO; i++) o[i] *= keep[i / 2 % 2];
    };
//|   else
    auto cut_scores = [&](int block$(brought)) {
//|   if l.cuts == "joins" then
      join_scores(s, p.scale_log2, from);
//|   elseif l.cuts == "besides" then
      join_scores(s, state, p.scale_log2, far, $(at) + $(l.staged.far.at + 8), join_at($(at), wg));
      release_stage();
//|   elseif l.cuts ~= "plain" then
      make_scores(block, $(whole)$(l.cuts == "held" and ", held" or ""));
//|   end
//|   if l.cuts ~= "slopes" then
      if ($(whole)) return;
      apply_mask(s, p, sequence$(pr.ends_argument), $(row), block, t);
//|   end
    };
//|   end
//| end
//| if l.fades then
    // Whether of a block all probabilities may be 0.
    auto may_be_none = [&](int $(pr.scans and "code" or "block"), float &most) {
      return $(whole) && may_fade(p, scored, state, wg_row + warp_row + g, $(pr.scans and "code >> CODE_BLOCK" or "block"), t, most);
    };
//| end
//| if l.skip_late then
    int trailing = 0;  // blocks at the end that only others see: O leaves first
//| end
    if (keys.loaded_hi >= keys.loaded_lo) {
//| include "wgmma/hopper_prologue.cu"

//| include(l.one_text and "wgmma/hopper_one_text.cu" or l.cuts and "wgmma/hopper_cut_loop.cu" or "wgmma/hopper_main_loop.cu")

//| include "wgmma/hopper_epilogue.cu"
    }
    store(o, state$(l.o_in_q and ", keys.loaded_hi >= keys.loaded_lo" or ""));
//| if pr.overs then
    // Blocks that only others see pass when O has left.
    if (keys.loaded_hi >= keys.loaded_lo) {
#pragma unroll 1
      while (!code_has(code, CODE_LAST)) {
        mbarrier_wait(k_full(smem, k.at), k.parity);
        code = (int)load_shared(code_at(smem, k.at));
        skip_block(code);
      }
    }
//| end
//| if l.skip_late then
#pragma unroll 1
    for (; trailing > 0; trailing--) skip_k($(grouped and "keys.loaded_lo + trailing - 1, keys.loaded_lo" or "")), skip_v();
//| end
  }
//| if c.o_path > 0 then
  tma_wait_read();
//| end
}
