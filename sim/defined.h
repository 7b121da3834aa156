/* defined: which values were never made. Undefined is what a register holds that was never written, and what is read from memory
 * that was never written; it moves with the values: through registers bit by bit, through shared and local memory byte by byte. A result is
 * undefined where it depends on an undefined operand. It is a defect where it decides something: a branch, an address, the operand of a
 * barrier, a member mask, or global memory.
 *
 * A slot keeps the state of one place of the register file, of one predicate, or of CC.CF: a word with the lanes that hold an
 * undefined bit. As long as a warp has no such slot, which is nearly always, the only cost is to find that out. Shared memory keeps
 * the state in sim_block.state, global memory in the marks of memory.h, which cannot hold an undefined value that was stored. */
#ifndef SIM_DEFINED_H
#define SIM_DEFINED_H
#include "descriptor.h"

enum { SLOT_PRED = 1 << 29, SLOT_WIDE = 1 << 30, SLOT_NUMBER = SLOT_PRED - 1 }; /* sim_slot.at */

/* Of a warp: room, and its state at the start of a block. */
size_t sim_defined_bytes(const sim_program *p, size_t file);
uint8_t *sim_defined_prepare(sim_warp *w, uint8_t *at, size_t file); /* returns what is after its room */
void sim_defined_start(sim_warp *w);

/* Before an instruction that the lanes m execute, in a warp with undefined registers: reports what may not be undefined, and follows the
 * rest into the destinations. false: reported. */
bool sim_defined_check(sim_warp *w, const sim_insn *i, uint32_t m);

/* The lanes whose argument a has an undefined bit; which bits. */
static inline uint32_t sim_undefined(const sim_warp *w, const sim_insn *i, int a)
{
    return w->shadow.lanes[i->slot[a].at & SLOT_NUMBER];
}
static inline sim_vec *sim_undefined_bits(const sim_warp *w, const sim_insn *i, int a)
{
    return (sim_vec *)(void *)(w->shadow.bits + i->arg[a]);
}
static inline uint64_t sim_undefined_in(const sim_warp *w, const sim_insn *i, int a, uint32_t l)
{
    if (!(sim_undefined(w, i, a) >> l & 1))
        return 0;
    return i->slot[a].at & SLOT_WIDE ? sim_undefined_bits(w, i, a)->q[l] : sim_undefined_bits(w, i, a)->u[l];
}
/* Of the lanes m, exactly `lanes` are undefined in slot n from now on; slot 0 is none. */
void sim_undefined_slot(sim_shadow *s, uint32_t n, uint32_t lanes, uint32_t m, const sim_origin *from);
/* Of the lanes m, exactly `lanes` are undefined in argument a from now on; their bits were set before. fill() sets all of them. */
void sim_undefined_set(sim_warp *w, const sim_insn *i, int a, uint32_t lanes, uint32_t m, const sim_origin *from);
void sim_undefined_fill(sim_warp *w, const sim_insn *i, int a, uint32_t lanes, uint32_t m, const sim_origin *from);
/* The same with the bits given for the lanes `open`; in the others of m none is undefined. */
void sim_undefined_put(sim_warp *w, const sim_insn *i, int a, const uint64_t *bits, uint32_t open, uint32_t m, const sim_origin *from);
const sim_origin *sim_undefined_origin(const sim_warp *w, const sim_insn *i, int a);

/* Reports that argument a (i->args: the guard) may not be undefined. what: "is stored to global memory". true: the run goes on, and the
 * argument counts as defined from now on. */
bool sim_undefined_report(sim_warp *w, const sim_insn *i, int a, int lane, const char *what);
/* The class of a defect that comes of it; the words, after "undefined: ". */
static inline sim_check sim_origin_check(const sim_origin *o)
{
    return o->kind == ORIGIN_REGISTER || o->kind == ORIGIN_LANE ? SIM_CHECK_UNDEFINED : SIM_CHECK_UNWRITTEN;
}
void sim_origin_text(const sim_warp *w, const sim_origin *o, char *to, size_t room);

/* defined_memory.c. Bit n of a result: byte n is undefined. */
uint32_t sim_shared_holes(const sim_block *b, uint32_t at, uint32_t size);
void sim_shared_undefine(
    sim_block *b, uint32_t at, uint32_t bytes,
    const sim_origin *from); /* the bytes from `at` on whose bit is set; from NULL: of an origin that is already told */
sim_origin sim_shared_origin(const sim_block *b, const sim_insn *i, uint32_t at); /* of the undefined byte `at` */
/* After a load, a store, ... that met something undefined. */
void sim_defined_load(sim_warp *w, const sim_insn *i, uint32_t m, const uint64_t *address);
bool sim_defined_store(sim_warp *w, const sim_insn *i, uint32_t lane, uint64_t address); /* false: reported */
/* Before an atomic operation of a lane on shared memory of the block `shared`, at this offset, or (NULL) on global memory. operand: what it
 * brings is undefined. Is the old value? -1: reported. */
int sim_defined_atom(sim_warp *w, const sim_insn *i, uint32_t l, int element, sim_block *shared, uint32_t offset, const sim_alloc *global,
                     uint64_t address, bool operand, sim_origin *from);
void sim_defined_ldmatrix(sim_warp *w, const sim_insn *i, const uint32_t *at);
void sim_defined_stmatrix(sim_warp *w, const sim_insn *i, const uint32_t *at);
void sim_defined_movmatrix(sim_warp *w, const sim_insn *i);
/* Local memory of a lane, from its first byte on. */
bool sim_local_defined(const sim_warp *w, uint32_t lane, uint32_t at, uint32_t size);
void sim_local_define(sim_warp *w, uint32_t lane, uint32_t at, uint32_t size);

/* defined_matrix.c: an element of a product is undefined if an element of its row of A or of its column of B is, or what it is added to. */
void sim_defined_mma(sim_warp *w, const sim_insn *i);
void sim_defined_wgmma(sim_warp *w, const sim_insn *i, const sim_matrix *a, const sim_matrix *b,
                       bool scale); /* a: NULL where A is in registers */

/* defined_lanes.c. from: the lane that each lane reads; absent: the lanes that read one which does not take part. */
void sim_defined_shuffle(sim_warp *w, const sim_insn *i, uint32_t m, const uint32_t *from, uint32_t absent);
void sim_defined_vote(sim_warp *w, const sim_insn *i, uint32_t group);
void sim_defined_match(sim_warp *w, const sim_insn *i, uint32_t group);
void sim_defined_redux(sim_warp *w, const sim_insn *i, uint32_t group);
#endif
