/* backend: where candidates are verified and timed: the device, a child process on it, or a test's own world. Nothing is timed that
 * was not verified before: this is the one door to a time, and it asks. */
#ifndef FA_AUTOTUNE_CANDIDATE_BACKEND_H
#define FA_AUTOTUNE_CANDIDATE_BACKEND_H
#include "autotune/device/telemetry.h"
#include "tuning.h"

typedef struct fa_measure_backend fa_measure_backend;
struct fa_measure_backend {
    /* FA_OK: the candidate is right. FA_WRONG, FA_DEVICE, FA_INTERRUPTED (it hung: the child was killed) ...: with a message. */
    fa_status (*judge)(fa_measure_backend *backend, fa_candidate *c);
    /* One more sample into c->samples, or of a warm L2 into c->warm_samples. */
    fa_status (*sample)(fa_measure_backend *backend, fa_candidate *c, bool warm);
    /* The first pass, where it is not n samples of the above one after the other; NULL = it is. */
    fa_status (*first)(fa_measure_backend *backend, fa_candidate *c, int n);
    fa_telemetry (*telemetry)(fa_measure_backend *backend); /* NULL = nothing is known of the chip */
    bool (*alive)(fa_measure_backend *backend);             /* after a failure: whether others may still be tried. NULL = yes */
    void (*close)(fa_measure_backend *backend);             /* NULL = nothing to do */
    const fa_device_lock *device_lock;                      /* whose other members are no strangers on the device; NULL = there is none */
    void *user;
};

/* The device of a site, which stays where it is. p: normalized, its shape filled. judges false: only what was verified elsewhere is timed
 * here. On a site that is not timed, the simulator, it only judges. */
fa_status fa_measure_backend_open(fa_measure_backend **out, const fa_site *site, const fa_problem *p, bool judges);
/* A process of fagen that uses the same device, as long as it lives; 0 = none. Of a backend of fa_measure_backend_open alone. */
void fa_measure_backend_partner(fa_measure_backend *backend, int pid);
void fa_measure_backend_close(fa_measure_backend *backend); /* NULL is fine */

fa_status fa_measure_backend_judge(fa_measure_backend *backend, fa_candidate *c); /* sets c->verified */
/* n samples, and what they say: seconds, spread, count, clock, quality. Fewer where the first is above `enough` seconds (0 = none is).
 * FA_INTERNAL of a candidate that is not verified. */
fa_status fa_measure_backend_first(fa_measure_backend *backend, fa_candidate *c, int n, double enough);
fa_status fa_measure_backend_sample(fa_measure_backend *backend, fa_candidate *c, bool warm); /* likewise */
fa_telemetry fa_measure_backend_telemetry(fa_measure_backend *backend); /* foreign: without those of the device lock */
bool fa_measure_backend_alive(fa_measure_backend *backend);

/* What c's samples say, taken during the span. */
void fa_measure_backend_sum_up(fa_candidate *c, const fa_span *s);
#endif
