/* reference: what the outputs of an operation should be, as rows of a table: the exact values and those of the naive algorithm, whose
 * errors are the measure of verify.h. The verifier walks these rows and the operands of the operation; it knows no operation by itself. */
#ifndef FA_AUTOTUNE_REFERENCE_H
#define FA_AUTOTUNE_REFERENCE_H
#include "gen/dropout.h"
#include "gen/model.h"
#include "gen/operation.h"
#include "sequences.h"
#include "verify.h"

/* One call of an operation on the CPU. */
typedef struct fa_reference_call {
    const fa_operation *op;
    fa_problem problem;               /* normalized, with its shape; lengths of 0 are meant */
    fa_band band;                     /* what a row sees; the rest is not read */
    float scale;                      /* as the kernel gets it */
    const float *in[FA_OPERANDS_MAX]; /* inputs by row of the operation, dense in packed order; of outputs and of integers NULL */
    fa_dropout dropout;               /* of problems with it */
    /* Where rows lie, and what each sees in place of band; NULL = all sequences have the lengths of the problem. Borrowed. */
    const fa_sequences *sequences;
} fa_reference_call;

typedef struct fa_reference_row {
    int32_t op; /* fa_op */
    /* Every output by its row, optional ones too, dense in packed order, fp64 throughout. */
    fa_status (*exact)(const fa_reference_call *c, double *const out[FA_OPERANDS_MAX]);
    /* The strided outputs as the naive algorithm computes them in the type of the inputs, rounded to their own. *rounding_factor: as
     * fa_oracle_naive. */
    fa_status (*naive)(const fa_reference_call *c, float *const out[FA_OPERANDS_MAX], double *rounding_factor);
    /* As exact, with the absolute value of every term of every sum in place of the term: what errors of fp32 sums are relative to where
       terms cancel. NULL = the outputs' own size. */
    fa_status (*terms)(const fa_reference_call *c, double *const out[FA_OPERANDS_MAX]);
    double times;       /* the naive algorithm's largest error that are allowed; 0 = 2 (verify.h) */
    const char *scores; /* the fp32 operand whose largest |value| is that of a score, for the score term of the rule; NULL = none: scores
                           are small */
} fa_reference_row;

/* One more row, of an operation that was added (fa_operation_add), on the same terms. */
bool fa_reference_add(const fa_reference_row *row);

/* What the outputs of one call should be. */
typedef struct fa_expected {
    fa_reference_call call;
    const fa_reference_row *row;
    char title[FA_OPERANDS_MAX][FA_OPERAND_TITLE];
    fa_sizes sizes;
    int64_t n[FA_OPERANDS_MAX];       /* elements of each output; of inputs 0 */
    uint8_t *row_used[2];             /* which rows of the tensors of queries, of keys, are of a sequence; NULL = all */
    int64_t rows[2];                  /* how many they are */
    double *out[FA_OPERANDS_MAX];     /* of outputs: as fa_reference_row.exact leaves them; NaN in rows of no sequence */
    fa_errors naive[FA_OPERANDS_MAX]; /* of strided outputs */
    fa_terms terms[FA_OPERANDS_MAX];  /* of strided outputs, where the row has terms */
    double score, rounding_factor;
} fa_expected;

/* Room for the outputs. FA_UNSUPPORTED: no row has the operation. The inputs are borrowed. */
fa_status fa_expected_open(fa_expected *e, const fa_reference_call *c);
void fa_expected_close(fa_expected *e); /* zeros are fine */
/* Fills out. */
fa_status fa_expected_exact(fa_expected *e);
/* All that follows from out: naive's errors, the size of scores. TF32: packed outputs become those of the rounded inputs. */
fa_status fa_expected_finish(fa_expected *e);

/* The row of the tensors of queries, or of keys, that element `at` of an output is in, and whether it is of a sequence, so that it is
 * written. */
int64_t fa_expected_row(const fa_expected *e, int operand, int64_t at);
bool fa_expected_writes(const fa_expected *e, int operand, int64_t at);

/* Judges values, dense in packed order, NaN where no sequence writes; NULL = an output that was not asked for. *v is that of the first
 * output that breaks the rule, else that of the one that comes nearest to it. Returns v->ok. */
bool fa_expected_judge(const fa_expected *e, const float *const got[FA_OPERANDS_MAX], fa_verdict *v);

/* Appends " (batch 0, query 5, head 1, column 7)", where element `at` of a strided output lies, to v->text. */
void fa_expected_place(const fa_expected *e, int operand, int64_t at, fa_verdict *v);
#endif
