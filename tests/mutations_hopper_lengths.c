/* mutations_hopper_lengths: faults of flash_fwd_wgmma where sequences have lengths of their own, as in mutations.c. With two SMs a block
 * does tiles of several sequences. */
#include "mutations.h"
#include "verify/cases/case.h"
#include <stddef.h>

#define NONE -1, -1, 0, 0
#define WITH(ragged) FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, ragged, 0
#define IN(layout, ragged) FA_VALUES_NORMAL, FA_HIDDEN_NAN, layout, 0, ragged, 0
#define CONFIG(br, schedule, bc, grid, rescale, rest)                                                                        \
    "flash_fwd_wgmma:ctas=1,feeder=40,box=64,sections=1,cluster=1,exp=0,convert=1,br=" #br ",schedule=" #schedule ",bc=" #bc \
    ",grid=" #grid ",rescale=" #rescale "," rest
#define USUAL "stages_k=2,stages_v=2,q_bufs=1,ahead=0,o_path=0"
#define THREE "stages_k=3,stages_v=3,q_bufs=1,ahead=0,o_path=0"
#define AHEAD "stages_k=2,stages_v=2,q_bufs=2,ahead=1,o_path=0"
#define OVER_Q "stages_k=2,stages_v=2,q_bufs=1,ahead=0,o_path=1"
#define STAGED "stages_k=2,stages_v=2,q_bufs=2,ahead=0,o_path=2"

enum { Q_K = FA_FORM_SEQLENS_Q | FA_FORM_SEQLENS_K, PACKED = FA_FORM_CU_Q | FA_FORM_CU_K, PAGED = FA_FORM_SEQLENS_K | FA_FORM_PAGES };
static const fa_ragged_how
    packed = { .seed = 6, .forms = PACKED, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM, .gap = 5 },
    gaps = { .seed = 9, .forms = PACKED | Q_K, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM, .gap = 9 },
    padded = { .seed = 13, .forms = Q_K, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM },
    keyless = { .seed = 4, .forms = FA_FORM_SEQLENS_K, .k = FA_SPREAD_UNIFORM, .idle = 2 }, idle = { .seed = 4, .forms = Q_K, .idle = 3 },
    pages = { .seed = 3, .forms = FA_FORM_CU_Q | PAGED, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM, .page_size = 16, .spare = 2 },
    pages_keyless = { .seed = 4, .forms = PAGED, .k = FA_SPREAD_EDGES, .idle = 1, .page_size = 16, .spare = 2 },
    pages_full = { .seed = 4, .forms = FA_FORM_CU_Q | PAGED, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_FULL, .page_size = 16, .spare = 2 },
    pages_48 = { .seed = 5,
                 .forms = FA_FORM_SEQLENS_Q | PAGED,
                 .q = FA_SPREAD_UNIFORM,
                 .k = FA_SPREAD_UNIFORM,
                 .page_size = 48,
                 .spare = 2,
                 .wide = 1,
                 .foreign = 1 },
    full = { .seed = 8, .forms = FA_FORM_SEQLENS_K, .k = FA_SPREAD_FULL },
    pages_128 = { .seed = 8, .forms = PAGED, .k = FA_SPREAD_FULL, .page_size = 128, .spare = 1 };

