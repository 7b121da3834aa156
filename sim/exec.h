/* exec: a launch under way: its clusters, their blocks and warps, and what the parts of the executor offer each other. One host
 * thread runs one cluster at a time, which without clusters is one block; nothing here is shared between clusters but global
 * memory and the launch. */
#ifndef SIM_EXEC_H
#define SIM_EXEC_H
#include "memory.h"
#include "program.h"
#include "sim.h"

enum { SIM_WARPS = 32, SIM_STACK = 96, SIM_BARRIERS = 16, SIM_REPORT = 4096, SIM_FENCES = 16 };
enum { SIM_FINDINGS = 64, SIM_DETAIL = 16384 }; /* different defects of a launch; bytes of the text about them */
enum { SIM_CLUSTER = 8, SIM_MBARRIERS = 64 };   /* blocks of a cluster; mbarriers of a block */
/* Who has a time of its own: first the warps of a cluster, then its warp groups, in whose name wgmmas read, then its mbarriers, in whose
 * name asynchronous copies write. Between groups and mbarriers are the planes. */
enum { SIM_PLANES = 4 }; /* numbers beside the times of each warp, see grid_order.h */
enum { SIM_GROUPS = SIM_WARPS / 4, SIM_ACTORS = SIM_CLUSTER * (SIM_WARPS * (1 + SIM_PLANES) + SIM_GROUPS + SIM_MBARRIERS) };

enum { SIM_LAST_CLOCK = (1 << 28) - 2 }; /* beyond it time stands still: races are missed, none is made up */

typedef struct sim_arch {
    const char *name;
    int major, minor;
    char suffix;
    int sms;
    int shared_per_block, shared_per_sm; /* bytes; the first is the opt-in limit */
    int threads_per_sm, blocks_per_sm;
    int l2; /* bytes */
    int clock_khz, memory_khz, bus_bits;
    /* Matrix arithmetic: products per block for 16-bit inputs and tf32, fraction bits kept, smallest alignment exponent, and that of f16
     * accumulators; products per block for 8-bit inputs of wgmma, and their fraction bits. */
    int block16, block_tf32, fraction, floor, floor16, block8, fraction8;
} sim_arch;
const sim_arch *sim_arch_find(const char *name);

typedef struct sim_counts {
    sim_counters c;
    const sim_alloc *row[SIM_TENSORS];
} sim_counts;

typedef struct sim_launch {
    const sim_program *program;
    const sim_arch *arch;
    sim_memory *memory, *variables;
    bool (*whose)(uint64_t address, char *to, size_t room); /* names the device of an address; false: it is of none */
    uint32_t grid[3], block[3], cluster[3], dynamic_shared; /* cluster: blocks, at least 1 */
    bool explicit_cluster;
    bool pdl;      /* may begin before what precedes it in the stream has ended */
    bool alone;    /* it begins when all has ended but the launch before it: that one let it begin where it had waited itself */
    bool reported; /* it let the next one begin by a thread that had not waited */
    const uint8_t *params;
    sim_options options;
    int64_t max_steps;
    uint64_t total, next; /* clusters; next is taken atomically */
    int64_t steps;        /* of finished time slices, all threads */
    int stop;             /* a thread found a defect */
    double deadline;      /* on the monotonic clock, seconds */
    uint8_t severity[SIM_CHECKS];
    struct sim_finding *finding; /* SIM_FINDINGS, of warnings and errors; NULL as long as there are none */
    uint32_t findings, errors;   /* errors: of the findings */
    CUresult result;
    char *report;            /* SIM_DETAIL bytes */
    struct sim_order *order; /* of grid_order.c; NULL: not followed */
    sim_counts counts;
} sim_launch;

typedef struct sim_copy { /* a cp.async of one lane, not waited for yet */
    const sim_insn *insn;
    uint64_t source;
    uint32_t to, group;
    uint8_t lane, size, from_size, done;
    uint16_t holes; /* bytes of the source that was never written */
} sim_copy;

typedef struct sim_fence {
    uint32_t at, lanes;
} sim_fence; /* a fence.proxy.async: the warp's time at it */

typedef struct sim_entry {
    uint32_t pc, mask, join;
} sim_entry;
typedef enum sim_activity { W_READY, W_BARRIER, W_SPIN, W_DONE } sim_activity;

