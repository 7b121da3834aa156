/* mutations_prompt: faults of the families of whole tiles where sequences have lengths of their own, as in mutations.c. With three SMs a
 * block does tiles of several sequences. */
#include "mutations.h"
#include "verify/cases/case.h"
#include <stddef.h>

#define NONE -1, -1, 0, 0
#define WITH(ragged) FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, ragged, 0
#define MMA(rows, keys, rest) "flash_fwd_" MMA_(rows, keys, rest)
#define MMA_(rows, keys, rest) "mma:br=" #rows ",bc=" #keys ",q_regs=0,lag=8,ctas=1," rest
#define FIRST "warps=1,stages_k=2,stages_v=2,order=0,pack=0"
#define LAST "warps=2,stages_k=1,stages_v=2,order=1,pack=0"
#define TOGETHER "warps=1,stages_k=2,stages_v=2,order=2,pack=1"

enum { K = FA_FORM_SEQLENS_K, PAGED = FA_FORM_SEQLENS_K | FA_FORM_PAGES };
static const fa_ragged_how packed = { .seed = 6,
                                      .forms = FA_FORM_CU_Q | FA_FORM_CU_K,
                                      .q = FA_SPREAD_UNIFORM,
                                      .k = FA_SPREAD_UNIFORM,
                                      .gap = 5 },
                           padded = { .seed = 13, .forms = FA_FORM_SEQLENS_Q | K, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM },
                           edges = { .seed = 3,
                                     .forms = FA_FORM_CU_Q | PAGED,
                                     .q = FA_SPREAD_UNIFORM,
                                     .k = FA_SPREAD_EDGES,
                                     .idle = 1,
                                     .page_size = 16,
                                     .spare = 2,
                                     .wide = 1 },
                           foreign = { .seed = 5,
                                       .forms = FA_FORM_SEQLENS_Q | PAGED,
                                       .q = FA_SPREAD_UNIFORM,
                                       .k = FA_SPREAD_UNIFORM,
                                       .page_size = 24,
                                       .spare = 2,
                                       .wide = 1,
                                       .foreign = 1 },
                           single = { .seed = 14, .forms = PAGED, .k = FA_SPREAD_UNIFORM, .page_size = 1, .spare = 2, .wide = 1 },
                           crowd_padded = { .seed = 9, .forms = K, .k = FA_SPREAD_FULL },
                           chunk_padded = { .seed = 8, .forms = K, .k = FA_SPREAD_FULL },
                           chunk = { .seed = 8, .forms = PAGED, .k = FA_SPREAD_FULL, .page_size = 16, .spare = 3 };

