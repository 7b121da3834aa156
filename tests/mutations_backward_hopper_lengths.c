/* mutations_backward_hopper_lengths: faults of flash_bwd_wgmma where sequences have lengths of their own, as in mutations.c. With two SMs a
 * block that stays does tiles of several sequences. */
#include "mutations.h"
#include "verify/cases/case.h"
#include <stddef.h>

#define CONFIG(br, bc, twins, schedule, rest) \
    "flash_bwd_wgmma:br=" #br ",bc=" #bc ",twins=" #twins ",schedule=" #schedule ",box=64,dq=0,ds_bufs=0,held=0," rest
#define ADD(rest) "flash_bwd_wgmma:br=64,bc=128,twins=0,box=64,stages=2,dq=1,ds_bufs=2,q_br=128,q_stages=4,held=0," rest
#define USUAL "stages=2,q_br=128,q_stages=3,grid=2"
#define ALONE "stages=2,q_br=128,q_stages=3,grid=0"
#define DEEP "stages=3,q_br=128,q_stages=4,grid=2"
#define WIDE_Q "stages=2,q_br=256,q_stages=3,grid=0"
#define NONE -1, -1, 0, 0
#define WITH(ragged) FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, ragged, 0
#define SLICED(ragged, chunk) FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, ragged, chunk

enum { Q_K = FA_FORM_SEQLENS_Q | FA_FORM_SEQLENS_K, PACKED = FA_FORM_CU_Q | FA_FORM_CU_K };
static const fa_ragged_how packed = { .seed = 6, .forms = PACKED, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM, .gap = 5 },
                           gaps = { .seed = 9, .forms = PACKED | Q_K, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM, .gap = 9 },
                           padded = { .seed = 13, .forms = Q_K, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM },
                           edges = { .seed = 3, .forms = PACKED, .q = FA_SPREAD_EDGES, .k = FA_SPREAD_EDGES },
                           mixed = { .seed = 7, .forms = FA_FORM_CU_Q | FA_FORM_SEQLENS_K, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM },
                           whole = { .seed = 2, .forms = PACKED },
                           idle = { .seed = 4, .forms = Q_K, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM, .idle = 1 };