/* Where an undefined value comes from. ORIGIN_REGISTER: at is the register; memory: an address or offset; ORIGIN_LANE: the lane that a
 * shuffle reads. */
typedef enum sim_origin_kind { ORIGIN_REGISTER, ORIGIN_SHARED, ORIGIN_STORED, ORIGIN_GLOBAL, ORIGIN_LOCAL, ORIGIN_LANE } sim_origin_kind;
typedef struct sim_origin {
    const sim_insn *insn;
    uint64_t at;
    sim_origin_kind kind;
} sim_origin;

typedef struct sim_shadow { /* what is undefined in a warp's registers, see defined.h */
    uint32_t *lanes;        /* per slot: the lanes that hold an undefined bit */
    uint8_t *bits;          /* laid out as the register file: in those lanes, the undefined bits */
    sim_origin *origin;     /* per slot */
    uint8_t *local;         /* per byte of local memory a bit: it is defined */
    uint32_t slots;         /* how many have such lanes; 0: nothing is undefined */
    bool met;               /* set when a read from memory meets an undefined byte */
} sim_shadow;

enum { SIM_TALES = 64 };
typedef struct sim_tale {
    uint32_t at, bytes;
    sim_origin origin;
} sim_tale; /* undefined bytes went to shared memory: from `at` on, those whose bit is set */

struct sim_warp {
    struct sim_block *block;
    uint8_t *file;
    uint32_t *pred;
    sim_shadow shadow;
    uint32_t pc, active, join;
    uint32_t lanes, carry; /* lanes: those that exist; carry: CC.CF */
    uint32_t left;         /* lanes that have exited */
    uint32_t after;        /* lanes that have waited for what precedes the launch */
    sim_entry stack[SIM_STACK];
    int depth;
    sim_activity state;
    uint32_t index, actor; /* in the block, and in the cluster */
    uint32_t waiting_at;   /* pc of the instruction it sleeps at */
    int barrier;
    const struct sim_mbarrier *waits; /* the one it waits at in vain, and how often in a row */
    uint32_t vain;
    uint64_t spun;               /* the cluster's progress when it last yielded in vain */
    uint32_t clock[SIM_ACTORS];  /* what this warp knows of each actor's time: see shared.c */
    uint32_t fenced[SIM_ACTORS]; /* the same at its last fence beyond the block, which a relaxed arrival hands on */
    uint32_t met;                /* lanes that have come to the cluster's barrier in its phase under way */
    uint64_t joined;             /* phase + 1 for which this warp has yet to wait; 0 = none */
    sim_copy *copies;
    size_t ncopies, copy_cap;
    uint32_t group[SIM_LANES], bulk_group[SIM_LANES]; /* groups each lane has committed: of cp.async, of bulk copies */
    uint8_t *local;                                   /* lane-major */
    struct sim_pipeline *pipeline;                    /* of wgmma; NULL in programs without */
    uint32_t issued;                                  /* instructions of its warp group: see group.c */
    bool awaits_group;           /* at a wgmma.wait_group, for a product that another warp of the group has yet to issue */
    uint32_t registers, wants;   /* of a thread; what setmaxnreg waits for */
    uint32_t resizes, resized;   /* how many setmaxnreg, and the warp's time at the last */
    sim_fence fence[SIM_FENCES]; /* the latest, by number modulo the size; see proxy.c */
    uint32_t fences, fence_lost; /* lost: time of the latest that was overwritten */
    uint32_t *fence_knew;        /* what the warp knew of the cluster's warps at each of them; NULL where none is looked up */
    uint64_t trusted;            /* the record that last was found to be ordered, see grid_order.c */
    struct sim_view {
        uint32_t lanes, clock[SIM_ACTORS];
    } view[2]; /* what the warp knew at its last such fence: of all its lanes, and of fewer */
};

typedef struct sim_barrier {
    uint32_t count, arrived; /* threads */
    uint32_t sleepers, seen; /* warps */
    uint32_t clock[SIM_ACTORS];
    uint32_t line;
    uint8_t reduce;
    uint32_t all, any, sum;
    bool vague; /* the predicate of some lane is undefined, since `from` */
    sim_origin from;
} sim_barrier;

