/* mutations_ranges: faults of templates/pairs/ranges.cu, as in mutations.c. A scene is a family that prints the piece, and each must
 * notice. Windows whose edges cut other blocks for a tile's first row than for its last. */
#include "mutations.h"
#include "verify/cases/case.h"
#include <stddef.h>

#define MMA "br=32,bc=16,warps=2,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1"
#define SPLIT "ctas=1,min_turns=1,row_warps=1,stages=2,kv_lanes=1,sm_shares=1,combine=1"
#define BWD "flash_bwd_mma:br=32,br_part=32,bc=32,warps=2,twins=0,stages=1,q_bc=16,"
#define WGMMA(rows, rest) \
    "wgmma:ctas=1,feeder=40,br=" #rows ",box=64,stages_k=2,stages_v=2,q_bufs=1,ahead=0,sections=1,cluster=1,exp=0," rest
#define BWD_WGMMA(bc, twins, rest) "flash_bwd_wgmma:br=64,bc=" #bc ",twins=" #twins ",box=64,stages=2," rest
#define WINDOW(left, right) left, right, 0, 0, FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, NULL, 0
#define TOP_LEFT(left, right) left, right, FA_TOP_LEFT, 0, FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, NULL, 0
#define LENGTHS(left, right, how) left, right, 0, 0, FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, &how, 0

/* clang-format off */
static const fa_ragged_how
    full = { .seed = 8, .forms = FA_FORM_SEQLENS_K, .k = FA_SPREAD_FULL },
    pages = { .seed = 8, .forms = FA_FORM_SEQLENS_K | FA_FORM_PAGES, .k = FA_SPREAD_FULL, .page_size = 16, .spare = 2 };

const scene ranges_scenes[] = {
    { "naive", "fp32,d=24,mask=window,b=1,hq=2,hkv=1", "naive:tile=64", 150, 300, WINDOW(40, 9) },
    { "tiled", "fp32,d=24,mask=window,b=1,hq=2,hkv=1", "tiled:tile=16,row=2048", 90, 110, WINDOW(20, 5) },
    { "flash1", "fp32,d=24,mask=window,b=1,hq=2,hkv=1", "flash1_fwd:br=16,bc=16", 90, 110, WINDOW(20, 5) },
    { "ffma", "fp32,d=40,mask=window,b=1,hq=2,hkv=1", "flash_fwd_ffma:br=32,bc=32,warps=2,pack=0", 100, 160, WINDOW(50, 40) },
    { "mma", "bf16,d=64,mask=window,b=1,hq=2,hkv=2", "flash_fwd_mma:" MMA, 100, 100, WINDOW(40, 25) },
    { "elements", "bf16,d=33,mask=window,b=1,hq=2,hkv=2", "flash_fwd_mma:" MMA, 100, 130, WINDOW(40, 25) },
    { "dots", "fp32,d=40,mask=window,b=1,hq=2,hkv=2", "decode_ffma:br=4,bk=8,key_warps=4,dot_lanes=8," SPLIT, 4, 153, WINDOW(30, 0) },
    { "decode", "bf16,d=64,mask=window,b=1,hq=2,hkv=2", "decode_mma:br=16,bk=16,key_warps=2," SPLIT, 10, 150, WINDOW(46, 2) },
    { "mixed", "bf16,d=64,mask=window,features=lengths,b=1,hq=2,hkv=2", "mixed_mma:" MMA, 100, 100, LENGTHS(40, 25, full) },
    { "mma_pages", "bf16,d=64,mask=window,features=lengths+pages,page=16,b=1,hq=2,hkv=2", "flash_fwd_mma:" MMA, 30, 145,
      LENGTHS(30, 0, pages) },
    { "decode_pages", "bf16,d=64,mask=window,features=lengths+pages,page=16,b=1,hq=2,hkv=2", "decode_mma:br=16,bk=16,key_warps=2," SPLIT,
      10, 145, LENGTHS(30, 0, pages) },
    { "naive_bwd", "fp32,d=24,mask=window,op=backward,b=1,hq=2,hkv=1", "naive_bwd:tile=64", 150, 300, WINDOW(40, 9) },
    { "ffma_bwd", "fp32,d=32,mask=window,op=backward,b=1,hq=2,hkv=1", "flash_bwd_ffma:br=16,bc=16", 90, 90, WINDOW(17, 5) },
    { "recomputed", "fp16,d=40,mask=window,op=backward,b=1,hq=2,hkv=1", BWD "q_br=64,dq=0", 90, 110, WINDOW(40, 25) },
    { "recomputed_blind", "bf16,d=64,mask=window,op=backward,b=1,hq=2,hkv=2", BWD "q_br=32,dq=0", 40, 90, TOP_LEFT(20, 5) },
    { "spill", "fp16,d=40,mask=window,op=backward,b=1,hq=2,hkv=1", BWD "q_br=64,dq=1", 90, 110, WINDOW(17, 5) },
    { NULL, NULL, NULL, 0, 0, WINDOW(0, 0) },
};

