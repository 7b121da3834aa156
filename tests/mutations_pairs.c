/* mutations_pairs: faults of what all families print of a pair, as in mutations.c. Each family that prints it must notice. */
#include "mutations.h"
#include "verify/cases/case.h"
#include <stddef.h>

#define PLAIN FA_VALUES_NORMAL, FA_HIDDEN_VALUES, FA_LAYOUT_PADDED, 0, NULL, 0
#define FAR FA_VALUES_WIDE, FA_HIDDEN_VALUES, FA_LAYOUT_PADDED, 0, NULL, 0
#define RAGGED(how) FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, &how, 0
#define WINDOW 17, 5, 0, 0
#define NONE -1, -1, 0, 0
#define FWD ",mask=window,features=dropout,b=2,hq=4,hkv=2"
#define BWD ",mask=window,op=backward,features=dropout,b=2,hq=4,hkv=2"
#define MMA(pack) "mma:br=32,bc=32,warps=2,stages_k=1,stages_v=2,order=1,q_regs=0,pack=" #pack ",lag=8,ctas=1"
#define MMA_BWD(bc, warps, twins, dq) \
    "flash_bwd_mma:br=32,br_part=32,bc=" #bc ",warps=" #warps ",twins=" #twins ",stages=1,dq=" #dq ",q_br=64,q_bc=32"
#define WGMMA(br, schedule, rest)                                                                                              \
    "wgmma:ctas=1,feeder=40,br=" #br ",schedule=" #schedule ",bc=48,box=64,stages_k=2,stages_v=2,q_bufs=1,ahead=0,sections=1," \
    "cluster=1,exp=0," rest
#define WGMMA_BWD(bc, twins, schedule, dq, rest) \
    "flash_bwd_wgmma:br=64,bc=" #bc ",twins=" #twins ",schedule=" #schedule ",box=64,stages=2,grid=2,held=0,dq=" #dq "," rest
#define DECODE(rows, rest) "br=" #rows ",key_warps=2,stages=2,ctas=1,kv_lanes=1,combine=0,sm_shares=1,min_turns=1," rest

static const fa_ragged_how keys = { .seed = 8, .forms = FA_FORM_SEQLENS_K, .k = FA_SPREAD_UNIFORM },
                           full = { .seed = 8, .forms = FA_FORM_SEQLENS_K, .k = FA_SPREAD_FULL };

