/* process: a process that verifies and first times candidates, so that one that hangs or faults costs only itself. CUDA does not
 * survive a fork, so the child is a command of its own, which serves lines on its standard input and output:
 *
 *   to it                   from it
 *                           ready VERSION              once its device is open
 *   problem TEXT            ok | fail STATUS MESSAGE
 *   judge CONFIG            ok | fail STATUS MESSAGE | lost STATUS MESSAGE    the last: its context is gone, and so is the child
 *   time N                  times COUNT LAUNCHES CLOCK TEMPERATURE FOREIGN THROTTLED SECONDS ... | fail ... | lost ...     of what was
 * judged last
 *
 * STATUS is the number of an fa_status; seconds are in C's hexadecimal, so that nothing is lost. An answer that does not come in time, or
 * that is none, is the child's end; the next candidate gets a new one. */
#ifndef FA_AUTOTUNE_CANDIDATE_PROCESS_H
#define FA_AUTOTUNE_CANDIDATE_PROCESS_H
#include "backend.h"
#include <stdio.h>

#define FA_CANDIDATE_PROCESS_HANG 20.0  /* seconds */
#define FA_CANDIDATE_PROCESS_START 60.0 /* until it must be ready */
#define FA_CANDIDATE_PROCESS_LOSSES 16  /* in a row, after which the device is given up */

/* A backend that judges and takes the first samples in a child made by argv (NULL-terminated), and further samples here: by then the
 * candidate has run. hang: seconds for one answer, 0 = FA_CANDIDATE_PROCESS_HANG. *lost counts children that died. The child is started at
 * once and gets ready by itself: opening the backend early costs nothing. Where the first never is ready, this process takes its place, and
 * the context's log says so. FA_IO where nothing can be started. */
fa_status fa_measure_backend_open_process(fa_measure_backend **out, const fa_site *site, const fa_problem *p, char *const *argv,
                                          double hang, size_t *lost);

/* The child's side: serves until in ends. FA_DEVICE when a candidate has made the context unusable. It dies with its parent. */
fa_status fa_candidate_process_serve(const fa_site *site, FILE *in, FILE *out);
#endif
