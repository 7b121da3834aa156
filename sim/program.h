/* program: one kernel, decoded for execution, and the module it came in. Built from PTX text by ptx_parse.c, decode.c and
 * flow.c; immutable afterwards. */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H
#include "lanes.h"
#include <stdbool.h>
#include <stddef.h>

typedef enum sim_type {
    T_NONE,
    T_PRED,
    T_B8,
    T_B16,
    T_B32,
    T_B64,
    T_B128,
    T_U8,
    T_U16,
    T_U32,
    T_U64,
    T_S8,
    T_S16,
    T_S32,
    T_S64,
    T_F16,
    T_F16X2,
    T_BF16,
    T_BF16X2,
    T_TF32,
    T_F32,
    T_F64,
    T_U16X2,
    T_S16X2,
    T_E4M3X2,
    T_E5M2X2,
    T_E4M3,
    T_E5M2,
    T_COUNT
} sim_type;
sim_type sim_type_of(const char *word); /* "s32" -> T_S32; T_NONE if it is no type */
int sim_type_bytes(sim_type t);
static inline bool sim_type_signed(sim_type t)
{
    return t == T_S8 || t == T_S16 || t == T_S32 || t == T_S64;
}
static inline bool sim_type_float(sim_type t)
{
    return (t >= T_F16 && t <= T_F64);
}

typedef enum sim_space {
    SP_GENERIC,
    SP_GLOBAL,
    SP_SHARED,
    SP_LOCAL,
    SP_PARAM,
    SP_CONST,
    SP_CLUSTER
} sim_space; /* SP_CLUSTER: .shared::cluster */

/* Addresses. Global ones are allocations (memory.h); the windows are where generic pointers to the rest live. Their low 32
 * bits are the address inside the space, so truncating a generic pointer gives the shared address as on hardware. */
#define SIM_WINDOW_SHARED 0x1000000000000000ull
#define SIM_WINDOW_LOCAL 0x1100000000000000ull
#define SIM_WINDOW_PARAM 0x1200000000000000ull
#define SIM_WINDOW_MASK 0xFF00000000000000ull
/* In the window of a cluster a shared address has the block's rank + 1 in these bits; 0 is the block's own. */
enum { SIM_RANK_SHIFT = 24, SIM_RANK_BITS = 0xFF };
#define SIM_SHARED_BASE 1024u /* first shared byte a kernel owns; the first KiB is the system's, as on sm_80 and later */
#define SIM_LOCAL_BASE 64u

/* Classes of the counters in sim.h. */
typedef enum sim_class { C_OTHER, C_MATRIX, C_SHUFFLE, C_SPECIAL, C_MEMORY, C_CONTROL, C_COUNT } sim_class;

typedef struct sim_warp sim_warp;
typedef struct sim_insn sim_insn;

typedef enum sim_step {
    STEP_NEXT,  /* done; the next instruction follows */
    STEP_JUMP,  /* done; the warp's pc is already right */
    STEP_WAIT,  /* done, but the warp sleeps until another wakes it */
    STEP_YIELD, /* done, and it waits for others: let them run */
    STEP_DONE,  /* every lane has left */
    STEP_FAULT  /* a report was made */
} sim_step;

typedef sim_step sim_run(sim_warp *w, const sim_insn *i, uint32_t m);
typedef void sim_alu(sim_vec *restrict d, const sim_vec *a, const sim_vec *b, const sim_vec *c, const sim_vec *e);
typedef uint32_t sim_compare(const sim_vec *a, const sim_vec *b);

enum { K_RUN, K_ALU };
/* What an undefined operand means to an instruction, see defined.h. A lane's results are undefined if any of its operands is (U_PROPAGATE);
 * it is a defect (U_DECIDE); the side that is not selected does not count (U_SELECT); bit by bit, in the first `sub` operands (U_BITS);
 * each half of a register by itself (U_HALVES, U_PAIR); a row of its own (U_LOGIC to U_MATRIX); the instruction's own function follows what
 * it moves, of the rest nothing may be undefined (U_RUN). */
