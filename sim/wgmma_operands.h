/* wgmma_operands: what a warp's part of a wgmma reads, and its result. */
#ifndef SIM_WGMMA_OPERANDS_H
#define SIM_WGMMA_OPERANDS_H
#include "descriptor.h"
#include "exec.h"

typedef struct sim_wgmma {
    const sim_insn *insn;
    bool a_shared, scale; /* A lies in shared memory; the product is added to the accumulator */
    sim_matrix a, b;      /* a: in shared memory */
    sim_vec reg[4];       /* A in registers */
} sim_wgmma;

uint32_t sim_wgmma_registers(const sim_insn *i); /* accumulators of a thread; two of f16 share one */

/* The bytes of shared memory that the warp's part reads are in use, up to the release. false: one of them must not be read; reported. */
bool sim_wgmma_hold(sim_warp *w, const sim_wgmma *o);
void sim_wgmma_release(sim_warp *w, const sim_wgmma *o);

/* to = A B, + from where it is added to the accumulator: a vector for each of a thread's accumulators. They may be the same. */
void sim_wgmma_compute(sim_warp *w, const sim_wgmma *o, sim_vec *const *from, sim_vec *const *to);
#endif