static const scene scenes[] = {
    { "causal", "bf16,d=64,mask=causal,features=lengths,b=7,hq=4,hkv=2", MMA(16, 32, FIRST), 70, 110, NONE, WITH(&packed) },
    { "none", "bf16,d=64,mask=none,features=lengths,b=7,hq=4,hkv=2", MMA(32, 32, LAST), 90, 110, NONE, WITH(&padded) },
    { "window", "bf16,d=64,mask=window,features=lengths+lse-strides,b=5,hq=4,hkv=2", MMA(16, 16, FIRST), 60, 110, 30, 2, 0, 0,
      WITH(&packed) },
    { "heads", "bf16,d=64,mask=causal,features=lengths,b=5,hq=6,hkv=2", MMA(16, 32, TOGETHER), 30, 80, NONE, WITH(&packed) },
    { "many", "bf16,d=64,mask=causal,features=lengths,b=75,hq=1,hkv=1", MMA(16, 16, FIRST), 40, 40, NONE, WITH(&packed) },
    { "many_none", "bf16,d=64,mask=none,features=lengths,b=75,hq=1,hkv=1", MMA(16, 16, FIRST), 40, 40, NONE, WITH(&padded) },
    { "pages", "bf16,d=64,mask=causal,features=lengths+pages,page=16,b=5,hq=4,hkv=2", MMA(16, 32, FIRST), 50, 150, NONE, WITH(&edges) },
    { "pages_foreign", "bf16,d=64,mask=none,features=lengths+pages,page=8,b=5,hq=2,hkv=2", MMA(16, 48, FIRST), 20, 150, NONE,
      WITH(&foreign) },
    { "chunk", "bf16,d=64,mask=causal,features=lengths+pages,page=16,b=2,hq=2,hkv=1", MMA(16, 64, TOGETHER), 20, 400, NONE, WITH(&chunk) },
    { "split", "bf16,d=64,mask=causal,features=lengths+lse-strides,b=2,hq=1,hkv=1", MMA(32, 32, LAST), 31, 300, NONE, WITH(&chunk_padded) },
    { "crowd", "bf16,d=64,mask=none,features=lengths,b=7,hq=1,hkv=1", MMA(128, 32, "warps=4,stages_k=1,stages_v=2,order=1,pack=0"), 100,
      150, NONE, WITH(&crowd_padded) },
    { "split_six", "fp16,d=64,mask=none,features=lengths,b=1,hq=1,hkv=1",
      "flash_fwd_mma:br=128,bc=16,q_regs=0,lag=8,ctas=2,warps=8,stages_k=2,stages_v=2,order=0,pack=0", 100, 400, NONE,
      WITH(&chunk_padded) },
    { "mixed_many", "bf16,d=64,mask=causal,features=lengths,b=3,hq=5,hkv=1", "mixed_" MMA_(16, 32, FIRST), 13, 60, NONE,
      WITH(&chunk_padded) },
    { "mixed_few", "bf16,d=64,mask=causal,features=lengths,b=3,hq=4,hkv=1", "mixed_" MMA_(16, 32, FIRST), 16, 60, NONE,
      WITH(&chunk_padded) },
    { "far_pages", "bf16,d=64,mask=causal,features=lengths+pages,page=8,b=2,hq=2,hkv=1", MMA(16, 32, FIRST), 20, 100, NONE,
      FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_FAR, 0, &foreign, 0 },
    { "far_tokens", "bf16,d=64,mask=causal,features=lengths+pages,page=1,b=2,hq=2,hkv=1", MMA(16, 32, FIRST), 20, 60, NONE,
      FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_FAR, 0, &single, 0 },
    { NULL, NULL, NULL, 0, 0, NONE, WITH(NULL) },
};

#define RANGES "ranges.cu"
#define O "varlen_order.cu"
#define P "paged_tile.cu"
#define A "part_rows.cu"
#define B "tile_parts.cu"
#define C "split_tile.cu"
#define X "sequence.cu"
#define T "flash_fwd_mma.cu"

