/* flow_graph: a kernel as basic blocks, and where the lanes of a branch meet again: the immediate post-dominator of its block. */
#ifndef SIM_FLOW_GRAPH_H
#define SIM_FLOW_GRAPH_H
#include "ptx.h"
#include "run.h"

typedef struct sim_basic_block {
    uint32_t first, last;  /* instructions, inclusive */
    uint32_t *next, nnext; /* blocks that may follow */
    uint32_t *before, nbefore;
    uint32_t order;       /* in the walk from the exit backwards */
    uint32_t join;        /* immediate post-dominator; n = the exit */
    bool reached, leaves; /* leaves: nothing but an exit */
    bool whole;           /* every edge counts: without those to an exit it would never meet one */
} sim_basic_block;

typedef struct sim_flow_graph {
    ptx_parser *p;
    ptx_function *f;
    sim_program *prog;
    sim_basic_block *b;
    uint32_t n, *of; /* blocks; the block of each instruction */
    uint32_t *order; /* the blocks so that most come after those before them: reverse postorder, then the unreached */
    size_t words;    /* of a set of registers */
    uint64_t *live_in, *live_out, *sure_in;
} sim_flow_graph;

/* Sets of registers, by number. */
#define SIM_HAS(s, r) ((s)[(r) >> 6] >> ((r)&63) & 1)
#define SIM_PUT(s, r) ((s)[(r) >> 6] |= 1ull << ((r)&63))
#define SIM_CUT(s, r) ((s)[(r) >> 6] &= ~(1ull << ((r)&63)))

/* Makes blocks, edges and order of the kernel that p, f and prog name, and tells each branch where its lanes meet. */
void sim_flow_graph_make(sim_flow_graph *w);
#endif