typedef struct sim_mbarrier {
    uint32_t address;          /* offset in its block's shared memory */
    uint32_t actor, time;      /* time: of the phase under way; goes on when the place is initialised again */
    uint32_t begun;            /* of the first phase */
    bool live, fenced;         /* fenced: for the async proxy, by the thread that initialised it */
    uint8_t maker, maker_lane; /* that thread: its warp of the block, its lane */
    uint32_t expected, pending;
    int64_t tx; /* bytes announced less bytes arrived */
    uint64_t phase;
    uint64_t landed, waited; /* phase + 1 in which bytes last arrived, and that was last seen complete */
    const sim_insn *last;    /* the bulk copy that last arrived, and its issuer */
    sim_warp *last_warp;
    uint32_t clock[SIM_ACTORS], open[SIM_ACTORS]; /* of the last completed phase, and of the one under way */
} sim_mbarrier;

typedef struct sim_block {
    sim_launch *launch;
    struct sim_cluster *cluster;
    uint32_t rank, first; /* in the cluster; actor of the first warp */
    uint32_t place[3];    /* in the cluster */
    uint32_t running;     /* warps that have not ended */
    struct sim_visit {
        uint32_t time;
        const sim_insn *insn;
    } * visit; /* per warp of the cluster: the last access from another block; NULL without clusters */
    const sim_program *program;
    uint64_t linear;
    uint32_t id[3];
    sim_warp *warp;
    uint32_t warps, threads;
    uint8_t *shared;
    uint32_t shared_size;     /* bytes, static and dynamic */
    uint8_t *state;           /* per 4 bytes: low half which are defined, high half which are in flight */
    sim_tale tale[SIM_TALES]; /* the latest, by number modulo the size */
    uint32_t tales;
    uint64_t *wrote;                         /* per 4 bytes: last writer: time << 32 | author << 20 | bytes << 16 | actor; see proxy.h */
    uint32_t *read;                          /* per warp, per 4 bytes: time << 4 | bytes */
    uint8_t *reader;                         /* the same: 1 + the lane that read them at that time, or one of those of shared.c */
    uint32_t *group_read;                    /* the same per warp group, of its wgmmas that have ended; NULL in programs without */
    uint32_t groups, group_time[SIM_GROUPS]; /* 0 in programs without; when the latest of its wgmmas ended */
    uint32_t *far; /* the same for every warp of the cluster, for reads from other blocks; NULL as long as there are none */
    struct sim_group_log *group_log[SIM_WARPS / 4]; /* of each warp group */
    uint32_t registers;                             /* that setmaxnreg gave back: per thread, summed over the warps */
    uint16_t *held;                                 /* per 4 bytes: asynchronous reads under way; NULL where there are none */
    uint32_t words;
    sim_barrier barrier[SIM_BARRIERS];
    sim_mbarrier *mbarrier; /* SIM_MBARRIERS, or NULL before the first; those of this block's life so far, live or not */
    uint32_t mbarriers;
    struct sim_bulk *bulk; /* bulk copies under way that read or write this block's shared memory */
    uint32_t bulks, bulk_cap;
    bool checked, lazy;
    sim_alloc *cached;
    int cached_row;
    int64_t steps;
    uint64_t by_class[C_COUNT];
    sim_counts counts;
    void *arena;
    bool small; /* the arena */
} sim_block;

typedef struct sim_cluster {
    sim_launch *launch;
    sim_block *block[SIM_CLUSTER];
    uint32_t blocks, warps, groups, actors; /* warps, groups: of all blocks; actors: how many of the times are in use */
    uint32_t most_actors;                   /* of them, with every mbarrier */
    uint32_t planes;                        /* numbers of them all; 0 where order is not followed */
    struct sim_taken *taken;                /* per warp, of grid_order.c; NULL likewise */
    uint32_t epoch;                         /* time at which this cluster began */
    uint64_t linear;                        /* number of the cluster in the launch */
    uint32_t id[3];
    uint64_t phase;                               /* of its barrier */
    uint32_t clock[SIM_ACTORS], open[SIM_ACTORS]; /* of the last completed phase, and of the one under way */
    uint32_t sync[SIM_ACTORS];                    /* times released through atomics and volatile stores */
    uint64_t progress;                            /* counts whatever may let a waiting warp go on */
    uint64_t random;
    struct sim_product *product; /* that its thread is at, see mma.h; NULL before the first */
    bool stuck;                  /* nothing has moved for some rounds: what is late may come now */
} sim_cluster;