/* clang-format off */
const scene hopper_lengths_scenes[] = {
    { "packed", "bf16,d=64,mask=causal,op=backward,features=lengths,b=4,hq=2,hkv=1", CONFIG(64, 64, 0, 0, USUAL), 200, 200, NONE,
      WITH(&packed) },
    { "none", "bf16,d=64,mask=none,op=backward,features=lengths,b=3,hq=2,hkv=1", CONFIG(64, 64, 0, 0, ALONE), 200, 150, NONE,
      WITH(&packed) },
    { "pair", "fp16,d=64,mask=none,op=backward,features=lengths,b=4,hq=2,hkv=1", CONFIG(64, 128, 0, 1, USUAL), 150, 290, NONE,
      WITH(&gaps) },
    { "padded", "bf16,d=64,mask=causal,op=backward,features=lengths+lse-strides,b=3,hq=4,hkv=2", CONFIG(64, 128, 0, 1, USUAL), 200, 200,
      NONE, WITH(&padded) },
    { "window", "bf16,d=64,mask=window,op=backward,features=lengths,b=4,hq=2,hkv=1", CONFIG(64, 64, 0, 0, USUAL), 80, 300, 30, 5, 0, 0,
      WITH(&gaps) },
    { "pair_window", "bf16,d=64,mask=window,op=backward,features=lengths,b=4,hq=2,hkv=1", CONFIG(64, 128, 0, 0, ALONE), 80, 300, 30, 5, 0,
      0, WITH(&gaps) },
    { "top_left", "bf16,d=64,mask=causal,op=backward,features=lengths,b=3,hq=2,hkv=1", CONFIG(64, 64, 0, 0, USUAL), 90, 200, -1, -1,
      FA_TOP_LEFT, 0, WITH(&padded) },
    { "blind", "bf16,d=64,mask=causal,op=backward,features=lengths,b=3,hq=2,hkv=2", CONFIG(64, 64, 0, 0, USUAL), 250, 70, NONE,
      WITH(&padded) },
    { "twins", "bf16,d=64,mask=causal,op=backward,features=lengths,b=4,hq=2,hkv=1", CONFIG(64, 64, 1, 0, USUAL), 200, 200, NONE,
      WITH(&gaps) },
    { "rows_128", "bf16,d=128,mask=causal,op=backward,features=lengths,b=3,hq=2,hkv=1", CONFIG(128, 64, 1, 0, ALONE), 300, 200, NONE,
      WITH(&packed) },
    { "deep", "bf16,d=64,mask=none,op=backward,features=lengths,b=4,hq=2,hkv=1", CONFIG(64, 64, 0, 0, DEEP), 150, 250, NONE,
      WITH(&packed) },
    { "wide_q", "bf16,d=64,mask=causal,op=backward,features=lengths,b=3,hq=2,hkv=1", CONFIG(64, 64, 0, 0, WIDE_Q), 300, 300, NONE,
      WITH(&packed) },
    { "mixed", "bf16,d=64,mask=none,op=backward,features=lengths,b=3,hq=2,hkv=1", CONFIG(64, 64, 0, 0, USUAL), 100, 150, NONE,
      WITH(&mixed) },
    { "idle", "fp16,d=64,mask=none,op=backward,features=lengths,b=3,hq=2,hkv=1", CONFIG(64, 64, 0, 0, USUAL), 100, 150, NONE,
      WITH(&idle) },
    { "rows_63", "fp16,d=64,mask=none,op=backward,features=lengths,b=2,hq=1,hkv=1", CONFIG(64, 64, 0, 0, ALONE), 63, 63, NONE,
      WITH(&whole) },
    { "edges", "bf16,d=64,mask=causal,op=backward,features=lengths,b=8,hq=1,hkv=1", CONFIG(64, 64, 0, 0, USUAL), 130, 130, NONE,
      WITH(&edges) },
    { "many", "fp16,d=64,mask=none,op=backward,features=lengths,b=40,hq=1,hkv=1", ADD("schedule=1,grid=2"), 70, 20, NONE, WITH(&packed) },
    { "slices", "bf16,d=64,mask=causal,op=backward,features=lengths,b=2,hq=6,hkv=2", CONFIG(64, 128, 0, 1, USUAL), 100, 150, NONE,
      SLICED(&gaps, 4 * 49152) },
    /* of a query no more than two tiles of keys, so that the order of the additions leaves the bits alone */
    { "add", "bf16,d=64,mask=none,op=backward,features=lengths,b=4,hq=2,hkv=1", ADD("schedule=1,grid=2"), 190, 250, NONE, WITH(&packed) },
    { "heads", "bf16,d=64,mask=none,op=backward,features=lengths,b=4,hq=4,hkv=2", ADD("schedule=1,grid=0"), 190, 250, NONE, WITH(&gaps) },
    { "crowd", "bf16,d=64,mask=none,op=backward,features=lengths,b=260,hq=1,hkv=1", ADD("schedule=1,grid=0"), 3, 9, NONE, WITH(&packed) },
    { "add_causal", "bf16,d=128,mask=causal,op=backward,features=lengths,b=3,hq=2,hkv=1", ADD("schedule=1,grid=0"), 200, 200, NONE,
      WITH(&gaps) },
    { "add_window", "fp16,d=64,mask=window,op=backward,features=lengths,b=3,hq=2,hkv=1", ADD("schedule=0,grid=2"), 100, 250, 40, 9, 0, 0,
      WITH(&padded) },
    { "spread", "bf16,d=64,mask=causal,op=backward,features=lengths,b=4,hq=4,hkv=2", CONFIG(64, 128, 0, 1, USUAL ",spread=1"), 150, 290,
      NONE, WITH(&gaps) },
    { "spread_two", "bf16,d=64,mask=none,op=backward,features=lengths,b=3,hq=3,hkv=1", CONFIG(64, 64, 1, 0, ALONE ",spread=2"), 100, 150, NONE,
      WITH(&packed) },
    { "spread_add", "bf16,d=64,mask=none,op=backward,features=lengths,b=3,hq=3,hkv=1", ADD("schedule=1,grid=2,spread=1"), 100, 190, NONE,
      WITH(&padded) },
    { NULL, NULL, NULL, 0, 0, NONE, WITH(NULL) },
};
/* clang-format on */

