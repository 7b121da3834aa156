/* attend: what `fagen attend` is given: files of tensors, and of integers that say where sequences lie. */
#ifndef FA_CLI_ATTEND_ATTEND_H
#define FA_CLI_ATTEND_ATTEND_H
#include "cli/files/npy.h"
#include "cli/options/command.h"
#include "cli/options/problem_options.h"
#include "cli/options/score_option.h"
#include "cli/session/session.h"
#include "cli/session/simulator.h"
#include "verify/operands/ragged.h"
#include "verify/operands/tensors.h"

typedef struct attend_args {
    cli_common common;
    cli_where where;
    cli_sim sim;
    const char *file[FA_ID_COUNT]; /* by operand (gen/operands.def), of --backward too; NULL = not given */
    int32_t dtype, o_dtype, window[2], diagonal, offset;
    int32_t dv; /* V is the first dv columns of K; 0 = V has a file of its own */
    float scale, dropout;
    uint64_t seed; /* of dropout */
    bool causal, check, backward, force;
    int32_t grad_dtype;
    cli_score score;
    cli_low low;
    const char *operand; /* "NAME=FILE,...": arrays of the score program */
} attend_args;

typedef struct attend_inputs {
    cli_npy t[FA_ID_COUNT]; /* inputs of the forward operation by operand; .file NULL = not given */
    fa_problem p;           /* what the files ask for */
    fa_ragged ragged;       /* sizes and integers of the launch; without such files nothing is set */
} attend_inputs;

/* Reads and checks the files. FA_INVALID names the file, what is wrong, for a value its index too, and what is accepted. */
fa_status attend_read(attend_inputs *in, const attend_args *a);
void attend_free(attend_inputs *in); /* zeros are fine */

/* FA_INVALID where an option names for writing what another one reads, unless --force is given, or what another one writes. Files are
 * compared by device and inode, so that links count. */
fa_status attend_check_outputs(const attend_args *a);

/* Element i of an input, packed: of the file; where K or V have few bits, what their codes mean, but for scales, and the scales (low.c). */
float attend_element(const attend_inputs *in, fa_operand_id id, size_t i);

/* Mask, scale and dropout of a launch. */
void attend_mask(fa_args *to, const attend_args *a, const fa_problem *p);

/* With --backward: the gradients instead. Returns the exit code. */
int attend_backward(cli *c, const attend_args *a, const attend_inputs *in, const cli_session *s);

/* What the score program's operands are: scalars of --score, arrays of --operand (scores.c). */
fa_status attend_scores(fa_tensors *t, const attend_args *a);

/* Whether the files of queries, or of keys, have the rows of all sequences one after the other: no dimension of the batch. */
static inline bool attend_packed(const attend_args *a, bool keys)
{
    return a->file[keys ? FA_ID_cu_seqlens_k : FA_ID_cu_seqlens_q] != NULL;
}

/* ---- of the files with integers (lengths.c) ---- */

/* The dimensions of the tensors, of which integers are held against. */
typedef struct attend_shape {
    int64_t batch_q, rows_q, batch_k, rows_k; /* as fa_extent has them: 1 and total_q, total_k where packed; pages and tokens of one */
} attend_shape;

/* Checks them to the last value; fills in->ragged, and b, sq and sk of in->p. */
fa_status attend_lengths(attend_inputs *in, const attend_args *a, const attend_shape *s);

extern const cli_command cli_attend;
#endif
