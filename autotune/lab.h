/* lab: where candidates are verified and timed: the device, a child process on it, or a test's own world. Nothing is timed that was
 * not verified before: this is the one door to a time, and it asks. */
#ifndef FA_AUTOTUNE_LAB_H
#define FA_AUTOTUNE_LAB_H
#include "gauge.h"
#include "tuning.h"

typedef struct fa_lab fa_lab;
struct fa_lab {
    /* FA_OK: the candidate is right. FA_WRONG, FA_DEVICE, FA_INTERRUPTED (it hung: the child was killed) ...: with a message. */
    fa_status (*judge)(fa_lab *lab, fa_candidate *c);
    /* One more sample into c->samples, or of a warm L2 into c->warm_samples. */
    fa_status (*sample)(fa_lab *lab, fa_candidate *c, bool warm);
    /* The first pass, where it is not n samples of the above one after the other; NULL = it is. */
    fa_status (*first)(fa_lab *lab, fa_candidate *c, int n);
    fa_gauge (*gauge)(fa_lab *lab);      /* NULL = nothing is known of the chip */
    bool (*alive)(fa_lab *lab);          /* after a failure: whether others may still be tried. NULL = yes */
    void (*close)(fa_lab *lab);          /* NULL = nothing to do */
    const fa_slot *slot;                 /* whose other members are no strangers on the device; NULL = there is none */
    void *user;
};

/* The device of a site, which stays where it is. p: normalized, its shape filled. judges false: only what was verified elsewhere is timed
 * here. On a site that is not timed, the simulator, it only judges. */
fa_status fa_lab_open(fa_lab **out, const fa_site *site, const fa_problem *p, bool judges);
/* A process of ours that uses the same device, as long as it lives; 0 = none. Of a lab of fa_lab_open alone. */
void fa_lab_partner(fa_lab *lab, int pid);
void fa_lab_close(fa_lab *lab); /* NULL is fine */

fa_status fa_lab_judge(fa_lab *lab, fa_candidate *c);  /* sets c->verified */
/* n samples, and what they say: seconds, spread, count, clock, quality. Fewer where the first is above `enough` seconds (0 = none is).
 * FA_INTERNAL of a candidate that is not verified. */
fa_status fa_lab_first(fa_lab *lab, fa_candidate *c, int n, double enough);
fa_status fa_lab_sample(fa_lab *lab, fa_candidate *c, bool warm); /* likewise */
fa_gauge fa_lab_gauge(fa_lab *lab); /* foreign: without those of the slot */
bool fa_lab_alive(fa_lab *lab);

/* What c's samples say, taken during the span. */
void fa_lab_sum_up(fa_candidate *c, const fa_span *s);
#endif