#define K "grad_hopper_kv.cu"
#define A "grad_hopper_add.cu"
#define X "grad_hopper_out_of_range.cu"
#define Y "grad_hopper_clear.cu"
#define RANGES "ranges.cu"
#define Z "clear_rows.cu"
#define G "grad_hopper_q.cu"
#define V "grad_hopper_convert.cu"
#define D "delta_block.cu"
#define F "grad_hopper_fold.cu"
#define Q "sequence.cu"
#define R "spaced_rows.cu"
#define T "key_tiles.cu"
#define L "flash_bwd_wgmma.lua"
#define N "grad_hopper_tiles.cu"

const mutation hopper_lengths_mutations[] = {
    /* which rows are of others */
    { "keys before a window count as seen", RANGES, "{$(pr.first_own_key) - block * BC", "{-block * BC", 0, "window pair_window" },
    { "a block that ends a row too far is all its own", RANGES, "end >= BC", "end >= BC - 1", 0, "rows_63" },
    { "queries past those that see a key count", RANGES, "$(pr.last_own_query()) + 1", "sequence.sk() + 1 + sequence.sq()", 0,
      "packed none" },
    { "a block of queries that ends in others' is its own", RANGES, "return first <= 0 && end >= BR; }", "return first <= 0; }", 0,
      "packed none" },
    { "a block of queries that ends a row too far is its own", RANGES, "end >= BR", "end >= BR - 1", 0, "rows_63" },
    { "of two blocks of keys the first decides", RANGES, "all = all && own_rows(sequence, key0 / 64 + i).all();",
      "all = all && own_rows(sequence, key0 / 64).all();", 0, "pair add" },

    /* zeros */
    { "rows in front stay", X, "  clear_rows<ROWS, N>(tile, 0, min(first, ROWS), lane);\n", "", 0, "window" },
    { "rows past the end stay", X, "  clear_rows<ROWS, N>(tile, max(end, 0), ROWS, lane);\n", "", 0, "none packed" },
    { "the first row of others stays", X, "max(end, 0), ROWS", "max(end, 0) + 1, ROWS", 0, "none packed" },
    { "the last own row becomes zeros", X, "max(end, 0), ROWS", "max(end - 1, 0), ROWS", 0, "none" },
    { "the row before the first stays", X, "min(first, ROWS), lane", "min(first, ROWS) - 1, lane", 0, "window" },
    { "the first own row becomes zeros", X, "min(first, ROWS), lane", "min(first + 1, ROWS), lane", 0, "window" },
    { "zeros in the first box alone", Z, "box < N; box++", "box < 1; box++", 0, "add_causal rows_128" },
    { "a lane clears half", Z, "at += 32 * 16)", "at += 64 * 16)", 0, "none packed" },
    { "Q of others stays", Y, "          clear_outside<BR, BOXES>(smem + SMEM_Q + ring.at * Q_TILE, own.first, own.end, lane);\n", "", 0,
      "none packed" },
    { "dO of others stays", Y,
      "          clear_outside<BR, BOXES_V>(smem + SMEM_GRAD_O + ring.at * GRAD_O_TILE, own.first, own.end, lane);\n", "", 0,
      "none packed" },
    { "zeros in the first stage of Q", Y, "SMEM_Q + ring.at * Q_TILE", "SMEM_Q", 0, "none deep" },
    { "zeros in the first stage of dO", Y, "SMEM_GRAD_O + ring.at * GRAD_O_TILE", "SMEM_GRAD_O", 0, "none deep" },
    { "K of others stays", Y, "          clear_outside<64, BOXES>(smem + i * K_TILE, own_keys.first, own_keys.end, lane);\n", "", 0,
      "add add_window" },
    { "V of others stays", Y, "          clear_outside<64, BOXES_V>(smem + SMEM_V + i * V_TILE, own_keys.first, own_keys.end, lane);\n", "",
      0, "none packed" },
    { "zeros in K of the first 64 keys", Y, "smem + i * K_TILE", "smem", 0, "add" },
    { "zeros in V of the first 64 keys", Y, "SMEM_V + i * V_TILE", "SMEM_V", 0, "pair add" },
    { "K of the second 64 keys as of the first", Y, "own_rows(sequence, key0 / 64 + i)", "own_rows(sequence, key0 / 64)", 0, "add" },
    { "V of the second 64 keys as of the first", Y, "own_rows(sequence, key0 / 64 + i)", "own_rows(sequence, key0 / 64)", 1, "pair add" },
    { "zeros are not fenced from the products", X, "  fence_async();\n", "", 0, "none" },
    { "what is cleared is not handed on", X, "  if (lane == 0) mbarrier_arrive(full);\n", "", 0, "none" },
    { "what is cleared is handed on twice", X, "if (lane == 0) mbarrier_arrive(full)", "if (lane < 2) mbarrier_arrive(full)", 0, "none" },

    /* what waits for what */
    { "zeros before Q has landed", Y, "          mbarrier_wait(landed(q_full(smem, ring.at)), parity);\n", "", 0, "none" },
    { "zeros before dO has landed", Y, "          mbarrier_wait(landed(grad_o_full(smem, ring.at)), parity);\n", "", 0, "none" },
    { "zeros before K has landed", Y, "        mbarrier_wait(landed(k_full(smem)), keys_parity);\n", "", 0, "none add" },
    { "zeros before V has landed", Y, "        mbarrier_wait(landed(v_full(smem)), keys_parity);\n", "", 0, "none add" },
    { "Q and dO of the first phase for good", Y, "          parities ^= 1u << ring.at;\n", "", 0, "none" },
    { "stages share a parity", Y, "parities >> ring.at & 1", "parities & 1", 0, "none deep" },
    { "K and V of the first phase for good", Y, "        keys_parity ^= 1;\n", "", 0, "packed pair" },
    { "K and V are cleared with every block", Y, "        keys_are_own = true;", "        keys_are_own = false;", 0, "none" },
    { "K and V are never cleared", Y, "        if (keys_are_own) continue;\n", "        continue;\n", 0, "none" },
    { "the warp that clears passes over a stage less", Y, "block++, ring.next())", "block++)", 0, "none" },
    { "the warp that clears does one head alone", Y, "member < $(l.spread and \"unit.heads\" or l.sums and \"p.group\" or \"p.members\")",
      "member < 1", 0, "none add" },
    { "all heads of the group are cleared in every slice", Y, "or \"p.members\")", "or \"p.group\")", 0, "slices" },
    { "Q of others counts as full where it lands", K, "u32 full = landing(q_full(smem, ring.at), own);",
      "u32 full = q_full(smem, ring.at);", 0, "none" },
    { "dO of others counts as full where it lands", K, "\"landing(grad_o_full(smem, ring.at), own)\"", "\"grad_o_full(smem, ring.at)\"", 0,
      "none" },
    { "K of others counts as full where it lands", K, "\"landing(k_full(smem), own_keys)\"", "\"k_full(smem)\"", 0, "none" },
    { "V of others counts as full where it lands", K, "\"landing(v_full(smem), own_keys)\"", "\"v_full(smem)\"", 0, "none" },
    { "K's own barrier where V lands", K, "landed(k_full(smem)), 1), mbarrier_init(landed(v_full(smem)), 1)",
      "landed(k_full(smem)), 2), mbarrier_init(landed(v_full(smem)), 1)", 0, "none" },
    { "V lands twice", K, "mbarrier_init(landed(v_full(smem)), 1)", "mbarrier_init(landed(v_full(smem)), 2)", 0, "none" },
    { "only the first Q lands", K, "mbarrier_init(landed(q_full(smem, i)), 1)", "mbarrier_init(landed(q_full(smem, 0)), 1)", 0,
      "none deep" },
    { "only the first dO lands", K, "mbarrier_init(landed(grad_o_full(smem, i)), 1)", "mbarrier_init(landed(grad_o_full(smem, 0)), 1)", 0,
      "none deep" },
    { "a slot of tiles is free too soon", K, "p.has_lengths and \" + 1\" or \"\"", "\"\"", 0, "packed pair" },
    { "barriers of what lands over those of tiles", L, "l.landed = l.tile_barriers + (c.grid > 0 and 5 or 0)", "l.landed = l.tile_barriers",
      0, "packed" },
    { "slots of tiles over barriers", L, "p.has_lengths and 2 + 3 * c.stages or 0", "p.has_lengths and 2 or 0", 0, "packed" },

    /* tiles */
    { "the tile with the last key is passed over", K, "return at.key0 < sequence_of(p, at.unit.batch).sk();",
      "return at.key0 + 64 < sequence_of(p, at.unit.batch).sk();", 0, "packed none" },
    { "tiles are passed over by the first sequence", K, "sequence_of(p, at.unit.batch).sk();", "sequence_of(p, 0).sk();", 0,
      "packed none" },
    { "lengths are read too early", K, "//| if p.has_lengths then\n  grid_wait();\n", "//| if p.has_lengths then\n", 0, "packed none" },

    /* where rows lie */
    { "queries of the first sequence", Q, "return first_q + query;", "return query;", 0, "packed" },
    { "keys of the first sequence", Q, "return first_k + key;", "return key;", 0, "packed" },
    { "packed queries have a batch", Q, "return p.cu_seqlens_q != nullptr ? 0 : index;", "return index;", 0, "packed" },
    { "padded queries have none", Q, "return p.cu_seqlens_q != nullptr ? 0 : index;", "return 0;", 0, "padded" },
    { "packed keys have a batch", Q, "return p.cu_seqlens_k != nullptr ? 0 : index;", "return index;", 0, "packed" },
    { "padded keys have none", Q, "return p.cu_seqlens_k != nullptr ? 0 : index;", "return 0;", 0, "padded" },
    { "K has the batch of Q", K, "const int batch = sequence.map_batch_k();", "", 0, "mixed" },
    { "dQ of the first sequence", Q, "index * p.grad_q_sb + first_q * p.grad_q_ss", "index * p.grad_q_sb", 0, "packed" },
    { "dK of the first sequence", Q, "index * p.grad_k_sb + first_k * p.grad_k_ss", "index * p.grad_k_sb", 0, "packed" },
    { "dV of the first sequence", Q, "index * p.grad_v_sb + first_k * p.grad_v_ss", "index * p.grad_v_sb", 0, "packed" },
    { "dO of D of the first sequence", Q, "index * p.grad_o_sb + first_q * p.grad_o_ss", "index * p.grad_o_sb", 0, "packed" },
    { "LSE and D of the first sequence", Q, "return (index * (long long)p.hq + head) * ((p.sq", "return head * ((p.sq", 0, "packed" },
    { "LSE and D of rows that are not padded", Q, "return (index * (long long)p.hq + head) * ((p.sq + $(l.delta_pad - 1))",
      "return (index * (long long)p.hq + head) * ((p.sq + 0)", 0, "packed" },

    /* D */
    { "rows of a tile that is not whole have no D", D, "tile * $(l.delta_pad) >= sequence.sq()) return;",
      "(tile + 1) * $(l.delta_pad) > sequence.sq()) return;", 0, "packed" },
    { "sums of the first sequence are zeroed for all", D, "(long long)(sequence.$(number) * p.hq + head)", "(long long)head", 0, "add" },

    /* the order of sequences */
    { "order: sequences of as many queries in one place", D, " || (queries[j] == queries[i] && j < i)", "", 1, "rows_63" },
    { "order: sequences by their numbers' ranks", D, "order[before] = i;", "order[i] = before + 1;", 0, "packed" },
    { "order: read before it is there", "grad_hopper_q.cu", "//| if p.has_lengths then\n  grid_wait();\n", "//| if p.has_lengths then\n", 0,
      "packed" },

    /* tiles of keys of all sequences, one after the other */
    { "tiles: sequences of as many queries in one place", D, " || (queries[j] == queries[i] && j < i)", "", 0, "crowd" },
    { "tiles: sequences before do not count", D, "before++, first += tiles[j];", "before++;", 0, "add heads" },
    { "tiles: numbers behind the last are nobody's", D, "last ? key_tiles_most(p) : first + own", "first + own", 0, "add heads crowd" },
    { "tiles: of sequences that count as one the first has all", D, "{n, first, own$", "{i * each, first, own$", 0, "crowd" },
    { "tiles: of sequences that count as one the last alone counts", D, "tiles[i] += key_tiles_of(sequence);",
      "tiles[i] = key_tiles_of(sequence);", 0, "crowd" },
    { "tiles: sequences that count as one begin together", D, "      first += own;\n", "", 0, "crowd" },
    { "tiles: of two that are as long one", D, " + (j < i && longer >= 0 && longer < tiles[j])", "", 0, "add_causal" },
    { "tiles: the first of a sequence over and over", D, "leave_key_tiles(p, {i, n, 1, tile}, n + 1);",
      "leave_key_tiles(p, {i, n, 1, 0}, n + 1);", 0, "add_causal" },
    { "tiles: how far queries see before it is known", D, "  __syncthreads();\n  for (int i = threadIdx.x / 32; each",
      "  for (int i = threadIdx.x / 32; each", 0, "add_causal" },
    { "beside: dV before it is there", A, "    wgmma_wait<2>(dv);", "    wgmma_wait<3>(dv);", 0, "add_causal" },
    { "beside: dV is not stored", A, "    store_keys<false, true>(p, dk, dv, queue, smem, wg);\n", "", 0, "add_causal" },
    { "beside: dV again in the place of dK", A, "store_keys<true, false>", "store_keys<false, true>", 0, "add_causal" },
    { "tile rows: the first sequence for all", N, "{{{(int)x.y, (int)x.x, (int)x.y}", "{{{(int)x.y, 0, (int)x.y}", 0, "add" },
    { "tile rows: rows of the first sequence for all", K, "return {tile, {sequence.first_q,", "return {tile, {0,", 0, "add" },
    { "tile rows: queries as many as keys", K, "sequence.sq()}, {sequence.first_k, sequence.sk()}",
      "sequence.sk()}, {sequence.first_k, sequence.sk()}", 0, "add" },
    { "tile rows: the tile over the rows", N, "store_shared(to + 16,", "store_shared(to,", 0, "add" },
    { "tiles: a sequence's last keys have none", T, "(sequence.sk() + $(c.bc - 1)) / $(c.bc)", "sequence.sk() / $(c.bc)", 0, "add heads" },
    { "tiles: no room for what a sequence's last is short of", T, "(int)((keys + 127ll * p.b) / $(c.bc))", "(int)(keys / $(c.bc))", 0,
      "crowd heads" },
    { "tiles: of one head", K, "index - of.first * p.hkv", "index - of.first", 0, "heads" },
    { "tiles: one behind the last", K, "index < (of.first + of.tiles) * p.hkv", "index <= (of.first + of.tiles) * p.hkv", 0, "heads" },
    { "tiles: the first head alone", K, "{{at.head, of.batch, at.head}", "{{at.head, of.batch, 0}", 0, "heads" },
    { "tiles: read before they are there", K, "//| if p.has_lengths then\n  grid_wait();\n", "//| if p.has_lengths then\n", 0, "heads" },
    { "tiles: room for the keys alone", L, "key_tiles int32 spaced_k/%d 4", "key_tiles int32 total_k/%d 4", 0, "crowd" },

    /* dQ */
    { "a sequence shares a tile of rows with the one before", R, "(first + (long long)index * (ROWS - 1)) / ROWS", "first / ROWS", 0,
      "packed add" },
    { "sequences without packed rows begin as packed ones", R, "(long long)index * p.sq", "0", 0, "padded" },
    { "of sequences that begin at a tile the first has it", R, "first <= number", "first < number", 0, "packed" },
    { "sequences from the 33rd on are not found", R, "if (count < 32) break;", "break;", 0, "many" },
    { "dQ of a block that is not whole is not stored", V, "block * 64 >= sequence.sq()) return;",
      "block * 64 + 64 > sequence.sq()) return;", 0, "add" },
    { "fold: rows past a length are stored", F, "row + 8 * h < sequence.sk())", "row + 8 * h < p.sk)", 0, "spread spread_add" },
    { "fold: the first sequence for all", F, "sequence_of(p, batch_of(p, unit))", "sequence_of(p, 0)", 0, "spread spread_add" },
    { "convert: lengths are read too early", V, "//| if p.has_lengths then\n  grid_wait();\n", "//| if p.has_lengths then\n", 0, "add" },
    { "convert: the first sequence for all", V, "((long long)sequence.$(number) * p.hq + head)", "head", 0, "add" },
    { "dQ: rows of a tile that is not whole are not stored", G, "if (row0 >= sequence.sq()) return;",
      "if (row0 + QUERIES > sequence.sq()) return;", 0, "packed" },
    { "dQ: lengths are read too early", G, "//| if p.has_lengths then\n  grid_wait();\n", "//| if p.has_lengths then\n", 0, "packed" },
    { "dQ: K of others stays", G, "    clear_outside<64, BOXES>(smem + ring.at * Q_STAGE, own.first, own.end, lane);\n", "", 0, "none" },
    { "dQ: zeros in the first stage", G, "smem + ring.at * Q_STAGE, own.first", "smem, own.first", 0, "deep none" },
    { "dQ: K of others counts as full where it lands", G,
      "own_rows(sequence, block).all() ? stage_full(smem, ring.at) : stage_landed(smem, ring.at)", "stage_full(smem, ring.at)", 0, "none" },
    { "dQ: zeros before K has landed", G, "    mbarrier_wait(stage_landed(smem, ring.at), parities >> ring.at & 1);\n", "", 0, "none" },
    { "dQ: K is not handed on", G, "    hand_on(stage_full(smem, ring.at), lane);\n", "", 0, "none" },
    { "dQ: the warp that clears passes over a stage less", G, "$(each), ring.next()) {\n    const OwnRows", "$(each)) {\n    const OwnRows",
      0, "none deep" },
    { "dQ: only the first K lands", G, "mbarrier_init(stage_landed(smem, i), 1)", "mbarrier_init(stage_landed(smem, 0), 1)", 0,
      "none deep" },
    { "dQ: barriers past the end of shared memory", L, "8 * (p.has_lengths and 3 or 2) * c.q_stages", "8 * 2 * c.q_stages", 0,
      "wide_q none" },
    { "dQ: K of the first sequence's batch", G, "\"map_batch_k\"", "\"map_batch_q\"", 0, "mixed" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};
