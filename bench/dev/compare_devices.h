/* compare_devices: the same case on two devices, compared bit by bit: how the simulator is held against the hardware. */
#ifndef FA_BENCH_COMPARE_DEVICES_H
#define FA_BENCH_COMPARE_DEVICES_H
#include "verify/cases/trial.h"

typedef enum fa_compare_devices_kind {
    /* Each row sees one key and the scale is log 2: P = 1, LSE is the score times log 2, O the row of V. The bits of Q K^T. */
    FA_COMPARE_SCORES = 0,
    /* The scale is 1e-38: every P is 1, O is the sum of the visible rows of V over their number. The bits of P V. */
    FA_COMPARE_SUMS,
    /* As it comes: 2^x and log2 are the hardware's approximation on one side and correctly rounded on the other. */
    FA_COMPARE_WHOLE,
    FA_COMPARE_KINDS
} fa_compare_devices_kind;
const char *fa_compare_devices_name(int kind); /* "scores" "sums" "whole" */

typedef struct fa_compare_devices {
    int64_t o, lse;               /* values compared */
    int64_t differ_o, differ_lse; /* whose bits differ; FA_COMPARE_SUMS does not compare LSE, which holds a log2 */
    double ulps_o, ulps_lse;      /* the largest difference: of O in ulp of its type at its largest value, of LSE in ulp of fp32 at
                                   * max(1, |LSE|) */
} fa_compare_devices;

/* Bends a case to the kind: mask, window, scale, diagonal. */
void fa_compare_devices_bend(fa_case *c, int kind);

/* Runs the case with the config on both and compares what came out. FA_WRONG when one of them is not finite where it should be. */
fa_status fa_compare_devices_run(fa_context *a, fa_context *b, const fa_case *c, const fa_config *config, int kind,
                                 fa_compare_devices *out);
#endif
