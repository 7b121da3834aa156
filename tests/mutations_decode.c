/* mutations_decode: faults of the families of split keys, as in mutations.c. With three SMs a block walks several tiles, begins one that
 * goes on behind it, and ends one that began before it. */
#include "autotune/case.h"
#include "mutations.h"
#include <stddef.h>

#define NONE -1, -1, 0, 0
#define WITH(ragged) FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, ragged
#define MMA(rows, keys, rest) "decode_mma:br=" #rows ",bk=16,key_warps=" #keys ",ctas=1,min_turns=1," rest
#define FFMA(rows, lanes, rest) "decode_ffma:br=" #rows ",bk=8,row_warps=1,key_warps=4,ctas=1,min_turns=1,dot_lanes=" #lanes "," rest
#define WGMMA(rest) "decode_wgmma:br=64,bk=32,row_warps=4,key_warps=2,ctas=1,min_turns=1," rest
#define ONE_WARP "row_warps=1,stages=3,kv_lanes=1,"
#define LAST "combine=0"
#define SECOND "combine=1"

enum { K = FA_FORM_SEQLENS_K, PAGED = FA_FORM_SEQLENS_K | FA_FORM_PAGES };
/* clang-format off */
static const fa_ragged_how
    edges = { .seed = 3, .forms = PAGED, .k = FA_SPREAD_EDGES, .idle = 1, .page_size = 16, .spare = 2, .wide = 1 },
    foreign = { .seed = 5, .forms = PAGED, .k = FA_SPREAD_UNIFORM, .page_size = 8, .spare = 2, .wide = 1, .foreign = 1 },
    single = { .seed = 14, .forms = PAGED, .k = FA_SPREAD_UNIFORM, .page_size = 1, .spare = 2, .wide = 1 },
    large = { .seed = 4, .forms = PAGED, .k = FA_SPREAD_EDGES, .page_size = 64, .spare = 1, .wide = 1, .foreign = 1 },
    packed = { .seed = 6, .forms = FA_FORM_CU_Q | FA_FORM_CU_K | FA_FORM_SEQLENS_Q | K, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM, .gap = 5 },
    wild = { .seed = 7, .forms = FA_FORM_CU_K | FA_FORM_SEQLENS_Q | K, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM, .gap = 5, .wild = 1 },
    wild_packed = { .seed = 12, .forms = FA_FORM_CU_Q | FA_FORM_CU_K, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM, .gap = 5, .wild = 1 },
    wild_q = { .seed = 11, .forms = FA_FORM_SEQLENS_Q | K, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM, .wild = 1 },
    both = { .seed = 13, .forms = FA_FORM_SEQLENS_Q | K, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM },
    full = { .seed = 8, .forms = K, .k = FA_SPREAD_FULL },
    idle = { .seed = 10, .forms = K, .k = FA_SPREAD_UNIFORM, .idle = 3 },
    many = { .seed = 9, .forms = K, .k = FA_SPREAD_UNIFORM };