/* report.c. A defect of a class, found by a warp (lane < 0: as a whole) or by a block. STEP_FAULT: the warp stops here, and its cluster
 * with it. STEP_NEXT: the class is off or a warning, or the run goes on up to a number of reports; never so for the fixed classes. */
sim_step sim_fault(sim_warp *w, const sim_insn *i, int lane, sim_check check, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
sim_step sim_report_block(sim_block *b, sim_check check, const char *text);
int sim_report_environment(uint8_t to[SIM_CHECKS], char error[512]); /* of FAGEN_SIM_CHECKS; 0: error says what is wrong with it */
void sim_report_open(sim_launch *l);                                 /* severities and limits of a launch, from its options */
void sim_report_close(sim_launch *l);                                /* l->result and l->report, and the warnings for the process */
int sim_report_where(const sim_program *p, const sim_insn *i, char *to, size_t room); /* template line */
int sim_report_address(sim_block *b, uint64_t address, char *to, size_t room);
int sim_report_actor(const sim_cluster *c, const sim_block *from, uint32_t actor, char *to, size_t room); /* "warp 3" */

/* warp.c */
sim_step sim_warp_run(sim_warp *w, int64_t slice);
/* control.c */
bool sim_warp_pop(sim_warp *w);       /* the next group of lanes on the stack that has not left. false: none */
sim_step sim_warp_leave(sim_warp *w); /* all lanes have */

/* block.c */
void sim_block_close(void);                                          /* gives back what is kept from launch to launch */
sim_block *sim_block_new(void);                                      /* NULL: out of memory */
bool sim_block_prepare(sim_block *b, sim_cluster *c, uint32_t rank); /* false: out of memory */
void sim_block_start(sim_block *b);
void sim_block_free(sim_block *b);

/* cluster_barrier.c: the cluster's barrier */
void sim_cluster_barrier_settle(sim_cluster *c); /* completes the phase if all that are left have come */
bool sim_cluster_barrier_end(sim_block *b);      /* all warps of b have ended. false: reported */

/* cluster.c */
CUresult sim_launch_run(sim_launch *l);

/* grid.c: launches that may begin early. Has the lane waited, before it touches global memory? Has a thread of the block that ends? */
bool sim_grid_waited(sim_warp *w, const sim_insn *i, int lane); /* false: reported */
/* Can neither the launch in front nor this one change any more what lies there? */
bool sim_grid_settled(const sim_warp *w, uint32_t lane, uint64_t address, uint64_t bytes);
/* A relaxed load before the wait: what is in front may still write there. In lazy timing it finds another value than later ones. */
bool sim_grid_hint(const sim_warp *w, const sim_insn *i, uint32_t lane);
void sim_grid_disturb(const sim_block *b, uint64_t address, uint8_t *data);
bool sim_grid_end(sim_block *b); /* false: reported */

/* address.c: where lanes' addresses lead. */
uint8_t *sim_global(sim_warp *w, const sim_insn *i, int lane, uint64_t address, uint32_t size, sim_alloc **which); /* NULL: reported */
void sim_count_global(sim_block *b, const sim_alloc *a, uint64_t read, uint64_t write);
/* Reads or writes `size` bytes of one lane anywhere; checks everything. false: reported. */
bool sim_load(sim_warp *w, const sim_insn *i, int lane, sim_space space, uint64_t address, void *to, uint32_t size);
bool sim_store(sim_warp *w, const sim_insn *i, int lane, sim_space space, uint64_t address, const void *from, uint32_t size);
/* Reads of all lanes in m at once from one allocation of global memory, where there is nothing to report and all is written. false: this
 * is no such case, nothing was read, and sim_load() of each lane is to say what it is. */
bool sim_load_global(sim_warp *w, const sim_insn *i, uint32_t m, const uint64_t *address, uint8_t (*to)[32], uint32_t size);
static inline sim_space sim_space_of(sim_space s, uint64_t *address)
{
    if (s != SP_GENERIC)
        return s;
    uint64_t window = *address & SIM_WINDOW_MASK;
    if (window == SIM_WINDOW_SHARED)
        return *address &= ~SIM_WINDOW_MASK, *address >> SIM_RANK_SHIFT & SIM_RANK_BITS ? SP_CLUSTER : SP_SHARED;
    if (window == SIM_WINDOW_LOCAL)
        return *address &= ~SIM_WINDOW_MASK, SP_LOCAL;
    if (window == SIM_WINDOW_PARAM)
        return *address &= ~SIM_WINDOW_MASK, SP_PARAM;
    return SP_GLOBAL;
}

/* shared.c: bounds, alignment, the shadow. Addresses include SIM_SHARED_BASE. */
uint8_t *sim_shared(sim_warp *w, const sim_insn *i, int lane, uint64_t address, uint32_t size); /* bounds and alignment only */
bool sim_shared_read(sim_warp *w, const sim_insn *i, int lane, uint32_t at,
                     uint32_t size); /* at: offset in the arena; undefined bytes set w->shadow.met */
bool sim_shared_write(sim_warp *w, const sim_insn *i, int lane, uint32_t at, uint32_t size,
                      const void *value);                                                    /* value: to be stored, or NULL */
bool sim_shared_begin(sim_warp *w, const sim_insn *i, int lane, uint32_t at, uint32_t size); /* in flight from now on */
void sim_shared_land(sim_warp *w, int lane, uint32_t at, uint32_t size);                     /* arrived */
/* The block of the cluster that a shared address names; the address becomes one inside it. NULL: reported. */
sim_block *sim_shared_owner(sim_warp *w, const sim_insn *i, int lane, uint64_t *address);
uint8_t *sim_shared_of(sim_block *o, sim_warp *w, const sim_insn *i, int lane, uint64_t address, uint32_t size);
bool sim_shared_read_of(sim_block *o, sim_warp *w, const sim_insn *i, int lane, uint32_t at, uint32_t size);
bool sim_shared_write_of(sim_block *o, sim_warp *w, const sim_insn *i, int lane, uint32_t at, uint32_t size, const void *value);
/* The same for bulk copies, of whole words, to any block of the cluster: in flight, and arrived in the name of an mbarrier's phase. */
bool sim_shared_fly(sim_block *b, sim_warp *w, const sim_insn *i, int lane, uint32_t at, uint32_t size);
void sim_shared_arrive(sim_block *b, const sim_mbarrier *m, uint32_t at, uint32_t size);
void sim_shared_sync(sim_warp *w, bool release, bool acquire);
/* Times of actors: the warp tells what it knows and begins a new time of its own, or learns what is known there. */
void sim_clock_release(sim_warp *w, uint32_t *into);
/* What the warp's lanes touch from now on comes after what they have touched so far. */
void sim_clock_tick(sim_warp *w);
void sim_clock_acquire(sim_warp *w, const uint32_t *from);
void sim_count_banks(sim_block *b, const uint32_t *address, uint32_t m, uint32_t size);

/* The actor that is a warp group of the block. */
static inline uint32_t sim_group_actor(const sim_block *b, uint32_t group)
{
    return b->cluster->warps + b->rank * b->groups + group;
}

/* Offsets of the instruction's arguments in the warp. */
static inline sim_vec *sim_arg(const sim_warp *w, const sim_insn *i, int n)
{
    int32_t a = i->arg[n];
    return (sim_vec *)(void *)(a >= 0 ? w->file + a : (uint8_t *)w->block->program->pool + ~a);
}
static inline uint32_t sim_pred(const sim_warp *w, const sim_insn *i, int n)
{
    int32_t a = i->arg[n];
    uint32_t v = a == SIM_NO_ARG ? SIM_ALL
                 : a < 0 ? (uint32_t)(((const sim_vec *)(const void *)((const uint8_t *)w->block->program->pool + ~a))->u[0] ? SIM_ALL : 0)
                         : w->pred[a];
    return i->negated >> n & 1 ? ~v : v;
}
static inline void sim_set_pred(sim_warp *w, const sim_insn *i, int n, uint32_t v, uint32_t m)
{
    int32_t a = i->arg[n];
    if (a >= 0)
        w->pred[a] = (w->pred[a] & ~m) | (v & m);
}
/* The address of a lane: register (32 or 64 bits wide) plus offset. */
static inline uint64_t sim_address(const sim_warp *w, const sim_insn *i, int n, bool wide, uint32_t l)
{
    if (i->arg[n] == SIM_NO_ARG)
        return (uint64_t)i->imm;
    const sim_vec *v = sim_arg(w, i, n);
    return wide ? v->q[l] + (uint64_t)i->imm : (uint32_t)(v->u[l] + (uint32_t)i->imm);
}
#endif
