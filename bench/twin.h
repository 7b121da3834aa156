/* twin: the same case on two devices, compared bit by bit: how the simulator is held against the hardware. */
#ifndef FA_BENCH_TWIN_H
#define FA_BENCH_TWIN_H
#include "autotune/trial.h"

typedef enum fa_twin_kind {
    /* Each row sees one key and the scale is log 2: P = 1, LSE is the score times log 2, O the row of V. The bits of Q K^T. */
    FA_TWIN_SCORES = 0,
    /* The scale is 1e-38: every P is 1, O is the sum of the visible rows of V over their number. The bits of P V. */
    FA_TWIN_SUMS,
    /* As it comes: 2^x and log2 are the hardware's approximation on one side and correctly rounded on the other. */
    FA_TWIN_WHOLE,
    FA_TWIN_KINDS
} fa_twin_kind;
const char *fa_twin_name(int kind); /* "scores" "sums" "whole" */

typedef struct fa_twin {
    int64_t o, lse;               /* values compared */
    int64_t differ_o, differ_lse; /* whose bits differ; FA_TWIN_SUMS does not compare LSE, which holds a log2 */
    double ulps_o, ulps_lse;     /* the largest difference: of O in ulp of its type at its largest value, of LSE in ulp of fp32 at
                                  * max(1, |LSE|) */
} fa_twin;

/* Bends a case to the kind: mask, window, scale, diagonal. */
void fa_twin_bend(fa_case *c, int kind);

/* Runs the case with the config on both and compares what came out. FA_WRONG when one of them is not finite where it should be. */
fa_status fa_twin_run(fa_context *a, fa_context *b, const fa_case *c, const fa_config *config, int kind, fa_twin *out);
#endif
