//| needs "c.cluster l.eight? l.joined l.joined_k l.joined_v l.near? l.run l.shared? l.tail_barriers? l.v_in_k?"
//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- K and V in pages: a warp loads them, a lane for each run of keys ----
constexpr int RUN = $(l.run);  // keys of a block that certainly lie in one page, and rows of a box
constexpr int RUNS = BC / RUN;
// A lane's run, as the coordinates of its boxes. A page of -1 is none: the boxes are zeros.
struct Run {
  int token, page;
};

// A lane's runs of a tile's blocks, from right to left.
struct Runs {
  const Params &p;
  const int *table;  // of the sequence
  int first, last;   // the keys that its queries see: for no others an entry is read
  int key, entry, token;

  __device__ __forceinline__ Runs(const Params &p, const Sequence &sequence, int block, int lane)
      : p(p), table(p.page_table + (long long)sequence.index * p.page_table_stride), first($(pr.first_own_key)),
        last($(pr.last_own_key())) {
    key = block * BC + lane * RUN;
    entry = key / p.page_size;
    token = key - entry * p.page_size;
  }
  __device__ __forceinline__ Run look_up() const {
    const int page = $(pr.meets("RUN", "first", "last")) ? table[entry] : -1;
    return {token, (u32)page < (u32)p.pages ? page : -1};
  }
  // To the block in front, without a division.
  __device__ __forceinline__ void next(int entries, int tokens) {
    key -= BC;
    entry -= entries;
    token -= tokens;
    if (token < 0) token += p.page_size, entry--;
  }
};

//| if l.joined then
// The boxes of the runs of a block of K or V: those of columns lie side by side, in groups of eight rows. stride: from a head to the next.
template <int N>
__device__ __forceinline__ void load_joined(u32 to, const TensorMap &map, u32 full, int bytes, const Params &p, const Run &run, int head,
                                            long long stride, int lane) {
  if (lane == 0) mbarrier_expect(full, bytes);
  if (lane >= RUNS) return;
  to += lane * RUN * N * ROW;
  if (p.joined)  // of dimensions (column of a box, row of eight, box, group, page)
    tma_load(to, map, full, 0, 0, head * (int)(stride / BOX), run.token / 8, run.page);
  else  // of dimensions (column of a box, row, box, head, page)
#pragma unroll 1
    for (int row = 0; row < RUN; row += 8) tma_load(to + row * N * ROW, map, full, 0, run.token + row, 0, head, run.page);
}
//| end
//| if not (l.joined_k and l.joined_v) then
//|   if l.shared then
// The boxes [FROM, N) of the runs of a block. bytes: that are to come, or 0.
template <int FROM, int N>
//|   else
// The boxes of the runs of a block of K or V.
template <int N>
//|   end
__device__ __forceinline__ void load_runs(u32 to, const TensorMap &map, u32 full, int bytes, const Run &run, int head, int lane) {
  if (lane == 0$(l.shared and " && bytes > 0" or "")) mbarrier_expect(full, bytes);
  if (lane < RUNS)
#pragma unroll
//| if c.cluster > 1 and not l.near then
    for (int box = FROM; box < N; box++)  // the blocks of a cluster take boxes in turns, and send them to all
      if (box % CLUSTER == cluster_rank()) tma_load_for_all(to + (box * BC + lane * RUN) * ROW, map, full, box * BOX, run.token, head, run.page);
//| else
    for (int box = $(l.shared and "FROM" or "0"); box < N; box++) tma_load(to + (box * BC + lane * RUN) * ROW, map, full, box * BOX, run.token, head, run.page);
//| end
}
//| end

//| local function load_k()
//|   if l.v_in_k then
        const bool all = own_rows(sequence, block).all();
        const u32 left = all ? k_full(smem, k.at) : v_landed(smem, k.at), rest = all ? rest_full(smem, k.at) : v_landed(smem, k.at);
        load_runs<0, LEFT>(smem + SMEM_K + k.at * K_TILE, k_map, left, all ? LEFT_BYTES : 0, k_run, where.kv_head, lane);
        mbarrier_wait(rest_empty(smem, k.at), k.parity ^ 1);
        load_runs<LEFT, OF_V>(smem + SMEM_K + k.at * K_TILE, k_map, rest, OF_V_BYTES - (all ? LEFT_BYTES : 0), k_run, where.kv_head, lane);
//|   elseif l.joined_k then
        load_joined<BOXES>(smem + SMEM_K + k.at * K_TILE, k_map, k_full(smem, k.at), K_TILE, p, k_run, where.kv_head, p.k_sh, lane);
//|   else
        load_runs<$(l.shared and "0, " or "")BOXES>(smem + SMEM_K + k.at * K_TILE, k_map, k_full(smem, k.at), K_TILE, k_run, where.kv_head, lane);
