/* plans: all that a context has made, and the classes that threads are preparing. */
#ifndef FA_RUNTIME_PLAN_PLANS_H
#define FA_RUNTIME_PLAN_PLANS_H
#include "plan.h"
#include <pthread.h>

/* One class that a thread is preparing; lives on that thread's stack. */
typedef struct fa_pending {
    fa_plan_key key;
    struct fa_pending *next;
} fa_pending;

typedef struct fa_plans {
    pthread_mutex_t mutex; /* of all below */
    fa_plan *first;
    fa_pending *pending;
    pthread_cond_t prepared;
} fa_plans;

void fa_plans_open(fa_plans *ps);
void fa_plans_close(fa_plans *ps);
/* Takes the plan, which is heap, as is its launch_count. */
void fa_plans_keep(fa_plans *ps, fa_plan *plan);

/* This thread prepares me->key: waits until no other does. */
void fa_plans_begin(fa_plans *ps, fa_pending *me);
void fa_plans_end(fa_plans *ps, fa_pending *me);
#endif