/* clang-format off */
static const scene scenes[] = {
    { "naive", "fp32,d=24" FWD, "naive:tile=64", 50, 70, WINDOW, PLAIN },
    { "tiled", "fp32,d=24,mask=window,b=2,hq=4,hkv=2", "tiled:tile=32,row=2048", 50, 70, WINDOW, PLAIN },
    { "flash1", "fp32,d=24,mask=window,b=1,hq=4,hkv=2", "flash1_fwd:br=32,bc=32", 50, 70, WINDOW, PLAIN },
    { "ffma", "fp32,d=24" FWD, "flash_fwd_ffma:br=32,bc=32,warps=2,pack=1", 50, 70, WINDOW, PLAIN },
    { "mma", "bf16,d=32" FWD, "flash_fwd_" MMA(0), 50, 70, WINDOW, PLAIN },
    { "packed", "fp16,d=32" FWD, "flash_fwd_" MMA(1), 50, 70, WINDOW, PLAIN },
    { "mixed", "bf16,d=64,mask=window,features=lengths,b=3,hq=4,hkv=1", "mixed_" MMA(1), 16, 70, WINDOW, RAGGED(keys) },
    { "naive_bwd", "fp32,d=24" BWD, "naive_bwd:tile=64", 50, 70, WINDOW, PLAIN },
    { "ffma_bwd", "fp32,d=24" BWD, "flash_bwd_ffma:br=32,bc=32", 50, 70, WINDOW, PLAIN },
    { "recomputed", "bf16,d=32" BWD, MMA_BWD(32, 2, 0, 0), 90, 80, WINDOW, PLAIN },
    { "spill", "fp16,d=32" BWD, MMA_BWD(32, 2, 0, 1), 90, 80, WINDOW, PLAIN },
    { "twins", "bf16,d=32" BWD, MMA_BWD(64, 4, 1, 0), 90, 80, WINDOW, PLAIN },
    { "ffma_far", "fp32,d=64,mask=none,op=backward,b=1,hq=4,hkv=2", "flash_bwd_ffma:br=32,bc=32", 90, 70, NONE, FAR },
    { "recomputed_far", "bf16,d=64,mask=none,op=backward,b=1,hq=4,hkv=2", MMA_BWD(32, 2, 0, 0), 90, 100, NONE, FAR },
    { "spill_far", "bf16,d=64,mask=none,op=backward,b=1,hq=4,hkv=2", MMA_BWD(32, 2, 0, 1), 90, 100, NONE, FAR },
    { NULL, NULL, NULL, 0, 0, NONE, PLAIN },
};
static const scene on_hopper[] = {
    { "wgmma", "bf16,d=64" FWD, "flash_fwd_" WGMMA(64, 0, "rescale=2,convert=0,o_path=0,grid=0"), 100, 150, WINDOW, PLAIN },
    { "relative", "fp16,d=64" FWD, "flash_fwd_" WGMMA(128, 2, "rescale=3,convert=1,o_path=2,grid=2"), 150, 200, WINDOW, PLAIN },
    { "mixed", "bf16,d=64,mask=window,features=lengths,b=3,hq=16,hkv=1", "mixed_" WGMMA(128, 1, "rescale=3,convert=1,o_path=0,grid=2"), 70, 150, WINDOW, RAGGED(full) },
    { "mixed_few", "bf16,d=64,mask=window,features=lengths,b=3,hq=16,hkv=1", "mixed_" WGMMA(128, 1, "rescale=3,convert=1,o_path=0,grid=2"), 4, 150, WINDOW, RAGGED(full) },
    { "decode_mma", "bf16,d=64,mask=window,b=2,hq=2,hkv=1", "decode_mma:" DECODE(16, "bk=16,row_warps=1"), 2, 150, WINDOW, PLAIN },
    { "dots", "bf16,d=64,mask=window,b=2,hq=2,hkv=1", "decode_ffma:" DECODE(4, "bk=8,row_warps=1,dot_lanes=8"), 2, 150, WINDOW, PLAIN },
    { "decode_wgmma", "bf16,d=64,mask=window,b=2,hq=16,hkv=1", "decode_wgmma:" DECODE(64, "bk=32,row_warps=4"), 3, 150, WINDOW, PLAIN },
    { "single", "bf16,d=64" BWD, WGMMA_BWD(64, 0, 0, 0, "ds_bufs=0,q_br=128,q_stages=3"), 150, 150, WINDOW, PLAIN },
    { "twins", "bf16,d=64" BWD, WGMMA_BWD(64, 1, 0, 0, "ds_bufs=0,q_br=128,q_stages=3"), 150, 100, WINDOW, PLAIN },
    { "add", "bf16,d=64" BWD, WGMMA_BWD(128, 0, 1, 1, "ds_bufs=2,q_br=128,q_stages=4"), 150, 150, WINDOW, PLAIN },
    { "single_far", "bf16,d=64,mask=none,op=backward,b=1,hq=4,hkv=2", WGMMA_BWD(64, 0, 0, 0, "ds_bufs=0,q_br=128,q_stages=3"), 200, 150, NONE, FAR },
    { NULL, NULL, NULL, 0, 0, NONE, PLAIN },
};
/* clang-format on */

#define H "hide.cu"
#define S "score.lua"
#define D "drop.cu"
#define L "layouts.lua"
#define TELL "told[layouts[layout].told](layouts[layout], x, value, past)"
#define OF_BASE_2 "ffma mma packed mixed"
#define MMA_BWDS "recomputed spill twins"
#define HOPPER_BWDS "single twins add"
#define DECODES "decode_mma dots decode_wgmma"