enum {
    U_PROPAGATE,
    U_DECIDE,
    U_SELECT,
    U_BITS,
    U_HALVES,
    U_PAIR,
    U_LOGIC,
    U_COMPARE,
    U_PACK,
    U_UNPACK,
    U_CONVERT,
    U_CARRY,
    U_MATRIX,
    U_RUN
};

enum {
    F_SAT = 1, /* clamp an f32 result to [0,1] */
    F_TRANS = 4,
    F_VOLATILE = 8, /* orders other accesses: volatile, relaxed, acquire, release */
    F_NOINC = 16,
    F_PARITY = 32,  /* a wait by parity, not by state */
    F_EXPECT = 64,  /* an arrival that announces bytes */
    F_SIZE = 128,   /* a copy with a source size */
    F_IGNORE = 256, /* a copy with a predicate to ignore its source */
    F_WIDE = 512,   /* the address, or what is converted, is a 64-bit register */
    F_ROUND = 1024, /* a rounding other than to nearest */
    F_HELD = 2048,  /* touches a register of some wgmma, and is none */
    F_MOVE = 4096,  /* a plain mov of 32 bits */
    F_TIED = 8192,  /* its destinations are operands too */
    F_HINT = 16384, /* a load that takes what is there, whatever writes it: relaxed or volatile, of global memory */
    F_BULK = 32768  /* of the copy engine, which asks for itself whether the grid may touch global memory */
};

/* sim_insn.order: of a strong access, or a fence, that reaches beyond the cluster; what it takes over or hands on without a fence beside
 * it, or as a fence; of a load, that it goes through the read-only path. */
enum { ORDER_GRID = 1, ORDER_ACQUIRE = 2, ORDER_RELEASE = 4, ORDER_CACHED = 8 };

#define SIM_NO_ARG INT32_MIN

/* An argument: a byte offset in the warp's register file; a negative one is ~offset in the program's pool of constants; for a
 * predicate, its index. The first `defs` arguments are written. */
typedef struct sim_slot {
    uint32_t at, name;
} sim_slot; /* where an argument's state is kept, see defined.h; its register + 1; 0: a constant */

struct sim_insn {
    sim_run *run;
    union {
        sim_alu *alu;
        sim_compare *cmp;
        const void *data;
    } fn;
    const int32_t *arg;
    int64_t imm;             /* offset of an address, count, ... */
    uint32_t target;         /* of a branch */
    uint32_t join;           /* where the lanes of a branch meet again; UINT32_MAX: at exit */
    int32_t guard;           /* predicate index, or -1 */
    uint32_t line;           /* of the PTX text, from 1 */
    uint32_t loc;            /* index + 1 in the module's locs, 0 = none */
    uint16_t flags, negated; /* negated: bit n = predicate argument n is inverted */
    uint16_t args, defs;
    uint8_t kind, wide; /* wide: the result is 64 bits */
    uint8_t cls, space, type, type2, count, sub, round, unknown, guard_negated, order;
    const sim_slot *slot; /* per argument, then the guard */
    const uint16_t *held; /* per argument: 1 + index among the registers of wgmmas, 0 = none */
    const char *text;
};

typedef struct sim_loc {
    const char *file;
    uint32_t line, at;
} sim_loc; /* at: the line it was inlined at, or 0 */

typedef struct sim_param {
    uint32_t offset, size;
} sim_param;

