// fagen $(version), gradients of attention on wgmma and TMA: P = exp(scale Q K^T - LSE), dS = P (dO V^T - D), dQ = scale dS K,
// dK = scale dS^T Q, dV = P^T dO.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

// ---- the problem ----
constexpr int D = $(p.d);    // head_dim of Q and K
constexpr int DV = $(p.dv);  // head_dim of V and O
typedef unsigned short element;  // $(p.dtype)

// ---- the config ----
constexpr int BR = $(c.br);        // queries per iteration of dK and dV
constexpr int KEYS = $(c.bc);      // that a block of dK and dV owns: 64 for each warpgroup$(c.twins == 1 and ", or for two" or "")
constexpr int STAGES = $(c.stages);   // buffers of Q and dO
//| if l.sums then
constexpr int DS_BUFS = $(c.ds_bufs);    // buffers of dS on its way to the other warpgroup
//| else
constexpr int QUERIES = $(c.q_br);  // that a block of dQ owns: 64 for each warpgroup
constexpr int Q_STAGES = $(c.q_stages);   // buffers of K and dS in it
//| end

// ---- what follows from them ----
constexpr int GROUPS = $(l.groups);  // warpgroups beside the one that copies
constexpr int BC = 64;                                    // keys of a tile of dS
constexpr int BOX = $(c.box), ROW = BOX * 2;                 // columns of a box in shared memory, bytes of its rows
constexpr int BOXES = $(l.boxes), BOXES_V = $(l.boxes_v);             // of a row of Q and K, of V and dO
constexpr int K_TILE = 64 * BOXES * ROW, V_TILE = 64 * BOXES_V * ROW;  // 64 keys
constexpr int Q_TILE = BR * BOXES * ROW, GRAD_O_TILE = BR * BOXES_V * ROW;
constexpr int DS_TILE = 8192;  // 64 keys, 64 queries
constexpr int NS = BR / 2, NK = $(l.dk), NV = $(l.dv);  // registers of S, dK and dV per thread
// Offsets in shared memory of the kernel of dK and dV, K at 0, and of that of dQ, whose stages begin with K.
constexpr int SMEM_V = $(l.v), SMEM_Q = $(l.q), SMEM_GRAD_O = $(l.grad_o);
constexpr int SMEM_ROWS = $(l.rows_at), SMEM_BARRIERS = $(l.barriers);
//| if p.score and p.score.has_mask then
constexpr int SMEM_CODES = $(l.codes);
//| end
//| if l.persistent then
constexpr int TILE_BARRIERS = $(l.tile_barriers), SMEM_SLOTS = $(l.slots);
//| end
//| if p.has_lengths then
constexpr int LANDED = $(l.landed);  // barriers between that where a buffer is full and that where what has rows of others lands
//| end
//| if l.sums then
constexpr int SMEM_DS = $(l.ds), SMEM_ENDED = $(l.ended);
//| else
constexpr int Q_GROUPS = QUERIES / 64, Q_STAGE = $(l.q_stage), SMEM_Q_BARRIERS = $(l.q_barriers);
//| end
//| if c.twins == 1 then
constexpr int SMEM_P = $(l.p);  // P in fp32, from a warpgroup to the other one of its keys
//| end
constexpr int DELTA_PAD = $(l.delta_pad);  // rows with their LSE, and then their D, side by side
constexpr float LOG2E = 1.44269504088896341f;

//| include "machine/prelude.cu"

//| include "machine/hopper.cu"

//| include "machine/hopper_gradient.cu"

//| include "pairs/sequence.cu"

//| include "pairs/mask.cu"

//| include "pairs/query_range.cu"

//| include "tiles/gradient.cu"

//| include "pairs/grad_probability.cu"

//| if l.listed then
//| include "work/key_tiles.cu"

//| end
//| include "tiles/delta.cu"

//| include "wgmma/grad_hopper_common.cu"

//| include "wgmma/grad_hopper_kv.cu"

//| if l.spread then
//|   include "wgmma/grad_hopper_fold.cu"

//| end
//| include(l.sums and "wgmma/grad_hopper_convert.cu" or "wgmma/grad_hopper_q.cu")
//| if p.score and p.score.reads then

//|   include "pairs/grad_operands.cu"
//| end
