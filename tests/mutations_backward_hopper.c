/* mutations_backward_hopper: faults of flash_bwd_wgmma, as in mutations.c. */
#include "autotune/case.h"
#include "mutations.h"
#include <stddef.h>

#define CONFIG(br, bc, twins, schedule, box, rest) \
    "flash_bwd_wgmma:br=" #br ",bc=" #bc ",twins=" #twins ",schedule=" #schedule ",box=" #box ",dq=0,held=0," rest
#define USUAL "stages=2,ds_bufs=1,q_br=128,q_stages=3"
#define TWO "stages=2,ds_bufs=2,q_br=128,q_stages=3"
#define NONE -1, -1, 0, 0
#define PLAIN FA_VALUES_NORMAL, FA_HIDDEN_VALUES, FA_LAYOUT_PADDED, 0, NULL
#define HIDDEN FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, NULL
#define STEEP FA_VALUES_NORMAL, FA_HIDDEN_VALUES, FA_LAYOUT_PADDED, 16, NULL /* LSE of a row with few keys far below -128 */

/* clang-format off */
const scene hopper_scenes[] = {
    { "one", "bf16,d=64,mask=none,op=backward,b=2,hq=4,hkv=2", CONFIG(64, 64, 0, 0, 64, USUAL), 200, 150, NONE, PLAIN },
    { "turns", "bf16,d=64,mask=causal,op=backward,b=1,hq=2,hkv=1", CONFIG(64, 128, 0, 1, 64, TWO), 300, 300, NONE, PLAIN },
    { "turns_one", "bf16,d=64,mask=causal,op=backward,b=1,hq=2,hkv=1", CONFIG(64, 128, 0, 1, 64, USUAL), 190, 190, NONE, PLAIN },
    { "pair", "fp16,d=64,mask=none,op=backward,b=1,hq=2,hkv=1", CONFIG(64, 128, 0, 0, 64, USUAL), 190, 150, NONE, PLAIN },
    { "window", "fp16,d=64,mask=window,op=backward,b=1,hq=2,hkv=1", CONFIG(64, 128, 0, 0, 64, TWO), 300, 300, 40, 9, 0, 0, HIDDEN },
    { "twins", "bf16,d=64,mask=causal,op=backward,b=1,hq=4,hkv=2", CONFIG(64, 64, 1, 0, 64, TWO), 200, 200, NONE, PLAIN },
    { "twins_window", "fp16,d=64,mask=window,op=backward,b=1,hq=2,hkv=1", CONFIG(64, 64, 1, 0, 64, USUAL), 200, 200, 70, 0, 0, 0, HIDDEN },
    { "twins_128", "bf16,d=128,mask=causal,op=backward,b=1,hq=2,hkv=1", CONFIG(128, 64, 1, 0, 64, TWO), 300, 200, NONE, PLAIN },
    { "rows_128", "bf16,d=64,mask=none,op=backward,b=1,hq=2,hkv=1", CONFIG(128, 64, 0, 0, 64, TWO), 300, 150, NONE, PLAIN },
    { "blind", "bf16,d=64,mask=causal,op=backward,b=1,hq=2,hkv=2", CONFIG(64, 64, 0, 0, 64, USUAL), 200, 70, NONE, HIDDEN },
    { "topleft", "bf16,d=64,mask=causal,op=backward,b=1,hq=2,hkv=2", CONFIG(64, 64, 0, 0, 64, USUAL), 100, 250, -1, -1, FA_TOP_LEFT, 0, HIDDEN },
    { "left", "bf16,d=64,mask=window,op=backward,b=1,hq=2,hkv=1", CONFIG(64, 64, 0, 0, 64, USUAL), 90, 300, 10, 5, 0, 0, HIDDEN },
    { "boxes", "bf16,d=128,mask=none,op=backward,b=1,hq=2,hkv=1", CONFIG(64, 64, 0, 0, 64, USUAL), 100, 100, NONE, PLAIN },
    { "boxes_32", "bf16,d=96,mask=none,op=backward,b=1,hq=2,hkv=1", CONFIG(64, 64, 1, 0, 32, USUAL), 100, 100, NONE, PLAIN },
    { "odd", "fp16,d=72,dv=40,mask=none,op=backward,b=1,hq=2,hkv=1", CONFIG(64, 64, 0, 0, 16, USUAL), 100, 100, NONE, PLAIN },
    { "fp32", "bf16,d=64,mask=none,op=backward,grad=fp32,b=1,hq=2,hkv=1", CONFIG(64, 64, 0, 0, 64, USUAL), 100, 100, NONE, PLAIN },
    { "deep", "bf16,d=64,mask=none,op=backward,b=1,hq=1,hkv=1", CONFIG(64, 64, 0, 0, 64, "stages=3,ds_bufs=2,q_br=128,q_stages=3"), 400, 300,
      NONE, PLAIN },
    { "wide_q", "bf16,d=64,mask=causal,op=backward,b=1,hq=2,hkv=1", CONFIG(64, 64, 0, 0, 64, "stages=2,ds_bufs=1,q_br=256,q_stages=3"), 300, 300,
      NONE, PLAIN },
    { "few_q", "bf16,d=64,mask=none,op=backward,b=1,hq=2,hkv=1", CONFIG(64, 64, 0, 0, 64, "stages=2,ds_bufs=1,q_br=256,q_stages=3"), 150, 300,
      NONE, PLAIN },
    /* dS of a head takes more than FA_WORKSPACE_CHUNK, so that sequences are done one after the other */
    { "units", "bf16,d=16,mask=window,op=backward,b=2,hq=1,hkv=1", CONFIG(64, 128, 0, 1, 16, TWO), 23240, 23240, 4, 0, 0, 0, PLAIN },
    { "steep", "bf16,d=64,mask=none,op=backward,b=1,hq=2,hkv=1", CONFIG(64, 64, 0, 0, 64, USUAL), 100, 2, NONE, STEEP },
    { "steep_topleft", "bf16,d=64,mask=causal,op=backward,b=1,hq=2,hkv=1", CONFIG(64, 64, 0, 0, 64, USUAL), 100, 2, -1, -1, FA_TOP_LEFT, 0,
      STEEP },
    { NULL, NULL, NULL, 0, 0, NONE, PLAIN },
};
/* clang-format on */