const scene ranges_hopper_scenes[] = {
    { "wgmma", "bf16,d=64,mask=window,b=1,hq=2,hkv=1", "flash_fwd_" WGMMA(128, "schedule=0,bc=48,convert=0,rescale=2,o_path=0,grid=0"),
      256, 300, WINDOW(100, 60) },
    { "wgmma_lengths", "bf16,d=64,mask=window,features=lengths,b=1,hq=2,hkv=1",
      "flash_fwd_" WGMMA(64, "schedule=0,bc=48,convert=1,rescale=3,o_path=0,grid=2"), 90, 200, TOP_LEFT(20, 5) },
    { "wgmma_pages", "bf16,d=64,mask=window,features=lengths+pages,page=16,b=1,hq=2,hkv=1",
      "flash_fwd_" WGMMA(64, "schedule=0,bc=48,convert=1,rescale=3,o_path=0,grid=2"), 60, 241, LENGTHS(30, 0, pages) },
    { "decode_wgmma", "bf16,d=64,mask=window,b=1,hq=2,hkv=2",
      "decode_wgmma:br=64,bk=32,key_warps=2,ctas=1,min_turns=1,row_warps=4,stages=2,kv_lanes=1,sm_shares=1,combine=1", 10, 164, WINDOW(95, 2) },
    { "mixed_wgmma", "bf16,d=64,mask=window,features=lengths,b=1,hq=2,hkv=1",
      "mixed_" WGMMA(128, "schedule=0,bc=48,convert=1,rescale=3,o_path=0,grid=2"), 256, 300, LENGTHS(100, 60, full) },
    { "bwd", "fp16,d=64,mask=window,op=backward,b=1,hq=2,hkv=1",
      BWD_WGMMA(128, 0, "schedule=0,dq=0,ds_bufs=0,held=0,q_br=128,q_stages=3,grid=2"), 300, 300, WINDOW(40, 9) },
    { "bwd_twins", "fp16,d=64,mask=window,op=backward,b=1,hq=2,hkv=1",
      BWD_WGMMA(64, 1, "schedule=0,dq=0,ds_bufs=0,held=0,q_br=128,q_stages=3,grid=0"), 200, 200, WINDOW(70, 0) },
    { "bwd_add", "fp16,d=64,mask=window,op=backward,b=1,hq=2,hkv=1",
      BWD_WGMMA(128, 0, "schedule=1,dq=1,ds_bufs=2,held=0,q_br=128,q_stages=4,grid=2"), 300, 300, WINDOW(40, 9) },
    { "bwd_lengths", "bf16,d=64,mask=window,op=backward,features=lengths,b=1,hq=2,hkv=1",
      BWD_WGMMA(64, 0, "schedule=0,dq=0,ds_bufs=0,held=0,q_br=128,q_stages=3,grid=2"), 90, 200, TOP_LEFT(20, 5) },
    { NULL, NULL, NULL, 0, 0, WINDOW(0, 0) },
};
/* clang-format on */

#define R "ranges.cu"
#define FORWARD "ffma mma elements dots decode mixed"
#define ALL "naive tiled flash1 ffma mma elements dots decode mixed naive_bwd ffma_bwd recomputed spill"