static const scene scenes[] = {
    { "packed", "bf16,d=128,mask=causal,features=lengths,b=4,hq=2,hkv=1", CONFIG(128, 0, 48, 2, 3, USUAL), 150, 200, NONE, WITH(&packed) },
    { "packed_none", "bf16,d=64,mask=none,features=lengths,b=4,hq=2,hkv=1", CONFIG(64, 0, 48, 1, 2, USUAL), 100, 200, NONE, WITH(&packed) },
    { "gaps", "fp16,d=64,mask=causal,features=lengths,b=4,hq=2,hkv=2", CONFIG(128, 1, 64, 2, 3, STAGED), 200, 250, NONE, WITH(&gaps) },
    { "gaps_72", "fp16,d=72,mask=causal,features=lengths,b=4,hq=2,hkv=2", CONFIG(128, 1, 64, 2, 3, STAGED), 200, 250, NONE, WITH(&gaps) },
    { "window", "bf16,d=64,mask=window,features=lengths,b=4,hq=2,hkv=1", CONFIG(64, 0, 48, 1, 2, USUAL), 60, 200, 30, 5, 0, 0,
      WITH(&gaps) },
    { "top_left", "bf16,d=64,mask=causal,features=lengths,b=3,hq=2,hkv=1", CONFIG(64, 0, 80, 2, 3, USUAL), 90, 200, -1, -1, FA_TOP_LEFT, 0,
      WITH(&padded) },
    { "top_left_window", "bf16,d=64,mask=window,features=lengths,b=3,hq=2,hkv=1", CONFIG(64, 0, 48, 2, 3, USUAL), 90, 200, 70, 0,
      FA_TOP_LEFT, 0, WITH(&padded) },
    { "padded", "bf16,d=64,mask=causal,features=lengths+lse-strides,b=3,hq=2,hkv=1", CONFIG(128, 0, 48, 2, 2, AHEAD), 200, 200, NONE,
      WITH(&padded) },
    { "over_q", "bf16,d=64,mask=causal,features=lengths,b=3,hq=2,hkv=1", CONFIG(64, 0, 48, 2, 2, OVER_Q), 150, 200, NONE, WITH(&packed) },
    { "three", "bf16,d=64,mask=none,features=lengths,b=4,hq=2,hkv=1", CONFIG(64, 0, 48, 2, 2, THREE), 100, 220, NONE, WITH(&packed) },
    { "keyless", "bf16,d=64,mask=causal,features=lengths,b=4,hq=2,hkv=1", CONFIG(64, 0, 48, 2, 2, USUAL), 70, 60, NONE, WITH(&keyless) },
    { "idle", "bf16,d=64,mask=none,features=lengths,b=3,hq=2,hkv=1", CONFIG(64, 0, 48, 2, 2, USUAL), 70, 60, NONE, WITH(&idle) },
    { "pages", "bf16,d=64,mask=causal,features=lengths+pages,page=16,b=4,hq=2,hkv=1", CONFIG(64, 0, 80, 2, 3, USUAL), 90, 250, NONE,
      WITH(&pages) },
    { "pages_keyless", "bf16,d=64,mask=none,features=lengths+pages,page=16,b=4,hq=2,hkv=1", CONFIG(64, 0, 80, 2, 3, USUAL), 90, 60, NONE,
      WITH(&pages_keyless) },
    { "pages_full", "bf16,d=64,mask=none,features=lengths+pages,page=16,b=3,hq=2,hkv=1", CONFIG(64, 0, 80, 2, 3, USUAL), 60, 241, NONE,
      WITH(&pages_full) },
    { "pages_48", "bf16,d=128,mask=none,features=lengths+pages,page=16,b=4,hq=2,hkv=2", CONFIG(64, 0, 64, 1, 2, USUAL), 80, 300, NONE,
      WITH(&pages_48) },
    { "joined", "bf16,d=128,mask=causal,features=lengths+pages,page=16,b=3,hq=4,hkv=2", CONFIG(64, 0, 48, 2, 3, USUAL), 90, 250, NONE,
      IN(FA_LAYOUT_HEADS, &pages) },
    { "joined_48", "fp16,d=192,dv=128,mask=none,features=lengths+pages,page=16,b=3,hq=2,hkv=2", CONFIG(64, 0, 64, 1, 2, USUAL), 80, 300,
      NONE, IN(FA_LAYOUT_PACKED, &pages_48) },
    { "pages_128", "fp16,d=64,mask=window,features=lengths+pages,page=128,b=3,hq=2,hkv=1", CONFIG(128, 0, 48, 2, 2, AHEAD), 150, 400, 60, 9,
      0, 0, WITH(&pages_128) },
    { "queue", "bf16,d=64,mask=causal,features=lengths,b=9,hq=2,hkv=1", CONFIG(128, 1, 64, 1, 3, USUAL), 100, 120, NONE, WITH(&packed) },
    { "split", "bf16,d=64,mask=causal,features=lengths,b=1,hq=1,hkv=1", CONFIG(128, 0, 48, 2, 3, USUAL), 100, 1700, NONE, WITH(&full) },
    { "split_lazy", "bf16,d=72,mask=window,features=lengths+pages,page=16,b=1,hq=1,hkv=1", CONFIG(64, 0, 48, 1, 2, STAGED), 50, 1700, 250,
      0, 0, 0, WITH(&pages_full) },
    { "sections", "bf16,d=64,mask=causal,features=lengths,b=3,hq=3,hkv=3",
      "flash_fwd_wgmma:ctas=1,feeder=40,box=64,sections=2,cluster=1,exp=0,convert=1,br=64,schedule=0,bc=48,grid=2,rescale=3," USUAL, 100,
      150, NONE, WITH(&packed) },
    { NULL, NULL, NULL, 0, 0, NONE, WITH(NULL) },
};

