/* async: what cp.async and mbarriers need from each other. */
#ifndef SIM_ASYNC_H
#define SIM_ASYNC_H
#include "exec.h"

/* Performs the arrivals that cp.async.mbarrier.arrive has promised to this barrier. */
bool sim_async_arrive(sim_block *b, sim_mbarrier *at);

sim_mbarrier *sim_mbarrier_at(sim_warp *w, const sim_insn *i, int lane, int arg); /* of the own block; NULL: reported */
/* Bytes announced (or, negative, arrived) in the phase under way; ends it if it is complete. w, i and lane are for the report. */
bool sim_mbarrier_tx(sim_warp *w, const sim_insn *i, int lane, sim_block *k, sim_mbarrier *b, int64_t bytes);
void sim_mbarrier_fence(sim_warp *w, uint32_t lanes); /* what these lanes have initialised is fenced for the async proxy */
sim_mbarrier *sim_mbarrier_in(sim_warp *w, const sim_insn *i, int lane, sim_block *k, uint64_t address); /* of that block; NULL: reported */
bool sim_mbarrier_arrive(sim_warp *w, const sim_insn *i, int lane, sim_block *k, sim_mbarrier *b, uint32_t count);
#endif