/* What both lists put into the keys of a tile's rows. */
#define CUT_RIGHT \
    "blocks that the right edge cuts count as whole", R, "(last_key(sequence, i0) + 1) / BC", "(last_key(sequence, i1) + 1) / BC"
#define CUT_LEFT \
    "blocks that the left edge cuts count as whole", R, "(first_key(sequence, i1) + BC - 1)", "(first_key(sequence, i0) + BC - 1)"
#define FIRST "keys from where the last row's begin", R, "r.key_lo = first_key(sequence, i0)", "r.key_lo = first_key(sequence, i1)"
#define LAST "keys to where the first row's end", R, "r.key_hi = last_key(sequence, i1)", "r.key_hi = last_key(sequence, i0)"
#define FORGOTTEN_RIGHT "the right edge cuts no block", R, "block >= %s.full_hi || ", ""
#define FORGOTTEN_LEFT "the left edge cuts no block", R, " || block <= %s.full_lo", ""
#define TURNS "turns rounded down", R, "(hi / BC - lo / BC + GROUPS) / GROUPS", "(hi / BC - lo / BC + 1) / GROUPS"
#define LAST_RUN "the run of keys that begins with the last is not looked up", R, "key <= %s && key", "key < %s && key"
#define FIRST_RUN \
    "runs that hold the first key are not looked up", R, "key + %s > %s\"):format(last, keys, first)", "key > %s\"):format(last, first)"
#define QUERIES \
    "queries of a tile's first key alone", R, "(\"last_query(sequence, min(%s + %s, %s) - 1)\")", "(\"last_query(sequence, %s)\")"
#define OWN_KEYS "all keys count as some query's", R, "return (\"last_key(sequence, %s - 1)\")", "return (\"sequence.sk() - 1\")"

const mutation ranges_mutations[] = {
    { CUT_RIGHT, 0, FORWARD " recomputed" },
    { CUT_LEFT, 0, FORWARD " recomputed" },
    { FIRST, 0, ALL },
    { LAST, 0, ALL },
    { FORGOTTEN_RIGHT, 0, "elements dots decode recomputed" },
    { FORGOTTEN_LEFT, 0, "elements dots decode recomputed" },
    { "the loop of whole blocks one too far", R, "block > max($(range).full_lo, $(range).block_lo - 1)",
      "block >= max($(range).full_lo, $(range).block_lo - 1)", 0, "ffma mma mixed" },
    { "blocks that the left edge cuts are left out", R, "    for (; block >= $(range).block_lo; block--) $(step)(Constant<true>{});\n", "",
      0, "ffma mma mixed" },
    { TURNS, 0, "dots decode" },
    { LAST_RUN, 0, "mma_pages decode_pages" },
    { FIRST_RUN, 0, "mma_pages decode_pages" },
    { QUERIES, 0, "ffma_bwd recomputed spill" },
    { OWN_KEYS, 0, "recomputed_blind" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};

const mutation ranges_hopper_mutations[] = {
    { CUT_RIGHT, 0, "wgmma decode_wgmma mixed_wgmma" },
    { CUT_LEFT, 0, "wgmma decode_wgmma mixed_wgmma" },
    { FIRST, 0, "wgmma decode_wgmma mixed_wgmma bwd bwd_twins" },
    { LAST, 0, "wgmma decode_wgmma mixed_wgmma bwd bwd_twins" },
    { FORGOTTEN_RIGHT, 0, "decode_wgmma" },
    { FORGOTTEN_LEFT, 0, "decode_wgmma" },
    { "a block after the whole ones counts as whole", R, "block < %s.full_hi &&", "block <= %s.full_hi &&", 0, "wgmma mixed_wgmma" },
    { "a block before the whole ones counts as whole", R, "&& block > %s.full_lo", "&& block >= %s.full_lo", 0, "wgmma mixed_wgmma" },
    { TURNS, 0, "decode_wgmma" },
    { LAST_RUN, 0, "wgmma_pages" },
    { FIRST_RUN, 0, "wgmma_pages" },
    { QUERIES, 0, "bwd bwd_twins bwd_add bwd_lengths" },
    { OWN_KEYS, 0, "wgmma_lengths bwd_lengths" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};