static const scene scenes[] = {
    { "line", "bf16,d=128,mask=causal,b=5,hq=2,hkv=1", MMA(16, 2, ONE_WARP "sm_shares=1," LAST), 2, 400, NONE, WITH(NULL) },
    { "line_second", "bf16,d=128,mask=causal,b=5,hq=2,hkv=1", MMA(16, 2, ONE_WARP "sm_shares=1," SECOND), 2, 400, NONE, WITH(NULL) },
    { "parts", "bf16,d=64,mask=causal,b=1,hq=2,hkv=1", MMA(32, 1, "row_warps=2,stages=2,kv_lanes=1,sm_shares=4," LAST), 10, 144, NONE, WITH(NULL) },
    { "rows", "bf16,d=64,mask=causal,b=2,hq=16,hkv=2", MMA(16, 2, ONE_WARP "sm_shares=1," LAST), 5, 200, NONE, WITH(NULL) },
    { "rows_ragged", "bf16,d=64,mask=causal,features=lengths,b=7,hq=8,hkv=1", MMA(16, 2, ONE_WARP "sm_shares=1," SECOND), 5, 150, NONE, WITH(&both) },
    { "second", "bf16,d=64,mask=none,b=1,hq=4,hkv=2", MMA(16, 2, ONE_WARP "sm_shares=4," SECOND), 2, 180, NONE, WITH(NULL) },
    { "blind", "bf16,d=64,mask=window,b=2,hq=4,hkv=2", MMA(16, 2, ONE_WARP "sm_shares=1," SECOND), 2, 60, 3, 3, FA_OFFSET, -100, WITH(NULL) },
    { "groups", "bf16,d=64,mask=causal,b=2,hq=8,hkv=1", MMA(32, 2, "row_warps=2,stages=2,kv_lanes=1,sm_shares=2," LAST), 4, 200, NONE, WITH(NULL) },
    { "overlay", "bf16,d=64,mask=causal,b=2,hq=8,hkv=1", "decode_mma:br=32,bk=32,key_warps=2,ctas=1,min_turns=1,row_warps=2,stages=2,kv_lanes=1,sm_shares=2," SECOND, 4, 200, NONE, WITH(NULL) },
    { "pages", "bf16,d=64,mask=causal,features=lengths+pages+lse-strides,page=8,b=6,hq=6,hkv=2", MMA(16, 2, ONE_WARP "sm_shares=1," LAST), 3, 150, NONE, WITH(&edges) },
    { "pages_second", "bf16,d=64,mask=causal,features=lengths+pages,page=8,b=5,hq=6,hkv=2", MMA(16, 2, ONE_WARP "sm_shares=2," SECOND), 3, 150, NONE, WITH(&foreign) },
    { "pages_large", "bf16,d=64,mask=none,features=lengths+pages,page=64,b=5,hq=2,hkv=1", FFMA(2, 4, "stages=3,kv_lanes=1,sm_shares=1," LAST), 1, 150, NONE, WITH(&large) },
    { "packed", "bf16,d=64,mask=window,features=lengths+lse-strides,b=5,hq=4,hkv=2", MMA(16, 2, ONE_WARP "sm_shares=1," LAST), 6, 150, 60, 2, 0, 0, WITH(&packed) },
    { "wild", "bf16,d=64,mask=none,features=lengths,b=8,hq=4,hkv=2", MMA(16, 2, ONE_WARP "sm_shares=1," LAST), 6, 100, NONE, WITH(&wild) },
    { "wild_packed", "bf16,d=64,mask=none,features=lengths,b=12,hq=4,hkv=2", MMA(16, 2, ONE_WARP "sm_shares=1," LAST), 2, 70, NONE, WITH(&wild_packed) },
    { "wild_q", "bf16,d=64,mask=none,features=lengths,b=12,hq=4,hkv=2", MMA(16, 2, ONE_WARP "sm_shares=1," LAST), 6, 70, NONE, WITH(&wild_q) },
    { "full", "bf16,d=64,mask=causal,features=lengths,b=3,hq=4,hkv=1", MMA(16, 2, ONE_WARP "sm_shares=2," LAST), 2, 200, NONE, WITH(&full) },
    { "idle", "bf16,d=64,mask=none,features=lengths,b=6,hq=4,hkv=1", MMA(16, 2, ONE_WARP "sm_shares=1," SECOND), 2, 100, NONE, WITH(&idle) },
    { "short", "bf16,d=64,mask=none,features=lengths,b=3,hq=2,hkv=1", MMA(16, 2, ONE_WARP "sm_shares=4," LAST), 1, 100, NONE, WITH(&many) },
    { "many", "bf16,d=64,mask=none,features=lengths,b=100,hq=1,hkv=1", MMA(16, 4, ONE_WARP "sm_shares=4," LAST), 1, 100, NONE, WITH(&many) },
    { "rest", "bf16,d=64,mask=none,b=13,hq=1,hkv=1", MMA(16, 4, ONE_WARP "sm_shares=4," LAST), 1, 190, NONE, WITH(NULL) },
    { "lanes", "bf16,d=64,mask=none,features=lengths,b=3,hq=8,hkv=4", MMA(16, 2, "row_warps=1,stages=2,kv_lanes=8,sm_shares=4," LAST), 1, 200, NONE, WITH(&many) },
    { "dots", "bf16,d=128,mask=causal,b=3,hq=2,hkv=1", FFMA(4, 8, "stages=3,kv_lanes=1,sm_shares=1," LAST), 2, 200, NONE, WITH(NULL) },
    { "wgmma", "bf16,d=64,mask=causal,b=3,hq=16,hkv=1", WGMMA("stages=2,kv_lanes=1,sm_shares=2," SECOND), 3, 250, NONE, WITH(NULL) },
    { "dots_steep", "fp16,d=64,mask=none,b=2,hq=2,hkv=1", FFMA(2, 4, "stages=3,kv_lanes=1,sm_shares=1," LAST), 1, 150, NONE, FA_VALUES_HEAVY, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 1, NULL },
    { "dots_window", "fp32,d=40,mask=window,b=2,hq=2,hkv=1", FFMA(4, 8, "stages=3,kv_lanes=1,sm_shares=1," LAST), 2, 150, 70, 1, 0, 0, WITH(NULL) },
    { "dots_odd", "bf16,d=72,dv=56,mask=none,b=2,hq=2,hkv=1", FFMA(4, 8, "stages=3,kv_lanes=1,sm_shares=1," LAST), 2, 100, NONE, WITH(NULL) },
    { "far", "bf16,d=64,mask=causal,b=2,hq=2,hkv=1", MMA(16, 2, ONE_WARP "sm_shares=1," LAST), 2, 100, NONE, FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_FAR, 0, NULL },
    { "far_pages", "bf16,d=64,mask=causal,features=lengths+pages,page=8,b=2,hq=2,hkv=1", MMA(16, 2, ONE_WARP "sm_shares=1," LAST), 2, 100, NONE, FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_FAR, 0, &foreign },
    { "far_tokens", "bf16,d=64,mask=causal,features=lengths+pages,page=1,b=2,hq=2,hkv=1", MMA(16, 2, ONE_WARP "sm_shares=1," LAST), 2, 60, NONE, FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_FAR, 0, &single },
    { NULL, NULL, NULL, 0, 0, NONE, WITH(NULL) },
};
/* clang-format on */

