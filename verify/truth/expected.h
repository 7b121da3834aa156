/* expected: what the outputs of one call should be, by its operation's row of reference.h, and whether values are right. */
#ifndef FA_VERIFY_TRUTH_EXPECTED_H
#define FA_VERIFY_TRUTH_EXPECTED_H
#include "reference.h"
#include "rule.h"

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
    double *bound[FA_OPERANDS_MAX];   /* of outputs, of calls with bounds: as fa_reference_row.bounds leaves them; else NULL */
    double *
        also[FA_OPERANDS_MAX]; /* of packed rows that may be one or the other: sums of 8 bits as wgmma has them, out, or exact; else NULL */
    char outside[160];         /* as fa_verdict has it */
    double score, approximate, rounding_factor; /* approximate: as fa_reference_row.approximate has it */
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

/* Appends " (batch 0, query 5, head 1, column 7)", where element `at` of an output lies, to v->text; packed rows have no column. */
void fa_expected_place(const fa_expected *e, int operand, int64_t at, fa_verdict *v);
#endif