typedef struct sim_program {
    char *name;
    sim_insn *code;
    uint32_t insns;
    int32_t *args;
    sim_vec *pool; /* constants, 32 lanes each (as 256-byte rows) */
    uint32_t pool_rows;
    uint32_t file_bytes;   /* of a warp's register file */
    uint32_t preds, slots; /* slots: of defined.h; the first stands for constants, the last for CC.CF */
    sim_slot *unset;       /* registers that may be read before they are written */
    uint32_t unsets;
    struct sim_name {
        const char *prefix;
        uint32_t first;
        bool whole;
    } * names; /* of the registers from `first` on: the prefix and a number, or whole */
    uint32_t nnames;
    uint32_t held;        /* registers that a wgmma uses, or a mov away from it */
    uint32_t *held_place; /* file offset */
    char **held_names;
    uint32_t special[48]; /* file offset of each special register + 1, 0 = unused */
    sim_param *params;
    uint32_t nparams, param_bytes;
    uint32_t shared_bytes; /* static */
    uint32_t local_bytes;
    int max_threads, required[3];
    uint32_t cluster[3]; /* blocks of a cluster that it requires; 0 = none are required */
    uint32_t registers;  /* per thread at the launch, as far as the directives tell; 0: they do not. For setmaxnreg */
    bool resizes;        /* has a setmaxnreg */
    bool proxy;          /* uses the async proxy: wgmma or bulk copies */
    bool exchanges;      /* has strong accesses to global memory */
    struct sim_module *module;
} sim_program;

typedef struct sim_variable {
    char *name;
    sim_space space;
    uint32_t size, align;
    uint64_t address; /* shared: offset from SIM_SHARED_BASE; global and const: where memory.c placed it */
    uint8_t *initial; /* size bytes, or NULL */
    bool dynamic;     /* extern shared of no size */
    bool passed;      /* a .param variable of a call, which lives in local memory */
    uint32_t user;    /* while a module is read: the kernel, by number from 1, that last named it */
} sim_variable;

typedef struct sim_module {
    char *text;
    int target;         /* 80, 90, ... */
    char target_suffix; /* 'a', 'f' or 0 */
    char **files;
    uint32_t nfiles;
    sim_loc *locs;
    uint32_t nlocs;
    sim_variable *vars;
    uint32_t nvars;
    sim_program *kernels;
    uint32_t nkernels;
    void **blocks; /* everything allocated for this module */
    uint32_t nblocks;
} sim_module;

/* Parses and decodes. On failure returns NULL with the reason, its PTX line and text in error[1024], "" where memory ran out. place() gives
 * each .global and .const variable its address; it may be NULL where there are none. */
sim_module *sim_module_load(const char *ptx, size_t n, uint64_t (*place)(void *, const sim_variable *), void *arg, char error[1024]);
void sim_module_free(sim_module *m);

/* Special registers: what a program may read by name. */
typedef enum sim_special {
    SR_TID_X,
    SR_TID_Y,
    SR_TID_Z,
    SR_NTID_X,
    SR_NTID_Y,
    SR_NTID_Z,
    SR_CTAID_X,
    SR_CTAID_Y,
    SR_CTAID_Z,
    SR_NCTAID_X,
    SR_NCTAID_Y,
    SR_NCTAID_Z,
    SR_LANEID,
    SR_WARPID,
    SR_NWARPID,
    SR_SMID,
    SR_NSMID,
    SR_ZERO,
    SR_ONE,
    SR_LANEMASK_EQ,
    SR_LANEMASK_LE,
    SR_LANEMASK_LT,
    SR_LANEMASK_GE,
    SR_LANEMASK_GT,
    SR_DYNAMIC_SMEM,
    SR_TOTAL_SMEM,
    SR_CLUSTERID_X,
    SR_CLUSTERID_Y,
    SR_CLUSTERID_Z,
    SR_NCLUSTERID_X,
    SR_NCLUSTERID_Y,
    SR_NCLUSTERID_Z,
    SR_CLUSTER_CTAID_X,
    SR_CLUSTER_CTAID_Y,
    SR_CLUSTER_CTAID_Z,
    SR_CLUSTER_NCTAID_X,
    SR_CLUSTER_NCTAID_Y,
    SR_CLUSTER_NCTAID_Z,
    SR_CLUSTER_CTARANK,
    SR_CLUSTER_NCTARANK,
    SR_CLUSTER_EXPLICIT,
    SR_STATIC_COUNT,
    SR_CLOCK = SR_STATIC_COUNT,
    SR_CLOCK_HI,
    SR_CLOCK64,
    SR_GLOBALTIMER,
    SR_COUNT
} sim_special;
_Static_assert(SR_COUNT <= 48, "sim_program.special has a place for each");
#endif