//|   end
//| end
//| local function load_v()
//|   if l.shared then
        load_runs<0, LEFT>(smem + SMEM_V + v.at * V_TILE, v_map, full, all ? LEFT_BYTES : 0, v_run, where.kv_head, lane);
        mbarrier_wait(rest_empty(smem, v.at), v.parity ^ 1);
        load_runs<LEFT, BOXES_V>(smem + SMEM_V + v.at * V_TILE, v_map, all ? rest_full(smem, v.at) : full, V_TILE - (all ? LEFT_BYTES : 0), v_run,
                                 where.kv_head, lane);
//|   elseif l.joined_v then
        load_joined<BOXES_V>(smem + SMEM_V + v.at * V_TILE, v_map, full, V_TILE, p, v_run, where.kv_head, p.v_sh, lane);
//|   else
        load_runs<BOXES_V>(smem + SMEM_V + v.at * V_TILE, v_map, full, V_TILE, v_run, where.kv_head, lane);
//|   end
//| end
__device__ __forceinline__ void produce_keys(const Params &p, const TensorMap &k_map, const TensorMap &v_map, u32 smem, int lane) {
  Ring<STAGES_K> k;
//| if not l.v_in_k then
  Ring<STAGES_V> v;
//| end
  TileQueue tiles;
  Tile where;
  tma_prefetch(k_map), tma_prefetch(v_map);
  grid_wait();
  const int entries = BC / p.page_size, tokens = BC - entries * p.page_size;
//| if l.near then
  for (int number = 0; tiles.next(p, smem, where); number++) {
//| else
  while (tiles.next(p, smem, where)) {
//| end
    const KeyRange keys = tiles.keys(p, smem, 0);
    const Sequence sequence = tiles.sequence(p, smem);
//| if pr.scans then
//|   indented(4, pr.begin_published, true)
    TileBlocks blocks(keys.loaded_hi, keys.loaded_lo);
    // V of a block is needed when K of the next has been. The last block is told beside K: the one after it is found before, and its pages
    // are looked up before the waits.
    Run next = {0, -1}, v_run = next;
    int before = -1, code = -1, after;
    bool first = true;
#pragma unroll 1
    do {
      after = first || code >= 0 ? blocks.next(look, look_of) : -1;
      if (first && after < 0 && lane == 0) mbarrier_arrive(tile_loaded(smem));
      first = false;
      const Run k_run = next;
      if (after >= 0) next = Runs(p, sequence, after >> CODE_BLOCK, lane).look_up();
      if (code >= 0) {
        mbarrier_wait(k_empty(smem, k.at), k.parity ^ 1);
        if (lane == 0) store_shared(code_at(smem, k.at), (u32)code | (after < 0 ? (u32)CODE_LAST : 0u));
//|   load_k()
        k.next();
        if (lane == 0 && after < 0) mbarrier_arrive(tile_loaded(smem));
      }
      if (before >= 0) {
        mbarrier_wait(v_empty(smem, v.at), v.parity ^ 1);
        const u32 full = own_rows(sequence, before >> CODE_BLOCK).all() ? v_full(smem, v.at) : v_landed(smem, v.at);
//|   load_v()
        v.next();
      }
      v_run = k_run;
      before = code;
      code = after;
    } while (code >= 0 || before >= 0);
    tiles.done(smem, true);
//| else
    tiles.done(smem, true);
//| if l.near then
    if (lane == 0) producer_at_tile(smem, number);
    __syncwarp();
//| end
    if (keys.loaded_hi < keys.loaded_lo) {
      if (lane == 0) mbarrier_arrive(tile_loaded(smem));
      continue;
    }
    Runs runs(p, sequence, keys.loaded_hi, lane);
    Run next = runs.look_up(), k_run = next, v_run = next;
    // V of a block is needed when K of the next has been. Pages are looked up a block before the waits.
    for (int block = keys.loaded_hi; block >= keys.loaded_lo - 1; block--) {
      v_run = k_run, k_run = next;
      if (block > keys.loaded_lo) {
        runs.next(entries, tokens);
        next = runs.look_up();
      }
      if (block >= keys.loaded_lo) {
//|   if l.tail_barriers then
        mbarrier_wait(tail_empty(smem, k.at), k.parity ^ 1);
        load_runs<OF_V, BOXES>(smem + SMEM_K + k.at * K_TILE, k_map, tail_full(smem, k.at), K_TILE - OF_V_BYTES, k_run, where.kv_head, lane);
//|   end
        mbarrier_wait(k_empty(smem, k.at), k.parity ^ 1);
//|   load_k()
        k.next();
        if (lane == 0 && block == search_block(keys)) mbarrier_arrive(tile_loaded(smem));
      }
//| if not l.v_in_k then
      if (block < keys.loaded_hi) {
        mbarrier_wait(v_empty(smem, v.at), v.parity ^ 1);
//| if l.shared then
        const bool all = own_rows(sequence, block + 1).all();
        const u32 full = all ? v_full(smem, v.at) : v_landed(smem, v.at);
//| elseif l.eight then  -- who transposes V clears rows that are not the sequence's
        const u32 full = v_full(smem, v.at);
//| else
        const u32 full = own_rows(sequence, block + 1).all() ? v_full(smem, v.at) : v_landed(smem, v.at);
//| end
//|   load_v()
        v.next();
      }
//| end
    }
//| end
  }
}
