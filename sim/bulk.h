/* bulk: copies of the async proxy: whole boxes through a tensor map, or runs of bytes (cp.async.bulk). A copy into shared memory
 * ends with complete_tx on an mbarrier; one out of it belongs to a bulk group of its thread. Eager timing moves the bytes at
 * issue. Lazy timing poisons a destination until a warp waits for the mbarrier and no other can go on, reads a source when
 * its thread waits for the reads, and writes global memory when it waits for the group, or leaves. */
#ifndef SIM_BULK_H
#define SIM_BULK_H
#include "tensor_map.h"

typedef enum sim_bulk_kind { BULK_LOAD, BULK_STORE, BULK_REDUCE, BULK_PREFETCH, BULK_SHARED } sim_bulk_kind;
enum { SIM_BULK_UNIT = 16 }; /* bytes that addresses and sizes are a multiple of */
enum { BULK_ADD, BULK_MIN, BULK_MAX, BULK_AND, BULK_OR, BULK_XOR, BULK_INC, BULK_DEC };

/* An address among the operands; arg -1: there is none. */
typedef struct sim_bulk_operand {
    int arg;
    bool wide;
    int64_t offset;
} sim_bulk_operand;

/* How an instruction names what it moves; its fn.data. Arguments are -1 where there are none. */
typedef struct sim_bulk_form {
    sim_bulk_operand shared, global, mbarrier; /* global: of the tensor map, if rank */
    int coordinate, size, mask;
    uint8_t rank, op; /* rank 0: a run of bytes */
    sim_type type;    /* of a reduction without a map */
} sim_bulk_form;

typedef struct sim_bulk {
    const sim_insn *insn;
    sim_warp *warp; /* the one that issued it */
    uint8_t lane;
    bool read, count, holes; /* its shared source has been read; its bytes are counted, once per multicast and per store that several lanes
                                issue; undefined bytes may be among them */
    sim_tensor_map map;
    int32_t at[SIM_RANK];
    uint64_t global;        /* of a run of bytes; from shared memory: its offset in the issuer's block */
    uint32_t shared, bytes; /* offset in the arena */
    sim_mbarrier *mbarrier; /* of the same block; NULL: a store */
    uint64_t phase;         /* of the mbarrier, at issue */
    uint32_t group;
    uint8_t *taken; /* the source's bytes, read but not yet written; with open stores, which of them are undefined after them */
} sim_bulk;

/* Lands what is on its way to this mbarrier. false: reported. */
bool sim_bulk_land(sim_block *b, const sim_mbarrier *m);
bool sim_bulk_leave(sim_warp *w); /* the warp has ended. false: reported */
bool sim_bulk_end(sim_block *b);  /* all warps of the block have. false: reported */
void sim_bulk_drop(sim_block *b); /* forgets all that is under way */
/* bulk_bytes.c. false: reported. */
bool sim_bulk_fetch(sim_block *b, sim_bulk *c); /* to the place in the block's arena */
bool sim_bulk_take(sim_block *b, sim_bulk *c);  /* a store reads its source, */
bool sim_bulk_give(sim_bulk *c);                /* and writes what it has read, if anything */
/* bulk_defined.c. What of the bytes that have arrived at the block is undefined. */
void sim_bulk_undefine(sim_block *b, const sim_bulk *c);
/* Are the bytes of the block defined that go to global memory? false: reported. */
bool sim_bulk_defined(sim_block *b, const sim_bulk *c);
/* Adds, ..., to elements of global memory, atomically. */
void sim_bulk_reduce(uint8_t *to, const uint8_t *from, uint32_t bytes, sim_type t, int op);
#endif
