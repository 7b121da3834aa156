/* run: the instructions that are more than a lane-by-lane formula. decode.c names them, one file per family has them. */
#ifndef SIM_RUN_H
#define SIM_RUN_H
#include "program.h"

/* clang-format off */
#define SIM_RUNS(X)                                                                                                       \
    /* move.c */                                                                                                          \
    X(pack) X(unpack) X(setp) X(set) X(selp) X(pred_logic) X(pred_move) X(testp) X(carry) X(clock) X(nothing) X(isspace)  \
    /* control.c */                                                                                                      \
    X(branch) X(branch_index) X(exit) X(trap) X(unknown)                                                                             \
    /* access.c */                                                                                                        \
    X(load) X(store) X(atom)                                                                                          \
    /* grid.c */                                                                                                          \
    X(grid_wait)                                                                                                          \
    X(grid_over)                                                                                                          \
    /* exchange.c */                                                                                                      \
    X(shuffle) X(vote) X(match) X(active) X(redux) X(elect) X(warp_barrier)                                               \
    /* matrix.c, mma.c */                                                                                                 \
    X(ldmatrix) X(stmatrix) X(movmatrix) X(mma)                                                                           \
    /* async.c, mbarrier.c, barrier.c */                                                                                  \
    X(copy) X(commit) X(wait) X(mbarrier_init) X(mbarrier_inval) X(mbarrier_arrive) X(mbarrier_test)                      \
    X(mbarrier_tx) X(copy_arrive)                                                                                         \
    X(barrier) X(fence)                                                                                                   \
    /* cluster_barrier.c */                                                                                                       \
    X(cluster_arrive) X(cluster_wait) X(map_address) X(rank_of)                                                           \
    /* bulk.c */                                                                                                          \
    X(bulk) X(bulk_commit) X(bulk_wait) X(tensormap)                                                                      \
    /* wgmma.c */                                                                                                         \
    X(wgmma) X(wgmma_fence) X(wgmma_commit) X(wgmma_wait)                                                                    \
    /* group.c */                                                                                                         \
    X(registers)
/* clang-format on */
#define X(name) sim_run sim_run_##name;
SIM_RUNS(X)
#undef X

/* sub of the instructions above */
enum { LOGIC_AND, LOGIC_OR, LOGIC_XOR, LOGIC_NOT, LOGIC_NONE };
enum { CARRY_ADD = 1, CARRY_SUB = 2, CARRY_IN = 4, CARRY_OUT = 8 };
enum { TEST_FINITE, TEST_INFINITE, TEST_NUMBER, TEST_NAN, TEST_NORMAL, TEST_SUBNORMAL };
enum { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX };
enum { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };
enum { ATOM_ADD, ATOM_MIN, ATOM_MAX, ATOM_AND, ATOM_OR, ATOM_XOR, ATOM_EXCH, ATOM_CAS, ATOM_INC, ATOM_DEC };
enum { BAR_SYNC, BAR_ARRIVE, BAR_AND, BAR_OR, BAR_POPC };
enum { WAIT_GROUP, WAIT_ALL, WAIT_READ };
enum { FENCE_MEMORY, FENCE_ASYNC, FENCE_BLOCK, FENCE_INIT }; /* FENCE_BLOCK: orders nothing beyond the block; FENCE_INIT: of mbarriers */
enum { ARRIVE_RELEASE, ARRIVE_RELAXED };
enum { REGISTERS_INC, REGISTERS_DEC };
enum { WGMMA_SHARED_A = 1, WGMMA_MINUS_A = 2, WGMMA_MINUS_B = 4, WGMMA_TRANS_A = 8, WGMMA_TRANS_B = 16, WGMMA_B_E5M2 = 32 };

/* A mov of 32 bits from or to two registers of 16. */
static inline bool sim_is_halves(const sim_insn *i)
{
    return i->kind == K_RUN && (i->run == sim_run_pack || i->run == sim_run_unpack) && i->sub == 16 && i->count == 2;
}

typedef struct sim_targets {
    uint32_t n, at[];
} sim_targets; /* of brx.idx */
#endif
