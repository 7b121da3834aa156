/* checks: what the simulator looks for, class by class. A class has a name, a severity, and a meaning; the table in docs/simulator.md
 * is the same as the one here. The severity of a class can be chosen per run, unless there is nothing to go on with after its
 * defects: an address that leads nowhere, a barrier that half a warp reached. Those are fixed: errors, always. */
#ifndef SIM_CHECKS_H
#define SIM_CHECKS_H
#include <stddef.h>
#include <stdint.h>

/* SIM_BY_DEFAULT: what the environment says (FAGEN_SIM_CHECKS), else the table. A warning is noted and the launch goes on. */
typedef enum sim_severity { SIM_BY_DEFAULT = 0, SIM_OFF, SIM_WARNING, SIM_ERROR } sim_severity;

/* X(class, name, default severity, fixed, CUDA_ERROR_..., meaning) */
#define SIM_CHECK_TABLE(X)                                                                                                                 \
    X(BOUNDS, "bounds", ERROR, 1, ILLEGAL_ADDRESS,                                                                                         \
      "an address outside of global memory (per allocation), shared memory (static + dynamic size; its addresses start at 0x400), "        \
      "local memory or the parameters, or in a space that the instruction cannot reach")                                                   \
    X(ALIGNMENT, "alignment", ERROR, 1, MISALIGNED_ADDRESS, "the address is no multiple of what the access needs")                         \
    X(UNWRITTEN, "unwritten", ERROR, 0, LAUNCH_FAILED,                                                                                     \
      "what was read from memory that was never written decides something: a branch, an address, an operand of a barrier or copy, a "      \
      "member mask, what is stored to global memory; copies from the host and `cuMemset` count as writes")                                 \
    X(UNDEFINED, "undefined", ERROR, 0, LAUNCH_FAILED,                                                                                     \
      "the same of a register that was never written, or that a shuffle took from a lane that does not take part")                         \
    X(RACE, "race", ERROR, 0, LAUNCH_FAILED,                                                                                               \
      "two warps touched a byte of shared memory, one of them wrote, and no barrier orders the two; or two lanes of a warp did, and no "   \
      "barrier of the warp or the block orders them")                                                                                      \
    X(RACE_GLOBAL, "race-global", ERROR, 0, LAUNCH_FAILED,                                                                                 \
      "two warps touched a byte of global memory in one launch, one by a plain store and the other by a plain access or an "               \
      "atomic operation, and no release and acquire, or barrier of their block, orders the two")                                           \
    X(READ_ONLY, "read-only", ERROR, 0, LAUNCH_FAILED,                                                                                     \
      "a load through the read-only path (`ld.global.nc`) meets what the same launch has written")                                         \
    X(COLLISION, "collision", WARNING, 0, LAUNCH_FAILED, "lanes of one store write different values to one place in shared memory")        \
    X(IN_FLIGHT, "in-flight", ERROR, 0, LAUNCH_FAILED,                                                                                     \
      "a destination of `cp.async` is touched before the wait of the thread that started it, or one of a bulk copy before it has arrived") \
    X(COMPLETION, "completion", ERROR, 0, LAUNCH_FAILED,                                                                                   \
      "a warp touches what a bulk copy brought, and has not learnt that the mbarrier's phase is complete")                                 \
    X(IN_USE, "in-use", ERROR, 0, LAUNCH_FAILED, "shared memory is written that a wgmma or a bulk store in flight still reads")            \
    X(DIVERGENCE, "divergence", ERROR, 1, LAUNCH_FAILED,                                                                                   \
      "lanes are missing at a `.sync` instruction or a barrier; a matrix instruction without all 32 lanes; a member mask that "            \
      "leaves out its own lane, or names one with another mask")                                                                           \
    X(BARRIER, "barrier", ERROR, 1, LAUNCH_FAILED,                                                                                         \
      "a barrier that does not exist, different thread counts, a count that is no multiple of 32, a warp that comes twice")                \
    X(WGMMA_REGISTER, "wgmma-register", ERROR, 0, LAUNCH_FAILED,                                                                           \
      "an accumulator, or A, of a wgmma is touched before the `wgmma.wait_group` that ends it")                                            \
    X(WGMMA_FENCE, "wgmma-fence", ERROR, 0, LAUNCH_FAILED,                                                                                 \
      "no `wgmma.fence` before the first wgmma, or before one whose registers ordinary instructions have touched since")                   \
    X(PROXY_FENCE, "proxy-fence", ERROR, 0, LAUNCH_FAILED,                                                                                 \
      "wgmma or a bulk copy meets what a thread stored, without a `fence.proxy.async` on the way from the store to it")                    \
    X(PROXY_FENCE_LATE, "proxy-fence-late", OFF, 0, LAUNCH_FAILED,                                                                         \
      "the same, where the only `fence.proxy.async` on the way is the reader's, after the barrier")                                        \
    X(DESCRIPTOR, "descriptor", ERROR, 1, LAUNCH_FAILED, "a wgmma's descriptor has bits outside of its fields, or differs between lanes")  \
    X(WARP_GROUP, "warp-group", ERROR, 1, LAUNCH_FAILED,                                                                                   \
      "the four warps of a group do not execute the same wgmma and `setmaxnreg`, in the same order, with the same descriptors")            \
    X(SETMAXNREG, "setmaxnreg", ERROR, 1, LAUNCH_FAILED,                                                                                   \
      "`.inc` to fewer, `.dec` to more registers than there are, or a kernel that does not say what a thread starts with")                 \
    X(SETMAXNREG_ORDER, "setmaxnreg-order", WARNING, 0, LAUNCH_FAILED,                                                                     \
      "a second `setmaxnreg` before the warps of the group have met since the one before")                                                 \
    X(MBARRIER, "mbarrier", ERROR, 1, LAUNCH_FAILED,                                                                                       \
      "more arrivals than a phase expects; an address that was never initialised, or that is initialised once more without "               \
      "`mbarrier.inval`; counts beyond 2^20 - 1")                                                                                          \
    X(MBARRIER_PARITY, "mbarrier-parity", ERROR, 0, LAUNCH_FAILED,                                                                         \
      "a warp waits by parity for a phase and was not ordered after the end of the phase before it: in another timing the wait ends "      \
      "on an earlier phase of the same parity")                                                                                            \
    X(MBARRIER_FENCE, "mbarrier-fence", WARNING, 0, LAUNCH_FAILED,                                                                         \
      "a bulk copy completes on an mbarrier, and the thread that initialised it made neither `fence.mbarrier_init` nor "                   \
      "`fence.proxy.async`")                                                                                                               \
    X(ANNOUNCED, "announced", ERROR, 0, LAUNCH_FAILED,                                                                                     \
      "a phase ended before all bytes of its copies had come, or bytes are left when the block ends. Announced bytes that never come "     \
      "are a deadlock, whose report counts them")                                                                                          \
    X(UNAWAITED, "unawaited", ERROR, 0, LAUNCH_FAILED,                                                                                     \
      "a warp, thread or block ends while a wgmma or its bulk store is in flight, or a bulk copy to its shared memory that no thread has " \
      "waited for")                                                                                                                        \
    X(TENSOR_MAP, "tensor-map", ERROR, 1, LAUNCH_FAILED,                                                                                   \
      "the 128 bytes were not made by this driver's `cuTensorMapEncodeTiled`, or were changed since, or have another rank")                \
    X(CLUSTER_BARRIER, "cluster-barrier", ERROR, 1, LAUNCH_FAILED,                                                                         \
      "an arrival at the cluster's barrier without a wait in between, a wait without an arrival")                                          \
    X(CLUSTER_EXIT, "cluster-exit", ERROR, 0, LAUNCH_FAILED,                                                                               \
      "shared memory of another block is accessed after that block has ended, or at a time that nothing orders before its end")            \
    X(GRID_WAIT, "grid-wait", ERROR, 0, LAUNCH_FAILED,                                                                                     \
      "a launch with programmatic stream serialization: a thread touches global memory, or a block ends, before any "                      \
      "`griddepcontrol.wait` for what is in front. A relaxed load may come before it, as a hint: in lazy timing it finds another value "   \
      "than later loads, and what was never written is some value. So may a box of a tensor, of an allocation that the launch in front "   \
      "does not write, where that one reported its end (`launch_dependents`) after its own wait")                                          \
    X(OPERAND, "operand", ERROR, 1, LAUNCH_FAILED,                                                                                         \
      "a value that the instruction does not accept: the size of a copy, the first column of a box, the index of a branch, a rank or "     \
      "mask of blocks")                                                                                                                    \
    X(TRAP, "trap", ERROR, 1, LAUNCH_FAILED, "the kernel executed `trap`")                                                                 \
    X(DEADLOCK, "deadlock", ERROR, 1, LAUNCH_TIMEOUT, "no warp of a block, or of a cluster's blocks, can go on")                           \
    X(HANG, "hang", ERROR, 1, LAUNCH_TIMEOUT, "the launch has run more instructions than `max_steps` or longer than `max_seconds`")        \
    X(UNSUPPORTED, "unsupported", ERROR, 1, NOT_SUPPORTED, "right on a GPU perhaps, but not simulated")                                    \
    X(HOST_MEMORY, "host-memory", ERROR, 1, OUT_OF_MEMORY, "the simulator itself found no memory")

typedef enum sim_check {
#define X(check, name, severity, fixed, code, meaning) SIM_CHECK_##check,
    SIM_CHECK_TABLE(X)
#undef X
        SIM_CHECKS
} sim_check;

typedef struct sim_check_row {
    const char *name, *meaning;
    sim_severity severity; /* unless something else is chosen */
    int fixed;             /* an error, always */
    int code;              /* CUresult of the launch that ends with it */
} sim_check_row;
extern const sim_check_row sim_check_rows[SIM_CHECKS];

/* "race=warning,unwritten=off,all=error": severities by name, later ones before earlier; `all` is every class that is not fixed. Adds to
 * what is in severity[]. On failure 0, with the reason in error, and severity[] as it was. */
int sim_checks_parse(const char *text, uint8_t severity[SIM_CHECKS], char error[512]);
const char *sim_severity_name(sim_severity s);
#endif
