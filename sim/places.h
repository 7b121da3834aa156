/* places: where the registers of a kernel lie at run time. Registers that do not live at the same time share a place. */
#ifndef SIM_PLACES_H
#define SIM_PLACES_H
#include "flow_graph.h"

/* Arguments, guards and names of the kernel become places and slots. tracked: registers that may be read before they are written. held:
 * those that wgmmas use. Sets of registers of the graph are there. */
void sim_places_give(sim_flow_graph *w, const uint64_t *tracked, const uint64_t *held);
#endif
