/* trial: a case's tensors on a device with what should come out: any number of configs are run on it and judged. */
#ifndef FA_VERIFY_CASES_TRIAL_H
#define FA_VERIFY_CASES_TRIAL_H
#include "case.h"
#include "runtime/runtime.h"
#include "verify/truth/rule.h"

typedef enum fa_reference {
    FA_REFERENCE_ORACLE = 0, /* fp64 on the CPU: the operation's row of reference.h */
    FA_REFERENCE_DEVICE /* the reference family, fp32 on the device, itself held against nothing: for lengths the CPU is slow at; where the
                           operation has none, as above */
} fa_reference;

typedef struct fa_trial fa_trial;

/* Allocates, fills, uploads and computes the reference and the naive algorithm's error. *out is NULL on failure. */
fa_status fa_trial_open(fa_trial **out, fa_context *ctx, const fa_case *c, fa_reference how);
void fa_trial_close(fa_trial *t); /* NULL is fine */

/* Poisons the outputs, launches (plan NULL: what fa_launch chooses), waits and judges: values, unwritten elements, bytes changed
 * that are not outputs (gaps, canaries around every buffer, inputs). FA_WRONG with the case's line when the rule is broken,
 * v->text tells how; FA_DEVICE and others when it did not run. */
fa_status fa_trial_run(fa_trial *t, const fa_plan *plan, fa_verdict *v);

/* After a run: launches with NaN in all rows of Q, K and V but those of one sequence, whose outputs must be those of the run, bit for bit:
 * one request never sees another. FA_WRONG as above. Of a case that is ragged: fa_trial_sequences() of them, else 0,
 * and of an append, of which each bit is known. */
fa_status fa_trial_alone(fa_trial *t, const fa_plan *plan, int32_t sequence, fa_verdict *v);
int32_t fa_trial_sequences(const fa_trial *t);

/* As handed to fa_launch, but for the workspace. Borrowed. */
const fa_args *fa_trial_args(const fa_trial *t);
/* What the last run left of an output, dense in packed order, and its bytes: bits of its type; NULL where the operation has no output of
 * this name, or it was not asked for. Borrowed. */
const void *fa_trial_output(const fa_trial *t, const char *name, size_t *bytes);

/* Open, run, close. config NULL: what fa_launch chooses. */
fa_status fa_verify_case(fa_context *ctx, const fa_case *c, const fa_config *config, fa_verdict *v);
#endif