static const mutation mutations[] = {
    /* which tile comes next */
    { "row tiles rounded down", RANGES, "(row_count(p, sequence) + BR - 1) / BR", "row_count(p, sequence) / BR", 0, "causal" },
    { "sequences after the first 32 are not counted", O, "i < p.b; i += 32)", "i < min(p.b, 32); i += 32)", 0, "many" },
    { "the first 32 again and again", O, "gather(__shfl_sync(~0u, own().number, 31) + 1);", "gather(0);", 0, "many many_none" },
    { "one sequence is left out between 32 and 32", O, "own().number, 31) + 1)", "own().number, 31) + 2)", 0, "many many_none" },
    { "tiles before the 32 are forgotten", O, "      n.begin = n.end(heads());\n", "", 0, "many many_none" },
    { "the next 32 go on in the section of those before", O, "    keep(Found{-1, 0, 0});\n", "", 2, "many many_none" },
    { "a levels one step too high", O, "max(min(lowest + tiles - level, tiles), 0)", "max(min(lowest + tiles - level - 1, tiles), 0)", 0,
      "causal" },
    { "a levels of any number of steps", O, "max(min(lowest + tiles - level, tiles), 0)", "max(lowest + tiles - level, 0)", 0,
      "causal pages" },
    { "all levels hold all tiles", O, "return level <= lowest ? tiles$(times) : 0;", "return tiles$(times);", 0, "none" },
    { "all heads have the tiles of one", O, "__reduce_add_sync(~0u, tiles) * heads()", "__reduce_add_sync(~0u, tiles)", 0, "causal" },
    { "query heads for groups of them", "order.cu", "packed and \"p.hkv\" or \"p.hq\"", "\"p.hq\"", 0, "heads" },
    { "a level too low", O, "while (there <= n) {", "while (there <= n + 1) {", 0, "causal" },
    { "the search ends early", O, "while (below - s.level > 1) {", "while (below - s.level > 2) {", 0, "many causal none pages" },
    { "tiles above are forgotten", O, "below = s.level, s.above = there;", "below = s.level;", 0, "causal" },
    { "the middle counts as not above", O, "below = middle, s.above = there;", "below = middle;", 0, "many causal none pages" },
    { "the tiles above stay in their number", O, "    n -= s.above;\n", "", 0, "causal" },
    { "tiles of two levels", O, "levels.from(s.level) - levels.from(s.level + 1);", "levels.from(s.level);", 0, "causal" },
    { "sums leave out the nearest lane", O, "if (threadIdx.x % 32 >= (u32)d) upto", "if (threadIdx.x % 32 > (u32)d) upto", 1, "causal" },
    { "the sequence after the one", O, "__ballot_sync(~0u, upto > n)", "__ballot_sync(~0u, upto >= n)", 0, "causal" },
    { "numbers of lanes for those of sequences", O,
      "w.batch = __shfl_sync(~0u, $(l.shared and \"lanes.number\" or \"own().number\"), lane);", "w.batch = lane;", 0, "many" },
    { "the row of another levels", O, "__shfl_sync(~0u, levels.lowest, lane)) * BR", "__shfl_sync(~0u, levels.lowest, 0)) * BR", 1,
      "causal" },
    { "tiles of other sequences count", O, "__shfl_sync(~0u, upto - here, lane)", "0", 2, "none" },
    { "a head has the KV head of its number", "order.cu", "w.kv_head = w.head / p.group;", "w.kv_head = w.head % p.hkv;", 0, "causal" },
    { "the first head of a group is its number", "order.cu", "w.head = w.kv_head * p.group;", "w.head = w.kv_head;", 0, "heads" },
    { "blocks take one tile", "deal.cu", "for (int round = 0;; round++) {", "for (int round = 0; round < 1; round++) {", 0, "causal" },
    { "the next tile does not wait", T, "    if (round > 0) __syncthreads();  // everyone is through with the tile before\n", "", 0,
      "none" },
    { "queries of the first sequence", T, "(const element *)p.q + sequence.q();", "(const element *)p.q;", 0, "causal" },
    { "keys of the first sequence", T, "(const element *)p.k + sequence.k() + ", "(const element *)p.k + ", 0, "causal" },
    { "values of the first sequence", T, "(const $(ve) *)p.v + sequence.v() + ", "(const $(ve) *)p.v + ", 0, "causal" },

    /* which kernel takes a sequence */
    { "the fewest of many rows are left out", X, "q.length * p.group < $(l.rows_from)", "q.length * p.group <= $(l.rows_from)", 0,
      "mixed_many" },
    { "the most of few rows are left out", X, "q.length * p.group > $(l.rows_upto)", "q.length * p.group >= $(l.rows_upto)", 0,
      "mixed_few" },
    { "tokens for rows", X, "if (q.length * p.group > $(l.rows_upto))", "if (q.length > 1)", 0, "mixed_few" },

    /* parts of tiles */
    { "a part begins one block late", RANGES, "range.block_lo += $(upto(\"where.part\"));",
      "range.block_lo += $(upto(\"where.part\")) + 1;", 0, "split" },
    { "parts overlap", RANGES, "$(upto(\"(where.part + 1)\")) - 1;", "$(upto(\"(where.part + 1)\"));", 0, "split" },
    { "every part has all keys", RANGES, "  range.block_lo += $(upto(\"where.part\"));\n", "", 0, "split" },
    { "parts of another tile", C, "(long long)where.number * where.parts + min", "(long long)(where.number ^ 1) * where.parts + min", 0,
      "split" },
    { "LSE of the last part", "parts.cu", "pr.log_sum_exp((\"{%s.m, %s.l}\"):format(sum, sum), all,",
      "pr.log_sum_exp((\"{%s.m, 1.f}\"):format(sum), \"1.f\",", 0, "split" },
    { "parts leave in one place", C, "((long long)where.number * where.parts + where.part) * BR",
      "(long long)where.number * where.parts * BR", 0, "split" },
    { "a lane's share of l", A, "quad_sum($(holds.state).l)", "$(holds.state).l", 0, "split" },
    { "the counter orders nothing", B, "atom.acq_rel.gpu", "atom.relaxed.gpu", 0, "split" },
    { "all tiles have one counter", C, "where.number * (BR / ROWS_WARP) + warp", "warp", 0, "split" },
    { "all warps have one counter", C, "where.number * (BR / ROWS_WARP) + warp", "where.number * (BR / ROWS_WARP)", 0, "split" },
    { "a warp adds up the first one's rows", C, "first + min((i + lane)", "min((i + lane)", 1, "split" },
    { "a warp adds up rows of the next", C, ", rows - 1), (i", ", 15), (i", 1, "split" },
    { "more parts than there is room for", O, "blocks * PART_TILES / tiles", "blocks * PART_TILES", 0, "crowd" },
    { "parts are parts of the next tile", O, "w.number = index / sums.parts;", "w.number = index % sums.parts;", 0, "split" },
    { "tiles for items", O, "    index = w.number - sums.begin / sums.parts;\n", "", 0, "split" },

    /* pages */
    { "a page is looked up one entry on", P, "? table[entry] : -1", "? table[entry + 1] : -1", 0, "pages" },
    { "tokens count through pages", P, "key - entry * p.page_size}", "key}", 0, "pages" },
    { "the page of a run is another lane's", P, "__shfl_sync(~0u, at.page, source)", "__shfl_sync(~0u, at.page, 0)", 0, "pages" },
    { "the token of a run is another lane's", P, "__shfl_sync(~0u, at.token, source)", "__shfl_sync(~0u, at.token, 0)", 0,
      "pages_foreign" },
    { "numbers of pages are believed", P, "(u32)page < (u32)pages && ", "", 0, "pages_foreign" },
    { "hidden keys are read", P, "(u32)page < (u32)pages && (u32)(row - first) <= (u32)(last - first)", "(u32)page < (u32)pages", 0,
      "pages" },
    { "32-bit stride of tokens", P, "(token + row % RUN) * stride", "(token + row % RUN) * (int)stride", 0, "far_pages" },
    { "tables begin with the batch's first", T, "p.page_table + sequence.index * p.page_table_stride", "p.page_table", 0, "pages" },
    { "pages in 32 bits", P, "base + page * page_stride", "base + page * (int)page_stride", 0, "far_tokens" },
    { "K stays in its page", T, "    k_pages = look_up(p, table, $(pr.scans and \"next\" or \"block - 1\"), range.key_lo, range.key_hi);\n",
      "", 0, "chunk" },
    { "V stays in its page", T, "    v_pages = look_up(p, table, $(pr.scans and \"next\" or \"block - 1\"), range.key_lo, range.key_hi);\n",
      "", 0, "chunk" },
    { "a run is looked up once for all", P, "(int)(threadIdx.x % 32) % RUNS * RUN", "0", 0, "pages" },
    { "V has the pages of K", T, "(v_tiles + stage * V_TILE, v_pages, v,", "(v_tiles + stage * V_TILE, k_pages, v,", 0, "chunk" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};

const mutation_list mutation_lists[] = {
    { scenes, mutations, 3, 0, false },
    { NULL, NULL, 0, 0, false },
};
