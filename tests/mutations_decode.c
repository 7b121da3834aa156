/* mutations_decode: faults of the families of split keys, as in mutations.c. */
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
    foreign = { .seed = 5, .forms = PAGED, .k = FA_SPREAD_UNIFORM, .page_size = 16, .spare = 2, .wide = 1, .foreign = 1 },
    large = { .seed = 4, .forms = PAGED, .k = FA_SPREAD_EDGES, .page_size = 64, .spare = 1, .wide = 1, .foreign = 1 },
    packed = { .seed = 6, .forms = FA_FORM_CU_Q | FA_FORM_CU_K | FA_FORM_SEQLENS_Q | K, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM, .gap = 5 },
    wild = { .seed = 7, .forms = FA_FORM_CU_K | FA_FORM_SEQLENS_Q | K, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM, .gap = 5, .wild = 1 },
    full = { .seed = 8, .forms = K, .k = FA_SPREAD_FULL },
    idle = { .seed = 10, .forms = K, .k = FA_SPREAD_UNIFORM, .idle = 3 },
    many = { .seed = 9, .forms = K, .k = FA_SPREAD_UNIFORM };

static const scene scenes[] = {
    { "line", "bf16,d=128,mask=causal,b=5,hq=2,hkv=1", MMA(16, 2, ONE_WARP "sm_shares=1," LAST), 2, 400, NONE, WITH(NULL) },
    { "parts", "bf16,d=64,mask=causal,b=1,hq=2,hkv=1", MMA(32, 1, "row_warps=2,stages=2,kv_lanes=1,sm_shares=4," LAST), 10, 180, NONE, WITH(NULL) },
    { "second", "bf16,d=64,mask=none,b=1,hq=4,hkv=2", MMA(16, 2, ONE_WARP "sm_shares=4," SECOND), 2, 180, NONE, WITH(NULL) },
    { "blind", "bf16,d=64,mask=window,b=2,hq=4,hkv=2", MMA(16, 2, ONE_WARP "sm_shares=1," SECOND), 2, 60, 3, 3, FA_OFFSET, -100, WITH(NULL) },
    { "groups", "bf16,d=64,mask=causal,b=2,hq=8,hkv=1", MMA(32, 2, "row_warps=2,stages=2,kv_lanes=1,sm_shares=2," LAST), 4, 200, NONE, WITH(NULL) },
    { "overlay", "bf16,d=64,mask=causal,b=2,hq=8,hkv=1", "decode_mma:br=32,bk=32,key_warps=2,ctas=1,min_turns=1,row_warps=2,stages=2,kv_lanes=1,sm_shares=2," SECOND, 4, 200, NONE, WITH(NULL) },
    { "pages", "bf16,d=64,mask=causal,features=lengths+pages+lse-strides,page=8,b=6,hq=6,hkv=2", MMA(16, 2, ONE_WARP "sm_shares=1," LAST), 3, 150, NONE, WITH(&edges) },
    { "pages_second", "bf16,d=64,mask=causal,features=lengths+pages,page=8,b=5,hq=6,hkv=2", MMA(16, 2, ONE_WARP "sm_shares=2," SECOND), 3, 150, NONE, WITH(&foreign) },
    { "pages_large", "bf16,d=64,mask=none,features=lengths+pages,page=64,b=5,hq=2,hkv=1", FFMA(2, 4, "stages=3,kv_lanes=1,sm_shares=1," LAST), 1, 150, NONE, WITH(&large) },
    { "packed", "bf16,d=64,mask=window,features=lengths+lse-strides,b=5,hq=4,hkv=2", MMA(16, 2, ONE_WARP "sm_shares=1," LAST), 6, 150, 60, 2, 0, 0, WITH(&packed) },
    { "wild", "bf16,d=64,mask=none,features=lengths,b=8,hq=4,hkv=2", MMA(16, 2, ONE_WARP "sm_shares=1," LAST), 6, 100, NONE, WITH(&wild) },
    { "full", "bf16,d=64,mask=causal,features=lengths,b=3,hq=4,hkv=1", MMA(16, 2, ONE_WARP "sm_shares=2," LAST), 2, 200, NONE, WITH(&full) },
    { "idle", "bf16,d=64,mask=none,features=lengths,b=6,hq=4,hkv=1", MMA(16, 2, ONE_WARP "sm_shares=1," SECOND), 2, 100, NONE, WITH(&idle) },
    { "many", "bf16,d=64,mask=none,features=lengths,b=70,hq=1,hkv=1", MMA(16, 2, ONE_WARP "sm_shares=1," LAST), 1, 60, NONE, WITH(&many) },
    { "lanes", "bf16,d=64,mask=none,features=lengths,b=3,hq=8,hkv=4", MMA(16, 2, "row_warps=1,stages=2,kv_lanes=8,sm_shares=4," LAST), 1, 200, NONE, WITH(&many) },
    { "dots", "bf16,d=128,mask=causal,b=3,hq=2,hkv=1", FFMA(4, 8, "stages=3,kv_lanes=1,sm_shares=1," LAST), 2, 200, NONE, WITH(NULL) },
    { "wgmma", "bf16,d=64,mask=causal,b=3,hq=16,hkv=1", WGMMA("stages=2,kv_lanes=1,sm_shares=2," SECOND), 3, 250, NONE, WITH(NULL) },
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

/* clang-format off */
static const mutation mutations[] = {
    /* which keys a thread block owns */
    { "turns rounded down", S, "(hi / BC - lo / BC + GROUPS) / GROUPS", "(hi / BC - lo / BC + 1) / GROUPS", 0, "line" },
    { "the ends of a tile take no place", S, "turns > 0 ? turns + ENDS : 0", "turns", 0, "line pages" },
    { "the ends of tiles are not shared out", S, "long long all = turns + tiles * ENDS", "long long all = turns", 0, "line" },
    { "shares rounded down", S, "divide(all + shares - 1, shares)", "divide(all, shares)", 0, "line pages" },
    { "tiles of different lengths share alike", S, "all.most == all.least ? all.most : 0", "all.most", 0, "full pages idle packed" },
    { "the last thread block goes on", S, "max(min(size, all - at), 0ll)", "size", 0, "line" },
    { "a thread block begins one place early", S, "const long long at = size * index();", "const long long at = max(size * index() - 1, 0ll);", 0, "line" },
    { "part of a place behind the sequence", S, "if (at < place + n)", "if (at <= place + n)", 0, "full many" },
    { "ends are left out before a thread's sequences", S, "before.turns + (long long)before.tiles * ENDS;", "before.turns;", 0, "pages" },
    { "sums leave out the nearest thread", S, "if (lane >= d) sum", "if (lane > d) sum", 0, "pages" },
    { "a warp counts itself as in front", S, "if (w < warp) before", "if (w <= warp) before", 0, "many" },
    { "the sums of warps are not awaited", S, "  if (lane == 31) warps[warp] = sum;\n  __syncthreads();", "  if (lane == 31) warps[warp] = sum;", 0, "many" },
    { "what was found is not awaited", S, "  __syncthreads();\n  s.walk.turns = found->turns;", "  s.walk.turns = found->turns;", 0, "many pages" },
    { "places behind the last turn are turns", S, "end = min(stop, turns);", "end = stop;", 0, "line" },
    { "the next tile has the turns of the one before", S, "          turns = turns_of(sequence);\n", "", 0, "pages" },
    { "the next sequence begins at head 0", S, "kv_head -= p.hkv;", "kv_head = 0;", 0, "lanes" },
    { "all lanes walk the same heads", S, "kv_head = (int)heads * lanes + lane;", "kv_head = (int)heads * lanes;", 0, "lanes" },
    { "lanes share counters and parts", S, "return index * lanes + lane;", "return index * lanes;", 0, "lanes" },
    { "parts of one lane lie side by side", M, "split.block(first), parts, split.lanes);", "split.block(first), parts, 1);", 0, "lanes" },
    { "the first of a tile's thread blocks is taken late", S, "index() - (int)divide(w.turn + size - 1, size)", "index() - (int)divide(w.turn, size)", 0, "line" },
    { "a tile has a part less", S, "return 1 + (int)divide(w.turn", "return (int)divide(w.turn", 0, "line" },

    /* how K and V come */
    { "a page is looked up one entry on", L, "? table[entry] : -1", "? table[entry + 1] : -1", 0, "pages" },
    { "the last key's page is not looked up", L, "page = key <= key_hi", "page = key < key_hi", 0, "pages" },
    { "tokens count through pages", L, "token = key - entry * p.page_size;", "token = key;", 0, "pages" },
    { "the page of a run is another lane's", L, "__shfl_sync(~0u, page, source)", "__shfl_sync(~0u, page, 0)", 0, "pages" },
    { "numbers of pages are believed", L, "(u32)at < (u32)p.pages && ", "", 0, "pages_second" },
    { "numbers of large pages are believed", L, "const bool real = (u32)page < (u32)p.pages;", "const bool real = page >= 0;", 0, "pages_large" },
    { "tables begin with the batch's first", L, "(long long)walk.batch * p.page_table_stride", "0", 0, "pages" },
    { "pages are not looked up anew", L, "    } else {\n      look_up();\n", "", 0, "pages" },
    { "keys behind the last are read", L, "key + row >= key_lo && key + row <= key_hi", "key + row >= key_lo", 1, "line packed" },
    { "keys behind the last of a page are read", L, "key + row >= key_lo && key + row <= key_hi", "key + row >= key_lo", 0, "pages" },
    { "keys behind the last of a large page are read", L, "real && key + row >= key_lo && key + row <= key_hi", "real && key + row >= key_lo", 0, "pages_large" },
    { "keys in front of the first are read", L, "key + row >= key_lo && key + row <= key_hi);\n    }\n//| end", "key + row <= key_hi);\n    }\n//| end", 0, "packed" },
    { "V with the stride of K", L, "DV * (int)sizeof(element)>(buffer + K_TILE, v, key, p.v_ss)", "DV * (int)sizeof(element)>(buffer + K_TILE, v, key, p.k_ss)", 0, "line" },
    { "what is fetched early is read", L, "\"prefetch.global.L2 [%0];\"", "\"{\\n.reg .u32 x;\\nld.global.u32 x, [%0];\\n}\"", 0, "line" },
    { "copies run a stage too far", T, "cp_async_wait<STAGES - 2>()", "cp_async_wait<STAGES - 1>()", 0, "line" },
    { "a warp does not wait for its lanes", T, "//| if c.row_warps == 1 then\n  __syncwarp();", "//| if c.row_warps == 1 then", 0, "line dots" },
    { "warps of a group do not meet", T, "  asm volatile(\"bar.sync %0, %1;\" ::\"r\"(group + 1), \"n\"(GROUP_THREADS) : \"memory\");\n//| end", "//| end", 0, "groups" },
    { "all groups meet at one barrier", T, "::\"r\"(group + 1), \"n\"(GROUP_THREADS) : \"memory\");\n//| end", "::\"r\"(1), \"n\"(GROUP_THREADS) : \"memory\");\n//| end", 0, "groups" },
    { "copies are not fenced before wgmma", T, "  fence_async();\n", "", 0, "wgmma" },

    /* how parts come together */
    { "O is left over keys that are still read", T, "    asm volatile(\"bar.sync %0, %1;\" ::\"r\"(group + 1), \"n\"(GROUP_THREADS) : \"memory\");  // K and V are read\n", "", 0, "overlay" },
    { "the groups' parts are not awaited", M, "  __syncthreads();\n\n  const long long own", "\n  const long long own", 0, "line" },
    { "the next keys over parts that are read", M, "  __syncthreads();  // the buffer is free, and what the block leaves of a tile is written\n", "", 0, "line" },
    { "the last block's word is not awaited", M, "  __syncthreads();\n  const bool is_last", "  const bool is_last", 0, "line" },
    { "the next word over one that is read", M, "  __syncthreads();  // the word is read\n", "", 0, "parts line" },
    { "the counter orders nothing", M, "atom.acq_rel.gpu", "atom.relaxed.gpu", 0, "line" },
    { "the counter releases only", M, "atom.acq_rel.gpu", "atom.release.gpu", 0, "line" },
    { "the counter wraps one late", M, "(u32)parts - 1) == (u32)parts - 1", "(u32)parts) == (u32)parts - 1", 0, "line" },
    { "the last but one adds up", M, "(u32)parts - 1) == (u32)parts - 1", "(u32)parts - 1) == (u32)parts - 2", 0, "line" },
    { "parts of two tiles in one place", M, "(begun ? 0 : 1)", "0", 0, "line" },
    { "a part that began here as if before", M, "first < split.index()) * BR", "first <= split.index()) * BR", 0, "line" },
    { "the last parts are left out", M, "for (int j = 0; j < parts; j += BATCH)", "for (int j = 0; j + BATCH <= parts; j += BATCH)", 0, "line" },
    { "the last part counts more than once", M, "if (j + k >= parts) states[k].x = -infinity();", ";", 0, "line" },
    { "states of one column only", M, "if (four == 0) part_state", "if (four == 1) part_state", 0, "line" },
    { "keyless rows are left", T, "  store_keyless(p);\n", "", 0, "blind" },
    { "LSE of keyless rows is 0", M, "p.lse[sequence.lse(head, query)] = -infinity();", "p.lse[sequence.lse(head, query)] = 0.f;", 0, "blind" },
    { "keyless rows of the first sequences only", M, "i < p.b; i += gridDim.x", "i < 1; i += gridDim.x", 0, "idle" },
    { "what goes on is not told to be none", T, "  if (threadIdx.x == 0 && !goes_on) ((int4 *)p.tiles_open)[blockIdx.x] = make_int4(0, 0, 0, 0);\n", "", 0, "second blind" },
    { "a tile in its middle goes on as well", T, "(walk.turn == 0 && walk.end < walk.turns)", "(walk.end < walk.turns)", 0, "second" },
    { "every block tells of its tile", M, "threadIdx.x == 0 && first == split.index())", "threadIdx.x == 0)", 0, "second" },
    { "slices take the same rows", T, "i = slice * MERGE_THREADS + threadIdx.x", "i = threadIdx.x", 0, "second" },
    { "a slice does not go on", T, "i < rows * (COLS / 4); i += SLICES * MERGE_THREADS", "i < MERGE_THREADS; i += SLICES * MERGE_THREADS", 0, "wgmma second" },
    { "the second step does not wait for the first", T, "  asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n//|   end\n  const int block", "//|   end\n  const int block", 0, "second" },

    /* sequences of their own lengths */
    { "LSE with its strides swapped", X, "index * p.lse_sb + head * p.lse_sh + (first_q + query) * p.lse_ss", "index * p.lse_sb + head * p.lse_ss + (first_q + query) * p.lse_sh", 0, "packed" },
    { "LSE from the batch's first row", X, "(first_q + query) * p.lse_ss", "query * p.lse_ss", 0, "packed" },
    { "Q from the batch's first row", X, "index * p.q_sb + first_q * p.q_ss", "index * p.q_sb", 0, "packed" },
    { "lengths beyond the most", X, "  r.length = min(r.length, most);\n", "", 0, "wild pages" },
    { "rows in use are not cut to those packed", X, "r.length = min(r.length, max(used[index], 0));", "r.length = max(used[index], 0);", 0, "wild" },
    { "lengths below none", X, "max(used[index], 0)", "used[index]", 0, "wild" },
    { "first rows beyond the last", X, "min(max(bounds[index], 0), total)", "max(bounds[index], 0)", 0, "wild" },
    { "the end of a sequence beyond the last row", X, "min(max(bounds[index + 1], r.first), total)", "max(bounds[index + 1], r.first)", 0, "wild" },
    { "the diagonal of the longest", X, "p.relative ? k.length - q.length : 0", "p.relative ? p.sk - p.sq : 0", 0, "pages" },

    /* rows of a warp */
    { "the first head of a group for all", Q, "head = tile.head + row - query * p.group", "head = tile.head", 0, "line" },
    { "rows behind the last are read", Q, "const bool real = row < tile.rows;", "const bool real = true;", 0, "line" },
    { "masked blocks taken as full", T, "block >= tile.range.full_hi || ", "", 0, "line" },
    { "blocks that nothing sees are taken", T, "block >= tile.range.block_lo && block <= tile.range.block_hi", "true", 0, "line packed" },
    { "boxes of V in front of their rows", W, "(u64)(8 * BOX_ROW / 16) << 32 | (u64)(BOX / 16) << 16", "(u64)(4 * BOX_ROW / 16) << 32 | (u64)(BOX / 16) << 16", 0, "wgmma" },
    { "registers of O are not fenced before wgmma", W, "  asm volatile(\"wgmma.fence.sync.aligned;\"\n      : $(operands(0, NO", "  asm volatile(\"\"\n      : $(operands(0, NO", 0, "wgmma" },
    { "scores are not awaited", W, "\"wgmma.wait_group.sync.aligned 0;\"", "\"wgmma.wait_group.sync.aligned 1;\"", 0, "wgmma" },
    { "two lanes have the same share of d", D, "chunk = c * DOT_LANES + dot_lane(lane);", "chunk = c * DOT_LANES + dot_lane(lane) / 2 * 2;", 0, "dots" },
    { "P is not awaited", D, "    __syncwarp();  // P is complete. The next block's comes after all lanes have waited for its keys\n", "", 0, "dots" },
    { "twins count their keys twice", D, "if (TWINS == 1 || dot_lane(lane) % TWINS == 0)", "if (TWINS > 0)", 0, "dots" },
    { "dots: the sum of neighbours only", D, "x[i] = sum_from(o[r][c][i], COL_LANES)", "x[i] = sum_from(o[r][c][i], 2 * COL_LANES)", 0, "dots pages_large" },
    { "dots: columns of other lanes", D, "const bool second = (i > 0) != (lane % 8 >= 4);", "const bool second = lane % 8 >= 4;", 0, "dots pages_large" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};
/* clang-format on */

const mutation_list mutation_lists[] = {
    { scenes, mutations, 3 },
    { NULL, NULL, 0 },
};
