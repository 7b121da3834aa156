/* reference: what the outputs of an operation should be, as rows of a table: the exact values and those of the naive algorithm, whose
 * errors are the measure of rule.h. expected.h walks these rows and the operands of the operation; it knows no operation by itself. */
#ifndef FA_VERIFY_TRUTH_REFERENCE_H
#define FA_VERIFY_TRUTH_REFERENCE_H
#include "gen/model.h"
#include "gen/operation.h"
#include "gen/pairs.h"
#include "oracle.h"
#include "verify/operands/score_operands.h"
#include "verify/operands/sequences.h"

/* One call of an operation on the CPU. */
typedef struct fa_reference_call {
    const fa_operation *op;
    fa_problem problem;               /* normalized, with its shape; lengths of 0 are meant */
    fa_band band;                     /* what a row sees; the rest is not read */
    float scale;                      /* as the kernel gets it */
    const float *in[FA_OPERANDS_MAX]; /* inputs by row of the operation, dense in packed order; of outputs and of integers NULL */
    fa_dropout dropout;               /* of problems with it */
    bool bounds; /* outputs are held against bounds in place of the naive algorithm: inputs are far apart in size, or no numbers */
    /* Where rows lie, and what each sees in place of band; NULL = all sequences have the lengths of the problem. Borrowed. */
    const fa_sequences *sequences;
    /* The score program of problems with one, its operands, and where its queries lie among keys (gen/pairs.h). Borrowed. */
    const fa_score_operands *score;
    int32_t eight;              /* fa_dtype of 8 bits: scores are of sums of products as wgmma has them; 0: exact */
    bool widened;               /* K and V of few bits become those of the problem's dtype before they are multiplied */
    bool exact_q;               /* beside K and V of few bits: Q in fp32, or times scales of K's columns, is not rounded */
    bool relative, approximate; /* approximate: the device's `tanh` is no exact one */
    int32_t off;
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
    /* How far from the exact values the fp32 arithmetic of any kernel may be, for every element of every output, as fa_oracle_bounds says
       it. NULL: calls with bounds are FA_UNSUPPORTED. */
    fa_status (*bounds)(const fa_reference_call *c, double *const out[FA_OPERANDS_MAX]);
    /* What a score may be off by because the device's functions are no exact ones; NULL = nothing. */
    fa_status (*approximate)(const fa_reference_call *c, double *most);
    /* A lookup of its score program that is outside of its operand; NULL = it has no program. */
    fa_status (*outside)(const fa_reference_call *c, fa_outside *found);
    double times;       /* the naive algorithm's largest error that are allowed; 0 = 2 (rule.h) */
    const char *scores; /* the fp32 operand whose largest |value| is that of a score, for the score term of the rule; NULL = none: scores
                           are small */
} fa_reference_row;

/* One more row, of an operation that was added (fa_operation_add), on the same terms; or, of one that has an operand more (fa_operand_add),
 * the row that takes the place of its own. */
bool fa_reference_add(const fa_reference_row *row);
/* The call as the oracle takes it. */
fa_attention fa_reference_attention(const fa_reference_call *c);
/* NULL: the operation has no row. */
const fa_reference_row *fa_reference_find(int32_t op);
#endif
