/* repeat: a thread's last launch, looked at and laid out. A call that differs from it in addresses alone, as those of a model's layers do,
 * is looked at again in its addresses alone.
 *
 * What a repeat is follows from the rows of its operation (gen/operation.h): of an operand's address only whether it is NULL is compared,
 * since that may decide the class; the workspace likewise. All other bytes of fa_args are compared, and the host memory that they lead to.
 */
#ifndef FA_RUNTIME_LAUNCH_REPEAT_H
#define FA_RUNTIME_LAUNCH_REPEAT_H
#include "runtime/args/check.h"
#include "runtime/plan/plan.h"

typedef struct fa_repeat {
    fa_call call;
    fa_plan_key key; /* of call.problem */
    uint64_t kernel; /* fa_kernel.number that the rest is of; 0 = none */
    uint64_t same;   /* a number that this thread's launches of this kernel share which differ in addresses alone */
    int64_t grid;
    int32_t tiles, total, section;
    uint32_t part; /* of tallies, for this thread; 0 = none yet */
} fa_repeat;

/* A number that this thread has not had; not 0. */
uint64_t fa_repeat_next(void);

/* As fa_check_args() with tensors, into this thread's own place: *out stays until its next call. FA_NOMEM: a thread's first call found no
 * memory for that place. */
fa_status fa_repeat_check(fa_repeat **out, const fa_args *args);
#endif
