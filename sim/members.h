/* members: the lanes of a warp that a .sync instruction names. Lanes that give the same mask work together, those of another
 * mask by themselves. */
#ifndef SIM_MEMBERS_H
#define SIM_MEMBERS_H
#include "exec.h"

typedef struct sim_members {
    uint32_t n, group[SIM_LANES]; /* disjoint; together the lanes that execute the instruction */
    uint8_t of[SIM_LANES];        /* the group of each of them */
} sim_members;

/* The groups of the lanes m, whose masks are argument `arg`. A lane that its own mask leaves out, one that is named and is not here, and
 * one that gives another mask than a lane that it names are reported. Lanes that have exited, or never were, may be named: they are not
 * waited for. false: reported. */
bool sim_members_of(sim_warp *w, const sim_insn *i, int arg, uint32_t m, sim_members *to);
#endif