#define F "flash_fwd_wgmma.cu"
#define C "hopper_consumer.cu"
#define K "hopper_mask.cu"
#define T "hopper_scheduler.cu"
#define E "hopper_producer.cu"
#define X "hopper_out_of_range.cu"
#define RANGES "ranges.cu"
#define Z "clear_rows.cu"
#define P "hopper_pages.cu"
#define Q "sequence.cu"
#define L "flash_fwd_wgmma.lua"
#define H "part_rows.cu"
#define S "split_tile.cu"
#define V "varlen_order.cu"

static const mutation mutations[] = {
    /* parts of tiles */
    { "all parts are the first", T, "make_uint4(where.number, where.part, where.parts, 0)", "make_uint4(where.number, 0, where.parts, 0)",
      0, "split" },
    { "a part is the whole", RANGES,
      "const Range loaded = part_of($(pr.range_of(\"where.head\", \"where.row\", \"min(where.row + BR, rows) - 1\")), where);",
      "const Range loaded = $(pr.range_of(\"where.head\", \"where.row\", \"min(where.row + BR, rows) - 1\"));", 0, "split split_lazy" },
    { "parts leave as wholes", C, "if (where.parts > 1)", "if (where.parts > 8)", 0, "split" },
    { "staged parts leave as wholes", C, "where.parts > 1 ? store_part", "where.parts > 8 ? store_part", 0, "split_lazy" },
    { "a warp's rows in the place of the first's", H, "__shfl_sync(~0u, threadIdx.x / 32 % 4, 0) * 16\"", "0\"", 0, "split" },
    { "a lane's share of l", H, "quad_sum($(holds.state).l)", "$(holds.state).l", 0, "split" },
    { "warps share a counter", H, "first / ROWS_WARP, first, rows", "0, first, rows", 0, "split" },
    { "maxima are scaled twice", S, "log2_scale, scale = \"1.f\"", "log2_scale, scale = \"p.scale_log2\"", 0, "split" },
    { "maxima are not scaled", S, "local log2_scale, scale = pr.unit_log2, pr.unit", "local log2_scale, scale = \"1.f\", \"p.scale\"", 0,
      "split_lazy" },
    /* heads that share the L2 */
    { "the last section of heads is as wide as the others", V, "min(widest, heads() - at * widest)", "widest", 0, "sections" },
    { "narrow sections rounded down", V, "(own().width + $(c.sections - 1)) / $(c.sections)", "own().width / $(c.sections) / 2", 0,
      "sections" },
    { "sections of no head", V, "(p.hkv + sections - 1) / sections$(", "p.hkv / (sections + p.hkv)$(", 0, "sections" },
    { "only the first lane's sequence has a width", V, "x.number, x.width)", "x.number, threadIdx.x % 32 == 0 ? x.width : 1)", 0,
      "sections" },
    /* rows of others */
    { "V after the end stays", X, "        $(clear)(tile, own.end, BC, lane);\n", "", 0, "packed_none pages" },
    { "V before the window stays", X, "        $(clear)(tile, 0, own.first, lane);\n", "", 0, "window" },
    { "V: a row after the end stays", X, "(tile, own.end, BC, lane)", "(tile, own.end + 1, BC, lane)", 0, "packed_none gaps packed" },
    { "V: the last key is cleared", X, "(tile, own.end, BC, lane)", "(tile, own.end - 1, BC, lane)", 0, "packed_none" },
    { "V: a row before the window stays", X, "(tile, 0, own.first, lane)", "(tile, 0, own.first - 1, lane)", 0, "window" },
    { "V: the first key of a window is cleared", X, "(tile, 0, own.first, lane)", "(tile, 0, own.first + 1, lane)", 0, "window" },
    { "rows of the first box alone are cleared", Z, "box < N; box++", "box < 1; box++", 0, "packed" },
    { "boxes of V as long as those of Q", X, "or \"clear_rows<BC, BOXES_V>\"", "or \"clear_rows<64, BOXES_V>\"", 0, "packed" },
    { "a lane clears half", Z, "at += 32 * 16)", "at += 64 * 16)", 0, "packed_none packed" },
    { "Q after the end stays", X,
      "      clear_rows<64, BOXES>(smem + (q.at * WGS + wg) * Q_TILE, partial_rows(sequence, where.row), 64, lane);\n", "", 0,
      "packed gaps" },
    { "Q: the last row is cleared", RANGES, "return (sequence.sq() - row) % 64; }", "return (sequence.sq() - row) % 64 - 1; }", 0,
      "packed" },
    { "Q of the first warpgroup is cleared", X, "(q.at * WGS + wg) * Q_TILE", "(q.at * WGS) * Q_TILE", 0, "packed padded gaps" },
    { "Q of the first buffer is cleared", X, "(q.at * WGS + wg) * Q_TILE", "wg * Q_TILE", 0, "gaps padded" },
    { "zeros are not fenced", X, "    fence_async();\n", "", 0, "packed_none" },
    { "rows are cleared before they land", X, "    mbarrier_wait(landed, parities >> buffer & 1);\n", "", 0, "packed_none" },
    { "a phase passes twice", X, "    parities ^= 1u << buffer;\n", "", 0, "packed_none" },
    { "buffers share a parity", X, "parities >> buffer & 1", "parities & 1", 0, "packed_none three" },
    { "cleared rows are not handed on", X, "    if (lane == 0) mbarrier_arrive(full);\n", "", 0, "packed_none" },
    { "cleared rows are handed on twice", X, "if (lane == 0) mbarrier_arrive(full)", "if (lane < 2) mbarrier_arrive(full)", 0,
      "packed_none" },
    { "V's buffers out of step", X, "if (++v == STAGES_V) v = 0;", "if (++v == 2) v = 0;", 0, "three" },
    { "Q's buffers out of step", X, "    q.next();\n", "", 0, "gaps padded" },
    { "tiles without keys have a Q", X, "    if (keys.loaded_hi < keys.loaded_lo) continue;\n", "", 0, "keyless" },
    { "the warp that clears keeps its tiles", X, "    tiles.done(smem, true);\n", "    tiles.slot.next();\n", 0, "packed" },
    { "keys before a window count as seen", RANGES, "{$(pr.first_own_key) - block * BC", "{-block * BC", 0, "window" },
    { "the end in whole tiles counts as partial", RANGES, "return rows < BR && rows % 64 != 0 ? rows / 64 : -1;",
      "return rows % 64 != 0 ? rows / 64 : -1;", 0, "packed_none" },
    { "V's own rows are those of the block before", E, "own_rows(sequence, block + 1).all()", "own_rows(sequence, block).all()", 0,
      "packed_none" },
    { "partial Q is not held back", E, "wg == partial_warpgroup(sequence, where.row) ? q_landed(smem, q.at, wg) : q_full(smem, q.at, wg)",
      "q_full(smem, q.at, wg)", 0, "packed" },
    { "warpgroups without rows wait for a Q", E, "        mbarrier_arrive(q_full(smem, q.at, wg));\n        continue;", "        continue;",
      0, "packed padded gaps" },
    { "rows past the end see keys of their own", "hide.cu", "min($(of.query), sequence.sq() - 1)", "$(of.query)", 0, "top_left_window" },
    { "mask: the second row of a thread as the first", "layouts.lua", "\"query_of(p, row + 8 * h)\"", "\"query_of(p, row)\"", 0, "packed" },
    { "V lands twice", F, "mbarrier_init(v_landed(smem, lane), 1)", "mbarrier_init(v_landed(smem, lane), 2)", 0, "packed" },
    { "only the first Q lands", F, "mbarrier_init(q_landed(smem, 0, lane), 1)", "mbarrier_init(q_landed(smem, 0, 0), 1)", 0,
      "gaps padded" },
    { "Q of all warpgroups lands at one barrier", T, "5 + STAGES_V + buffer * WGS + wg)", "5 + STAGES_V + buffer * WGS)", 0, "queue" },
    { "slots of tiles over barriers", "hopper_places.lua", "barriers + c.stages_v + (c.parts and 0 or c.q_bufs * l.wgs)",
      "barriers + c.stages_v - 2", 0, "packed_none" },
    { "a slot of tiles is free too soon", F, "(l.q_warps or 1) > 1) and 3 or 2", "(l.q_warps or 1) > 1) and 2 or 2", 0,
      "packed_none packed gaps padded" },

    /* where rows lie */
    { "queries of the first sequence", Q, "return first_q + query;", "return query;", 0, "packed" },
    { "keys of the first sequence", Q, "return first_k + key;", "return key;", 0, "packed" },
    { "packed queries have a batch", Q, "return p.cu_seqlens_q != nullptr ? 0 : index;", "return index;", 0, "packed" },
    { "padded queries have none", Q, "return p.cu_seqlens_q != nullptr ? 0 : index;", "return 0;", 0, "padded" },
    { "packed keys have a batch", Q, "return p.cu_seqlens_k != nullptr ? 0 : index;", "return index;", 0, "packed" },
    { "padded keys have none", Q, "return p.cu_seqlens_k != nullptr ? 0 : index;", "return 0;", 0, "padded" },
    { "K of the query head", E, "box * BOX, key,\n                    where.kv_head,", "box * BOX, key,\n                    where.head,",
      0, "packed" },
    { "O past the end by TMA", C, "if (row + 64 > sequence.sq())", "if (row >= sequence.sq())", 1, "gaps" },
    { "O past the end by TMA, of wider rows", "hopper_store.cu", "if (row + 64 > sequence.sq())", "if (row >= sequence.sq())", 0,
      "gaps_72" },
    { "a row more past the end", "hopper_store.cu", "i < (sequence.sq() - row) * (DV / 8)", "i < (sequence.sq() - row + 1) * (DV / 8)", 0,
      "gaps_72" },
    { "O past the end by TMA over Q", C, "if (row + 64 > sequence.sq())", "if (row >= sequence.sq())", 0, "over_q" },

    /* tiles and their sequences */
    { "the index of the first sequence", T, "const int index = load_shared(slot + 12);", "const int index = 0;", 0, "padded" },
    { "lengths in each other's place", T, "sequence.length_q, sequence.length_k));", "sequence.length_k, sequence.length_q));", 0,
      "packed" },
    { "first rows in each other's place", T, "make_uint4(sequence.first_q, sequence.first_k,",
      "make_uint4(sequence.first_k, sequence.first_q,", 0, "packed" },
    { "diagonals in each other's place", T, "make_uint4(sequence.diagonal_lo, sequence.diagonal_hi, 0, 0)",
      "make_uint4(sequence.diagonal_hi, sequence.diagonal_lo, 0, 0)", 0, "packed" },
    { "ranges of the first warpgroup", T, "key_range_of(p, sequence, where, $(wg))", "key_range_of(p, sequence, where, 0)", 0, "packed" },
    { "lengths are read too early", T, "  grid_wait();\n  TileOrder order(p, smem);\n", "  TileOrder order(p, smem);\n", 0, "packed" },
    { "first tiles of a sequence end it", T, "if (where.row < 0) break;", "if (where.row <= 0) break;", 0, "packed_none" },
    { "the last drawn tile is left out", "deal.cu", "< $(o.total);) {", "< $(o.total) - 1;) {", 0, "packed" },
    { "drawn from the first on", "deal.cu", "$(blocks) + __shfl_sync", "__shfl_sync", 0, "packed" },

    /* pages */
    { "the first sequence's table", P, "(long long)sequence.index * p.page_table_stride", "0", 0, "pages" },
    { "a page is looked up one entry on", P, "? table[entry] : -1", "? table[entry + 1] : -1", 0, "pages" },
    { "entries past the last key", P, "$(pr.meets(\"RUN\", \"first\", \"last\"))", "key + RUN > first", 0, "pages_full" },
    { "all lanes have the first run", P, "key = block * BC + lane * RUN;", "key = block * BC;", 0, "pages" },
    { "tokens count through pages", P, "token = key - entry * p.page_size;", "token = key;", 0, "pages" },
    { "tokens stay", P, "    token -= tokens;\n", "", 0, "pages_48 pages_128" },
    { "entries stay", P, "    entry -= entries;\n", "", 0, "pages" },
    { "keys stay", P, "    key -= BC;\n", "", 0, "pages" },
    { "no step to the page in front", P, "token += p.page_size, entry--;", "token += p.page_size;", 0, "pages_48 pages_128" },
    { "no step to its end", P, "token += p.page_size, entry--;", "entry--;", 0, "pages_48 pages_128" },
    { "V has the pages of K", P, "V_TILE, v_run,", "V_TILE, k_run,", 0, "pages" },
    { "K is a block ahead of its pages", P, "v_run = k_run, k_run = next;", "k_run = next, v_run = k_run;", 0, "pages" },
    { "a run is left out", P, "  if (lane < RUNS)\n", "  if (lane < RUNS - 1)\n", 0, "pages" },
    { "runs on top of each other", P, "(box * BC + lane * RUN) * ROW", "(box * BC) * ROW", 1, "pages" },
    { "boxes of a run on top of each other", P, "(box * BC + lane * RUN) * ROW", "(lane * RUN) * ROW", 1, "split_lazy" },
    { "V of pages is not held back", P, "own_rows(sequence, block + 1).all() ? v_full(smem, v.at) : v_landed(smem, v.at)",
      "v_full(smem, v.at)", 0, "pages" },
    { "tiles without keys hold up the next", P, "      if (lane == 0) mbarrier_arrive(tile_loaded(smem));\n      continue;",
      "      continue;", 0, "pages_keyless" },
    { "every lane says that K is loaded", P, "if (lane == 0 && block == search_block(keys))", "if (block == search_block(keys))", 0,
      "pages" },
    /* boxes of columns side by side */
    { "boxes of V have the pages of K", P, "V_TILE, p, v_run,", "V_TILE, p, k_run,", 0, "joined" },
    { "heads of V by the stride of K", P, "where.kv_head, p.v_sh,", "where.kv_head, p.k_sh,", 0, "joined" },
    { "heads one box apart", P, "head * (int)(stride / BOX), run", "head, run", 0, "joined joined_48" },
    { "all heads are the first", P, "head * (int)(stride / BOX), run", "0, run", 0, "joined joined_48" },
    { "groups count as rows", P, "run.token / 8", "run.token", 0, "joined_48" },
    { "groups of the page's first token", P, "run.token / 8", "0", 0, "joined_48" },
    { "all rows at once though heads lie at odd strides", P, "if (p.joined)", "if (p.joined || true)", 0, "pages_48" },
    { "eight rows at once are the run's first", P, "run.token + row, 0, head", "run.token, 0, head", 0, "pages_48" },
    { "eight rows at once of the first head", P, "run.token + row, 0, head", "run.token + row, 0, 0", 0, "pages_48" },
    { "the first eight rows alone", P, "row < RUN; row += 8", "row < 8; row += 8", 0, "pages_48" },
    { "eight rows over each other", P, "to + row * N * ROW", "to + row * ROW", 0, "pages_48" },
    { "joined runs over each other", P, "to += lane * RUN * N * ROW;", "to += lane * RUN * ROW;", 0, "joined" },
    { "a joined run is left out", P, "if (lane >= RUNS) return;", "if (lane >= RUNS - 1) return;", 0, "joined" },
    { "groups of K close together", F, "l.joined_k and \"BOXES * GROUP\"", "l.joined_k and \"GROUP\"", 0, "joined joined_48" },
    { "groups of V close together", F, "l.joined_v and \"BOXES_V * GROUP\"", "l.joined_v and \"GROUP\"", 0, "joined joined_48" },
    { "boxes of K one after the other", F, "l.joined_k and \"GROUP\" or", "l.joined_k and \"BC * ROW\" or", 0, "joined joined_48" },
    { "boxes of V one after the other", F, "l.joined_v and \"GROUP\" or", "l.joined_v and \"BC * ROW\" or", 0, "joined joined_48" },
    { "sixteen keys of V are one group", "hopper_products.cu", "\"2 * V_GROUP\"", "\"V_GROUP\"", 0, "joined" },
    { "boxes of the second product one after the other", "hopper_products.cu", "(v, V_BOX, V_GROUP)", "(v, BC * ROW, V_GROUP)", 0,
      "joined" },
    { "zeros to groups close together", X, "at / GROUP * V_GROUP", "at / GROUP * GROUP", 0, "joined" },
    { "zeros to the first box alone", X, "box * V_BOX + at % GROUP", "at % GROUP", 0, "joined joined_48" },
    { "zeros to a group's first rows", X, "+ at % GROUP", "", 0, "joined" },
    { "boxes of whole blocks", L, "rows = p.has_pages and l.run or", "rows = p.has_pages and c.bc or", 0, "pages" },
    { "runs as long as pages", L, "l.run = gcd(c.bc, p.page)", "l.run = math.min(c.bc, p.page)", 0, "pages_128" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};

const mutation_list mutation_lists[] = {
    { scenes, mutations, 2, 0, false },
    { NULL, NULL, 0, 0, false },
};