static const mutation mutations[] = {
    { "nothing is hidden", H, TELL, "", 0, OF_BASE_2 " " MMA_BWDS },
    { "the last key is not seen", H, "%s <= %s\"", "%s < %s\"", 0, "naive tiled flash1 naive_bwd ffma_bwd" },
    { "the first key is not seen", H, "\"%s >= %s &&", "\"%s > %s &&", 0, "naive tiled flash1 naive_bwd ffma_bwd" },
    { "the last key is hidden", H, "\"%s > %s ||", "\"%s >= %s ||", 0, "tiled " OF_BASE_2 " " MMA_BWDS },
    { "the first key is hidden", H, "|| %s < %s\"", "|| %s <= %s\"", 0, "tiled " OF_BASE_2 " " MMA_BWDS },
    { "keys of the block before", H, "(of.query)) - block * BC, hi", "(of.query)) - block * BC - BC, hi", 0, "ffma mma packed recomputed" },

    { "a score without the scale", S, "product .. \" * p.scale\"", "product", 0, "naive tiled flash1" },
    { "an exponent with the maximum added", S, "\"fmaf(%s, %s, -%s)\"", "\"fmaf(%s, %s, %s)\"", 0, OF_BASE_2 " ffma_bwd " MMA_BWDS },
    { "an exponent without the scale", S, "):format(product, unit, shift)", "):format(product, \"1.f\", shift)", 0,
      OF_BASE_2 " ffma_bwd " MMA_BWDS },
    { "P above 1", S, "probability_exp2(%s", "exp2_approx(%s", 0, "ffma_far recomputed_far spill_far" },
    { "LSE without the sum", S, "m .. \" + logf(\" .. l .. \")\"", "m", 0, "naive tiled flash1" },
    { "LSE in base 2", S, " * 0.693147180559945309f", "", 0, OF_BASE_2 },
    { "LSE without the maximum", S, "):format(m, unit, l)", "):format(\"0.f\", unit, l)", 0, OF_BASE_2 },
    { "dS without D", S, "):format(probability, grad, delta)", "):format(probability, grad, \"0.f\")", 0, "naive_bwd ffma_bwd " MMA_BWDS },
    { "dS with D added", S, "%s * (%s - %s)", "%s * (%s + %s)", 0, "naive_bwd ffma_bwd " MMA_BWDS },
    { "dS is dP alone", S, "):format(probability, grad, delta)", "):format(\"1.f\", grad, delta)", 0, "naive_bwd ffma_bwd " MMA_BWDS },
    { "gradients without the scale", S, "grad_scale = \"p.scale\"", "grad_scale = \"1.f\"", 0, "naive_bwd ffma_bwd " MMA_BWDS },

    { "O without the scale of what is kept", D, "and \" * p.keep_scale\" or", "and \"\" or", 0, "ffma mma packed" },
    { "dV without the scale of what is kept", D, "and \"p.keep_scale\" or", "and \"1.f\" or", 0, "ffma_bwd " MMA_BWDS },
    { "words of the query and of the key eight on swapped", D, "\"w.y\", \"w.z\"", "\"w.z\", \"w.y\"", 0, "mma recomputed" },
    { "dK: words of the query and of the key eight on swapped", D, "{ \"x\", \"y\", \"z\", \"w\" }", "{ \"x\", \"z\", \"y\", \"w\" }", 0,
      MMA_BWDS },
    { "a tile whose dropped pairs are kept", D, "if (!$(kept)) $(x)$(at) = 0.f;", "", 0, "mma packed" },
    { "bits of the pairs that are dropped", D, "own |= (dropout.kept(", "own |= (~dropout.kept(", 0, MMA_BWDS },
    { "bits without the scale", D, "? %s : 0.f) * %s;\"):format(element, kept.bit, element, scale)",
      "? %s : 0.f);\"):format(element, kept.bit, element)", 0, MMA_BWDS },
    { "a pair of another query", D, "):format(number, query, key)", "):format(number, key, query)", 0, "naive ffma naive_bwd ffma_bwd" },
    { "a pair that is dropped", D, "if (!$(pr.keeps(number, query, key))) $(x) = 0.f;", "", 0, "ffma" },
    { "a weight of what is dropped", D, "(%s ? p.keep_scale : 0.f)\"", "(%s ? p.keep_scale : 1.f)\"", 0, "naive" },
    { "a pair without the scale", D, "\"(kept ? %s * p.keep_scale", "\"(kept ? %s", 0, "naive_bwd ffma_bwd" },

    { "mma: the other row of a thread", L, "i = query_of(p, row + m * 16 + h * 8 + at.g)", "i = query_of(p, row + m * 16 + at.g)", 0,
      "mma packed mixed" },
    { "mma: neighbouring columns swapped", L, "pair = \"key = n * 8 + key_of_column(2 * at.t + e)",
      "pair = \"key = n * 8 + key_of_column(2 * at.t + 1 - e)", 0, "mma packed mixed" },
    { "mma: octets of the first block", L, "\"block * BC + n * 8 + key_of_column", "\"n * 8 + key_of_column", 0, "mma packed" },
    { "mma: octets of the first sequence", L, "where.batch * p.hq + where.head", "where.head", 0, "mma" },
    { "packed: octets of the group's first head", L, "p.hq + own.head", "p.hq + where.head", 0, "packed" },
    { "packed: a query's upper half for all", L, "query % 16 >= 8", "query % 16 >= 16", 0, "packed" },
    { "dQ: the other row of a thread", L, "warp_row + m * 16 + h * 8 + g", "warp_row + m * 16 + g", 0, "recomputed" },
    { "dQ: quads of the first eight keys", L, "\"key + n * 8 + 2 * t + e\"", "\"key + 2 * t + e\"", 0, "recomputed" },
    { "dK: the other key of a thread", L, "j = g + m * 16 + e / 2 * 8", "j = g + m * 16", 0, MMA_BWDS },
    { "dK: queries of the first block of eight", L, "i = 2 * t + n * 8 + e % 2", "i = 2 * t + e % 2", 0, MMA_BWDS },
    { "dK: quads of the warp's first keys", L, "\"key + m * 16 + g\"", "\"key + g\"", 0, "twins" },
    { "dK: bits of neighbours", L, "(n % 8 * 2 + e / 2", "(n % 8 * 2 + e % 2", 0, MMA_BWDS },
    { "ffma: keys in order", L, "\"x + 16 * j\"", "\"CJ * x + j\"", 0, "ffma" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};

static const mutation hopper[] = {
    { "nothing is hidden", H, TELL, "", 0, "wgmma relative mixed mixed_few " DECODES " " HOPPER_BWDS },
    { "the last key is hidden", H, "\"%s > %s ||", "\"%s >= %s ||", 0, "mixed_few " DECODES },
    { "the first key is hidden", H, "|| %s < %s\"", "|| %s <= %s\"", 0, "mixed_few " DECODES },
    { "bits: the last key is hidden", H, "$(pr.last_key(\"query\")) + 1 - first", "$(pr.last_key(\"query\")) - first", 0,
      "wgmma relative mixed" },
    { "bits: the left edge is forgotten", H, " & ~bits_below(below_lo - 32 * word);", ";", 0, "wgmma relative mixed" },
    { "queries: the first is hidden", H, " - hi - 2 * t;", " - hi - 2 * t + 1;", 0, HOPPER_BWDS },
    { "queries: the last is hidden", H, " - lo - 2 * t;", " - lo - 2 * t - 1;", 0, HOPPER_BWDS },

    { "an exponent with the maximum added", S, "\"fmaf(%s, %s, -%s)\"", "\"fmaf(%s, %s, %s)\"", 0,
      "wgmma relative mixed mixed_few " DECODES " " HOPPER_BWDS },
    { "P above 1", S, "probability_exp2(%s", "exp2_approx(%s", 0, "single_far" },
    { "LSE in base 2", S, " * 0.693147180559945309f", "", 0, "wgmma relative " DECODES },
    { "dS without D", S, "):format(probability, grad, delta)", "):format(probability, grad, \"0.f\")", 0, HOPPER_BWDS },
    { "dS is dP alone", S, "):format(probability, grad, delta)", "):format(\"1.f\", grad, delta)", 0, HOPPER_BWDS },
    { "gradients without the scale", S, "grad_scale = \"p.scale\"", "grad_scale = \"1.f\"", 0, HOPPER_BWDS },

    { "O without the scale of what is kept", D, "and \" * p.keep_scale\" or", "and \"\" or", 0, "wgmma relative" },
    { "dV without the scale of what is kept", D, "and \"p.keep_scale\" or", "and \"1.f\" or", 0, HOPPER_BWDS },
    { "words of the query and of the key eight on swapped", D, "{ \"x\", \"y\", \"z\", \"w\" }", "{ \"x\", \"z\", \"y\", \"w\" }", 0,
      HOPPER_BWDS },
    { "halves of P swapped", "philox.cu", "0, 0xbb99;", "0, 0x99bb;", 0, "wgmma relative " HOPPER_BWDS },
    { "halves of P: the second's for both", "philox.cu", "0, 0xbb99;", "0, 0xbbbb;", 0, "wgmma relative " HOPPER_BWDS },
    { "bits without the scale", D, "? %s : 0.f) * %s;\"):format(element, kept.bit, element, scale)",
      "? %s : 0.f);\"):format(element, kept.bit, element)", 0, HOPPER_BWDS },

    { "wgmma: words of the query and of the key eight on swapped", L, "\"x\", \"z\", \"y\", \"w\"", "\"x\", \"y\", \"z\", \"w\"", 0,
      "wgmma relative" },
    { "wgmma: the other row of a thread", L, "\"query_of(p, row + 8 * h)\"", "\"query_of(p, row)\"", 0, "wgmma relative mixed" },
    { "dK: keys of the warp's other rows", L, "j = warp_key + g + h * 8", "j = warp_key + g", 0, HOPPER_BWDS },
    { "dK: bits of neighbours", L, "(x % 32 / 2 + x % 2 * 16)", "(x % 32 / 2 + (1 - x % 2) * 16)", 0, HOPPER_BWDS },
    { "dots: another row", L, "query_of(p, tile.row + r)", "query_of(p, tile.row)", 0, "dots" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};

const mutation_list mutation_lists[] = {
    { scenes, mutations, 0, 22, true },
    { on_hopper, hopper, 2, 22, true },
    { ranges_scenes, ranges_mutations, 3, 25, true },
    { ranges_hopper_scenes, ranges_hopper_mutations, 2, 25, true },
    { work_scenes, work_mutations, 3, 25, true },
    { NULL, NULL, 0, 0, false },
};
