/* wgmma: the pipeline of asynchronous products of a warp. */
#ifndef SIM_WGMMA_H
#define SIM_WGMMA_H
#include "exec.h"

/* Before an instruction that touches a register of some wgmma (F_HELD). A plain mov only renames: its destination takes over the
 * state of its source. Anything else that reads or writes an accumulator in flight, or writes an A register in flight, is a
 * defect. false: reported. */
bool sim_wgmma_touch(sim_warp *w, const sim_insn *i, uint32_t m);

bool sim_pipeline_prepare(sim_warp *w); /* false: out of memory */
void sim_pipeline_start(sim_warp *w);
void sim_pipeline_free(sim_warp *w);
bool sim_pipeline_leave(sim_warp *w); /* the warp exits; false: reported, a product is in flight */
#endif
