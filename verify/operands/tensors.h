/* tensors: the operands of one problem in device memory, packed, as its operation's rows say, and the arguments of a launch of them: what
 * is measured on, and what the command fills from files. The verifier has strides, gaps and canaries, and buffers of its own (trial.h). */
#ifndef FA_VERIFY_OPERANDS_TENSORS_H
#define FA_VERIFY_OPERANDS_TENSORS_H
#include "ragged.h"
#include "score_operands.h"
#include "scratch.h"
#include "sequences.h"

#define FA_TENSOR_SETS 16

typedef struct fa_tensors {
    fa_context *ctx;
    const fa_operation *op;
    fa_problem problem;
    fa_args args;                    /* ready for fa_launch but for the workspace; window, diagonal and scale may be changed */
    size_t count[FA_OPERANDS_MAX];   /* elements; 0: it was not asked for */
    size_t offset[FA_OPERANDS_MAX];  /* bytes from the beginning of a set, a multiple of 256 */
    size_t inputs, bytes;            /* of a set: what holds normal inputs of the type of Q, which come first; all */
    CUdeviceptr at[FA_OPERANDS_MAX]; /* where each is that args names; 0: nowhere */
    CUdeviceptr
        set[FA_TENSOR_SETS]; /* several copies of all, one after the other in one piece each; sets 0: each operand has a piece of its own */
    int sets;
    uint64_t rng[2];  /* of problems with dropout: {seed, offset}, which the device gets with the values of the other inputs */
    fa_ragged ragged; /* lengths and tables of problems with features; the device gets them with the values of the other inputs */
    /* Of problems with a score program, of every set; scalars may be changed in score.value. args names it: the struct stays where it is */
    fa_score_operands score;
    fa_scratch scratch;
} fa_tensors;

/* Counts and offsets; no memory on the device. p: normalized, with its whole shape. optional: operands that may be left out are asked for.
 * With features, lengths and tables are those given, which are copied, or with NULL those of fa_ragged_typical(). FA_NOMEM: more bytes than
 * the address space has. */
fa_status fa_tensors_lay(fa_tensors *out, fa_context *ctx, const fa_problem *p, bool optional, const fa_ragged *given);

/* Memory for what was laid; a context of the device is current, here and below. */
fa_status fa_tensors_reserve_sets(fa_tensors *t, int sets);
void fa_tensors_use(fa_tensors *t, int set); /* args then names the operands of this set */
void fa_tensors_close(fa_tensors *t);        /* zeros are fine */

/* Lays all operands and reserves a piece for each: so the simulator tells the bytes of each apart, and sees what runs over an end. */
fa_status fa_tensors_open(fa_tensors *out, fa_context *ctx, const fa_problem *p);
/* The same with lengths and tables that are given; they are copied. */
fa_status fa_tensors_open_ragged(fa_tensors *out, fa_context *ctx, const fa_problem *p, const fa_ragged *given);
/* Where the rows of its sequences lie, and what each sees with the mask, window and diagonal of args. To be closed. */
fa_status fa_tensors_sequences(const fa_tensors *t, fa_sequences *out);

/* Element i of the input becomes value(user, operand, i), rounded to its type. FA_INTERRUPTED after sim_interrupt(). Inputs that another
 * operation computes (fa_operation.after), here and below, are then what that one gives with the mask and scale of args. */
typedef float fa_tensor_value(void *user, int operand, size_t i);
fa_status fa_tensors_fill(fa_tensors *t, fa_tensor_value *value, void *user);
/* As the operands' rows say, mostly N(0, 1), from a seed. */
fa_status fa_tensors_random(fa_tensors *t, uint64_t seed);
/* N(0, 1) in the inputs of every set: a pattern that repeats, so that large tensors are filled by the device. */
fa_status fa_tensors_pattern(fa_tensors *t);

/* One launch with the workspace it needs (plan NULL: what fa_launch chooses), waited for. */
fa_status fa_tensors_launch(fa_tensors *t, const fa_plan *plan);

/* An operand as fp32, heap. */
fa_status fa_tensors_get(const fa_tensors *t, int operand, float **out);
#endif
