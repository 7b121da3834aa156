/* group: the four warps of a warp group (4k to 4k + 3), which execute wgmma and setmaxnreg together. */
#ifndef SIM_GROUP_H
#define SIM_GROUP_H
#include "exec.h"

/* Before an instruction that a whole warp group executes: all lanes are here, the group is whole, and the instruction and its
 * operands a and b are those of the other warps, in the same order. A warp runs ahead of the others; what is missing shows when
 * one exits. false: reported. */
bool sim_group_agrees(sim_warp *w, const sim_insn *i, uint32_t m, uint64_t a, uint64_t b);
bool sim_group_converged(sim_warp *w, const sim_insn *i, uint32_t m); /* only: all lanes of this warp are here */
bool sim_group_leave(sim_warp *w);                                    /* the warp exits */

void sim_group_start(sim_block *b); /* registers and logs of a new block */
void sim_group_free(sim_block *b);
#endif