#define C "grad_hopper_common.cu"
#define K "grad_hopper_kv.cu"
#define W "grad_hopper_single.cu"
#define T "grad_hopper_twins.cu"
#define G "grad_hopper_q.cu"
#define H "hopper_gradient.cu"
#define D "delta.cu"
#define Q "sequence.cu"

const mutation hopper_mutations[] = {
    /* LSE and D */
    { "LSE in base e", D, "to[0] = sees ? lse * LOG2E", "to[0] = sees ? lse", 0, "one" },
    { "rows past the last, and blind ones, have P", D, "to[0] = sees ? lse * LOG2E : infinity();", "to[0] = lse * LOG2E;", 0, "one blind" },
    { "D without the gradient of LSE", D, "= sees ? sum - extra : 0.f;", "= sees ? sum : 0.f;", 0, "one" },
    { "LSE over the D of the rows in front", D, " + sequence.delta(head, row) / $(l.delta_pad) * $(l.delta_pad);", ";", 0, "one" },
    { "LSE and D of the first batch for all", Q, "return (batch * p.hq + head) * ((p.sq", "return head * ((p.sq", 0, "one" },
    { "rows of the next 128 from the first", K, " + rows / DELTA_PAD * DELTA_PAD;", ";", 0, "one" },
    { "D for LSE", K, "ring.at * BR * 8, statistics, BR * 4", "ring.at * BR * 8, statistics + DELTA_PAD, BR * 4", 0, "one" },
    { "LSE for D", K, "BR * 4, statistics + DELTA_PAD, BR * 4", "BR * 4, statistics, BR * 4", 0, "one" },
    { "LSE and D of the head in front", K, "sequence.delta(head, block * BR)", "sequence.delta(max(head - 1, 0), block * BR)", 0, "one" },
    { "LSE of other queries", K, "rows + (n * 8 + 2 * t) * 4", "rows + (n * 8 + t * 2 % 4) * 4", 0, "one" },
    { "both queries with the LSE of the first", K, "e % 2 ? -lse.y : -lse.x", "-lse.x", 0, "one" },
    { "both queries with the D of the second", K, "e % 2 ? delta.y : delta.x", "delta.y", 0, "one" },
    { "D where LSE lies", K, "load_pair(rows + BR * 4, n, t)", "load_pair(rows, n, t)", 0, "one" },

    /* where tiles lie */
    { "Q and dO in front of the first query of their maps", Q, "return query - max(0, -p.diag_hi);", "return query;", 0, "blind" },
    { "K in front of the first key of its map", Q, "return key - p.key_base;", "return key;", 0, "left" },
    { "another head than the unit's", C, "unit / p.hkv, unit % p.hkv}", "unit / p.hkv, unit / p.hkv % p.hkv}", 0, "one" },
    { "another sequence than the unit's", C, "unit / p.hkv, unit % p.hkv}", "0, unit % p.hkv}", 0, "one" },
    { "units from the first in every launch", C, "const int unit = p.unit + local;", "const int unit = local;", 0, "units" },
    { "dS of a group's heads in one place", C, "* p.group + member) * blocks_q", "* p.group) * blocks_q", 0, "one" },
    { "dS of all units in one place", C, "((long long)unit.local * p.group + member)", "((long long)member)", 0, "one" },
    { "dS of a key block of the next queries", C, "return (long long)((p.sk + 63) / 64) * DS_TILE;",
      "return (long long)(p.sk / 64) * DS_TILE;", 0, "one" },
    { "Q of the group's first head", K, "q_map, full, box * BOX, sequence.map_query(block * BR), head,",
      "q_map, full, box * BOX, sequence.map_query(block * BR), unit.kv_head * p.group,", 0, "one" },
    { "dO of a head that has the KV head's number", K, "sequence.map_query(block * BR), head, batch);\n    ",
      "sequence.map_query(block * BR), unit.kv_head, batch);\n    ", 1, "one" },
    { "K of the first warpgroup for both", K, "sequence.map_key(key0 + i * 64)", "sequence.map_key(key0)", 0, "turns" },
    { "keys of both warpgroups in one place", K, "tma_load(to + i * tile + box", "tma_load(to + box", 0, "turns" },
    { "one warpgroup's K for both", W, "k_tile = smem + wg * K_TILE", "k_tile = smem", 0, "turns" },
    { "Q always in the first stage", K, "smem + SMEM_Q + ring.at * Q_TILE + box", "smem + SMEM_Q + box", 0, "one" },
    { "dK of the next KV head", K, "unit.kv_head * p.grad_k_sh", "(unit.kv_head + 1) % p.hkv * p.grad_k_sh", 0, "one" },
    { "dQ of the group's first head", G, "(unit.kv_head * p.group + member) * p.grad_q_sh", "unit.kv_head * p.group * p.grad_q_sh", 0,
      "one" },

    /* which queries and keys */
    { "queries of the first key of the tile", K, "last_query(sequence, min(key + keys, sequence.sk()) - 1)", "last_query(sequence, key)", 0,
      "window" },
    { "queries of the last key of the tile", K, "first = first_query(sequence, key), last",
      "first = first_query(sequence, key + keys - 1), last", 0, "turns" },
    { "a warpgroup behind the last key has queries", K, "last = key < sequence.sk() ? last_query(", "last = true ? last_query(", 0,
      "pair" },
    { "the diagonal one on", K, "hi = sequence.diag_hi() - (key - row);", "hi = sequence.diag_hi() - (key - row) + 1;", 0, "turns" },
    { "the diagonal one back", K, "hi = sequence.diag_hi() - (key - row);", "hi = sequence.diag_hi() - (key - row) - 1;", 0, "turns" },
    { "the left edge one on", K, "lo = sequence.diag_lo() - (key - row);", "lo = sequence.diag_lo() - (key - row) + 1;", 0, "window" },
    { "the left edge is forgotten", K, "query < first || query > end", "query < first", 0, "window" },
    { "a block that the diagonal cuts is taken as whole", K, "  if (63 <= min(hi, last)) return;", "  if (0 <= min(hi, last)) return;", 0,
      "turns" },
    { "a block that the left edge cuts is taken as whole", K, "&& 1 - BR >= lo) return;", "&& 0 >= lo) return;", 0, "window twins_window" },
    { "keys past the last have P", K, "  if (63 <= last) return;\n", "  return;\n", 0, "steep" },
    { "keys past the last have P under a mask", K, "j > last ? BR : j - hi", "j - hi", 0, "steep_topleft" },
    { "keys of the warp's other rows", K, "const int j = warp_key + g + h * 8;", "const int j = warp_key + g;", 0, "turns" },
    { "blocks of the tile's first query alone", G, "min(row + rows, sequence.sq()) - 1)", "row)", 0, "wide_q" },
    { "rows past the last have blocks of keys", G, "  if (row >= sequence.sq()) return {0, -1};\n", "", 0, "few_q" },
    { "dS of blocks that nobody wrote", G, "return lo <= block && block <= hi;", "return block <= hi;", 0, "window left" },
    { "dQ of one head of the group for all", G, "member = place.head % p.group;", "member = 0;", 0, "one" },

    /* products */
    { "boxes of K behind the first are the first", K, "(box * 64 * ROW + in_box) / 16", "in_box / 16", 0, "boxes" },
    { "boxes of Q lie as those of K", K, "(box * BR * ROW + in_box) / 16", "(box * 64 * ROW + in_box) / 16", 0, "twins_128" },
    { "an odd eight of columns is left out", K, "(COLUMNS + 15) / 16", "COLUMNS / 16", 0, "odd" },
    { "S begins anew with its second product", K, "if (i == 0)\n      wgmma_dots_first", "if (i < 2)\n      wgmma_dots_first", 0, "one" },
    { "S is added to what is there", H, "setp.$(first and \"ne\" or \"eq\").b32", "setp.eq.b32", 0, "one" },
    { "dV of sixteen queries over and over", K, "b + i * 16 * ROW / 16", "b", 0, "one" },
    { "boxes of dO lie as those of V", K, "descriptor_across_rows<ROW>(others, BR * ROW)", "descriptor_across_rows<ROW>(others, 64 * ROW)",
      0, "twins_128" },
    { "boxes across rows lie side by side", H, "(u64)(next / 16) << 16", "1ull << 16", 0, "boxes boxes_32" },
    { "patterns of 32 bytes for 64", H, "ROW_BYTES == 64 ? 2 : 3", "ROW_BYTES == 64 ? 3 : 2", 0, "boxes_32 odd" },
    { "Q is not transposed for dK", H, "%$(n + 4), more, 1, 1, 1;", "%$(n + 4), more, 1, 1, 0;", 0, "one" },
    { "dS is not transposed for dQ", H, "more, 1, 1, 1, 1;", "more, 1, 1, 0, 1;", 0, "one" },
    { "dQ of sixteen keys of dS over and over", G, "a + i * 16 * 128 / 16", "a", 0, "one" },
    { "dQ of sixteen keys of K over and over", G, "b + i * 16 * ROW / 16", "b", 0, "one" },
    { "dQ out of the first warpgroup's dS", G, "stage + K_TILE + wg * DS_TILE, DS_TILE", "stage + K_TILE, DS_TILE", 0, "one" },
    { "dS alone is dP less D", K, "dp[4 * n + e] = s[4 * n + e] * (dp", "dp[4 * n + e] = (dp", 0, "one" },
    { "dK without the scale", K, "dk, p.scale, p.grad_k", "dk, 1.f, p.grad_k", 0, "one" },
    { "dV with the scale", T, "dv, 1.f, p.grad_v", "dv, p.scale, p.grad_v", 0, "twins" },
    { "dQ without the scale", G, "dq, p.scale, p.grad_q", "dq, 1.f, p.grad_q", 0, "one" },
    { "lanes keep the block that they should give", C, "odd ? x0 : x1", "odd ? x1 : x0", 0, "one" },
    { "rows past the last are stored", C, "const bool real = row < rows;", "const bool real = true;", 0, "one" },
    { "columns behind the last four blocks are left out", C, "int n = N / 16 * 4; n < N / 4", "int n = N / 4; n < N / 4", 0, "odd" },
    { "every second column is not scaled", C, "sum[4 * n + 2 * h + 1] * scale);", "sum[4 * n + 2 * h + 1]);", 0, "one" },
    { "columns of fp32 in another order", C, "n * 8 + 2 * t + e, sum", "n * 8 + t + 4 * e, sum", 0, "fp32" },

    /* dS on its way */
    { "dS of another block of queries", K, "member, block * (BR / 64), key_block)", "member, block, key_block)", 0, "rows_128 twins_128" },
    { "dS of the first warpgroup's keys for both", W, "grad_s.begin(p, unit, member, own.lo, key / 64);",
      "grad_s.begin(p, unit, member, own.lo, key0 / 64);", 0, "turns" },
    { "dS of all warps in one place", K, " + threadIdx.x / 32 % 4 * 2048;\n  }", ";\n  }", 0, "one" },
    { "dS of both warpgroups in one buffer", W, "smem + SMEM_DS + wg * (DS_BUFS * (BR / 64) * DS_TILE)", "smem + SMEM_DS", 0,
      "turns turns_one" },
    { "a buffer of dS before it is read", K, "    if (lane == 0) bulk_wait_read<DS_BUFS - 1>();\n", "", 0, "one" },
    { "a buffer of dS one group early", K, "bulk_wait_read<DS_BUFS - 1>", "bulk_wait_read<DS_BUFS>", 0, "one turns" },
    { "the second tile of dS over the first", K, "row + n / 8 * DS_TILE + ((n", "row + ((n", 0, "rows_128" },
    { "dS is not swizzled", K, "((n % 8 + lane / 16) ^ lane % 8) * 16", "(n % 8 + lane / 16) * 16", 0, "one" },
    { "matrices of dS mixed up", H, "[%0], {%1, %2, %3, %4};\" ::\"r\"(to), \"r\"(x0)", "[%0], {%1, %3, %2, %4};\" ::\"r\"(to), \"r\"(x0)",
      0, "one" },
    { "dS is not fenced from the copy engine", K, "    fence_async();\n    __syncwarp();", "    __syncwarp();", 0, "one" },
    { "a tile of dS behind the last query", K, "if (i == 0 || block * BR + i * 64 < p.sq) bulk_store", "bulk_store", 0, "rows_128" },
    { "dS is not committed", K, "      bulk_commit();\n", "", 0, "one" },
    { "dS of the next block over this one", K, "    to += BR / 64 * next_tile(p);\n", "", 0, "one" },
    { "the buffer of dS does not advance", K, "    if (++at == DS_BUFS) at = 0;\n", "", 0, "turns" },
    { "dS may still be on its way at the end", W, "    if (threadIdx.x % 32 == 0) bulk_wait();\n", "", 0, "one" },
    { "dS of twins may still be on its way at the end", T, "    if (threadIdx.x % 32 == 0) bulk_wait();\n", "", 0, "twins" },
    { "dS of the second head over the first", T, "if (block == blocks.lo) grad_s.begin(", "if (item == 0) grad_s.begin(", 0, "twins" },
    { "dS of twins without the head's number", T, "block = blocks.lo, member++;", "block = blocks.lo;", 0, "twins" },

    /* barriers and waits of dK and dV */
    { "parity is never turned", C, "at = 0, parity ^= 1;", "at = 0;", 0, "one" },
    { "Q over one that is read", K, "      mbarrier_wait(q_empty(smem, ring.at), ring.parity ^ 1);\n", "", 0, "one deep" },
    { "dO over one that is read", K, "      mbarrier_wait(grad_o_empty(smem, ring.at), ring.parity ^ 1);\n", "", 0, "twins" },
    { "Q waits for the other parity", K, "mbarrier_wait(q_empty(smem, ring.at), ring.parity ^ 1);",
      "mbarrier_wait(q_empty(smem, ring.at), ring.parity);", 0, "one" },
    { "LSE and D are not expected", K, "mbarrier_expect(full, Q_TILE + BR * 8);", "mbarrier_expect(full, Q_TILE);", 0, "one" },
    { "keys of one warpgroup are expected", K, "mbarrier_expect(full, KEYS / 64 * tile);", "mbarrier_expect(full, tile);", 0, "turns" },
    { "V comes with every block", K, "if (first) load_keys(smem + SMEM_V", "load_keys(smem + SMEM_V", 0, "one" },
    { "one warpgroup empties a buffer of Q for both", K, "mbarrier_init(q_empty(smem, i), 4 * GROUPS);",
      "mbarrier_init(q_empty(smem, i), 4);", 0, "turns" },
    { "one warpgroup empties a buffer of dO for both", K, "mbarrier_init(grad_o_empty(smem, i), 4 * GROUPS);",
      "mbarrier_init(grad_o_empty(smem, i), 4);", 0, "turns" },
    { "barriers are used before they are made", K, "  __syncthreads();\n  if (warp < 4)", "  if (warp < 4)", 0, "one" },
    { "what is in front in the stream is not waited for", K, "  grid_wait();\n  load_keys(", "  load_keys(", 0, "one" },

    /* one warpgroup */
    { "K is not waited for", W, "mbarrier_wait(k_full(smem), 0), mbarrier_wait(v_full(smem), 0);", "mbarrier_wait(v_full(smem), 0);", 0,
      "one" },
    { "V is not waited for", W, "mbarrier_wait(k_full(smem), 0), mbarrier_wait(v_full(smem), 0);", "mbarrier_wait(k_full(smem), 0);", 0,
      "one" },
    { "Q is not waited for", W, "        mbarrier_wait(q_full(smem, ring.at), ring.parity);\n        wgmma_fence();",
      "        wgmma_fence();", 0, "one" },
    { "dO is not waited for", W, "        mbarrier_wait(grad_o_full(smem, ring.at), ring.parity);\n        wgmma_fence();",
      "        wgmma_fence();", 0, "one" },
    { "S is not waited for", W, "wgmma_wait<1>(s);", "wgmma_wait<2>(s);", 0, "one" },
    { "dP is not waited for", W, "wgmma_wait<1>(dp);", "wgmma_wait<2>(dp);", 0, "one" },
    { "another stage of Q is given back", W, "(ring.at + STAGES - 1) % STAGES", "ring.at", 0, "one" },
    { "dO is given back while dV reads it", W, "        wgmma_wait<1>(dp);\n",
      "        wgmma_wait<1>(dp);\n        release(grad_o_empty(smem, ring.at));\n", 0, "one" },
    { "a turn is not waited for", W, "        turn_wait(wg);\n        wgmma_fence(a);", "        wgmma_fence(a);", 0, "turns" },
    { "nobody has the first turn", W, "  if (wg == 1) turn_pass(wg);", "", 0, "turns" },
    { "a warpgroup that lets blocks pass takes no turn", W, "      turn_wait(wg);\n      turn_pass(wg);\n", "", 0, "turns" },
    { "blocks of the other warpgroup are not let pass", W, "      skip(own.lo - blocks.lo);\n", "", 0, "turns" },
    { "blocks behind the own are not let pass", W, "      skip(blocks.hi - own.hi);\n", "", 0, "window" },
    { "the last products are not waited for", W, "      wgmma_wait<0>(dv);\n      wgmma_wait<0>(dk);\n", "", 0, "one" },

    /* twins */
    { "P of another block of queries", T, "load_shared_x4(place_of_p(smem) + n * 2048)",
      "load_shared_x4(place_of_p(smem) + (n ^ 1) * 2048)", 0, "twins" },
    { "P of another thread", T, "smem + SMEM_P + threadIdx.x % 128 * 16", "smem + SMEM_P + (threadIdx.x % 128 ^ threadIdx.x / 128) * 16", 0,
      "twins" },
    { "P is taken before it is there", T, "      named_wait(P_FULL, 256);\n", "", 0, "twins" },
    { "P over one that is not taken yet", T, "      if (item > 0) named_wait(P_EMPTY, 256);\n", "", 0, "twins" },
    { "P is said to be there before it is", T, "      hand_over(smem, s);\n      named_arrive(P_FULL, 256);\n",
      "      named_arrive(P_FULL, 256);\n      hand_over(smem, s);\n", 0, "twins" },
    { "P is said to be taken before it is", T,
      "      take_over(smem, s);\n      wgmma_wait<0>(dp);\n      release(grad_o_empty(smem, ring.at));\n      if (item < items - 1) "
      "named_arrive(P_EMPTY, 256);\n",
      "      if (item < items - 1) named_arrive(P_EMPTY, 256);\n      take_over(smem, s);\n      wgmma_wait<0>(dp);\n      "
      "release(grad_o_empty(smem, ring.at));\n",
      0, "twins" },
    { "twins: dO is given back while dV reads it", T, "      wgmma_wait<1>();  // dV\n", "", 0, "twins" },
    { "twins: Q is given back while dK reads it", T, "      wgmma_wait<1>();  // dK\n", "", 0, "twins" },
    { "twins: dO is not waited for", T, "      mbarrier_wait(grad_o_full(smem, ring.at), ring.parity);\n      wgmma_fence(a);",
      "      wgmma_fence(a);", 0, "twins" },
    { "twins: the mask of the first head for the second", T, "block = block == blocks.hi ? blocks.lo : block + 1;", "block = block + 1;", 0,
      "twins" },

    /* dQ */
    { "dQ: all warpgroups' dS are expected", G, "K_TILE + tiles * DS_TILE", "K_TILE + Q_GROUPS * DS_TILE", 0, "wide_q" },
    { "dQ: dS of the first warpgroup for all", G, "ds_tile(p, unit, member, row0 / 64 + i, block)",
      "ds_tile(p, unit, member, row0 / 64, block)", 0, "one" },
    { "dQ: one warpgroup empties a buffer for all", G, "stage_empty(smem, i), 4 * Q_GROUPS", "stage_empty(smem, i), 4", 0, "one wide_q" },
    { "dQ: a buffer that is not full", G, "      mbarrier_wait(stage_full(smem, ring.at), ring.parity);\n", "", 0, "one" },
    { "dQ: a buffer that is not empty", G, "      mbarrier_wait(stage_empty(smem, ring.at), ring.parity ^ 1);\n", "", 0, "few_q" },
    { "dQ: a buffer is given back while a product reads it", G,
      "        if (before != 0) release(before);\n        before = stage_empty(smem, ring.at);\n",
      "        release(stage_empty(smem, ring.at));\n", 0, "few_q" },
    { "dQ: the product before is not waited for", G, "        wgmma_wait<1>();\n", "", 0, "few_q" },
    { "dQ: the last product is not waited for", G, "    wgmma_wait<0>(dq);\n", "", 0, "one" },
    { "dQ: a block that others need is not given back", G, "        release(stage_empty(smem, ring.at));\n", "", 0, "wide_q" },
    { "dQ: a warpgroup keeps a buffer while it lets blocks pass", G, "          release(before);\n          before = 0;\n", "", 0,
      "wide_q" },
    { "dQ: dS before the kernel in front has ended", G,
      "    grid_wait();\n#pragma unroll 1\n    for (int block = blocks.lo; block <= blocks.hi; block++) {\n      const u32 stage = smem + "
      "ring.at * Q_STAGE, full",
      "#pragma unroll 1\n    for (int block = blocks.lo; block <= blocks.hi; block++) {\n      const u32 stage = smem + ring.at * Q_STAGE, "
      "full",
      0, "one" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};