#define S "decode_split.cu"
#define L "decode_loader.cu"
#define M "decode_merge.cu"
#define T "decode_kernel.cu"
#define Q "decode_query.cu"
#define X "sequence.cu"
#define W "wgmma_products.cu"
#define D "decode_dots.cu"
#define F "decode_fragments.cu"

/* clang-format off */
static const mutation mutations[] = {
    /* which keys a thread block owns */
    { "turns rounded down", S, "(hi / BC - lo / BC + GROUPS) / GROUPS", "(hi / BC - lo / BC + 1) / GROUPS", 0, "line" },
    { "the ends of a tile take no place", S, "turns > 0 ? turns + ENDS : 0", "turns", 0, "line pages" },
    { "the ends of tiles are not shared out", S, "long long all = turns + tiles * ENDS", "long long all = turns", 0, "line" },
    { "shares rounded down", S, "divide(all + shares - 1, shares)", "divide(all, shares)", 0, "rest" },
    { "tiles of different lengths share alike", S, "most == least ? most : 0", "most", 0, "short" },
    { "the last thread block goes on", S, "max(min(size, all - at), 0ll)", "size", 0, "line" },
    { "a thread block begins one place early", S, "const long long at = size * index();", "const long long at = max(size * index() - 1, 0ll);", 0, "line" },
    { "part of a place behind the sequence", S, "if (at < place + n)", "if (at <= place + n)", 0, "full many" },
    { "ends are left out before a lane's sequences", S, "turns_before + (long long)tiles_before * ENDS;", "turns_before;", 0, "pages" },
    { "a lane counts its own sequences as before it", S, "  turns_before -= turns;\n", "", 0, "many pages" },
    { "sums leave out the nearest lane", S, "if (lane >= d) turns_before", "if (lane > d) turns_before", 0, "pages" },
    { "the tiles of the first lane for those of all", S, "__shfl_sync(~0u, tiles_before, 31)", "__shfl_sync(~0u, tiles_before, 0)", 0, "many" },
    { "the place of another lane", S, "__shfl_sync(~0u, at - place, source)", "__shfl_sync(~0u, at - place, 0)", 0, "many" },
    { "a lane adds up the first of its sequences", S, "for (int i = first; i < last; i++) {", "for (int i = first; i < min(last, first + 1); i++) {", 0, "many" },
    { "the next tile has the turns of the one before", S, "          turns = turns_of(sequence);\n", "", 0, "pages" },
    { "sequences are looked for behind the last", S, "while (left > 0 && turns == 0)", "while (turns == 0)", 0, "pages" },
    { "the next sequence begins at head 0", S, "kv_head -= p.hkv;", "kv_head = 0;", 0, "lanes" },
    { "all lanes walk the same heads", S, "kv_head = (int)heads * lanes + lane;", "kv_head = (int)heads * lanes;", 0, "lanes" },
    { "lanes share counters and parts", S, "return index * lanes + lane;", "return index * lanes;", 0, "lanes" },
    { "parts of one lane lie side by side", M, "split.block(first), parts, split.lanes);", "split.block(first), parts, 1);", 0, "lanes" },
    { "the first of a tile's thread blocks is taken late", S, "index() - (int)divide(w.turn + size - 1, size)", "index() - (int)divide(w.turn, size)", 0, "line" },
    { "a tile has a part less", S, "return 1 + (int)divide(w.turn", "return (int)divide(w.turn", 0, "line" },

    { "row tiles rounded down", S, "(row_count(p, sequence) + BR - 1) / BR", "row_count(p, sequence) / BR", 0, "line" },
    { "a head has one tile less", S, "if (++tile == tiles)", "if (++tile >= tiles - 1)", 0, "rows" },
    { "a thread block begins with a head's first tile", S, "tile = (int)(before - heads * tiles);", "tile = 0;", 0, "rows" },
    { "all sequences have the tiles of the first", S, "          tiles = tiles_of(p, sequence);\n", "", 0, "rows_ragged" },
    { "keys of the head's first rows for all", S, "min(t.row + BR, t.rows) - 1)", "min(BR, t.rows) - 1)", 0, "rows" },

    /* how K and V come */
    { "a page is looked up one entry on", L, "? table[entry] : -1", "? table[entry + 1] : -1", 0, "pages" },
    { "the last key's page is not looked up", L, "page = key <= key_hi", "page = key < key_hi", 0, "pages" },
    { "tokens count through pages", L, "token = key - entry * p.page_size;", "token = key;", 0, "pages" },
    { "the page of a run is another lane's", L, "__shfl_sync(~0u, page, source)", "__shfl_sync(~0u, page, 0)", 0, "pages_second" },
    { "numbers of pages are believed", L, "(u32)at < (u32)p.pages && ", "", 0, "pages_second" },
    { "numbers of large pages are believed", L, "const bool real = (u32)page < (u32)p.pages;", "const bool real = page >= 0;", 0, "pages_large" },
    { "tables begin with the batch's first", L, "(long long)walk.batch * p.page_table_stride", "0", 0, "pages" },
    { "pages are not looked up anew", L, "      look_up_next();\n", "", 0, "pages" },
    { "the next turn's pages are those of this", L, "    entry += step_entries;\n", "", 0, "pages" },
    { "tokens of the next turn are those of this", L, "    token += step_tokens;\n", "", 0, "pages_large" },
    { "tokens go on behind their page", L, "    if (token >= p.page_size) token -= p.page_size, entry++;\n", "", 0, "pages_large" },
    { "keys behind the last are read", L, "key + row >= key_lo && key + row <= key_hi", "key + row >= key_lo", 2, "line packed" },
    { "keys behind the last of a page are read", L, "key + row >= key_lo && key + row <= key_hi", "key + row >= key_lo", 1, "pages" },
    { "keys behind the last of a large page are read", L, "real && key + row >= key_lo && key + row <= key_hi", "real && key + row >= key_lo", 0, "pages_large" },
    { "keys in front of the first are read", L, "key + row >= key_lo && key + row <= key_hi);\n    }\n//| end", "key + row <= key_hi);\n    }\n//| end", 0, "packed" },
    { "V with the stride of K", L, "DV * (int)sizeof(element)>(buffer + K_TILE, v, key, p.v_ss)", "DV * (int)sizeof(element)>(buffer + K_TILE, v, key, p.k_ss)", 0, "line" },
    { "32-bit stride of keys", L, "const char *const from = base + key * step;", "const char *const from = base + key * (int)step;", 0, "far" },
    { "32-bit stride of tokens", L, "(first + row % RUN) * step", "(first + row % RUN) * (int)step", 0, "far_pages" },
    { "32-bit stride of pages", L, "const long long page_step = page_stride * (long long)sizeof(element);", "const int page_step = (int)page_stride * (int)sizeof(element);", 0, "far_tokens" },
    { "what is fetched early is read", L, "\"prefetch.global.L2 [%0];\"", "\"{\\n.reg .u32 x;\\nld.global.u32 x, [%0];\\n}\"", 0, "line" },
    { "copies run a stage too far", T, "cp_async_wait<STAGES - 2>()", "cp_async_wait<STAGES - 1>()", 0, "line" },
    { "warps of a group do not meet", T, "  asm volatile(\"bar.sync %0, %1;\" ::\"r\"(group + 1), \"n\"(GROUP_THREADS) : \"memory\");\n//| end", "//| end", 0, "groups" },
    { "all groups meet at one barrier", T, "::\"r\"(group + 1), \"n\"(GROUP_THREADS) : \"memory\");\n//| end", "::\"r\"(1), \"n\"(GROUP_THREADS) : \"memory\");\n//| end", 0, "groups" },
    { "copies are not fenced before wgmma", T, "  fence_async();\n", "", 0, "wgmma" },

    /* how parts come together */
    { "O is left over keys that are still read", T, "    asm volatile(\"bar.sync %0, %1;\" ::\"r\"(group + 1), \"n\"(GROUP_THREADS) : \"memory\");  // K and V are read\n", "", 0, "overlay" },
    { "the groups' parts are not awaited", M, "  __syncthreads();\n\n  const long long own", "\n  const long long own", 0, "line" },
    { "the next keys over parts that are read", M, "  __syncthreads();  // the buffer is free, and what the block leaves of a tile is written\n", "", 0, "line" },
    { "the last block's word is not awaited", M, "  __syncthreads();\n  const bool is_last", "  const bool is_last", 0, "line" },
    { "the counter orders nothing", M, "atom.acq_rel.gpu", "atom.relaxed.gpu", 0, "line" },
    { "the counter releases only", M, "atom.acq_rel.gpu", "atom.release.gpu", 0, "line" },
    { "the counter wraps one late", M, "(u32)parts - 1) == (u32)parts - 1", "(u32)parts) == (u32)parts - 1", 0, "line" },
    { "the last but one adds up", M, "(u32)parts - 1) == (u32)parts - 1", "(u32)parts - 1) == (u32)parts - 2", 0, "line" },
    { "parts of two tiles in one place", M, "(begun ? 0 : 1)", "0", 0, "line_second" },
    { "a part that began here as if before", M, "first < split.index()) * BR", "first <= split.index()) * BR", 0, "line" },
    { "the loop over parts ends one early", M, "for (int j = 0; j < parts; j += BATCH)", "for (int j = 0; j < parts - 1; j += BATCH)", 0, "parts" },
    { "the last parts are left out", M, "for (int j = 0; j < parts; j += BATCH)", "for (int j = 0; j + BATCH <= parts; j += BATCH)", 0, "line" },
    { "the last part counts more than once", M, "if (j + k >= parts) states[k].x = -infinity();", ";", 0, "line" },
    { "the states of all rows in one place", M, "part_state[own + row] =", "part_state[own] =", 0, "line" },
    { "keyless rows are left", T, "  store_keyless(p);\n", "", 0, "blind" },
    { "LSE of keyless rows is 0", M, "p.lse[sequence.lse(head, query)] = -infinity();", "p.lse[sequence.lse(head, query)] = 0.f;", 0, "blind" },
    { "keyless rows of the first sequences only", M, "i < p.b; i += gridDim.x", "i < 1; i += gridDim.x", 0, "idle" },
    { "what goes on is not told to be none", T, "  if (threadIdx.x == 0 && !goes_on) ((int4 *)p.tiles_open)[blockIdx.x] = make_int4(0, 0, 0, 0);\n", "", 0, "second blind" },
    { "a tile in its middle goes on as well", T, "(walk.turn == 0 && walk.end < walk.turns)", "(walk.end < walk.turns)", 0, "second" },
    { "what does not go on is added up", T, "  if (open.w == 0) return;\n", "", 0, "second" },
    { "slices take the same rows", T, "i = slice * MERGE_THREADS + threadIdx.x", "i = threadIdx.x", 0, "wgmma" },
    { "a slice does not go on", T, "i < rows * (COLS / 4); i += SLICES * MERGE_THREADS", "i < MERGE_THREADS; i += SLICES * MERGE_THREADS", 0, "wgmma second" },
    { "the second step does not wait for the first", T, "  asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n//|   end\n  const int block", "//|   end\n  const int block", 0, "second" },

    /* sequences of their own lengths */
    { "LSE with its strides swapped", X, "index * p.lse_sb + head * p.lse_sh + (first_q + query) * p.lse_ss", "index * p.lse_sb + head * p.lse_ss + (first_q + query) * p.lse_sh", 0, "packed" },
    { "LSE from the batch's first row", X, "(first_q + query) * p.lse_ss", "query * p.lse_ss", 0, "packed" },
    { "Q from the batch's first row", X, "index * p.q_sb + first_q * p.q_ss", "index * p.q_sb", 0, "packed" },
    { "lengths beyond the most", X, "  r.length = min(r.length, most);\n", "", 0, "wild_packed" },
    { "rows in use are not cut to those packed", X, "r.length = min(r.length, max(used[index], 0));", "r.length = max(used[index], 0);", 0, "wild" },
    { "lengths below none", X, "max(used[index], 0)", "used[index]", 0, "wild_q wild" },
    { "first rows in front of the first", X, "min(max(bounds[index], 0), total)", "min(bounds[index], total)", 0, "wild_packed wild" },
    { "the end of a sequence beyond the last row", X, "min(max(bounds[index + 1], r.first), total)", "max(bounds[index + 1], r.first)", 0, "wild_packed wild" },
    { "the diagonal of the longest", X, "p.relative ? k.length - q.length : 0", "p.relative ? p.sk - p.sq : 0", 0, "pages" },

    { "bounds of queries are those of keys", X, "rows_of(p.cu_seqlens_q, p.seqlens_q, index, p.sq, p.total_q)", "rows_of(p.cu_seqlens_k, p.seqlens_q, index, p.sq, p.total_q)", 0, "packed" },

    /* rows of a warp */
    { "the first head of a group for all", Q, "head = tile.head + row - query * p.group", "head = tile.head", 0, "line" },
    { "rows behind the last are read", Q, "const bool real = row < tile.rows;", "const bool real = true;", 0, "line" },
    { "rows behind a tile's last are stored", M, "return min(BR, tile.rows - tile.row);", "return BR;", 0, "line" },
    { "the second step stores rows behind the last", T, "const int rows = min(BR, tile.rows - tile.row);", "const int rows = BR;", 0, "line_second" },
    { "warps of the second group behind the tile", F, "threadIdx.x % GROUP_THREADS / 32", "threadIdx.x / 32", 0, "groups" },
    { "O of the tile before", F, "o[m][n][0] = o[m][n][1] = o[m][n][2]", "o[m][n][0] = o[m][n][2]", 0, "line" },
    { "the maximum of the tile before", F, "state[m][0] = state[m][1] = {-infinity(), 0.f};", "state[m][0].l = state[m][1].l = 0.f;", 0, "line" },
    { "a lane's share of the sum for the whole", F, "quad_sum(state[m][h].l)", "state[m][h].l", 0, "line" },
    { "masked blocks taken as full", T, "block >= tile.range.full_hi || ", "", 0, "line" },
    { "blocks that nothing sees are taken", T, "block >= tile.range.block_lo && block <= tile.range.block_hi", "true", 0, "line packed" },
    { "boxes of V in front of their rows", W, "(u64)(8 * BOX_ROW / 16) << 32 | (u64)(BOX / 16) << 16", "(u64)(4 * BOX_ROW / 16) << 32 | (u64)(BOX / 16) << 16", 0, "wgmma" },
    { "registers of O are not fenced before wgmma", W, "  asm volatile(\"wgmma.fence.sync.aligned;\"\n      : $(operands(0, NO", "  asm volatile(\"\"\n      : $(operands(0, NO", 0, "wgmma" },
    { "scores are not awaited", W, "\"wgmma.wait_group.sync.aligned 0;\"", "\"wgmma.wait_group.sync.aligned 1;\"", 0, "wgmma" },
    { "two lanes have the same share of d", D, "chunk = c * DOT_LANES + dot_lane(lane);", "chunk = c * DOT_LANES + dot_lane(lane) / 2 * 2;", 0, "dots" },
    { "twins count their keys twice", D, "if (TWINS == 1 || dot_lane(lane) % TWINS == 0)", "if (TWINS > 0)", 0, "dots" },
    { "dots: the sum of neighbours only", D, "x[i] = sum_from(o[r][c][i], COL_LANES)", "x[i] = sum_from(o[r][c][i], 2 * COL_LANES)", 0, "dots pages_large" },
    { "dots: columns of other lanes", D, "const bool second = (i > 0) != (lane % 8 >= 4);", "const bool second = lane % 8 >= 4;", 0, "dots pages_large" },
    { "dots: a late maximum is forgotten", D, "* p.scale_log2 > LAG))", "* p.scale_log2 > 1000.f * LAG))", 0, "dots_steep" },
    { "dots: O is not rescaled", D, "o[r][c][x] *= keep;", "o[r][c][x] += 0.f * keep;", 0, "dots_steep" },
    { "dots: left mask forgotten", D, "key_of_score(i) > hi || key_of_score(i) < lo", "key_of_score(i) > hi", 0, "dots_window" },
    { "dots: right mask one off", D, "key_of_score(i) > hi || key_of_score(i) < lo", "key_of_score(i) >= hi || key_of_score(i) < lo", 0, "dots" },
    { "dots: Q past the end of its row", D, "real && byte < D * (int)sizeof(element)", "real", 0, "dots_odd" },
    { "dots: V past the end of its row", D, "min(c * COL_LANES + lane % COL_LANES, CHUNKS_V - 1)", "c * COL_LANES + lane % COL_LANES", 0, "dots_odd" },
    { "dots: places of keys for keys", D, "place_of_key(key % KEYS_V) * KEYS_LANE", "(key % KEYS_V / 2 * 2) * KEYS_LANE", 0, "dots" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};
/* clang-format on */

const mutation_list mutation_lists[] = {
    { scenes, mutations, 3 },
    { NULL, NULL, 0 },
};
